// CronJobs (pkg/controller/cronjob): a Job at each scheduled time.
#include <array>
#include <fstream>
#include <sstream>

#include "controllers/common.h"
#include "controllers/cron_schedule.h"
#include "controllers/workloads.h"

namespace berth::controllers {
namespace {

/// Reads the machine's time zone data: immutable data like a table, kept after the first read.
std::optional<TimeZone> load_zone(const std::string& name) {
  if (name.empty() || name == "UTC" || name == "Etc/UTC") return TimeZone{};
  if (name.find("..") != std::string::npos || name.front() == '/') return std::nullopt;
  std::ifstream file("/usr/share/zoneinfo/" + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  auto zone = TimeZone::from_tzif(text.str());
  return zone ? std::optional(std::move(*zone)) : std::nullopt;
}

constexpr int kManyMissed = 100;
constexpr const char* kScheduledTime = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// "Mon, 05 Jan 2026 09:30:00 +0000"
std::string rfc1123(TimePoint time) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time - day)};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} +0000", kDays[std::chrono::weekday{day}.c_encoding()],
                     static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

bool is_finished(const json::Value& job) {
  return condition_status(job, "Complete") == "True" || condition_status(job, "Failed") == "True";
}

class CronJobController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "cronjob-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().cron_job, kinds().job}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().cron_job)
      sink.add(event.object().key());
    else if (event.object().controller_kind() == "CronJob")
      sink.add(event.object().ns() + "/" + event.object().controller_name());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;

 private:
  struct OwnedJob {
    ObjectRef object;
    json::Value document;
  };
  /// One look at a CronJob: what it is, and what comes of looking.
  struct Look {
    const Object& cron;
    const json::Value& document;
    TimePoint now;
    Plan& plan;
    json::Object status;
    std::vector<OwnedJob> jobs;
    std::vector<const OwnedJob*> active;
    void tell(std::string_view type, std::string_view reason, std::string message) {
      plan.events.push_back(note_about(kinds().cron_job, cron, type, reason, std::move(message)));
    }
  };
  /// Finds the active ones, tells of surprises, and lets go of finished ones beyond the limits.
  static void take_stock(Look& look);
  static void put_active(Look& look);
  /// What is due by the schedule, where there is one and it may run.
  void follow_schedule(Look& look, const Cache& cache);
  void run_due(Look& look, TimePoint due, const Cache& cache) const;
  /// Deletes the oldest; the uids of what goes.
  static std::set<std::string> trim(Plan& plan, const Object& cron, std::vector<const OwnedJob*> jobs, std::int64_t keep);
  void start(Look& look, TimePoint scheduled) const;

  std::map<std::string, std::optional<TimeZone>> zones_;
};

std::set<std::string> CronJobController::trim(Plan& plan, const Object& cron, std::vector<const OwnedJob*> jobs, std::int64_t keep) {
  std::set<std::string> gone;
  const auto started = [](const OwnedJob* job) { return read_time(job->document, {"status", "startTime"}); };
  std::sort(jobs.begin(), jobs.end(), [&](const OwnedJob* a, const OwnedJob* b) {
    return std::pair(started(a), a->object->name()) < std::pair(started(b), b->object->name());
  });
  jobs.resize(surplus_over(jobs.size(), keep));
  for (const OwnedJob* one : jobs) {
    const OwnedJob& job = *one;
    if (job.object->is_deleting()) continue;
    Write write = delete_object(kinds().job, *job.object);
    write.on_success = note_about(kinds().cron_job, cron, "Normal", "SuccessfulDelete", "Deleted job " + job.object->name());
    plan.writes.push_back(std::move(write));
    gone.insert(job.object->uid());
  }
  return gone;
}

