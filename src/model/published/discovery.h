// The discovery documents: /api, /api/v1, /apis, /apis/GROUP, /apis/GROUP/VERSION, and the aggregated form.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "model/kinds.h"

namespace berth::model {

/// The kinds that are served, in discovery order.
using Kinds = std::vector<const KindInfo*>;

/// APIVersions of /api; `server_address` is "host:port".
json::Value discovery_core_versions(std::string_view server_address);
/// APIGroupList of /apis.
json::Value discovery_groups(const Kinds& kinds);
/// APIGroup of /apis/GROUP; nullopt when there is no such group.
std::optional<json::Value> discovery_group(const Kinds& kinds, std::string_view group);
/// APIResourceList of /api/v1 (empty group) or /apis/GROUP/VERSION; nullopt when there is none.
std::optional<json::Value> discovery_resources(const Kinds& kinds, std::string_view group, std::string_view version);
/// APIGroupDiscoveryList (apidiscovery.k8s.io): for /api with `core`, for /apis without. `version` is "v2" or "v2beta1".
json::Value discovery_aggregated(const Kinds& kinds, bool core, std::string_view version);

}  // namespace berth::model
