// The devices of a pod's resource claims, before its sandbox is made (kubelet cm/dra). No driver can register with this agent, so what
// needs one is held with the words that a kubelet without the driver has.
#pragma once
#include "node/agent/object_data.h"

namespace berth::node::agent {

/// Done for a pod whose claims need nothing of this node; otherwise why it cannot start yet ("prepare dynamic resources: DRA driver
/// gpu.example.com is not registered").
[[nodiscard]] Result<void> prepare_claims(const json::Value& pod, const ObjectSource& objects);

}  // namespace berth::node::agent
