// Looks at the cluster that the scheduler decides on, and what goes on meanwhile.
#include "placement/trial.h"
#include "scheduler/groups_seen.h"
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::seconds;

class Looks : public ::testing::Test {
 protected:
  Looks() : world_(options()) {}
  WorldOptions options() {
    WorldOptions out{.nodes = 2, .node_cpu = "4"};
    out.scheduler.aside = [this](std::function<void()> job) { jobs_.push_back(std::move(job)); };
    return out;
  }
  void pod(const std::string& name) {
    world_.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: c, image: nginx}}]}}\n", name));
    world_.run(seconds(2));
  }
  void look(const std::string& name) {
    world_.scheduler().consult([this, name](const placement::Cluster& cluster) {
      seen_.push_back(fmt::format("{}: {} pods", name, cluster.pod_count()));
      return [this, name] { told_.push_back(name); };
    });
  }
  void run_job() {
    ASSERT_FALSE(jobs_.empty());
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
  }

  std::vector<std::string> seen_, told_;
  std::deque<std::function<void()>> jobs_;
  World world_;
};

TEST_F(Looks, SeeWhatWasThereWhenTheyWereAskedForWhileDecisionsGoOn) {
  pod("a");
  look("first");
  pod("b");
  EXPECT_EQ(std::string(json::get_string(world_.get("", "pods", "b"), {"spec", "nodeName"})).substr(0, 5), "node-");
  look("second");
  run_job();
  run_job();
  EXPECT_EQ(seen_, (std::vector<std::string>{"first: 1 pods", "second: 2 pods"}));
  EXPECT_TRUE(told_.empty()) << "what follows is the loop's";
  world_.run(seconds(1));
  EXPECT_EQ(told_, (std::vector<std::string>{"first", "second"}));
}

TEST_F(Looks, LeaveTheClusterAsItIs) {
  pod("a");
  world_.scheduler().consult([](const placement::Cluster& cluster) {
    placement::Trial trial = placement::Trial::on_fork(cluster, *placement::Profiles::create({placement::default_profile(cluster.era())}));
    for (const placement::NodeInfo* node : cluster.nodes())
      for (const auto& one : std::vector(node->pods.begin(), node->pods.end())) (void)trial.evict(one);
    EXPECT_EQ(trial.cluster().pod_count(), 0u);
    return [] {};
  });
  run_job();
  world_.run(seconds(1));
  EXPECT_EQ(world_.scheduler().cluster().pod_count(), 1u);
}

TEST_F(Looks, AGroupIsSeenWithItsMembersThatHaveNoPlace) {
  world_.create("apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: crew}\nspec: {schedulingPolicy: {basic: {}}}\n");
  const auto member = [&](const std::string& name, const std::string& cpu) {
    world_.create(
        fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{schedulingGroup: {{podGroupName: crew}}, containers: "
                    "[{{name: c, image: nginx, resources: {{requests: {{cpu: \"{}\"}}}}}}]}}\n",
                    name, cpu));
    world_.run(seconds(2));
  };
  member("placed", "1");
  member("large", "40");
  member("larger", "50");
  const auto seen = world_.scheduler().see_groups("default/crew");
  ASSERT_NE(seen->asked.group, nullptr);
  std::vector<std::string> waiting;
  for (const auto& pod : seen->asked.waiting) waiting.push_back(pod->key);
  EXPECT_EQ(waiting, (std::vector<std::string>{"default/large", "default/larger"}));
  EXPECT_EQ(seen->groups.count("default/crew"), 3u);
  EXPECT_EQ(world_.scheduler().see_groups("default/none")->asked.group, nullptr);
}

TEST_F(Looks, EndWithTheScheduler) {
  look("never");
  world_.stop_scheduler();
  jobs_.clear();
  world_.run(seconds(1));
  EXPECT_TRUE(seen_.empty());
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace berth::integration
