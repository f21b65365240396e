// Small clusters as a dump has them, and questions asked about them.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "placement/framework.h"
#include "whatif/whatif.h"

namespace berth::whatif::testing {

struct PodAt {
  std::string node;           ///< Empty: pending.
  std::string more_metadata;  ///< "annotations: {…}"
  std::string status = "{phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z'}]}";
};

struct Dump {
  std::vector<json::Value> objects;
  Options options;

  Dump() {
    options.now = *parse_rfc3339("2026-01-02T00:00:00Z");
    auto framework = placement::Framework::create(placement::default_profile(placement::Era::k136));
    options.profiles = placement::Profiles(*framework);
  }
  Dump& yaml(const std::string& text) {
    auto documents = json::parse_yaml_stream(text);
    if (!documents) ADD_FAILURE() << documents.error().message << "\n" << text;
    for (auto& one : *documents) objects.push_back(std::move(one));
    return *this;
  }
  Dump& node(const std::string& name, const std::string& zone, const std::string& cpu = "4", const std::string& more = "") {
    return yaml(fmt::format(
        "{{apiVersion: v1, kind: Node, metadata: {{name: {0}, uid: u-{0}, labels: {{kubernetes.io/hostname: {0}, "
        "topology.kubernetes.io/zone: {1}, "
        "node.kubernetes.io/instance-type: m{2}}}}}, spec: {{{3}}}, status: {{allocatable: {{cpu: '{2}', memory: 64Gi, pods: '110'}}, "
        "conditions: [{{type: Ready, status: 'True'}}]}}}}",
        name, zone, cpu, more));
  }
  static std::string pod_spec(const std::string& cpu, const std::string& more) {
    return fmt::format(
        "schedulerName: default-scheduler, priority: 0, containers: [{{name: c, image: x, resources: {{requests: {{cpu: '{}'}}}}}}]{}{}",
        cpu, more.empty() ? "" : ", ", more);
  }
  /// A Deployment with its ReplicaSet NAME-1 and pods NAME-1-0, … where they are. `spec`: more of the template's spec.
  Dump& deployment(const std::string& name, const std::string& cpu, const std::vector<PodAt>& pods, const std::string& spec = "") {
    yaml(fmt::format(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {0}, namespace: shop, uid: d-{0}}}, spec: {{replicas: {1}, selector: "
        "{{matchLabels: {{app: {0}}}}}, template: {{metadata: {{labels: {{app: {0}}}}}, spec: {{{2}}}}}}}}}",
        name, pods.size(), pod_spec(cpu, spec)));
    yaml(fmt::format(
        "{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: {0}-1, namespace: shop, uid: r-{0}, ownerReferences: [{{apiVersion: "
        "apps/v1, "
        "kind: Deployment, name: {0}, uid: d-{0}, controller: true}}]}}, spec: {{replicas: {1}, selector: {{matchLabels: {{app: {0}, "
        "pod-template-hash: '1'}}}}, template: {{metadata: {{labels: {{app: {0}, pod-template-hash: '1'}}}}, spec: {{{2}}}}}}}}}",
        name, pods.size(), pod_spec(cpu, spec)));
    for (std::size_t i = 0; i < pods.size(); ++i)
      pod(fmt::format("{}-1-{}", name, i), fmt::format("{{app: {}, pod-template-hash: '1'}}", name),
          fmt::format("apiVersion: apps/v1, kind: ReplicaSet, name: {0}-1, uid: r-{0}", name), cpu, pods[i], spec);
    return *this;
  }
  Dump& pod(const std::string& name, const std::string& labels, const std::string& owner, const std::string& cpu, const PodAt& at,
            const std::string& spec = "") {
    const std::string owners = owner.empty() ? "" : fmt::format(", ownerReferences: [{{{}, controller: true}}]", owner);
    return yaml(
        fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, namespace: shop, uid: p-{0}, creationTimestamp: "
                    "'2026-01-01T00:00:00Z', labels: {1}{2}{3}}}, "
                    "spec: {{{4}{5}}}, status: {6}}}",
                    name, labels, owners, at.more_metadata.empty() ? "" : ", " + at.more_metadata, pod_spec(cpu, spec),
                    at.node.empty() ? "" : ", nodeName: " + at.node, at.node.empty() ? "{phase: Pending}" : at.status));
  }
  Dump& budget(const std::string& name, const std::string& app, const std::string& spec) {
    return yaml(fmt::format(
        "{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {}, namespace: shop}}, spec: {{selector: {{matchLabels: "
        "{{app: {}}}}}, {}}}}}",
        name, app, spec));
  }
  Dump& daemon(const std::string& name, const std::string& cpu, const std::vector<std::string>& nodes, const std::string& spec = "") {
    yaml(
        fmt::format("{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {0}, namespace: shop, uid: ds-{0}}}, spec: {{selector: "
                    "{{matchLabels: {{d: {0}}}}}, "
                    "template: {{metadata: {{labels: {{d: {0}}}}}, spec: {{{1}}}}}}}}}",
                    name, pod_spec(cpu, spec)));
    for (const std::string& node : nodes)
      pod(name + "-" + node, fmt::format("{{d: {}}}", name),
          fmt::format("apiVersion: apps/v1, kind: DaemonSet, name: {0}, uid: ds-{0}", name), cpu, {.node = node},
          "tolerations: [{operator: Exists}]");
    return *this;
  }

  /// `question` in YAML.
  Result<json::Value> try_ask(const std::string& question) {
    auto parsed = json::parse_yaml_stream(question);
    if (!parsed) return std::unexpected(parsed.error());
    return whatif::ask(objects, parsed->front(), options);
  }
  json::Value ask(const std::string& question) {
    auto out = try_ask(question);
    if (!out) ADD_FAILURE() << out.error().message;
    return out ? std::move(*out) : json::Value(json::Object{});
  }
};

/// "web-1-0 a1>b1" a move, in order of the answer.
inline std::vector<std::string> moves(const json::Value& answer) {
  std::vector<std::string> out;
  for (const json::Value& one : json::get_array(answer, {"moves"}))
    out.push_back(
        fmt::format("{} {}>{}", json::get_string(one, {"pod"}).substr(5), json::get_string(one, {"from"}), json::get_string(one, {"to"})));
  return out;
}
inline std::vector<std::string> pending(const json::Value& answer) {
  std::vector<std::string> out;
  for (const json::Value& one : json::get_array(answer, {"pending"})) out.emplace_back(json::get_string(one, {"pod"}).substr(5));
  return out;
}
/// "web-1-0 lost"
inline std::vector<std::string> evictions(const json::Value& answer) {
  std::vector<std::string> out;
  for (const json::Value& one : json::get_array(answer, {"evictions"}))
    out.push_back(fmt::format("{} {}", json::get_string(one, {"pod"}).substr(5), json::get_string(one, {"outcome"})));
  return out;
}
inline bool has_note(const json::Value& answer, std::string_view part) {
  for (const json::Value& note : json::get_array(answer, {"notes"}))
    if (json::as_view(note).find(part) != std::string_view::npos) return true;
  ADD_FAILURE() << "no note with \"" << part << "\" in "
                << json::serialize(json::find(answer, "notes") == nullptr ? json::Value() : *json::find(answer, "notes"));
  return false;
}
inline std::int64_t summary(const json::Value& answer, std::string_view key) { return json::get_int(answer, {"summary", key}); }

using Words = std::vector<std::string>;

}  // namespace berth::whatif::testing
