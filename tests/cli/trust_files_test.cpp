// Certificates that are none today are refused before a start, by flag, file, subject and date; those of etcd and of kubeconfigs as well.
#include "cli/roles/trust_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "client/kubeconfig.h"
#include "security/pki.h"
#include "store/shared.h"
#include "tests/store/store_fixture.h"

namespace berth::cli {
namespace {

constexpr auto kYear = std::chrono::hours(24 * 365);

class TrustFilesTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) {
    const std::string path = directory_.file(name);
    std::ofstream(path, std::ios::trunc) << text;
    return path;
  }
  security::Pki authority(TimePoint made) {
    return std::move(*security::Pki::open({.directory = directory_.file(fmt::format("pki-{}", ++authorities_))}, made));
  }
  /// What `flags` are refused with at `now`; empty: nothing.
  [[nodiscard]] std::string refused(const TrustFlags& flags, TimePoint now) const {
    const auto files = flags.read();
    if (!files) return files.error().message;
    const auto good = flags.check(*files, now);
    return good ? "" : good.error().message;
  }

  store::TemporaryDirectory directory_;
  int authorities_ = 0;
  const TimePoint now_ = SystemClock().now();
};

TEST_F(TrustFilesTest, AServingCertificateIsNotTakenBeforeAndAfterItsTime) {
  auto pki = authority(now_);
  const auto pair = pki.issue_client("shop.example", {"ops"}, now_, std::chrono::hours(1));
  TrustFlags flags;
  flags.tls_certificate = put("tls.crt", pair->certificate_pem);
  flags.tls_key = put("tls.key", pair->private_key_pem);
  EXPECT_EQ(refused(flags, now_), "");
  const auto late = refused(flags, now_ + std::chrono::hours(2));
  EXPECT_TRUE(late.starts_with("--tls-cert-file " + flags.tls_certificate +
                               ": the certificate of \"CN=shop.example,O=ops\", signed by \"CN=berth-ca\","))
      << late;
  EXPECT_NE(late.find("expired at " + format_rfc3339(now_ + std::chrono::hours(1))), std::string::npos) << late;
  EXPECT_NE(late.find("renew it"), std::string::npos) << late;
  const auto early = refused(flags, now_ - std::chrono::hours(1));
  EXPECT_NE(early.find("is not valid before"), std::string::npos) << early;
  EXPECT_NE(early.find(format_rfc3339(now_ - std::chrono::hours(1))), std::string::npos) << "its own time: " << early;
}

TEST_F(TrustFilesTest, WhatServesAlreadyIsNotLookedAtAgain) {
  auto pki = authority(now_);
  const auto pair = pki.issue_client("shop.example", {}, now_, std::chrono::hours(1));
  TrustFlags flags;
  flags.tls_certificate = put("tls.crt", pair->certificate_pem);
  flags.tls_key = put("tls.key", pair->private_key_pem);
  const auto files = flags.read();
  ASSERT_TRUE(files.has_value());
  EXPECT_FALSE(flags.check(*files, now_ + kYear).has_value());
  EXPECT_TRUE(flags.check(*files, now_ + kYear, *files).has_value());
}

TEST_F(TrustFilesTest, OfABundleOneAuthorityIsEnoughAndTheOthersAreTold) {
  const auto old = authority(now_ - 11 * kYear), current = authority(now_);
  TrustFlags flags;
  flags.client_ca = put("ca.crt", old.ca_certificate_pem());
  const auto why = refused(flags, now_);
  EXPECT_TRUE(why.starts_with("--client-ca-file " + flags.client_ca + ": the certificate of \"CN=berth-ca\" expired at ")) << why;
  put("ca.crt", old.ca_certificate_pem() + current.ca_certificate_pem());
  const auto files = flags.read();
  const auto told = flags.check(*files, now_);
  ASSERT_TRUE(told.has_value());
  ASSERT_EQ(told->size(), 1U);
  EXPECT_TRUE(told->front().starts_with("--client-ca-file " + flags.client_ca)) << told->front();
}

TEST_F(TrustFilesTest, AServersOwnAuthorityHasToBeGood) {
  const std::string directory = directory_.file("own");
  ASSERT_TRUE(security::Pki::open({.directory = directory}, now_).has_value());
  const auto early = security::Pki::open({.directory = directory}, now_ - kYear);
  ASSERT_FALSE(early.has_value()) << "with a clock that is years off nothing is made anew";
  EXPECT_TRUE(early.error().message.starts_with(directory + "/ca.crt: ")) << early.error().message;
  const auto late = security::Pki::open({.directory = directory}, now_ + 11 * kYear);
  ASSERT_FALSE(late.has_value());
  EXPECT_NE(late.error().message.find("berth adm rotate ca --step prepare"), std::string::npos) << late.error().message;
}

