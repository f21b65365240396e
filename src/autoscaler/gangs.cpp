#include "autoscaler/gangs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace berth::autoscaler {
namespace {

using placement::NodeIndex;
using placement::Trial;

std::vector<placement::PodInfoPtr> infos_of(const std::vector<PodPtr>& pods) {
  std::vector<placement::PodInfoPtr> out;
  out.reserve(pods.size());
  for (const PodPtr& pod : pods) out.push_back(pod->info);
  return out;
}

/// Places what finds a place, and takes it out of `pods`.
void place_each(Trial& trial, const placement::PodGroup& group, std::vector<NodeIndex> standing, std::vector<PodPtr>& pods,
                const Placed& placed) {
  const std::vector<placement::PodInfoPtr> members = infos_of(pods);
  const auto decision = placement::place_group(trial, {.group = &group, .members = members, .standing = std::move(standing)});
  if (decision.outcome != placement::GroupDecision::Outcome::kScheduled) return;
  std::size_t i = 0;
  std::erase_if(pods, [&](const PodPtr& pod) {
    const placement::MemberDecision& mine = decision.members[i++];
    if (mine.has_place()) placed(pod, mine.decision.node);
    return mine.has_place();
  });
}

std::string whole_or_none(const Gang& gang) {
  return gang.group->is_gang ? fmt::format("nodes are added for all pods of gang {} or for none", gang.group->key())
                             : fmt::format("nodes are added for group {} in one domain of {}", gang.group->key(), gang.group->topology_key);
}

void merge_resize(std::vector<Resize>& all, const Resize& one) {
  const auto same = std::ranges::find(all, one.group, &Resize::group);
  if (same == all.end())
    all.push_back(one);
  else
    same->to = one.to;
}

/// A part of the cluster in which the gang might be: a domain of its key, or all of it.
struct Part {
  std::string domain;
  Trial trial;                ///< With the members that have free places there.
  std::vector<PodPtr> left;   ///< Those that have none.
  std::size_t have_free = 0;  ///< How many have.
};

/// Nodes that a part gets, and for how many members.
struct Offer {
  std::map<std::string, std::int64_t, std::less<>> nodes;  ///< By node group.
  std::size_t pods = 0;                                    ///< With those that have free places.
  ExpansionOption option;                                  ///< Of one node group.
};

class GangPlanner {
 public:
  GangPlanner(const ScaleUpInput& input, const Gang& gang, const placement::PodGroups& groups, const Options& options)
      : input_(input),
        gang_(gang),
        groups_(groups),
        options_(options),
        growable_(sort_out_groups(input, options)),
        standing_(placement::standing_of(groups, input.trial->cluster(), gang.group->key())),
        needed_(std::max<std::int64_t>(gang.group->min_count - std::ssize(standing_), 1)) {
    for (const placement::TopologyLevel& level : gang.group->all_levels())
      if (level.is_required) keys_.push_back(level.key);
  }

