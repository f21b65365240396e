// Jobs and CronJobs (pkg/apis/batch/validation).
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "base/go/cron.h"
#include "base/split.h"
#include "model/internal_form.h"
#include "model/selector.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_string;

constexpr std::int64_t kMaxIndexes = 100000;  ///< Of failed indexes kept, and of parallel ones.
constexpr std::size_t kMaxRules = 20, kMaxExitCodes = 255, kMaxConditions = 20, kMaxManagerLength = 63;
constexpr std::string_view kOnlyIndexed = "requires indexed completion mode";

void exit_codes(const Value& codes, const std::set<std::string_view>& containers, const Path& at, Errors& errors) {
  const std::string_view op = get_string(codes, {"operator"});
  if (op.empty())
    errors.required(at / "operator", "valid values: [\"In\" \"NotIn\"]");
  else if (op != "In" && op != "NotIn")
    errors.not_supported(at / "operator", op, {"In", "NotIn"});
  if (const Value* name = json::find(codes, "containerName"); name != nullptr && !containers.contains(get_string(codes, {"containerName"})))
    errors.invalid(at / "containerName", *name, "must be one of the container or initContainer names in the pod template");
  const json::Array& values = get_array(codes, {"values"});
  const Path values_at = at / "values";
  if (values.empty()) errors.invalid(values_at, Value(values), "at least one value is required");
  if (values.size() > kMaxExitCodes) errors.too_many(values_at, values.size(), kMaxExitCodes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (op == "In" && values[i] == 0) errors.invalid(values_at[i], values[i], "must not be 0 for the In operator");
    if (i == 0 || !values[i].is_int64() || !values[i - 1].is_int64()) continue;
    if (values[i] == values[i - 1])
      errors.duplicate(values_at[i], values[i]);
    else if (values[i].get_int64() < values[i - 1].get_int64())
      errors.invalid(values_at, Value(values), "must be ordered");
  }
}

void failure_policy(const Value& spec, const Path& spec_at, Errors& errors) {
  const Value* policy = json::find(spec, "podFailurePolicy");
  if (policy == nullptr) return;
  const Path policy_at = spec_at / "podFailurePolicy";
  const Path at = policy_at / "rules";
  std::set<std::string_view> containers;
  for (const char* list : {"containers", "initContainers"})
    for (const Value& container : get_array(spec, {"template", "spec", list})) containers.insert(get_string(container, {"name"}));
  const json::Array& rules = get_array(*policy, {"rules"});
  if (rules.size() > kMaxRules) errors.too_many(at, rules.size(), kMaxRules);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Path one = at[i];
    const std::string_view action = get_string(rules[i], {"action"});
    if (action.empty())
      errors.required(one / "action", "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]");
    else
      supported_value(rules[i], "action", one, {"Count", "FailIndex", "FailJob", "Ignore"}, errors);
    if (action == "FailIndex" && json::find(spec, "backoffLimitPerIndex") == nullptr)
      errors.invalid(one / "action", action, "requires the backoffLimitPerIndex to be set");
    const Value* codes = json::find(rules[i], "onExitCodes");
    const json::Array& conditions = get_array(rules[i], {"onPodConditions"});
    if (codes != nullptr) exit_codes(*codes, containers, one / "onExitCodes", errors);
    const Path conditions_at = one / "onPodConditions";
    if (conditions.size() > kMaxConditions) errors.too_many(conditions_at, conditions.size(), kMaxConditions);
    for (std::size_t k = 0; k < conditions.size(); ++k) {
      const Path condition_at = conditions_at[k];
      const std::string_view type = get_string(conditions[k], {"type"}), status = get_string(conditions[k], {"status"});
      if (const std::string why = check_qualified_name(type); !why.empty()) errors.invalid(condition_at / "type", type, why);
      if (status != "True" && status != "False" && status != "Unknown")
        errors.not_supported(condition_at / "status", status, {"False", "True", "Unknown"});
    }
    if (codes != nullptr && !conditions.empty())
      errors.invalid_here(one, "specifying both OnExitCodes and OnPodConditions is not supported");
    if (codes == nullptr && conditions.empty()) errors.invalid_here(one, "specifying one of OnExitCodes and OnPodConditions is required");
  }
}

