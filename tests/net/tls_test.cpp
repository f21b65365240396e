// Who trusts whom.
#include "tests/net/net_fixture.h"

namespace berth::net::test {
namespace {

class Tls : public ::testing::Test {
 protected:
  FunctionHandler handler{[](HttpRequest request, Writer writer) {
    HttpResponse response;
    if (request.peer) {
      response.body = request.peer->common_name;
      for (const auto& organization : request.peer->organizations) response.body += "," + organization;
    }
    writer->respond(std::move(response));
  }};
  std::unique_ptr<Server> server = start_server(handler, {}, true);

  HttpResponse get(std::function<void(ClientConfig&)> change) const {
    return wait_for(*make_client(*server, true, std::move(change)), make_request("GET", "/"));
  }
};

TEST_F(Tls, AClientCertificateNamesUserAndGroups) {
  const auto response = get([](auto& config) {
    config.certificate_pem = pki().client.certificate_pem;
    config.private_key_pem = pki().client.key_pem;
  });
  EXPECT_EQ(response.body, "alice,dev,ops");
}

TEST_F(Tls, WithoutOneTheClientIsNobody) {
  const auto response = get({});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "");
}

TEST_F(Tls, ResumedSessionsKeepTheIdentity) {
  const auto client = make_client(*server, true, [](auto& config) {
    config.certificate_pem = pki().client.certificate_pem;
    config.private_key_pem = pki().client.key_pem;
  });
  for (int i = 0; i < 5; ++i) {
    auto request = make_request("GET", "/");
    request.headers.add("Connection", "close");
    EXPECT_EQ(wait_for(*client, request).body, "alice,dev,ops") << i;
  }
}

TEST_F(Tls, AForeignOrExpiredCertificateIsRefused) {
  const berth::test::Authority foreign("foreign-ca");
  for (const auto& identity : {foreign.issue("mallory", {"system:masters"}), pki().authority.issue("late", {}, -1)}) {
    const auto response = get([&](auto& config) {
      config.certificate_pem = identity.certificate_pem;
      config.private_key_pem = identity.key_pem;
    });
    EXPECT_EQ(response.status, 0) << response.body;
  }
}

TEST_F(Tls, AnUntrustedServerIsRefusedUnlessToldOtherwise) {
  const berth::test::Authority foreign("foreign-ca");
  const auto refused = get([&](auto& config) { config.ca_pem = foreign.pem(); });
  EXPECT_EQ(refused.status, 0);
  EXPECT_NE(refused.body.find("certificate verify failed"), std::string::npos) << refused.body;
  const auto insecure = get([&](auto& config) {
    config.ca_pem.clear();
    config.insecure_skip_verify = true;
  });
  EXPECT_EQ(insecure.status, 200);
}

TEST_F(Tls, TheServersNameIsChecked) {
  EXPECT_EQ(get([](auto& config) { config.server_name = "localhost"; }).status, 200);
  EXPECT_EQ(get([](auto& config) { config.server_name = "kubernetes.default"; }).status, 0);
  EXPECT_EQ(get([&](auto& config) { config.url = fmt::format("https://localhost:{}", server->port()); }).status, 200);
}

TEST_F(Tls, PlainHttpIsToldToUseTls) {
  RawClient client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.read_until("plain HTTP").find("400 Bad Request"), std::string::npos);
}

TEST_F(Tls, UnusableConfigurationsAreNamed) {
  const auto error_of = [&](TlsServerConfig tls) {
    ServerConfig config;
    config.tls = std::move(tls);
    const auto started = Server::start(config, handler);
    return started ? std::string("started") : started.error().message;
  };
  auto tls = server_tls();
  tls.certificate_pem = "nonsense";
  EXPECT_EQ(error_of(tls), "certificate: no PEM certificate found");
  tls = server_tls();
  tls.private_key_pem = pki().client.key_pem;
  EXPECT_EQ(error_of(tls), "private key: it does not belong to the certificate");
  tls = server_tls();
  tls.client_ca_pem = "nonsense";
  EXPECT_EQ(error_of(tls), "certificate authority: no PEM certificate found");
  EXPECT_EQ(HttpClient::create({.url = "ftp://x"}).error().message, "server URL \"ftp://x\": it must begin with https:// or http://");
  EXPECT_FALSE(HttpClient::create({.url = "https://host:99999"}));
  EXPECT_FALSE(HttpClient::create({.url = "https://"}));
}

}  // namespace
}  // namespace berth::net::test
