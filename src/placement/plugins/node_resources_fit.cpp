// NodeResourcesFit: the pod's requests must fit what is left; in 1.36 it scores by the configured strategy too
// (pkg/scheduler/framework/plugins/noderesources/fit.go; predicate PodFitsResources).
#include <fmt/format.h>

#include <algorithm>

#include "placement/columns/node_amounts.h"
#include "placement/columns/topology_part.h"
#include "placement/devices/extended.h"
#include "placement/plugins/factories.h"
#include "placement/removable_load.h"
#include "placement/scorers/resource_allocation.h"

namespace berth::placement {
namespace {

struct FitState : Cloneable<FitState> {
  std::vector<ScoredResource> resources;
};

constexpr std::string_view kTooManyPods = "Too many pods";
std::string insufficient(std::string_view resource) { return fmt::format("Insufficient {}", resource); }

/// The amounts that the pod asks for, as conditions.
class FitLoad final : public RemovableLoad {
 public:
  /// Of other resources those of `wanted` alone.
  FitLoad(Era era, Resource wanted) : era_(era), wanted_(std::move(wanted)) {}
  [[nodiscard]] std::unique_ptr<RemovableLoad> clone() const override { return std::make_unique<FitLoad>(*this); }
  [[nodiscard]] std::vector<Condition> conditions() const override {
    std::vector<Condition> out{{Amount::kPods}, {Amount::kCpu}, {Amount::kMemory}, {Amount::kStorage}};
    out.resize(out.size() + wanted_.scalars.size());
    return out;
  }
  [[nodiscard]] std::vector<Status> words() const override {
    std::vector<Status> out{Status::unschedulable(std::string(kTooManyPods))};
    for (const std::string_view name : {"cpu", "memory", "ephemeral-storage"}) out.push_back(Status::unschedulable(insufficient(name)));
    for (const auto& [name, amount] : wanted_.scalars) out.push_back(Status::unschedulable(insufficient(name)));
    return out;
  }
  [[nodiscard]] bool says_all() const override { return true; }
  [[nodiscard]] std::uint8_t reads() const override { return kExtendedResources; }
  void load_of(const PodInfo& other, std::span<std::int64_t> out) const override {
    if (other.request.total.scalars.empty()) return;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = other.request.total.scalar(wanted_.scalars[i].first);
  }
  void limits(const NodeInfo& node, std::span<LoadLimit> out) const override {
    const Resource &has = node.allocatable, &used = node.requested;
    out[0] = {.there = static_cast<std::int64_t>(node.pods.size()), .most = has.allowed_pods - 1};
    const bool asks = wanted_.cpu_milli != 0 || wanted_.memory_bytes != 0 || wanted_.ephemeral_storage_bytes != 0 || out.size() > 4;
    if (!asks) return (void)std::ranges::fill(out.subspan(1), LoadLimit::always());
    out[1] = limit(wanted_.cpu_milli, used.cpu_milli, has.cpu_milli, 1);
    out[2] = limit(wanted_.memory_bytes, used.memory_bytes, has.memory_bytes, 2);
    out[3] = limit(wanted_.ephemeral_storage_bytes, used.ephemeral_storage_bytes, has.ephemeral_storage_bytes, 3);
    for (std::size_t i = 4; i < out.size(); ++i) {
      const auto& [name, amount] = wanted_.scalars[i - 4];
      out[i] = limit(amount, used.scalar(name), has.scalar(name), i);
    }
  }

 private:
  /// fit_amount, turned round: how much may be used for the amount to fit. What is absurd is as much as there can be.
  [[nodiscard]] LoadLimit limit(std::int64_t wanted, std::int64_t used, std::int64_t has, std::size_t said) const {
    if ((wanted == 0 && era_ != Era::k120) || has == INT64_MAX) return {.there = used};
    return {.there = used,
            .most = saturating_sub(has, wanted),
            .said = static_cast<std::uint8_t>(said),
            .is_hopeless = wanted > has && era_ != Era::k120};
  }

