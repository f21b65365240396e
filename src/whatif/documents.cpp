#include "whatif/documents.h"

#include <algorithm>

namespace berth::whatif {
namespace {

json::Value text_document(const Tables& tables, const std::string& key) {
  const auto text = tables.texts.find(key);
  if (text == tables.texts.end()) return json::Value(json::Object());
  auto parsed = json::parse(*text->second);
  return parsed ? std::move(*parsed) : json::Value(json::Object());
}

json::Object amounts(const model::ResourceList& list) {
  json::Object out;
  for (const auto& [name, quantity] : list) out[name] = quantity.to_string();
  return out;
}

json::Value node_document(const World& world, const model::NodeView& node) {
  json::Value out = text_document(world.tables(), "Node/" + node.name());
  out.get_object()["apiVersion"] = "v1";
  out.get_object()["kind"] = "Node";
  json::set(out, {"metadata", "name"}, json::Value(node.name()));
  json::Object labels;
  for (const auto& [key, value] : node.labels().pairs()) labels[key] = value;
  json::set(out, {"metadata", "labels"}, std::move(labels));
  json::Array taints;
  for (const model::Taint& taint : node.taints)
    taints.push_back(json::Object{{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  json::set(out, {"spec", "taints"}, std::move(taints));
  json::set(out, {"spec", "unschedulable"}, json::Value(node.unschedulable));
  json::set(out, {"status", "allocatable"}, amounts(node.allocatable));
  json::set(out, {"status", "capacity"}, amounts(node.capacity));
  json::Array conditions = json::get_array(out, {"status", "conditions"});
  for (const model::NodeCondition& condition : node.conditions) {
    json::Value* known = nullptr;
    for (json::Value& one : conditions)
      if (json::get_string(one, {"type"}) == condition.type) known = &one;
    if (known == nullptr) known = &conditions.emplace_back(json::Object{{"type", condition.type}});
    known->get_object()["status"] = condition.status;
  }
  json::set(out, {"status", "conditions"}, std::move(conditions));
  return out;
}

json::Value pod_document(const World& world, const Record& record) {
  json::Value out = text_document(world.tables(), "Pod/" + record.info->key);
  if (out.get_object().empty()) return nullptr;
  const std::string was(json::get_string(out, {"spec", "nodeName"}));
  if (was == record.node && !record.is_new) return out;
  json::set(out, {"metadata", "uid"}, json::Value(record.view().meta.uid));
  json::set(out, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(record.facts.created)));
  json::erase(out, {"spec", "nodeName"});
  if (record.node.empty()) {
    json::set(out, {"status"}, json::Object{{"phase", "Pending"}});
    return out;
  }
  json::set(out, {"spec", "nodeName"}, json::Value(record.node));
  const std::string now = format_rfc3339(world.options().now);
  json::set(out, {"status"},
            json::Object{{"phase", "Running"},
                         {"startTime", now},
                         {"conditions", json::Array{json::Object{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", now}}}}});
  return out;
}

}  // namespace

Result<std::vector<json::Value>> documents_of(World& world) {
  if (!world.options().keeps_documents) return invalid("the documents of nodes and pods were not kept (Options::keeps_documents)");
  std::vector<json::Value> out;
  for (const auto& [key, object] : world.tables().objects) out.push_back(*object);
  for (const std::string& name : world.node_names()) out.push_back(node_document(world, *world.node(name)));
  std::vector<const Record*> records;
  for (const auto& [key, record] : world.tables().pods) records.push_back(&record);
  std::ranges::sort(records, {}, [](const Record* record) { return std::string_view(record->info->key); });
  std::size_t unknown = 0;
  for (const Record* record : records) {
    json::Value document = pod_document(world, *record);
    if (document.is_null())
      ++unknown;
    else
      out.push_back(std::move(document));
  }
  if (unknown > 0)
    world.note(std::to_string(unknown) + " pods that came with nodes of this question are not seen by the components that run after");
  return out;
}

}  // namespace berth::whatif
