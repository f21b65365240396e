// A descheduler that goes on running: what a cycle knows of those before it, and what it asks of others.
#include "tests/descheduler/shell.h"

namespace berth::descheduler::test {
namespace {

struct HandClock final : Clock {
  TimePoint time = *parse_rfc3339("2026-01-02T12:00:00Z");
  [[nodiscard]] TimePoint now() const override { return time; }
};

struct Cycles : Shell {
  Cycles() { options.clock = &clock; }
  /// A copy of the controller that the policy wants off its node, since so long ago.
  void put_pod(const std::string& name, Duration age) {
    transport->lists["/api/v1/pods"] = {yaml(fmt::format(
        "{{metadata: {{name: {0}, namespace: ns, uid: {0}-uid, creationTimestamp: '{1}', ownerReferences: [{{apiVersion: apps/v1, kind: "
        "ReplicaSet, name: r, uid: r, controller: true}}]}}, spec: {{nodeName: old, containers: [{{name: c, image: i}}]}}, status: "
        "{{phase: Running}}}}",
        name, format_rfc3339(clock.time - age)))};
  }
  CycleResult next(Descheduler& descheduler) {
    clock.time += std::chrono::minutes(10);
    return run(descheduler);
  }
  HandClock clock;
};

TEST(Cycles, WhoCameForAnEvictedPodStaysUntilSomethingElseChanges) {
  Cycles cycles;
  cycles.put_pod("first", std::chrono::hours(1));
  Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
  EXPECT_EQ(evicted(cycles.next(descheduler)), Names{"first"});
  cycles.put_pod("second", std::chrono::minutes(-5));
  for (int i = 0; i < 2; ++i) {
    const CycleResult result = cycles.next(descheduler);
    EXPECT_EQ(evicted(result), Names{});
    EXPECT_EQ(kept_because(result, "second"), "it was moved already, and nothing has changed from outside since");
  }
  cycles.transport->lists["/api/v1/nodes"].push_back(
      yaml("{metadata: {name: newest}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}"));
  EXPECT_EQ(evicted(cycles.next(descheduler)), Names{"second"}) << "a node came";
}

TEST(Cycles, ADeschedulerThatBeginsRemembersNobody) {
  Cycles cycles;
  for (const char* name : {"first", "second"}) {
    cycles.put_pod(name, std::chrono::minutes(5));
    Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
    EXPECT_EQ(evicted(cycles.next(descheduler)), Names{name});
  }
}

TEST(Cycles, APodOfTheSameNameIsReadAnew) {
  Cycles cycles;
  Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
  auto& pod = cycles.transport->lists["/api/v1/pods"][0];
  for (const char* revision : {"1", "2", "1"}) {
    json::set(pod, {"metadata", "resourceVersion"}, json::Value(revision));
    json::set(pod, {"spec", "nodeName"}, json::Value(*revision == '1' ? "old" : "new"));
    EXPECT_EQ(cycles.next(descheduler).evicted(), *revision == '1' ? 1U : 0U) << revision;
  }
}

/// As metricscollector.go has it.
TEST(Cycles, OneReadingOfUseCountsATenth) {
  Cycles cycles;
  const auto use = [&](const char* cpu) {
    cycles.transport->lists["/apis/metrics.k8s.io/v1beta1/nodes"] = {
        yaml(fmt::format("{{kind: NodeMetrics, metadata: {{name: busy}}, usage: {{cpu: {}, memory: 1Gi}}}}", cpu)),
        yaml("{kind: NodeMetrics, metadata: {name: idle}, usage: {cpu: 100m, memory: 1Gi}}")};
  };
  cycles.transport->lists["/api/v1/nodes"] = {yaml("{metadata: {name: busy}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}"),
                                              yaml("{metadata: {name: idle}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}")};
  cycles.put_pod("p", std::chrono::hours(1));
  json::set(cycles.transport->lists["/api/v1/pods"][0], {"spec", "nodeName"}, json::Value("busy"));
  cycles.transport->lists["/apis/metrics.k8s.io/v1beta1/pods"] = {
      yaml("{kind: PodMetrics, metadata: {namespace: ns, name: p}, containers: [{name: c, usage: {cpu: 200m, memory: 1Mi}}]}")};
  cycles.options.check = PlacementCheck::kOff;
  cycles.options.policy =
      *parse_policy(one_plugin("LowNodeUtilization",
                               "{thresholds: {cpu: 20}, targetThresholds: {cpu: 50}, metricsUtilization: {source: KubernetesMetrics}}",
                               "{}", "metricsProviders: [{source: KubernetesMetrics}]\n"),
                    "p");
  Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
  // 1800m are below the target of 2000m; 3400m count 160m more, then 144m: only the second is beyond.
  use("1800m");
  EXPECT_EQ(cycles.next(descheduler).evicted(), 0U);
  use("3400m");
  EXPECT_EQ(cycles.next(descheduler).evicted(), 0U) << "one reading of 3400m";
  EXPECT_EQ(cycles.next(descheduler).evicted(), 1U) << "two of them";
  // A node that was not measured for a cycle begins anew.
  cycles.transport->lists["/apis/metrics.k8s.io/v1beta1/nodes"].erase(
      cycles.transport->lists["/apis/metrics.k8s.io/v1beta1/nodes"].begin());
  EXPECT_EQ(cycles.next(descheduler).evicted(), 0U);
  use("1900m");
  EXPECT_EQ(cycles.next(descheduler).evicted(), 0U);
}

TEST(Cycles, RoomIsNotMadeWhileAnAutoscalerSaysThatNodesCome) {
  struct Case {
    const char *status, *looked;
    bool comes;
  };
  for (const Case& one : {Case{"InProgress", "2026-01-02T12:06:00Z", true}, Case{"NoActivity", "2026-01-02T12:06:00Z", false},
                          Case{"InProgress", "2026-01-02T12:04:00Z", false}, Case{"InProgress", "never", false}}) {
    Cycles cycles;
    const std::string status = fmt::format("clusterWide:\n  scaleUp: {{status: {}, lastProbeTime: '{}'}}\n", one.status, one.looked);
    cycles.transport->objects["/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"] =
        json::Value{{"data", {{"status", status}}}};
    cycles.transport->lists["/api/v1/nodes"] = {yaml("{metadata: {name: n1}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}"),
                                                yaml("{metadata: {name: n2}, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '9'}}}")};
    const auto pod = [](const char* name, const char* node, const char* cpu) {
      return yaml(fmt::format(
          "{{metadata: {{name: {0}, namespace: ns, uid: {0}, creationTimestamp: '2026-01-02T11:00:00Z', ownerReferences: [{{apiVersion: "
          "apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}}]}}, spec: {{schedulerName: default-scheduler, {1}containers: "
          "[{{name: c, image: i, resources: {{requests: {{cpu: '{2}'}}}}}}]}}, status: {{phase: {3}, conditions: [{{type: Ready, status: "
          "'True'}}, {{type: PodScheduled, status: '{4}', reason: Unschedulable}}]}}}}",
          name, *node == 0 ? "" : fmt::format("nodeName: {}, ", node), cpu, *node == 0 ? "Pending" : "Running",
          *node == 0 ? "False" : "True"));
    };
    cycles.transport->lists["/api/v1/pods"] = {pod("a", "n1", "1"), pod("b", "n1", "1"), pod("c", "n2", "2"), pod("wanting", "", "3")};
    cycles.options.policy = *parse_policy(one_plugin("Defragmentation", "{}"), "p");
    Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
    const CycleResult result = cycles.next(descheduler);
    EXPECT_EQ(result.evicted() == 0, one.comes) << one.status << " " << one.looked;
    EXPECT_EQ(std::ranges::any_of(result.notes, [](const std::string& note) { return note.find("which come first") != std::string::npos; }),
              one.comes);
  }
}

TEST(Cycles, WhoeverIsStoppedAsksForNothingMore) {
  Cycles cycles;
  auto& pods = cycles.transport->lists["/api/v1/pods"];
  for (int i = 0; i < 6; ++i) {
    pods.push_back(pods[0]);
    for (const char* field : {"name", "uid"}) json::set(pods.back(), {"metadata", field}, json::Value(fmt::format("b{}", i)));
  }
  cycles.options.most_in_flight = 1;
  Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
  cycles.transport->on_sent = [&] { descheduler.stop(); };
  EXPECT_EQ(cycles.next(descheduler).evicted(), 1U);
  EXPECT_EQ(std::ranges::count_if(cycles.transport->sent, [](const auto& one) { return one.path.ends_with("/eviction"); }), 1);
}

TEST(Cycles, EventsOfOneMomentHaveNamesOfTheirOwn) {
  Cycles cycles;
  Descheduler descheduler(cycles.transport, cycles.options, cycles.metrics);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Shell::run(descheduler).evicted(), 1U);
  std::set<std::string> names;
  for (const net::HttpRequest& request : cycles.transport->sent)
    if (request.path.ends_with("/events")) names.emplace(json::get_string(*json::parse(request.body), {"metadata", "name"}));
  EXPECT_EQ(names.size(), 3U);
  EXPECT_NE(cycles.metrics->expose().find("descheduler_loop_duration_seconds_count 3"), std::string::npos);
}

/// Who asks Prometheus shows the token of the secret that the policy names, as it is now.
TEST(Cycles, TheTokenForPrometheusIsThatOfTheSecret) {
  Cycles cycles;
  cycles.options.policy = *parse_policy(
      one_plugin(
          "LowNodeUtilization",
          "{thresholds: {MetricResource: 20}, targetThresholds: {MetricResource: 50}, metricsUtilization: {source: Prometheus, "
          "prometheus: {query: q}}}",
          "{}",
          "metricsProviders: [{source: Prometheus, prometheus: {url: 'https://127.0.0.1:1', authToken: {secretReference: {namespace: "
          "m, name: t}}}}]\n"),
      "p");
  const std::string secret = "/api/v1/namespaces/m/secrets/t";
  const auto said = [&] {
    std::string out;
    for (const StrategyRun& run : cycles.run().runs) out += run.error;
    return out;
  };
  cycles.transport->forbidden.insert(secret);
  EXPECT_EQ(said(), "unable to get secret with prometheus authentication token m/t: no");
  cycles.transport->forbidden.clear();
  for (const char* data : {"{}", "{prometheusAuthToken: ''}", "{prometheusAuthToken: '***'}", "{token: eA==}"}) {
    cycles.transport->objects[secret] = yaml(fmt::format("data: {}", data));
    EXPECT_EQ(said(), "prometheus authentication token secret m/t has no key prometheusAuthToken") << data;
  }
  cycles.transport->objects[secret] = yaml("data: {prometheusAuthToken: eA==}");
  EXPECT_NE(said().find("127.0.0.1:1"), std::string::npos) << said();
}

}  // namespace
}  // namespace berth::descheduler::test
