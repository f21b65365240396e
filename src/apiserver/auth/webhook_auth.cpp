#include "apiserver/auth/webhook_auth.h"

#include <openssl/sha.h>

#include <future>

#include "base/log.h"

namespace berth::apiserver::auth {
namespace {

UserInfo user_of_review(const json::Value& user) {
  UserInfo out;
  out.name = json::get_string(user, {"username"});
  out.uid = json::get_string(user, {"uid"});
  for (const json::Value& group : json::get_array(user, {"groups"}))
    if (group.is_string()) out.groups.emplace_back(json::as_view(group));
  for (const auto& [key, values] : json::get_object(user, {"extra"})) {
    if (!values.is_array()) continue;
    auto& list = out.extra[std::string(key)];
    for (const json::Value& value : values.get_array())
      if (value.is_string()) list.emplace_back(json::as_view(value));
  }
  return out;
}

std::string token_key(const std::string& token, const std::vector<std::string>& audiences) {
  return fmt::format("{}\n{}", token, fmt::join(audiences, "\n"));
}

/// Of what a caller decides in a question: longer ones are asked each time, as in Kubernetes.
constexpr std::size_t kLongestRemembered = 10'000;

}  // namespace

std::string digest_of(std::string_view question) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(question.data()), question.size(), reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

Result<PostReview> https_reviews(net::ClientConfig config, std::string bearer_token, Duration timeout) {
  // The URL's path goes before every request's, which is empty here.
  config.timeout_ms = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count());
  config.max_answer_bytes = std::size_t{6} << 20;  // As an admission webhook's.
  const std::string url = config.url;
  auto made = net::HttpClient::create(std::move(config));
  if (!made) return std::unexpected(made.error());
  return [client = std::shared_ptr<net::HttpClient>(std::move(*made)), token = std::move(bearer_token), url,
          timeout](const json::Value& review) -> Result<json::Value> {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::string trouble;
    for (std::chrono::milliseconds pause(500);; pause = pause * 3 / 2) {
      net::HttpRequest request;
      request.method = "POST";
      request.headers.set("Content-Type", "application/json");
      request.headers.set("Accept", "application/json");
      if (!token.empty()) request.headers.set("Authorization", "Bearer " + token);
      request.body = json::serialize(review);
      auto done = std::make_shared<std::promise<net::HttpResponse>>();
      auto answer = done->get_future();
      client->send(std::move(request), [done](net::HttpResponse response) { done->set_value(std::move(response)); });
      const auto response = answer.get();
      if (response.status == 200 || response.status == 201) {
        auto document = json::parse(response.body);
        if (!document || !document->is_object()) return invalid(url + " answers with no review");
        return std::move(*document);
      }
      trouble = response.status == 0 ? response.body : fmt::format("HTTP {}", response.status);
      const bool may_pass = response.status == 0 || response.status == 429 || response.status >= 500;
      if (!may_pass || std::chrono::steady_clock::now() + pause >= deadline) break;
      std::this_thread::sleep_for(pause);
    }
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", url, trouble));
  };
}

std::optional<Result<TokenUser>> WebhookAuthenticator::remembered(const std::string& token, const std::vector<std::string>& audiences) {
  return cache_.find(token_key(token, audiences));
}

Result<TokenUser> WebhookAuthenticator::authenticate(const std::string& token, const std::vector<std::string>& audiences) {
  if (auto known = remembered(token, audiences)) return std::move(*known);
  json::Object spec{{"token", token}};
  if (!audiences.empty()) spec["audiences"] = json::Array(audiences.begin(), audiences.end());
  const auto review = post_(json::Object{
      {"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenReview"}, {"metadata", json::Object{}}, {"spec", std::move(spec)}});
  // What could not be asked is asked again the next time.
  if (!review) return std::unexpected(review.error());
  Result<TokenUser> out = invalid("the authentication webhook does not know the token");
  if (json::get_bool(*review, {"status", "authenticated"})) {
    const json::Value* user = json::find(*review, {"status", "user"});
    const auto& named = json::get_array(*review, {"status", "audiences"});
    std::vector<std::string> offered;
    for (const json::Value& one : named)
      if (one.is_string()) offered.emplace_back(json::as_view(one));
    auto both = named.empty() ? audiences : audiences_in_both(audiences, offered);
    if (user == nullptr || json::get_string(*user, {"username"}).empty())
      out = invalid("the authentication webhook names no user");
    else if (both.empty() && !audiences.empty())
      out = invalid("the authentication webhook knows the token for other audiences");
    else
      out = TokenUser{user_of_review(*user), std::move(both)};
  } else if (const auto why = json::get_string(*review, {"status", "error"}); !why.empty()) {
    out = invalid(std::string(why));
  }
  cache_.put(token_key(token, audiences), out, ttl_);
  return out;
}

