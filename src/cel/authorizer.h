// The `authorizer` variable of admission expressions (apiserver/pkg/cel/library/authz.go).
#pragma once
#include <functional>
#include <string>

#include "cel/value.h"

namespace berth::cel {

/// One question; `path` is set for non-resource checks.
struct AuthorizationCheck {
  std::string verb, path, group, resource, subresource, ns, name, field_selector, label_selector;
  std::string service_account_ns, service_account_name;  ///< Set: asked for this account instead of the requesting user.
};

struct AuthorizationAnswer {
  bool is_allowed = false;
  std::string reason, error;
};

/// Called while programs run, on their thread.
using Authorize = std::function<AuthorizationAnswer(const AuthorizationCheck&)>;

/// The value of `authorizer`.
Value make_authorizer(Authorize authorize);
/// The value of `authorizer.requestResource`: a check that already names the request's resource.
Value make_resource_check(Authorize authorize, AuthorizationCheck resource);

}  // namespace berth::cel
