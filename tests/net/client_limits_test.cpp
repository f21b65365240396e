// What a client takes of a server, and to which it goes at all.
#include "net/address.h"
#include "net/reactor.h"
#include "tests/net/net_fixture.h"
#include "tests/support/usage.h"

namespace berth::net::test {
namespace {

using berth::test::comes_true;
using berth::test::usage_now;

TEST(IpAddress, HasOneFormWhateverItsSpelling) {
  const auto parse = [](const char* text) { return IpAddress::parse(text).value_or(IpAddress{}); };
  EXPECT_EQ(parse("127.0.0.1"), parse("::ffff:127.0.0.1"));
  EXPECT_EQ(parse("::ffff:7f00:1"), parse("127.0.0.1"));
  EXPECT_EQ(parse("::ffff:10.0.0.1").text(), "10.0.0.1");
  EXPECT_EQ(parse("FD00:0::1").text(), "fd00::1");
  for (const char* bad : {"", "localhost", "127.1", "0x7f.0.0.1", "127.0.0.1 ", "fe80::1%eth0", "[::1]"})
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  for (const char* loopback : {"127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"})
    EXPECT_TRUE(parse(loopback).is_loopback()) << loopback;
  for (const char* any : {"0.0.0.0", "::", "0.0.0.9", "::ffff:0.0.0.0"}) EXPECT_TRUE(parse(any).is_unspecified()) << any;
  for (const char* local : {"169.254.169.254", "fe80::1", "::ffff:169.254.169.254"}) EXPECT_TRUE(parse(local).is_link_local()) << local;
  for (const char* many : {"224.0.0.1", "255.255.255.255", "ff02::1"}) EXPECT_TRUE(parse(many).is_multicast()) << many;
  EXPECT_TRUE(parse("10.96.255.1").is_in("10.96.0.0/12"));
  EXPECT_TRUE(parse("::ffff:10.96.0.1").is_in("10.96.0.0/12"));
  EXPECT_FALSE(parse("10.112.0.1").is_in("10.96.0.0/12"));
  EXPECT_TRUE(parse("fd00:1::5").is_in("fd00::/8"));
  EXPECT_FALSE(parse("10.0.0.1").is_in("::/0"));
  for (const char* bad : {"10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/-1", ""}) EXPECT_FALSE(parse("10.0.0.1").is_in(bad)) << bad;
  for (const char* own : {"127.0.0.1", "::", "::1", "0.0.0.0"}) EXPECT_TRUE(leads_to_this_machine(parse(own))) << own;
  for (const auto& own : addresses_of_this_machine()) EXPECT_TRUE(leads_to_this_machine(own)) << own.text();
  EXPECT_FALSE(leads_to_this_machine(parse("192.0.2.1")));
}

/// Asked after names were resolved: what counts is where the connection would go.
TEST(ClientAddress, IsJudgedWhereTheConnectionIsMade) {
  std::atomic<int> served{0};
  FunctionHandler handler([&](const HttpRequest&, const Writer& writer) {
    ++served;
    writer->respond({});
  });
  const auto server = start_server(handler);
  for (const char* host : {"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"}) {
    std::atomic<int> asked{0};
    ClientConfig config;
    config.url = fmt::format("http://{}:{}", host, server->port());
    config.refuse_address = [&](const SocketAddress& where) {
      ++asked;
      return where.port == server->port() && where.address.is_loopback() ? std::string("not there") : std::string();
    };
    const auto client = std::move(*HttpClient::create(config));
    const auto answer = wait_for(*client, make_request("GET", "/"));
    EXPECT_EQ(answer.status, 0) << host;
    EXPECT_EQ(answer.body, "not there") << host;
    EXPECT_GT(asked, 0) << host;
    std::promise<std::string> streamed, upgraded;
    const auto stream =
        client->stream(make_request("GET", "/"), {.on_end = [&](std::string error) { streamed.set_value(std::move(error)); }});
    EXPECT_EQ(streamed.get_future().get(), "not there") << host;
    client->upgrade(make_request("GET", "/"),
                    [&](const std::unique_ptr<RawStream>&, HttpResponse response) { upgraded.set_value(std::move(response.body)); });
    EXPECT_EQ(upgraded.get_future().get(), "not there") << host;
  }
  EXPECT_EQ(served, 0);
}

TEST(ClientAnswer, IsReadUpToItsLimit) {
  FunctionHandler handler([](const HttpRequest& request, const Writer& writer) {
    if (request.path == "/length") return writer->respond({.status = 200, .headers = {}, .body = std::string(100'001, 'x')});
    writer->start_stream(200, {});
    for (int i = 0; i < 11; ++i) writer->write(make_bytes(std::string(10'000, 'x')));
    writer->finish();
  });
  const auto server = start_server(handler);
  const auto client = make_client(*server, false, [](ClientConfig& config) { config.max_answer_bytes = 100'000; });
  for (const char* path : {"/length", "/chunks"}) {
    const auto answer = wait_for(*client, make_request("GET", path));
    EXPECT_EQ(answer.status, 0) << path;
    EXPECT_EQ(answer.body.find("xxx"), std::string::npos) << path;
    EXPECT_NE(answer.body.find("100000"), std::string::npos) << answer.body;
  }
}

/// A reader who pauses holds the server back, and misses nothing of it, not the end either.
TEST(ClientStream, WaitsWhileItIsPaused) {
  constexpr std::size_t kSize = 16 << 20;
  std::atomic<std::size_t> produced{0};
  std::function<void(Writer)> more = [&](const Writer& writer) {
    if (produced == kSize) return writer->finish();
    writer->write(make_bytes(std::string(64 * 1024, 'x')));
    produced += 64 * 1024;
    writer->on_drain([&, writer] { more(writer); });
  };
  FunctionHandler handler([&](const HttpRequest&, Writer writer) {
    writer->start_stream(200, {});
    more(writer);
  });
  const auto server = start_server(handler);
  const auto client = make_client(*server);
  std::atomic<std::size_t> got{0};
  std::atomic<bool> is_over{false};
  std::mutex mutex;
  std::unique_ptr<StreamHandle> handle;
  StreamCallbacks callbacks;
  callbacks.on_data = [&](std::string_view data) {
    got += data.size();
    const std::lock_guard lock(mutex);
    if (handle && got < kSize / 2) handle->pause();
  };
  callbacks.on_end = [&](const std::string& error) {
    EXPECT_EQ(error, "");
    is_over = true;
  };
  {
    const std::lock_guard lock(mutex);
    handle = client->stream(make_request("GET", "/"), std::move(callbacks));
    handle->pause();
  }
  std::size_t last = 1;
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(last, produced.load());
    ::poll(nullptr, 0, 100);
    return earlier > 0 && earlier == produced;
  }));
  EXPECT_LT(produced, kSize) << "the server had to wait";
  EXPECT_LT(got, 1U << 20);
  while (!is_over) {
    const auto before = got.load();
    handle->resume();
    ASSERT_TRUE(comes_true([&] { return got > before || is_over; }));
  }
  EXPECT_EQ(got, kSize);
}

TEST(ClientStream, ThatIsPausedHearsTheEndAfterTheRest) {
  FunctionHandler handler([&](const HttpRequest&, const Writer& writer) {
    writer->start_stream(200, {});
    for (int i = 0; i < 3; ++i) writer->write(make_bytes(std::string(60'000, 'x')));
    writer->finish();
  });
  const auto server = start_server(handler);
  const auto client = make_client(*server);
  std::atomic<std::size_t> got{0};
  Signal ended;
  auto handle = client->stream(make_request("GET", "/"), {.on_data = [&](std::string_view data) { got += data.size(); },
                                                          .on_end =
                                                              [&](const std::string& error) {
                                                                EXPECT_EQ(error, "");
                                                                EXPECT_EQ(got, 180'000U);
                                                                ended.notify();
                                                              }});
  for (int i = 0; i < 200; ++i) {
    handle->pause();
    handle->resume();
  }
  EXPECT_TRUE(ended.wait_for_count(1));
}

TEST(ClientReactor, ServesAllClientsByOneThread) {
  FunctionHandler handler([](const HttpRequest&, const Writer& writer) { writer->respond({}); });
  const auto server = start_server(handler);
  const auto before = usage_now();
  {
    const auto reactor = Reactor::start("shared");
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 50; ++i) {
      clients.push_back(make_client(*server, false, [&](ClientConfig& config) { config.reactor = reactor; }));
      EXPECT_EQ(wait_for(*clients.back(), make_request("GET", "/")).status, 200);
    }
    EXPECT_LE(usage_now().threads, before.threads + 1);
    clients.clear();
    EXPECT_TRUE(comes_true([&] { return usage_now().descriptors <= before.descriptors + 2; })) << "idle connections go with their client";
    reactor->stop();
  }
  EXPECT_TRUE(comes_true([&] { return usage_now().descriptors <= before.descriptors && usage_now().threads <= before.threads; }));
}

}  // namespace
}  // namespace berth::net::test
