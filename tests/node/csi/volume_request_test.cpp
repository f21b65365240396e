// What a driver is asked, of a pod's volume and the objects that it stands on.
#include "node/csi/volume_request.h"

#include <gtest/gtest.h>

#include "base/yaml.h"
#include "node/csi/csi_node.h"

namespace berth::node::csi {
namespace {

json::Value yaml(std::string_view text) {
  auto parsed = json::parse_yaml("---\n" + std::string(text));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : json::Value();
}
std::string text(const json::Value& root, json::Path path) {
  const json::Value* found = json::find(root, path);
  return found == nullptr ? "" : json::serialize(*found);
}

class VolumeRequestTest : public testing::Test {
 protected:
  Result<VolumeRequest> request() {
    PodVolume volume{pod_, "data"};
    if (!inline_.is_null()) {
      volume.source = &inline_;
    } else {
      volume.persistent_volume = &volume_;
      volume.claim = &claim_;
    }
    volume.is_read_only = is_read_only_;
    volume.fs_group = fs_group_;
    around_.driver = driver_.is_null() ? nullptr : &driver_;
    around_.attachment = attachment_.is_null() ? nullptr : &attachment_;
    return make_request(volume, around_);
  }
  void set_spec(json::Path path, json::Value value) { json::set(volume_, path, std::move(value)); }

  json::Value pod_ = yaml("{metadata: {name: p, namespace: ns, uid: u}, spec: {serviceAccountName: sa}}");
  json::Value volume_ = yaml(
      "{metadata: {name: pv}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 2Gi}, mountOptions: [noatime],"
      " csi: {driver: d.example.com, volumeHandle: h, fsType: ext4, volumeAttributes: {a: b}}}}");
  json::Value claim_ = yaml("{metadata: {name: c, namespace: ns, resourceVersion: '7'}, status: {capacity: {storage: 2Gi}}}");
  json::Value driver_ = yaml("{spec: {attachRequired: false}}"), attachment_, inline_;
  bool is_read_only_ = false;
  std::optional<std::int64_t> fs_group_;
  Surroundings around_{.root = "/r", .node = "n", .capabilities = {"STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"}};
};

TEST_F(VolumeRequestTest, IsStagedAndPublishedAtTheKubeletsPlaces) {
  const auto made = request();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->want.volume, "d.example.com^h");
  EXPECT_TRUE(made->want.is_staged_first);
  const std::string staging =
      R"("/r/plugins/kubernetes.io/csi/d.example.com/aaa9402664f1a41f40ebbc52c9993eb66aeb366602958fdfaa283b71e64db123/globalmount")";
  EXPECT_EQ(text(made->stage, {"staging_target_path"}), staging);
  EXPECT_EQ(text(made->publish, {"staging_target_path"}), staging);
  EXPECT_EQ(text(made->publish, {"target_path"}), R"("/r/pods/u/volumes/kubernetes.io~csi/pv/mount")");
  EXPECT_EQ(text(made->publish, {"volume_capability"}),
            R"({"access_mode":{"mode":"SINGLE_NODE_WRITER"},"mount":{"fs_type":"ext4","mount_flags":["noatime"]}})");
  EXPECT_EQ(text(made->publish, {"volume_context"}), R"({"a":"b"})");
}

TEST_F(VolumeRequestTest, WithoutTheCapabilityNothingIsStaged) {
  around_.capabilities.clear();
  const auto made = request();
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->want.is_staged_first);
  EXPECT_EQ(text(made->publish, {"staging_target_path"}), "\"\"");
}

TEST_F(VolumeRequestTest, AnAttachedOneComesWithWhatItsAttacherSays) {
  driver_ = json::Value();
  EXPECT_EQ(request().error().message, "volume pv is not attached to node n yet") << "attachRequired is on where nobody says";
  attachment_ = yaml("{metadata: {name: csi-1}, status: {attached: false}}");
  EXPECT_EQ(request().error().message, "volume pv is not attached to node n yet (VolumeAttachment csi-1)");
  attachment_ = yaml("{status: {attached: true, attachmentMetadata: {device: /dev/x}}}");
  const auto made = request();
  ASSERT_TRUE(made);
  EXPECT_EQ(text(made->stage, {"publish_context"}), R"({"device":"/dev/x"})");
}

