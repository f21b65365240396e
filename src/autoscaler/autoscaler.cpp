#include "autoscaler/autoscaler.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::autoscaler {

using placement::NodeInfo;
using placement::PodInfoPtr;
using placement::Trial;

/// One pass; the parts in order of running.
class Autoscaler::Step {
 public:
  Step(Autoscaler& self, const Snapshot& snapshot, const Options& options, TimePoint now)
      : self_(self),
        snapshot_(snapshot),
        options_(options),
        now_(now),
        as_is_(Trial::on_fork(*snapshot.cluster, self.profiles_,
                              {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}})) {}

  Actions run() {
    count_nodes();
    give_up_late_growth();
    make_templates();
    const ClusterLimits limits(snapshot_, template_nodes_, options_);
    out_.status.totals = limits.totals();
    if (!out_.status.is_healthy) {
      note({}, {}, true, "ClusterUnhealthy", "Cluster is unhealthy");
      return std::move(out_);
    }
    // Two views: pods may wait for nodes that are on their way, but no pod may be moved to one.
    Trial here = as_is_.fork();
    drop_expendable(here);
    place_nominated(here);
    Trial soon = here.fork();
    for (const GroupStatus& group : out_.status.groups)
      if (const NodeTemplate& known = templates_.find(group.id)->second; known.node != nullptr)
        for (int i = 0; i < group.upcoming; ++i) add_node(soon, known, fmt::format("upcoming-{}-{}", group.id, i));
    std::vector<PodPtr> pending = find_pending();
    for (const PodPtr& pod : pending) (void)here.place(pod->info);
    std::erase_if(pending, [&](const PodPtr& pod) { return soon.place(pod->info).is_placed(); });
    out_.status.pending_pods = pending.size();
    if (!grow_to_minimum(limits)) grow(soon, std::move(pending), limits);
    if (out_.grow.empty()) shrink(here, limits);
    publish_group_states();
    return std::move(out_);
  }

 private:
  void note(PodPtr pod, std::string node, bool is_warning, std::string reason, std::string message) {
    out_.notes.push_back({std::move(pod), std::move(node), is_warning, std::move(reason), std::move(message)});
  }

  // How many nodes there are of each kind, and how many are to come (clusterstate).
  void count_nodes() {
    std::set<std::string_view> of_groups;
    for (const NodeGroup& group : snapshot_.groups) {
      GroupStatus status{.id = group.id, .min = group.min, .max = group.max, .target = group.target};
      int present = 0;
      for (const Instance& instance : group.instances) {
        const NodeInfo* node = instance.node.empty() ? nullptr : snapshot_.cluster->find_node(instance.node);
        if (node != nullptr && node->node != nullptr) {
          of_groups.insert(instance.node);
          group_of_[instance.node] = &group;
          if (instance.is_leaving) {
            ++status.being_deleted;
            continue;
          }
          const Readiness readiness = readiness_of(*node->node, now_);
          ++(readiness == Readiness::kReady ? status.ready : readiness == Readiness::kUnready ? status.unready : status.not_started);
          // A node that has not started yet is still to come.
          if (readiness != Readiness::kNotStarted) ++present;
        } else if (!instance.is_leaving) {
          const bool is_late = instance.created + options_.max_node_provision_time < now_;
          ++(is_late ? status.long_unregistered : status.unregistered);
          if (is_late) ++present;
        }
      }
      status.upcoming = static_cast<int>(std::clamp<std::int64_t>(group.target - present, 0, 10'000));
      const int broken = status.unready + status.long_unregistered;
      status.is_healthy = broken <= 3 || broken * 100 <= 45 * (status.ready + broken);
      out_.status.groups.push_back(status);
    }
    GroupStatus& whole = out_.status.whole;
    for (const NodeInfo* node : snapshot_.cluster->nodes()) {
      ++node_count_;
      if (has_taint(*node->node, kToBeDeletedTaint)) ++whole.being_deleted;
      const Readiness readiness = readiness_of(*node->node, now_);
      ++(readiness == Readiness::kReady ? whole.ready : readiness == Readiness::kUnready ? whole.unready : whole.not_started);
    }
    for (const GroupStatus& group : out_.status.groups) {
      whole.unregistered += group.unregistered;
      whole.long_unregistered += group.long_unregistered;
      whole.upcoming += group.upcoming;
      // Nodes that have not started are counted as nodes already.
      node_count_ += std::max(group.upcoming - group.not_started, 0);
    }
    const int broken = whole.unready + whole.long_unregistered;
    out_.status.is_healthy = broken <= 3 || broken * 100 <= 45 * (whole.ready + broken);
  }

  // Growth that did not become nodes in time: the group pauses, its machines are deleted.
  void give_up_late_growth() {
    for (std::size_t i = 0; i < snapshot_.groups.size(); ++i) {
      const NodeGroup& group = snapshot_.groups[i];
      const GroupStatus& status = out_.status.groups[i];
      if (const auto growth = self_.growing_.find(group.id); growth != self_.growing_.end()) {
        if (status.upcoming == 0 && status.long_unregistered == 0) {
          self_.growing_.erase(growth);
          self_.backoffs_.erase(group.id);
        } else if (growth->second.since + options_.max_node_provision_time < now_) {
          note({}, {}, true, "ScaleUpTimedOut",
               fmt::format("Nodes added to group {} failed to register within {}", group.id,
                           format_go_duration(now_ - growth->second.since)));
          self_.back_off(group.id, "timeout", options_, now_);
          self_.growing_.erase(growth);
        }
      }
      std::int64_t left = group.target;
      for (const Instance& instance : group.instances) {
        const bool has_node = !instance.node.empty() && snapshot_.cluster->find_node(instance.node) != nullptr;
        if (has_node || instance.is_leaving || instance.created + options_.max_node_provision_time >= now_ || left <= group.min) continue;
        --left;
        out_.delete_instances.emplace_back(group.id, instance.id);
        note({}, {}, false, "DeleteUnregistered", fmt::format("Removed unregistered node {}", instance.id));
      }
      const auto there = std::ranges::count(group.instances, false, &Instance::is_leaving);
      if (group.target <= there) {
        self_.missing_since_.erase(group.id);
      } else if (const auto since = self_.missing_since_.try_emplace(group.id, now_).first->second;
                 since + options_.max_node_provision_time < now_ && group.target > group.min) {
        out_.give_up.push_back({group.id, group.target, std::max<std::int64_t>(there, group.min), group.max});
        self_.missing_since_.erase(group.id);
      }
    }
  }

  void make_templates() {
    for (const NodeGroup& group : snapshot_.groups) {
      NodeTemplate made = make_template(group, snapshot_, as_is_, now_);
      template_nodes_[group.id] = made.node;
      templates_[group.id] = std::move(made);
    }
  }

  [[nodiscard]] bool is_expendable(const model::PodView& pod) const { return pod.priority < options_.pod_priority_threshold; }

  // Pods below the threshold hold no node: they are as if they were not there.
  void drop_expendable(Trial& trial) const {
    for (const auto& [key, pod] : *snapshot_.pods)
      if (is_expendable(pod->view()) && !pod->facts.is_daemon) trial.evict(pod->info);
  }

  // Pods that wait for the end of others on a node have their place there.
  void place_nominated(Trial& trial) const {
    for (const auto& [key, pod] : *snapshot_.pods) {
      const std::string& name = pod->view().nominated_node_name;
      if (name.empty() || !pod->view().node_name.empty() || is_expendable(pod->view())) continue;
      const NodeInfo* node = trial.cluster().find_node(name);
      if (node == nullptr || node->node == nullptr) continue;
      // Its victims hold what it will have until they are gone: then it counts there all the same.
      if (!trial.reserve(pod->info, node->index)) trial.cluster().assume(pod->info, node->index);
    }
  }

  /// Pods that the scheduler found no room for, most important first.
  [[nodiscard]] std::vector<PodPtr> find_pending() const {
    std::vector<PodPtr> out;
    for (const auto& [key, pod] : *snapshot_.pods) {
      const model::PodView& view = pod->view();
      if (!view.node_name.empty() || !pod->facts.is_unschedulable || pod->facts.is_daemon || pod->facts.is_finished) continue;
      if (view.meta.is_deleting || is_expendable(view)) continue;
      const bool has_place = !view.nominated_node_name.empty() && snapshot_.cluster->find_node(view.nominated_node_name) != nullptr;
      if (has_place || pod->facts.created + options_.new_pod_scale_up_delay > now_) continue;
      out.push_back(pod);
    }
    std::ranges::stable_sort(out, [](const PodPtr& a, const PodPtr& b) {
      if (a->view().priority != b->view().priority) return a->view().priority > b->view().priority;
      return a->facts.created < b->facts.created;
    });
    return out;
  }

  [[nodiscard]] std::string why_not_ready(const GroupStatus& group) const {
    if (const auto pause = self_.backoffs_.find(group.id); pause != self_.backoffs_.end() && pause->second.until > now_)
      return "in backoff after failed scale-up";
    return group.is_healthy ? "" : "not ready for scale-up";
  }

  void record_growth(const Resize& resize) {
    Growth& growth = self_.growing_[resize.group];
    growth.since = now_;
    growth.nodes += resize.to - resize.from;
    note({}, {}, false, "ScaledUpGroup",
         fmt::format("Scale-up: setting group {} size to {} instead of {} (max: {})", resize.group, resize.to, resize.from, resize.max));
    out_.grow.push_back(resize);
  }

  /// A group below its minimum grows to it, pods or not. True when one did.
  bool grow_to_minimum(ClusterLimits limits) {
    for (std::size_t i = 0; i < snapshot_.groups.size(); ++i) {
      const NodeGroup& group = snapshot_.groups[i];
      if (group.target >= group.min || !why_not_ready(out_.status.groups[i]).empty()) continue;
      std::int64_t more = group.min - group.target;
      if (options_.max_nodes_total > 0) more = std::min(more, options_.max_nodes_total - node_count_);
      if (const auto& node = template_nodes_[group.id]; node != nullptr) {
        const Amounts cost = amounts_of(*node, options_);
        more = limits.allowed(cost, more);
        if (more > 0) limits.add(cost, more);
      }
      if (more <= 0) continue;
      node_count_ += more;
      record_growth({group.id, group.target, group.target + more, group.max});
    }
    if (!out_.grow.empty()) self_.last_growth_ = now_;
    return !out_.grow.empty();
  }

  /// No group refused the pod, so there is none to grow.
  [[nodiscard]] std::string no_reasons() const {
    return snapshot_.groups.empty() ? "there is no node group: a MachineSet becomes one by a MachineAutoscaler that names it"
                                    : "no node group can grow";
  }

  void grow(Trial& soon, std::vector<PodPtr> pending, const ClusterLimits& limits) {
    ScaleUpInput input{.trial = &soon,
                       .pending = std::move(pending),
                       .groups = &snapshot_.groups,
                       .templates = &templates_,
                       .not_ready = {},
                       .limits = &limits,
                       .node_count = node_count_,
                       .priorities = snapshot_.priorities,
                       .seed = self_.seed_ + self_.steps_};
    for (const GroupStatus& group : out_.status.groups)
      if (std::string why = why_not_ready(group); !why.empty()) input.not_ready[group.id] = std::move(why);
    ScaleUpPlan plan = plan_scale_up(input, options_);
    out_.status.scale_up = plan.result;
    for (std::string& warning : plan.warnings) note({}, {}, true, "PriorityConfigMapInvalid", std::move(warning));
    if (plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal)
      note({}, {}, true, "MaxNodesTotalReached", fmt::format("Max total nodes in cluster reached: {}", options_.max_nodes_total));
    if (plan.result != ScaleUpPlan::Result::kSuccessful) {
      for (auto& [pod, reasons] : plan.not_helped)
        note(pod, {}, false, "NotTriggerScaleUp", "pod didn't trigger scale-up: " + (reasons.empty() ? no_reasons() : reasons));
      return;
    }
    for (const Resize& resize : plan.resizes) record_growth(resize);
    for (const PodPtr& pod : plan.helped) note(pod, {}, false, "TriggeredScaleUp", "pod triggered scale-up: " + to_string(plan.resizes));
    self_.last_growth_ = now_;
  }

  /// Nodes of groups: those unneeded before first, then empty ones, then the others by name.
  [[nodiscard]] std::vector<std::string> candidates(const Trial& here) const {
    std::vector<std::tuple<int, int, std::string>> order;
    for (const auto& [name, group] : group_of_) {
      if (self_.removing_.contains(name)) continue;
      const NodeInfo* node = here.cluster().find_node(name);
      const bool is_empty = node != nullptr && std::ranges::all_of(node->pods, [&](const PodInfoPtr& info) {
                              const auto pod = snapshot_.pods->find(info->key);
                              return pod != snapshot_.pods->end() && (pod->second->facts.is_daemon || pod->second->facts.is_mirror);
                            });
      order.emplace_back(self_.unneeded_.contains(name) ? 0 : 1, is_empty ? 0 : 1, name);
    }
    std::ranges::sort(order);
    std::vector<std::string> out;
    for (auto& entry : order) out.push_back(std::move(std::get<2>(entry)));
    return out;
  }

  /// Pods of nodes that are going need places before any other node's.
  void place_leaving(Trial& here) const {
    for (const NodeInfo* node : snapshot_.cluster->nodes()) {
      if (!has_taint(*node->node, kToBeDeletedTaint) && !self_.removing_.contains(node->name)) continue;
      std::vector<PodPtr> leaving;
      for (const PodInfoPtr& info : node->pods)
        if (const auto pod = snapshot_.pods->find(info->key); pod != snapshot_.pods->end() && !pod->second->facts.is_daemon &&
                                                              !pod->second->facts.is_mirror && !is_expendable(pod->second->view()))
          leaving.push_back(pod->second);
      std::vector<placement::Eviction> evicted;
      for (const PodPtr& pod : leaving) evicted.push_back(here.evict(pod->info));
      here.cluster().remove_node(node->name);
      for (const placement::Eviction& eviction : evicted) (void)here.place(here.renew(eviction));
    }
  }

  void shrink(Trial& here, ClusterLimits limits) {
    if (!options_.scale_down_enabled) {
      self_.unneeded_.clear();
      untaint_all();
      return;
    }
    place_leaving(here);
    ScaleDownFindings found = find_removable({&snapshot_, &here, group_of_, candidates(here)}, options_, now_);
    std::map<std::string, TimePoint> unneeded;
    for (const Removable& removable : found.removable) {
      const auto since = self_.unneeded_.find(removable.node);
      unneeded[removable.node] = since == self_.unneeded_.end() ? now_ : since->second;
    }
    self_.unneeded_ = std::move(unneeded);
    out_.status.unneeded = self_.unneeded_;
    out_.status.unremovable = std::move(found.unremovable);
    const auto pauses = [&](const std::optional<TimePoint>& since, Duration length) { return since && *since + length > now_; };
    out_.status.is_scale_down_paused = pauses(self_.last_growth_, options_.delay_after_add) ||
                                       pauses(self_.last_removal_, options_.delay_after_delete) ||
                                       pauses(self_.last_removal_failure_, options_.delay_after_failure);
    if (!out_.status.is_scale_down_paused) choose_removals(found.removable, limits);
    if (out_.remove.empty()) soft_taint();
  }

  void choose_removals(std::vector<Removable>& removable, ClusterLimits& limits) {
    // Empty nodes first, then those whose pods can all be evicted at once.
    std::ranges::stable_sort(removable, {}, [](const Removable& one) { return std::pair(!one.moved.empty(), one.is_risky); });
    std::map<std::string, std::int64_t> left;
    for (const NodeGroup& group : snapshot_.groups) left[group.id] = group.target;
    int under_way = static_cast<int>(self_.removing_.size()), drains = 0;
    for (const auto& [node, is_drained] : self_.removing_) {
      drains += is_drained;
      if (const auto group = group_of_.find(node); group != group_of_.end()) {
        const auto instance = std::ranges::find(group->second->instances, node, &Instance::node);
        if (!instance->is_leaving) --left[group->second->id];
      }
    }
    for (const Removable& one : removable) {
      const auto stays = [&](std::string_view reason) { out_.status.unremovable.push_back({one.node, reason, {}}); };
      const NodeInfo* node = snapshot_.cluster->find_node(one.node);
      const NodeGroup* group = group_of_.find(one.node)->second;
      const auto instance = std::ranges::find(group->instances, one.node, &Instance::node);
      if (instance->is_leaving) continue;
      const bool is_ready = readiness_of(*node->node, now_) == Readiness::kReady;
      const Duration threshold = is_ready ? options_.unneeded_time : options_.unready_time;
      if (threshold > Duration::zero() && self_.unneeded_[one.node] + threshold >= now_) {
        stays(is_ready ? "NotUnneededLongEnough" : "NotUnreadyLongEnough");
        continue;
      }
      if (left[group->id] <= group->min) {
        stays("NodeGroupMinSizeReached");
        continue;
      }
      const Amounts cost = amounts_of(*node->node, options_);
      if (!limits.may_remove(cost)) {
        stays("MinimalResourceLimitExceeded");
        continue;
      }
      if (one.waits) {
        stays("BlockedByOnCompletionPod");
        continue;
      }
      if (under_way >= options_.max_scale_down_parallelism || (!one.moved.empty() && drains >= options_.max_drain_parallelism)) continue;
      ++under_way;
      drains += !one.moved.empty();
      --left[group->id];
      limits.add(cost, -1);
      remove(one, *node, *instance);
    }
  }

  void remove(const Removable& one, const NodeInfo& node, const Instance& instance) {
    NodeRemoval removal{one.node, one.group, instance.id, one.utilization, {}};
    for (const PodInfoPtr& info : node.pods)
      if (const auto pod = snapshot_.pods->find(info->key);
          pod != snapshot_.pods->end() && !pod->second->facts.is_daemon && !pod->second->facts.is_mirror && !pod->second->facts.is_finished)
        removal.evict.push_back(pod->second);
    std::ranges::sort(removal.evict, {}, [](const PodPtr& pod) { return pod->key(); });
    if (removal.is_empty()) {
      note({}, {}, false, "ScaleDownEmpty", fmt::format("Scale-down: removing empty node \"{}\"", one.node));
    } else {
      std::vector<std::string> names;
      for (const PodPtr& pod : removal.evict) names.push_back(pod->view().name());
      note({}, {}, false, "ScaleDown",
           fmt::format("Scale-down: removing node {}, utilization: {:.3g}, pods to reschedule: {}", one.node, one.utilization,
                       fmt::join(names, ",")));
    }
    self_.removing_[one.node] = !removal.is_empty();
    self_.unneeded_.erase(one.node);
    out_.remove.push_back(std::move(removal));
  }

  void soft_taint() {
    int budget = options_.max_bulk_soft_taints;
    for (const bool is_wanted : {false, true})
      for (const NodeInfo* node : snapshot_.cluster->nodes()) {
        if (has_taint(*node->node, kToBeDeletedTaint) || has_taint(*node->node, kDeletionCandidateTaint) == is_wanted) continue;
        if (self_.unneeded_.contains(node->name) != is_wanted || budget-- <= 0) continue;
        out_.soft_taints.emplace_back(node->name, is_wanted);
      }
  }

  void untaint_all() {
    for (const NodeInfo* node : snapshot_.cluster->nodes())
      if (has_taint(*node->node, kDeletionCandidateTaint)) out_.soft_taints.emplace_back(node->name, false);
  }

  void publish_group_states() {
    for (GroupStatus& group : out_.status.groups) {
      group.is_growing = self_.growing_.contains(group.id);
      if (const auto pause = self_.backoffs_.find(group.id); pause != self_.backoffs_.end() && pause->second.until > now_) {
        group.is_in_backoff = true;
        group.backoff_message = pause->second.message;
      }
      for (const auto& [node, since] : out_.status.unneeded)
        if (const auto found = group_of_.find(node); found != group_of_.end() && found->second->id == group.id) ++group.candidates;
      out_.status.whole.candidates += group.candidates;
      out_.status.whole.is_growing |= group.is_growing;
    }
  }

  Autoscaler& self_;
  const Snapshot& snapshot_;
  const Options& options_;
  TimePoint now_;
  Trial as_is_;  ///< The cluster as it is; every what-if is a fork of it.
  Actions out_;
  std::map<std::string, const NodeGroup*, std::less<>> group_of_;
  std::map<std::string, NodeTemplate, std::less<>> templates_;
  std::map<std::string, model::NodeViewPtr, std::less<>> template_nodes_;
  std::int64_t node_count_ = 0;
};

Actions Autoscaler::step(const Snapshot& snapshot, const Options& options, TimePoint now) {
  ++steps_;
  std::erase_if(removing_, [&](const auto& entry) { return snapshot.cluster->find_node(entry.first) == nullptr; });
  return Step(*this, snapshot, options, now).run();
}

void Autoscaler::back_off(const std::string& group, const std::string& message, const Options& options, TimePoint now) {
  Backoff& pause = backoffs_[group];
  const bool is_fresh = pause.length == Duration::zero() || pause.last + options.backoff_reset < now;
  pause.length = is_fresh ? options.initial_backoff : std::min(pause.length * 2, options.max_backoff);
  pause.until = now + pause.length;
  pause.last = now;
  pause.message = message;
}

void Autoscaler::grow_failed(const std::string& group, const std::string& message, const Options& options, TimePoint now) {
  growing_.erase(group);
  back_off(group, message, options, now);
}

void Autoscaler::removal_ended(const std::string& node, bool succeeded, TimePoint now) {
  removing_.erase(node);
  (succeeded ? last_removal_ : last_removal_failure_) = now;
}

}  // namespace berth::autoscaler