TEST_F(TrustFilesTest, EtcdsCertificatesAreToldByFile) {
  auto pki = authority(now_ - kYear), stale = authority(now_ - 11 * kYear);
  const auto good = pki.issue_client("etcd-client", {}, now_, std::chrono::hours(1)),
             other = pki.issue_client("other", {}, now_, std::chrono::hours(1)),
             late = pki.issue_client("etcd-client", {}, now_ - kYear, std::chrono::hours(1)),
             early = pki.issue_client("etcd-client", {}, now_ + kYear, std::chrono::hours(1));
  const auto why = [](const std::string& ca, const security::KeyPair& pair, const std::string& key) {
    store::EtcdOptions options;
    options.servers = {"https://127.0.0.1:1"};
    options.ca_pem = ca;
    options.certificate_pem = pair.certificate_pem;
    options.key_pem = key;
    options.ca_file = "etcd-ca.crt";
    options.certificate_file = "client.crt";
    options.key_file = "client.key";
    const auto checked = store::check_etcd_certificates(options);
    return checked ? std::string() : checked.error().message;
  };
  const std::string& ca = pki.ca_certificate_pem();
  if (why("none", *good, good->private_key_pem).empty()) GTEST_SKIP() << "built without etcd";
  EXPECT_EQ(why(ca, *good, good->private_key_pem), "");
  EXPECT_EQ(why(ca, *good, other->private_key_pem),
            "--etcd-certfile client.crt, --etcd-keyfile client.key: the key is not the one of the certificate of \"CN=etcd-client\": give "
            "the two "
            "that were made together");
  EXPECT_NE(
      why(ca, *late, late->private_key_pem)
          .find("client.crt, --etcd-keyfile client.key: the certificate of \"CN=etcd-client\", signed by \"CN=berth-ca\", expired at"),
      std::string::npos);
  EXPECT_NE(why(ca, *early, early->private_key_pem).find("is not valid before"), std::string::npos);
  EXPECT_TRUE(why(stale.ca_certificate_pem(), *good, good->private_key_pem)
                  .starts_with("--etcd-cafile etcd-ca.crt: the certificate of \"CN=berth-ca\" expired at"));
  EXPECT_EQ(why("none", *good, good->private_key_pem), "--etcd-cafile etcd-ca.crt: there is no certificate (PEM) in it");
  EXPECT_EQ(why(ca, *good, "none"), "--etcd-keyfile client.key: there is no private key (PEM) in it");
}

TEST_F(TrustFilesTest, AKubeconfigWithACertificateThatIsNoneTodayIsRefusedByField) {
  auto pki = authority(now_);
  const auto late = pki.issue_client("ann", {}, now_ - kYear, std::chrono::hours(1)),
             good = pki.issue_client("ann", {}, now_, std::chrono::hours(1));
  client::KubeconfigEntry entry;
  entry.user = "ann";
  entry.server = "https://127.0.0.1:6443";
  entry.ca_pem = pki.ca_certificate_pem();
  const auto why = [&](const std::string& certificate, const std::string& key) {
    entry.certificate_pem = certificate;
    entry.private_key_pem = key;
    const std::string path = directory_.file("config");
    EXPECT_TRUE(client::write_kubeconfig(path, entry).has_value());
    const auto loaded = client::load_kubeconfig(path);
    EXPECT_TRUE(loaded.has_value()) << "who renews it has to read it";
    const auto transport = client::transport_for(*loaded);
    return transport ? std::string() : transport.error().message;
  };
  EXPECT_EQ(why(good->certificate_pem, good->private_key_pem), "");
  const auto expired = why(late->certificate_pem, late->private_key_pem);
  EXPECT_NE(expired.find("user.client-certificate: the certificate of \"CN=ann\", signed by \"CN=berth-ca\", expired at"),
            std::string::npos)
      << expired;
  const auto mixed = why(good->certificate_pem, late->private_key_pem);
  EXPECT_NE(mixed.find("the key is not the one of the certificate of \"CN=ann\""), std::string::npos) << mixed;
}

}  // namespace
}  // namespace berth::cli
