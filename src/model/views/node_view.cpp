#include "model/views/node_view.h"

#include "model/views/json_text.h"
namespace berth::model {
namespace {

/// v1.AvoidPods in an annotation; a broken one counts as absent (v1helper.GetAvoidPodsFromNodeAnnotations and its caller).
std::vector<AvoidedController> parse_avoided(const ObjectMeta& meta) {
  std::vector<AvoidedController> out;
  const auto* text = meta.annotation("scheduler.alpha.kubernetes.io/preferAvoidPods");
  if (text == nullptr || text->empty()) return out;
  const auto parsed = json::parse(*text);
  if (!parsed) return out;
  for (const auto& item : json::get_array(*parsed, {"preferAvoidPods"})) {
    const auto* controller = json::find(item, {"podSignature", "podController"});
    if (controller != nullptr) out.push_back({string_at(*controller, {"kind"}), string_at(*controller, {"uid"})});
  }
  return out;
}

}  // namespace

NodeView NodeView::parse(const json::Value& node) {
  NodeView out;
  out.meta = ObjectMeta::parse(node);
  out.unschedulable = json::get_bool(node, {"spec", "unschedulable"});
  for (const auto& item : json::get_array(node, {"spec", "taints"})) out.taints.push_back(parse_taint(item));
  out.provider_id = string_at(node, {"spec", "providerID"});
  out.allocatable = parse_resource_list(json::find(node, {"status", "allocatable"}));
  out.capacity = parse_resource_list(json::find(node, {"status", "capacity"}));
  std::vector<NodeCondition> conditions;
  for (const auto& item : json::get_array(node, {"status", "conditions"}))
    conditions.push_back(
        {string_at(item, {"type"}), string_at(item, {"status"}), string_at(item, {"reason"}), string_at(item, {"lastTransitionTime"})});
  out.conditions = std::move(conditions);
  std::vector<NodeImage> images;
  for (const auto& item : json::get_array(node, {"status", "images"}))
    images.push_back({parse_strings(json::get_array(item, {"names"})), json::get_int(item, {"sizeBytes"})});
  out.images = std::move(images);
  out.declared_features = parse_strings(json::get_array(node, {"status", "declaredFeatures"}));
  out.avoided_controllers = parse_avoided(out.meta);
  return out;
}

}  // namespace berth::model
