// Deployments under a virtual clock.
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

TEST(Deployment, RollsToANewTemplateWithinItsBudgetAndBack) {
  World world;
  world.api.engine.add(make_replicaset_controller());
  world.api.engine.add(make_deployment_controller());
  world.api.engine.start();
  world.api.put(
      kinds().deployment,
      yaml(workload(
          "Deployment", 4,
          "  progressDeadlineSeconds: 600\n  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n")));
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
  EXPECT_EQ(json::get_string(world.api.get(kinds().deployment, "w"), {"metadata", "annotations", "deployment.kubernetes.io/revision"}),
            "3");
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

class Rollout : public ::testing::Test {
 protected:
  Rollout() {
    world.api.engine.add(make_replicaset_controller());
    world.api.engine.add(make_deployment_controller());
    world.api.engine.start();
  }
  json::Value deployment() const { return world.api.get(kinds().deployment, "w"); }
  void change(const std::function<void(json::Value&)>& edit) {
    json::Value document = deployment();
    edit(document);
    json::set(document, {"metadata", "generation"}, json::get_int(document, {"metadata", "generation"}) + 1);
    world.api.put(kinds().deployment, document);
  }
  void image(const char* name) {
    change([&](json::Value& d) { d.at("spec").at("template").at("spec").at("containers").at(0).at("image") = name; });
  }
  void settle(int rounds = 20) {
    for (int i = 0; i < rounds; ++i) world.settle(seconds(1));
  }
  std::map<std::string, std::int64_t> images() const {
    std::map<std::string, std::int64_t> count;
    for (const json::Value& pod : world.api.all(kinds().pod))
      ++count[std::string(json::get_string(pod.at("spec").at("containers").at(0), {"image"}))];
    return count;
  }
  std::string progressing() const {
    const json::Value document = deployment();
    const json::Value* condition = find_condition(document, "Progressing");
    return condition == nullptr ? ""
                                : fmt::format("{} {}", json::get_string(*condition, {"status"}), json::get_string(*condition, {"reason"}));
  }
  World world;
};

TEST_F(Rollout, RecreateRemovesTheOldBeforeItMakesTheNew) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 3, "  strategy: {type: Recreate}\n")));
  settle(3);
  ASSERT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:1", 3}}));
  for (json::Value pod : world.api.all(kinds().pod)) {  // Leaving takes time.
    json::set(pod, {"metadata", "finalizers"}, json::Array{"test/hold"});
    world.api.put(kinds().pod, pod);
  }
  image("a:2");
  settle(3);
  EXPECT_EQ(images().count("a:2"), 0u) << "as long as an old pod is there";
  for (const json::Value& pod : world.api.all(kinds().pod))
    world.api.erase(kinds().pod, "default", std::string(json::get_string(pod, {"metadata", "name"})));
  settle(5);
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:2", 3}}));
}

TEST_F(Rollout, APausedDeploymentScalesButDoesNotRoll) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 2, "  progressDeadlineSeconds: 600\n")));
  settle(3);
  change([](json::Value& d) { json::set(d, {"spec", "paused"}, true); });
  image("a:2");
  change([](json::Value& d) { json::set(d, {"spec", "replicas"}, 4); });
  settle(3);
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:1", 4}}));
  EXPECT_EQ(progressing(), "Unknown DeploymentPaused");
  change([](json::Value& d) { json::set(d, {"spec", "paused"}, false); });
  settle(20);
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:2", 4}}));
  EXPECT_EQ(progressing(), "True NewReplicaSetAvailable");
}

TEST_F(Rollout, KeepsAsManyOldRevisionsAsTheLimitSays) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 1, "  revisionHistoryLimit: 2\n")));
  for (const char* name : {"a:1", "a:2", "a:3", "a:4", "a:5"}) {
    settle(3);
    image(name);
  }
  settle(10);
  std::set<std::string> revisions;
  for (const json::Value& set : world.api.all(kinds().replica_set))
    revisions.emplace(json::get_string(set, {"metadata", "annotations", "deployment.kubernetes.io/revision"}));
  EXPECT_EQ(revisions, (std::set<std::string>{"3", "4", "5"}));
}

TEST_F(Rollout, ScalesOldAndNewInProportionDuringARollout) {
  world.api.put(kinds().deployment,
                yaml(workload("Deployment", 10, "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}\n")));
  settle(4);
  image("broken:1");
  world.loop.run_for(seconds(2));  // The new pods do not become ready.
  const auto before = images();
  ASSERT_EQ(before.at("a:1"), 8);
  ASSERT_EQ(before.at("broken:1"), 5);
  change([](json::Value& d) { json::set(d, {"spec", "replicas"}, 15); });
  world.loop.run_for(seconds(2));
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:1", 11}, {"broken:1", 7}}))
      << "Kubernetes' own example (docs, proportional scaling)";
}

