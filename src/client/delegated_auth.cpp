#include "client/delegated_auth.h"

#include <openssl/sha.h>

#include "base/mutex.h"

namespace berth::client {
namespace {

constexpr Duration kKept = std::chrono::seconds(10);
constexpr std::size_t kMostKept = 1000;

struct User {
  std::string name, uid;
  std::vector<std::string> groups;
};

/// Answers by question for a while. Guarded by its owner.
template <typename T>
class Kept {
 public:
  std::optional<T> find(const std::string& key, TimePoint now) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.second <= now) return std::nullopt;
    return at->second.first;
  }
  void put(const std::string& key, T value, TimePoint now) {
    if (entries_.size() >= kMostKept) std::erase_if(entries_, [&](const auto& entry) { return entry.second.second <= now; });
    if (entries_.size() >= kMostKept) entries_.clear();
    entries_[key] = {std::move(value), now + kKept};
  }

 private:
  std::map<std::string, std::pair<T, TimePoint>> entries_;
};

/// Tokens are kept as digests only.
std::string digest(std::string_view text) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::optional<std::string> bearer_token(const net::HttpRequest& request) {
  const std::string_view value = request.headers.get("Authorization");
  constexpr std::string_view kScheme = "Bearer ";
  if (value.size() <= kScheme.size() || !net::equal_ignoring_case(value.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return std::string(value.substr(kScheme.size()));
}

User user_of_review(const json::Value& review) {
  User user;
  user.name = json::get_string(review, {"status", "user", "username"});
  user.uid = json::get_string(review, {"status", "user", "uid"});
  if (const auto* groups = json::find(review, {"status", "user", "groups"}); groups != nullptr && groups->is_array())
    for (const auto& group : groups->get_array())
      if (group.is_string()) user.groups.emplace_back(group.get_string());
  return user;
}

}  // namespace

struct DelegatedAuth::State : std::enable_shared_from_this<State> {
  using Done = std::function<void(std::optional<Refusal>)>;
  State(std::shared_ptr<Transport> transport, const Clock& clock_in) : clock(clock_in) {
    if (transport) client.emplace(std::move(transport), nullptr, "berth-delegated-auth");
  }

  void authorize(const User& user, const std::string& verb, const std::string& path, Done done) {
    for (const std::string& group : user.groups)
      if (group == "system:masters") return done(std::nullopt);
    const Refusal refusal{403, fmt::format("forbidden: User \"{}\" cannot {} path \"{}\"", user.name, verb, path)};
    std::string key = verb + '\0' + path + '\0' + user.name;
    for (const std::string& group : user.groups) key += '\0' + group;
    if (const auto known = find(&State::decisions, key)) return done(*known ? std::nullopt : std::optional(refusal));
    if (!client) return done(refusal);
    json::Array groups;
    for (const std::string& group : user.groups) groups.push_back(json::Value(group));
    json::Value review = json::Object{{"apiVersion", "authorization.k8s.io/v1"},
                                      {"kind", "SubjectAccessReview"},
                                      {"spec", json::Object{{"user", user.name},
                                                            {"uid", user.uid},
                                                            {"groups", std::move(groups)},
                                                            {"nonResourceAttributes", json::Object{{"path", path}, {"verb", verb}}}}}};
    client->create({"authorization.k8s.io", "v1", "subjectaccessreviews"}, "", review,
                   [weak = weak_from_this(), key, refusal, done = std::move(done)](ApiResult<json::Value> answer) {
                     const auto self = weak.lock();
                     if (!self || !answer) return done(Refusal{500, "the API server could not be asked whether this is allowed"});
                     const auto* allowed = json::find(*answer, {"status", "allowed"});
                     const bool yes = allowed != nullptr && allowed->is_bool() && allowed->get_bool();
                     {
                       const MutexLock lock(self->mutex);
                       self->decisions.put(key, yes, self->clock.now());
                     }
                     done(yes ? std::nullopt : std::optional(refusal));
                   });
  }

  void authenticate_token(const std::string& token, std::function<void(std::optional<User>)> done) {
    const std::string key = digest(token);
    if (auto known = find(&State::users, key)) return done(std::move(*known));
    if (!client) return done(std::nullopt);
    const json::Value review =
        json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"spec", json::Object{{"token", token}}}};
    client->create({"authentication.k8s.io", "v1", "tokenreviews"}, "", review,
                   [weak = weak_from_this(), key, done = std::move(done)](ApiResult<json::Value> answer) {
                     const auto self = weak.lock();
                     if (!self || !answer) return done(std::nullopt);
                     const auto* authenticated = json::find(*answer, {"status", "authenticated"});
                     std::optional<User> user;
                     if (authenticated != nullptr && authenticated->is_bool() && authenticated->get_bool()) user = user_of_review(*answer);
                     {
                       const MutexLock lock(self->mutex);
                       self->users.put(key, user, self->clock.now());
                     }
                     done(std::move(user));
                   });
  }

  template <typename T>
  std::optional<T> find(Kept<T> State::*kept, const std::string& key) {
    const MutexLock lock(mutex);
    return (this->*kept).find(key, clock.now());
  }

  Mutex mutex;
  const Clock& clock;
  std::optional<Client> client;
  Kept<std::optional<User>> users BERTH_GUARDED_BY(mutex);  ///< By the token's digest; none: a bad token.
  Kept<bool> decisions BERTH_GUARDED_BY(mutex);
};

DelegatedAuth::DelegatedAuth(std::shared_ptr<Transport> transport, const Clock& clock)
    : state_(std::make_shared<State>(std::move(transport), clock)) {}
DelegatedAuth::~DelegatedAuth() = default;

void DelegatedAuth::check(const net::HttpRequest& request, const std::string& verb, std::function<void(std::optional<Refusal>)> done) {
  if (request.peer) {
    User user{request.peer->common_name, "", request.peer->organizations};
    user.groups.emplace_back("system:authenticated");
    return state_->authorize(user, verb, request.path, std::move(done));
  }
  const auto token = bearer_token(request);
  if (!token) return state_->authorize({"system:anonymous", "", {"system:unauthenticated"}}, verb, request.path, std::move(done));
  state_->authenticate_token(*token,
                             [weak = std::weak_ptr(state_), verb, path = request.path, done = std::move(done)](std::optional<User> user) {
                               const auto state = weak.lock();
                               if (!state || !user) return done(Refusal{401, "Unauthorized"});
                               state->authorize(*user, verb, path, done);
                             });
}

}  // namespace berth::client
