// Clients and informers over real sockets, through a server that is stopped and started again.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "client/informer.h"
#include "net/server.h"
#include "tests/client/fake_api.h"

namespace berth::client::test {
namespace {

const Gvr kPods{"", "v1", "pods"};

/// The fake server for several threads.
class LockedApi final : public net::Handler {
 public:
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    std::lock_guard lock(mutex);
    authorization = request.headers.get("Authorization");
    user_agent = request.headers.get("User-Agent");
    api.handle(std::move(request), std::move(writer));
  }
  std::mutex mutex;
  FakeApi api;
  std::string authorization, user_agent;
};

std::unique_ptr<net::Server> serve(net::Handler& handler, std::uint16_t port = 0) {
  for (int i = 0; i < 1000; ++i) {
    auto server = net::Server::start({.port = port}, handler);
    if (server) return std::move(*server);
  }
  return nullptr;
}

std::shared_ptr<Transport> connect(std::uint16_t port, std::string token = {}) {
  return *make_https_transport({.url = fmt::format("http://127.0.0.1:{}", port)}, std::move(token));
}

template <typename F>
auto run_on(EventLoop& loop, F function) {
  std::promise<decltype(function())> promise;
  loop.post([&] { promise.set_value(function()); });
  return promise.get_future().get();
}

TEST(HttpsClient, SendsTokenAndUserAgentAndReadsFailures) {
  LockedApi api;
  const auto server = serve(api);
  Client client(connect(server->port(), "secret"), nullptr, "test/2");
  api.api.put("default", "a");
  const auto page = client.list_and_wait(kPods, "default");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->items.size(), 1U);
  EXPECT_EQ(api.authorization, "Bearer secret");
  EXPECT_EQ(api.user_agent, "test/2");
  api.api.fail_next(1, 403, "Forbidden");
  const auto refused = client.get_and_wait(kPods, "default", "a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, 403);
  EXPECT_EQ(refused.error().reason, "Forbidden");
}

TEST(HttpsClient, AnUnreachableServerIsATransportError) {
  LockedApi api;
  auto server = serve(api);
  const auto port = server->port();
  server.reset();
  Client client(connect(port), nullptr, "test");
  const auto result = client.get_and_wait(kPods, "default", "a");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, 0);
  EXPECT_EQ(result.error().reason, "TransportError");
  EXPECT_NE(result.error().message.find("Connection refused"), std::string::npos);
}

TEST(HttpsClient, RetriesWhenAskedTo) {
  LockedApi api;
  const auto server = serve(api);
  ThreadLoop loop("test");
  Client client(connect(server->port()), &loop, "test");
  api.api.fail_next(1, 429, "TooManyRequests", 1);
  std::promise<bool> listed;
  client.list(kPods, "", {}, [&](ApiResult<ListPage> page) { listed.set_value(page.has_value()); });
  EXPECT_TRUE(listed.get_future().get());
}

TEST(HttpsInformer, SurvivesServerRestarts) {
  LockedApi api;
  auto server = serve(api);
  const auto port = server->port();
  ThreadLoop loop("test");
  Client client(connect(port), &loop, "test");
  auto informer = run_on(loop, [&] {
    auto made = std::make_unique<Informer>(client, kPods, InformerOptions{.page = 50});
    made->start();
    return made;
  });
  std::promise<void> synced;
  loop.post([&] { informer->on_synced([&] { synced.set_value(); }); });
  synced.get_future().get();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      std::lock_guard lock(api.mutex);
      api.api.put("default", fmt::format("p{}", i % 120), fmt::format(R"({{"round":{},"i":{}}})", round, i));
      if (i % 7 == 0) api.api.remove("default", fmt::format("p{}", i % 50));
    }
    server->stop(0);
    server.reset();
    server = serve(api, port);
    ASSERT_TRUE(server);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  const auto is_equal = [&] {
    return run_on(loop, [&] {
      std::lock_guard lock(api.mutex);
      if (informer->size() != api.api.objects().size()) return false;
      bool equal = true;
      informer->for_each([&](const ObjectRef& object) {
        const auto found = api.api.objects().find(object->key());
        equal = equal && found != api.api.objects().end() && Object(found->second).revision() == object->revision();
      });
      return equal;
    });
  };
  while (!is_equal() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_TRUE(is_equal());
  EXPECT_EQ(api.api.lists, 1) << "the watches went on where they were";
  run_on(loop, [&] {
    informer.reset();
    return 0;
  });
}

}  // namespace
}  // namespace berth::client::test
