// The taint of simulated nodes beside a real one: over all pages, given and taken, and nobody else's taints touched.
#include "cli/nodes/simulated_taint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apiserver/server.h"
#include "client/client.h"

namespace berth::cli {
namespace {

const model::Gvr kNodes{"", "v1", "nodes"};

/// Lets the test do something just before a request is served.
class Watched final : public client::Transport {
 public:
  explicit Watched(std::shared_ptr<client::Transport> below) : below_(std::move(below)) {}
  void send(net::HttpRequest request, std::function<void(net::HttpResponse)> done) override {
    if (before) before(request);
    below_->send(std::move(request), std::move(done));
  }
  std::unique_ptr<net::StreamHandle> stream(net::HttpRequest request, net::StreamCallbacks callbacks) override {
    return below_->stream(std::move(request), std::move(callbacks));
  }
  void upgrade(net::HttpRequest request, std::function<void(std::unique_ptr<net::RawStream>, net::HttpResponse)> done) override {
    below_->upgrade(std::move(request), std::move(done));
  }
  std::function<void(const net::HttpRequest&)> before;

 private:
  std::shared_ptr<client::Transport> below_;
};

class SimulatedTaint : public ::testing::Test {
 protected:
  SimulatedTaint() {
    auto cache = apiserver::open_object_cache(store::make_memory_store(), loop_, {}, true);
    apiserver::ServerOptions server;
    server.cache = std::move(*cache);
    server.loop = &loop_;
    auto trusting = std::make_shared<apiserver::TrustingAuth>();
    server.authenticator = trusting;
    server.authorizer = trusting;
    server.single_threaded = true;
    api_ = std::move(*apiserver::ApiServer::create(std::move(server)));
    below_ = client::make_in_process_transport(*api_, {"system:admin", {"system:masters", "system:authenticated"}});
    watched_ = std::make_shared<Watched>(below_);
    client_ = std::make_unique<client::Client>(below_, nullptr, "test");
  }
  ~SimulatedTaint() override { api_->begin_shutdown(); }

  void node(const std::string& name, bool is_simulated, json::Array taints = {}) {
    json::Value document{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}, {"spec", {{"taints", std::move(taints)}}}};
    if (is_simulated) json::set(document, {"metadata", "annotations"}, json::Object{{"sim.berth.dev/fleet", "a"}});
    const auto created = client_->create_and_wait(kNodes, "", document);
    ASSERT_TRUE(created) << created.error().message;
  }
  /// "key=effect" of each, in order, but that of a new node.
  std::vector<std::string> taints_of(const std::string& name) {
    std::vector<std::string> out;
    const auto node = client_->get_and_wait(kNodes, "", name);
    if (!node) return {"gone"};
    for (const json::Value& taint : json::get_array(*node, {"spec", "taints"}))
      if (json::get_string(taint, {"key"}) != "node.kubernetes.io/not-ready")
        out.push_back(fmt::format("{}={}", json::get_string(taint, {"key"}), json::get_string(taint, {"effect"})));
    return out;
  }

  VirtualLoop loop_{TimePoint{} + std::chrono::hours(500'000)};
  std::unique_ptr<apiserver::ApiServer> api_;
  std::shared_ptr<client::Transport> below_;
  std::shared_ptr<Watched> watched_;
  std::unique_ptr<client::Client> client_;
};

using Taints = std::vector<std::string>;
const std::string kOwn = "sim.berth.dev/simulated=NoSchedule";

TEST_F(SimulatedTaint, IsGivenToAllSimulatedNodesOfAllPagesAndTakenAgain) {
  constexpr int kNodesOfThreePages = 1200;
  for (int i = 0; i < kNodesOfThreePages; ++i) node(fmt::format("n-{:04}", i), i % 2 == 0, {{{"key", "mine"}, {"effect", "NoExecute"}}});
  taint_simulated_nodes(watched_, true);
  for (const int i : {0, 498, 500, 998, 1000, 1198}) EXPECT_EQ(taints_of(fmt::format("n-{:04}", i)), (Taints{"mine=NoExecute", kOwn})) << i;
  for (const int i : {1, 499, 501, 1199})
    EXPECT_EQ(taints_of(fmt::format("n-{:04}", i)), Taints{"mine=NoExecute"}) << i << " is no simulated one";
  int patches = 0;
  watched_->before = [&](const net::HttpRequest& request) { patches += request.method == "PATCH" ? 1 : 0; };
  taint_simulated_nodes(watched_, true);
  EXPECT_EQ(patches, 0) << "it is there already";
  taint_simulated_nodes(watched_, false);
  EXPECT_EQ(patches, kNodesOfThreePages / 2);
  for (const int i : {0, 500, 1198}) EXPECT_EQ(taints_of(fmt::format("n-{:04}", i)), Taints{"mine=NoExecute"}) << i;
}

TEST_F(SimulatedTaint, WhatOthersTaintedMeanwhileStays) {
  node("a", true);
  bool is_done = false;
  watched_->before = [&](const net::HttpRequest& request) {
    if (request.method != "PATCH" || std::exchange(is_done, true)) return;
    client::Call other{
        .verb = "patch", .gvr = kNodes, .name = "a", .body = R"({"spec":{"taints":[{"key":"late","effect":"NoSchedule"}]}})"};
    other.content_type = "application/merge-patch+json";
    ASSERT_TRUE(client_->call_and_wait(std::move(other)));
  };
  taint_simulated_nodes(watched_, true);
  EXPECT_EQ(taints_of("a"), (Taints{"late=NoSchedule", kOwn}));
}

TEST_F(SimulatedTaint, ANodeThatGoesMeanwhileIsNobodysConcern) {
  for (const char* name : {"a", "b"}) node(name, true);
  bool is_done = false;
  watched_->before = [&](const net::HttpRequest& request) {
    if (request.method != "PATCH" || std::exchange(is_done, true)) return;
    client::Call removal{.verb = "delete", .gvr = kNodes, .name = "a"};
    ASSERT_TRUE(client_->call_and_wait(std::move(removal)));
  };
  taint_simulated_nodes(watched_, true);
  EXPECT_EQ(taints_of("a"), Taints{"gone"});
  EXPECT_EQ(taints_of("b"), Taints{kOwn});
}

}  // namespace
}  // namespace berth::cli
