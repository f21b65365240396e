// Who gets quota (Kueue: pkg/scheduler). Once a cycle, the first of each queue of a cohort is looked at; cycles go on while they change
// something.
#include <fmt/format.h>

#include <algorithm>

#include "queues/core_impl.h"

namespace berth::queues {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// The first of a queue, with what it could get.
struct Nominee {
  WorkloadKey key;
  QueuePlace place;
  const ClusterQueue* queue = nullptr;
  QuotaNode node = QuotaNode::kNone;
  Assignment assignment;
  /// Whom it preempts. By key: a reservation moves in the books whenever its Workload is written.
  struct Victim {
    WorkloadKey key;
    std::string_view reason;
  };
  std::vector<Victim> victims;
  std::string message;
  bool is_mismatch = false;  ///< Of the namespace: nobody else's going helps it.
  bool is_admitted = false, stays_first = false;
};

Object amounts_document(const Requests& requests) {
  Object out;
  for (const auto& [resource, amount] : requests) out[resource] = amount_text(resource, amount);
  return out;
}

Array requests_document(const Assignment& assignment) {
  Array out;
  for (const PodSetChoice& pod_set : assignment.pod_sets)
    out.push_back(Object{{"name", pod_set.name}, {"resources", amounts_document(pod_set.requests)}});
  return out;
}

/// What is kept free for one that waits for others to end, so that those behind it do not take it away.
FlavorAmounts amounts_to_keep(const Nominee& nominee, const QuotaTree& tree) {
  FlavorAmounts out;
  for (const auto& [what, amount] : nominee.assignment.usage) {
    const ResourceQuota* quota = tree.quota(nominee.node, what);
    const Amount nominal = tree.nominal(nominee.node, what), used = tree.used(nominee.node, what);
    if (nominee.assignment.borrowing == 0)
      out[what] = std::max<Amount>(0, std::min(amount, nominal - used));
    else if (quota != nullptr && quota->borrowing_limit)
      out[what] = std::max<Amount>(0, std::min(amount, plus(nominal, *quota->borrowing_limit) - used));
    else
      out[what] = amount;
  }
  return out;
}

bool goes_before_by_quota(const Nominee& a, const Nominee& b) {
  if (a.assignment.borrowing != b.assignment.borrowing) return a.assignment.borrowing < b.assignment.borrowing;
  return a.place < b.place;
}

}  // namespace

