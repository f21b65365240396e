// Encryption at rest: the layouts of Kubernetes, keys that are exchanged, missing and wrong ones, data that is rewritten.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "apiserver/encryption/store.h"
#include "base/base64.h"
#include "tests/apiserver/server_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::encryption {
namespace {

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}
std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
  return out;
}
std::string counted(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(i);
  return out;
}

/// `keys` are "NAME" with the secret made of NAME's first letter.
std::string provider_text(const std::string& provider, const std::vector<std::string>& keys) {
  std::string out = fmt::format("  - {}:\n      keys:\n", provider);
  for (const auto& name : keys) out += fmt::format("      - {{name: {}, secret: {}}}\n", name, base64_encode(std::string(32, name[0])));
  return out;
}
std::string document(const std::string& providers, const std::string& resources = "[secrets]") {
  return fmt::format("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: {}\n  providers:\n{}",
                     resources, providers);
}
Configuration configured(const std::string& providers, const std::string& resources = "[secrets]") {
  auto parsed = parse_configuration(document(providers, resources), "enc.yaml");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed.value_or(Configuration{});
}
std::string problem_of(const std::string& text) {
  const auto parsed = parse_configuration(text, "enc.yaml");
  return parsed ? "none" : parsed.error().message;
}
const std::string kIdentity = "  - identity: {}\n";

// Made with libsodium 1.0.18 and Python's cryptography (OpenSSL).
TEST(EncryptionLayouts, ReadWhatOthersWrote) {
  const std::string key = from_hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
  const std::string nonce = from_hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
  EXPECT_EQ(to_hex(secretbox_seal(key, nonce, "")), "2539121d8e234e652d651fa4c8cff880");
  EXPECT_EQ(to_hex(secretbox_seal(key, nonce, "hello")), "1b294418500a75e29daebfe2764e569858fb08361b");
  const std::string box = secretbox_seal(key, nonce, counted(256));
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(box.data()), box.size(), digest);
  EXPECT_EQ(to_hex({reinterpret_cast<char*>(digest), sizeof digest}), "e04344d95ec57d5755897c60292cf0e4eee9f216d9c83701b55ce0163e7646a7");
  EXPECT_EQ(secretbox_open(key, nonce, box).value_or(""), counted(256));

  const auto cbc = make_aescbc({{"k", counted(32)}});
  const auto read = cbc->decrypt("k8s:enc:aescbc:v1:k:" + from_hex("000102030405060708090a0b0c0d0e0f1e99f42a87db9ef8ab2a289efc82058d"
                                                                   "9b6df3c3b806157e27663d659124bb7a"),
                                 "");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->value, R"({"kind":"Secret"})");
  const auto gcm = make_aesgcm({{"k", counted(32)}});
  const std::string sealed =
      "k8s:enc:aesgcm:v1:k:" + from_hex("000102030405060708090a0b3c20bd72ab81e021af12f2e8c38c0c4ffe01576bffce1b31ca208a1a4c57600062");
  EXPECT_EQ(gcm->decrypt(sealed, "//secrets/default/s").value_or(Plain{}).value, R"({"kind":"Secret"})");
  EXPECT_FALSE(gcm->decrypt(sealed, "//secrets/default/other")) << "a value moved to another object is not believed";
}

TEST(EncryptionLayouts, WhatIsChangedOrSealedByAnotherKeyIsNotBelieved) {
  for (const auto& make : {make_aescbc, make_aesgcm, make_secretbox}) {
    const auto provider = make({{"a", counted(32)}}), other = make({{"a", std::string(32, 'x')}});
    for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 1000U}) {
      const auto sealed = provider->encrypt(std::string(size, 'v'), "k");
      ASSERT_TRUE(sealed);
      EXPECT_TRUE(provider->wrote(*sealed));
      EXPECT_EQ(provider->decrypt(*sealed, "k").value_or(Plain{"?"}).value, std::string(size, 'v'));
      EXPECT_NE(*provider->encrypt(std::string(size, 'v'), "k"), *sealed) << "no two are alike";
      const auto wrong = other->decrypt(*sealed, "k");
      // CBC has no authenticator: a wrong key is mostly, not always, noticed by the padding.
      if (!sealed->starts_with("k8s:enc:aescbc")) {
        ASSERT_FALSE(wrong);
        EXPECT_NE(wrong.error().message.find("key \"a\""), std::string::npos);
        std::string changed = *sealed;
        changed.back() = static_cast<char>(changed.back() ^ 1);
        EXPECT_FALSE(provider->decrypt(changed, "k"));
      }
    }
    for (const std::string bad : {"", "a", "a:", "a:short"}) {
      const std::string prefix = provider->encrypt("", "k")->substr(0, provider->encrypt("", "k")->find(":v1:") + 4);
      EXPECT_FALSE(provider->decrypt(prefix + bad, "k")) << bad;
    }
  }
}

