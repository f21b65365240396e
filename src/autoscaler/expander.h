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

/// An event's reason and message.
struct Warning {
  std::string_view reason;
  std::string message;
};

/// The options that the expanders leave, one expander after the other; `random` keeps all. `priorities`: the YAML of the priority
/// expander's ConfigMap: {10: [".*spot.*"], 5: [".*"]}; without it, or when it is none, that expander narrows nothing; a pattern that is
/// none is left out. `warnings` says so.
std::vector<ExpansionOption> narrow(std::vector<ExpansionOption> options, const std::vector<Expander>& expanders,
                                    const std::optional<std::string>& priorities, std::vector<Warning>& warnings);
/// One of the options; the same for the same seed. Requires at least one.
ExpansionOption draw(std::vector<ExpansionOption> options, std::uint64_t seed);

}  // namespace berth::autoscaler
