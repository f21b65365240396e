// Controllers whose watches were away decide nothing by what they knew before.
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

/// A way to the server on which watches are cut, and refused for a while.
class CutWatches final : public client::Transport {
 public:
  CutWatches(client::Transport& below, EventLoop& loop) : below_(below), loop_(loop) {}

  void cut(std::function<bool(std::string_view path)> refuses) {
    refuses_ = std::move(refuses);
    for (const auto& end : std::exchange(ends_, {})) end("cut");
  }
  void heal() { refuses_ = nullptr; }
  /// Nothing comes any more by the watches that are there, and nobody is told: a connection that is dead.
  void stall() { *alive_ = false, alive_ = std::make_shared<bool>(true); }

  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    below_.send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    if (refuses_ && refuses_(request.path)) {
      loop_.post([end = std::move(callbacks.on_end)] { end("no route"); });
      return nullptr;
    }
    ends_.push_back(callbacks.on_end);
    callbacks.on_data = [alive = alive_, data = std::move(callbacks.on_data)](std::string_view text) {
      if (*alive) data(text);
    };
    return below_.stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    below_.upgrade(std::move(request), std::move(done));
  }

 private:
  client::Transport& below_;
  EventLoop& loop_;
  std::function<bool(std::string_view path)> refuses_;
  std::vector<std::function<void(std::string)>> ends_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

constexpr const char* kSet = R"(
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
)";
constexpr const char* kOrphan = R"(
apiVersion: v1
kind: Pod
metadata: {name: orphan, namespace: default, labels: {app: web}}
spec: {containers: [{name: c, image: nginx}]}
)";

class OldViews : public ::testing::Test {
 protected:
  OldViews() {
    world_.stop_controllers();
    start_manager();
    world_.create(kSet);
    world_.run(std::chrono::seconds(20));
    EXPECT_EQ(world_.pods().size(), 1U);
  }
  void start_manager() {
    controllers::ManagerOptions options;
    options.root_ca_pem = "ca";
    options.leader_elect = true;
    options.stands_again = true;
    options.identity = "this";
    options.election_loop = &world_.loop();
    options.election_transport = election_;
    manager_ = controllers::make_controller_manager(way_, world_.loop(), options, nullptr);
    manager_->start();
  }
  /// A pod that the set will adopt, and other replicas.
  void change_meanwhile(int replicas) {
    world_.create(kOrphan);
    const auto scaled = world_.client().call_and_wait({.verb = "patch",
                                                       .gvr = {"apps", "v1", "replicasets"},
                                                       .ns = "default",
                                                       .name = "web",
                                                       .body = fmt::format(R"({{"spec":{{"replicas":{}}}}})", replicas),
                                                       .content_type = "application/merge-patch+json"});
    ASSERT_TRUE(scaled) << scaled.error().message;
  }

  World world_;
  bool is_election_cut_ = false;
  const std::shared_ptr<client::Transport> election_ = std::make_shared<InterceptedTransport>(
      std::shared_ptr<client::Transport>(&world_.client_link(), [](client::Transport*) {}),
      [this](const net::HttpRequest&, std::function<void(net::HttpResponse)>&) { return is_election_cut_; });
  std::shared_ptr<CutWatches> way_ = std::make_shared<CutWatches>(world_.client_link(), world_.loop());
  std::unique_ptr<controllers::ControllerManager> manager_;
};

TEST_F(OldViews, ASetIsNotFilledByPodsOfBefore) {
  way_->cut([](std::string_view) { return true; });
  world_.run(std::chrono::milliseconds(100));
  change_meanwhile(2);
  world_.run(std::chrono::seconds(20));
  way_->cut([](std::string_view path) { return path.ends_with("/pods"); });
  world_.run(std::chrono::seconds(20));
  EXPECT_EQ(world_.pods().size(), 2U) << "the set is seen, and its pods are not";
  way_->heal();
  world_.run(std::chrono::minutes(1));
  EXPECT_EQ(world_.running("app=web"), 2U);
  EXPECT_EQ(world_.pods().size(), 2U) << "the one that was there was enough";
}

TEST_F(OldViews, WhoComesToLeadDoesNotBelieveSilentWatches) {
  is_election_cut_ = true;
  world_.run(std::chrono::seconds(40));
  EXPECT_FALSE(manager_->is_running());
  way_->stall();
  change_meanwhile(2);
  is_election_cut_ = false;
  world_.run(std::chrono::minutes(1));
  EXPECT_TRUE(manager_->is_running());
  EXPECT_EQ(world_.running("app=web"), 2U);
  EXPECT_EQ(world_.pods().size(), 2U) << "the one that was there was enough";
  const auto orphan = world_.client().get_and_wait({"", "v1", "pods"}, "default", "orphan");
  EXPECT_EQ(json::get_array(*orphan, {"metadata", "ownerReferences"}).size(), 1U) << "it is seen";
}

TEST_F(OldViews, WhatCannotBeWatchedForLongKeepsNobody) {
  way_->cut([](std::string_view path) { return path.ends_with("/endpointslices"); });
  world_.run(std::chrono::seconds(5));
  change_meanwhile(3);
  world_.run(std::chrono::seconds(20));
  EXPECT_EQ(world_.pods().size(), 2U);
  world_.run(std::chrono::minutes(1));
  EXPECT_EQ(world_.running("app=web"), 3U);
}

TEST_F(OldViews, ALeadershipThatIsLostBeforeAllIsKnownIsNoEnd) {
  manager_.reset();
  way_->cut([](std::string_view path) { return path.ends_with("/endpointslices"); });
  start_manager();
  world_.run(std::chrono::seconds(5));
  is_election_cut_ = true;
  world_.run(std::chrono::seconds(20));
  EXPECT_FALSE(manager_->is_running()) << "it had half a minute to know all, and the lease less";
  is_election_cut_ = false;
  way_->heal();
  change_meanwhile(3);
  world_.run(std::chrono::minutes(1));
  EXPECT_TRUE(manager_->is_running());
  EXPECT_EQ(world_.running("app=web"), 3U);
}

}  // namespace
}  // namespace berth::integration
