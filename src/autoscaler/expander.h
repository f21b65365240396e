// Which of the groups that would help is grown.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/node_template.h"
#include "autoscaler/options.h"

namespace berth::autoscaler {

/// A group, how many more nodes of it, and the pods that these would take.
struct ExpansionOption {
  std::string group;
  const NodeTemplate* node_template = nullptr;
  std::int64_t nodes = 0;
  std::vector<PodPtr> pods;
};

/// Expanders one after the other narrow the options; of those left `seed` draws one. Nullopt only without options. `priorities`: the YAML
/// of the priority expander's ConfigMap: {10: [".*spot.*"], 5: [".*"]}; without it, or when it is wrong, that expander narrows nothing and
/// says so in `warnings`.
std::optional<ExpansionOption> choose(std::vector<ExpansionOption> options, const std::vector<Expander>& expanders,
                                      const std::optional<std::string>& priorities, std::uint64_t seed, std::vector<std::string>* warnings);

}  // namespace berth::autoscaler
