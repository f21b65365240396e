// The pieces of pod validation. Within src/model/validation only.
#pragma once
#include <optional>
#include <set>

#include "model/validation/validation.h"

namespace berth::model::validation {

/// What containers are checked against.
struct PodContext {
  const Value& spec;
  const PodOwner& owner;
  VolumeNames volumes;                ///< Those in order.
  std::set<std::string_view> claims;  ///< Names of spec.resourceClaims.
  std::optional<std::int64_t> grace;  ///< terminationGracePeriodSeconds.
  std::string_view restart_policy;
  bool host_users = true;
};

/// What holds for a pod whenever its spec is written.
void whole_pod(const Value& doc, Errors& errors);
/// containers, initContainers and ephemeralContainers.
void pod_containers(const PodContext& context, const Path& spec_at, Errors& errors);
/// The name of a resource that a container may ask for, or any.
void resource_name(std::string_view name, bool of_container, const Path& at, Errors& errors);
/// requests, limits and claims of one container (`is_pod_level`: of the pod itself).
void resource_requirements(const Value& holder, const std::set<std::string_view>& claims, bool is_pod_level, const Path& at,
                           Errors& errors);
/// spec.resources beside what the containers ask for.
void pod_level_resources(const PodContext& context, const Path& spec_at, Errors& errors);
void resource_claims(const Value& spec, bool is_mirror, const Path& spec_at, Errors& errors);
/// spec.schedulingGroup.
void scheduling_group(const Value& spec, const Path& spec_at, Errors& errors);
void spread_constraints(const Value& spec, const Path& spec_at, Errors& errors);
/// What the operating system's name forbids, and hostProcess containers.
void operating_system(const Value& spec, const Path& spec_at, Errors& errors);
/// Calls `visit` with every container of the three lists and its path.
template <typename Visit>
void each_container(const Value& spec, const Path& spec_at, Visit visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    const Path at = spec_at / list;
    std::size_t i = 0;
    for (const Value& container : json::get_array(spec, {list})) visit(container, at[i++]);
  }
}

}  // namespace berth::model::validation
