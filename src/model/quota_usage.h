// What objects use of a namespace's quotas, and which objects a quota's scopes select (pkg/quota/v1/evaluator/core). Pure; also for the
// controller that recounts.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "model/kinds.h"
#include "model/pods/pod_resources.h"

namespace berth::model {

/// Every quota resource that one object of `kind` uses, by quota name ("pods", "requests.cpu", "count/deployments.apps", …). Terminated
/// pods use only their object count.
ResourceAmounts quota_usage(const KindInfo& kind, const json::Value& object);

/// Does the quota (a ResourceQuota document) count this object: its scopes and scopeSelector.
bool quota_selects(const json::Value& quota, const KindInfo& kind, const json::Value& object);

/// The resources a pod must name because the quota counts them ("requests.cpu for: c1,c2"); empty when complete.
std::vector<std::string> missing_requirements(const std::set<std::string>& hard_resources, const json::Value& pod);

}  // namespace berth::model
