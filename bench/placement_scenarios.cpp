// The placement engine alone, one core: issue 3's speed table. Nodes and pods are those of Kubernetes' scheduler_perf: a node has 4 CPU,
// 32 GiB and room for 110 pods; a pod asks for 100m and 500 MiB. Every node is considered for every pod. A figure includes, per pod: the
// decision (signature, class lookup, catching up, choice) and counting the pod on its node, as the scheduler commits it; not: parsing the
// pod, the queue, the API. Pods are as an API server stores them: token volume, default tolerations, and of workloads owner and labels.
#include <fmt/format.h>

#include <ctime>

#include "bench/bench.h"
#include "model/views/node_view.h"
#include "model/views/pod_view.h"
#include "model/views/storage_views.h"
#include "model/views/workload_views.h"
#include "placement/trial.h"
#include "tests/support/stored_pods.h"

namespace berth::bench {
namespace {

using namespace placement;
using model::Quantity;

constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kHostname = "kubernetes.io/hostname";

model::NodeViewPtr make_node(std::size_t i, const std::vector<std::string>& zones) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = fmt::format("scheduler-perf-{:07}", i);
  std::vector<std::pair<std::string, std::string>> labels{{kHostname, out->meta.name}};
  if (!zones.empty()) labels.emplace_back(kZone, zones[i % zones.size()]);
  out->meta.labels = model::Labels(std::move(labels));
  out->allocatable = {{"cpu", Quantity::from_value(4)}, {"memory", Quantity::from_value(32LL << 30)}, {"pods", Quantity::from_value(110)}};
  return out;
}

model::PodView base_pod(std::string ns) {
  model::PodView out;
  out.meta.ns = std::move(ns);
  out.scheduler_name = "default-scheduler";
  model::ContainerView container;
  container.name = "pause";
  container.image = "registry.k8s.io/pause:3.10";
  container.requests = {{"cpu", Quantity::from_milli(100)}, {"memory", Quantity::from_value(500LL << 20)}};
  container.limits = container.requests;
  out.containers.push_back(std::move(container));
  return out;
}

model::PodView colored(model::PodView pod, const char* color) {
  pod.meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"color", color}});
  return pod;
}

model::PodAffinityTerm color_term(const char* color, const char* key) {
  model::PodAffinityTerm out;
  out.selector = model::Selector({{"color", model::Requirement::Op::kIn, {color}}});
  out.topology_key = key;
  out.namespaces = {"sched-0", "sched-1"};
  return out;
}

model::PodView default_pod() { return base_pod("default"); }
model::PodView affinity_pod(std::string ns) {
  auto out = colored(base_pod(std::move(ns)), "blue");
  out.required_affinity = {color_term("blue", kZone)};
  return out;
}
model::PodView anti_affinity_pod(std::string ns) {
  auto out = colored(base_pod(std::move(ns)), "green");
  out.required_anti_affinity = {color_term("green", kHostname)};
  return out;
}
model::PodView preferred_affinity_pod(std::string ns) {
  auto out = colored(base_pod(std::move(ns)), "red");
  out.preferred_affinity = {{1, color_term("red", kHostname)}};
  return out;
}
model::PodView preferred_anti_affinity_pod(std::string ns) {
  auto out = colored(base_pod(std::move(ns)), "yellow");
  out.preferred_anti_affinity = {{1, color_term("yellow", kHostname)}};
  return out;
}
model::PodView node_affinity_pod() {
  auto out = default_pod();
  model::NodeSelectorTerm term;
  term.expressions.push_back({kZone, model::Requirement::Op::kIn, {"zone1", "zone2"}});
  out.node_affinity.required = model::NodeSelector{{term}};
  return out;
}
model::PodView spreading_pod(bool hard) {
  auto out = colored(default_pod(), "blue");
  model::TopologySpreadConstraint constraint;
  constraint.max_skew = 5;
  constraint.topology_key = kZone;
  constraint.is_hard = hard;
  constraint.selector = model::Selector({{"color", model::Requirement::Op::kIn, {"blue"}}});
  out.spread_constraints.push_back(std::move(constraint));
  return out;
}
model::PodView large_pod() {
  auto out = default_pod();
  out.priority = 10;
  out.containers.change_at(0, [&](auto& one) {
    one.requests = {{"cpu", Quantity::from_value(9)}, {"memory", Quantity::from_value(500LL << 20)}};
  });
  return out;
}