  Era era_;
  Resource wanted_;
};

class NodeResourcesFit final : public PluginOf<NodeResourcesFit> {
 public:
  NodeResourcesFit(Era era, NodeResourcesFitArgs args) : era_(era), args_(std::move(args)), shape_(scaled_shape(args_.shape)) {}
  std::string_view name() const override { return "NodeResourcesFit"; }
  void leave_out(Points& points) const override { points.pre_score = points.score = era_ != Era::k120; }
  void sign(Signer& signer, const PodInfo&) const override { signer.request(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }

  bool join_filter(ResourceColumns& columns, const PodInfo& pod) const override {
    const Resource& wanted = pod.wanted();
    if (era_ == Era::k120 || !wanted.scalars.empty()) return false;
    columns.filters = true;
    columns.asks_nothing = wanted.cpu_milli == 0 && wanted.memory_bytes == 0 && wanted.ephemeral_storage_bytes == 0;
    return true;
  }

  bool join_score(ResourceColumns& columns, const PodInfo& pod, std::int64_t weight) const override {
    if (era_ == Era::k120 || args_.strategy != ScoringStrategyType::kLeastAllocated) return false;
    const auto resources = scored_resources(pod, args_.resources, era_, false);
    if (resources.size() != 2 || resources[0].kind != ScoredResource::Kind::kCpu || resources[1].kind != ScoredResource::Kind::kMemory)
      return false;
    if (resources[0].weight <= 0 || resources[1].weight <= 0 || resources[0].weight > 1000 || resources[1].weight > 1000) return false;
    columns.least_weight = weight;
    columns.cpu_share = resources[0].weight;
    columns.memory_share = resources[1].weight;
    columns.scored_cpu = resources[0].pod_request;
    columns.scored_memory = resources[1].pod_request;
    return true;
  }

  [[nodiscard]] bool goes_by_amounts(const PodInfo&) const override {
    return era_ != Era::k120 && args_.ignored_resources.empty() && args_.ignored_resource_groups.empty();
  }

  [[nodiscard]] bool scores_by_devices(const PodInfo& pod, const Cluster& cluster) const override {
    return era_ != Era::k120 && scores_devices(pod, args_.resources, cluster);
  }

  /// The request is the pod's own: there is nothing to prepare.
  PreFilterOutcome pre_filter(CycleState&, const PodInfo&) const override { return {}; }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    Verdict verdict;
    if (static_cast<std::int64_t>(node.pods.size()) + 1 > node.allocatable.allowed_pods) verdict.reasons.emplace_back(kTooManyPods);
    check_request(state.cluster(), pod.wanted(), node, verdict);
    if (verdict.reasons.empty()) return Status::success();
    // 1.36 knows when even an empty node would be too small.
    const bool hopeless = verdict.exceeds_node && era_ != Era::k120;
    return {hopeless ? Code::kUnschedulableAndUnresolvable : Code::kUnschedulable, name(), std::move(verdict.reasons)};
  }

  /// Resources that devices may stand for are a matter of each node: Filter is asked about those.
  [[nodiscard]] std::unique_ptr<RemovableLoad> removable_load(const TopologySetup& setup) const override {
    Resource wanted = setup.pod.wanted();
    if (!devices::backed_resources(wanted, setup.index.cluster()).empty()) return nullptr;
    std::erase_if(wanted.scalars, [&](const auto& one) { return is_ignored(one.first); });
    return std::make_unique<FitLoad>(era_, std::move(wanted));
  }

  Status pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const> feasible) const override {
    auto data = std::make_unique<FitState>();
    data->resources = scored_resources(pod, args_.resources, era_, false);
    if (era_ != Era::k120 && !feasible.empty()) add_devices(data->resources, state.cluster());  // Columns name no nodes.
    state.set(slot(), std::move(data));
    return Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    const auto* data = state.get<FitState>(slot());
    // PreScore may be disabled on its own.
    const auto resources = data != nullptr ? data->resources : scored_resources(pod, args_.resources, era_, false);
    switch (args_.strategy) {
      case ScoringStrategyType::kLeastAllocated:
        return least_allocated_score(resources, node, era_);
      case ScoringStrategyType::kMostAllocated:
        return most_allocated_score(resources, node, era_);
      case ScoringStrategyType::kRequestedToCapacityRatio:
        return capacity_ratio_score(resources, shape_, node, era_);
    }
    return 0;
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeAllocatable, kAssignedPodDeleted, kAssignedPodResized, kOwnScaledDown, kDevices};
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  struct Verdict {
    std::vector<std::string> reasons;
    bool exceeds_node = false;
  };

