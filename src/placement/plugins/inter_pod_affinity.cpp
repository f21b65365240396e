// InterPodAffinity: affinity and anti-affinity between pods over topology domains, of the incoming pod and of those that are there
// (pkg/scheduler/framework/plugins/interpodaffinity; predicate MatchInterPodAffinity, priority InterPodAffinityPriority).
#include "placement/plugins/inter_pod_affinity.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "placement/columns/topology_part.h"
#include "placement/plugins/factories.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

/// (topology key, value) to a count or a sum; entries that come to zero go.
using TopologyCounts = std::map<std::pair<std::string, std::string>, std::int64_t>;

void bump(TopologyCounts& counts, const std::string& key, const std::string& value, std::int64_t delta) {
  auto [at, is_new] = counts.try_emplace({key, value}, 0);
  at->second += delta;
  if (at->second == 0) counts.erase(at);
}

struct FilterState : Cloneable<FilterState> {
  TopologyCounts existing_anti;  ///< Existing pods whose required anti-affinity matches the incoming pod.
  TopologyCounts affinity;       ///< Existing pods that match all of its affinity terms.
  TopologyCounts anti;           ///< Existing pods that match one of its anti-affinity terms.
  std::vector<AffinityTerm> affinity_terms, anti_terms;
  const model::Labels* namespace_labels = nullptr;

  void update(const Cluster& cluster, const PodInfo& incoming, const PodInfo& other, const NodeInfo& node, std::int64_t delta) {
    add_existing_anti(incoming, other, node, delta);
    if (affinity_terms.empty() && anti_terms.empty()) return;
    const auto& labels_of_namespace = cluster.namespace_labels(other.view().ns());
    if (matches_all_terms(other.view(), labels_of_namespace, affinity_terms)) {
      for (const auto& term : affinity_terms)
        if (const auto* value = node.label(term.topology_key)) bump(affinity, term.topology_key, *value, delta);
    }
    for (const auto& term : anti_terms) {
      if (!term.matches(other.view(), labels_of_namespace)) continue;
      if (const auto* value = node.label(term.topology_key)) bump(anti, term.topology_key, *value, delta);
    }
  }

  void add_existing_anti(const PodInfo& incoming, const PodInfo& other, const NodeInfo& node, std::int64_t delta) {
    for (const auto& term : other.required_anti_affinity) {
      if (!term.matches(incoming.view(), *namespace_labels)) continue;
      if (const auto* value = node.label(term.topology_key)) bump(existing_anti, term.topology_key, *value, delta);
    }
  }
};

struct ScoreState : Cloneable<ScoreState> {
  std::map<std::string, std::map<std::string, std::int64_t>, std::less<>> scores;  ///< Topology key, value, sum of weights.

  void add(const AffinityTerm& term, std::int64_t weight, const model::PodView& pod, const model::Labels& namespace_labels,
           const NodeInfo& node) {
    if (!term.matches(pod, namespace_labels)) return;
    if (const auto* value = node.label(term.topology_key)) scores[term.topology_key][*value] += weight;
  }
};

/// The first error of each kind of term, all in one text; empty when every term could be parsed (framework.NewPodInfo).
std::string parse_error(const model::PodView& pod) {
  std::vector<std::string> out;
  const auto look = [&](std::string_view kind, const auto& terms, const auto& projection) {
    const auto bad = std::ranges::find_if(
        terms, [](const std::string& error) { return !error.empty(); }, projection);
    if (bad != terms.end()) out.push_back(fmt::format("{}: {}", kind, std::invoke(projection, *bad)));
  };
  const auto weighted = [](const model::WeightedPodAffinityTerm& term) -> const std::string& { return term.term.selector_error; };
  look("requiredAffinityTerms", pod.required_affinity, &model::PodAffinityTerm::selector_error);
  look("requiredAntiAffinityTerms", pod.required_anti_affinity, &model::PodAffinityTerm::selector_error);
  look("preferredAffinityTerms", pod.preferred_affinity, weighted);
  look("preferredAntiAffinityTerms", pod.preferred_anti_affinity, weighted);
  return out.empty() ? std::string() : model::aggregate_words(out);
}

