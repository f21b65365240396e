// What a Job's status may say, and how it may change (ValidateJobUpdateStatus; the options of pkg/registry/batch/job's status strategy,
// which ask for a check only where what it looks at has changed).
#include <fmt/format.h>

#include <set>

#include "base/clock.h"
#include "base/split.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_string;

/// A Job before or after the change.
struct JobState {
  const Value& doc;
  bool is_complete, is_failed, is_to_fail, meets_success;

  explicit JobState(const Value& job)
      : doc(job),
        is_complete(has("Complete")),
        is_failed(has("Failed")),
        is_to_fail(has("FailureTarget")),
        meets_success(has("SuccessCriteriaMet")) {}
  [[nodiscard]] bool has(std::string_view type, std::string_view status = "True") const {
    return std::ranges::any_of(get_array(doc, {"status", "conditions"}), [&](const Value& condition) {
      return get_string(condition, {"type"}) == type && get_string(condition, {"status"}) == status;
    });
  }
  [[nodiscard]] bool is_finished() const { return is_complete || is_failed; }
  [[nodiscard]] const Value* of(std::string_view key) const { return json::find(doc, {"status", key}); }
  [[nodiscard]] std::int64_t count(std::string_view key) const { return get_int(doc, {"status", key}); }
  [[nodiscard]] std::string_view text(std::string_view key) const { return get_string(doc, {"status", key}); }
};

bool differs(const JobState& a, const JobState& b, std::string_view key) {
  const Value *x = a.of(key), *y = b.of(key);
  return x == nullptr || y == nullptr ? x != y : !json::equal(*x, *y);
}

/// Pods that ended and are not counted yet: each once.
void uncounted(const Value& doc, const Path& status, Errors& errors) {
  const Path at = status / "uncountedTerminatedPods";
  std::set<std::string_view> seen;
  for (const char* list : {"succeeded", "failed"}) {
    const Path list_at = at / list;
    std::size_t i = 0;
    for (const Value& uid : get_array(doc, {"status", "uncountedTerminatedPods", list})) {
      const Path one = list_at[i++];
      const std::string_view text = uid.is_string() ? json::as_view(uid) : "";
      if (text.empty())
        errors.invalid(one, "", "must not be empty");
      else if (!seen.insert(text).second)
        errors.duplicate(one, uid);
    }
  }
}

void times(const JobState& old, const JobState& now, const Path& at, Errors& errors) {
  const bool completion_changed = differs(old, now, "completionTime"), start_changed = differs(old, now, "startTime");
  const Value *completion = now.of("completionTime"), *start = now.of("startTime");
  const bool turned = old.is_complete != now.is_complete;
  if ((turned || completion_changed) && completion != nullptr && !now.is_complete)
    errors.invalid(at / "completionTime", *completion, "cannot set completionTime when there is no Complete=True condition");
  if ((turned || completion_changed) && completion == nullptr && now.is_complete)
    errors.required(at / "completionTime", "completionTime is required for Complete jobs");
  if ((start_changed || completion_changed) && completion != nullptr && start != nullptr) {
    const auto from = parse_rfc3339(now.text("startTime")), to = parse_rfc3339(now.text("completionTime"));
    if (from && to && *to < *from) errors.invalid(at / "completionTime", *completion, "must be equal to or after `startTime`");
  }
}

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Those that are well-formed.
Intervals intervals_of(std::string_view text, std::int64_t completions) {
  Intervals out;
  for (const auto part : split(text, ','))
    if (const auto interval = index_interval(part, completions)) out.push_back(*interval);
  return out;
}

void overlap(const JobState& now, std::int64_t completions, const Path& at, Errors& errors) {
  const Intervals failed = intervals_of(now.text("failedIndexes"), completions),
                  completed = intervals_of(now.text("completedIndexes"), completions);
  for (const auto& [low, high] : failed)
    for (const auto& [from, to] : completed)
      if (const std::int64_t shared = std::max(low, from); shared <= std::min(high, to))
        return errors.invalid(at / "failedIndexes", now.text("failedIndexes"),
                              fmt::format("failedIndexes and completedIndexes overlap at index: {}", shared));
}

