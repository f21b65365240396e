// Services and Endpoints (ValidateService, ValidateEndpoints).
#include <fmt/format.h>

#include <optional>
#include <set>

#include "base/split.h"
#include "model/quantity.h"
#include "model/validation/ip_range.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

void addresses(const Value& subset, const char* list, bool own, const Path& subset_at, Errors& errors) {
  const Path at = subset_at / list;
  std::size_t i = 0;
  for (const Value& address : get_array(subset, {list})) {
    const Path one = at[i++];
    const std::string_view ip = get_string(address, {"ip"}), host = get_string(address, {"hostname"});
    const auto parsed = parse_ip(ip);
    if (!parsed) errors.invalid(one / "ip", ip, std::string(kIpText) + "\nmust be a valid IP address");
    if (!host.empty())
      if (const std::string why = check_dns1123_label(host); !why.empty()) errors.invalid(one / "hostname", host, why);
    if (const Value* node = json::find(address, "nodeName"))
      if (const std::string why = check_dns1123_subdomain(node->is_string() ? json::as_view(*node) : ""); !why.empty())
        errors.invalid(one / "nodeName", *node, why);
    if (!parsed || (own && is_loopback(*parsed))) continue;
    if (const std::string why = special_ip_problem(*parsed, ip); !why.empty()) errors.invalid(one / "ip", ip, why);
  }
}

std::set<std::string_view> texts_of(const json::Array& list) {
  std::set<std::string_view> out;
  for (const Value& one : list)
    if (one.is_string()) out.insert(json::as_view(one));
  return out;
}

