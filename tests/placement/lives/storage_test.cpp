// Claims, volumes, classes, disks and what nodes attach, in all the forms that the volume plugins tell apart, while a seed changes them:
// what each plugin says, what binding would write, and whom a change wakes (told_cluster.h).
#include <fmt/format.h>

#include "placement/cluster_kinds.h"
#include "tests/placement/lives/told_cluster.h"

namespace berth::placement::testing {
namespace {

using berth::testing::Dice;
using berth::testing::LongLife;

constexpr std::array<const char*, 6> kZoneKeys = {
    "topology.kubernetes.io/zone", "topology.kubernetes.io/zone",   "failure-domain.beta.kubernetes.io/zone",
    "topology.gke.io/zone",        "topology.ebs.csi.aws.com/zone", "kubernetes.io/hostname"};
constexpr std::array<const char*, 4> kZones = {"a", "b", "a__b", " b __a"};
constexpr std::array<const char*, 4> kClasses = {"late", "late", "now", "modeless"};
constexpr std::array<const char*, 3> kDrivers = {"csi.x", "ebs.csi.aws.com", "pd.csi.storage.gke.io"};
constexpr std::array<const char*, 5> kDisks = {"vol-1", "aws://a/vol-1", "aws://b//vol-2/", "aws://a/other", "vol-2"};
constexpr std::array<const char*, 4> kNames = {"0", "1", "2", "3"};

/// The objects that a seed makes.
class Storage {
 public:
  explicit Storage(Dice& dice) : dice_(dice) {}

