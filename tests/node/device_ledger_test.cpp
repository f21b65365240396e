// Which devices of plugins a node has, and who holds them, over time.
#include "node/devices/device_ledger.h"

#include <gtest/gtest.h>

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

json::Value pod(const std::string& uid, json::Array containers, json::Array init = {}) {
  return json::Object{{"metadata", json::Object{{"uid", uid}}},
                      {"spec", json::Object{{"containers", std::move(containers)}, {"initContainers", std::move(init)}}}};
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
  ASSERT_TRUE(ledger.admit(pod("p", {container("c", 2)})));
  EXPECT_EQ(ids_of(ledger, "p"), (Ids{"a", "b"}));
  const auto refused = ledger.admit(pod("q", {container("c", 2)}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "Allocate failed due to requested number of devices unavailable for example.com/gpu. Requested: 2, Available: 1, which is "
            "unexpected");
  EXPECT_TRUE(ids_of(ledger, "q").empty());
  ledger.keep_only({"q"});
  ASSERT_TRUE(ledger.admit(pod("q", {container("c", 2)})));
  EXPECT_EQ(ids_of(ledger, "q"), (Ids{"a", "b"}));
}

TEST(DeviceLedger, APodIsGivenAllOrNothing) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b", "c"}));
  EXPECT_FALSE(ledger.admit(pod("p", {container("c", 2), container("d", 2)})));
  ASSERT_TRUE(ledger.admit(pod("q", {container("c", 3)}))) << "what the first container was given is free again";
}

TEST(DeviceLedger, WhatAnInitContainerHadIsHadByThoseAfterIt) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  ASSERT_TRUE(ledger.admit(pod("p", {container("c", 2)}, {container("i", 2)})));
  EXPECT_EQ(ids_of(ledger, "p", "i"), ids_of(ledger, "p", "c"));
  ledger.keep_only({});
  EXPECT_FALSE(ledger.admit(pod("p", {container("c", 1)}, {container("i", 2, R"(,"restartPolicy":"Always")")}))) << "a sidecar goes on";
}

TEST(DeviceLedger, OnlyHealthyOnesAreGivenAndSickOnesStayWithTheirPod) {
  DeviceLedger ledger;
  auto list = devices({"a", "b"});
  ledger.report(kGpu, list);
  ASSERT_TRUE(ledger.admit(pod("p", {container("c", 1)})));
  list["a"].is_healthy = list["b"].is_healthy = false;
  EXPECT_TRUE(ledger.report(kGpu, list));
  EXPECT_EQ(ledger.inventory(kNow).capacity[kGpu], 2);
  EXPECT_EQ(ledger.inventory(kNow).allocatable[kGpu], 0);
  EXPECT_EQ(ids_of(ledger, "p"), Ids{"a"});
  EXPECT_FALSE(ledger.admit(pod("q", {container("c", 1)})));
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
  ASSERT_TRUE(ledger.admit(pod("p", {container("c", 1)})));
  ASSERT_TRUE(ledger.admit(pod("q", {container("c", 1)})));
  EXPECT_EQ(ledger.choice("q", "c", kGpu), (Ids{"b", "c"}));
  EXPECT_FALSE(ledger.exchange("q", "c", kGpu, {"a"})) << "another's";
  EXPECT_FALSE(ledger.exchange("q", "c", kGpu, {"b", "c"})) << "more than it asked for";
  EXPECT_TRUE(ledger.exchange("q", "c", kGpu, {"c"}));
  EXPECT_EQ(ids_of(ledger, "q"), Ids{"c"});
  ASSERT_TRUE(ledger.admit(pod("r", {container("c", 1)})));
  EXPECT_EQ(ids_of(ledger, "r"), Ids{"b"});
}

TEST(DeviceLedger, WhatAnInitContainerLentIsNotExchanged) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  ASSERT_TRUE(ledger.admit(pod("p", {container("c", 1)}, {container("i", 1)})));
  EXPECT_FALSE(ledger.exchange("p", "c", kGpu, {"b"}));
}

TEST(DeviceLedger, WhatPluginsSaidIsOneAndIsKeptForTheNextProcess) {
  DeviceLedger ledger;
  ledger.report(kGpu, devices({"a", "b"}));
  ledger.report("example.com/nic", devices({"n"}));
  auto both = container("c", 1);
  json::set(both, {"resources", "limits", "example.com/nic"}, "1");
  ASSERT_TRUE(ledger.admit(pod("p", {both})));
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
  ASSERT_TRUE(next.admit(pod("p", {both}))) << "it has them already";
  ASSERT_TRUE(next.admit(pod("q", {container("c", 1)})));
  EXPECT_EQ(ids_of(next, "q"), Ids{"b"});
  EXPECT_FALSE(next.restore(*json::parse(R"({"some":"thing"})")));
}

TEST(DeviceLedger, ResourcesThatNoPluginToldOfAreLeftAlone) {
  DeviceLedger ledger;
  EXPECT_TRUE(ledger.admit(pod("p", {container("c", 8)})));
  EXPECT_TRUE(ledger.inventory(kNow).capacity.empty());
}

}  // namespace
}  // namespace berth::node::devices
