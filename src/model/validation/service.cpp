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

constexpr std::string_view kCidrText = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
constexpr std::string_view kIpText = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

void addresses(const Value& subset, const char* list, const Path& subset_at, Errors& errors) {
  const Path at = subset_at / list;
  std::size_t i = 0;
  for (const Value& address : get_array(subset, {list})) {
    const Path one = at[i++];
    const std::string_view ip = get_string(address, {"ip"}), host = get_string(address, {"hostname"});
    if (!is_ip(ip)) errors.invalid(one / "ip", ip, std::string(kIpText) + "\nmust be a valid IP address");
    if (!host.empty())
      if (const std::string why = check_dns1123_label(host); !why.empty()) errors.invalid(one / "hostname", host, why);
    if (const Value* node = json::find(address, "nodeName"))
      if (const std::string why = check_dns1123_subdomain(node->is_string() ? json::as_view(*node) : ""); !why.empty())
        errors.invalid(one / "nodeName", *node, why);
  }
}

void external_name(const Value& spec, const Path& at, Errors& errors) {
  for (const char* key : {"clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
    const Value* value = json::find(spec, key);
    if (value != nullptr && !(value->is_array() && value->get_array().empty()))
      errors.forbidden(at / key, "may not be set for ExternalName services");
  }
  std::string_view name = get_string(spec, {"externalName"});
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty())
    errors.required(at / "externalName");
  else if (const std::string why = check_dns1123_subdomain(name); !why.empty())
    errors.invalid(at / "externalName", name, why);
}

void cluster_ips(const Value& spec, const Path& at, Errors& errors) {
  const std::string_view first = get_string(spec, {"clusterIP"});
  const json::Array& all = get_array(spec, {"clusterIPs"});
  const Path list = at / "clusterIPs", families_at = at / "ipFamilies";
  if (first.empty() && !all.empty()) errors.invalid(list, Value(all), "must be empty when `clusterIP` is not specified");
  if (!first.empty() && !all.empty() && all[0] != Value(first)) errors.invalid(list, Value(all), "first value must match `clusterIP`");
  if (all.empty() && !first.empty() && first != "None" && !is_ip(first)) errors.invalid(list[0], first, kIpText);
  const json::Array& families = get_array(spec, {"ipFamilies"});
  std::set<std::string_view> seen_families;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::string_view family = families[i].is_string() ? json::as_view(families[i]) : "";
    if (family != "IPv4" && family != "IPv6") errors.not_supported(families_at[i], family, {"IPv4", "IPv6"});
    if (!seen_families.insert(family).second) errors.duplicate(families_at[i], families[i]);
  }
  supported_value(spec, "ipFamilyPolicy", at, {"PreferDualStack", "RequireDualStack", "SingleStack"}, errors, true);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view ip = all[i].is_string() ? json::as_view(all[i]) : "";
    if (i == 0 && ip == "None") {
      if (all.size() > 1) errors.invalid(list, Value(all), "'None' must be the first and only value");
    } else if (!is_ip(ip)) {
      errors.invalid(list[i], ip, kIpText);
    }
  }
  if (all.size() > 2) errors.invalid(list, Value(all), "may only hold up to 2 values");
}

/// externalTrafficPolicy and its health check.
void external_traffic(const Value& spec, const Path& at, Errors& errors) {
  const std::string_view type = get_string(spec, {"type"}), policy = get_string(spec, {"externalTrafficPolicy"});
  const bool is_outside =
      type == "LoadBalancer" || type == "NodePort" || (type == "ClusterIP" && !get_array(spec, {"externalIPs"}).empty());
  if (!is_outside) {
    if (!policy.empty()) errors.invalid(at / "externalTrafficPolicy", policy, "may only be set for externally-accessible services");
  } else if (policy.empty()) {
    errors.required(at / "externalTrafficPolicy");
  } else {
    supported_value(spec, "externalTrafficPolicy", at, {"Cluster", "Local"}, errors);
  }
  const std::int64_t port = get_int(spec, {"healthCheckNodePort"});
  if (type != "LoadBalancer" || policy != "Local") {
    if (port != 0)
      errors.invalid(at / "healthCheckNodePort", Value(port),
                     "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  } else if (const std::string why = port == 0 ? std::string() : check_port_number(port); !why.empty()) {
    errors.invalid(at / "healthCheckNodePort", Value(port), why);
  }
}

bool is_cidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || !is_ip(text.substr(0, slash))) return false;
  const std::string_view bits = text.substr(slash + 1);
  if (bits.empty() || bits.size() > 3 || bits.find_first_not_of("0123456789") != std::string_view::npos) return false;
  return std::atoi(std::string(bits).c_str()) <= (text.find(':') == std::string_view::npos ? 32 : 128);
}

