// CronJobs.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"
#include "model/validation/workload_parts.h"

namespace berth::model::kinds {
namespace {

void default_cron_job(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put_string(spec, "concurrencyPolicy", "Allow");
  put(spec, "suspend", false);
  put(spec, "successfulJobsHistoryLimit", 3);
  put(spec, "failedJobsHistoryLimit", 1);
  if (Object* job_template = child(spec, "jobTemplate"))
    if (Object* inner = child(*job_template, "spec")) {
      // A template gets only what the pod template needs and what a JobSpec always has; counts are defaulted when the Job is made.
      defaults::pod_template(*inner);
    }
}

Array cron_job_cells(const Value& o, TimePoint now) {
  const auto [names, images] =
      tables::containers_and_images(get_array(o, {"spec", "jobTemplate", "spec", "template", "spec", "containers"}));
  const std::string_view last = get_string(o, {"status", "lastScheduleTime"});
  return {name_of(o),
          Value(get_string(o, {"spec", "schedule"})),
          or_none(get_string(o, {"spec", "timeZone"})),
          get_bool(o, {"spec", "suspend"}) ? "True" : "False",
          get_array(o, {"status", "active"}).size(),
          last.empty() ? "<none>" : human_age(last, now),
          age_of(o, now),
          names,
          images,
          tables::selector_text(o, {"spec", "jobTemplate", "spec", "selector"})};
}

void check_cron_job(const Value& doc, Errors& errors) {
  validation::cron_job(validation::spec_of(doc), Path("spec"), errors);
  // Eleven characters are added for each Job's name, and pods carry that as a label.
  const std::string_view name = get_string(doc, {"metadata", "name"});
  const Path meta("metadata");
  if (name.size() > 52) errors.invalid(meta / "name", name, "must be no more than 52 characters");
}

void warn_of_cron_job(const Value* old, const Value& doc, Sentences& out) {
  if (old == nullptr) surprising_name_warning(doc, out);
  if (says_nothing_new(old, doc)) return;
  const Path spec("spec");
  const Path job_template = spec / "jobTemplate";
  if (const Value* inner = json::find(doc, {"spec", "jobTemplate", "spec"})) job_spec_warnings(*inner, job_template / "spec", out);
}

std::shared_ptr<const KindHooks> cron_job_hooks() {
  static const auto hooks =
      share({.form = Form{.defaults = default_cron_job},
             .strategy = kDefault,
             .rules = Rules{.create = check_cron_job, .update = in_turn(check_cron_job), .warnings = warn_of_cron_job},
             .printer = Printer{{{"Name"},
                                 {"Schedule"},
                                 {"Timezone"},
                                 {"Suspend", 0, "boolean"},
                                 {"Active", 0, "integer"},
                                 {"Last Schedule"},
                                 {"Age"},
                                 {"Containers", 1},
                                 {"Images", 1},
                                 {"Selector", 1}},
                                cron_job_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
  return hooks;
}

}  // namespace

KindInfo cron_job() {
  return Record("batch", "v1", "CronJob", "cronjobs")
      .shorts({"cj"})
      .categories({"all"})
      .subs({"status"})
      .generation()
      .does(cron_job_hooks());
}

KindInfo cron_job_v1beta1() {
  return Record("batch", "v1beta1", "CronJob", "cronjobs")
      .shorts({"cj"})
      .categories({"all"})
      .subs({"status"})
      .generation()
      .stored_as("batch", "v1")
      .does(cron_job_hooks());
}

}  // namespace berth::model::kinds
