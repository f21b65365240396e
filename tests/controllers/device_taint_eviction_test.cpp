// Pods leave devices with NoExecute taints, of slices and of rules.
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

TEST_F(DeviceTaintEvictionTest, OfSeveralTaintsTheFirstToRunOutCounts) {
  put_pod(
      "{key: broken, operator: Exists, effect: NoExecute, tolerationSeconds: 30}, {key: hot, operator: Exists, effect: NoExecute, "
      "tolerationSeconds: 10}");
  put_slice(1, std::string(kBroken) + ", {key: hot, effect: NoExecute, timeAdded: '2026-01-05T10:00:00Z'}");
  loop.run_for(seconds(5));
  EXPECT_TRUE(is_there());
  loop.run_for(seconds(10));
  EXPECT_FALSE(is_there());
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

struct DeviceTaintRuleTest : DeviceTaintEvictionTest {
  void put_rule(std::string_view selector, std::string_view effect, int generation = 1) {
    api.put(kinds().device_taint_rule,
            yaml(fmt::format("metadata: {{name: rule, uid: r{}, generation: {}}}\nspec:\n  taint: {{key: broken, effect: {}, timeAdded: "
                             "'2026-01-05T10:00:00Z'}}\n{}",
                             uid, generation, effect, selector.empty() ? "" : fmt::format("  deviceSelector: {}\n", selector))));
  }
  [[nodiscard]] std::string told() {
    const json::Value rule = api.get(kinds().device_taint_rule, "rule");
    const json::Value* one = find_condition(rule, "EvictionInProgress");
    if (one == nullptr) return "nothing";
    return fmt::format("{} {}: {}", json::get_string(*one, {"status"}), json::get_string(*one, {"reason"}),
                       json::get_string(*one, {"message"}));
  }
  int uid = 1;
};

TEST_F(DeviceTaintRuleTest, ARuleEvictsAndTellsHowFarItIs) {
  put_pod();
  put_rule("{driver: d}", "NoExecute");
  loop.run_for(seconds(1));
  EXPECT_FALSE(is_there());
  EXPECT_EQ(told(), "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace.");
  loop.run_for(seconds(20));
  EXPECT_EQ(told(), "False Completed: 1 pod evicted since starting the controller.");
  // Another one of its name begins anew.
  api.erase(kinds().device_taint_rule, "", "rule");
  uid = 2;
  put_rule("{driver: d}", "NoExecute");
  loop.run_for(seconds(1));
  EXPECT_EQ(told(), "False NotStarted: ");
}

TEST_F(DeviceTaintRuleTest, WhatIsNotSelectedStays) {
  put_pod();
  for (const char* selector : {"", "{driver: other}", "{pool: q}", "{driver: d, pool: p, device: g1}"}) {
    put_rule(selector, "NoExecute");
    loop.run_for(seconds(20));
    EXPECT_TRUE(is_there()) << selector;
  }
  EXPECT_EQ(told(), "False NotStarted: ");
  put_rule("{}", "NoExecute");
  loop.run_for(seconds(1));
  EXPECT_FALSE(is_there());
}

TEST_F(DeviceTaintRuleTest, OneThatIsTakenBackInTimeMovesNobody) {
  put_pod("{key: broken, operator: Exists, effect: NoExecute, tolerationSeconds: 60}");
  put_rule("{driver: d}", "NoExecute");
  loop.run_for(seconds(30));
  EXPECT_EQ(told(), "True PodsPendingEviction: 1 pod needs to be evicted in 1 namespace.");
  put_rule("{driver: d}", "NoSchedule", 2);
  loop.run_for(seconds(90));
  EXPECT_TRUE(is_there());
  EXPECT_TRUE(api.saw("DeviceTaintManagerEviction: Cancelling deletion"));
  EXPECT_EQ(told(), "False OtherEffect: Eviction only happens for the NoExecute effect.");
}

TEST_F(DeviceTaintRuleTest, AnEffectOfNoneSaysWhatWouldHappen) {
  put_pod();
  put_rule("{driver: d}", "None");
  loop.run_for(seconds(30));
  EXPECT_TRUE(is_there());
  EXPECT_EQ(told(),
            "False NoEffect: 1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if the effect "
            "was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.");
}

TEST_F(DeviceTaintRuleTest, ItsStatusIsWrittenAgainWhenThatFailed) {
  bool fails = true;
  api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.kind != kinds().device_taint_rule || !std::exchange(fails, false)) return std::nullopt;
    return model::forbidden("resource.k8s.io", "devicetaintrules", "rule", "not now");
  };
  put_rule("{driver: d}", "NoExecute");
  loop.run_for(seconds(5));
  EXPECT_EQ(told(), "False NotStarted: ");
}

}  // namespace
}  // namespace berth::controllers
