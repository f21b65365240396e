#include "node/csi/csi_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace berth::node::csi {
namespace {

constexpr std::string_view kNodeIds = "csi.volume.kubernetes.io/nodeid";

json::Object node_ids(const json::Value& node) {
  const auto ids = json::parse(json::get_string(node, {"metadata", "annotations", kNodeIds}));
  return ids && ids->is_object() ? ids->get_object() : json::Object{};
}

json::Array& drivers_of(json::Value& csi_node) {
  if (const json::Value* known = json::find(csi_node, {"spec", "drivers"}); known == nullptr || !known->is_array())
    json::set(csi_node, {"spec", "drivers"}, json::Array{});
  return json::find(csi_node, {"spec", "drivers"})->as_array();
}

}  // namespace

DriverNodeInfo DriverNodeInfo::of(const std::string& driver, const json::Value& answer) {
  DriverNodeInfo info{driver, std::string(json::get_string(answer, {"node_id"})), 0, {}};
  const std::string_view most = json::get_string(answer, {"max_volumes_per_node"});  // 64 bits are text in JSON.
  std::from_chars(most.data(), most.data() + most.size(), info.max_volumes);
  for (const auto& [key, value] : json::get_object(answer, {"accessible_topology", "segments"}))
    if (value.is_string()) info.topology.emplace(std::string(key), std::string(json::as_view(value)));
  return info;
}

json::Value new_csi_node(const json::Value& node) {
  const std::string_view name = json::get_string(node, {"metadata", "name"});
  return json::Object{
      {"apiVersion", "storage.k8s.io/v1"},
      {"kind", "CSINode"},
      {"metadata",
       json::Object{{"name", name},
                    {"ownerReferences",
                     json::Array{json::Object{
                         {"apiVersion", "v1"}, {"kind", "Node"}, {"name", name}, {"uid", json::get_string(node, {"metadata", "uid"})}}}}}},
      {"spec", json::Object{{"drivers", json::Array{}}}}};
}

bool put_driver(json::Value& csi_node, const DriverNodeInfo& info) {
  json::Array keys;
  for (const auto& [key, value] : info.topology) keys.push_back(json::Value(key));
  json::Object entry{{"name", info.driver}, {"nodeID", info.node_id}, {"topologyKeys", std::move(keys)}};
  if (info.max_volumes > 0) entry["allocatable"] = json::Object{{"count", info.max_volumes}};
  json::Array& drivers = drivers_of(csi_node);
  const auto known = std::ranges::find_if(drivers, [&](const json::Value& one) { return json::get_string(one, {"name"}) == info.driver; });
  if (known != drivers.end() && json::equal(*known, json::Value(entry))) return false;
  if (known != drivers.end())
    *known = std::move(entry);
  else
    drivers.push_back(std::move(entry));
  return true;
}

bool remove_driver(json::Value& csi_node, const std::string& driver) {
  json::Array& drivers = drivers_of(csi_node);
  const auto known = std::ranges::find_if(drivers, [&](const json::Value& one) { return json::get_string(one, {"name"}) == driver; });
  if (known == drivers.end()) return false;
  drivers.erase(known);
  return true;
}

Result<json::Value> node_patch(const json::Value& node, const DriverNodeInfo& info) {
  json::Object labels;
  for (const auto& [key, value] : info.topology) {
    const json::Value* known = json::find(node, {"metadata", "labels", key});
    if (known != nullptr && known->is_string() && json::as_view(*known) != value)
      return invalid(fmt::format("detected topology value collision: driver reported \"{}\":\"{}\" but existing label is \"{}\":\"{}\"",
                                 key, value, key, json::as_view(*known)));
    labels[key] = value;
  }
  json::Object ids = node_ids(node);
  ids[info.driver] = info.node_id;
  return json::Value(json::Object{
      {"metadata", json::Object{{"annotations", json::Object{{kNodeIds, json::serialize(ids)}}}, {"labels", std::move(labels)}}}});
}

json::Value node_patch_without(const json::Value& node, const std::string& driver) {
  json::Object ids = node_ids(node);
  ids.erase(driver);
  json::Value text = ids.empty() ? json::Value(nullptr) : json::Value(json::serialize(ids));
  return json::Object{{"metadata", json::Object{{"annotations", json::Object{{kNodeIds, std::move(text)}}}}}};
}

}  // namespace berth::node::csi