  json::Value node(const std::string& name) {
    json::Object labels = {{"kubernetes.io/hostname", name}};
    for (const char* key : kZoneKeys)
      if (key != kZoneKeys.back() && dice_.chance(45)) labels[key] = dice_.chance(50) ? "a" : "b";
    if (dice_.chance(30)) labels["topology.kubernetes.io/region"] = dice_.chance(70) ? "r" : "s";
    json::Object room = {{"cpu", "4"}, {"memory", "4Gi"}, {"pods", "20"}};
    for (const char* limit : {"attachable-volumes-gce-pd", "attachable-volumes-aws-ebs", "attachable-volumes-azure-disk",
                              "attachable-volumes-cinder", "attachable-volumes-csi-csi.x"})
      if (dice_.chance(40)) room[limit] = std::to_string(dice_.below(3));
    return {{"kind", "Node"}, {"metadata", {{"name", name}, {"labels", labels}}}, {"status", {{"allocatable", room}}}};
  }
  json::Value volume(const std::string& name) {
    json::Value out = {{"kind", "PersistentVolume"}, {"metadata", {{"name", "v" + name}}}, {"status", {{"phase", "Available"}}}};
    json::Object spec = {{"storageClassName", dice_.chance(75) ? dice_.of(kClasses) : ""},
                         {"capacity", {{"storage", fmt::format("{}Gi", 1 + dice_.below(3))}}}};
    put_source(spec);
    if (dice_.chance(85)) spec["accessModes"] = modes();
    if (dice_.chance(15)) spec["volumeMode"] = dice_.chance(50) ? "Block" : "Filesystem";
    if (dice_.chance(10)) spec["volumeAttributesClassName"] = "gold";
    if (dice_.chance(20))
      spec["claimRef"] = json::Object{{"namespace", "default"}, {"name", "c" + std::string(dice_.of(kNames))}, {"uid", some_uid()}};
    if (dice_.chance(45))
      spec["nodeAffinity"] =
          json::Object{{"required", {{"nodeSelectorTerms", json::Array{{{"matchExpressions", json::Array{requirement()}}}}}}}};
    json::Object labels;
    for (std::size_t i = 1; i < 3; ++i)
      if (dice_.chance(30)) labels[kZoneKeys[i]] = dice_.of(kZones);
    if (dice_.chance(5)) labels[kZoneKeys[1]] = dice_.chance(50) ? "" : "a__";
    if (dice_.chance(15)) labels["topology.kubernetes.io/region"] = "r";
    if (dice_.chance(15)) labels["failure-domain.beta.kubernetes.io/region"] = "r";
    json::set(out, {"metadata", "labels"}, labels);
    if (dice_.chance(5)) json::set(out, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    if (dice_.chance(5)) json::set(out, {"metadata", "annotations"}, {{"volume.beta.kubernetes.io/storage-class", "late"}});
    if (dice_.chance(15)) json::set(out, {"status", "phase"}, dice_.chance(50) ? "Bound" : "Released");
    json::set(out, {"spec"}, spec);
    return out;
  }
  json::Value claim(const std::string& name) {
    json::Value out = {{"kind", "PersistentVolumeClaim"},
                       {"metadata", {{"name", "c" + name}, {"namespace", "default"}, {"uid", "uid-c" + name}}},
                       {"status", {{"phase", "Pending"}}}};
    json::Object annotations, spec = {{"resources", {{"requests", {{"storage", fmt::format("{}Gi", 1 + dice_.below(3))}}}}}};
    if (dice_.chance(85)) spec["storageClassName"] = dice_.chance(90) ? dice_.of(kClasses) : "missing";
    if (dice_.chance(85)) spec["accessModes"] = modes();
    if (dice_.chance(15)) spec["volumeMode"] = dice_.chance(30) ? "Block" : "Filesystem";
    if (dice_.chance(8)) spec["volumeAttributesClassName"] = "gold";
    if (dice_.chance(45)) {
      spec["volumeName"] = dice_.chance(90) ? "v" + std::string(dice_.of(kNames)) : "gone";
      if (dice_.chance(85)) annotations["pv.kubernetes.io/bind-completed"] = "yes";
    } else if (dice_.chance(25)) {
      annotations["volume.kubernetes.io/selected-node"] = "n" + std::string(dice_.of(kNames));
    }
    if (dice_.chance(15)) spec["selector"] = json::Object{{"matchLabels", {{kZoneKeys[0], dice_.of(kZones)}}}};
    if (dice_.chance(3))
      spec["selector"] =
          json::Object{{"matchExpressions", json::Array{{{"key", "k"}, {"operator", "Near"}, {"values", json::Array{"x"}}}}}};
    if (dice_.chance(4)) json::set(out, {"status", "phase"}, "Lost");
    if (dice_.chance(4)) json::set(out, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    if (dice_.chance(5)) annotations["volume.beta.kubernetes.io/storage-class"] = "late";
    json::set(out, {"metadata", "annotations"}, annotations);
    json::set(out, {"spec"}, spec);
    return out;
  }
  /// The claim of the pending pod's ephemeral volume, as its controller made it, or somebody else.
  json::Value made_claim(const std::string& pod, const std::string& uid) {
    json::Value out = claim("");
    json::set(out, {"metadata", "name"}, json::Value(pod + "-e"));
    json::set(out, {"metadata", "uid"}, json::Value("uid-" + pod + "-e"));
    if (dice_.chance(85))
      json::set(out, {"metadata", "ownerReferences"},
                json::Array{{{"kind", "Pod"}, {"name", pod}, {"uid", dice_.chance(90) ? uid : "another"}, {"controller", true}}});
    return out;
  }
  json::Value storage_class() {
    const std::string name = dice_.of(kClasses);
    constexpr std::array<const char*, 6> kProvisioners = {
        "csi.x", "csi.x", "kubernetes.io/no-provisioner", "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs", ""};
    json::Value out = {{"kind", "StorageClass"}, {"metadata", {{"name", name}}}, {"provisioner", dice_.of(kProvisioners)}};
    if (name != "modeless") json::set(out, {"volumeBindingMode"}, name == "late" ? "WaitForFirstConsumer" : "Immediate");
    json::Array terms;
    for (int i = dice_.chance(35) ? 1 + dice_.below(2) : 0; i > 0; --i) {
      json::Array expressions;
      for (int k = dice_.below(3); k > 0; --k)
        expressions.push_back({{"key", dice_.of(kZoneKeys)}, {"values", json::Array{dice_.chance(50) ? "a" : "b"}}});
      terms.push_back(json::Object{{"matchLabelExpressions", expressions}});
    }
    if (!terms.empty()) json::set(out, {"allowedTopologies"}, terms);
    return out;
  }
  json::Value csi_node() {
    json::Array drivers;
    for (const char* driver : kDrivers) {
      if (dice_.chance(25)) continue;
      json::Object one = {{"name", driver}, {"nodeID", "x"}};
      if (dice_.chance(75)) one["allocatable"] = json::Object{{"count", dice_.below(3)}};
      drivers.push_back(std::move(one));
    }
    constexpr std::array<const char*, 4> kMigrated = {"kubernetes.io/gce-pd,kubernetes.io/aws-ebs", "kubernetes.io/gce-pd",
                                                      "kubernetes.io/cinder,kubernetes.io/azure-disk", ""};
    return {{"kind", "CSINode"},
            {"metadata",
             {{"name", "n" + std::string(dice_.of(kNames))},
              {"annotations", {{"storage.alpha.kubernetes.io/migrated-plugins", dice_.of(kMigrated)}}}}},
            {"spec", {{"drivers", drivers}}}};
  }
  json::Value csi_driver() {
    return {{"kind", "CSIDriver"}, {"metadata", {{"name", "csi.x"}}}, {"spec", {{"storageCapacity", dice_.chance(60)}}}};
  }
  json::Value capacity() {
    json::Value out = {{"kind", "CSIStorageCapacity"},
                       {"metadata", {{"name", std::string("k") + dice_.of(kNames)}, {"namespace", "default"}}},
                       {"storageClassName", dice_.chance(85) ? "late" : "now"}};
    if (dice_.chance(85)) json::set(out, {"capacity"}, json::Value(fmt::format("{}Gi", 1 + dice_.below(3))));
    if (dice_.chance(25)) json::set(out, {"maximumVolumeSize"}, json::Value(fmt::format("{}Gi", 1 + dice_.below(3))));
    if (dice_.chance(85))
      json::set(out, {"nodeTopology"},
                dice_.chance(30) ? json::Object() : json::Object{{"matchLabels", {{dice_.of(kZoneKeys), dice_.chance(50) ? "a" : "b"}}}});
    return out;
  }
  json::Value attachment() {
    return {{"kind", "VolumeAttachment"},
            {"metadata", {{"name", std::string("a") + dice_.of(kNames)}}},
            {"spec",
             {{"attacher", dice_.of(kDrivers)},
              {"nodeName", "n" + std::string(dice_.of(kNames))},
              {"source", {{"persistentVolumeName", dice_.chance(80) ? "v" + std::string(dice_.of(kNames)) : ""}}}}}};
  }
  json::Value pod(const std::string& name, const std::string& uid, const std::string& node = "") {
    json::Array volumes;
    for (int i = 1 + dice_.below(2); i > 0; --i) volumes.push_back(pod_volume(i));
    json::Value out = {
        {"kind", "Pod"},
        {"metadata", {{"name", name}, {"namespace", dice_.chance(85) ? "default" : "another"}, {"uid", uid}}},
        {"spec", {{"schedulerName", "default-scheduler"}, {"containers", json::Array{{{"name", "c"}}}}, {"volumes", volumes}}}};
    if (!node.empty()) json::set(out, {"spec", "nodeName"}, json::Value(node));
    return out;
  }

 private:
  std::string some_uid() { return dice_.chance(30) ? "" : "uid-c" + std::string(dice_.of(kNames)); }
  json::Array modes() {
    json::Array out;
    for (const char* mode : {"ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"})
      if (dice_.chance(mode == std::string_view("ReadWriteOnce") ? 75 : 20)) out.push_back(json::Value(mode));
    return out;
  }
  json::Value requirement() {
    const std::string key = dice_.of(kZoneKeys);
    const bool names_node = key == kZoneKeys.back();
    return {
        {"key", key},
        {"operator", dice_.chance(90) ? "In" : "NotIn"},
        {"values", json::Array{json::Value(names_node ? "n" + std::string(dice_.of(kNames)) : std::string(dice_.chance(50) ? "a" : "b"))}}};
  }
  void put_source(json::Object& spec) {
    switch (dice_.below(8)) {
      case 0:
        spec["gcePersistentDisk"] = json::Object{{"pdName", std::string("d") + dice_.of(kNames)}};
        return;
      case 1:
        spec["awsElasticBlockStore"] = json::Object{{"volumeID", dice_.of(kDisks)}};
        return;
      case 2:
        spec["azureDisk"] = json::Object{{"diskName", std::string("d") + dice_.of(kNames)}};
        return;
      case 3:
        spec["cinder"] = json::Object{{"volumeID", std::string("d") + dice_.of(kNames)}};
        return;
      case 4:
        spec["local"] = json::Object{{"path", "/mnt"}};
        return;
      case 5:  // As the migrated disk of a zone is called.
        spec["csi"] = json::Object{{"driver", "pd.csi.storage.gke.io"},
                                   {"volumeHandle", fmt::format("projects/UNSPECIFIED/zones/{}/disks/d{}",
                                                                dice_.chance(50) ? "UNSPECIFIED" : "a", dice_.of(kNames))}};
        return;
      default:
        spec["csi"] = json::Object{{"driver", dice_.of(kDrivers)}, {"volumeHandle", dice_.chance(80) ? dice_.of(kDisks) : ""}};
    }
  }
  json::Value pod_volume(int i) {
    const std::string name = fmt::format("v{}", i), number = dice_.of(kNames);
    const bool reads = dice_.chance(40);
    const auto of = [&](const char* kind, json::Object what) { return json::Value{{"name", name}, {kind, std::move(what)}}; };
    const int kind = dice_.below(20);
    if (kind < 10) return of("persistentVolumeClaim", {{"claimName", dice_.chance(97) ? "c" + number : ""}});
    if (kind < 12) return {{"name", "e"}, {"ephemeral", {{"volumeClaimTemplate", {{"spec", {{"storageClassName", "late"}}}}}}}};
    if (kind == 12) return of("gcePersistentDisk", {{"pdName", "d" + number}, {"readOnly", reads}});
    if (kind == 13) return of("awsElasticBlockStore", {{"volumeID", dice_.of(kDisks)}, {"readOnly", reads}});
    if (kind == 14) return of("azureDisk", {{"diskName", "d" + number}, {"diskURI", "uri" + number}});
    if (kind == 15) return of("cinder", {{"volumeID", "d" + number}});
    if (kind == 16) return of("iscsi", {{"iqn", "q" + number}, {"targetPortal", "p"}, {"lun", 1}, {"readOnly", reads}});
    if (kind == 17)
      return of("rbd", {{"image", "i"},
                        {"pool", dice_.chance(70) ? "p" : "o"},
                        {"monitors", json::Array{json::Value("m" + number), json::Value(dice_.chance(50) ? "m0" : "m9")}},
                        {"readOnly", reads}});
    if (kind == 18) return of("csi", {{"driver", "csi.x"}});
    return of("emptyDir", {});
  }

  Dice& dice_;
};

/// What no update changes of an object that is there: the API refuses it.
void keep_what_is_fixed(const json::Value& before, json::Value& now) {
  static const std::map<std::string_view, std::vector<std::string_view>> kFixed = {
      {"PersistentVolumeClaim", {"accessModes", "storageClassName", "volumeMode", "selector"}},
      {"PersistentVolume",
       {"gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "cinder", "local", "csi", "volumeMode", "storageClassName"}},
      {"StorageClass", {"provisioner", "volumeBindingMode"}},
      {"CSIStorageCapacity", {"storageClassName", "nodeTopology"}},
      {"VolumeAttachment", {"attacher", "nodeName", "source"}}};
  const auto fixed = kFixed.find(json::get_string(now, {"kind"}));
  if (fixed == kFixed.end()) return;
  const bool is_flat = json::find(now, "spec") == nullptr;
  const json::Value& then = is_flat ? before : *json::find(before, "spec");
  json::Object& spec = is_flat ? now.get_object() : json::find(now, {"spec"})->get_object();
  for (const std::string_view field : fixed->second) {
    spec.erase(field);
    if (const json::Value* value = json::find(then, field)) spec[field] = *value;
  }
  // A claim may get a volume, and no other one then.
  if (const json::Value* volume = json::find(then, "volumeName")) spec["volumeName"] = *volume;
}

/// What says no for a volume's sake.
std::set<std::string> volume_plugins(const Profile& profile) {
  std::set<std::string> out;
  for (const auto& use : profile.filter)
    if (use.name.find("Volume") != std::string::npos || use.name.find("Limits") != std::string::npos) out.insert(use.name);
  return out;
}

class Life {
 public:
  Life(LongLife& told, std::uint64_t seed)
      : told_(told),
        dice_(seed),
        storage_(dice_),
        profile_(default_profile(seed % 3 == 0 ? Era::k120 : Era::k136)),
        cluster_(told, profile_, volume_plugins(profile_), kNames.size()) {
    told_.tell(fmt::format("== {}, seed {}", profile_.era == Era::k120 ? "1.20" : "1.36", seed));
  }

  void run(int steps) {
    for (const char* name : kNames) {
      cluster_.begin_with(storage_.node("n" + std::string(name)));
      cluster_.begin_with(storage_.volume(name));
      cluster_.begin_with(storage_.claim(name));
      cluster_.begin_with(storage_.storage_class());
    }
    for (std::size_t i = 0; i < kNames.size(); ++i) come(i);
    for (int i = 0; i < steps; ++i) {
      change();
      if (dice_.chance(50)) cluster_.bind(some());
      if (dice_.chance(8)) come(some());
    }
  }

 private:
  std::size_t some() { return static_cast<std::size_t>(dice_.below(kNames.size())); }
  void come(std::size_t i) {
    const std::string name = fmt::format("p{}", i);
    cluster_.wait(i, storage_.pod(name, fmt::format("uid-{}-{}", name, ++uids_)));
  }
  json::Value make() {
    const int what = dice_.below(100);
    const std::string number = dice_.of(kNames);
    if (what < 20) return storage_.volume(number);
    if (what < 40) return storage_.claim(number);
    if (what < 46) {
      const model::ObjectMeta& owner = cluster_.pending(some()).pod->view().meta;
      return storage_.made_claim(owner.name, owner.uid);
    }
    if (what < 54) return storage_.storage_class();
    if (what < 64) return storage_.csi_node();
    if (what < 68) return storage_.csi_driver();
    if (what < 74) return storage_.capacity();
    if (what < 80) return storage_.attachment();
    if (what < 86) return storage_.node("n" + number);
    return storage_.pod("r" + number, "uid-r" + number, "n" + std::string(dice_.of(kNames)));
  }
  /// A claim that a pod on a node uses stays until that is over.
  bool is_used(const json::Value& object) const {
    const json::Value claim(json::get_string(object, {"metadata", "name"}));
    for (const char* name : kNames)
      for (const char* space : {"default", "another"})
        if (const json::Value* pod = cluster_.find("Pod", space, "r" + std::string(name)); pod != nullptr)
          for (const json::Value& volume : json::get_array(*pod, {"spec", "volumes"}))
            if (json::get_string(volume, {"persistentVolumeClaim", "claimName"}) == json::as_view(claim)) return true;
    return false;
  }
  void change() {
    json::Value now = make();
    const std::string kind(json::get_string(now, {"kind"}));
    const json::Value* there =
        cluster_.find(kind, json::get_string(now, {"metadata", "namespace"}), json::get_string(now, {"metadata", "name"}));
    const json::Value before = there == nullptr ? json::Value() : *there;
    // A pod stays where it is, and a kind that nobody is told of until it goes is only told of then.
    const bool is_pod = kind == "Pod", goes = there != nullptr && (is_pod || (dice_.chance(20) && !is_used(before)));
    if (there != nullptr) keep_what_is_fixed(before, now);
    ClusterEvent event = find_cluster_resource(kind)->event;
    if (is_pod && goes) event = ClusterEvent::kAssignedPodDeleted;
    if (kind == "Node" && there != nullptr) {
      const bool is_room = dice_.chance(40);
      event = goes ? ClusterEvent::kNodeDeleted : is_room ? ClusterEvent::kNodeAllocatable : ClusterEvent::kNodeLabels;
      const char* kept = is_room ? "metadata" : "status";
      now.get_object()[kept] = *json::find(before, kept);
    }
    if (kind == "VolumeAttachment" && !goes) event = ClusterEvent::kNodeCordoned;
    cluster_.change(before, goes ? json::Value() : now, event);
  }

  LongLife& told_;
  Dice dice_;
  Storage storage_;
  Profile profile_;
  ToldCluster cluster_;
  int uids_ = 0;
};

TEST(PlacementLives, StorageIsAsRecorded) {
  LongLife told("tests/placement/lives/storage.txt", 1, 12'000);
  for (std::uint64_t seed = 1; seed <= 24; ++seed) Life(told, seed).run(60);
  told.expect_as_recorded();
  for (std::uint64_t seed = 1001; seed <= 1000 + ToldCluster::more_seeds() && !::testing::Test::HasFailure(); ++seed) {
    LongLife other("tests/placement/lives/storage.txt", seed);
    Life(other, seed).run(60);
  }
}

}  // namespace
}  // namespace berth::placement::testing
