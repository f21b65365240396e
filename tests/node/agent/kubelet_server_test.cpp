// A node's endpoints over HTTP: logs at the reader's pace, sessions that leave nothing (issue 15, rows 6 and 7).
#include "node/agent/kubelet_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "net/client.h"
#include "net/server.h"
#include "node/agent/node_metrics.h"
#include "tests/support/usage.h"

namespace berth::node::agent {
namespace {

using berth::test::comes_true;
using berth::test::usage_now;

/// A runtime that only opens sessions, at a streaming server of its own.
class SessionRuntime final : public cri::Channel, public net::Handler {
 public:
  [[nodiscard]] bool has_field(const std::string&, const std::string&) const override { return true; }
  SessionRuntime() : server_(std::move(*net::Server::start({}, *this))) {}
  ~SessionRuntime() override { server_->stop(0); }
  cri::CallAnswer call(const std::string& method, const json::Value& asked, int, const std::atomic<bool>*) override {
    const std::lock_guard lock(mutex_);
    last_ = asked;
    if (method == "RuntimeService/CheckpointContainer") return fail(ErrorCode::kInternal, "not implemented");
    if (method != "RuntimeService/Exec" && method != "RuntimeService/PortForward") return fail(ErrorCode::kInternal, "no such method");
    return json::Object{{"url", fmt::format("http://127.0.0.1:{}/session", server_->port())}};
  }
  json::Value last_call() {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override {
    net::Headers headers;
    headers.add("Connection", "Upgrade");
    headers.add("Upgrade", "SPDY/3.1");
    if (std::shared_ptr<net::RawStream> stream = writer->upgrade(headers)) echo(stream);
  }

 private:
  static void echo(const std::shared_ptr<net::RawStream>& stream) {
    stream->async_read([stream](std::string data, bool eof) {
      if (eof) return stream->close();
      stream->write(std::move(data));
      echo(stream);
    });
  }
  std::mutex mutex_;
  json::Value last_;
  std::unique_ptr<net::Server> server_;
};

class KubeletServer : public ::testing::Test {
 protected:
  KubeletServer() {
    char pattern[] = "/tmp/berth-kubelet-server.XXXXXX";
    root_ = ::mkdtemp(pattern);
    std::filesystem::create_directories(root_ + "/c");
    pod_.spec.name = "p";
    pod_.spec.ns = "default";
    pod_.spec.containers.push_back({.name = "c"});
    ContainerRecord record;
    record.state.kind = ContainerState::Kind::kRunning;
    record.container_id = "containerd://1";
    pod_.state.containers.push_back(record);
    pod_.log_directory = root_;
    KubeletBackend backend{.runtime = runtime_};
    backend.system_logs = root_ + "/machine";
    backend.refuse = [this](const net::HttpRequest&) -> std::optional<EndpointAccess::Refusal> {
      if (is_stranger_) return EndpointAccess::Refusal{403, "Forbidden"};
      return std::nullopt;
    };
    backend.configuration = [] { return json::Object{{"kind", "KubeletConfiguration"}}; };
    backend.metrics = [this] { return counts_.expose(); };
    backend.probe_metrics = [this] { return counts_.expose_probes(); };
    backend.counts = &counts_;
    backend.checkpoints = root_ + "/checkpoints";
    backend.find_pod = [this](const std::string&, const std::string& name) -> std::optional<KubeletBackend::Pod> {
      const std::lock_guard lock(mutex_);
      if (name != "p") return std::nullopt;
      return pod_;
    };
    handler_ = make_kubelet_handler(std::move(backend));
    server_ = std::move(*net::Server::start({}, *handler_));
    client_ = std::move(*net::HttpClient::create({.url = fmt::format("http://127.0.0.1:{}", server_->port())}));
  }
  ~KubeletServer() override {
    client_.reset();
    server_->stop(0);
    handler_->finish();
    server_.reset();
    std::filesystem::remove_all(root_);
  }
  void append(const std::string& text) const { std::ofstream(root_ + "/c/0.log", std::ios::app) << text; }
  void end_container() {
    const std::lock_guard lock(mutex_);
    pod_.state.containers[0].state.kind = ContainerState::Kind::kTerminated;
  }
  net::HttpResponse get(const std::string& path, const std::string& query = {}) {
    std::promise<net::HttpResponse> answer;
    client_->send(request(path, query), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }
  static net::HttpRequest request(const std::string& path, const std::string& query) {
    net::HttpRequest out;
    out.method = "GET";
    out.path = path;
    out.query = query;
    return out;
  }

  std::string root_;
  NodeMetrics counts_;
  std::atomic<bool> is_stranger_{false};
  SessionRuntime runtime_;
  std::mutex mutex_;
  KubeletBackend::Pod pod_;
  std::unique_ptr<KubeletHandler> handler_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<net::HttpClient> client_;
};

TEST_F(KubeletServer, LogsAreCutAsAsked) {
  for (int i = 0; i < 5; ++i) append(fmt::format("2026-01-01T00:00:0{}Z stdout F line {}\n", i, i));
  const std::string path = "/containerLogs/default/p/c";
  EXPECT_EQ(get(path).body, "line 0\nline 1\nline 2\nline 3\nline 4\n");
  EXPECT_EQ(get(path, "tailLines=2").body, "line 3\nline 4\n");
  EXPECT_EQ(get(path, "tailLines=0").body, "");
  EXPECT_EQ(get(path, "tailLines=99").body, "line 0\nline 1\nline 2\nline 3\nline 4\n");
  EXPECT_EQ(get(path, "limitBytes=9").body, "line 0\nli");
  EXPECT_EQ(get(path, "timestamps=true&tailLines=1").body, "2026-01-01T00:00:04Z line 4\n");
  EXPECT_EQ(get(path, "sinceTime=2026-01-01T00:00:03Z").body, "line 3\nline 4\n");
  EXPECT_EQ(get("/containerLogs/default/q/c").status, 404);
}

/// The machine's logs: folders as pages, files as they are, and nothing that does not lie below them.
TEST_F(KubeletServer, SystemLogsAreListedAndRead) {
  std::filesystem::create_directories(root_ + "/machine/pods");
  std::ofstream(root_ + "/machine/a<b>.log") << std::string(1'000'000, 'x');
  std::ofstream(root_ + "/secret") << "s";
  std::filesystem::create_symlink(root_ + "/secret", root_ + "/machine/out");
  std::filesystem::create_symlink("a<b>.log", root_ + "/machine/in");
  const auto page = get("/logs/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.headers.get("Content-Type"), "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("<a href=\"a%3Cb%3E.log\">a&lt;b&gt;.log</a>\n"), std::string::npos) << page.body;
  EXPECT_NE(page.body.find("<a href=\"pods/\">pods/</a>\n"), std::string::npos) << page.body;
  EXPECT_EQ(get("/logs/in").body.size(), 1'000'000U);
  EXPECT_EQ(get("/logs/pods/").status, 200);
  EXPECT_EQ(get("/logs").status, 301);
  EXPECT_EQ(get("/logs/pods").headers.get("Location"), "pods/");
  for (const char* path : {"/logs/out", "/logs/none", "/logs/../secret"}) EXPECT_EQ(get(path).status, 404) << path;
}

/// Whole lines, also of those that the runtime split, whatever pieces the file is read in.
TEST_F(KubeletServer, ALongLogComesWhole) {
  std::string text, expected;
  for (int i = 0; i < 20'000; ++i) {
    const auto line = fmt::format("{:06} {}", i, std::string(static_cast<std::size_t>(i % 90), 'x'));
    text += fmt::format("T stdout P {}\nT stdout F {}\n", line.substr(0, 3), line.substr(3));
    expected += "T " + line + "\n";
  }
  append(text);
  EXPECT_EQ(get("/containerLogs/default/p/c", "timestamps=true").body, expected);
}

TEST_F(KubeletServer, AFollowedLogEndsWithItsContainer) {
  append("T stdout F one\n");
  std::mutex mutex;
  std::string got;
  std::atomic<bool> is_over{false};
  auto stream =
      client_->stream(request("/containerLogs/default/p/c", "follow=true"), {.on_data =
                                                                                 [&](std::string_view data) {
                                                                                   const std::lock_guard lock(mutex);
                                                                                   got += data;
                                                                                 },
                                                                             .on_end = [&](const std::string&) { is_over = true; }});
  const auto has = [&](std::string_view text) {
    return comes_true([&] {
      const std::lock_guard lock(mutex);
      return got == text;
    });
  };
  EXPECT_TRUE(has("one\n"));
  append("T stdout F two\n");
  EXPECT_TRUE(has("one\ntwo\n"));
  EXPECT_FALSE(is_over);
  end_container();
  EXPECT_TRUE(comes_true([&] { return is_over.load(); }));
}

/// A thread each, or the file in memory, would be a way for one reader to stop a node.
TEST_F(KubeletServer, UnreadLogsHoldLittleAndNoThread) {
  const std::string line = "T stdout F " + std::string(1000, 'x') + "\n";
  for (int i = 0; i < 32; ++i) {
    std::string text;
    for (int j = 0; j < 1024; ++j) text += line;
    append(text);
  }
  get("/containerLogs/default/p/c", "tailLines=1");
  const auto before = usage_now();
  constexpr int kReaders = 30;
  std::vector<int> sockets;
  for (int i = 0; i < kReaders; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(sockets.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const auto text = fmt::format("GET /containerLogs/default/p/c{} HTTP/1.1\r\nHost: x\r\n\r\n", i % 2 == 0 ? "" : "?follow=true");
    ASSERT_EQ(::send(sockets.back(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // A client's end, the server's and the file each; the file of the request before may have been open still when it was counted.
  constexpr int kExpected = 3 * kReaders - 1;
  EXPECT_TRUE(comes_true([&] { return usage_now().descriptors >= before.descriptors + kExpected; }))
      << before.descriptors << " before, " << usage_now().descriptors << " now";
  std::size_t last = 0;
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(last, usage_now().heap_bytes);
    ::poll(nullptr, 0, 200);
    return earlier == usage_now().heap_bytes;
  }));
  EXPECT_LT(usage_now().heap_bytes, before.heap_bytes + kReaders * (std::size_t{1} << 20));
  EXPECT_LE(usage_now().threads, before.threads + 1);
  for (const int fd : sockets) ::close(fd);
  EXPECT_TRUE(comes_true([&] { return usage_now().descriptors <= before.descriptors; }));
}

/// With the kubelet's defaults nobody may ask anything before it is known who it is, not even whether the node is well.
TEST_F(KubeletServer, StrangersAreToldNothing) {
  EXPECT_EQ(get("/healthz").body, "ok");
  EXPECT_EQ(get("/healthz/ping").body, "ok");
  is_stranger_ = true;
  for (const char* path : {"/healthz", "/healthz/ping", "/metrics", "/metrics/probes", "/configz", "/pods", "/checkpoint/default/p/c"})
    EXPECT_EQ(get(path).status, 403) << path;
}

TEST_F(KubeletServer, ItsConfigurationAndFigures) {
  EXPECT_EQ(get("/configz").body, R"({"kubeletconfig":{"kind":"KubeletConfiguration"}})");
  get("/nobody/knows/this");
  const std::string metrics = get("/metrics").body;
  for (const char* line : {R"(kubelet_http_requests_total{long_running="false",method="GET",path="configz",server_type="readwrite"} 1)",
                           R"(kubelet_http_requests_total{long_running="false",method="GET",path="other",server_type="readwrite"} 1)"})
    EXPECT_NE(metrics.find(line), std::string::npos) << metrics;
}

TEST_F(KubeletServer, ACheckpointIsTheRuntimesToMake) {
  const auto post = [&](const std::string& path, const std::string& query = {}) {
    auto asked = request(path, query);
    asked.method = "POST";
    std::promise<std::pair<int, std::string>> answer;
    client_->send(std::move(asked), [&](net::HttpResponse response) { answer.set_value({response.status, response.body}); });
    return answer.get_future().get();
  };
  using Answer = std::pair<int, std::string>;
  EXPECT_EQ(get("/checkpoint/default/p/c").status, 405);
  EXPECT_EQ(post("/checkpoint/default/q/c"), Answer(404, "pod does not exist"));
  EXPECT_EQ(post("/checkpoint/default/p/d"), Answer(404, "container d does not exist"));
  EXPECT_EQ(post("/checkpoint/default/p/c", "timeout=soon"), Answer(404, "cannot parse value of timeout parameter"));
  EXPECT_EQ(post("/checkpoint/default/p/c", "timeout=5"),
            Answer(500, "checkpointing of default/p/c failed (rpc error: code = Unknown desc = not implemented)"));
  EXPECT_EQ(json::get_string(runtime_.last_call(), {"container_id"}), "1");
  EXPECT_TRUE(json::get_string(runtime_.last_call(), {"location"}).starts_with(root_ + "/checkpoints/checkpoint-p_default-c-"));
}

TEST_F(KubeletServer, AWebSocketNamesThePortsThatItForwards) {
  const auto forward = [&](const std::string& upgrade, const std::string& query) {
    auto asked = request("/portForward/default/p", query);
    asked.headers.add("Connection", "Upgrade");
    asked.headers.add("Upgrade", upgrade);
    std::promise<std::pair<int, std::string>> answer;
    client_->upgrade(std::move(asked), [&](std::unique_ptr<net::RawStream>, const net::HttpResponse& response) {
      answer.set_value({response.status, response.body});
    });
    return answer.get_future().get();
  };
  using Answer = std::pair<int, std::string>;
  EXPECT_EQ(forward("websocket", "port=80,443&port=8080").first, 101);
  EXPECT_EQ(json::serialize(*json::find(runtime_.last_call(), "port")), "[80,443,8080]");
  EXPECT_EQ(forward("SPDY/3.1", "").first, 101);
  EXPECT_EQ(json::find(runtime_.last_call(), "port"), nullptr) << "streams name them";
  EXPECT_EQ(forward("websocket", ""), Answer(400, "query parameter \"port\" is required\n"));
  EXPECT_EQ(forward("websocket", "port="), Answer(400, "query parameter \"port\" cannot be empty\n"));
  EXPECT_EQ(forward("websocket", "port=80,0"), Answer(400, "port \"80,0\" must be > 0\n"));
  EXPECT_EQ(forward("websocket", "port=80,x"),
            Answer(400, "unable to parse \"80,x\" as a port: strconv.ParseUint: parsing \"x\": invalid syntax\n"));
  EXPECT_EQ(forward("websocket", "port=65536"),
            Answer(400, "unable to parse \"65536\" as a port: strconv.ParseUint: parsing \"65536\": value out of range\n"));
}

TEST_F(KubeletServer, SessionsLeaveNothing) {
  const auto round = [&](int count) {
    std::vector<std::unique_ptr<net::RawStream>> streams;
    for (int i = 0; i < count; ++i) {
      auto asked = request("/exec/default/p/c", "command=x&output=1");
      asked.method = "POST";
      asked.headers.add("Connection", "Upgrade");
      asked.headers.add("Upgrade", "SPDY/3.1");
      std::promise<std::unique_ptr<net::RawStream>> upgraded;
      client_->upgrade(std::move(asked), [&](std::unique_ptr<net::RawStream> stream, const net::HttpResponse& response) {
        EXPECT_EQ(response.status, 101) << response.body;
        upgraded.set_value(std::move(stream));
      });
      streams.push_back(upgraded.get_future().get());
      ASSERT_TRUE(streams.back());
    }
    streams[0]->write("ping");
    std::promise<std::string> pong;
    streams[0]->async_read([&](std::string data, bool) { pong.set_value(std::move(data)); });
    EXPECT_EQ(pong.get_future().get(), "ping");
  };
  round(4);
  auto before = usage_now();
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(before, usage_now());
    ::poll(nullptr, 0, 50);
    return earlier.descriptors == before.descriptors && usage_now().descriptors == before.descriptors;
  }));
  round(100);
  EXPECT_TRUE(comes_true([&] { return usage_now().descriptors <= before.descriptors && usage_now().threads <= before.threads; }))
      << before.threads << " threads and " << before.descriptors << " descriptors became " << usage_now().threads << " and "
      << usage_now().descriptors;
}

}  // namespace
}  // namespace berth::node::agent