TEST_F(Rollout, NewPodsThatAreNotReadyTakeFromTheBudgetOfTheOld) {
  world.api.put(kinds().deployment,
                yaml(workload("Deployment", 10, "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 5, maxUnavailable: 3}}\n")));
  settle(4);
  image("broken:1");
  for (int i = 0; i < 20; ++i) {
    world.loop.run_for(seconds(1));  // The new pods do not become ready.
    ASSERT_GE(images()["a:1"], 7) << "ten less the three that may be unavailable, in second " << i;
  }
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:1", 7}, {"broken:1", 8}}));
  // Another revision meanwhile: what is not ready of either gives nothing.
  image("broken:2");
  for (int i = 0; i < 20; ++i) {
    world.loop.run_for(seconds(1));
    ASSERT_GE(images()["a:1"], 7);
    ASSERT_LE(world.pods(), 15u);
  }
}

TEST(Deployment, ASetWhoseStatusIsBehindKeepsItsPods) {
  World world;
  world.api.engine.add(make_deployment_controller());
  world.api.engine.start();
  json::Value deployment =
      yaml(workload("Deployment", 5, "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}\n"));
  world.api.put(kinds().deployment, deployment);
  world.loop.run_for(seconds(1));
  // Just scaled down from 11: eight of them still count as available.
  json::Value set = world.api.all(kinds().replica_set).front();
  const std::string name(json::get_string(set, {"metadata", "name"}));
  json::set(set, {"status"}, json::Object{{"replicas", 11}, {"readyReplicas", 8}, {"availableReplicas", 8}});
  world.api.put(kinds().replica_set, set);
  deployment = world.api.get(kinds().deployment, "w");
  deployment.at("spec").at("template").at("spec").at("containers").at(0).at("image") = "a:2";
  world.api.put(kinds().deployment, deployment);
  world.loop.run_for(seconds(5));
  ASSERT_EQ(world.api.all(kinds().replica_set).size(), 2u);
  EXPECT_EQ(json::get_int(world.api.get(kinds().replica_set, name), {"spec", "replicas"}), 5);
}

TEST_F(Rollout, APausedDeploymentKeepsItsSetsAnnotationsAndRevision) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 1)));
  settle(3);
  change([](json::Value& d) { json::set(d, {"spec", "paused"}, true); });
  change([](json::Value& d) { json::set(d, {"metadata", "annotations", "kubernetes.io/change-cause"}, "because"); });
  settle(3);
  const json::Value set = world.api.all(kinds().replica_set).front();
  EXPECT_EQ(json::get_string(set, {"metadata", "annotations", "kubernetes.io/change-cause"}), "because");
}

TEST_F(Rollout, OnlyAChangedSizeWritesTheSizeAnnotations) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 2, "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}\n")));
  settle(3);
  change([](json::Value& d) { json::set(d, {"spec", "strategy"}, json::Object{{"type", "Recreate"}}); });
  change([](json::Value& d) { json::set(d, {"spec", "paused"}, true); });
  settle(3);
  const auto most = [&] {
    return std::string(
        json::get_string(world.api.all(kinds().replica_set).front(), {"metadata", "annotations", "deployment.kubernetes.io/max-replicas"}));
  };
  EXPECT_EQ(most(), "3");
  change([](json::Value& d) { json::set(d, {"spec", "replicas"}, 4); });
  settle(3);
  EXPECT_EQ(most(), "4");
}

TEST_F(Rollout, CountsThePodsOnTheirWayOut) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 3)));
  settle(3);
  ASSERT_NE(json::find(deployment(), {"status", "terminatingReplicas"}), nullptr);
  for (json::Value pod : world.api.all(kinds().pod)) {
    json::set(pod, {"metadata", "finalizers"}, json::Array{"test/hold"});
    world.api.put(kinds().pod, pod);
  }
  change([](json::Value& d) { json::set(d, {"spec", "replicas"}, 1); });
  settle(3);
  EXPECT_EQ(json::get_int(deployment(), {"status", "terminatingReplicas"}), 2);
}

