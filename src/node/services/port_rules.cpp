#include "node/services/port_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "node/services/addresses.h"

namespace berth::node::services {
namespace {

/// Names of shared chains: how the endpoints are found, and how many there are or which one it is.
constexpr std::string_view kChoose = "choose-", kChooseMasqueraded = "choose-masqueraded-", kPick = "pick-";
constexpr std::string_view kNode = "node-";  ///< In front: found by the node's port.

std::string host_port(const Endpoint& e, bool is_ipv6) {
  return is_ipv6 ? fmt::format("[{}]:{}", e.address, e.port) : fmt::format("{}:{}", e.address, e.port);
}

/// Compiles one port. Chains and sets of its own begin with the port's digest, so that ports never meet.
class PortCompiler {
 public:
  PortCompiler(const ServicePort& port, const RuleOptions& options)
      : port_(port), options_(options), family_(kFamilies[port.is_ipv6 ? 1 : 0]), key_(digest(port.name + "/" + port.protocol)) {}

  PortRules run() {
    element("cluster-ips", port_.cluster_ip, "goto refuse");
    address(port_.cluster_ip, port_.internal_local, false);
    for (const std::string& ip : port_.external_ips) address(ip, port_.external_local, true);
    node_port();
    for (const auto* list : {&port_.endpoints, &port_.local_endpoints})
      for (const Endpoint& e : *list)
        if (e.is_local) element("local-endpoints", options_.masquerades_local ? e.address : fmt::format("{0} . {0}", e.address), "");
    if (port_.affinity_seconds > 0) affinity();
    firewall();
    std::ranges::sort(out_.elements);
    // A Service may name an address twice; what it said first holds.
    const auto same = [](const Element& a, const Element& b) { return a.map == b.map && a.key == b.key; };
    const auto rest = std::ranges::unique(out_.elements, same);
    out_.elements.erase(rest.begin(), rest.end());
    return std::move(out_);
  }

 private:
  void element(std::string map, std::string key, std::string value) {
    out_.elements.push_back({std::move(map), std::move(key), std::move(value)});
  }
  [[nodiscard]] const std::vector<Endpoint>& usable(bool is_local) const { return is_local ? port_.local_endpoints : port_.endpoints; }

  /// Where traffic for `key` goes, which is an address or, behind `prefix` kNode, a port of the node. From outside, policy Local keeps
  /// the client's address; else its source is this node from here on.
  std::string way(std::string_view prefix, const std::string& key, bool is_local, bool from_outside) {
    const bool is_masqueraded = from_outside && !is_local;
    if (port_.affinity_seconds > 0) return fmt::format("goto {}-{}", is_masqueraded ? "external" : is_local ? "local" : "service", key_);
    const auto& endpoints = usable(is_local);
    for (std::size_t i = 0; i < endpoints.size(); ++i)
      element(fmt::format("{}{}{}", prefix, kPick, i), key, fmt::format("{} . {}", endpoints[i].address, endpoints[i].port));
    share(fmt::format("{}{}{}", prefix, kChoose, endpoints.size()));
    if (is_masqueraded) share(fmt::format("{}{}{}", prefix, kChooseMasqueraded, endpoints.size()));
    return "goto " + out_.shared.back();
  }
  void share(std::string chain) {
    std::erase(out_.shared, chain);
    out_.shared.push_back(std::move(chain));
  }
  /// Without endpoints at all a port is refused; with the policy Local and endpoints elsewhere alone, dropped.
  [[nodiscard]] const char* nowhere() const { return port_.endpoints.empty() ? "goto refuse" : "drop"; }

  void address(const std::string& ip, bool is_local, bool from_outside) {
    const std::string key = fmt::format("{} . {} . {}", ip, port_.protocol, port_.port);
    if (usable(is_local).empty()) return element("no-endpoint-services", key, nowhere());
    element("service-ips", key, way("", key, is_local, from_outside));
  }
  void node_port() {
    if (port_.node_port == 0) return;
    const std::string key = fmt::format("{} . {}", port_.protocol, port_.node_port);
    if (usable(port_.external_local).empty()) return element("no-endpoint-nodeports", key, nowhere());
    element("service-nodeports", key, way(kNode, key, port_.external_local, true));
  }

  // --- session affinity: clients that have a place go there; the others anywhere, with the same chance.

