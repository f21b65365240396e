// When a fleet's nodes and pods have something to write, and whose turn it is.
#include "node/simulated/fleet_state.h"

namespace berth::node::simulated {
namespace {

constexpr Duration kBusy = std::chrono::milliseconds(50);  // So long after a pod's report nodes that merely live stay silent.

}  // namespace

void Fleet::schedule(const PodRef& pod, std::optional<TimePoint> when) {
  if (pod->wake == when) return;
  if (pod->wake) pod_wakes_.erase({*pod->wake, pod->arrival});
  pod->wake = when;
  if (when) pod_wakes_.emplace(std::pair(*when, pod->arrival), pod);
}

void Fleet::schedule(const NodeRef& node, TimePoint when) {
  if (node->wake != TimePoint{}) node_wakes_.erase({node->wake, node->arrival});
  node->wake = when;
  node_wakes_.emplace(std::pair(when, node->arrival), node);
}

void Fleet::enqueue(const PodRef& pod) {
  if (pod->is_queued || pod->is_writing || pod->is_gone || pod->node->is_dead) return;
  pod->is_queued = true;
  pod_queue_.push_back(pod);
}

void Fleet::enqueue(const NodeRef& node) {
  const auto wanted = has_news(*node) ? Node::Queue::kReports : Node::Queue::kRenewals;
  if (node->queue == wanted || node->queue == Node::Queue::kReports) return;
  if (node->is_writing || node->is_removed || node->is_foreign) return;
  node->queue = wanted;
  if (wanted == Node::Queue::kReports)
    node_queue_.push_back(node);
  else
    renewals_.emplace(std::pair(std::min(next_due(*node), node->next_lease), node->arrival), node);
}

std::optional<TimePoint> Fleet::next_wake() const {
  std::optional<TimePoint> next;
  if (!pod_wakes_.empty()) next = pod_wakes_.begin()->first.first;
  if (!node_wakes_.empty() && (!next || node_wakes_.begin()->first.first < *next)) next = node_wakes_.begin()->first.first;
  if (const auto from = renewals_from(); from && (!next || *from < *next)) next = from;
  return next;
}

void Fleet::advance(TimePoint now) {
  while (!node_wakes_.empty() && node_wakes_.begin()->first.first <= now) {
    const NodeRef node = node_wakes_.begin()->second;
    node_wakes_.erase(node_wakes_.begin());
    node->wake = TimePoint{};
    if ((node->pods_with_usage > 0 || !node->pressure.empty()) && node->next_check <= now && !node->is_dead) {
      node->next_check = now + kMonitoringInterval;
      check_pressure(node, now);
    }
    enqueue(node);
  }
  while (!pod_wakes_.empty() && pod_wakes_.begin()->first.first <= now) {
    const PodRef pod = pod_wakes_.begin()->second;
    const TimePoint due = *pod->wake;
    touch(pod, now);
    // A pod that wants to act at the same moment again waits for the next round, so that one pod cannot hold up the others.
    if (pod->wake && *pod->wake <= due) schedule(pod, now + std::chrono::milliseconds(1));
    if (pod->not_before <= now && (pod->is_dirty || (pod->is_deleting && pod->sim.is_stopped()))) enqueue(pod);
  }
}

bool Fleet::has_news(const Node& node) const {
  return node.needs_create || node.needs_status || node.needs_lease || node.last_word || !node.missing_labels.empty() ||
         node.numa.is_dirty || (options_.steady_heartbeats && !node.is_steady);
}

TimePoint Fleet::next_due(const Node& node) {
  const TimePoint heartbeat = node.is_steady && !node.is_dead ? TimePoint::max() : std::min(node.next_lease, node.next_status);
  // Nobody looks at a dead node's pressure: its next look stays in the past until it is back.
  const bool is_watched = !node.is_dead && (node.pods_with_usage > 0 || !node.pressure.empty());
  return std::max(node.not_before, is_watched ? std::min(heartbeat, node.next_check) : heartbeat);
}

/// A Lease that is renewed late is renewed so much the less often: where pods have much to tell, and very many nodes a heartbeat each, the
/// pods tell first, until the Lease that waits longest would soon run out. A kubelet of a busy cluster is late, too.
std::optional<TimePoint> Fleet::renewals_from() const {
  if (renewals_.empty()) return std::nullopt;
  return std::min(last_report_ + kBusy, renewals_.begin()->first.first + renewal_slack());
}

/// Never more than a Lease has: one whose period is set close to its duration is renewed in time.
Duration Fleet::renewal_slack() const {
  const Duration lasts = std::chrono::seconds(options_.kubelet.node_lease_duration_seconds);
  return std::max(lasts * 3 / 4 - lease_period(), Duration::zero());
}

/// Nodes and pods take turns: very many of one must not keep every one of the other waiting. What became due since is seen here, too: who
/// writes without a pause asks for nothing else, and nodes would fall silent.
std::optional<Write> Fleet::next_write(TimePoint now) {
  advance(now);
  if (auto late = next_renewal(now, true)) return late;
  pods_turn_ = !pods_turn_;
  auto write = pods_turn_ ? next_pod_write(now) : next_report(now);
  if (!write) write = pods_turn_ ? next_report(now) : next_pod_write(now);
  if (!write) write = next_renewal(now, false);
  if (!write && !events_.empty()) {
    write = std::move(events_.front());
    events_.pop_front();
  }
  return write;
}

std::optional<Write> Fleet::next_report(TimePoint now) {
  while (!node_queue_.empty()) {
    const NodeRef node = std::move(node_queue_.front());
    node_queue_.pop_front();
    if (node->queue != Node::Queue::kReports) continue;
    if (auto write = take_write(node, now)) return write;
  }
  return std::nullopt;
}

std::optional<Write> Fleet::next_renewal(TimePoint now, bool only_late) {
  while (!renewals_.empty() && (only_late ? renewals_.begin()->first.first + renewal_slack() : *renewals_from()) <= now) {
    const NodeRef node = std::move(renewals_.begin()->second);
    renewals_.erase(renewals_.begin());
    if (node->queue != Node::Queue::kRenewals) continue;
    if (auto write = take_write(node, now)) return write;
  }
  return std::nullopt;
}

std::optional<Write> Fleet::take_write(const NodeRef& node, TimePoint now) {
  node->queue = Node::Queue::kNone;
  if (node->is_removed || node->is_foreign) return std::nullopt;
  auto write = node_write(*node, now);
  node->is_writing = write.has_value();
  if (!write)
    if (const TimePoint next = next_due(*node); next != TimePoint::max()) schedule(node, next);
  return write;
}

std::optional<Write> Fleet::next_pod_write(TimePoint now) {
  while (!pod_queue_.empty()) {
    const PodRef pod = pod_queue_.front();
    pod_queue_.pop_front();
    pod->is_queued = false;
    if (pod->is_gone || pod->node->is_dead) continue;
    if (pod->not_before > now) {
      schedule(pod, pod->wake ? std::min(*pod->wake, pod->not_before) : pod->not_before);
      continue;
    }
    if (auto write = pod_write(*pod, now)) {
      pod->is_writing = true;
      last_report_ = now;
      return write;
    }
  }
  return std::nullopt;
}

}  // namespace berth::node::simulated
