// Jobs.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/selector.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_job_spec(Object& spec) {
  if (!spec.contains("completions") && !spec.contains("parallelism")) {
    spec["completions"] = 1;
    spec["parallelism"] = 1;
  }
  put(spec, "parallelism", 1);
  const bool per_index = spec.contains("backoffLimitPerIndex");
  put(spec, "backoffLimit", per_index ? std::int64_t{INT32_MAX} : std::int64_t{6});
  put(spec, "completionMode", "NonIndexed");
  put(spec, "suspend", false);
  put(spec, "manualSelector", false);
  if (Object* policy = child(spec, "podFailurePolicy"))
    each(*policy, "rules",
         [](Object& rule) { each(rule, "onPodConditions", [](Object& pattern) { put_string(pattern, "status", "True"); }); });
  if (!spec.contains("podReplacementPolicy"))
    spec["podReplacementPolicy"] = spec.contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed";
  defaults::pod_template(spec);
}

void default_job(Object& doc) {
  Object& spec = make_child(doc, "spec");
  defaults::labels_from_template(doc, false);
  default_job_spec(spec);
}

void prepare_job(Value& doc) {
  // A Job owns its pods through a selector on its uid, unless the user manages the selector.
  if (json::get_bool(doc, {"spec", "manualSelector"})) return;
  const std::string uid(json::get_string(doc, {"metadata", "uid"}));
  const std::string name(json::get_string(doc, {"metadata", "name"}));
  if (uid.empty()) return;
  // A Job without labels of its own has its template's, those that are added here included.
  const Object own = json::get_object(doc, {"metadata", "labels"});
  const bool shares = own.empty() || own == json::get_object(doc, {"spec", "template", "metadata", "labels"});
  Object& labels = json::ensure_object(doc, {"spec", "template", "metadata", "labels"});
  // What is given stays, for the validation to refuse: a Job that was saved and is made again has the labels of another.
  labels.emplace("batch.kubernetes.io/controller-uid", uid);
  labels.emplace("batch.kubernetes.io/job-name", name);
  labels.emplace("controller-uid", uid);
  labels.emplace("job-name", name);
  if (shares) json::set(doc, {"metadata", "labels"}, Value(labels));
  json::ensure_object(doc, {"spec", "selector", "matchLabels"}).emplace("batch.kubernetes.io/controller-uid", uid);
  // A Job without labels of its own shows its pods' (batch/v1 defaults).
  if (json::get_object(doc, {"metadata", "labels"}).empty())
    json::set(doc, {"metadata", "labels"}, Value(json::get_object(doc, {"spec", "template", "metadata", "labels"})));
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
      errors.invalid(one, validation::shown_labels(given), fmt::format("must be '{}'", value));
  }
  const Value labels = std::move(expected);
  Errors form;
  validation::label_selector(*selector, spec / "selector", form);
  const auto compiled = Selector::from_label_selector(selector);
  if (form.empty() && compiled && !compiled->matches(Labels::from_json(&labels)))
    errors.invalid(spec / "selector", validation::shown_selector(selector), "`selector` not auto-generated");
}

/// The pods of an indexed Job carry its name and their index as host names.
void indexed_name(const Value& doc, Errors& errors) {
  const std::int64_t completions = get_int(doc, {"spec", "completions"});
  if (get_string(doc, {"spec", "completionMode"}) != "Indexed" || completions <= 0) return;
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const std::string longest = fmt::format("{}-{}", name, completions - 1);
  const Path meta("metadata");
  if (!validation::check_dns1123_label(longest).empty())
    errors.invalid(meta / "name", name, fmt::format("will not able to create pod with invalid DNS label: {}", longest));
}

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
void check_job_template(const Value& old, const Value& doc, const Path& at, Errors& errors) {
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

Array job_cells(const Value& o, TimePoint now) {
  const auto [names, images] = tables::containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  const std::int64_t succeeded = get_int(o, {"status", "succeeded"});
  const Value* completions = json::find(o, {"spec", "completions"});
  const std::int64_t parallelism = get_int(o, {"spec", "parallelism"});
  const std::string done = completions != nullptr ? fmt::format("{}/{}", succeeded, get_int(o, {"spec", "completions"}))
                           : parallelism > 1      ? fmt::format("{}/1 of {}", succeeded, parallelism)
                                                  : fmt::format("{}/1", succeeded);
  std::string duration;
  if (const auto start = parse_rfc3339(get_string(o, {"status", "startTime"}))) {
    const auto end = parse_rfc3339(get_string(o, {"status", "completionTime"}));
    duration = human_duration((end ? *end : now) - *start);
  }
  std::string status = json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : "Running";
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    if (get_string(condition, {"status"}) != "True") continue;
    const std::string_view type = get_string(condition, {"type"});
    if (type == "Complete" || type == "Failed" || type == "Suspended")
      status = type;
    else if ((type == "FailureTarget" || type == "SuccessCriteriaMet") && status == "Running")
      status = type;
  }
  return {name_of(o), status, done, duration, age_of(o, now), names, images, tables::selector_text(o, {"spec", "selector"})};
}

void check_job(const Value& doc, Errors& errors) {
  generated_selector(doc, errors);
  validation::job(validation::spec_of(doc), Path("spec"), errors);
  indexed_name(doc, errors);
}

void check_job_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  validation::job(validation::spec_of(doc), at, errors);  // Checked twice, as Kubernetes does.
  if (get_string(doc, {"spec", "completionMode"}) == "Indexed")
    elastic_completions(old, doc, at / "completions", errors);
  else
    immutable(old, doc, {"spec", "completions"}, at / "completions", errors);
  validation::immutable_selector(old, doc, errors);
  check_job_template(old, doc, at / "template", errors);
  immutable(old, doc, {"spec", "completionMode"}, at / "completionMode", errors);
  immutable(old, doc, {"spec", "podFailurePolicy"}, at / "podFailurePolicy", errors, "batch.v1.PodFailurePolicy");
  for (const char* key : {"backoffLimitPerIndex", "managedBy"}) immutable(old, doc, {"spec", key}, at / key, errors);
  immutable(old, doc, {"spec", "successPolicy"}, at / "successPolicy", errors, "batch.v1.SuccessPolicy");
}

void warn_of_job(const Value* old, const Value& doc, Sentences& out) {
  if (old == nullptr) surprising_name_warning(doc, out);
  if (says_nothing_new(old, doc)) return;
  if (const Value* spec = json::find(doc, "spec")) job_spec_warnings(*spec, Path("spec"), out);
}

}  // namespace

KindInfo job() {
  return Record("batch", "v1", "Job", "jobs")
      .categories({"all"})
      .subs({"status"})
      .fields({"status.successful"})
      .generation()
      .does({.form = Form{.defaults = default_job},
             .strategy = Strategy{.prepare_create = prepare_job},
             .rules = Rules{.create = check_job,
                            .update = in_turn(check_job, check_job_update),
                            .status = validation::job_status,
                            .warnings = warn_of_job},
             .printer =
                 Printer{{{"Name"}, {"Status"}, {"Completions"}, {"Duration"}, {"Age"}, {"Containers", 1}, {"Images", 1}, {"Selector", 1}},
                         job_cells},
             .selected = std::vector<SelectedField>{{.name = "status.successful", .path = "status.succeeded", .absent = "0"}},
             .scale = kDefault,
             .life = Life{.orphans_by_default = true,
                          .orphans_warning = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
                                             "to remove them or set propagationPolicy=Orphan to suppress this warning"},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
