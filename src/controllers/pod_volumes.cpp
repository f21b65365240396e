#include "controllers/pod_volumes.h"

#include <fmt/format.h>

namespace berth::controllers {

std::set<std::string> claims_of_volumes(const PodRef& pod) {
  std::set<std::string> out;
  if (!pod || !pod->has_claim_volumes) return out;
  const auto parsed = pod->object->parsed();
  const json::Value& document = *parsed;
  for (const auto& volume : json::get_array(document, {"spec", "volumes"})) {
    if (const std::string_view claim = json::get_string(volume, {"persistentVolumeClaim", "claimName"}); !claim.empty())
      out.insert(fmt::format("{}/{}", pod->ns(), claim));
    if (json::find(volume, "ephemeral") != nullptr)
      out.insert(fmt::format("{}/{}-{}", pod->ns(), pod->name(), json::get_string(volume, {"name"})));
  }
  return out;
}

}  // namespace berth::controllers
