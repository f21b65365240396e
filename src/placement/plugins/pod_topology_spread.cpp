// PodTopologySpread: keeps matching pods evenly over topology domains (pkg/scheduler/framework/plugins/podtopologyspread; predicate
// EvenPodsSpread, priority EvenPodsSpreadPriority).
//
// 1.20 keeps one count a (key, value): constraints with the same key add up in it. 1.36 counts each constraint by itself and knows
// minDomains, inclusion policies and matchLabelKeys.
#include "placement/plugins/pod_topology_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

#include "placement/columns/topology_part.h"
#include "placement/node_match.h"
#include "placement/plugins/default_selector.h"
#include "placement/plugins/factories.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

/// The pods of each domain, and how many domains have how many.
struct Domains {
  std::map<std::string, std::int64_t> counts;
  std::map<std::int64_t, std::size_t> domains_with;

  void recount(std::int64_t before, std::int64_t now) {
    if (const auto at = domains_with.find(before); at != domains_with.end() && --at->second == 0) domains_with.erase(at);
    ++domains_with[now];
  }
  [[nodiscard]] std::int64_t minimum() const { return domains_with.empty() ? INT32_MAX : domains_with.begin()->first; }
};

struct SpreadFilterState : Cloneable<SpreadFilterState> {
  std::vector<SpreadConstraint> constraints;
  std::vector<std::size_t> table_of;  ///< Constraint to its table.
  std::vector<Domains> tables;
};

struct SpreadScoreState : Cloneable<SpreadScoreState> {
  std::vector<SpreadConstraint> constraints;
  std::vector<std::size_t> table_of;
  std::vector<std::unordered_map<std::string, std::int64_t>> tables;
  std::vector<double> weights;
  bool require_all_keys = true;
};

/// 1.36: a table a constraint; 1.20: one a topology key.
std::vector<std::size_t> assign_tables(const std::vector<SpreadConstraint>& constraints, Era era) {
  std::vector<std::size_t> out;
  std::vector<std::string> keys;
  for (const auto& constraint : constraints) {
    const auto at = era == Era::k120 ? std::ranges::find(keys, constraint.topology_key) : keys.end();
    out.push_back(static_cast<std::size_t>(at - keys.begin()));
    if (at == keys.end()) keys.push_back(constraint.topology_key);
  }
  return out;
}

std::size_t table_count(const std::vector<std::size_t>& table_of) { return table_of.empty() ? 0 : *std::ranges::max_element(table_of) + 1; }

const std::vector<model::TopologySpreadConstraint> kNoConstraints;

std::string value_or_empty(const NodeInfo& node, const std::string& key) {
  const auto* value = node.label(key);
  return value == nullptr ? std::string() : *value;
}

