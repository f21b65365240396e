// Small clusters for descheduler tests: nodes and pods in YAML, a policy in YAML, one cycle.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "descheduler/execution.h"
#include "placement/profiles.h"

namespace berth::descheduler::test {

inline json::Value yaml(std::string_view text) {
  // A text that begins with a brace would be read as JSON.
  auto parsed = json::parse_yaml("# YAML\n" + std::string(text));
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message) << "\n" << text;
  return parsed ? *parsed : json::Value(json::Object{});
}

/// Maps are merged key by key, anything else is replaced.
inline void merge(json::Value& into, const json::Value& extra) {
  if (!into.is_object() || !extra.is_object()) {
    into = extra;
    return;
  }
  for (const auto& member : extra.get_object()) merge(into.get_object()[member.key()], member.value());
}

/// A cluster at noon of 2026-01-02. Pods belong to ReplicaSet web, run, are ready, ask for 100m and 128Mi and are an hour old, unless the
/// extra YAML says otherwise.
class World {
 public:
  World& add(std::string_view text) {
    auto all = json::parse_yaml_stream("# YAML\n" + std::string(text));
    EXPECT_TRUE(all) << text;
    if (all)
      for (const auto& one : *all) snapshot_.add(one);
    return *this;
  }
  World& node(const std::string& name, std::string_view extra = "{}") {
    json::Value document = yaml(
        "{kind: Node, apiVersion: v1, status: {allocatable: {cpu: '4', memory: 8Gi, pods: '20'}, conditions: [{type: Ready, status: "
        "'True'}]}}");
    json::set(document, {"metadata", "name"}, json::Value(name));
    json::set(document, {"metadata", "labels", "kubernetes.io/hostname"}, json::Value(name));
    merge(document, yaml(extra));
    snapshot_.add(document);
    return *this;
  }
  World& pod(const std::string& name, const std::string& on, std::string_view extra = "{}") {
    json::Value document = yaml(
        "{kind: Pod, apiVersion: v1, metadata: {namespace: default, creationTimestamp: '2026-01-02T11:00:00Z', labels: {app: web}, "
        "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web-uid, controller: true}]}, spec: {schedulerName: "
        "default-scheduler, priority: 0, containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m, memory: 128Mi}}}]}, "
        "status: {phase: Running, startTime: '2026-01-02T11:00:00Z', conditions: [{type: Ready, status: 'True'}]}}");
    json::set(document, {"metadata", "name"}, json::Value(name));
    json::set(document, {"metadata", "uid"}, json::Value(name + "-uid"));
    json::set(document, {"spec", "nodeName"}, json::Value(on));
    merge(document, yaml(extra));
    snapshot_.add(document);
    return *this;
  }
  /// Pods name-0 … name-(count-1).
  World& pods(const std::string& name, int count, const std::string& on, std::string_view extra = "{}") {
    for (int i = 0; i < count; ++i) pod(name + "-" + std::to_string(i), on, extra);
    return *this;
  }

  CycleResult run(std::string_view policy_text) {
    auto policy = parse_policy(policy_text, "policy.yaml");
    EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
    if (!policy) return {};
    snapshot_.finish();
    placement::Profiles profiles;
    auto framework = placement::Framework::create(profile);
    EXPECT_TRUE(framework);
    profiles.add(*framework);
    CycleOptions used = options;
    used.now = *parse_rfc3339("2026-01-02T12:00:00Z");
    auto cycle = Execution::begin(*policy, snapshot_, profiles, used, most_in_flight);
    EXPECT_TRUE(cycle) << (cycle ? "" : cycle.error().message);
    if (!cycle) return {};
    while (!cycle->is_over())
      for (const Step& step : cycle->due()) cycle->answered(step, answer ? answer(step) : Answer{});
    return std::move(*cycle).result();
  }
  Snapshot& snapshot() { return snapshot_; }

  CycleOptions options;
  std::size_t most_in_flight = 16;
  std::function<Answer(const Step&)> answer;  ///< The server's; empty: all that is asked for is done.
  placement::Profile profile = placement::default_profile(placement::Era::k136);

 private:
  Snapshot snapshot_;
};

/// "name from->to" of the pods evicted, in order.
inline std::vector<std::string> moves(const CycleResult& result) {
  std::vector<std::string> out;
  for (const Removal& removal : result.removals)
    if (goes(removal.outcome)) out.push_back(removal.pod->view().name() + " " + removal.pod->node() + "->" + removal.destination);
  return out;
}
inline std::vector<std::string> evicted(const CycleResult& result) {
  std::vector<std::string> out;
  for (const Removal& removal : result.removals)
    if (goes(removal.outcome)) out.push_back(removal.pod->view().name());
  return out;
}
/// The message of the first attempt on the pod that failed; empty when there is none.
inline std::string kept_because(const CycleResult& result, std::string_view pod) {
  for (const Removal& removal : result.removals)
    if (!goes(removal.outcome) && removal.pod->view().name() == pod) return removal.message;
  return "";
}

using Names = std::vector<std::string>;

/// A v1alpha2 policy with one plugin; `args` and `evictor` are flow YAML.
inline std::string one_plugin(const std::string& name, const std::string& args, const std::string& evictor = "{}",
                              const std::string& top = "") {
  const bool balances = is_balance(*find_strategy(name));
  return "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n" + top + "profiles:\n- name: p\n  pluginConfig:\n  - name: " + name +
         "\n    args: " + args + "\n  - name: DefaultEvictor\n    args: " + evictor + "\n  plugins:\n    " +
         (balances ? "balance" : "deschedule") + ": {enabled: [" + name + "]}\n";
}

}  // namespace berth::descheduler::test