/// One cycle over the queues of one cohort.
class Cycle {
 public:
  Cycle(CoreState& impl, const std::vector<std::string>& queues) : impl_(impl) {
    for (const std::string& name : queues) nominate(name);
  }
  /// False: nothing changed, and nothing will until something happens.
  bool run() {
    if (nominees_.empty()) return false;
    std::vector<Nominee*> left;
    for (Nominee& nominee : nominees_) left.push_back(&nominee);
    std::ranges::stable_sort(left, [](const Nominee* a, const Nominee* b) { return goes_before_by_quota(*a, *b); });
    while (!left.empty()) {
      const auto next = impl_.settings.fair_sharing ? fairest(left) : left.begin();
      Nominee& nominee = **next;
      left.erase(next);
      process(nominee);
    }
    for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) impl_.books.remove(kept->first, kept->second);
    for (Nominee& nominee : nominees_)
      if (!nominee.is_admitted) put_back(nominee);
    ++impl_.effects.admission_cycles;
    if (admitted_) ++impl_.effects.successful_cycles;
    return is_changed_;
  }

 private:
  void nominate(const std::string& name) {
    const auto queue = impl_.queues.find(name);
    const auto waiting = impl_.waiting.find(name);
    if (queue == impl_.queues.end() || waiting == impl_.waiting.end() || waiting->second.active.empty()) return;
    if (const auto why = impl_.inactive.find(name); why != impl_.inactive.end() && !why->second.reason.empty()) return;
    Nominee out{.place = *waiting->second.active.begin(), .queue = &queue->second, .node = impl_.books.tree().queue(name)};
    out.key = out.place.key;
    // Its last write comes first; then the queue is looked at again.
    if (!impl_.may_write(object_of(out.key))) return;
    const Value* ns = impl_.document({Kind::kNamespace, "", out.key.first});
    if (ns == nullptr || !queue->second.namespaces.matches(model::Labels::from_json(json::find(*ns, {"metadata", "labels"})))) {
      out.message = "Workload namespace doesn't match ClusterQueue selector";
      out.is_mismatch = true;
    } else {
      assign(out);
    }
    nominees_.push_back(std::move(out));
  }

  void assign(Nominee& nominee) {
    const Workload& workload = impl_.workloads[nominee.key].workload;
    AssignmentQuestion question{.queue = nominee.queue,
                                .workload = &workload,
                                .queued = nominee.place.queued,
                                .flavors = &impl_.flavors,
                                .fair_sharing = impl_.settings.fair_sharing};
    for (;;) {
      nominee.assignment = assign_flavors(impl_.books, question);
      if (nominee.assignment.mode() == Mode::kPreempt) nominee.victims.clear();
      for (const Target& target : find_targets(impl_.books, preemptor_of(nominee), question.fair_sharing))
        nominee.victims.push_back({target.reservation->key, target.reason});
      const bool may_go_on = nominee.assignment.has_more_flavors && !question.looks_at_all;
      if (nominee.assignment.mode() != Mode::kPreempt || !nominee.victims.empty() || !may_go_on) break;
      question.looks_at_all = true;
    }
    nominee.message = nominee.assignment.message();
  }

  [[nodiscard]] Preemptor preemptor_of(const Nominee& nominee) const {
    return {.queue = nominee.queue,
            .node = nominee.node,
            .priority = -nominee.place.priority_down,
            .queued = nominee.place.queued,
            .usage = nominee.assignment.usage,
            .short_of = nominee.assignment.short_of()};
  }

  /// The one whose queue has the smallest share with it; at each level of cohorts the best of each child meet.
  std::vector<Nominee*>::iterator fairest(std::vector<Nominee*>& left) {
    const QuotaTree& tree = impl_.books.tree();
    std::map<std::pair<QuotaNode, const Nominee*>, std::int64_t> shares;  // By cohort: of the child that the nominee is below.
    for (const Nominee* one : left) {
      impl_.books.add(one->node, one->assignment.usage);
      QuotaNode node = one->node;
      for (QuotaNode cohort = tree.parent(node); cohort != QuotaNode::kNone; node = cohort, cohort = tree.parent(cohort))
        shares[{cohort, one}] = tree.share(node);
      impl_.books.remove(one->node, one->assignment.usage);
    }
    std::map<QuotaNode, Nominee*> by_queue;
    for (Nominee* one : left) by_queue[one->node] = one;
    Nominee* best = best_below(tree.root(left.front()->node), by_queue, shares);
    return std::ranges::find(left, best);
  }
  Nominee* best_below(QuotaNode node, const std::map<QuotaNode, Nominee*>& by_queue,
                      const std::map<std::pair<QuotaNode, const Nominee*>, std::int64_t>& shares) const {
    if (const auto found = by_queue.find(node); found != by_queue.end()) return found->second;
    Nominee* best = nullptr;
    const auto consider = [&](Nominee* one) {
      if (one == nullptr) return;
      if (best == nullptr) {
        best = one;
        return;
      }
      const auto mine = shares.at({node, one}), theirs = shares.at({node, best});
      if (mine < theirs || (mine == theirs && one->place < best->place)) best = one;
    };
    const QuotaTree& tree = impl_.books.tree();
    for (const QuotaNode child : tree.cohorts_of(node)) consider(best_below(child, by_queue, shares));
    for (const QuotaNode child : tree.queues_of(node))
      if (const auto found = by_queue.find(child); found != by_queue.end()) consider(found->second);
    return best;
  }

  void keep(const Nominee& nominee, FlavorAmounts amounts) {
    impl_.books.add(nominee.node, amounts);
    kept_.emplace_back(nominee.node, std::move(amounts));
  }

  void process(Nominee& nominee) {
    const Mode mode = nominee.is_mismatch ? Mode::kNoFit : nominee.assignment.mode();
    if (mode == Mode::kNoFit) return;
    if (mode == Mode::kPreempt && nominee.victims.empty()) {
      // What can be taken back at any time may be lent meanwhile.
      if (!can_always_reclaim(*nominee.queue)) keep(nominee, amounts_to_keep(nominee, impl_.books.tree()));
      return;
    }
    nominee.stays_first = true;
    if (std::ranges::any_of(nominee.victims, [&](const auto& victim) { return preempted_.contains(victim.key); })) {
      nominee.message = "Workload has overlapping preemption targets with another workload";
      return;
    }
    if (!still_fits(nominee)) {
      nominee.message = "Workload no longer fits after processing another workload";
      return;
    }
    if (mode == Mode::kFit) {
      nominee.is_admitted = is_changed_ = admitted_ = true;
      impl_.admit(nominee.key, nominee.queue->name, nominee.assignment);
      return;
    }
    keep(nominee, nominee.assignment.usage);
    preempt(nominee);
  }

  bool still_fits(const Nominee& nominee) {
    std::vector<const Reservation*> out;
    const auto leave_out = [&](const WorkloadKey& key) {
      if (const Reservation* one = impl_.books.find(key)) out.push_back(one);
    };
    for (const WorkloadKey& key : preempted_) leave_out(key);
    for (const auto& victim : nominee.victims) leave_out(victim.key);
    for (const Reservation* one : out) impl_.books.take_out(*one);
    const bool fits = impl_.books.tree().fits(nominee.node, nominee.assignment.usage);
    for (const Reservation* one : out) impl_.books.put_back(*one);
    return fits;
  }

  void preempt(Nominee& nominee) {
    const Workload& by = impl_.workloads[nominee.key].workload;
    for (const auto& [key, reason] : nominee.victims) {
      preempted_.insert(key);
      const WorkloadState& state = impl_.workloads[key];
      if (state.workload.is("Evicted") || !impl_.may_write(object_of(key))) continue;
      const std::string message =
          fmt::format("Preempted to accommodate a workload (UID: {}, JobUID: {}) due to {}", by.uid.empty() ? "UNKNOWN" : by.uid,
                      by.job_uid.empty() ? "UNKNOWN" : by.job_uid, preemption_words(reason));
      Value document = *impl_.document(object_of(key));
      set_condition(document, "Preempted", true, reason, message, impl_.now);
      is_changed_ = true;
      impl_.evict(key, std::move(document), "Preempted", message,
                  {{.what = Tally::What::kPreempted, .queue = nominee.queue->name, .reason = std::string(reason)}});
    }
    nominee.message += fmt::format(". Pending the preemption of {} workload(s)", nominee.victims.size());
  }

  void put_back(Nominee& nominee) {
    WorkloadState& state = impl_.workloads[nominee.key];
    Waiting& waiting = impl_.waiting[nominee.queue->name];
    const bool stays = !nominee.is_mismatch && (nominee.stays_first || nominee.queue->is_strict);
    if (!stays && waiting.active.erase(nominee.place) > 0) {
      waiting.inadmissible.insert(nominee.place);
      impl_.dirty_queues.insert(nominee.queue->name);
      is_changed_ = true;
    }
    const ObjectKey object = object_of(nominee.key);
    const Value* known = impl_.document(object);
    if (known == nullptr || state.workload.has_reservation() || !impl_.may_write(object)) return;
    Value document = *known;
    bool changed = unset_reservation(document, "Pending", nominee.message, impl_.now);
    if (Array requests = requests_document(nominee.assignment);
        !nominee.is_mismatch && !json::equal(Value(requests), Value(json::get_array(document, {"status", "resourceRequests"})))) {
      json::set(document, {"status", "resourceRequests"}, std::move(requests));
      changed = true;
    }
    if (changed) impl_.update(object, std::move(document), true, {impl_.note(object, "Warning", "Pending", nominee.message)});
  }

  CoreState& impl_;
  std::vector<Nominee> nominees_;
  std::set<WorkloadKey> preempted_;
  std::vector<std::pair<QuotaNode, FlavorAmounts>> kept_;
  bool is_changed_ = false, admitted_ = false;
};

