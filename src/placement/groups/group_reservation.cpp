#include "placement/groups/group_reservation.h"

#include <algorithm>

#include "placement/attempt.h"
#include "placement/groups/group_levels.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMostDomains = 16;
constexpr std::size_t kShortSearch = 2000;

bool stays_for_ever(const PodInfo& pod) {
  const model::OwnerReference* owner = pod.view().meta.controller();
  return owner != nullptr && owner->kind == "DaemonSet";
}

/// A step in which some pods are gone, and those of all steps before.
struct Step {
  std::vector<PodInfoPtr> gone;
  std::optional<TimePoint> at;
};

/// One domain: the first step after which the group fits.
class Waiting {
 public:
  Waiting(Trial& there, const GroupQuestion& question) : there_(there), question_(question) {}

  std::optional<GroupReservation> by_ends(const EndsAt& ends_at) {
    std::vector<std::pair<TimePoint, PodInfoPtr>> ends;
    for (const NodeInfo* node : there_.cluster().nodes())
      for (const PodInfoPtr& pod : node->pods)
        if (const auto end = ends_at(*pod)) ends.emplace_back(*end, pod);
    std::ranges::stable_sort(ends, {}, &std::pair<TimePoint, PodInfoPtr>::first);
    std::vector<Step> steps;
    for (auto& [end, pod] : ends) {
      if (steps.empty() || steps.back().at != end) steps.push_back({{}, end});
      steps.back().gone.push_back(std::move(pod));
    }
    return first_that_fits(steps);
  }

  std::optional<GroupReservation> by_clearing() {
    std::vector<std::pair<std::int64_t, const NodeInfo*>> nodes;
    for (const NodeInfo* node : there_.cluster().nodes()) {
      GroupDomain alone{.name = {}, .nodes = {node->index}, .used = {}, .all = {}};
      count_room(there_.cluster(), question_.members, alone);
      // Of equals the node with the fewest pods to wait for.
      nodes.emplace_back(alone.room * 1024 - std::min<std::int64_t>(std::ssize(node->pods), 1023), node);
    }
    std::ranges::stable_sort(nodes, std::greater(), &std::pair<std::int64_t, const NodeInfo*>::first);
    std::vector<Step> steps;
    for (const auto& [room, node] : nodes) {
      Step& step = steps.emplace_back();
      std::ranges::copy_if(node->pods, std::back_inserter(step.gone), [](const PodInfoPtr& pod) { return !stays_for_ever(*pod); });
    }
    return first_that_fits(steps);
  }

 private:
  std::optional<GroupReservation> first_that_fits(const std::vector<Step>& steps) {
    if (steps.empty() || !after(steps, steps.size())) return std::nullopt;
    std::size_t too_few = 0, enough = steps.size();
    while (enough - too_few > 1) {
      const std::size_t middle = too_few + (enough - too_few) / 2;
      (after(steps, middle) ? enough : too_few) = middle;
    }
    return after(steps, enough);
  }

  std::optional<GroupReservation> after(const std::vector<Step>& steps, std::size_t count) {
    Attempt attempt(there_);
    GroupReservation out;
    for (std::size_t i = 0; i < count; ++i)
      for (const PodInfoPtr& pod : steps[i].gone) {
        (void)there_.evict(pod);
        ++out.in_the_way;
      }
    out.starts_at = steps[count - 1].at;
    std::size_t search = std::min(question_.search_steps, kShortSearch);
    const GroupDecision decision = decide_in_domain(there_, question_, search);
    if (decision.outcome != GroupDecision::Outcome::kScheduled) return std::nullopt;
    for (std::size_t i = 0; i < decision.members.size(); ++i)
      if (decision.members[i].has_place()) out.places.emplace_back(i, decision.members[i].decision.node);
    return out;
  }

  Trial& there_;
  const GroupQuestion& question_;
};

bool is_sooner(const GroupReservation& a, const GroupReservation& b) {
  if (a.starts_at.has_value() != b.starts_at.has_value()) return a.starts_at.has_value();
  if (a.starts_at) return *a.starts_at < *b.starts_at;
  return a.in_the_way < b.in_the_way;
}

}  // namespace

std::optional<GroupReservation> plan_reservation(Trial& trial, const GroupQuestion& question, const EndsAt& ends_at) {
  const std::vector<TopologyLevel> levels = question.by_topology ? question.group->all_levels() : std::vector<TopologyLevel>();
  const auto required = required_of(levels);
  auto domains = group_domains(trial.cluster(), question, required);
  if (!domains) return std::nullopt;
  std::ranges::stable_sort(
      *domains, [](const GroupDomain& a, const GroupDomain& b) { return std::pair(-a.held, -a.room) < std::pair(-b.held, -b.room); });
  if (domains->size() > kMostDomains) domains->resize(kMostDomains);
  std::optional<GroupReservation> best;
  for (const bool by_ends : {true, false}) {
    for (const GroupDomain& domain : *domains) {
      Trial there = trial.within(domain.nodes);
      Waiting waiting(there, question);
      auto one = by_ends ? waiting.by_ends(ends_at) : waiting.by_clearing();
      if (!one || (best && !is_sooner(*one, *best))) continue;
      for (auto& [member, node] : one->places) node = trial.cluster().find_node(there.cluster().node(node)->name)->index;
      one->domain = domain.name;
      best = std::move(one);
    }
    if (best) break;
  }
  return best;
}

}  // namespace berth::placement
