// Workloads: apps, batch, and ReplicationController.
#include <fmt/format.h>

#include <set>

#include "model/internal_form.h"
#include "model/selector.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;

const Value& spec_of(const Value& doc) {
  static const Value kEmpty = json::Object();
  const Value* spec = json::find(doc, "spec");
  return spec == nullptr ? kEmpty : *spec;
}

/// spec.selector is there, well-formed, not empty, and matches the template's labels. A DaemonSet's missing one only matches nothing. False
/// when it is not well-formed.
bool selector_of_template(const Value& spec, const Path& at, std::string_view word, Errors& errors) {
  const Value* selector = json::find(spec, "selector");
  const Path selector_at = at / "selector";
  if (selector == nullptr) {
    if (word != "daemonset") errors.required(selector_at);
  } else {
    const std::size_t before = errors.size();
    label_selector(*selector, selector_at, errors);
    if (errors.size() != before) {
      if (word == "deployment") errors.invalid(selector_at, shown_selector(selector), "invalid label selector");
      if (word == "statefulset") errors.invalid(selector_at, shown_selector(selector), "");
      return false;
    }
    if (get_object(*selector, {"matchLabels"}).empty() && get_array(*selector, {"matchExpressions"}).empty())
      errors.invalid(selector_at, shown_selector(selector), "empty selector is invalid for " + std::string(word));
  }
  const Value* labels_value = json::find(spec, {"template", "metadata", "labels"});
  const auto compiled = Selector::from_label_selector(selector);
  if (compiled && !compiled->is_everything() && !compiled->matches(Labels::from_json(labels_value)))
    errors.invalid(at / "template" / "metadata" / "labels", shown_labels(labels_value), "`selector` does not match template `labels`");
  return true;
}

void selector_and_template(const Value& spec, const Path& at, std::string_view word, Errors& errors) {
  selector_of_template(spec, at, word, errors);
  pod_template(spec, at, errors);
}

void restart_always(const Value& spec, const Path& at, std::string_view kind, Errors& errors) {
  const std::string_view policy = get_string(spec, {"template", "spec", "restartPolicy"});
  if (!policy.empty() && policy != "Always") errors.not_supported(at / "template" / "spec" / "restartPolicy", policy, {"Always"});
  if (json::find(spec, {"template", "spec", "activeDeadlineSeconds"}) != nullptr)
    errors.forbidden(at / "template" / "spec" / "activeDeadlineSeconds", fmt::format("activeDeadlineSeconds in {} is not Supported", kind));
}

std::int64_t as_percent_or_zero(const Value* value) {
  if (value == nullptr) return 0;
  if (value->is_int64()) return value->get_int64();
  return value->is_string() ? std::atoll(value->get_string().c_str()) : 0;
}

/// A rolling update cannot take more than there is.
void not_over_all(const Value& value, const Path& at, Errors& errors) {
  const std::string_view text = value.is_string() ? json::as_view(value) : "";
  if (text.ends_with('%') && as_percent_or_zero(&value) > 100) errors.invalid(at, value, "must not be greater than 100%");
}

/// A strategy with its fields' Go names, as Kubernetes shows it.
Value shown_strategy(const Value& spec, std::string_view key, std::initializer_list<std::pair<std::string_view, std::string_view>> fields) {
  Value rolling = nullptr;
  if (const Value* given = json::find(spec, {key, "rollingUpdate"})) {
    json::Object out;
    for (const auto& [name, go_name] : fields) {
      const Value* value = json::find(*given, name);
      out[go_name] = value != nullptr ? *value : name == "partition" ? Value(0) : Value(nullptr);
    }
    rolling = std::move(out);
  }
  return json::Object{{"Type", get_string(spec, {key, "type"})}, {"RollingUpdate", std::move(rolling)}};
}

