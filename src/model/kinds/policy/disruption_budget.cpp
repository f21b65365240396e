// PodDisruptionBudgets.
#include <set>

#include "model/kinds/record.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void check_budget(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* minimum = json::find(doc, {"spec", "minAvailable"});
  const Value* maximum = json::find(doc, {"spec", "maxUnavailable"});
  if (minimum != nullptr && maximum != nullptr)
    errors.invalid(at, internal_form("policy.v1.PodDisruptionBudgetSpec", json::find(doc, "spec")),
                   "minAvailable and maxUnavailable cannot be both set");
  for (const auto& [key, value] : {std::pair("minAvailable", minimum), std::pair("maxUnavailable", maximum)}) {
    if (value == nullptr) continue;
    validation::int_or_percent(*value, at / key, errors);
    if (value->is_string() && std::atoi(value->get_string().c_str()) > 100)
      errors.invalid(at / key, *value, "must not be greater than 100%");
  }
  if (const Value* selector = json::find(doc, {"spec", "selector"})) validation::label_selector(*selector, at / "selector", errors);
  if (const Value* spec = json::find(doc, "spec"))
    validation::supported_value(*spec, "unhealthyPodEvictionPolicy", at, {"AlwaysAllow", "IfHealthyBudget"}, errors, true);
}

/// metav1.Conditions (apimachinery, ValidateConditions).
void check_conditions(const Value& doc, Errors& errors) {
  constexpr std::size_t kLongestReason = 1024, kLongestMessage = 32 * 1024;
  const Path status("status");
  const Path at = status / "conditions";
  std::set<std::string_view> types;
  std::size_t i = 0;
  for (const Value& condition : get_array(doc, {"status", "conditions"})) {
    const Path one = at[i++];
    const std::string_view type = get_string(condition, {"type"}), state = get_string(condition, {"status"}),
                           reason = get_string(condition, {"reason"});
    if (!types.insert(type).second) errors.duplicate(one / "type", Value(type));
    if (const std::string why = validation::check_qualified_name(type); !why.empty()) errors.invalid(one / "type", type, why);
    if (state != "True" && state != "False" && state != "Unknown")
      errors.not_supported(one / "status", state, {"False", "True", "Unknown"});
    if (const std::int64_t seen = get_int(condition, {"observedGeneration"}); seen < 0)
      errors.invalid(one / "observedGeneration", Value(seen), "must be greater than or equal to zero");
    if (get_string(condition, {"lastTransitionTime"}).empty()) errors.required(one / "lastTransitionTime");
    if (reason.empty()) {
      errors.required(one / "reason");
    } else {
      const auto in_reason = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ',' || c == ':'; };
      const bool is_word = std::isalpha(static_cast<unsigned char>(reason.front())) != 0 && std::ranges::all_of(reason, in_reason) &&
                           reason.back() != ',' && reason.back() != ':';
      if (!is_word)
        errors.invalid(one / "reason", reason,
                       "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
                       "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
                       "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
                       "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')");
      if (reason.size() > kLongestReason) errors.too_long(one / "reason", kLongestReason);
    }
    if (get_string(condition, {"message"}).size() > kLongestMessage) errors.too_long(one / "message", kLongestMessage);
  }
}

std::string int_or_string(const Value* value) {
  if (value == nullptr) return "N/A";
  return value->is_string() ? std::string(json::as_view(*value)) : json::serialize(*value);
}

Array budget_cells(const Value& o, TimePoint now) {
  return {name_of(o), int_or_string(json::find(o, {"spec", "minAvailable"})), int_or_string(json::find(o, {"spec", "maxUnavailable"})),
          get_int(o, {"status", "disruptionsAllowed"}), age_of(o, now)};
}

void check_budget_status(const Value& old, const Value& doc, Errors& errors) {
  static const validation::StatusCounters kCounters = {{"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}, {}, {}};
  check_conditions(doc, errors);
  validation::status_counters(kCounters, old, doc, errors);
}

std::shared_ptr<const KindHooks> budget_hooks() {
  static const auto hooks = share(
      {.form = kDefault,
       .strategy =
           Strategy{.initial_status =
                        [] {
                          return Value{{"disruptionsAllowed", 0}, {"currentHealthy", 0}, {"desiredHealthy", 0}, {"expectedPods", 0}};
                        }},
       .rules = Rules{.name = validation::check_path_segment,
                      .has_foreign_finalizers = true,
                      .looks_at_metadata_last = true,
                      .metadata_looks = kLooksAtAllAgain,
                      .create = check_budget,
                      .update = in_turn(check_budget),
                      .status = check_budget_status,
                      .status_reads_rest = reads_status_alone},
       .printer = Printer{{{"Name"}, {"Min Available"}, {"Max Unavailable"}, {"Allowed Disruptions", 0, "integer"}, {"Age"}}, budget_cells},
       .selected = kDefault,
       .scale = kDefault,
       .life = Life{.update_needs_revision = true},
       .counted = kDefault});
  return hooks;
}

Record budget(std::string version) {
  Record out("policy", std::move(version), "PodDisruptionBudget", "poddisruptionbudgets");
  out.shorts({"pdb"}).subs({"status"}).generation();
  return out;
}

}  // namespace

std::vector<KindInfo> policy_group() {
  return {budget("v1").does(budget_hooks()), budget("v1beta1").stored_as("policy", "v1").does(budget_hooks())};
}

}  // namespace berth::model::kinds
