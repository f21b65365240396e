// ReplicaSets and ReplicationControllers under a virtual clock.
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

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

TEST(ReplicaSet, CreatesNoPodTwiceWhileTheWatchLagsByMinutes) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.hold_back(kinds().pod);
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 3)));
  for (int i = 0; i < 4; ++i) {
    world.loop.run_for(minutes(1));
    ASSERT_EQ(world.pods(), 3u) << "after minute " << i;
    json::Value set = world.api.get(kinds().replica_set, "w");
    json::set(set, {"metadata", "annotations", "round"}, json::Value(std::to_string(i)));
    world.api.put(kinds().replica_set, set);  // Something that the key is looked at for.
  }
  world.api.let_go_on();
  world.settle();
  EXPECT_EQ(world.pods(), 3u);
  EXPECT_EQ(json::get_int(world.api.get(kinds().replica_set, "w"), {"status", "readyReplicas"}), 3);
}

TEST(ReplicaSet, DeletesNoOtherPodWhileTheWatchLags) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 3)));
  world.settle();
  const std::vector<json::Value> before = world.api.all(kinds().pod);
  world.api.hold_back(kinds().pod);
  json::Value set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, 2);
  set = world.api.put(kinds().replica_set, set);
  world.loop.run_for(seconds(1));
  ASSERT_EQ(world.pods(), 2u);
  for (json::Value pod : before) {  // A last change of the doomed one, which says nothing of its end.
    if (!world.api.get(kinds().pod, std::string(json::get_string(pod, {"metadata", "name"}))).is_null()) continue;
    json::set(pod, {"metadata", "annotations", "touched"}, "yes");
    json::set(pod, {"metadata", "resourceVersion"}, json::Value(json::get_string(set, {"metadata", "resourceVersion"})));
    world.api.engine.observe(kinds().pod, std::make_shared<Object>(pod), false);
  }
  json::set(set, {"metadata", "annotations", "round"}, "1");
  world.api.put(kinds().replica_set, set);
  const int writes = world.api.writes;
  world.loop.run_for(minutes(1));
  EXPECT_EQ(world.pods(), 2u);
  EXPECT_EQ(world.api.writes, writes) << "it waits until it sees the end of the pod that it deleted";
  world.api.let_go_on();
  world.settle();
  EXPECT_EQ(world.pods(), 2u);
}

TEST(ReplicaSet, OfPodsThatAreNotReadyThePendingGoFirstAndThenTheUnknown) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 3)));
  world.loop.run_for(seconds(2));
  const char* phases[] = {"Running", "Unknown", "Pending"};
  std::map<std::string, std::string> named;
  int i = 0;
  for (json::Value pod : world.api.all(kinds().pod)) {
    json::set(pod, {"spec", "nodeName"}, json::Value(fmt::format("n{}", i)));
    json::set(pod, {"status"}, json::Object{{"phase", phases[i]}});
    named[phases[i++]] = json::get_string(pod, {"metadata", "name"});
    world.api.put(kinds().pod, pod);
  }
  for (const int left : {2, 1}) {
    json::Value set = world.api.get(kinds().replica_set, "w");
    json::set(set, {"spec", "replicas"}, left);
    world.api.put(kinds().replica_set, set);
    world.loop.run_for(seconds(2));
    EXPECT_TRUE(world.api.get(kinds().pod, named["Pending"]).is_null());
    EXPECT_EQ(world.api.get(kinds().pod, named["Unknown"]).is_null(), left == 1);
    EXPECT_FALSE(world.api.get(kinds().pod, named["Running"]).is_null());
  }
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

TEST(ReplicaSet, SaysWhatItMadeAndRemoved) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 1)));
  world.settle();
  const std::string name(json::get_string(world.api.all(kinds().pod)[0], {"metadata", "name"}));
  EXPECT_TRUE(world.api.saw("SuccessfulCreate: Created pod: " + name));
  json::Value set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, 0);
  world.api.put(kinds().replica_set, set);
  world.settle();
  EXPECT_TRUE(world.api.saw("SuccessfulDelete: Deleted pod: " + name));
}

