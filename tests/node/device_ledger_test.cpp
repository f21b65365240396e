// Which devices of plugins a node has, and who holds them, over time.
#include "node/devices/device_ledger.h"

#include <gtest/gtest.h>

#include "model/views/pod_view.h"

namespace berth::node::devices {
namespace {

using std::chrono::minutes;
constexpr const char* kGpu = "example.com/gpu";
const TimePoint kNow{std::chrono::hours(1)};

DeviceLedger::Devices devices(std::initializer_list<const char*> ids) {
  DeviceLedger::Devices out;
  for (const char* id : ids) out[id];
  return out;
}

json::Value container(const std::string& name, int count, const std::string& more = "") {
  return *json::parse(fmt::format(R"({{"name":"{}","resources":{{"limits":{{"example.com/gpu":"{}"}}}}{}}})", name, count, more));
}

numa::PodWishes pod(const std::string& uid, json::Array containers, json::Array init = {}) {
  return numa::wishes_of(model::PodView::parse(
      json::Object{{"metadata", json::Object{{"uid", uid}}},
                   {"spec", json::Object{{"containers", std::move(containers)}, {"initContainers", std::move(init)}}}}));
}

/// As the node asks, without a policy of alignment.
Result<void> admit(DeviceLedger& ledger, const numa::PodWishes& pod, const numa::Hint& near = {}) {
  for (const numa::Wish& container : pod.containers)
    if (const auto refusal = ledger.give(pod, container, near)) {
      ledger.release(pod.uid);
      return invalid(refusal->message);
    }
  return {};
}

std::set<std::string> ids_of(const DeviceLedger& ledger, const std::string& uid, const std::string& name = "c") {
  const auto held = ledger.held(uid, name);
  const auto found = held.find(kGpu);
  return found == held.end() ? std::set<std::string>() : found->second;
}

using Ids = std::set<std::string>;

TEST(DeviceLedger, APodHoldsWhatItsLimitsNameUntilItIsOver) {
  DeviceLedger ledger;
  EXPECT_TRUE(ledger.report(kGpu, devices({"a", "b", "c"})));
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 2)})));
  EXPECT_EQ(ids_of(ledger, "p"), (Ids{"a", "b"}));
  const auto refused = admit(ledger, pod("q", {container("c", 2)}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1, which is "
            "unexpected");
  EXPECT_TRUE(ids_of(ledger, "q").empty());
  ledger.keep_only({"q"});
  ASSERT_TRUE(admit(ledger, pod("q", {container("c", 2)})));
  EXPECT_EQ(ids_of(ledger, "q"), (Ids{"a", "b"}));
}

TEST(DeviceLedger, APodIsGivenAllOrNothing) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b", "c"}));
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", 2), container("d", 2)})));
  ASSERT_TRUE(admit(ledger, pod("q", {container("c", 3)}))) << "what the first container was given is free again";
}

TEST(DeviceLedger, WhatAnInitContainerHadIsHadByThoseAfterIt) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 2)}, {container("i", 2)})));
  EXPECT_EQ(ids_of(ledger, "p", "i"), ids_of(ledger, "p", "c"));
  ledger.keep_only({});
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", 1)}, {container("i", 2, R"(,"restartPolicy":"Always")")}))) << "a sidecar goes on";
}

TEST(DeviceLedger, OnlyHealthyOnesAreGivenAndSickOnesStayWithTheirPod) {
  DeviceLedger ledger;
  auto list = devices({"a", "b"});
  ledger.report(kGpu, list);
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 1)})));
  list["a"].is_healthy = list["b"].is_healthy = false;
  EXPECT_TRUE(ledger.report(kGpu, list));
  EXPECT_EQ(ledger.inventory(kNow).capacity[kGpu], 2);
  EXPECT_EQ(ledger.inventory(kNow).allocatable[kGpu], 0);
  EXPECT_EQ(ids_of(ledger, "p"), Ids{"a"});
  EXPECT_FALSE(admit(ledger, pod("q", {container("c", 1)})));
  EXPECT_FALSE(ledger.report(kGpu, list)) << "the same again is no news";
}

