// Bad input and rude peers: each is answered or dropped, and the others go on.
#include <openssl/ssl.h>

#include "tests/net/net_fixture.h"

namespace berth::net::test {
namespace {

FunctionHandler echo_handler() {
  return FunctionHandler([](HttpRequest request, Writer writer) {
    HttpResponse response;
    response.body = request.method + " " + request.path + "[" + request.body + "]";
    writer->respond(std::move(response));
  });
}

/// Asks again and again, for a minute at most: a bound of failures, not a pace.
template <class Condition>
bool holds_soon(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

ServerConfig small_limits() {
  ServerConfig config;
  config.max_body_bytes = 1000;
  config.max_header_bytes = 2000;
  config.header_timeout_ms = 150;
  config.idle_timeout_ms = 300;
  config.write_timeout_ms = 300;
  return config;
}

class Limits : public ::testing::Test {
 protected:
  FunctionHandler handler = echo_handler();
  std::unique_ptr<Server> server = start_server(handler, small_limits());

  std::string talk(std::string_view text) const {
    RawClient client(server->port());
    client.send(text);
    return client.read_to_end();
  }
  static std::string status_line(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }
};

TEST_F(Limits, MalformedRequestsAre400WithAStatus) {
  for (const std::string_view text : {"garbage\r\n\r\n",
                                      "GET\r\n\r\n",
                                      "GET / HTTP/1.1\r\nno colon\r\nHost: x\r\n\r\n",
                                      "GET / HTTP/1.1\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
                                      "GET / HTTP/1.1\nHost: x\n\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1x\r\n\r\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                                      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                                      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
                                      "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "GET /a%2fb HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "GET /a%00b HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "GET /../etc HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "GET /%2e%2e/etc HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "GET relative HTTP/1.1\r\nHost: x\r\n\r\n",
                                      "GET / HTTP/1.1\r\nHost: x\r\nX: \x01\r\n\r\n"}) {
    const auto answer = talk(text);
    EXPECT_EQ(status_line(answer), "HTTP/1.1 400 Bad Request") << text;
    EXPECT_NE(answer.find("\"reason\":\"BadRequest\""), std::string::npos) << text;
  }
  EXPECT_EQ(status_line(talk("GET / HTTP/2.0\r\nHost: x\r\n\r\n")), "HTTP/1.1 505 HTTP Version Not Supported");
}

TEST_F(Limits, BodiesAndHeadersHaveALimit) {
  const auto declared = talk("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
  EXPECT_EQ(status_line(declared), "HTTP/1.1 413 Request Entity Too Large");
  EXPECT_NE(declared.find(R"("message":"Request entity too large: limit is 1000","reason":"RequestEntityTooLarge","code":413)"),
            std::string::npos);
  const auto chunked =
      talk("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n500\r\n" + std::string(0x500, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(status_line(chunked), "HTTP/1.1 413 Request Entity Too Large");
  const auto header = talk("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(3000, 'y') + "\r\n\r\n");
  EXPECT_EQ(status_line(header), "HTTP/1.1 431 Request Header Fields Too Large");
  const auto endless_header = talk("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(30'000, 'y'));
  EXPECT_EQ(status_line(endless_header), "HTTP/1.1 431 Request Header Fields Too Large");
  const auto extensions = talk("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(5000, 'e'));
  EXPECT_EQ(status_line(extensions), "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST(LimitsOfBodies, StrangersSendNoLargeOnes) {
  auto handler = echo_handler();
  ServerConfig config;
  config.may_send_body = [](const HttpRequest& head) { return head.method == "POST" && head.headers.get("Authorization") == "friend"; };
  const auto server = start_server(handler, config);
  const auto talk = [&](std::string_view authorization, std::size_t size) {
    RawClient client(server->port());
    client.send(fmt::format("POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {}\r\nContent-Length: {}\r\n\r\n",
                            authorization, size));
    client.send(std::string(size, 'b'));
    client.end_sending();
    return client.read_to_end();
  };
  EXPECT_EQ(talk("stranger", 10'000).substr(0, 15), "HTTP/1.1 200 OK");
  const auto refused = talk("stranger", 1'000'000);
  EXPECT_EQ(refused.substr(0, 25), "HTTP/1.1 401 Unauthorized");
  EXPECT_NE(refused.find(R"("message":"Unauthorized","reason":"Unauthorized","code":401)"), std::string::npos) << refused;
  EXPECT_EQ(talk("friend", 1'000'000).substr(0, 15), "HTTP/1.1 200 OK");
}

TEST(LimitsOfBodies, AllTogetherHaveALimit) {
  auto handler = echo_handler();
  std::atomic<int> large{0};
  ServerConfig config;
  config.io_threads = 1;  // What is counted for one body is counted before the next one is looked at.
  config.max_bodies_bytes = 30'000;
  config.may_send_body = [&](const HttpRequest&) { return ++large > 0; };
  const auto server = start_server(handler, config);
  const auto head = [](std::size_t size) {
    return fmt::format("POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", size);
  };
  RawClient one(server->port());
  one.send(head(16'485) + std::string(16'385, 'b'));
  ASSERT_TRUE(holds_soon([&] { return large == 1; }));
  {
    RawClient other(server->port());
    other.send(head(26'000) + std::string(25'000, 'b'));
    EXPECT_EQ(other.read_to_end().substr(0, 12), "HTTP/1.1 429");
  }
  one.send(std::string(100, 'b'));
  EXPECT_EQ(one.read_to_end().substr(0, 12), "HTTP/1.1 200");
  // Their end made room.
  EXPECT_TRUE(holds_soon([&] {
    RawClient third(server->port());
    third.send(head(26'000) + std::string(26'000, 'b'));
    return third.read_to_end().starts_with("HTTP/1.1 200");
  }));
}

TEST_F(Limits, TheAnswerArrivesEvenWhenTheClientGoesOnSending) {
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n");
  for (int i = 0; i < 90; ++i) client.send(std::string(10'000, 'x'));
  client.end_sending();
  EXPECT_EQ(status_line(client.read_to_end()), "HTTP/1.1 413 Request Entity Too Large");
}

TEST_F(Limits, SlowRequestsAndIdleConnectionsAreDropped) {
  RawClient silent(server->port()), slow_header(server->port()), slow_body(server->port()), idle(server->port());
  slow_header.send("GET / HTTP/1.1\r\nHo");
  slow_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  idle.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(slow_header.read_to_end(), "");
  EXPECT_EQ(slow_body.read_to_end(), "");
  EXPECT_TRUE(idle.read_to_end().ends_with("GET /[]"));
  EXPECT_EQ(silent.read_to_end(), "");
}

TEST_F(Limits, DripFedHeadersDoNotExtendTheirTime) {
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\n");
  const auto start = std::chrono::steady_clock::now();
  char byte = 0;
  while (::recv(client.fd(), &byte, 1, MSG_DONTWAIT) != 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
    client.send("X");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the rude client's pace, not the test's
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST_F(Limits, PipelinedRequestsAreAnsweredInOrder) {
  RawClient client(server->port());
  std::string requests, expected;
  for (int i = 0; i < 100; ++i) requests += fmt::format("POST /{} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{:02}", i, i % 100);
  requests += "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  client.send(requests);
  const auto answers = client.read_to_end();
  std::size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = answers.find(fmt::format("POST /{}[{:02}]", i, i % 100), at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_TRUE(answers.ends_with("GET /last[]"));
}

TEST_F(Limits, AHalfClosedClientStillGetsItsAnswer) {
  RawClient client(server->port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  client.end_sending();
  const auto answer = client.read_to_end();
  EXPECT_NE(answer.find("GET /a[]"), std::string::npos);
  EXPECT_NE(answer.find("GET /b[]"), std::string::npos);
}

TEST_F(Limits, ExpectContinueIsAnsweredBeforeTheBody) {
  RawClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_TRUE(client.read_to_end().ends_with("POST /[abc]"));
}

TEST_F(Limits, Http10AndPathNormalisation) {
  EXPECT_TRUE(talk("GET //a/./b/../c%20d/ HTTP/1.0\r\n\r\n").ends_with("GET /a/c d/[]"));
  EXPECT_TRUE(talk("GET http://x/y?z HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").ends_with("GET /y[]"));
  EXPECT_TRUE(talk("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n")
                  .ends_with("POST /[abcde]"));
}

TEST_F(Limits, RudePeersDoNotDisturbOthers) {
  std::vector<std::unique_ptr<RawClient>> rude;
  for (int i = 0; i < 50; ++i) {
    rude.push_back(std::make_unique<RawClient>(server->port()));
    rude.back()->send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n");
  }
  const auto client = make_client(*server);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(wait_for(*client, make_request("GET", "/ok")).status, 200);
}

void expect_two_connections(const ServerConfig& config) {
  auto handler = echo_handler();
  const auto server = start_server(handler, config);
  auto first = std::make_unique<RawClient>(server->port());
  RawClient second(server->port());
  const auto talk = [](RawClient& client) {
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.read_until("GET /[]");
  };
  EXPECT_NE(talk(*first), "");
  EXPECT_NE(talk(second), "");
  RawClient third(server->port());
  EXPECT_EQ(third.read_until("x"), "");
  first.reset();
  std::string answer;
  for (int i = 0; i < 1000 && answer.empty(); ++i) {
    RawClient fourth(server->port());
    answer = talk(fourth);
  }
  EXPECT_NE(answer, "") << "a place became free";
}

TEST(ConnectionLimit, FurtherConnectionsAreClosedAtOnce) {
  ServerConfig config;
  config.max_connections = 2;
  expect_two_connections(config);
}

TEST(ConnectionLimit, FurtherConnectionsOfOneAddressAreClosedAtOnce) {
  ServerConfig config;
  config.max_connections_per_address = 2;
  expect_two_connections(config);
}

TEST(Handshake, APeerThatStopsHalfwayIsDroppedAndHoldsNobodyUp) {
  FunctionHandler handler = echo_handler();
  ServerConfig config = small_limits();
  config.tls = TlsServerConfig{pki().server.certificate_pem, pki().server.key_pem, ""};
  const auto server = start_server(handler, std::move(config));
  RawClient silent(server->port()), halfway(server->port());
  // A record that announces 512 bytes of ClientHello and brings three.
  halfway.send(std::string_view("\x16\x03\x01\x02\x00\x01\x00\x01", 8));
  const auto http = *HttpClient::create({.url = fmt::format("https://127.0.0.1:{}", server->port()), .ca_pem = pki().authority.pem()});
  EXPECT_EQ(wait_for(*http, make_request("GET", "/others")).body, "GET /others[]");
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_EQ(halfway.read_to_end().substr(0, 1), "");
}

TEST(SlowReader, UnderTlsIsDroppedToo) {
  Signal gone;
  const auto piece = make_bytes(std::string(100'000, 'x'));
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    writer->on_close([&] { gone.notify(); });
    writer->start_stream(200, {});
    for (int i = 0; i < 200; ++i) writer->write(piece);
  });
  ServerConfig config;
  config.write_timeout_ms = 300;
  config.tls = TlsServerConfig{pki().server.certificate_pem, pki().server.key_pem, ""};
  const auto server = start_server(handler, std::move(config));
  RawClient client(server->port());
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, client.fd());
  ASSERT_EQ(SSL_connect(ssl), 1);
  constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_GT(SSL_write(ssl, kRequest.data(), static_cast<int>(kRequest.size())), 0);
  EXPECT_TRUE(gone.wait_for_count(1));
  SSL_free(ssl);
  SSL_CTX_free(context);
}

TEST(SlowReader, IsDroppedWhileOthersStream) {
  Writer slow, fast;
  Signal slow_closed, started;
  FunctionHandler handler([&](HttpRequest request, Writer writer) {
    writer->start_stream(200, {});
    if (request.path == "/slow") writer->on_close([&] { slow_closed.notify(); });
    (request.path == "/slow" ? slow : fast) = std::move(writer);
    started.notify();
  });
  ServerConfig config = small_limits();
  config.io_threads = 1;
  const auto server = start_server(handler, config);
  RawClient reader(server->port());
  reader.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto client = make_client(*server);
  std::atomic<std::size_t> received{0};
  const auto handle = client->stream(make_request("GET", "/fast"), {.on_data = [&](std::string_view data) { received += data.size(); }});
  ASSERT_TRUE(started.wait_for_count(2));
  const auto chunk = make_bytes(std::string(100'000, 'x'));
  std::size_t sent = 0;
  for (int i = 0; i < 200; ++i) {
    slow->write(chunk);
    if (fast->write(chunk)) sent += chunk->size();
  }
  EXPECT_GT(slow->queued_bytes(), 1'000'000U) << "the producer sees the slow reader";
  ASSERT_TRUE(slow_closed.wait_for_count(1));
  EXPECT_FALSE(slow->write(chunk));
  Signal drained;
  fast->on_drain([&] { drained.notify(); });
  ASSERT_TRUE(drained.wait_for_count(1));
  fast->finish();
  while (received < sent) std::this_thread::yield();
}

TEST(Drain, ProducesWithoutHoldingItAll) {
  constexpr int kChunks = 500;
  const auto chunk = make_bytes(std::string(64 * 1024, 'c'));
  std::size_t most_queued = 0;
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    writer->start_stream(200, {});
    auto left = std::make_shared<int>(kChunks);
    auto produce = std::make_shared<std::function<void()>>();
    *produce = [&, writer, left, weak = std::weak_ptr(produce)] {
      if ((*left)-- == 0) return writer->finish();
      writer->write(chunk);
      most_queued = std::max(most_queued, writer->queued_bytes());
      if (const auto next = weak.lock()) writer->on_drain([next] { (*next)(); });
    };
    (*produce)();
  });
  const auto server = start_server(handler, {}, true);
  const auto client = make_client(*server, true);
  const auto response = wait_for(*client, make_request("GET", "/"));
  EXPECT_EQ(response.body.size(), kChunks * chunk->size());
  EXPECT_LT(most_queued, 500'000U);
}

TEST(Gzip, BigBodiesOnlyAndOnlyWhenAsked) {
  FunctionHandler handler([](HttpRequest request, Writer writer) {
    HttpResponse response;
    response.body = std::string(request.path == "/big" ? 200'000 : 1000, 'z');
    writer->respond(std::move(response));
  });
  const auto server = start_server(handler);
  const auto client = make_client(*server);
  auto request = make_request("GET", "/big");
  EXPECT_EQ(wait_for(*client, request).body.size(), 200'000U);
  request.headers.add("Accept-Encoding", "deflate, gzip");
  const auto packed = wait_for(*client, request);
  EXPECT_EQ(packed.headers.get("content-encoding"), "gzip");
  EXPECT_LT(packed.body.size(), 5000U);
  request.path = "/small";
  EXPECT_EQ(wait_for(*client, request).headers.get("content-encoding"), "");
}

TEST(ServerStop, LetsAnswersEndAndEndsStreams) {
  Signal started;
  Writer late, watch;
  FunctionHandler handler([&](HttpRequest request, Writer writer) {
    if (request.path == "/watch") {
      writer->start_stream(200, {});
      watch = std::move(writer);
    } else {
      late = std::move(writer);
    }
    started.notify();
  });
  auto server = start_server(handler);
  const auto client = make_client(*server);
  std::promise<std::string> ended;
  const auto handle = client->stream(make_request("GET", "/watch"), {.on_end = [&](std::string error) { ended.set_value(error); }});
  std::promise<HttpResponse> answered;
  client->send(make_request("GET", "/late"), [&](HttpResponse response) { answered.set_value(std::move(response)); });
  ASSERT_TRUE(started.wait_for_count(2));
  std::thread stopper([&] { server->stop(5000); });
  late->respond({.status = 200, .headers = {}, .body = "in time"});
  EXPECT_EQ(answered.get_future().get().body, "in time");
  EXPECT_EQ(ended.get_future().get(), "") << "in order, not cut off";
  stopper.join();
  EXPECT_EQ(wait_for(*client, make_request("GET", "/")).status, 0);
}

TEST(ServerStart, ATakenPortIsAClearError) {
  auto handler = echo_handler();
  const auto server = start_server(handler);
  ServerConfig config;
  config.port = server->port();
  const auto second = Server::start(config, handler);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().message, fmt::format("cannot listen on 127.0.0.1:{}: Address already in use", server->port()));
  config.address = "not an address";
  EXPECT_EQ(Server::start(config, handler).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace berth::net::test
