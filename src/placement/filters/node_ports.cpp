// NodePorts: host ports must be free on the node (pkg/scheduler/framework/plugins/nodeports; predicate PodFitsHostPorts).
#include <algorithm>

#include "placement/columns/topology_part.h"
#include "placement/node_match.h"
#include "placement/plugins/factories.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

constexpr std::string_view kPortsReason = "node(s) didn't have free ports for the requested pod ports";

/// How many pods of the node have a port that the pod wants.
class PortsLoad final : public RemovableLoad {
 public:
  explicit PortsLoad(std::vector<model::HostPort> wanted) : wanted_(std::move(wanted)) {}
  [[nodiscard]] std::unique_ptr<RemovableLoad> clone() const override { return std::make_unique<PortsLoad>(*this); }
  [[nodiscard]] std::vector<Condition> conditions() const override {
    return std::vector<Condition>(wanted_.empty() ? 0 : 1, Condition{.is_summed = true});
  }
  [[nodiscard]] std::vector<Status> words() const override { return {Status::unschedulable(std::string(kPortsReason))}; }
  [[nodiscard]] std::uint8_t reads() const override { return kHostPorts; }
  void load_of(const PodInfo& other, std::span<std::int64_t> out) const override {
    if (!out.empty() && ports_conflict(wanted_, other.host_ports)) out[0] = 1;
  }
  void limits(const NodeInfo&, std::span<LoadLimit> out) const override { std::ranges::fill(out, LoadLimit{.most = 0}); }

 private:
  std::vector<model::HostPort> wanted_;
};

class NodePorts final : public PluginOf<NodePorts> {
 public:
  explicit NodePorts(Era era) : era_(era) {}
  std::string_view name() const override { return "NodePorts"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.host_ports(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }
  PreFilterOutcome pre_filter(CycleState&, const PodInfo& pod) const override {
    if (era_ != Era::k120 && pod.host_ports.empty()) return {Status::skip(), {}};
    return {};
  }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (pod.host_ports.empty() || node.pods_with_ports == 0) return Status::success();
    const bool taken = std::ranges::any_of(node.pods, [&](const auto& other) { return ports_conflict(pod.host_ports, other->host_ports); });
    return taken ? Status::unschedulable(std::string(kPortsReason)) : Status::success();
  }
  [[nodiscard]] std::unique_ptr<RemovableLoad> removable_load(const TopologySetup& setup) const override {
    return std::make_unique<PortsLoad>(setup.pod.host_ports);
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | kAssignedPodDeleted;
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  Era era_;
};

bool NodePorts::queueing_hint(const Cluster& /*cluster*/, const PodInfo& pending, const EventChange& change) const {
  if (change.pod == nullptr && change.pod_before == nullptr) return true;
  const PodInfo& gone = change.pod_before != nullptr ? *change.pod_before : *change.pod;
  return ports_conflict(pending.host_ports, gone.host_ports);
}

}  // namespace

Result<PluginPtr> make_node_ports(const Profile& profile) { return std::make_unique<NodePorts>(profile.era); }

}  // namespace berth::placement
