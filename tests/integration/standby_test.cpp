// Controllers that stand by: what they know when they come to lead, and how soon they work then.
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

controllers::ManagerOptions candidate(const char* identity) {
  controllers::ManagerOptions options;
  options.leader_elect = true;
  options.identity = identity;
  return options;
}

constexpr const char* kDefinition = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
)";

/// Lists that went by; Leases, one at a time, are the election's.
Interceptor counting(int& lists) {
  return [&lists](const net::HttpRequest& request, std::function<void(net::HttpResponse)>&) {
    lists += request.method == "GET" && !request.path.contains("/leases/") ? 1 : 0;
    return false;
  };
}

TEST(Standby, WorksWithin15SecondsOfItsLeadersEndAndListsNothingAnew) {
  WorldOptions options;
  options.controllers = candidate("first");
  World world(options);
  world.create(kDefinition);
  int lists = 0;
  const std::shared_ptr<client::Transport> link(&world.client_link(), [](client::Transport*) {});
  auto second = candidate("second");
  second.root_ca_pem = "ca";
  second.election_loop = &world.loop();
  const auto standby =
      controllers::make_controller_manager(std::make_shared<InterceptedTransport>(link, counting(lists)), world.loop(), second, nullptr);
  standby->start();
  world.create(deployment_yaml("before", 2, "1"));
  world.run(std::chrono::seconds(20));
  EXPECT_EQ(world.running("app=before"), 2U);
  EXPECT_FALSE(standby->is_running());
  EXPECT_GT(lists, 20) << "it holds what it may need";
  lists = 0;
  world.stop_controllers();
  world.create(deployment_yaml("after", 3, "1"));
  world.run(std::chrono::seconds(15));
  EXPECT_TRUE(standby->is_running());
  EXPECT_EQ(world.running("app=after"), 3U);
  EXPECT_EQ(lists, 0);
}

TEST(Standby, HearsOfNoObjectThatWentBeforeItLed) {
  WorldOptions options;
  options.controllers = candidate("first");
  World world(options);
  const std::shared_ptr<client::Transport> link(&world.client_link(), [](client::Transport*) {});
  auto second = candidate("second");
  second.root_ca_pem = "ca";
  second.election_loop = &world.loop();
  const auto standby = controllers::make_controller_manager(link, world.loop(), second, nullptr);
  standby->start();
  world.create(deployment_yaml("gone", 2, "1"));
  world.run(std::chrono::seconds(5));
  const auto deleted =
      world.client().call_and_wait({.verb = "delete",
                                    .gvr = {"apps", "v1", "deployments"},
                                    .ns = "default",
                                    .name = "gone",
                                    .body = R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Foreground"})"});
  ASSERT_TRUE(deleted) << deleted.error().message;
  world.run(std::chrono::seconds(20));
  EXPECT_TRUE(world.pods().empty());
  world.stop_controllers();
  world.run(std::chrono::seconds(20));
  EXPECT_TRUE(standby->is_running());
  EXPECT_TRUE(world.pods().empty());
  world.create(deployment_yaml("after", 1, "1"));
  world.run(std::chrono::seconds(5));
  EXPECT_EQ(world.running("app=after"), 1U);
}

/// A link that breaks: what is asked then is never answered.
Interceptor cut_when(const bool& is_cut) {
  return [&is_cut](const net::HttpRequest&, std::function<void(net::HttpResponse)>&) { return is_cut; };
}

/// Controllers that lose their Lease while their election's link is cut, and stand again.
class LostLease : public ::testing::Test {
 protected:
  LostLease() {
    auto options = candidate("only");
    options.root_ca_pem = "ca";
    options.stands_again = true;
    options.election_loop = &world_.loop();
    const std::shared_ptr<client::Transport> link(&world_.client_link(), [](client::Transport*) {});
    options.election_transport = std::make_shared<InterceptedTransport>(link, cut_when(is_cut_));
    manager_ = controllers::make_controller_manager(std::make_shared<InterceptedTransport>(link, counting(lists_)), world_.loop(),
                                                    std::move(options), nullptr);
    manager_->on_lost_leadership([this] { ++lost_; });
    manager_->start();
    world_.create(deployment_yaml("before", 2, "1"));
    world_.run(std::chrono::seconds(30));
    EXPECT_EQ(world_.running("app=before"), 2U);
    lists_ = 0;
  }
  static WorldOptions without_controllers() {
    WorldOptions options;
    options.controllers = candidate("elsewhere");
    return options;
  }

  World world_{without_controllers()};
  bool is_cut_ = false;
  int lists_ = 0, lost_ = 0;
  std::unique_ptr<controllers::ControllerManager> manager_;
};

TEST_F(LostLease, WhereNobodyElseLedTheyGoOnWithWhatTheySawMeanwhile) {
  world_.stop_controllers();
  world_.run(std::chrono::seconds(30));
  ASSERT_TRUE(manager_->is_running());
  is_cut_ = true;
  world_.run(std::chrono::seconds(40));
  EXPECT_FALSE(manager_->is_running());
  world_.create(deployment_yaml("meanwhile", 3, "1"));
  world_.run(std::chrono::seconds(40));
  EXPECT_EQ(world_.running("app=meanwhile"), 0U) << "nobody leads";
  is_cut_ = false;
  world_.run(std::chrono::seconds(40));
  EXPECT_TRUE(manager_->is_running());
  EXPECT_EQ(world_.running("app=meanwhile"), 3U);
  EXPECT_EQ(world_.running("app=before"), 2U);
  EXPECT_EQ(lists_, 0) << "nothing is read anew";
  EXPECT_EQ(lost_, 0);
}

TEST_F(LostLease, WhereAnotherHasLedTheyEndWhenTheLeaseComesBack) {
  world_.stop_controllers();
  world_.run(std::chrono::seconds(30));
  is_cut_ = true;
  world_.run(std::chrono::seconds(40));
  {
    auto options = candidate("another");
    options.election_loop = &world_.loop();
    const std::shared_ptr<client::Transport> link(&world_.client_link(), [](client::Transport*) {});
    const auto another = controllers::make_controller_manager(link, world_.loop(), options, nullptr);
    another->start();
    world_.create(deployment_yaml("meanwhile", 3, "1"));
    world_.run(std::chrono::seconds(40));
    EXPECT_EQ(world_.running("app=meanwhile"), 3U);
    EXPECT_EQ(lost_, 0) << "it stands by";
  }
  is_cut_ = false;
  world_.run(std::chrono::seconds(60));
  EXPECT_EQ(lost_, 1);
  EXPECT_FALSE(manager_->is_running());
}

}  // namespace
}  // namespace berth::integration
