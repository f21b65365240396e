#include "tests/pools/scenarios.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "placement/cluster.h"
#include "pools/catalogue.h"

namespace berth::pools::tests {
namespace {

/// Numbers by lot that are the same everywhere: the engine is the standard's, its distributions are not.
class Lot {
 public:
  explicit Lot(std::uint64_t seed) : engine_(seed) {}
  /// From `low` to `high`, both among them.
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t n) { return number(1, n) == 1; }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(number(0, std::ssize(all) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

const std::vector<std::string> kZones = {"zone-a", "zone-b", "zone-c"};

/// Prices in ten-thousandths.
std::string offerings(Lot& lot, const std::vector<std::string>& zones, std::int64_t price) {
  std::string out;
  for (const std::string& zone : zones) {
    const std::int64_t spot = price * lot.number(25, 60) / 100;
    out += fmt::format("{}{{zone: {}, capacityType: on-demand, price: {}.{:04}}}", out.empty() ? "" : ", ", zone, price / 10000,
                       price % 10000);
    out += fmt::format(", {{zone: {}, capacityType: spot, price: {}.{:04}{}}}", zone, spot / 10000, spot % 10000,
                       lot.one_in(8) ? ", available: false" : "");
  }
  return "[" + out + "]";
}

std::string make_types(Lot& lot, bool with_gpus) {
  std::string out = "kind: InstanceTypeCatalogue\ninstanceTypes:\n";
  const std::int64_t families = lot.number(3, 9);
  for (std::int64_t family = 0; family < families; ++family) {
    const std::int64_t per_core = lot.of(std::vector<std::int64_t>{2, 4, 8}), noise = lot.number(100, 130);
    const bool is_arm = lot.one_in(4);
    for (const std::int64_t cores : {1, 2, 4, 8, 16, 32, 48, 64}) {
      if (lot.one_in(6)) continue;
      const std::int64_t memory = cores * per_core;
      const std::int64_t price = (cores * 280 + memory * 38) * noise / 100 * (is_arm ? 80 : 100) / 100;
      out += fmt::format(
          "- {{name: f{}.{}, cpu: {}, memory: {}Gi, pods: {}, arch: {}, labels: {{example.com/family: f{}}}, overhead: {{cpu: {}m, memory: "
          "{}Mi}}, "
          "offerings: {}}}\n",
          family, cores, cores, memory, std::min<std::int64_t>(110, 8 + cores * 10), is_arm ? "arm64" : "amd64", family, 60 + cores * 5,
          250 + memory * 20, offerings(lot, kZones, price));
    }
  }
  // One that is always there, so that there is something for each pod.
  out += fmt::format("- {{name: base.96, cpu: 96, memory: 384Gi, labels: {{example.com/family: base}}, offerings: {}}}\n",
                     offerings(lot, kZones, 48000));
  if (!with_gpus) return out;
  for (const std::int64_t gpus : {1, 2, 4, 8})
    for (const auto& [name, price] : {std::pair("t4", 3600), std::pair("a10", 7000)}) {
      std::vector<std::string> zones = kZones;
      if (std::string_view(name) == "a10") zones.pop_back();
      out += fmt::format(
          "- {{name: {}.{}, cpu: {}, memory: {}Gi, pods: 60, labels: {{example.com/family: gpu, example.com/gpu-name: {}}}, resources: "
          "{{example.com/gpu: {}}}, offerings: {}}}\n",
          name, gpus, gpus * 8, gpus * 32, name, gpus, offerings(lot, zones, price * gpus));
    }
  return out;
}

/// A NodePool's text.
struct PoolText {
  std::string name, more;
  std::vector<std::string> requirements, taints;
};
std::string pool_text(const PoolText& pool) {
  return fmt::format(
      "---\n{{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {{name: {0}, uid: {0}}}, spec: {{{1}template: {{spec: {{nodeClassRef: "
      "{{group: "
      "sim.berth.dev, kind: SimulatedNodeClass, name: default}}, taints: [{2}], requirements: [{3}]}}}}}}}}\n",
      pool.name, pool.more, fmt::join(pool.taints, ", "), fmt::join(pool.requirements, ", "));
}
std::string in(const std::string& key, const std::string& values, const std::string& op = "In") {
  return fmt::format("{{key: {}, operator: {}, values: [{}]}}", key, op, values);
}
constexpr const char* kCapacity = "karpenter.sh/capacity-type";
constexpr const char* kArch = "kubernetes.io/arch";
constexpr const char* kZone = "topology.kubernetes.io/zone";
constexpr const char* kHost = "kubernetes.io/hostname";

/// A workload: pods that are alike.
struct App {
  std::string name;
  std::int64_t count = 1, cpu = 100, memory = 128;  ///< Thousandths and MiB.
  std::vector<std::string> spec;                    ///< Fields of the pods' spec.
  std::string resources;                            ///< ", name: amount".
};
std::string pod_text(const App& app, std::int64_t number, const std::string& node = "") {
  std::vector<std::string> spec = app.spec;
  if (!node.empty()) spec.push_back("nodeName: " + node);
  spec.push_back(fmt::format("containers: [{{name: c, image: i, resources: {{requests: {{cpu: {}m, memory: {}Mi{}}}}}}}]", app.cpu,
                             app.memory, app.resources));
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {0}-{1:03}, namespace: default, uid: {0}-{1:03}, labels: {{app: {0}}}, "
      "ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: {0}, uid: {0}, controller: true}}]}}, spec: {{schedulerName: "
      "default-scheduler, {2}}}, status: {{phase: {3}}}}}\n",
      app.name, number, fmt::join(spec, ", "), node.empty() ? "Pending" : "Running");
}

App any_app(Lot& lot, std::size_t number, std::int64_t most = 30) {
  App out;
  out.name = fmt::format("app{}", number);
  out.count = lot.number(1, most);
  out.cpu = lot.one_in(8) ? lot.number(20, 90) * 100 : lot.number(1, 20) * 100;
  out.memory = out.cpu * lot.of(std::vector<std::int64_t>{1, 2, 4, 4, 8}) * lot.number(60, 110) / 100;
  return out;
}
std::string selector(const App& app) { return fmt::format("{{matchLabels: {{app: {}}}}}", app.name); }
std::string spread(const App& app, const std::string& key, std::int64_t skew, const char* otherwise = "DoNotSchedule") {
  return fmt::format("{{maxSkew: {}, topologyKey: {}, whenUnsatisfiable: {}, labelSelector: {}}}", skew, key, otherwise, selector(app));
}
std::string term(const App& app, const std::string& key) {
  return fmt::format("requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: {}, labelSelector: {}}}]", key, selector(app));
}

void spread_it(Lot& lot, App& app) {
  std::vector<std::string> constraints;
  const std::int64_t which = lot.number(1, 4);
  if (which != 2) constraints.push_back(spread(app, kZone, lot.number(1, 2)));
  if (which == 2 || which == 4) constraints.push_back(spread(app, kHost, lot.number(1, 3)));
  app.spec.push_back(fmt::format("topologySpreadConstraints: [{}]", fmt::join(constraints, ", ")));
}
void see_others(Lot& lot, App& app, const App* other) {
  switch (lot.number(1, other == nullptr ? 3 : 4)) {
    case 1:
      app.count = std::min<std::int64_t>(app.count, 12);
      app.spec.push_back(fmt::format("affinity: {{podAntiAffinity: {{{}}}}}", term(app, kHost)));
      break;
    case 2:
      app.spec.push_back(fmt::format("affinity: {{podAffinity: {{{}}}}}", term(app, kZone)));
      break;
    case 3:
      app.count = std::min<std::int64_t>(app.count, 6);
      app.spec.push_back(fmt::format("affinity: {{podAffinity: {{{}}}}}", term(app, kHost)));
      break;
    default:
      app.spec.push_back(fmt::format("affinity: {{podAffinity: {{{}}}}}", term(*other, kZone)));
  }
}
void ask_for_nodes(Lot& lot, App& app) {
  switch (lot.number(1, 5)) {
    case 1:
      app.spec.push_back(fmt::format("nodeSelector: {{{}: {}}}", kZone, lot.of(kZones)));
      break;
    case 2:
      app.spec.push_back(fmt::format("nodeSelector: {{{}: on-demand}}", kCapacity));
      break;
    case 3:
      app.spec.push_back(
          fmt::format("affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: "
                      "[{{matchExpressions: [{}]}}]}}}}}}",
                      in(kZone, lot.of(kZones), "NotIn")));
      break;
    case 4:
      app.spec.push_back(fmt::format("nodeSelector: {{{}: amd64}}", kArch));
      break;
    default:
      app.spec.push_back(fmt::format(
          "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchExpressions: [{}]}}, "
          "{{matchExpressions: [{}]}}]}}}}}}",
          in(kZone, lot.of(kZones)), in(kCapacity, "on-demand")));
  }
}
void prefer(Lot& lot, App& app) {
  if (lot.one_in(2))
    app.spec.push_back(fmt::format("topologySpreadConstraints: [{}]", spread(app, kZone, 1, "ScheduleAnyway")));
  else
    app.spec.push_back(
        fmt::format("affinity: {{nodeAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 10, preference: "
                    "{{matchExpressions: [{}]}}}}]}}}}",
                    in(kZone, lot.of(kZones))));
}

/// What a scenario is put together from.
struct Made {
  Lot lot;
  std::string types;
  std::vector<PoolText> pools;
  std::vector<App> apps;
  std::string more;
};

void add_daemon(Made& made, const std::string& name, std::int64_t cpu, const std::string& spec = "") {
  made.more += fmt::format(
      "---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {0}, namespace: default, uid: {0}}}, spec: {{selector: "
      "{{matchLabels: {{app: {0}}}}}, "
      "template: {{metadata: {{labels: {{app: {0}}}}}, spec: {{{1}containers: [{{name: c, image: i, resources: {{requests: {{cpu: {2}m, "
      "memory: "
      "{2}Mi}}}}}}]}}}}}}}}\n",
      name, spec, cpu);
}
/// Nodes of a pool with their claims, and pods on them that take about half.
void add_nodes(Made& made, std::int64_t count) {
  App old{"old", 1, 400, 900, {}, ""};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string labels = fmt::format(
        "{{karpenter.sh/nodepool: general, node.kubernetes.io/instance-type: base.96, {}: {}, {}: on-demand, {}: old-{:02}, {}: amd64, "
        "kubernetes.io/os: linux, example.com/family: base}}",
        kZone, made.lot.of(kZones), kCapacity, kHost, i, kArch);
    const std::int64_t cores = made.lot.number(2, 12);
    const std::string room = fmt::format("{{cpu: {}, memory: {}Gi, pods: 110, ephemeral-storage: 20Gi}}", cores, cores * 4);
    made.more += fmt::format(
        "---\n{{apiVersion: v1, kind: Node, metadata: {{name: old-{0:02}, uid: old-{0:02}, labels: {1}}}, status: {{capacity: {2}, "
        "allocatable: {2}, conditions: "
        "[{{type: Ready, status: 'True'}}]}}}}\n---\n{{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {{name: old-{0:02}, labels: "
        "{1}, "
        "creationTimestamp: '2026-11-28T11:00:00Z'}}, spec: {{requirements: []}}, status: {{nodeName: old-{0:02}, capacity: {2}, "
        "conditions: "
        "[{{type: Launched, status: 'True'}}, {{type: Registered, status: 'True'}}, {{type: Initialized, status: 'True', "
        "lastTransitionTime: '2026-11-28T11:00:00Z'}}]}}}}\n",
        i, labels, room);
    const std::int64_t running = made.lot.number(0, cores * 2);
    for (std::int64_t k = 0; k < running; ++k) made.more += pod_text(old, i * 100 + k, fmt::format("old-{:02}", i));
  }
}
void add_apps(Made& made, std::int64_t low, std::int64_t high, const std::function<void(App&)>& change) {
  const std::int64_t count = made.lot.number(low, high);
  for (std::int64_t i = 0; i < count; ++i) {
    App app = any_app(made.lot, made.apps.size());
    if (change) change(app);
    made.apps.push_back(std::move(app));
  }
}

void weighted_pools(Made& made) {
  made.pools = {{"cheap", "weight: 50, ", {in(kCapacity, "spot")}, {}}, {"general", "weight: 10, ", {in(kCapacity, "on-demand")}, {}}};
  if (made.lot.one_in(2)) made.pools[0].more += fmt::format("limits: {{cpu: {}}}, ", made.lot.number(8, 60));
  if (made.lot.one_in(3))
    made.pools[1].more += fmt::format("limits: {{cpu: {}, memory: {}Gi}}, ", made.lot.number(40, 200), made.lot.number(200, 900));
  if (made.lot.one_in(2)) made.pools.push_back({"last", "", {in(kArch, "amd64")}, {}});
  if (made.lot.one_in(3)) made.pools[0].requirements.push_back(in(kZone, made.lot.of(kZones), "NotIn"));
  add_apps(made, 3, 9, [&](App& app) {
    if (made.lot.one_in(4)) ask_for_nodes(made.lot, app);
  });
}
void tainted_pools(Made& made) {
  made.pools.push_back({"team", "weight: 20, ", {in("example.com/team", "red, blue")}, {"{key: team, value: 'yes', effect: NoSchedule}"}});
  const std::string tolerates = "tolerations: [{key: team, operator: Exists}]";
  add_daemon(made, "agent", 100, "tolerations: [{operator: Exists}], ");
  add_apps(made, 3, 8, [&](App& app) {
    if (made.lot.one_in(2)) return;
    app.spec.push_back(tolerates);
    if (made.lot.one_in(2)) app.spec.push_back(fmt::format("nodeSelector: {{example.com/team: {}}}", made.lot.one_in(2) ? "red" : "blue"));
  });
}
void gpu_apps(Made& made) {
  add_apps(made, 2, 5, {});
  add_apps(made, 2, 4, [&](App& app) {
    app.count = std::min<std::int64_t>(app.count, 10);
    app.resources = fmt::format(", example.com/gpu: {}", made.lot.of(std::vector<std::int64_t>{1, 1, 2, 3, 4}));
    app.cpu = std::min<std::int64_t>(app.cpu, 4000);
    app.memory = std::min<std::int64_t>(app.memory, 20000);
    if (made.lot.one_in(3)) app.spec.push_back("nodeSelector: {example.com/gpu-name: t4}");
  });
}
void everything(Made& made) {
  made.pools[0].requirements.push_back("{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 3}");
  if (made.lot.one_in(2)) made.pools.push_back({"spare", "weight: 30, limits: {cpu: 40}, ", {in(kCapacity, "spot")}, {}});
  if (made.lot.one_in(2)) add_daemon(made, "logs", 50);
  if (made.lot.one_in(2)) add_nodes(made, made.lot.number(1, 4));
  add_apps(made, 4, 9, [&](App& app) {
    switch (made.lot.number(1, 6)) {
      case 1:
        return spread_it(made.lot, app);
      case 2:
        return see_others(made.lot, app, made.apps.empty() ? nullptr : &made.apps[0]);
      case 3:
        return ask_for_nodes(made.lot, app);
      case 4:
        return prefer(made.lot, app);
      default:
        return;
    }
  });
}

const std::vector<std::pair<std::string, std::function<void(Made&)>>>& recipes() {
  static const std::vector<std::pair<std::string, std::function<void(Made&)>>> out = {
      {"plain", [](Made& made) { add_apps(made, 3, 12, {}); }},
      {"spread",
       [](Made& made) {
         add_apps(made, 2, 7, [&](App& app) {
           if (!made.lot.one_in(4)) spread_it(made.lot, app);
         });
       }},
      {"affinity",
       [](Made& made) {
         add_apps(made, 2, 7, [&](App& app) {
           if (!made.lot.one_in(4)) see_others(made.lot, app, made.apps.empty() ? nullptr : &made.apps[0]);
         });
       }},
      {"zones",
       [](Made& made) {
         add_apps(made, 3, 9, [&](App& app) {
           if (!made.lot.one_in(3)) ask_for_nodes(made.lot, app);
         });
       }},
      {"gpus", gpu_apps},
      {"taints", tainted_pools},
      {"pools", weighted_pools},
      {"existing",
       [](Made& made) {
         add_nodes(made, made.lot.number(2, 12));
         add_apps(made, 2, 8, [&](App& app) {
           if (made.lot.one_in(3)) spread_it(made.lot, app);
         });
       }},
      {"preferences",
       [](Made& made) {
         add_apps(made, 3, 8, [&](App& app) {
           if (!made.lot.one_in(3)) prefer(made.lot, app);
         });
       }},
      {"everything", everything},
  };
  return out;
}

}  // namespace

const std::vector<std::string>& scenario_kinds() {
  static const std::vector<std::string> out = [] {
    std::vector<std::string> names;
    for (const auto& [name, recipe] : recipes()) names.push_back(name);
    return names;
  }();
  return out;
}

Scenario make_scenario(const std::string& kind, unsigned seed) {
  const auto at = std::ranges::find(recipes(), kind, [](const auto& one) { return one.first; });
  Made made{Lot(seed * 1000 + static_cast<std::uint64_t>(at - recipes().begin())), "", {}, {}, ""};
  made.types = make_types(made.lot, kind == "gpus");
  made.pools.push_back({"general", "", {}, {}});
  if (made.lot.one_in(2)) made.pools[0].requirements.push_back(in(kCapacity, "on-demand"));
  if (made.lot.one_in(2)) made.pools[0].requirements.push_back(in(kArch, "amd64"));
  at->second(made);
  std::string cluster = made.more;
  for (const PoolText& pool : made.pools) cluster += pool_text(pool);
  for (const App& app : made.apps)
    for (std::int64_t i = 0; i < app.count; ++i) cluster += pod_text(app, i);
  return {fmt::format("{}-{}", kind, seed), std::move(made.types), std::move(cluster)};
}

namespace {

std::string resources_text(const model::ResourceList& list) {
  std::vector<std::string> out;
  for (const auto& [name, amount] : list) out.push_back(fmt::format("{}: \"{}\"", name, amount.to_string()));
  return fmt::format("{{{}}}", fmt::join(out, ", "));
}

std::string node_text(const std::string& name, const InstanceType& type, const Offering& offering) {
  std::vector<std::string> labels = {"karpenter.sh/nodepool: general", fmt::format("{}: {}", kHost, name),
                                     fmt::format("{}: {}", kZone, offering.zone), fmt::format("{}: {}", kCapacity, offering.capacity_type)};
  for (const auto& [key, value] : type.labels.pairs()) labels.push_back(fmt::format("{}: \"{}\"", key, value));
  const std::string since = "lastTransitionTime: '2026-11-28T11:00:00Z'";
  return fmt::format(
      "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {0}, uid: {0}, labels: {{{1}}}}}, status: {{capacity: {2}, allocatable: {3}, "
      "conditions: [{{type: Ready, status: 'True'}}]}}}}\n---\n{{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {{name: {0}, uid: "
      "claim-{0}, labels: {{{1}}}, creationTimestamp: '2026-11-28T11:00:00Z'}}, spec: {{requirements: []}}, status: {{nodeName: {0}, "
      "capacity: {2}, allocatable: {3}, conditions: [{{type: Launched, status: 'True', {4}}}, {{type: Registered, status: 'True', {4}}}, "
      "{{type: Initialized, status: 'True', {4}}}, {{type: Consolidatable, status: 'True', {4}}}]}}}}\n",
      name, fmt::join(labels, ", "), resources_text(type.capacity), resources_text(type.allocatable), since);
}

}  // namespace

Scenario make_half_empty(unsigned seed) {
  Lot lot(seed * 1000 + 500);
  Scenario out{fmt::format("consolidation-{}", seed), make_types(lot, false), ""};
  const Catalogue catalogue = Catalogue::parse(out.catalogue, out.name).value();
  std::vector<std::pair<const InstanceType*, const Offering*>> choice;
  for (const InstanceType& type : catalogue.types)
    for (const Offering& offering : type.offerings)
      if (offering.capacity_type == "on-demand" && *type.labels.get(kArch) == "amd64" && type.name != "base.96")
        choice.emplace_back(&type, &offering);
  std::vector<App> apps;
  for (std::size_t i = 0; i < 12; ++i) apps.push_back(any_app(lot, i));
  out.cluster =
      pool_text({"general",
                 "disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: \"100%\"}]}, ",
                 {in(kCapacity, "on-demand"), in(kArch, "amd64")},
                 {}});
  std::int64_t number = 0;
  for (int i = 0; i < 60; ++i) {
    const auto& [type, offering] = lot.of(choice);
    const std::string name = fmt::format("n{:02}", i);
    out.cluster += node_text(name, *type, *offering);
    const auto room = placement::Resource::from_list(type->allocatable);
    const std::int64_t share = lot.number(20, 50);
    std::int64_t cpu = room.cpu_milli * share / 100, memory = (room.memory_bytes >> 20) * share / 100;
    for (int tries = 0; tries < 40; ++tries) {
      const App& app = lot.of(apps);
      if (app.cpu > cpu || app.memory > memory) continue;
      cpu -= app.cpu;
      memory -= app.memory;
      out.cluster += pod_text(app, ++number, name);
    }
  }
  return out;
}

Scenario make_large_scenario() {
  constexpr int kCores[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 192};
  Lot lot(7);
  std::string types = "kind: InstanceTypeCatalogue\nzones: [a, b, c]\ninstanceTypes:\n";
  for (int family = 0; family < 58; ++family) {
    const std::int64_t noise = lot.number(100, 129);
    for (const int cores : kCores) {
      const int memory = cores * (2 << family % 3);
      const std::int64_t price = (cores * 300 + memory * 40) * noise / 100;
      types += fmt::format(
          "- {{name: f{}.{}, cpu: {}, memory: {}Gi, pods: {}, overhead: {{cpu: 80m, memory: 500Mi}}, prices: {{on-demand: {}.{:04}}}}}\n",
          family, cores, cores, memory, std::min(250, 20 + cores * 10), price / 10000, price % 10000);
    }
  }
  std::string cluster = pool_text({"general", "", {}, {}});
  for (int kind = 0; kind < 400; ++kind) {
    const App app{fmt::format("app{}", kind), 1, 100 + kind * 37 % 40 * 100, 128 + kind * 61 % 160 * 100, {}, ""};
    for (int i = kind; i < 5000; i += 400) cluster += pod_text(app, i / 400);
  }
  return {"large", std::move(types), std::move(cluster)};
}

}  // namespace berth::pools::tests
