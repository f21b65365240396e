// Claims and volumes: bound, lost, protected, attached, grown; claims of devices.
#include "controllers/services.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using json::get_array;
using json::get_string;

constexpr const char* kVolume =
    "{apiVersion: v1, kind: PersistentVolume, metadata: {finalizers: [kubernetes.io/pv-protection]}, spec: {capacity: {storage: 5Gi}, "
    "accessModes: [ReadWriteOnce], "
    "persistentVolumeReclaimPolicy: Retain, storageClassName: gold, csi: {driver: d, volumeHandle: h}}}";
constexpr const char* kClaim =
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {finalizers: [kubernetes.io/pvc-protection]}, spec: {accessModes: "
    "[ReadWriteOnce], storageClassName: gold, "
    "resources: {requests: {storage: 3Gi}}}}";
constexpr const char* kClass =
    "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {}, provisioner: berth.dev/local, volumeBindingMode: "
    "WaitForFirstConsumer}";

TEST(VolumeLives, OfAttachingAreAsRecorded) {
  World world({.file = "tests/controllers/lives/attaching.txt",
               .seed = 17,
               .edits = 2100,
               .has_memory = true,
               .readable = 22'000,
               .longest = std::chrono::seconds(150)});
  world.add([] { return make_attach_detach_controller(); });
  const Kind volume = kinds().persistent_volume, claim = kinds().persistent_volume_claim, pod = kinds().pod, node = kinds().node,
             attachment = kinds().volume_attachment, driver = kinds().csi_driver;
  constexpr const char* kBound = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {uid: u-a}, spec: {volumeName: v1}}";
  constexpr const char* kHeld =
      "{apiVersion: v1, kind: PersistentVolume, metadata: {}, spec: {accessModes: [ReadWriteOnce], claimRef: {namespace: default, name: a, "
      "uid: u-a}, csi: {driver: d, volumeHandle: h1}}}";
  constexpr const char* kPod =
      "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1, volumes: [{name: x, persistentVolumeClaim: {claimName: a}}]}}";
  constexpr const char* kNode =
      "{apiVersion: v1, kind: Node, metadata: {annotations: {volumes.kubernetes.io/controller-managed-attach-detach: 'true'}}, status: "
      "{conditions: [{type: Ready, status: 'True'}]}}";
  world.sorts = {{claim, {"default/a"}, kBound},
                 {volume, {"v1"}, kHeld},
                 {pod, {"default/p", "default/q", "default/r"}, kPod},
                 {pod, {"default/p", "default/q", "default/r"}, kPod},
                 {node, {"n1", "n2"}, kNode},
                 {driver, {"d"}, "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {}, spec: {attachRequired: true}}"},
                 {attachment,
                  {"by-hand"},
                  "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {}, spec: {attacher: d, nodeName: n1, source: "
                  "{persistentVolumeName: v1}}}"}};
  world.fields = {
      {claim, "spec volumeName", {"v1", "gone"}},
      {volume, "spec accessModes", {"[ReadWriteOnce]", "[ReadWriteMany]", "[ReadOnlyMany]", "[]"}},
      {volume, "spec csi", {"{driver: d, volumeHandle: h1}", "{driver: d, volumeHandle: h1}", "{driver: e, volumeHandle: h2}", ""}},
      {volume, "spec claimRef uid", {"u-a", "u-a", "u-b"}},
      {pod, "spec nodeName", {"n1", "n2", "n3", ""}},
      {pod, "status phase", {"Running", "Succeeded", "Failed"}},
      {pod, "spec volumes", {"[{name: x, persistentVolumeClaim: {claimName: a}}]", "[{name: x, ephemeral: {}}]", "[]"}},
      {node,
       "metadata annotations",
       {"{volumes.kubernetes.io/controller-managed-attach-detach: 'true'}",
        "{volumes.kubernetes.io/controller-managed-attach-detach: 'true'}", ""}},
      {node,
       "status conditions",
       {"[{type: Ready, status: 'True'}]", "[{type: Ready, status: 'Unknown'}]", "[{type: Ready, status: 'False'}]"}},
      {node, "status volumesInUse", {"[kubernetes.io/csi/d^h1]", "[kubernetes.io/csi/d^h1]", "[x]", ""}},
      {node, "spec taints", {"[{key: node.kubernetes.io/out-of-service, effect: NoExecute}]", "", "", ""}},
      {attachment,
       "status",
       {"{attached: true, attachmentMetadata: {devicePath: /dev/x}}", "{attached: true}",
        "{attached: false, attachError: {message: no room}}", "{attached: false, attachError: {message: no luck}}"}},
      {attachment, "metadata finalizers", {"[d/attacher]", ""}},
      {driver, "spec attachRequired", {"true", "false", ""}}};
  world.acts = {{3,
                 [&] {
                   world.play_kubelet({"n1", "n2"});
                 }},
                {3, [&] {
                   const std::string key = world.any(attachment);
                   if (key.empty()) return;
                   json::Value one = *world.find(attachment, key);
                   if (!get_string(one, {"metadata", "deletionTimestamp"}).empty())
                     return world.erase(attachment, key, fmt::format("{} is detached", key));
                   one.get_object()["status"] = json::Object{{"attached", true}};
                   world.put(attachment, key, std::move(one), fmt::format("{} is attached", key));
                 }}};
  world.live();
}

