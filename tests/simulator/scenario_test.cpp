// What a scenario file may say, and what is said of one that is wrong.
#include "base/json.h"
#include "tests/simulator/support.h"

namespace berth::simulator {
namespace {

constexpr const char* kHead = "duration: 1h\nnodes: [{name: node, count: 1}]\n";

void expect_problem(const std::string& text, const std::string& problem) {
  const std::string all = problems_of(text);
  EXPECT_NE(all.find(problem), std::string::npos) << "expected: " << problem << "\ngot: " << all;
}

TEST(ScenarioFile, UnknownFieldsAreRefusedWithTheNearest) {
  expect_problem("duration: 1h\nnodez: []\n", "scenario.yaml:2: nodez: unknown field \"nodez\"; did you mean \"nodes\"?");
  expect_problem(std::string(kHead) + "workloads:\n- name: a\n  pod: {useage: {cpu: 1}}\n",
                 "scenario.yaml:5: workloads[0].pod.useage: unknown field");
}

TEST(ScenarioFile, ValuesWithoutUnitAreRefusedWithTheirPlace) {
  expect_problem("duration: 24\nnodes: [{count: 1}]\n", "scenario.yaml:1: duration: \"24\" has no unit");
  expect_problem("duration: 1h\nnodes:\n- {count: 1, memory: 32}\n", "nodes[0].memory: 32 has no unit: write 512Mi or 4Gi");
  expect_problem("duration: 1h\nnodes:\n- {count: 1, price: 0.4}\n", "nodes[0].price: 0.4 has no unit");
  expect_problem(std::string(kHead) + "workloads:\n- {name: a, pod: {}, arrivals: {rate: 60}}\n",
                 "workloads[0].arrivals.rate: 60 has no unit");
  expect_problem(std::string(kHead) + "workloads:\n- {name: a, pod: {}, runFor: 30}\n", "workloads[0].runFor: \"30\" has no unit");
  expect_problem(std::string(kHead) + "workloads:\n- {name: a, pod: {usage: {memory: \"512\"}}}\n", "512 has no unit");
}

TEST(ScenarioFile, NegativeNumbersAreRefused) {
  expect_problem("duration: 1h\nnodes:\n- {count: -6}\n", "nodes[0].count: -6 is negative");
  expect_problem(std::string(kHead) + "workloads:\n- {name: a, deployment: {replicas: -1}}\n", "deployment.replicas: -1 is negative");
  expect_problem("duration: -1h\nnodes: [{count: 1}]\n", "\"-1h\" is negative");
  expect_problem(std::string(kHead) + "workloads:\n- {name: a, pod: {cpu: -1}}\n", "workloads[0].pod.cpu: -1 is negative");
}

TEST(ScenarioFile, AssertionsAreCompiledWhenTheFileIsRead) {
  expect_problem(std::string(kHead) + "assert: [{that: pod.pending == 0}]\n", "undeclared reference to 'pod'");
  expect_problem(std::string(kHead) + "assert: [{that: pods.pending = 0}]\n", "scenario.yaml:3: assert[0]");
  EXPECT_EQ(
      problems_of(std::string(kHead) + "assert: [{that: pods.pending == 0}, 'nodes.ready > 0', {always: nodes.overcommitted == 0}]\n"), "");
}

TEST(ScenarioFile, UnknownPluginsOfAConfigurationAreSaid) {
  expect_problem(std::string(kHead) +
                     "scheduler:\n  apiVersion: kubescheduler.config.k8s.io/v1\n  kind: KubeSchedulerConfiguration\n  profiles:\n"
                     "  - schedulerName: default-scheduler\n    plugins: {score: {enabled: [{name: NodeResourceFit}]}}\n",
                 "NodeResourceFit");
  expect_problem(std::string(kHead) + "scheduler: missing.yaml\n", "missing.yaml");
}

TEST(ScenarioFile, FaultsAndChangesSayWhatTheyLack) {
  expect_problem(std::string(kHead) + "faults: [{lose: 1}]\n", "one of at (when) and rate");
  expect_problem(std::string(kHead) + "faults: [{at: 1m}]\n", "one of lose, delete");
  expect_problem(std::string(kHead) + "faults: [{at: 1m, restart: schedule}]\n", "did you mean \"scheduler\"?");
  expect_problem(std::string(kHead) + "changes: [{at: 1m, delete: {kind: Deploymnt, name: a}}]\n", "did you mean \"Deployment\"?");
  expect_problem(std::string(kHead) + "changes: [{scale: {deployment: a, replicas: 2}}]\n", "changes[0].at: required");
}

TEST(ScenarioFile, VariantsAreTheScenarioWithSomeFieldsSaidAnew) {
  const auto parsed = parse_scenario(
      std::string(kHead) + "seeds: 3\ncompare:\n- {name: one}\n- {name: two, set: {nodes: [{name: m, count: 4}]}}\n", "s.yaml", "");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->variants.size(), 2U);
  EXPECT_EQ(parsed->seeds, 3);
  EXPECT_EQ(parsed->variants[0].scenario.nodes.front().count, 1);
  EXPECT_EQ(parsed->variants[1].scenario.nodes.front().count, 4);
  expect_problem(std::string(kHead) + "compare:\n- {name: one}\n- {name: two, set: {nodez: []}}\n", "(variant two)");
}

TEST(ScenarioFile, TheSchemaKnowsEveryField) {
  const auto schema = json::parse(scenario_schema());
  ASSERT_TRUE(schema) << schema.error().message;
  // A file with a field of each name of the schema: none of them is unknown to the reader.
  for (const char* part : {"", "nodeSet", "pod", "arrivals"}) {
    const json::Object& properties =
        *part == 0 ? json::get_object(*schema, {"properties"}) : json::get_object(*schema, {"definitions", part, "properties"});
    ASSERT_FALSE(properties.empty()) << part;
    for (const auto& [name, value] : properties) {
      const std::string field = std::string(name) + ": [nonsense]";
      const std::string text = *part == 0                            ? field + "\n"
                               : std::string_view(part) == "nodeSet" ? "duration: 1h\nnodes: [{" + field + "}]\n"
                               : std::string_view(part) == "pod"
                                   ? std::string(kHead) + "workloads: [{name: a, pod: {" + field + "}}]\n"
                                   : std::string(kHead) + "workloads: [{name: a, arrivals: {" + field + "}}]\n";
      EXPECT_EQ(problems_of(text).find("unknown field"), std::string::npos) << text << problems_of(text);
    }
  }
}

TEST(Scenario, WhatNeverComesIsSaid) {
  const auto parsed = parse_scenario(R"yaml(
duration: 1h
nodes: [{count: 1, cpu: "1", memory: 1Gi}]
workloads: [{name: a, pod: {cpu: 1}, arrivals: {at: [2h, 3h]}}]
faults: [{at: 30m, lose: 1}, {at: 61m, lose: 1}, {rate: 1/h, from: 2h, lose: 1}]
changes: [{at: 2h, drain: 1}]
)yaml",
                                     "s.yaml", "");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->notes.size(), 4U);
  EXPECT_EQ(parsed->notes[0], "s.yaml:4: workloads[0].arrivals: never comes: 2h0m0s is after the scenario's end (1h0m0s)");
  for (const char* path : {"faults[1]", "faults[2]", "changes[0]"})
    EXPECT_TRUE(std::ranges::any_of(parsed->notes, [&](const std::string& note) { return note.find(path) != std::string::npos; })) << path;
}

TEST(Scenario, AChoiceThatFindsLessThanItNamesSaysSo) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 10m
nodes: [{name: worker, count: 2, cpu: "1", memory: 1Gi}]
faults: [{at: 1m, lose: 5, for: 1m}]
changes: [{at: 5m, drain: [w9]}, {at: 6m, uncordon: [worker-1, w9]}]
)yaml");
  std::vector<std::string> texts;
  for (const Happening& one : outcome.happenings)
    if (one.kind == "fault" || one.kind == "change") texts.push_back(one.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"5 nodes lost (worker-1, worker-2): there are only 2", "5 nodes lost: over",
                                             "w9 drained: there is none", "worker-1, w9 uncordoned: there is only 1"}));
}

}  // namespace
}  // namespace berth::simulator
