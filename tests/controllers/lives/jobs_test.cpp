// Jobs of all sorts over pods that succeed, fail and vanish; CronJobs over a clock that jumps.
#include "controllers/workloads.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

constexpr const char* kJob =
    "{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {parallelism: 2, completions: 3, backoffLimit: 3, selector: {matchLabels: {app: "
    "w}}, "
    "template: {metadata: {labels: {app: w}}, spec: {restartPolicy: Never, containers: [{name: c, image: a1}]}}}}";
constexpr const char* kIndexed =
    "{apiVersion: batch/v1, kind: Job, metadata: {}, spec: {parallelism: 3, completions: 3, completionMode: Indexed, backoffLimitPerIndex: "
    "1, "
    "selector: {matchLabels: {app: v}}, template: {metadata: {labels: {app: v}}, spec: {restartPolicy: Never, containers: [{name: c, "
    "image: a1}]}}}}";
constexpr const char* kPod = "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}";

void add_fields(World& world) {
  const Kind job = kinds().job, pod = kinds().pod;
  world.fields = {
      {job, "spec parallelism", {"0", "1", "2", "3", "5", ""}},
      {job, "spec parallelism", {"1", "2", "3", "4"}},
      {job, "spec completions", {"1", "2", "3", "4", "6", ""}},
      {job, "spec suspend", {"true", "false", "", ""}},
      {job, "spec backoffLimit", {"0", "1", "2", "6", ""}},
      {job, "spec activeDeadlineSeconds", {"5", "60", "", ""}},
      {job, "spec ttlSecondsAfterFinished", {"0", "30", "", ""}},
      {job, "spec podReplacementPolicy", {"Failed", "TerminatingOrFailed", ""}},
      {job, "spec maxFailedIndexes", {"0", "1", ""}},
      {job, "spec backoffLimitPerIndex", {"0", "1", "2", ""}},
      {job, "spec managedBy", {"other/x", "kubernetes.io/job-controller", "", ""}},
      {job,
       "spec podFailurePolicy",
       {"{rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}, {action: FailJob, onExitCodes: {operator: In, values: "
        "[42, 43]}}]}",
        "{rules: [{action: FailIndex, onExitCodes: {containerName: c, operator: NotIn, values: [1]}}, {action: Count, onPodConditions: "
        "[{type: X, status: 'False'}]}]}",
        "{rules: [{action: FailJob, onPodConditions: [{type: ConfigIssue, status: 'True'}]}]}", "", ""}},
      {job,
       "spec successPolicy",
       {"{rules: [{succeededIndexes: 0-1}]}", "{rules: [{succeededIndexes: '2', succeededCount: 1}, {succeededCount: 2}]}", "", ""}},
      {job, "spec template spec restartPolicy", {"Never", "OnFailure", "Never"}},
      {job, "spec template spec priorityClassName", {"high", ""}},
      {job, "spec template spec initContainers", {"[{name: i, env: [{name: JOB_COMPLETION_INDEX, value: x}]}]", ""}},
      {pod, "metadata finalizers", {"", "[batch.kubernetes.io/job-tracking]", "[x, batch.kubernetes.io/job-tracking]"}},
      {pod, "metadata labels batch.kubernetes.io/job-completion-index", {"0", "1", "9", "x", ""}},
      {pod, "metadata ownerReferences", {"", "[$owner(Job default/w)]", "[$owner(Job default/i)]"}},
      {pod, "metadata labels app", {"w", "v", ""}},
      {pod,
       "status containerStatuses",
       {"[{name: c, restartCount: 1}]", "[{name: c, restartCount: 3, state: {terminated: {exitCode: 42, finishedAt: '$t-3'}}}]",
        "[{name: c, restartCount: 0, state: {terminated: {exitCode: 1, finishedAt: '$t'}}}]", ""}},
      {pod,
       "status conditions",
       {"[{type: DisruptionTarget, status: 'True'}]", "[{type: ConfigIssue, status: 'True'}]", "[{type: Ready, status: 'True'}]",
        "[{type: Ready, status: 'False', lastTransitionTime: '$t-9'}]", ""}},
  };
}

