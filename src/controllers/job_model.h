// Parts of the Job controller that stand alone: one Job with its pods as a step sees them, indexes, back-off, failure and success policies.
#pragma once
#include "controllers/common.h"

namespace berth::controllers::job {

inline constexpr const char* kIndexKey = "batch.kubernetes.io/job-completion-index";
inline constexpr const char* kTracking = "batch.kubernetes.io/job-tracking";
inline constexpr std::int64_t kNoIndex = -1;
inline constexpr std::size_t kMostPodsAStep = 500;  ///< Created, deleted or counted in one step.

using Indexes = std::set<std::int64_t>;
/// "0-3,5": sorted index sets as Jobs write them. Malformed parts are left out, as is what is not below `limit`.
Indexes parse_indexes(std::string_view text, std::int64_t limit = std::numeric_limits<std::int64_t>::max());
std::string format_indexes(const Indexes& indexes);

struct Verdict {
  enum class Action { kCount, kIgnore, kFailIndex, kFailJob } action = Action::kCount;
  std::string message;  ///< kFailJob.
};
/// What spec.podFailurePolicy says about a failed pod: the first matching rule decides.
Verdict judge_failure(const json::Value& job, const json::Value& pod);
/// The index of the success policy's rule that holds, or -1.
std::int64_t matched_success_rule(const json::Value& job, const Indexes& succeeded);

/// A pod of a Job.
struct JobPod {
  PodRef info;
  std::int64_t index = kNoIndex;  ///< Of an Indexed Job, below its completions.
  bool is_failed = false;         ///< Phase Failed; or on its way out, where that counts.
  Verdict verdict;                ///< Of a failed pod.
  TimePoint finished{};           ///< Of a finished or deleted pod: when it ended, as far as can be told.
  /// Failures of the index before this pod: those that count, and those that the policy ignored.
  std::int64_t index_failures = 0, ignored_index_failures = 0;
};

/// Failures since the last success: they delay new pods 10 s, 20 s, … 10 min.
struct Backoff {
  std::int64_t failures = 0;
  TimePoint last{};
};
/// How long pods wait after so many failures, the last of which was then.
Duration backoff_left(std::int64_t failures, TimePoint last, TimePoint now);
/// The record after these pods ended, which were not known of before.
Backoff next_backoff(Backoff before, std::vector<const JobPod*> succeeded, std::vector<const JobPod*> failed);

/// One Job as a step sees it.
struct View {
  ObjectRef object;
  json::Value document;
  std::vector<JobPod> pods;
  std::vector<const JobPod*> active;  ///< Neither finished nor on their way out.
  std::set<std::string> uncounted_succeeded, uncounted_failed;
  std::int64_t succeeded = 0, failed = 0, terminating = 0, ready = 0, restarts = 0;
  std::vector<const JobPod*> newly_succeeded, newly_failed;  ///< Not in the status yet.
  Indexes done, failed_indexes;
  bool indexed = false, per_index = false;
  bool only_failed = false;  ///< Pods are replaced, and count as failed, only when they have ended.
  bool suspended = false;
  std::optional<std::int64_t> completions;
  std::int64_t parallelism = 1;
  std::string pod_group;  ///< Of new pods; empty: they are scheduled one by one.
  /// The failed pod of each index that waits for its successor, which inherits its counts.
  std::map<std::int64_t, const JobPod*> awaiting_successor;
};
View view_of(ObjectRef job, json::Value document, const std::vector<PodRef>& pods);

/// The active pods to remove: at least so many, and all whose index is not wanted or has another pod.
std::vector<const JobPod*> victims_of(const View& view, std::size_t at_least);

/// New pods, or how long they have to wait.
struct Creation {
  std::vector<Write> writes;
  Duration pause{0};
};
Creation create_pods(const View& view, std::int64_t count, const Backoff& backoff, TimePoint now);

}  // namespace berth::controllers::job