void CoreState::run_cycles() {
  while (!stirred.empty()) {
    const std::vector<std::string> rivals = rivals_of(*stirred.begin());
    stirred.erase(stirred.begin());
    for (const std::string& one : rivals) stirred.erase(one);
    while (Cycle(*this, rivals).run()) {
    }
    // What the cycles themselves stirred was looked at by them.
    for (const std::string& one : rivals) stirred.erase(one);
  }
}

void CoreState::admit(const WorkloadKey& key, const std::string& queue, const Assignment& assignment) {
  const ObjectKey object = object_of(key);
  Value workload = *document(object);
  Array assignments;
  for (const PodSetChoice& pod_set : assignment.pod_sets) {
    Object flavor_names;
    for (const auto& [resource, choice] : pod_set.flavors) flavor_names[resource] = choice.flavor;
    assignments.push_back(Object{{"name", pod_set.name},
                                 {"flavors", std::move(flavor_names)},
                                 {"resourceUsage", amounts_document(pod_set.requests)},
                                 {"count", pod_set.count}});
  }
  json::set(workload, {"status", "admission"}, Object{{"clusterQueue", queue}, {"podSetAssignments", std::move(assignments)}});
  json::erase(workload, {"status", "resourceRequests"});
  set_condition(workload, "QuotaReserved", true, "QuotaReserved", fmt::format("Quota reserved in ClusterQueue {}", queue), now);
  set_condition(workload, "Admitted", true, "Admitted", "The workload is admitted", now);
  const Workload& before = workloads[key].workload;
  for (const char* type : {"Evicted", "Preempted"})
    if (const Condition* past = before.condition(type); past != nullptr && past->is_true)
      set_condition(workload, type, false, "QuotaReserved", "Previously: " + past->message, now);
  const Condition* requeued = before.condition("Requeued");
  const Duration waited = std::max(Duration::zero(), now - (requeued != nullptr ? requeued->since : before.created));
  const std::string seconds = fmt::format("{:.0f}", std::chrono::duration<double>(waited).count());
  update(object, std::move(workload), true,
         {note(object, "Normal", "QuotaReserved",
               fmt::format("Quota reserved in ClusterQueue {}, wait time since queued was {}s", queue, seconds)),
          note(object, "Normal", "Admitted", fmt::format("Admitted by ClusterQueue {}, wait time since reservation was 0s", queue))},
         {{.what = Tally::What::kQuotaReserved, .queue = queue, .waited = waited},
          {.what = Tally::What::kAdmitted, .queue = queue, .waited = waited}});
}

}  // namespace berth::queues