  GangPlan run() {
    plan_.why = growable_.skipped;
    std::vector<Part> parts = parts_of_cluster();
    std::vector<Offer> offers;
    for (Part& part : parts) offer_one_group(part, offers);
    if (offers.empty())
      for (Part& part : parts) offer_several_groups(part, offers);
    while (!offers.empty() && plan_.resizes.empty()) try_offer(take_best(offers));
    if (!plan_.resizes.empty()) plan_.why.clear();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const NodeTemplate& template_of(const std::string& group) const { return input_.templates->find(group)->second; }
  /// The values of the group's required levels, with "/" between; nullopt: a label is missing.
  [[nodiscard]] std::optional<std::string> domain_of(const model::Labels& labels) const {
    std::string out;
    for (const std::string& key : keys_) {
      const std::string* value = labels.get(key);
      if (value == nullptr) return std::nullopt;
      out += (out.empty() ? "" : "/") + *value;
    }
    return out;
  }
  [[nodiscard]] std::optional<std::string> domain_of(const NodeGroup& group) const {
    return domain_of(template_of(group.id).node->labels());
  }

  /// Of domains that are full and get no nodes nothing is to be hoped: those that a node group adds to are asked.
  std::vector<Part> parts_of_cluster() {
    std::vector<Part> out;
    if (keys_.empty()) {
      out.push_back(part_of("", input_.trial->fork()));
      return out;
    }
    const placement::Cluster& cluster = input_.trial->cluster();
    const auto held = standing_.empty() ? std::nullopt : domain_of(cluster.node(standing_.front())->labels());
    const std::string keys = fmt::format("{}", fmt::join(keys_, "/"));
    std::set<std::string> domains;
    for (const NodeGroup* group : growable_.valid)
      if (const auto domain = domain_of(*group); !domain)
        plan_.why[group->id] = {{fmt::format("its nodes have no label \"{}\", in one value of which the pods have to be together", keys)}};
      else if (held && *held != *domain)
        plan_.why[group->id] = {{fmt::format("the other pods of its group are where {} is {}", keys, *held)}};
      else
        domains.insert(*domain);
    for (const std::string& domain : domains) {
      std::vector<NodeIndex> nodes;
      for (const placement::NodeInfo* node : cluster.nodes())
        if (domain_of(node->labels()) == domain) nodes.push_back(node->index);
      out.push_back(part_of(domain, input_.trial->within(nodes)));
    }
    return out;
  }

  Part part_of(std::string domain, Trial trial) {
    Part out{std::move(domain), std::move(trial), gang_.waiting};
    place_each(out.trial, placement::one_by_one(*gang_.group), {}, out.left, [&](const PodPtr&, NodeIndex) { ++out.have_free; });
    return out;
  }

  [[nodiscard]] std::vector<const NodeGroup*> groups_in(const Part& part) const {
    std::vector<const NodeGroup*> out;
    for (const NodeGroup* group : growable_.valid)
      if (keys_.empty() || domain_of(*group) == part.domain) out.push_back(group);
    return out;
  }

  /// What may be added of the group beside `taken` nodes of others; `why` says what stops it.
  [[nodiscard]] std::int64_t most_of(const NodeGroup& group, const ClusterLimits& limits, std::int64_t taken, GroupRefusal& why) const {
    constexpr std::int64_t kMost = 1000;
    std::int64_t out = std::min(group.max - group.target, kMost);
    why = {{"max node group size reached"}};
    if (options_.max_nodes_total > 0 && options_.max_nodes_total - input_.node_count - taken < out) {
      out = std::max<std::int64_t>(options_.max_nodes_total - input_.node_count - taken, 0);
      why = {{std::string(kMaxNodesTotalReached)}};
    }
    const Amounts cost = amounts_of(*template_of(group.id).node, options_);
    if (const std::int64_t allowed = limits.allowed(cost, out); allowed < out) {
      ClusterLimits full = limits;
      full.add(cost, allowed);
      why = over_cluster_limits(full.exceeded(cost));
      out = allowed;
    }
    return out;
  }

  /// For how many of the pods so many nodes of the group would do.
  ExpansionOption estimate_for(Trial& trial, const NodeGroup& group, const std::vector<PodPtr>& pods, std::int64_t most,
                               GroupRefusal& refusal) {
    Kinds kinds(trial, pods);
    std::vector<PodGroup> alike = group_alike(pods, kinds);
    std::vector<const PodGroup*> fitting;
    Trial with_node = trial.fork();
    const NodeIndex node = add_node(with_node, template_of(group.id), "template-node-for-" + group.id);
    for (const PodGroup& one : alike) {
      placement::Status status = with_node.fits(one.pods.front()->info, node);
      if (status.is_success())
        fitting.push_back(&one);
      else
        refusal = {std::move(status.reasons)};
    }
    if (fitting.empty()) return {};
    ExpansionOption out = estimate(trial, group.id, template_of(group.id), std::move(fitting), most);
    out.price_per_hour = group.price_per_hour;
    return out;
  }

  void offer_one_group(Part& part, std::vector<Offer>& offers) {
    for (const NodeGroup* group : groups_in(part)) {
      GroupRefusal limit, refusal;
      const std::int64_t most = most_of(*group, *input_.limits, 0, limit);
      ExpansionOption option = estimate_for(part.trial, *group, part.left, most, refusal);
      const std::size_t pods = part.have_free + option.pods.size();
      if (option.nodes > 0 && static_cast<std::int64_t>(pods) >= needed_) {
        offers.push_back({{{group->id, option.nodes}}, pods, std::move(option)});
      } else if (option.nodes > 0 && option.nodes >= most) {
        plan_.why[group->id] = {{fmt::format("room for {} of {} pods, then {}", pods, gang_.waiting.size(), limit.reasons.front())}};
      } else if (option.nodes > 0) {
        plan_.why[group->id] = {{fmt::format("room for {} of {} pods, whatever the number of its nodes", pods, gang_.waiting.size())}};
      } else {
        plan_.why[group->id] = std::move(refusal.reasons.empty() ? limit : refusal);
      }
    }
  }

  /// One group after the other, whoever takes the most of what is left.
  void offer_several_groups(Part& part, std::vector<Offer>& offers) {
    Offer out{{}, part.have_free, {}};
    Trial trial = part.trial.fork();
    std::vector<PodPtr> left = part.left;
    std::vector<const NodeGroup*> groups = groups_in(part);
    ClusterLimits limits = *input_.limits;
    std::int64_t taken = 0;
    while (!left.empty() && !groups.empty()) {
      ExpansionOption best;
      std::size_t which = 0;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        GroupRefusal limit, refusal;
        ExpansionOption option = estimate_for(trial, *groups[i], left, most_of(*groups[i], limits, taken, limit), refusal);
        if (option.nodes == 0 || option.pods.size() <= best.pods.size()) continue;
        best = std::move(option);
        which = i;
      }
      if (best.pods.empty()) break;
      for (std::int64_t i = 0; i < best.nodes; ++i) add_node(trial, template_of(best.group), fmt::format("gang-{}-{}", best.group, i));
      const std::size_t before = left.size();
      place_each(trial, placement::one_by_one(*gang_.group), {}, left, [](const PodPtr&, NodeIndex) {});
      out.nodes[best.group] = best.nodes;
      out.pods += before - left.size();
      taken += best.nodes;
      limits.add(amounts_of(*template_of(best.group).node, options_), best.nodes);
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (static_cast<std::int64_t>(out.pods) >= needed_ && !out.nodes.empty()) offers.push_back(std::move(out));
  }

  /// Those that help the most members, and of these whichever the expanders leave; of several groups together the fewest nodes.
  Offer take_best(std::vector<Offer>& offers) {
    std::size_t most = 0;
    for (const Offer& one : offers) most = std::max(most, one.pods);
    std::vector<ExpansionOption> options;
    std::size_t chosen = offers.size();
    const auto nodes_of = [&](const Offer& one) {
      std::int64_t out = 0;
      for (const auto& [group, nodes] : one.nodes) out += nodes;
      return out;
    };
    for (std::size_t i = 0; i < offers.size(); ++i) {
      if (offers[i].pods < most) continue;
      if (!offers[i].option.group.empty())
        options.push_back(offers[i].option);
      else if (chosen == offers.size() || nodes_of(offers[i]) < nodes_of(offers[chosen]))
        chosen = i;
    }
    if (!options.empty()) {
      const ExpansionOption best = draw(narrow(std::move(options), options_.expanders, input_.expander, plan_.warnings), input_.seed);
      chosen = static_cast<std::size_t>(std::ranges::find_if(offers, [&](const Offer& one) { return one.option.group == best.group; }) -
                                        offers.begin());
    }
    Offer out = std::move(offers[chosen]);
    offers.erase(offers.begin() + static_cast<std::ptrdiff_t>(chosen));
    return out;
  }

  /// Whether the scheduler would place the gang then: it spreads pods where the estimate packs them, so that a few nodes more may be
  /// needed.
  void try_offer(const Offer& offer) {
    for (const std::int64_t more : {0, 1, 2, 4}) {
      Offer larger = offer;
      if (more > 0) {
        if (offer.nodes.size() != 1) return;
        auto& [id, nodes] = *larger.nodes.begin();
        const auto group = std::ranges::find(growable_.valid, id, [](const NodeGroup* one) { return one->id; });
        GroupRefusal limit;
        if (nodes + more > most_of(**group, *input_.limits, 0, limit)) break;
        nodes += more;
      }
      if (confirm(larger)) return;
    }
    for (const auto& [group, nodes] : offer.nodes)
      plan_.why.try_emplace(group,
                            GroupRefusal{{fmt::format("with {} more nodes the scheduler would still not place all of them", nodes)}});
  }

  bool confirm(const Offer& offer) {
    Trial trial = input_.trial->fork();
    std::map<NodeIndex, std::string> added;
    for (const auto& [group, nodes] : offer.nodes)
      for (std::int64_t i = 0; i < nodes; ++i) added[add_node(trial, template_of(group), fmt::format("gang-{}-{}", group, i))] = group;
    std::vector<PodPtr> waiting = gang_.waiting, helped;
    std::map<std::string, std::set<NodeIndex>> used;
    place_each(trial, *gang_.group, standing_, waiting, [&](const PodPtr& pod, NodeIndex node) {
      helped.push_back(pod);
      if (const auto found = added.find(node); found != added.end()) used[found->second].insert(node);
    });
    if (static_cast<std::int64_t>(helped.size()) < needed_ || helped.size() < offer.pods || used.empty()) return false;
    plan_.helped = std::move(helped);
    for (const auto& [group, nodes] : used) {
      const NodeGroup& one = **std::ranges::find(growable_.valid, group, [](const NodeGroup* valid) { return valid->id; });
      plan_.resizes.push_back({one.id, one.target, one.target + std::ssize(nodes), one.max});
    }
    return true;
  }

  const ScaleUpInput& input_;
  const Gang& gang_;
  const placement::PodGroups& groups_;
  const Options& options_;
  Growable growable_;
  std::vector<std::string> keys_;  ///< Labels in whose domains they have to be.
  std::vector<NodeIndex> standing_;
  std::int64_t needed_;  ///< So many of those that wait, or none.
  GangPlan plan_;
};

}  // namespace

WaitingGangs take_gangs(std::vector<PodPtr>& pods, const placement::PodGroups& groups) {
  WaitingGangs out;
  if (groups.empty()) return out;
  std::map<std::string, std::size_t> places;
  std::erase_if(pods, [&](const PodPtr& pod) {
    if (pod->facts.group.empty()) return false;
    const placement::PodGroupPtr group = groups.find(pod->facts.group);
    if (group == nullptr || (!group->is_gang && group->all_levels().empty())) return false;
    if (group->is_gang && static_cast<std::int64_t>(groups.count(pod->facts.group)) < group->min_count) {
      out.of_too_few.emplace_back(
          pod, fmt::format("its gang {} has {} pods and needs {}", pod->facts.group, groups.count(pod->facts.group), group->min_count));
      return true;
    }
    const auto [place, is_new] = places.try_emplace(pod->facts.group, out.gangs.size());
    if (is_new) out.gangs.push_back({group, {}});
    out.gangs[place->second].waiting.push_back(pod);
    return true;
  });
  return out;
}

void place_gangs(Trial& trial, std::vector<Gang>& gangs, const placement::PodGroups& groups, const Placed& placed) {
  for (Gang& gang : gangs)
    place_each(trial, *gang.group, placement::standing_of(groups, trial.cluster(), gang.group->key()), gang.waiting, placed);
  std::erase_if(gangs, [](const Gang& gang) { return gang.waiting.empty(); });
}

void place_waiting_and_gangs(Trial& trial, std::vector<PodPtr>& pods, Kinds* kinds, std::vector<Gang>& gangs,
                             const placement::PodGroups& groups, const Placed& placed) {
  const auto priority_of = [](const PodPtr& pod) { return pod->view().priority; };
  const auto place_above = [&](std::int64_t priority) {
    if (kinds == nullptr) return;
    const auto end = std::ranges::find_if(pods, [&](const PodPtr& pod) { return priority_of(pod) <= priority; });
    std::vector<PodPtr> rest(end, pods.end());
    pods.erase(end, pods.end());
    if (!pods.empty()) place_waiting(trial, pods, *kinds, placed);
    pods.insert(pods.end(), rest.begin(), rest.end());
  };
  std::vector<Gang> left;
  for (auto at = gangs.begin(); at != gangs.end();) {
    const std::int64_t priority = priority_of(at->waiting.front());
    const auto end = std::find_if(at, gangs.end(), [&](const Gang& one) { return priority_of(one.waiting.front()) != priority; });
    place_above(priority);
    std::vector<Gang> level(std::make_move_iterator(at), std::make_move_iterator(end));
    place_gangs(trial, level, groups, placed);
    left.insert(left.end(), std::make_move_iterator(level.begin()), std::make_move_iterator(level.end()));
    at = end;
  }
  gangs = std::move(left);
  place_above(std::numeric_limits<std::int64_t>::min());
}

GangPlan plan_for_gang(const ScaleUpInput& input, const Gang& gang, const placement::PodGroups& groups, const Options& options) {
  return GangPlanner(input, gang, groups, options).run();
}

std::size_t count_pods(const std::vector<PodPtr>& single, const std::vector<Gang>& gangs) {
  std::size_t out = single.size();
  for (const Gang& gang : gangs) out += gang.waiting.size();
  return out;
}

GangGrowth::GangGrowth(ScaleUpInput& input, ClusterLimits& limits) : input_(input), limits_(limits), groups_(*input.groups) {
  input_.groups = &groups_;
  input_.limits = &limits_;
}

void GangGrowth::plan_for(std::vector<Gang> gangs, const placement::PodGroups& groups, const Options& options) {
  const Placed nobody_asks = [](const PodPtr&, NodeIndex) {};
  for (Gang& gang : gangs) {
    if (input_.limit.is_over()) return;
    // What was added for another gang may have room for this one.
    std::vector<Gang> one{std::move(gang)};
    if (grows()) place_gangs(*input_.trial, one, groups, nobody_asks);
    if (one.empty()) continue;
    GangPlan plan = plan_for_gang(input_, one.front(), groups, options);
    plan_.warnings.insert(plan_.warnings.end(), plan.warnings.begin(), plan.warnings.end());
    if (plan.resizes.empty()) {
      const auto why = std::make_shared<const Refusals>(std::move(plan.why));
      for (const PodPtr& pod : one.front().waiting) refused_.push_back({pod, whole_or_none(one.front()), why});
    } else {
      add(plan, options);
      place_gangs(*input_.trial, one, groups, nobody_asks);
    }
  }
}

void GangGrowth::add(const GangPlan& plan, const Options& options) {
  for (const Resize& resize : plan.resizes) {
    NodeGroup& group = *std::ranges::find(groups_, resize.group, &NodeGroup::id);
    const NodeTemplate& known = input_.templates->find(group.id)->second;
    for (; group.target < resize.to; ++group.target) add_node(*input_.trial, known, fmt::format("gang-new-{}-{}", group.id, group.target));
    limits_.add(amounts_of(*known.node, options), resize.to - resize.from);
    input_.node_count += resize.to - resize.from;
    merge_resize(plan_.resizes, resize);
  }
  plan_.helped.insert(plan_.helped.end(), plan.helped.begin(), plan.helped.end());
}

void GangGrowth::add_to(ScaleUpPlan& plan) {
  if (!grows() && refused_.empty()) return;
  for (const Resize& resize : plan.resizes) merge_resize(plan_.resizes, resize);
  plan.resizes = std::move(plan_.resizes);
  plan.helped.insert(plan.helped.begin(), plan_.helped.begin(), plan_.helped.end());
  for (const Refused& one : refused_) plan.not_helped.push_back({one.pod, one.why});
  plan.warnings.insert(plan.warnings.end(), plan_.warnings.begin(), plan_.warnings.end());
  if (!plan.resizes.empty())
    plan.result = ScaleUpPlan::Result::kSuccessful;
  else if (plan.result == ScaleUpPlan::Result::kNotNeeded)
    plan.result = ScaleUpPlan::Result::kNoOptions;
}

}  // namespace berth::autoscaler
