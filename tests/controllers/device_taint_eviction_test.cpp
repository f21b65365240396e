// Pods leave devices with NoExecute taints.
#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

struct DeviceTaintEvictionTest : ::testing::Test {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  void SetUp() override {
    api.engine.add(make_device_taint_eviction_controller());
    api.engine.start();
    put_slice(1, "");
  }
  /// The pool's one slice with a device that may have taints.
  void put_slice(int generation, const std::string& taints) {
    api.put(
        kinds().resource_slice,
        yaml(fmt::format("metadata: {{name: s}}\nspec: {{driver: d, nodeName: a, pool: {{name: p, generation: {}, resourceSliceCount: 1}}, "
                         "devices: [{{name: g0, taints: [{}]}}]}}\n",
                         generation, taints)));
  }
  /// A pod on a node whose claim has the device.
  void put_pod(const std::string& tolerations = "", const std::string& node = "a") {
    const json::Value pod = api.put(
        kinds().pod, yaml(fmt::format("metadata: {{name: p}}\nspec: {{nodeName: '{}', containers: [{{name: c, image: i}}], resourceClaims: "
                                      "[{{name: r, resourceClaimName: one}}]}}\n",
                                      node)));
    api.put(kinds().resource_claim,
            yaml(fmt::format("metadata: {{name: one}}\nspec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: c}}}}]}}}}\n"
                             "status: {{allocation: {{devices: {{results: [{{request: r, driver: d, pool: p, device: g0, tolerations: "
                             "[{}]}}]}}}}, reservedFor: [{{resource: pods, name: p, uid: {}}}]}}\n",
                             tolerations, json::get_string(pod, {"metadata", "uid"}))));
    loop.run_for(seconds(1));
  }
  [[nodiscard]] bool is_there() { return !api.all(kinds().pod).empty(); }
};

constexpr const char* kBroken = "{key: broken, effect: NoExecute, timeAdded: '2026-01-05T10:00:00Z'}";

TEST_F(DeviceTaintEvictionTest, APodGoesWhenItsDeviceIsTainted) {
  put_pod();
  EXPECT_TRUE(is_there());
  put_slice(1, kBroken);
  loop.run_for(seconds(1));
  EXPECT_FALSE(is_there());
}

TEST_F(DeviceTaintEvictionTest, OtherEffectsAndOldSlicesMoveNobody) {
  put_pod();
  put_slice(1, "{key: broken, effect: NoSchedule}");
  loop.run_for(seconds(1));
  EXPECT_TRUE(is_there());
  api.put(kinds().resource_slice,
          yaml("metadata: {name: newer}\nspec: {driver: d, nodeName: a, pool: {name: p, generation: 2, resourceSliceCount: 1}, devices: "
               "[{name: g0}]}\n"));
  put_slice(1, kBroken);
  loop.run_for(seconds(1));
  EXPECT_TRUE(is_there());
}

TEST_F(DeviceTaintEvictionTest, WhoToleratesItStaysAsLongAsHeSays) {
  put_pod("{operator: Exists, effect: NoExecute, tolerationSeconds: 30}");
  put_slice(1, kBroken);
  loop.run_for(seconds(20));
  EXPECT_TRUE(is_there());
  loop.run_for(seconds(20));
  EXPECT_FALSE(is_there());
}

TEST_F(DeviceTaintEvictionTest, ATaintThatIsTakenBackIsForgiven) {
  put_pod("{key: broken, operator: Exists, effect: NoExecute, tolerationSeconds: 30}");
  put_slice(1, kBroken);
  loop.run_for(seconds(10));
  put_slice(1, "");
  loop.run_for(seconds(60));
  EXPECT_TRUE(is_there());
}

TEST_F(DeviceTaintEvictionTest, ATolerationWithoutEndHolds) {
  put_pod("{operator: Exists, effect: NoExecute}");
  put_slice(1, kBroken);
  loop.run_for(seconds(60));
  EXPECT_TRUE(is_there());
}

TEST_F(DeviceTaintEvictionTest, APodThatHasNoNodeYetStays) {
  put_pod("", "");
  put_slice(1, kBroken);
  loop.run_for(seconds(60));
  EXPECT_TRUE(is_there());
}

TEST_F(DeviceTaintEvictionTest, APodThatEndsWhileItWaitsIsForgotten) {
  put_pod("{operator: Exists, effect: NoExecute, tolerationSeconds: 30}");
  put_slice(1, kBroken);
  loop.run_for(seconds(10));
  api.erase(kinds().pod, "default", "p");
  loop.run_for(seconds(60));
  EXPECT_FALSE(api.saw("DeviceTaintManagerEviction: Cancelling deletion")) << "there is nobody to tell it of";
  EXPECT_FALSE(api.saw("DeviceTaintManagerEviction: Marking for deletion"));
}

TEST_F(DeviceTaintEvictionTest, WhoIsForgivenIsTold) {
  put_pod("{operator: Exists, effect: NoExecute, tolerationSeconds: 30}");
  put_slice(1, kBroken);
  loop.run_for(seconds(10));
  EXPECT_FALSE(api.saw("DeviceTaintManagerEviction: Cancelling deletion"));
  put_slice(1, "");
  loop.run_for(seconds(1));
  EXPECT_TRUE(api.saw("DeviceTaintManagerEviction: Cancelling deletion"));
  put_slice(1, kBroken);
  loop.run_for(seconds(60));
  EXPECT_TRUE(api.saw("DeviceTaintManagerEviction: Marking for deletion"));
  EXPECT_FALSE(is_there());
}

TEST_F(DeviceTaintEvictionTest, AClaimOfATemplateIsThePodsOnlyWhereItIsItsOwner) {
  for (const bool owns : {false, true}) {
    json::Value pod =
        api.put(kinds().pod, yaml("metadata: {name: p}\nspec: {nodeName: a, containers: [{name: c, image: i}], resourceClaims: "
                                  "[{name: r, resourceClaimTemplateName: t}]}\n"
                                  "status: {resourceClaimStatuses: [{name: r, resourceClaimName: one}]}\n"));
    const std::string uid(json::get_string(pod, {"metadata", "uid"}));
    const std::string owner = owns ? ", ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: " + uid + ", controller: true}]" : "";
    api.put(kinds().resource_claim, yaml("metadata: {name: one" + owner +
                                         "}\nspec: {}\nstatus: {allocation: {devices: {results: [{request: r, driver: d, pool: p, "
                                         "device: g0}]}}, reservedFor: [{resource: pods, name: p, uid: " +
                                         uid + "}]}\n"));
    put_slice(1, kBroken);
    loop.run_for(seconds(2));
    EXPECT_EQ(is_there(), !owns);
  }
}

TEST_F(DeviceTaintEvictionTest, AClaimThatIsGoneMovesNobody) {
  put_pod("{operator: Exists, effect: NoExecute, tolerationSeconds: 30}");
  put_slice(1, kBroken);
  loop.run_for(seconds(10));
  api.erase(kinds().resource_claim, "default", "one");
  loop.run_for(seconds(60));
  EXPECT_TRUE(is_there());
  put_slice(1, std::string(kBroken) + ", {key: hot, effect: NoExecute, timeAdded: '2026-01-05T10:00:00Z'}");
  loop.run_for(seconds(60));
  EXPECT_TRUE(is_there());
}

}  // namespace
}  // namespace berth::controllers
