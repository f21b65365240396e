// Role-based access control over the Roles, ClusterRoles and bindings in the object cache.
//
// Bindings are indexed by (subject, namespace) and a role's rules by what they name (rbac_grants.h, rbac_rules.h), so a request looks at
// the grants of its user and groups only. Changes arrive by a watch and are applied one object at a time. A rule that a request's own write
// changed is in force when that write's answer is out.
#pragma once
#include <memory>

#include "apiserver/auth/interfaces.h"
#include "apiserver/cache/object_cache.h"

namespace berth::apiserver::auth {

/// Thread-safe. system:masters may do everything. Nodes (system:node:NAME in system:nodes) are judged by the node rules first. Aggregated
/// ClusterRoles count with the rules that aggregation.h has stored in them.
class RbacAuthorizer : public Authorizer {
 public:
  static std::shared_ptr<RbacAuthorizer> create(ObjectCache& cache);
};

}  // namespace berth::apiserver::auth
