#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

class VolumeBinderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api.engine.add(make_volume_binder());
    api.engine.start();
  }
  void settle() { loop.run_for(seconds(5)); }
  void put_claim(std::string_view extra = "", std::string_view metadata = "") {
    api.put(kinds().persistent_volume_claim,
            yaml(fmt::format(
                "metadata: {{name: c, {}}}\nspec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 2Gi}}}}, {}}}\n",
                metadata, extra)));
  }
  void put_volume(std::string_view name, std::string_view size, std::string_view extra = "", std::string_view modes = "ReadWriteOnce") {
    api.put(
        kinds().persistent_volume,
        yaml(fmt::format(
            "metadata: {{name: {}}}\nspec: {{accessModes: [{}], capacity: {{storage: {}}}, persistentVolumeReclaimPolicy: Retain, {}}}\n",
            name, modes, size, extra)));
  }
  void put_class(std::string_view name, std::string_view provisioner, std::string_view mode, std::string_view annotations = "") {
    api.put(kinds().storage_class,
            yaml(fmt::format("metadata: {{name: {}, annotations: {{{}}}}}\nprovisioner: {}\nreclaimPolicy: Delete\nvolumeBindingMode: {}\n",
                             name, annotations, provisioner, mode)));
  }
  json::Value claim() { return api.get(kinds().persistent_volume_claim, "c"); }
  json::Value volume(const std::string& name) { return api.get(kinds().persistent_volume, name); }
  std::string claim_phase() { return std::string(json::get_string(claim(), {"status", "phase"})); }
  std::string volume_phase(const std::string& name) { return std::string(json::get_string(volume(name), {"status", "phase"})); }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(VolumeBinderTest, BindsTheSmallestVolumeThatFits) {
  put_volume("big", "10Gi");
  put_volume("small", "1Gi");
  put_volume("right", "3Gi");
  put_volume("wide", "2Gi", "", "ReadWriteOnce, ReadOnlyMany");  // smaller, but it offers more than was asked for
  put_claim();
  settle();
  EXPECT_EQ(json::get_string(claim(), {"spec", "volumeName"}), "right");
  EXPECT_EQ(claim_phase(), "Bound");
  EXPECT_EQ(volume_phase("right"), "Bound");
  EXPECT_EQ(json::get_string(claim(), {"status", "capacity", "storage"}), "3Gi");
  EXPECT_EQ(json::get_string(volume("right"), {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}), "yes");
  EXPECT_EQ(volume_phase("big"), "Available");
}

/// By it quota counts the class that a volume has while another is asked for.
TEST_F(VolumeBinderTest, ABoundClaimTellsTheAttributesClassOfItsVolume) {
  put_volume("plain", "3Gi");
  put_volume("silver", "4Gi", "volumeAttributesClassName: silver, csi: {driver: d, volumeHandle: h}");
  put_claim("volumeAttributesClassName: silver");
  settle();
  ASSERT_EQ(claim_phase(), "Bound");
  EXPECT_EQ(json::get_string(claim(), {"spec", "volumeName"}), "silver");
  EXPECT_EQ(json::get_string(claim(), {"status", "currentVolumeAttributesClassName"}), "silver");
  json::Value changed = claim();
  json::set(changed, {"spec", "volumeAttributesClassName"}, json::Value("gold"));
  api.put(kinds().persistent_volume_claim, changed);
  settle();
  EXPECT_EQ(json::get_string(claim(), {"status", "currentVolumeAttributesClassName"}), "silver") << "until somebody has changed the volume";
}

TEST_F(VolumeBinderTest, SaysWhyAClaimWithoutClassWaits) {
  put_claim();
  settle();
  EXPECT_EQ(claim_phase(), "Pending");
  EXPECT_TRUE(api.saw("FailedBinding: no persistent volumes available for this claim and no storage class is set"));
  put_volume("late", "2Gi");
  settle();
  EXPECT_EQ(claim_phase(), "Bound");
}

TEST_F(VolumeBinderTest, ANamedVolumeMustFit) {
  put_volume("v", "1Gi");
  put_claim("volumeName: v");
  settle();
  EXPECT_TRUE(api.saw("VolumeMismatch: Cannot bind to requested volume \"v\": requested PV is too small"));
  EXPECT_EQ(claim_phase(), "Pending");
  EXPECT_EQ(volume_phase("v"), "Available");
}

