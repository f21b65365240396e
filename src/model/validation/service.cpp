// Services and Endpoints (ValidateService, ValidateEndpoints).
#include <fmt/format.h>

#include <set>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::string_view kIpText = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

void addresses(const Value& subset, const char* list, const Path& subset_at, Errors& errors) {
  const Path at = subset_at / list;
  std::size_t i = 0;
  for (const Value& address : get_array(subset, {list})) {
    const Path one = at[i++];
    const std::string_view ip = get_string(address, {"ip"}), host = get_string(address, {"hostname"});
    if (!is_ip(ip)) errors.invalid(one / "ip", ip, kIpText);
    if (!host.empty())
      if (const std::string why = check_dns1123_label(host); !why.empty()) errors.invalid(one / "hostname", host, why);
    if (const Value* node = json::find(address, "nodeName"))
      if (const std::string why = check_dns1123_subdomain(node->is_string() ? json::as_view(*node) : ""); !why.empty())
        errors.invalid(one / "nodeName", *node, why);
  }
}

}  // namespace

void service(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* spec = json::find(doc, "spec");
  if (spec == nullptr) return errors.required(at);
  const std::string_view type = get_string(*spec, {"type"});
  supported_value(*spec, "type", at, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, errors);
  supported_value(*spec, "sessionAffinity", at, {"ClientIP", "None"}, errors);
  const json::Array& ports = get_array(*spec, {"ports"});
  const std::string_view cluster_ip = get_string(*spec, {"clusterIP"});
  if (ports.empty() && cluster_ip != "None" && type != "ExternalName") errors.required(at / "ports");
  if (!cluster_ip.empty() && cluster_ip != "None" && !is_ip(cluster_ip)) errors.invalid(at / "clusterIPs", cluster_ip, kIpText);
  if (type == "ExternalName" && get_string(*spec, {"externalName"}).empty()) errors.required(at / "externalName");
  if (const Value* selector = json::find(*spec, "selector")) labels(*selector, at / "selector", errors);
  if (const Value* timeout = json::find(*spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
      timeout != nullptr && get_string(*spec, {"sessionAffinity"}) == "ClientIP") {
    const std::int64_t seconds = get_int(*spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
    const Path config = at / "sessionAffinityConfig";
    const Path client = config / "clientIP";
    if (seconds <= 0 || seconds > 86400) errors.invalid(client / "timeoutSeconds", *timeout, "must be greater than 0 and less than 86400");
  }
  supported_value(*spec, "externalTrafficPolicy", at, {"Cluster", "Local"}, errors);
  supported_value(*spec, "internalTrafficPolicy", at, {"Cluster", "Local"}, errors);
  const Path external = at / "externalIPs";
  for (std::size_t k = 0; k < get_array(*spec, {"externalIPs"}).size(); ++k) {
    const Value& ip = get_array(*spec, {"externalIPs"})[k];
    if (!ip.is_string() || !is_ip(json::as_view(ip))) errors.invalid(external[k], ip.is_string() ? ip : Value(""), kIpText);
  }
  const Path ports_at = at / "ports";
  std::size_t i = 0;
  std::vector<std::string_view> names;
  std::set<std::pair<std::string_view, std::int64_t>> numbers, node_numbers;
  for (const Value& port : ports) {
    const Path one = ports_at[i++];
    const std::string_view name = get_string(port, {"name"});
    if (name.empty() && ports.size() > 1)
      errors.required(one / "name");
    else if (!name.empty()) {
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(one / "name", name, why);
      if (std::find(names.begin(), names.end(), name) != names.end()) errors.duplicate(one / "name", Value(name));
      names.push_back(name);
    }
    const Value* number = json::find(port, "port");
    if (const std::string why = check_port_number(get_int(port, {"port"})); !why.empty())
      errors.invalid(one / "port", number == nullptr ? Value(0) : *number, why);
    supported_value(port, "protocol", one, {"SCTP", "TCP", "UDP"}, errors);
    const std::string_view protocol = get_string(port, {"protocol"});
    if (const std::int64_t node_port = get_int(port, {"nodePort"}); node_port != 0 && !node_numbers.emplace(protocol, node_port).second)
      errors.duplicate(one / "nodePort", Value(node_port));
    if (!numbers.emplace(protocol, get_int(port, {"port"})).second)
      errors.duplicate(one, Value(json::Object{{"protocol", protocol}, {"port", get_int(port, {"port"})}}));
    if (type == "ClusterIP" && get_int(port, {"nodePort"}) != 0)
      errors.forbidden(one / "nodePort", "may not be used when `type` is 'ClusterIP'");
    if (const Value* target = json::find(port, "targetPort")) {
      const std::string why = target->is_int64()    ? check_port_number(target->get_int64())
                              : target->is_string() ? check_port_name(json::as_view(*target))
                                                    : "";
      if (!why.empty()) errors.invalid(one / "targetPort", *target, why);
    }
  }
}

void service_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const std::string_view before = get_string(old, {"spec", "clusterIP"}), after = get_string(doc, {"spec", "clusterIP"});
  if (!before.empty() && before != after && get_string(old, {"spec", "type"}) != "ExternalName" &&
      get_string(doc, {"spec", "type"}) != "ExternalName")
    errors.invalid(at / "clusterIPs[0]", after, kImmutable);
}

void endpoints(const Value& doc, Errors& errors) {
  const Path at("subsets");
  std::size_t i = 0;
  for (const Value& subset : get_array(doc, {"subsets"})) {
    const Path one = at[i++];
    if (get_array(subset, {"addresses"}).empty() && get_array(subset, {"notReadyAddresses"}).empty())
      errors.required(one, "must specify `addresses` or `notReadyAddresses`");
    for (const char* list : {"addresses", "notReadyAddresses"}) addresses(subset, list, one, errors);
    const json::Array& ports = get_array(subset, {"ports"});
    const Path ports_at = one / "ports";
    std::size_t k = 0;
    for (const Value& port : ports) {
      const Path port_at = ports_at[k++];
      const std::string_view name = get_string(port, {"name"});
      if (name.empty() && ports.size() > 1) errors.required(port_at / "name");
      if (!name.empty())
        if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(port_at / "name", name, why);
      if (const std::string why = check_port_number(get_int(port, {"port"})); !why.empty())
        errors.invalid(port_at / "port", Value(get_int(port, {"port"})), why);
      supported_value(port, "protocol", port_at, {"SCTP", "TCP", "UDP"}, errors);
    }
  }
}

}  // namespace berth::model::validation
