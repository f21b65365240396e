#include "controllers/cluster.h"
#include "controllers/cron_schedule.h"
#include "controllers/job_model.h"
#include "controllers/workloads.h"
#include "controllers/zones.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

const TimePoint kStart = *parse_rfc3339("2026-01-05T10:00:00Z");

struct World {
  VirtualLoop loop{kStart};
  FakeApi api{loop};
  std::size_t pods() const { return api.all(kinds().pod).size(); }
  void settle(Duration d = seconds(2)) {
    loop.run_for(d);
    api.run_pods();
    loop.run_for(d);
  }
};

std::string workload(const char* kind, int replicas, const char* extra = "") {
  return fmt::format("apiVersion: apps/v1\nkind: {0}\nmetadata: {{name: w, generation: 1}}\nspec:\n  replicas: {1}\n{2}  selector: {{matchLabels: {{app: w}}}}\n  template:\n    metadata: {{labels: {{app: w}}}}\n"
                     "    spec: {{containers: [{{name: c, image: 'a:1'}}]}}\n", kind, replicas, extra);
}

TEST(ReplicaSet, KeepsItsCountAndReplacesLostPods) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 30)));
  world.settle();
  ASSERT_EQ(world.pods(), 30u);
  EXPECT_EQ(json::get_int(world.api.get(kinds().replica_set, "w"), {"status", "readyReplicas"}), 30);
  const std::string lost(json::get_string(world.api.all(kinds().pod).front(), {"metadata", "name"}));
  world.api.erase(kinds().pod, "default", lost);
  world.settle();
  EXPECT_EQ(world.pods(), 30u);
  EXPECT_TRUE(world.api.get(kinds().pod, lost).is_null());
}

TEST(ReplicaSet, ScalesDownTheCheapestPodFirst) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 3)));
  world.settle();
  json::Value cheap = world.api.all(kinds().pod)[1];
  json::set(cheap, {"metadata", "annotations", "controller.kubernetes.io/pod-deletion-cost"}, "-10");
  world.api.put(kinds().pod, cheap);
  json::Value set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, 2);
  world.api.put(kinds().replica_set, set);
  world.settle();
  EXPECT_EQ(world.pods(), 2u);
  EXPECT_TRUE(world.api.get(kinds().pod, std::string(json::get_string(cheap, {"metadata", "name"}))).is_null());
}

TEST(ReplicaSet, SaysWhyItCannotCreateAndRecovers) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.refuse = [](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod) return std::nullopt;
    return model::forbidden("", "pods", "w", "exceeded quota");
  };
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 50)));
  world.loop.run_for(seconds(1));
  const json::Value set = world.api.get(kinds().replica_set, "w");
  ASSERT_NE(find_condition(set, "ReplicaFailure"), nullptr);
  EXPECT_EQ(json::get_string(*find_condition(set, "ReplicaFailure"), {"reason"}), "FailedCreate");
  // One attempt a retry, not fifty: the batches start small.
  EXPECT_LT(world.api.writes, 30);
  world.api.refuse = nullptr;
  world.settle(minutes(2));
  EXPECT_EQ(world.pods(), 50u);
  EXPECT_EQ(find_condition(world.api.get(kinds().replica_set, "w"), "ReplicaFailure"), nullptr);
}

TEST(ReplicaSet, AdoptsAnOrphanAndReleasesARelabelledPod) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.put(kinds().pod, yaml("{apiVersion: v1, kind: Pod, metadata: {name: orphan, labels: {app: w}}, spec: {}}"));
  const json::Value set = world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 2)));
  world.settle();
  EXPECT_EQ(world.pods(), 2u);
  json::Value orphan = world.api.get(kinds().pod, "orphan");
  ASSERT_EQ(owner_references(orphan).size(), 1u);
  EXPECT_EQ(owner_references(orphan)[0].uid, json::get_string(set, {"metadata", "uid"}));
  json::set(orphan, {"metadata", "labels", "app"}, "free");
  world.api.put(kinds().pod, orphan);
  world.settle();
  EXPECT_TRUE(owner_references(world.api.get(kinds().pod, "orphan")).empty());
  EXPECT_EQ(world.pods(), 3u);
}

