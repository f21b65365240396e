// What the judge remembers of refusals, and when it forgets them.
#include "descheduler/judge.h"

#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

constexpr std::string_view kTainted = "{spec: {taints: [{key: gone, effect: NoSchedule}]}}";

struct Court {
  World world;
  std::optional<Judge> judge;

  Judgement ask(const std::string& pod, const DestinationRule& rule = {}, bool goes = true) {
    if (!judge) {
      world.snapshot().finish();
      placement::Profiles profiles;
      profiles.add(*placement::Framework::create(world.profile));
      judge.emplace(world.snapshot(), profiles, PlacementCheck::kBetterPlace);
    }
    return judge->judge(*world.snapshot().pods.at("default/" + pod), rule, goes);
  }
};

TEST(Judge, ARuleOfOneStrategySaysNothingForAnother) {
  Court court;
  court.world.node("old", kTainted).node("new").pods("a", 2, "old");
  const DestinationRule never = [](const placement::NodeInfo&) { return std::string("which is not wanted"); };
  EXPECT_EQ(court.ask("a-0", never).reason, "it would go to new, which is not wanted");
  EXPECT_TRUE(court.ask("a-1").is_accepted) << "of the same kind, without the rule";
  EXPECT_EQ(court.ask("a-0", never).reason, "it would go to new, which is not wanted");
}

/// Of three nodes one can take a pod of each disk; the one with the solid-state disk is taken.
void two_who_want_places(World& world) {
  world.node("old", kTainted).node("taken", "{status: {allocatable: {cpu: '1'}}, metadata: {labels: {disk: ssd}}}");
  world.node("last", "{metadata: {labels: {disk: hdd}}}");
  world.pod("a", "old", "{spec: {nodeSelector: {disk: ssd}, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}");
  world.pod("b", "taken", "{spec: {nodeSelector: {disk: hdd}, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}");
}

TEST(Judge, ARefusalIsForgottenOnceAnybodyWent) {
  Court court;
  two_who_want_places(court.world);
  EXPECT_FALSE(court.ask("a").is_accepted);
  EXPECT_FALSE(court.ask("a").is_accepted);
  EXPECT_EQ(court.ask("b").destination, "last");
  // By then its room is free in the trial, though not before it has ended.
  EXPECT_NE(court.ask("a").reason.find("before those that leave have ended"), std::string::npos) << court.ask("a").reason;
}

TEST(Judge, ARefusalIsForgottenOnceAKnownStepWasCarriedOut) {
  Court court;
  two_who_want_places(court.world);
  EXPECT_NE(court.ask("a").reason.find("it would fit nowhere"), std::string::npos);
  court.judge->carry_out(*court.world.snapshot().pods.at("default/b"), "last");
  EXPECT_TRUE(court.ask("a").reason.starts_with("before those that leave have ended, ")) << court.ask("a").reason;
}

TEST(Judge, ARefusalIsForgottenOnceRoomWasMade) {
  Court court;
  two_who_want_places(court.world);
  EXPECT_NE(court.ask("a").reason.find("it would fit nowhere"), std::string::npos);
  RoomPlan plan;
  plan.moves.push_back({court.world.snapshot().pods.at("default/b")->info, "taken", "last"});
  court.judge->carry_out(plan);
  EXPECT_TRUE(court.ask("a").reason.starts_with("before those that leave have ended, ")) << court.ask("a").reason;
}

TEST(Judge, AskedOnlyNothingHasChanged) {
  Court court;
  court.world.node("old", kTainted).node("new", "{status: {allocatable: {pods: '1'}}}").pods("a", 2, "old");
  EXPECT_TRUE(court.ask("a-0", {}, false).is_accepted);
  EXPECT_TRUE(court.ask("a-1").is_accepted);
  EXPECT_FALSE(court.ask("a-0").is_accepted);
}

TEST(Judge, WhoGoesWithoutBeingAskedTakesItsPlace) {
  Court court;
  court.world.node("old", kTainted).node("new", "{status: {allocatable: {pods: '1'}}}").pods("a", 3, "old");
  EXPECT_TRUE(court.ask("a-0", {}, false).is_accepted);
  court.judge->carry_out(*court.world.snapshot().pods.at("default/a-0"), "new");
  EXPECT_FALSE(court.ask("a-1").is_accepted);
}

}  // namespace
}  // namespace berth::descheduler::test
