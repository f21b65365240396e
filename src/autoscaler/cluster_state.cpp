#include "autoscaler/cluster_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::autoscaler {
namespace {

/// More than three, and more than 45 of a hundred (--ok-total-unready-count, --max-total-unready-percentage).
bool are_too_many(std::int64_t broken, std::int64_t all) { return broken > 3 && broken * 100 > all * 45; }

}  // namespace

/// One look; the parts in order of running.
class ClusterState::Update {
 public:
  Update(ClusterState& self, const Snapshot& snapshot, const Options& options, TimePoint now, Actions& out)
      : self_(self), snapshot_(snapshot), options_(options), now_(now), out_(out) {}

  Memberships run() {
    self_.not_started_.clear();
    for (const NodeGroup& group : snapshot_.groups) count_group(group);
    self_.unregistered_since_ = std::move(unregistered_since_);
    self_.failed_ = std::move(failed_);
    count_all();
    for (std::size_t i = 0; i < snapshot_.groups.size(); ++i) {
      note_failures(snapshot_.groups[i]);
      end_growth(snapshot_.groups[i], out_.status.groups[i]);
      judge(snapshot_.groups[i], out_.status.groups[i]);
      delete_late_machines(snapshot_.groups[i]);
      lower_unmet_target(snapshot_.groups[i]);
    }
    return std::move(memberships_);
  }

 private:
  [[nodiscard]] const NodeFacts* facts_of(const std::string& node) const {
    const auto found = snapshot_.nodes->find(node);
    return node.empty() || found == snapshot_.nodes->end() ? nullptr : &found->second;
  }
  [[nodiscard]] Duration provision_time(const NodeGroup& group) const {
    return group.overrides.max_node_provision_time.value_or(options_.max_node_provision_time);
  }
  [[nodiscard]] bool is_late(const NodeGroup& group, const Instance& instance) const {
    const auto since = self_.unregistered_since_.find(instance.id);
    return since != self_.unregistered_since_.end() && since->second + provision_time(group) < now_;
  }
  static void count(GroupStatus& status, const NodeFacts& node, Readiness readiness) {
    ++(readiness == Readiness::kReady ? status.ready : readiness == Readiness::kUnready ? status.unready : status.not_started);
    if (readiness == Readiness::kUnready && node.is_ready && (node.lacks_device || node.lacks_slices)) ++status.resource_unready;
  }

