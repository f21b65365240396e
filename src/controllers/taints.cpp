#include "controllers/taints.h"

#include <algorithm>

#include "model/views/common.h"

namespace berth::controllers {

std::vector<Taint> node_taints(const json::Value& node) {
  std::vector<Taint> taints;
  for (const json::Value& item : json::get_array(node, {"spec", "taints"})) {
    Taint taint;
    taint.key = json::get_string(item, {"key"});
    taint.value = json::get_string(item, {"value"});
    taint.effect = json::get_string(item, {"effect"});
    if (const std::string_view added = json::get_string(item, {"timeAdded"}); !added.empty())
      taint.time_added = parse_rfc3339(added).value_or(TimePoint{});
    taints.push_back(std::move(taint));
  }
  return taints;
}

bool tolerates(const Toleration& toleration, const Taint& taint) {
  return model::Toleration{toleration.key, toleration.op, toleration.value, toleration.effect, {}}.tolerates(
      {taint.key, taint.value, taint.effect});
}

std::optional<std::chrono::seconds> patience(const json::Value& device, const Taint& taint) {
  std::optional<std::int64_t> least;
  for (const json::Value& one : json::get_array(device, {"tolerations"})) {
    if (json::get_string(one, {"effect"}) != "NoExecute") continue;
    const Toleration toleration{std::string(json::get_string(one, {"key"})),
                                std::string(json::get_string(one, {"operator"})),
                                std::string(json::get_string(one, {"value"})),
                                "NoExecute",
                                {}};
    if (!tolerates(toleration, taint)) continue;
    const json::Value* seconds = json::find(one, {"tolerationSeconds"});
    if (seconds == nullptr || !seconds->is_int64()) return std::nullopt;
    least = std::min(least.value_or(INT64_MAX), std::clamp<std::int64_t>(seconds->get_int64(), 0, 1'000'000'000));
  }
  return std::chrono::seconds(least.value_or(0));
}

}  // namespace berth::controllers
