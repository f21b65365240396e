// Keys that only a key management service knows (KMS v2): the envelope as Kubernetes has it, rotation, and a service that is not well.
#include "apiserver/encryption/kms.h"

#include <gtest/gtest.h>

#include "apiserver/encryption/store.h"
#include "net/grpc.h"
#include "tests/store/store_fixture.h"
#include "tests/support/usage.h"

namespace berth::apiserver::encryption::testing {
namespace {

using berth::test::comes_true;

/// A key management service to learn from: "encrypts" by AES-GCM with keys that it never gives away.
class ReferenceKms {
 public:
  explicit ReferenceKms(const std::string& socket) {
    auto started = net::GrpcService::start({.address = "unix://" + socket},
                                           [this](const std::string& method, const std::string& bytes) { return answer(method, bytes); });
    if (started) service_ = std::move(*started);
  }
  [[nodiscard]] bool runs() const { return service_ != nullptr; }
  void set_key(const std::string& id) {
    const std::lock_guard lock(mutex_);
    key_id_ = id;
  }
  void set_health(const std::string& text) {
    const std::lock_guard lock(mutex_);
    healthz_ = text;
  }
  /// What it says instead; nothing: the truth.
  using Lie = std::function<std::optional<net::GrpcAnswer>(const std::string& method, const std::string& bytes)>;
  void set_lie(Lie lie) {
    const std::lock_guard lock(mutex_);
    lie_ = std::move(lie);
  }
  std::atomic<int> decryptions{0}, encryptions{0};

 private:
  static std::string secret_of(const std::string& id) { return (id + std::string(32, 'k')).substr(0, 32); }

  net::GrpcAnswer answer(const std::string& method, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    if (lie_)
      if (auto lie = lie_(method, bytes)) return std::move(*lie);
    if (method == "/v2.KeyManagementService/Status") return encode_kms_status({"v2", healthz_, key_id_});
    if (method == "/v2.KeyManagementService/Encrypt") {
      ++encryptions;
      return encode_kms_encrypted(
          {*aesgcm_seal(secret_of(key_id_), *decode_kms_bytes(bytes), "seed"), key_id_, {{"region.example.com", "eu"}}});
    }
    if (method != "/v2.KeyManagementService/Decrypt") return std::unexpected(net::GrpcFailure{12, "no such method"});
    ++decryptions;
    const auto request = decode_kms_decrypt(bytes);
    EXPECT_EQ(request->annotations.at("region.example.com"), "eu");
    const auto seed = aesgcm_open(secret_of(request->key_id), request->ciphertext, "seed");
    if (!seed) return std::unexpected(net::GrpcFailure{3, "not of mine"});
    return encode_kms_bytes(*seed, "");
  }
  std::mutex mutex_;
  Lie lie_;
  std::string key_id_ = "key-1", healthz_ = "ok";
  std::unique_ptr<net::GrpcService> service_;
};

class Kms : public ::testing::Test {
 protected:
  void SetUp() override {
    service_ = std::make_unique<ReferenceKms>(directory_.file("kms.sock"));
    if (!service_->runs()) GTEST_SKIP() << "built without gRPC";
  }
  std::shared_ptr<KmsProvider> provider(std::chrono::milliseconds poll = std::chrono::hours(1),
                                        std::chrono::milliseconds good_for = std::chrono::hours(1)) {
    return make_kms({"vault", "unix://" + directory_.file("kms.sock"), std::chrono::seconds(3), poll, good_for});
  }
  store::TemporaryDirectory directory_;
  std::unique_ptr<ReferenceKms> service_;
};

TEST_F(Kms, TheEnvelopeIsKubernetes) {
  auto kms = provider();
  ASSERT_TRUE(kms->start());
  const auto one = kms->encrypt("secret", "/registry/secrets/default/a"), two = kms->encrypt("secret", "/registry/secrets/default/a");
  ASSERT_TRUE(one && two);
  EXPECT_EQ(service_->encryptions, 1) << "a seed for all, not a call for each";
  constexpr std::string_view kBegin = "k8s:enc:kms:v2:vault:";
  ASSERT_TRUE(one->starts_with(kBegin));
  const auto object = decode_encrypted_object(std::string_view(*one).substr(kBegin.size()));
  ASSERT_TRUE(object);
  EXPECT_EQ(object->key_id, "key-1");
  EXPECT_EQ(object->type, 1);
  EXPECT_EQ(object->data.size(), 32U + 12 + 6 + 16);
  EXPECT_NE(*one, *two) << "every value has a key of its own";
  // Another server, with the same service, reads it.
  auto other = provider();
  const auto read = other->decrypt(*one, "/registry/secrets/default/a");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->value, "secret");
  ASSERT_TRUE(other->decrypt(*two, "/registry/secrets/default/a"));
  EXPECT_EQ(service_->decryptions, 1) << "a seed is asked for once";
  EXPECT_FALSE(other->decrypt(*one, "/registry/secrets/default/b")) << "what was moved to another name is not believed";
  EXPECT_FALSE(other->decrypt(one->substr(0, one->size() - 3), "/registry/secrets/default/a"));
  EXPECT_FALSE(other->decrypt("k8s:enc:kms:v2:vault:nonsense", "x"));
}

/// Bytes that Go's protobuf makes of such an object.
TEST(KmsMessages, AreProtobuf) {
  EncryptedObject object{"d", "k", "s", {{"a", "b"}}, 1};
  EXPECT_EQ(encode_encrypted_object(object), std::string("\x0a\x01"
                                                         "d\x12\x01"
                                                         "k\x1a\x01"
                                                         "s\x22\x06\x0a\x01"
                                                         "a\x12\x01"
                                                         "b\x28\x01"));
  const auto back = decode_encrypted_object(encode_encrypted_object(object));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->annotations, object.annotations);
  EXPECT_EQ(back->type, 1);
  std::string text = encode_encrypted_object(object);
  for (std::size_t i = 0; i < text.size(); ++i) static_cast<void>(decode_encrypted_object(std::string_view(text).substr(0, i)));
  for (char& c : text) {
    c = static_cast<char>(c ^ 0xff);
    static_cast<void>(decode_encrypted_object(text));
  }
}

