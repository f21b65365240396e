// The resource claims of a pod as the API has them, before its sandbox is made (kubelet cm/dra, prepareResources).
#pragma once
#include "node/agent/object_data.h"
#include "node/devices/claim_ledger.h"

namespace berth::node::agent {

/// The claims whose devices the pod is to get, each with the drivers that have to prepare them. The error, in the kubelet's words, says why
/// the pod cannot start yet ("fetch ResourceClaim gpu: …").
[[nodiscard]] Result<std::vector<devices::ClaimUse>> claims_of_pod(const json::Value& pod, const ObjectSource& objects);

}  // namespace berth::node::agent
