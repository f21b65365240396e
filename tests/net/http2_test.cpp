// HTTP/2 on the server: the same handlers, many exchanges on one connection, and its orderly end.
#include <openssl/ssl.h>

#include "base/bytes.h"
#include "tests/net/http2_client.h"

namespace berth::net::test {
namespace {

HttpResponse answer_of(std::string body, int status = 200) {
  HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", "text/plain");
  response.body = std::move(body);
  return response;
}

FunctionHandler echo() {
  return FunctionHandler([](HttpRequest request, Writer writer) {
    writer->respond(answer_of(fmt::format("{} {}?{} [{}] {} {}", request.method, request.path, request.query, request.body,
                                          request.headers.get("Host"), request.headers.get("Cookie"))));
  });
}

/// Keeps the writers of what is asked below /watch; everything else is answered with its path.
struct WatchHandler {
  std::mutex mutex;
  std::map<std::string, Writer> writers;
  Signal opened, closed;
  FunctionHandler handler{[this](HttpRequest request, Writer writer) {
    if (!request.path.starts_with("/watch")) return writer->respond(answer_of(request.path));
    writer->on_close([this] { closed.notify(); });
    writer->start_stream(200, {});
    const std::lock_guard lock(mutex);
    writers[request.path] = std::move(writer);
    opened.notify();
  }};
  Writer of(const std::string& path) {
    const std::lock_guard lock(mutex);
    return writers[path];
  }
};

TEST(Http2, ARequestArrivesAsItDoesByHttp1) {
  auto handler = echo();
  const auto server = start_server(handler);
  Http2Client client(server->port());
  auto fields = request_fields("POST", "/a%20b/c?x=%20y");
  fields.insert(fields.end(), {{"cookie", "a=1"}, {"cookie", "b=2"}});
  const auto stream = client.ask(fields, false);
  client.send(frame(kData, 0, stream, "hel"));
  client.send(frame(kData, kEndStream, stream, "lo"));
  ASSERT_TRUE(client.read_answer(stream));
  EXPECT_EQ(client.answers[stream].status(), "200");
  EXPECT_EQ(client.answers[stream].body, "POST /a b/c?x=%20y [hello] x a=1; b=2");
  EXPECT_EQ(client.answers[stream].field("content-length"), "37");
  EXPECT_FALSE(client.answers[stream].field("date").empty());
  EXPECT_EQ(client.settings[NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS], 100U);
}

TEST(Http2, WatchesAndRequestsShareAConnection) {
  WatchHandler watches;
  const auto server = start_server(watches.handler);
  Http2Client client(server->port());
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(client.ask(request_fields("GET", fmt::format("/watch/{}", i))));
  ASSERT_TRUE(watches.opened.wait_for_count(10));
  for (int i = 9; i >= 0; --i) watches.of(fmt::format("/watch/{}", i))->write(make_bytes(fmt::format("event {}\n", i)));
  const auto request = client.ask(request_fields("GET", "/pods"));
  ASSERT_TRUE(client.read_answer(request));
  EXPECT_EQ(client.answers[request].body, "/pods");
  ASSERT_TRUE(client.read_until([&] { return std::ranges::all_of(streams, [&](auto id) { return !client.answers[id].body.empty(); }); }));
  EXPECT_EQ(client.answers[streams[3]].body, "event 3\n");
  EXPECT_FALSE(client.answers[streams[3]].ended);
  watches.of("/watch/3")->finish();
  ASSERT_TRUE(client.read_answer(streams[3]));
  EXPECT_TRUE(client.answers[streams[3]].ended);
  client.send(frame(kRstStream, 0, streams[4], big_endian(NGHTTP2_CANCEL)));
  EXPECT_TRUE(watches.closed.wait_for_count(2)) << "a watch that its client resets is told";
  EXPECT_FALSE(watches.of("/watch/4")->write(make_bytes("more")));
}

TEST(Http2, ALongAnswerIsHeldBackByItsWindowAndHoldsUpNobody) {
  WatchHandler watches;
  const auto server = start_server(watches.handler);
  Http2Client client(server->port(), setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1000));
  const auto slow = client.ask(request_fields("GET", "/watch/slow"));
  ASSERT_TRUE(watches.opened.wait_for_count(1));
  const auto writer = watches.of("/watch/slow");
  Signal drained;
  writer->write(make_bytes(std::string(1'000'000, 'x')));
  writer->on_drain([&] { drained.notify(); });
  ASSERT_TRUE(client.read_until([&] { return client.answers[slow].body.size() == 1000; }));
  const auto other = client.ask(request_fields("GET", "/other"));
  ASSERT_TRUE(client.read_answer(other));
  EXPECT_EQ(client.answers[slow].body.size(), 1000U) << "not a byte beyond the window";
  EXPECT_EQ(writer->queued_bytes(), 999'000U) << "the producer sees what its reader leaves";
  EXPECT_EQ(drained.count(), 0);
  client.send(frame(kWindowUpdate, 0, slow, big_endian(2'000'000)) + frame(kWindowUpdate, 0, 0, big_endian(2'000'000)));
  ASSERT_TRUE(client.read_until([&] { return client.answers[slow].body.size() == 1'000'000; }));
  EXPECT_TRUE(drained.wait_for_count(1));
}

TEST(Http2, AnswersAreCutInFramesAndComeWhole) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i);
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    std::vector<Bytes> parts;
    for (std::size_t at = 0; at < text.size(); at += 70'001) parts.push_back(make_bytes(text.substr(at, 70'001)));
    writer->respond_shared(200, {}, std::move(parts));
  });
  const auto server = start_server(handler);
  Http2Client client(server->port(), setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 30));
  client.send(frame(kWindowUpdate, 0, 0, big_endian(1 << 30)));
  const auto first = client.ask(request_fields()), second = client.ask(request_fields()), head = client.ask(request_fields("HEAD"));
  ASSERT_TRUE(client.read_answer(first) && client.read_answer(second) && client.read_answer(head));
  EXPECT_TRUE(client.answers[first].body == text);
  EXPECT_TRUE(client.answers[second].body == text);
  EXPECT_EQ(client.answers[head].body, "");
  EXPECT_EQ(client.answers[head].field("content-length"), std::to_string(text.size()));
}