TEST_F(Kms, AnotherKeyOfTheServiceMakesWhatIsStoredStale) {
  auto kms = provider(std::chrono::milliseconds(20));
  std::atomic<int> told{0};
  kms->on_rotation([&] { ++told; });
  ASSERT_TRUE(kms->start());
  const auto before = kms->encrypt("secret", "a");
  EXPECT_FALSE(kms->decrypt(*before, "a")->is_stale);
  service_->set_key("key-2");
  ASSERT_TRUE(comes_true([&] { return told == 1; }));
  EXPECT_TRUE(kms->decrypt(*before, "a")->is_stale);
  EXPECT_EQ(kms->decrypt(*before, "a")->value, "secret");
  EXPECT_FALSE(kms->decrypt(*kms->encrypt("secret", "a"), "a")->is_stale);
}

TEST_F(Kms, AServiceThatIsNotWellEndsWritingNotReading) {
  auto kms = provider(std::chrono::milliseconds(20), std::chrono::milliseconds(100));
  EXPECT_NE(kms->trouble(), "") << "nothing was asked yet";
  service_->set_health("sealed");
  const auto refused = kms->start();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it says of itself \"sealed\""), std::string::npos) << refused.error().message;
  service_->set_health("ok");
  ASSERT_TRUE(kms->start());
  const auto stored = kms->encrypt("secret", "a");
  EXPECT_EQ(kms->trouble(), "");
  service_->set_health("sealed");
  EXPECT_TRUE(comes_true([&] { return !kms->trouble().empty(); }));
  EXPECT_TRUE(kms->decrypt(*stored, "a")) << "what is known is read";
  service_->set_health("ok");
  EXPECT_TRUE(comes_true([&] { return kms->trouble().empty(); }));
  service_.reset();
  const auto gone = provider()->start();
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("kms.sock"), std::string::npos) << gone.error().message;
}