TEST(Deployment, RollsToANewTemplateWithinItsBudgetAndBack) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.add(make_deployment_controller());
  world.api.engine.start();
  world.api.put(kinds().deployment, yaml(workload("Deployment", 4, "  progressDeadlineSeconds: 600\n  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n")));
  world.settle();
  ASSERT_EQ(world.pods(), 4u);
  json::Value deployment = world.api.get(kinds().deployment, "w");
  EXPECT_EQ(json::get_string(*find_condition(deployment, "Progressing"), {"reason"}), "NewReplicaSetAvailable");
  deployment.at("spec").at("template").at("spec").at("containers").at(0).at("image") = "a:2";
  json::set(deployment, {"metadata", "generation"}, 2);
  world.api.put(kinds().deployment, deployment);
  for (int i = 0; i < 40; ++i) {
    world.settle(seconds(1));
    EXPECT_LE(world.pods(), 5u);
  }
  EXPECT_EQ(world.pods(), 4u);
  for (const json::Value& pod : world.api.all(kinds().pod)) EXPECT_EQ(pod.at("spec").at("containers").at(0).at("image"), "a:2");
  ASSERT_EQ(world.api.all(kinds().replica_set).size(), 2u);
  // The old template again: its ReplicaSet is used again, as the newest revision.
  deployment = world.api.get(kinds().deployment, "w");
  EXPECT_EQ(json::get_string(deployment, {"metadata", "annotations", "deployment.kubernetes.io/revision"}), "2");
  deployment.at("spec").at("template").at("spec").at("containers").at(0).at("image") = "a:1";
  world.api.put(kinds().deployment, deployment);
  for (int i = 0; i < 40; ++i) world.settle(seconds(1));
  EXPECT_EQ(world.api.all(kinds().replica_set).size(), 2u);
  EXPECT_EQ(json::get_string(world.api.get(kinds().deployment, "w"), {"metadata", "annotations", "deployment.kubernetes.io/revision"}), "3");
}

TEST(Deployment, ExceedsItsProgressDeadline) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.add(make_deployment_controller());
  world.api.engine.start();
  world.api.put(kinds().deployment, yaml(workload("Deployment", 1, "  progressDeadlineSeconds: 3\n")));
  world.loop.run_for(seconds(10));
  const json::Value* progressing = find_condition(world.api.get(kinds().deployment, "w"), "Progressing");
  const json::Value deployment = world.api.get(kinds().deployment, "w");
  progressing = find_condition(deployment, "Progressing");
  ASSERT_NE(progressing, nullptr);
  EXPECT_EQ(json::get_string(*progressing, {"reason"}), "ProgressDeadlineExceeded");
  EXPECT_EQ(condition_status(deployment, "Available"), "False");
}

TEST(GarbageCollector, DeletesDependentsOfAVanishedOwner) {
  World world;
  world.api.engine.add(make_garbage_collector());
  world.api.engine.start();
  const json::Value owner = world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 0)));
  json::Value pod = yaml("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}");
  json::set(pod, {"metadata", "ownerReferences"}, json::Array{owner_reference(kinds().replica_set, Object(owner))});
  world.api.put(kinds().pod, pod);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(world.pods(), 1u);
  world.api.erase(kinds().replica_set, "default", "w");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(world.pods(), 0u);
}

TEST(StatefulSet, MakesPodsOneAfterTheOther) {
  World world;
  world.api.engine.add(make_statefulset_controller());
  world.api.engine.start();
  world.api.put(kinds().stateful_set, yaml(workload("StatefulSet", 3, "  serviceName: w\n")));
  world.loop.run_for(seconds(1));
  EXPECT_EQ(world.pods(), 1u);
  for (int i = 0; i < 4; ++i) world.settle();
  EXPECT_EQ(world.pods(), 3u);
  EXPECT_FALSE(world.api.get(kinds().pod, "w-2").is_null());
  EXPECT_EQ(json::get_int(world.api.get(kinds().stateful_set, "w"), {"status", "readyReplicas"}), 3);
}

TEST(DaemonSet, RunsOnMatchingNodesWithItsTolerations) {
  World world;
  world.api.engine.add(make_daemonset_controller());
  world.api.engine.start();
  for (const char* name : {"a", "b"}) world.api.put(kinds().node, yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {}}}, spec: {{}}}}", name)));
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: c}, spec: {taints: [{key: k, effect: NoSchedule}]}}"));
  world.api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: d}, spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}"));
  world.api.put(kinds().daemon_set, yaml(workload("DaemonSet", 0)));
  world.loop.run_for(seconds(2));
  EXPECT_EQ(world.pods(), 3u);
  EXPECT_EQ(json::get_int(world.api.get(kinds().daemon_set, "w"), {"status", "desiredNumberScheduled"}), 3);
  std::set<std::string> tolerated;
  const PodRef pod = make_pod_info(std::make_shared<Object>(world.api.all(kinds().pod)[0]));
  for (const Toleration& toleration : pod->no_execute_tolerations) tolerated.insert(toleration.key);
  EXPECT_TRUE(tolerated.contains("node.kubernetes.io/not-ready"));
  EXPECT_TRUE(tolerated.contains("node.kubernetes.io/unreachable"));
}

