// CronJobs: schedules and Jobs.
#include "controllers/cron_schedule.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

TEST(CronSchedule, FindsTheNextTime) {
  const auto next = [](const char* schedule, const char* after) {
    return format_rfc3339(*CronSchedule::parse(schedule)->next(*parse_rfc3339(after), {}));
  };
  EXPECT_EQ(next("*/15 * * * *", "2026-01-05T10:01:30Z"), "2026-01-05T10:15:00Z");
  EXPECT_EQ(next("0 0 1 1 *", "2026-01-05T10:01:30Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next("30 8 * * mon-fri", "2026-01-09T09:00:00Z"), "2026-01-12T08:30:00Z");
  EXPECT_EQ(next("0 0 13 * 5", "2026-01-05T00:00:00Z"), "2026-01-09T00:00:00Z") << "a day of month and a weekday: either is enough";
  EXPECT_FALSE(CronSchedule::parse("60 * * * *"));
  EXPECT_FALSE(CronSchedule::parse("* * * *"));
  EXPECT_FALSE(CronSchedule::parse("*/0 * * * *"));
}

TEST(CronSchedule, TheLatestTimeIsFoundHoweverLongAgoTheOthersWere) {
  const auto latest = [](const char* schedule, const char* after, const char* until) {
    const auto found = CronSchedule::parse(schedule)->latest(*parse_rfc3339(after), *parse_rfc3339(until), {});
    return found ? format_rfc3339(*found) : "none";
  };
  EXPECT_EQ(latest("* * * * *", "2020-01-05T10:01:30Z", "2026-01-05T10:15:30Z"), "2026-01-05T10:15:00Z");
  EXPECT_EQ(latest("0,5 9 * * 1-5", "2025-01-05T00:00:00Z", "2026-01-11T10:15:00Z"), "2026-01-09T09:05:00Z");
  EXPECT_EQ(latest("0 0 1 1 *", "2020-06-01T00:00:00Z", "2026-01-01T00:00:00Z"), "2026-01-01T00:00:00Z") << "the end counts";
  EXPECT_EQ(latest("0 0 1 1 *", "2026-01-01T00:00:00Z", "2026-12-31T00:00:00Z"), "none") << "the start does not";
  EXPECT_EQ(latest("0 0 31 2 *", "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"), "none");
  EXPECT_EQ(latest("@every 7m", "2026-01-01T00:00:10Z", "2026-01-01T01:00:00Z"), "2026-01-01T00:56:10Z") << "counted from the start";
  EXPECT_EQ(latest("@every 2h", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"), "none");
}

class CronJobTest : public ::testing::Test {
 protected:
  CronJobTest() {
    world.api.engine.add(make_cronjob_controller());
    world.api.engine.start();
  }
  void put(const std::string& spec) {
    world.api.put(kinds().cron_job,
                  yaml(fmt::format("apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: c}}\nspec: {{{}, jobTemplate: {{metadata: "
                                   "{{labels: {{from: cron}}}}, spec: {{template: {{spec: {{containers: []}}}}}}}}}}\n",
                                   spec)));
  }
  std::vector<json::Value> jobs() const { return world.api.all(kinds().job); }
  void finish(const char* condition) {
    for (json::Value job : jobs()) {
      if (json::find(job, {"status", "conditions"}) != nullptr) continue;
      json::set(job, {"status"},
                json::Object{{"startTime", format_rfc3339(world.loop.now())},
                             {"completionTime", format_rfc3339(world.loop.now())},
                             {"conditions", json::Array{json::Object{{"type", condition}, {"status", "True"}}}}});
      world.api.put(kinds().job, job);
    }
    world.loop.run_for(seconds(1));
  }
  json::Value cron() const { return world.api.get(kinds().cron_job, "c"); }
  World world;
};

TEST_F(CronJobTest, MakesAJobAtEachTime) {
  put("schedule: '*/10 * * * *'");
  world.loop.run_for(minutes(9));
  EXPECT_TRUE(jobs().empty());
  world.loop.run_for(minutes(2));
  ASSERT_EQ(jobs().size(), 1u);
  const json::Value job = jobs()[0];
  const std::string name =
      fmt::format("c-{}", std::chrono::duration_cast<std::chrono::minutes>((kStart + minutes(10)).time_since_epoch()).count());
  EXPECT_EQ(json::get_string(job, {"metadata", "name"}), name);
  EXPECT_EQ(json::get_string(job, {"metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp"}), "2026-01-05T10:10:00Z");
  EXPECT_EQ(json::get_string(job, {"metadata", "labels", "from"}), "cron");
  EXPECT_EQ(owner_references(job)[0].kind, "CronJob");
  EXPECT_TRUE(world.api.saw("SuccessfulCreate: Created job " + name));
  EXPECT_EQ(json::get_string(cron(), {"status", "lastScheduleTime"}), "2026-01-05T10:10:00Z");
  EXPECT_EQ(json::get_array(cron(), {"status", "active"}).size(), 1u);
  finish("Complete");
  EXPECT_TRUE(world.api.saw(fmt::format("SawCompletedJob: Saw completed job: {}, condition: Complete", name)));
  EXPECT_TRUE(json::get_array(cron(), {"status", "active"}).empty());
  EXPECT_FALSE(json::get_string(cron(), {"status", "lastSuccessfulTime"}).empty());
}

TEST_F(CronJobTest, ForbidWaitsAndReplaceReplaces) {
  put("schedule: '* * * * *', concurrencyPolicy: Forbid");
  world.loop.run_for(minutes(3));
  EXPECT_EQ(jobs().size(), 1u);
  EXPECT_TRUE(world.api.saw("JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid"));
  const std::string first(json::get_string(jobs()[0], {"metadata", "name"}));
  json::Value document = cron();
  json::set(document, {"spec", "concurrencyPolicy"}, "Replace");
  world.api.put(kinds().cron_job, document);
  world.loop.run_for(minutes(2));
  ASSERT_EQ(jobs().size(), 1u);
  EXPECT_NE(json::get_string(jobs()[0], {"metadata", "name"}), first);
  EXPECT_TRUE(world.api.saw("SuccessfulDelete: Deleted job " + first));
}

TEST_F(CronJobTest, KeepsTheHistoryItIsToldTo) {
  put("schedule: '* * * * *', successfulJobsHistoryLimit: 2, failedJobsHistoryLimit: 1");
  for (int i = 0; i < 8; ++i) {
    world.loop.run_for(minutes(1));
    finish(i % 2 == 0 ? "Complete" : "Failed");
  }
  int good = 0, bad = 0;
  for (const json::Value& job : jobs()) (condition_status(job, "Complete") == "True" ? good : bad) += 1;
  EXPECT_EQ(good, 2);
  EXPECT_EQ(bad, 1);
}

TEST_F(CronJobTest, SuspendedMakesNone) {
  put("schedule: '* * * * *', suspend: true");
  world.loop.run_for(minutes(10));
  EXPECT_TRUE(jobs().empty());
}

TEST_F(CronJobTest, AMissedTimeIsMadeUpForWithinTheDeadline) {
  json::Value cron = yaml(
      "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, creationTimestamp: '2026-01-05T09:00:00Z'}\nspec: {schedule: '30 9 * * *', "
      "startingDeadlineSeconds: 600, jobTemplate: {spec: {}}}\n");
  world.api.put(kinds().cron_job, cron);
  world.loop.run_for(minutes(1));
  EXPECT_TRUE(jobs().empty()) << "half an hour late is too late";
  json::set(cron, {"metadata", "name"}, "d");
  json::set(cron, {"spec", "startingDeadlineSeconds"}, 3600);
  world.api.put(kinds().cron_job, cron);
  world.loop.run_for(minutes(1));
  ASSERT_EQ(jobs().size(), 1u);
  EXPECT_EQ(json::get_string(jobs()[0], {"metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp"}),
            "2026-01-05T09:30:00Z");
}

TEST_F(CronJobTest, OneRunMakesUpForMonthsOfMissedTimes) {
  world.api.put(
      kinds().cron_job,
      yaml("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, creationTimestamp: '2025-08-05T09:00:00Z'}\nspec: {schedule: "
           "'* * * * *', suspend: true, jobTemplate: {spec: {}}}\n"));
  world.loop.run_for(seconds(30));
  json::Value document = cron();
  json::set(document, {"spec", "suspend"}, false);
  world.api.put(kinds().cron_job, document);
  world.loop.run_for(seconds(20));
  ASSERT_EQ(jobs().size(), 1u) << "a time of months ago is nobody's any more";
  EXPECT_EQ(json::get_string(jobs()[0], {"metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp"}),
            "2026-01-05T10:00:00Z");
  EXPECT_TRUE(
      world.api.saw("TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock "
                    "skew"));
  world.loop.run_for(minutes(1));
  EXPECT_EQ(jobs().size(), 2u) << "and then each at its time";
}

TEST_F(CronJobTest, ARunWhoseStatusWasLostIsNotReplacedByItself) {
  put("schedule: '*/10 * * * *', concurrencyPolicy: Replace");
  world.api.refuse = [](const Write& write) -> std::optional<ApiStatus> {
    if (write.subresource != "status") return std::nullopt;
    return ApiStatus{.code = 500, .reason = "InternalError", .message = "gone"};
  };
  world.loop.run_for(minutes(10) + seconds(5));
  world.api.refuse = nullptr;
  world.loop.run_for(minutes(5));
  EXPECT_EQ(jobs().size(), 1u);
  EXPECT_EQ(json::get_string(cron(), {"status", "lastScheduleTime"}), "2026-01-05T10:10:00Z");
  EXPECT_EQ(json::get_array(cron(), {"status", "active"}).size(), 1u);
}

TEST_F(CronJobTest, WhatIsKnownIsToldThoughTheNextJobIsRefused) {
  put("schedule: '*/10 * * * *'");
  world.loop.run_for(minutes(10) + seconds(1));
  ASSERT_EQ(jobs().size(), 1u);
  world.api.refuse = [](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().job || write.verb != Write::Verb::kCreate) return std::nullopt;
    return ApiStatus{.code = 403, .reason = "Forbidden", .message = "exceeded quota"};
  };
  world.loop.run_for(minutes(10));
  finish("Complete");
  world.loop.run_for(minutes(5));
  EXPECT_TRUE(json::get_array(cron(), {"status", "active"}).empty());
  EXPECT_FALSE(json::get_string(cron(), {"status", "lastSuccessfulTime"}).empty());
  EXPECT_EQ(json::get_string(cron(), {"status", "lastScheduleTime"}), "2026-01-05T10:10:00Z");
  EXPECT_EQ(std::ranges::count_if(world.api.events, [](const std::string& event) { return event.starts_with("SawCompletedJob"); }), 1);
  world.api.refuse = nullptr;
  world.loop.run_for(minutes(2));
  EXPECT_EQ(jobs().size(), 2u) << "the run of 10:20 is made up for";
  EXPECT_EQ(json::get_string(cron(), {"status", "lastScheduleTime"}), "2026-01-05T10:20:00Z");
  EXPECT_EQ(json::get_array(cron(), {"status", "active"}).size(), 1u);
}

TEST_F(CronJobTest, AJobThatVanishesIsMissed) {
  put("schedule: '*/10 * * * *'");
  world.loop.run_for(minutes(11));
  ASSERT_EQ(jobs().size(), 1u);
  const std::string name(json::get_string(jobs()[0], {"metadata", "name"}));
  world.api.erase(kinds().job, "default", name);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.api.saw("MissingJob: Active job went missing: " + name));
  EXPECT_TRUE(json::get_array(cron(), {"status", "active"}).empty());
}

TEST_F(CronJobTest, AJobMadeByHandIsNotOneOfTheSchedules) {
  put("schedule: '0 0 1 1 *'");
  json::Value job =
      yaml("{apiVersion: batch/v1, kind: Job, metadata: {name: byhand, annotations: {cronjob.kubernetes.io/instantiate: manual}}}");
  json::set(job, {"metadata", "ownerReferences"}, json::Array{owner_reference(kinds().cron_job, Object(cron()))});
  world.api.put(kinds().job, job);
  world.loop.run_for(seconds(5));
  EXPECT_TRUE(json::get_array(cron(), {"status", "active"}).empty());
  EXPECT_TRUE(world.api.saw("UnexpectedJob: Saw a job that the controller did not create or forgot: byhand"));
}

TEST_F(CronJobTest, TimeZonesAndMistakesInThem) {
  put("schedule: '0 12 * * *', timeZone: Asia/Kolkata");  // 06:30 UTC, so tomorrow.
  world.loop.run_for(minutes(20 * 60));
  EXPECT_TRUE(jobs().empty());
  world.loop.run_for(minutes(60));
  ASSERT_EQ(jobs().size(), 1u);
  EXPECT_EQ(json::get_string(jobs()[0], {"metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp"}),
            "2026-01-06T06:30:00Z");
  put("schedule: '0 12 * * *', timeZone: Nowhere/Town");
  world.loop.run_for(seconds(5));
  EXPECT_TRUE(world.api.saw("UnknownTimeZone: invalid timeZone: \"Nowhere/Town\": unknown time zone Nowhere/Town"));
}

TEST_F(CronJobTest, AJobThatTheHistoryHasNoRoomForGoesUnsung) {
  put("schedule: '*/10 * * * *', failedJobsHistoryLimit: 0");
  world.loop.run_for(minutes(11));
  ASSERT_EQ(jobs().size(), 1u);
  finish("Failed");
  EXPECT_TRUE(jobs().empty());
  EXPECT_TRUE(std::ranges::none_of(world.api.events, [](const std::string& event) { return event.starts_with("SawCompletedJob"); }));
}

/// As they are where nothing is said.
TEST_F(CronJobTest, JobsRunBesideEachOther) {
  put("schedule: '* * * * *'");
  world.loop.run_for(minutes(3) + seconds(10));
  EXPECT_EQ(jobs().size(), 3U);
  for (const std::string& event : world.api.events) EXPECT_FALSE(event.starts_with("SuccessfulDelete")) << event;
  EXPECT_EQ(json::get_array(cron(), {"status", "active"}).size(), 3U);
}

}  // namespace
}  // namespace berth::controllers
