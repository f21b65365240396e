// Scenario files: which pods a rule means, what wins, what is refused, and that nodes come under pressure by one.
#include "node/simulated/scenario.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "node/simulated/fleet.h"
#include "tests/support/source_dir.h"

namespace berth::node::simulated {
namespace {

json::Value pod(const std::string& name, const std::string& node, json::Object annotations = {}) {
  return *json::parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{0}","namespace":"load","uid":"{0}","labels":{{"app":"{0}"}},"annotations":{1}}},"spec":{{"nodeName":"{2}","containers":[{{"name":"c","image":"i"}}]}},"status":{{"phase":"Pending"}}}})",
      name, json::serialize(annotations), node));
}

std::string memory_of(const json::Value& pod) {
  const json::Object& annotations = json::get_object(pod, {"metadata", "annotations"});
  const json::Value* value = annotations.if_contains("sim.berth.dev/memory");
  return value ? std::string(json::as_view(*value)) : "";
}

TEST(Scenario, PatternsStandForAnyCharacters) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("hog-*", "hog-"));
  EXPECT_TRUE(matches("*-a-*", "x-a-a-y"));
  EXPECT_FALSE(matches("hog-*", "hog"));
  EXPECT_FALSE(matches("", "x"));
  EXPECT_TRUE(matches("node-1*5", "node-12345"));
  EXPECT_FALSE(matches("a*b", "abc"));
}

TEST(Scenario, TheFirstRuleThatSetsAKeyWinsAndThePodItselfBeforeAll) {
  const auto scenario = Scenario::parse(
      "pods:\n- {name: 'a*', node: n1, set: {memory: 1Gi}}\n- {namespace: load, selector: app=ab, set: {memory: 2Gi, ready: false}}\n- "
      "{set: {memory: 3Gi}}\n");
  ASSERT_TRUE(scenario) << scenario.error().message;
  EXPECT_EQ(memory_of(scenario->apply(pod("ab", "n1"))), "1Gi");
  EXPECT_EQ(memory_of(scenario->apply(pod("ab", "n2"))), "2Gi");
  EXPECT_EQ(memory_of(scenario->apply(pod("x", "n2"))), "3Gi");
  EXPECT_EQ(memory_of(scenario->apply(pod("ab", "n1", {{"sim.berth.dev/memory", "9Gi"}}))), "9Gi");
  const json::Value both = scenario->apply(pod("ab", "n1"));
  EXPECT_EQ(json::as_view(*json::get_object(both, {"metadata", "annotations"}).if_contains("sim.berth.dev/ready")), "false")
      << "other keys of later rules count";
}

TEST(Scenario, WhatAKubeletKnowsAndNothingHereActsOnIsTold) {
  std::vector<std::string> notes;
  ASSERT_TRUE(Scenario::parse("kubelet: {showHiddenMetricsForVersion: restricted, maxPods: 7}\n", "s.yaml", &notes));
  EXPECT_EQ(notes, std::vector<std::string>{"s.yaml: known, and without effect here: kubelet.showHiddenMetricsForVersion (line 1)"});
}

TEST(Scenario, MistakesAreRefusedWithTheirPlace) {
  const auto error = [](const char* text) {
    const auto scenario = Scenario::parse(text);
    return scenario ? std::string() : scenario.error().message;
  };
  EXPECT_NE(error("pods:\n- {set: {memory: lots}}\n").find("scenario:2: pods[0].set.memory: "), std::string::npos);
  EXPECT_EQ(error("kubelet:\n  evictionhard: {memory.available: 1Gi}\n"),
            "scenario:2: kubelet.evictionhard: unknown field \"evictionhard\"; did you mean \"evictionHard\"?");
  EXPECT_NE(error("pods:\n- {set: {memry: 1Gi}}\n").find("did you mean \"memory\"?"), std::string::npos);
  EXPECT_NE(error("pods:\n- {set: {memory: 1Gi, memory: 2Gi}}\n").find("a second time"), std::string::npos);
  EXPECT_NE(error("pods:\n- {set: {memory.c: 5m=x}}\n").find("is not a quantity"), std::string::npos);
  EXPECT_NE(error("pods:\n- {set: {ram: 1Gi}}\n").find("there is no sim.berth.dev/ram"), std::string::npos);
  EXPECT_NE(error("pods:\n- {}\n- {selector: 'a in b'}\n").find("pods[1]"), std::string::npos);
  EXPECT_NE(error("kubelet: {kubeReserved: {memry: 1Gi}}\n").find("cannot reserve \"memry\" resource"), std::string::npos);
  EXPECT_NE(error("pods: 5\n"), "");
  EXPECT_NE(error("nodes: []\n").find("unknown field \"nodes\""), std::string::npos);
  EXPECT_NE(error("kubelet: {evictionSoft: {memory.available: 1Gi}}\n").find("grace period must be specified"), std::string::npos);
  EXPECT_NE(error("[]"), "");
}

TEST(Scenario, TheExampleBringsHundredsOfNodesUnderPressure) {
  std::ifstream in(berth::testing::source_dir() + "/examples/node/scenario.yaml");
  const auto scenario = Scenario::parse(std::string{std::istreambuf_iterator<char>(in), {}});
  ASSERT_TRUE(scenario) << scenario.error().message;
  FleetOptions options;
  options.scenario = *scenario;
  options.kubelet = *scenario->kubelet();
  Fleet fleet(options);
  std::map<std::string, json::Value> documents;
  fleet.set_document_source([&](const std::string&, const std::string& name) -> std::optional<json::Value> { return documents.at(name); });
  TimePoint now(std::chrono::hours(1000));
  constexpr int kNodes = 300;
  for (int i = 0; i < kNodes; ++i) {
    fleet.add_node({fmt::format("node-{}", i + 1), "zone-a", "region", i, {}}, now);
    const std::string name = fmt::format("hog-{}", i);
    fleet.observe_pod(documents[name] = pod(name, fmt::format("node-{}", i + 1)), now);
  }
  std::set<std::string> evicted;
  for (const TimePoint end = now + std::chrono::minutes(12); now < end; now += std::chrono::seconds(10)) {
    fleet.advance(now);
    while (const auto write = fleet.next_write(now)) {
      if (write->kind == Write::Kind::kPodStatus && write->body.find("\"Evicted\"") != std::string::npos) evicted.insert(write->name);
      fleet.finish_write(*write, {}, now);
    }
  }
  EXPECT_EQ(evicted.size(), std::size_t{kNodes});
}

}  // namespace
}  // namespace berth::node::simulated
