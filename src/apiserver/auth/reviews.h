// The virtual kinds that ask about users and permissions: a parsed request in, the same object with its status out.
#pragma once
#include "apiserver/auth/interfaces.h"
#include "base/json.h"

namespace berth::apiserver::auth {

/// `User "x" cannot list resource "pods" in API group "" in the namespace "default"`, with the decision's reason behind it when there is
/// one.
std::string forbidden_reason(const UserInfo& user, const Attributes& attributes, std::string_view reason = {});
/// 403 for a refused request: `pods is forbidden: User …`; non-resource requests: `forbidden: User "x" cannot get path "/metrics"`.
model::ApiStatus forbidden_status(const UserInfo& user, const Attributes& attributes, std::string_view reason = {});

/// Whom answering a review of the plural would wait for; nullopt: nobody.
std::optional<std::string> review_waits_for(Authenticator& authenticator, Authorizer& authorizer, const UserInfo& user,
                                            std::string_view plural, const json::Value& review);
// Each takes the review as sent and gives it back with `status` filled (spec kept). 422 Invalid when the spec is unusable.
model::ApiResult<json::Value> review_subject_access(Authorizer& authorizer, json::Value review);
/// `ns` of the request path: the review's namespace must be the same.
model::ApiResult<json::Value> review_local_subject_access(Authorizer& authorizer, json::Value review, const std::string& ns);
model::ApiResult<json::Value> review_self_subject_access(Authorizer& authorizer, const UserInfo& user, json::Value review);
model::ApiResult<json::Value> review_self_subject_rules(Authorizer& authorizer, const UserInfo& user, json::Value review);
model::ApiResult<json::Value> review_self_subject(const UserInfo& user, json::Value review);
model::ApiResult<json::Value> review_token(Authenticator& authenticator, json::Value review);

/// authentication.k8s.io UserInfo as JSON (admission reviews, SelfSubjectReview).
json::Object user_to_json(const UserInfo& user);

}  // namespace berth::apiserver::auth
