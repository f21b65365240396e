// RemovePodsViolatingTopologySpreadConstraint (topologyspreadconstraint.go): domains that have too many pods of a constraint give some up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

struct Constraint {
  std::int64_t max_skew = 1;
  std::string key;
  model::Selector selector;
  // What nodes count, where the policies honor it; otherwise empty, so that pods' constraints compare equal.
  bool honors_affinity = true, honors_taints = false;
  std::vector<std::pair<std::string, std::string>> node_selector;
  std::optional<model::NodeSelector> affinity;
  std::vector<model::Toleration> tolerations;
  friend bool operator==(const Constraint&, const Constraint&) = default;
};

Constraint constraint_of(const model::TopologySpreadConstraint& from, const model::PodView& pod) {
  Constraint out{.max_skew = from.max_skew,
                 .key = from.topology_key,
                 .selector = from.selector,
                 .honors_affinity = from.honor_affinity,
                 .honors_taints = from.honor_taints};
  std::vector<model::Requirement> requirements = from.selector.requirements();
  for (const std::string& key : from.match_label_keys)
    if (const std::string* value = pod.meta.labels.get(key)) requirements.push_back({key, model::Requirement::Op::kIn, {*value}});
  if (!from.selector.is_nothing()) out.selector = model::Selector(std::move(requirements));
  if (out.honors_affinity) {
    out.node_selector = pod.node_selector;
    out.affinity = pod.node_affinity.required;
  }
  if (out.honors_taints) out.tolerations = pod.tolerations;
  return out;
}

bool counts_node(const Constraint& constraint, const model::NodeView& node) {
  if (constraint.honors_affinity) {
    for (const auto& [key, value] : constraint.node_selector) {
      const std::string* has = node.labels().get(key);
      if (has == nullptr || *has != value) return false;
    }
    if (constraint.affinity && !constraint.affinity->matches(node.labels(), node.name())) return false;
  }
  if (!constraint.honors_taints) return true;
  return tolerates(constraint.tolerations, node.taints, is_hard_taint);
}

struct Domain {
  std::string value;
  std::vector<PodPtr> pods;  ///< Those given up first stand at the end.
};

/// A constraint out of balance: how many pods each domain has as the plan goes on, and how many it should have at most.
struct Plan {
  std::string key;
  std::map<std::string, std::int64_t, std::less<>> counts;
  std::int64_t most = 0;
};

struct Chosen {
  PodPtr pod;
  std::vector<std::size_t> plans;
};

class Balancer {
 public:
  Balancer(Context& ctx, const Plugin& plugin) : ctx_(ctx), plugin_(plugin) {}

  void look_at(const std::vector<PodPtr>& pods) {
    std::vector<Constraint> constraints;
    for (const PodPtr& pod : pods) {
      for (const auto& one : pod->view().spread_constraints) {
        if (!(one.is_hard ? plugin_.hard_constraints : plugin_.soft_constraints) || !one.selector_error.empty()) continue;
        Constraint constraint = constraint_of(one, pod->view());
        if (std::ranges::find(constraints, constraint) == constraints.end()) constraints.push_back(std::move(constraint));
      }
    }
    for (const Constraint& constraint : constraints) balance(constraint, pods);
  }

  void evict() {
    std::vector<PodPtr> order;
    for (const auto& [key, chosen] : chosen_) order.push_back(chosen.pod);
    sort_by_priority(order);
    std::set<std::string> full_nodes;
    for (const PodPtr& pod : order) {
      if (full_nodes.contains(pod->node()) || !ctx_.filter(*pod) || !ctx_.pre_eviction_filter(*pod)) continue;
      const Chosen& chosen = chosen_.at(pod->key());
      const Plan& first = plans_[chosen.plans[0]];
      const auto rule = [&](const placement::NodeInfo& to) -> std::string {
        for (const std::size_t index : chosen.plans) {
          const std::string* value = to.label(plans_[index].key);
          if (value == nullptr) return fmt::format("which has no label {}", plans_[index].key);
          const auto count = plans_[index].counts.find(*value);
          if (count != plans_[index].counts.end() && count->second + 1 > plans_[index].most)
            return fmt::format("in the domain {}={} that has {} already", plans_[index].key, *value, count->second);
        }
        return "";
      };
      const Verdict verdict = ctx_.evict(pod, fmt::format("{} is out of balance, its domain has too many", first.key), rule);
      if (verdict == Verdict::kTotalLimit) return;
      if (verdict == Verdict::kNodeLimit) full_nodes.insert(pod->node());
      if (verdict == Verdict::kEvicted) count_move(*pod, chosen);
    }
  }

