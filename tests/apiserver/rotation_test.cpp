// The exchange of the authority and of the key that signs tokens, step by step, with who is let in and who is believed at each of them.
#include "security/rotation.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <future>

#include "apiserver/auth/service_account_tokens.h"
#include "net/server.h"
#include "security/pki.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::auth {
namespace {

class WhoAsks final : public net::Handler {
 public:
  void handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) override {
    writer->respond({.status = 200, .headers = {}, .body = request.peer ? request.peer->common_name : "nobody"});
  }
};

class Rotation : public ::testing::Test {
 protected:
  security::Pki open() {
    auto pki = security::Pki::open({.directory = directory_.file("pki")}, now_);
    EXPECT_TRUE(pki) << pki.error().message;
    return std::move(*pki);
  }
  std::string step(security::RotationStep which) {
    const auto done = security::rotate_authority(directory_.file("pki"), which, now_);
    return done ? "" : done.error().message;
  }
  std::string key_step(security::RotationStep which) {
    const auto done = security::rotate_signing_key(directory_.file("pki"), which);
    return done ? "" : done.error().message;
  }
  /// The server as a restart, or its own look at the directory, would have it.
  void serve(const security::Pki& pki) {
    const net::TlsServerConfig tls{pki.server().certificate_pem, pki.server().private_key_pem, pki.ca_certificate_pem()};
    if (server_ == nullptr) {
      net::ServerConfig config;
      config.tls = tls;
      server_ = std::move(*net::Server::start(config, handler_));
    } else {
      ASSERT_TRUE(server_->set_tls(tls));
    }
  }
  /// Whom the server takes a client for that trusts `ca` and shows `identity`; "refused" when either does not believe the other.
  std::string seen(const std::string& ca, const security::KeyPair& identity) {
    net::ClientConfig config;
    config.url = fmt::format("https://127.0.0.1:{}", server_->port());
    config.ca_pem = ca;
    config.certificate_pem = identity.certificate_pem;
    config.private_key_pem = identity.private_key_pem;
    auto client = std::move(*net::HttpClient::create(std::move(config)));
    net::HttpRequest request;
    request.method = "GET";
    request.path = "/";
    std::promise<net::HttpResponse> answer;
    client->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    const auto response = answer.get_future().get();
    return response.status == 200 ? response.body : "refused";
  }
  /// The service account dev/bot, as the cache is given it.
  static Proposal account() {
    Proposal out;
    out.key = make_key("", "serviceaccounts", "dev", "bot");
    out.value = R"({"kind":"ServiceAccount","metadata":{"name":"bot","namespace":"dev","uid":"sa-uid","resourceVersion":""}})";
    out.revision_offset = out.value.size() - 3;
    out.meta.ns = "dev";
    out.meta.name = "bot";
    out.meta.uid = "sa-uid";
    return out;
  }
  store::TemporaryDirectory directory_;
  const TimePoint now_ = SystemClock().now();
  WhoAsks handler_;
  std::unique_ptr<net::Server> server_;
};