void CronJobController::start(Look& look, TimePoint scheduled) const {
  const Object& cron = look.cron;
  const json::Value& document = look.document;
  const std::int64_t minute = std::chrono::duration_cast<std::chrono::minutes>(scheduled.time_since_epoch()).count();
  const std::string name = fmt::format("{}-{}", cron.name(), minute);
  json::Object metadata{
      {"name", name}, {"namespace", cron.ns()}, {"ownerReferences", json::Array{owner_reference(kinds().cron_job, cron)}}};
  for (const char* part : {"labels", "annotations"})
    if (const json::Value* value = json::find(document, {"spec", "jobTemplate", "metadata", part})) metadata[part] = *value;
  json::Value body = json::Object{{"apiVersion", "batch/v1"},
                                  {"kind", "Job"},
                                  {"metadata", std::move(metadata)},
                                  {"spec", json::get_object(document, {"spec", "jobTemplate", "spec"})}};
  json::set(body, {"metadata", "annotations", kScheduledTime}, json::Value(format_rfc3339(scheduled)));
  Write write = create_object(kinds().job, cron.ns(), std::move(body));
  write.on_success = note_about(kinds().cron_job, cron, "Normal", "SuccessfulCreate", "Created job " + name);
  write.on_failure = note_about(kinds().cron_job, cron, "Warning", "FailedCreate", "Error creating job: {}");
  look.plan.writes.push_back(std::move(write));
  look.status["lastScheduleTime"] = format_rfc3339(scheduled);
}

void CronJobController::take_stock(Look& look) {
  const json::Value& document = look.document;
  std::vector<const OwnedJob*> succeeded, failed;
  TimePoint last_success = read_time(document, {"status", "lastSuccessfulTime"});
  std::set<std::string> known;
  for (const json::Value& entry : json::get_array(document, {"status", "active"}))
    known.insert(std::string(json::get_string(entry, {"uid"})));
  for (const OwnedJob& job : look.jobs) {
    if (!is_finished(job.document)) {
      // A Job that somebody made by hand (kubectl create job --from) is not one of the schedule's.
      const bool scheduled = json::find(job.document, {"metadata", "annotations", kScheduledTime}) != nullptr;
      if (known.contains(job.object->uid()) || scheduled)
        look.active.push_back(&job);
      else
        look.tell("Warning", "UnexpectedJob", "Saw a job that the controller did not create or forgot: " + job.object->name());
      continue;
    }
    const bool ok = condition_status(job.document, "Complete") == "True";
    (ok ? succeeded : failed).push_back(&job);
    if (ok) last_success = std::max(last_success, read_time(job.document, {"status", "completionTime"}));
  }
  for (const json::Value& entry : json::get_array(document, {"status", "active"})) {
    const std::string_view uid = json::get_string(entry, {"uid"});
    if (std::none_of(look.jobs.begin(), look.jobs.end(), [&](const OwnedJob& job) { return job.object->uid() == uid; }))
      look.tell("Normal", "MissingJob", fmt::format("Active job went missing: {}", json::get_string(entry, {"name"})));
  }
  const auto limit = [&](const char* field, std::int64_t usual) { return json::get_int(document, {"spec", field}, usual); };
  std::set<std::string> gone = trim(look.plan, look.cron, succeeded, limit("successfulJobsHistoryLimit", 3));
  gone.merge(trim(look.plan, look.cron, failed, limit("failedJobsHistoryLimit", 1)));
  for (const OwnedJob& job : look.jobs)
    if (is_finished(job.document) && known.contains(job.object->uid()) && !gone.contains(job.object->uid()))
      look.tell("Normal", "SawCompletedJob",
                fmt::format("Saw completed job: {}, condition: {}", job.object->name(),
                            condition_status(job.document, "Complete") == "True" ? "Complete" : "Failed"));
  if (last_success != TimePoint{}) look.status["lastSuccessfulTime"] = format_rfc3339(last_success);
}

