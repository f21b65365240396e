#include "autoscaler/scale_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace berth::autoscaler {
namespace {

constexpr std::int64_t kMostNodesAtOnce = 1000;  // The cluster autoscaler's --max-nodes-per-scaleup.

struct Planner {
  const ScaleUpInput& input;
  const Options& options;
  ScaleUpPlan plan;
  std::vector<PodGroup> alike;
  Refusals skipped;  ///< Groups that may not grow.
  std::vector<const NodeGroup*> valid;

  [[nodiscard]] const NodeTemplate& template_of(const std::string& group) const { return input.templates->find(group)->second; }
  [[nodiscard]] Amounts amounts(const std::string& group) const { return amounts_of(*template_of(group).node, options); }

  /// Which pods a new node of the group could take, each kind tried alone.
  void try_template(const NodeGroup& group) {
    placement::Trial trial = input.trial->fork();
    const auto node = add_node(trial, template_of(group.id), "template-node-for-" + group.id);
    for (PodGroup& pods : alike) {
      placement::Status status = trial.fits(pods.pods.front()->info, node);
      if (status.is_success())
        pods.fits.push_back(group.id);
      else
        pods.refusals[group.id] = {std::move(status.reasons)};
    }
  }

  [[nodiscard]] std::vector<const PodGroup*> fitting(const std::string& group) const {
    std::vector<const PodGroup*> out;
    for (const PodGroup& pods : alike)
      if (std::ranges::find(pods.fits, group) != pods.fits.end()) out.push_back(&pods);
    return out;
  }

  /// Groups whose nodes would be as good, for the same pods.
  [[nodiscard]] std::vector<const NodeGroup*> similar_to(const NodeGroup& group) const {
    std::vector<const NodeGroup*> out;
    if (!options.balance_similar_node_groups) return out;
    const auto pods = fitting(group.id);
    for (const NodeGroup* other : valid) {
      if (other->id == group.id || !are_similar(template_of(group.id), template_of(other->id), options.balancing_ignored_labels)) continue;
      const auto theirs = fitting(other->id);
      if (std::ranges::all_of(pods, [&](const PodGroup* one) { return std::ranges::find(theirs, one) != theirs.end(); }))
        out.push_back(other);
    }
    return out;
  }

  [[nodiscard]] std::vector<ExpansionOption> expansion_options() {
    std::vector<ExpansionOption> out;
    for (const NodeGroup* group : valid) {
      auto pods = fitting(group->id);
      if (pods.empty()) continue;
      if (!out.empty() && input.limit.is_over()) {
        plan.left_groups.push_back(group->id);
        continue;
      }
      std::int64_t most = group->max - group->target;
      for (const NodeGroup* similar : similar_to(*group)) most += similar->max - similar->target;
      if (options.max_nodes_total > 0) most = std::min(most, std::max<std::int64_t>(options.max_nodes_total - input.node_count, 0));
      ExpansionOption option = estimate(*input.trial, group->id, template_of(group->id), std::move(pods), std::min(most, kMostNodesAtOnce));
      option.price_per_hour = group->price_per_hour;
      if (input.all_or_nothing && option.pods.size() < input.pending.size()) continue;
      if (option.nodes > 0 && !option.pods.empty()) out.push_back(std::move(option));
    }
    return out;
  }

  /// The nodes of the best option, capped by all limits and split over similar groups.
  [[nodiscard]] std::vector<Resize> resizes_of(const ExpansionOption& best, std::int64_t new_nodes) const {
    const NodeGroup* main = *std::ranges::find_if(valid, [&](const NodeGroup* group) { return group->id == best.group; });
    std::vector<Resize> groups = {{main->id, main->target, main->target, main->max}};
    for (const NodeGroup* similar : similar_to(*main)) groups.push_back({similar->id, similar->target, similar->target, similar->max});
    std::vector<Resize> out = balance(std::move(groups), input.limits->allowed(amounts(best.group), new_nodes));
    ClusterLimits limits = *input.limits;
    for (Resize& resize : out) {
      const Amounts cost = amounts(resize.group);
      resize.to = resize.from + limits.allowed(cost, resize.to - resize.from);
      limits.add(cost, resize.to - resize.from);
    }
    std::erase_if(out, [](const Resize& resize) { return resize.to <= resize.from; });
    return out;
  }

  /// Lets the scheduler's engine place the pods in the scheduler's order on the nodes of the plan, and takes back nodes it leaves empty.
  void keep_only_used() {
    placement::Trial trial = input.trial->fork();
    std::map<placement::NodeIndex, Resize*> added;
    std::map<const Resize*, std::int64_t> used;
    for (Resize& resize : plan.resizes)
      for (std::int64_t i = resize.from; i < resize.to; ++i)
        added[add_node(trial, template_of(resize.group), fmt::format("new-{}-{}", resize.group, i))] = &resize;
    std::set<placement::NodeIndex> taken;
    std::vector<PodPtr> waiting = input.pending;
    place_waiting(trial, waiting, *input.kinds, [&](const PodPtr& pod, placement::NodeIndex node) {
      const auto found = added.find(node);
      if (found == added.end()) return;
      plan.helped.push_back(pod);
      if (taken.insert(node).second) ++used[found->second];
    });
    for (Resize& resize : plan.resizes) resize.to = resize.from + used[&resize];
    std::erase_if(plan.resizes, [](const Resize& resize) { return resize.to <= resize.from; });
  }

