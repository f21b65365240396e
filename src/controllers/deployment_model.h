// A Deployment and its ReplicaSets as the Deployment controller's steps see them.
#pragma once
#include "controllers/common.h"

namespace berth::controllers::deployment {

inline constexpr const char* kRevision = "deployment.kubernetes.io/revision";
inline constexpr const char* kRevisionHistory = "deployment.kubernetes.io/revision-history";
inline constexpr const char* kDesiredReplicas = "deployment.kubernetes.io/desired-replicas";
inline constexpr const char* kMaxReplicas = "deployment.kubernetes.io/max-replicas";
inline constexpr const char* kHashLabel = "pod-template-hash";
inline constexpr const char* kRollbackTo = "deprecated.deployment.rollback.to";
/// What is a Deployment's own and not handed on to its sets.
inline constexpr std::array kOwnAnnotations = {
    "kubectl.kubernetes.io/last-applied-configuration", kRevision, kRevisionHistory, kDesiredReplicas, kMaxReplicas, kRollbackTo};

/// One owned ReplicaSet. `replicas` is what its spec will be after the plan.
struct Set {
  ObjectRef object;
  json::Value document;
  std::int64_t replicas = 0, status_replicas = 0, ready = 0, available = 0, revision = 0;
  std::optional<std::int64_t> terminating;  ///< nullopt: the set's controller has not counted them.
  bool is_observed = false;                 ///< Its controller has seen it.
  TimePoint created{};

  [[nodiscard]] const std::string& name() const { return object->name(); }
  [[nodiscard]] std::int64_t annotation(const char* key, std::int64_t fallback) const;
};

struct Wanted {
  std::int64_t replicas = 1, max_surge = 0, max_unavailable = 0;
  bool rolling = true, paused = false;
  /// nullopt: no deadline (unset or 2147483647).
  std::optional<Duration> progress_deadline;
  [[nodiscard]] std::int64_t max_total() const { return rolling ? replicas + max_surge : replicas; }
};
Wanted read_wanted(const json::Value& document);

struct View {
  ObjectRef object;
  json::Value document;
  Wanted wanted;
  std::vector<Set> sets;  ///< Oldest first.
  Set* newest = nullptr;  ///< The one whose template is the Deployment's; into `sets`.
  std::string revision;   ///< What the Deployment's annotation shall say; empty: as it is.
  [[nodiscard]] std::vector<Set*> old_sets();
  [[nodiscard]] std::vector<Set*> active_sets();
  [[nodiscard]] std::int64_t total_replicas() const;
};

/// Whether both templates say the same, hash labels left out, to Kubernetes' controller as well: an empty list is none.
bool same_template(const json::Value& one, const json::Value& other);
/// The replicas that the new ReplicaSet may have now (deploymentutil.NewRSNewReplicas).
std::int64_t new_set_replicas(const View& view, std::int64_t present);

enum class Annotate { kWithSize, kAlways };
/// Adds the write that scales a set, with the event, and its size annotations; those alone are only written with kAlways. True when the
/// size changes.
bool scale_set(Plan& plan, View& view, Set& set, std::int64_t replicas, Annotate annotate = Annotate::kWithSize);
/// The scaling of a paused or resized Deployment, proportionally over its active sets (pkg/controller/deployment/sync.go).
void scale_proportionally(Plan& plan, View& view);
/// One step of a rolling update; true when a set was scaled.
bool roll(Plan& plan, View& view);
/// Deletes the oldest empty sets beyond revisionHistoryLimit.
void clean_history(Plan& plan, View& view);

/// The rollback that the annotation deprecated.deployment.rollback.to asks for (a revision; 0: the last but one): the template and the
/// annotations of that revision's set. The annotation goes in any case. False when there is none (pkg/controller/deployment/rollback.go).
bool roll_back(Plan& plan, View& view);

/// Status counts and the Available, Progressing and ReplicaFailure conditions. `requeue_after` when a deadline runs.
json::Object rollout_status(View& view, TimePoint now, std::optional<Duration>& requeue_after, bool with_progress);
/// Sets a Deployment condition: unchanged when status and reason are.
void set_deployment_condition(json::Object& status, const Condition& condition, TimePoint now);
bool is_complete(const View& view, const json::Object& status);

}  // namespace berth::controllers::deployment