/// Processor time of this process: what "one core" costs when the machine has other work too.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Whose the pods are. A Deployment makes those of one namespace and labels; its ReplicaSet is in the cluster, so that they are spread over
/// nodes and zones by default. Each Job has one pod.
enum class Source : std::uint8_t { kBare, kDeployments, kJobs };

/// A cluster with an engine; places pods and keeps the time of what is measured.
class Bench {
 public:
  Bench(std::size_t nodes, const std::vector<std::string>& zones, std::uint64_t seed, Source source = Source::kBare)
      : stored_(seed), source_(source), error_(stored_.error()) {
    auto framework = Framework::create(default_profile(Era::k136));
    if (framework)
      trial_.emplace(cluster_, *framework, TrialOptions{.engine = {.seed = seed}, .preemption = {}});
    else
      error_ = framework.error().message;
    for (std::size_t i = 0; i < nodes; ++i) cluster_.upsert_node(make_node(i, zones));
  }

  Cluster& cluster() { return cluster_; }
  PodInfoPtr make(const model::PodView& kind) {
    const std::string name = fmt::format("pod-{:07}", next_++);
    if (source_ == Source::kBare) return info(stored_.bare(kind, name));
    if (source_ == Source::kJobs) return info(stored_.of_job(kind, name));
    std::string owner = kind.meta.ns;
    for (const auto& [key, value] : kind.meta.labels.pairs()) owner += "-" + value;
    if (known_.insert(owner).second) cluster_.upsert(stored_.replica_set(kind, owner));
    return info(stored_.of_deployment(kind, owner));
  }
  /// Decides, reserves and counts; false when nothing fits.
  bool place(const PodInfoPtr& pod) {
    const Decision decision = trial_->decide(pod);
    if (decision.outcome != Decision::Outcome::kScheduled) return false;
    const auto reserved = trial_->reserve(pod, decision.node);
    if (!reserved) return false;
    if (!pod->view().volumes.empty()) (void)reserved->pre_bind(cluster_);
    return true;
  }
  void place_many(const model::PodView& kind, std::size_t count) {
    for (std::size_t i = 0; i < count && error_.empty(); ++i)
      if (!place(make(kind))) error_ = "a pod of the set-up found no node";
  }
  /// The measured part: pods are made in batches outside the clock; `between` runs inside it before each pod.
  json::Object measure(const model::PodView& kind, std::size_t count, const std::function<void(std::size_t)>& between = {}) {
    std::vector<PodInfoPtr> batch;
    for (std::size_t done = 0; done < count && error_.empty();) {
      batch.clear();
      for (std::size_t i = done; i < std::min(count, done + 10'000); ++i) batch.push_back(make(kind));
      const double start = now_seconds();
      const double cpu_start = cpu_seconds();
      for (const auto& pod : batch) {
        if (between) between(done);
        if (!place(pod)) error_ = "a measured pod found no node";
        ++done;
      }
      seconds_ += now_seconds() - start;
      cpu_ += cpu_seconds() - cpu_start;
    }
    json::Object out{
        {"pods", count}, {"seconds", seconds_}, {"cpu_seconds", cpu_}, {"nodes", cluster_.node_count()}, {"columns_mb", columns_mb()}};
    if (!error_.empty()) out["error"] = error_;
    return out;
  }
  const std::string& error() const { return error_; }
  double columns_mb() const { return std::round(static_cast<double>(trial_->memory_bytes()) / (1 << 20)); }

 private:
  static PodInfoPtr info(model::PodView view) { return PodInfo::make(std::make_shared<const model::PodView>(std::move(view)), Era::k136); }

  testing::StoredPods stored_;
  Source source_;
  Cluster cluster_;
  std::optional<Trial> trial_;
  std::set<std::string> known_;  ///< Deployments whose ReplicaSets are in the cluster.
  std::size_t next_ = 0;
  double seconds_ = 0, cpu_ = 0;
  std::string error_;
};

using Run = std::function<json::Object(std::size_t nodes, double scale, std::uint64_t seed)>;

std::size_t scaled(double count, double scale) { return std::max<std::size_t>(1, static_cast<std::size_t>(count * scale)); }

json::Object basic(std::size_t nodes, double scale, std::uint64_t seed, Source source) {
  Bench bench(nodes, {}, seed, source);
  bench.place_many(default_pod(), scaled(static_cast<double>(nodes) / 5, scale));
  return bench.measure(default_pod(), scaled(10.0 * static_cast<double>(nodes), scale));
}
json::Object node_affinity(std::size_t nodes, double scale, std::uint64_t seed, Source source) {
  Bench bench(nodes, {"zone1"}, seed, source);
  bench.place_many(node_affinity_pod(), scaled(static_cast<double>(nodes), scale));
  return bench.measure(node_affinity_pod(), scaled(10.0 * static_cast<double>(nodes), scale));
}
json::Object spreading(std::size_t nodes, double scale, std::uint64_t seed, Source source, bool hard) {
  Bench bench(nodes, {"moon-1", "moon-2", "moon-3"}, seed, source);
  bench.place_many(default_pod(), scaled(static_cast<double>(nodes), scale));
  return bench.measure(spreading_pod(hard), scaled(10.0 * static_cast<double>(nodes), scale));
}
json::Object anti_affinity(std::size_t nodes, double scale, std::uint64_t seed, Source source) {
  Bench bench(nodes, {}, seed, source);
  bench.place_many(anti_affinity_pod("sched-0"), scaled(static_cast<double>(nodes) / 5, scale));
  return bench.measure(anti_affinity_pod("sched-1"), scaled(static_cast<double>(nodes) * 0.7, scale));
}
json::Object pod_affinity(std::size_t nodes, double scale, std::uint64_t seed, Source source) {
  Bench bench(nodes, {"zone1"}, seed, source);
  bench.place_many(affinity_pod("sched-0"), scaled(static_cast<double>(nodes), scale));
  return bench.measure(affinity_pod("sched-1"), scaled(10.0 * static_cast<double>(nodes), scale));
}
json::Object preferred_affinity(std::size_t nodes, double scale, std::uint64_t seed, Source source) {
  Bench bench(nodes, {}, seed, source);
  bench.place_many(preferred_affinity_pod("sched-0"), scaled(static_cast<double>(nodes), scale));
  return bench.measure(preferred_affinity_pod("sched-1"), scaled(10.0 * static_cast<double>(nodes), scale));
}
json::Object mixed_base(std::size_t nodes, double scale, std::uint64_t seed, Source source) {
  Bench bench(nodes, {"zone1"}, seed, source);
  const std::size_t each = scaled(static_cast<double>(nodes) * 0.4, scale);
  bench.place_many(base_pod("sched-0"), each);
  bench.place_many(affinity_pod("sched-0"), each);
  bench.place_many(anti_affinity_pod("sched-0"), each);
  bench.place_many(preferred_affinity_pod("sched-0"), each);
  bench.place_many(preferred_anti_affinity_pod("sched-0"), each);
  return bench.measure(default_pod(), scaled(10.0 * static_cast<double>(nodes), scale));
}

/// A claim of its own for each pod, bound to a CSI volume; nodes attach 39. Volumes and claims are there before the clock starts.
json::Object csi_volumes(std::size_t nodes, double scale, std::uint64_t seed) {
  constexpr const char* kDriver = "ebs.csi.aws.com";
  Bench bench(nodes, {}, seed);
  for (const auto* node : bench.cluster().nodes()) {
    auto csi = std::make_shared<model::CsiNodeView>();
    csi->meta.name = node->name;
    csi->drivers = {{kDriver, node->name, 39, {}}};
    bench.cluster().upsert(std::move(csi));
  }
  const std::size_t warm_up = scaled(static_cast<double>(nodes), scale), count = scaled(2.0 * static_cast<double>(nodes), scale);
  std::vector<PodInfoPtr> pods;
  for (std::size_t i = 0; i < warm_up + count; ++i) {
    auto claim = std::make_shared<model::PersistentVolumeClaimView>();
    claim->meta.ns = "default";
    claim->meta.name = fmt::format("claim-{}", i);
    claim->meta.uid = claim->meta.name;
    claim->meta.annotations = {{"pv.kubernetes.io/bind-completed", "yes"}};
    claim->volume_name = fmt::format("volume-{}", i);
    claim->access_modes = {"ReadOnlyMany"};
    claim->phase = "Bound";
    auto volume = std::make_shared<model::PersistentVolumeView>();
    volume->meta.name = claim->volume_name;
    volume->capacity = Quantity::from_value(1LL << 30);
    volume->access_modes = claim->access_modes;
    volume->csi_driver = kDriver;
    volume->csi_handle = claim->volume_name;
    volume->has_claim_ref = true;
    volume->claim_namespace = "default";
    volume->claim_name = volume->claim_uid = claim->meta.name;
    volume->phase = "Bound";
    auto pod = default_pod();
    model::VolumeView mount;
    mount.kind = model::VolumeView::Kind::kPersistentVolumeClaim;
    mount.name = "data";
    mount.id = claim->meta.name;
    pod.volumes.push_back(std::move(mount));
    bench.cluster().upsert(std::move(volume));
    bench.cluster().upsert(std::move(claim));
    pods.push_back(bench.make(pod));
  }
  std::string error = bench.error();
  const auto place_range = [&](std::size_t from, std::size_t to) {
    const double start = now_seconds();
    for (std::size_t i = from; i < to && error.empty(); ++i)
      if (!bench.place(pods[i])) error = "a pod found no node";
    return now_seconds() - start;
  };
  place_range(0, warm_up);
  const double cpu_start = cpu_seconds();
  const double seconds = place_range(warm_up, pods.size());
  json::Object out{{"pods", count}, {"seconds", seconds}, {"cpu_seconds", cpu_seconds() - cpu_start}, {"nodes", nodes}};
  if (!error.empty()) out["error"] = error;
  return out;
}

/// Every hundredth pod: a node comes or goes, a service changes, a large pod of high priority is tried.
json::Object mixed_churn(std::size_t nodes, double scale, std::uint64_t seed) {
  Bench bench(nodes, {}, seed);
  const PodInfoPtr large = bench.make(large_pod());
  bool extra = false;
  std::size_t changes = 0;
  auto out = bench.measure(default_pod(), scaled(10.0 * static_cast<double>(nodes), scale), [&](std::size_t i) {
    if (i % 100 != 0) return;
    ++changes;
    if (extra) {
      bench.cluster().remove_node("churn-node");
    } else {
      auto node = std::make_shared<model::NodeView>(*make_node(0, {}));
      node->meta.name = "churn-node";
      node->unschedulable = true;  // So that it may go again without taking pods along.
      bench.cluster().upsert_node(std::move(node));
    }
    extra = !extra;
    auto service = std::make_shared<model::ServiceView>();
    service->meta.ns = "default";
    service->meta.name = fmt::format("churn-{}", changes % 10);
    service->has_selector = true;
    service->selector = model::Selector({{"app", model::Requirement::Op::kIn, {"foo"}}});
    bench.cluster().upsert(std::move(service));
    (void)bench.place(large);
  });
  out["node_service_and_pod_changes"] = changes;
  return out;
}

/// One attempt in six is of a pod that fits nowhere; only the others count as placed.
json::Object unschedulable(std::size_t nodes, double scale, std::uint64_t seed) {
  Bench bench(nodes, {}, seed);
  std::vector<PodInfoPtr> hopeless;
  for (int i = 0; i < 200; ++i) hopeless.push_back(bench.make(large_pod()));
  std::size_t attempts = 0;
  auto out = bench.measure(default_pod(), scaled(10.0 * static_cast<double>(nodes), scale), [&](std::size_t i) {
    if (i % 5 == 0) (void)bench.place(hopeless[attempts++ % hopeless.size()]);
  });
  out["failed_attempts"] = attempts;
  return out;
}

json::Object million(std::size_t nodes, double scale, std::uint64_t seed) {
  const double start = now_seconds();
  Bench bench(scaled(static_cast<double>(nodes), scale), {"zone1", "zone2", "zone3"}, seed);
  const double made = now_seconds();
  auto out = bench.measure(default_pod(), scaled(static_cast<double>(nodes), scale));
  out["placing_seconds"] = out["seconds"];
  out["cluster_seconds"] = made - start;
  out["cpu_seconds"] = cpu_seconds();
  out["seconds"] = now_seconds() - start;  // All of it: nodes, pods, columns, decisions.
  return out;
}

/// What a thousand workloads, or thirty thousand, differ in.
model::PodView sized_pod(std::size_t i) {
  auto out = default_pod();
  out.containers.change_at(0, [&](auto& one) {
    one.requests = {{"cpu", Quantity::from_milli(static_cast<std::int64_t>(20 + i % 173))},
                    {"memory", Quantity::from_value(static_cast<std::int64_t>(100 + i / 173) << 20)}};
  });
  return out;
}

/// Jobs of one pod each, in turn: alike but for their names and uids, or each asking for something else.
json::Object jobs(std::size_t nodes, double scale, std::uint64_t seed, bool alike) {
  Bench bench(nodes, {"zone1", "zone2", "zone3"}, seed, Source::kJobs);
  bench.place_many(default_pod(), nodes);
  const std::size_t count = scaled(30'000, scale);
  double cpu = 0;
  std::string error = bench.error();
  for (std::size_t done = 0; done < count && error.empty();) {
    std::vector<PodInfoPtr> batch;
    for (std::size_t i = done; i < std::min(count, done + 10'000); ++i) batch.push_back(bench.make(alike ? default_pod() : sized_pod(i)));
    const double begin = cpu_seconds();
    for (const auto& pod : batch)
      if (!bench.place(pod)) error = "a measured pod found no node";
    cpu += cpu_seconds() - begin;
    done += batch.size();
  }
  json::Object out{{"pods", count}, {"seconds", cpu}, {"cpu_seconds", cpu}, {"nodes", nodes}, {"columns_mb", bench.columns_mb()}};
  if (!error.empty()) out["error"] = error;
  return out;
}

/// Classes differ in what they ask for and in their labels and node selectors. They take turns, each with `burst` pods at a time.
json::Object thousand_classes(std::size_t nodes, double scale, std::uint64_t seed, std::size_t burst) {
  const double start = now_seconds();
  Bench bench(nodes, {"zone1", "zone2", "zone3"}, seed, Source::kDeployments);
  std::vector<model::PodView> kinds;
  for (int i = 0; i < 1000; ++i) {
    auto kind = default_pod();
    kind.meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"app", fmt::format("app-{}", i)}});
    kind.containers.change_at(0, [&](auto& one) {
      one.requests = {{"cpu", Quantity::from_milli(50 + i % 40 * 5)}, {"memory", Quantity::from_value((100LL + i / 40 * 37) << 20)}};
    });
    if (i % 4 == 0) kind.node_selector = {{kZone, fmt::format("zone{}", 1 + i % 3)}};
    kinds.push_back(std::move(kind));
  }
  const std::size_t count = scaled(10.0 * static_cast<double>(nodes), scale);
  double seconds = 0;
  std::string error;
  for (std::size_t done = 0; done < count && error.empty();) {
    std::vector<PodInfoPtr> batch;
    for (std::size_t i = done; i < std::min(count, done + 10'000); ++i) batch.push_back(bench.make(kinds[i / burst % kinds.size()]));
    const double begin = now_seconds();
    for (const auto& pod : batch) {
      if (!bench.place(pod)) error = "a measured pod found no node";
      ++done;
    }
    seconds += now_seconds() - begin;
  }
  json::Object out{{"pods", count},
                   {"classes", 1000},
                   {"burst", burst},
                   {"nodes", nodes},
                   {"placing_seconds", seconds},
                   {"seconds", now_seconds() - start},
                   {"cpu_seconds", cpu_seconds()}};
  if (!error.empty()) out["error"] = error;
  return out;
}

void add(const std::string& name, const std::string& summary, const Run& run) {
  for (const std::size_t nodes : {std::size_t{500}, std::size_t{5000}}) {
    scenarios().push_back({fmt::format("{}/{}Nodes", name, nodes), summary,
                           [run, nodes](const Options& options) { return run(nodes, options.scale, options.seed); }});
  }
}

using RunOf = json::Object (*)(std::size_t nodes, double scale, std::uint64_t seed, Source source);

/// For pods of their own, and for those of Deployments.
void add_both(const std::string& name, const std::string& summary, RunOf run) {
  add(name, summary, [run](auto nodes, auto scale, auto seed) { return run(nodes, scale, seed, Source::kBare); });
  add(name + "OfDeployment", summary + "; of Deployments, whose pods are spread by default",
      [run](auto nodes, auto scale, auto seed) { return run(nodes, scale, seed, Source::kDeployments); });
}

const bool kRegistered = [] {
  const std::string engine = "engine alone, one core, all nodes considered: decide and commit ten pods a node; ";
  add_both("SchedulingBasic", engine + "plain pods", basic);
  add_both("SchedulingNodeAffinity", engine + "required node affinity", node_affinity);
  add_both("TopologySpreading", engine + "zones, DoNotSchedule, skew 5",
           [](std::size_t nodes, double scale, std::uint64_t seed, Source source) { return spreading(nodes, scale, seed, source, true); });
  add_both("PreferredTopologySpreading", engine + "zones, ScheduleAnyway, skew 5",
           [](std::size_t nodes, double scale, std::uint64_t seed, Source source) { return spreading(nodes, scale, seed, source, false); });
  add_both("SchedulingPodAntiAffinity", engine + "required, by hostname (0.7 pods a node)", anti_affinity);
  add_both("SchedulingPodAffinity", engine + "required, by zone", pod_affinity);
  add_both("SchedulingPreferredPodAffinity", engine + "preferred, by hostname", preferred_affinity);
  add_both("MixedSchedulingBasePod", engine + "plain pods among two pods a node of five kinds", mixed_base);
  add("MixedChurn", engine + "plain pods; every 100th: a node, a service and a large pod come or go", mixed_churn);
  add("CSIVolumes", engine + "a bound CSI claim a pod, 39 to a node (two pods a node)", csi_volumes);
  add("Unschedulable", engine + "plain pods; after every fifth an attempt of one that fits nowhere", unschedulable);
  for (const std::size_t nodes : {std::size_t{500}, std::size_t{5000}}) {
    const std::string summary = "engine alone, one core: 30,000 Jobs of one pod each, in turn; ";
    scenarios().push_back({fmt::format("JobsInTurn/{}Nodes", nodes), summary + "alike but for what tells Jobs apart",
                           [nodes](const Options& options) { return jobs(nodes, options.scale, options.seed, true); }});
    scenarios().push_back({fmt::format("DifferentJobsInTurn/{}Nodes", nodes), summary + "each asks for another amount",
                           [nodes](const Options& options) { return jobs(nodes, options.scale, options.seed, false); }});
  }
  for (const std::size_t nodes : {std::size_t{500}, std::size_t{1'000'000}})
    scenarios().push_back(
        {fmt::format("Million/{}Nodes", nodes),
         fmt::format("engine alone, one core: {} nodes and as many pods of one class; nodes, pods, columns and decisions", nodes),
         [nodes](const Options& options) { return million(nodes, options.scale, options.seed); }});
  for (const std::size_t nodes : {std::size_t{500}, std::size_t{100'000}}) {
    const auto classes = fmt::format("engine alone, one core: {} pods of 1,000 classes on {} nodes; nodes, pods, columns and decisions; ",
                                     nodes * 10, nodes);
    scenarios().push_back({fmt::format("Classes/{}Nodes", nodes), classes + "a hundred pods of a class at a time, as ReplicaSets make them",
                           [nodes](const Options& options) { return thousand_classes(nodes, options.scale, options.seed, 100); }});
    scenarios().push_back({fmt::format("ClassesInTurn/{}Nodes", nodes), classes + "one pod of a class at a time, the worst order there is",
                           [nodes](const Options& options) { return thousand_classes(nodes, options.scale, options.seed, 1); }});
  }
  return true;
}();

}  // namespace
}  // namespace berth::bench