 private:
  void balance(const Constraint& constraint, const std::vector<PodPtr>& pods) {
    std::map<std::string, std::vector<PodPtr>> by_value;
    std::vector<const Node*> eligible;
    for (const Node& node : ctx_.nodes()) {
      if (!counts_node(constraint, *node.view)) continue;
      eligible.push_back(&node);
      if (const std::string* value = node.labels().get(constraint.key)) by_value[*value];
    }
    double sum = 0;
    for (const PodPtr& pod : pods) {
      const Node* node = ctx_.find(pod->node());
      const std::string* value = node == nullptr ? nullptr : node->labels().get(constraint.key);
      if (value == nullptr || pod->view().meta.is_deleting || !constraint.selector.matches(pod->view().meta.labels)) continue;
      by_value[*value].push_back(pod);
      ++sum;
    }
    std::vector<Domain> domains;
    for (auto& [value, here] : by_value) {
      sort_for_giving_up(here);
      domains.push_back({value, std::move(here)});
    }
    if (domains.empty()) return;
    std::ranges::stable_sort(domains, {}, [](const Domain& domain) { return domain.pods.size(); });
    if (static_cast<std::int64_t>(domains.back().pods.size() - domains.front().pods.size()) <= constraint.max_skew) return;

    Plan plan{.key = constraint.key, .counts = {}, .most = 0};
    const double average = sum / static_cast<double>(domains.size());
    plan.most = static_cast<std::int64_t>(std::ceil(average));
    std::map<std::string_view, bool> is_below;
    for (const Domain& domain : domains) {
      plan.counts[domain.value] = static_cast<std::int64_t>(domain.pods.size());
      is_below[domain.value] = static_cast<double>(domain.pods.size()) < average;
    }
    std::vector<const Node*> places;
    for (const Node* node : eligible)
      if (const std::string* value = node->labels().get(constraint.key); value != nullptr && is_below[*value]) places.push_back(node);
    plans_.push_back(std::move(plan));
    choose(constraint, domains, average, places);
  }

  /// Who is given up first stands last: evictable, without selectors, of low priority and quality (SPEC G3).
  void sort_for_giving_up(std::vector<PodPtr>& pods) const {
    if (ctx_.chooses_as_kubernetes()) return sort_as_kubernetes(pods);
    std::ranges::stable_sort(pods, {}, [](const PodPtr& pod) {
      return std::tuple(!pod->facts.has_node_selector, -pod->facts.priority.value_or(INT64_MIN + 1), -static_cast<int>(pod->facts.qos),
                        !prefers_no_eviction(*pod));
    });
  }

  /// High priority goes first there, and of equals the one met first: its comparison calls equals less, which its insertion sort turns
  /// round.
  static void sort_as_kubernetes(std::vector<PodPtr>& pods) {
    const auto with_priority = std::ranges::stable_partition(pods, [](const PodPtr& pod) { return !pod->facts.priority; });
    std::ranges::reverse(with_priority);
    std::ranges::stable_sort(
        pods, {}, [](const PodPtr& pod) { return std::tuple(!pod->facts.has_node_selector, pod->facts.priority.value_or(INT64_MIN)); });
  }

  void choose(const Constraint& constraint, std::vector<Domain>& domains, double average, const std::vector<const Node*>& places) {
    std::size_t low = 0, high = domains.size() - 1;
    while (low < high) {
      if (static_cast<double>(domains[high].pods.size()) <= average) --high;
      const double skew = static_cast<double>(domains[high].pods.size()) - static_cast<double>(domains[low].pods.size());
      if (skew <= static_cast<double>(constraint.max_skew)) {
        ++low;
        continue;
      }
      auto& from = domains[high].pods;
      auto& to = domains[low].pods;
      // As many as bring neither domain past the average, and no more than half of what is too much.
      const double above = std::ceil(static_cast<double>(from.size()) - average),
                   below = std::ceil(average - static_cast<double>(to.size()));
      const double half = std::ceil((skew - static_cast<double>(constraint.max_skew)) / 2);
      const auto moved = static_cast<std::ptrdiff_t>(std::min({above, below, half}));
      if (moved <= 0) {
        ++low;
        continue;
      }
      std::map<const Pod*, bool> fits;
      for (const PodPtr& pod : from) fits[pod.get()] = ctx_.fits_any(*pod, places, true);
      std::ranges::stable_sort(from, {}, [&](const PodPtr& pod) { return fits[pod.get()]; });
      for (auto pod = from.end() - moved; pod != from.end(); ++pod) {
        if (plugin_.topology_balance_node_fit && !fits[pod->get()]) continue;
        Chosen& chosen = chosen_[(*pod)->key()];
        chosen.pod = *pod;
        if (chosen.plans.empty() || chosen.plans.back() != plans_.size() - 1) chosen.plans.push_back(plans_.size() - 1);
      }
      to.insert(to.end(), from.end() - moved, from.end());
      from.erase(from.end() - moved, from.end());
    }
  }

  void count_move(const Pod& pod, const Chosen& chosen) {
    const Node* source = ctx_.find(pod.node());
    const placement::NodeInfo* destination = ctx_.snapshot().cluster.find_node(ctx_.last_destination());
    for (const std::size_t index : chosen.plans) {
      Plan& plan = plans_[index];
      if (const std::string* value = source == nullptr ? nullptr : source->labels().get(plan.key)) --plan.counts[*value];
      if (const std::string* value = destination == nullptr ? nullptr : destination->label(plan.key)) ++plan.counts[*value];
    }
  }

  Context& ctx_;
  const Plugin& plugin_;
  std::vector<Plan> plans_;
  std::map<std::string, Chosen> chosen_;
};

}  // namespace

void remove_topology_spread(Context& ctx, const Plugin& plugin) {
  std::map<std::string, std::vector<PodPtr>> by_namespace;
  for (Node& node : ctx.nodes())
    for (const PodPtr& pod : Context::running(node))
      if (Context::selects(plugin, *pod) && ctx.filter(*pod)) by_namespace[pod->view().ns()].push_back(pod);
  Balancer balancer(ctx, plugin);
  for (const auto& [ns, pods] : by_namespace) balancer.look_at(pods);
  balancer.evict();
}

}  // namespace berth::descheduler
