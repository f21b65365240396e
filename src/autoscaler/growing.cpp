#include "autoscaler/growing.h"

#include <fmt/format.h>

#include <algorithm>

#include "autoscaler/request_room.h"

namespace berth::autoscaler {

using placement::NodeInfo;
using placement::Trial;

namespace {

/// A pod that takes a request's room adds no node itself.
void note_consumer(Pass& pass, const PodPtr& pod) {
  const std::string key = fmt::format("{}/{}", pod->view().ns(), consumed_request(*pod));
  const bool is_there = std::ranges::any_of(pass.snapshot.requests, [&](const RequestPtr& request) { return request->key() == key; });
  pass.note(pod, {}, false, "NotTriggerScaleUp",
            fmt::format("Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest {}{}", key,
                        is_there ? "" : ", which is not there"));
}

/// Pods that the scheduler found no room for, most important first.
std::vector<PodPtr> find_pending(Pass& pass) {
  constexpr int kMostNotes = 50;
  int consumers = 0;
  std::vector<PodPtr> out;
  for (const auto& [key, pod] : pass.snapshot.pod_sets->unplaced) {
    const model::PodView& view = pod->view();
    if (!pod->facts.is_unschedulable || model::counts_as_daemon(pod->view().meta) || pod->facts.is_finished) continue;
    if (view.meta.is_deleting || !pass.options.may_add_nodes(view.priority)) continue;
    if (!consumed_request(*pod).empty()) {
      if (++consumers <= kMostNotes) note_consumer(pass, pod);
      continue;
    }
    const bool has_place = !view.nominated_node_name.empty() && pass.snapshot.cluster->find_node(view.nominated_node_name) != nullptr;
    if (!has_place) out.push_back(pod);
  }
  std::ranges::stable_sort(out, [](const PodPtr& a, const PodPtr& b) {
    if (a->view().priority != b->view().priority) return a->view().priority > b->view().priority;
    return a->facts.created < b->facts.created;
  });
  return out;
}

/// Not yet old enough that a node is added for it; its own delay counts where it is longer.
bool is_too_young(const Pod& pod, const Options& options, TimePoint now) {
  const Duration delay = std::max(scale_up_delay(pod).value_or(Duration::zero()), options.new_pod_scale_up_delay);
  return delay > Duration::zero() && pod.facts.created.value_or(TimePoint{}) + delay >= now;
}

/// Groups below their minimum grow to it, pods or not. True when one did.
bool grow_to_minimum(Pass& pass, ClusterLimits limits) {
  std::int64_t node_count = pass.state.node_count();
  for (std::size_t i = 0; i < pass.snapshot.groups.size(); ++i) {
    const NodeGroup& group = pass.snapshot.groups[i];
    const NodeTemplate& known = pass.template_of(group.id);
    if (group.target >= group.min || known.node == nullptr || !pass.state.why_not_ready(pass.out.status.groups[i], pass.now).empty())
      continue;
    std::int64_t more = group.min - group.target;
    if (pass.options.max_nodes_total > 0) more = std::min(more, pass.options.max_nodes_total - node_count);
    const Amounts cost = amounts_of(*known.node, pass.options);
    more = limits.allowed(cost, more);
    if (more <= 0) continue;
    limits.add(cost, more);
    node_count += more;
    record_growth(pass, {group.id, group.target, group.target + more, group.max});
  }
  return !pass.out.grow.empty();
}

}  // namespace

void Growing::run(Pass& pass, RequestRoom& requests, const ClusterLimits& limits) {
  look(pass, requests, limits);
  if (!pass.out.grow.empty()) last_ = pass.now;
}

void Growing::look(Pass& pass, RequestRoom& requests, const ClusterLimits& limits) const {
  const placement::PodGroups& pod_groups = pass.snapshot.pod_sets->groups;
  // Pods may wait for nodes that are on their way, but no pod may be moved to one: first what fits on the nodes that are there.
  std::vector<PodPtr> pending = find_pending(pass);
  WaitingGangs found = take_gangs(pending, pod_groups);
  for (const auto& [pod, why] : found.of_too_few) pass.note(pod, {}, false, "NotTriggerScaleUp", "pod didn't trigger scale-up: " + why);
  std::vector<Gang>& gangs = found.gangs;
  const std::size_t waiting = count_pods(pending, gangs);
  std::optional<Kinds> kinds;
  if (pass.thought.is_changed(waiting > 0))
    place_waiting_and_gangs(pass.thought.here(), pending, &kinds.emplace(pass.thought.here(), pending), gangs, pod_groups, nobody_asks);
  std::vector<Provisioning::Booking> bookings = requests.book_here(pass);
  if (count_pods(pending, gangs) > 0 || !bookings.empty() || requests.has_due()) {
    Trial soon = pass.thought.here().fork();
    for (const GroupStatus& group : pass.out.status.groups)
      if (const NodeTemplate& known = pass.template_of(group.id); known.node != nullptr)
        for (int i = 0; i < group.upcoming; ++i) add_node(soon, known, fmt::format("upcoming-{}-{}", group.id, i));
    // Who has room booked comes first: pods that are left get nodes of their own, pods that take a request's room never do.
    requests.book(pass, soon, bookings);
    if (kinds) {
      // A node that is there, on which a member of a gang will be once the others have places too, is needed.
      const auto hold_for_gang = [&](const PodPtr& pod, placement::NodeIndex node) {
        const NodeInfo* there =
            pod->facts.group.empty() ? nullptr : pass.thought.here().cluster().find_node(soon.cluster().node(node)->name);
        if (there != nullptr && there->node != nullptr) pass.thought.here().hold(pod->info, there->index);
      };
      place_waiting_and_gangs(soon, pending, &*kinds, gangs, pod_groups, hold_for_gang);
    }
    pass.out.status.placed_in_thought = waiting - count_pods(pending, gangs);
    std::erase_if(pending, [&](const PodPtr& pod) { return is_too_young(*pod, pass.options, pass.now); });
    std::erase_if(gangs, [&](const Gang& gang) {
      return std::ranges::any_of(gang.waiting, [&](const PodPtr& pod) { return is_too_young(*pod, pass.options, pass.now); });
    });
    pass.out.status.pending_pods = count_pods(pending, gangs);
    if (!pass.options.enforce_min_sizes || !grow_to_minimum(pass, limits)) {
      const bool waits = pass.out.status.pending_pods > 0;
      const bool is_done = requests.answer(pass, soon, waits, *this, limits);
      if (!is_done && waits) grow(pass, soon, std::move(pending), std::move(gangs), *kinds, limits);
    }
  } else {
    pass.out.status.placed_in_thought = waiting;
    if (pass.options.enforce_min_sizes) grow_to_minimum(pass, limits);
  }
}

ScaleUpInput Growing::input_for(const Pass& pass, Trial& soon, std::vector<PodPtr> pending, Kinds& kinds,
                                const ClusterLimits& limits) const {
  ScaleUpInput input{.trial = &soon,
                     .pending = std::move(pending),
                     .kinds = &kinds,
                     .groups = &pass.snapshot.groups,
                     .templates = &pass.templates,
                     .not_ready = {},
                     .limits = &limits,
                     .node_count = pass.state.node_count(),
                     .expander = {pass.snapshot.priorities, pass.snapshot.prices, pass.snapshot.pod_prices, ask_expander_},
                     .seed = seed_ + passes_,
                     .limit = pass.limit};
  for (const GroupStatus& group : pass.out.status.groups)
    if (const std::string_view why = pass.state.why_not_ready(group, pass.now); !why.empty()) input.not_ready[group.id] = why;
  return input;
}

void Growing::grow(Pass& pass, Trial& soon, std::vector<PodPtr> pending, std::vector<Gang> gangs, Kinds& kinds,
                   ClusterLimits limits) const {
  ScaleUpInput input = input_for(pass, soon, std::move(pending), kinds, limits);
  GangGrowth of_gangs(input, limits);
  of_gangs.plan_for(std::move(gangs), pass.snapshot.pod_sets->groups, pass.options);
  if (of_gangs.grows() && !input.pending.empty()) place_waiting(soon, input.pending, kinds, nobody_asks);
  ScaleUpPlan& plan = pass.out.status.plan = plan_scale_up(input, pass.options);
  for (const auto& [pod, gang, why] : of_gangs.refused())
    pass.note(pod, {}, false, "NotTriggerScaleUp", fmt::format("pod didn't trigger scale-up: {}: {}", gang, why_not_helped(plan, *why)));
  const std::vector<ScaleUpPlan::Refused> not_helped = plan.not_helped;
  of_gangs.add_to(plan);
  pass.out.status.left_groups = plan.left_groups;
  for (const auto& [reason, message] : plan.warnings) pass.note({}, {}, true, std::string(reason), message);
  if (plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal)
    pass.note({}, {}, true, "MaxNodesTotalReached", fmt::format("Max total nodes in cluster reached: {}", pass.options.max_nodes_total));
  if (plan.result != ScaleUpPlan::Result::kSuccessful) {
    for (const auto& [pod, why] : not_helped)
      pass.note(pod, {}, false, "NotTriggerScaleUp", "pod didn't trigger scale-up: " + why_not_helped(plan, *why));
    return;
  }
  for (const Resize& resize : plan.resizes) record_growth(pass, resize);
  for (const PodPtr& pod : plan.helped) pass.note(pod, {}, false, "TriggeredScaleUp", "pod triggered scale-up: " + to_string(plan.resizes));
}

void record_growth(Pass& pass, const Resize& resize) {
  pass.state.growth_started(resize.group, resize.to - resize.from, pass.now);
  pass.note({}, {}, false, "ScaledUpGroup",
            fmt::format("Scale-up: setting group {} size to {} instead of {} (max: {})", resize.group, resize.to, resize.from, resize.max));
  pass.out.grow.push_back(resize);
}

std::string why_not_helped(const ScaleUpPlan& plan, const Refusals& why) {
  if (plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal) return std::string(kMaxNodesTotalReached);
  // No group refused the pod, so there is none to grow.
  if (why.empty()) return "there is no node group: a MachineSet becomes one by a MachineAutoscaler that names it";
  return fmt::format("{}", fmt::join(count_reasons(why), ", "));
}

}  // namespace berth::autoscaler