TEST(DeviceLedger, APluginThatGoesMayComeBackWithinFiveMinutes) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a"}));
  ledger.lose(kGpu, kNow);
  EXPECT_EQ(ledger.inventory(kNow + minutes(4)).capacity[kGpu], 1);
  EXPECT_EQ(ledger.inventory(kNow + minutes(4)).allocatable[kGpu], 0);
  EXPECT_EQ(ledger.inventory(kNow + minutes(5)).capacity[kGpu], 0);
  EXPECT_TRUE(ledger.report(kGpu, devices({"a"})));
  EXPECT_EQ(ledger.inventory(kNow + minutes(5)).allocatable[kGpu], 1);
}

TEST(DeviceLedger, AContainersDevicesAreExchangedForFreeOnesAlone) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b", "c"}));
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 1)})));
  ASSERT_TRUE(admit(ledger, pod("q", {container("c", 1)})));
  EXPECT_EQ(ledger.choice("q", "c", kGpu), (Ids{"b", "c"}));
  EXPECT_FALSE(ledger.exchange("q", "c", kGpu, {"a"})) << "another's";
  EXPECT_FALSE(ledger.exchange("q", "c", kGpu, {"b", "c"})) << "more than it asked for";
  EXPECT_TRUE(ledger.exchange("q", "c", kGpu, {"c"}));
  EXPECT_EQ(ids_of(ledger, "q"), Ids{"c"});
  ASSERT_TRUE(admit(ledger, pod("r", {container("c", 1)})));
  EXPECT_EQ(ids_of(ledger, "r"), Ids{"b"});
}

TEST(DeviceLedger, WhatAnInitContainerLentIsNotExchanged) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 1)}, {container("i", 1)})));
  EXPECT_FALSE(ledger.exchange("p", "c", kGpu, {"b"}));
}

TEST(DeviceLedger, WhatPluginsSaidIsOneAndIsKeptForTheNextProcess) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  ledger.report("example.com/nic", devices({"n"}));
  auto both = container("c", 1);
  json::set(both, {"resources", "limits", "example.com/nic"}, "1");
  ASSERT_TRUE(admit(ledger, pod("p", {both})));
  EXPECT_EQ(ledger.granted("p", "c", kGpu), nullptr);
  ledger.note_grant(
      "p", "c", kGpu,
      *json::parse(R"({"envs":{"V":"gpu"},"devices":[{"container_path":"/dev/g","host_path":"/dev/g0","permissions":"rw"}]})"));
  ledger.note_grant("p", "c", "example.com/nic",
                    *json::parse(R"({"envs":{"V":"nic","N":"1"},"mounts":[{"container_path":"/m","host_path":"/h","read_only":true}]})"));
  DeviceLedger next;
  ASSERT_TRUE(next.restore(ledger.checkpoint()));
  EXPECT_EQ(next.inventory(kNow).capacity.at(kGpu), 0) << "until its plugin is back";
  next.report(kGpu, devices({"a", "b"}));
  for (const DeviceLedger* one : {&ledger, &next}) {
    const auto grant = one->grant("p", "c");
    EXPECT_EQ(grant.environment, (std::map<std::string, std::string>{{"V", "gpu"}, {"N", "1"}}));
    EXPECT_EQ(grant.mounts.size(), 1U);
    EXPECT_EQ(json::get_string(grant.devices.at(0), {"host_path"}), "/dev/g0");
    EXPECT_EQ(ids_of(*one, "p"), Ids{"a"});
  }
  ASSERT_TRUE(admit(next, pod("p", {both}))) << "it has them already";
  ASSERT_TRUE(admit(next, pod("q", {container("c", 1)})));
  EXPECT_EQ(ids_of(next, "q"), Ids{"b"});
  EXPECT_FALSE(next.restore(*json::parse(R"({"some":"thing"})")));
}