/// A pod of a Job ends in one of the ways that policies tell apart.
void end_a_pod(World& world) {
  const std::string key = world.any(kinds().pod);
  if (key.empty()) return;
  json::Value pod = *world.find(kinds().pod, key);
  if (!get_string(pod, {"metadata", "deletionTimestamp"}).empty() && get_array(pod, {"metadata", "finalizers"}).empty())
    return world.erase(kinds().pod, key, fmt::format("pod {} is gone", key));
  if (get_string(pod, {"status", "phase"}) == "Failed" || get_string(pod, {"status", "phase"}) == "Succeeded") return;
  const std::string how = world.life.dice.of(std::vector<std::string>{
      "{phase: Succeeded, containerStatuses: [{name: c, state: {terminated: {exitCode: 0, finishedAt: '$t'}}}]}", "{phase: Succeeded}",
      "{phase: Succeeded, containerStatuses: [{name: c, state: {terminated: {exitCode: 0, finishedAt: '$t-2'}}}]}",
      "{phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 1, finishedAt: '$t'}}}]}",
      "{phase: Failed, containerStatuses: [{name: c, state: {terminated: {exitCode: 42, finishedAt: '$t-1'}}}]}",
      "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True'}]}",
      "{phase: Failed, containerStatuses: [{name: c}], initContainerStatuses: [{name: i, state: {terminated: {exitCode: 43, finishedAt: "
      "'$t'}}}]}"});
  pod.get_object()["status"] = yaml(world.filled_in(how));
  world.put(kinds().pod, key, std::move(pod), fmt::format("pod {} ends: {}", key, brief(*json::find(pod, "status"))));
}

/// Every pod is counted once: a Job's numbers never fall, but for what an Indexed one lost of its indexes.
struct Counted {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> seen;  ///< By uid.
  void judge(World& world) {
    for (const std::string& key : world.keys(kinds().job)) {
      const json::Value& job = *world.find(kinds().job, key);
      auto& [failed, finished] = seen[std::string(get_string(job, {"metadata", "uid"}))];
      const std::int64_t now = get_int(job, {"status", "failed"});
      if (now < failed) world.wrong(fmt::format("{} had {} failed pods, and has {}", key, failed, now));
      failed = now;
      const bool is_over = condition_status(job, "Complete") == "True" || condition_status(job, "Failed") == "True";
      if (finished != 0 && !is_over) world.wrong(fmt::format("{} was over", key));
      finished = is_over ? 1 : 0;
      if (condition_status(job, "Complete") == "True" && condition_status(job, "Failed") == "True")
        world.wrong(fmt::format("{} is complete and has failed", key));
    }
  }
};

void live(Settings settings, bool groups, std::vector<Sort> sorts) {
  World world(std::move(settings));
  world.add([groups] { return make_job_controller({.makes_groups = groups}); });
  world.add([] { return make_ttl_after_finished_controller(); });
  world.sorts = std::move(sorts);
  add_fields(world);
  if (groups) {
    world.fields.push_back({kinds().job, "spec template spec schedulingGroup", {"{podGroupName: g}", "", ""}});
    world.fields.push_back(
        {kinds().workload, "spec podGroupTemplates", {"[]", "[{name: a, schedulingPolicy: {gang: {minCount: 2}}, priority: 5}]"}});
    world.fields.push_back({kinds().workload, "spec controllerRef name", {"i", "w"}});
  }
  world.acts = {{3, [&] { end_a_pod(world); }}, {2, [&] { world.play_kubelet({"n1", "n2"}); }}};
  Counted counted;
  world.judge = [&] { counted.judge(world); };
  world.live();
}

TEST(JobLives, OfPlainJobsAreAsRecorded) {
  live({.file = "tests/controllers/lives/jobs.txt", .seed = 5, .edits = 1500, .has_memory = true}, false,
       {{kinds().job, {"default/w", "default/w", "other/w"}, kJob}, {kinds().pod, {"default/p1"}, kPod}});
}

TEST(JobLives, OfIndexedJobsAreAsRecorded) {
  live({.file = "tests/controllers/lives/indexed_jobs.txt", .seed = 6, .edits = 1800, .has_memory = true}, false,
       {{kinds().job, {"default/i", "default/i", "default/an-indexed-job-with-a-name-that-is-longer-than-what-pods-can-have"}, kIndexed},
        {kinds().pod, {"default/p1"}, kPod}});
}

