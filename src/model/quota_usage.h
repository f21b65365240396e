// What objects use of a namespace's quotas, and which objects a quota's scopes select (pkg/quota/v1/evaluator/core). Pure; also for the
// controller that recounts.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/kinds.h"
#include "model/pods/pod_resources.h"

namespace berth::model {

/// By which name pods ask for devices of a class: its spec.extendedResourceName; empty: by none but the class's own.
using ExtendedResourceOf = std::function<std::string(const std::string& device_class)>;

/// Every quota resource that one object of `kind` uses, by quota name ("pods", "requests.cpu", "count/deployments.apps", …). Terminated
/// pods use only their object count, and so does what `has_stopped` counting. Devices of a claim count as `extended` names their class,
/// too.
ResourceAmounts quota_usage(const KindInfo& kind, const json::Value& object, const ExtendedResourceOf& extended, bool has_stopped = false);

/// From when on an object that is being deleted counts only as an object; nullopt: as long as it is there it counts in full.
std::optional<TimePoint> quota_stops_counting(const KindInfo& kind, const json::Value& object);

/// Does the quota (a ResourceQuota document) count this object: its scopes and scopeSelector.
bool quota_selects(const json::Value& quota, const KindInfo& kind, const json::Value& object);

/// The resources a pod must name because the quota counts them ("requests.cpu for: c1,c2"); empty when complete.
std::vector<std::string> missing_requirements(const std::set<std::string>& hard_resources, const json::Value& pod);

}  // namespace berth::model
