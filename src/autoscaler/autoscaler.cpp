#include "autoscaler/autoscaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>
#include <set>

#include "autoscaler/advice.h"
#include "autoscaler/gangs.h"

namespace berth::autoscaler {

using placement::NodeInfo;
using placement::PodInfoPtr;
using placement::Trial;

/// One pass; the parts in order of running.
class Autoscaler::Step {
 public:
  Step(Autoscaler& self, const Snapshot& snapshot, const Options& options, TimePoint now, const TimeLimit& limit)
      : self_(self), snapshot_(snapshot), options_(options), now_(now), limit_(limit) {}

  Actions run() {
    measure("updateClusterState", [&] {
      memberships_ = self_.state_.update(snapshot_, options_, now_, out_);
      make_templates();
    });
    out_.status.problems = snapshot_.problems;
    for (const NodeGroup& group : snapshot_.groups)
      for (const std::string& problem : group.overrides.problems) out_.status.problems.push_back(fmt::format("{}: {}", group.id, problem));
    tell_of_gone_groups();
    self_.provisioning_.begin(snapshot_.requests, options_, now_, out_.status.problems);
    const ClusterLimits limits(snapshot_, self_.templates_, options_);
    out_.status.totals = limits.totals();
    if (out_.status.is_healthy) {
      measure("scaleUp", [&] { look_for_growth(limits); });
      if (out_.grow.empty() && !has_promised_) shrink(limits);
      publish_group_states();
    } else {
      note({}, {}, true, "ClusterUnhealthy", "Cluster is unhealthy");
      self_.unneeded_.clear();
    }
    out_.requests = self_.provisioning_.take_updates();
    return std::move(out_);
  }

 private:
  /// How long a part takes is told by its name.
  void measure(const char* part, const std::function<void()>& work) {
    const TimePoint start = limit_.stopwatch ? limit_.stopwatch() : now_;
    work();
    if (limit_.stopwatch) out_.status.lengths[part] += limit_.stopwatch() - start;
  }

  static void nobody_asks(const PodPtr&, placement::NodeIndex) {}
  [[nodiscard]] const placement::PodGroups& pod_groups() const { return snapshot_.pod_sets->groups; }
  void look_for_growth(const ClusterLimits& limits) {
    // Pods may wait for nodes that are on their way, but no pod may be moved to one: first what fits on the nodes that are there.
    std::vector<PodPtr> pending = find_pending();
    WaitingGangs found = take_gangs(pending, pod_groups());
    for (const auto& [pod, why] : found.of_too_few) note(pod, {}, false, "NotTriggerScaleUp", "pod didn't trigger scale-up: " + why);
    std::vector<Gang>& gangs = found.gangs;
    const std::size_t waiting = count_pods(pending, gangs);
    std::optional<Kinds> kinds;
    if (is_changed_in_thought(waiting > 0))
      place_waiting_and_gangs(here(), pending, &kinds.emplace(here(), pending), gangs, pod_groups(), nobody_asks);
    std::vector<Provisioning::Booking> bookings = book_here();
    if (count_pods(pending, gangs) > 0 || !bookings.empty() || !self_.provisioning_.due().empty()) {
      Trial soon = here().fork();
      for (const GroupStatus& group : out_.status.groups)
        if (const NodeTemplate& known = template_of(group.id); known.node != nullptr)
          for (int i = 0; i < group.upcoming; ++i) add_node(soon, known, fmt::format("upcoming-{}-{}", group.id, i));
      // Who has room booked comes first: pods that are left get nodes of their own, pods that take a request's room never do.
      for (Provisioning::Booking& booking : bookings) {
        Kinds of_booking(soon, booking.pods);
        place_waiting(soon, booking.pods, of_booking, nobody_asks);
        self_.provisioning_.homeless(booking.request, booking.pods.size(), now_);
      }
      if (kinds) {
        // A node that is there, on which a member of a gang will be once the others have places too, is needed.
        const auto hold_for_gang = [&](const PodPtr& pod, placement::NodeIndex node) {
          const NodeInfo* there = pod->facts.group.empty() ? nullptr : here().cluster().find_node(soon.cluster().node(node)->name);
          if (there != nullptr && there->node != nullptr) here().hold(pod->info, there->index);
        };
        place_waiting_and_gangs(soon, pending, &*kinds, gangs, pod_groups(), hold_for_gang);
      }
      out_.status.placed_in_thought = waiting - count_pods(pending, gangs);
      std::erase_if(pending, [&](const PodPtr& pod) { return is_too_young(*pod); });
      std::erase_if(gangs, [&](const Gang& gang) {
        return std::ranges::any_of(gang.waiting, [&](const PodPtr& pod) { return is_too_young(*pod); });
      });
      out_.status.pending_pods = count_pods(pending, gangs);
      if (!options_.enforce_min_sizes || !grow_to_minimum(limits)) {
        const bool waits = out_.status.pending_pods > 0;
        const bool is_done = answer_requests(soon, waits, limits);
        if (!is_done && waits) grow(soon, std::move(pending), std::move(gangs), *kinds, limits);
      }
    } else {
      out_.status.placed_in_thought = waiting;
      if (options_.enforce_min_sizes) grow_to_minimum(limits);
    }
  }