TEST(Http2, StreamsWithoutABodyEndWithTheirHead) {
  FunctionHandler handler([](HttpRequest request, Writer writer) {
    writer->start_stream(request.path == "/204" ? 204 : 304, {});
    writer->write(make_bytes("unwanted"));
    writer->finish();
  });
  const auto server = start_server(handler);
  Http2Client client(server->port());
  for (const std::string path : {"/204", "/304"}) {
    const auto stream = client.ask(request_fields("GET", path));
    ASSERT_TRUE(client.read_answer(stream));
    EXPECT_EQ("/" + client.answers[stream].status(), path);
    EXPECT_EQ(client.answers[stream].body, "");
  }
}

TEST(Http2, WhatTheHandlerLeavesIsEndedAsByHttp1) {
  FunctionHandler handler([](HttpRequest request, Writer writer) {
    if (request.path == "/throws") throw std::runtime_error("no");
    if (request.path == "/cut-off") {
      writer->start_stream(200, {});
      writer->write(make_bytes("half"));
    }
  });
  const auto server = start_server(handler);
  Http2Client client(server->port());
  const auto dropped = client.ask(request_fields("GET", "/dropped")), throws = client.ask(request_fields("GET", "/throws")),
             cut_off = client.ask(request_fields("GET", "/cut-off"));
  ASSERT_TRUE(client.read_answer(dropped) && client.read_answer(throws) && client.read_answer(cut_off));
  EXPECT_EQ(client.answers[dropped].status(), "500");
  EXPECT_EQ(client.answers[throws].status(), "500");
  EXPECT_EQ(client.answers[cut_off].reset, NGHTTP2_INTERNAL_ERROR) << "a watch cut off must not look complete";
}

