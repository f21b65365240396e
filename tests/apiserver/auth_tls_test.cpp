// The certificates at work: a server that shows its own, clients that show theirs (SPEC A6).
#include <gtest/gtest.h>

#include <future>

#include "net/client.h"
#include "net/server.h"
#include "tests/apiserver/auth_fixture.h"

namespace berth::apiserver::auth {
namespace {

/// Answers with the peer's subject.
class WhoAmI final : public net::Handler {
 public:
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    net::HttpResponse response;
    response.body = "nobody";
    if (request.peer) {
      response.body = request.peer->common_name;
      for (const auto& organization : request.peer->organizations) response.body += "," + organization;
    }
    writer->respond(std::move(response));
  }
};

net::HttpResponse ask(net::ClientConfig config) {
  config.timeout_ms = 10'000;
  auto client = net::HttpClient::create(std::move(config));
  EXPECT_TRUE(client.has_value());
  net::HttpRequest request;
  request.method = "GET";
  request.path = "/";
  std::promise<net::HttpResponse> answer;
  (*client)->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
  return answer.get_future().get();
}

TEST(AuthTls, ServerIsVerifiedAndClientsAreKnown) {
  store::TemporaryDirectory directory, other_directory;
  SystemClock clock;
  auto pki = security::Pki::open({.directory = directory.file("pki")}, clock.now());
  auto stranger = security::Pki::open({.directory = other_directory.file("pki")}, clock.now());
  ASSERT_TRUE(pki.has_value() && stranger.has_value());
  WhoAmI handler;
  net::ServerConfig config;
  config.tls = net::TlsServerConfig{pki->server().certificate_pem, pki->server().private_key_pem, pki->ca_certificate_pem()};
  auto server = net::Server::start(config, handler);
  ASSERT_TRUE(server.has_value()) << server.error().message;

  for (const char* host : {"127.0.0.1", "localhost"}) {
    net::ClientConfig client;
    client.url = fmt::format("https://{}:{}", host, (*server)->port());
    client.ca_pem = pki->ca_certificate_pem();
    EXPECT_EQ(ask(client).body, "nobody") << host;
    auto admin = pki->admin(clock.now());
    client.certificate_pem = admin->certificate_pem;
    client.private_key_pem = admin->private_key_pem;
    EXPECT_EQ(ask(client).body, "kubernetes-admin,berth:cluster-admins") << host;
    auto node = pki->node("n1", clock.now());
    client.certificate_pem = node->certificate_pem;
    client.private_key_pem = node->private_key_pem;
    EXPECT_EQ(ask(client).body, "system:node:n1,system:nodes");
    // A server certificate is no client certificate, and another authority's is nobody's.
    client.certificate_pem = pki->server().certificate_pem;
    client.private_key_pem = pki->server().private_key_pem;
    EXPECT_NE(ask(client).status, 200);
    auto forged = stranger->issue_client("kubernetes-admin", {"system:masters"}, clock.now(), std::chrono::hours(1));
    client.certificate_pem = forged->certificate_pem;
    client.private_key_pem = forged->private_key_pem;
    EXPECT_NE(ask(client).status, 200);
  }
  net::ClientConfig doubting;
  doubting.url = fmt::format("https://127.0.0.1:{}", (*server)->port());
  doubting.ca_pem = stranger->ca_certificate_pem();
  EXPECT_EQ(ask(doubting).status, 0);
  (*server)->stop(0);
}

}  // namespace
}  // namespace berth::apiserver::auth
