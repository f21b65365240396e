// Disruption budgets over pods of all sorts of owners, and devices whose taints drive pods away.
#include "controllers/budget_ledger.h"
#include "controllers/services.h"
#include "controllers/workloads.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

TEST(BudgetLives, AreAsRecorded) {
  World world(
      {.file = "tests/controllers/lives/budgets.txt", .seed = 40, .edits = 2400, .readable = 25'000, .longest = std::chrono::seconds(50)});
  world.add([] { return make_disruption_controller(); });
  const Kind budget = kinds().pod_disruption_budget, pod = kinds().pod, set = kinds().replica_set, deployment = kinds().deployment,
             stateful = kinds().stateful_set, rc = kinds().replication_controller;
  const std::string owned =
      "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}, ownerReferences: [$owner(ReplicaSet default/w-1)]}, spec: {}, status: "
      "{phase: Running, conditions: [{type: Ready, status: 'True'}]}}";
  const std::vector<std::string> pods = {"default/p1", "default/p2", "default/p3", "default/p4", "other/p1"};
  world.sorts = {
      {budget,
       {"default/b", "default/a", "other/b"},
       "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {}, spec: {minAvailable: 1, selector: {matchLabels: {app: w}}}}"},
      {pod, pods, owned},
      {pod, pods, owned},
      {set,
       {"default/w-1"},
       "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {ownerReferences: [$owner(Deployment default/w)]}, spec: {replicas: 3}}"},
      {deployment, {"default/w"}, "{apiVersion: apps/v1, kind: Deployment, metadata: {}, spec: {replicas: 4}}"},
      {stateful, {"default/s"}, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {}, spec: {replicas: 2}}"},
      {rc, {"default/r"}, "{apiVersion: v1, kind: ReplicationController, metadata: {}, spec: {replicas: 2}}"}};
  world.fields = {
      {budget,
       "spec",
       {"{minAvailable: 1, selector: {matchLabels: {app: w}}}", "{minAvailable: 50%, selector: {matchLabels: {app: w}}}",
        "{maxUnavailable: 1, selector: {matchLabels: {app: w}}}",
        "{maxUnavailable: 30%, selector: {matchExpressions: [{key: app, operator: In, values: [w, v]}]}}",
        "{minAvailable: 0, selector: {}}", "{maxUnavailable: 0, selector: {matchLabels: {app: v}}}", "{selector: {matchLabels: {app: w}}}",
        "{minAvailable: 2}", "{minAvailable: 100%, selector: {matchLabels: {app: w}}}"}},
      {budget, "spec minAvailable", {"1", "2", "50%", "3", "x"}},
      {budget,
       "status disruptedPods",
       {"{p1: '$t'}", "{p1: '$t-119', p2: '$t-120'}", "{p2: '$t-121', gone: '$t'}", "{p3: x}", "{p1: '$t', p2: '$t-60', p3: '$t-30'}", ""}},
      {pod, "metadata labels", {"{app: w}", "{app: w}", "{app: v}", "{}"}},
      {pod,
       "metadata ownerReferences",
       {"[$owner(ReplicaSet default/w-1)]", "[$owner(StatefulSet default/s)]", "[$owner(ReplicationController default/r)]",
        "[$owner(ReplicaSet default/gone)]", "[{apiVersion: batch/v1, kind: Job, name: j, uid: u-j, controller: true}]",
        "[{apiVersion: x/v1, kind: Thing, name: j, uid: u-t, controller: true}]", "[$owner(Deployment default/w)]", ""}},
      {pod,
       "status conditions",
       {"[{type: Ready, status: 'True'}]", "[{type: Ready, status: 'False'}]",
        "[{type: Ready, status: 'True'}, {type: DisruptionTarget, status: 'True', reason: EvictionByEvictionAPI, lastTransitionTime: "
        "'$t'}]",
        "[{type: DisruptionTarget, status: 'True', reason: TerminationByKubelet, lastTransitionTime: '$t-200'}]",
        "[{type: DisruptionTarget, status: 'False', lastTransitionTime: '$t-200'}]", ""}},
      {pod, "status phase", {"Running", "Succeeded", "Failed", "Pending"}},
      {set, "spec replicas", {"0", "1", "3", "5"}},
      {set, "metadata ownerReferences", {"[$owner(Deployment default/w)]", ""}},
      {deployment, "spec replicas", {"0", "2", "4", "10", ""}},
      {stateful, "spec replicas", {"0", "2", "4"}},
      {rc, "spec replicas", {"1", "2"}}};
  world.acts = {{1, [&] { world.play_kubelet({"n1"}); }}};
  // What it says of a budget by number is what a plain walk counts.
  world.judge_rest = [&] {
    for (const std::string& key : world.keys(budget)) {
      const json::Value& one = *world.find(budget, key);
      const json::Value* least = json::find(one, {"spec", "minAvailable"});
      if (least == nullptr || !least->is_int64() || json::find(one, {"spec", "maxUnavailable"}) != nullptr ||
          !get_string(one, {"metadata", "deletionTimestamp"}).empty())
        continue;
      const auto selector = label_selector_of(one);
      std::int64_t all = 0, healthy = 0;
      for (const std::string& pod_key : world.keys(pod)) {
        const json::Value& document = *world.find(pod, pod_key);
        if (split_key(pod_key).first != split_key(key).first ||
            !selector.matches(model::Labels::from_json(json::find(document, {"metadata", "labels"}))))
          continue;
        ++all;
        healthy += condition_status(document, "Ready") == "True" && get_string(document, {"metadata", "deletionTimestamp"}).empty();
      }
      const std::int64_t allowed = all == 0 ? 0 : std::max<std::int64_t>(0, healthy - least->get_int64());
      if (get_int(one, {"status", "currentHealthy"}) != healthy || get_int(one, {"status", "expectedPods"}) != all ||
          get_int(one, {"status", "disruptionsAllowed"}) != allowed)
        world.wrong(fmt::format("{} says {}, there are {} pods, {} healthy, {} may go", key, brief(*json::find(one, "status")), all,
                                healthy, allowed));
    }
  };
  world.live();
}

TEST(DeviceTaintLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/device_taints.txt",
               .seed = 41,
               .edits = 2100,
               .has_memory = true,
               .readable = 22'000,
               .longest = std::chrono::seconds(8)});
  world.add([] { return make_device_taint_eviction_controller(); });
  const Kind claim = kinds().resource_claim, slice = kinds().resource_slice, rule = kinds().device_taint_rule, pod = kinds().pod;
  const std::vector<std::string> pods = {"default/p", "default/q", "other/p"};
  world.sorts = {
      {claim,
       {"default/c", "other/c"},
       "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {}, spec: {}, status: {allocation: {devices: {results: [{driver: "
       "d, pool: p, device: d1}]}}, reservedFor: [{resource: pods, name: p, uid: '$uid(Pod default/p)'}, {resource: pods, name: q, uid: "
       "'$uid(Pod default/q)'}]}}"},
      {slice,
       {"s1", "s2"},
       "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {}, spec: {driver: d, pool: {name: p, generation: 1}, devices: "
       "[{name: d1, taints: [{key: bad, effect: NoExecute, timeAdded: '$t'}]}, {name: d2}]}}"},
      {rule,
       {"r1", "r2"},
       "{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: {}, spec: {deviceSelector: {driver: d}, taint: {key: rule, "
       "effect: NoExecute, timeAdded: '$t'}}}"},
      {pod, pods,
       "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1, schedulingGroup: {podGroupName: g}, resourceClaims: [{name: one, "
       "resourceClaimName: c}]}}"},
      {pod, pods, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1, resourceClaims: [{name: one, resourceClaimName: c}]}}"}};
  world.fields = {
      {claim,
       "status reservedFor",
       {"[{resource: pods, name: p, uid: '$uid(Pod default/p)'}, {resource: pods, name: q, uid: '$uid(Pod default/q)'}]",
        "[{resource: pods, name: p, uid: '$uid(Pod other/p)'}]", "[{apiGroup: scheduling.k8s.io, resource: podgroups, name: g, uid: u-g}]",
        ""}},
      {claim,
       "status allocation devices results",
       {"[{driver: d, pool: p, device: d1}]", "[{driver: d, pool: p, device: d2}, {driver: d, pool: q, device: d1}]",
        "[{driver: d, pool: p, device: d1, tolerations: [{key: bad, operator: Exists, effect: NoExecute, tolerationSeconds: 10}]}]",
        "[{driver: d, pool: p, device: d1, tolerations: [{operator: Exists, effect: NoExecute}]}]",
        "[{driver: e, pool: p, device: d1, tolerations: [{key: rule, operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {key: "
        "rule, operator: Exists, effect: NoExecute, tolerationSeconds: 3}]}]",
        "[]"}},
      {slice,
       "spec devices",
       {"[{name: d1, taints: [{key: bad, effect: NoExecute, timeAdded: '$t'}]}, {name: d2}]",
        "[{name: d1}, {name: d2, taints: [{key: bad, effect: NoExecute, timeAdded: '$t-5'}, {key: x, effect: NoSchedule}]}]",
        "[{name: d1, taints: [{key: bad, value: v, effect: NoSchedule}]}]", "[]"}},
      {slice, "spec pool", {"{name: p, generation: 1}", "{name: p, generation: 2}", "{name: q, generation: 1}"}},
      {slice, "spec driver", {"d", "d", "e"}},
      {rule,
       "spec taint",
       {"{key: rule, effect: NoExecute, timeAdded: '$t'}", "{key: rule, effect: None}", "{key: rule, effect: NoSchedule, timeAdded: '$t'}",
        "{key: rule, value: v, effect: NoExecute, timeAdded: '$t+9'}"}},
      {rule, "spec deviceSelector", {"{driver: d}", "{driver: d, pool: p, device: d2}", "{pool: q}", "", "{device: d1}"}},
      {pod, "spec nodeName", {"n1", "n1", ""}},
      {pod, "spec resourceClaims", {"[{name: one, resourceClaimName: c}]", "[{name: one, resourceClaimTemplateName: t}]", ""}},
      {pod, "status resourceClaimStatuses", {"[{name: one, resourceClaimName: c}]", ""}},
      {claim, "metadata ownerReferences", {"[$owner(Pod default/p)]", ""}}};
  world.acts = {{2, [&] { world.play_kubelet({"n1"}); }}};
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
