#include "pools/node_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/go/cron.h"

namespace berth::pools {
namespace {

std::vector<model::Taint> taints_of(const json::Value& root, json::Path path) {
  std::vector<model::Taint> out;
  for (const json::Value& taint : json::get_array(root, path)) out.push_back(model::parse_taint(taint));
  return out;
}

std::vector<std::pair<std::string, std::string>> texts_of(const json::Value* map) {
  std::vector<std::pair<std::string, std::string>> out;
  if (map == nullptr || !map->is_object()) return out;
  for (const auto& [key, value] : map->get_object())
    if (value.is_string()) out.emplace_back(key, json::as_view(value));
  std::ranges::sort(out);
  return out;
}

NodeClassRef class_of(const json::Value& spec) {
  return {std::string(json::get_string(spec, {"nodeClassRef", "group"})), std::string(json::get_string(spec, {"nodeClassRef", "kind"})),
          std::string(json::get_string(spec, {"nodeClassRef", "name"}))};
}

/// FNV-1a of what of the template counts: its requirements are compared with the nodes' labels instead.
std::string hash_of(const json::Value& document) {
  const json::Value* found = json::find(document, {"spec", "template"});
  json::Value counted = found == nullptr ? json::Value(json::Object{}) : *found;
  json::erase(counted, {"spec", "requirements"});
  json::erase(counted, {"spec", "terminationGracePeriod"});
  json::erase(counted, {"spec", "expireAfter"});
  std::uint64_t out = 1469598103934665603ULL;
  for (const char c : json::serialize(counted)) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{}", out);
}

bool is_due(const go::CronFields& fields, TimePoint minute) {
  const auto day = std::chrono::floor<std::chrono::days>(minute);
  const std::chrono::year_month_day date(day);
  const auto within = std::chrono::duration_cast<std::chrono::minutes>(minute - day).count();
  const bool day_fits = fields.days[static_cast<unsigned>(date.day())], week_fits = fields.weekdays[std::chrono::weekday(day).c_encoding()];
  const bool date_fits = fields.any_day || fields.any_weekday ? day_fits && week_fits : day_fits || week_fits;
  return fields.minutes[static_cast<std::size_t>(within % 60)] && fields.hours[static_cast<std::size_t>(within / 60)] && date_fits &&
         fields.months[static_cast<unsigned>(date.month())];
}

}  // namespace

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::kEmpty:
      return "Empty";
    case Reason::kUnderutilized:
      return "Underutilized";
    case Reason::kDrifted:
      return "Drifted";
    case Reason::kInterrupted:
      return "Interrupted";
    case Reason::kUnhealthy:
      return "Unhealthy";
  }
  return "";
}

bool Budget::is_active(TimePoint now) const {
  if (schedule.empty()) return true;
  const auto fields = go::parse_cron(schedule);
  if (!fields) return true;  // What cannot be read allows no more than what is always active.
  if (fields->every_ns > 0) return true;
  // The longest span that is looked back over; a month of minutes.
  const auto minutes = std::min<std::int64_t>(std::chrono::duration_cast<std::chrono::minutes>(duration).count(), 60L * 24 * 31);
  const TimePoint this_minute = std::chrono::floor<std::chrono::minutes>(now);
  for (std::int64_t back = 0; back <= minutes; ++back) {
    const TimePoint hit = this_minute - std::chrono::minutes(back);
    if (hit + duration <= now) break;
    if (is_due(*fields, hit)) return true;
  }
  return false;
}

std::int64_t NodePool::allowed(Reason reason, std::int64_t nodes, TimePoint now) const {
  std::int64_t out = INT64_MAX;
  for (const Budget& budget : budgets) {
    if (!budget.reasons.empty() && std::ranges::find(budget.reasons, to_string(reason)) == budget.reasons.end()) continue;
    if (!budget.is_active(now)) continue;
    std::int64_t number = 0;
    const std::string_view text = budget.nodes;
    const bool is_share = text.ends_with('%');
    const std::string_view digits = is_share ? text.substr(0, text.size() - 1) : text;
    (void)std::from_chars(digits.data(), digits.data() + digits.size(), number);  // What is no number allows none.
    out = std::min(out, is_share ? (nodes * number + 99) / 100 : number);
  }
  return out;
}

std::optional<Duration> api_duration(std::string_view text) { return text == "Never" ? std::nullopt : parse_go_duration(text); }

