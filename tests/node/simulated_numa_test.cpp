// NUMA nodes of simulated nodes: what the annotation says, which pods are refused, what is told.
#include <gtest/gtest.h>

#include "node/simulated/fleet.h"
#include "node/simulated/numa.h"

namespace berth::node::simulated {
namespace {

using namespace std::chrono_literals;

const TimePoint kStart = *parse_rfc3339("2026-01-01T00:00:00Z");

json::Value node_document(const std::string& numa) {
  return *json::parse(fmt::format(R"({{"metadata":{{"name":"n","uid":"node-uid","annotations":{{"sim.berth.dev/fleet":"default",
    "sim.berth.dev/capacity":"cpu=32,memory=64Gi,example.com/gpu=3","sim.berth.dev/numa":"{}"}}}}}})",
                                  numa));
}
json::Value pod_document(const std::string& name, int cpus) {
  return *json::parse(fmt::format(R"({{"metadata":{{"namespace":"default","name":"{0}","uid":"{0}"}},"spec":{{"nodeName":"n","containers":[
    {{"name":"c","resources":{{"limits":{{"cpu":"{1}","memory":"1Gi"}},"requests":{{"cpu":"{1}","memory":"1Gi"}}}}}}]}}}})",
                                  name, cpus));
}

class SimulatedNuma : public ::testing::Test {
 protected:
  void drain(int code = 200) {
    while (const auto write = fleet_.next_write(now_)) {
      if (write->kind == Write::Kind::kNodeTopology) told_.push_back(write->body);
      if (write->kind == Write::Kind::kPodStatus) reasons_[write->uid] = json::get_string(*json::parse(write->body), {"status", "reason"});
      fleet_.finish_write(*write, {write->kind == Write::Kind::kNodeTopology ? code : 200, "uid", "1"}, now_);
    }
  }
  /// Those that were written since it was asked last.
  std::vector<std::string> topologies(int code = 200) {
    drain(code);
    return std::exchange(told_, {});
  }
  std::string reason_of(const std::string& uid) {
    drain();
    return reasons_.contains(uid) ? reasons_[uid] : "nothing is said";
  }
  std::vector<std::string> told_;
  std::map<std::string, std::string> reasons_;  ///< By the pod's uid.
  Fleet fleet_{FleetOptions{}};
  TimePoint now_ = kStart;
};

TEST_F(SimulatedNuma, APodThatNoNumaNodeHasRoomForIsRefusedAndWhoHasWhatIsTold) {
  ASSERT_TRUE(fleet_.adopt_node(node_document("2,policy=single-numa-node"), NodeTemplate{}, now_));
  auto told = topologies();
  ASSERT_EQ(told.size(), 1U);
  auto view = model::NodeTopologyView::parse(*json::parse(told[0]));
  EXPECT_EQ(view.policy, "single-numa-node");
  ASSERT_EQ(view.zones.size(), 2U);
  ASSERT_EQ(view.zones[0].resources.size(), 3U);
  EXPECT_EQ(view.zones[0].resources[0].name, "cpu");
  EXPECT_EQ(view.zones[0].resources[0].available.value(), 16);
  EXPECT_EQ(view.zones[0].resources[1].capacity.value(), 2) << "three GPUs: two and one";
  EXPECT_EQ(view.zones[0].costs, (std::map<int, std::int64_t>{{0, 10}, {1, 20}}));
  for (const char* name : {"first", "second"}) fleet_.observe_pod(pod_document(name, 12), now_);
  fleet_.observe_pod(pod_document("third", 6), now_);
  EXPECT_EQ(reason_of("second"), "");
  EXPECT_EQ(reason_of("third"), "TopologyAffinityError") << "four are left of each";
  told = topologies();
  ASSERT_FALSE(told.empty());
  view = model::NodeTopologyView::parse(*json::parse(told.back()));
  EXPECT_EQ(view.attribute("berth.dev/holds.first"), "0:cpu=12 0:memory=1073741824");
  EXPECT_EQ(view.attribute("berth.dev/holds.second"), "1:cpu=12 1:memory=1073741824");
  EXPECT_FALSE(view.attributes.contains("berth.dev/holds.third"));
  fleet_.forget_pod("first");
  told = topologies();
  ASSERT_EQ(told.size(), 1U) << "once for what has changed";
  EXPECT_EQ(told[0].find("berth.dev/holds.first"), std::string::npos);
  fleet_.observe_pod(pod_document("fourth", 16), now_);
  EXPECT_EQ(reason_of("fourth"), "");
}

TEST_F(SimulatedNuma, WhatTheServerDoesNotKnowIsToldAgainLater) {
  ASSERT_TRUE(fleet_.adopt_node(node_document("2"), NodeTemplate{}, now_));
  EXPECT_EQ(topologies(404).size(), 1U);
  now_ += 30s;
  EXPECT_TRUE(topologies().empty());
  now_ += 31s;
  fleet_.advance(now_);
  EXPECT_EQ(topologies().size(), 1U) << "with the next heartbeat";
}

TEST_F(SimulatedNuma, ANodeWithoutTheAnnotationTellsNothingAndRefusesNobody) {
  json::Value node = node_document("2,policy=single-numa-node");
  json::erase(node, {"metadata", "annotations", kNumaAnnotation});
  ASSERT_TRUE(fleet_.adopt_node(node, NodeTemplate{}, now_));
  fleet_.observe_pod(pod_document("first", 20), now_);
  EXPECT_EQ(reason_of("first"), "");
  EXPECT_TRUE(topologies().empty());
}

TEST(NumaTemplate, MistakesSayWhatIsWanted) {
  const auto error = [](const char* text) {
    const auto read = parse_numa(text);
    if (!read) return read.error().message;
    const auto made = NumaPart::make(*read, {{"cpu", "4"}}, {{"cpu", "4"}});
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(error("2,policy=restricted,scope=pod,full-pcpus-only=2"), "");
  EXPECT_EQ(error(""), "a number of NUMA nodes is wanted");
  EXPECT_EQ(error("policy=restricted"), "\"policy=restricted\": a number of NUMA nodes from 1 to 8 is wanted first");
  EXPECT_EQ(error("9"), "\"9\": a number of NUMA nodes from 1 to 8 is wanted first");
  EXPECT_EQ(error("2,cores=2"), "\"cores=2\": wanted policy=POLICY, scope=SCOPE or full-pcpus-only=THREADS");
  EXPECT_NE(error("2,policy=strict").find("unknown policy"), std::string::npos);
}

}  // namespace
}  // namespace berth::node::simulated
