// Clusters through virtual days, from a seed: workloads of every kind come, change and go while nodes are lost, zones fail, the nodes are
// cut off from the control plane, taints storm, and server, controllers and scheduler die and start again (SPEC I4, D1-D6).
//
// Each seed tells a scenario of `berth simulate`. While it runs, no zone is evicted faster than its rate, and no eviction through the API
// breaks a PodDisruptionBudget. Then all is healed, time passes, and every workload is at its wanted count, no pod is an orphan, waits, or
// is on a node that is not there. That these assertions can fail is shown in tests/simulator/rest_test.cpp. A scenario that fails is
// printed: saved as a file, it runs by itself. Autoscaler, descheduler and node pressure: examples/simulate/heals.yaml.
//
//   BERTH_SIMULATION_SEEDS=500 BERTH_SIMULATION_FIRST=1000 BERTH_SIMULATION_STEPS=400 test_simulation
#include <array>
#include <numeric>
#include <set>

#include "tests/simulation/told.h"

namespace berth::simulation {
namespace {

/// What everything has come to a rest with; of a budget or a zone's rate, since the start.
constexpr const char* kAtRest = R"yaml(assert:
- {name: nothing is left lying about, that: broken.total == 0}
- {name: nobody waits, that: pods.pending == 0 && pods.starting == 0 && pods.terminating == 0}
- {name: all nodes are back, that: nodes.ready == nodes.total && nodes.cordoned == 0}
)yaml";
constexpr int kNodes = 9;
constexpr std::array<char, 3> kZones = {'a', 'b', 'c'};

class Trouble : public Told {
 public:
  Trouble(std::uint64_t seed, int steps) : Told(seed), seed_(seed) {
    for (int i = 0; i < steps; ++i) {
      step();
      now_ += below(3) == 0 ? milliseconds(below(10'000)) : milliseconds(below(600'000));
    }
    heal();
  }

  [[nodiscard]] std::string scenario() const {
    // A drain goes on for an hour; a CrashLoop's, a Job's and the garbage collector's longest wait is shorter.
    return text(
        fmt::format("duration: {}\nseed: {}\nrecord: {{every: 1h}}\nnodes: [{{name: node, count: {}, cpu: \"32\", memory: 64Gi, zones: "
                    "[zone-a, zone-b, zone-c]}}]\n{}",
                    format_go_duration(healed_ + minutes(80)), seed_, kNodes, kAtRest));
  }
  int workloads_made = 0;

 private:
  struct Workload {
    std::string kind, name;
  };
  struct Action {
    std::uint64_t weight;
    void (Trouble::*act)();
  };

  std::string a_node() { return fmt::format("node-{}", 1 + below(kNodes)); }
  Duration up_to(int most_seconds) { return seconds(1 + below(static_cast<std::uint64_t>(most_seconds))); }

  void step() {
    static constexpr std::array<Action, 18> kActions = {{{4, &Trouble::add_workload},
                                                         {2, &Trouble::scale},
                                                         {2, &Trouble::roll},
                                                         {1, &Trouble::remove_workload},
                                                         {2, &Trouble::lose_a_node},
                                                         {2, &Trouble::lose_a_zone},
                                                         {1, &Trouble::cut_nodes},
                                                         {1, &Trouble::cut_controllers},
                                                         {2, &Trouble::storm},
                                                         {2, &Trouble::cordon},
                                                         {1, &Trouble::delete_a_node},
                                                         {1, &Trouble::make_nodes},
                                                         {1, &Trouble::restart_controllers},
                                                         {2, &Trouble::restart_another},
                                                         {1, &Trouble::set_clock},
                                                         {2, &Trouble::add_budget},
                                                         {2, &Trouble::drain},
                                                         {1, &Trouble::delete_a_pod}}};
    static constexpr std::uint64_t kTotal = std::accumulate(kActions.begin(), kActions.end(), std::uint64_t{0},
                                                            [](std::uint64_t sum, const Action& a) { return sum + a.weight; });
    std::uint64_t at = below(kTotal);
    for (const Action& action : kActions) {
      if (at < action.weight) return (this->*action.act)();
      at -= action.weight;
    }
  }

  // ---- workloads

  std::string pod_template(const std::string& app, std::string_view restart_policy) {
    const char* tolerations =
        below(3) == 0 ? "tolerations: [{key: storm, operator: Exists, effect: NoExecute, tolerationSeconds: 30}], " : "";
    const char* annotations = restart_policy == "Never" ? ", annotations: {sim.berth.dev/run-for: 20s}" : "";
    return fmt::format(
        "{{metadata: {{labels: {{app: {}}}{}}}, spec: {{restartPolicy: {}, terminationGracePeriodSeconds: {}, {}containers: [{{name: c, "
        "image: nginx, resources: {{requests: {{cpu: \"{}\"}}}}}}]}}}}",
        app, annotations, restart_policy, below(3) == 0 ? 30 : 1, tolerations, below(2) == 0 ? "100m" : "500m");
  }