/// What only services with a load balancer have.
void load_balancer(const Value& spec, const Path& at, Errors& errors) {
  static constexpr std::string_view kOnly = "may only be used when `type` is 'LoadBalancer'";
  const bool has_one = get_string(spec, {"type"}) == "LoadBalancer";
  if (const json::Array& ranges = get_array(spec, {"loadBalancerSourceRanges"}); !ranges.empty()) {
    const Path here = at / "LoadBalancerSourceRanges";
    if (!has_one) errors.forbidden(here, kOnly);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      std::string_view range = ranges[i].is_string() ? json::as_view(ranges[i]) : "";
      while (range.starts_with(' ')) range.remove_prefix(1);
      while (range.ends_with(' ')) range.remove_suffix(1);
      if (!is_cidr(range)) errors.invalid(here[i], range, kCidrText);
    }
  }
  if (json::find(spec, "allocateLoadBalancerNodePorts") != nullptr && !has_one)
    errors.forbidden(at / "allocateLoadBalancerNodePorts", kOnly);
  const Value* name = json::find(spec, "loadBalancerClass");
  if (name == nullptr || !name->is_string()) return;
  if (!has_one)
    errors.forbidden(at / "loadBalancerClass", kOnly);
  else if (const std::string why = check_qualified_name(json::as_view(*name)); !why.empty())
    errors.invalid(at / "loadBalancerClass", *name, why);
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
  if (type == "ExternalName")
    external_name(*spec, at, errors);
  else
    cluster_ips(*spec, at, errors);
  if ((type == "LoadBalancer" || type == "NodePort") && cluster_ip == "None") {
    const Path list = at / "clusterIPs";
    errors.invalid(list[0], "None", fmt::format("may not be set to 'None' for {} services", type));
  }
  if (const Value* selector = json::find(*spec, "selector")) labels(*selector, at / "selector", errors);
  if (const Value* timeout = json::find(*spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
      timeout != nullptr && get_string(*spec, {"sessionAffinity"}) == "ClientIP") {
    const std::int64_t seconds = get_int(*spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
    const Path config = at / "sessionAffinityConfig";
    const Path client = config / "clientIP";
    if (seconds <= 0 || seconds > 86400) errors.invalid(client / "timeoutSeconds", *timeout, "must be greater than 0 and less than 86400");
  }
  if (get_string(*spec, {"sessionAffinity"}) == "None" && json::find(*spec, "sessionAffinityConfig") != nullptr)
    errors.forbidden(at / "sessionAffinityConfig", "must not be set when session affinity is None");
  external_traffic(*spec, at, errors);
  load_balancer(*spec, at, errors);
  supported_value(*spec, "trafficDistribution", at, {"PreferClose", "PreferSameZone", "PreferSameNode"}, errors, true);
  supported_value(*spec, "internalTrafficPolicy", at, {"Cluster", "Local"}, errors);
  const Path external = at / "externalIPs";
  for (std::size_t k = 0; k < get_array(*spec, {"externalIPs"}).size(); ++k) {
    const Value& ip = get_array(*spec, {"externalIPs"})[k];
    if (!ip.is_string() || !is_ip(json::as_view(ip))) errors.invalid(external[k], ip.is_string() ? ip : Value(""), kIpText);
  }
  const Path ports_at = at / "ports";
  std::size_t i = 0;
  std::set<std::string_view> names;
  std::set<std::pair<std::string_view, std::int64_t>> numbers, node_numbers;
  for (const Value& port : ports) {
    const Path one = ports_at[i++];
    const std::string_view name = get_string(port, {"name"});
    if (name.empty() && ports.size() > 1)
      errors.required(one / "name");
    else if (!name.empty()) {
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(one / "name", name, why);
      if (!names.insert(name).second) errors.duplicate(one / "name", Value(name));
    }
    const Value* number = json::find(port, "port");
    if (const std::string why = check_port_number(get_int(port, {"port"})); !why.empty())
      errors.invalid(one / "port", number == nullptr ? Value(0) : *number, why);
    supported_value(port, "protocol", one, {"SCTP", "TCP", "UDP"}, errors);
    const std::string_view protocol = get_string(port, {"protocol"});
    if (const std::int64_t node_port = get_int(port, {"nodePort"}); node_port != 0 && !node_numbers.emplace(protocol, node_port).second)
      errors.duplicate(one / "nodePort", Value(node_port));
    if (!numbers.emplace(protocol, get_int(port, {"port"})).second)
      errors.duplicate(one, Value(json::Object{{"Name", ""},
                                               {"Protocol", protocol},
                                               {"AppProtocol", nullptr},
                                               {"Port", get_int(port, {"port"})},
                                               {"TargetPort", 0},
                                               {"NodePort", 0}}));
    if (const Value* application = json::find(port, "appProtocol"); application != nullptr && application->is_string())
      if (const std::string why = check_qualified_name(json::as_view(*application)); !why.empty())
        errors.invalid(one / "appProtocol", *application, why);
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
    errors.invalid(at / "clusterIPs[0]", Value(json::Array{Value(after)}), "may not change once set");
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
      if (const Value* application = json::find(port, "appProtocol"); application != nullptr && application->is_string())
        if (const std::string why = check_qualified_name(json::as_view(*application)); !why.empty())
          errors.invalid(port_at / "appProtocol", *application, why);
    }
  }
}

}  // namespace berth::model::validation
