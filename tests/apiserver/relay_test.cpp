// The way to nodes and pods: where it may lead, what it may hold, and what is left when it ends (issue 15, rows 4, 6, 7, 9).
#include "apiserver/relays/relay.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "net/address.h"
#include "net/server.h"
#include "security/pki.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"
#include "tests/support/usage.h"

namespace berth::apiserver::testing {
namespace {

using berth::test::comes_true;
using berth::test::usage_now;

/// A node's agent as far as the relay sees it.
class FakeAgent final : public net::Handler {
 public:
  explicit FakeAgent(const security::KeyPair& identity) {
    net::ServerConfig config;
    config.tls = net::TlsServerConfig{identity.certificate_pem, identity.private_key_pem, ""};
    server_ = std::move(*net::Server::start(config, *this));
  }
  ~FakeAgent() override { server_->stop(0); }

  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    ++requests;
    if (request.path.starts_with("/containerLogs/")) {
      writer->start_stream(200, {});
      ++open;
      writer->on_close([this] { --open; });
      return flood(writer);
    }
    if (request.path == "/logs/folder") {
      net::Headers headers;
      headers.add("Location", "folder/");
      return writer->respond({.status = 301, .headers = std::move(headers), .body = ""});
    }
    if (request.path.starts_with("/exec/default/refused"))
      return writer->respond({.status = 404, .headers = {}, .body = "no such container"});
    if (request.path.starts_with("/exec/default/moved")) {
      net::Headers headers;
      headers.add("Location", "https://elsewhere.example.com/");
      return writer->respond({.status = 302, .headers = std::move(headers), .body = ""});
    }
    if (request.path.starts_with("/exec/default/silent")) {
      ++open;
      return writer->on_close([this, writer] { --open; });
    }
    if (request.path.starts_with("/exec/")) {
      net::Headers headers;
      headers.add("Connection", "Upgrade");
      headers.add("Upgrade", "SPDY/3.1");
      if (std::shared_ptr<net::RawStream> stream = writer->upgrade(headers)) echo(stream);
      return;
    }
    writer->respond({.status = 200, .headers = {}, .body = request.path});
  }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  std::atomic<int> requests{0}, open{0};
  std::atomic<std::size_t> produced{0};

 private:
  void flood(const std::shared_ptr<net::ResponseWriter>& writer) {
    if (!writer->write(make_bytes(std::string(64 * 1024, 'l')))) return;
    produced += 64 * 1024;
    writer->on_drain([this, writer] { flood(writer); });
  }
  static void echo(const std::shared_ptr<net::RawStream>& stream) {
    stream->async_read([stream](std::string data, bool eof) {
      if (eof) return stream->close();
      stream->write(std::move(data));
      echo(stream);
    });
  }
  std::unique_ptr<net::Server> server_;
};

class Socket {
 public:
  explicit Socket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  void ask(const std::string& path, bool upgrade) const {
    const auto text =
        fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", path, upgrade ? "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" : "");
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  [[nodiscard]] std::string head() const {
    std::string out;
    char c = 0;
    while (!out.ends_with("\r\n\r\n") && ::recv(fd_, &c, 1, 0) == 1) out.push_back(c);
    return out;
  }
  void reset_at_end() const {
    const linger at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

class RelayTest : public ::testing::Test {
 protected:
  void start(net::ClientConfig node_client = {}) {
    loop_ = std::make_unique<ThreadLoop>("relay-test");
    auto cache = open_object_cache(store::make_memory_store(), clock_, {}, false);
    ASSERT_TRUE(cache) << cache.error().message;
    ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = loop_.get();
    const auto trusting = std::make_shared<TrustingAuth>();
    options.authenticator = trusting;
    options.authorizer = trusting;
    options.node_client = std::move(node_client);
    auto api = ApiServer::create(std::move(options));
    ASSERT_TRUE(api) << api.error().message;
    api_ = std::move(*api);
    net::ServerConfig config;
    config.address = "0.0.0.0";
    server_ = std::move(*net::Server::start(config, *api_));
    api_->serves_on(server_->port());
    client_ = std::move(*net::HttpClient::create({.url = fmt::format("http://127.0.0.1:{}", server_->port())}));
    pki_.emplace(std::move(*security::Pki::open({.directory = directory_.file("pki")}, clock_.now())));
  }
  void TearDown() override {
    client_.reset();
    if (server_) server_->stop(0);
    server_.reset();
    api_.reset();
    if (loop_) loop_->stop();
  }
  net::HttpResponse send(const std::string& method, const std::string& path, const std::string& body = {},
                         const std::string& type = "application/json") {
    net::HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    if (!body.empty()) request.headers.add("Content-Type", type);
    std::promise<net::HttpResponse> answer;
    client_->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }
  void node(const std::string& name, const std::string& address, std::uint16_t port, const std::string& type = "InternalIP") {
    send("POST", "/api/v1/nodes", fmt::format(R"({{"metadata":{{"name":"{}"}}}})", name));
    const auto patched =
        send("PATCH", "/api/v1/nodes/" + name + "/status",
             fmt::format(
                 R"({{"status":{{"addresses":[{{"type":"{}","address":"{}"}}],"daemonEndpoints":{{"kubeletEndpoint":{{"Port":{}}}}}}}}})",
                 type, address, port),
             "application/merge-patch+json");
    ASSERT_EQ(patched.status, 200) << patched.body;
  }
  void pod(const std::string& name, const std::string& node) {
    const auto made = send(
        "POST", "/api/v1/namespaces/default/pods",
        fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"nodeName":"{}","containers":[{{"name":"c","image":"i"}}]}}}})", name, node));
    ASSERT_EQ(made.status, 201) << made.body;
  }