TEST_F(Rotation, WhatRootExchangesStaysTheServersOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root writes into others' directories";
  constexpr uid_t kServer = 65534;
  static_cast<void>(open());
  const std::string pki = directory_.file("pki");
  ASSERT_EQ(::chown(pki.c_str(), kServer, kServer), 0);
  ASSERT_TRUE(security::rotate_authority(pki, security::RotationStep::kPrepare, now_).has_value());
  ASSERT_TRUE(security::rotate_authority(pki, security::RotationStep::kSwitch, now_).has_value());
  ASSERT_TRUE(security::rotate_signing_key(pki, security::RotationStep::kPrepare).has_value());
  for (const char* name : {"ca.crt", "ca.key", "service-account.key"}) {
    struct stat info {};
    ASSERT_EQ(::stat((pki + "/" + name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_uid, kServer) << name;
  }
}

TEST_F(Rotation, TheAuthorityIsExchangedWithoutAGap) {
  auto before = open();
  const std::string old_ca = before.ca_certificate_pem();
  const auto old_admin = *before.admin(now_);
  serve(before);
  EXPECT_EQ(seen(old_ca, old_admin), "kubernetes-admin");
  EXPECT_EQ(step(security::RotationStep::kSwitch), "nothing is prepared: the first step is prepare");
  EXPECT_EQ(step(security::RotationStep::kFinish), "nothing is to be finished");

  EXPECT_EQ(step(security::RotationStep::kPrepare), "");
  EXPECT_EQ(step(security::RotationStep::kPrepare), "an exchange is under way: the next step is switch");
  auto prepared = open();
  const std::string both = prepared.ca_certificate_pem();
  EXPECT_NE(both, old_ca);
  EXPECT_EQ(prepared.server().certificate_pem, before.server().certificate_pem) << "the old one signs";
  serve(prepared);
  EXPECT_EQ(seen(old_ca, old_admin), "kubernetes-admin") << "who has not heard of it is served as before";

  EXPECT_EQ(step(security::RotationStep::kFinish), "the old one still signs: the next step is switch");
  EXPECT_EQ(step(security::RotationStep::kSwitch), "");
  EXPECT_EQ(step(security::RotationStep::kSwitch), "that was done already: the next step is finish");
  auto switched = open();
  serve(switched);
  EXPECT_NE(switched.server().certificate_pem, before.server().certificate_pem);
  EXPECT_EQ(seen(both, old_admin), "kubernetes-admin") << "an old certificate is still good";
  EXPECT_EQ(seen(old_ca, old_admin), "refused") << "who did not get the bundle does not believe the server";
  const auto new_admin = *switched.admin(now_);
  EXPECT_NE(new_admin.certificate_pem, old_admin.certificate_pem);
  EXPECT_EQ(seen(both, new_admin), "kubernetes-admin");

  EXPECT_EQ(step(security::RotationStep::kFinish), "");
  auto finished = open();
  serve(finished);
  EXPECT_EQ(seen(finished.ca_certificate_pem(), new_admin), "kubernetes-admin");
  EXPECT_EQ(seen(finished.ca_certificate_pem(), old_admin), "refused");
  EXPECT_EQ(step(security::RotationStep::kPrepare), "") << "and again, another year";
}

TEST_F(Rotation, TokensOutliveTheSwitchAndEndWithTheFinish) {
  VirtualLoop loop{now_};
  auto cache = open_object_cache(store::make_memory_store(), loop, {}, true);
  ASSERT_TRUE(cache);
  const auto tokens_with = [&](const std::string& keys) {
    return *ServiceAccountTokens::create({keys, "https://issuer", {}}, **cache, loop);
  };
  const auto first_key = open().service_account_key_pem();
  auto tokens = tokens_with(first_key);
  ASSERT_TRUE(propose_and_wait(**cache, account()).has_value());
  const auto issue = [&] { return tokens->issue({.ns = "dev", .service_account = "bot", .service_account_uid = "sa-uid"})->token; };
  const auto is_good = [&](const std::string& token) { return tokens->verify(token, {}).has_value(); };
  const std::string old = issue();
  EXPECT_TRUE(is_good(old));
  EXPECT_EQ(key_step(security::RotationStep::kSwitch), "nothing is prepared: the first step is prepare");
  const auto keys_published = [](const ServiceAccountTokens& of) {
    return json::get_array(*json::parse(of.json_web_keys()), {"keys"}).size();
  };
  EXPECT_EQ(keys_published(*tokens), 1U);
  EXPECT_EQ(key_step(security::RotationStep::kPrepare), "");
  const auto prepared = open().service_account_key_pem();
  EXPECT_TRUE(prepared.starts_with(first_key)) << "the old one signs";
  ASSERT_TRUE(tokens->set_keys(prepared));
  EXPECT_EQ(keys_published(*tokens), 2U) << "others can verify what the new one will sign";
  const std::string during = issue();
  EXPECT_TRUE(is_good(old));
  EXPECT_EQ(key_step(security::RotationStep::kFinish), "the old one still signs: the next step is switch");
  EXPECT_EQ(key_step(security::RotationStep::kSwitch), "");
  const auto switched = open().service_account_key_pem();
  EXPECT_TRUE(switched.ends_with(first_key));
  ASSERT_TRUE(tokens->set_keys(switched));
  const std::string fresh = issue();
  EXPECT_TRUE(is_good(old) && is_good(during)) << "tokens outlive the switch";
  EXPECT_TRUE(is_good(fresh));
  EXPECT_EQ(keys_published(*tokens), 2U);
  EXPECT_EQ(key_step(security::RotationStep::kFinish), "");
  const auto finished = open().service_account_key_pem();
  EXPECT_EQ(finished.find(first_key), std::string::npos);
  EXPECT_TRUE(switched.starts_with(finished));
  ASSERT_TRUE(tokens->set_keys(finished));
  EXPECT_EQ(keys_published(*tokens), 1U);
  EXPECT_FALSE(is_good(old) || is_good(during)) << "and end with the finish, also those that were good a moment ago";
  EXPECT_TRUE(is_good(fresh)) << "the new key signed it since the switch";
}

TEST(RotationOfNothing, SaysThatThereIsNothing) {
  store::TemporaryDirectory directory;
  const auto done = security::rotate_authority(directory.file("pki"), security::RotationStep::kPrepare, SystemClock().now());
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("was a server ever started"), std::string::npos) << done.error().message;
}

/// The front proxy's authority vouches for nobody else, and no other for the front proxy.
TEST_F(Rotation, TheFrontProxyHasAnAuthorityOfItsOwn) {
  auto pki = open();
  const auto proxy = pki.front_proxy(now_);
  ASSERT_TRUE(proxy) << proxy.error().message;
  EXPECT_EQ(pki.front_proxy(now_)->client.certificate_pem, proxy->client.certificate_pem) << "kept";
  serve(pki);
  EXPECT_EQ(seen(pki.ca_certificate_pem(), proxy->client), "refused") << "no user of the cluster";
  net::TlsServerConfig tls{pki.server().certificate_pem, pki.server().private_key_pem, pki.ca_certificate_pem()};
  tls.front_proxy_ca_pem = proxy->ca_pem;
  ASSERT_TRUE(server_->set_tls(tls));
  EXPECT_EQ(seen(pki.ca_certificate_pem(), proxy->client), "front-proxy-client");
  EXPECT_EQ(seen(pki.ca_certificate_pem(), *pki.admin(now_)), "kubernetes-admin");
  EXPECT_FALSE(pki.client_certificate("front-proxy-ca", "x", {}, now_)) << "its files are not anybody's";
}

}  // namespace
}  // namespace berth::apiserver::auth