void deployment(const Value& spec, const Path& at, Errors& errors) {
  non_negative(spec, "replicas", at, errors);
  selector_and_template(spec, at, "deployment", errors);
  restart_always(spec, at, "ReplicaSet", errors);
  const Path strategy_at = at / "strategy";
  const std::string_view type = get_string(spec, {"strategy", "type"});
  if (type == "Recreate") {
    if (json::find(spec, {"strategy", "rollingUpdate"}) != nullptr)
      errors.forbidden(strategy_at / "rollingUpdate", "may not be specified when strategy `type` is 'Recreate'");
  } else if (type == "RollingUpdate") {
    const Path rolling = strategy_at / "rollingUpdate";
    const Value* surge = json::find(spec, {"strategy", "rollingUpdate", "maxSurge"});
    const Value* unavailable = json::find(spec, {"strategy", "rollingUpdate", "maxUnavailable"});
    if (unavailable != nullptr) int_or_percent(*unavailable, rolling / "maxUnavailable", errors);
    if (surge != nullptr) int_or_percent(*surge, rolling / "maxSurge", errors);
    if (as_percent_or_zero(unavailable) == 0 && as_percent_or_zero(surge) == 0 && unavailable != nullptr)
      errors.invalid(rolling / "maxUnavailable", *unavailable, "may not be 0 when `maxSurge` is 0");
    if (unavailable != nullptr) not_over_all(*unavailable, rolling / "maxUnavailable", errors);
  } else {
    errors.not_supported_value(strategy_at,
                               shown_strategy(spec, "strategy", {{"maxUnavailable", "MaxUnavailable"}, {"maxSurge", "MaxSurge"}}),
                               {"Recreate", "RollingUpdate"});
  }
  for (const char* key : {"minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"}) non_negative(spec, key, at, errors);
  if (json::find(spec, "progressDeadlineSeconds") != nullptr &&
      get_int(spec, {"progressDeadlineSeconds"}) <= get_int(spec, {"minReadySeconds"}))
    errors.invalid(at / "progressDeadlineSeconds", *json::find(spec, "progressDeadlineSeconds"), "must be greater than minReadySeconds");
}

/// The template as its pods will be: each has a volume for every claim template, and a name of its own.
void stateful_template(const Value& spec, const Path& at, Errors& errors) {
  const Value* given = json::find(spec, "template");
  if (given == nullptr) return pod_template(spec, at, errors);
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
  pod_template(owner, at, errors);
}

void stateful_set(const Value& spec, const Path& at, bool is_update, bool checks_template, Errors& errors) {
  non_negative(spec, "replicas", at, errors);
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
    errors.invalid(strategy, shown_strategy(spec, "updateStrategy", {{"partition", "Partition"}, {"maxUnavailable", "MaxUnavailable"}}),
                   "must be 'RollingUpdate' or 'OnDelete'");
  else if (type == "OnDelete" && rolling != nullptr)
    errors.invalid(rolling_at, *rolling, "only allowed for updateStrategy 'RollingUpdate'");
  if (type == "RollingUpdate" && rolling != nullptr) {
    non_negative(*rolling, "partition", rolling_at, errors);
    if (const Value* most = json::find(*rolling, "maxUnavailable")) {
      int_or_percent(*most, rolling_at / "maxUnavailable", errors);
      if (as_percent_or_zero(most) == 0) errors.invalid(rolling_at / "maxUnavailable", *most, "cannot be 0");
      not_over_all(*most, rolling_at / "maxUnavailable", errors);
    }
  }
  const Path retention = at / "persistentVolumeClaimRetentionPolicy";
  if (const Value* policies = json::find(spec, "persistentVolumeClaimRetentionPolicy"))
    for (const char* key : {"whenDeleted", "whenScaled"}) supported_value(*policies, key, retention, {"Retain", "Delete"}, errors, true);
  non_negative(spec, "minReadySeconds", at, errors);
  const Path ordinals = at / "ordinals";
  if (const Value* first = json::find(spec, "ordinals")) non_negative(*first, "start", ordinals, errors);
  if (!is_update) {  // Neither can change later.
    const Path claims_at = at / "volumeClaimTemplates";
    std::size_t i = 0;
    for (const Value& claim : get_array(spec, {"volumeClaimTemplates"})) {
      const Path one = claims_at[i++];
      claim_spec(claim, one / "spec", errors);
    }
    if (const std::string_view name = get_string(spec, {"serviceName"}); !name.empty())
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(at / "serviceName", name, why);
  }
  const bool selects = selector_of_template(spec, at, "statefulset", errors);
  if (selects && checks_template) stateful_template(spec, at, errors);
  const Path template_at = at / "template";
  if (!selects) return restart_always(spec, at, "StatefulSet", errors);
  if (const Value* map = json::find(spec, {"template", "metadata", "labels"})) labels(*map, template_at / "labels", errors);
  if (const Value* map = json::find(spec, {"template", "metadata", "annotations"})) annotations(*map, template_at / "annotations", errors);
  restart_always(spec, at, "StatefulSet", errors);
}

