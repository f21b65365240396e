// What a power failure leaves of what was acknowledged, in worlds on a disk.
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/world/subject.h"

namespace berth::world {
namespace {

const model::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
constexpr const char* kStored = "/registry/leases/default/crown";

json::Value held_lease(const Held& held) {
  const auto found = held.items().find(kStored);
  if (found == held.items().end()) return {};
  const auto key = all_forms().cache_key(kStored);
  return *json::parse(all_forms().to_text(*key, kStored, *found->second.value)->value);
}

/// Whoever was told that he holds it acts: nobody else may find that he does once there is power again.
TEST(WorldOnADisk, WhoCameToHoldALeaseHoldsItAfterAPowerFailure) {
  log::set_level(log::Level::kError);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    World world(seed, 1, Ground::kDisk);
    Chronicle chronicle(world);
    Hand hand(world, "king");
    world.loop().run_for(std::chrono::seconds(5));
    hand.try_make(kLeases, "default",
                  document(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"crown"},)"
                           R"("spec":{"holderIdentity":"ann","leaseDurationSeconds":15}})"));
    world.loop().run_for(std::chrono::seconds(1));
    ASSERT_EQ(json::get_string(held_lease(world.held()), {"spec", "holderIdentity"}), "ann");
    bool is_told = false;
    const json::Value heir = document(R"({"spec":{"holderIdentity":"ben"}})");
    hand.client.patch(kLeases, "default", "crown", client::PatchType::kMerge, heir, [&](const auto& answer) {
      if (!answer) ADD_FAILURE() << answer.error().message;
      is_told = static_cast<bool>(answer);
      world.loop().post([&] { world.lose_power(); });
    });
    world.loop().run_for(std::chrono::seconds(1));
    ASSERT_TRUE(is_told);
    world.start_server(0);
    world.loop().run_for(std::chrono::seconds(1));
    EXPECT_EQ(json::get_string(held_lease(world.held()), {"spec", "holderIdentity"}), "ben") << seed;
    EXPECT_TRUE(world.disk()->wrongs.empty()) << world.disk()->wrongs.front();
  }
}

}  // namespace
}  // namespace berth::world
