#include "model/service_strategy.h"

#include <map>
#include <set>

namespace berth::model {
namespace {

using json::Object;
using json::Value;

std::string_view type_of(const Value& service) { return json::get_string(service, {"spec", "type"}, "ClusterIP"); }
bool has_address(const Value& service) { return type_of(service) != "ExternalName"; }
bool has_node_ports(const Value& service) { return type_of(service) == "NodePort" || type_of(service) == "LoadBalancer"; }

bool is_outside(const Value& service) {
  return has_node_ports(service) || (type_of(service) == "ClusterIP" && !json::get_array(service, {"spec", "externalIPs"}).empty());
}

bool has_health_check(const Value& service) {
  return type_of(service) == "LoadBalancer" && json::get_string(service, {"spec", "externalTrafficPolicy"}) == "Local";
}

std::set<std::int64_t> node_ports(const Value& service) {
  std::set<std::int64_t> ports;
  for (const Value& port : json::get_array(service, {"spec", "ports"}))
    if (const auto number = json::get_int(port, {"nodePort"}); number != 0) ports.insert(number);
  return ports;
}

/// Port objects of `service`, to be changed.
std::vector<Object*> ports_of(Value& service) {
  std::vector<Object*> out;
  Value* ports = json::ensure_object(service, {"spec"}).if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return out;
  for (Value& port : ports->get_array())
    if (port.is_object()) out.push_back(&port.get_object());
  return out;
}

void keep_node_ports(const Value& old, Value& service) {
  const auto before = node_ports(old);
  auto used = node_ports(service);
  std::map<std::string_view, std::int64_t> by_name;
  for (const Value& port : json::get_array(old, {"spec", "ports"}))
    by_name[json::get_string(port, {"name"})] = json::get_int(port, {"nodePort"});
  for (Object* port : ports_of(service)) {
    const Value* number = port->if_contains("nodePort");
    if (number != nullptr && *number != 0) continue;
    const Value* name = port->if_contains("name");
    const auto known = by_name.find(name != nullptr && name->is_string() ? std::string_view(name->get_string()) : std::string_view());
    if (known == by_name.end() || !before.contains(known->second) || !used.insert(known->second).second) continue;
    (*port)["nodePort"] = known->second;
  }
}

void keep_if_absent(const Value& old, Object& spec, std::string_view field) {
  const Value* kept = json::find(old, {"spec", field});
  if (kept != nullptr && !spec.contains(field)) spec[field] = *kept;
}

void drop_if_same(const Value& old, Object& spec, std::string_view field) {
  const Value *before = json::find(old, {"spec", field}), *now = spec.if_contains(field);
  if (before != nullptr && now != nullptr && *before == *now) spec.erase(field);
}

}  // namespace

void prepare_service(Value& service) {
  const std::string address(json::get_string(service, {"spec", "clusterIP"}));
  if (!address.empty() && json::get_array(service, {"spec", "clusterIPs"}).empty())
    json::set(service, {"spec", "clusterIPs"}, json::Array{Value(address)});
}

void prepare_service_update(const Value& old, Value& service) {
  Object& spec = json::ensure_object(service, {"spec"});
  if (has_address(old) && has_address(service)) {
    keep_if_absent(old, spec, "clusterIP");
    // The plural form follows a singular one that stayed; a changed one is for validation and the allocator.
    if (json::get_string(old, {"spec", "clusterIP"}) == json::get_string(service, {"spec", "clusterIP"}))
      keep_if_absent(old, spec, "clusterIPs");
  }
  // Who changed one form and left the other as it was has changed both.
  const std::string before(json::get_string(old, {"spec", "clusterIP"})), now(json::get_string(service, {"spec", "clusterIP"}));
  const Value *listed_before = json::find(old, {"spec", "clusterIPs"}), *listed = spec.if_contains("clusterIPs");
  if (before != now && listed_before != nullptr && listed != nullptr && json::equal(*listed_before, *listed)) {
    if (now.empty())
      spec.erase("clusterIPs");
    else
      spec["clusterIPs"] = json::Array{Value(now)};
  }
  prepare_service(service);
  if (has_node_ports(old) && has_node_ports(service)) keep_node_ports(old, service);
  if (has_health_check(old) && has_health_check(service)) keep_if_absent(old, spec, "healthCheckNodePort");

  if (has_address(old) && !has_address(service)) {
    for (const char* field : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}) drop_if_same(old, spec, field);
  }
  if (has_node_ports(old) && !has_node_ports(service)) {
    const auto before = node_ports(old), now = node_ports(service);
    if (std::includes(before.begin(), before.end(), now.begin(), now.end()))
      for (Object* port : ports_of(service)) port->erase("nodePort");
  }
  if (has_health_check(old) && !has_health_check(service)) drop_if_same(old, spec, "healthCheckNodePort");
  if (type_of(old) == "LoadBalancer" && type_of(service) != "LoadBalancer") {
    for (const char* field : {"allocateLoadBalancerNodePorts", "loadBalancerClass"}) drop_if_same(old, spec, field);
  }
  if (is_outside(old) && !is_outside(service)) drop_if_same(old, spec, "externalTrafficPolicy");
}

}  // namespace berth::model