class EncryptedStores : public ::testing::Test {
 protected:
  /// Opens the same file with a configuration; the error of reading it, or empty.
  std::string open(const Configuration& configuration) {
    store_.reset();
    values_.clear();
    stale_ = std::make_shared<StaleKeys>();
    store_ = encrypt_store(store::open_or_fail(directory_.file("s.db")), configuration, stale_);
    const auto read = store_->read(0, [&](store::Record record) -> Result<void> {
      if (record.value != nullptr) values_[record.key] = *record.value;
      return {};
    });
    return read ? "" : read.error().message;
  }
  void write(const std::string& key, const std::string& value) {
    const auto next = store_->state().last_revision + 1;
    const store::Record record{next, next, previous_[key], key, std::make_shared<const std::string>(value)};
    previous_[key] = next;
    ASSERT_TRUE(store_->commit(std::span(&record, 1), true));
  }
  std::string raw(const std::string& key) {
    store_.reset();
    std::string out;
    const auto plain = store::open_or_fail(directory_.file("s.db"));
    EXPECT_TRUE(plain->read(0, [&](store::Record record) -> Result<void> {
      if (record.key == key && record.value != nullptr) out = *record.value;
      return {};
    }));
    return out;
  }
  store::TemporaryDirectory directory_;
  std::shared_ptr<StaleKeys> stale_;
  std::unique_ptr<store::Store> store_;
  std::map<std::string, std::string> values_;
  std::map<std::string, store::Revision> previous_;
  const std::string secret_ = "//secrets/default/s", map_ = "//configmaps/default/m", value_ = R"({"data":"hunter2"})";
};

TEST_F(EncryptedStores, OnlyWhatIsNamedIsEncryptedAndAllOfItIs) {
  ASSERT_EQ(open(configured(provider_text("aescbc", {"one"}) + kIdentity)), "");
  write(secret_, value_);
  write(map_, value_);
  const std::string stored = raw(secret_);
  EXPECT_TRUE(stored.starts_with("k8s:enc:aescbc:v1:one:")) << stored;
  EXPECT_EQ(stored.find("hunter2"), std::string::npos);
  EXPECT_EQ(raw(map_), value_);
  ASSERT_EQ(open(configured(provider_text("aescbc", {"one"}))), "");
  EXPECT_EQ(values_[secret_], value_);
}

TEST_F(EncryptedStores, KeysAreExchangedAndOldOnesCanGo) {
  ASSERT_EQ(open(configured(provider_text("secretbox", {"one"}))), "");
  write(secret_, value_);
  ASSERT_EQ(open(configured(provider_text("aesgcm", {"two"}) + provider_text("secretbox", {"one"}))), "");
  EXPECT_EQ(values_[secret_], value_);
  EXPECT_TRUE(stale_->contains(secret_));
  write(secret_, value_);
  EXPECT_FALSE(stale_->contains(secret_));
  EXPECT_TRUE(raw(secret_).starts_with("k8s:enc:aesgcm:v1:two:"));
  // What the old key wrote is still in the log, and of no account.
  ASSERT_EQ(open(configured(provider_text("aesgcm", {"two"}))), "");
  EXPECT_EQ(values_[secret_], value_);
}

TEST_F(EncryptedStores, AMissingOrWrongKeyStopsTheStartAndSaysWhatToDo) {
  ASSERT_EQ(open(configured(provider_text("aesgcm", {"one"}))), "");
  write(secret_, value_);
  const auto missing = open(configured(provider_text("aesgcm", {"two"})));
  EXPECT_NE(missing.find("secrets default/s cannot be read: it is encrypted with the aesgcm key \"one\", which is not there"),
            std::string::npos)
      << missing;
  EXPECT_NE(missing.find("back into enc.yaml"), std::string::npos);
  Configuration wrong;
  wrong.file = "enc.yaml";
  wrong.rules = {{{"secrets"}, {make_aesgcm({{"one", std::string(32, 'z')}})}}};
  EXPECT_NE(open(wrong).find("does not decrypt with the aesgcm key \"one\""), std::string::npos);
  EXPECT_NE(open({}).find("--encryption-provider-config"), std::string::npos) << "without the file";
  ASSERT_EQ(open(configured(provider_text("aesgcm", {"one"}))), "") << "nothing was changed";
  EXPECT_EQ(values_[secret_], value_);
}

TEST_F(EncryptedStores, PlainDataNeedsTheIdentityProvider) {
  ASSERT_EQ(open({}), "");
  write(secret_, value_);
  EXPECT_NE(open(configured(provider_text("aesgcm", {"one"}))).find("add `- identity: {}`"), std::string::npos);
  ASSERT_EQ(open(configured(provider_text("aesgcm", {"one"}) + kIdentity)), "");
  EXPECT_TRUE(stale_->contains(secret_));
}

