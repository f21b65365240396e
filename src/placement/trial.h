// The one way to ask the engine: everyone who places or moves a pod, or only wonders whether one could be, does it on a Trial.
//
//   Trial base(cluster, profiles)         over the asker's own cluster, which goes on changing
//     .decide(pod)                        where would it go?
//     .place(pod) = decide + reserve      it is there now, with its devices and volumes
//     .fork()                             what if? Change it, ask it, drop it: the base never notices
//   Attempt(base)                         what if, in place: changed, asked, and taken back when it ends (attempt.h)
//
//   scheduler: decide, reserve, bind, or undo when binding fails      descheduler: fork, evict, best, place
//   preemption: victims_for, confirmed on a fork                      autoscaler: fork, upsert_node, fits, place
//
// Every plugin's Reserve runs whenever a pod is put somewhere, so that the next question counts its devices and volumes as given away.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.h"
#include "placement/engine.h"
#include "placement/preemption.h"
#include "placement/profiles.h"

namespace berth::placement {

struct TrialOptions {
  EngineOptions engine;
  PreemptionOptions preemption;
  /// Takes the pod's node among several that are as good, in order of name; invalid leaves it to the engine. May be empty.
  std::function<NodeIndex(const Cluster& cluster, const PodInfo& pod, std::span<const NodeIndex> equals)> choose_among_equals = {};
};

/// A pod that has its place: on its node in the cluster, its devices and volumes given to it. Owner: the asker, who drops it once the pod
/// is bound (or for good, in a what-if), or gives it back to `Trial::undo`.
struct Reservation {
  PodInfoPtr pod;  ///< With the annotations that Reserve gave it.
  FrameworkPtr framework;
  NodeIndex node;
  CycleState state;  ///< What the Reserve plugins keep for PreBind and Unreserve.

  /// What has to be written before the pod is bound (PreBind); or why it cannot be bound.
  [[nodiscard]] std::expected<std::vector<PreBindWrite>, Status> pre_bind(const Cluster& cluster) const;
};

/// A pod that went, with what its going changed. Owner: the asker, who may give it back to `Trial::undo`.
struct EvictedPod {
  PodInfoPtr pod;
  NodeIndex node;                ///< Invalid when it held none.
  std::vector<ClaimPtr> claims;  ///< Its resource claims as they were.
  /// Devices on their way to the claims of these uids, which do not say so yet.
  std::vector<std::pair<std::string, std::shared_ptr<const model::Allocation>>> pending;
  std::vector<std::shared_ptr<const model::PersistentVolumeClaimView>> volume_claims;  ///< Those of its ephemeral volumes as they were.
};

/// The pod as its owner makes it anew: without node, status or nomination; with `labels` where given.
PodInfoPtr successor_of(const PodInfo& pod, Era era, const model::Labels* labels = nullptr);

/// What came of `Trial::place`.
struct Placement {
  NodeIndex node;     ///< Invalid when the pod was put nowhere.
  Status status;      ///< Then: why. PreEnqueue's word, the FailedScheduling message, an error, or a Reserve plugin's refusal.
  Decision decision;  ///< Of a pod that came past PreEnqueue.
  /// Of one that is placed: the node itself would not take it, and why (numa/node_alignment.h). Empty: nothing speaks against it.
  std::string would_refuse{};
  [[nodiscard]] bool is_placed() const { return node.is_valid(); }
};

/// A cluster and the engine that decides over it. Single-threaded; deterministic in the history, the questions and the seed.
///
/// A trial over a cluster (`Trial(cluster, …)`) changes that cluster, and the cluster may change beneath it: the engine catches up. A fork
/// owns a copy-on-write copy of cluster and engine alike: it costs what it changes, and neither sees the other's changes. Forks may outlive
/// what they were made from, and be forked again.
class Trial {
 public:
  /// The cluster must outlive the trial.
  Trial(Cluster& cluster, Profiles profiles, TrialOptions options = {});
  /// On a fork of the cluster, which is not touched.
  static Trial on_fork(const Cluster& cluster, Profiles profiles, TrialOptions options = {});
  ~Trial();
  Trial(Trial&&) noexcept;
  Trial& operator=(Trial&&) noexcept;

  [[nodiscard]] Trial within(const std::vector<NodeIndex>& nodes) const;  ///< Over a copy of the cluster in which are these nodes alone.

  /// Independent from now on. Not const: the columns are brought up to date first, once for all forks.
  [[nodiscard]] Trial fork();

