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

}  // namespace
}  // namespace berth::integration