TEST_F(Rollout, RollsBackWhereTheOldAnnotationAsksForIt) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 1)));
  settle(3);
  change([](json::Value& d) { json::set(d, {"metadata", "annotations", "why"}, "second"); });
  image("a:2");
  settle(5);
  const auto ask = [&](const char* revision) {
    change([&](json::Value& d) { json::set(d, {"metadata", "annotations", "deprecated.deployment.rollback.to"}, revision); });
    settle(5);
    EXPECT_EQ(json::find(deployment(), {"metadata", "annotations", "deprecated.deployment.rollback.to"}), nullptr);
  };
  change([](json::Value& d) {
    json::set(d, {"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}, "its own");
    json::set(d, {"metadata", "annotations", "later"}, "third");
  });
  ask("0");
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:1", 1}}));
  // Annotations are the set's as well, but for those that say something of the object that they are on.
  const auto annotation = [&](const char* key) {
    return std::string(json::get_string(deployment(), {"metadata", "annotations", key}, "none"));
  };
  EXPECT_EQ(annotation("kubectl.kubernetes.io/last-applied-configuration"), "its own");
  EXPECT_EQ(annotation("why"), "none") << "the first set is older";
  EXPECT_EQ(annotation("later"), "none");
  EXPECT_EQ(annotation("deployment.kubernetes.io/desired-replicas"), "none");
  EXPECT_EQ(annotation("deployment.kubernetes.io/max-replicas"), "none");
  EXPECT_TRUE(world.api.saw("DeploymentRollback: Rolled back deployment \"w\" to revision 1"));
  // What a set adds to its pods' labels is no part of the template, and the set that is there already is taken again.
  EXPECT_EQ(json::find(deployment(), {"spec", "template", "metadata", "labels", "pod-template-hash"}), nullptr);
  EXPECT_EQ(world.api.all(kinds().replica_set).size(), 2U);
  ask("7");
  EXPECT_TRUE(world.api.saw("DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to."));
  ask("3");
  EXPECT_TRUE(
      world.api.saw("DeploymentRollbackTemplateUnchanged: The rollback revision contains the same template as current deployment \"w\""));
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:1", 1}}));
}

TEST_F(Rollout, SaysWhatItScales) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 2)));
  settle(3);
  const std::string set(json::get_string(world.api.all(kinds().replica_set)[0], {"metadata", "name"}));
  EXPECT_TRUE(world.api.saw(fmt::format("ScalingReplicaSet: Scaled up replica set {} from 0 to 2", set)));
  change([](json::Value& d) { json::set(d, {"spec", "replicas"}, 1); });
  settle(3);
  EXPECT_TRUE(world.api.saw(fmt::format("ScalingReplicaSet: Scaled down replica set {} from 2 to 1", set)));
}

TEST_F(Rollout, AFailureOfItsReplicaSetIsShown) {
  world.api.refuse = [](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().pod) return std::nullopt;
    return model::forbidden("", "pods", "w", "exceeded quota");
  };
  world.api.put(kinds().deployment, yaml(workload("Deployment", 1)));
  world.loop.run_for(seconds(2));
  EXPECT_EQ(condition_status(deployment(), "ReplicaFailure"), "True");
  EXPECT_EQ(json::get_int(deployment(), {"status", "unavailableReplicas"}), 1);
}

/// Both numbers round to nothing: it would never move.
TEST_F(Rollout, ABudgetOfNothingIsOnePod) {
  world.api.put(kinds().deployment,
                yaml(workload("Deployment", 4, "  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 10%}}\n")));
  settle(4);
  image("a:2");
  std::size_t least = 4;
  for (int i = 0; i < 20; ++i) {
    world.settle(seconds(1));
    least = std::min(least, world.pods());
  }
  EXPECT_EQ(images(), (std::map<std::string, std::int64_t>{{"a:2", 4}}));
  EXPECT_GE(least, 3U);
}

TEST_F(Rollout, AConditionThatSaysTheSameIsLeftAsItIs) {
  world.api.put(kinds().deployment, yaml(workload("Deployment", 2, "  progressDeadlineSeconds: 600\n")));
  settle(4);
  const auto updated = [&](const char* type) {
    const json::Value document = deployment();
    const json::Value* condition = find_condition(document, type);
    return condition == nullptr ? "" : std::string(json::get_string(*condition, {"lastUpdateTime"}));
  };
  const std::string available = updated("Available"), progressing = updated("Progressing");
  EXPECT_NE(available, "");
  world.loop.run_for(minutes(5));
  change([](json::Value& d) { json::set(d, {"metadata", "labels", "look"}, "again"); });
  settle(4);
  EXPECT_EQ(updated("Available"), available);
  EXPECT_EQ(updated("Progressing").empty(), progressing.empty());
}

}  // namespace
}  // namespace berth::controllers
