// Impersonate-User, -Group, -Uid and -Extra-* headers (apiserver/pkg/endpoints/filters/impersonation.go).
#pragma once
#include "apiserver/auth_interfaces.h"

namespace berth::apiserver::auth {

/// The user to go on with: `user` itself when the request impersonates nobody. 403 when `user` may not impersonate one of the things asked
/// for, 500 when groups, uid or extra are given without a user, as Kubernetes answers.
model::ApiResult<UserInfo> apply_impersonation(const net::HttpRequest& request, const UserInfo& user, Authorizer& authorizer);
/// Whether the request carries such headers: they must not go on to other servers.
bool is_impersonating(const net::Headers& headers);

}  // namespace berth::apiserver::auth
