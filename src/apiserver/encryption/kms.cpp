#include "apiserver/encryption/kms.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <thread>

#include "base/go/strings.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/grpc.h"

namespace berth::apiserver::encryption {
namespace {

constexpr std::size_t kSeedBytes = 32, kInfoBytes = 32;
constexpr std::size_t kMaxKeyIdBytes = 1024, kMaxSeedTextBytes = 1024, kMaxAnnotationBytes = 32 * 1024;
constexpr std::size_t kMostSeedsKept = 64;
constexpr const char* kServiceName = "/v2.KeyManagementService/";

std::string random_text(std::size_t count) {
  std::string out(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(count)) != 1) std::abort();  // As in transform.cpp.
  return out;
}

std::string request_uid() {
  const auto bytes = random_text(16);
  return hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

/// RFC 5869's second step, for one block: the key of one value.
std::string expand(const std::string& seed, std::string_view info) {
  const std::string text = std::string(info) + '\x01';
  std::string out(32, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), seed.data(), static_cast<int>(seed.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  return out;
}

class KmsV2 final : public KmsProvider {
 public:
  explicit KmsV2(KmsOptions options) : options_(std::move(options)), prefix_(fmt::format("{}kms:v2:{}:", kPrefix, options_.name)) {}
  ~KmsV2() override {
    {
      const MutexLock lock(mutex_);
      is_stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  KmsV2(const KmsV2&) = delete;
  KmsV2& operator=(const KmsV2&) = delete;

  [[nodiscard]] const std::string& name() const override { return options_.name; }
  [[nodiscard]] bool wrote(std::string_view stored) const override { return stored.starts_with(prefix_); }

  Result<void> start() override {
    {
      const MutexLock lock(mutex_);
      if (state_) return {};
    }
    if (auto looked = look(); !looked) return looked;
    thread_ = std::thread([this] { run(); });
    return {};
  }

  [[nodiscard]] std::string trouble() const override {
    const MutexLock lock(mutex_);
    if (!state_) return fmt::format("the key management service {} ({}) has not answered yet", options_.name, options_.endpoint);
    const auto now = std::chrono::steady_clock::now();
    if (now < state_->good_until) return {};
    return fmt::format("the key management service {} ({}) has not been well for {} minutes: {}", options_.name, options_.endpoint,
                       std::chrono::duration_cast<std::chrono::minutes>(options_.good_for).count(), last_failure_);
  }

  void on_rotation(std::function<void()> told) override {
    const MutexLock lock(mutex_);
    told_ = std::move(told);
  }

  [[nodiscard]] Result<std::string> encrypt(std::string_view value, std::string_view context) const override {
    std::shared_ptr<const State> state;
    {
      const MutexLock lock(mutex_);
      state = state_;
    }
    if (state == nullptr) return fail(ErrorCode::kUnavailable, fmt::format("the key management service {} gave no key", options_.name));
    EncryptedObject object = state->object;
    const std::string info = random_text(kInfoBytes);
    auto sealed = aesgcm_seal(expand(state->seed, info), value, context);
    if (!sealed) return sealed;
    object.data = info + *sealed;
    return prefix_ + encode_encrypted_object(object);
  }

  [[nodiscard]] Result<Plain> decrypt(std::string_view stored, std::string_view context) const override {
    const auto object = decode_encrypted_object(stored.substr(prefix_.size()));
    if (!object) return std::unexpected(object.error());
    const auto seed = seed_of(*object);
    if (!seed) return std::unexpected(seed.error());
    std::string key = *seed;
    std::string_view sealed = object->data;
    if (object->type == 1) {
      if (sealed.size() < kInfoBytes) return damaged(*object);
      key = expand(*seed, sealed.substr(0, kInfoBytes));
      sealed.remove_prefix(kInfoBytes);
    }
    auto value = aesgcm_open(key, sealed, context);
    if (!value) return damaged(*object);
    const MutexLock lock(mutex_);
    return Plain{std::move(*value), state_ != nullptr && (object->key_id != state_->object.key_id || object->type != 1)};
  }

 private:
  struct State {
    std::string seed;
    EncryptedObject object;  ///< Without data.
    mutable std::chrono::steady_clock::time_point good_until;
  };

  [[nodiscard]] std::unexpected<Error> damaged(const EncryptedObject& object) const {
    return fail(ErrorCode::kCorrupt,
                fmt::format("it does not decrypt with what the key management service {} gives for its key \"{}\": the "
                            "data is damaged, or belongs to another object",
                            options_.name, object.key_id));
  }

  /// A call, connecting at the first.
  Result<std::string> call(const std::string& method, const std::string& request) const {
    net::GrpcCalls* calls = nullptr;
    {
      const MutexLock lock(calls_mutex_);
      if (calls_ == nullptr) {
        auto opened = net::GrpcCalls::open({.target = options_.endpoint});
        if (!opened) return std::unexpected(opened.error());
        calls_ = std::move(*opened);
      }
      calls = calls_.get();
    }
    const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout).count();
    auto answer = calls->call(kServiceName + method, request, static_cast<int>(timeout));
    if (!answer)
      return fail(ErrorCode::kUnavailable, fmt::format("the key management service {} ({}), {}: {}", options_.name, options_.endpoint,
                                                       method, answer.error().message));
    return std::move(*answer);
  }

  /// The seed of a stored value: asked of the service once.
  Result<std::string> seed_of(const EncryptedObject& object) const {
    {
      const MutexLock lock(mutex_);
      if (state_ != nullptr && state_->object.encrypted_seed == object.encrypted_seed) return state_->seed;
      if (const auto found = seeds_.find(object.encrypted_seed); found != seeds_.end()) return found->second;
    }
    const auto answer = call("Decrypt", encode_kms_decrypt({object.encrypted_seed, request_uid(), object.key_id, object.annotations}));
    if (!answer) return std::unexpected(answer.error());
    auto seed = decode_kms_bytes(*answer);
    if (!seed) return seed;
    if (seed->size() < kSeedBytes || seed->size() > kMaxSeedTextBytes)
      return fail(ErrorCode::kCorrupt, fmt::format("the key management service {} gave {} bytes for a key", options_.name, seed->size()));
    const MutexLock lock(mutex_);
    if (seeds_.size() >= kMostSeedsKept) seeds_.clear();
    seeds_[object.encrypted_seed] = *seed;
    return seed;
  }

  /// Asks how the service is and, when it has another key, for a new seed.
  Result<void> look() {
    const auto answer = call("Status", "");
    if (!answer) return std::unexpected(answer.error());
    const auto status = decode_kms_status(*answer);
    if (!status) return std::unexpected(status.error());
    // What it says of itself is shown, but not by the megabyte.
    const auto shown = [](std::string_view text) { return go::quote(text.substr(0, 256)); };
    const auto unfit = [&](const std::string& why) {
      return fail(ErrorCode::kUnavailable, fmt::format("the key management service {} ({}): {}", options_.name, options_.endpoint, why));
    };
    if (status->version != "v2" && status->version != "v2beta1")
      return unfit(fmt::format("it speaks version {}, not v2", shown(status->version)));
    if (status->healthz != "ok") return unfit(fmt::format("it says of itself {}, not \"ok\"", shown(status->healthz)));
    if (status->key_id.empty() || status->key_id.size() > kMaxKeyIdBytes) return unfit("its key id is empty, or longer than 1 kB");
    const auto good_until = std::chrono::steady_clock::now() + options_.good_for;
    {
      const MutexLock lock(mutex_);
      if (state_ != nullptr && state_->object.key_id == status->key_id) {
        state_->good_until = good_until;
        return {};
      }
    }
    auto next = std::make_shared<State>();
    next->seed = random_text(kSeedBytes);
    next->good_until = good_until;
    const auto encrypted = call("Encrypt", encode_kms_bytes(next->seed, request_uid()));
    if (!encrypted) return std::unexpected(encrypted.error());
    auto sealed = decode_kms_encrypted(*encrypted);
    if (!sealed) return std::unexpected(sealed.error());
    std::size_t annotations = 0;
    for (const auto& [key, value] : sealed->annotations) annotations += key.size() + value.size();
    if (sealed->ciphertext.empty() || sealed->ciphertext.size() > kMaxSeedTextBytes || sealed->key_id.empty() ||
        sealed->key_id.size() > kMaxKeyIdBytes || annotations > kMaxAnnotationBytes)
      return unfit("what it encrypted has no ciphertext of at most 1 kB, no key id, or more than 32 kB of annotations");
    if (sealed->key_id != status->key_id)
      return unfit(fmt::format("it encrypts with the key {}, but says that {} is in use", shown(sealed->key_id), shown(status->key_id)));
    next->object = {"", sealed->key_id, sealed->ciphertext, sealed->annotations, 1};
    std::function<void()> told;
    {
      const MutexLock lock(mutex_);
      if (state_ != nullptr) {
        if (seeds_.size() >= kMostSeedsKept) seeds_.clear();
        seeds_[state_->object.encrypted_seed] = state_->seed;
        told = told_;
      }
      state_ = std::move(next);
    }
    if (told) {
      log::info("server",
                "the key management service {} encrypts with the key {} from now on; `kubectl get RESOURCE -A -o json | "
                "kubectl replace -f -` rewrites what is stored",
                options_.name, shown(sealed->key_id));
      told();
    }
    return {};
  }

  void run() {
    MutexLock lock(mutex_);
    while (!wake_.wait_for(mutex_, options_.poll, [this]() BERTH_REQUIRES(mutex_) { return is_stopping_; })) {
      lock.unlock();
      const auto looked = look();
      if (!looked) log::warning("server", "{}", looked.error().message);
      lock.lock();
      last_failure_ = looked ? "" : looked.error().message;
    }
  }

  const KmsOptions options_;
  const std::string prefix_;
  mutable Mutex calls_mutex_;
  mutable std::unique_ptr<net::GrpcCalls> calls_ BERTH_GUARDED_BY(calls_mutex_);
  mutable Mutex mutex_;  ///< Guards what follows.
  CondVar wake_;
  bool is_stopping_ BERTH_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const State> state_ BERTH_GUARDED_BY(mutex_);
  std::string last_failure_ BERTH_GUARDED_BY(mutex_);
  mutable std::map<std::string, std::string> seeds_
      BERTH_GUARDED_BY(mutex_);  ///< By their encrypted form: those before, and those of others.
  std::function<void()> told_ BERTH_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace

std::shared_ptr<KmsProvider> make_kms(KmsOptions options) { return std::make_shared<KmsV2>(std::move(options)); }

}  // namespace berth::apiserver::encryption
