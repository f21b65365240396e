// Kubernetes' default ClusterRoles, Roles and bindings (plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
#pragma once
#include <vector>

#include "apiserver/cache/object_cache.h"
#include "base/json.h"

namespace berth::model {
enum class Features : std::uint8_t;
}

namespace berth::apiserver::auth {

/// All default objects as documents: ClusterRoles, ClusterRoleBindings, Roles, RoleBindings, in an order in which each can be written.
std::vector<json::Value> default_rbac_objects(model::Features features = {});
/// Writes what is missing, adds missing rules and subjects to what is there (never takes any away), and leaves objects annotated
/// `rbac.authorization.kubernetes.io/autoupdate: "false"` alone. Waits for the store.
Result<void> reconcile_default_roles(ObjectCache& cache, const Clock& clock, model::Features features);

}  // namespace berth::apiserver::auth
