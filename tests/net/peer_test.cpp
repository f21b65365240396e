// Which of its authorities a server finds behind a client's certificate, and until when, in full handshakes and in resumed sessions.
#include "tests/net/net_fixture.h"

namespace berth::net::test {
namespace {

class Peers : public ::testing::Test {
 protected:
  Peers() {
    TlsServerConfig tls = config(clients_.pem(), proxies_.pem());
    ServerConfig server;
    server.tls = tls;
    server_ = std::move(*Server::start(server, handler_));
  }
  [[nodiscard]] TlsServerConfig config(const std::string& clients, const std::string& proxies) const {
    TlsServerConfig out{serving_.certificate_pem, serving_.key_pem, clients};
    out.front_proxy_ca_pem = proxies;
    return out;
  }
  [[nodiscard]] std::unique_ptr<HttpClient> client(const berth::test::Identity& identity) const {
    ClientConfig config;
    config.url = fmt::format("https://127.0.0.1:{}", server_->port());
    config.ca_pem = clients_.pem();
    config.certificate_pem = identity.certificate_pem;
    config.private_key_pem = identity.key_pem;
    return std::move(*HttpClient::create(std::move(config)));
  }
  /// What the server takes it for, the first time and with the session resumed twice: "client", "proxy", "both", "nobody" or "refused".
  std::string taken_for(const berth::test::Identity& identity) {
    const auto asking = client(identity);
    std::string out;
    for (int i = 0; i < 3; ++i) {
      auto request = make_request("GET", "/");
      request.headers.add("Connection", "close");
      const auto response = wait_for(*asking, request);
      const std::string now = response.status == 0 ? "refused" : response.body;
      if (now != out) out += (out.empty() ? "" : ", then ") + now;
    }
    return out;
  }
  /// The leaf with its intermediate behind it, as a client sends them.
  static berth::test::Identity chained(berth::test::Identity leaf, const berth::test::Authority& intermediate) {
    leaf.certificate_pem += intermediate.pem();
    return leaf;
  }

  berth::test::Authority clients_{"client-ca"}, proxies_{"front-proxy-ca"};
  berth::test::Identity serving_ = clients_.issue("server");
  std::optional<PeerCertificate> seen_;
  FunctionHandler handler_{[this](HttpRequest request, Writer writer) {
    seen_ = request.peer;
    HttpResponse response;
    const auto& peer = request.peer;
    response.body = !peer                                     ? "none"
                    : peer->is_client && peer->is_front_proxy ? "both"
                    : peer->is_client                         ? "client"
                    : peer->is_front_proxy                    ? "proxy"
                                                              : "nobody";
    writer->respond(std::move(response));
  }};
  std::unique_ptr<Server> server_;
};

TEST_F(Peers, EachAuthorityVouchesForItsOwnAlone) {
  EXPECT_EQ(taken_for(clients_.issue("alice")), "client");
  EXPECT_EQ(taken_for(proxies_.issue("front-proxy")), "proxy");
  const berth::test::Authority foreign("foreign");
  EXPECT_EQ(taken_for(foreign.issue("mallory")), "refused");
}

TEST_F(Peers, IntermediatesVouchForWhatTheirAuthorityDoes) {
  const berth::test::Authority below_clients("client-intermediate", &clients_), below_proxies("proxy-intermediate", &proxies_);
  EXPECT_EQ(taken_for(chained(below_clients.issue("alice", {"dev"}), below_clients)), "client");
  EXPECT_EQ(taken_for(chained(below_proxies.issue("kubernetes-admin", {"system:masters"}), below_proxies)), "proxy")
      << "an intermediate of the front proxies' makes no users";
  EXPECT_EQ(taken_for(below_proxies.issue("kubernetes-admin", {"system:masters"})), "refused") << "without its intermediate";
}

TEST_F(Peers, ABundleTrustsItsIntermediatesByThemselves) {
  const berth::test::Authority root("root"), middle("middle", &root);
  ASSERT_TRUE(server_->set_tls(config(clients_.pem() + middle.pem(), proxies_.pem())));
  EXPECT_EQ(taken_for(middle.issue("alice")), "client");
  ASSERT_TRUE(server_->set_tls(config(clients_.pem(), proxies_.pem() + middle.pem())));
  EXPECT_EQ(taken_for(middle.issue("proxy")), "proxy");
  ASSERT_TRUE(server_->set_tls(config(clients_.pem() + middle.pem(), proxies_.pem() + middle.pem())));
  EXPECT_EQ(taken_for(middle.issue("both")), "both");
}

TEST_F(Peers, TheEndOfACertificateIsToldAlsoOfResumedSessions) {
  const auto asking = client(clients_.issue("alice", {}, 1));
  std::optional<TimePoint> end;
  for (int i = 0; i < 3; ++i) {
    auto request = make_request("GET", "/");
    request.headers.add("Connection", "close");
    ASSERT_EQ(wait_for(*asking, request).status, 200);
    ASSERT_TRUE(seen_);
    if (!end) end = seen_->not_after;
    EXPECT_EQ(seen_->not_after, *end);
    EXPECT_NEAR(static_cast<double>((seen_->not_after - SystemClock().now()) / std::chrono::minutes(1)), 24 * 60, 5);
    EXPECT_LT(seen_->not_before, SystemClock().now() - std::chrono::hours(24));
  }
}

TEST_F(Peers, TheChainEndsWithItsFirstToEnd) {
  const berth::test::Authority below("client-intermediate", &clients_);
  ASSERT_EQ(taken_for(chained(below.issue("alice", {}, 1000), below)), "client");
  EXPECT_LT(seen_->not_after, SystemClock().now() + std::chrono::hours(24 * 11)) << "the intermediate's ten days, not the leaf's thousand";
}

TEST_F(Peers, AnAuthorityThatIsGoneTakesItsConnectionsAlong) {
  const berth::test::Authority old("old-ca");
  ASSERT_TRUE(server_->set_tls(config(clients_.pem() + old.pem(), proxies_.pem())));
  const auto stays = client(clients_.issue("alice")), goes = client(old.issue("bob"));
  EXPECT_EQ(wait_for(*stays, make_request("GET", "/")).body, "client");
  EXPECT_EQ(wait_for(*goes, make_request("GET", "/")).body, "client");
  ASSERT_TRUE(server_->set_tls(config(clients_.pem(), proxies_.pem())));
  EXPECT_EQ(wait_for(*goes, make_request("GET", "/")).status, 0) << "neither the connection nor the session goes on";
  EXPECT_EQ(wait_for(*stays, make_request("GET", "/")).body, "client");
}

}  // namespace
}  // namespace berth::net::test