void daemon_set(const Value& spec, const Path& at, Errors& errors) {
  non_negative(spec, "revisionHistoryLimit", at, errors);
  selector_and_template(spec, at, "daemonset", errors);
  restart_always(spec, at, "DaemonSet", errors);
  non_negative(spec, "minReadySeconds", at, errors);
  const std::string_view type = get_string(spec, {"updateStrategy", "type"});
  if (type != "RollingUpdate" && type != "OnDelete")
    errors.not_supported_value(at / "updateStrategy",
                               shown_strategy(spec, "updateStrategy", {{"maxUnavailable", "MaxUnavailable"}, {"maxSurge", "MaxSurge"}}),
                               {"RollingUpdate", "OnDelete"});
  if (const Value* rolling = json::find(spec, {"updateStrategy", "rollingUpdate"}); rolling != nullptr && type == "RollingUpdate") {
    const Path strategy_at = at / "updateStrategy";
    const Path here = strategy_at / "rollingUpdate";
    for (const char* key : {"maxUnavailable", "maxSurge"})
      if (const Value* value = json::find(*rolling, key)) {
        int_or_percent(*value, here / key, errors);
        not_over_all(*value, here / key, errors);
      }
    const Value* surge = json::find(*rolling, "maxSurge");
    const bool has_unavailable = as_percent_or_zero(json::find(*rolling, "maxUnavailable")) != 0,
               has_surge = as_percent_or_zero(surge) != 0;
    if (has_unavailable && has_surge)
      errors.invalid(here / "maxSurge", *surge, "may not be set when maxUnavailable is non-zero");
    else if (!has_unavailable && !has_surge)
      errors.required(here / "maxUnavailable", "cannot be 0 when maxSurge is 0");
  }
}

void replica_set(const Value& spec, const Path& at, Errors& errors) {
  non_negative(spec, "replicas", at, errors);
  non_negative(spec, "minReadySeconds", at, errors);
  selector_and_template(spec, at, "deployment", errors);
  restart_always(spec, at, "ReplicaSet", errors);
}

void replication_controller(const Value& spec, const Path& at, Errors& errors) {
  non_negative(spec, "replicas", at, errors);
  non_negative(spec, "minReadySeconds", at, errors);
  const json::Object& selector = get_object(spec, {"selector"});
  if (selector.empty())
    errors.required(at / "selector");
  else if (const Value* map = json::find(spec, "selector");
           json::find(spec, "template") != nullptr &&
           !Selector::from_map(map).matches(Labels::from_json(json::find(spec, {"template", "metadata", "labels"})))) {
    const Value* labels_value = json::find(spec, {"template", "metadata", "labels"});
    errors.invalid(at / "template" / "metadata" / "labels", shown_labels(labels_value), "`selector` does not match template `labels`");
  }
  if (json::find(spec, "template") == nullptr)
    errors.required(at / "template");
  else
    pod_template(spec, at, errors);
  restart_always(spec, at, "ReplicationController", errors);
}

