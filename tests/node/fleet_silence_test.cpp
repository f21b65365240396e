// Simulated nodes that others may take for lost: they are seen however much their pods have to tell, and a node that was lost says since
// when it is back.
#include <gtest/gtest.h>

#include "node/simulated/fleet.h"

namespace berth::node::simulated {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart = *parse_rfc3339("2026-01-01T00:00:00Z");

std::string node_name(int i) { return fmt::format("node-{}", i); }

json::Value pod_on(const std::string& node, int number) {
  return *json::parse(fmt::format(
      R"({{"metadata":{{"namespace":"default","name":"p{0}","uid":"uid-{0}"}},"spec":{{"nodeName":"{1}","hostNetwork":true,
          "containers":[{{"name":"c","image":"nginx"}}]}},"status":{{"phase":"Pending"}}}})",
      number, node));
}

void answer(Fleet& fleet, const Write& write, TimePoint now) { fleet.finish_write(write, {200, "uid-" + write.name, "1"}, now); }

void drain(Fleet& fleet, TimePoint now) {
  while (const auto write = fleet.next_write(now)) answer(fleet, *write, now);
}

TEST(FleetSilence, NodesAreSeenWhilePodsNeverStopReporting) {
  constexpr int kNodes = 50;
  Fleet fleet{FleetOptions{}};
  std::map<std::string, TimePoint> seen;
  for (int i = 0; i < kNodes; ++i) fleet.add_node({node_name(i), "z", "r", i, {}}, kStart);
  drain(fleet, kStart);
  for (int i = 0; i < kNodes; ++i) seen[node_name(i)] = kStart;
  // A write's answer brings the next write, and nothing else ever asks what is due.
  int pods = 0;
  Duration longest{};
  for (TimePoint now = kStart; now < kStart + 2min; now += 20ms) {
    for (int k = 0; k < 2; ++k, ++pods) fleet.observe_pod(pod_on(node_name(pods % kNodes), pods), now);
    const auto write = fleet.next_write(now);
    ASSERT_TRUE(write) << "there is always a pod's news";
    if (write->kind == Write::Kind::kRenewLease) {
      longest = std::max(longest, now - seen[write->name]);
      seen[write->name] = now;
    }
    answer(fleet, *write, now);
  }
  for (const auto& [name, last] : seen) longest = std::max(longest, kStart + 2min - last);
  EXPECT_LE(longest, 40s) << "a Lease's duration";
  EXPECT_GT(longest, 20s) << "pods come first until it is nearly over";
}

/// Each condition with its status and since when, of the next report.
std::string conditions_of_report(Fleet& fleet, TimePoint now) {
  std::string out;
  while (const auto write = fleet.next_write(now)) {
    if (write->kind == Write::Kind::kNodeStatus) {
      const json::Value report = *json::parse(write->body);
      for (const json::Value& condition : json::get_array(report, {"status", "conditions"}))
        out += fmt::format("{}={} {} ", json::get_string(condition, {"type"}), json::get_string(condition, {"status"}),
                           json::get_string(condition, {"lastTransitionTime"}).substr(14));
    }
    answer(fleet, *write, now);
  }
  return out;
}

void show(Fleet& fleet, const char* ready, bool dead, TimePoint now) {
  fleet.observe_node(
      *json::parse(fmt::format(
          R"({{"metadata":{{"name":"node-0","uid":"uid-node-0","annotations":{{"sim.berth.dev/fleet":"default","sim.berth.dev/dead":"{}"}}}},
              "status":{{"conditions":[{{"type":"Ready","status":"{}"}}]}}}})",
          dead ? "true" : "false", ready)),
      now);
}

TEST(FleetSilence, ANodeThatWasTakenForLostIsReadySinceItIsBack) {
  Fleet fleet{FleetOptions{}};
  fleet.add_node({node_name(0), "z", "r", 0, {}}, kStart);
  const std::string first = conditions_of_report(fleet, kStart);
  EXPECT_EQ(first, "MemoryPressure=False 00:00Z DiskPressure=False 00:00Z PIDPressure=False 00:00Z Ready=True 00:00Z ");
  show(fleet, "True", false, kStart + 1s);
  show(fleet, "Unknown", false, kStart + 60s);
  const std::string back = "MemoryPressure=False 01:01Z DiskPressure=False 01:01Z PIDPressure=False 01:01Z Ready=True 01:01Z ";
  EXPECT_EQ(conditions_of_report(fleet, kStart + 61s), back);
  show(fleet, "True", false, kStart + 62s);
  EXPECT_EQ(conditions_of_report(fleet, kStart + 8min), back) << "and later reports keep it";
  // Dead meanwhile: it is lost, and reports when it lives again.
  show(fleet, "True", true, kStart + 9min);
  show(fleet, "Unknown", true, kStart + 10min);
  EXPECT_EQ(conditions_of_report(fleet, kStart + 11min), "");
  show(fleet, "Unknown", false, kStart + 12min);
  EXPECT_EQ(conditions_of_report(fleet, kStart + 12min),
            "MemoryPressure=False 12:00Z DiskPressure=False 12:00Z PIDPressure=False 12:00Z Ready=True 12:00Z ");
}

}  // namespace
}  // namespace berth::node::simulated
