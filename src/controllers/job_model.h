// Parts of the Job controller that stand alone: indexes, failure and success policies.
#pragma once
#include "controllers/common.h"

namespace berth::controllers::job {

inline constexpr const char* kIndexKey = "batch.kubernetes.io/job-completion-index";
inline constexpr const char* kTracking = "batch.kubernetes.io/job-tracking";

/// "0-3,5": sorted index sets as Jobs write them. Malformed parts are left out.
std::set<std::int64_t> parse_indexes(std::string_view text);
std::string format_indexes(const std::set<std::int64_t>& indexes);

struct Verdict {
  enum class Action { kCount, kIgnore, kFailIndex, kFailJob } action = Action::kCount;
  std::string message;  ///< kFailJob.
};
/// What spec.podFailurePolicy says about a failed pod: the first matching rule decides.
Verdict judge_failure(const json::Value& job, const json::Value& pod);
/// The index of the success policy's rule that holds, or -1.
std::int64_t matched_success_rule(const json::Value& job, const std::set<std::int64_t>& succeeded);

}  // namespace berth::controllers::job