  SystemClock clock_;
  store::TemporaryDirectory directory_;
  std::unique_ptr<ThreadLoop> loop_;
  std::unique_ptr<ApiServer> api_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<net::HttpClient> client_;
  std::optional<security::Pki> pki_;
};

/// A node's word on where it is reached must not lead the server, with its credentials towards nodes, to itself.
TEST_F(RelayTest, ANodeIsNeverTheServerItself) {
  start();
  std::vector<std::pair<std::string, std::string>> spellings = {
      {"InternalIP", "127.0.0.1"},     {"InternalIP", "127.8.9.10"}, {"InternalIP", "::ffff:127.0.0.1"},
      {"InternalIP", "::ffff:7f00:1"}, {"InternalIP", "0.0.0.0"},    {"ExternalIP", "::"},
      {"InternalIP", "::1"},           {"Hostname", "localhost"}};
  for (const auto& own : net::addresses_of_this_machine())
    if (!own.is_link_local()) spellings.emplace_back("InternalIP", own.text());
  int number = 0;
  for (const auto& [type, address] : spellings) {
    const auto name = fmt::format("n{}", number++);
    node(name, address, server_->port(), type);
    const auto answer = send("GET", "/api/v1/nodes/" + name + "/proxy/api/v1/secrets");
    EXPECT_EQ(answer.status, 503) << address;
    EXPECT_NE(answer.body.find("is the API server itself, not a node"), std::string::npos) << address << ": " << answer.body;
  }
  // Nor in the range of Services, from where the network leads to whatever is behind one.
  node("service", "10.96.0.1", 443);
  EXPECT_NE(send("GET", "/api/v1/nodes/service/proxy/").body.find("in the range of Services"), std::string::npos);
  FakeAgent agent(pki_->server());
  node("real", "127.0.0.1", agent.port());
  EXPECT_EQ(send("GET", "/api/v1/nodes/real/proxy/x").body, "/x") << "another port of this machine is a node's";
}

TEST_F(RelayTest, TheServerRefusesItsOwnIdentityTowardsNodes) {
  start();
  struct Kept final : RecordedResponse {};
  auto response = std::make_shared<Kept>();
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/api/v1/secrets";
  request.peer = net::PeerCertificate{"kube-apiserver-kubelet-client", {"berth:kubelet-clients", "system:authenticated"}};
  api_->handle(std::move(request), response);
  EXPECT_EQ(response->status, 403) << response->body;
}

TEST_F(RelayTest, ServingCertificatesOfNodesAreVerified) {
  store::TemporaryDirectory other;
  const auto stranger = security::Pki::open({.directory = other.file("pki")}, clock_.now());
  start({.ca_pem = stranger->ca_certificate_pem()});
  FakeAgent unknown(pki_->server()), known(stranger->server());
  node("unknown", "127.0.0.1", unknown.port());
  node("known", "127.0.0.1", known.port());
  const auto refused = send("GET", "/api/v1/nodes/unknown/proxy/x");
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("certificate verify failed"), std::string::npos) << refused.body;
  EXPECT_EQ(unknown.requests, 0);
  EXPECT_EQ(send("GET", "/api/v1/nodes/known/proxy/x").status, 200);
  // A node of this process is known by its own authority.
  api_->trust_node("unknown", pki_->ca_certificate_pem());
  EXPECT_EQ(send("GET", "/api/v1/nodes/unknown/proxy/x").status, 200);
  api_->trust_node("known", pki_->ca_certificate_pem());
  EXPECT_EQ(send("GET", "/api/v1/nodes/known/proxy/x").status, 503);
}

