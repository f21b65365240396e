// Deployments, their ReplicaSets and ReplicationControllers, over a kubelet that does as the dice say.
#include "controllers/workloads.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

constexpr const char* kDeployment =
    "{apiVersion: apps/v1, kind: Deployment, metadata: {}, spec: {replicas: 3, revisionHistoryLimit: 1, progressDeadlineSeconds: 60, "
    "selector: {matchLabels: {app: w}}, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, template: "
    "{metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: a1}]}}}}";
constexpr const char* kSet =
    "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {labels: {app: w}}, spec: {replicas: 2, selector: {matchLabels: {app: w}}, "
    "template: "
    "{metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: a1}]}}}}";
constexpr const char* kController =
    "{apiVersion: v1, kind: ReplicationController, metadata: {}, spec: {replicas: 2, selector: {app: v}, template: "
    "{metadata: {labels: {app: v, more: x}}, spec: {containers: [{name: c, image: a1}]}}}}";
constexpr const char* kPod = "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}";

void add_fields(World& world) {
  const Kind d = kinds().deployment, set = kinds().replica_set, rc = kinds().replication_controller;
  world.fields = {
      {d, "spec replicas", {"0", "1", "2", "3", "4", "5", "8", "10", ""}},
      {d, "spec replicas", {"0", "1", "2", "3", "4", "5", "8", "10", ""}},
      {d,
       "spec template spec containers",
       {"[{name: c, image: a1}]", "[{name: c, image: a2}]", "[{name: c, image: a3}]", "[{name: c, image: a1, ports: []}]"}},
      {d, "spec template spec containers", {"[{name: c, image: a1}]", "[{name: c, image: a2}]", "[{name: c, image: a3}]"}},
      {d,
       "spec strategy",
       {"{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}",
        "{type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}",
        "{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}",
        "{type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 100%}}", "{type: RollingUpdate}", "{type: Recreate}",
        "{type: Recreate}", ""}},
      {d, "spec paused", {"true", "false", "", ""}},
      {d, "spec minReadySeconds", {"5", "", ""}},
      {d, "spec progressDeadlineSeconds", {"10", "60", "2147483647", ""}},
      {d, "spec revisionHistoryLimit", {"0", "1", "2", ""}},
      {d, "spec selector", {"{matchLabels: {app: w}}", "{matchLabels: {app: w}}", "{}"}},
      {d, "metadata annotations deprecated.deployment.rollback.to", {"0", "1", "2", "99", "x", "1x"}},
      {d, "metadata annotations note", {"a", "b", ""}},
      {d, "status collisionCount", {"0", "1", ""}},
      {set, "metadata ownerReferences", {"", "[]"}},
      {set, "metadata labels app", {"w", "v"}},
      {set, "spec replicas", {"0", "1", "2", "5"}},
      {set, "metadata annotations deployment.kubernetes.io/revision", {"1", "7", "x", ""}},
      {set, "metadata annotations deployment.kubernetes.io/desired-replicas", {"1", "4", ""}},
      {set, "metadata annotations deployment.kubernetes.io/max-replicas", {"0", "3", ""}},
      {set, "status conditions", {"[{type: ReplicaFailure, status: 'True', reason: FailedCreate, message: no}]", ""}},
      {set, "status observedGeneration", {"1", ""}},
      {set, "status terminatingReplicas", {"2", ""}},
      {rc, "spec replicas", {"0", "1", "3", "4", ""}},
      {rc, "spec minReadySeconds", {"7", ""}},
      {rc, "spec selector", {"{app: v}", "{app: v}", "{}", ""}},
  };
  for (Field& field : pod_fields()) world.fields.push_back(std::move(field));
}

