// Which of the groups that would help is grown.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
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
  std::optional<double> price_per_hour{};  ///< Of one node, as the provider says.
};

/// What expanders go by beside the options.
struct ExpanderInput {
  std::optional<std::string> priorities;  ///< YAML of the priority expander's ConfigMap: {10: [".*spot.*"], 5: [".*"]}.
  /// YAML of the price expander's: an hour of a node by group or instance type, and of a core (cpu), a GiB (memory) or a device that pods
  /// ask for. {MachineSet/ns/name: 0.2, m5.large: 0.096, cpu: 0.033, memory: 0.0044}
  std::optional<std::string> prices;
  /// Of an hour of pods, as the provider says, by shape_of. Used only where all pods of all options are among them.
  std::map<std::string, double> pod_prices{};
  /// The groups that somebody else would grow (expander grpc). Blocks. Empty function: nobody to ask.
  std::function<Result<std::vector<std::string>>(const std::vector<ExpansionOption>& options)> ask;
};

/// Of an hour of so much, where nobody says a price: by the built-in prices of the expander price.
double usual_price(const placement::Resource& amounts);

/// What a pod asks for, as text: pods of one shape cost alike.
std::string shape_of(const placement::Resource& wanted);

/// An event's reason and message.
struct Warning {
  std::string_view reason;
  std::string message;
};

/// The options that the expanders leave, one expander after the other; `random` keeps all. Without its
/// ConfigMap, or when that is none, or nobody answers, an expander narrows nothing; a pattern or price that is none is left out. `warnings`
/// says so.
std::vector<ExpansionOption> narrow(std::vector<ExpansionOption> options, const std::vector<Expander>& expanders,
                                    const ExpanderInput& input, std::vector<Warning>& warnings);
/// One of the options; the same for the same seed. Requires at least one.
ExpansionOption draw(std::vector<ExpansionOption> options, std::uint64_t seed);

}  // namespace berth::autoscaler