TEST_F(RelayTest, ACertificateOfAnotherNodeIsNotThisOnes) {
  const auto identity = *security::Pki::self_signed_server("system:node:mine", {"127.0.0.1"}, clock_.now());
  start({.ca_pem = identity.certificate_pem});
  FakeAgent agent(identity);
  node("mine", "127.0.0.1", agent.port());
  node("other", "127.0.0.1", agent.port());
  EXPECT_EQ(send("GET", "/api/v1/nodes/mine/proxy/x").status, 200);
  EXPECT_EQ(send("GET", "/api/v1/nodes/mine/proxy/logs/").body, "/logs/") << "a folder stays one";
  const auto moved = send("GET", "/api/v1/nodes/mine/proxy/logs/folder");
  EXPECT_EQ(moved.status, 301);
  EXPECT_EQ(moved.headers.get("Location"), "folder/");
  const auto refused = send("GET", "/api/v1/nodes/other/proxy/x");
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("system:node:mine, not node other"), std::string::npos) << refused.body;
}

/// 300 sessions of every kind, ended in every way, leave neither threads nor descriptors nor memory.
TEST_F(RelayTest, SessionsLeaveNothing) {
  start();
  FakeAgent agent(pki_->server());
  node("n", "127.0.0.1", agent.port());
  for (const char* name : {"p", "refused", "silent"}) pod(name, "n");
  const std::string pods = "/api/v1/namespaces/default/pods/";
  const auto round = [&](int count) {
    std::vector<std::unique_ptr<Socket>> sockets;
    const auto open = [&](const std::string& path, bool upgrade) -> Socket& {
      sockets.push_back(std::make_unique<Socket>(server_->port()));
      sockets.back()->ask(pods + path, upgrade);
      return *sockets.back();
    };
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(open("p/exec?command=x", true).head().starts_with("HTTP/1.1 101"));
      if (i % 3 == 0) sockets.back()->reset_at_end();
      if (i % 3 == 1) sockets.back()->end_sending();
    }
    for (int i = 0; i < count; ++i) EXPECT_TRUE(open("refused/exec?command=x", true).head().starts_with("HTTP/1.1 404"));
    for (int i = 0; i < count; ++i) open("silent/exec?command=x", true);
    for (int i = 0; i < std::min(count, 8); ++i) EXPECT_TRUE(open("p/log?follow=true", false).head().starts_with("HTTP/1.1 200"));
    EXPECT_TRUE(comes_true([&] { return agent.open == count + std::min(count, 8); })) << agent.open;
  };
  const auto settled = [&] { return agent.open == 0; };
  round(4);
  ASSERT_TRUE(comes_true(settled));
  auto before = usage_now();
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(before, usage_now());
    ::poll(nullptr, 0, 50);
    return earlier.descriptors == before.descriptors && usage_now().descriptors == before.descriptors;
  }));
  round(100);
  EXPECT_TRUE(comes_true([&] {
    return settled() && usage_now().descriptors <= before.descriptors && usage_now().threads <= before.threads;
  })) << agent.open
      << " still open; " << before.threads << " threads and " << before.descriptors << " descriptors became " << usage_now().threads
      << " and " << usage_now().descriptors;
  EXPECT_TRUE(comes_true([&] { return usage_now().heap_bytes < before.heap_bytes + 1024 * 1024; }, std::chrono::seconds(5)))
      << before.heap_bytes << " bytes became " << usage_now().heap_bytes;
}

/// A node that answers a session with a redirect leads nobody away (CVE-2020-8559).
TEST_F(RelayTest, ASessionIsNotLedElsewhere) {
  start();
  FakeAgent agent(pki_->server());
  node("n", "127.0.0.1", agent.port());
  pod("moved", "n");
  Socket socket(server_->port());
  socket.ask("/api/v1/namespaces/default/pods/moved/exec?command=x", true);
  const auto head = socket.head();
  EXPECT_TRUE(head.starts_with("HTTP/1.1 500")) << head;
  EXPECT_EQ(head.find("elsewhere"), std::string::npos) << head;
}

