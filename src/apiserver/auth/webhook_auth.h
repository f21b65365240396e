// Web services that are asked who somebody is and what he may: TokenReview and SubjectAccessReview, with caches of the answers
// (apiserver/plugin/pkg/authenticator/token/webhook, .../authorizer/webhook).
#pragma once
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/auth/interfaces.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mutex.h"
#include "cel/cel.h"
#include "net/client.h"

namespace berth::apiserver::auth {

/// Posts a review and gives back the one that came; the error says why there is none. Waits.
using PostReview = std::function<Result<json::Value>(const json::Value& review)>;
/// `path` of the URL is where reviews go. Tried again after failures that may pass, with a growing pause, within the timeout.
Result<PostReview> https_reviews(net::ClientConfig config, std::string bearer_token, Duration timeout);

/// What a question of any length is remembered by.
std::string digest_of(std::string_view question);

/// Answers for a time, at most so many; the longest unused goes first. Of a question its digest is kept. Thread-safe.
template <typename T>
class AnswerCache {
 public:
  explicit AnswerCache(const Clock& clock, std::size_t most = 8192) : clock_(clock), most_(most) {}
  [[nodiscard]] std::optional<T> find(const std::string& question) {
    const std::string key = digest_of(question);
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    // A clock that was set back makes nothing last longer.
    if (const TimePoint now = clock_.now(); found->second->ends <= now || now < found->second->since) {
      order_.erase(found->second);
      entries_.erase(found);
      return std::nullopt;
    }
    order_.splice(order_.begin(), order_, found->second);
    return found->second->value;
  }
  void put(const std::string& question, T value, Duration life) {
    if (life <= Duration::zero()) return;
    const std::string key = digest_of(question);
    const MutexLock lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      order_.erase(found->second);
      entries_.erase(found);
    }
    const TimePoint now = clock_.now();
    order_.push_front({key, std::move(value), now, now + life});
    entries_[key] = order_.begin();
    if (entries_.size() <= most_) return;
    entries_.erase(order_.back().key);
    order_.pop_back();
  }

 private:
  struct Entry {
    std::string key;
    T value;
    TimePoint since, ends;
  };
  const Clock& clock_;
  const std::size_t most_;
  Mutex mutex_;
  std::list<Entry> order_ BERTH_GUARDED_BY(mutex_);
  std::unordered_map<std::string, typename std::list<Entry>::iterator> entries_ BERTH_GUARDED_BY(mutex_);
};

/// Thread-safe.
class WebhookAuthenticator {
 public:
  WebhookAuthenticator(PostReview post, const Clock& clock, Duration cache_ttl) : post_(std::move(post)), cache_(clock), ttl_(cache_ttl) {}
  /// nullopt: has to be asked.
  [[nodiscard]] std::optional<Result<TokenUser>> remembered(const std::string& token, const std::vector<std::string>& audiences);
  /// Where the service names no audiences the token is for all that were asked about. The error: the token is not known there or is for
  /// none of them, or nobody could be asked.
  Result<TokenUser> authenticate(const std::string& token, const std::vector<std::string>& audiences);

 private:
  PostReview post_;
  AnswerCache<Result<TokenUser>> cache_;
  const Duration ttl_;
};

struct WebhookAuthorizerOptions {
  std::string name;
  PostReview post;
  Duration authorized_ttl = std::chrono::minutes(5), unauthorized_ttl = std::chrono::seconds(30);
  bool failure_denies = false;
  std::vector<std::pair<std::string, cel::Program>> conditions;  ///< Text and program; all must hold for it to be asked.
};
enum class Verdict { kAllow, kDeny, kNoOpinion };
struct WebhookVerdict {
  Verdict verdict = Verdict::kNoOpinion;
  std::string reason;
};
/// Thread-safe.
class WebhookAuthorizer {
 public:
  WebhookAuthorizer(WebhookAuthorizerOptions options, const Clock& clock) : options_(std::move(options)), cache_(clock) {}
  [[nodiscard]] const std::string& name() const { return options_.name; }
  /// nullopt: the service has to be asked.
  [[nodiscard]] std::optional<WebhookVerdict> remembered(const UserInfo& user, const Attributes& attributes);
  WebhookVerdict authorize(const UserInfo& user, const Attributes& attributes);

 private:
  /// nullopt: the conditions hold, so it is asked.
  [[nodiscard]] std::optional<WebhookVerdict> judge_conditions(const json::Value& spec) const;
  WebhookAuthorizerOptions options_;
  AnswerCache<WebhookVerdict> cache_;
};

/// The environment of matchConditions: `request`, a SubjectAccessReviewSpec.
cel::Environment access_review_environment();
/// authorization.k8s.io/v1 SubjectAccessReviewSpec of what is asked.
json::Value access_review_spec(const UserInfo& user, const Attributes& attributes);

}  // namespace berth::apiserver::auth
