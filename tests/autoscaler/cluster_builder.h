// Clusters for the autoscaler's tests: objects in, steps under a virtual clock.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autoscaler/autoscaler.h"
#include "autoscaler/cluster_cache.h"

namespace berth::autoscaler::testing {

using namespace std::chrono_literals;

inline json::Value yaml(const std::string& text) {
  auto parsed = json::parse_yaml(text);
  EXPECT_TRUE(parsed) << parsed.error().message << text;
  return parsed ? *parsed : json::Value();
}

inline Options options_of(const std::string& spec) {
  auto parsed = Options::parse(yaml("kind: ClusterAutoscaler\nspec: " + spec));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : Options();
}

struct PodSpec {
  std::string cpu = "1", memory = "1Gi", node;
  std::string owner = "ReplicaSet";  ///< Empty: none.
  std::string extra_metadata, extra_spec;
  std::string ns = "default";
  std::string app = "web";
  std::int64_t priority = 0;
};

struct SetSpec {
  std::int64_t min = 0, max = 10, replicas = 0;
  std::string cpu = "8", memory = "32Gi", annotations, spec = "{}";
};

class TestCluster {
 public:
  TestCluster() {
    auto made = placement::Framework::create(placement::default_profile(placement::Era::k136));
    EXPECT_TRUE(made);
    framework = *made;
    core = std::make_unique<Autoscaler>(framework, 1);
    put("kind: ReplicaSet\nmetadata: {namespace: default, name: web, uid: web}\nspec: {selector: {matchLabels: {app: web}}}");
    put("kind: ReplicaSet\nmetadata: {namespace: kube-system, name: web, uid: sys}\nspec: {selector: {matchLabels: {app: web}}}");
  }

  void put(const std::string& text) { cache.upsert(yaml(text)); }

  void node(const std::string& name, const std::string& cpu, const std::string& memory = "32Gi", const std::string& machine = "",
            bool ready = true, const std::string& metadata = "", const std::string& spec = "", const std::string& capacity = "") {
    put(fmt::format(
        "kind: Node\nmetadata: {{name: {0}, creationTimestamp: '{7}', labels: {{kubernetes.io/hostname: {0}{4}}}, annotations: "
        "{{machine.openshift.io/machine: '{3}'{8}}}}}\nspec: {{{5}}}\n"
        "status: {{capacity: {{cpu: '{1}', memory: {2}, pods: '110'{9}}}, allocatable: {{cpu: '{1}', memory: {2}, pods: '110'{9}}}, "
        "conditions: [{{type: Ready, status: '{6}'}}]}}",
        name, cpu, memory, machine, labels, spec, ready ? "True" : "False", format_rfc3339(now), metadata, capacity));
  }

  void set(const std::string& name, const SetSpec& spec) {
    sets[name] = spec;
    put(
        fmt::format("kind: MachineSet\nmetadata: {{namespace: m, name: {0}, uid: {0}, annotations: {{{1}: '{2}', {3}: '{4}', "
                    "capacity.cluster-autoscaler.kubernetes.io/cpu: '{5}', capacity.cluster-autoscaler.kubernetes.io/memory: {6}{7}}}}}\n"
                    "spec: {{replicas: {8}, template: {{spec: {9}}}}}",
                    name, kMinSize, spec.min, kMaxSize, spec.max, spec.cpu, spec.memory, spec.annotations, spec.replicas, spec.spec));
  }

  /// A machine of a set, with its node unless `node` is false.
  void machine(const std::string& set_name, const std::string& name, bool with_node = true, bool marked = false) {
    put(
        fmt::format("kind: Machine\nmetadata: {{namespace: m, name: {0}, creationTimestamp: '{2}', annotations: {{{3}}}, "
                    "ownerReferences: [{{kind: MachineSet, name: {1}, uid: {1}, controller: true}}]}}",
                    name, set_name, format_rfc3339(now), marked ? fmt::format("{}: x", kDeleteMachine) : ""));
    if (with_node) node(name, sets[set_name].cpu, sets[set_name].memory, "m/" + name);
  }

