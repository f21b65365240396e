// Which waiting pods an event wakes.
#include <algorithm>

#include "scheduler/core.h"

namespace berth::scheduler {

using placement::NodeIndex;
using placement::PodInfo;

namespace {

constexpr std::size_t kCrowd = 1000;

}  // namespace

void Core::wake(EventSet events, NodeIndex node, EventChange change, std::optional<std::int64_t> up_to_priority) {
  note_missed(events);
  std::size_t moved = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(ClusterEvent::kCount); ++i) {
    change.event = static_cast<ClusterEvent>(i);
    if (!events.has(change.event)) continue;
    if (!up_to_priority && could_open_gates(change.event)) ask_gates(change);
    if (could_wake(change.event)) moved += wake_for(node, change, event_label(change.event), up_to_priority);
  }
  if (moved > 0) post_turn();
}

bool Core::could_wake(EventSet events) const { return queue.holds_rejected_by(bits.cured_by(events)); }

bool Core::could_open_gates(ClusterEvent event) const {
  return std::ranges::any_of(gates, [&](const auto& gate) { return gate.second.asked_again_on.has(event); });
}

void Core::ask_gates(const EventChange& change) {
  std::vector<std::string> asked;
  for (const auto& [name, gate] : gates) {
    if (!gate.asked_again_on.has(change.event)) continue;
    for (const std::string& uid : gate.uids) {
      const placement::PodInfo& pod = *pods.at(uid).info;
      const placement::Plugin* plugin = frameworks.at(pod.view().scheduler_name)->find(name);
      if (plugin != nullptr && plugin->gate_events().has(change.event) && plugin->queueing_hint(cluster, pod, change)) asked.push_back(uid);
    }
  }
  for (const std::string& uid : asked) ask_gate(pods.at(uid));
}

void Core::ask_gate(Tracked& tracked) {
  const SchedulingQueue::Entry* queued = queue.find(tracked.info->view().meta.uid);
  if (queued == nullptr) return;
  const model::PodView& pod = tracked.info->view();
  const placement::Status gate = gate_of(pod);
  set_gate(tracked, gate.plugin);
  if (gate.is_success() != queued->pod.gated) return;
  QueuedPod same = queued->pod;
  same.gated = !gate.is_success();
  queue.add_or_update(same, now, false);
  post_turn();
}

std::size_t Core::wake_for(NodeIndex node, const EventChange& change, std::string_view label, std::optional<std::int64_t> up_to_priority) {
  const placement::NodeInfo* on = node.is_valid() ? cluster.node(node) : nullptr;
  if (on != nullptr && on->node == nullptr) on = nullptr;
  // Hints are generous. Where thousands wait, each event would have all of them tried: then the node of the event must take the pod, for as
  // many kinds of pods as can be asked about.
  const bool is_crowded = on != nullptr && queue.sizes().unschedulable > kCrowd;
  std::size_t checks_left = 200;
  const auto helps = [&](const SchedulingQueue::Entry& entry) {
    if (up_to_priority && entry.pod.priority > *up_to_priority) return false;
    const Tracked* pod = wanting(entry.pod.uid);
    if (pod == nullptr || entry.rejected_by == 0) return true;
    const PodInfo& pending = *pod->info;
    if (!bits.any_hint(entry.rejected_by, *frameworks.at(pending.view().scheduler_name), cluster, pending, change)) return false;
    return !is_crowded || checks_left == 0 || (--checks_left, node_takes(entry.pod.uid, *on));
  };
  const auto may_move = [&](const SchedulingQueue::Entry& entry) { return !waits_for_victims(entry.pod.uid); };
  return queue.wake(bits.cured_by(change.event), now, helps, label, may_move);
}

void Core::wake_pod(const std::string& uid) {
  if (!waits_for_victims(uid) && queue.wake_one(uid, now)) post_turn();
}

bool Core::waits_for_victims(const std::string& uid) {
  Tracked* pod = preempted_by.empty() ? nullptr : wanting(uid);
  Preempting* open = pod != nullptr ? pod->as<Preempting>() : nullptr;
  if (open == nullptr && pod != nullptr && !group_preempting.empty()) {
    // One member waits for all of them.
    const auto waiter = group_preempting.find(groups.group_of(uid));
    Tracked* other = waiter != group_preempting.end() ? wanting(waiter->second) : nullptr;
    open = other != nullptr ? other->as<Preempting>() : nullptr;
  }
  if (open == nullptr) return false;
  open->missed_event = true;
  return true;
}

bool Core::node_takes(const std::string& uid, const placement::NodeInfo& node) {
  const Tracked* pod = wanting(uid);
  if (pod == nullptr) return true;
  const placement::PodInfoPtr& info = pod->info;
  const placement::Status status = trial.fits(info, node.index);
  if (status.is_success() || status.is_error()) return true;
  if (status.code != placement::Code::kUnschedulable || info->view().preemption_never ||
      frameworks.at(info->view().scheduler_name)->profile().post_filter.empty())
    return false;
  if (const std::string& nominated = pod->nominated(); !nominated.empty()) {
    const placement::NodeInfo* promised = cluster.find_node(nominated);
    const bool victims_go = promised != nullptr && std::ranges::any_of(promised->pods, [&](const auto& other) {
                              return other->view().meta.is_deleting && other->view().priority < info->view().priority;
                            });
    if (victims_go) return false;        // Its room is being made.
    if (promised == &node) return true;  // The room did not come: somebody else is there.
  }
  // The event may have been what a preemption here lacked.
  const auto could_go = [&](const placement::PodInfoPtr& other) { return other->view().priority < info->view().priority; };
  placement::Status why;
  return std::ranges::any_of(node.pods, could_go) && trial.victims_on(*info, node.index, why).has_value();
}

void Core::wake_for_nomination(const placement::PodInfoPtr& pod, const std::string& node_name) {
  const placement::NodeInfo* node = node_name.empty() ? nullptr : cluster.find_node(node_name);
  if (node == nullptr) return;
  wake(ClusterEvent::kAssignedPodDeleted, node->index, {.pod_before = pod.get()}, pod->view().priority);
}

void Core::wake_nominated(NodeIndex node) {
  const placement::NodeInfo* on = cluster.node(node);
  for (const placement::PodInfoPtr& pod : cluster.nominated(node)) {
    const std::string uid = pod->view().meta.uid;
    if (const Tracked* known = wanting(uid); known != nullptr && known->as<Preempting>() != nullptr) continue;
    if (on != nullptr && on->node != nullptr) {
      const placement::FrameworkPtr& framework = frameworks.at(pod->view().scheduler_name);
      auto state = framework->new_cycle(cluster);
      const auto outcome = framework->run_pre_filter(state, *pod);
      const bool is_hopeless = outcome.status.is_success() && framework->run_filter_with_nominated(state, *pod, *on).code ==
                                                                  placement::Code::kUnschedulableAndUnresolvable;
      if (!is_hopeless) continue;
    }
    queue.wake_one(uid, now);
  }
  post_turn();
}

}  // namespace berth::scheduler
