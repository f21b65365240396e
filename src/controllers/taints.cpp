#include "controllers/taints.h"

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
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  if (toleration.op == "Exists") return true;
  // An empty key stands for all keys only together with Exists.
  return (toleration.op.empty() || toleration.op == "Equal") && toleration.key == taint.key && toleration.value == taint.value;
}

}  // namespace berth::controllers
