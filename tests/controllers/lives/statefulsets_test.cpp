// StatefulSets with their revisions and claims, over a kubelet that does as the dice say.
#include "controllers/workloads.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_int;
using json::get_string;

constexpr const char* kSet =
    "{apiVersion: apps/v1, kind: StatefulSet, metadata: {}, spec: {replicas: 2, serviceName: s, revisionHistoryLimit: 1, selector: "
    "{matchLabels: "
    "{app: w}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}], template: {metadata: {labels: "
    "{app: "
    "w}}, spec: {containers: [{name: c, image: a1}]}}}}";
constexpr const char* kPod = "{apiVersion: v1, kind: Pod, metadata: {labels: {app: w}}, spec: {containers: [{name: c}]}}";
constexpr const char* kClaim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {}, spec: {}}";
constexpr const char* kRevision =
    "{apiVersion: apps/v1, kind: ControllerRevision, metadata: {labels: {app: w}}, revision: 3, data: {spec: {template: {metadata: "
    "{labels: {app: "
    "w}}, spec: {containers: [{name: c, image: a9}]}}}}}";

std::vector<Field> fields() {
  const Kind set = kinds().stateful_set, claim = kinds().persistent_volume_claim, revision = kinds().controller_revision;
  std::vector<Field> out = {
      {set, "spec replicas", {"0", "1", "2", "3", "4", ""}},
      {set, "spec replicas", {"0", "1", "2", "3", "4", ""}},
      {set, "spec template spec containers", {"[{name: c, image: a1}]", "[{name: c, image: a2}]", "[{name: c, image: a3}]"}},
      {set, "spec template spec containers", {"[{name: c, image: a1}]", "[{name: c, image: a2}]", "[{name: c, image: a3}]"}},
      {set, "spec template spec volumes", {"[{name: data, emptyDir: {}}, {name: x, emptyDir: {}}]", ""}},
      {set, "spec podManagementPolicy", {"Parallel", "OrderedReady", "Parallel", ""}},
      {set, "spec ordinals", {"{start: 1}", "{start: 2}", ""}},
      {set,
       "spec updateStrategy",
       {"{type: OnDelete}", "{type: RollingUpdate, rollingUpdate: {partition: 1}}", "{type: RollingUpdate, rollingUpdate: {partition: 2}}",
        "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}", "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}",
        "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 50%, partition: 1}}", "", ""}},
      {set, "spec minReadySeconds", {"5", "", ""}},
      {set, "spec serviceName", {"s", "other", ""}},
      {set, "spec revisionHistoryLimit", {"0", "1", "2", ""}},
      {set,
       "spec persistentVolumeClaimRetentionPolicy",
       {"{whenDeleted: Delete, whenScaled: Delete}", "{whenDeleted: Retain, whenScaled: Delete}",
        "{whenDeleted: Delete, whenScaled: Retain}", ""}},
      {set,
       "spec persistentVolumeClaimRetentionPolicy",
       {"{whenDeleted: Delete, whenScaled: Delete}", "{whenDeleted: Delete}", "{whenScaled: Delete}"}},
      {set,
       "spec volumeClaimTemplates",
       {"[{metadata: {name: data, labels: {tier: x}}, spec: {}}, {metadata: {name: logs, annotations: {a: b}}, spec: {}}]",
        "[{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]", ""}},
      {set, "spec selector", {"{matchLabels: {app: w}}", "{matchLabels: {app: w}}", "{}", ""}},
      {set, "status collisionCount", {"1", ""}},
      {set, "metadata annotations a", {"b", ""}},
      {claim, "metadata finalizers", {"[x]", ""}},
      {claim,
       "metadata ownerReferences",
       {"[{kind: Other, name: o, uid: u-o, controller: true}]", "[{kind: StatefulSet, name: w, uid: '$uid(StatefulSet default/w)'}]",
        "[{kind: Pod, name: w-0, uid: u-old}]", "[$owner(Pod default/w-1)]", "[{kind: Other, name: o, uid: u-o}]", ""}},
      {revision, "revision", {"1", "9"}},
      {revision, "metadata ownerReferences", {""}},
      {revision, "metadata labels app", {"w", "v"}},
      {kinds().pod, "metadata labels controller-revision-hash", {"", "w-x"}},
      {kinds().pod, "metadata labels apps.kubernetes.io/pod-index", {"", "7"}},
      {kinds().pod, "metadata labels statefulset.kubernetes.io/pod-name", {"", "x"}},
  };
  for (Field& field : pod_fields()) out.push_back(std::move(field));
  return out;
}

TEST(StatefulSetLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/stateful_sets.txt", .seed = 3, .edits = 1800, .readable = 25'000});
  world.add([] { return make_statefulset_controller(); });
  world.sorts = {{kinds().stateful_set, {"default/w", "default/w", "default/w", "default/w-x"}, kSet},
                 {kinds().pod, {"default/w-0", "default/w-5", "default/w-05", "default/w-a"}, kPod},
                 {kinds().persistent_volume_claim, {"default/data-w-0", "default/data-w-1", "default/logs-w-0"}, kClaim},
                 {kinds().controller_revision, {"default/w-old", "default/r2"}, kRevision}};
  world.fields = fields();
  world.acts = {
      {3,
       [&] {
         world.play_kubelet({"n1", "n2"});
       }},
      {2, [&] {
         // All that can be is ready: rollouts come to their end.
         for (const std::string& key : world.keys(kinds().pod)) {
           json::Value pod = *world.find(kinds().pod, key);
           if (!get_string(pod, {"metadata", "deletionTimestamp"}).empty()) {
             world.erase(kinds().pod, key, fmt::format("pod {} is gone", key));
             continue;
           }
           if (get_string(pod, {"status", "phase"}) == "Failed" || get_string(pod, {"status", "phase"}) == "Succeeded") continue;
           json::set(pod, {"spec", "nodeName"}, json::Value("n1"));
           merge(pod,
                 yaml(world.filled_in("status: {phase: Running, conditions: [{type: Ready, status: 'True', lastTransitionTime: '$t'}]}")),
                 true);
           world.put(kinds().pod, key, std::move(pod), fmt::format("pod {} is ready", key));
         }
       }}};
  // One after the other: no two pods of an ordered set begin at once, and none is made beside one of its name.
  world.judge = [&] {
    for (const std::string& key : world.keys(kinds().stateful_set)) {
      const json::Value& set = *world.find(kinds().stateful_set, key);
      if (get_int(set, {"status", "readyReplicas"}) > get_int(set, {"status", "replicas"}) ||
          get_int(set, {"status", "availableReplicas"}) > get_int(set, {"status", "readyReplicas"}))
        world.wrong(fmt::format("{} has more ready than there are", key));
    }
  };
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