void success_policy(const Value& spec, const Path& spec_at, Errors& errors) {
  const Value* policy = json::find(spec, "successPolicy");
  if (policy == nullptr) return;
  const Path policy_at = spec_at / "successPolicy";
  if (get_string(spec, {"completionMode"}) != "Indexed")
    return errors.invalid(policy_at, internal_form("batch.v1.SuccessPolicy", policy), kOnlyIndexed);
  const Path at = policy_at / "rules";
  const json::Array& rules = get_array(*policy, {"rules"});
  const std::int64_t completions = get_int(spec, {"completions"});
  if (rules.empty()) errors.required(at, "at least one rules must be specified when the successPolicy is specified");
  if (rules.size() > kMaxRules) errors.too_many(at, rules.size(), kMaxRules);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Path one = at[i];
    const Value *count = json::find(rules[i], "succeededCount"), *indexes = json::find(rules[i], "succeededIndexes");
    const std::int64_t wanted = get_int(rules[i], {"succeededCount"});
    if (count == nullptr && indexes == nullptr)
      errors.required(one, "at least one of succeededCount or succeededIndexes must be specified");
    std::int64_t named = completions;
    if (indexes != nullptr && indexes->is_string()) {
      const auto total = count_indexes(json::as_view(*indexes), completions);
      if (!total) errors.invalid(one / "succeededIndexes", *indexes, fmt::format("error parsing succeededIndexes: {}", total.error()));
      named = total.value_or(0);
    }
    if (count == nullptr) continue;
    non_negative(rules[i], "succeededCount", one, errors);
    if (wanted > completions)
      errors.invalid(one / "succeededCount", *count,
                     fmt::format("must be less than or equal to {} (the number of specified completions)", completions));
    if (indexes != nullptr && wanted > named)
      errors.invalid(
          one / "succeededCount", *count,
          fmt::format("must be less than or equal to {} (the number of indexes in the specified succeededIndexes field)", named));
  }
}

void indexed(const Value& spec, const Path& at, Errors& errors) {
  const Value *completions = json::find(spec, "completions"), *failed = json::find(spec, "maxFailedIndexes");
  if (completions == nullptr) errors.required(at / "completions", "when completion mode is Indexed");
  if (const std::int64_t parallel = get_int(spec, {"parallelism"}); parallel > kMaxIndexes)
    errors.invalid(at / "parallelism", Value(parallel),
                   fmt::format("must be less than or equal to {} when completion mode is Indexed", kMaxIndexes));
  if (failed != nullptr && completions != nullptr && get_int(spec, {"maxFailedIndexes"}) > get_int(spec, {"completions"}))
    errors.invalid(at / "maxFailedIndexes", *failed, "must be less than or equal to completions");
  if (failed != nullptr && get_int(spec, {"maxFailedIndexes"}) > kMaxIndexes)
    errors.invalid(at / "maxFailedIndexes", *failed, fmt::format("must be less than or equal to {}", kMaxIndexes));
}

/// A manager is named by its domain and a path.
void managed_by(const Value& spec, const Path& spec_at, Errors& errors) {
  const Value* name = json::find(spec, "managedBy");
  if (name == nullptr || !name->is_string()) return;
  const Path at = spec_at / "managedBy";
  const std::string_view text = json::as_view(*name);
  const std::size_t slash = text.find('/');
  if (text.empty())
    errors.required(at);
  else if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size())
    errors.invalid(at, *name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  else if (const std::string why = check_dns1123_subdomain(text.substr(0, slash)); !why.empty())
    errors.invalid(at, text.substr(0, slash), why);
  if (text.size() > kMaxManagerLength) errors.too_long(at, kMaxManagerLength);
}

/// The machine's time zone data is a table; without one no name can be called wrong.
bool is_known_zone(std::string_view name) {
  static const bool has_data = std::filesystem::is_directory("/usr/share/zoneinfo");
  std::error_code ignored;
  return !has_data || name == "UTC" || std::filesystem::is_regular_file(fmt::format("/usr/share/zoneinfo/{}", name), ignored);
}

void time_zone(const Value& spec, const Path& spec_at, Errors& errors) {
  const Value* zone = json::find(spec, "timeZone");
  if (zone == nullptr || !zone->is_string()) return;
  const Path at = spec_at / "timeZone";
  const std::string_view name = json::as_view(*zone);
  if (name.empty()) return errors.invalid(at, *zone, "timeZone must be nil or non-empty string");
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "local")
    return errors.invalid(at, *zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  const bool is_name = name.front() != '/' && name.find("..") == std::string_view::npos && name.find('\\') == std::string_view::npos;
  if (!is_name) return errors.invalid(at, *zone, "time: invalid location name");
  if (!is_known_zone(name)) errors.invalid(at, *zone, fmt::format("unknown time zone {}", name));
}

}  // namespace

Expected<std::pair<std::int64_t, std::int64_t>, std::string> index_interval(std::string_view part, std::int64_t completions) {
  const std::size_t dash = part.find('-');
  if (dash != std::string_view::npos && part.find('-', dash + 1) != std::string_view::npos)
    return std::unexpected(
        fmt::format("the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
                    json::serialize(Value(part))));
  std::int64_t bounds[2];
  for (int side = 0; side < 2; ++side) {
    const std::string_view number = dash == std::string_view::npos ? part : side == 0 ? part.substr(0, dash) : part.substr(dash + 1);
    const auto [at, error] = std::from_chars(number.data(), number.data() + number.size(), bounds[side]);
    if (error != std::errc() || at != number.data() + number.size())
      return std::unexpected(fmt::format("cannot convert string to integer for index: {}", json::serialize(Value(number))));
    if (bounds[side] >= completions) return std::unexpected(fmt::format("too large index: {}", json::serialize(Value(number))));
  }
  if (dash != std::string_view::npos && bounds[1] <= bounds[0])
    return std::unexpected(fmt::format("non-increasing order, previous: {}, current: {}", bounds[0], bounds[1]));
  return std::pair(bounds[0], bounds[1]);
}