  void note(PodPtr pod, std::string node, bool is_warning, std::string reason, std::string message) {
    out_.notes.push_back({std::move(pod), std::move(node), is_warning, std::move(reason), std::move(message)});
  }

  /// Nobody knows any more how their nodes would go: they stay.
  void tell_of_gone_groups() {
    std::map<std::string, std::size_t> now;
    for (const NodeGroup& group : snapshot_.groups) now[group.id] = group.instances.size();
    for (const auto& [id, nodes] : self_.groups_) {
      if (snapshot_.left_alone.contains(id)) now.try_emplace(id, nodes);
      if (!now.contains(id))
        note({}, {}, true, "NodeGroupGone",
             fmt::format("Node group {} is gone or no longer scaled: its {} machines are left alone", id, nodes));
    }
    self_.groups_ = std::move(now);
  }

  void make_templates() {
    std::map<std::string, NodeTemplate, std::less<>> made;
    for (const NodeGroup& group : snapshot_.groups) {
      const auto known = self_.templates_.find(group.id);
      made[group.id] = make_template(
          group, snapshot_, [&]() -> Trial& { return as_is(); }, known == self_.templates_.end() ? nullptr : &known->second, now_);
    }
    self_.templates_ = std::move(made);
    for (GroupStatus& group : out_.status.groups) {
      const NodeTemplate& known = template_of(group.id);
      if (known.node == nullptr) continue;
      group.gpu_resource = gpu_resource_of(*known.node, options_.accelerator_label);
      const std::string* name = known.node->labels().get(options_.accelerator_label);
      const bool is_listed = options_.gpu_types.empty() || name == nullptr || options_.gpu_types.contains(*name);
      if (!group.gpu_resource.empty()) group.gpu_name = name == nullptr || name->empty() ? "generic" : is_listed ? *name : "not-listed";
    }
  }

  // --- ProvisioningRequests ---

  /// What of the booked room is on nodes that are there; the bookings that are not whole with that, with the pods that are left.
  std::vector<Provisioning::Booking> book_here() {
    std::vector<Provisioning::Booking> out;
    for (Provisioning::Booking& booking : self_.provisioning_.bookings(snapshot_.pod_sets->consumers)) {
      if (!booking.pods.empty()) {
        Kinds kinds(here(), booking.pods);
        place_waiting(here(), booking.pods, kinds, [&](const PodPtr& pod, placement::NodeIndex) { imagined_.emplace(pod->key(), pod); });
      }
      if (booking.pods.empty())
        self_.provisioning_.homeless(booking.request, 0, now_);
      else
        out.push_back(std::move(booking));
    }
    return out;
  }