void indexes(const JobState& old, const JobState& now, const Path& at, Errors& errors) {
  const bool completed_changed = old.text("completedIndexes") != now.text("completedIndexes"),
             failed_changed = differs(old, now, "failedIndexes");
  const Value *completions = json::find(now.doc, {"spec", "completions"}), *failed = now.of("failedIndexes");
  const bool per_index = json::find(now.doc, {"spec", "backoffLimitPerIndex"}) != nullptr;
  const std::int64_t total = get_int(now.doc, {"spec", "completions"});
  const std::string_view completed = now.text("completedIndexes");
  if (completed_changed && completions != nullptr)
    if (const auto count = count_indexes(completed, total); !count)
      errors.invalid(at / "completedIndexes", completed, "error parsing completedIndexes: " + count.error());
  if (failed_changed && completions != nullptr && per_index && failed != nullptr)
    if (const auto count = count_indexes(now.text("failedIndexes"), total); !count)
      errors.invalid(at / "failedIndexes", *failed, "error parsing failedIndexes: " + count.error());
  if (completed_changed && !completed.empty() && get_string(now.doc, {"spec", "completionMode"}) != "Indexed")
    errors.invalid(at / "completedIndexes", completed, "cannot set non-empty completedIndexes when non-indexed completion mode");
  if (failed_changed && !per_index && failed != nullptr)
    errors.invalid(at / "failedIndexes", *failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  if ((failed_changed || completed_changed) && completions != nullptr && failed != nullptr) overlap(now, total, at, errors);
}

/// What a Job that has ended no longer has.
void finished(const JobState& old, const JobState& now, const Path& at, Errors& errors) {
  if (!now.is_finished()) return;
  const bool turned = !old.is_finished();
  if ((turned || old.count("active") != now.count("active")) && now.count("active") > 0)
    errors.invalid(at / "active", Value(now.count("active")), "active>0 is invalid for finished job");
  const bool is_idle = get_bool(now.doc, {"spec", "suspend"}) && json::find(now.doc, {"spec", "completions"}) != nullptr &&
                       get_int(now.doc, {"spec", "completions"}) == 0;
  if ((turned || differs(old, now, "startTime")) && !is_idle && now.of("startTime") == nullptr)
    errors.required(at / "startTime", "startTime is required for finished job");
  const json::Array &succeeded = get_array(now.doc, {"status", "uncountedTerminatedPods", "succeeded"}),
                    &failed = get_array(now.doc, {"status", "uncountedTerminatedPods", "failed"});
  if ((turned || differs(old, now, "uncountedTerminatedPods")) && !(succeeded.empty() && failed.empty())) {
    const auto shown = [](const json::Array& uids) { return uids.empty() ? Value(nullptr) : Value(uids); };
    errors.invalid(at / "uncountedTerminatedPods", json::Object{{"Succeeded", shown(succeeded)}, {"Failed", shown(failed)}},
                   "must be empty for finished job");
  }
}

/// Conditions that exclude or need one another, first part: what stands before times and counters.
void excluding(const JobState& old, const JobState& now, const Path& at, Errors& errors) {
  if ((old.is_complete != now.is_complete || old.is_failed != now.is_failed) && now.is_complete && now.is_failed)
    errors.invalid_here(at, "cannot set Complete=True and Failed=true conditions");
  if ((old.is_complete != now.is_complete || old.is_to_fail != now.is_to_fail) && now.is_complete && now.is_to_fail)
    errors.invalid_here(at, "cannot set Complete=True and FailureTarget=true conditions");
}

void needing(const JobState& old, const JobState& now, const Path& at, Errors& errors) {
  if ((old.is_failed != now.is_failed || differs(old, now, "failedIndexes")) && now.is_failed && !now.is_to_fail)
    errors.invalid_here(at, "cannot set Failed=True condition without the FailureTarget=true condition");
  if ((old.is_complete != now.is_complete || old.meets_success != now.meets_success) && now.is_complete && !now.meets_success)
    errors.invalid_here(at, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
}

void success(const JobState& now, const Path& at, Errors& errors) {
  if (now.meets_success && now.is_failed) errors.invalid_here(at, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
  if (now.meets_success && now.is_to_fail) errors.invalid_here(at, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  if (json::find(now.doc, {"spec", "successPolicy"}) != nullptr && !now.meets_success && now.is_complete)
    errors.invalid_here(at, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
}

/// What may not be taken back.
void kept(const JobState& old, const JobState& now, const Path& at, Errors& errors) {
  for (const char* type : {"Failed", "Complete", "FailureTarget"})
    if (old.has(type) && !now.has(type))
      errors.invalid_here(at / "conditions", fmt::format("cannot disable the terminal {}=True condition", type));
  if (now.count("failed") < old.count("failed"))
    errors.invalid(at / "failed", Value(now.count("failed")), "cannot decrease the failed counter");
  const Value *completions = json::find(now.doc, {"spec", "completions"}), *parallelism = json::find(now.doc, {"spec", "parallelism"});
  const bool may_shrink = get_string(now.doc, {"spec", "completionMode"}) == "Indexed" && completions != nullptr &&
                          parallelism != nullptr && *completions == *parallelism;
  if (!may_shrink && now.count("succeeded") < old.count("succeeded"))
    errors.invalid(at / "succeeded", Value(now.count("succeeded")), "cannot decrease the succeeded counter");
  if (now.of("completionTime") != nullptr && old.of("completionTime") != nullptr && differs(old, now, "completionTime"))
    errors.invalid(at / "completionTime", *now.of("completionTime"), kImmutable);
  const bool resumes = old.has("Suspended") && now.has("Suspended", "False");
  if (!resumes && old.of("startTime") != nullptr && differs(old, now, "startTime") && !get_bool(now.doc, {"spec", "suspend"}))
    errors.invalid(at / "startTime", now.of("startTime") == nullptr ? Value(nullptr) : *now.of("startTime"),
                   "field is immutable for unsuspended job once set");
  if (old.meets_success && !now.meets_success)
    errors.invalid_here(at / "conditions", "cannot disable the SuccessCriteriaMet=True condition");
  if (old.is_complete && !old.meets_success && now.meets_success)
    errors.invalid_here(at / "conditions", "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
}

}  // namespace

void job_status(const Value& before, const Value& doc, Errors& errors) {
  const Path at("status");
  const JobState old(before), now(doc);
  for (const char* key : {"active", "succeeded", "failed", "ready", "terminating"})
    if (now.count(key) < 0) errors.invalid(at / key, Value(now.count(key)), kNegative);
  uncounted(doc, at, errors);
  excluding(old, now, at / "conditions", errors);
  times(old, now, at, errors);
  needing(old, now, at / "conditions", errors);
  finished(old, now, at, errors);
  indexes(old, now, at, errors);
  if ((old.is_finished() != now.is_finished() || differs(old, now, "terminating")) && now.is_finished() && now.count("terminating") > 0)
    errors.invalid(at / "terminating", Value(now.count("terminating")), "terminating>0 is invalid for finished job");
  if ((differs(old, now, "ready") || old.count("active") != now.count("active")) && now.count("ready") > now.count("active"))
    errors.invalid(at / "ready", Value(now.count("ready")), "cannot set more ready pods than active");
  success(now, at / "conditions", errors);
  kept(old, now, at, errors);
}

}  // namespace berth::model::validation