Expected<std::int64_t, std::string> count_indexes(std::string_view text, std::int64_t completions) {
  std::int64_t total = 0, last = -1;
  if (text.empty()) return total;
  for (const auto part : split(text, ',')) {
    const auto interval = index_interval(part, completions);
    if (!interval) return std::unexpected(interval.error());
    const auto [low, high] = *interval;
    if (low <= last) return std::unexpected(fmt::format("non-increasing order, previous: {}, current: {}", last, low));
    last = high;
    total += high - low + 1;
  }
  return total;
}

void job(const Value& spec, const Path& at, Errors& errors, bool selects) {
  for (const char* key : {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
                          "backoffLimitPerIndex", "maxFailedIndexes"})
    non_negative(spec, key, at, errors);
  if (json::find(spec, "maxFailedIndexes") != nullptr && json::find(spec, "backoffLimitPerIndex") == nullptr)
    errors.required(at / "backoffLimitPerIndex", "when maxFailedIndexes is specified");
  managed_by(spec, at, errors);
  supported_value(spec, "completionMode", at, {"NonIndexed", "Indexed"}, errors, true);
  if (get_string(spec, {"completionMode"}) == "Indexed") {
    indexed(spec, at, errors);
  } else if (const std::string_view mode = get_string(spec, {"completionMode"}, "NonIndexed"); mode == "NonIndexed") {
    for (const char* key : {"backoffLimitPerIndex", "maxFailedIndexes"})
      if (const Value* value = json::find(spec, key)) errors.invalid(at / key, *value, kOnlyIndexed);
  }
  failure_policy(spec, at, errors);
  success_policy(spec, at, errors);
  if (json::find(spec, "podFailurePolicy") != nullptr)
    supported_value(spec, "podReplacementPolicy", at, {"Failed"}, errors, true);
  else
    supported_value(spec, "podReplacementPolicy", at, {"Failed", "TerminatingOrFailed"}, errors, true);
  pod_template(spec, at, errors);
  const std::string_view policy = get_string(spec, {"template", "spec", "restartPolicy"});
  const Path template_at = at / "template";
  const Path pod_at = template_at / "spec";
  if (policy.empty() || policy == "Always")
    errors.required(pod_at / "restartPolicy", "valid values: \"OnFailure\", \"Never\"");
  else if (policy != "OnFailure" && policy != "Never")
    errors.not_supported(pod_at / "restartPolicy", policy, {"OnFailure", "Never"});
  else if (json::find(spec, "podFailurePolicy") != nullptr && policy != "Never")
    errors.invalid(pod_at / "restartPolicy", policy, "only \"Never\" is supported when podFailurePolicy is specified");
  if (!selects) return;
  const Value *selector = json::find(spec, "selector"), *given = json::find(spec, {"template", "metadata", "labels"});
  const std::size_t before = errors.size();
  if (selector != nullptr) label_selector(*selector, at / "selector", errors);
  if (errors.size() != before) return;  // What is no selector matches nothing and everything.
  if (selector == nullptr) errors.required(at / "selector");
  const Path metadata_at = template_at / "metadata";
  // A nil selector matches nothing.
  const auto compiled = Selector::from_label_selector(selector);
  if (compiled && (selector == nullptr || !compiled->matches(Labels::from_json(given))))
    errors.invalid(metadata_at / "labels", shown_labels(given), "`selector` does not match template `labels`");
}

void cron_job(const Value& spec, const Path& at, Errors& errors) {
  const std::string_view schedule = get_string(spec, {"schedule"});
  std::string_view times = schedule;
  if (times.starts_with("TZ=") || times.starts_with("CRON_TZ=")) times.remove_prefix(std::min(times.find(' '), times.size() - 1) + 1);
  if (schedule.empty())
    errors.required(at / "schedule");
  else if (const auto fields = go::parse_cron(times); !fields)
    errors.invalid(at / "schedule", schedule, fields.error());
  if (schedule.find("TZ") != std::string_view::npos)
    errors.invalid(at / "schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  time_zone(spec, at, errors);
  non_negative(spec, "startingDeadlineSeconds", at, errors);
  const std::string_view policy = get_string(spec, {"concurrencyPolicy"});
  if (policy.empty())
    errors.required(at / "concurrencyPolicy");
  else
    supported_value(spec, "concurrencyPolicy", at, {"Allow", "Forbid", "Replace"}, errors);
  for (const char* key : {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) non_negative(spec, key, at, errors);
  static const Value kEmpty = json::Object();
  const Value* inner = json::find(spec, {"jobTemplate", "spec"});
  const Path template_at = at / "jobTemplate";
  const Path inner_at = template_at / "spec";
  job(inner == nullptr ? kEmpty : *inner, inner_at, errors, false);
  if (inner == nullptr) return;
  if (const Value* selector = json::find(*inner, "selector"))
    errors.invalid(inner_at / "selector", *selector, "`selector` will be auto-generated");
  if (get_bool(*inner, {"manualSelector"})) errors.not_supported_value(inner_at / "manualSelector", Value(true), {"nil", "false"});
}

}  // namespace berth::model::validation
