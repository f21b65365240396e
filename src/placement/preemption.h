// Preemption (kube-scheduler's DefaultPreemption and framework/preemption): which pods would have to go for a pending pod, and where.
//
//   failed attempt -> eligible? -> nodes that evicting could help -> on each: remove all lower pods, fit?, reprieve the important ones
//                  -> pick one node: fewest budget violations, lowest top victim, smallest sum, fewest victims, latest start
//
// Pure: nothing is evicted or nominated here; the shell does that with the result.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "placement/engine.h"
#include "placement/framework.h"

namespace berth::placement {

struct PreemptionOptions {
  /// Candidates that would break a disruption budget are not considered at all.
  bool budgets_are_hard = false;
  /// After the choice, the whole cycle is run on a fork without the victims; a node that still does not take the pod is dropped.
  bool confirm = true;
};

/// A node on which evicting `victims` makes room.
struct Candidate {
  NodeIndex node;
  std::vector<PodInfoPtr> victims;  ///< 1.36: most important first. 1.20: those that break a budget first.
  std::size_t budget_violations = 0;
};

/// Violations, the top victim's priority, the sum of priorities, how many, minus the earliest start of the top ones.
using CandidateRank = std::tuple<std::size_t, std::int64_t, __int128, std::size_t, std::int64_t>;
/// The order of pickOneNodeForPreemption: smaller is better.
CandidateRank rank_of(const Candidate& candidate);

/// What the PostFilter stage says.
struct PostFilterResult {
  /// Success with a candidate; Unschedulable or Error otherwise. The message is what FailedScheduling appends (1.36).
  Status status;
  std::vector<Candidate> candidates;  ///< In the order of the nodes' arrival. The fast path lists only the best.
  std::optional<std::size_t> best;    ///< Into candidates: of the tied ones the first by name.
  /// Equally good by every criterion; sorted by name. The fast form lists the first 256 by slot, where there are more.
  std::vector<NodeIndex> tied;
  std::optional<ClaimRelease> release;  ///< To be given back beside all that.
  bool waits_for_victims = false;       ///< Room is being made on its nominated node already: it preempts nobody else.
  [[nodiscard]] const Candidate* choice() const { return best ? &candidates[*best] : nullptr; }
};

/// What a PostFilter plugin is asked: who fits nowhere, and where. Lives for the one question.
class PostFilterCall {
 public:
  /// `failed` null: nobody has asked all nodes; PreFilter let the pod through.
  PostFilterCall(const FrameworkPtr& of, const Cluster& in, const PodInfoPtr& who, const PreemptionOptions& how, const Evaluation* failed)
      : framework(of), cluster(in), pod(who), options(how), failed_(failed) {}

  const FrameworkPtr& framework;
  const Cluster& cluster;
  const PodInfoPtr& pod;
  const PreemptionOptions& options;
  /// What preemption says of the pod, where a Preemptor knows without asking node by node; else empty.
  std::function<Status(PostFilterResult& out)> quick{};

  [[nodiscard]] Status pre_filter() const { return failed_ == nullptr ? Status::success() : failed_->pre_filter; }
  /// Each node's verdict on the pod. May cost a question to every node: not for plugins that have nothing to do for the pod.
  [[nodiscard]] const Evaluation& failed() const;

 private:
  mutable const Evaluation* failed_;
  mutable std::optional<Evaluation> own_;
};

/// Asks the PostFilter plugins of the profile in turn.
PostFilterResult run_post_filter(const PostFilterCall& call);
/// The same for a pod that `failed` says fits nowhere. The plain form: exact, every candidate listed.
PostFilterResult run_post_filter(const FrameworkPtr& framework, const Cluster& cluster, const PodInfoPtr& pod, const Evaluation& failed,
                                 const PreemptionOptions& options = {});
/// DefaultPreemption's PostFilter in its plain form: each node is tried in full.
Status preempt(const PostFilterCall& call, PostFilterResult& out);

/// Chooses among `result.candidates` anew (after extenders changed them): sets best and tied; drops candidates that a dry run of the whole
/// cycle shows would not help, where the options say so. The status becomes Success when one is left.
void choose_candidate(const FrameworkPtr& framework, const Cluster& cluster, const PodInfo& pod, const PreemptionOptions& options,
                      PostFilterResult& result);

/// The whole cycle without the victims: whether the node takes the pod. Counts what selecting victims node by node cannot see.
bool helps(const FrameworkPtr& framework, const Cluster& cluster, const PodInfo& pod, const Candidate& candidate);

/// The victims on one node (SelectVictimsOnNode): nullopt with the reason in `why` when evicting does not help there. `state` is the pod's
/// cycle after PreFilter.
std::optional<Candidate> select_victims(const Framework& framework, const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                        Status& why);

/// More important pods are reprieved first: higher priority, then earlier start.
bool is_more_important(const PodInfo& a, const PodInfo& b);

/// For each of `pods` (in order), whether evicting it breaks a disruption budget once those before it are gone
/// (filterPodsWithPDBViolation).
std::vector<bool> budget_violations(const Cluster& cluster, const std::vector<PodInfoPtr>& pods);

}  // namespace berth::placement