/// What an automatic selector finds: labels of the Job's uid and name, which its template has.
void generated_selector(const Value& doc, Errors& errors) {
  const Value* selector = json::find(doc, {"spec", "selector"});
  if (selector == nullptr || get_bool(doc, {"spec", "manualSelector"})) return;
  const std::string_view uid = get_string(doc, {"metadata", "uid"}), name = get_string(doc, {"metadata", "name"});
  const Path meta("metadata"), spec("spec");
  if (uid.empty()) errors.required(meta / "uid");
  const Path template_at = spec / "template", metadata_at = template_at / "metadata";
  const Path labels_at = metadata_at / "labels";
  const Value* given = json::find(doc, {"spec", "template", "metadata", "labels"});
  json::Object expected;
  for (const auto& [key, value] : {std::pair(std::string_view("controller-uid"), uid), std::pair(std::string_view("job-name"), name),
                                   std::pair(std::string_view("batch.kubernetes.io/controller-uid"), uid),
                                   std::pair(std::string_view("batch.kubernetes.io/job-name"), name)}) {
    expected[key] = value;
    const Value* label = given == nullptr ? nullptr : json::find(*given, key);
    const Path one = Path::map_key(labels_at, key);
    if (label == nullptr)
      errors.required(one, fmt::format("must be '{}'", value));
    else if (*label != Value(value))
      errors.invalid(one, shown_labels(given), fmt::format("must be '{}'", value));
  }
  const Value labels = std::move(expected);
  Errors form;
  label_selector(*selector, spec / "selector", form);
  const auto compiled = Selector::from_label_selector(selector);
  if (form.empty() && compiled && !compiled->matches(Labels::from_json(&labels)))
    errors.invalid(spec / "selector", shown_selector(selector), "`selector` not auto-generated");
}

/// The pods of an indexed Job carry its name and their index as host names.
void indexed_name(const Value& doc, Errors& errors) {
  const std::int64_t completions = get_int(doc, {"spec", "completions"});
  if (get_string(doc, {"spec", "completionMode"}) != "Indexed" || completions <= 0) return;
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const std::string longest = fmt::format("{}-{}", name, completions - 1);
  const Path meta("metadata");
  if (!check_dns1123_label(longest).empty())
    errors.invalid(meta / "name", name, fmt::format("will not able to create pod with invalid DNS label: {}", longest));
}

}  // namespace

bool workload(const KindInfo& kind, const Value* old, const Value& doc, Errors& errors) {
  const Value& spec = spec_of(doc);
  const Path at("spec");
  if (kind.kind == "Deployment")
    deployment(spec, at, errors);
  else if (kind.kind == "ReplicaSet")
    replica_set(spec, at, errors);
  else if (kind.kind == "StatefulSet") {
    // What was stored before templates were checked stays changeable.
    Errors before;
    if (old != nullptr) stateful_set(spec_of(*old), at, true, true, before);
    stateful_set(spec, at, old != nullptr, before.empty(), errors);
  } else if (kind.kind == "DaemonSet") {
    if (old != nullptr) immutable(*old, doc, {"spec", "selector"}, at / "selector", errors, "meta.v1.LabelSelector");
    daemon_set(spec, at, errors);
  } else if (kind.kind == "ReplicationController")
    replication_controller(spec, at, errors);
  else if (kind.kind == "Job") {
    generated_selector(doc, errors);
    job(spec, at, errors);
    indexed_name(doc, errors);
  } else if (kind.kind == "CronJob") {
    cron_job(spec, at, errors);
    // Eleven characters are added for each Job's name, and pods carry that as a label.
    const std::string_view name = get_string(doc, {"metadata", "name"});
    const Path meta("metadata");
    if (name.size() > 52) errors.invalid(meta / "name", name, "must be no more than 52 characters");
  } else
    return false;
  return true;
}

