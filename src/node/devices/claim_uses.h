// Which claims a pod and its containers use, by the pod's document (dynamic-resource-allocation/resourceclaim).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::node::devices {

/// What a container uses of a claim.
struct ContainerClaim {
  std::string entry;               ///< The name that the pod gives the claim; empty: it stands for resources asked for by name.
  std::string ns, claim, request;  ///< An empty request: all of the claim.
};

/// The claim that an entry of spec.resourceClaims stands for: empty when none is needed; nullopt while it is not made.
[[nodiscard]] std::optional<std::string> resource_claim_name(const json::Value& pod, const json::Value& entry);

/// Those that are made; with those that stand for extended resources.
[[nodiscard]] std::vector<ContainerClaim> container_claims(const json::Value& pod, const json::Value& container);

}  // namespace berth::node::devices
