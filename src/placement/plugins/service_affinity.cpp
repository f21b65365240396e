// ServiceAffinity of 1.20: pods of one service on nodes with the same values of the given labels (filter), or spread over the values of
// others (score) (pkg/scheduler/framework/plugins/serviceaffinity; arguments serviceAffinity and serviceAntiAffinity of a Policy).
#include <algorithm>
#include <map>

#include "placement/columns/topology_part.h"
#include "placement/plugins/default_selector.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/pod_topology_spread.h"

namespace berth::placement {
namespace {

constexpr std::string_view kReasonServiceAffinity = "node(s) didn't match service affinity";

/// 1.20's node tree: nodes grouped by (region, zone) in order of first appearance, then one of each group in turn.
std::vector<const NodeInfo*> zone_interleaved(const std::vector<const NodeInfo*>& nodes) {
  std::vector<std::vector<const NodeInfo*>> groups;
  std::map<std::string, std::size_t> group_of;
  for (const NodeInfo* node : nodes) {
    const auto [at, is_new] = group_of.try_emplace(zone_key(node->labels()), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(node);
  }
  std::vector<const NodeInfo*> out;
  for (std::size_t round = 0; out.size() < nodes.size(); ++round)
    for (const auto& group : groups)
      if (round < group.size()) out.push_back(group[round]);
  return out;
}

/// `other` has every label of `pod`, with its value.
bool has_labels_of(const model::PodView& other, const model::PodView& pod) {
  return std::ranges::all_of(pod.meta.labels.pairs(), [&](const auto& pair) {
    const auto* value = other.meta.labels.get(pair.first);
    return value != nullptr && *value == pair.second;
  });
}

struct MatchingPod {
  std::string key;
  NodeIndex node;
  bool is_nominated = false;  ///< Counted on the node, but on none yet.
};

struct ServiceFilterState : Cloneable<ServiceFilterState> {
  std::vector<MatchingPod> matching;  ///< Pods of the namespace with the pod's labels, in 1.20's order of nodes.
  bool has_service = false;
};

/// Its filter's columnar form (columns/topology_part.h): the labels' values of the node where the service's first pod is, unless the pod
/// selects them itself. Slots: one a label.
class ServicePart final : public TopologyPart {
 public:
  ServicePart(const TopologySetup& setup, const std::vector<std::string>& labels)
      : index_(&setup.index), labels_(labels), wanted_(labels.size(), kAnyValue) {
    const auto& view = setup.pod.view();
    const Cluster& cluster = index_->cluster();
    workloads_version_ = cluster.workloads_version();
    has_service_ = !pod_services(view, cluster).empty();
    std::vector<model::Requirement> own;
    for (const auto& [key, value] : view.meta.labels.pairs()) own.push_back({key, model::Requirement::Op::kIn, {value}});
    pods_ = index_->matcher({own_namespace_term(view, model::Selector(std::move(own)))}, false);
    for (const auto& label : labels_) topologies_.push_back(index_->topology(label));
  }
  [[nodiscard]] std::unique_ptr<TopologyPart> clone() const override { return std::make_unique<ServicePart>(*this); }
  void bind(ClusterIndex& index) override { index_ = &index; }
  [[nodiscard]] std::vector<Rejection> rejections() const override {
    return {{Status::unschedulable(std::string(kReasonServiceAffinity))}};
  }
  /// Another default selector is another signature; whether there is a service at all is not told by it.
  [[nodiscard]] bool is_outdated(const PodInfo& pod) override {
    const Cluster& cluster = index_->cluster();
    if (workloads_version_ == cluster.workloads_version()) return false;
    workloads_version_ = cluster.workloads_version();
    return has_service_ == pod_services(pod.view(), cluster).empty();
  }

  void reset() override { node_order_.clear(); }
  [[nodiscard]] std::size_t slot_count() const override { return labels_.size(); }
  void place(const PodInfo&, const NodeInfo& node, bool is_new, std::vector<std::int64_t>& key) override {
    if (is_new) node_order_.clear();
    for (const auto topology : topologies_) key.push_back(index_->topology_column(topology).value_of(node.index.value));
  }
  void remove(std::uint32_t) override { node_order_.clear(); }

  /// What is wanted of each label now.
  void begin_choice(const PodInfo& pod) override {
    const Cluster& cluster = index_->cluster();
    const auto id_of = [&](std::size_t label, const std::string& value) -> std::int64_t {
      const std::int32_t* id = index_->topology_column(topologies_[label]).ids.find(value);
      return id == nullptr ? kNoValue : *id;
    };
    bool is_complete = true;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const auto& selector = pod.view().node_selector;
      const auto own = std::ranges::find(selector, labels_[i], &std::pair<std::string, std::string>::first);
      wanted_[i] = own == selector.end() ? kAnyValue : id_of(i, own->second);
      is_complete &= own != selector.end();
    }
    if (is_complete || !has_service_) return;
    if (node_order_.empty())
      for (const NodeInfo* node : zone_interleaved(cluster.nodes())) node_order_.push_back(node->index.value);
    const auto first = std::ranges::find_if(node_order_, [&](std::uint32_t node) { return index_->counts(pods_)[node] != 0; });
    if (first == node_order_.end()) return;
    for (std::size_t i = 0; i < labels_.size(); ++i)
      if (const auto* value = cluster.node(NodeIndex{*first})->label(labels_[i]); value != nullptr && wanted_[i] == kAnyValue)
        wanted_[i] = id_of(i, *value);
  }
  [[nodiscard]] Verdict gate(const std::int64_t* slots) const override {
    for (const std::int64_t wanted : wanted_)
      if (const std::int64_t value = *slots++; wanted != kAnyValue && value != wanted) return 1;
    return kNone;
  }
  [[nodiscard]] bool is_swayed_by(const PodInfo& nominated, const PodInfo& pod) const override {
    return nominated.view().ns() == pod.view().ns() && has_labels_of(nominated.view(), pod.view());
  }

 private:
  static constexpr std::int64_t kAnyValue = -3, kNoValue = -2;
  ClusterIndex* index_;  ///< As of the last bind().
  std::vector<std::string> labels_;
  std::vector<std::size_t> topologies_;
  std::vector<std::int64_t> wanted_;  ///< Ids of values; kAnyValue, or kNoValue where no node has it.
  std::uint64_t workloads_version_ = 0;
  bool has_service_ = false;
  CountId pods_;
  std::vector<std::uint32_t> node_order_;  ///< Empty: to be made.
};

TopologyOutcome make_service_part(const TopologySetup& setup, const ServiceAffinityArgs& args) {
  // Without labels to spread over it gives every node nothing; with them only the plain form knows how.
  if (setup.weight != 0 && !args.anti_affinity_labels_preference.empty()) return {.plain_only = true};
  if (!setup.filters || args.affinity_labels.empty()) return {};
  return {.part = std::make_unique<ServicePart>(setup, args.affinity_labels)};
}

class ServiceAffinity final : public PluginOf<ServiceAffinity> {
 public:
  explicit ServiceAffinity(ServiceAffinityArgs args) : args_(std::move(args)) {}
  std::string_view name() const override { return "ServiceAffinity"; }
  void sign(Signer& signer, const PodInfo&) const override {
    if (args_.affinity_labels.empty() && args_.anti_affinity_labels_preference.empty()) return;
    signer.name_space();
    signer.labels();
    signer.node_selection();
  }
  ColumnKind column_kind() const override { return ColumnKind::kTopology; }
  TopologyOutcome topology_part(const TopologySetup& setup) const override { return make_service_part(setup, args_); }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    if (args_.affinity_labels.empty()) return {};
    auto data = std::make_unique<ServiceFilterState>();
    data->has_service = !pod_services(pod.view(), state.cluster()).empty();
    for (const NodeInfo* node : zone_interleaved(state.cluster().nodes()))
      for (const auto& other : node->pods)
        if (other->view().ns() == pod.view().ns() && has_labels_of(other->view(), pod.view()))
          data->matching.push_back({other->key, node->index});
    state.set(slot(), std::move(data));
    return {};
  }