/// `kubectl logs` that nobody reads holds the node back instead of filling the server.
TEST_F(RelayTest, AnUnreadLogHoldsTheNodeBack) {
  start();
  FakeAgent agent(pki_->server());
  node("n", "127.0.0.1", agent.port());
  pod("p", "n");
  const auto before = usage_now();
  std::vector<std::unique_ptr<Socket>> sockets;
  for (int i = 0; i < 6; ++i) {
    sockets.push_back(std::make_unique<Socket>(server_->port()));
    sockets.back()->ask("/api/v1/namespaces/default/pods/p/log?follow=true", false);
    EXPECT_TRUE(sockets.back()->head().starts_with("HTTP/1.1 200"));
  }
  std::size_t last = 0;
  EXPECT_TRUE(comes_true([&] {
    const auto earlier = std::exchange(last, agent.produced.load());
    ::poll(nullptr, 0, 200);
    return earlier > 0 && earlier == agent.produced;
  })) << "the node never had to wait: "
      << agent.produced;
  EXPECT_LT(usage_now().heap_bytes, before.heap_bytes + 6 * (std::size_t{3} << 19));
  sockets.clear();
  EXPECT_TRUE(comes_true([&] { return agent.open == 0; })) << "the node's end is told";
}

TEST_F(RelayTest, ProxiesLeadOnlyToWhatTheClusterRuns) {
  start();
  FakeAgent agent(pki_->server());
  node("real", "192.0.2.7", agent.port());
  node("simulated", "192.0.2.8", agent.port());
  node("agentless", "192.0.2.9", 1);
  for (const auto& [name, patch] : {std::pair{"simulated", R"({"metadata":{"annotations":{"sim.berth.dev/fleet":"default"}}})"},
                                    std::pair{"real", R"({"spec":{"podCIDR":"198.51.100.0/24","podCIDRs":["198.51.100.0/24"]}})"}})
    ASSERT_EQ(send("PATCH", std::string("/api/v1/nodes/") + name, patch, "application/merge-patch+json").status, 200);
  send("PATCH", "/api/v1/nodes/agentless/status", R"({"status":{"daemonEndpoints":null}})", "application/merge-patch+json");
  const std::string pods = "/api/v1/namespaces/default/pods/";
  const auto asked = [&](const std::string& name, const std::string& node, const std::string& ip) {
    pod(name, node);
    send("PATCH", pods + name + "/status", fmt::format(R"({{"status":{{"podIP":"{}","podIPs":[{{"ip":"{}"}}]}}}})", ip, ip),
         "application/merge-patch+json");
    return send("GET", pods + name + ":9/proxy/");
  };
  const auto simulated = asked("a", "simulated", "10.10.0.5");
  EXPECT_EQ(simulated.status, 501);
  EXPECT_NE(simulated.body.find("simulated"), std::string::npos) << simulated.body;
  EXPECT_EQ(asked("b", "agentless", "198.51.100.9").status, 503);
  const auto elsewhere = asked("c", "real", "203.0.113.1");
  EXPECT_EQ(elsewhere.status, 400);
  EXPECT_NE(elsewhere.body.find("not in the pod network of node real (198.51.100.0/24)"), std::string::npos) << elsewhere.body;
  // A Service's endpoints that are nobody's pod, or say so of a pod that has another address.
  send("POST", "/api/v1/namespaces/default/services", R"({"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}})");
  send("POST", "/api/v1/namespaces/default/endpoints",
       R"({"metadata":{"name":"s"},"subsets":[{"addresses":[{"ip":"203.0.113.2"}],"ports":[{"port":80}]}]})");
  const auto outside = send("GET", "/api/v1/namespaces/default/services/s:80/proxy/");
  EXPECT_EQ(outside.status, 400) << outside.body;
  EXPECT_NE(outside.body.find("no pod of this namespace"), std::string::npos) << outside.body;
  send(
      "PUT", "/api/v1/namespaces/default/endpoints/s",
      R"({"metadata":{"name":"s"},"subsets":[{"addresses":[{"ip":"203.0.113.2","targetRef":{"kind":"Pod","name":"c","namespace":"default"}}],"ports":[{"port":80}]}]})");
  EXPECT_EQ(send("GET", "/api/v1/namespaces/default/services/s:80/proxy/").status, 400);
}

}  // namespace
}  // namespace berth::apiserver::testing
