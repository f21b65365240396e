// Whole exchanges over loopback: the client against the server.
#include "base/bytes.h"
#include "tests/net/net_fixture.h"

namespace berth::net::test {
namespace {

class Exchange : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] bool tls() const { return GetParam(); }
};

HttpResponse text_response(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  response.headers.add("Content-Type", "text/plain");
  return response;
}

TEST_P(Exchange, AnswersWithWhatTheHandlerSays) {
  FunctionHandler handler([](HttpRequest request, Writer writer) {
    auto response = text_response(request.method + " " + request.path + " ? " + request.query + " : " + request.body);
    response.status = 201;
    response.headers.add("X-Echo", std::string(request.headers.get("x-sent")));
    writer->respond(std::move(response));
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  auto request = make_request("POST", "/a b/c", "hello");
  request.query = "x=%20y";
  request.headers.add("X-Sent", "yes");
  const auto response = wait_for(*client, std::move(request));
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.body, "POST /a b/c ? x=%20y : hello");
  EXPECT_EQ(response.headers.get("x-echo"), "yes");
  EXPECT_FALSE(response.headers.get("date").empty());
}

TEST_P(Exchange, ManyAtOnceOverFewConnections) {
  std::atomic<int> most{0};
  std::mutex mutex;
  std::set<std::string> peers;
  FunctionHandler handler([&](HttpRequest request, Writer writer) {
    {
      std::lock_guard lock(mutex);
      peers.insert(request.remote_address);
    }
    // From another thread, as the store's writer answers.
    std::thread([writer, body = std::move(request.body)] { writer->respond(text_response(body)); }).detach();
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls(), [](auto& config) { config.max_connections = 8; });
  Signal done;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 500; ++i) {
    auto body = std::string(static_cast<std::size_t>(i) * 37, static_cast<char>('a' + i % 26));
    client->send(make_request("POST", "/", body), [&, body](HttpResponse response) {
      if (response.status != 200 || response.body != body) ++wrong;
      done.notify();
    });
  }
  ASSERT_TRUE(done.wait_for_count(500));
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(peers.size(), 8U);
}

TEST_P(Exchange, SharedPartsAndBigBodiesArriveWhole) {
  std::vector<Bytes> parts;
  std::string all;
  for (int i = 0; i < 200; ++i) {
    parts.push_back(make_bytes(std::string(static_cast<std::size_t>(i * 100 + 1), static_cast<char>('a' + i % 26))));
    all += *parts.back();
  }
  FunctionHandler handler([&](const HttpRequest&, Writer writer) {
    Headers headers;
    headers.add("Content-Type", "application/json");
    writer->respond_shared(200, headers, parts);
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  const auto response = wait_for(*client, make_request("GET", "/"));
  EXPECT_EQ(response.body, all);
  auto head = make_request("HEAD", "/");
  const auto head_response = wait_for(*client, std::move(head));
  EXPECT_EQ(head_response.body, "");
  EXPECT_EQ(head_response.headers.get("content-length"), std::to_string(all.size()));
}

TEST_P(Exchange, StreamsComeInPiecesAndEnd) {
  Writer stream;
  std::promise<void> started;
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    writer->start_stream(200, {});
    stream = std::move(writer);
    started.set_value();
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  Signal data, ended;
  std::string received, end_error = "not ended";
  const auto handle =
      client->stream(make_request("GET", "/watch"), {.on_header = [&](int status, const Headers&) { EXPECT_EQ(status, 200); },
                                                     .on_data =
                                                         [&](std::string_view piece) {
                                                           received += piece;
                                                           data.notify();
                                                         },
                                                     .on_end =
                                                         [&](std::string error) {
                                                           end_error = std::move(error);
                                                           ended.notify();
                                                         }});
  started.get_future().get();
  EXPECT_TRUE(stream->write(make_bytes("first\n")));
  ASSERT_TRUE(data.wait_for_count(1));
  EXPECT_EQ(received, "first\n");
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(stream->write(make_bytes(std::string(700, 'x') + "\n")));
  stream->finish();
  ASSERT_TRUE(ended.wait_for_count(1));
  EXPECT_EQ(end_error, "");
  EXPECT_EQ(received.size(), 6U + 1000 * 701);
}

/// A last chunk behind the head of a 304 would be read as the next answer of the connection.
TEST_P(Exchange, StreamsWithoutABodyLeaveNothingBehind) {
  FunctionHandler handler([&](HttpRequest request, Writer writer) {
    if (request.path == "/plain") return writer->respond(text_response("plain"));
    writer->start_stream(request.path == "/204" ? 204 : request.path == "/304" ? 304 : 200, {});
    writer->write(make_bytes("unwanted"));
    writer->finish();
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls(), [](auto& config) { config.max_connections = 1; });
  for (const auto& [method, path] : {std::pair("GET", "/304"), std::pair("GET", "/204"), std::pair("HEAD", "/200")})
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(wait_for(*client, make_request(method, path)).body, "");
      const auto next = wait_for(*client, make_request("GET", "/plain"));
      ASSERT_EQ(next.status, 200) << method << " " << path << ": " << next.body;
      ASSERT_EQ(next.body, "plain");
    }
}

TEST_P(Exchange, DroppingTheHandleTellsTheServer) {
  Writer stream;
  std::promise<void> started;
  Signal closed;
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    writer->start_stream(200, {});
    writer->on_close([&] { closed.notify(); });
    stream = std::move(writer);
    started.set_value();
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  auto handle = client->stream(make_request("GET", "/watch"), {});
  started.get_future().get();
  handle.reset();
  ASSERT_TRUE(closed.wait_for_count(1));
  EXPECT_FALSE(stream->write(make_bytes("more")));
}

TEST_P(Exchange, AStreamCutOffEndsWithAnError) {
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    writer->start_stream(200, {});
    writer->write(make_bytes("half"));
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  std::promise<std::string> ended;
  const auto handle =
      client->stream(make_request("GET", "/watch"), {.on_end = [&](std::string error) { ended.set_value(std::move(error)); }});
  EXPECT_NE(ended.get_future().get(), "");
}

TEST_P(Exchange, AWriterDroppedWithoutAnAnswerIs500) {
  FunctionHandler handler([](HttpRequest, Writer) {});
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  const auto response = wait_for(*client, make_request("GET", "/"));
  EXPECT_EQ(response.status, 500);
  EXPECT_NE(response.body.find("InternalError"), std::string::npos);
}

TEST_P(Exchange, UpgradeHandsOverTheByteStream) {
  std::shared_ptr<RawStream> server_side;
  std::function<void(std::string, bool)> echo;
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    Headers headers;
    headers.add("Connection", "Upgrade");
    headers.add("Upgrade", "echo");
    server_side = writer->upgrade(headers);
    echo = [&](std::string data, bool eof) {
      if (eof) return server_side->close();
      server_side->write("<" + data + ">");
      server_side->async_read(echo);
    };
    server_side->async_read(echo);
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  std::promise<std::unique_ptr<RawStream>> upgraded;
  auto request = make_request("GET", "/exec");
  request.headers.add("Connection", "Upgrade");
  request.headers.add("Upgrade", "echo");
  client->upgrade(std::move(request), [&](std::unique_ptr<RawStream> stream, HttpResponse response) {
    EXPECT_EQ(response.status, 101);
    upgraded.set_value(std::move(stream));
  });
  const auto stream = upgraded.get_future().get();
  ASSERT_TRUE(stream);
  stream->write("ping");
  std::string got;
  while (got.size() < 6) {
    std::promise<std::string> read;
    stream->async_read([&](std::string data, bool eof) {
      EXPECT_FALSE(eof);
      read.set_value(std::move(data));
    });
    got += read.get_future().get();
  }
  EXPECT_EQ(got, "<ping>");
  stream->close();
  std::promise<bool> end;
  stream->async_read([&](std::string, bool eof) { end.set_value(eof); });
  EXPECT_TRUE(end.get_future().get());
}

TEST_P(Exchange, ARefusedUpgradeGivesTheResponse) {
  FunctionHandler handler([](HttpRequest, Writer writer) {
    auto response = text_response("no such pod");
    response.status = 404;
    writer->respond(std::move(response));
  });
  const auto server = start_server(handler, {}, tls());
  const auto client = make_client(*server, tls());
  std::promise<HttpResponse> answered;
  client->upgrade(make_request("GET", "/exec"), [&](std::unique_ptr<RawStream> stream, HttpResponse response) {
    EXPECT_FALSE(stream);
    answered.set_value(std::move(response));
  });
  const auto response = answered.get_future().get();
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.body, "no such pod");
}

TEST_P(Exchange, AThousandStreamsAtOnce) {
  std::mutex mutex;
  std::vector<Writer> streams;
  Signal started;
  FunctionHandler handler([&](HttpRequest, Writer writer) {
    writer->start_stream(200, {});
    std::lock_guard lock(mutex);
    streams.push_back(std::move(writer));
    started.notify();
  });
  const auto server = start_server(handler, patient(), tls());
  const auto client = make_client(*server, tls());
  constexpr int kStreams = 1000;
  std::vector<std::unique_ptr<StreamHandle>> handles;
  std::atomic<std::size_t> bytes{0};
  Signal ended;
  for (int i = 0; i < kStreams; ++i) {
    handles.push_back(client->stream(make_request("GET", "/watch"), {.on_data = [&](std::string_view piece) { bytes += piece.size(); },
                                                                     .on_end =
                                                                         [&](std::string error) {
                                                                           EXPECT_EQ(error, "");
                                                                           ended.notify();
                                                                         }}));
  }
  ASSERT_TRUE(started.wait_for_count(kStreams));
  const auto event = make_bytes(std::string(1000, 'e'));
  for (int round = 0; round < 5; ++round) {
    for (const auto& stream : streams) EXPECT_TRUE(stream->write(event));
  }
  for (const auto& stream : streams) stream->finish();
  ASSERT_TRUE(ended.wait_for_count(kStreams));
  EXPECT_EQ(bytes, kStreams * 5 * 1000U);
}

INSTANTIATE_TEST_SUITE_P(PlainAndTls, Exchange, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

}  // namespace
}  // namespace berth::net::test