  Status add_pod(CycleState& state, const PodInfo& pod, const PodInfo& added, const NodeInfo& node) const override {
    auto* data = state.get<ServiceFilterState>(slot());
    if (data != nullptr && added.view().ns() == pod.view().ns() && has_labels_of(added.view(), pod.view()))
      data->matching.push_back({added.key, node.index, is_nominated(state.cluster(), added, node)});
    return Status::success();
  }
  Status remove_pod(CycleState& state, const PodInfo&, const PodInfo& removed, const NodeInfo&) const override {
    if (auto* data = state.get<ServiceFilterState>(slot()))
      std::erase_if(data->matching, [&](const auto& one) { return one.key == removed.key; });
    return Status::success();
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (args_.affinity_labels.empty()) return Status::success();
    const auto* data = state.get<ServiceFilterState>(slot());
    std::map<std::string, std::string> wanted;
    for (const auto& label : args_.affinity_labels)
      for (const auto& [key, value] : pod.view().node_selector)
        if (key == label) wanted[label] = value;
    if (data != nullptr && data->has_service && wanted.size() < args_.affinity_labels.size()) {
      if (const auto* first = first_matching_pod(*data, node)) {
        // 1.20 looks for the node that a nominated pod does not have yet.
        if (first->is_nominated) return Status::error("node not found");
        const NodeInfo* example = first->node == node.index ? &node : state.cluster().node(first->node);
        for (const auto& label : args_.affinity_labels)
          if (const auto* value = example->label(label)) wanted.try_emplace(label, *value);
      }
    }
    for (const auto& [key, value] : wanted) {
      const auto* actual = node.label(key);
      if (actual == nullptr || *actual != value) return Status::unschedulable(std::string(kReasonServiceAffinity));
    }
    return Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    const auto services = pod_services(pod.view(), state.cluster());
    if (services.empty() || services.front()->selector.is_everything()) return 0;
    return count_matching_pods(node, services.front()->selector, pod.view().ns());
  }