TEST_F(VolumeBinderTest, ANamedVolumeOfAnotherClaimIsRefused) {
  put_volume("v", "2Gi", "claimRef: {namespace: default, name: other, uid: u}");
  put_claim("volumeName: v");
  settle();
  EXPECT_TRUE(api.saw("FailedBinding: volume \"v\" already bound to a different claim."));
  EXPECT_EQ(claim_phase(), "Pending");
}

TEST_F(VolumeBinderTest, AReservedVolumeGoesToItsClaimOnly) {
  put_volume("reserved", "9Gi", "claimRef: {namespace: default, name: c}");
  put_volume("free", "2Gi");
  put_claim();
  settle();
  EXPECT_EQ(json::get_string(claim(), {"spec", "volumeName"}), "reserved");
  EXPECT_EQ(json::get_string(volume("reserved"), {"spec", "claimRef", "uid"}), json::get_string(claim(), {"metadata", "uid"}));
  EXPECT_EQ(json::find(volume("reserved"), {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}), nullptr);
}

TEST_F(VolumeBinderTest, AClaimWhoseVolumeIsGoneIsLost) {
  put_volume("v", "2Gi");
  put_claim();
  settle();
  ASSERT_EQ(claim_phase(), "Bound");
  api.erase(kinds().persistent_volume, "", "v");
  settle();
  EXPECT_EQ(claim_phase(), "Lost");
  EXPECT_TRUE(api.saw("ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"));
}

TEST_F(VolumeBinderTest, AVolumeThatNobodyMadeIsNeverDeleted) {
  put_volume("kept", "2Gi");
  put_claim();
  settle();
  api.erase(kinds().persistent_volume_claim, "default", "c");
  settle();
  EXPECT_EQ(volume_phase("kept"), "Released");
  json::Value again = volume("kept");
  json::set(again, {"spec", "persistentVolumeReclaimPolicy"}, "Delete");
  api.put(kinds().persistent_volume, again);
  settle();
  EXPECT_EQ(volume_phase("kept"), "Failed");
  EXPECT_TRUE(api.saw("VolumeFailedDelete: error getting deleter volume plugin for volume \"kept\": no deletable volume plugin matched"));
}

TEST_F(VolumeBinderTest, ProvisionsOnTheSelectedNodeAndDeletesWithTheClaim) {
  put_class("local", "berth.dev/local", "WaitForFirstConsumer");
  put_claim("storageClassName: local");
  settle();
  EXPECT_TRUE(api.saw("WaitForFirstConsumer: waiting for first consumer to be created before binding"));
  ASSERT_TRUE(api.all(kinds().persistent_volume).empty());
  json::Value chosen = claim();
  json::set(chosen, {"metadata", "annotations", "volume.kubernetes.io/selected-node"}, "n1");
  api.put(kinds().persistent_volume_claim, chosen);
  settle();
  ASSERT_EQ(claim_phase(), "Bound");
  const json::Value made = api.all(kinds().persistent_volume).at(0);
  EXPECT_EQ(json::get_string(made, {"metadata", "annotations", "pv.kubernetes.io/provisioned-by"}), "berth.dev/local");
  EXPECT_EQ(json::get_string(claim(), {"metadata", "annotations", "volume.kubernetes.io/storage-provisioner"}), "berth.dev/local");
  api.erase(kinds().persistent_volume_claim, "default", "c");
  settle();
  EXPECT_TRUE(api.all(kinds().persistent_volume).empty());
}

TEST_F(VolumeBinderTest, ALocalVolumeNeedsItsNode) {
  put_class("local", "berth.dev/local", "Immediate");
  put_claim("storageClassName: local");
  settle();
  EXPECT_TRUE(
      api.saw("ProvisioningFailed: storage class \"local\" needs volumeBindingMode: WaitForFirstConsumer: a volume of berth.dev/local "
              "lives on the node of its first consumer"));
  EXPECT_TRUE(api.all(kinds().persistent_volume).empty());
}

TEST_F(VolumeBinderTest, AnotherProvisionerIsAskedByAnnotation) {
  put_class("cloud", "disk.example.com", "Immediate");
  put_claim("storageClassName: cloud");
  settle();
  EXPECT_EQ(json::get_string(claim(), {"metadata", "annotations", "volume.kubernetes.io/storage-provisioner"}), "disk.example.com");
  EXPECT_EQ(claim_phase(), "Pending");
}

TEST_F(VolumeBinderTest, ADefaultClassThatComesLaterServesTheClaimsThatNameNone) {
  put_claim();
  settle();
  put_class("standard", "disk.example.com", "Immediate", "storageclass.kubernetes.io/is-default-class: 'true'");
  settle();
  EXPECT_EQ(json::get_string(claim(), {"spec", "storageClassName"}), "standard");
}