bool is_headless(const Value& doc) {
  const json::Array& all = get_array(doc, {"spec", "clusterIPs"});
  return all.size() == 1 && all.front() == Value("None");
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

/// clusterIPs are addresses, of one each family, and of the families that are named.
void cluster_ips(const Value* old, const Value& doc, const Path& at, Errors& errors) {
  const std::string_view first = get_string(doc, {"spec", "clusterIP"});
  const json::Array &all = get_array(doc, {"spec", "clusterIPs"}), &families = get_array(doc, {"spec", "ipFamilies"});
  const Path list = at / "clusterIPs", families_at = at / "ipFamilies";
  if (first.empty() && !all.empty()) errors.invalid(list, Value(all), "must be empty when `clusterIP` is not specified");
  if (!first.empty() && all.empty()) errors.required(list);
  if (!first.empty() && !all.empty() && all[0] != Value(first)) errors.invalid(list, Value(all), "first value must match `clusterIP`");
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const std::string_view family = families[i].is_string() ? json::as_view(families[i]) : "";
    if (family != "IPv4" && family != "IPv6") errors.not_supported(families_at[i], family, {"IPv4", "IPv6"});
    if (!seen.insert(family).second) errors.duplicate(families_at[i], families[i]);
  }
  if (const Value* spec = json::find(doc, "spec"))
    supported_value(*spec, "ipFamilyPolicy", at, {"PreferDualStack", "RequireDualStack", "SingleStack"}, errors, true);
  const json::Array& before = old == nullptr ? json::Array() : get_array(*old, {"spec", "clusterIPs"});
  bool is_broken = false;
  std::vector<std::string_view> texts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view ip = all[i].is_string() ? json::as_view(all[i]) : "";
    texts.push_back(ip);
    if (i == 0 && ip == "None") {
      if (all.size() == 1) continue;
      is_broken = true;
      errors.invalid(list, Value(all), "'None' must be the first and only value");
    } else if (!is_ip(ip) && std::find(before.begin(), before.end(), all[i]) == before.end()) {
      is_broken = true;
      errors.invalid(list[i], ip, kIpText);
    }
  }
  if (all.size() > 2) errors.invalid(list, Value(all), "may only hold up to 2 values");
  if (is_broken) return;
  if (all.size() > 1 && !check_dual_stack(texts, false).has_both)
    errors.invalid(list, Value(all), "may specify no more than one IP for each IP family");
  if (is_headless(doc)) return;
  for (std::size_t i = 0; i < std::min(all.size(), families.size()); ++i) {
    const bool is_v6 = texts[i].find(':') != std::string_view::npos;
    if (families[i] == Value(is_v6 ? "IPv4" : "IPv6"))
      errors.invalid(list[i], all[i], fmt::format("expected an {} value as indicated by `ipFamilies[{}]`", is_v6 ? "IPv4" : "IPv6", i));
  }
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
  } else if (port == 0) {
    // It is given by the allocator.
  } else if (const std::string why = check_port_number(port); !why.empty()) {
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

constexpr std::string_view kOnlyBalanced = "may only be used when `type` is 'LoadBalancer'";

void balancer_class(const Value* old, const Value& doc, const Path& at, Errors& errors) {
  const Value* name = json::find(doc, {"spec", "loadBalancerClass"});
  const bool has_balancer = get_string(doc, {"spec", "type"}) == "LoadBalancer";
  if (old != nullptr && has_balancer && get_string(*old, {"spec", "type"}) == "LoadBalancer") {
    const Value* before = json::find(*old, {"spec", "loadBalancerClass"});
    if ((name == nullptr) != (before == nullptr) || (name != nullptr && *name != *before))
      errors.invalid(at / "loadBalancerClass", name == nullptr ? Value(nullptr) : *name, "may not change once set");
  }
  if (name == nullptr || !name->is_string()) return;
  if (!has_balancer)
    errors.forbidden(at / "loadBalancerClass", kOnlyBalanced);
  else if (const std::string why = check_qualified_name(json::as_view(*name)); !why.empty())
    errors.invalid(at / "loadBalancerClass", *name, why);
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// What only services with a load balancer have.
void load_balancer(const Value& doc, const Path& at, Errors& errors) {
  constexpr std::string_view kRanges = "service.beta.kubernetes.io/load-balancer-source-ranges";
  const bool has_one = get_string(doc, {"spec", "type"}) == "LoadBalancer";
  if (const json::Array& ranges = get_array(doc, {"spec", "loadBalancerSourceRanges"}); !ranges.empty()) {
    const Path here = at / "LoadBalancerSourceRanges";
    if (!has_one) errors.forbidden(here, kOnlyBalanced);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::string_view range = without_spaces(ranges[i].is_string() ? json::as_view(ranges[i]) : "");
      if (!is_cidr(range)) errors.invalid(here[i], range, kCidrText);
    }
  } else if (json::find(doc, {"metadata", "annotations", kRanges}) != nullptr) {
    const Path metadata("metadata");
    const Path annotations = metadata / "annotations";
    const Path here = Path::map_key(annotations, kRanges);
    if (!has_one) errors.forbidden(here, kOnlyBalanced);
    const std::string_view text = without_spaces(get_string(doc, {"metadata", "annotations", kRanges}));
    for (const auto part : split(text, ','))
      if (const auto range = without_spaces(part); !text.empty() && !is_cidr(range)) errors.invalid(here, range, kCidrText);
  }
  if (json::find(doc, {"spec", "allocateLoadBalancerNodePorts"}) != nullptr && !has_one)
    errors.forbidden(at / "allocateLoadBalancerNodePorts", kOnlyBalanced);
  balancer_class(nullptr, doc, at, errors);
}

void service_ports(const json::Array& ports, const Path& at, Errors& errors) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Value& port = ports[i];
    const Path one = at[i];
    const std::string_view name = get_string(port, {"name"});
    if (name.empty() && ports.size() > 1) {
      errors.required(one / "name");
    } else if (!name.empty()) {
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(one / "name", name, why);
      if (!names.insert(name).second) errors.duplicate(one / "name", Value(name));
    }
    if (const std::string why = check_port_number(get_int(port, {"port"})); !why.empty())
      errors.invalid(one / "port", Value(get_int(port, {"port"})), why);
    supported_value(port, "protocol", one, {"SCTP", "TCP", "UDP"}, errors);
    if (const Value* target = json::find(port, "targetPort")) {
      const std::string why = target->is_int64()    ? check_port_number(target->get_int64())
                              : target->is_string() ? check_port_name(json::as_view(*target))
                                                    : "";
      if (!why.empty()) errors.invalid(one / "targetPort", *target, why);
    }
    if (const Value* application = json::find(port, "appProtocol"); application != nullptr && application->is_string())
      if (const std::string why = check_qualified_name(json::as_view(*application)); !why.empty())
        errors.invalid(one / "appProtocol", *application, why);
  }
}

