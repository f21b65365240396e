#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

constexpr const char* kPod =
    "metadata: {name: p}\nspec: {containers: [{name: c, image: i}], volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: "
    "{labels: {a: b}}, "
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}\n";

struct EphemeralVolumeTest : ::testing::Test {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  void SetUp() override {
    api.engine.add(make_ephemeral_volume_controller());
    api.engine.start();
  }
};

TEST_F(EphemeralVolumeTest, MakesTheClaimOfThePodsVolume) {
  const json::Value pod = api.put(kinds().pod, yaml(kPod));
  loop.run_for(seconds(1));
  const json::Value claim = api.get(kinds().persistent_volume_claim, "p-scratch");
  ASSERT_FALSE(claim.is_null());
  EXPECT_EQ(json::get_string(claim, {"metadata", "labels", "a"}), "b");
  EXPECT_EQ(json::get_string(claim, {"spec", "resources", "requests", "storage"}), "1Gi");
  ASSERT_EQ(json::get_array(claim, {"metadata", "ownerReferences"}).size(), 1u);
  EXPECT_EQ(json::get_string(json::get_array(claim, {"metadata", "ownerReferences"})[0], {"uid"}),
            json::get_string(pod, {"metadata", "uid"}));
}

TEST_F(EphemeralVolumeTest, TakesNoClaimThatIsNotThePods) {
  api.put(kinds().persistent_volume_claim, yaml("metadata: {name: p-scratch}\nspec: {accessModes: [ReadWriteMany]}\n"));
  api.put(kinds().pod, yaml(kPod));
  loop.run_for(seconds(1));
  EXPECT_EQ(api.all(kinds().persistent_volume_claim).size(), 1u);
  EXPECT_TRUE(json::get_array(api.get(kinds().persistent_volume_claim, "p-scratch"), {"metadata", "ownerReferences"}).empty());
}

TEST_F(EphemeralVolumeTest, MakesNoneForAFinishedPod) {
  json::Value pod = yaml(kPod);
  json::set(pod, {"status", "phase"}, "Succeeded");
  api.put(kinds().pod, pod);
  loop.run_for(seconds(1));
  EXPECT_TRUE(api.all(kinds().persistent_volume_claim).empty());
}

}  // namespace
}  // namespace berth::controllers
