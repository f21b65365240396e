#include "node/services/service_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "node/services/addresses.h"

namespace berth::node::services {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

/// What is no address (`canonical`: canonical_address or canonical_block) is left out: one bad word would stop the rules of all.
std::vector<std::string> of_family(const json::Array& addresses, bool ipv6, std::string (*canonical)(std::string_view)) {
  std::vector<std::string> out;
  for (const json::Value& one : addresses)
    if (one.is_string() && is_ipv6_text(json::as_view(one)) == ipv6)
      if (std::string text = canonical(json::as_view(one)); !text.empty()) out.push_back(std::move(text));
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// What others lead to, or nobody: kube-proxy looks at no Service and no slice with one of these labels.
bool is_left_alone(const json::Value& object) {
  for (const std::string_view label : {"service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"})
    if (json::find(object, {"metadata", "labels", label}) != nullptr) return true;
  return false;
}

struct Candidate {
  Endpoint endpoint;
  bool is_ready = true, is_serving = true, serves_while_ending = false;
  bool has_hint = false, is_for_zone = false;
  bool has_node_hint = false, is_for_node = false;
};

/// The port's number in a slice; nullopt: the slice has no such port.
std::optional<std::uint16_t> port_in(const json::Value& slice, std::string_view name, std::string_view protocol) {
  for (const json::Value& port : get_array(slice, {"ports"}))
    if (get_string(port, {"name"}) == name && lower(get_string(port, {"protocol"}, "TCP")) == protocol && get_int(port, {"port"}) > 0)
      return static_cast<std::uint16_t>(get_int(port, {"port"}));
  return std::nullopt;
}

bool condition(const json::Value& endpoint, std::string_view name, bool fallback) {
  const json::Value* const found = json::find(endpoint, {"conditions", name});
  return found != nullptr && found->is_bool() ? found->get_bool() : fallback;
}

Candidate candidate_of(const json::Value& endpoint, std::uint16_t port, const std::string& node, const std::string& zone) {
  Candidate out;
  const auto& addresses = get_array(endpoint, {"addresses"});
  if (!addresses.empty() && addresses[0].is_string()) out.endpoint.address = canonical_address(json::as_view(addresses[0]));
  out.endpoint.port = port;
  out.endpoint.is_local = get_string(endpoint, {"nodeName"}) == node;
  out.is_ready = condition(endpoint, "ready", true);
  out.is_serving = condition(endpoint, "serving", out.is_ready);
  out.serves_while_ending = out.is_serving && condition(endpoint, "terminating", false);
  for (const json::Value& hint : get_array(endpoint, {"hints", "forZones"})) {
    out.has_hint = true;
    out.is_for_zone |= get_string(hint, {"name"}) == zone;
  }
  for (const json::Value& hint : get_array(endpoint, {"hints", "forNodes"})) {
    out.has_node_hint = true;
    out.is_for_node |= get_string(hint, {"name"}) == node;
  }
  return out;
}

/// Ready ones; when there is none, those that serve while they end.
std::vector<Endpoint> usable(const std::vector<Candidate>& all, const auto& counts) {
  std::vector<Endpoint> out;
  for (const bool wants_ready : {true, false}) {
    for (const Candidate& one : all)
      if (counts(one) && (wants_ready ? one.is_ready : one.serves_while_ending)) out.push_back(one.endpoint);
    if (!out.empty()) break;
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

void find_endpoints(const std::vector<const json::Value*>& slices, std::string_view port_name, const std::string& node,
                    const std::string& zone, ServicePort& into) {
  std::vector<Candidate> all;
  for (const json::Value* slice : slices) {
    if (is_left_alone(*slice) || (get_string(*slice, {"addressType"}) == "IPv6") != into.is_ipv6 ||
        get_string(*slice, {"addressType"}) == "FQDN")
      continue;
    const auto port = port_in(*slice, port_name, into.protocol);
    if (!port) continue;
    for (const json::Value& endpoint : get_array(*slice, {"endpoints"}))
      if (Candidate one = candidate_of(endpoint, *port, node, zone); !one.endpoint.address.empty()) all.push_back(std::move(one));
  }
  const auto is_ready = [](const Candidate& one) { return one.is_ready; };
  const bool by_zone = !zone.empty() && std::ranges::all_of(all, [&](const Candidate& one) { return !is_ready(one) || one.has_hint; }) &&
                       std::ranges::any_of(all, [&](const Candidate& one) { return is_ready(one) && one.is_for_zone; });
  const bool by_node = std::ranges::all_of(all, [&](const Candidate& one) { return !is_ready(one) || one.has_node_hint; }) &&
                       std::ranges::any_of(all, [&](const Candidate& one) { return is_ready(one) && one.is_for_node; });
  into.endpoints = usable(all, [&](const Candidate& one) { return by_node ? one.is_for_node : !by_zone || one.is_for_zone; });
  into.local_endpoints = usable(all, [](const Candidate& one) { return one.endpoint.is_local; });
  if (into.protocol == "udp")
    for (const Candidate& one : all)
      if (one.is_serving) into.serving.push_back(one.endpoint);
}

/// The load balancer's addresses that this node takes for its own.
std::vector<std::string> balancer_addresses(const json::Value& service, bool ipv6) {
  std::vector<std::string> out;
  for (const json::Value& ingress : get_array(service, {"status", "loadBalancer", "ingress"}))
    if (std::string ip = canonical_address(get_string(ingress, {"ip"}));
        !ip.empty() && is_ipv6_text(ip) == ipv6 && get_string(ingress, {"ipMode"}) != "Proxy")
      out.push_back(std::move(ip));
  return out;
}

}  // namespace

int ready_endpoints_on(const std::vector<const json::Value*>& slices, const std::string& node) {
  std::set<std::string_view> addresses;
  for (const json::Value* slice : slices)
    for (const json::Value& endpoint : get_array(*slice, {"endpoints"}))
      if (const auto& listed = get_array(endpoint, {"addresses"}); !is_left_alone(*slice) && get_string(endpoint, {"nodeName"}) == node &&
                                                                   condition(endpoint, "ready", true) && !listed.empty() &&
                                                                   listed[0].is_string())
        addresses.insert(json::as_view(listed[0]));
  return static_cast<int>(addresses.size());
}

void add_service(const json::Value& service, const std::vector<const json::Value*>& slices, const std::string& node,
                 const std::string& zone, ServiceTable& into) {
  if (is_left_alone(service)) return;
  const std::string_view type = get_string(service, {"spec", "type"});
  if (type == "ExternalName" || get_string(service, {"spec", "clusterIP"}) == "None") return;
  json::Array addresses = get_array(service, {"spec", "clusterIPs"});
  if (addresses.empty()) addresses.emplace_back(get_string(service, {"spec", "clusterIP"}));
  for (const bool ipv6 : {false, true}) {
    const auto own = of_family(addresses, ipv6, canonical_address);
    if (own.empty()) continue;
    for (const json::Value& port : get_array(service, {"spec", "ports"})) {
      ServicePort one;
      one.name = fmt::format("{}/{}:{}", get_string(service, {"metadata", "namespace"}), get_string(service, {"metadata", "name"}),
                             get_string(port, {"name"}));
      one.is_ipv6 = ipv6;
      one.protocol = lower(get_string(port, {"protocol"}, "TCP"));
      one.cluster_ip = own[0];
      one.port = static_cast<std::uint16_t>(get_int(port, {"port"}));
      one.node_port = static_cast<std::uint16_t>(get_int(port, {"nodePort"}));
      one.external_ips = of_family(get_array(service, {"spec", "externalIPs"}), ipv6, canonical_address);
      one.balancer_ips = balancer_addresses(service, ipv6);
      one.external_ips.insert(one.external_ips.end(), one.balancer_ips.begin(), one.balancer_ips.end());
      one.source_ranges = of_family(get_array(service, {"spec", "loadBalancerSourceRanges"}), ipv6, canonical_block);
      one.external_local = get_string(service, {"spec", "externalTrafficPolicy"}) == "Local";
      one.internal_local = get_string(service, {"spec", "internalTrafficPolicy"}) == "Local";
      if (get_string(service, {"spec", "sessionAffinity"}) == "ClientIP") {
        const auto seconds = get_int(service, {"spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"});
        one.affinity_seconds = seconds > 0 ? static_cast<int>(seconds) : 10800;
      }
      find_endpoints(slices, get_string(port, {"name"}), node, zone, one);
      into[ipv6 ? one.name + "/6" : one.name] = std::move(one);
    }
  }
}

}  // namespace berth::node::services