class InterPodAffinity final : public PluginOf<InterPodAffinity> {
 public:
  InterPodAffinity(Era era, InterPodAffinityArgs args) : era_(era), args_(args) {}
  std::string_view name() const override { return "InterPodAffinity"; }
  void sign(Signer& signer, const PodInfo& pod) const override;
  ColumnKind column_kind() const override { return ColumnKind::kTopology; }
  TopologyOutcome topology_part(const TopologySetup& setup) const override { return make_affinity_part(setup, args_, era_); }
  std::unique_ptr<RemovableLoad> removable_load(const TopologySetup& setup) const override {
    return make_affinity_load(setup, args_, era_);
  }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    if (const auto error = parse_error(pod.view()); !error.empty()) return {Status::unresolvable("parsing pod: " + error), {}};
    const Cluster& cluster = state.cluster();
    auto data = std::make_unique<FilterState>();
    data->affinity_terms = resolve_namespaces(pod.required_affinity, cluster);
    data->anti_terms = resolve_namespaces(pod.required_anti_affinity, cluster);
    data->namespace_labels = &cluster.namespace_labels(pod.view().ns());
    const bool has_terms = !data->affinity_terms.empty() || !data->anti_terms.empty();
    if (has_terms || cluster.required_anti_affinity_pods() != 0) {
      for (const NodeInfo* node : cluster.nodes()) {
        if (!has_terms && node->pods_with_required_anti_affinity == 0) continue;
        for (const auto& other : node->pods) data->update(cluster, pod, *other, *node, 1);
      }
    }
    if (era_ != Era::k120 && !has_terms && data->existing_anti.empty()) return {Status::skip(), {}};
    state.set(slot(), std::move(data));
    return {};
  }

  Status add_pod(CycleState& state, const PodInfo& pod, const PodInfo& added, const NodeInfo& node) const override {
    if (auto* data = state.get<FilterState>(slot()); data != nullptr && node.node != nullptr)
      data->update(state.cluster(), pod, added, node, 1);
    return Status::success();
  }
  Status remove_pod(CycleState& state, const PodInfo& pod, const PodInfo& removed, const NodeInfo& node) const override {
    if (auto* data = state.get<FilterState>(slot()); data != nullptr && node.node != nullptr)
      data->update(state.cluster(), pod, removed, node, -1);
    return Status::success();
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    const auto* data = state.get<FilterState>(slot());
    if (data == nullptr) return Status::success();
    if (!affinity_holds(*data, pod, node)) return affinity_rejection(Code::kUnschedulableAndUnresolvable, kReasonAffinityRules, era_);
    for (const auto& term : data->anti_terms) {
      const auto* value = node.label(term.topology_key);
      if (value != nullptr && positive(data->anti, term.topology_key, *value))
        return affinity_rejection(Code::kUnschedulable, kReasonAntiAffinityRules, era_);
    }
    for (const auto& [pair, count] : data->existing_anti) {
      const auto* value = node.label(pair.first);
      if (count > 0 && value != nullptr && *value == pair.second)
        return affinity_rejection(Code::kUnschedulable, kReasonExistingAntiAffinity, era_);
    }
    return Status::success();
  }

  Status pre_score(CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const>) const override {
    const Cluster& cluster = state.cluster();
    const bool has_preferences = !pod.preferred_affinity.empty() || !pod.preferred_anti_affinity.empty();
    if (era_ != Era::k120 && args_.ignore_preferred_terms_of_existing_pods && !has_preferences) return Status::skip();
    auto data = std::make_unique<ScoreState>();
    if (has_preferences || cluster.affinity_pods() != 0) {
      const auto affinity = resolve_namespaces(pod.preferred_affinity, cluster);
      const auto anti = resolve_namespaces(pod.preferred_anti_affinity, cluster);
      const auto& own_namespace = cluster.namespace_labels(pod.view().ns());
      for (const NodeInfo* node : cluster.nodes()) {
        if (node->labels().empty() || (!has_preferences && node->pods_with_affinity == 0)) continue;
        for (const auto& other : node->pods) {
          if (has_preferences) {
            const auto& labels_of_namespace = cluster.namespace_labels(other->view().ns());
            for (const auto& term : affinity) data->add(term, term.weight, other->view(), labels_of_namespace, *node);
            for (const auto& term : anti) data->add(term, -term.weight, other->view(), labels_of_namespace, *node);
          }
          if (other->has_affinity()) add_existing(*data, *other, pod.view(), own_namespace, *node);
        }
      }
    }
    if (era_ != Era::k120 && data->scores.empty()) return Status::skip();
    state.set(slot(), std::move(data));
    return Status::success();
  }

  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo&, const NodeInfo& node) const override {
    const auto* data = state.get<ScoreState>(slot());
    if (data == nullptr) return 0;
    std::int64_t out = 0;
    for (const auto& [key, values] : data->scores) {
      const auto* value = node.label(key);
      if (value == nullptr) continue;
      const auto at = values.find(*value);
      if (at != values.end()) out += at->second;
    }
    return out;
  }

  Status normalize(const CycleState& state, const PodInfo&, std::span<const NodeInfo* const>,
                   std::span<std::int64_t> scores) const override {
    const auto* data = state.get<ScoreState>(slot());
    if (data == nullptr || data->scores.empty()) return Status::success();
    std::int64_t min = era_ == Era::k120 ? 0 : INT64_MAX;
    std::int64_t max = era_ == Era::k120 ? 0 : INT64_MIN;
    for (const auto score : scores) {
      min = std::min(min, score);
      max = std::max(max, score);
    }
    for (auto& score : scores) score = affinity_normalized(score, min, max);
    return Status::success();
  }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeLabels, kAssignedPodAdded, kAssignedPodLabels, kAssignedPodDeleted, kNamespaces, kOwnLabels};
  }
  [[nodiscard]] bool queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const override;

 private:
  static bool positive(const TopologyCounts& counts, const std::string& key, const std::string& value) {
    const auto at = counts.find({key, value});
    return at != counts.end() && at->second > 0;
  }

  static bool affinity_holds(const FilterState& data, const PodInfo& pod, const NodeInfo& node) {
    bool all_there = true;
    for (const auto& term : data.affinity_terms) {
      const auto* value = node.label(term.topology_key);
      if (value == nullptr) return false;
      all_there &= positive(data.affinity, term.topology_key, *value);
    }
    if (all_there) return true;
    // The first of a group whose members want each other: nobody matches yet, and the pod matches its own terms.
    return data.affinity.empty() && matches_all_terms(pod.view(), *data.namespace_labels, data.affinity_terms);
  }

  /// What the pod that is there says about the incoming one.
  void add_existing(ScoreState& data, const PodInfo& other, const model::PodView& pod, const model::Labels& own_namespace,
                    const NodeInfo& node) const {
    if (args_.hard_pod_affinity_weight > 0)
      for (const auto& term : other.required_affinity) data.add(term, args_.hard_pod_affinity_weight, pod, own_namespace, node);
    for (const auto& term : other.preferred_affinity) data.add(term, term.weight, pod, own_namespace, node);
    for (const auto& term : other.preferred_anti_affinity) data.add(term, -term.weight, pod, own_namespace, node);
  }

  Era era_;
  InterPodAffinityArgs args_;
};

