// Extenders, asked on a thread of their own over a fork of the cluster. The loop goes on meanwhile: events, bindings, and pods that no
// extender has a say about. One pod is asked about at a time, as by kube-scheduler, so that the next one's answer counts the last one's
// place; a few that come up meanwhile stand aside, and everybody waits when there are more.
//
//   decided by the engine --> asking --> answered --> still true? --> commit, or give up
//                               ^                         | the pod or the nodes changed: anew
//                               +-------------------------+
#include <algorithm>

#include "base/check.h"
#include "placement/preemption_words.h"
#include "scheduler/scheduler_impl.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::Decision;
using placement::PodInfoPtr;

namespace {

constexpr std::size_t kMostAside = 16;

/// Whole objects for extenders without a cache of their own, by the key of what was known when the asking began.
class Documents {
 public:
  void add(std::string key, ObjectRef object) { objects_.emplace(std::move(key), std::move(object)); }
  [[nodiscard]] json::Value of(const std::string& key, json::Value otherwise) const {
    const auto found = objects_.find(key);
    return found != objects_.end() && found->second != nullptr ? found->second->document() : otherwise;
  }

 private:
  std::map<std::string, ObjectRef> objects_;
};

/// A fork to be asked on another thread: it comes back to the loop's, which alone may let go of what forks share.
class LentFork {
 public:
  explicit LentFork(placement::Trial fork) : held_(std::make_shared<std::shared_ptr<placement::Trial>>()) {
    *held_ = std::make_shared<placement::Trial>(std::move(fork));
  }
  [[nodiscard]] const placement::Cluster& cluster() const { return (*held_)->cluster(); }
  /// On the other thread, when all is asked: what is to be destroyed on the loop's.
  [[nodiscard]] std::shared_ptr<placement::Trial> give_back() const { return std::exchange(*held_, nullptr); }

 private:
  std::shared_ptr<std::shared_ptr<placement::Trial>> held_;
};

json::Value nameless_node(const std::string& name) { return {{"metadata", {{"name", name}}}}; }
json::Value bare_pod(const placement::PodInfo& pod) {
  return {{"metadata", {{"name", pod.view().meta.name}, {"namespace", pod.view().meta.ns}, {"uid", pod.view().meta.uid}}}};
}

}  // namespace

std::optional<SchedulingQueue::Entry> Scheduler::Impl::next_entry() {
  while (asked.empty() && !aside.empty()) {
    Tracked* pod = wanting(aside.front());
    aside.pop_front();
    if (pod == nullptr || pod->as<Aside>() == nullptr) continue;  // It is gone, or came back as new.
    SchedulingQueue::Entry entry = std::move(pod->as<Aside>()->entry);
    pod->enter(Queued{});
    return entry;
  }
  return is_held_up() ? std::nullopt : queue.pop(loop.now());
}

bool Scheduler::Impl::is_held_up() const { return aside.size() >= kMostAside; }

bool Scheduler::Impl::stands_aside(const SchedulingQueue::Entry& entry, Tracked& pod) {
  if (extenders == nullptr || asked.empty() || !extenders->are_interested(pod.info->view())) return false;
  pod.enter(Aside{entry});
  aside.push_back(entry.pod.uid);
  return true;
}

void Scheduler::Impl::note_missed(EventSet events) {
  Tracked* pod = asked.empty() ? nullptr : wanting(asked);
  if (Asking* open = pod != nullptr ? pod->as<Asking>() : nullptr) open->turn.missed |= events;
}

void Scheduler::Impl::ask(Turn turn) {
  const auto evaluation = std::make_shared<placement::Evaluation>(trial.evaluate(*turn.info));
  const LentFork fork(trial.fork());
  const auto nodes = std::make_shared<Documents>();
  for (const auto& one : evaluation->feasible) {
    const std::string& name = cluster.node(one.node)->name;
    nodes->add(name, informers.get(kNodes).get("", name));
  }
  const std::string uid = turn.entry.pod.uid;
  const PodInfoPtr info = turn.info;
  begin_asking(std::move(turn));
  asker->run([=, weak = weak_from_this(), extenders = extenders, object = pods.at(uid).object] {
    Decision decision = extenders->choose(fork.cluster(), *info, object->document(), *evaluation,
                                          [&](const std::string& name) { return nodes->of(name, nameless_node(name)); });
    const std::string node(decision.node_name);
    return [=, fork = fork.give_back()] {
      if (const auto self = weak.lock()) self->answered(uid, decision, evaluation, node);
    };
  });
}

