// Owners and dependents.
#include "controllers/cluster.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

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

class Owners : public ::testing::Test {
 protected:
  Owners() {
    world.api.engine.add(make_garbage_collector());
    world.api.engine.start();
  }
  json::Value owner(const char* name, const std::string& meta = "") {
    return world.api.put(kinds().config_map,
                         yaml(fmt::format("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {}{}}}}}", name, meta)));
  }
  void pod(const char* name, const std::vector<json::Value>& owners, bool blocks = true) {
    json::Value document = yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{}}}}", name));
    json::Array references;
    for (const json::Value& one : owners) {
      json::Object reference = owner_reference(kinds().config_map, Object(one), false);
      reference["blockOwnerDeletion"] = blocks;
      references.push_back(std::move(reference));
    }
    json::set(document, {"metadata", "ownerReferences"}, std::move(references));
    world.api.put(kinds().pod, std::move(document));
  }
  json::Value get(const char* name) const { return world.api.get(kinds().pod, name); }
  void settle() { world.loop.run_for(seconds(2)); }
  World world;
};

TEST_F(Owners, OneOwnerLeftIsEnough) {
  const json::Value a = owner("a"), b = owner("b");
  pod("p", {a, b});
  settle();
  world.api.erase(kinds().config_map, "default", "a");
  settle();
  ASSERT_FALSE(get("p").is_null());
  EXPECT_EQ(owner_references(get("p")).size(), 1u) << "the dead reference is dropped";
  world.api.erase(kinds().config_map, "default", "b");
  settle();
  EXPECT_TRUE(get("p").is_null());
}

TEST_F(Owners, AnOwnerThatNeverWasIsAskedForFirst) {
  json::Value ghost = owner("ghost");
  world.api.erase(kinds().config_map, "default", "ghost");
  json::set(ghost, {"metadata", "uid"}, "other-uid");
  pod("p", {ghost});
  settle();
  EXPECT_TRUE(get("p").is_null());
}

TEST_F(Owners, AnOwnerOfAnUnknownKindIsLeftAlone) {
  json::Value document = yaml(
      "{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{apiVersion: example.com/v1, kind: Thing, name: t, uid: u}]}, "
      "spec: {}}");
  world.api.put(kinds().pod, document);
  settle();
  EXPECT_FALSE(get("p").is_null());
}

TEST_F(Owners, ForegroundDeletesBlockingDependentsFirst) {
  const json::Value a = owner("a");
  pod("blocking", {a});
  pod("free", {a}, false);
  settle();
  json::Value held = get("blocking");
  json::set(held, {"metadata", "finalizers"}, json::Array{"test/hold"});
  world.api.put(kinds().pod, held);
  json::Value going = world.api.get(kinds().config_map, "a");
  json::set(going, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:00Z");
  json::set(going, {"metadata", "finalizers"}, json::Array{"foregroundDeletion"});
  world.api.put(kinds().config_map, going);
  settle();
  EXPECT_FALSE(world.api.get(kinds().config_map, "a").is_null()) << "as long as a dependent blocks";
  EXPECT_NE(json::find(get("blocking"), {"metadata", "deletionTimestamp"}), nullptr);
  world.api.erase(kinds().pod, "default", "blocking");
  settle();
  EXPECT_TRUE(world.api.get(kinds().config_map, "a").is_null());
  EXPECT_TRUE(get("free").is_null());
}

TEST_F(Owners, OrphanLetsTheDependentsGo) {
  const json::Value a = owner("a");
  pod("p", {a});
  settle();
  json::Value going = world.api.get(kinds().config_map, "a");
  json::set(going, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:00Z");
  json::set(going, {"metadata", "finalizers"}, json::Array{"orphan"});
  world.api.put(kinds().config_map, going);
  settle();
  EXPECT_TRUE(world.api.get(kinds().config_map, "a").is_null());
  ASSERT_FALSE(get("p").is_null());
  EXPECT_TRUE(owner_references(get("p")).empty());
}

TEST_F(Owners, ACircleDoesNotWaitForItselfForEver) {
  const auto own = [&](const char* name, const char* owner_name) {
    json::Value document = get(name);
    json::Object reference{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", owner_name}, {"blockOwnerDeletion", true}};
    reference["uid"] = json::get_string(get(owner_name), {"metadata", "uid"});
    json::set(document, {"metadata", "ownerReferences"}, json::Array{std::move(reference)});
    world.api.put(kinds().pod, std::move(document));
  };
  for (const char* name : {"a", "b", "c"}) pod(name, {});
  own("a", "c"), own("b", "a"), own("c", "b");
  settle();
  json::Value going = get("a");
  json::set(going, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:00Z");
  json::set(going, {"metadata", "finalizers"}, json::Array{"foregroundDeletion"});
  world.api.put(kinds().pod, going);
  settle();
  EXPECT_EQ(world.pods(), 0u);
}

TEST_F(Owners, AnOwnerOfAnotherNamespaceIsNone) {
  const json::Value elsewhere =
      world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: o, namespace: other}}"));
  const json::Value neighbour =
      world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: child, namespace: other}}"));
  json::Value child = neighbour;
  json::set(child, {"metadata", "ownerReferences"}, json::Array{owner_reference(kinds().config_map, Object(elsewhere), false)});
  world.api.put(kinds().config_map, child);
  pod("p", {elsewhere});
  settle();
  EXPECT_TRUE(get("p").is_null());
  EXPECT_TRUE(world.api.objects.contains({kinds().config_map, "other", "child"})) << "for those beside it the owner is there";
  EXPECT_TRUE(
      world.api.saw(fmt::format("OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: default, name: o, uid: {}] does not "
                                "exist in namespace \"default\"",
                                json::get_string(elsewhere, {"metadata", "uid"}))));
  const auto told = [&] {
    return std::ranges::count_if(world.api.events, [](const std::string& event) { return event.starts_with("OwnerRefInvalidNamespace"); });
  };
  EXPECT_EQ(told(), 1) << "once of each";
  const json::Value here = owner("here");
  pod("q", {here});
  settle();
  world.api.erase(kinds().config_map, "default", "here");
  settle();
  EXPECT_TRUE(get("q").is_null());
  EXPECT_EQ(told(), 1) << "an owner that is gone is not elsewhere";
}

TEST_F(Owners, AnOrphanKeepsItsOtherOwners) {
  const json::Value a = owner("a", ", finalizers: [orphan]"), b = owner("b");
  pod("both", {a, b});
  pod("one", {a});
  settle();
  json::Value leaving = a;
  json::set(leaving, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
  world.api.put(kinds().config_map, leaving);
  settle();
  ASSERT_FALSE(get("both").is_null());
  ASSERT_FALSE(get("one").is_null());
  EXPECT_EQ(owner_references(get("both")).size(), 1U);
  EXPECT_TRUE(owner_references(get("one")).empty());
  world.api.erase(kinds().config_map, "default", "b");
  settle();
  EXPECT_TRUE(get("both").is_null()) << "the last of its owners";
}

}  // namespace
}  // namespace berth::controllers