  /// To be changed freely between questions.
  [[nodiscard]] Cluster& cluster();
  [[nodiscard]] const Cluster& cluster() const;
  [[nodiscard]] const Profiles& profiles() const;

  /// Makes ready to be asked for such pods, so that forks made from here on need not each do it for themselves.
  void prepare(const PodInfoPtr& pod);

  // Questions; they change nothing. A pod whose schedulerName no profile has gets an error that says so.

  /// PreEnqueue: whether the pod may be tried at all.
  [[nodiscard]] Status admits(const PodInfo& pod) const;
  /// What decides where the pod may go, in this cluster as it is now. Of no meaning where no profile has its schedulerName.
  [[nodiscard]] Signature sign(const PodInfo& pod);
  /// Where the scheduler would put the pod now.
  [[nodiscard]] Decision decide(const PodInfoPtr& pod);
  /// The same, with every node that the scheduler could take instead.
  [[nodiscard]] BestNodes best(const PodInfoPtr& pod);
  /// Whether the scheduler could take this very node for the pod now.
  [[nodiscard]] bool is_best(const PodInfoPtr& pod, NodeIndex node);
  /// Whether the node could take the pod at all (PreEnqueue and Filter); otherwise why not, in the scheduler's words.
  [[nodiscard]] Status fits(const PodInfoPtr& pod, NodeIndex node);
  /// Those of the nodes that could.
  [[nodiscard]] std::vector<NodeIndex> fitting(const PodInfo& pod, std::span<const NodeIndex> nodes) const;
  /// Every node's verdict and scores: costs nodes times plugins.
  [[nodiscard]] Evaluation evaluate(const PodInfo& pod) const;
  /// Who would have to go for a pod that fits nowhere, and where (PostFilter). With `failed` given (an extender's refusal, a full listing)
  /// every candidate is listed; otherwise the best alone may be.
  [[nodiscard]] PostFilterResult victims_for(const PodInfoPtr& pod, const Evaluation* failed = nullptr);
  /// Chooses among `result.candidates` anew, after somebody changed them.
  void choose_among(PostFilterResult& result, const PodInfo& pod) const;
  /// Who would have to go on this node; nullopt when nothing helps there, with the reason in `why`.
  [[nodiscard]] std::optional<Candidate> victims_on(const PodInfo& pod, NodeIndex node, Status& why) const;

  // Changes.

  /// Reserve, then assume: the pod is on `node` from now on, with what the Reserve plugins give it. On failure nothing has changed: what an
  /// earlier plugin reserved is given back. Whether the node fits is asked of the Reserve plugins' own filters alone.
  [[nodiscard]] Expected<Reservation, Status> reserve(const PodInfoPtr& pod, NodeIndex node);
  /// Unreserve in the opposite order, and the pod is nowhere. What changed meanwhile through other hands stays.
  void undo(Reservation& reservation);
  /// The pod counts on the node whatever the node says of it: with what Reserve gives it, or where that fails with its room alone.
  void hold(const PodInfoPtr& pod, NodeIndex node);
  /// `fits`, then `reserve`, then what binding would write: whoever comes next finds claims allocated.
  Status place_on(const PodInfoPtr& pod, NodeIndex node);
  /// `admits`, `decide`, then the same.
  Placement place(const PodInfoPtr& pod);

  /// The pod goes: its room is free, and resource claims that it alone used give their devices back.
  EvictedPod evict(const PodInfoPtr& pod);
  /// The evicted pod's successor, with claims of its own where its template makes them (resource claims, ephemeral volumes). It is not
  /// placed. May be asked again, with other labels.
  [[nodiscard]] PodInfoPtr renew(const EvictedPod& eviction, const model::Labels* labels = nullptr);
  /// The pod is where it was, its claims are as they were, and its successor is gone.
  void undo(const EvictedPod& eviction);

  /// Gives back all that makes answers faster (Engine::forget), preemption's tables, and the pods that the cluster's change log names. Not
  /// within an attempt.
  void forget();
  /// Gives back what nobody has asked for since the last call (Engine::forget_unused).
  void forget_unused();
  /// Bytes held by columns and preemption's tables, shared ones included.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  friend class Attempt;
  struct Impl;
  explicit Trial(std::unique_ptr<Impl> impl);
  /// What binding would write; a plugin that refuses gets the reservation undone.
  Status settle_all(Reservation& reservation);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::placement