/// Ports of the service and of the nodes, once each by protocol.
void distinct_ports(const json::Array& ports, bool may_have_node_ports, const Path& at, Errors& errors) {
  std::set<std::pair<std::string_view, std::int64_t>> numbers, node_numbers;
  for (std::size_t i = 0; i < ports.size() && !may_have_node_ports; ++i) {
    const Path one = at[i];
    if (get_int(ports[i], {"nodePort"}) != 0) errors.forbidden(one / "nodePort", "may not be used when `type` is 'ClusterIP'");
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Path one = at[i];
    const std::int64_t number = get_int(ports[i], {"nodePort"});
    if (number != 0 && !node_numbers.emplace(get_string(ports[i], {"protocol"}), number).second)
      errors.duplicate(one / "nodePort", Value(number));
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string_view protocol = get_string(ports[i], {"protocol"});
    const std::int64_t number = get_int(ports[i], {"port"});
    if (!numbers.emplace(protocol, number).second)
      errors.duplicate(
          at[i],
          Value(json::Object{
              {"Name", ""}, {"Protocol", protocol}, {"AppProtocol", nullptr}, {"Port", number}, {"TargetPort", 0}, {"NodePort", 0}}));
  }
}

void session_affinity(const Value& spec, const Path& at, Errors& errors) {
  supported_value(spec, "sessionAffinity", at, {"ClientIP", "None"}, errors);
  const std::string_view affinity = get_string(spec, {"sessionAffinity"});
  const Path config = at / "sessionAffinityConfig";
  if (const Value* timeout = json::find(spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
      timeout != nullptr && affinity == "ClientIP") {
    const std::int64_t seconds = get_int(spec, {"sessionAffinityConfig", "clientIP", "timeoutSeconds"});
    const Path client = config / "clientIP";
    if (seconds <= 0 || seconds > 86400) errors.invalid(client / "timeoutSeconds", *timeout, "must be greater than 0 and less than 86400");
  }
  if (affinity == "None" && json::find(spec, "sessionAffinityConfig") != nullptr)
    errors.forbidden(config, "must not be set when session affinity is None");
}

/// What ValidateService and ValidateServiceUpdate share.
void whole_service(const Value* old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const Value* spec = json::find(doc, "spec");
  if (spec == nullptr) return errors.required(at);
  const std::string_view type = get_string(*spec, {"type"});
  const json::Array& ports = get_array(*spec, {"ports"});
  const Path ports_at = at / "ports", addresses_at = at / "clusterIPs", external = at / "externalIPs";
  if (ports.empty() && !is_headless(doc) && type != "ExternalName") errors.required(ports_at);
  if ((type == "LoadBalancer" || type == "NodePort") && is_headless(doc))
    errors.invalid(addresses_at[0], "None", fmt::format("may not be set to 'None' for {} services", type));
  if (type == "ExternalName") external_name(*spec, at, errors);
  service_ports(ports, ports_at, errors);
  if (const Value* selector = json::find(*spec, "selector")) labels(*selector, at / "selector", errors);
  session_affinity(*spec, at, errors);
  const auto before = old == nullptr ? std::set<std::string_view>() : texts_of(get_array(*old, {"spec", "externalIPs"}));
  const json::Array& outside = get_array(*spec, {"externalIPs"});
  for (std::size_t i = 0; i < outside.size(); ++i) {
    const std::string_view ip = outside[i].is_string() ? json::as_view(outside[i]) : "";
    const auto parsed = parse_ip(ip);
    if (!parsed && !before.contains(ip)) errors.invalid(external[i], ip, kIpText);
    if (!parsed) continue;
    if (const std::string why = special_ip_problem(*parsed, ip); !why.empty()) errors.invalid(external[i], ip, why);
  }
  supported_value(*spec, "type", at, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}, errors);
  distinct_ports(ports, type != "ClusterIP", ports_at, errors);
  load_balancer(doc, at, errors);
  external_traffic(*spec, at, errors);
  supported_value(*spec, "internalTrafficPolicy", at, {"Cluster", "Local"}, errors, true);
  supported_value(*spec, "trafficDistribution", at, {"PreferClose", "PreferSameZone", "PreferSameNode"}, errors, true);
}

