#include "whatif/retries.h"

#include <fmt/format.h>

#include <charconv>

namespace berth::whatif {
namespace {

std::int64_t number_in(const std::string* text) {
  std::int64_t out = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), out);
  return out;
}

/// What the first rule that speaks of disrupted pods says: "Ignore", "FailJob", "FailIndex", "Count"; empty: no rule does.
std::string_view action_on_disruption(const json::Value& job) {
  for (const json::Value& rule : json::get_array(job, {"spec", "podFailurePolicy", "rules"}))
    for (const json::Value& pattern : json::get_array(rule, {"onPodConditions"}))
      if (json::get_string(pattern, {"type"}) == "DisruptionTarget" && json::get_string(pattern, {"status"}, "True") == "True")
        return json::get_string(rule, {"action"});
  return {};
}

}  // namespace

std::string index_of(const model::PodView& pod) {
  const std::string* index = pod.meta.annotation("batch.kubernetes.io/job-completion-index");
  return index == nullptr ? std::string() : *index;
}

JobVerdict verdict_of(const json::Value& job, const model::PodView& pod, const JobFailures& before) {
  JobVerdict out;
  const bool has_policy = json::find(job, {"spec", "podFailurePolicy"}) != nullptr;
  out.waits = has_policy || json::get_string(job, {"spec", "podReplacementPolicy"}) == "Failed";
  if (json::get_bool(job, {"spec", "suspend"})) {
    out.gives_up = "its Job is suspended";
    return out;
  }
  const std::string_view action = action_on_disruption(job);
  if (action == "Ignore") {
    out.counts = false;
    return out;
  }
  if (action == "FailJob" || action == "FailIndex") {
    out.gives_up = fmt::format("its Job's podFailurePolicy says {} of a disrupted pod", action);
    out.fails = action == "FailJob";
    return out;
  }
  const json::Value* per_index = json::find(job, {"spec", "backoffLimitPerIndex"});
  if (per_index != nullptr) {
    const std::int64_t limit = json::get_int(job, {"spec", "backoffLimitPerIndex"});
    const std::int64_t failed = number_in(pod.meta.annotation("batch.kubernetes.io/job-index-failure-count")) + before.of_index;
    if (failed + 1 > limit) {
      out.gives_up = fmt::format("its Job has no retries left for this index (backoffLimitPerIndex {})", limit);
      return out;
    }
  }
  constexpr std::int64_t kDefault = 6;
  const std::int64_t limit = json::get_int(job, {"spec", "backoffLimit"}, per_index != nullptr ? INT32_MAX : kDefault);
  const std::int64_t failed = json::get_int(job, {"status", "failed"}) + before.of_job;
  out.fails = failed + 1 > limit;
  if (out.fails) out.gives_up = fmt::format("its Job has no retries left and fails (backoffLimit {}, {} failed before)", limit, failed);
  return out;
}

}  // namespace berth::whatif