TEST(DeviceLedger, ResourcesThatNoPluginToldOfAreLeftAlone) {
  DeviceLedger ledger;
  EXPECT_TRUE(admit(ledger, pod("p", {container("c", 8)})));
  EXPECT_TRUE(ledger.inventory(kNow).capacity.empty());
}

/// Two near the first NUMA node, two near the second, one that does not say.
DeviceLedger::Devices placed() {
  DeviceLedger::Devices out = devices({"a", "b", "c", "d", "x"});
  for (const char* id : {"a", "b"}) out[id].numa_nodes = {0};
  for (const char* id : {"c", "d"}) out[id].numa_nodes = {1};
  return out;
}
numa::Hints hints(const DeviceLedger& ledger, const numa::PodWishes& pod) {
  const auto found = ledger.hints(pod, pod.containers.back(), 0b11);
  return found.contains(kGpu) ? found.at(kGpu) : numa::Hints(std::vector<numa::Hint>{{99, false}});
}
using HintList = std::vector<numa::Hint>;

TEST(DeviceLedger, HintsAreTheNumaNodesThatHaveAsManyAndTheFewestArePreferred) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 1)})), std::nullopt) << "nobody says where they are";
  ledger.report(kGpu, placed());
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 2)})), numa::Hints(HintList{{3, false}, {2, true}, {1, true}}));
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 3)})), numa::Hints(HintList{{3, true}})) << "no node has three";
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 6)})), numa::Hints(HintList{})) << "there are not as many";
  ASSERT_TRUE(admit(ledger, pod("q", {container("c", 1)}), {2, true}));
  EXPECT_EQ(ids_of(ledger, "q"), (Ids{"c"})) << "near the second, though not the lowest";
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 2)})), numa::Hints(HintList{{3, false}, {1, true}}));
  auto broken = placed();
  broken["a"].is_healthy = false;
  ledger.report(kGpu, broken);
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 2)})), numa::Hints(HintList{{3, false}})) << "one would do, were all of them whole";
  ledger.release("q");
  EXPECT_EQ(hints(ledger, pod("p", {container("c", 2)})), numa::Hints(HintList{{3, false}, {2, true}}));
}

TEST(DeviceLedger, WhatIsNotNearIsTakenLast) {
  DeviceLedger ledger;
  ledger.report(kGpu, placed());
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 3)}), {2, false}));
  EXPECT_EQ(ids_of(ledger, "p"), (Ids{"a", "c", "d"})) << "then those that are elsewhere, then those that say nothing";
}

TEST(DeviceLedger, APluginsOwnChoiceDoesNotLeaveTheNumaNodes) {
  DeviceLedger ledger;
  ledger.report(kGpu, placed());
  ASSERT_TRUE(admit(ledger, pod("p", {container("c", 1)}), {2, true}));
  EXPECT_EQ(ledger.choice("p", "c", kGpu), (Ids{"c", "d"}));
  EXPECT_FALSE(ledger.exchange("p", "c", kGpu, {"a"}));
  EXPECT_TRUE(ledger.exchange("p", "c", kGpu, {"d"}));
  ASSERT_TRUE(admit(ledger, pod("q", {container("c", 1)})));
  EXPECT_EQ(ledger.choice("q", "c", kGpu), (Ids{"a", "b", "c", "x"})) << "who was told no NUMA nodes has the choice of all";
}

TEST(DeviceLedger, APodsHintsAreForTheMostAtATime) {
  DeviceLedger ledger;
  ledger.report(kGpu, placed());
  const numa::PodWishes whole =
      pod("p", {container("c", 1), container("d", 1)}, {container("i", 2), container("s", 1, R"(,"restartPolicy":"Always")")});
  EXPECT_EQ(ledger.pod_hints(whole, 0b11).at(kGpu), numa::Hints(HintList{{3, true}})) << "two and a sidecar";
  EXPECT_TRUE(ledger.pod_hints(pod("n", {}), 0b11).empty());
}

}  // namespace
}  // namespace berth::node::devices
