// Devices whose taints drive pods away, and the rules that say so.
#include "controllers/services.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

TEST(DeviceTaintLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/device_taints.txt",
               .seed = 41,
               .edits = 700,
               .has_memory = true,
               .readable = 26'000,
               .longest = std::chrono::seconds(8)});
  world.add([] { return make_device_taint_eviction_controller(); });
  const Kind claim = kinds().resource_claim, slice = kinds().resource_slice, rule = kinds().device_taint_rule, pod = kinds().pod;
  const std::vector<std::string> pods = {"default/p", "default/q", "other/p"};
  world.sorts = {{claim,
                  {"default/c", "other/c"},
                  "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {}, "
                  "spec: {}, status: {allocation: {devices: {results: [{driver: "
                  "d, pool: p, device: d1}]}}, reservedFor: [{resource: pods, name: p, "
                  "uid: '$uid(Pod default/p)'}, {resource: pods, name: q, uid: "
                  "'$uid(Pod default/q)'}]}}"},
                 {slice,
                  {"s1", "s2"},
                  "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {}, "
                  "spec: {driver: d, pool: {name: p, generation: 1}, devices: "
                  "[{name: d1, taints: [{key: bad, effect: NoExecute, timeAdded: '$t'}]}, "
                  "{name: d2}]}}"},
                 {rule,
                  {"r1", "r2"},
                  "{apiVersion: resource.k8s.io/v1beta2, kind: DeviceTaintRule, metadata: "
                  "{}, spec: {deviceSelector: {driver: d}, taint: {key: rule, "
                  "effect: NoExecute, timeAdded: '$t'}}}"},
                 {pod, pods,
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1, "
                  "schedulingGroup: {podGroupName: g}, resourceClaims: [{name: one, "
                  "resourceClaimName: c}]}}"},
                 {pod, pods,
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1, "
                  "resourceClaims: [{name: one, resourceClaimName: c}]}}"}};
  world.fields = {{claim,
                   "status reservedFor",
                   {"[{resource: pods, name: p, uid: '$uid(Pod default/p)'}, {resource: "
                    "pods, name: q, uid: '$uid(Pod default/q)'}]",
                    "[{resource: pods, name: p, uid: '$uid(Pod other/p)'}]",
                    "[{apiGroup: scheduling.k8s.io, resource: podgroups, name: g, uid: "
                    "u-g}]",
                    ""}},
                  {claim,
                   "status allocation devices results",
                   {"[{driver: d, pool: p, device: d1}]", "[{driver: d, pool: p, device: d2}, {driver: d, pool: q, device: d1}]",
                    "[{driver: d, pool: p, device: d1, tolerations: [{key: bad, operator: "
                    "Exists, effect: NoExecute, tolerationSeconds: 10}]}]",
                    "[{driver: d, pool: p, device: d1, tolerations: [{operator: Exists, "
                    "effect: NoExecute}]}]",
                    "[{driver: e, pool: p, device: d1, tolerations: [{key: rule, operator: "
                    "Exists, effect: NoExecute, tolerationSeconds: 5}, {key: "
                    "rule, operator: Exists, effect: NoExecute, tolerationSeconds: 3}]}]",
                    "[]"}},
                  {slice,
                   "spec devices",
                   {"[{name: d1, taints: [{key: bad, effect: NoExecute, timeAdded: "
                    "'$t'}]}, {name: d2}]",
                    "[{name: d1}, {name: d2, taints: [{key: bad, effect: NoExecute, "
                    "timeAdded: '$t-5'}, {key: x, effect: NoSchedule}]}]",
                    "[{name: d1, taints: [{key: bad, value: v, effect: NoSchedule}]}]", "[]"}},
                  {slice, "spec pool", {"{name: p, generation: 1}", "{name: p, generation: 2}", "{name: q, generation: 1}"}},
                  {slice, "spec driver", {"d", "d", "e"}},
                  {rule,
                   "spec taint",
                   {"{key: rule, effect: NoExecute, timeAdded: '$t'}", "{key: rule, effect: None}",
                    "{key: rule, effect: NoSchedule, timeAdded: '$t'}", "{key: rule, value: v, effect: NoExecute, timeAdded: '$t+9'}"}},
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