TEST(Job, CountsEveryFinishedPodOnce) {
  World world;
  world.api.engine.add(make_job_controller());
  world.api.engine.start();
  world.api.put(kinds().job, yaml("{apiVersion: batch/v1, kind: Job, metadata: {name: j, generation: 1}, spec: {completions: 3, parallelism: 2, backoffLimit: 6, selector: {matchLabels: {app: j}}, "
                                  "template: {metadata: {labels: {app: j}}, spec: {restartPolicy: Never, containers: []}}}}"));
  for (int i = 0; i < 10; ++i) {
    world.settle(seconds(1));
    EXPECT_LE(std::count_if(world.api.objects.begin(), world.api.objects.end(), [](const auto& entry) { return json::get_string(entry.second, {"status", "phase"}) == "Running"; }), 2);
    for (json::Value pod : world.api.all(kinds().pod)) {
      if (json::get_string(pod, {"status", "phase"}) != "Running") continue;
      json::set(pod, {"status", "phase"}, "Succeeded");
      world.api.put(kinds().pod, pod);
    }
  }
  const json::Value job = world.api.get(kinds().job, "j");
  EXPECT_EQ(condition_status(job, "Complete"), "True");
  EXPECT_EQ(json::get_int(job, {"status", "succeeded"}), 3);
  EXPECT_EQ(world.pods(), 3u);
  for (const json::Value& pod : world.api.all(kinds().pod)) EXPECT_FALSE(has_finalizer(pod, "batch.kubernetes.io/job-tracking"));
}

TEST(JobIndexes, AreWrittenAsRanges) {
  EXPECT_EQ(job::format_indexes({0, 1, 2, 3, 5, 7, 8}), "0-3,5,7,8");
  EXPECT_EQ(job::parse_indexes("0-3,5,7,8"), (std::set<std::int64_t>{0, 1, 2, 3, 5, 7, 8}));
  EXPECT_TRUE(job::parse_indexes("x,,-").empty());
}

TEST(CronSchedule, FindsTheNextTime) {
  const auto next = [](const char* schedule, const char* after) { return format_rfc3339(*CronSchedule::parse(schedule)->next(*parse_rfc3339(after), {})); };
  EXPECT_EQ(next("*/15 * * * *", "2026-01-05T10:01:30Z"), "2026-01-05T10:15:00Z");
  EXPECT_EQ(next("0 0 1 1 *", "2026-01-05T10:01:30Z"), "2027-01-01T00:00:00Z");
  EXPECT_EQ(next("30 8 * * mon-fri", "2026-01-09T09:00:00Z"), "2026-01-12T08:30:00Z");
  EXPECT_EQ(next("0 0 13 * 5", "2026-01-05T00:00:00Z"), "2026-01-09T00:00:00Z") << "a day of month and a weekday: either is enough";
  EXPECT_FALSE(CronSchedule::parse("60 * * * *"));
  EXPECT_FALSE(CronSchedule::parse("* * * *"));
  EXPECT_FALSE(CronSchedule::parse("*/0 * * * *"));
}

TEST(Zones, TaintAtTheZonesRate) {
  Zones zones({});
  TimePoint now = kStart;
  zones.update({{"a", {900, 100}}}, now);
  for (int i = 0; i < 100; ++i) zones.add("a", std::to_string(i));
  std::size_t taken = 0;
  for (; now < kStart + seconds(101); now += std::chrono::milliseconds(100)) taken += zones.take(now).size();
  EXPECT_EQ(taken, 11u) << "one at once, then one each ten seconds";
}

TEST(Zones, StopAndSlowDownByHealth) {
  Zones zones({});
  zones.update({{"small", {4, 6}}, {"big", {40, 60}}, {"down", {0, 5}}}, kStart);
  EXPECT_EQ(zones.state("small"), ZoneState::kPartialDisruption);
  EXPECT_EQ(zones.state("down"), ZoneState::kFullDisruption);
  for (int i = 0; i < 4; ++i) {
    zones.add("small", "s" + std::to_string(i));
    zones.add("big", "b" + std::to_string(i));
  }
  EXPECT_EQ(zones.take(kStart), std::vector<std::string>{"b0"});
  EXPECT_EQ(zones.next(kStart), seconds(100));
  EXPECT_EQ(zones.update({{"small", {0, 10}}, {"big", {0, 100}}, {"down", {0, 5}}}, kStart), Zones::Change::kAllDown);
  zones.add("big", "x");
  EXPECT_TRUE(zones.take(kStart + minutes(60)).empty()) << "everything down: nobody moves";
  EXPECT_EQ(zones.update({{"small", {10, 0}}, {"big", {0, 100}}, {"down", {0, 5}}}, kStart), Zones::Change::kRecovered);
}

}  // namespace
}  // namespace berth::controllers
