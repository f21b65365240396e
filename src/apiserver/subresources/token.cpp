// serviceaccounts/token, and the reviews that ask about users and permissions.
#include "apiserver/apply/managed_fields.h"
#include "apiserver/auth/jwt.h"
#include "apiserver/auth/reviews.h"
#include "apiserver/body.h"
#include "apiserver/impl.h"

namespace berth::apiserver {
namespace {

constexpr std::int64_t kMinSeconds = 600;
constexpr std::int64_t kMaxSeconds = std::int64_t{1} << 32;

model::FieldErrors check_token_request(const json::Value& body, std::int64_t seconds) {
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

}  // namespace

void ApiServer::Impl::token(const RequestPtr& request) {
  if (options.token_issuer == nullptr) return respond_status(*request, model::not_found("", "serviceaccounts/token", request->info.name));
  auto body = parse_body(*request, "TokenRequest");
  if (!body) return respond_status(*request, body.error());
  if (auto wrong = check_type(*body, "authentication.k8s.io", "v1", "TokenRequest")) return respond_status(*request, *wrong);
  if (const auto ns = json::get_string(*body, {"metadata", "namespace"}); !ns.empty() && ns != request->info.ns)
    return respond_status(*request,
                          model::bad_request("the namespace of the provided object does not match the namespace sent on the request"));
  if (const auto name = json::get_string(*body, {"metadata", "name"}); !name.empty() && name != request->info.name)
    return respond_status(*request,
                          model::invalid_object("authentication.k8s.io", "TokenRequest", request->info.name,
                                                {{model::FieldError::Type::kInvalid, "metadata.name", json::serialize(json::Value(name)),
                                                  "must match the service account name if specified"}}));
  const auto account = cache->get(object_key(*request->kind, request->info.ns, request->info.name));
  if (account == nullptr) return respond_status(*request, model::not_found("", "serviceaccounts", request->info.name));
  if (const auto uid = json::get_string(*body, {"metadata", "uid"}); !uid.empty() && uid != account->meta.uid)
    return respond_status(
        *request, model::conflict("authentication.k8s.io", "TokenRequest", request->info.name,
                                  fmt::format("the UID in the token request ({}) does not match the UID of the service account ({})", uid,
                                              account->meta.uid)));
  const auto seconds = json::get_int(*body, {"spec", "expirationSeconds"}, 3600);
  if (const auto errors = check_token_request(*body, seconds); !errors.empty())
    return respond_status(*request, model::invalid_object("authentication.k8s.io", "TokenRequest", "", errors));

  TokenSpec spec;
  spec.ns = request->info.ns;
  spec.service_account = request->info.name;
  spec.service_account_uid = account->meta.uid;
  spec.expiration_seconds = seconds;
  for (const auto& audience : json::get_array(*body, {"spec", "audiences"})) spec.audiences.emplace_back(json::as_view(audience));
  if (json::find(*body, {"spec", "boundObjectRef"}) != nullptr) {
    spec.bound_kind = json::get_string(*body, {"spec", "boundObjectRef", "kind"});
    spec.bound_name = json::get_string(*body, {"spec", "boundObjectRef", "name"});
    const auto plural = spec.bound_kind == "Pod"      ? "pods"
                        : spec.bound_kind == "Secret" ? "secrets"
                        : spec.bound_kind == "Node"   ? "nodes"
                                                      : "";
    if (*plural == '\0')
      return respond_status(
          *request, model::bad_request(fmt::format(
                        "cannot bind token to object of type {}{}, Kind={}",
                        json::get_string(*body, {"spec", "boundObjectRef", "apiVersion"}).find('/') == std::string_view::npos ? "/" : "",
                        json::get_string(*body, {"spec", "boundObjectRef", "apiVersion"}), spec.bound_kind)));
    const auto bound = cache->get(make_key("", plural, spec.bound_kind == "Node" ? "" : request->info.ns, spec.bound_name));
    if (bound == nullptr) return respond_status(*request, model::not_found("", plural, spec.bound_name));
    const auto uid = json::get_string(*body, {"spec", "boundObjectRef", "uid"});
    if (!uid.empty() && uid != bound->meta.uid)
      return respond_status(
          *request,
          model::conflict(
              "", spec.bound_kind, spec.bound_name,
              fmt::format("the UID in the bound object reference ({}) does not match the UID in record. The object might have been "
                          "deleted and then recreated",
                          uid)));
    spec.bound_uid = bound->meta.uid;
  }
  auto asked = std::make_shared<AdmissionRequest>();
  asked->operation = Operation::kCreate;
  asked->kind = request->kind;
  asked->subresource = "token";
  asked->ns = request->info.ns;
  asked->name = request->info.name;
  asked->user = &request->user;
  asked->dry_run = request->dry_run;
  asked->warnings = &request->warnings;
  asked->object = std::move(*body);
  asked->object_api_version = "authentication.k8s.io/v1";
  asked->object_kind = "TokenRequest";
  admission->mutate(*asked, [this, request, asked, spec = std::move(spec)](Admitted admitted) mutable {
    if (!admitted) return respond_status(*request, admitted.error());
    admission->validate(*asked, [this, request, asked, spec = std::move(spec)](Admitted valid) {
      if (!valid) return respond_status(*request, valid.error());
      auto issued = options.token_issuer->issue(spec);
      if (!issued) return respond_status(*request, issued.error());
      auto answer = asked->object;
      answer.get_object()["kind"] = "TokenRequest";
      answer.get_object()["apiVersion"] = "authentication.k8s.io/v1";
      auto& metadata = json::ensure_object(answer, {"metadata"});
      metadata["name"] = request->info.name;
      metadata["namespace"] = request->info.ns;
      metadata["uid"] = spec.service_account_uid;
      metadata["creationTimestamp"] = now_text();
      auto& answered = json::ensure_object(answer, {"spec"});
      answered["expirationSeconds"] = spec.expiration_seconds;
      if (!answered.contains("boundObjectRef")) answered["boundObjectRef"] = nullptr;
      // Who asked for no audience is told whose the token is.
      if (const auto claims = auth::unverified_claims(issued->token); claims && spec.audiences.empty())
        if (const auto* audiences = json::find(*claims, {"aud"})) answered["audiences"] = *audiences;
      answer.get_object()["status"] = json::Object{{"token", issued->token}, {"expirationTimestamp", format_rfc3339(issued->expires_at)}};
      respond_json(*request, 201, answer);
    });
  });
}

void ApiServer::Impl::review(const RequestPtr& request) {
  auto body = decode_object_body(*request);
  if (!body) return respond_status(*request, body.error());
  const auto& plural = request->kind->plural;
  auto& authorizer = *options.authorizer;
  model::ApiResult<json::Value> answer = std::unexpected(model::method_not_supported(request->kind->group, plural, "create"));
  // Questions about others are tracked like objects, although nobody keeps them.
  if (plural == "tokenreviews" || plural.ends_with("accessreviews"))
    apply::track_update(*request->kind, nullptr, *body, {request->field_manager, "", loop.now()});
  if (plural == "tokenreviews") answer = auth::review_token(*options.authenticator, std::move(*body));
  if (plural == "subjectaccessreviews") answer = auth::review_subject_access(authorizer, std::move(*body));
  if (plural == "localsubjectaccessreviews") answer = auth::review_local_subject_access(authorizer, std::move(*body), request->info.ns);
  if (plural == "selfsubjectaccessreviews") answer = auth::review_self_subject_access(authorizer, request->user, std::move(*body));
  if (plural == "selfsubjectrulesreviews") answer = auth::review_self_subject_rules(authorizer, request->user, std::move(*body));
  if (plural == "selfsubjectreviews") answer = auth::review_self_subject(request->user, std::move(*body));
  if (plural == "selfsubjectreviews" && answer) json::set(*answer, {"metadata", "creationTimestamp"}, json::Value(now_text()));
  if (!answer) return respond_status(*request, answer.error());
  respond_json(*request, 201, *answer);
}

}  // namespace berth::apiserver
