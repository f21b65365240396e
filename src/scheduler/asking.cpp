// Extenders, asked over a fork of the cluster. All else goes on meanwhile: events, bindings, and pods that no
// extender has a say about. One pod is asked about at a time, as by kube-scheduler, so that the next one's answer counts the last one's
// place; a few that come up meanwhile stand aside, and everybody waits when there are more.
//
//   decided by the engine --> asking --> answered --> still true? --> commit, or give up
//                               ^                         | the pod or the nodes changed: anew
//                               +-------------------------+
#include <algorithm>

#include "base/check.h"
#include "placement/preemption_words.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::Decision;
using placement::PodInfoPtr;

namespace {

constexpr std::size_t kMostAside = 16;

}  // namespace

std::optional<SchedulingQueue::Entry> Core::next_entry() {
  while (asked.empty() && !aside.empty()) {
    Tracked* pod = wanting(aside.front());
    aside.pop_front();
    if (pod == nullptr || pod->as<Aside>() == nullptr) continue;  // It is gone, or came back as new.
    SchedulingQueue::Entry entry = std::move(pod->as<Aside>()->entry);
    pod->enter(Queued{});
    return entry;
  }
  return is_held_up() ? std::nullopt : queue.pop(now);
}

bool Core::is_held_up() const { return aside.size() >= kMostAside; }

bool Core::stands_aside(const SchedulingQueue::Entry& entry, Tracked& pod) {
  if (extenders == nullptr || asked.empty() || !extenders->are_interested(pod.info->view())) return false;
  pod.enter(Aside{entry});
  aside.push_back(entry.pod.uid);
  return true;
}

void Core::note_missed(EventSet events) {
  Tracked* pod = asked.empty() ? nullptr : wanting(asked);
  if (Asking* open = pod != nullptr ? pod->as<Asking>() : nullptr) open->turn.missed |= events;
}

void Core::ask(Turn turn) {
  auto evaluation = std::make_shared<placement::Evaluation>(trial.evaluate(*turn.info));
  const PodInfoPtr info = turn.info;
  begin_asking(std::move(turn));
  out.ask<AskForNode>(
      [this, uid = info->view().meta.uid, evaluation](Answer& answer) {
        auto& chosen = std::get<Chosen>(answer);
        answered(uid, std::move(chosen.decision), evaluation, chosen.node_name);
      },
      info, pods.at(info->view().meta.uid).object, evaluation);
}

void Core::begin_asking(Turn turn) {
  BERTH_CHECK(asked.empty(), "extenders are asked about {} before they answered about {}", turn.info->key, asked);
  asked = turn.entry.pod.uid;
  pods.at(asked).enter(Asking{std::move(turn), node_changes_seen});
}

std::optional<Turn> Core::take_answer(const std::string& uid, bool depends_on_nodes) {
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
    queue.failed(uid, now);
    return std::nullopt;
  }
  if (pod->info != turn.info || (depends_on_nodes && nodes_then != node_changes_seen)) {
    schedule_one(turn.entry);
    return std::nullopt;
  }
  return turn;
}

void Core::answered(const std::string& uid, Decision decision, const std::shared_ptr<placement::Evaluation>& evaluation,
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

void Core::ask_about_preemption(Turn turn, placement::PostFilterResult result) {
  const PodInfoPtr info = turn.info;
  auto candidates = result.candidates;
  begin_asking(std::move(turn));
  out.ask<AskForVictims>([this, uid = info->view().meta.uid, result = std::move(result)](
                             Answer& answer) { preemption_answered(uid, result, std::get<LeftVictims>(std::move(answer))); },
                         info, pods.at(info->view().meta.uid).object, std::move(candidates));
}

void Core::preemption_answered(const std::string& uid, placement::PostFilterResult result, Result<std::vector<placement::Candidate>> left) {
  auto answered_about = take_answer(uid, true);
  if (!answered_about) return;
  Turn& turn = *answered_about;
  result.candidates.clear();
  if (left) {
    result.candidates = std::move(*left);
    trial.choose_among(result, *turn.info);
    if (result.choice() == nullptr) result.status = placement::words::refused("no candidate node for preemption", *turn.framework);
  } else {
    result.best.reset();
    result.status = placement::Status::error("preemption: " + left.error().message);
  }
  give_up_after(std::move(turn), result);
}

}  // namespace berth::scheduler
