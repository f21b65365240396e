// Two connections joined, ended in every way: nothing may be left of them, and nobody may make the joint grow.
#include "net/splice.h"

#include <sys/epoll.h>

#include "net/onward.h"
#include "net/reactor.h"
#include "tests/net/net_fixture.h"
#include "tests/support/usage.h"

namespace berth::net::test {
namespace {

using berth::test::comes_true;
using berth::test::Usage;
using berth::test::usage_now;

constexpr std::size_t kBurst = 4 << 20;
constexpr std::string_view kUpgrade = "GET {} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";

/// The far end: what it does with a stream is the path.
class FarEnd {
 public:
  FarEnd() : handler_([this](HttpRequest request, const Writer& writer) { handle(request, writer); }), server_(start_server(handler_)) {}
  ~FarEnd() {
    ended_ = true;  // A stream that is over takes everything: the flood must know.
    server_->stop(0);
  }
  [[nodiscard]] std::string url() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }
  std::atomic<std::size_t> produced{0};
  std::atomic<int> silent{0};

 private:
  void handle(const HttpRequest& request, const Writer& writer) {
    if (request.path == "/refuse") return writer->respond({.status = 404, .headers = {}, .body = "no"});
    if (request.path == "/refuse-at-length") return writer->respond({.status = 500, .headers = {}, .body = std::string(8 << 20, 'x')});
    if (request.path == "/silent") {
      ++silent;
      writer->on_close([this, writer] { --silent; });
      return;
    }
    Headers headers;
    headers.add("Connection", "Upgrade");
    headers.add("Upgrade", "x");
    std::shared_ptr<RawStream> stream = writer->upgrade(headers);
    ASSERT_TRUE(stream);
    if (request.path == "/closes") {
      stream->write("bye");
      stream->close();
    } else if (request.path == "/flood") {
      flood(stream, std::numeric_limits<std::size_t>::max());
    } else if (request.path == "/burst") {
      flood(stream, kBurst);
    }
    if (request.path == "/echo" || request.path == "/flood") echo(stream);
  }
  /// Sends as fast as it is taken.
  void flood(const std::shared_ptr<RawStream>& stream, std::size_t left) {
    if (left == 0 || ended_) return stream->close();
    const auto size = std::min<std::size_t>(left, 64 * 1024);
    stream->write(std::string(size, 'f'));
    produced += size;
    stream->on_drain([this, weak = std::weak_ptr(stream), keep = left <= kBurst ? stream : nullptr, left, size] {
      if (const auto again = weak.lock()) flood(again, left - size);
    });
  }
  void echo(const std::shared_ptr<RawStream>& stream) {
    stream->async_read([this, stream](std::string data, bool eof) {
      if (eof) return stream->close();
      stream->write(std::move(data));
      echo(stream);
    });
  }