TEST_F(VolumeRequestTest, AccessModesAreTheDriversWords) {
  struct Case {
    const char *mode, *word, *word_of_today;
  };
  for (const Case& one : {Case{"ReadWriteOnce", "SINGLE_NODE_WRITER", "SINGLE_NODE_MULTI_WRITER"},
                          {"ReadWriteOncePod", "SINGLE_NODE_WRITER", "SINGLE_NODE_SINGLE_WRITER"},
                          {"ReadOnlyMany", "MULTI_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY"},
                          {"ReadWriteMany", "MULTI_NODE_MULTI_WRITER", "MULTI_NODE_MULTI_WRITER"}}) {
    set_spec({"spec", "accessModes"}, json::Array{one.mode});
    around_.capabilities.erase("SINGLE_NODE_MULTI_WRITER");
    EXPECT_EQ(text(request()->publish, {"volume_capability", "access_mode", "mode"}), fmt::format("\"{}\"", one.word));
    around_.capabilities.insert("SINGLE_NODE_MULTI_WRITER");
    EXPECT_EQ(text(request()->publish, {"volume_capability", "access_mode", "mode"}), fmt::format("\"{}\"", one.word_of_today));
    EXPECT_EQ(request()->want.is_exclusive, std::string_view(one.mode) == "ReadWriteOncePod");
  }
}

TEST_F(VolumeRequestTest, ABlockVolumeIsADevice) {
  set_spec({"spec", "volumeMode"}, "Block");
  fs_group_ = 5;
  const auto made = request();
  ASSERT_TRUE(made);
  EXPECT_EQ(text(made->publish, {"target_path"}), R"("/r/plugins/kubernetes.io/csi/volumeDevices/publish/pv/u")");
  EXPECT_EQ(text(made->stage, {"staging_target_path"}), R"("/r/plugins/kubernetes.io/csi/volumeDevices/staging/pv")");
  EXPECT_EQ(text(made->publish, {"volume_capability"}), R"({"access_mode":{"mode":"SINGLE_NODE_WRITER"},"block":{}})");
  EXPECT_FALSE(made->owner_group);
}

TEST_F(VolumeRequestTest, OneThatLivesWithItsPodNeedsADriverThatTakesSuch) {
  inline_ = yaml("{driver: d.example.com, volumeAttributes: {k: v}, readOnly: true, nodePublishSecretRef: {name: s}}");
  is_read_only_ = true;
  EXPECT_EQ(request().error().message, R"(volume mode "Ephemeral" not supported by driver d.example.com (only supports ["Persistent"]))");
  driver_ = json::Value();
  EXPECT_EQ(request().error().message, R"(volume mode "Ephemeral" not supported by driver d.example.com (no CSIDriver object))");
  driver_ = yaml("{spec: {volumeLifecycleModes: [Ephemeral], podInfoOnMount: true}}");
  const auto made = request();
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->want.is_staged_first);
  EXPECT_FALSE(made->want.is_persistent);
  EXPECT_EQ(text(made->publish, {"readonly"}), "true");
  EXPECT_EQ(text(made->publish, {"volume_context"}),
            R"({"k":"v","csi.storage.k8s.io/pod.name":"p","csi.storage.k8s.io/pod.namespace":"ns","csi.storage.k8s.io/pod.uid":"u",)"
            R"("csi.storage.k8s.io/serviceAccount.name":"sa","csi.storage.k8s.io/ephemeral":"true"})");
  PodVolume volume{pod_, "data"};
  volume.source = &inline_;
  EXPECT_EQ(secret_of(volume, "nodePublishSecretRef"), std::pair(std::string("ns"), std::string("s")));
  EXPECT_EQ(secret_of(volume, "nodeStageSecretRef"), std::nullopt);
}

TEST_F(VolumeRequestTest, FilesAreGivenToTheGroupByPolicy) {
  struct Case {
    const char *policy, *modes, *fs_type;
    bool is_given;
  };
  fs_group_ = 7;
  for (const Case& one : {Case{"", "ReadWriteOnce", "ext4", true},
                          {"", "ReadWriteOnce", "", false},
                          {"", "ReadWriteMany", "ext4", false},
                          {"", "ReadWriteOncePod", "xfs", true},
                          {"File", "ReadWriteMany", "", true},
                          {"None", "ReadWriteOnce", "ext4", false}}) {
    driver_ =
        yaml(fmt::format("{{spec: {{attachRequired: false{}}}}}", *one.policy == 0 ? "" : fmt::format(", fsGroupPolicy: {}", one.policy)));
    set_spec({"spec", "accessModes"}, json::Array{one.modes});
    set_spec({"spec", "csi", "fsType"}, one.fs_type);
    EXPECT_EQ(request()->owner_group.has_value(), one.is_given) << one.policy << one.modes << one.fs_type;
  }
  around_.capabilities.insert("VOLUME_MOUNT_GROUP");
  driver_ = yaml("{spec: {attachRequired: false, fsGroupPolicy: File}}");
  EXPECT_FALSE(request()->owner_group) << "the driver does it";
  EXPECT_EQ(text(request()->publish, {"volume_capability", "mount", "volume_mount_group"}), "\"7\"");
}

