// StatefulSets.
#include <set>

#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_stateful_set(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put(spec, "replicas", 1);
  put_string(spec, "podManagementPolicy", "OrderedReady");
  Object& strategy = make_child(spec, "updateStrategy");
  // Who names the type alone gets no more.
  const bool is_named = !string_at(strategy, "type").empty();
  put_string(strategy, "type", "RollingUpdate");
  if (string_at(strategy, "type") == "RollingUpdate" && (!is_named || strategy.contains("rollingUpdate")))
    put(make_child(strategy, "rollingUpdate"), "partition", 0);
  put(spec, "revisionHistoryLimit", 10);
  Object& retention = make_child(spec, "persistentVolumeClaimRetentionPolicy");
  put_string(retention, "whenDeleted", "Retain");
  put_string(retention, "whenScaled", "Retain");
  each(spec, "volumeClaimTemplates", [](Object& claim) {
    claim["apiVersion"] = "v1";
    claim["kind"] = "PersistentVolumeClaim";
    defaults::persistent_volume_claim(claim);
  });
  defaults::pod_template(spec);
}

/// The template as its pods will be: each has a volume for every claim template, and a name of its own.
void stateful_template(const Value& spec, const Path& at, Errors& errors) {
  const Value* given = json::find(spec, "template");
  if (given == nullptr) return validation::pod_template(spec, at, errors);
  Value owner = json::Object{{"template", *given}};
  Value& pod = owner.get_object()["template"];
  for (const char* key : {"hostname", "subdomain"}) json::erase(pod, {"spec", key});
  const json::Array& claims = get_array(spec, {"volumeClaimTemplates"});
  if (!claims.empty() && json::find(pod, "spec") != nullptr) {
    json::Array volumes;
    std::set<std::string_view> names;
    for (const Value& claim : claims) {
      const std::string_view name = get_string(claim, {"metadata", "name"});
      if (!names.insert(name).second) continue;
      volumes.emplace_back(json::Object{{"name", name}, {"persistentVolumeClaim", json::Object{{"claimName", name}}}});
    }
    for (const Value& volume : get_array(*given, {"spec", "volumes"}))
      if (!names.contains(get_string(volume, {"name"}))) volumes.push_back(volume);
    json::set(pod, {"spec", "volumes"}, std::move(volumes));
  }
  validation::pod_template(owner, at, errors);
}

void check_stateful_set_spec(const Value& spec, const Path& at, bool is_update, bool checks_template, Errors& errors) {
  validation::non_negative(spec, "replicas", at, errors);
  const std::string_view policy = get_string(spec, {"podManagementPolicy"});
  if (policy.empty())
    errors.required(at / "podManagementPolicy");
  else if (policy != "OrderedReady" && policy != "Parallel")
    errors.invalid(at / "podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
  const std::string_view type = get_string(spec, {"updateStrategy", "type"});
  const Path strategy = at / "updateStrategy";
  const Path rolling_at = strategy / "rollingUpdate";
  const Value* rolling = json::find(spec, {"updateStrategy", "rollingUpdate"});
  if (type.empty())
    errors.required(strategy);
  else if (type != "RollingUpdate" && type != "OnDelete")
    errors.invalid(strategy,
                   validation::shown_strategy(spec, "updateStrategy", {{"partition", "Partition"}, {"maxUnavailable", "MaxUnavailable"}}),
                   "must be 'RollingUpdate' or 'OnDelete'");
  else if (type == "OnDelete" && rolling != nullptr)
    errors.invalid(rolling_at, *rolling, "only allowed for updateStrategy 'RollingUpdate'");
  if (type == "RollingUpdate" && rolling != nullptr) {
    validation::non_negative(*rolling, "partition", rolling_at, errors);
    if (const Value* most = json::find(*rolling, "maxUnavailable")) {
      validation::int_or_percent(*most, rolling_at / "maxUnavailable", errors);
      if (validation::as_percent_or_zero(most) == 0) errors.invalid(rolling_at / "maxUnavailable", *most, "cannot be 0");
      validation::not_over_all(*most, rolling_at / "maxUnavailable", errors);
    }
  }
  const Path retention = at / "persistentVolumeClaimRetentionPolicy";
  if (const Value* policies = json::find(spec, "persistentVolumeClaimRetentionPolicy"))
    for (const char* key : {"whenDeleted", "whenScaled"})
      validation::supported_value(*policies, key, retention, {"Retain", "Delete"}, errors, true);
  validation::non_negative(spec, "minReadySeconds", at, errors);
  const Path ordinals = at / "ordinals";
  if (const Value* first = json::find(spec, "ordinals")) validation::non_negative(*first, "start", ordinals, errors);
  if (!is_update) {  // Neither can change later.
    const Path claims_at = at / "volumeClaimTemplates";
    std::size_t i = 0;
    for (const Value& claim : get_array(spec, {"volumeClaimTemplates"})) {
      const Path one = claims_at[i++];
      validation::claim_spec(claim, one / "spec", errors);
    }
    if (const std::string_view name = get_string(spec, {"serviceName"}); !name.empty())
      if (const std::string why = validation::check_dns1123_label(name); !why.empty()) errors.invalid(at / "serviceName", name, why);
  }
  const bool selects = validation::selector_of_template(spec, at, "statefulset", errors);
  if (selects && checks_template) stateful_template(spec, at, errors);
  const Path template_at = at / "template";
  if (!selects) return validation::restart_always(spec, at, "StatefulSet", errors);
  if (const Value* map = json::find(spec, {"template", "metadata", "labels"})) validation::labels(*map, template_at / "labels", errors);
  if (const Value* map = json::find(spec, {"template", "metadata", "annotations"}))
    validation::annotations(*map, template_at / "annotations", errors);
  validation::restart_always(spec, at, "StatefulSet", errors);
}

Array stateful_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o), fmt::format("{}/{}", get_int(o, {"status", "readyReplicas"}), get_int(o, {"spec", "replicas"})), age_of(o, now),
          names, images};
}