  void pod(const std::string& name, const PodSpec& spec) {
    const std::string owner =
        spec.owner.empty()
            ? ""
            : fmt::format(", ownerReferences: [{{apiVersion: apps/v1, kind: {0}, name: web, uid: web, controller: true}}]", spec.owner);
    put(fmt::format(
        "kind: Pod\nmetadata: {{namespace: {8}, name: {0}, uid: {0}, creationTimestamp: '{1}', labels: {{app: {9}}}{2}{3}}}\n"
        "spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: '{4}', memory: {5}}}}}}}], priority: {10}{6}{7}}}\n"
        "status: {{phase: {11}{12}}}",
        name, format_rfc3339(now), owner, spec.extra_metadata, spec.cpu, spec.memory, spec.node.empty() ? "" : ", nodeName: " + spec.node,
        spec.extra_spec, spec.ns, spec.app, spec.priority, spec.node.empty() ? "Pending" : "Running",
        spec.node.empty() ? ", conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]" : ""));
  }
  void pods(int count, const PodSpec& spec, const std::string& prefix = "p") {
    for (int i = 0; i < count; ++i) pod(fmt::format("{}{}", prefix, i), spec);
  }

  Actions step() { return core->step(cache.snapshot(), options, now); }
  /// Steps every ten seconds for so long, or until a node is removed.
  std::optional<Actions> run_until_removal(Duration most) {
    for (const TimePoint end = now + most; now < end; now += 10s)
      if (Actions actions = step(); !actions.remove.empty()) return actions;
    return std::nullopt;
  }

  ClusterCache cache;
  placement::FrameworkPtr framework;
  std::unique_ptr<Autoscaler> core;
  Options options;
  TimePoint now = *parse_rfc3339("2026-01-01T00:00:00Z");
  std::map<std::string, SetSpec> sets;
  std::string labels;  ///< Of nodes made from here on: ", key: value".
};

/// So many devices on the node, of class "gpu".
inline void put_devices(TestCluster& cluster, const std::string& node, int count) {
  std::string devices;
  for (int i = 0; i < count; ++i) devices += fmt::format("{}{{name: g{}}}", i == 0 ? "" : ", ", i);
  cluster.put("kind: DeviceClass\nmetadata: {name: gpu}\nspec: {}");
  cluster.put(fmt::format(
      "kind: ResourceSlice\nmetadata: {{name: slice-{0}}}\nspec: {{driver: d.example.com, nodeName: {0}, pool: {{name: {0}, generation: 1, "
      "resourceSliceCount: 1}}, devices: [{1}]}}",
      node, devices));
}

/// A pod with a claim that its template made: for one device, which it has where it runs (`node` is empty: it is pending).
inline void put_device_user(TestCluster& cluster, const std::string& name, const std::string& node, const std::string& device = "") {
  const std::string status =
      node.empty()
          ? ""
          : fmt::format(
                "\nstatus: {{reservedFor: [{{resource: pods, name: {0}, uid: {0}}}], allocation: {{devices: {{results: [{{request: r, "
                "driver: d.example.com, pool: {1}, device: {2}}}]}}, nodeSelector: {{nodeSelectorTerms: [{{matchFields: [{{key: "
                "metadata.name, operator: In, values: [{1}]}}]}}]}}}}}}",
                name, node, device);
  cluster.put(
      fmt::format(
          "kind: ResourceClaim\nmetadata: {{namespace: default, name: made-{0}, uid: claim-{0}, ownerReferences: [{{apiVersion: v1, "
          "kind: Pod, name: {0}, uid: {0}, controller: true}}]}}\nspec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: "
          "gpu, allocationMode: ExactCount, count: 1}}}}]}}}}",
          name) +
      status);
  cluster.put(fmt::format(
      "kind: Pod\nmetadata: {{namespace: default, name: {0}, uid: {0}, creationTimestamp: '{1}', ownerReferences: [{{apiVersion: apps/v1, "
      "kind: "
      "ReplicaSet, name: web, uid: web, controller: true}}]}}\nspec: {{containers: [{{name: c, image: i}}], resourceClaims: [{{name: c, "
      "resourceClaimTemplateName: t}}]{2}}}\nstatus: {{phase: {3}, resourceClaimStatuses: [{{name: c, resourceClaimName: made-{0}}}]{4}}}",
      name, format_rfc3339(cluster.now), node.empty() ? "" : ", nodeName: " + node, node.empty() ? "Pending" : "Running",
      node.empty() ? ", conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]" : ""));
}

/// Why the node stays; empty for one that goes when its time has come.
inline std::string reason_of(const Actions& actions, const std::string& node) {
  for (const Unremovable& one : actions.status.unremovable)
    if (one.node == node && one.reason != "NotUnneededLongEnough")
      return std::string(one.reason) + (one.blocking_reason.empty() ? "" : " " + std::string(one.blocking_reason));
  return "";
}
inline std::string message_for(const Actions& actions, const std::string& pod) {
  for (const Note& note : actions.notes)
    if (note.pod != nullptr && note.pod->view().name() == pod) return note.reason + ": " + note.message;
  return "";
}
inline std::string grown(const Actions& actions) { return to_string(actions.grow); }

}  // namespace berth::autoscaler::testing