TEST(VolumeLives, OfProtectionAreAsRecorded) {
  World world({.file = "tests/controllers/lives/protection.txt",
               .seed = 18,
               .edits = 1800,
               .readable = 18'000,
               .longest = std::chrono::seconds(3)});
  world.add([] { return make_volume_protection_controller(); });
  world.add([] { return make_attributes_class_protection_controller(); });
  world.add([] { return make_pod_group_protection_controller(); });
  world.add([] { return make_ephemeral_volume_controller(); });
  const Kind volume = kinds().persistent_volume, claim = kinds().persistent_volume_claim, pod = kinds().pod,
             cls = kinds().volume_attributes_class, group = kinds().pod_group;
  world.sorts = {
      {volume, {"v1"}, kVolume},
      {claim, {"default/a", "default/p-scratch"}, kClaim},
      {cls, {"fast", "slow"}, "{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {}}"},
      {group,
       {"default/g", "default/h"},
       "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {finalizers: [scheduling.k8s.io/podgroup-protection]}}"},
      {pod,
       {"default/p", "default/q"},
       "{apiVersion: v1, kind: Pod, metadata: {}, spec: {nodeName: n1, schedulingGroup: {podGroupName: g}, volumes: [{name: x, "
       "persistentVolumeClaim: {claimName: a}}]}}"}};
  world.fields = {
      {volume, "status phase", {"Bound", "Available", "Released"}},
      {volume, "spec volumeAttributesClassName", {"fast", "slow", ""}},
      {claim, "spec volumeAttributesClassName", {"fast", "slow", ""}},
      {claim,
       "status",
       {"{currentVolumeAttributesClassName: fast}", "{modifyVolumeStatus: {targetVolumeAttributesClassName: slow}}", "{}"}},
      {claim, "metadata finalizers", {"[kubernetes.io/pvc-protection, x]", "[kubernetes.io/pvc-protection]"}},
      {claim, "metadata ownerReferences", {"[$owner(Pod default/p)]", "[$owner(Pod default/q)]", ""}},
      {cls, "metadata finalizers", {"[kubernetes.io/vac-protection]", "[x]", ""}},
      {pod, "spec schedulingGroup", {"{podGroupName: g}", "{podGroupName: h}", "", ""}},
      {pod, "spec nodeName", {"n1", "n1", ""}},
      {pod, "status phase", {"Running", "Succeeded", "Failed", "Pending"}},
      {pod, "metadata deletionGracePeriodSeconds", {"0", "30", ""}},
      {pod,
       "spec volumes",
       {"[{name: x, persistentVolumeClaim: {claimName: a}}]",
        "[{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {labels: {a: b}}, spec: {accessModes: [ReadWriteOnce]}}}}]",
        "[{name: y, persistentVolumeClaim: {claimName: b}}, {name: x, persistentVolumeClaim: {claimName: a}}]", "[{name: e, emptyDir: {}}]",
        ""}}};
  world.acts = {{2, [&] { world.play_kubelet({"n1"}); }},
                {4, [&] {
                   const Sort& sort = world.sorts[static_cast<std::size_t>(world.life.dice.below(4))];
                   const std::string key = world.any(sort.kind);
                   if (!key.empty()) world.remove(sort.kind, key, {}, fmt::format("delete {} {}", sort.kind->kind, key));
                 }}};
  world.live();
}

TEST(VolumeLives, OfGrowthAreAsRecorded) {
  World world({.file = "tests/controllers/lives/growth.txt",
               .seed = 19,
               .edits = 360,
               .has_memory = true,
               .readable = 6'000,
               .longest = std::chrono::seconds(3)});
  world.add([] { return make_volume_expander(); });
  const Kind volume = kinds().persistent_volume, claim = kinds().persistent_volume_claim;
  world.sorts = {{volume, {"v1"}, kVolume},
                 {claim,
                  {"default/a"},
                  "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {}, spec: {volumeName: v1, resources: {requests: {storage: "
                  "3Gi}}}, status: {phase: Bound, capacity: {storage: 3Gi}}}"}};
  world.fields = {{claim, "spec resources requests storage", {"3Gi", "4Gi", "5Gi", "2Gi"}},
                  {claim, "status capacity storage", {"3Gi", "4Gi", "5Gi"}},
                  {claim, "status phase", {"Bound", "Pending"}},
                  {claim, "spec volumeName", {"v1", "gone"}},
                  {volume, "spec csi", {"{driver: d}", ""}}};
  world.live();
}

