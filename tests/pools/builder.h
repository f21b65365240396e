// Clusters, pools and catalogues of tests, as YAML.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "placement/profiles.h"
#include "pools/state.h"

namespace berth::pools::tests {

inline const TimePoint kNow = *parse_rfc3339("2026-11-28T12:00:00Z");

/// A test's own text; that it reads is the test's matter.
inline json::Value read(const std::string& text) {
  auto out = json::parse_yaml("# Text that begins with a brace would be read as JSON.\n" + text);
  if (!out) ADD_FAILURE() << out.error().message << " in: " << text;
  return out ? std::move(*out) : json::Value(json::Object{});
}

inline const Catalogue& small_catalogue() {
  static const Catalogue out = [] {
    auto read = Catalogue::parse(R"(
kind: InstanceTypeCatalogue
zones: [a, b, c]
instanceTypes:
- {name: small, cpu: 2, memory: 8Gi, pods: 30, prices: {on-demand: 0.10, spot: 0.04}}
- {name: medium, cpu: 4, memory: 16Gi, pods: 60, prices: {on-demand: 0.20, spot: 0.08}}
- {name: large, cpu: 8, memory: 32Gi, pods: 110, prices: {on-demand: 0.38, spot: 0.16}}
- {name: arm, cpu: 8, memory: 32Gi, arch: arm64, zones: [a], prices: {on-demand: 0.30}}
- {name: gpu, cpu: 8, memory: 32Gi, resources: {example.com/gpu: 2}, zones: [b], prices: {on-demand: 2.0}}
)",
                                 "catalogue.yaml");
    EXPECT_TRUE(read.has_value()) << read.error().message;
    return *read;
  }();
  return out;
}

/// `spec` stands below spec.template.spec, `more` below spec.
inline std::string pool_yaml(const std::string& name, const std::string& requirements, const std::string& more = "{}",
                             const std::string& spec = "{}") {
  return fmt::format(
      R"({{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {{name: {}}}, more: {}, spec: {{template: {{spec: {}}}}}, req: {}}})",
      name, more, spec, requirements);
}

inline json::Value pool_document(const std::string& name, const std::string& requirements, const std::string& more = "{}",
                                 const std::string& spec = "{}") {
  json::Value out = read(pool_yaml(name, requirements, more, spec));
  for (const auto& [key, value] : json::get_object(out, {"more"})) json::set(out, {"spec", key}, value);
  json::set(out, {"spec", "template", "spec", "requirements"}, json::get_array(out, {"req"}));
  json::set(out, {"spec", "template", "spec", "nodeClassRef"},
            json::Object{{"group", "sim.berth.dev"}, {"kind", "SimulatedNodeClass"}, {"name", "default"}});
  json::erase(out, {"more"});
  json::erase(out, {"req"});
  return out;
}

inline constexpr const char* kOnDemand =
    "[{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: kubernetes.io/arch, operator: In, values: [amd64]}]";

/// A pod that waits, or runs on `node`; `more` stands in its spec.
inline json::Value pod(const std::string& name, const std::string& cpu, const std::string& memory, const std::string& more = "{}",
                       const std::string& node = "") {
  json::Value out =
      read(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, namespace: default, uid: {0}, labels: {{app: {1}}}, "
                       "ownerReferences: [{{apiVersion: "
                       "apps/v1, kind: ReplicaSet, name: rs, uid: rs, controller: true}}]}}, spec: {4}, status: {{phase: Pending}}, "
                       "containers: [{{name: c, image: "
                       "i, resources: {{requests: {{cpu: {2}, memory: {3}}}}}}}]}}",
                       name, name.substr(0, name.find('-')), cpu, memory, more));
  if (json::find(out, {"spec", "containers"}) == nullptr) json::set(out, {"spec", "containers"}, json::get_array(out, {"containers"}));
  json::erase(out, {"containers"});
  json::set(out, {"spec", "schedulerName"}, "default-scheduler");
  if (!node.empty()) {
    json::set(out, {"spec", "nodeName"}, json::Value(node));
    json::set(out, {"status", "phase"}, "Running");
  }
  return out;
}

struct TestWorld {
  PoolsCache cache;
  PoolsView view;

  void add(const json::Value& document) { cache.upsert(document); }
  void add_yaml(const std::string& text) {
    auto read = json::parse_yaml_stream("# YAML\n" + text);
    if (!read) ADD_FAILURE() << read.error().message << " in: " << text;
    for (const json::Value& one : read ? *read : std::vector<json::Value>()) add(one);
  }
  /// Of one kind: `count` pods.
  void add_pods(const std::string& app, int count, const std::string& cpu, const std::string& memory, const std::string& more = "{}") {
    for (int i = 0; i < count; ++i) add(pod(fmt::format("{}-{}", app, i), cpu, memory, more));
  }
  /// A node of the pool with its claim, initialized for an hour.
  void add_owned(const std::string& name, const std::string& pool, const InstanceType& type, const std::string& zone,
                 const std::string& capacity_type) {
    const std::string labels = fmt::format(
        "{{karpenter.sh/nodepool: {}, node.kubernetes.io/instance-type: {}, topology.kubernetes.io/zone: {}, "
        "karpenter.sh/capacity-type: {}, kubernetes.io/hostname: {}, kubernetes.io/arch: amd64, kubernetes.io/os: linux}}",
        pool, type.name, zone, capacity_type, name);
    const auto* cpu = model::find_resource(type.allocatable, "cpu");
    const auto* memory = model::find_resource(type.allocatable, "memory");
    const std::string resources = fmt::format("{{cpu: \"{}\", memory: \"{}\", pods: \"110\"}}", cpu->to_string(), memory->to_string());
    add_yaml(fmt::format(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {0}, labels: {1}}}, status: {{capacity: {2}, allocatable: {2}, conditions: "
        "[{{type: "
        "Ready, status: 'True'}}]}}}}\n---\n{{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {{name: {0}, labels: {1}, "
        "creationTimestamp: '2026-11-28T11:00:00Z'}}, spec: {{requirements: []}}, status: {{nodeName: {0}, capacity: {2}, conditions: "
        "[{{type: "
        "Launched, status: 'True'}}, {{type: Initialized, status: 'True', lastTransitionTime: '2026-11-28T11:00:00Z'}}]}}}}",
        name, labels, resources));
  }
  const ProvisionInput& input(const Catalogue& catalogue = small_catalogue()) {
    auto framework = placement::Profiles::create({placement::default_profile(placement::Era::k136)});
    view = view_of(cache, catalogue, *framework, {}, kNow, true);
    return view.input();
  }
  ProvisionPlan plan() { return plan_provisioning(input()); }
  ConsolidationPlan consolidation() {
    const ProvisionInput& asked = input();
    return plan_consolidation({asked, view.owned});
  }
};

/// "2 x small a on-demand" for each group of claims that are alike, in order.
inline std::string words(const std::vector<NewClaim>& claims) {
  std::map<std::string, int> count;
  for (const NewClaim& claim : claims) ++count[fmt::format("{} {} {}", claim.type, claim.zone, claim.capacity_type)];
  std::string out;
  for (const auto& [what, number] : count) out += fmt::format("{}{} x {}", out.empty() ? "" : ", ", number, what);
  return out;
}

}  // namespace berth::pools::tests
