// The shell: what it reads, what it asks of the API, what it tells (SPEC G3, G4, I6).
#include "tests/descheduler/shell.h"

#include <cstdio>
#include <fstream>

namespace berth::descheduler::test {
namespace {

TEST(Shell, EvictsThroughTheApiAndTellsOfIt) {
  Shell shell;
  EXPECT_EQ(shell.run().evicted(), 1u);
  ASSERT_EQ(shell.transport->sent.size(), 2u);
  EXPECT_EQ(shell.transport->sent[0].path, "/api/v1/namespaces/ns/pods/a/eviction");
  EXPECT_EQ(shell.transport->sent[0].query, "");
  const json::Value body = *json::parse(shell.transport->sent[0].body);
  EXPECT_EQ(json::get_string(body, {"apiVersion"}), "policy/v1");
  EXPECT_EQ(json::get_int(body, {"deleteOptions", "gracePeriodSeconds"}), 5);
  EXPECT_EQ(json::get_string(body, {"deleteOptions", "preconditions", "uid"}), "u1");
  EXPECT_EQ(shell.transport->sent[1].path, "/apis/events.k8s.io/v1/namespaces/ns/events");
  const json::Value event = *json::parse(shell.transport->sent[1].body);
  EXPECT_EQ(json::get_string(event, {"reason"}), "RemovePodsViolatingNodeTaints");
  EXPECT_EQ(json::get_string(event, {"action"}), "Descheduled");
  EXPECT_EQ(json::get_string(event, {"note"}), "pod eviction from old node by sigs.k8s.io/descheduler");
  EXPECT_NE(
      shell.metrics->expose().find("descheduler_pods_evicted_total{result=\"success\",strategy=\"RemovePodsViolatingNodeTaints\",profile="
                                   "\"p\",namespace=\"ns\",node=\"old\"} 1"),
      std::string::npos)
      << shell.metrics->expose();
  EXPECT_NE(shell.metrics->expose().find("descheduler_loop_duration_seconds_count 1"), std::string::npos);
}

TEST(Shell, ABudgetsNoIsNoEviction) {
  Shell shell;
  shell.transport->eviction_status = 429;
  const CycleResult result = shell.run();
  EXPECT_EQ(result.evicted(), 0u);
  EXPECT_EQ(result.removals.at(0).outcome, Outcome::kProtected);
  ASSERT_EQ(shell.transport->sent.size(), 2u);  // The eviction and, as asked for, the event of its failure.
  EXPECT_NE(shell.transport->sent[1].body.find("EvictionFailed"), std::string::npos);
  EXPECT_NE(shell.metrics->expose().find("result=\"error\""), std::string::npos);
}

TEST(Shell, ADryRunAsksAndChangesNothing) {
  Shell shell;
  shell.options.dry_run = true;
  EXPECT_EQ(shell.run().evicted(), 1u);
  ASSERT_EQ(shell.transport->sent.size(), 1u);
  EXPECT_EQ(shell.transport->sent[0].query, "dryRun=All");
  EXPECT_NE(shell.transport->sent[0].body.find("\"dryRun\":[\"All\"]"), std::string::npos);
  shell.transport->eviction_status = 403;  // Who may only look may still plan.
  EXPECT_EQ(shell.run().evicted(), 1u);
  shell.transport->eviction_status = 429;
  EXPECT_EQ(shell.run().evicted(), 0u);
}

TEST(Shell, DoesWithoutWhatItMayNotList) {
  Shell shell;
  for (const char* path : {"/api/v1/services", "/apis/apps/v1/replicasets", "/apis/policy/v1/poddisruptionbudgets", "/api/v1/namespaces"})
    shell.transport->forbidden.insert(path);
  EXPECT_EQ(shell.run().evicted(), 1u);
  client::Client client(shell.transport, nullptr, "test");
  std::vector<std::string> warnings;
  ReadObjects known;
  ASSERT_TRUE(read_snapshot(client, placement::Era::k136, false, warnings, known));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("services, replicasets"), std::string::npos) << warnings[0];
}

/// By uid and revision: an object of both is what it was, whatever stands there (no server sends that), and one without is always read.
TEST(Shell, WhatIsTheSameRevisionIsNotReadAgain) {
  Shell shell;
  client::Client client(shell.transport, nullptr, "test");
  ReadObjects known;
  const auto node = [](const char* identity, const char* cpu) {
    return yaml(
        fmt::format("{{metadata: {{name: worker{}}}, status: {{allocatable: {{cpu: '{}'}}, conditions: [{{type: Ready, status: 'True', "
                    "lastTransitionTime: '2026-01-01T00:00:0{}Z'}}]}}}}",
                    identity, cpu, cpu));
  };
  const auto cores = [&](const json::Value& listed) {
    shell.transport->lists["/api/v1/nodes"] = {listed};
    std::vector<std::string> warnings;
    const auto snapshot = read_snapshot(client, placement::Era::k136, false, warnings, known);
    EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().message);
    const std::int64_t milli = snapshot ? snapshot->cluster.find_node("worker")->allocatable.cpu_milli : 0;
    EXPECT_EQ(ready_changed(*snapshot->cluster.find_node("worker")->node),
              *parse_rfc3339(fmt::format("2026-01-01T00:00:0{}Z", milli / 1000)));
    return milli / 1000;
  };
  EXPECT_EQ(cores(node(", uid: u, resourceVersion: '1'", "1")), 1);
  EXPECT_EQ(cores(node(", uid: u, resourceVersion: '1'", "2")), 1);
  EXPECT_EQ(cores(node(", uid: u, resourceVersion: '2'", "3")), 3);
  EXPECT_EQ(cores(node(", uid: other, resourceVersion: '2'", "4")), 4);
  EXPECT_EQ(cores(node("", "5")), 5);
  EXPECT_EQ(cores(node("", "6")), 6);
}

