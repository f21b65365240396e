// Groups of pods outlive their deletion while pods belong to them.
#include "controllers/services.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class PodGroupProtection : public ::testing::Test {
 protected:
  PodGroupProtection() {
    world.api.engine.add(make_pod_group_protection_controller());
    world.api.engine.start();
    world.api.put(kinds().pod_group, yaml("{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: g, finalizers: "
                                          "[scheduling.k8s.io/podgroup-protection]}, spec: {schedulingPolicy: {gang: {minCount: 2}}}}"));
  }
  void pod(const char* name, const char* phase, const char* group = "g") {
    world.api.put(kinds().pod, yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{schedulingGroup: "
                                                "{{podGroupName: {}}}}}, status: {{phase: {}}}}}",
                                                name, group, phase)));
    world.loop.run_for(seconds(1));
  }
  void remove_pod(const char* name) {
    world.api.erase(kinds().pod, "default", name);
    world.loop.run_for(seconds(1));
  }
  void remove_group() {
    json::Value document = world.api.get(kinds().pod_group, "g");
    json::set(document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
    world.api.put(kinds().pod_group, document);
    world.loop.run_for(seconds(1));
  }
  bool group_is_there() const { return !world.api.get(kinds().pod_group, "g").is_null(); }
  World world;
};

TEST_F(PodGroupProtection, AGroupOfNobodyGoesAtOnce) {
  remove_group();
  EXPECT_FALSE(group_is_there());
}

TEST_F(PodGroupProtection, OnlyADeletedGroupLosesItsFinalizer) {
  pod("p", "Running");
  remove_pod("p");
  ASSERT_TRUE(group_is_there());
  EXPECT_EQ(json::get_array(world.api.get(kinds().pod_group, "g"), {"metadata", "finalizers"}).size(), 1U);
}

TEST_F(PodGroupProtection, ADeletedGroupStaysUntilItsLastPodHasEnded) {
  pod("p", "Running");
  pod("q", "Pending");
  remove_group();
  EXPECT_TRUE(group_is_there());
  remove_pod("q");
  EXPECT_TRUE(group_is_there()) << "p still runs";
  pod("p", "Succeeded");
  EXPECT_FALSE(group_is_there()) << "a pod that has finished needs no group";
}

TEST_F(PodGroupProtection, APodThatIsDeletedLetsItGoWhenItIsGone) {
  pod("p", "Running");
  remove_group();
  json::Value going = world.api.get(kinds().pod, "p");
  json::set(going, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
  json::set(going, {"metadata", "finalizers"}, json::Value(json::Array{"example.com/mine"}));
  world.api.put(kinds().pod, going);
  world.loop.run_for(seconds(60));
  EXPECT_TRUE(group_is_there()) << "it is still there, and may run";
  world.api.erase(kinds().pod, "default", "p");
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(group_is_there());
}

TEST_F(PodGroupProtection, PodsOfAnotherGroupDoNotHoldIt) {
  pod("p", "Running", "other");
  remove_group();
  EXPECT_FALSE(group_is_there());
}

TEST_F(PodGroupProtection, ANameThatComesAgainCountsByItself) {
  pod("p", "Running");
  remove_group();
  // The pod goes and another of its name comes, in another group, as a watch may show it: in one event.
  pod("p", "Running", "other");
  EXPECT_FALSE(group_is_there());
}

}  // namespace
}  // namespace berth::controllers