/// The pods that the object controls and that have neither ended nor are on their way.
std::int64_t active_pods(World& world, const json::Value& owner) {
  std::int64_t count = 0;
  for (const std::string& key : world.keys(kinds().pod)) {
    const json::Value& pod = *world.find(kinds().pod, key);
    const auto phase = get_string(pod, {"status", "phase"});
    const auto& owners = get_array(pod, {"metadata", "ownerReferences"});
    count += std::ranges::any_of(owners,
                                 [&](const json::Value& one) {
                                   return get_string(one, {"uid"}) == get_string(owner, {"metadata", "uid"});
                                 }) &&
             phase != "Failed" && phase != "Succeeded" && get_string(pod, {"metadata", "deletionTimestamp"}).empty();
  }
  return count;
}

void judge_rest(World& world) {
  for (const Kind kind : {kinds().replica_set, kinds().replication_controller})
    for (const std::string& key : world.keys(kind)) {
      const json::Value& set = *world.find(kind, key);
      if (!get_string(set, {"metadata", "deletionTimestamp"}).empty() || json::get_object(set, {"spec", "selector"}).empty()) continue;
      const std::int64_t wanted = get_int(set, {"spec", "replicas"}, 1), have = active_pods(world, set);
      if (wanted != have || get_int(set, {"status", "replicas"}) != have)
        world.wrong(
            fmt::format("{} {} wants {} pods, has {}, says {}", kind->kind, key, wanted, have, get_int(set, {"status", "replicas"})));
    }
  for (const std::string& key : world.keys(kinds().deployment)) {
    const json::Value& deployment = *world.find(kinds().deployment, key);
    if (get_string(deployment, {"metadata", "deletionTimestamp"}).empty() && !json::get_object(deployment, {"spec", "selector"}).empty() &&
        get_int(deployment, {"status", "observedGeneration"}) != get_int(deployment, {"metadata", "generation"}))
      world.wrong(fmt::format("Deployment {} was not looked at", key));
  }
}

TEST(DeploymentLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/deployments.txt", .seed = 1, .edits = 1260, .has_memory = true});
  world.add([] { return make_deployment_controller(); });
  world.add([] { return make_replicaset_controller(); });
  world.sorts = {{kinds().deployment, {"default/w", "default/w", "other/w"}, kDeployment},
                 {kinds().replica_set, {"default/old"}, kSet},
                 {kinds().pod, {"default/p1", "default/p2"}, kPod}};
  add_fields(world);
  std::erase_if(world.fields, [](const Field& field) { return field.kind == kinds().replication_controller; });
  world.acts = {{1, [&] { world.play_kubelet({"n1", "n2", "n3"}); }}};
  world.judge_rest = [&] { judge_rest(world); };
  world.live();
}

TEST(ReplicaSetLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/replica_sets.txt", .seed = 2, .edits = 900, .has_memory = true});
  world.add([] { return make_replicaset_controller({.burst = 3}); });
  world.add([] { return make_replication_controller(); });
  world.sorts = {{kinds().replica_set, {"default/a", "default/b"}, kSet},
                 {kinds().replication_controller, {"default/a", "other/c"}, kController},
                 {kinds().pod, {"default/p1", "default/p2", "other/p1"}, kPod}};
  add_fields(world);
  std::erase_if(world.fields, [](const Field& field) { return field.kind == kinds().deployment; });
  world.fields.push_back({kinds().replica_set, "metadata ownerReferences", {"[$owner(Deployment default/w)]", ""}});
  world.fields.push_back({kinds().replica_set,
                          "spec selector",
                          {"{matchLabels: {app: w}}", "{matchExpressions: [{key: app, operator: In, values: [w, v]}]}", ""}});
  world.fields.push_back({kinds().replica_set, "spec minReadySeconds", {"5", "30", ""}});
  world.fields.push_back({kinds().replica_set, "spec template metadata labels", {"{app: w, more: x}", "{app: w}"}});
  world.acts = {{1, [&] { world.play_kubelet({"n1", "n2", "n3"}); }}};
  world.judge_rest = [&] { judge_rest(world); };
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