/// A list whose first entry stays, and whose second may come, or go with the policy that says so.
struct Stacked {
  std::string_view list;
  std::string_view released;  ///< Of the second.
  std::string_view unset;     ///< Of all.
  bool shows_all_changes;     ///< Each changed entry by its place; otherwise all at the first.
};

void stacked_update(const Stacked& rule, const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / rule.list;
  const json::Array &before = get_array(old, {"spec", rule.list}), &now = get_array(doc, {"spec", rule.list}),
                    &addresses = get_array(doc, {"spec", "clusterIPs"});
  constexpr std::string_view kFixed = "may not change once set";
  if (before.size() == now.size()) {
    for (std::size_t i = 0; i < now.size(); ++i)
      if (before[i] != now[i]) errors.invalid(at[rule.shows_all_changes ? i : 0], Value(now), kFixed);
    return;
  }
  if (before.size() > now.size() && addresses.empty()) errors.invalid(at[0], now.empty() ? Value(nullptr) : Value(now), rule.unset);
  if (!before.empty() && !now.empty() && before[0] != now[0]) errors.invalid(at[0], Value(addresses), kFixed);
  if (before.size() > now.size() && now.size() == 1 && get_string(doc, {"spec", "ipFamilyPolicy"}) != "SingleStack") {
    const Value* policy = json::find(doc, {"spec", "ipFamilyPolicy"});
    errors.invalid(spec / "ipFamilyPolicy", policy == nullptr ? Value(nullptr) : *policy, rule.released);
  }
}

/// Whether the addresses are in order. They are given out before anything else is looked at: what is wrong with them is told alone.
bool addresses_first(const Value* old, const Value& doc, Errors& errors) {
  const std::size_t before = errors.size();
  if (get_string(doc, {"spec", "type"}) != "ExternalName") cluster_ips(old, doc, Path("spec"), errors);
  return errors.size() == before;
}

}  // namespace

void service(const Value& doc, Errors& errors) {
  if (addresses_first(nullptr, doc, errors)) whole_service(nullptr, doc, errors);
}

void service_update(const Value& old, const Value& doc, Errors& errors) {
  if (!addresses_first(&old, doc, errors)) return;
  const Path at("spec");
  const bool has_addresses = get_string(old, {"spec", "type"}) != "ExternalName" && get_string(doc, {"spec", "type"}) != "ExternalName";
  const bool was_headless = is_headless(old), stays_headless = was_headless && is_headless(doc);
  if (has_addresses && !stays_headless)
    stacked_update(
        {"clusterIPs", "must be set to 'SingleStack' when releasing the secondary clusterIP", "primary clusterIP can not be unset", true},
        old, doc, errors);
  if (has_addresses && !was_headless && !is_headless(doc))
    stacked_update(
        {"ipFamilies", "must be set to 'SingleStack' when releasing the secondary ipFamily", "primary ipFamily can not be unset", false},
        old, doc, errors);
  balancer_class(&old, doc, at, errors);
  const auto port_of = [](const Value& service) -> std::optional<std::int64_t> {
    const bool has_one =
        get_string(service, {"spec", "type"}) == "LoadBalancer" && get_string(service, {"spec", "externalTrafficPolicy"}) == "Local";
    return has_one ? std::optional(get_int(service, {"spec", "healthCheckNodePort"})) : std::nullopt;
  };
  const auto before = port_of(old), now = port_of(doc);
  if (before && now && *before != *now) errors.forbidden(at / "healthCheckNodePort", kImmutable);
  whole_service(&old, doc, errors);
}

void endpoints(const Value& doc, Errors& errors) {
  const Path at("subsets");
  std::size_t i = 0;
  for (const Value& subset : get_array(doc, {"subsets"})) {
    const Path one = at[i++];
    if (get_array(subset, {"addresses"}).empty() && get_array(subset, {"notReadyAddresses"}).empty())
      errors.required(one, "must specify `addresses` or `notReadyAddresses`");
    for (const char* list : {"addresses", "notReadyAddresses"}) addresses(subset, list, is_of_this_server(doc), one, errors);
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