  /// True when a request grew something: then nobody else does in this pass.
  bool answer_requests(Trial& soon, bool pods_wait, const ClusterLimits& limits) {
    RequestPtr atomic;
    for (const RequestPtr& request : self_.provisioning_.due()) {
      if (limit_.is_over()) break;
      if (request->class_name == kCheckCapacity)
        check_capacity(soon, request);
      else
        atomic = request;
    }
    if (atomic == nullptr) return false;
    if (pods_wait) self_.is_turn_of_requests_ = !self_.is_turn_of_requests_;
    if (pods_wait && self_.is_turn_of_requests_) return false;  // Pods were first; the request is the next time.
    provision(soon, atomic, limits);
    return !out_.grow.empty();
  }

  void check_capacity(Trial& soon, const RequestPtr& request) {
    self_.provisioning_.accept(request, now_);
    const CapacityAnswer answer = find_capacity(soon, self_.provisioning_.update(request), now_);
    has_promised_ |= answer.is_booked;
    if (!answer.why.empty()) note_request(request, "NotTriggerScaleUp", "the cluster has no room for it: " + answer.why);
  }

  /// The room of all its pods at once: what there is, and one group's (or similar groups') growth for the rest
  /// (provisioningrequest/besteffortatomic).
  void provision(Trial& soon, const RequestPtr& request, const ClusterLimits& limits) {
    self_.provisioning_.accept(request, now_);
    RequestUpdate& update = self_.provisioning_.update(request);
    Trial trial = soon.fork();
    std::vector<PodPtr> left = request->pods();
    Kinds kinds(trial, left);
    place_waiting(trial, left, kinds, nobody_asks);
    if (left.empty()) {
      update.set("Provisioned", true, kCapacityIsFound, kCapacityIsFoundMessage, now_);
      soon = std::move(trial);
      has_promised_ = true;
      return;
    }
    ScaleUpInput input = scale_up_input(trial, std::move(left), kinds, limits);
    input.all_or_nothing = true;
    const ScaleUpPlan plan = plan_scale_up(input, options_);
    if (plan.result != ScaleUpPlan::Result::kSuccessful) {
      update.set_not_found(now_);
      std::string why = "no group can grow for all of its pods at once";
      if (!plan.not_helped.empty()) why = why_not_helped(plan, *plan.not_helped.front().why);
      return note_request(request, "NotTriggerScaleUp", "it didn't trigger scale-up: " + why);
    }
    for (const Resize& resize : plan.resizes) {
      record_growth(resize);
      update.awaited_groups.push_back(resize.group);
    }
    update.set("Provisioned", true, kCapacityIsProvisioned, kCapacityIsFoundMessage, now_);
    note_request(request, "TriggeredScaleUp", "it triggered scale-up: " + to_string(plan.resizes));
    self_.last_growth_ = now_;
  }

  void note_request(const RequestPtr& request, std::string reason, std::string message) {
    out_.notes.push_back({{}, {}, false, std::move(reason), std::move(message), request});
  }

  [[nodiscard]] bool is_expendable(const model::PodView& pod) const { return pod.priority < options_.pod_priority_threshold; }