void add_claims(World& world) {
  const Kind claim = kinds().resource_claim, tmpl = kinds().resource_claim_template, pod = kinds().pod, group = kinds().pod_group;
  world.sorts = {{claim,
                  {"default/shared", "default/other"},
                  "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {finalizers: "
                  "[resource.kubernetes.io/delete-protection]}, spec: {}, status: {allocation: {devices: {results: [{driver: d, pool: p, "
                  "device: d1}]}}, reservedFor: [{resource: pods, name: p, uid: '$uid(Pod default/p)'}]}}"},
                 {tmpl,
                  {"default/t", "default/u"},
                  "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {}, spec: {metadata: {labels: {a: b}, "
                  "annotations: {c: d}}, spec: {x: 1}}}"},
                 {pod,
                  {"default/p", "default/q", "default/a-pod-with-a-very-long-name-so-that-names-are-cut"},
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {resourceClaims: [{name: one, resourceClaimTemplateName: t}, {name: "
                  "two, resourceClaimName: shared}]}}"},
                 {pod,
                  {"default/p", "default/q"},
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {schedulingGroup: {podGroupName: g}, resourceClaims: [{name: one, "
                  "resourceClaimTemplateName: t}]}}"},
                 {group,
                  {"default/g"},
                  "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {}, spec: {resourceClaims: [{name: one, "
                  "resourceClaimTemplateName: t}]}}"}};
  world.fields = {
      {claim,
       "status reservedFor",
       {"[{resource: pods, name: p, uid: '$uid(Pod default/p)'}]",
        "[{resource: pods, name: p, uid: u-gone}, {resource: pods, name: q, uid: '$uid(Pod default/q)'}]",
        "[{apiGroup: scheduling.k8s.io, resource: podgroups, name: g, uid: '$uid(PodGroup default/g)'}]",
        "[{apiGroup: x, resource: things, name: a, uid: u-x}]", ""}},
      {claim,
       "status allocation",
       {"{devices: {results: [{driver: d, pool: p, device: d1}]}}",
        "{devices: {results: [{driver: d, pool: p, device: d2, tolerations: [{key: bad, operator: Exists, effect: NoExecute, "
        "tolerationSeconds: 20}]}]}}",
        ""}},
      {claim, "metadata finalizers", {"[resource.kubernetes.io/delete-protection]", "[resource.kubernetes.io/delete-protection, x]", ""}},
      {claim, "metadata ownerReferences", {"[$owner(Pod default/p)]", "[$owner(PodGroup default/g)]", ""}},
      {pod, "spec nodeName", {"n1", ""}},
      {pod, "status phase", {"Running", "Succeeded", "Failed", ""}},
      {pod,
       "status resourceClaimStatuses",
       {"[{name: one}]", "[{name: one, resourceClaimName: shared}]", "[{name: one, resourceClaimName: gone}]", ""}},
      {pod, "status extendedResourceClaimStatus", {"{resourceClaimName: other}", "", ""}},
      {pod,
       "spec resourceClaims",
       {"[{name: one, resourceClaimTemplateName: t}]", "[{name: one, resourceClaimTemplateName: gone}]",
        "[{name: two, resourceClaimName: shared}, {name: one, resourceClaimTemplateName: u}]", ""}},
      {pod, "spec schedulingGroup", {"{podGroupName: g}", ""}},
      {group,
       "spec resourceClaims",
       {"[{name: one, resourceClaimTemplateName: t}]", "[{name: two, resourceClaimName: shared}]",
        "[{name: one, resourceClaimTemplateName: gone}]", ""}},
      {tmpl, "spec spec", {"{x: 1}", "{x: 2}"}}};
  world.acts = {{3, [&world] { world.play_kubelet({"n1", "n2"}); }}};
}

TEST(ClaimLives, OfPodsAreAsRecorded) {
  World world({.file = "tests/controllers/lives/claims.txt",
               .seed = 20,
               .edits = 1500,
               .has_memory = true,
               .is_restless = true,
               .readable = 18'000,
               .longest = std::chrono::seconds(3)});
  world.add([] { return make_resource_claim_controller(); });
  add_claims(world);
  world.live();
}

TEST(ClaimLives, OfGroupsAreAsRecorded) {
  World world({.file = "tests/controllers/lives/group_claims.txt",
               .seed = 21,
               .edits = 1500,
               .has_memory = true,
               .is_restless = true,
               .readable = 15'000,
               .longest = std::chrono::seconds(3)});
  world.add([] { return make_resource_claim_controller({.knows_groups = true}); });
  add_claims(world);
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
