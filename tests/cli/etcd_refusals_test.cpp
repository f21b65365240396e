// What is refused of an etcd before a server reads or writes anything in it: another cluster's prefix, an alarm, certificates of its own.
#include <gtest/gtest.h>

#include "cli/keep/etcd_flags.h"
#include "net/server.h"
#include "security/pki.h"
#include "tests/store/store_fixture.h"
#include "tests/support/etcd_process.h"

namespace berth::cli {
namespace {

using testing_support::EtcdProcess;

class EtcdRefusals : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing_support::etcd_program().empty()) GTEST_SKIP() << "etcd-server is not installed";
  }
  [[nodiscard]] security::Pki authority(const std::string& name, TimePoint made) const {
    return std::move(*security::Pki::open({.directory = directory_.file(name)}, made));
  }
  static std::unique_ptr<store::SharedStore> open(const EtcdProcess& etcd, const std::string& prefix = "/registry") {
    store::EtcdOptions options;
    options.servers = {etcd.url()};
    options.prefix = prefix;
    auto opened = store::open_etcd_store(options);
    EXPECT_TRUE(opened.has_value()) << opened.error().message;
    return std::move(*opened);
  }

  store::TemporaryDirectory directory_;
  const TimePoint now_ = SystemClock().now();
};

TEST_F(EtcdRefusals, OfTwoClustersOnOnePrefixTheSecondIsRefusedAndWritesNothing) {
  const EtcdProcess etcd;
  const auto first = authority("first", now_), second = authority("second", now_);
  const auto store = open(etcd);
  ASSERT_TRUE(claim_prefix(*store, "/registry", first.ca_certificate_pem(), "first").has_value());
  const auto before = store->find("/registry/", true);
  const auto refused = claim_prefix(*store, "/registry", second.ca_certificate_pem(), "second");
  ASSERT_FALSE(refused.has_value());
  for (const char* part : {"/registry in this etcd belongs to another cluster", "second/pki", "copy ca.crt", "another --etcd-prefix"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  const auto after = store->find("/registry/", true);
  ASSERT_EQ(after->size(), before->size());
  EXPECT_EQ(after->front().revision, before->front().revision);
  EXPECT_TRUE(claim_prefix(*store, "/registry", first.ca_certificate_pem(), "first").has_value()) << "its own servers come again";
  EXPECT_TRUE(claim_prefix(*store, "/registry", second.ca_certificate_pem() + first.ca_certificate_pem(), "first").has_value())
      << "while an authority is being exchanged";
}

TEST_F(EtcdRefusals, AFullEtcdIsRefusedWithWhatToDo) {
  const EtcdProcess etcd({"--quota-backend-bytes", "2000000"});
  {
    const auto store = open(etcd);
    for (int i = 0; i < 1000; ++i) {  // It looks at its size each time it syncs.
      store::SharedWrite write;
      write.key = fmt::format("/registry/big/{}", i);
      write.value = make_bytes(std::string(400'000, 'x'));
      if (store->write_and_wait(std::move(write)).verdict == store::WriteVerdict::kRejected) break;
    }
  }
  store::EtcdOptions options;
  options.servers = {etcd.url()};
  const auto opened = store::open_etcd_store(options);
  ASSERT_FALSE(opened.has_value());
  for (const char* part : {"NOSPACE", "etcdctl compact", "etcdctl defrag", "etcdctl alarm disarm", "nothing was written"})
    EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
}

/// Something that speaks TLS with whatever certificate.
class Shown final : public net::Handler {
 public:
  Shown(security::KeyPair pair, std::string client_ca) {
    net::ServerConfig config;
    config.tls = net::TlsServerConfig{std::move(pair.certificate_pem), std::move(pair.private_key_pem), std::move(client_ca)};
    server_ = std::move(*net::Server::start(config, *this));
  }
  void handle(net::HttpRequest, std::shared_ptr<net::ResponseWriter> writer) override { writer->respond({}); }
  /// Why a server with this authority does not start on it.
  [[nodiscard]] std::string refusal(const std::string& ca) const {
    store::EtcdOptions options;
    options.servers = {fmt::format("https://127.0.0.1:{}", server_->port())};
    options.ca_pem = ca;
    options.ca_file = "etcd-ca.crt";
    const auto opened = store::open_etcd_store(options);
    return opened ? "" : opened.error().message;
  }

 private:
  std::unique_ptr<net::Server> server_;
};

TEST_F(EtcdRefusals, EtcdsOwnCertificateIsToldWithItsDate) {
  const auto year = std::chrono::hours(24 * 365);
  auto pki = authority("pki", now_ - 2 * year);
  const auto why = Shown(pki.server(), "").refusal(pki.ca_certificate_pem());
  for (const char* part :
       {"no etcd answers", "what etcd shows is no good: the certificate of \"CN=berth-apiserver\", signed by \"CN=berth-ca\", expired at ",
        "then start etcd again"})
    EXPECT_NE(why.find(part), std::string::npos) << why;
}

TEST_F(EtcdRefusals, AnEtcdOfAnotherAuthorityIsToldBySubject) {
  auto pki = authority("pki", now_);
  const auto other = authority("other", now_);
  const auto why = Shown(pki.server(), "").refusal(other.ca_certificate_pem());
  EXPECT_NE(why.find("etcd's certificate, of \"CN=berth-apiserver\", is not signed by --etcd-cafile etcd-ca.crt"), std::string::npos)
      << why;
}

}  // namespace
}  // namespace berth::cli
