// What is asked of CSI drivers, over time: refused, not answered, given back, taken over by the next process.
#include "node/csi/volume_ledger.h"

#include <gtest/gtest.h>

namespace berth::node::csi {
namespace {

using Effect = VolumeLedger::Effect;
using Effects = VolumeLedger::Effects;
using Kind = Effect::Kind;
using State = VolumeLedger::State::Kind;
const TimePoint kNow{std::chrono::hours(1)};
constexpr const char *kVolume = "d^v", *kDriver = "d";

Want want(const std::string& pod, bool is_staged_first = true) {
  return {.pod = pod, .volume = kVolume, .driver = kDriver, .is_staged_first = is_staged_first};
}
Effect stage() { return {Kind::kStage, kVolume, ""}; }
Effect unstage() { return {Kind::kUnstage, kVolume, ""}; }
Effect publish(const std::string& pod) { return {Kind::kPublish, kVolume, pod}; }
Effect unpublish(const std::string& pod) { return {Kind::kUnpublish, kVolume, pod}; }
Effect expand(const std::string& pod) { return {Kind::kExpand, kVolume, pod}; }

class VolumeLedgerTest : public testing::Test {
 protected:
  VolumeLedgerTest() {
    EXPECT_EQ(ledger_.driver_came(kDriver, now_), Effects{});
    EXPECT_EQ(ledger_.settle({}, now_), Effects{});
  }
  Effects done(const Effect& effect, Outcome outcome = Outcome::kDone) {
    return ledger_.done(effect, outcome, outcome == Outcome::kDone ? "" : "no", now_);
  }
  void expect_published(const std::string& pod) {
    ASSERT_EQ(*ledger_.want(want(pod), now_), Effects{stage()});
    ASSERT_EQ(done(stage()), Effects{publish(pod)});
    ASSERT_EQ(done(publish(pod)), Effects{});
    ASSERT_EQ(ledger_.published(kVolume, pod).kind, State::kReady);
  }
  TimePoint now_ = kNow;
  VolumeLedger ledger_;
};

TEST_F(VolumeLedgerTest, AVolumeIsStagedOncePublishedToEachPodAndGivenBackWithTheLast) {
  expect_published("p");
  EXPECT_EQ(*ledger_.want(want("p"), now_), Effects{}) << "it has it";
  EXPECT_EQ(*ledger_.want(want("q"), now_), Effects{publish("q")});
  EXPECT_EQ(ledger_.published(kVolume, "q").kind, State::kUnderWay);
  EXPECT_EQ(done(publish("q")), Effects{});
  EXPECT_EQ(ledger_.release("p", now_), Effects{unpublish("p")});
  EXPECT_EQ(ledger_.released("p").kind, State::kUnderWay);
  EXPECT_EQ(ledger_.release("p", now_), Effects{}) << "not twice";
  EXPECT_EQ(done(unpublish("p")), Effects{}) << "the other has it still";
  EXPECT_EQ(ledger_.released("p").kind, State::kReady);
  EXPECT_EQ(ledger_.in_use(), std::vector<std::string>{kVolume});
  EXPECT_EQ(ledger_.release("q", now_), Effects{unpublish("q")});
  EXPECT_EQ(done(unpublish("q")), Effects{unstage()});
  EXPECT_EQ(ledger_.released("q").kind, State::kReady) << "who is gone does not wait for that";
  EXPECT_EQ(ledger_.in_use(), std::vector<std::string>{kVolume});
  EXPECT_EQ(done(unstage()), Effects{});
  EXPECT_TRUE(ledger_.in_use().empty());
}

TEST_F(VolumeLedgerTest, WhatIsRefusedIsAskedAgainLaterAndLeavesNothing) {
  EXPECT_EQ(*ledger_.want(want("p"), now_), Effects{stage()});
  Duration pause = kFirstPause;
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(done(stage(), Outcome::kRefused), Effects{});
    EXPECT_EQ(ledger_.published(kVolume, "p").kind, State::kFailed);
    EXPECT_EQ(ledger_.published(kVolume, "p").error, "no");
    now_ += pause - Duration(1);
    EXPECT_EQ(*ledger_.want(want("p"), now_), Effects{}) << "who asks more often is not heard more often";
    now_ += Duration(1);
    EXPECT_EQ(ledger_.tick(now_), Effects{stage()}) << i;
    pause = std::min<Duration>(pause * 2, kMostPause);
  }
  EXPECT_EQ(done(stage(), Outcome::kRefused), Effects{});
  EXPECT_EQ(ledger_.release("p", now_), Effects{}) << "there is nothing to give back";
  EXPECT_TRUE(ledger_.in_use().empty());
}

TEST_F(VolumeLedgerTest, WhatWasNotAnsweredIsGivenBack) {
  EXPECT_EQ(*ledger_.want(want("p"), now_), Effects{stage()});
  EXPECT_EQ(done(stage(), Outcome::kUnknown), Effects{});
  EXPECT_EQ(ledger_.release("p", now_), Effects{}) << "not before the pause is over";
  now_ += kFirstPause;
  EXPECT_EQ(ledger_.tick(now_), Effects{unstage()});
  EXPECT_EQ(done(unstage()), Effects{});

  expect_published("q");
  EXPECT_EQ(*ledger_.want(want("r"), now_), Effects{publish("r")});
  EXPECT_EQ(done(publish("r"), Outcome::kUnknown), Effects{});
  EXPECT_EQ(ledger_.release("r", now_), Effects{unpublish("r")});
}

TEST_F(VolumeLedgerTest, APodThatGoesWhileItsVolumeComesGivesItBackAfterwards) {
  EXPECT_EQ(*ledger_.want(want("p"), now_), Effects{stage()});
  EXPECT_EQ(ledger_.release("p", now_), Effects{});
  EXPECT_EQ(done(stage()), Effects{unstage()});
  EXPECT_EQ(done(unstage()), Effects{});
  EXPECT_TRUE(ledger_.in_use().empty());
}

TEST_F(VolumeLedgerTest, UnpublishingIsTriedUntilItIsDone) {
  expect_published("p");
  EXPECT_EQ(ledger_.release("p", now_), Effects{unpublish("p")});
  EXPECT_EQ(done(unpublish("p"), Outcome::kRefused), Effects{});
  EXPECT_EQ(ledger_.released("p").kind, State::kFailed);
  EXPECT_EQ(ledger_.release("p", now_), Effects{}) << "the pause counts";
  now_ += kFirstPause;
  EXPECT_EQ(ledger_.tick(now_), Effects{unpublish("p")});
  EXPECT_EQ(done(unpublish("p")), Effects{unstage()});
  EXPECT_EQ(done(unstage(), Outcome::kUnknown), Effects{});
  EXPECT_FALSE(ledger_.in_use().empty());
  EXPECT_EQ(*ledger_.want(want("q"), now_), Effects{}) << "it may be staged: it is staged again, after the pause";
  now_ += kFirstPause;
  EXPECT_EQ(ledger_.tick(now_), Effects{stage()});
}

TEST_F(VolumeLedgerTest, ADriverThatIsNotThereIsNotAskedAndOneThatComesIsAskedAtOnce) {
  ledger_.driver_went(kDriver);
  EXPECT_EQ(*ledger_.want(want("p"), now_), Effects{});
  EXPECT_EQ(ledger_.published(kVolume, "p").error, "driver name d not found in the list of registered CSI drivers");
  EXPECT_EQ(ledger_.driver_came(kDriver, now_), Effects{stage()});
  ledger_.driver_went(kDriver);
  EXPECT_EQ(done(stage(), Outcome::kUnknown), Effects{}) << "it died meanwhile";
  EXPECT_EQ(ledger_.driver_came(kDriver, now_), Effects{stage()}) << "without the pause of the one before";
  EXPECT_EQ(done(stage()), Effects{publish("p")});
  EXPECT_EQ(done(publish("p"), Outcome::kRefused), Effects{});
  ledger_.driver_went(kDriver);
  EXPECT_EQ(ledger_.driver_came(kDriver, now_), Effects{publish("p")}) << "what one refused another may do";
  EXPECT_EQ(done(publish("p")), Effects{});
  ledger_.driver_went(kDriver);
  EXPECT_EQ(ledger_.published(kVolume, "p").kind, State::kReady) << "what is mounted is mounted";
  EXPECT_EQ(ledger_.release("p", now_), Effects{});
  EXPECT_EQ(ledger_.released("p").kind, State::kFailed) << "nothing is forgotten";
  EXPECT_EQ(ledger_.driver_came(kDriver, now_), Effects{unpublish("p")});
}

TEST_F(VolumeLedgerTest, OneForOnePodAloneIsNotGivenToASecond) {
  auto first = want("p"), second = want("q");
  first.is_exclusive = second.is_exclusive = true;
  EXPECT_EQ(*ledger_.want(first, now_), Effects{stage()});
  EXPECT_EQ(ledger_.want(second, now_).error().message,
            "volume uses the ReadWriteOncePod access mode and is already in use by another pod");
  EXPECT_EQ(done(stage()), Effects{publish("p")});
  EXPECT_EQ(done(publish("p")), Effects{});
  EXPECT_EQ(ledger_.release("p", now_), Effects{unpublish("p")});
  EXPECT_FALSE(ledger_.want(second, now_)) << "it is on its way out";
  EXPECT_EQ(done(unpublish("p")), Effects{unstage()});
  EXPECT_EQ(*ledger_.want(second, now_), Effects{});
  EXPECT_EQ(done(unstage()), Effects{stage()});
}

TEST_F(VolumeLedgerTest, ExpandsOnceAndAgainWhenItIsToBeLarger) {
  expect_published("p");
  auto larger = want("p");
  larger.expand_to_bytes = 20;
  EXPECT_EQ(*ledger_.want(larger, now_), Effects{expand("p")});
  EXPECT_EQ(done(expand("p"), Outcome::kRefused), Effects{});
  EXPECT_EQ(ledger_.published(kVolume, "p").kind, State::kReady) << "the pod goes on meanwhile";
  now_ += kFirstPause;
  EXPECT_EQ(ledger_.tick(now_), Effects{expand("p")});
  EXPECT_EQ(done(expand("p")), Effects{});
  EXPECT_EQ(*ledger_.want(larger, now_), Effects{});
  larger.expand_to_bytes = 30;
  EXPECT_EQ(*ledger_.want(larger, now_), Effects{expand("p")});
}

TEST_F(VolumeLedgerTest, PublishesAgainAsOftenAsTheDriverWantsAndKeepsWhatThePodHas) {
  auto again = want("p", false);
  again.republish_every = std::chrono::seconds(60);
  EXPECT_EQ(*ledger_.want(again, now_), Effects{publish("p")});
  EXPECT_EQ(done(publish("p")), Effects{});
  now_ += std::chrono::seconds(59);
  EXPECT_EQ(ledger_.tick(now_), Effects{});
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(ledger_.tick(now_), Effects{publish("p")});
  EXPECT_EQ(done(publish("p"), Outcome::kRefused), Effects{});
  EXPECT_EQ(ledger_.published(kVolume, "p").kind, State::kReady);
  EXPECT_EQ(ledger_.release("p", now_), Effects{unpublish("p")});
}

TEST(VolumeLedgerRestart, WhatIsThereIsFoundAndAskedForAgainByItsPod) {
  VolumeLedger ledger;
  ledger.found_staged(kVolume, kDriver);
  ledger.found_published(kVolume, kDriver, "p", true, true);
  EXPECT_EQ(ledger.driver_came(kDriver, kNow), Effects{}) << "nobody has said yet what is wanted";
  EXPECT_EQ(*ledger.want(want("p"), kNow), Effects{stage()});
  EXPECT_EQ(ledger.published(kVolume, "p").kind, State::kReady) << "it was never away";
  EXPECT_EQ(ledger.done(stage(), Outcome::kRefused, "busy", kNow), Effects{});
  EXPECT_EQ(ledger.settle({"p"}, kNow), Effects{});
  EXPECT_EQ(ledger.release("p", kNow), Effects{unpublish("p")}) << "though staging again was refused, it is there";
  EXPECT_EQ(ledger.done(unpublish("p"), Outcome::kDone, "", kNow), Effects{});
  EXPECT_EQ(ledger.tick(kNow + kFirstPause), Effects{unstage()});
}

TEST(VolumeLedgerRestart, WhatIsOfPodsThatAreGoneIsGivenBackOnce) {
  VolumeLedger ledger;
  ledger.found_staged(kVolume, kDriver);
  ledger.found_published(kVolume, kDriver, "gone", true, true);
  ledger.found_published(kVolume, kDriver, "p", true, false);
  ledger.found_staged("d^old", kDriver);
  EXPECT_EQ(ledger.settle({"p"}, kNow), Effects{}) << "its driver is not there yet";
  EXPECT_EQ(ledger.driver_came(kDriver, kNow), (Effects{{Kind::kUnstage, "d^old", ""}, unpublish("gone")}));
  EXPECT_EQ(ledger.done(unpublish("gone"), Outcome::kDone, "", kNow), Effects{}) << "the other may want it still";
  EXPECT_EQ(*ledger.want(want("p"), kNow), Effects{stage()});
  EXPECT_EQ(ledger.published(kVolume, "p").kind, State::kUnderWay) << "its mount is gone: the machine was started anew";
}

}  // namespace
}  // namespace berth::node::csi