/// Its own terms, and whether it matches them itself; its labels only as far as terms of pods that are there see them.
void InterPodAffinity::sign(Signer& signer, const PodInfo& pod) const {
  signer.add(parse_error(pod.view()));
  signer.add(pod.required_affinity);
  signer.add(pod.required_anti_affinity);
  if (signer.counts_scores()) {
    signer.add(pod.preferred_affinity);
    signer.add(pod.preferred_anti_affinity);
  }
  if (!pod.required_affinity.empty()) signer.matches_own_affinity();
  signer.audience();
}

bool hint_matches(const Cluster& cluster, const AffinityTerm& term, const PodInfo& pod) {
  return term.matches(pod.view(), cluster.namespace_labels(pod.view().ns()));
}
bool hint_matches_all(const Cluster& cluster, const std::vector<AffinityTerm>& terms, const PodInfo& pod) {
  return !terms.empty() && std::ranges::all_of(terms, [&](const auto& term) { return hint_matches(cluster, term, pod); });
}
bool hint_matches_any(const Cluster& cluster, const std::vector<AffinityTerm>& terms, const PodInfo& pod) {
  return std::ranges::any_of(terms, [&](const auto& term) { return hint_matches(cluster, term, pod); });
}

bool affinity_after_node(const Cluster& cluster, const PodInfo& pending, const EventChange& change) {
  if (change.node == nullptr || change.event == ClusterEvent::kNodeTaints) return true;
  const auto label = [](const model::NodeView* node, const std::string& key) {
    return node != nullptr ? node->labels().get(key) : nullptr;
  };
  for (const AffinityTerm& term : pending.required_affinity) {
    const std::string* before = label(change.node_before, term.topology_key);
    const std::string* now = label(change.node, term.topology_key);
    if (now != nullptr && (before == nullptr || *before != *now)) return true;
    // With the node goes whom it wanted near: the first of its own group may go anywhere.
    if (now == nullptr && before != nullptr && hint_matches_all(cluster, pending.required_affinity, pending)) return true;
  }
  for (const AffinityTerm& term : pending.required_anti_affinity) {
    if (change.node_before == nullptr) return true;
    const std::string* before = label(change.node_before, term.topology_key);
    const std::string* now = label(change.node, term.topology_key);
    if (before != nullptr && (now == nullptr || *before != *now)) return true;
  }
  // Pods that are there may keep this one off; kube-scheduler's hint forgets them.
  return cluster.required_anti_affinity_pods() > 0;
}

