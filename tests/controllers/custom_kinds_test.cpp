// Kinds that a definition makes are owners, dependents and content of namespaces like all others.
#include "controllers/custom_kinds.h"

#include "controllers/cluster.h"
#include "controllers/services.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

json::Value definition(const char* status = "True", const char* stored = "v1") {
  return yaml(fmt::format(R"(
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  scope: Namespaced
  versions:
  - {{name: v1, served: true, storage: {}, subresources: {{scale: {{specReplicasPath: .spec.size, statusReplicasPath: .status.size}}}}}}
  - {{name: v2, served: true, storage: {}}}
status:
  acceptedNames: {{plural: widgets, kind: Widget, listKind: WidgetList}}
  conditions: [{{type: Established, status: "{}"}}]
)",
                          std::string_view(stored) == "v1", std::string_view(stored) == "v2", status));
}

TEST(CustomKinds, AreReadInTheStoredVersionOnceEstablished) {
  EXPECT_EQ(kind_of_definition(definition("False")), nullptr);
  const Kind kind = kind_of_definition(definition());
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(kind->api_version(), "example.com/v1");
  EXPECT_EQ(kind, kind_of_definition(definition()));
  EXPECT_EQ(kind_of_definition(definition("True", "v2"))->version, "v2");
  const auto scale = read_custom_scale(kind, yaml("{spec: {size: 3}}"));
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->replicas, 3);
}

class CustomObjects : public ::testing::Test {
 protected:
  CustomObjects() {
    engine.add(make_garbage_collector());
    engine.add(make_namespace_controller());
    engine.add(make_resource_quota_controller());
    engine.add_custom_kind(kind);
    engine.start();
  }
  json::Value widget(const char* name, const json::Value* owner = nullptr, Kind owner_kind = nullptr) {
    json::Value document = yaml(fmt::format("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: {}}}}}", name));
    if (owner != nullptr) {
      json::Object reference = owner_reference(owner_kind, Object(*owner), false);
      reference["blockOwnerDeletion"] = true;
      json::set(document, {"metadata", "ownerReferences"}, json::Array{std::move(reference)});
    }
    return world.api.put(kind, std::move(document));
  }
  bool has(const char* name) { return world.api.get(kind, name).is_object(); }

  World world;
  Engine& engine = world.api.engine;
  Kind kind = kind_of_definition(definition());
};

TEST_F(CustomObjects, GoWithTheirOwner) {
  const json::Value owner = widget("owner");
  widget("mine", &owner, kind);
  const json::Value map = world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"));
  widget("of-a-map", &map, kinds().config_map);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(has("mine") && has("of-a-map"));
  world.api.erase(kind, "default", "owner");
  world.api.erase(kinds().config_map, "default", "m");
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(has("mine"));
  EXPECT_FALSE(has("of-a-map"));
}

TEST_F(CustomObjects, OwnWhatTheApiKnowsByItself) {
  const json::Value owner = widget("owner");
  json::Value pod = yaml("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}");
  json::set(pod, {"metadata", "ownerReferences"}, json::Array{owner_reference(kind, Object(owner))});
  world.api.put(kinds().pod, pod);
  world.loop.run_for(seconds(1));
  EXPECT_EQ(world.pods(), 1u);
  world.api.erase(kind, "default", "owner");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(world.pods(), 0u);
}

TEST_F(CustomObjects, HoldAForegroundDeletionBack) {
  json::Value owner = widget("owner");
  widget("mine", &owner, kind);
  json::set(owner, {"metadata", "finalizers"}, json::Array{"foregroundDeletion"});
  json::set(owner, {"metadata", "deletionTimestamp"}, json::Value("2026-01-01T00:00:00Z"));
  world.api.put(kind, owner);
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(has("mine"));
  EXPECT_FALSE(has("owner"));
}

TEST_F(CustomObjects, GoWithTheirDefinition) {
  const json::Value owner = widget("owner");
  json::Value map = yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}");
  json::set(map, {"metadata", "ownerReferences"}, json::Array{owner_reference(kind, Object(owner), false)});
  world.api.put(kinds().config_map, map);
  engine.drop_custom_kind(kind, true);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.api.get(kinds().config_map, "m").is_null());
}

TEST_F(CustomObjects, HoldTheirNamespaceByFinalizers) {
  json::Value held = widget("held");
  json::set(held, {"metadata", "finalizers"}, json::Array{"example.com/hold"});
  held = world.api.put(kind, held);
  world.api.put(kinds().namespace_, yaml("{apiVersion: v1, kind: Namespace, metadata: {name: default, deletionTimestamp: "
                                         "'2026-01-01T00:00:00Z'}, spec: {finalizers: [kubernetes]}}"));
  world.loop.run_for(seconds(30));
  const json::Value remaining = world.api.get(kinds().namespace_, "default");
  ASSERT_TRUE(remaining.is_object());
  const auto said = json::serialize(json::get_array(remaining, {"status", "conditions"}));
  EXPECT_NE(said.find("widgets.example.com has 1 resource instances"), std::string::npos) << said;
  EXPECT_NE(said.find("example.com/hold in 1 resource instances"), std::string::npos) << said;
  world.api.erase(kind, "default", "held");
  world.loop.run_for(seconds(30));
  EXPECT_TRUE(world.api.get(kinds().namespace_, "default").is_null());
}

TEST_F(CustomObjects, AreCountedByQuotas) {
  widget("one");
  world.api.put(kinds().resource_quota, yaml("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: "
                                             "{count/widgets.example.com: '5'}}}"));
  world.loop.run_for(seconds(3));
  EXPECT_EQ(json::get_string(world.api.get(kinds().resource_quota, "q"), {"status", "used", "count/widgets.example.com"}), "1");
  widget("two");
  world.loop.run_for(seconds(3));
  EXPECT_EQ(json::get_string(world.api.get(kinds().resource_quota, "q"), {"status", "used", "count/widgets.example.com"}), "2");
}

/// Two groups may have a kind of one name: an owner is looked for in its own.
TEST_F(CustomObjects, OfTwoGroupsAreToldApart) {
  json::Value other = definition();
  json::set(other, {"metadata", "name"}, "widgets.example.org");
  json::set(other, {"spec", "group"}, "example.org");
  const Kind namesake = kind_of_definition(other);
  engine.add_custom_kind(namesake);
  engine.filled_custom_kind(namesake);
  Kind asked = nullptr;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.verb == Write::Verb::kGet) asked = write.kind;
    return std::nullopt;
  };
  world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m, ownerReferences: [{apiVersion: "
                                         "example.org/v1, kind: Widget, name: nobody, uid: u}]}}"));
  world.loop.run_for(seconds(5));
  EXPECT_EQ(asked, namesake);
  EXPECT_TRUE(world.api.get(kinds().config_map, "m").is_null());
}

}  // namespace
}  // namespace berth::controllers