/// Whatever it says: that is told in a sentence of bounded length, and what was known before goes on.
TEST_F(Kms, AHostileServiceIsToldOfAndKeepsNothing) {
  const auto huge = [](std::size_t bytes) { return std::string(bytes, 'x'); };
  const auto is = [](const std::string& method, const char* name) { return method.ends_with(name); };
  struct Case {
    const char* name;
    ReferenceKms::Lie lie;
    const char* told;
  };
  const std::vector<Case> cases = {
      {"an answer that is no message", [](auto&, auto&) { return net::GrpcAnswer(std::string("\xff\xff\xff\xff")); }, ""},
      {"an answer of 64 MiB", [&](auto&, auto&) { return net::GrpcAnswer(huge(64U << 20)); }, "larger than max"},
      {"a version of a megabyte",
       [&](auto&, auto&) {
         return net::GrpcAnswer(encode_kms_status({huge(1U << 20), "ok", "k"}));
       },
       "it speaks version"},
      {"a key id of 2 kB",
       [&](auto&, auto&) {
         return net::GrpcAnswer(encode_kms_status({"v2", "ok", huge(2048)}));
       },
       "longer than 1 kB"},
      {"a failure of a megabyte",
       [&](auto&, auto&) {
         return net::GrpcAnswer(std::unexpected(net::GrpcFailure{13, huge(1U << 20)}));
       },
       ""},
      {"a seed of 3 MB",
       [&](auto& method, auto&) {
         if (!is(method, "/Encrypt")) return std::optional<net::GrpcAnswer>();
         return std::optional(net::GrpcAnswer(encode_kms_encrypted({huge(3'000'000), "key-1", {}})));
       },
       "no ciphertext of at most 1 kB"},
      {"another key's id",
       [&](auto& method, auto&) {
         if (!is(method, "/Encrypt")) return std::optional<net::GrpcAnswer>();
         return std::optional(net::GrpcAnswer(encode_kms_encrypted({"c", "key-2", {}})));
       },
       "it encrypts with the key \"key-2\", but says that \"key-1\" is in use"}};
  for (const Case& one : cases) {
    service_->set_lie(one.lie);
    const auto refused = provider()->start();
    ASSERT_FALSE(refused) << one.name;
    EXPECT_NE(refused.error().message.find(one.told), std::string::npos) << one.name << ": " << refused.error().message.substr(0, 2000);
    EXPECT_LT(refused.error().message.size(), 20'000U) << one.name;
  }
  service_->set_lie({});
  auto kms = provider();
  ASSERT_TRUE(kms->start());
  const auto stored = kms->encrypt("secret", "a");
  // Of what others stored, it gives keys of megabytes: kept, 64 of them would be 200 MB.
  service_->set_lie([&](auto& method, auto&) {
    if (!is(method, "/Decrypt")) return std::optional<net::GrpcAnswer>();
    return std::optional(net::GrpcAnswer(encode_kms_bytes(huge(3'000'000), "")));
  });
  auto other = provider();
  const auto read = other->decrypt(*stored, "a");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("gave 3000000 bytes for a key"), std::string::npos) << read.error().message;
  EXPECT_EQ(kms->decrypt(*stored, "a")->value, "secret");
  service_->set_lie({});
  EXPECT_TRUE(other->decrypt(*stored, "a")) << "nothing of it is remembered";
}