  std::atomic<bool> ended_{false};
  FunctionHandler handler_;
  std::unique_ptr<Server> server_;
};

/// Relays every request to the far end.
class Relay {
 public:
  explicit Relay(const FarEnd& far, SplicePatience patience = {})
      : reactor_(Reactor::start("relay")), handler_([this, patience](const HttpRequest& request, const Writer& writer) {
          auto onward = onward_request(request, Onward::kSession);
          onward.path = request.path;
          auto call_off = client_->upgrade(std::move(onward), [writer, patience](std::unique_ptr<RawStream> stream, HttpResponse response) {
            if (stream == nullptr) return writer->respond({response.status == 0 ? 502 : response.status, {}, response.body});
            auto own = writer->upgrade(response.headers);
            if (own) splice(std::move(own), std::move(stream), patience);
          });
          writer->on_close(std::move(call_off));
        }) {
    ClientConfig config;
    config.url = far.url();
    config.reactor = reactor_;
    client_ = std::move(*HttpClient::create(config));
    server_ = start_server(handler_);
  }
  ~Relay() {
    server_->stop(0);
    client_.reset();
    reactor_->stop();
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

 private:
  std::shared_ptr<Reactor> reactor_;
  std::unique_ptr<HttpClient> client_;
  FunctionHandler handler_;
  std::unique_ptr<Server> server_;
};

/// So many clients of one path, each connected and past the upgrade when `upgrades`.
std::vector<std::unique_ptr<RawClient>> connect(const Relay& relay, const std::string& path, int count, bool upgrades = true) {
  std::vector<std::unique_ptr<RawClient>> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(std::make_unique<RawClient>(relay.port()));
    out.back()->send(fmt::format(fmt::runtime(kUpgrade), path));
  }
  for (std::size_t i = 0; upgrades && i < out.size(); ++i) EXPECT_TRUE(out[i]->read_until("\r\n\r\n").starts_with("HTTP/1.1 101")) << path;
  return out;
}

void reset(const RawClient& client) {
  const linger at_once{1, 0};
  setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

struct Ending {
  std::string name;
  std::function<void(const Relay&, FarEnd&, int count)> run;
};

const std::vector<Ending>& endings() {
  static const std::vector<Ending> all = {
      {"TheClientCloses",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/echo", count)) {
           client->send("ping");
           EXPECT_EQ(client->read_until("ping"), "ping");
         }
       }},
      {"TheClientResets",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/echo", count)) reset(*client);
       }},
      {"TheClientEndsItsSide",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/echo", count)) {
           client->send("last");
           client->end_sending();
           EXPECT_FALSE(client->read_to_end().ends_with("<error>"));
         }
       }},
      {"TheFarEndCloses",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/closes", count)) EXPECT_EQ(client->read_to_end(), "bye");
       }},
      {"TheUpgradeIsRefused",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/refuse", count, false))
           EXPECT_TRUE(client->read_until("no").starts_with("HTTP/1.1 404"));
       }},
      {"TheUpgradeIsRefusedAtLength",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/refuse-at-length", std::min(count, 8), false))
           EXPECT_TRUE(client->read_until("\r\n\r\n").starts_with("HTTP/1.1 502"));
       }},
      {"TheFarEndNeverAnswers",
       [](const Relay& relay, FarEnd& far, int count) {
         const auto clients = connect(relay, "/silent", count, false);
         EXPECT_TRUE(comes_true([&] { return far.silent == count; }));
         for (const auto& client : clients) reset(*client);
       }},
      {"TheClientDoesNotReadAndGoes",
       [](const Relay& relay, FarEnd&, int count) {
         for (const auto& client : connect(relay, "/flood", std::min(count, 16))) reset(*client);
       }},
  };
  return all;
}

class SpliceEnding : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SpliceEnding, LeavesNothing) {
  FarEnd far;
  const Relay relay(far);
  const auto& ending = endings()[GetParam()];
  ending.run(relay, far, 8);  // Buffers of threads are made once.
  const auto is_idle = [&](const Usage& before) {
    const auto now = usage_now();
    return now.threads <= before.threads && now.descriptors <= before.descriptors && far.silent == 0;
  };
  Usage before = usage_now();
  // The last connections of the first round may still be closing.
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(before, usage_now());
    ::poll(nullptr, 0, 50);
    return earlier.descriptors == before.descriptors && usage_now().descriptors == before.descriptors && far.silent == 0;
  }));
  before = usage_now();
  ending.run(relay, far, 300);
  EXPECT_TRUE(comes_true([&] { return is_idle(before); }))
      << ending.name << ": " << before.threads << " threads and " << before.descriptors << " descriptors became " << usage_now().threads
      << " and " << usage_now().descriptors;
  EXPECT_TRUE(comes_true([&] { return usage_now().heap_bytes < before.heap_bytes + 512 * 1024; }, std::chrono::seconds(5)))
      << ending.name << ": " << before.heap_bytes << " bytes became " << usage_now().heap_bytes;
}