  /// The cluster as it is; every what-if is a fork of it.
  Trial& as_is() {
    if (!as_is_)
      as_is_ = Trial::on_fork(*snapshot_.cluster, self_.profiles_,
                              {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
    return *as_is_;
  }
  /// As it counts: without pods that hold no node and without nodes that have not started, with pods that have a place to come to.
  Trial& here() {
    if (!here_) {
      here_ = as_is().fork();
      drop_expendable(*here_);
      place_nominated(*here_);
      for (const std::string& name : self_.state_.not_started()) drop_node(*here_, name);
    }
    return *here_;
  }
  [[nodiscard]] bool is_changed_in_thought(bool some_wait) const {
    const auto expendable = [&](const auto& entry) { return is_expendable(entry.second->view()); };
    const auto nominated = [](const auto& entry) { return !entry.second->view().nominated_node_name.empty(); };
    return some_wait || !self_.state_.not_started().empty() || options_.pod_priority_threshold > 0 ||
           std::ranges::any_of(snapshot_.pod_sets->below_zero, expendable) || std::ranges::any_of(snapshot_.pod_sets->unplaced, nominated);
  }

  // Pods below the threshold hold no node: they are as if they were not there.
  void drop_expendable(Trial& trial) const {
    // Walking all pods is for thresholds above zero alone.
    for (const auto& [key, pod] : options_.pod_priority_threshold > 0 ? snapshot_.pods() : snapshot_.pod_sets->below_zero)
      if (is_expendable(pod->view())) trial.evict(pod->info);
  }

  // Pods that wait for the end of others on a node have their place there.
  void place_nominated(Trial& trial) const {
    for (const auto& [key, pod] : snapshot_.pod_sets->unplaced) {
      const std::string& name = pod->view().nominated_node_name;
      if (name.empty() || is_expendable(pod->view())) continue;
      const NodeInfo* node = trial.cluster().find_node(name);
      if (node == nullptr || node->node == nullptr) continue;
      // Its victims hold what it will have until they are gone: then it counts there all the same.
      trial.hold(pod->info, node->index);
    }
  }

  /// A pod that takes a request's room adds no node itself.
  void note_consumer(const PodPtr& pod) {
    constexpr int kMostNotes = 50;
    if (++noted_consumers_ > kMostNotes) return;
    const std::string key = fmt::format("{}/{}", pod->view().ns(), consumed_request(*pod));
    const bool is_there = std::ranges::any_of(snapshot_.requests, [&](const RequestPtr& request) { return request->key() == key; });
    note(pod, {}, false, "NotTriggerScaleUp",
         fmt::format("Unschedulable pod didn't trigger scale-up, because it's consuming ProvisioningRequest {}{}", key,
                     is_there ? "" : ", which is not there"));
  }

  /// Pods that the scheduler found no room for, most important first.
  [[nodiscard]] std::vector<PodPtr> find_pending() {
    std::vector<PodPtr> out;
    for (const auto& [key, pod] : snapshot_.pod_sets->unplaced) {
      const model::PodView& view = pod->view();
      if (!pod->facts.is_unschedulable || model::counts_as_daemon(pod->view().meta) || pod->facts.is_finished) continue;
      if (view.meta.is_deleting || !options_.may_add_nodes(view.priority)) continue;
      if (!consumed_request(*pod).empty()) {
        note_consumer(pod);
        continue;
      }
      const bool has_place = !view.nominated_node_name.empty() && snapshot_.cluster->find_node(view.nominated_node_name) != nullptr;
      if (!has_place) out.push_back(pod);
    }
    std::ranges::stable_sort(out, [](const PodPtr& a, const PodPtr& b) {
      if (a->view().priority != b->view().priority) return a->view().priority > b->view().priority;
      return a->facts.created < b->facts.created;
    });
    return out;
  }

  /// Not yet old enough that a node is added for it; its own delay counts where it is longer.
  [[nodiscard]] bool is_too_young(const Pod& pod) const {
    const Duration delay = std::max(scale_up_delay(pod).value_or(Duration::zero()), options_.new_pod_scale_up_delay);
    return delay > Duration::zero() && pod.facts.created.value_or(TimePoint{}) + delay >= now_;
  }

  [[nodiscard]] const NodeTemplate& template_of(const std::string& group) const { return self_.templates_.find(group)->second; }

  [[nodiscard]] std::string why_not_helped(const ScaleUpPlan& plan, const Refusals& why) const {
    if (plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal) return std::string(kMaxNodesTotalReached);
    // No group refused the pod, so there is none to grow.
    if (why.empty()) return "there is no node group: a MachineSet becomes one by a MachineAutoscaler that names it";
    return fmt::format("{}", fmt::join(count_reasons(why), ", "));
  }

  void record_growth(const Resize& resize) {
    self_.state_.growth_started(resize.group, resize.to - resize.from, now_);
    note({}, {}, false, "ScaledUpGroup",
         fmt::format("Scale-up: setting group {} size to {} instead of {} (max: {})", resize.group, resize.to, resize.from, resize.max));
    out_.grow.push_back(resize);
  }

  /// Groups below their minimum grow to it, pods or not. True when one did.
  bool grow_to_minimum(ClusterLimits limits) {
    std::int64_t node_count = self_.state_.node_count();
    for (std::size_t i = 0; i < snapshot_.groups.size(); ++i) {
      const NodeGroup& group = snapshot_.groups[i];
      const NodeTemplate& known = template_of(group.id);
      if (group.target >= group.min || known.node == nullptr || !self_.state_.why_not_ready(out_.status.groups[i], now_).empty()) continue;
      std::int64_t more = group.min - group.target;
      if (options_.max_nodes_total > 0) more = std::min(more, options_.max_nodes_total - node_count);
      const Amounts cost = amounts_of(*known.node, options_);
      more = limits.allowed(cost, more);
      if (more <= 0) continue;
      limits.add(cost, more);
      node_count += more;
      record_growth({group.id, group.target, group.target + more, group.max});
    }
    if (!out_.grow.empty()) self_.last_growth_ = now_;
    return !out_.grow.empty();
  }

  ScaleUpInput scale_up_input(Trial& soon, std::vector<PodPtr> pending, Kinds& kinds, const ClusterLimits& limits) const {
    ScaleUpInput input{.trial = &soon,
                       .pending = std::move(pending),
                       .kinds = &kinds,
                       .groups = &snapshot_.groups,
                       .templates = &self_.templates_,
                       .not_ready = {},
                       .limits = &limits,
                       .node_count = self_.state_.node_count(),
                       .expander = {snapshot_.priorities, snapshot_.prices, snapshot_.pod_prices, self_.ask_expander_},
                       .seed = self_.seed_ + self_.steps_,
                       .limit = limit_};
    for (const GroupStatus& group : out_.status.groups)
      if (const std::string_view why = self_.state_.why_not_ready(group, now_); !why.empty()) input.not_ready[group.id] = why;
    return input;
  }

  void grow(Trial& soon, std::vector<PodPtr> pending, std::vector<Gang> gangs, Kinds& kinds, ClusterLimits limits) {
    ScaleUpInput input = scale_up_input(soon, std::move(pending), kinds, limits);
    GangGrowth of_gangs(input, limits);
    of_gangs.plan_for(std::move(gangs), pod_groups(), options_);
    if (of_gangs.grows() && !input.pending.empty()) place_waiting(soon, input.pending, kinds, nobody_asks);
    ScaleUpPlan& plan = out_.status.plan = plan_scale_up(input, options_);
    for (const auto& [pod, gang, why] : of_gangs.refused())
      note(pod, {}, false, "NotTriggerScaleUp", fmt::format("pod didn't trigger scale-up: {}: {}", gang, why_not_helped(plan, *why)));
    const std::vector<ScaleUpPlan::Refused> not_helped = plan.not_helped;
    of_gangs.add_to(plan);
    out_.status.left_groups = plan.left_groups;
    for (const auto& [reason, message] : plan.warnings) note({}, {}, true, std::string(reason), message);
    if (plan.result == ScaleUpPlan::Result::kLimitedByMaxNodesTotal)
      note({}, {}, true, "MaxNodesTotalReached", fmt::format("Max total nodes in cluster reached: {}", options_.max_nodes_total));
    if (plan.result != ScaleUpPlan::Result::kSuccessful) {
      for (const auto& [pod, why] : not_helped)
        note(pod, {}, false, "NotTriggerScaleUp", "pod didn't trigger scale-up: " + why_not_helped(plan, *why));
      return;
    }
    for (const Resize& resize : plan.resizes) record_growth(resize);
    for (const PodPtr& pod : plan.helped) note(pod, {}, false, "TriggeredScaleUp", "pod triggered scale-up: " + to_string(plan.resizes));
    self_.last_growth_ = now_;
  }

  /// Nodes of groups; those that the last pass had no time for have their turn first.
  [[nodiscard]] std::vector<ScaleDownInput::Candidate> candidates() const {
    std::map<std::string_view, std::size_t> turn;
    for (const std::string& name : self_.left_) turn.emplace(name, turn.size());
    const std::set<std::string_view> not_started(self_.state_.not_started().begin(), self_.state_.not_started().end());
    const auto left = left_in_groups();
    std::vector<ScaleDownInput::Candidate> out;
    for (const auto& [name, member] : memberships_) {
      // A group at its minimum keeps all its nodes: thought away first, they would take the places of pods that could move.
      if (left.find(member.group->id)->second <= member.group->min || not_started.contains(name) || self_.removing_.contains(name))
        continue;
      const auto place = turn.find(name);
      out.push_back({name, place == turn.end() ? turn.size() : place->second, self_.unneeded_.contains(name)});
    }
    return out;
  }

  /// Pods of nodes that are going need places before any other node's.
  void place_leaving() {
    if (self_.removing_.empty() && snapshot_.totals->to_be_deleted == 0) return;
    for (const NodeInfo* node : snapshot_.cluster->nodes()) {
      if (!has_taint(*node->node, kToBeDeletedTaint) && !self_.removing_.contains(node->name)) continue;
      std::vector<placement::Eviction> evicted;
      for (const PodInfoPtr& info : node->pods)
        if (const auto pod = snapshot_.pods().find(info->key);
            pod != snapshot_.pods().end() && !model::counts_as_daemon(pod->second->view().meta) &&
            !model::is_mirror(pod->second->view().meta) && !is_expendable(pod->second->view()))
          evicted.push_back(here().evict(pod->second->info));
      drop_node(here(), node->name);
      for (const placement::Eviction& eviction : evicted) (void)here().place(here().renew(eviction));
    }
  }

  ScaleDownFindings find_nodes_to_go() {
    return find_removable({.snapshot = &snapshot_,
                           .cluster = here_ ? &here_->cluster() : snapshot_.cluster,
                           .trial = [&]() -> Trial& { return here(); },
                           .memberships = &memberships_,
                           .candidates = candidates(),
                           .imagined = &imagined_,
                           .limit = limit_},
                          options_, now_);
  }

  void shrink(ClusterLimits limits) {
    if (!options_.scale_down_enabled) {
      self_.unneeded_.clear();
      untaint_all();
      return;
    }
    place_leaving();
    ScaleDownFindings found;
    measure("findUnneeded", [&] { found = find_nodes_to_go(); });
    std::map<std::string, TimePoint> unneeded;
    for (const Removable& removable : found.removable) {
      const auto since = self_.unneeded_.find(removable.node);
      unneeded[removable.node] = since == self_.unneeded_.end() ? now_ : since->second;
    }
    // What was not looked at is as it was; it comes first the next time.
    self_.left_ = found.left;
    for (const std::string& node : found.left)
      if (const auto since = self_.unneeded_.find(node); since != self_.unneeded_.end()) unneeded.insert(*since);
    self_.unneeded_ = std::move(unneeded);
    out_.status.left_nodes = std::move(found.left);
    out_.status.unneeded = self_.unneeded_;
    out_.status.unremovable = std::move(found.unremovable);
    tell_of_blocked();
    const auto pauses = [&](const std::optional<TimePoint>& since, Duration length) { return since && *since + length > now_; };
    out_.status.is_scale_down_paused = pauses(self_.last_growth_, options_.delay_after_add) ||
                                       pauses(self_.last_removal_, options_.delay_after_delete) ||
                                       pauses(self_.last_removal_failure_, options_.delay_after_failure);
    if (!out_.status.is_scale_down_paused) measure("scaleDown", [&] { choose_removals(found.removable, limits); });
    if (out_.remove.empty()) soft_taint();
  }

  /// An event of each node that something holds, when that is new.
  void tell_of_blocked() {
    std::map<std::string, std::string> told;
    for (const Unremovable& one : out_.status.unremovable) {
      if (one.reason != "BlockedByPod" && one.reason != "NoPlaceToMovePods") continue;
      std::string text = to_string(one);
      const auto before = self_.told_.find(one.node);
      if (before == self_.told_.end() || before->second != text) {
        const std::string advice = advice_for(one);
        note({}, one.node, false, "ScaleDownBlocked", advice.empty() ? text : fmt::format("{}; to free it: {}", text, advice));
      }
      told[one.node] = std::move(text);
    }
    self_.told_ = std::move(told);
  }

  /// Each group's target without the removals under way that it counts still.
  [[nodiscard]] std::map<std::string, std::int64_t, std::less<>> left_in_groups() const {
    std::map<std::string, std::int64_t, std::less<>> out;
    for (const NodeGroup& group : snapshot_.groups) out[group.id] = group.target;
    for (const auto& [node, is_drained] : self_.removing_)
      if (const auto member = memberships_.find(node); member != memberships_.end() && !member->second.instance->is_leaving)
        --out[member->second.group->id];
    return out;
  }

  void choose_removals(std::vector<Removable>& removable, ClusterLimits& limits) {
    // Empty nodes first, then those whose pods can all be evicted at once.
    std::ranges::stable_sort(removable, {}, [](const Removable& one) { return std::pair(!one.moved.empty(), one.is_risky); });
    std::map<std::string, std::int64_t, std::less<>> left = left_in_groups();
    int under_way = static_cast<int>(self_.removing_.size());
    int drains = static_cast<int>(std::ranges::count(self_.removing_ | std::views::values, true));
    std::vector<const Removable*> allowed;
    for (const Removable& one : removable) {
      const std::string_view reason = why_kept(one, left, limits);
      if (reason.empty())
        allowed.push_back(&one);
      else
        out_.status.unremovable.push_back({.node = one.node, .reason = reason});
    }
    for (const Removable* one : allowed) {
      if (under_way >= options_.max_scale_down_parallelism || (!one->moved.empty() && drains >= options_.max_drain_parallelism)) continue;
      ++under_way;
      drains += !one->moved.empty();
      remove(*one, *snapshot_.cluster->find_node(one->node), *memberships_.find(one->node)->second.instance);
    }
  }

  /// Why a node that could go does not go now; empty when it may, and then it is taken off the group's and the cluster's sums.
  std::string_view why_kept(const Removable& one, std::map<std::string, std::int64_t, std::less<>>& left, ClusterLimits& limits) const {
    const NodeInfo* node = snapshot_.cluster->find_node(one.node);
    const auto& [group, instance] = memberships_.find(one.node)->second;
    if (instance->is_leaving) return "CurrentlyBeingDeleted";
    const auto facts = snapshot_.nodes->find(one.node);
    const bool is_ready = facts != snapshot_.nodes->end() && facts->second.is_working();
    const Duration threshold = is_ready ? group->overrides.unneeded_time.value_or(options_.unneeded_time)
                                        : group->overrides.unready_time.value_or(options_.unready_time);
    if (threshold > Duration::zero() && self_.unneeded_[one.node] + threshold >= now_)
      return is_ready ? "NotUnneededLongEnough" : "NotUnreadyLongEnough";
    if (left[group->id] <= group->min) return "NodeGroupMinSizeReached";
    const Amounts cost = amounts_of(*node->node, options_);
    if (!limits.may_remove(cost)) return "MinimalResourceLimitExceeded";
    if (one.waits) return "BlockedByOnCompletionPod";
    --left[group->id];
    limits.add(cost, -1);
    return "";
  }

  void remove(const Removable& one, const NodeInfo& node, const Instance& instance) {
    NodeRemoval removal = removal_of(one, node, instance, snapshot_, now_);
    if (removal.is_empty) {
      note({}, {}, false, "ScaleDownEmpty", fmt::format("Scale-down: removing empty node \"{}\"", one.node));
    } else {
      std::vector<std::string> names;
      for (const PodPtr& pod : removal.evict) names.push_back(pod->view().name());
      note({}, {}, false, "ScaleDown",
           fmt::format("Scale-down: removing node {}, utilization: {:.3g}, pods to reschedule: {}", one.node, one.utilization,
                       fmt::join(names, ",")));
    }
    self_.removing_[one.node] = !removal.is_empty;
    self_.unneeded_.erase(one.node);
    out_.remove.push_back(std::move(removal));
  }

  void soft_taint() {
    if (self_.unneeded_.empty() && snapshot_.totals->candidates == 0) return;
    int budget = options_.max_bulk_soft_taints;
    for (const bool is_wanted : {false, true})
      for (const NodeInfo* node : snapshot_.cluster->nodes()) {
        if (has_taint(*node->node, kToBeDeletedTaint) || has_taint(*node->node, kDeletionCandidateTaint) == is_wanted) continue;
        if (self_.unneeded_.contains(node->name) != is_wanted || budget-- <= 0) continue;
        out_.soft_taints.emplace_back(node->name, is_wanted);
      }
  }

  void untaint_all() {
    if (snapshot_.totals->candidates == 0) return;
    for (const NodeInfo* node : snapshot_.cluster->nodes())
      if (has_taint(*node->node, kDeletionCandidateTaint)) out_.soft_taints.emplace_back(node->name, false);
  }

  void publish_group_states() {
    self_.state_.describe(out_.status.groups, now_);
    std::map<std::string, int> candidates;
    for (const auto& [node, since] : out_.status.unneeded)
      if (const auto member = memberships_.find(node); member != memberships_.end()) ++candidates[member->second.group->id];
    for (GroupStatus& group : out_.status.groups) {
      group.candidates = candidates[group.id];
      out_.status.whole.candidates += group.candidates;
      out_.status.whole.is_growing |= group.is_growing;
    }
  }

  Autoscaler& self_;
  const Snapshot& snapshot_;
  Memberships memberships_;
  const Options& options_;
  TimePoint now_;
  const TimeLimit& limit_;
  std::optional<Trial> as_is_, here_;
  PodMap imagined_;            ///< Pods of bookings that have their places in here().
  bool has_promised_ = false;  ///< A request found room in this pass: no node goes before that is booked.
  int noted_consumers_ = 0;
  Actions out_;
};

Actions Autoscaler::step(const Snapshot& snapshot, const Options& options, TimePoint now, const TimeLimit& limit) {
  ++steps_;
  std::erase_if(removing_, [&](const auto& entry) { return snapshot.cluster->find_node(entry.first) == nullptr; });
  return Step(*this, snapshot, options, now, limit).run();
}

void Autoscaler::shift_times(Duration jump) {
  for (auto& [node, since] : unneeded_) since += jump;
  for (auto* time : {&last_growth_, &last_removal_, &last_removal_failure_})
    if (*time) **time += jump;
  state_.shift_times(jump);
  provisioning_.shift_times(jump);
}

void Autoscaler::removal_ended(const std::string& node, bool succeeded, TimePoint now) {
  removing_.erase(node);
  (succeeded ? last_removal_ : last_removal_failure_) = now;
}

}  // namespace berth::autoscaler