json::Value access_review_spec(const UserInfo& user, const Attributes& asked) {
  json::Object spec;
  if (asked.is_resource) {
    json::Object resource;
    for (const auto& [key, value] : {std::pair("namespace", &asked.ns), std::pair("verb", &asked.verb), std::pair("group", &asked.group),
                                     std::pair("version", &asked.version), std::pair("resource", &asked.resource),
                                     std::pair("subresource", &asked.subresource), std::pair("name", &asked.name)})
      if (!value->empty()) resource[key] = *value;
    spec["resourceAttributes"] = std::move(resource);
  } else {
    spec["nonResourceAttributes"] = json::Object{{"path", asked.path}, {"verb", asked.verb}};
  }
  if (!user.name.empty()) spec["user"] = user.name;
  if (!user.uid.empty()) spec["uid"] = user.uid;
  if (!user.groups.empty()) spec["groups"] = json::Array(user.groups.begin(), user.groups.end());
  if (user.extra.empty()) return spec;
  json::Object extra;
  for (const auto& [key, values] : user.extra) extra[key] = json::Array(values.begin(), values.end());
  spec["extra"] = std::move(extra);
  return spec;
}

cel::Environment access_review_environment() {
  const auto text = cel::string_type();
  const auto texts = cel::list_type(text);
  cel::Environment out;
  out.structs = {{"kubernetes.ResourceAttributes",
                  {{"namespace", text},
                   {"verb", text},
                   {"group", text},
                   {"version", text},
                   {"resource", text},
                   {"subresource", text},
                   {"name", text}}},
                 {"kubernetes.NonResourceAttributes", {{"path", text}, {"verb", text}}},
                 {"kubernetes.SubjectAccessReviewSpec",
                  {{"resourceAttributes", cel::struct_type("kubernetes.ResourceAttributes")},
                   {"nonResourceAttributes", cel::struct_type("kubernetes.NonResourceAttributes")},
                   {"user", text},
                   {"groups", texts},
                   {"uid", text},
                   {"extra", cel::map_type(text, texts)}}}};
  out.variables = {{"request", cel::struct_type("kubernetes.SubjectAccessReviewSpec")}};
  return out;
}

std::optional<WebhookVerdict> WebhookAuthorizer::judge_conditions(const json::Value& spec) const {
  // As in Go's struct: what is not given is there, and empty.
  json::Value full = spec;
  auto& fields = full.get_object();
  for (const char* field : {"user", "uid"})
    if (!fields.contains(field)) fields[field] = "";
  if (!fields.contains("groups")) fields["groups"] = json::Array{};
  if (!fields.contains("extra")) fields["extra"] = json::Object{};
  if (auto* resource = fields.if_contains("resourceAttributes"))
    for (const char* field : {"namespace", "verb", "group", "version", "resource", "subresource", "name"})
      if (!resource->get_object().contains(field)) resource->get_object()[field] = "";
  const cel::Bindings variables{{"request", cel::Value::borrowed_json(full)}};
  std::string failed;
  for (const auto& [text, program] : options_.conditions) {
    const auto result = program.evaluate(variables);
    if (!result.value)
      failed = fmt::format("cel evaluation error: expression '{}' resulted in error: {}", text, result.value.error().message);
    else if (!result.value->is_true())
      return WebhookVerdict{};  // One that does not hold decides, whatever failed.
  }
  if (failed.empty()) return std::nullopt;
  return WebhookVerdict{options_.failure_denies ? Verdict::kDeny : Verdict::kNoOpinion, failed};
}

std::optional<WebhookVerdict> WebhookAuthorizer::remembered(const UserInfo& user, const Attributes& attributes) {
  const json::Value spec = access_review_spec(user, attributes);
  if (auto decided = judge_conditions(spec)) return decided;
  return cache_.find(json::serialize(spec));
}

WebhookVerdict WebhookAuthorizer::authorize(const UserInfo& user, const Attributes& attributes) {
  if (auto known = remembered(user, attributes)) return *known;
  json::Value spec = access_review_spec(user, attributes);
  const std::string key = json::serialize(spec);
  const auto review = options_.post(json::Object{
      {"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"metadata", json::Object{}}, {"spec", std::move(spec)}});
  if (!review) {
    log::warning("auth", "authorization webhook {}: {}", options_.name, review.error().message);
    return {options_.failure_denies ? Verdict::kDeny : Verdict::kNoOpinion, options_.failure_denies ? "webhook authorizer failed" : ""};
  }
  const bool allowed = json::get_bool(*review, {"status", "allowed"}), denied = json::get_bool(*review, {"status", "denied"});
  WebhookVerdict out;
  // Who says both says no.
  out.verdict = denied ? Verdict::kDeny : allowed ? Verdict::kAllow : Verdict::kNoOpinion;
  out.reason = json::get_string(*review, {"status", "reason"});
  if (key.size() <= kLongestRemembered)
    cache_.put(key, out, out.verdict == Verdict::kAllow ? options_.authorized_ttl : options_.unauthorized_ttl);
  return out;
}

}  // namespace berth::apiserver::auth
