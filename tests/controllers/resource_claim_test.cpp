#include "controllers/services.h"
#include "model/quota_usage.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

constexpr const char* kPod =
    "metadata: {name: p}\nspec: {containers: [{name: c, image: i}], resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]}\n";
constexpr const char* kTemplate =
    "metadata: {name: one}\nspec: {metadata: {labels: {a: b}}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: "
    "gpu}}]}}}\n";

struct ResourceClaimTest : ::testing::Test {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  void SetUp() override {
    api.engine.add(make_resource_claim_controller());
    api.engine.start();
  }
  std::vector<json::Value> claims() { return api.all(kinds().resource_claim); }
  /// A claim that a pod of the name "p" with this uid uses, as a scheduler leaves it behind.
  void put_used_claim(const std::string& uid) {
    json::Value claim = yaml(
        "metadata: {name: shared, finalizers: [resource.kubernetes.io/delete-protection]}\n"
        "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n"
        "status: {allocation: {devices: {results: [{request: r, driver: d, pool: p, device: g0}]}}}\n");
    json::set(claim, {"status", "reservedFor"}, json::Array{json::Object{{"resource", "pods"}, {"name", "p"}, {"uid", uid}}});
    api.put(kinds().resource_claim, claim);
  }
};

TEST_F(ResourceClaimTest, MakesTheClaimOfATemplateAndNamesItInThePod) {
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  const json::Value pod = api.put(kinds().pod, yaml(kPod));
  loop.run_for(seconds(1));
  ASSERT_EQ(claims().size(), 1u);
  const json::Value claim = claims()[0];
  EXPECT_TRUE(json::get_string(claim, {"metadata", "name"}).starts_with("p-gpu-"));
  EXPECT_EQ(json::get_string(claim, {"metadata", "labels", "a"}), "b");
  EXPECT_EQ(json::get_string(claim, {"metadata", "annotations", "resource.kubernetes.io/pod-claim-name"}), "gpu");
  ASSERT_EQ(json::get_array(claim, {"metadata", "ownerReferences"}).size(), 1u);
  EXPECT_EQ(json::get_string(json::get_array(claim, {"metadata", "ownerReferences"})[0], {"uid"}),
            json::get_string(pod, {"metadata", "uid"}));
  const json::Value now = api.get(kinds().pod, "p");
  ASSERT_EQ(json::get_array(now, {"status", "resourceClaimStatuses"}).size(), 1u);
  EXPECT_EQ(json::get_string(json::get_array(now, {"status", "resourceClaimStatuses"})[0], {"resourceClaimName"}),
            json::get_string(claim, {"metadata", "name"}));
}

TEST_F(ResourceClaimTest, WaitsForTheTemplate) {
  api.put(kinds().pod, yaml(kPod));
  loop.run_for(seconds(1));
  EXPECT_TRUE(claims().empty());
  api.put(kinds().resource_claim_template, yaml(kTemplate));
  loop.run_for(seconds(1));
  EXPECT_EQ(claims().size(), 1u);
}

TEST_F(ResourceClaimTest, AFinishedPodGivesTheDevicesBack) {
  const json::Value pod =
      api.put(kinds().pod, yaml("metadata: {name: p}\nspec: {nodeName: node-1, resourceClaims: [{name: gpu, resourceClaimName: shared}]}\n"
                                "status: {phase: Running}\n"));
  put_used_claim(std::string(json::get_string(pod, {"metadata", "uid"})));
  loop.run_for(seconds(1));
  EXPECT_EQ(json::get_array(claims()[0], {"status", "reservedFor"}).size(), 1u);
  json::Value done = api.get(kinds().pod, "p");
  json::set(done, {"status", "phase"}, "Succeeded");
  api.put(kinds().pod, done);
  loop.run_for(seconds(1));
  ASSERT_EQ(claims().size(), 1u) << "nobody made it for the pod";
  EXPECT_TRUE(json::get_array(claims()[0], {"status", "reservedFor"}).empty());
  EXPECT_EQ(json::find(claims()[0], {"status", "allocation"}), nullptr);
  EXPECT_TRUE(json::get_array(claims()[0], {"metadata", "finalizers"}).empty());
}

TEST_F(ResourceClaimTest, AUserThatIsNowhereIsTakenOff) {
  put_used_claim("no-such-pod");
  loop.run_for(seconds(2));
  EXPECT_TRUE(json::get_array(claims()[0], {"status", "reservedFor"}).empty());
}

TEST_F(ResourceClaimTest, APodThatGotItsNodeByHandUsesTheClaim) {
  put_used_claim("other");
  api.put(kinds().pod, yaml("metadata: {name: p2}\nspec: {nodeName: node-1, resourceClaims: [{name: gpu, resourceClaimName: shared}]}\n"
                            "status: {phase: Running}\n"));
  // Before the other user is found to be gone, both are there.
  loop.run_for(std::chrono::milliseconds(50));
  loop.run_for(seconds(2));
  const json::Array users = json::get_array(claims()[0], {"status", "reservedFor"});
  ASSERT_EQ(users.size(), 1u);
  EXPECT_EQ(json::get_string(users[0], {"name"}), "p2");
}

TEST_F(ResourceClaimTest, AQuotaCountsDevicesByTheirClass) {
  const auto usage = model::quota_usage(
      *kinds().resource_claim,
      yaml("spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}, {name: b, "
           "firstAvailable: [{name: x, deviceClassName: gpu, allocationMode: ExactCount, count: 1}, {name: y, deviceClassName: gpu, "
           "allocationMode: ExactCount, count: 4}]}, {name: c, exactly: {deviceClassName: nic, allocationMode: All}}]}}"),
      [](const std::string& device_class) { return device_class == "gpu" ? "example.com/gpu" : ""; });
  EXPECT_EQ(usage.at("requests.example.com/gpu").value(), 6) << "and by the name that the class stands for";
  EXPECT_EQ(usage.at("gpu.deviceclass.resource.k8s.io/devices").value(), 6);
  EXPECT_EQ(usage.at("nic.deviceclass.resource.k8s.io/devices").value(), 32);
  EXPECT_EQ(usage.at("count/resourceclaims.resource.k8s.io").value(), 1);
  EXPECT_EQ(usage.at("requests.deviceclass.resource.kubernetes.io/gpu").value(), 6) << "also as what a pod may ask for by name";
  const auto by_name = model::quota_usage(
      *kinds().resource_claim,
      yaml("metadata: {annotations: {resource.kubernetes.io/extended-resource-claim: 'true'}}\nspec: {devices: {requests: [{name: a, "
           "exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}]}}"),
      [](const std::string&) { return "example.com/gpu"; });
  EXPECT_FALSE(by_name.contains("requests.example.com/gpu"));
  EXPECT_EQ(by_name.at("gpu.deviceclass.resource.k8s.io/devices").value(), 2);
  EXPECT_FALSE(by_name.contains("requests.deviceclass.resource.kubernetes.io/gpu")) << "its pod counts them";
}

}  // namespace
}  // namespace berth::controllers
