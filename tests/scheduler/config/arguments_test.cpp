// schedulerArguments of OpenShift's master-config.yaml act, or say that they do not (SPEC E1, C5, B9).
#include "scheduler/config/arguments.h"

#include <gtest/gtest.h>

namespace berth::scheduler::config {
namespace {

Arguments arguments(std::initializer_list<std::pair<const char*, const char*>> all) {
  Arguments out;
  for (const auto& [name, value] : all) out[name] = {{value}, std::string("m.yaml:1: ") + name};
  return out;
}

SchedulerConfig applied(const Arguments& all) {
  SchedulerConfig out = default_config(placement::Era::k136);
  const auto done = apply(all, out);
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return out;
}

std::string error_of(const Arguments& all) {
  SchedulerConfig out = default_config(placement::Era::k136);
  const auto done = apply(all, out);
  return done ? "(accepted)" : done.error().message;
}

TEST(SchedulerArguments, DisablePreemptionActs) {
  const auto preempts = [](const SchedulerConfig& config) {
    return config.profiles[0].has(config.profiles[0].post_filter, "DefaultPreemption");
  };
  EXPECT_TRUE(preempts(default_config(placement::Era::k136)));
  EXPECT_FALSE(preempts(applied(arguments({{"disablePreemption", "true"}}))));
  EXPECT_TRUE(preempts(applied(arguments({{"disablePreemption", "false"}}))));
  EXPECT_EQ(error_of(arguments({{"disablePreemption", "maybe"}})), "m.yaml:1: disablePreemption: \"maybe\" is neither true nor false");
}

TEST(SchedulerArguments, NamesProvidersAndElectionAct) {
  const auto config = applied(arguments({{"scheduler-name", "custom"},
                                         {"algorithm-provider", "ClusterAutoscalerProvider"},
                                         {"hard-pod-affinity-symmetric-weight", "7"},
                                         {"leader-elect", "false"},
                                         {"lock-object-name", "mine"}}));
  EXPECT_EQ(config.profiles[0].scheduler_name, "custom");
  EXPECT_EQ(config.profiles[0].args.inter_pod_affinity.hard_pod_affinity_weight, 7);
  EXPECT_EQ(config.era, placement::Era::k120);
  EXPECT_FALSE(config.leader_election.leader_elect);
  EXPECT_EQ(lease_name(config), "mine");
}

TEST(SchedulerArguments, FilesAreFoundBesideTheMasterConfiguration) {
  EXPECT_EQ(file_of(arguments({{"policy-config-file", "p.json"}}), "/etc/origin/master"), "/etc/origin/master/p.json");
  EXPECT_EQ(file_of(arguments({{"policy-config-file", "/a/p.json"}}), "/etc"), "/a/p.json");
  EXPECT_EQ(file_of({}, "/etc"), "");
}

TEST(SchedulerArguments, WhatCannotActIsTold) {
  EXPECT_EQ(error_of(arguments({{"disablePremption", "true"}})),
            "m.yaml:1: disablePremption: unknown flag of the scheduler: \"disablePremption\"; did you mean \"disablePreemption\"?");
  EXPECT_EQ(applied(arguments({{"kube-api-qps", "30"}})).notes, std::vector<std::string>{"m.yaml:1: kube-api-qps: has no effect here"});
}

TEST(LeaseName, EachSchedulerHasItsOwn) {
  SchedulerConfig config = default_config(placement::Era::k136);
  EXPECT_EQ(lease_name(config), "kube-scheduler");
  config.profiles[0].scheduler_name = "A_b";
  EXPECT_EQ(lease_name(config), "a-b");
  config.leader_election.resource_name = "kube-scheduler";
  EXPECT_EQ(lease_name(config), "kube-scheduler");
}

}  // namespace
}  // namespace berth::scheduler::config