class PodTopologySpread final : public PluginOf<PodTopologySpread> {
 public:
  PodTopologySpread(Era era, PodTopologySpreadArgs args) : era_(era), args_(std::move(args)) {}
  std::string_view name() const override { return "PodTopologySpread"; }
  void sign(Signer& signer, const PodInfo& pod) const override;
  ColumnKind column_kind() const override { return ColumnKind::kTopology; }
  TopologyOutcome topology_part(const TopologySetup& setup) const override { return make_spread_part(setup, args_, era_); }
  std::unique_ptr<RemovableLoad> removable_load(const TopologySetup& setup) const override { return make_spread_load(setup, args_, era_); }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    auto [constraints, error] = spread_constraints(pod.view(), state.cluster(), args_, era_, true);
    if (!error.empty()) {
      return {Status::error(era_ == Era::k120 ? "obtaining pod's hard topology spread constraints: " + error
                                              : "get constraints from pod: obtaining pod's hard topology spread constraints: " + error),
              {}};
    }
    if (constraints.empty()) return era_ == Era::k120 ? PreFilterOutcome{} : PreFilterOutcome{Status::skip(), {}};
    auto data = std::make_unique<SpreadFilterState>();
    data->table_of = assign_tables(constraints, era_);
    data->tables.resize(table_count(data->table_of));
    data->constraints = std::move(constraints);
    count_all(state.cluster(), pod.view(), *data);
    for (auto& table : data->tables)
      for (const auto& [value, count] : table.counts) ++table.domains_with[count];
    state.set(slot(), std::move(data));
    return {};
  }

  Status add_pod(CycleState& state, const PodInfo& pod, const PodInfo& added, const NodeInfo& node) const override {
    update(state, pod, added, node, 1);
    return Status::success();
  }
  Status remove_pod(CycleState& state, const PodInfo& pod, const PodInfo& removed, const NodeInfo& node) const override {
    update(state, pod, removed, node, -1);
    return Status::success();
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    const auto* data = state.get<SpreadFilterState>(slot());
    if (data == nullptr) return Status::success();
    for (std::size_t i = 0; i < data->constraints.size(); ++i) {
      const auto& constraint = data->constraints[i];
      const auto* value = node.label(constraint.topology_key);
      if (value == nullptr) return Status::unresolvable(std::string(kReasonSpreadLabel));
      const Domains& table = data->tables[data->table_of[i]];
      std::int64_t minimum = table.minimum();
      if (era_ != Era::k120 && static_cast<std::int64_t>(table.counts.size()) < constraint.min_domains) minimum = 0;
      const auto at = table.counts.find(*value);
      const std::int64_t there = at == table.counts.end() ? 0 : at->second;
      const std::int64_t self = constraint.selector.matches(pod.view().meta.labels) ? 1 : 0;
      if (there + self - minimum > constraint.max_skew) return Status::unschedulable(std::string(kReasonSpread));
    }
    return Status::success();
  }

  Status pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const> feasible) const override {
    auto [constraints, error] = spread_constraints(pod.view(), state.cluster(), args_, era_, false);
    if (!error.empty()) return Status::error("calculating preScoreState: obtaining pod's soft topology spread constraints: " + error);
    if (constraints.empty() && era_ != Era::k120) return Status::skip();
    auto data = std::make_unique<SpreadScoreState>();
    data->table_of = assign_tables(constraints, era_);
    data->tables.resize(table_count(data->table_of));
    data->constraints = std::move(constraints);
    data->require_all_keys = era_ == Era::k120 || !pod.view().spread_constraints.empty() || !args_.system_defaulting;
    find_domains(*data, feasible);
    count_soft(state.cluster(), pod.view(), *data);
    state.set(slot(), std::move(data));
    return Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    const auto* data = state.get<SpreadScoreState>(slot());
    if (data == nullptr || is_ignored(*data, node)) return 0;
    double sum = 0;
    for (std::size_t i = 0; i < data->constraints.size(); ++i) {
      const auto& constraint = data->constraints[i];
      const auto* value = node.label(constraint.topology_key);
      if (value == nullptr) continue;
      std::int64_t count = 0;
      if (constraint.topology_key == kHostnameLabel) {
        count = count_pods(node, constraint.selector, pod.view().ns());
      } else if (const auto at = data->tables[data->table_of[i]].find(*value); at != data->tables[data->table_of[i]].end()) {
        count = at->second;
      }
      sum += static_cast<double>(count) * data->weights[i] + static_cast<double>(constraint.max_skew - 1);
    }
    return static_cast<std::int64_t>(era_ == Era::k120 ? sum : std::round(sum));
  }

  Status normalize(const CycleState& state, const PodInfo&, std::span<const NodeInfo* const> feasible,
                   std::span<std::int64_t> scores) const override {
    const auto* data = state.get<SpreadScoreState>(slot());
    if (data == nullptr) return Status::success();
    std::int64_t min = INT64_MAX;
    std::int64_t max = 0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (is_ignored(*data, *feasible[i])) continue;
      min = std::min(min, scores[i]);
      max = std::max(max, scores[i]);
    }
    for (std::size_t i = 0; i < scores.size(); ++i)
      scores[i] = is_ignored(*data, *feasible[i]) ? 0 : spread_normalized(scores[i], min, max);
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode |
           EventSet{kNodeDeleted, kNodeLabels, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kOwnLabels, kOwnTolerations};
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  /// In 1.36 an empty selector counts no pod, though it matches every one.
  [[nodiscard]] std::int64_t count_pods(const NodeInfo& node, const model::Selector& selector, std::string_view ns) const {
    return era_ != Era::k120 && selector.is_everything() ? 0 : count_matching_pods(node, selector, ns);
  }

  /// Hard constraints: domains are those of the nodes that count; in 1.20 pods on other nodes of such a domain count as well.
  void count_all(const Cluster& cluster, const model::PodView& pod, SpreadFilterState& data) const {
    const auto nodes = cluster.nodes();
    for (const NodeInfo* node : nodes) {
      if (!has_all_topology_keys(*node, data.constraints)) continue;
      for (std::size_t i = 0; i < data.constraints.size(); ++i) {
        const auto& constraint = data.constraints[i];
        if (!spread_includes_node(constraint, pod, *node, era_)) continue;
        auto& count = data.tables[data.table_of[i]].counts[*node->label(constraint.topology_key)];
        if (era_ != Era::k120) count += count_pods(*node, constraint.selector, pod.ns());
      }
    }
    if (era_ != Era::k120) return;
    for (const NodeInfo* node : nodes) {
      for (std::size_t i = 0; i < data.constraints.size(); ++i) {
        auto& counts = data.tables[data.table_of[i]].counts;
        const auto at = counts.find(value_or_empty(*node, data.constraints[i].topology_key));
        if (at != counts.end()) at->second += count_pods(*node, data.constraints[i].selector, pod.ns());
      }
    }
  }

  void update(CycleState& state, const PodInfo& pod, const PodInfo& other, const NodeInfo& node, std::int64_t delta) const {
    auto* data = state.get<SpreadFilterState>(slot());
    if (data == nullptr || other.view().ns() != pod.view().ns() || node.node == nullptr) return;
    if (!has_all_topology_keys(node, data->constraints)) return;
    for (std::size_t i = 0; i < data->constraints.size(); ++i) {
      const auto& constraint = data->constraints[i];
      if (!constraint.selector.matches(other.view().meta.labels)) continue;
      if (era_ != Era::k120 && !spread_includes_node(constraint, pod.view(), node, era_)) continue;
      const auto& value = *node.label(constraint.topology_key);
      Domains& table = data->tables[data->table_of[i]];
      const auto at = table.counts.find(value);
      if (at == table.counts.end() && era_ == Era::k120) continue;
      if (at == table.counts.end()) ++table.domains_with[0];
      auto& count = table.counts[value];
      table.recount(count, count + delta);
      count += delta;
    }
  }

  static bool is_ignored(const SpreadScoreState& data, const NodeInfo& node) {
    return data.require_all_keys && !has_all_topology_keys(node, data.constraints);
  }

  /// The domains of the feasible nodes, and each constraint's weight by their number.
  static void find_domains(SpreadScoreState& data, std::span<const NodeInfo* const> feasible) {
    std::vector<std::size_t> domains(data.constraints.size());
    std::size_t counted_nodes = 0;
    for (const NodeInfo* node : feasible) {
      if (is_ignored(data, *node)) continue;
      ++counted_nodes;
      for (std::size_t i = 0; i < data.constraints.size(); ++i) {
        const auto& key = data.constraints[i].topology_key;
        if (key == kHostnameLabel) continue;
        // 1.20: only the first constraint of a key sees a domain as new.
        domains[i] += data.tables[data.table_of[i]].try_emplace(value_or_empty(*node, key), 0).second;
      }
    }
    for (std::size_t i = 0; i < data.constraints.size(); ++i)
      data.weights.push_back(spread_weight(data.constraints[i].topology_key == kHostnameLabel ? counted_nodes : domains[i]));
  }

  void count_soft(const Cluster& cluster, const model::PodView& pod, SpreadScoreState& data) const {
    if (data.constraints.empty()) return;
    for (const NodeInfo* node : cluster.nodes()) {
      if (is_ignored(data, *node)) continue;
      for (std::size_t i = 0; i < data.constraints.size(); ++i) {
        const auto& constraint = data.constraints[i];
        if (!spread_includes_node(constraint, pod, *node, era_)) continue;
        auto& table = data.tables[data.table_of[i]];
        const auto at = table.find(value_or_empty(*node, constraint.topology_key));
        if (at != table.end()) at->second += count_pods(*node, constraint.selector, pod.ns());
      }
    }
  }

  Era era_;
  PodTopologySpreadArgs args_;
};