TEST(JobLives, OfGangsAreAsRecorded) {
  live({.file = "tests/controllers/lives/gang_jobs.txt", .seed = 7, .edits = 600, .has_memory = true, .readable = 11'000}, true,
       {{kinds().job, {"default/i", "default/i"}, kIndexed},
        {kinds().job, {"default/w"}, kJob},
        {kinds().workload,
         {"default/x"},
         "{apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, metadata: {}, spec: {controllerRef: {apiGroup: batch, kind: Job, name: "
         "i}, podGroupTemplates: [{name: a}]}}"},
        {kinds().pod_group,
         {"default/y"},
         "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {ownerReferences: [$owner(Job default/i)]}, spec: "
         "{podGroupTemplateRef: {workload: {workloadName: x}}}}"}});
}

TEST(CronJobLives, AreAsRecorded) {
  World world(
      {.file = "tests/controllers/lives/cron_jobs.txt", .seed = 8, .edits = 1500, .readable = 17'000, .longest = std::chrono::minutes(4)});
  world.add([] { return make_cronjob_controller(); });
  const Kind cron = kinds().cron_job, job = kinds().job;
  constexpr const char* kCron =
      "{apiVersion: batch/v1, kind: CronJob, metadata: {}, spec: {schedule: '*/2 * * * *', jobTemplate: {metadata: {labels: {a: b}}, spec: "
      "{x: 1}}}}";
  world.sorts = {{cron, {"default/c", "default/c", "other/d"}, kCron},
                 {job,
                  {"default/by-hand", "default/c-29461562"},
                  "{apiVersion: batch/v1, kind: Job, metadata: {ownerReferences: [$owner(CronJob default/c)]}, spec: {}}"}};
  world.fields = {
      {cron,
       "spec schedule",
       {"'*/2 * * * *'", "'* * * * *'", "'@every 90s'", "'0 0 1 1 *'", "'5 10 * * 1'", "'5 10 6 1 2'", "'0 0 30 2 *'", "'x'",
        "'15,45 9-11/2 * JAN mon-fri'"}},
      {cron, "spec schedule", {"'*/3 * * * *'", "'* * * * *'"}},
      {cron, "spec timeZone", {"Europe/Berlin", "Nowhere/Land", "../etc/passwd", "Etc/UTC", "", ""}},
      {cron, "spec suspend", {"true", "", ""}},
      {cron, "spec concurrencyPolicy", {"Forbid", "Replace", "Allow", ""}},
      {cron, "spec startingDeadlineSeconds", {"10", "60", "600", ""}},
      {cron, "spec successfulJobsHistoryLimit", {"0", "1", ""}},
      {cron, "spec failedJobsHistoryLimit", {"0", "2", ""}},
      {cron, "status lastScheduleTime", {"'2026-01-05T08:00:00Z'", "'$t-60'", ""}},
      {cron, "metadata creationTimestamp", {"'2026-01-04T08:00:00Z'"}},
      {cron, "status active", {"[{uid: u-lost, name: lost}]", ""}},
      {job,
       "status",
       {"{startTime: '$t-5', completionTime: '$t', conditions: [{type: Complete, status: 'True'}]}",
        "{startTime: '$t-9', conditions: [{type: Failed, status: 'True'}]}", "{}"}},
      {job,
       "status",
       {"{startTime: '$t-5', completionTime: '$t', conditions: [{type: Complete, status: 'True'}]}",
        "{startTime: '$t-9', conditions: [{type: Failed, status: 'True'}]}"}},
      {job, "metadata annotations batch.kubernetes.io/cronjob-scheduled-timestamp", {""}},
  };
  world.acts = {{1, [&] {
                   const std::string key = world.any(job);
                   if (key.empty()) return;
                   json::Value one = *world.find(job, key);
                   const bool ok = world.life.dice.chance(60);
                   one.get_object()["status"] =
                       yaml(world.filled_in(fmt::format("{{startTime: '$t-7', {}conditions: [{{type: {}, status: 'True'}}]}}",
                                                        ok ? "completionTime: '$t', " : "", ok ? "Complete" : "Failed")));
                   world.put(job, key, std::move(one), fmt::format("job {} is {}", key, ok ? "complete" : "failed"));
                 }}};
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