TEST(Shell, WithoutNodesOrPodsNothingIsDone) {
  Shell shell;
  shell.transport->forbidden.insert("/api/v1/pods");
  Descheduler descheduler(shell.transport, shell.options, shell.metrics);
  const auto result = descheduler.run_once();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "listing pods: no");
}

TEST(PlanText, SaysWhoGoesWhereAndWhoStaysWhy) {
  World world;
  world.node("n1", "{spec: {taints: [{key: x, effect: NoSchedule}]}}")
      .node("n2", "{status: {allocatable: {pods: '1'}}}")
      .pods("a", 2, "n1");
  const CycleResult result = world.run(one_plugin("RemovePodsViolatingNodeTaints", "{}"));
  const std::string text = to_text(result, true, 20);
  EXPECT_NE(text.find("POD           FROM   TO   STRATEGY                        WHY\n"
                      "default/a-0   n1     n2   RemovePodsViolatingNodeTaints   it does not tolerate the node's taints\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("default/a-1   n1   RemovePodsViolatingNodeTaints   no better place   it would fit nowhere"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1 pod would be evicted; nothing was changed\n"), std::string::npos) << text;
  EXPECT_NE(to_text(result, true, 0).find("and 1 more that stay"), std::string::npos);
  const json::Value document = to_json(result, true);
  EXPECT_EQ(json::get_string(json::get_array(document, {"evictions"}).at(0), {"destination"}), "n2");
  EXPECT_EQ(json::get_string(json::get_array(document, {"kept"}).at(0), {"keptBy"}), "no better place");
}

/// The file of the policy while the descheduler runs: what it says is done from the next cycle on, what it cannot mean stops it.
TEST(Shell, APolicyThatChangesHoldsFromTheNextCycleOnAndABadOneEvictsNobody) {
  Shell shell;
  const std::string file = ::testing::TempDir() + "/descheduler-policy-that-changes.yaml";
  const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::trunc) << text; };
  const auto told = [&](std::string_view reason) {
    return std::ranges::count_if(shell.transport->sent, [&](const net::HttpRequest& request) {
      return request.path.ends_with("/events") && request.body.find(reason) != std::string::npos;
    });
  };
  const std::string good = one_plugin("RemovePodsViolatingNodeTaints", "{}", "{}");
  write(good);
  shell.options.policy_file = file;
  Descheduler descheduler(shell.transport, shell.options, shell.metrics);
  ASSERT_TRUE(descheduler.refresh_policy());
  EXPECT_TRUE(shell.transport->sent.empty());
  write("apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofils: []\n");
  for (int cycle = 0; cycle < 2; ++cycle) EXPECT_FALSE(descheduler.refresh_policy());
  EXPECT_EQ(told("InvalidPolicy"), 1) << "once, until it is over";
  write(one_plugin("RemovePodsViolatingNodeTaints", "{}", "{}", "maxNoOfPodsToEvictPerNode: 0\n"));
  EXPECT_TRUE(descheduler.refresh_policy());
  EXPECT_EQ(told("PolicyChanged"), 1);
  std::remove(file.c_str());
  EXPECT_FALSE(descheduler.refresh_policy()) << "no policy is none to evict by";
}

}  // namespace
}  // namespace berth::descheduler::test