TEST(KmsConfiguration, MistakesAreNamed) {
  const auto error_of = [](const std::string& kms) {
    const auto read = parse_configuration(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - "
        "kms: " +
            kms + "\n  - identity: {}\n",
        "enc.yaml");
    return read ? std::string() : read.error().message;
  };
  EXPECT_EQ(error_of("{apiVersion: v2, name: vault, endpoint: 'unix:///run/kms.sock', timeout: 5s}"), "");
  EXPECT_NE(error_of("{name: vault, endpoint: 'unix:///run/kms.sock'}").find("KMS v1 is off"), std::string::npos);
  EXPECT_NE(error_of("{apiVersion: v2, endpoint: 'unix:///run/kms.sock'}").find("name"), std::string::npos);
  EXPECT_NE(error_of("{apiVersion: v2, name: vault, endpoint: 'tcp://h:1'}").find("no socket on this machine"), std::string::npos);
  EXPECT_NE(error_of("{apiVersion: v2, name: vault, endpoint: 'unix:///s', cachesize: 5}").find("belongs to v1"), std::string::npos);
  EXPECT_NE(error_of("{apiVersion: v2, name: vault, endpoint: 'unix:///s', timeout: soon}").find("not a duration"), std::string::npos);
  for (const char* none : {"0s", "-1s"})
    EXPECT_NE(error_of(fmt::format("{{apiVersion: v2, name: vault, endpoint: 'unix:///s', timeout: {}}}", none)).find("above zero"),
              std::string::npos)
        << none;
  EXPECT_NE(error_of("{apiVersion: v2, name: 'a:b', endpoint: 'unix:///s'}").find("must not have a colon"), std::string::npos);
  EXPECT_NE(error_of("{apiVersion: v3, name: vault, endpoint: 'unix:///s'}").find("v2 is meant"), std::string::npos);
}

TEST(KmsConfiguration, AfterARotationTheObjectsOfThatServiceAreStaleUntilWritten) {
  const auto read = parse_configuration(
      "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - kms: "
      "{apiVersion: v2, name: vault, endpoint: 'unix:///nowhere'}\n- resources: [configmaps]\n  providers:\n  - identity: {}\n",
      "enc.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_NE(read->trouble_with("", "secrets"), "");
  EXPECT_EQ(read->trouble_with("", "configmaps"), "");
  EXPECT_EQ(read->trouble_with("", "pods"), "");
  StaleKeys stale;
  stale.set_all(read->written_by(*read->key_services.at(0)));
  EXPECT_TRUE(stale.contains("//secrets/default/a"));
  EXPECT_FALSE(stale.contains("//configmaps/default/a"));
  stale.set("//secrets/default/a", false);
  EXPECT_FALSE(stale.contains("//secrets/default/a"));
  EXPECT_TRUE(stale.contains("//secrets/default/b"));
}

/// Numbers of other sizes, which a later version may send, are passed over.
TEST(KmsMessages, WhatNobodyKnowsIsPassedOver) {
  const std::string known = encode_kms_status({"v2", "ok", "key-1"});
  const std::string eight = std::string("\x79", 1) + std::string(8, '\7'), four = std::string("\x7d", 1) + std::string(4, '\7'),
                    varint = std::string("\x78\x96\x01", 3), text = std::string("\x7a\x03", 2) + "abc";
  for (const std::string& more : {eight, four, varint, text})
    for (const std::string& whole : {more + known, known + more}) {
      const auto read = decode_kms_status(whole);
      ASSERT_TRUE(read);
      EXPECT_EQ(read->version, "v2");
      EXPECT_EQ(read->healthz, "ok");
      EXPECT_EQ(read->key_id, "key-1");
    }
  for (const std::string& cut : {eight.substr(0, 8), four.substr(0, 4), varint.substr(0, 2), text.substr(0, 4)})
    EXPECT_FALSE(decode_kms_status(known + cut));
}

TEST_F(Kms, SeedsOfManyKeysAreNotKeptForEver) {
  std::vector<std::string> stored;
  for (int i = 0; i < 70; ++i) {
    service_->set_key(fmt::format("key-{}", i));
    auto kms = provider();
    ASSERT_TRUE(kms->start());
    stored.push_back(*kms->encrypt("secret", "a"));
  }
  auto reader = provider();
  for (const std::string& one : stored) ASSERT_TRUE(reader->decrypt(one, "a"));
  EXPECT_EQ(service_->decryptions, 70);
  ASSERT_TRUE(reader->decrypt(stored.back(), "a"));
  EXPECT_EQ(service_->decryptions, 70) << "what is used is remembered";
  ASSERT_TRUE(reader->decrypt(stored.front(), "a"));
  EXPECT_EQ(service_->decryptions, 71) << "and what is long past was let go";
}

}  // namespace
}  // namespace berth::apiserver::encryption::testing
