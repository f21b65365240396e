#include "net/websocket.h"

#include "tests/net/net_fixture.h"

namespace berth::net::test {
namespace {

using Kind = WebSocketMessage::Kind;

TEST(WebSocketHandshake, AcceptKeyIsTheStandardsExample) {
  EXPECT_EQ(websocket_accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketHandshake, BothSidesAgree) {
  HttpRequest request;
  const auto key = add_websocket_headers(request, {"v5.channel.k8s.io", "v4.channel.k8s.io"});
  EXPECT_TRUE(is_websocket_request(request));
  EXPECT_EQ(choose_websocket_protocol(request, {"v4.channel.k8s.io", "other"}), "v4.channel.k8s.io");
  EXPECT_EQ(choose_websocket_protocol(request, {"other"}), "");
  const auto headers = websocket_answer(request, "v4.channel.k8s.io");
  ASSERT_TRUE(headers);
  EXPECT_TRUE(check_websocket_answer({.status = 101, .headers = *headers, .body = {}}, key));
  EXPECT_FALSE(check_websocket_answer({.status = 101, .headers = *headers, .body = {}}, "another key"));
  request.headers.set("Sec-WebSocket-Version", "8");
  EXPECT_FALSE(websocket_answer(request, ""));
}

std::uint16_t feed_slowly(WebSocketParser& parser, std::string_view bytes, std::vector<WebSocketMessage>& out) {
  for (const char c : bytes) {
    if (const auto fault = parser.feed(std::string_view(&c, 1), out); fault != 0) return fault;
  }
  return 0;
}

TEST(WebSocketFrames, RoundTripOfAllSizes) {
  for (const std::size_t size : {0U, 1U, 125U, 126U, 65535U, 65536U, 100'000U}) {
    for (const auto role : {WebSocketRole::kClient, WebSocketRole::kServer}) {
      const std::string payload(size, 'p');
      WebSocketParser parser(role == WebSocketRole::kClient ? WebSocketRole::kServer : WebSocketRole::kClient, 1 << 20);
      std::vector<WebSocketMessage> out;
      EXPECT_EQ(parser.feed(websocket_frame(role, 2, payload), out), 0);
      ASSERT_EQ(out.size(), 1U);
      EXPECT_EQ(out[0].data, payload);
    }
  }
}

TEST(WebSocketFrames, FragmentsAreJoinedAroundControlFrames) {
  WebSocketParser parser(WebSocketRole::kClient, 1 << 20);
  std::vector<WebSocketMessage> out;
  const std::string bytes =
      std::string("\x01\x02he", 4) + std::string("\x89\x01!", 3) + std::string("\x00\x01l", 3) + std::string("\x80\x02lo", 4);
  EXPECT_EQ(feed_slowly(parser, bytes, out), 0);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].kind, Kind::kPing);
  EXPECT_EQ(out[1].kind, Kind::kText);
  EXPECT_EQ(out[1].data, "hello");
}

TEST(WebSocketFrames, FaultsHaveTheirCodes) {
  const auto fault_of = [](std::string_view bytes, WebSocketRole role = WebSocketRole::kClient) {
    WebSocketParser parser(role, 1000);
    std::vector<WebSocketMessage> out;
    return feed_slowly(parser, bytes, out);
  };
  EXPECT_EQ(fault_of(std::string_view("\xC2\x00", 2)), 1002) << "reserved bit";
  EXPECT_EQ(fault_of(std::string_view("\x83\x00", 2)), 1002) << "unknown opcode";
  EXPECT_EQ(fault_of(std::string_view("\x09\x00", 2)), 1002) << "fragmented ping";
  EXPECT_EQ(fault_of(std::string_view("\x89\x7E\x00\x7E", 4)), 1002) << "long ping";
  EXPECT_EQ(fault_of(std::string_view("\x80\x00", 2)), 1002) << "continuation of nothing";
  EXPECT_EQ(fault_of(std::string_view("\x02\x00\x02\x00", 4)), 1002) << "message within a message";
  EXPECT_EQ(fault_of(std::string_view("\x82\x00", 2), WebSocketRole::kServer), 1002) << "unmasked from a client";
  EXPECT_EQ(fault_of(std::string_view("\x82\x80....", 6)), 1002) << "masked from a server";
  EXPECT_EQ(fault_of(std::string_view("\x81\x02\xC0\xAF", 4)), 1007) << "overlong UTF-8";
  EXPECT_EQ(fault_of(std::string_view("\x81\x01\xE2", 3)), 1007) << "cut off UTF-8";
  EXPECT_EQ(fault_of(std::string_view("\x82\x7F\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 10)), 1009);
  EXPECT_EQ(fault_of(std::string_view("\x88\x02\x03\xED", 4)), 1002) << "code 1005 on the wire";
  EXPECT_EQ(fault_of(std::string_view("\x81\x03\xE2\x82\xAC", 5)), 0);
}

TEST(WebSocketConnection, MessagesPingsAndTheClosingHandshake) {
  std::mutex mutex;
  std::unique_ptr<WebSocket> server_side;
  Signal server_closed;
  std::uint16_t server_code = 0;
  FunctionHandler handler([&](HttpRequest request, Writer writer) {
    auto headers = websocket_answer(request, choose_websocket_protocol(request, {"echo"}));
    ASSERT_TRUE(headers);
    std::lock_guard lock(mutex);
    server_side = std::make_unique<WebSocket>(writer->upgrade(*headers), WebSocketRole::kServer,
                                              WebSocket::Callbacks{.on_message =
                                                                       [&](Kind kind, std::string data) {
                                                                         std::lock_guard inner(mutex);
                                                                         server_side->send(kind, "<" + data + ">");
                                                                       },
                                                                   .on_close =
                                                                       [&](std::uint16_t code, std::string) {
                                                                         server_code = code;
                                                                         server_closed.notify();
                                                                       }});
  });
  const auto server = start_server(handler, {}, true);
  const auto client = make_client(*server, true);
  auto request = make_request("GET", "/exec");
  const auto key = add_websocket_headers(request, {"echo"});
  std::promise<std::unique_ptr<RawStream>> upgraded;
  client->upgrade(std::move(request), [&](std::unique_ptr<RawStream> stream, HttpResponse response) {
    EXPECT_TRUE(check_websocket_answer(response, key));
    EXPECT_EQ(response.headers.get("sec-websocket-protocol"), "echo");
    upgraded.set_value(std::move(stream));
  });
  Signal messages, closed;
  std::string got;
  WebSocket socket(upgraded.get_future().get(), WebSocketRole::kClient,
                   {.on_message =
                        [&](Kind kind, std::string data) {
                          EXPECT_EQ(kind, Kind::kText);
                          got += data;
                          messages.notify();
                        },
                    .on_close =
                        [&](std::uint16_t code, std::string) {
                          EXPECT_EQ(code, 1000);
                          closed.notify();
                        }});
  socket.ping();
  socket.send(Kind::kText, "one");
  socket.send(Kind::kText, std::string(200'000, 'x'));
  ASSERT_TRUE(messages.wait_for_count(2));
  EXPECT_EQ(got.size(), 5U + 200'002);
  socket.close(1000, "done");
  ASSERT_TRUE(closed.wait_for_count(1));
  ASSERT_TRUE(server_closed.wait_for_count(1));
  EXPECT_EQ(server_code, 1000);
}

}  // namespace
}  // namespace berth::net::test