TEST_F(VolumeBinderTest, AClaimThatGetsTheDefaultClassTakesNoVolumeWithoutOne) {
  put_class("standard", "disk.example.com", "WaitForFirstConsumer", "storageclass.kubernetes.io/is-default-class: 'true'");
  put_volume("plain", "2Gi");
  settle();
  put_claim();
  settle();
  EXPECT_EQ(json::get_string(claim(), {"spec", "storageClassName"}), "standard");
  EXPECT_EQ(json::get_string(claim(), {"spec", "volumeName"}), "");
  EXPECT_EQ(volume_phase("plain"), "Available");
  EXPECT_TRUE(api.saw("WaitForFirstConsumer: waiting for first consumer to be created before binding"));
  EXPECT_FALSE(api.saw("FailedBinding: no persistent volumes available for this claim and no storage class is set"));
}

TEST_F(VolumeBinderTest, AClaimThatNamesTheEmptyClassKeepsIt) {
  put_class("standard", "disk.example.com", "Immediate", "storageclass.kubernetes.io/is-default-class: 'true'");
  put_claim("storageClassName: ''");
  settle();
  EXPECT_EQ(json::get_string(claim(), {"spec", "storageClassName"}, "none"), "");
  EXPECT_TRUE(api.saw("FailedBinding: no persistent volumes available for this claim and no storage class is set"));
}

TEST_F(VolumeBinderTest, AVolumeWhoseClaimWentElsewhereIsFreeAgain) {
  put_volume("v", "2Gi");
  put_claim();
  settle();
  put_volume("w", "2Gi", fmt::format("claimRef: {{namespace: default, name: c, uid: {}}}", json::get_string(claim(), {"metadata", "uid"})));
  json::Value odd = volume("w");
  json::set(odd, {"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"}, "yes");
  api.put(kinds().persistent_volume, odd);
  settle();
  EXPECT_EQ(json::find(volume("w"), {"spec", "claimRef"}), nullptr);
  EXPECT_EQ(volume_phase("w"), "Available");
  EXPECT_EQ(volume_phase("v"), "Bound");
}

TEST_F(VolumeBinderTest, OfTwoClaimsOfOneVolumeTheSecondIsLost) {
  put_volume("v", "2Gi", "claimRef: {namespace: default, name: other, uid: u}");
  put_claim("volumeName: v", "annotations: {pv.kubernetes.io/bind-completed: 'yes'}");
  settle();
  EXPECT_EQ(claim_phase(), "Lost");
  EXPECT_EQ(std::ranges::count(api.events, "ClaimMisbound: Two claims are bound to the same volume, this one is bound incorrectly"), 1);
  EXPECT_EQ(json::get_string(volume("v"), {"spec", "claimRef", "name"}), "other");
}

TEST_F(VolumeBinderTest, ABoundClaimThatForgotItsVolumeIsLost) {
  put_claim("", "annotations: {pv.kubernetes.io/bind-completed: 'yes'}");
  settle();
  EXPECT_EQ(claim_phase(), "Lost");
  EXPECT_TRUE(api.saw("ClaimLost: Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"));
}

TEST_F(VolumeBinderTest, ABindingThatWasCutShortIsFinished) {
  // The claim names its volume already; the volume does not name the claim yet.
  put_volume("v", "2Gi");
  put_claim("volumeName: v", "annotations: {pv.kubernetes.io/bind-completed: 'yes'}");
  settle();
  EXPECT_EQ(claim_phase(), "Bound");
  EXPECT_EQ(json::get_string(volume("v"), {"spec", "claimRef", "uid"}), json::get_string(claim(), {"metadata", "uid"}));
  EXPECT_EQ(volume_phase("v"), "Bound");
}

TEST_F(VolumeBinderTest, AVolumeOnItsWayOutIsGivenToNobody) {
  put_volume("going", "2Gi");
  put_volume("larger", "5Gi");
  json::Value going = volume("going");
  json::set(going, {"metadata", "deletionTimestamp"}, "2026-01-05T09:00:00Z");
  json::set(going, {"metadata", "finalizers"}, json::Array{"kubernetes.io/pv-protection"});
  api.put(kinds().persistent_volume, going);
  put_claim();
  settle();
  EXPECT_EQ(json::get_string(claim(), {"spec", "volumeName"}), "larger");
}

}  // namespace
}  // namespace berth::controllers