void Scheduler::Impl::begin_asking(Turn turn) {
  BERTH_CHECK(asked.empty(), "extenders are asked about {} before they answered about {}", turn.info->key, asked);
  asked = turn.entry.pod.uid;
  pods.at(asked).enter(Asking{std::move(turn), node_changes_seen});
}

std::optional<Turn> Scheduler::Impl::take_answer(const std::string& uid, bool depends_on_nodes) {
  BERTH_CHECK(asked == uid, "extenders answered about the pod {}, and were asked about \"{}\"", uid, asked);
  asked.clear();
  post_turn();
  Tracked* pod = wanting(uid);
  Asking* open = pod != nullptr ? pod->as<Asking>() : nullptr;
  if (open == nullptr) return std::nullopt;  // Gone, or come back as new.
  const std::uint64_t nodes_then = open->node_changes_seen;
  Turn turn = std::move(open->turn);
  pod->enter(Queued{});
  if (!is_leader) {
    queue.failed(uid, loop.now());
    return std::nullopt;
  }
  if (pod->info != turn.info || (depends_on_nodes && nodes_then != node_changes_seen)) {
    schedule_one(turn.entry);
    return std::nullopt;
  }
  return turn;
}

void Scheduler::Impl::answered(const std::string& uid, Decision decision, const std::shared_ptr<placement::Evaluation>& evaluation,
                               const std::string& node_name) {
  const bool is_scheduled = decision.outcome == Decision::Outcome::kScheduled;
  auto answered_about = take_answer(uid, !is_scheduled);
  if (!answered_about) return;
  Turn& turn = *answered_about;
  if (is_scheduled) {
    const placement::NodeInfo* node = cluster.find_node(node_name);
    if (node == nullptr || node->node == nullptr || !trial.fits(turn.info, node->index).is_success()) return schedule_one(turn.entry);
    decision.node = node->index;
  } else if (decision.outcome == Decision::Outcome::kUnschedulable) {
    turn.refused = *evaluation;
  }
  decided(std::move(turn), decision);
}

void Scheduler::Impl::ask_about_preemption(Turn turn, placement::PostFilterResult result) {
  const LentFork fork(trial.fork());
  const auto documents = std::make_shared<Documents>();
  for (const placement::Candidate& candidate : result.candidates)
    for (const PodInfoPtr& victim : candidate.victims)
      documents->add(victim->key, informers.get(kPods).get(victim->view().meta.ns, victim->view().meta.name));
  const std::string uid = turn.entry.pod.uid;
  const PodInfoPtr info = turn.info;
  begin_asking(std::move(turn));
  asker->run([=, weak = weak_from_this(), extenders = extenders, object = pods.at(uid).object] {
    const Extenders::Documents whole{[&](const placement::PodInfo& pod) { return documents->of(pod.key, bare_pod(pod)); }, nameless_node};
    const auto left = std::make_shared<Result<std::vector<placement::Candidate>>>(
        extenders->process_preemption(fork.cluster(), *info, object->document(), result.candidates, whole));
    return [=, fork = fork.give_back()] {
      if (const auto self = weak.lock()) self->preemption_answered(uid, result, std::move(*left));
    };
  });
}

void Scheduler::Impl::preemption_answered(const std::string& uid, placement::PostFilterResult result,
                                          Result<std::vector<placement::Candidate>> left) {
  auto answered_about = take_answer(uid, true);
  if (!answered_about) return;
  Turn& turn = *answered_about;
  result.candidates.clear();
  if (left) {
    result.candidates = std::move(*left);
    trial.choose_among(result, *turn.info);
    if (result.choice() == nullptr)
      result.status = placement::words::refused("no candidate node for preemption", turn.framework->profile());
  } else {
    result.best.reset();
    result.status = placement::Status::error("preemption: " + left.error().message);
  }
  give_up_after(std::move(turn), result);
}

}  // namespace berth::scheduler
