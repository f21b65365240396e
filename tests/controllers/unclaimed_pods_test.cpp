// Pods whose scheduler nobody is get an event that says so, and nobody is slandered who is only busy.
#include "controllers/cluster.h"
#include "tests/controllers/workload_world.h"

namespace berth::controllers {
namespace {

using namespace testing;

class UnclaimedPods : public ::testing::Test {
 protected:
  UnclaimedPods() {
    world.api.engine.add(make_unclaimed_pod_controller());
    world.api.engine.start();
  }
  void pod(const std::string& name, const std::string& scheduler, const std::string& node = "", const std::string& conditions = "") {
    world.api.put(kinds().pod, yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{schedulerName: {}, nodeName: "
                                                "'{}'}}\nstatus: {{phase: Pending, conditions: [{}]}}\n",
                                                name, scheduler, node, conditions)));
  }
  [[nodiscard]] std::string events() const { return fmt::format("{}", fmt::join(world.api.events, "\n")); }
  World world;
};

TEST_F(UnclaimedPods, APodOfNobodysIsToldAfterAWhileWithWhoIsThere) {
  pod("placed", "default-scheduler", "n1");
  pod("lost", "default-schedular");
  world.loop.run_for(seconds(50));
  EXPECT_EQ(events(), "");
  world.loop.run_for(seconds(20));
  EXPECT_EQ(
      events(),
      "NoScheduler: no scheduler has taken this pod for 1m0s: its schedulerName is \"default-schedular\"; schedulers known here by the "
      "pods they took: default-scheduler; did you mean \"default-scheduler\"?");
  world.loop.run_for(minutes(6));
  EXPECT_EQ(world.api.events.size(), 2u) << "said again after a pause";
}

TEST_F(UnclaimedPods, APodThatWasLookedAtIsLeftAlone) {
  pod("refused", "custom", "", "{type: PodScheduled, status: 'False', reason: Unschedulable}");
  pod("gated", "custom", "", "{type: PodScheduled, status: 'False', reason: SchedulingGated}");
  world.loop.run_for(minutes(10));
  EXPECT_EQ(events(), "");
}

TEST_F(UnclaimedPods, ASchedulerThatIsBusyWithOthersIsNoStranger) {
  pod("waits", "custom");
  for (int i = 0; i < 10; ++i) {
    pod(fmt::format("placed-{}", i), "custom", "n1");
    world.loop.run_for(seconds(30));
  }
  EXPECT_EQ(events(), "");
  world.loop.run_for(minutes(1));
  EXPECT_NE(events().find("its schedulerName is \"custom\""), std::string::npos);
}

TEST_F(UnclaimedPods, APodThatIsPlacedInTimeIsNotToldOf) {
  pod("late", "custom");
  world.loop.run_for(seconds(40));
  pod("late", "custom", "n1");
  world.loop.run_for(minutes(10));
  EXPECT_EQ(events(), "");
}

}  // namespace
}  // namespace berth::controllers