TEST(Http2, AnswersOfAConnectionNeverForgeFields) {
  FunctionHandler handler([](HttpRequest, Writer writer) {
    HttpResponse response;
    response.headers.add("Connection", "keep-alive");
    response.headers.add("X-Copied", "a\r\nSet-Cookie: b");
    writer->respond(std::move(response));
  });
  const auto server = start_server(handler);
  Http2Client client(server->port());
  const auto stream = client.ask(request_fields());
  ASSERT_TRUE(client.read_answer(stream));
  EXPECT_EQ(client.answers[stream].field("connection"), "") << "RFC 9113 8.2.2";
  EXPECT_EQ(client.answers[stream].field("x-copied"), "a  Set-Cookie: b");
}

TEST(Http2, StoppingServesWhatWasSentBeforeTheClientHeardOfIt) {
  WatchHandler watches;
  const auto server = start_server(watches.handler);
  Http2Client client(server->port());
  client.acks_pings = false;
  const auto watch = client.ask(request_fields("GET", "/watch/1"));
  ASSERT_TRUE(watches.opened.wait_for_count(1));
  std::thread stopping([&] { server->stop(8000); });
  ASSERT_TRUE(client.read_until([&] { return !client.goaways.empty(); }));
  EXPECT_EQ(client.last_stream, 0x7fffffffU) << "first only a notice";
  const auto late = client.ask(request_fields("GET", "/late"));
  ASSERT_TRUE(client.read_answer(late));
  EXPECT_EQ(client.answers[late].body, "/late");
  client.send(frame(kPing, kAck, 0, "berthbye"));
  EXPECT_TRUE(client.read_to_end());
  stopping.join();
  EXPECT_EQ(client.goaways, (std::vector<std::uint32_t>{NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR}));
  EXPECT_EQ(client.last_stream, late);
  EXPECT_TRUE(client.answers[watch].ended) << "watches end in order";
  EXPECT_FALSE(client.answers[watch].reset);
}

TEST(Http2, AnAnswerThatClosesEndsTheConnectionInOrder) {
  FunctionHandler handler([](HttpRequest request, Writer writer) {
    auto response = answer_of(request.path);
    if (request.path == "/close") response.headers.add("Connection", "close");
    if (request.path == "/unknown-user") response.status = 401;
    writer->respond(std::move(response));
  });
  const auto server = start_server(handler);
  for (const std::string path : {"/close", "/unknown-user"}) {
    Http2Client client(server->port());
    const auto stream = client.ask(request_fields("GET", path));
    EXPECT_TRUE(client.read_to_end()) << path;
    EXPECT_EQ(client.answers[stream].body, path);
    EXPECT_EQ(client.goaways.size(), 2U) << path;
  }
}

TEST(Http2, GoawayComesByChance) {
  auto handler = echo();
  ServerConfig config;
  config.goaway_chance = 1;
  const auto server = start_server(handler, std::move(config));
  Http2Client client(server->port());
  const auto stream = client.ask(request_fields());
  EXPECT_TRUE(client.read_to_end());
  EXPECT_EQ(client.answers[stream].status(), "200");
  EXPECT_EQ(client.goaways.size(), 2U);
}

/// The protocol that a TLS client gets which offers `offered` (in ALPN's form).
std::string chosen_by(const Server& server, std::string_view offered) {
  const RawClient raw(server.port());
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>(offered.data()), static_cast<unsigned>(offered.size()));
  SSL_set_fd(ssl.get(), raw.fd());
  if (SSL_connect(ssl.get()) != 1) return "no handshake";
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

TEST(Http2, TlsClientsChooseByAlpn) {
  auto handler = echo();
  const auto server = start_server(handler, {}, true);
  EXPECT_EQ(chosen_by(*server, "\x08http/1.1\x02h2"), "h2");
  EXPECT_EQ(chosen_by(*server, "\x08http/1.1"), "http/1.1");
  ServerConfig config;
  config.http2 = false;
  const auto old = start_server(handler, std::move(config), true);
  EXPECT_EQ(chosen_by(*old, "\x02h2\x08http/1.1"), "http/1.1");
  EXPECT_EQ(wait_for(*make_client(*server, true), make_request("GET", "/")).status, 200);
}

}  // namespace
}  // namespace berth::net::test
