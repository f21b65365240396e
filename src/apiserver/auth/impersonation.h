// Impersonate-User, -Group, -Uid and -Extra-* headers (apiserver/pkg/endpoints/filters/impersonation.go).
#pragma once
#include <optional>
#include <string>

#include "apiserver/auth/interfaces.h"

namespace berth::apiserver::auth {

/// The user to go on with: `user` itself when the request impersonates nobody. 403 when `user` may not impersonate one of the things asked
/// for, 500 when groups, uid or extra are given without a user, as Kubernetes answers.
model::ApiResult<UserInfo> apply_impersonation(const net::HttpRequest& request, const UserInfo& user, Authorizer& authorizer);
/// Whom the checks of apply_impersonation wait for, or what makes them long; nullopt: it takes no longer than a moment.
std::optional<std::string> impersonation_waits_for(const net::HttpRequest& request, const UserInfo& user, Authorizer& authorizer);
/// Whether the request carries such headers: they must not go on to other servers.
bool is_impersonating(const net::Headers& headers);

}  // namespace berth::apiserver::auth