TEST_F(VolumeRequestTest, GrowsToWhatItsVolumeIs) {
  EXPECT_EQ(request()->want.expand_to_bytes, 0);
  set_spec({"spec", "capacity", "storage"}, "3Gi");
  EXPECT_EQ(request()->want.expand_to_bytes, std::int64_t{3} << 30);
  is_read_only_ = true;
  EXPECT_EQ(request()->want.expand_to_bytes, 0) << "whose pod cannot write it";
  is_read_only_ = false;
  around_.capabilities.erase("EXPAND_VOLUME");
  EXPECT_EQ(request()->want.expand_to_bytes, 0) << "there is nothing to do on the node";
  claim_ = yaml(
      "{metadata: {resourceVersion: '7'}, status: {capacity: {storage: 2Gi}, conditions: [{type: FileSystemResizePending}, {type: "
      "Other}]}}");
  EXPECT_EQ(json::serialize(expanded_claim_patch(claim_, volume_)),
            R"({"metadata":{"resourceVersion":"7"},"status":{"capacity":{"storage":"3Gi"},"allocatedResourceStatuses":null,)"
            R"("conditions":[{"type":"Other"}]}})");
}

TEST_F(VolumeRequestTest, TokensGoWhereTheDriverWantsThem) {
  around_.tokens = {{"aud", R"({"token":"t"})"}};
  EXPECT_EQ(text(request()->publish, {"volume_context", "csi.storage.k8s.io/serviceAccount.tokens"}), R"("{\"aud\":{\"token\":\"t\"}}")");
  driver_ = yaml("{spec: {attachRequired: false, serviceAccountTokenInSecrets: true, requiresRepublish: true}}");
  const auto made = request();
  EXPECT_EQ(text(made->publish, {"secrets", "csi.storage.k8s.io/serviceAccount.tokens"}), R"("{\"aud\":{\"token\":\"t\"}}")");
  EXPECT_TRUE(made->want.republish_every);
}

TEST(CsiNode, HasADriverOnceAsItLastSaid) {
  const json::Value node =
      yaml("{metadata: {name: node1, uid: u, labels: {zone: a}, annotations: {csi.volume.kubernetes.io/nodeid: '{\"other\":\"o\"}'}}}");
  json::Value document = new_csi_node(node);
  EXPECT_EQ(text(document, {"metadata", "ownerReferences"}), R"([{"apiVersion":"v1","kind":"Node","name":"node1","uid":"u"}])");
  auto info = DriverNodeInfo::of("d", yaml("{node_id: id, max_volumes_per_node: '3', accessible_topology: {segments: {zone: a}}}"));
  EXPECT_TRUE(put_driver(document, info));
  EXPECT_FALSE(put_driver(document, info));
  info.max_volumes = 0;
  EXPECT_TRUE(put_driver(document, info));
  EXPECT_EQ(text(document, {"spec", "drivers"}), R"([{"name":"d","nodeID":"id","topologyKeys":["zone"]}])");
  EXPECT_EQ(json::serialize(*node_patch(node, info)),
            R"({"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"other\":\"o\",\"d\":\"id\"}"},"labels":{"zone":"a"}}})");
  json::Value of_others = yaml("{spec: {drivers: null}}");
  EXPECT_FALSE(remove_driver(of_others, "d"));
  EXPECT_TRUE(put_driver(of_others, info));
  info.topology["zone"] = "b";
  EXPECT_EQ(node_patch(node, info).error().message,
            R"(detected topology value collision: driver reported "zone":"b" but existing label is "zone":"a")");
  EXPECT_TRUE(remove_driver(document, "d"));
  EXPECT_FALSE(remove_driver(document, "d"));
  EXPECT_EQ(json::serialize(node_patch_without(node, "other")), R"({"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":null}}})");
}

}  // namespace
}  // namespace berth::node::csi