TEST(ReplicaSet, ScalesDownByKubernetesRanking) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  const auto pod = [&](const char* name, const char* node, const char* phase, bool ready, int restarts, const char* created) {
    world.api.put(kinds().pod,
                  yaml(fmt::format(
                      "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, labels: {{app: w}}, creationTimestamp: '{}'}}\nspec: {{nodeName: "
                      "'{}'}}\nstatus: {{phase: {}, conditions: [{{type: Ready, "
                      "status: '{}', lastTransitionTime: '2026-01-05T08:00:00Z'}}], containerStatuses: [{{name: c, restartCount: {}}}]}}\n",
                      name, created, node, phase, ready ? "True" : "False", restarts)));
  };
  const char *old = "2026-01-05T07:00:00Z", *young = "2026-01-05T09:59:00Z";
  pod("kept", "n1", "Running", true, 0, old);
  pod("restarted", "n2", "Running", true, 5, old);
  pod("young", "n1", "Running", true, 0, young);
  pod("unready", "n3", "Running", false, 0, old);
  pod("pending", "n4", "Pending", false, 0, old);
  pod("unassigned", "", "Pending", false, 0, old);
  std::vector<std::string> order;
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 6)));
  world.loop.run_for(seconds(1));
  for (int wanted = 5; wanted >= 1; --wanted) {
    std::set<std::string> before;
    for (const json::Value& one : world.api.all(kinds().pod)) before.emplace(json::get_string(one, {"metadata", "name"}));
    json::Value set = world.api.get(kinds().replica_set, "w");
    json::set(set, {"spec", "replicas"}, wanted);
    world.api.put(kinds().replica_set, set);
    world.loop.run_for(seconds(1));
    for (const json::Value& one : world.api.all(kinds().pod)) before.erase(std::string(json::get_string(one, {"metadata", "name"})));
    ASSERT_EQ(before.size(), 1u);
    order.push_back(*before.begin());
  }
  EXPECT_EQ(order[0], "unassigned");
  EXPECT_EQ(order[1], "pending");
  EXPECT_EQ(order[2], "unready");
  EXPECT_EQ(order[3], "restarted") << "two on one node count only among the sets of one Deployment";
  EXPECT_EQ(order[4], "young");
}

TEST(ReplicaSet, PodsOfADeploymentsSetsThatShareANodeGoFirst) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.start();
  const std::string owner = "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: d-uid, controller: true}]";
  for (const auto& [name, node] : {std::pair{"apart", "n2"}, {"crowded", "n1"}})
    world.api.put(
        kinds().pod,
        yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, labels: {{app: w}}, creationTimestamp: "
                         "'2026-01-05T07:00:00Z'}}\nspec: {{nodeName: {}}}\nstatus: {{phase: Running, conditions: [{{type: Ready, "
                         "status: 'True', lastTransitionTime: '2026-01-05T08:00:00Z'}}]}}\n",
                         name, node)));
  json::Value other = yaml(workload("ReplicaSet", 1));
  json::set(other, {"metadata", "name"}, "other");
  json::set(other, {"spec", "selector", "matchLabels", "app"}, "o");
  json::set(other, {"spec", "template", "metadata", "labels", "app"}, "o");
  json::Value set = yaml(workload("ReplicaSet", 2));
  for (json::Value* one : {&other, &set})
    json::set(*one, {"metadata", "ownerReferences"},
              json::Array{
                  json::Object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "d"}, {"uid", "d-uid"}, {"controller", true}}});
  world.api.put(kinds().replica_set, other);
  world.settle();  // Its pod runs on n1.
  world.api.put(kinds().replica_set, set);
  world.loop.run_for(seconds(1));
  set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, 1);
  world.api.put(kinds().replica_set, set);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.api.get(kinds().pod, "crowded").is_null());
  EXPECT_FALSE(world.api.get(kinds().pod, "apart").is_null());
}

TEST(ReplicaSet, CountsThePodsOnTheirWayOut) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.add(make_replication_controller());
  world.api.engine.start();
  world.api.put(kinds().replica_set, yaml(workload("ReplicaSet", 3)));
  world.settle();
  const auto terminating = [&] {
    return json::find(world.api.get(kinds().replica_set, "w"), {"status", "terminatingReplicas"}) == nullptr
               ? -1
               : json::get_int(world.api.get(kinds().replica_set, "w"), {"status", "terminatingReplicas"});
  };
  EXPECT_EQ(terminating(), 0) << "zero is said, too";
  for (json::Value pod : world.api.all(kinds().pod)) {  // Leaving takes time.
    json::set(pod, {"metadata", "finalizers"}, json::Array{"test/hold"});
    world.api.put(kinds().pod, pod);
  }
  json::Value set = world.api.get(kinds().replica_set, "w");
  json::set(set, {"spec", "replicas"}, 1);
  world.api.put(kinds().replica_set, set);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(terminating(), 2);
  EXPECT_EQ(json::get_int(world.api.get(kinds().replica_set, "w"), {"status", "replicas"}), 1);
}

TEST(ReplicationController, CountsReadinessAndAvailability) {
  World world;
  world.api.engine.add(make_replication_controller());
  world.api.engine.start();
  world.api.put(kinds().replication_controller,
                yaml("apiVersion: v1\nkind: ReplicationController\nmetadata: {name: w, generation: 1}\nspec:\n  replicas: 2\n  "
                     "minReadySeconds: 10\n  selector: {app: w}\n"
                     "  template:\n    metadata: {labels: {app: w}}\n    spec: {containers: [{name: c, image: a}]}\n"));
  world.settle();
  json::Value control = world.api.get(kinds().replication_controller, "w");
  EXPECT_EQ(json::get_int(control, {"status", "readyReplicas"}), 2);
  EXPECT_EQ(json::get_int(control, {"status", "fullyLabeledReplicas"}), 2);
  EXPECT_EQ(json::get_int(control, {"status", "availableReplicas"}), 0);
  world.loop.run_for(seconds(10));
  control = world.api.get(kinds().replication_controller, "w");
  EXPECT_EQ(json::get_int(control, {"status", "availableReplicas"}), 2) << "without any further event";
  EXPECT_EQ(json::get_int(control, {"status", "observedGeneration"}), 1);
}

}  // namespace
}  // namespace berth::controllers