  void count_group(const NodeGroup& group) {
    GroupStatus status{.id = group.id, .min = group.min, .max = group.max, .target = group.target};
    std::vector<std::string> not_started;
    for (const Instance& instance : group.instances) {
      const NodeFacts* node = facts_of(instance.node);
      if (node != nullptr) memberships_[instance.node] = {&group, &instance};
      if (instance.is_leaving) {
        status.being_deleted += node != nullptr;
      } else if (node != nullptr) {
        const Readiness readiness = readiness_of(*node, now_);
        count(status, *node, readiness);
        if (readiness == Readiness::kNotStarted) not_started.push_back(instance.node);
      } else if (!instance.failure.empty()) {
        // It is deleted in this pass; what its pods need instead is for the next one, which sees what there is without it.
        failed_.insert(instance.id);
        const bool is_known = self_.failed_.contains(instance.id);
        ++(is_known ? status.failed : status.unregistered);
        if (!is_known) newly_failed_[group.id].push_back(&instance);
      } else {
        const auto before = self_.unregistered_since_.find(instance.id);
        const TimePoint since = unregistered_since_[instance.id] = before == self_.unregistered_since_.end() ? now_ : before->second;
        ++(since + provision_time(group) < now_ ? status.long_unregistered : status.unregistered);
      }
    }
    const int present = status.ready + status.unready + status.long_unregistered + status.failed;
    status.upcoming = static_cast<int>(std::clamp<std::int64_t>(group.target - present, 0, 10'000));
    if (status.upcoming > 0) std::ranges::move(not_started, std::back_inserter(self_.not_started_));
    out_.status.groups.push_back(std::move(status));
  }

  void count_all() {
    GroupStatus& whole = out_.status.whole;
    whole.being_deleted += static_cast<int>(snapshot_.totals->to_be_deleted);
    whole.ready += static_cast<int>(snapshot_.totals->working);
    for (const std::string& name : snapshot_.totals->not_working) {
      const NodeFacts& node = snapshot_.nodes->find(name)->second;
      count(whole, node, readiness_of(node, now_));
    }
    const int registered = whole.ready + whole.unready + whole.not_started;
    out_.status.is_healthy = !are_too_many(whole.unready, registered);
    self_.node_count_ = registered - static_cast<std::int64_t>(self_.not_started_.size());
    for (const GroupStatus& group : out_.status.groups) {
      whole.unregistered += group.unregistered;
      whole.long_unregistered += group.long_unregistered;
      whole.upcoming += group.upcoming;
      self_.node_count_ += group.upcoming;
    }
  }

  /// Machines that will never be nodes: their group pauses, if it was growing, and what pods wait for is looked for elsewhere.
  void note_failures(const NodeGroup& group) {
    const auto failed = newly_failed_.find(group.id);
    if (failed == newly_failed_.end()) return;
    constexpr std::ptrdiff_t kMostTold = 3;
    std::set<std::string> why;
    for (const Instance* instance : failed->second) why.insert(instance->failure);
    const std::vector<std::string> told(why.begin(), std::next(why.begin(), std::ssize(why) > kMostTold ? kMostTold : std::ssize(why)));
    const std::string message = fmt::format("Failed adding {} nodes to group {}: {}{}", failed->second.size(), group.id,
                                            fmt::join(told, ", "), std::ssize(why) > kMostTold ? ", ..." : "");
    out_.notes.push_back({{}, {}, true, "ScaleUpFailed", message});
    const auto growth = self_.growing_.find(group.id);
    if (growth == self_.growing_.end()) return;
    const Growth left{growth->second.since, growth->second.nodes - std::ssize(failed->second)};
    out_.failed_growth.push_back(group.id);
    self_.growth_failed(group.id, fmt::format("{}", fmt::join(told, ", ")), options_, now_);
    if (left.nodes > 0) self_.growing_[group.id] = left;
  }

  /// Growth has arrived, or did not become nodes in time: then the group pauses.
  void end_growth(const NodeGroup& group, const GroupStatus& status) {
    const auto growth = self_.growing_.find(group.id);
    if (growth == self_.growing_.end()) return;
    if (status.upcoming == 0 && status.long_unregistered == 0) {
      self_.growing_.erase(growth);
      // A pause that began meanwhile is for those of its machines that failed.
      if (const auto pause = self_.backoffs_.find(group.id); pause != self_.backoffs_.end() && pause->second.until <= now_)
        self_.backoffs_.erase(pause);
    } else if (growth->second.since + provision_time(group) < now_) {
      out_.notes.push_back(
          {{},
           {},
           true,
           "ScaleUpTimedOut",
           fmt::format("Nodes added to group {} failed to register within {}", group.id, format_go_duration(now_ - growth->second.since))});
      self_.growth_failed(group.id, "timeout", options_, now_);
    }
  }

  /// Healthy: what is missing of ready nodes is accounted for by growth under way, or little (IsNodeGroupHealthy).
  void judge(const NodeGroup& group, GroupStatus& status) const {
    const auto growth = self_.growing_.find(group.id);
    const std::int64_t expected =
        group.target - status.long_unregistered - status.failed - (growth == self_.growing_.end() ? 0 : growth->second.nodes);
    const int known = status.ready + status.unready + status.not_started;
    if (known + status.being_deleted + status.unregistered + status.long_unregistered + status.failed == 0)
      status.is_healthy = group.target == 0 || expected == 0;
    else
      status.is_healthy = !are_too_many(expected - status.ready, known);
  }

  void delete_late_machines(const NodeGroup& group) {
    std::int64_t left = group.target;
    for (const Instance& instance : group.instances) {
      if (instance.is_leaving || facts_of(instance.node) != nullptr || left <= group.min) continue;
      if (instance.failure.empty() && !is_late(group, instance)) continue;
      --left;
      out_.delete_instances.push_back({group.id, instance.id, !instance.failure.empty()});
      out_.notes.push_back({{},
                            {},
                            false,
                            "DeleteUnregistered",
                            fmt::format("Removed {} node {}", instance.failure.empty() ? "unregistered" : "failed", instance.id)});
    }
  }

  void lower_unmet_target(const NodeGroup& group) {
    const auto there = std::ranges::count(group.instances, false, &Instance::is_leaving);
    if (group.target <= there) {
      self_.missing_since_.erase(group.id);
    } else if (const auto since = self_.missing_since_.try_emplace(group.id, now_).first->second;
               since + provision_time(group) < now_ && group.target > group.min) {
      out_.give_up.push_back({group.id, group.target, std::max<std::int64_t>(there, group.min), group.max});
      self_.missing_since_.erase(group.id);
    }
  }

  ClusterState& self_;
  const Snapshot& snapshot_;
  const Options& options_;
  TimePoint now_;
  Actions& out_;
  Memberships memberships_;
  std::map<std::string, TimePoint> unregistered_since_;
  std::set<std::string> failed_;
  std::map<std::string, std::vector<const Instance*>> newly_failed_;  ///< By group.
};

Memberships ClusterState::update(const Snapshot& snapshot, const Options& options, TimePoint now, Actions& out) {
  return Update(*this, snapshot, options, now, out).run();
}

std::string_view ClusterState::why_not_ready(const GroupStatus& group, TimePoint now) const {
  if (!group.is_healthy) return "not ready for scale-up";
  const auto pause = backoffs_.find(group.id);
  return pause != backoffs_.end() && pause->second.until > now ? "in backoff after failed scale-up" : "";
}

void ClusterState::growth_started(const std::string& group, std::int64_t nodes, TimePoint now) {
  Growth& growth = growing_[group];
  growth.since = now;
  growth.nodes += nodes;
}

void ClusterState::growth_failed(const std::string& group, const std::string& message, const Options& options, TimePoint now) {
  growing_.erase(group);
  Backoff& pause = backoffs_[group];
  const bool is_fresh = pause.length == Duration::zero() || pause.last + options.backoff_reset < now;
  pause.length = is_fresh ? options.initial_backoff : std::min(pause.length * 2, options.max_backoff);
  pause.until = now + pause.length;
  pause.last = now;
  pause.message = message;
}

void ClusterState::describe(std::vector<GroupStatus>& groups, TimePoint now) const {
  for (GroupStatus& group : groups) {
    group.is_growing = growing_.contains(group.id);
    const auto pause = backoffs_.find(group.id);
    group.is_in_backoff = pause != backoffs_.end() && pause->second.until > now;
    if (group.is_in_backoff) group.backoff_message = pause->second.message;
  }
}

void ClusterState::shift_times(Duration jump) {
  for (auto& [group, growth] : growing_) growth.since += jump;
  for (auto& [group, backoff] : backoffs_) {
    backoff.until += jump;
    backoff.last += jump;
  }
  for (auto* times : {&missing_since_, &unregistered_since_})
    for (auto& [name, since] : *times) since += jump;
}

}  // namespace berth::autoscaler