void check_new_set(const Value& doc, Errors& errors) {
  check_stateful_set_spec(validation::spec_of(doc), Path("spec"), false, true, errors);
}

/// What was stored before templates were checked stays changeable.
void check_changed_set(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  Errors before;
  check_stateful_set_spec(validation::spec_of(old), at, true, true, before);
  check_stateful_set_spec(validation::spec_of(doc), at, true, before.empty(), errors);
}

/// Only these fields may change; everything else together is refused in one sentence.
void check_set_update(const Value& old, const Value& doc, Errors& errors) {
  Value before = validation::spec_of(old), after = validation::spec_of(doc);
  for (const char* key : {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                          "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
    json::erase(before, {key});
    json::erase(after, {key});
  }
  if (!json::equal(before, after))
    errors.forbidden(Path("spec"),
                     "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
                     "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
}

void check_set_status(const Value& old, const Value& doc, Errors& errors) {
  static const validation::StatusCounters kCounters = {
      {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration", "collisionCount"},
      {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"},
      "cannot be greater than status.readyReplicas"};
  validation::status_counters(kCounters, old, doc, errors);
}

void warn_of_set(const Value* old, const Value& doc, Sentences& out) {
  if (says_nothing_new(old, doc)) return;
  const Path spec("spec");
  const Path claims = spec / "volumeClaimTemplates";
  template_warnings(doc, {"spec", "template"}, spec / "template", out);
  std::size_t i = 0;
  for (const Value& claim : get_array(doc, {"spec", "volumeClaimTemplates"})) {
    const Path one = claims[i++];
    if (const Value* its_spec = json::find(claim, "spec")) claim_warnings(*its_spec, one, out);
  }
  if (get_int(doc, {"spec", "revisionHistoryLimit"}) < 0)
    out.emplace_back("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended");
}

}  // namespace

KindInfo stateful_set() {
  return Record("apps", "v1", "StatefulSet", "statefulsets")
      .shorts({"sts"})
      .categories({"all"})
      .subs({"scale", "status"})
      .generation()
      .does({.form = Form{.defaults = default_stateful_set},
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"replicas", 0}, {"availableReplicas", 0}};
                                      }},
             .rules = Rules{.name = validation::check_dns1123_label,
                            .metadata_looks = kLooksAtBothAgain,
                            .create = check_new_set,
                            .update = in_turn(check_changed_set, check_set_update),
                            .status = check_set_status,
                            .status_reads_rest = reads_status_alone,
                            .warnings = warn_of_set},
             .printer = Printer{{{"Name"}, {"Ready"}, {"Age"}, {"Containers", 1}, {"Images", 1}}, stateful_set_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