  static std::int64_t nodes_of(const std::vector<Resize>& resizes) {
    std::int64_t out = 0;
    for (const Resize& resize : resizes) out += resize.to - resize.from;
    return out;
  }

  void run() {
    alike = group_alike(input.pending, *input.kinds);
    Growable growable = sort_out_groups(input, options);
    skipped = std::move(growable.skipped);
    valid = std::move(growable.valid);
    for (const NodeGroup* group : valid) try_template(*group);
    plan.result = ScaleUpPlan::Result::kNoOptions;
    const bool is_full = options.max_nodes_total > 0 && input.node_count >= options.max_nodes_total;
    if (is_full && std::ranges::any_of(alike, [](const PodGroup& pods) { return !pods.fits.empty(); }))
      plan.result = ScaleUpPlan::Result::kLimitedByMaxNodesTotal;
    else
      choose();
    sort_out_pods();
  }

  void choose() {
    std::vector<ExpansionOption> found = expansion_options();
    for (const ExpansionOption& option : found) plan.options.push_back({option.group, option.nodes, option.pods.size()});
    if (found.empty()) return;
    found = narrow(std::move(found), options.expanders, input.expander, plan.warnings);
    for (const ExpansionOption& option : found) plan.best.push_back(option.group);
    ExpansionOption best = draw(std::move(found), input.seed);
    std::int64_t new_nodes = best.nodes;
    if (options.max_nodes_total > 0) new_nodes = std::min(new_nodes, options.max_nodes_total - input.node_count);
    plan.resizes = resizes_of(best, new_nodes);
    plan.estimated = std::move(best.pods);
    if (input.all_or_nothing && nodes_of(plan.resizes) < best.nodes) plan.resizes.clear();
    keep_only_used();
    if (input.all_or_nothing && plan.helped.size() < input.pending.size()) plan.resizes.clear();
    if (plan.resizes.empty()) return;
    plan.result = ScaleUpPlan::Result::kSuccessful;
    for (const PodGroup& pods : alike)
      if (!pods.fits.empty() && pods.refusals.contains(best.group))
        plan.awaiting.insert(plan.awaiting.end(), pods.pods.begin(), pods.pods.end());
  }

  void sort_out_pods() {
    const bool is_full = plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal;
    for (PodGroup& pods : alike) {
      if (!pods.fits.empty() && !is_full) continue;
      auto why = std::make_shared<Refusals>(std::move(pods.refusals));
      why->insert(skipped.begin(), skipped.end());
      for (const std::string& group : pods.fits) why->try_emplace(group, GroupRefusal{{std::string(kMaxNodesTotalReached)}});
      for (const PodPtr& pod : pods.pods) plan.not_helped.push_back({pod, why});
    }
  }
};

}  // namespace

std::string to_string(const std::vector<Resize>& plan) {
  std::vector<std::string> words;
  for (const Resize& resize : plan)
    words.push_back(fmt::format("{{{} {}->{} (max: {})}}", resize.group, resize.from, resize.to, resize.max));
  return fmt::format("[{}]", fmt::join(words, " "));
}

std::vector<std::string> count_reasons(const Refusals& refusals) {
  std::map<std::string, int> counts;
  for (const auto& [group, refusal] : refusals)
    for (const std::string& reason : refusal.reasons) ++counts[reason];
  std::vector<std::string> words;
  for (const auto& [reason, count] : counts) words.push_back(fmt::format("{} {}", count, reason));
  return words;
}

GroupRefusal over_cluster_limits(std::vector<std::string> resources) {
  return {{fmt::format("max cluster {} limit reached", fmt::join(resources, ", "))}, std::move(resources)};
}

Growable sort_out_groups(const ScaleUpInput& input, const Options& options) {
  Growable out;
  for (const NodeGroup& group : *input.groups) {
    const auto known = input.templates->find(group.id);
    if (const auto why = input.not_ready.find(group.id); why != input.not_ready.end()) {
      out.skipped[group.id] = {{why->second}};
    } else if (group.target >= group.max) {
      out.skipped[group.id] = {{"max node group size reached"}};
    } else if (known == input.templates->end() || known->second.node == nullptr) {
      out.skipped[group.id] = {{"not ready for scale-up"}};
    } else if (auto over = input.limits->exceeded(amounts_of(*known->second.node, options)); !over.empty()) {
      out.skipped[group.id] = over_cluster_limits(std::move(over));
    } else {
      out.valid.push_back(&group);
    }
  }
  return out;
}

ScaleUpPlan plan_scale_up(const ScaleUpInput& input, const Options& options) {
  if (input.pending.empty()) return {};
  Planner planner{input, options, {}, {}, {}, {}};
  planner.run();
  return std::move(planner.plan);
}

}  // namespace berth::autoscaler
