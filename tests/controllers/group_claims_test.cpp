// Claims that the pods of a PodGroup share (KEP-5729): made for the group, named in its status and in its pods', reserved for the group,
// and given back when the group is gone.
#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

constexpr const char* kGroup =
    "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: g}, spec: {schedulingPolicy: {gang: {minCount: 2}}, "
    "resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}}";
constexpr const char* kTemplate =
    "{metadata: {name: one}, spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}}";

class GroupClaims : public ::testing::Test {
 protected:
  void SetUp() override {
    api.engine.add(make_resource_claim_controller({.knows_groups = true}));
    api.engine.start();
  }
  void put_pod(const char* name, const char* claim = "name: gpu, resourceClaimTemplateName: one", const char* node = "") {
    api.put(kinds().pod,
            yaml(fmt::format("{{metadata: {{name: {}}}, spec: {{nodeName: '{}', schedulingGroup: {{podGroupName: g}}, containers: "
                             "[{{name: c, image: i}}], resourceClaims: [{{{}}}]}}}}",
                             name, node, claim)));
    settle();
  }
  void settle() { loop.run_for(seconds(2)); }
  std::vector<json::Value> claims() { return api.all(kinds().resource_claim); }
  std::string named_by(Kind kind, const char* name) {
    const json::Value object = api.get(kind, name);
    const json::Array& statuses = json::get_array(object, {"status", "resourceClaimStatuses"});
    return statuses.empty() ? "" : std::string(json::get_string(statuses[0], {"resourceClaimName"}));
  }
  /// As the scheduler leaves it.
  void allocate(const std::string& name, json::Value user) {
    json::Value claim = api.get(kinds().resource_claim, name);
    json::set(claim, {"metadata", "finalizers"}, json::Array{"resource.kubernetes.io/delete-protection"});
    json::set(claim, {"status"},
              *json::parse(R"({"allocation":{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"g0"}]}}})"));
    json::set(claim, {"status", "reservedFor"}, json::Array{std::move(user)});
    api.put(kinds().resource_claim, claim);
    settle();
  }
  json::Value group_user() {
    return json::Object{{"apiGroup", "scheduling.k8s.io"},
                        {"resource", "podgroups"},
                        {"name", "g"},
                        {"uid", json::get_string(api.get(kinds().pod_group, "g"), {"metadata", "uid"})}};
  }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(GroupClaims, OneClaimIsMadeForAllOfThem) {
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  const json::Value group = api.put(kinds().pod_group, yaml(kGroup));
  settle();
  ASSERT_EQ(claims().size(), 1U) << "before any pod";
  const json::Value claim = claims()[0];
  const std::string name(json::get_string(claim, {"metadata", "name"}));
  EXPECT_TRUE(name.starts_with("g-gpu-"));
  EXPECT_EQ(json::get_string(claim, {"metadata", "annotations", "resource.kubernetes.io/podgroup-claim-name"}), "gpu");
  const auto owners = owner_references(claim);
  ASSERT_EQ(owners.size(), 1U);
  EXPECT_TRUE(owners[0].kind == "PodGroup" && owners[0].is_controller);
  EXPECT_EQ(owners[0].uid, json::get_string(group, {"metadata", "uid"}));
  EXPECT_EQ(named_by(kinds().pod_group, "g"), name);
  put_pod("p");
  put_pod("q");
  EXPECT_EQ(claims().size(), 1U);
  EXPECT_EQ(named_by(kinds().pod, "p"), name);
  EXPECT_EQ(named_by(kinds().pod, "q"), name);
}

TEST_F(GroupClaims, PodsThatCameFirstWaitForTheirGroup) {
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  put_pod("p");
  EXPECT_TRUE(claims().empty()) << "whether it is the group's is not known yet";
  api.put(kinds().pod_group, yaml(kGroup));
  settle();
  EXPECT_EQ(claims().size(), 1U);
  EXPECT_NE(named_by(kinds().pod, "p"), "");
  EXPECT_EQ(named_by(kinds().pod, "p"), named_by(kinds().pod_group, "g"));
}

TEST_F(GroupClaims, WhatTheGroupNamesOtherwiseIsThePodsOwn) {
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  api.put(kinds().pod_group, yaml(kGroup));
  put_pod("p", "name: mine, resourceClaimTemplateName: one");
  EXPECT_EQ(claims().size(), 2U);
  EXPECT_NE(named_by(kinds().pod, "p"), named_by(kinds().pod_group, "g"));
}

TEST_F(GroupClaims, AMissingTemplateIsToldOfTheGroup) {
  api.put(kinds().pod_group, yaml(kGroup));
  settle();
  ASSERT_FALSE(api.events.empty());
  EXPECT_EQ(
      api.events[0],
      "FailedResourceClaimCreation: PodGroupResourceClaim gpu: resource claim template \"one\": resourceclaimtemplate.resource.k8s.io "
      "\"one\" not found");
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  settle();
  EXPECT_EQ(claims().size(), 1U);
}

TEST_F(GroupClaims, TheGroupKeepsItsDevicesUntilItIsGone) {
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  api.put(kinds().pod_group, yaml(kGroup));
  settle();
  put_pod("p");
  const std::string name = named_by(kinds().pod_group, "g");
  allocate(name, group_user());
  api.erase(kinds().pod, "default", "p");
  settle();
  EXPECT_EQ(json::get_array(api.get(kinds().resource_claim, name), {"status", "reservedFor"}).size(), 1U) << "others may come";
  api.erase(kinds().pod_group, "default", "g");
  settle();
  const json::Value claim = api.get(kinds().resource_claim, name);
  ASSERT_FALSE(claim.is_null()) << "the garbage collector's";
  EXPECT_EQ(json::find(claim, {"status", "allocation"}), nullptr);
  EXPECT_TRUE(json::get_array(claim, {"status", "reservedFor"}).empty());
  EXPECT_TRUE(json::get_array(claim, {"metadata", "finalizers"}).empty());
}

TEST_F(GroupClaims, AnotherGroupOfTheNameIsNotIt) {
  api.put(kinds().resource_claim,
          yaml("{metadata: {name: shared}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}"));
  api.put(kinds().pod_group, yaml(kGroup));
  allocate("shared", json::Object{{"apiGroup", "scheduling.k8s.io"}, {"resource", "podgroups"}, {"name", "g"}, {"uid", "earlier"}});
  EXPECT_TRUE(json::get_array(api.get(kinds().resource_claim, "shared"), {"status", "reservedFor"}).empty());
}

TEST_F(GroupClaims, AGroupThatIsNowhereIsAskedForAndTakenOff) {
  api.put(kinds().resource_claim,
          yaml("{metadata: {name: shared}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}"));
  allocate("shared", json::Object{{"apiGroup", "scheduling.k8s.io"}, {"resource", "podgroups"}, {"name", "none"}, {"uid", "earlier"}});
  EXPECT_TRUE(json::get_array(api.get(kinds().resource_claim, "shared"), {"status", "reservedFor"}).empty());
}

TEST_F(GroupClaims, APodThatGotItsNodeByHandUsesItAsItsGroup) {
  api.put(kinds().resource_claim,
          yaml("{metadata: {name: shared}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}"));
  api.put(kinds().pod_group, yaml("{metadata: {name: g}, spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: gpu, "
                                  "resourceClaimName: shared}]}}"));
  json::Value claim = api.get(kinds().resource_claim, "shared");
  json::set(claim, {"status", "allocation"}, json::Object{{"devices", json::Object{}}});
  api.put(kinds().resource_claim, claim);
  put_pod("p", "name: gpu, resourceClaimName: shared", "n1");
  put_pod("q", "name: gpu, resourceClaimName: shared", "n1");
  const json::Value now = api.get(kinds().resource_claim, "shared");
  const json::Array& users = json::get_array(now, {"status", "reservedFor"});
  ASSERT_EQ(users.size(), 1U);
  EXPECT_TRUE(json::equal(users[0], group_user())) << json::serialize(users[0]);
}

TEST(GroupClaimsOff, EachPodHasAClaimOfItsOwn) {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  api.engine.add(make_resource_claim_controller());
  api.engine.start();
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  api.put(kinds().pod_group, yaml(kGroup));
  for (const char* name : {"p", "q"})
    api.put(kinds().pod,
            yaml(fmt::format("{{metadata: {{name: {}}}, spec: {{schedulingGroup: {{podGroupName: g}}, resourceClaims: [{{name: gpu, "
                             "resourceClaimTemplateName: one}}]}}}}",
                             name)));
  loop.run_for(seconds(2));
  EXPECT_EQ(api.all(kinds().resource_claim).size(), 2U);
}

TEST_F(GroupClaims, WhatAPodOfAGroupHasForItselfIsReservedForThePod) {
  api.put(kinds().resource_claim,
          yaml("{metadata: {name: own}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}"));
  api.put(kinds().pod_group, yaml("{metadata: {name: g}, spec: {schedulingPolicy: {basic: {}}, resourceClaims: [{name: gpu, "
                                  "resourceClaimName: shared}]}}"));
  json::Value claim = api.get(kinds().resource_claim, "own");
  json::set(claim, {"status", "allocation"}, json::Object{{"devices", json::Object{}}});
  api.put(kinds().resource_claim, claim);
  put_pod("p", "name: mine, resourceClaimName: own", "n1");
  const json::Value now = api.get(kinds().resource_claim, "own");
  const json::Array& users = json::get_array(now, {"status", "reservedFor"});
  ASSERT_EQ(users.size(), 1U);
  EXPECT_EQ(json::get_string(users[0], {"resource"}), "pods");
  EXPECT_EQ(json::get_string(users[0], {"name"}), "p");
}

}  // namespace
}  // namespace berth::controllers