  void check(std::string_view resource, std::int64_t wanted, std::int64_t used, std::int64_t allocatable, Verdict& out) const {
    const AmountVerdict verdict = fit_amount(wanted, used, allocatable, era_);
    if (!verdict.is_short) return;
    out.reasons.push_back(insufficient(resource));
    out.exceeds_node |= verdict.exceeds_node;
  }

  void check_request(const Cluster& cluster, const Resource& wanted, const NodeInfo& node, Verdict& out) const {
    if (wanted.cpu_milli == 0 && wanted.memory_bytes == 0 && wanted.ephemeral_storage_bytes == 0 && wanted.scalars.empty()) return;
    check("cpu", wanted.cpu_milli, node.requested.cpu_milli, node.allocatable.cpu_milli, out);
    check("memory", wanted.memory_bytes, node.requested.memory_bytes, node.allocatable.memory_bytes, out);
    check("ephemeral-storage", wanted.ephemeral_storage_bytes, node.requested.ephemeral_storage_bytes,
          node.allocatable.ephemeral_storage_bytes, out);
    for (const auto& [resource, amount] : wanted.scalars) {
      if (is_ignored(resource)) continue;
      if (era_ != Era::k120 && devices::is_left_to_devices(cluster, node.allocatable, resource)) continue;
      check(resource, amount, node.requested.scalar(resource), node.allocatable.scalar(resource), out);
    }
  }

  /// The request would fit on the node if nothing else were there.
  bool fits_empty_node(const Cluster& cluster, const Resource& wanted, const Resource& room) const {
    if (room.allowed_pods < 1 || wanted.cpu_milli > room.cpu_milli || wanted.memory_bytes > room.memory_bytes ||
        wanted.ephemeral_storage_bytes > room.ephemeral_storage_bytes)
      return false;
    return std::ranges::all_of(wanted.scalars, [&](const auto& one) {
      return one.second <= room.scalar(one.first) || is_ignored(one.first) || devices::is_left_to_devices(cluster, room, one.first);
    });
  }

  /// `more` has more than `less` of something that keeps the pod off where it is short: of what it asks for, and in 1.20 of the others,
  /// too.
  bool has_more_of(const Resource& wanted, const Resource& less, const Resource& more) const {
    const auto counts = [&](std::int64_t amount) { return amount != 0 || era_ == Era::k120; };
    return (counts(wanted.cpu_milli) && more.cpu_milli > less.cpu_milli) ||
           (counts(wanted.memory_bytes) && more.memory_bytes > less.memory_bytes) ||
           (counts(wanted.ephemeral_storage_bytes) && more.ephemeral_storage_bytes > less.ephemeral_storage_bytes) ||
           std::ranges::any_of(wanted.scalars,
                               [&](const auto& one) { return counts(one.second) && more.scalar(one.first) > less.scalar(one.first); });
  }

  bool is_ignored(const std::string& resource) const {
    if (!is_extended_resource_name(resource)) return false;
    const std::string group = resource.substr(0, resource.find('/'));
    return std::ranges::find(args_.ignored_resources, resource) != args_.ignored_resources.end() ||
           std::ranges::find(args_.ignored_resource_groups, group) != args_.ignored_resource_groups.end();
  }

  Era era_;
  NodeResourcesFitArgs args_;
  std::vector<UtilizationShapePoint> shape_;
};

bool NodeResourcesFit::queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const {
  const Resource& wanted = pending.wanted();
  if (change.event == ClusterEvent::kDevices) return !devices::backed_resources(wanted, cluster).empty();
  if (change.event == ClusterEvent::kNodeTaints) return true;
  if (change.node != nullptr) {
    const Resource room = Resource::from_list(change.node->allocatable);
    if (!fits_empty_node(cluster, wanted, room)) return false;
    if (change.node_before == nullptr) return true;
    const Resource before = Resource::from_list(change.node_before->allocatable);
    return room.allowed_pods > before.allowed_pods || has_more_of(wanted, before, room) ||
           std::ranges::any_of(wanted.scalars, [&](const auto& one) { return devices::is_left_to_devices(cluster, room, one.first); });
  }
  if (change.event == ClusterEvent::kAssignedPodResized && change.pod != nullptr && change.pod_before != nullptr)
    return has_more_of(wanted, change.pod->request.total, change.pod_before->request.total);
  return true;
}

}  // namespace

Result<PluginPtr> make_node_resources_fit(const Profile& profile) {
  return std::make_unique<NodeResourcesFit>(profile.era, profile.args.fit);
}

}  // namespace berth::placement