bool InterPodAffinity::queueing_hint(const Cluster& cluster, const PodInfo& pending, const EventChange& change) const {
  if (change.node != nullptr || change.node_before != nullptr) return affinity_after_node(cluster, pending, change);
  if (change.event == ClusterEvent::kNamespaces) {
    const auto selects = [](const AffinityTerm& term) { return term.namespace_selector.has_value(); };
    return std::ranges::any_of(pending.required_affinity, selects) || std::ranges::any_of(pending.required_anti_affinity, selects) ||
           cluster.required_anti_affinity_pods() > 0;
  }
  if (change.pod != nullptr && change.pod->view().meta.uid == pending.view().meta.uid) return true;
  const auto all_match = [&](const PodInfo& pod) { return hint_matches_all(cluster, pending.required_affinity, pod); };
  const auto any_keeps_off = [&](const PodInfo& pod) { return hint_matches_any(cluster, pending.required_anti_affinity, pod); };
  if (change.pod != nullptr && change.pod_before != nullptr)
    return (!all_match(*change.pod_before) && all_match(*change.pod)) ||
           (any_keeps_off(*change.pod_before) && !hint_matches_all(cluster, pending.required_anti_affinity, *change.pod)) ||
           // It has left the last group that was wanted near: the first of its own group may go anywhere. Or it keeps others off.
           (all_match(*change.pod_before) && !all_match(*change.pod));
  if (change.pod != nullptr) return all_match(*change.pod);
  if (change.pod_before == nullptr) return true;
  return any_keeps_off(*change.pod_before) || hint_matches_any(cluster, change.pod_before->required_anti_affinity, pending) ||
         all_match(*change.pod_before);
}

}  // namespace

std::vector<AffinityTerm> resolve_namespaces(std::vector<AffinityTerm> terms, const Cluster& cluster) {
  for (auto& term : terms) {
    if (!term.namespace_selector || term.namespace_selector->is_everything()) continue;
    for (const auto& [name, ns] : cluster.namespaces())
      if (term.namespace_selector->matches(ns->meta.labels)) term.namespaces.push_back(name);
    std::ranges::sort(term.namespaces);
    term.namespace_selector.reset();
  }
  return terms;
}

bool matches_all_terms(const model::PodView& pod, const model::Labels& namespace_labels, const std::vector<AffinityTerm>& terms) {
  return !terms.empty() && std::ranges::all_of(terms, [&](const AffinityTerm& term) { return term.matches(pod, namespace_labels); });
}

Status affinity_rejection(Code code, std::string_view reason, Era era) {
  Status out{code, {}, {std::string(reason)}};
  if (era == Era::k120) out.reasons.insert(out.reasons.begin(), std::string(kReasonAffinity120));
  return out;
}

Result<PluginPtr> make_inter_pod_affinity(const Profile& profile) {
  return std::make_unique<InterPodAffinity>(profile.era, profile.args.inter_pod_affinity);
}

}  // namespace berth::placement
