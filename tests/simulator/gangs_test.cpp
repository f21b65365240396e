// Jobs whose pods are of use together alone: when they work, what they hold for nothing, and how they come anew.
#include "simulator/gangs.h"

#include <fmt/format.h>

#include <cmath>

#include "simulator/compare.h"
#include "tests/simulator/support.h"

namespace berth::simulator {
namespace {

/// Two gangs that together need one processor more than there is, and `more` of the scenario.
std::string two_gangs(std::string_view more) {
  return fmt::format(R"yaml(
duration: 1h
seed: 3
nodes:
- {{name: m, count: 3, cpu: "8", memory: 32Gi, zones: [a]}}
workloads:
- name: first
  gang: {{size: 7, patience: 5m}}
  pod: {{cpu: 2, memory: 1Gi}}
  runFor: 10m
- name: second
  gang: {{size: 6, queue: red, patience: 5m}}
  pod: {{cpu: 2, memory: 1Gi}}
  runFor: 10m
{})yaml",
                     more);
}

TEST(SimulatedGangs, OneRunsWholeAndTheOtherAfterIt) {
  const Outcome outcome = outcome_of(two_gangs("gangs: berth\n"));
  ASSERT_EQ(outcome.gangs.size(), 2U) << "by queue, or by name where there is none";
  const GangCount &first = outcome.gangs.at("first"), &second = outcome.gangs.at("red");
  EXPECT_EQ(first.finished, 1);
  EXPECT_EQ(second.finished, 1);
  EXPECT_EQ(first.anew + second.anew, 0);
  EXPECT_EQ(first.held_percent() + second.held_percent(), 0) << "nobody stood without partners";
  // Whoever was first: the other waits for its ten minutes.
  EXPECT_NEAR(first.wait_at(1) + second.wait_at(1), 600, 10);
  EXPECT_NEAR(first.worked[kCpu], 7 * 2000 * 600, 7 * 2000 * 5);
  EXPECT_TRUE(outcome.refusals.empty()) << to_text(outcome);
  EXPECT_EQ(outcome.samples.back().pending, 0);
}

TEST(SimulatedGangs, PlainPodsHoldWhatTheyCannotUseAndGiveItUp) {
  const Outcome outcome = outcome_of(two_gangs("gangs: none\n"));
  GangCount all;
  for (const auto& [queue, count] : outcome.gangs) all.add(count);
  EXPECT_EQ(all.finished, 2) << to_text(outcome);
  EXPECT_GT(all.anew, 0) << "the last pod waits for more than five minutes";
  EXPECT_GT(all.held_percent(), 5);
  EXPECT_TRUE(outcome.refusals.empty()) << to_text(outcome);
}

TEST(SimulatedGangs, WhatNeverFitsHoldsRoomAsPlainPodsAlone) {
  for (const std::string policy : {"berth", "kubernetes", "none"}) {
    const Outcome outcome = outcome_of(fmt::format(R"yaml(
duration: 2h
gangs: {}
nodes: [{{name: m, count: 2, cpu: "8", memory: 32Gi}}]
workloads:
- {{name: large, gang: {{size: 5}}, pod: {{cpu: 4, memory: 1Gi}}, runFor: 10m}}
- {{name: small, gang: {{size: 2}}, pod: {{cpu: 4, memory: 1Gi}}, arrivals: {{at: [1m]}}, runFor: 10m}}
)yaml",
                                                   policy));
    const bool is_plain = policy == "none";
    EXPECT_EQ(outcome.gangs.at("large").started, 0) << policy;
    EXPECT_EQ(outcome.gangs.at("large").held_percent(), is_plain ? 100 : 0) << policy;
    EXPECT_EQ(outcome.gangs.at("small").finished, is_plain ? 0 : 1) << policy;
  }
}

TEST(SimulatedGangs, WhoLosesAMemberComesAnew) {
  const std::string text = R"yaml(
duration: 1h
nodes:
- {name: m, count: 3, cpu: "8", memory: 32Gi}
workloads:
- name: job
  gang: {size: 6}
  pod: {cpu: 2, memory: 1Gi}
  runFor: 20m
faults:
- {at: 10m, delete: m-1}
)yaml";
  const Outcome outcome = outcome_of(text);
  const GangCount& job = outcome.gangs.at("job");
  EXPECT_EQ(job.anew, 1) << to_text(outcome);
  EXPECT_EQ(job.started, 1) << "it waited once";
  EXPECT_EQ(job.finished, 1);
  EXPECT_TRUE(outcome.refusals.empty()) << to_text(outcome);
}

TEST(SimulatedGangs, ATraceSaysTheirSizes) {
  const std::string file = testing::TempDir() + "/gangs.csv";
  {
    std::FILE* out = std::fopen(file.c_str(), "w");
    std::fputs("at,duration,size,cpu,memory\n0s,5m,4,2,1Gi\n1m,5m,1,2,1Gi\n2m,5m,2,2,1Gi\n", out);
    std::fclose(out);
  }
  const std::string text = fmt::format(
      "duration: 30m\nnodes:\n- {{name: m, count: 3, cpu: '8', memory: 32Gi}}\nworkloads:\n- name: trace\n  gang: {{}}\n  trace: {{file: "
      "{}}}\n",
      file);
  const Outcome outcome = outcome_of(text);
  EXPECT_EQ(outcome.gangs.at("trace").finished, 3) << to_text(outcome);
  EXPECT_EQ(outcome.samples.back().created, 7);
}

TEST(SimulatedGangs, PoliciesAreComparedOverTheSameArrivals) {
  auto parsed = parse_scenario(two_gangs("compare:\n- {name: berth}\n- {name: kubernetes, set: {gangs: kubernetes}}\n"
                                         "- {name: plain pods, set: {gangs: none}}\n"),
                               "scenario.yaml", "");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto once = compare(parsed->variants, 1, {}), again = compare(parsed->variants, 1, {});
  ASSERT_TRUE(once && again);
  EXPECT_TRUE(json::serialize(to_json(*once)) == json::serialize(to_json(*again)));
  const std::string text = to_text(*once);
  EXPECT_NE(text.find("wait of a gang, mean (s)"), std::string::npos) << text;
  EXPECT_NE(text.find("Worse: held for partners 0.00 → "), std::string::npos) << text;
}

TEST(SimulatedGangs, ScenariosThatMakeNoSense) {
  const auto with = [](std::string_view workload) {
    return problems_of(fmt::format("duration: 1h\nnodes: [{{name: m}}]\nworkloads:\n- {{name: w, {}}}\n", workload));
  };
  EXPECT_NE(with("gang: {size: 4, minCount: 5}, pod: {cpu: 1}, runFor: 1m").find("minCount: is more than size"), std::string::npos);
  EXPECT_NE(with("gang: {}, pod: {cpu: 1}, runFor: 1m").find("size: required: how many pods come together"), std::string::npos);
  EXPECT_NE(with("gang: {size: 4}, pod: {cpu: 1}").find("runFor of the workload is required"), std::string::npos);
  EXPECT_NE(with("gang: {size: 4}, deployment: {replicas: 1}, runFor: 1m").find("gang: is of bare pods"), std::string::npos);
  EXPECT_NE(with("gang: {size: 4, pacience: 4m}, pod: {cpu: 1}, runFor: 1m").find("patience"), std::string::npos);
  EXPECT_NE(problems_of("duration: 1h\nnodes: [{name: m}]\ngangs: kueue\n").find("gangs"), std::string::npos);
}

}  // namespace
}  // namespace berth::simulator