/// Its own constraints, and whether it counts for them itself; without any, what default spreading selects. Which nodes count is a matter
/// of node selection and tolerations.
void PodTopologySpread::sign(Signer& signer, const PodInfo& pod) const {
  const model::PodView& view = pod.view();
  const auto matters = [&](const model::TopologySpreadConstraint& one) { return one.is_hard || signer.counts_scores(); };
  const auto sign_nodes = [&](const std::vector<model::TopologySpreadConstraint>& constraints) {
    signer.node_selection();
    if (std::ranges::any_of(constraints, &model::TopologySpreadConstraint::honor_taints)) signer.tolerations();
  };
  signer.add(static_cast<std::int64_t>(view.spread_constraints.size()));
  if (view.spread_constraints.empty()) {
    const auto& defaults = args_.system_defaulting ? kNoConstraints : args_.default_constraints;
    if (!signer.counts_scores() && std::ranges::none_of(defaults, matters)) return;
    if (signer.default_selector()) sign_nodes(defaults);
    return;
  }
  for (const auto& one : view.spread_constraints) {
    signer.add(static_cast<std::int64_t>(one.is_hard));
    if (!matters(one)) continue;
    signer.add(one.max_skew);
    signer.add(one.topology_key);
    signer.add(one.selector);
    signer.add(one.selector_error);
    signer.add(one.min_domains.value_or(-1));
    signer.add(static_cast<std::int64_t>(one.honor_affinity) + 2 * static_cast<std::int64_t>(one.honor_taints));
    signer.add(static_cast<std::int64_t>(one.selector.matches(view.meta.labels)));
    for (const auto& key : one.match_label_keys) {
      const auto* value = view.meta.labels.get(key);
      signer.add(static_cast<std::int64_t>(value != nullptr));
      if (value == nullptr) continue;
      signer.add(key);
      signer.add(*value);
    }
    signer.name_space();
  }
  sign_nodes(view.spread_constraints);
}