void CronJobController::follow_schedule(Look& look, const Cache& cache) {
  const json::Value& document = look.document;
  const std::string zone_name(json::get_string(document, {"spec", "timeZone"}));
  const auto zone = zones_.try_emplace(zone_name).first;
  if (!zone->second) zone->second = load_zone(zone_name);
  const std::string_view text = json::get_string(document, {"spec", "schedule"});
  const auto schedule = CronSchedule::parse(text);
  if (!zone->second)
    return look.tell("Warning", "UnknownTimeZone", fmt::format("invalid timeZone: \"{}\": unknown time zone {}", zone_name, zone_name));
  if (!schedule)
    return look.tell("Warning", "UnparseableSchedule", fmt::format("unparseable schedule: \"{}\" : {}", text, schedule.error().message));
  if (look.cron.is_deleting() || json::get_bool(document, {"spec", "suspend"})) return;
  TimePoint earliest =
      std::max(read_time(document, {"metadata", "creationTimestamp"}), read_time(document, {"status", "lastScheduleTime"}));
  const bool has_deadline = json::find(document, {"spec", "startingDeadlineSeconds"}) != nullptr;
  const Duration deadline = seconds_at(document, {"spec", "startingDeadlineSeconds"});
  if (has_deadline) earliest = std::max(earliest, look.now - deadline);
  // The latest of the missed times is made up for, however many there were; more than 100 are a sign of a wrong clock.
  const auto due = schedule->latest(earliest, look.now, *zone->second);
  int missed = 0;
  for (auto at = schedule->next(earliest, *zone->second); at && *at <= look.now && missed <= kManyMissed;
       at = schedule->next(*at, *zone->second))
    ++missed;
  if (missed > kManyMissed)
    look.tell("Warning", "TooManyMissedTimes",
              "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
  if (due && has_deadline && *due + deadline < look.now)
    look.tell("Warning", "MissSchedule", "Missed scheduled time to start a job: " + rfc1123(*due));
  else if (due)
    run_due(look, *due, cache);
  if (const auto upcoming = schedule->next(due.value_or(earliest), *zone->second))
    look.plan.requeue_after = *upcoming - look.now + std::chrono::milliseconds(100);
}

void CronJobController::run_due(Look& look, TimePoint due, const Cache& cache) const {
  const std::int64_t minute = std::chrono::duration_cast<std::chrono::minutes>(due.time_since_epoch()).count();
  if (cache.get(kinds().job, look.cron.ns(), fmt::format("{}-{}", look.cron.name(), minute))) {
    // Made in a step whose status was lost: it is no former run that forbids it, or that it replaces.
    look.status["lastScheduleTime"] = format_rfc3339(due);
    return;
  }
  const std::string_view policy = json::get_string(look.document, {"spec", "concurrencyPolicy"});
  if (policy == "Forbid" && !look.active.empty())
    return look.tell("Normal", "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid");
  if (policy == "Replace") {
    for (const OwnedJob* job : look.active) {
      Write write = delete_object(kinds().job, *job->object);
      write.on_success = note_about(kinds().cron_job, look.cron, "Normal", "SuccessfulDelete", "Deleted job " + job->object->name());
      look.plan.writes.push_back(std::move(write));
    }
    look.active.clear();
  }
  start(look, due);
}

void CronJobController::put_active(Look& look) {
  json::Array references;
  for (const OwnedJob* job : look.active)
    references.push_back(json::Object{{"apiVersion", "batch/v1"},
                                      {"kind", "Job"},
                                      {"namespace", look.cron.ns()},
                                      {"name", job->object->name()},
                                      {"uid", job->object->uid()},
                                      {"resourceVersion", std::to_string(job->object->revision())}});
  if (references.empty())
    look.status.erase("active");
  else
    look.status["active"] = std::move(references);
}

Plan CronJobController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const ObjectRef cron = cache.get(kinds().cron_job, ns, name);
  if (!cron) return plan;
  const auto parsed = cron->parsed();
  const json::Value& document = *parsed;
  Look look{*cron, document, now, plan, json::get_object(document, {"status"}), {}, {}};
  for (const ObjectRef& job : cache.controlled(kinds().job, cron->uid())) look.jobs.push_back({job, job->document()});
  take_stock(look);
  put_active(look);
  // What is known is told before the next Job is made: whoever refuses that one must not keep it back.
  const bool is_told = !patch_status(kinds().cron_job, *cron, document, look.status, true);
  if (is_told) {
    follow_schedule(look, cache);
    put_active(look);
  } else {
    plan.requeue_after = std::chrono::seconds(1);
  }
  if (auto write = patch_status(kinds().cron_job, *cron, document, look.status, true)) {
    write->stage = 1;
    plan.writes.push_back(std::move(*write));
  }
  return plan;
}

}  // namespace

ControllerPtr make_cronjob_controller() { return std::make_unique<CronJobController>(); }

}  // namespace berth::controllers
