// Namespaces that go, and what every namespace gets.
#include "controllers/cluster.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class Namespaces : public ::testing::Test {
 protected:
  void doom(const char* name = "default") {
    world.api.put(kinds().namespace_, yaml(fmt::format("{{apiVersion: v1, kind: Namespace, metadata: {{name: {}, deletionTimestamp: "
                                                       "'{}'}}, spec: {{finalizers: [kubernetes, example.com/other]}}}}",
                                                       name, format_rfc3339(kStart))));
  }
  json::Value ns() const { return world.api.get(kinds().namespace_, "default"); }
  World world;
};

TEST_F(Namespaces, ContentGoesPodsFirstThenTheFinalizer) {
  std::vector<std::string> order;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.verb == Write::Verb::kDeleteCollection && write.kind != kinds().event) order.push_back(write.kind->plural);
    return std::nullopt;
  };
  world.api.engine.add(make_namespace_controller());
  world.api.engine.start();
  world.api.put(kinds().pod, yaml("{apiVersion: v1, kind: Pod, metadata: {name: p}}"));
  world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"));
  doom();
  world.loop.run_for(seconds(30));
  EXPECT_EQ(world.pods(), 0u);
  EXPECT_TRUE(world.api.all(kinds().config_map).empty());
  ASSERT_GE(order.size(), 2u);
  EXPECT_EQ(order[0], "pods");
  EXPECT_EQ(json::serialize(*json::find(ns(), {"spec", "finalizers"})), R"(["example.com/other"])")
      << "others' finalizers are not its own to take";
}

TEST_F(Namespaces, WhatHoldsItIsSaidInConditions) {
  world.api.engine.add(make_namespace_controller());
  world.api.engine.start();
  world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m, finalizers: [example.com/held]}}"));
  doom();
  world.loop.run_for(seconds(10));
  const json::Value document = ns();
  const auto said = [&](const char* type) {
    const json::Value* condition = find_condition(document, type);
    return condition == nullptr ? std::string()
                                : fmt::format("{} {}: {}", json::get_string(*condition, {"status"}),
                                              json::get_string(*condition, {"reason"}), json::get_string(*condition, {"message"}));
  };
  EXPECT_EQ(said("NamespaceContentRemaining"),
            "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances");
  EXPECT_EQ(said("NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances");
  EXPECT_EQ(said("NamespaceDeletionDiscoveryFailure"), "False ResourcesDiscovered: All resources successfully discovered");
  EXPECT_EQ(said("NamespaceDeletionContentFailure"),
            "False ContentDeleted: All content successfully deleted, may be waiting on finalization");
  EXPECT_EQ(said("NamespaceDeletionGroupVersionParsingFailure"), "False ParsedGroupVersions: All legacy kube types successfully parsed");
}

TEST_F(Namespaces, AWebhookThatRefusesIsToldAndAskedLessAndLess) {
  world.api.engine.add(make_namespace_controller());
  world.api.engine.start();
  world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"));
  int asked = 0;
  world.api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.verb != Write::Verb::kDeleteCollection || write.kind != kinds().config_map) return std::nullopt;
    ++asked;
    return model::internal_error("failed calling webhook \"a.example\"");
  };
  doom();
  world.loop.run_for(seconds(600));
  EXPECT_LE(asked, 25) << "each time it waits twice as long";
  const json::Value document = ns();
  const json::Value* condition = find_condition(document, "NamespaceDeletionContentFailure");
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(json::get_string(*condition, {"status"}), "True");
  EXPECT_EQ(json::get_string(*condition, {"reason"}), "ContentDeletionFailed");
  EXPECT_NE(json::get_string(*condition, {"message"}).find("Failed to delete all resource types, 1 remaining: "), std::string_view::npos);
  EXPECT_NE(json::get_string(*condition, {"message"}).find("failed calling webhook \"a.example\""), std::string_view::npos);
}

TEST_F(Namespaces, EachHasItsAccountAndCaBundleAndGetsThemBack) {
  world.api.engine.add(make_serviceaccount_controller());
  world.api.engine.add(make_root_ca_publisher("PEM"));
  world.api.engine.start();
  world.api.put(kinds().namespace_, yaml("{apiVersion: v1, kind: Namespace, metadata: {name: default}}"));
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(world.api.get(kinds().service_account, "default").is_null());
  EXPECT_EQ(json::get_string(world.api.get(kinds().config_map, "kube-root-ca.crt"), {"data", "ca.crt"}), "PEM");
  world.api.erase(kinds().service_account, "default", "default");
  json::Value map = world.api.get(kinds().config_map, "kube-root-ca.crt");
  json::set(map, {"data"}, json::Object{{"ca.crt", "forged"}, {"more", "x"}});
  world.api.put(kinds().config_map, map);
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(world.api.get(kinds().service_account, "default").is_null());
  EXPECT_EQ(json::serialize(*json::find(world.api.get(kinds().config_map, "kube-root-ca.crt"), "data")), R"({"ca.crt":"PEM"})");
}

TEST_F(Namespaces, ALegacyTokenSecretIsFilledAndGoesWithItsAccount) {
  world.api.engine.add(make_serviceaccount_token_controller("PEM"));
  world.api.engine.start();
  const json::Value account =
      world.api.put(kinds().service_account, yaml("{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}"));
  world.api.put(kinds().secret, yaml("{apiVersion: v1, kind: Secret, metadata: {name: t, annotations: {kubernetes.io/service-account.name: "
                                     "robot}}, type: kubernetes.io/service-account-token, data: {token: dA==}}"));
  world.loop.run_for(seconds(1));
  const json::Value secret = world.api.get(kinds().secret, "t");
  EXPECT_EQ(json::get_string(secret, {"data", "namespace"}), "ZGVmYXVsdA==");
  EXPECT_EQ(json::get_string(secret, {"data", "ca.crt"}), "UEVN");
  EXPECT_EQ(json::get_string(secret, {"metadata", "annotations", "kubernetes.io/service-account.uid"}),
            json::get_string(account, {"metadata", "uid"}));
  world.api.erase(kinds().service_account, "default", "robot");
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.api.get(kinds().secret, "t").is_null());
}

TEST_F(Namespaces, GoesAsSoonAsTheLastOfItIsGone) {
  world.api.engine.add(make_namespace_controller());
  world.api.engine.start();
  world.api.put(kinds().config_map, yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: m, finalizers: [example.com/held]}}"));
  doom();
  world.loop.run_for(minutes(20));
  ASSERT_EQ(json::get_array(ns(), {"spec", "finalizers"}).size(), 2U);
  world.api.erase(kinds().config_map, "default", "m");
  world.loop.run_for(seconds(1));
  EXPECT_EQ(json::get_array(ns(), {"spec", "finalizers"}).size(), 1U) << "it is not waited for the next look";
}

}  // namespace
}  // namespace berth::controllers