namespace {

/// An indexed Job is elastic: its completions may follow its parallelism.
void elastic_completions(const Value& old, const Value& doc, const Path& at, Errors& errors) {
  const auto now = get_int(doc, {"spec", "completions"});
  if (now != get_int(old, {"spec", "completions"}) && now != get_int(doc, {"spec", "parallelism"}))
    errors.invalid(at, Value(now), "can only be modified in tandem with spec.parallelism");
}

bool has_active_or_running_history(const Value& job) {
  if (get_int(job, {"status", "active"}) != 0) return true;
  if (json::find(job, {"status", "startTime"}) == nullptr) return false;
  return std::ranges::none_of(json::get_array(job, {"status", "conditions"}), [](const Value& condition) {
    return get_string(condition, {"type"}) == "Suspended" && get_string(condition, {"status"}) == "True";
  });
}

/// A Job that is suspended and has no pods may still be told where its pods belong and what they need
/// (MutableSchedulingDirectivesForSuspendedJobs, MutablePodResourcesForSuspendedJobs).
void job_template(const Value& old, const Value& doc, const Path& at, Errors& errors) {
  const Value *before = json::find(old, {"spec", "template"}), *after = json::find(doc, {"spec", "template"});
  if (before == nullptr || after == nullptr || !get_bool(old, {"spec", "suspend"}) || has_active_or_running_history(old))
    return immutable(old, doc, {"spec", "template"}, at, errors, "core.v1.PodTemplateSpec");
  Value kept = json::get_object(*before, {"spec"}), asked = json::get_object(*after, {"spec"});
  for (Value* one : {&kept, &asked}) {
    for (const char* key : {"nodeSelector", "tolerations", "schedulingGates"}) json::erase(*one, {key});
    json::erase(*one, {"affinity", "nodeAffinity"});
    if (json::get_object(*one, {"affinity"}).empty()) json::erase(*one, {"affinity"});
    for (const char* list : {"containers", "initContainers"})
      if (Value* containers = json::find(*one, {list}); containers != nullptr && containers->is_array())
        for (Value& container : containers->get_array()) json::erase(container, {"resources"});
  }
  if (!json::equal(kept, asked)) errors.invalid(at / "spec", internal_form("core.v1.PodSpec", json::find(*after, "spec")), kImmutable);
}

}  // namespace

bool workload_update(const KindInfo& kind, const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  if (kind.kind == "Deployment" || kind.kind == "ReplicaSet") {
    immutable(old, doc, {"spec", "selector"}, at / "selector", errors, "meta.v1.LabelSelector");
  } else if (kind.kind == "StatefulSet") {
    // Only these fields may change; everything else together is refused in one sentence.
    Value before = spec_of(old), after = spec_of(doc);
    for (const char* key : {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
                            "persistentVolumeClaimRetentionPolicy", "minReadySeconds"}) {
      json::erase(before, {key});
      json::erase(after, {key});
    }
    if (!json::equal(before, after))
      errors.forbidden(at,
                       "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
                       "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
  } else if (kind.kind == "Job") {
    job(spec_of(doc), at, errors);  // Checked twice, as Kubernetes does.
    if (get_string(doc, {"spec", "completionMode"}) == "Indexed")
      elastic_completions(old, doc, at / "completions", errors);
    else
      immutable(old, doc, {"spec", "completions"}, at / "completions", errors);
    immutable(old, doc, {"spec", "selector"}, at / "selector", errors, "meta.v1.LabelSelector");
    job_template(old, doc, at / "template", errors);
    immutable(old, doc, {"spec", "completionMode"}, at / "completionMode", errors);
    immutable(old, doc, {"spec", "podFailurePolicy"}, at / "podFailurePolicy", errors, "batch.v1.PodFailurePolicy");
    for (const char* key : {"backoffLimitPerIndex", "managedBy"}) immutable(old, doc, {"spec", key}, at / key, errors);
    immutable(old, doc, {"spec", "successPolicy"}, at / "successPolicy", errors, "batch.v1.SuccessPolicy");
  }
  return true;
}

}  // namespace berth::model::validation