bool spread_after_node(const std::vector<SpreadConstraint>& constraints, const PodInfo& pending, const EventChange& change) {
  const auto has_all_keys = [&](const model::NodeView* node) {
    return node != nullptr &&
           std::ranges::all_of(constraints, [&](const auto& one) { return node->labels().get(one.topology_key) != nullptr; });
  };
  const bool was_counted = has_all_keys(change.node_before), is_counted = has_all_keys(change.node);
  if (!change.is_node_update()) return change.node != nullptr ? is_counted : was_counted;
  if (was_counted != is_counted) return true;
  // Nodes that the pod does not select are not counted; kube-scheduler's hint forgets it.
  const auto is_selected = [&](const model::NodeView& node) { return pending.view().matches_node_selector(node.labels(), node.name()); };
  if (is_counted && std::ranges::any_of(constraints, &SpreadConstraint::honor_affinity) &&
      is_selected(*change.node_before) != is_selected(*change.node))
    return true;
  return is_counted && (change.node_before->taints != change.node->taints || std::ranges::any_of(constraints, [&](const auto& one) {
                          return *change.node_before->labels().get(one.topology_key) != *change.node->labels().get(one.topology_key);
                        }));
}

bool PodTopologySpread::queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const {
  const bool is_about_node = change.node != nullptr || change.node_before != nullptr;
  const bool is_own = change.pod != nullptr && change.pod->view().meta.uid == pending.view().meta.uid;
  for (const PodInfo* pod : {change.pod_before, change.pod})
    if (pod != nullptr && !is_own && pod->view().ns() != pending.view().ns()) return false;
  const auto constraints = spread_constraints(pending.view(), cluster, args_, cluster.era(), true).list;
  if (is_about_node) return spread_after_node(constraints, pending, change);
  const auto counts = [&](const auto& constraint, const PodInfo& pod) { return constraint.selector.matches(pod.view().meta.labels); };
  if (change.pod != nullptr && change.pod_before != nullptr) {
    if (change.event == ClusterEvent::kOwnTolerations)
      return std::ranges::any_of(constraints, [](const auto& one) { return one.honor_taints; });
    return std::ranges::any_of(constraints, [&](const auto& one) { return counts(one, *change.pod_before) != counts(one, *change.pod); });
  }
  const PodInfo* pod = change.pod != nullptr ? change.pod : change.pod_before;
  return pod == nullptr || std::ranges::any_of(constraints, [&](const auto& one) { return counts(one, *pod); });
}

}  // namespace