NodePool NodePool::parse(const json::Value& document) {
  NodePool out;
  const json::Value nothing = json::Object{};
  const json::Value* found = json::find(document, {"spec", "template", "spec"});
  const json::Value& spec = found == nullptr ? nothing : *found;
  out.name = json::get_string(document, {"metadata", "name"});
  out.uid = json::get_string(document, {"metadata", "uid"});
  out.generation = json::get_int(document, {"metadata", "generation"});
  out.is_deleting = json::find(document, {"metadata", "deletionTimestamp"}) != nullptr;
  out.weight = json::get_int(document, {"spec", "weight"});
  out.requirement_entries = json::get_array(spec, {"requirements"});
  out.requirements = parse_requirements(out.requirement_entries);
  out.labels = model::Labels::from_json(json::find(document, {"spec", "template", "metadata", "labels"}));
  out.annotations = texts_of(json::find(document, {"spec", "template", "metadata", "annotations"}));
  out.taints = taints_of(spec, {"taints"});
  out.startup_taints = taints_of(spec, {"startupTaints"});
  out.limits = model::parse_resource_list(json::find(document, {"spec", "limits"}));
  out.node_class = class_of(spec);
  out.expire_after = api_duration(json::get_string(spec, {"expireAfter"}, "720h"));
  out.termination_grace_period = api_duration(json::get_string(spec, {"terminationGracePeriod"}));
  out.only_when_empty = json::get_string(document, {"spec", "disruption", "consolidationPolicy"}) == "WhenEmpty";
  out.consolidate_after = api_duration(json::get_string(document, {"spec", "disruption", "consolidateAfter"}, "0s"));
  const json::Value* budgets = json::find(document, {"spec", "disruption", "budgets"});
  if (budgets == nullptr) out.budgets.push_back({});
  for (const json::Value& entry : json::get_array(document, {"spec", "disruption", "budgets"})) {
    Budget one;
    const json::Value* nodes = json::find(entry, "nodes");
    one.nodes = nodes != nullptr && nodes->is_int64() ? fmt::format("{}", nodes->get_int64())
                                                      : std::string(json::get_string(entry, {"nodes"}, "10%"));
    one.schedule = json::get_string(entry, {"schedule"});
    one.duration = parse_go_duration(json::get_string(entry, {"duration"}, "0s")).value_or(Duration{});
    one.reasons = model::parse_strings(json::get_array(entry, {"reasons"}));
    out.budgets.push_back(std::move(one));
  }
  out.hash = hash_of(document);
  return out;
}

NodeClaim NodeClaim::parse(const json::Value& document) {
  NodeClaim out;
  const json::Value nothing = json::Object{};
  const json::Value* found = json::find(document, "spec");
  const json::Value& spec = found == nullptr ? nothing : *found;
  out.name = json::get_string(document, {"metadata", "name"});
  out.uid = json::get_string(document, {"metadata", "uid"});
  out.generation = json::get_int(document, {"metadata", "generation"});
  out.created = parse_rfc3339(json::get_string(document, {"metadata", "creationTimestamp"})).value_or(TimePoint{});
  out.labels = model::Labels::from_json(json::find(document, {"metadata", "labels"}));
  if (const std::string* pool = out.labels.get(kPoolLabel)) out.pool = *pool;
  out.annotations = texts_of(json::find(document, {"metadata", "annotations"}));
  out.requirement_entries = json::get_array(spec, {"requirements"});
  out.requirements = parse_requirements(out.requirement_entries);
  out.taints = taints_of(spec, {"taints"});
  out.startup_taints = taints_of(spec, {"startupTaints"});
  out.node_class = class_of(spec);
  out.expire_after = api_duration(json::get_string(spec, {"expireAfter"}, "720h"));
  out.termination_grace_period = api_duration(json::get_string(spec, {"terminationGracePeriod"}));
  out.provider_id = json::get_string(document, {"status", "providerID"});
  out.node_name = json::get_string(document, {"status", "nodeName"});
  out.capacity = model::parse_resource_list(json::find(document, {"status", "capacity"}));
  out.allocatable = model::parse_resource_list(json::find(document, {"status", "allocatable"}));
  out.last_pod_event = parse_rfc3339(json::get_string(document, {"status", "lastPodEventTime"}));
  out.deleted = parse_rfc3339(json::get_string(document, {"metadata", "deletionTimestamp"}));
  for (const json::Value& finalizer : json::get_array(document, {"metadata", "finalizers"}))
    if (finalizer.is_string() && json::as_view(finalizer) == kFinalizer)
      out.has_finalizer = true;
    else
      out.other_finalizers.push_back(finalizer);
  out.conditions = json::get_array(document, {"status", "conditions"});
  return out;
}

std::string_view NodeClaim::condition(std::string_view type) const {
  for (const json::Value& one : conditions)
    if (json::get_string(one, {"type"}) == type) return json::get_string(one, {"status"});
  return {};
}

std::optional<TimePoint> NodeClaim::since(std::string_view type) const {
  for (const json::Value& one : conditions)
    if (json::get_string(one, {"type"}) == type) return parse_rfc3339(json::get_string(one, {"lastTransitionTime"}));
  return std::nullopt;
}

const std::string* NodeClaim::annotation(std::string_view key) const {
  const auto at = std::ranges::find(annotations, key, [](const auto& one) { return std::string_view(one.first); });
  return at == annotations.end() ? nullptr : &at->second;
}

}  // namespace berth::pools
