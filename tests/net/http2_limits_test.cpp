// Attacks that HTTP/2 makes possible, frame by frame: each is answered, refused or ends its own connection, and the others go on.
#include "base/bytes.h"
#include "tests/net/http2_client.h"

namespace berth::net::test {
namespace {

class Http2Limits : public ::testing::Test {
 protected:
  static ServerConfig tight() {
    ServerConfig config;
    config.max_body_bytes = 100'000;
    config.max_header_bytes = 2000;
    config.header_timeout_ms = 150;
    config.idle_timeout_ms = 400;
    config.write_timeout_ms = 400;
    config.max_streams = 20;
    config.may_send_body = [](const HttpRequest& head) { return head.headers.get("authorization") == "good"; };
    return config;
  }
  ~Http2Limits() override {
    // Whatever was done to it: the next one is served.
    Http2Client other(server->port());
    const auto stream = other.ask(request_fields());
    EXPECT_TRUE(other.read_answer(stream));
    EXPECT_EQ(other.answers[stream].status(), "200");
  }

  std::atomic<int> handled{0};
  std::mutex mutex;
  std::vector<Writer> kept;
  FunctionHandler handler{[this](HttpRequest request, Writer writer) {
    ++handled;
    if (request.path == "/keep") {
      const std::lock_guard lock(mutex);
      kept.push_back(std::move(writer));
      return;
    }
    HttpResponse response;
    response.body = request.path == "/big" ? std::string(3'000'000, 'x') : "ok " + std::to_string(request.body.size());
    writer->respond(std::move(response));
  }};
  std::unique_ptr<Server> server = start_server(handler, tight());

