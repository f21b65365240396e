#include "node/devices/claim_uses.h"

#include <algorithm>

namespace berth::node::devices {

using json::get_array;
using json::get_string;

std::optional<std::string> resource_claim_name(const json::Value& pod, const json::Value& entry) {
  if (const auto direct = get_string(entry, {"resourceClaimName"}); !direct.empty()) return std::string(direct);
  for (const auto& status : get_array(pod, {"status", "resourceClaimStatuses"}))
    if (get_string(status, {"name"}) == get_string(entry, {"name"})) return std::string(get_string(status, {"resourceClaimName"}));
  return std::nullopt;
}

std::vector<ContainerClaim> container_claims(const json::Value& pod, const json::Value& container) {
  std::vector<ContainerClaim> out;
  const std::string ns(get_string(pod, {"metadata", "namespace"}));
  const auto& entries = get_array(pod, {"spec", "resourceClaims"});
  for (const auto& use : get_array(container, {"resources", "claims"})) {
    const auto entry =
        std::ranges::find_if(entries, [&](const auto& one) { return get_string(one, {"name"}) == get_string(use, {"name"}); });
    if (entry == entries.end()) continue;
    if (auto name = resource_claim_name(pod, *entry); name && !name->empty())
      out.push_back({std::string(get_string(use, {"name"})), ns, std::move(*name), std::string(get_string(use, {"request"}))});
  }
  const std::string extended(get_string(pod, {"status", "extendedResourceClaimStatus", "resourceClaimName"}));
  if (extended.empty()) return out;
  for (const auto& mapping : get_array(pod, {"status", "extendedResourceClaimStatus", "requestMappings"}))
    if (get_string(mapping, {"containerName"}) == get_string(container, {"name"}))
      out.push_back({"", ns, extended, std::string(get_string(mapping, {"requestName"}))});
  return out;
}

}  // namespace berth::node::devices