SpreadConstraints spread_constraints(const model::PodView& pod, const Cluster& cluster, const PodTopologySpreadArgs& args, Era era,
                                     bool hard, const model::Selector* known) {
  static const std::vector<model::TopologySpreadConstraint> kSystemDefaults = [] {
    model::TopologySpreadConstraint hostname, zone;
    hostname.topology_key = kHostnameLabel;
    hostname.max_skew = 3;
    zone.topology_key = "topology.kubernetes.io/zone";
    zone.max_skew = 5;
    return std::vector{hostname, zone};
  }();
  const bool own = !pod.spread_constraints.empty();
  const auto& source = own ? *pod.spread_constraints : args.system_defaulting ? kSystemDefaults : args.default_constraints;
  SpreadConstraints out;
  for (const auto& from : source) {
    if (from.is_hard != hard) continue;
    if (!from.selector_error.empty()) return {{}, from.selector_error};
    SpreadConstraint one{from.max_skew, from.topology_key, from.selector, 1, true, false};
    if (era != Era::k120) {
      one.min_domains = from.min_domains.value_or(1);
      one.honor_affinity = from.honor_affinity;
      one.honor_taints = from.honor_taints;
      std::vector<model::Requirement> requirements;
      for (const auto& key : from.match_label_keys)
        if (const auto* value = pod.meta.labels.get(key)) requirements.push_back({key, model::Requirement::Op::kIn, {*value}});
      if (!requirements.empty()) {
        // A selector of nothing has no requirements to add: the keys alone decide.
        requirements.insert(requirements.end(), one.selector.requirements().begin(), one.selector.requirements().end());
        one.selector = model::Selector(std::move(requirements));
      }
    }
    out.list.push_back(std::move(one));
  }
  if (own || out.list.empty()) return out;
  const model::Selector selector = known != nullptr ? *known : default_selector(pod, cluster, era);
  if (selector.is_everything()) return {};
  for (auto& one : out.list) one.selector = selector;
  return out;
}

bool spread_asks_nodes(const SpreadConstraint& constraint, bool chooses_nodes, Era era) {
  return (constraint.honor_affinity && chooses_nodes) || (constraint.honor_taints && era != Era::k120);
}

bool spread_includes_node(const SpreadConstraint& constraint, const model::PodView& pod, const NodeInfo& node, Era era) {
  if (constraint.honor_affinity && !pod.matches_node_selector(node.labels(), node.name)) return false;
  if (!constraint.honor_taints || era == Era::k120) return true;
  constexpr std::array<std::string_view, 2> kKeepAway = {"NoSchedule", "NoExecute"};
  return find_untolerated_taint(node.node->taints, pod.tolerations, kKeepAway) == nullptr;
}

bool has_all_topology_keys(const NodeInfo& node, const std::vector<SpreadConstraint>& constraints) {
  return std::ranges::all_of(constraints, [&](const auto& constraint) { return node.label(constraint.topology_key) != nullptr; });
}

std::int64_t count_matching_pods(const NodeInfo& node, const model::Selector& selector, std::string_view ns) {
  return std::ranges::count_if(node.pods, [&](const PodInfoPtr& pod) {
    const auto& view = pod->view();
    return !view.meta.is_deleting && view.meta.ns == ns && selector.matches(view.meta.labels);
  });
}

double spread_weight(std::size_t domains) { return std::log(static_cast<double>(domains + 2)); }

Result<PluginPtr> make_pod_topology_spread(const Profile& profile) {
  return std::make_unique<PodTopologySpread>(profile.era, profile.args.spread);
}

}  // namespace berth::placement
