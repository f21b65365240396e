// Claims in use and bound volumes outlive their deletion.
#include "controllers/services.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class VolumeProtection : public ::testing::Test {
 protected:
  VolumeProtection() {
    world.api.engine.add(make_volume_protection_controller());
    world.api.engine.start();
    world.api.put(kinds().persistent_volume_claim,
                  yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, finalizers: [kubernetes.io/pvc-protection]}}"));
  }
  void pod(const std::string& node, const char* phase, const char* volume = "persistentVolumeClaim: {claimName: c}") {
    world.api.put(kinds().pod, yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{nodeName: '{}', volumes: "
                                                "[{{name: v, {}}}]}}\nstatus: {{phase: {}}}\n",
                                                node, volume, phase)));
  }
  void remove(Kind kind, const char* name) {
    json::Value document = world.api.get(kind, name);
    json::set(document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
    world.api.put(kind, document);
    world.loop.run_for(seconds(1));
  }
  bool claim_is_there() const { return !world.api.get(kinds().persistent_volume_claim, "c").is_null(); }
  World world;
};

TEST_F(VolumeProtection, AnUnusedClaimGoesAtOnce) {
  remove(kinds().persistent_volume_claim, "c");
  EXPECT_FALSE(claim_is_there());
}

TEST_F(VolumeProtection, AFinishedPodHoldsItsClaimStill) {
  pod("n", "Running");
  remove(kinds().persistent_volume_claim, "c");
  EXPECT_TRUE(claim_is_there());
  pod("n", "Succeeded");
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(claim_is_there()) << "its volumes may still be mounted";
}

TEST_F(VolumeProtection, AClaimStaysUntilItsPodIsDeleted) {
  pod("n", "Running");
  remove(kinds().persistent_volume_claim, "c");
  EXPECT_TRUE(claim_is_there());
  world.api.erase(kinds().pod, "default", "p");
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(claim_is_there());
}

TEST_F(VolumeProtection, APodWithoutANodeDoesNotHoldIt) {
  pod("", "Pending");
  remove(kinds().persistent_volume_claim, "c");
  EXPECT_FALSE(claim_is_there());
}

TEST_F(VolumeProtection, AGenericEphemeralVolumesClaimIsInUseToo) {
  world.api.put(kinds().persistent_volume_claim,
                yaml("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p-v, finalizers: [kubernetes.io/pvc-protection]}}"));
  pod("n", "Running", "ephemeral: {volumeClaimTemplate: {}}");
  remove(kinds().persistent_volume_claim, "p-v");
  EXPECT_FALSE(world.api.get(kinds().persistent_volume_claim, "p-v").is_null());
}

TEST_F(VolumeProtection, ABoundVolumeStaysUntilItIsReleased) {
  json::Value volume = yaml(
      "{apiVersion: v1, kind: PersistentVolume, metadata: {name: v, finalizers: [kubernetes.io/pv-protection]}, status: {phase: Bound}}");
  world.api.put(kinds().persistent_volume, volume);
  remove(kinds().persistent_volume, "v");
  ASSERT_FALSE(world.api.get(kinds().persistent_volume, "v").is_null());
  volume = world.api.get(kinds().persistent_volume, "v");
  json::set(volume, {"status", "phase"}, "Released");
  world.api.put(kinds().persistent_volume, volume);
  world.loop.run_for(seconds(1));
  EXPECT_TRUE(world.api.get(kinds().persistent_volume, "v").is_null());
}

TEST_F(VolumeProtection, OtherFinalizersStay) {
  json::Value claim = world.api.get(kinds().persistent_volume_claim, "c");
  json::set(claim, {"metadata", "finalizers"}, json::Array{"kubernetes.io/pvc-protection", "example.com/mine"});
  world.api.put(kinds().persistent_volume_claim, claim);
  remove(kinds().persistent_volume_claim, "c");
  claim = world.api.get(kinds().persistent_volume_claim, "c");
  ASSERT_FALSE(claim.is_null());
  EXPECT_FALSE(has_finalizer(claim, "kubernetes.io/pvc-protection"));
  EXPECT_TRUE(has_finalizer(claim, "example.com/mine"));
}

/// A class that a volume or a claim names.
class AttributesClassProtection : public ::testing::Test {
 protected:
  AttributesClassProtection() {
    world.api.engine.add(make_attributes_class_protection_controller());
    world.api.engine.start();
    world.api.put(kinds().volume_attributes_class,
                  yaml("{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: gold}, driverName: d.example.com}"));
    world.loop.run_for(seconds(1));
  }
  void use(const char* place) {
    world.api.put(kinds().persistent_volume_claim,
                  yaml(fmt::format("{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c}}, {}}}", place)));
    world.loop.run_for(seconds(1));
  }
  void remove() {
    json::Value document = world.api.get(kinds().volume_attributes_class, "gold");
    json::set(document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(world.loop.now())));
    world.api.put(kinds().volume_attributes_class, document);
    world.loop.run_for(seconds(1));
  }
  bool is_there() const { return !world.api.get(kinds().volume_attributes_class, "gold").is_null(); }
  World world;
};

TEST_F(AttributesClassProtection, AClassThatWasMadeWithoutAdmissionGetsTheFinalizer) {
  const json::Value document = world.api.get(kinds().volume_attributes_class, "gold");
  EXPECT_EQ(json::serialize(json::Value(json::get_array(document, {"metadata", "finalizers"}))), R"(["kubernetes.io/vac-protection"])");
}

TEST_F(AttributesClassProtection, AnUnusedClassGoesAtOnce) {
  remove();
  EXPECT_FALSE(is_there());
}

TEST_F(AttributesClassProtection, AClassStaysUntilNoClaimNamesIt) {
  use("spec: {volumeAttributesClassName: gold}");
  remove();
  EXPECT_TRUE(is_there());
  use("spec: {volumeAttributesClassName: silver}, status: {currentVolumeAttributesClassName: gold}");
  EXPECT_TRUE(is_there()) << "the volume has it still";
  use("spec: {volumeAttributesClassName: silver}, status: {currentVolumeAttributesClassName: silver}");
  EXPECT_FALSE(is_there());
}

TEST_F(AttributesClassProtection, AVolumeHoldsItToo) {
  world.api.put(kinds().persistent_volume,
                yaml("{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {volumeAttributesClassName: gold}}"));
  remove();
  EXPECT_TRUE(is_there());
  world.api.erase(kinds().persistent_volume, "", "v");
  world.loop.run_for(seconds(1));
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace berth::controllers