  Status normalize(const CycleState&, const PodInfo&, std::span<const NodeInfo* const> feasible,
                   std::span<std::int64_t> scores) const override {
    std::vector<double> sums(scores.size());
    const auto labels = static_cast<double>(args_.anti_affinity_labels_preference.size());
    std::int64_t service_pods = 0;
    for (const auto score : scores) service_pods += score;
    for (const auto& label : args_.anti_affinity_labels_preference) {
      std::map<std::string, std::int64_t> by_value;
      for (std::size_t i = 0; i < scores.size(); ++i)
        if (const auto* value = feasible[i]->label(label)) by_value[*value] += scores[i];
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto* value = feasible[i]->label(label);
        if (value == nullptr) continue;
        double score = kMaxNodeScore;
        if (service_pods > 0)
          score = static_cast<double>(kMaxNodeScore) *
                  (static_cast<double>(service_pods - by_value[*value]) / static_cast<double>(service_pods));
        sums[i] += score / labels;
      }
    }
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<std::int64_t>(sums[i]);
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode |
           EventSet{kNodeDeleted, kNodeLabels, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kServices, kOwnLabels};
  }

 private:
  static bool is_nominated(const Cluster& cluster, const PodInfo& pod, const NodeInfo& node) {
    return std::ranges::any_of(cluster.nominated(node.index), [&](const PodInfoPtr& other) { return other->key == pod.key; });
  }

  /// The first matching pod, leaving out those that the node under test was said to hold but no longer does (preemption).
  static const MatchingPod* first_matching_pod(const ServiceFilterState& data, const NodeInfo& tested) {
    for (const auto& one : data.matching) {
      if (one.node != tested.index || one.is_nominated) return &one;
      if (std::ranges::any_of(tested.pods, [&](const PodInfoPtr& pod) { return pod->key == one.key; })) return &one;
    }
    return nullptr;
  }

  ServiceAffinityArgs args_;
};

}  // namespace

Result<PluginPtr> make_service_affinity(const Profile& profile) { return std::make_unique<ServiceAffinity>(profile.args.service_affinity); }

}  // namespace berth::placement