INSTANTIATE_TEST_SUITE_P(EveryWay, SpliceEnding, ::testing::Range<std::size_t>(0, 8),
                         [](const auto& info) { return endings()[info.param].name; });

/// Whoever sends waits for whoever reads: what lies between them stays below a megabyte and a half, of which the far end here has a share.
TEST(Splice, AReaderWhoDoesNotReadHoldsTheSenderBack) {
  FarEnd far;
  const Relay relay(far);
  connect(relay, "/closes", 4);
  const auto before = usage_now();
  constexpr int kClients = 8;
  const auto clients = connect(relay, "/flood", kClients);
  std::size_t last = 0;
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(last, far.produced.load());
    ::poll(nullptr, 0, 200);
    return earlier > 0 && earlier == far.produced;
  })) << "the far end never had to wait: "
      << far.produced;
  const auto held = usage_now().heap_bytes - before.heap_bytes;
  EXPECT_LT(held, kClients * std::size_t{1536} * 1024);
  // And it goes on where it stopped.
  std::array<char, 65536> buffer;
  std::size_t got = 0;
  while (got < (8 << 20)) {
    const auto n = ::recv(clients[0]->fd(), buffer.data(), buffer.size(), 0);
    ASSERT_GT(n, 0);
    got += static_cast<std::size_t>(n);
  }
  EXPECT_TRUE(comes_true([&] { return far.produced > last; }));
}

TEST(Splice, WhatTheFarEndLeftIsReadOrDroppedInTime) {
  FarEnd far;
  const Relay relay(far, {.idle = std::chrono::hours(1), .unread = std::chrono::milliseconds(300)});
  const auto before = usage_now();
  {
    RawClient unread(relay.port());
    const int small = 32 * 1024;  // More than the kernels take on the way stays in the relay.
    setsockopt(unread.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    unread.send(fmt::format(fmt::runtime(kUpgrade), "/burst"));
    const auto readers = connect(relay, "/burst", 1);
    EXPECT_EQ(readers[0]->read_to_end().size(), kBurst) << "nothing is lost on a reader";
    EXPECT_TRUE(comes_true([&] { return usage_now().descriptors <= before.descriptors + 2; }))
        << "the other does not read, and the far end has gone";
  }
  EXPECT_TRUE(comes_true([&] { return usage_now().descriptors <= before.descriptors; }));
}

TEST(Splice, SilenceEnds) {
  FarEnd far;
  const Relay relay(far, {.idle = std::chrono::milliseconds(200), .unread = std::chrono::seconds(60)});
  for (const auto& client : connect(relay, "/echo", 3)) client->read_to_end();
}

/// An upgraded connection is one like others: it counts until it is closed.
TEST(Splice, UpgradedConnectionsCount) {
  FarEnd far;
  FunctionHandler handler([](const HttpRequest&, const Writer& writer) {
    Headers headers;
    headers.add("Upgrade", "x");
    static std::vector<std::unique_ptr<RawStream>> streams;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    streams.push_back(writer->upgrade(headers));
  });
  const auto server = start_server(handler, {.max_connections_per_address = 2});
  const auto open = [&] {
    auto client = std::make_unique<RawClient>(server->port());
    client->send(fmt::format(fmt::runtime(kUpgrade), "/"));
    return client;
  };
  auto first = open();
  EXPECT_TRUE(first->read_until("\r\n\r\n").starts_with("HTTP/1.1 101"));
  const auto second = open();
  EXPECT_TRUE(second->read_until("\r\n\r\n").starts_with("HTTP/1.1 101"));
  EXPECT_EQ(open()->read_until("\r\n\r\n"), "");
  reset(*first);
  first.reset();
  EXPECT_TRUE(comes_true([&] { return open()->read_until("\r\n\r\n").starts_with("HTTP/1.1 101"); }));
}

}  // namespace
}  // namespace berth::net::test