  void add_workload() {
    static const std::vector<std::string> kKinds = {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"};
    if (workloads_.size() > 10) return;
    const std::string kind = one_of(kKinds), name = fmt::format("w{}", ++counter_);
    const std::string selector = fmt::format("selector: {{matchLabels: {{app: {}}}}}", name);
    std::string spec;
    if (kind == "Job")
      spec = fmt::format("completions: {}, parallelism: 2, backoffLimit: 50, template: {}", 1 + below(5), pod_template(name, "Never"));
    else if (kind == "CronJob")
      spec = fmt::format("schedule: \"*/{} * * * *\", concurrencyPolicy: {}, jobTemplate: {{spec: {{backoffLimit: 50, template: {}}}}}",
                         1 + below(20), below(2) == 0 ? "Forbid" : "Allow", pod_template(name, "Never"));
    else if (kind == "DaemonSet")
      spec = fmt::format("{}, template: {}", selector, pod_template(name, "Always"));
    else if (kind == "StatefulSet")
      spec = fmt::format("replicas: {}, serviceName: none, podManagementPolicy: {}, {}, template: {}", below(5),
                         below(2) == 0 ? "Parallel" : "OrderedReady", selector, pod_template(name, "Always"));
    else
      spec = fmt::format("replicas: {}, {}, template: {}", below(8), selector, pod_template(name, "Always"));
    change(fmt::format("apply: {{apiVersion: {}, kind: {}, metadata: {{name: {}}}, spec: {{{}}}}}",
                       kind.ends_with("Job") ? "batch/v1" : "apps/v1", kind, name, spec));
    workloads_.push_back({kind, name});
    ++workloads_made;
  }
  static bool has_replicas(const Workload& one) { return one.kind.ends_with("Set") ? one.kind != "DaemonSet" : one.kind == "Deployment"; }
  void scale() {
    if (workloads_.empty()) return;
    if (const Workload& one = one_of(workloads_); has_replicas(one))
      merge(one.kind, one.name, fmt::format("{{spec: {{replicas: {}}}}}", below(9)));
  }
  void roll() {
    if (workloads_.empty()) return;
    if (const Workload& one = one_of(workloads_); !one.kind.ends_with("Job"))
      merge(one.kind, one.name, fmt::format("{{spec: {{template: {{metadata: {{annotations: {{roll: \"{}\"}}}}}}}}}}", ++counter_));
  }
  void remove_workload() {
    if (workloads_.empty()) return;
    const std::size_t i = below(workloads_.size());
    remove(workloads_[i].kind, workloads_[i].name);
    workloads_.erase(workloads_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void add_budget() {
    if (workloads_.empty() || ++budgets_ > 4) return;
    const std::string& app = one_of(workloads_).name;
    change(
        fmt::format("apply: {{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: budget{}}}, spec: {{minAvailable: {}, "
                    "selector: {{matchLabels: {{app: {}}}}}}}}}",
                    ++counter_, 1 + below(4), app));
  }
  /// Only a StatefulSet's pods have names that are known beforehand.
  void delete_a_pod() {
    for (const Workload& one : workloads_)
      if (one.kind == "StatefulSet") return remove("Pod", one.name + "-0");
  }

  // ---- machines and components

  void lose_a_node() { fault(up_to(3600), fmt::format("lose: [{}]", a_node())); }
  void lose_a_zone() { fault(up_to(1800), fmt::format("lose: {{zone: {}}}", kZones[below(kZones.size())])); }
  void cut_nodes() { fault(up_to(400), "cut: nodes"); }
  void cut_controllers() { fault(up_to(120), "cut: controllers"); }
  void storm() {
    const std::uint64_t nodes = 1 + below(3);
    const char* effect = below(3) == 0 ? "NoSchedule" : "NoExecute";
    fault(up_to(1200), fmt::format("taint: {{nodes: {}, key: storm, value: \"{}\", effect: {}}}", nodes, below(3), effect));
  }
  void cordon() { fault(up_to(1800), fmt::format("cordon: [{}]", a_node())); }
  void delete_a_node() {
    if (gone_.size() >= 2) return;
    const std::string node = a_node();
    fault(std::nullopt, fmt::format("delete: [{}]", node));
    gone_.insert(node);
  }
  /// Deleted machines are bought again, under their old names.
  void make_nodes() {
    for (const std::string& node : std::exchange(gone_, {})) {
      const int number = std::atoi(node.c_str() + 5);
      change(
          fmt::format("apply: {{apiVersion: v1, kind: Node, metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}, "
                      "topology.kubernetes.io/zone: zone-{1}, topology.kubernetes.io/region: region-1}}, annotations: "
                      "{{sim.berth.dev/fleet: default, sim.berth.dev/capacity: \"cpu=32,memory=64Gi,pods=110\"}}}}}}",
                      node, kZones[static_cast<std::size_t>(number - 1) % kZones.size()]));
    }
  }
  void restart_controllers() { fault(up_to(90), "restart: controllers"); }
  void restart_another() { fault(up_to(60), below(2) == 0 ? "restart: scheduler" : "restart: server"); }
  /// A machine whose clock is wrong takes the controllers over, for a while or for good.
  void set_clock() {
    const int by = static_cast<int>(below(600)) - 300;
    fault(below(2) == 0 ? std::optional<Duration>(up_to(1800)) : std::nullopt,
          fmt::format("clock: {{component: controllers, by: \"{}{}s\"}}", by < 0 ? "" : "+", by));
  }
  void drain() {
    const std::string node = a_node();
    change(fmt::format("drain: [{}]", node));
  }

  void heal() {
    healed_ = now_;
    // Now and then what was sold is gone for good.
    if (below(3) != 0) make_nodes();
    std::string all;
    for (int i = 1; i <= kNodes; ++i)
      if (const std::string node = fmt::format("node-{}", i); !gone_.contains(node)) all += (all.empty() ? "" : ", ") + node;
    now_ += seconds(2);
    change(fmt::format("uncordon: [{}]", all));
    // No new runs of what runs by the clock, so that the end is one.
    for (const Workload& one : workloads_)
      if (one.kind == "CronJob") merge(one.kind, one.name, "{spec: {suspend: true}}");
  }

  std::uint64_t seed_;
  std::vector<Workload> workloads_;
  std::set<std::string> gone_;
  int counter_ = 0, budgets_ = 0;
};

/// What `broken` says nothing of: Jobs that should have come to an end.
void look_at_jobs(simulator::Cluster& cluster) {
  for (const char* plural : {"jobs", "cronjobs"}) {
    const auto page = cluster.client().list_and_wait(model::find_resource("batch", plural)->gvr(), "default", {});
    ASSERT_TRUE(page) << plural;
    for (const json::Value& object : page->items) {
      const auto status = [&](const char* field) { return json::get_int(object, {"status", field}); };
      const bool is_idle = std::string_view(plural) == "jobs" ? status("active") == 0 && status("terminating") == 0
                                                              : json::get_array(object, {"status", "active"}).empty();
      EXPECT_TRUE(is_idle) << "still at work: " << json::serialize(object);
      if (std::string_view(plural) == "jobs" && status("failed") <= 50) {
        EXPECT_EQ(status("succeeded"), json::get_int(object, {"spec", "completions"}, 1)) << json::serialize(object);
      }
    }
  }
}

TEST(Simulation, AClusterHealsAfterDaysOfTrouble) {
  log::set_level(log::Level::kError);  // What is cut off says so, again and again.
  const int first = setting("BERTH_SIMULATION_FIRST", 1), seeds = setting("BERTH_SIMULATION_SEEDS", 3),
            steps = setting("BERTH_SIMULATION_STEPS", 60);
  std::int64_t by_api = 0, by_taint = 0;
  int workloads = 0;
  for (int seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    const Trouble trouble(static_cast<std::uint64_t>(seed), steps);
    const simulator::Scenario scenario = scenario_of(trouble.scenario());
    simulator::RunOptions options;
    options.on_cluster = [&](simulator::Cluster& cluster) {
      cluster.loop().schedule_at(scenario.start + scenario.duration - seconds(1), [&cluster] { look_at_jobs(cluster); });
    };
    const auto outcome = simulator::run(scenario, options);
    ASSERT_TRUE(outcome) << outcome.error().message;
    if (!outcome->failures.empty() || HasFailure())
      ADD_FAILURE() << fmt::format("BERTH_SIMULATION_FIRST={} BERTH_SIMULATION_SEEDS=1 BERTH_SIMULATION_STEPS={}\n", seed, steps)
                    << to_text(*outcome) << trouble.scenario();
    workloads += trouble.workloads_made;
    for (const auto& [cause, count] : outcome->samples.back().evictions) (cause == "api" ? by_api : by_taint) += count;
  }
  if (seeds >= 3 && steps >= 60 && !HasFailure()) {
    EXPECT_GT(workloads, 0);
    EXPECT_GT(by_taint, 0) << "no node was ever evicted: the story tells nothing";
    EXPECT_GT(by_api, 0);
  }
}

}  // namespace
}  // namespace berth::simulation