TEST(EncryptionConfigurations, NameResourcesAsKubernetesDoes) {
  const auto applies = [](const std::string& resources, const char* group, const char* plural) {
    return configured(kIdentity, resources).rule_of(group, plural) != nullptr;
  };
  EXPECT_TRUE(applies("[secrets]", "", "secrets"));
  EXPECT_FALSE(applies("[secrets]", "x.example", "secrets"));
  EXPECT_TRUE(applies("['*.']", "", "configmaps"));
  EXPECT_FALSE(applies("['*.']", "apps", "deployments"));
  EXPECT_TRUE(applies("['*.apps']", "apps", "deployments"));
  EXPECT_TRUE(applies("[deployments.apps]", "apps", "deployments"));
  EXPECT_TRUE(applies("['*.*']", "apps", "deployments"));
}

TEST(EncryptionConfigurations, MistakesAreNamedByTheirPlaceAndKeysNeverShown) {
  const auto with = [](const std::string& providers) { return problem_of(document(providers)); };
  EXPECT_NE(with("  - aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}\n")
                .find("enc.yaml:6: resources[0].providers[0].aesgcm.keys[0].secret: has 5 bytes; aesgcm takes 16, 24 or 32"),
            std::string::npos)
      << with("  - aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}\n");
  EXPECT_EQ(with("  - aesgcm: {keys: [{name: a, secret: c2hvcnQ=}]}\n").find("short"), std::string::npos);
  EXPECT_NE(with("  - aesgcm: {keys: [{name: a, secret: '!'}]}\n").find("is not base64"), std::string::npos);
  EXPECT_NE(with("  - aesgcm: {keys: []}\n").find("keys: missing"), std::string::npos);
  EXPECT_NE(with("  - aesgmc: {}\n").find("did you mean \"aesgcm\"?"), std::string::npos);
  EXPECT_NE(with("  - {}\n").find("names no provider"), std::string::npos);
  EXPECT_NE(with("  - kms: {name: k, endpoint: unix:///s}\n").find("KMS v1 is off"), std::string::npos);
  EXPECT_NE(problem_of(document(kIdentity, "[secrets/status]")).find("subresources"), std::string::npos);
  EXPECT_NE(problem_of("kind: EncryptionConfiguration\n").find("apiVersion: missing"), std::string::npos);
}

class RewrittenData : public testing::ServerTest {
 protected:
  void SetUp() override {}
};

TEST_F(RewrittenData, AnUpdateThatChangesNothingIsWrittenWhereTheStoredFormIsOld) {
  bool is_stale = false;
  ServerOptions options;
  options.is_stale = [&](std::string_view key) { return is_stale && key == "//configmaps/default/a"; };
  start(std::move(options));
  const json::Value made = create(kMaps, config_map("a", R"({"k":"v"})"));
  const std::string path = std::string(kMaps) + "/a";
  json::Value again = made;
  json::erase(again, {"metadata", "resourceVersion"});
  EXPECT_EQ(text(put(path, again)->document(), {"metadata", "resourceVersion"}), text(made, {"metadata", "resourceVersion"}));
  is_stale = true;
  EXPECT_NE(text(put(path, again)->document(), {"metadata", "resourceVersion"}), text(made, {"metadata", "resourceVersion"}));
}

/// A resource that is taken out of the file is read as long as its key is in it, and counts as stale.
TEST_F(EncryptedStores, WhatIsNoLongerNamedIsReadByWhoeverWroteIt) {
  ASSERT_EQ(open(configured(provider_text("aesgcm", {"one"}))), "");
  write(secret_, value_);
  const std::string others = provider_text("secretbox", {"two"}) + provider_text("aesgcm", {"one"}) + kIdentity;
  ASSERT_EQ(open(configured(others, "[configmaps]")), "");
  EXPECT_EQ(values_[secret_], value_);
  EXPECT_TRUE(stale_->contains(secret_));
  write(secret_, value_);
  EXPECT_EQ(raw(secret_), value_) << "and is written plain from then on";
  ASSERT_EQ(open(configured(provider_text("secretbox", {"two"}) + kIdentity, "[configmaps]")), "");
  EXPECT_EQ(values_[secret_], value_);
  EXPECT_FALSE(stale_->contains(secret_));
}

// Made with Python's cryptography (OpenSSL).
TEST(EncryptionLayouts, KeysOfEachSizeAreTaken) {
  for (const auto& [size, sealed] :
       {std::pair(16, "000102030405060708090a0be84ecca7087fd56e698104e944c6042acee9e11d021d649aa9c8b1678888e5f55f"),
        std::pair(24, "000102030405060708090a0b9ddb49f2f7ddeb34f260b9e18dcca852737bb92e8d84ee5d77b069c10fef95cd4a")}) {
    const auto provider = make_aesgcm({{"k", counted(size)}});
    const auto read = provider->decrypt("k8s:enc:aesgcm:v1:k:" + from_hex(sealed), "//secrets/default/s");
    ASSERT_TRUE(read) << size;
    EXPECT_EQ(read->value, R"({"kind":"Secret"})") << size;
    EXPECT_EQ(provider->decrypt(*provider->encrypt("value", "k"), "k").value_or(Plain{}).value, "value") << size;
  }
}

}  // namespace
}  // namespace berth::apiserver::encryption
