// PodDisruptionBudgets.
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
  const Path status("status");
  validation::conditions(get_array(doc, {"status", "conditions"}), status / "conditions", errors);
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
