// serviceaccounts/token, and the reviews that ask about users and permissions.
#include "apiserver/auth/reviews.h"
#include "apiserver/request/request_body.h"
#include "apiserver/subresources/subresources.h"
#include "model/go_words.h"
#include "model/kind_hooks.h"
#include "model/schema.h"
#include "security/jwt.h"

namespace berth::apiserver {
namespace {

constexpr std::int64_t kMinSeconds = 600;
constexpr std::int64_t kMaxSeconds = std::int64_t{1} << 32;

model::FieldErrors check_token_spec(const json::Value& body, std::int64_t seconds) {
  model::FieldErrors errors;
  using Type = model::FieldError::Type;
  if (seconds < kMinSeconds)
    errors.push_back(
        {Type::kInvalid, "spec.expirationSeconds", std::to_string(seconds), "may not specify a duration less than 10 minutes"});
  if (seconds > kMaxSeconds)
    errors.push_back(
        {Type::kInvalid, "spec.expirationSeconds", std::to_string(seconds), "may not specify a duration larger than 2^32 seconds"});
  for (const auto& audience : json::get_array(body, {"spec", "audiences"}))
    if (!audience.is_string()) errors.push_back({Type::kInvalid, "spec.audiences", json::serialize(audience), "must be a string"});
  return errors;
}

/// The object that a token is to be bound to: there, the one that was meant, and the account's own.
model::ApiResult<void> bind_token(const ObjectCache& cache, const json::Value& body, TokenSpec& spec) {
  if (json::find(body, {"spec", "boundObjectRef"}) == nullptr) return {};
  const auto of = [&](std::string_view field) { return json::get_string(body, {"spec", "boundObjectRef", field}); };
  const bool is_core = of("apiVersion").find('/') == std::string_view::npos;
  spec.bound_kind = of("kind");
  spec.bound_name = of("name");
  const std::string_view plural = !is_core                      ? ""
                                  : spec.bound_kind == "Pod"    ? "pods"
                                  : spec.bound_kind == "Secret" ? "secrets"
                                  : spec.bound_kind == "Node"   ? "nodes"
                                                                : "";
  if (plural.empty())
    return std::unexpected(model::bad_request(
        fmt::format("cannot bind token to object of type {}{}, Kind={}", is_core ? "/" : "", of("apiVersion"), spec.bound_kind)));
  const auto bound = cache.get(make_key("", plural, spec.bound_kind == "Node" ? "" : spec.ns, spec.bound_name));
  if (bound == nullptr) return std::unexpected(model::not_found("", plural, spec.bound_name));
  if (spec.bound_kind == "Pod" && json::get_string(decode_object(*bound), {"spec", "serviceAccountName"}) != spec.service_account)
    return std::unexpected(
        model::bad_request(fmt::format("cannot bind token for serviceaccount {} to pod running with different serviceaccount name.",
                                       model::go_quote(spec.service_account))));
  const auto uid = of("uid");
  if (!uid.empty() && uid != bound->meta.uid)
    return std::unexpected(model::conflict(
        "", spec.bound_kind, spec.bound_name,
        fmt::format("the UID in the bound object reference ({}) does not match the UID in record. The object might have been "
                    "deleted and then recreated",
                    uid)));
  spec.bound_uid = bound->meta.uid;
  return {};
}

/// What is to be issued, read after admission has changed the request for the last time.
model::ApiResult<TokenSpec> token_spec(const Request& request, const ObjectCache& cache, const json::Value& body) {
  if (const auto name = json::get_string(body, {"metadata", "name"}); !name.empty() && name != request.info.name)
    return std::unexpected(model::invalid_object("authentication.k8s.io", "TokenRequest", request.info.name,
                                                 {{model::FieldError::Type::kInvalid, "metadata.name", json::serialize(json::Value(name)),
                                                   "must match the service account name if specified"}}));
  const auto account = cache.get(object_key(*request.kind, request.info.ns, request.info.name));
  if (account == nullptr) return std::unexpected(model::not_found("", "serviceaccounts", request.info.name));
  if (const auto uid = json::get_string(body, {"metadata", "uid"}); !uid.empty() && uid != account->meta.uid)
    return std::unexpected(model::conflict(
        "authentication.k8s.io", "TokenRequest", request.info.name,
        fmt::format("the UID in the token request ({}) does not match the UID of the service account ({})", uid, account->meta.uid)));
  TokenSpec spec;
  spec.ns = request.info.ns;
  spec.service_account = request.info.name;
  spec.service_account_uid = account->meta.uid;
  spec.expiration_seconds = json::get_int(body, {"spec", "expirationSeconds"}, 3600);
  if (const auto errors = check_token_spec(body, spec.expiration_seconds); !errors.empty())
    return std::unexpected(model::invalid_object("authentication.k8s.io", "TokenRequest", "", errors));
  for (const auto& audience : json::get_array(body, {"spec", "audiences"})) spec.audiences.emplace_back(json::as_view(audience));
  if (auto bound = bind_token(cache, body, spec); !bound) return std::unexpected(std::move(bound.error()));
  return spec;
}

json::Value token_answer(json::Value answer, const TokenSpec& spec, const IssuedToken& issued, std::string now) {
  answer.get_object()["kind"] = "TokenRequest";
  answer.get_object()["apiVersion"] = "authentication.k8s.io/v1";
  auto& metadata = json::ensure_object(answer, {"metadata"});
  metadata["name"] = spec.service_account;
  metadata["namespace"] = spec.ns;
  metadata["uid"] = spec.service_account_uid;
  metadata["creationTimestamp"] = std::move(now);
  auto& answered = json::ensure_object(answer, {"spec"});
  answered["expirationSeconds"] = spec.expiration_seconds;
  if (!answered.contains("boundObjectRef")) answered["boundObjectRef"] = nullptr;
  // Who asked for no audience is told whose the token is.
  if (const auto claims = security::unverified_claims(issued.token); claims && spec.audiences.empty())
    if (const auto* audiences = json::find(*claims, {"aud"})) answered["audiences"] = *audiences;
  answer.get_object()["status"] = json::Object{{"token", issued.token}, {"expirationTimestamp", format_rfc3339(issued.expires_at)}};
  return answer;
}

}  // namespace

namespace steps {

StepResult decode_token(WritePipeline& writes, const WritePtr& operation) {
  const auto& request = operation->request;
  if (writes.options.token_issuer == nullptr) return std::unexpected(model::not_found("", "serviceaccounts/token", request->info.name));
  auto body =
      decode_unserved_body(*request, unserved_kind("authentication.k8s.io", "v1", "TokenRequest", "authentication.v1.TokenRequest"));
  if (!body) return std::unexpected(std::move(body.error().status));
  if (const auto ns = json::get_string(*body, {"metadata", "namespace"}); !ns.empty() && ns != request->info.ns)
    return std::unexpected(other_namespace());
  operation->decoded.body = {"authentication.k8s.io/v1", "TokenRequest"};
  operation->candidate.document = std::move(*body);
  return Flow::kNext;
}

StepResult check_token_request(WritePipeline& writes, const WritePtr& operation) {
  auto spec = token_spec(*operation->request, *writes.ground.cache, operation->admission.object);
  if (!spec) return std::unexpected(std::move(spec.error()));
  operation->granted.token = std::make_shared<const TokenSpec>(std::move(*spec));
  return Flow::kNext;
}

StepResult issue_token(WritePipeline& writes, const WritePtr& operation) {
  auto issued = writes.options.token_issuer->issue(*operation->granted.token);
  if (!issued) return std::unexpected(std::move(issued.error()));
  writes.respond.document(*operation->request, 201,
                          token_answer(operation->admission.object, *operation->granted.token, *issued, writes.ground.now_text()));
  return Flow::kWaits;
}

}  // namespace steps

}  // namespace berth::apiserver
