// Preemption on the engine alone: scheduler_perf's PreemptionBasic, and single decisions on a full cluster of 100,000 nodes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "bench/bench.h"
#include "placement/plugin_of.h"
#include "placement/preemptor.h"
#include "tests/support/stored_pods.h"

namespace berth::bench {
namespace {

using namespace placement;

model::NodeViewPtr make_node(std::size_t i, std::int64_t cpu, std::int64_t memory_gib) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = fmt::format("node-{:06}", i);
  out->allocatable = {{"cpu", model::Quantity::from_value(cpu)},
                      {"memory", model::Quantity::from_value(memory_gib << 30)},
                      {"pods", model::Quantity::from_value(110)}};
  return out;
}

/// Whatever pod, as an API server stores it.
model::PodView stored(model::PodView pod) {
  static testing::StoredPods pods;
  const std::string name = pod.meta.name;
  return pods.error().empty() ? pods.bare(std::move(pod), name) : pod;
}

PodInfoPtr make_pod(const std::string& name, std::int64_t cpu_milli, std::int64_t memory_mib, std::int64_t priority, std::int64_t minute) {
  auto out = std::make_shared<model::PodView>();
  out->meta.ns = "default";
  out->meta.name = name;
  out->priority = priority;
  out->start_time = fmt::format("2026-01-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440 % 28, minute / 60 % 24, minute % 60);
  model::ContainerView container;
  container.requests = {{"cpu", model::Quantity::from_milli(cpu_milli)}, {"memory", model::Quantity::from_value(memory_mib << 20)}};
  out->containers.push_back(std::move(container));
  *out = stored(std::move(*out));
  return PodInfo::make(std::move(out), Era::k136);
}

/// Processor time of this thread, in milliseconds: what a decision costs when the machine has other work too.
double preemption_cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// What single decisions cost: the first of a kind apart from the others.
class Costs {
 public:
  void add(const std::string& kind, double ms) { (seen_.insert(kind).second ? first_ : later_).push_back(ms); }
  void put(json::Object& out) {
    std::ranges::sort(later_);
    const auto at = [&](std::size_t part) { return later_.empty() ? 0 : later_[(later_.size() - 1) * part / 1000]; };
    out["p50_ms"] = at(500);
    out["p99_ms"] = at(990);
    out["p999_ms"] = at(999);
    out["kinds"] = first_.size();
    out["first_of_kind_max_ms"] = first_.empty() ? 0 : std::ranges::max(first_);
  }

 private:
  std::set<std::string> seen_;
  std::vector<double> first_, later_;
};

/// 5,000 nodes of 4 CPUs, 20,000 low pods of 900m, then 5,000 pods of priority 10 that ask 3 CPUs: each evicts three.
json::Object preemption_basic(const Options& options) {
  const auto node_count = static_cast<std::size_t>(5000 * options.scale);
  auto framework = *Framework::create(default_profile(Era::k136));
  Cluster cluster;
  for (std::size_t i = 0; i < node_count; ++i) cluster.upsert_node(make_node(i, 4, 32));
  for (std::size_t i = 0; i < node_count * 4; ++i)
    cluster.assume(make_pod(fmt::format("low-{}", i), 900, 500, 0, static_cast<std::int64_t>(i)),
                   NodeIndex{static_cast<std::uint32_t>(i / 4)});
  std::vector<PodInfoPtr> high;
  for (std::size_t i = 0; i < node_count; ++i) high.push_back(make_pod(fmt::format("high-{}", i), 3000, 500, 10, 0));
  Engine engine(cluster, {.seed = options.seed});
  Preemptor preemptor(cluster);
  std::size_t placed = 0, victims = 0;
  const double start = now_seconds();
  for (const auto& pod : high) {
    const auto decision = engine.schedule(framework, pod);
    if (decision.outcome == Decision::Outcome::kScheduled) {
      cluster.assume(pod, decision.node);
      ++placed;
      continue;
    }
    const auto result = preemptor.find(framework, pod);
    if (result.choice() == nullptr) return {{"error", "a preemptor found no room"}};
    for (const auto& victim : result.choice()->victims) cluster.remove_pod(victim->key);
    victims += result.choice()->victims.size();
    cluster.assume(pod, result.choice()->node);
    ++placed;
  }
  const double seconds = now_seconds() - start;
  return {{"nodes", node_count}, {"pods", placed}, {"victims", victims}, {"seconds", seconds}};
}

/// 100,000 full nodes with 30 pods each of mixed sizes and priorities; 10,000 decisions of eight kinds of preemptor, each carried out.
json::Object preemption_full(const Options& options) {
  const auto node_count = static_cast<std::size_t>(100'000 * options.scale);
  auto framework = *Framework::create(default_profile(Era::k136));
  Cluster cluster;
  std::uint64_t random = options.seed * 0x9e3779b97f4a7c15ULL + 1;
  const auto below = [&](std::uint64_t n) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return static_cast<std::int64_t>(random % n);
  };
  for (std::size_t i = 0; i < node_count; ++i) {
    const auto index = cluster.upsert_node(make_node(i, 31, 120));
    for (int k = 0; k < 30; ++k)
      cluster.assume(make_pod(fmt::format("p-{}-{}", i, k), 800 + 100 * below(5), 3500, below(5) * 100, below(40'000)), index);
  }
  Costs costs;
  Preemptor preemptor(cluster);
  const double built_from = preemption_cpu_ms();
  (void)preemptor.find(framework, make_pod("warm-up", 500, 100, 1, 0));
  const double build_ms = preemption_cpu_ms() - built_from;
  std::size_t found = 0;
  const std::size_t decisions = 10'000;
  for (std::size_t i = 0; i < decisions; ++i) {
    const std::int64_t cpu = 2500 + 500 * below(4), priority = below(2) == 0 ? 250 : 1000;
    const auto pod = make_pod(fmt::format("high-{}", i), cpu, 4000, priority, 0);
    const double start = preemption_cpu_ms();
    const auto result = preemptor.find(framework, pod);
    costs.add(fmt::format("{} {}", cpu, priority), preemption_cpu_ms() - start);
    if (result.choice() == nullptr) continue;
    ++found;
    for (const auto& victim : result.choice()->victims) cluster.remove_pod(victim->key);
    cluster.assume(pod, result.choice()->node);
  }
  json::Object out{{"nodes", node_count},
                   {"running_pods", cluster.pod_count()},
                   {"decisions", decisions},
                   {"found", found},
                   {"index_build_ms", build_ms},
                   {"index_bytes_per_pod",
                    static_cast<double>(preemptor.memory_bytes()) / static_cast<double>(std::max<std::size_t>(cluster.pod_count(), 1))}};
  costs.put(out);
  return out;
}

/// The same cluster as its users see it: racks and zones, tainted and labelled nodes, GPUs on every tenth, host ports, pods that keep
/// others of their kind away, a hundred pods an app, and a budget for every thirtieth app whose allowance changes with every eviction.
/// Sixteen kinds of preemptor in turn.
// Longer than a screen: one scenario, from its cluster to its figures.
json::Object preemption_mixed(const Options& options) {
  const auto node_count = static_cast<std::size_t>(100'000 * options.scale);
  auto framework = *Framework::create(default_profile(Era::k136));
  Cluster cluster;
  std::uint64_t random = options.seed * 0x9e3779b97f4a7c15ULL + 1;
  const auto below = [&](std::uint64_t n) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    return static_cast<std::int64_t>(random % n);
  };
  const auto labels = [](std::vector<std::pair<std::string, std::string>> pairs) { return model::Labels(std::move(pairs)); };
  constexpr int kApps = 30'000, kBudgets = 1000;
  for (std::size_t i = 0; i < node_count; ++i) {
    auto node = std::make_shared<model::NodeView>(*make_node(i, 31, 120));
    node->meta.labels = labels({{"disk", i % 3 == 0 ? "hdd" : "ssd"},
                                {"kubernetes.io/hostname", node->meta.name},
                                {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % 3)}});
    if (i % 10 == 0) node->allocatable.emplace_back("nvidia.com/gpu", model::Quantity::from_value(4));
    if (i % 20 == 0) node->taints.push_back({"dedicated", "batch", "NoSchedule"});
    const auto index = cluster.upsert_node(std::move(node));
    for (int k = 0; k < 30; ++k) {
      auto pod = std::make_shared<model::PodView>(
          make_pod(fmt::format("p-{}-{}", i, k), 800 + 100 * below(5), 3500, below(5) * 100, below(40'000))->view());
      pod->meta.labels = labels({{"app", fmt::format("app-{}", below(kApps))}});
      if (i % 10 == 0 && k % 8 == 0)
        pod->containers.change_at(0, [&](auto& one) { one.requests.emplace_back("nvidia.com/gpu", model::Quantity::from_value(1)); });
      if (k == 7) pod->containers.change_at(0, [&](auto& one) { one.host_ports = {{9100, "TCP", "0.0.0.0"}}; });
      if (k == 9) {
        model::PodAffinityTerm term;
        term.topology_key = "kubernetes.io/hostname";
        term.selector = model::Selector({{"app", model::Requirement::Op::kIn, {fmt::format("app-{}", i % kApps)}}});
        pod->required_anti_affinity = {term};
      }
      cluster.assume(PodInfo::make(std::move(pod), Era::k136), index);
    }
  }
  const auto set_budget = [&](int app, std::int64_t allowed) {
    auto budget = std::make_shared<model::PodDisruptionBudgetView>();
    budget->meta.ns = "default";
    budget->meta.name = fmt::format("app-{}", app);
    budget->selector = model::Selector({{"app", model::Requirement::Op::kIn, {fmt::format("app-{}", app)}}});
    budget->disruptions_allowed = allowed;
    cluster.upsert(std::shared_ptr<const model::PodDisruptionBudgetView>(std::move(budget)));
  };
  for (int app = 0; app < kBudgets; ++app) set_budget(app, below(3));
  const auto kind_of = [&](std::size_t kind) {
    auto pod = std::make_shared<model::PodView>(
        make_pod("", 2500 + 500 * static_cast<std::int64_t>(kind % 4), 4000, kind % 2 == 0 ? 250 : 1000, 0)->view());
    pod->meta.labels = labels({{"app", fmt::format("app-{}", kind)}});
    if (kind % 3 == 0) pod->node_selector = {{"disk", "ssd"}};
    if (kind % 4 == 0) pod->tolerations.push_back({"dedicated", "Exists", "", "", {}});
    if (kind % 5 == 0)
      pod->containers.change_at(0, [&](auto& one) { one.requests.emplace_back("nvidia.com/gpu", model::Quantity::from_value(2)); });
    if (kind % 5 == 1) pod->containers.change_at(0, [&](auto& one) { one.host_ports = {{9100, "TCP", "0.0.0.0"}}; });
    if (kind % 5 == 2) {
      model::PodAffinityTerm term;
      term.topology_key = "kubernetes.io/hostname";
      term.selector = model::Selector({{"app", model::Requirement::Op::kIn, {fmt::format("app-{}", kind)}}});
      pod->required_anti_affinity = {term};
    }
    return pod;
  };
  Costs costs;
  Preemptor preemptor(cluster);
  (void)preemptor.find(framework, make_pod("warm-up", 500, 100, 1, 0));
  std::size_t found = 0, fast = 0, violations = 0;
  const std::size_t decisions = 10'000;
  for (std::size_t i = 0; i < decisions; ++i) {
    auto view = kind_of(i % 16);
    view->meta.name = fmt::format("high-{}", i);
    const auto pod = PodInfo::make(std::move(view), Era::k136);
    const double start = preemption_cpu_ms();
    const auto result = preemptor.find(framework, pod);
    costs.add(std::to_string(i % 16), preemption_cpu_ms() - start);
    fast += preemptor.was_fast();
    if (result.choice() == nullptr) continue;
    ++found;
    violations += result.choice()->budget_violations;
    for (const auto& victim : result.choice()->victims) {
      const auto& app = *victim->view().meta.labels.get("app");
      cluster.remove_pod(victim->key);
      // As the disruption controller does after an eviction, and when the pod's successor runs.
      if (const int number = std::stoi(app.substr(4)); number < kBudgets) set_budget(number, below(3));
    }
    cluster.assume(pod, result.choice()->node);
  }
  json::Object out{{"nodes", node_count},
                   {"running_pods", cluster.pod_count()},
                   {"decisions", decisions},
                   {"found", found},
                   {"indexed", fast},
                   {"budget_violations", violations},
                   {"index_bytes_per_pod",
                    static_cast<double>(preemptor.memory_bytes()) / static_cast<double>(std::max<std::size_t>(cluster.pod_count(), 1))}};
  costs.put(out);
  return out;
}

/// A filter of one's own that goes by the node and what is on it (docs/plugins.md): few red pods a node.
class FewRed final : public PluginOf<FewRed> {
 public:
  std::string_view name() const override { return "FewRed"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.labels(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (!is_red(pod)) return Status::success();
    const bool few = std::ranges::none_of(node.pods, [](const auto& other) { return is_red(*other); });
    return few ? Status::success() : Status::unschedulable("node(s) had a red pod");
  }

 private:
  static bool is_red(const PodInfo& pod) {
    const auto* color = pod.view().meta.labels.get("color");
    return color != nullptr && *color == "red";
  }
};

void set_color(model::PodView& pod, const char* name) {
  pod.meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"color", name}});
}

/// Full nodes of ten pods in three zones; the first pod of each node has its zone's color. And a bound claim.
void color_zones(Cluster& cluster, std::size_t node_count) {
  constexpr const char* kColors[] = {"red", "green", "blue"};
  for (std::size_t i = 0; i < node_count; ++i) {
    auto node = std::make_shared<model::NodeView>(*make_node(i, 31, 120));
    node->meta.labels =
        model::Labels({{"kubernetes.io/hostname", node->meta.name}, {"topology.kubernetes.io/zone", fmt::format("zone-{}", i % 3)}});
    const auto index = cluster.upsert_node(std::move(node));
    for (int k = 0; k < 10; ++k) {
      auto pod =
          std::make_shared<model::PodView>(make_pod(fmt::format("p-{}-{}", i, k), 3000, 11'000, 0, static_cast<std::int64_t>(i))->view());
      if (k == 0) set_color(*pod, kColors[i % 3]);
      cluster.assume(PodInfo::make(std::move(pod), Era::k136), index);
    }
  }
  auto volume = std::make_shared<model::PersistentVolumeView>();
  volume->meta.name = volume->csi_handle = "disk";
  volume->csi_driver = "disks.example.org";
  volume->has_claim_ref = true;
  volume->claim_namespace = "default";
  volume->claim_name = volume->claim_uid = "disk";
  volume->phase = "Bound";
  auto claim = std::make_shared<model::PersistentVolumeClaimView>();
  claim->meta.ns = "default";
  claim->meta.name = claim->meta.uid = claim->volume_name = "disk";
  claim->meta.annotations = {{"pv.kubernetes.io/bind-completed", "yes"}};
  claim->phase = "Bound";
  volume->access_modes = claim->access_modes = {"ReadWriteMany"};
  cluster.upsert(std::move(volume));
  cluster.upsert(std::move(claim));
}

constexpr const char* kDomainKinds[] = {"indexed",    "hard_spread", "required_affinity", "zone_anti_affinity", "claim",
                                        "own_filter", "devices"};

/// A device on each node, and a claim of one for the pod.
void add_devices(Cluster& cluster, std::size_t node_count) {
  (void)cluster.upsert(json::Object{{"kind", "DeviceClass"}, {"metadata", {{"name", "gpu"}}}, {"spec", json::Object()}});
  for (std::size_t i = 0; i < node_count; ++i) {
    const std::string node = fmt::format("node-{:06}", i);
    (void)cluster.upsert(json::Object{{"kind", "ResourceSlice"},
                                      {"metadata", {{"name", node}}},
                                      {"spec",
                                       {{"driver", "gpu.example.com"},
                                        {"nodeName", node},
                                        {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
                                        {"devices", json::Array{json::Object{{"name", "gpu-0"}}}}}}});
  }
}
void add_device_claim(Cluster& cluster, const std::string& name) {
  const json::Object exactly{{"deviceClassName", "gpu"}, {"allocationMode", "ExactCount"}, {"count", 1}};
  (void)cluster.upsert(
      json::Object{{"kind", "ResourceClaim"},
                   {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
                   {"spec", {{"devices", {{"requests", json::Array{json::Object{{"name", "r"}, {"exactly", exactly}}}}}}}}});
}

/// A preemptor that wants more of its domains than of its node.
PodInfoPtr domain_preemptor(const std::string& kind, const std::string& name, std::int64_t max_skew) {
  auto pod = std::make_shared<model::PodView>(make_pod(name, 3000, 4000, 1000, 0)->view());
  model::PodAffinityTerm term;
  term.topology_key = "topology.kubernetes.io/zone";
  term.selector = model::Selector({{"color", model::Requirement::Op::kIn, {"red"}}});
  if (kind == "hard_spread") {
    set_color(*pod, "red");
    model::TopologySpreadConstraint constraint;
    constraint.topology_key = term.topology_key;
    constraint.is_hard = true;
    constraint.selector = term.selector;
    constraint.max_skew = max_skew;
    pod->spread_constraints.push_back(std::move(constraint));
  }
  if (kind == "required_affinity") pod->required_affinity = {term};
  if (kind == "zone_anti_affinity") pod->required_anti_affinity = {term};
  if (kind == "own_filter") set_color(*pod, "red");
  if (kind == "devices") pod->resource_claims.push_back({.name = "gpu", .claim_name = name});
  if (kind == "claim") {
    model::VolumeView mount;
    mount.kind = model::VolumeView::Kind::kPersistentVolumeClaim;
    mount.name = "data";
    mount.id = "disk";
    pod->volumes.push_back(std::move(mount));
  }
  return PodInfo::make(std::move(pod), Era::k136);
}

Result<PluginPtr> make_few_red(const Profile&) { return std::make_unique<FewRed>(); }
FrameworkPtr framework_for(const std::string& kind) {
  static const PluginRegistration few_red{"FewRed", make_few_red};
  Profile profile = default_profile(Era::k136);
  if (kind == "own_filter") profile.filter.push_back({"FewRed", 0});
  return *Framework::create(profile, std::span(&few_red, 1));
}

/// Pods whose place depends on more than a node, in a cluster that nobody changes: the median of five decisions, the first of which
/// learns the kind.
json::Object preemption_plain(const Options& options) {
  const auto node_count = std::max<std::size_t>(6, static_cast<std::size_t>(20'000 * options.scale));
  Cluster cluster;
  color_zones(cluster, node_count);
  json::Object out{{"nodes", node_count}, {"running_pods", cluster.pod_count()}};
  Preemptor preemptor(cluster);
  for (const std::string kind : kDomainKinds) {
    const FrameworkPtr framework = framework_for(kind);
    std::vector<double> ms;
    if (kind == "devices") add_devices(cluster, node_count);
    for (int i = 0; i < 5; ++i) {
      const auto pod = domain_preemptor(kind, fmt::format("{}-{}", kind, i), static_cast<std::int64_t>(node_count));
      if (kind == "devices") add_device_claim(cluster, pod->view().meta.name);
      const double start = preemption_cpu_ms();
      const auto result = preemptor.find(framework, pod);
      ms.push_back(preemption_cpu_ms() - start);
      if (result.choice() == nullptr) out["error"] = kind + " found no room: " + result.status.message();
    }
    out[kind + "_first_ms"] = ms[0];
    std::ranges::sort(ms);
    out[kind + "_ms"] = ms[ms.size() / 2];
    if (!preemptor.was_fast()) out[kind + "_form"] = "plain";
  }
  return out;
}

/// The same, each decision carried out: victims go and the pod comes, so that counts of its domains change every time, with a skew that
/// is reached again and again.
json::Object preemption_domains(const Options& options) {
  const auto node_count = std::max<std::size_t>(6, static_cast<std::size_t>(20'000 * options.scale));
  json::Object out{{"nodes", node_count}};
  for (const std::string kind : kDomainKinds) {
    Cluster cluster;
    color_zones(cluster, node_count);
    Preemptor preemptor(cluster);
    const FrameworkPtr framework = framework_for(kind);
    if (kind == "devices") add_devices(cluster, node_count);
    std::vector<double> ms;
    std::size_t fast = 0;
    constexpr int kDecisions = 200;
    for (int i = 0; i <= kDecisions; ++i) {
      const auto pod = domain_preemptor(kind, fmt::format("{}-{}", kind, i), 10);
      if (kind == "devices") add_device_claim(cluster, pod->view().meta.name);
      const double start = preemption_cpu_ms();
      const auto result = preemptor.find(framework, pod);
      if (i > 0) ms.push_back(preemption_cpu_ms() - start);
      fast += preemptor.was_fast();
      if (result.choice() == nullptr) {
        out["error"] = kind + " found no room: " + result.status.message();
        break;
      }
      for (const auto& victim : result.choice()->victims) cluster.remove_pod(victim->key);
      cluster.assume(pod, result.choice()->node);
    }
    std::ranges::sort(ms);
    if (ms.empty()) continue;
    out[kind + "_p50_ms"] = ms[ms.size() / 2];
    out[kind + "_max_ms"] = ms.back();
    if (fast != ms.size() + 1) out[kind + "_plain"] = ms.size() + 1 - fast;
  }
  return out;
}

const Register kPlain({"PreemptionPlain/20000Nodes",
                       "what a decision costs for pods whose place depends on more than a node, beside one whose does not; processor time",
                       preemption_plain});
const Register kDomains({"PreemptionDomains/20000Nodes", "the same with each decision carried out; processor time", preemption_domains});
const Register kMixed({"PreemptionMixed/100000Nodes",
                       "the same with zones, taints, GPUs, host ports, anti-affinity and disruption budgets that change; sixteen kinds of "
                       "preemptor, each seen for the first time once",
                       preemption_mixed});
const Register kBasic(
    {"PreemptionBasic/5000Nodes",
     "5,000 preemptors on 5,000 nodes with 20,000 low pods, engine alone: the failed attempt, the choice of node and victims, "
     "their removal, the placement; every node considered",
     preemption_basic});
const Register kBasicSmall({"PreemptionBasic/500Nodes", "the same with 500 nodes", [](const Options& options) {
                              Options small = options;
                              small.scale *= 0.1;
                              return preemption_basic(small);
                            }});
const Register kFull(
    {"PreemptionFull/100000Nodes",
     "single preemption decisions on 100,000 full nodes with 3,000,000 pods, engine alone; a kind of preemptor seen for the first "
     "time ranks every node, later ones only what changed; processor time",
     preemption_full});

}  // namespace
}  // namespace berth::bench