  /// Sends `flood` until the server has had enough; the code that it goes with.
  template <typename Make>
  std::uint32_t flood(Http2Client& client, int most, Make make) {
    std::string all;
    for (int i = 0; i < most; ++i) all += make();
    client.send(all);
    EXPECT_TRUE(client.read_to_end()) << "the connection is ended";
    return client.goaways.empty() ? 0xffff : client.goaways.back();
  }
};

TEST_F(Http2Limits, RapidResetEndsTheConnection) {
  Http2Client client(server->port());
  const auto code = flood(client, 3000, [&] {
    const auto stream = client.next_stream();
    return client.request(request_fields("GET", "/keep")) + frame(kRstStream, 0, stream, big_endian(NGHTTP2_CANCEL));
  });
  EXPECT_EQ(code, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_LE(handled, 80) << "what is still worked on counts, though its stream is reset";
}

TEST_F(Http2Limits, ResetsThatTheServerIsMadeToSendCountAsWell) {
  Http2Client client(server->port());
  const auto code = flood(client, 3000, [&] {
    const auto stream = client.next_stream();
    // An increment of nothing is a fault of the stream.
    return client.request(request_fields("POST", "/"), false) + frame(kWindowUpdate, 0, stream, big_endian(0));
  });
  EXPECT_NE(code, NGHTTP2_NO_ERROR);
}

TEST_F(Http2Limits, FramesThatBringNothingAreLimited) {
  const auto one_byte_windows = [](Http2Client&) { return frame(kWindowUpdate, 0, 0, big_endian(1)); };
  const auto pings = [](Http2Client&) { return frame(kPing, 0, 0, "12345678"); };
  const auto settings = [](Http2Client&) { return frame(kSettings, 0, 0, setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1)); };
  const auto priorities = [](Http2Client& client) { return frame(kPriority, 0, client.next_stream(), big_endian(0) + "x"); };
  const auto unknown = [](Http2Client&) { return frame(0xcc, 0, 0, "what is this"); };
  for (const std::function<std::string(Http2Client&)>& kind :
       {std::function<std::string(Http2Client&)>(one_byte_windows), std::function<std::string(Http2Client&)>(pings),
        std::function<std::string(Http2Client&)>(settings), std::function<std::string(Http2Client&)>(priorities),
        std::function<std::string(Http2Client&)>(unknown)}) {
    Http2Client client(server->port());
    EXPECT_NE(flood(client, 20'000, [&] { return kind(client); }), NGHTTP2_NO_ERROR);
  }
}

TEST_F(Http2Limits, EmptyAndTinyDataAreLimited) {
  for (const std::string_view payload : {"", "x"}) {
    Http2Client client(server->port());
    const auto stream = client.ask(request_fields("POST", "/"), false);
    EXPECT_NE(flood(client, 20'000, [&] { return frame(kData, 0, stream, payload); }), NGHTTP2_NO_ERROR);
  }
}

TEST_F(Http2Limits, AnswersThatAreNotReadHoldFurtherRequestsBack) {
  Http2Client client(server->port(), setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0));
  std::vector<std::uint32_t> unread;
  for (int i = 0; i < 20; ++i) unread.push_back(client.ask(request_fields("GET", "/big")));
  ASSERT_TRUE(client.read_until([&] { return client.answers[unread[3]].status() == "200"; }));
  EXPECT_LE(handled, 16) << "16 MiB, what is expected of those under way included";
  const int before = handled;
  // A stream that is reset gives back what it holds: nobody will read it.
  std::string resets;
  for (const auto stream : unread) resets += frame(kRstStream, 0, stream, big_endian(NGHTTP2_CANCEL));
  client.send(resets);
  const auto next = client.ask(request_fields());
  ASSERT_TRUE(client.read_until([&] { return client.answers[next].status() == "200"; }));
  EXPECT_GE(handled, before + 1);
}

TEST_F(Http2Limits, ReadsThatNobodyAnswersYetCountToo) {
  Http2Client client(server->port());
  for (int i = 0; i < 20; ++i) client.ask(request_fields("GET", "/keep"));
  const auto kept_by = [&] {
    const std::lock_guard lock(mutex);
    return kept.size();
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (kept_by() < 16 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(kept_by(), 16U);
  // Each answer lets another one in.
  std::size_t answered = 0;
  while (answered < 20 && std::chrono::steady_clock::now() < deadline) {
    std::vector<Writer> now;
    {
      const std::lock_guard lock(mutex);
      now.swap(kept);
    }
    EXPECT_LE(now.size(), 16U);
    for (const Writer& writer : now) writer->respond(HttpResponse());
    answered += now.size();
    std::this_thread::yield();
  }
  EXPECT_EQ(answered, 20U);
}

TEST_F(Http2Limits, ContinuationsWithoutEndEndTheConnection) {
  Http2Client client(server->port());
  client.send(frame(kHeaders, 0, 1, literals(request_fields())));
  EXPECT_NE(flood(client, 1000,
                  [&] {
                    return frame(kContinuation, 0, 1, literals({{"x-more", std::string(500, 'y')}}));
                  }),
            NGHTTP2_NO_ERROR);
  EXPECT_EQ(handled, 0);
}

TEST_F(Http2Limits, HeadersTooLargeAre431AlsoWhenTheyAreSmallOnTheWire) {
  Http2Client client(server->port());
  auto fields = request_fields();
  fields.emplace_back("x-long", std::string(2500, 'y'));
  const auto one = client.ask(fields);
  // The table keeps one field, which a byte names again and again: a bomb of HPACK.
  auto block = literals(request_fields());
  block += '\x40' + literals({{"x-kept", std::string(100, 'z')}}).substr(1);
  block += std::string(1000, '\xbe');
  const auto two = client.next_stream();
  client.send(frame(kHeaders, kEndHeaders | kEndStream, two, block));
  ASSERT_TRUE(client.read_answer(one) && client.read_answer(two));
  EXPECT_EQ(client.answers[one].status(), "431");
  EXPECT_EQ(client.answers[two].status(), "431");
  EXPECT_EQ(handled, 0);
}

TEST_F(Http2Limits, BodiesAreHeldToTheSameLimits) {
  Http2Client client(server->port());
  auto known = request_fields("POST");
  known.emplace_back("authorization", "good");
  const auto fine = client.ask(known, false);
  client.send(frame(kData, 0, fine, std::string(16'000, 'x')) + frame(kData, kEndStream, fine, std::string(14'000, 'x')));
  ASSERT_TRUE(client.read_answer(fine));
  EXPECT_EQ(client.answers[fine].body, "ok 30000");
  const auto large = client.ask(known, false);
  for (int i = 0; i < 7; ++i) client.send(frame(kData, 0, large, std::string(16'000, 'x')));
  ASSERT_TRUE(client.read_until([&] { return client.answers[large].reset.has_value(); }));
  EXPECT_EQ(client.answers[large].status(), "413");
  EXPECT_EQ(client.answers[large].reset, NGHTTP2_NO_ERROR) << "answered; the rest is not wanted";
  const auto stranger = client.ask(request_fields("POST"), false);
  client.send(frame(kData, 0, stranger, std::string(16'000, 'x')) + frame(kData, 0, stranger, std::string(1000, 'x')));
  ASSERT_TRUE(client.read_answer(stranger));
  EXPECT_EQ(client.answers[stranger].status(), "401");
  EXPECT_TRUE(client.read_to_end()) << "who is not known does not keep the connection";
}

TEST_F(Http2Limits, MalformedRequestsHarmOnlyThemselves) {
  Http2Client client(server->port());
  std::vector<Fields> refused = {request_fields("GET", "/../etc"), request_fields("GET", "/a%2fb"), request_fields("GET", "/%zz"),
                                 request_fields("GET", "relative"), request_fields("OPTIONS", "/a%00")};
  for (const auto& fields : refused) {
    const auto stream = client.ask(fields);
    ASSERT_TRUE(client.read_answer(stream));
    EXPECT_TRUE(client.answers[stream].status() == "400" || client.answers[stream].reset) << fields[2].second;
  }
  std::vector<std::pair<std::string, std::string>> forbidden = {
      {"connection", "close"}, {"transfer-encoding", "chunked"}, {"upgrade", "websocket"}, {"Upper", "x"},     {"te", "gzip"},
      {"x", "a\r\nb: c"},      {"content-length", "5"},          {":status", "200"},       {":method", "PUT"}, {"", "x"}};
  for (const auto& field : forbidden) {
    auto fields = request_fields();
    fields.push_back(field);
    const auto stream = client.ask(fields);
    ASSERT_TRUE(client.read_answer(stream)) << field.first;
    EXPECT_EQ(client.answers[stream].reset, NGHTTP2_PROTOCOL_ERROR) << field.first;
  }
  for (const Fields& fields : {Fields{{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}},
                               Fields{{":method", "GET"}, {":scheme", "http"}, {":path", ""}, {":authority", "x"}}, Fields{}}) {
    const auto stream = client.ask(fields);
    ASSERT_TRUE(client.read_answer(stream));
    EXPECT_TRUE(client.answers[stream].reset || client.answers[stream].status() == "400");
  }
  const auto connect = client.ask({{":method", "CONNECT"}, {":authority", "x:1"}});
  ASSERT_TRUE(client.read_answer(connect));
  EXPECT_EQ(client.answers[connect].status(), "405");
  EXPECT_EQ(handled, 0);
  const auto stream = client.ask(request_fields());
  ASSERT_TRUE(client.read_answer(stream));
  EXPECT_EQ(client.answers[stream].status(), "200") << "the connection goes on";
}

TEST_F(Http2Limits, MoreStreamsThanAllowedEndTheConnection) {
  Http2Client client(server->port());
  ASSERT_TRUE(client.read_until([&] { return client.settings.contains(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS); }));
  for (int i = 0; i < 25; ++i) client.ask(request_fields("DELETE", "/keep"));
  EXPECT_TRUE(client.read_to_end());
  EXPECT_EQ(client.goaways, std::vector<std::uint32_t>{NGHTTP2_PROTOCOL_ERROR});
  EXPECT_EQ(handled, 20);
}

TEST_F(Http2Limits, ABodyThatDoesNotComeIsNotWaitedFor) {
  Http2Client client(server->port());
  const auto stream = client.ask(request_fields("POST"), false);
  ASSERT_TRUE(client.read_answer(stream));
  EXPECT_EQ(client.answers[stream].reset, NGHTTP2_CANCEL);
}

TEST_F(Http2Limits, AStreamThatIsNotReadIsReset) {
  Http2Client client(server->port(), setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 10));
  const auto stream = client.ask(request_fields("GET", "/big"));
  ASSERT_TRUE(client.read_answer(stream));
  EXPECT_EQ(client.answers[stream].reset, NGHTTP2_CANCEL);
}

TEST_F(Http2Limits, OfAReaderThatTakesNothingNoFurtherRequestsAreTaken) {
  auto patient = tight();
  patient.write_timeout_ms = 60'000;
  const auto other = start_server(handler, patient);
  Http2Client client(other->port(), setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0));
  for (int i = 0; i < 20; ++i) client.ask(request_fields("GET", "/big"));
  client.send(frame(kPing, 0, 0, "12345678"));
  ASSERT_TRUE(client.read_until([&] { return client.pongs == 1; }));
  EXPECT_EQ(handled, 6) << "3 MB each, 16 MiB of a connection";
  client.send(frame(kSettings, 0, 0, setting(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4'000'000)) +
              frame(kWindowUpdate, 0, 0, big_endian(1 << 30)));
  ASSERT_TRUE(client.read_answer(39));
  EXPECT_EQ(client.answers[39].body.size(), 3'000'000U) << "they are taken up when it reads";
}

TEST_F(Http2Limits, WindowsThatOverflowAreFaults) {
  Http2Client client(server->port());
  client.send(frame(kWindowUpdate, 0, 0, big_endian(0x7fffffff)));
  EXPECT_TRUE(client.read_to_end());
  EXPECT_EQ(client.goaways, std::vector<std::uint32_t>{NGHTTP2_FLOW_CONTROL_ERROR});
}

TEST_F(Http2Limits, IdleConnectionsEndInOrder) {
  Http2Client client(server->port());
  EXPECT_TRUE(client.read_to_end());
  EXPECT_EQ(client.goaways, (std::vector<std::uint32_t>{NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR}));
}

TEST_F(Http2Limits, WhatIsNotHttp2IsNotReadOn) {
  RawClient client(server->port());
  client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_to_end().find("HTTP/1.1"), std::string::npos);
  RawClient silent(server->port());
  silent.send("PRI * HTTP/2.0\r\n");
  EXPECT_EQ(silent.read_to_end().find("HTTP/1.1"), std::string::npos);
}

}  // namespace
}  // namespace berth::net::test
