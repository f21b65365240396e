// NUMA nodes of simulated nodes: what the annotation says that the machine is, and which pods it takes.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "node/numa/topology_report.h"
#include "placement/numa/zone_ledger.h"

namespace berth::node::simulated {

/// On a Node object: "2,policy=single-numa-node,scope=pod,full-pcpus-only=2": so many NUMA nodes, among which the node's processors,
/// memory, huge pages and extended resources are parted evenly; a kubelet with static CPU and memory managers and that topology manager.
/// The last: cores of so many threads, of which only whole ones are given. What is reserved of processors is the first NUMA node's.
inline constexpr std::string_view kNumaAnnotation = "sim.berth.dev/numa";

struct NumaTemplate {
  int nodes = 1;
  int threads_of_whole_cores = 1;
  std::string policy = "none", scope = "container";
};
Result<NumaTemplate> parse_numa(std::string_view text);

/// The NUMA nodes of one machine, with who has what of them. Single-threaded.
class NumaPart {
 public:
  using Resources = std::map<std::string, std::string>;  ///< As a Node's status has them.
  /// The error says what of the template is not possible.
  static Result<NumaPart> make(const NumaTemplate& from, const Resources& capacity, const Resources& allocatable);

  /// A pod that comes gets its own; pods that are not `active` have nothing any more.
  std::optional<Refusal> admit(const json::Value& pod, const std::set<std::string>& active);
  void keep_only(const std::set<std::string>& active) { ledger_.keep_only(active); }
  [[nodiscard]] std::string document(const std::string& node_name, const std::string& node_uid) const;

 private:
  NumaPart(numa::TopologyReport report, numa::ZoneLedger ledger) : report_(std::move(report)), ledger_(std::move(ledger)) {}
  numa::TopologyReport report_;
  numa::ZoneLedger ledger_;
};

}  // namespace berth::node::simulated
