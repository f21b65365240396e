#include "controllers/taints.h"

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

}  // namespace berth::controllers