  [[nodiscard]] std::string own(std::string_view kind, const Endpoint& e) const {
    return fmt::format("{}-{}-{}", kind, key_, digest(fmt::format("{} {}", e.address, e.port)));
  }
  /// The time is part of the name: a set cannot change it.
  [[nodiscard]] std::string clients_of(const Endpoint& e) const { return fmt::format("{}-{}", own("affinity", e), port_.affinity_seconds); }

  void affinity() {
    for (const auto* list : {&port_.endpoints, &port_.local_endpoints})
      for (const Endpoint& e : *list) {
        // No size is said: the kernel allows 65,535 clients then, but sets nothing aside for them (1 MiB a set, else).
        out_.sets[clients_of(e)] = fmt::format("type {}; flags dynamic,timeout; timeout {}s;", family_.type, port_.affinity_seconds);
        Chain rules;
        if (options_.masquerades_local) rules.emplace_back("jump mark-as-led");
        rules.push_back(fmt::format("update @{} {{ {} saddr }}", clients_of(e), family_.name));
        rules.push_back(fmt::format("meta l4proto {} dnat to {}", port_.protocol, host_port(e, port_.is_ipv6)));
        out_.chains[own("endpoint", e)] = std::move(rules);
      }
    out_.chains["service-" + key_] = affine_choice(port_.endpoints);
    out_.chains["local-" + key_] = affine_choice(port_.local_endpoints);
    out_.chains["external-" + key_] = {"jump mark-for-masquerade", "goto service-" + key_};
  }
  [[nodiscard]] Chain affine_choice(const std::vector<Endpoint>& endpoints) const {
    Chain rules;
    std::string choices;
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      rules.push_back(fmt::format("{} saddr @{} goto {}", family_.name, clients_of(endpoints[i]), own("endpoint", endpoints[i])));
      choices += fmt::format("{}{} : goto {}", i == 0 ? "" : ", ", i, own("endpoint", endpoints[i]));
    }
    if (!endpoints.empty()) rules.push_back(fmt::format("numgen random mod {} vmap {{ {} }}", endpoints.size(), choices));
    return rules;
  }

  /// loadBalancerSourceRanges: who else comes to the balancer's addresses is dropped.
  void firewall() {
    if (port_.source_ranges.empty() || port_.balancer_ips.empty()) return;
    Chain& rules = out_.chains["firewall-" + key_];
    for (const std::string& range : port_.source_ranges)
      rules.push_back(range.ends_with("/0") ? "return" : fmt::format("{} saddr {} return", family_.name, range));
    rules.emplace_back("drop");
    for (const std::string& ip : port_.balancer_ips)
      element("firewall-ips", fmt::format("{} . {} . {}", ip, port_.protocol, port_.port), "goto firewall-" + key_);
  }

  const ServicePort& port_;
  const RuleOptions& options_;
  const Family& family_;
  const std::string key_;
  PortRules out_;
};

}  // namespace

PortRules rules_of_port(const ServicePort& port, const RuleOptions& options) { return PortCompiler(port, options).run(); }

SharedChain shared_chain(const std::string& name, const Family& family, const RuleOptions& options) {
  SharedChain out;
  const bool by_node_port = name.starts_with(kNode);
  const std::string_view prefix = by_node_port ? kNode : "", rest = std::string_view(name).substr(prefix.size());
  if (rest.starts_with(kPick)) {
    if (options.masquerades_local) out.rules.emplace_back("jump mark-as-led");
    const std::string key = by_node_port ? "meta l4proto . th dport" : fmt::format("{} daddr . meta l4proto . th dport", family.name);
    out.rules.push_back(fmt::format("dnat {} to {} map @{}", family.name, key, name));
    const std::string by = by_node_port ? "inet_proto . inet_service" : fmt::format("{} . inet_proto . inet_service", family.type);
    out.map = fmt::format("type {} : {} . inet_service;", by, family.type);
  } else if (rest.starts_with(kChooseMasqueraded)) {
    out.rules = {"jump mark-for-masquerade", fmt::format("goto {}{}{}", prefix, kChoose, rest.substr(kChooseMasqueraded.size()))};
  } else {
    const std::string count(rest.substr(kChoose.size()));
    std::string choices;
    for (int i = 0; i < std::stoi(count); ++i) {
      out.picks.push_back(fmt::format("{}{}{}", prefix, kPick, i));
      choices += fmt::format("{}{} : goto {}", i == 0 ? "" : ", ", i, out.picks.back());
    }
    out.rules.push_back(fmt::format("numgen random mod {} vmap {{ {} }}", count, choices));
  }
  return out;
}

}  // namespace berth::node::services
