#include "node/services/port_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "node/services/addresses.h"

namespace berth::node::services {
namespace {

/// Names of shared chains: how the endpoints are found, and how many there are or which one it is.
constexpr std::string_view kChoose = "choose-", kChooseMasqueraded = "choose-masqueraded-", kPick = "pick-";
constexpr std::string_view kNode = "node-";  ///< In front: found by the node's port.
/// With session affinity, each followed by the seconds: choosing, choosing masqueraded, going to one, going where a client was.
constexpr std::string_view kAffine = "affine-", kAffineMasqueraded = "affine-masqueraded-", kAffinePick = "affine-pick-",
                           kAffineKnown = "affine-known-";

/// Marks of endpoints, none of them 0 and no two alike; each keeps its own whoever comes or goes beside it (but for the rare two whose
/// digests are alike).
std::vector<std::uint32_t> marks_of(const std::vector<Endpoint>& endpoints) {
  std::vector<std::uint32_t> marks(endpoints.size());
  std::map<std::uint32_t, std::size_t> taken;
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    std::uint32_t mark = 2166136261U;
    for (const char c : fmt::format("{} {}", endpoints[i].address, endpoints[i].port))
      mark = (mark ^ static_cast<unsigned char>(c)) * 16777619U;
    while (mark == 0 || !taken.try_emplace(mark, i).second) ++mark;
    marks[i] = mark;
  }
  return marks;
}

/// A client, what it asked, and the endpoint that the connection's mark names.
std::string client_key(const Family& family) {
  return fmt::format("{0} saddr . {0} daddr . meta l4proto . th dport . ct mark", family.name);
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
      for (const Endpoint& e : *list) {
        // Another node's pod comes back to itself when it asks this node.
        element("hairpins", fmt::format("{0} . {0}", e.address), "");
        if (options_.masquerades_local && e.is_local) element("local-endpoints", e.address, "");
      }
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
    if (port_.affinity_seconds > 0) return affine_way(prefix, key, usable(is_local), is_masqueraded);
    const auto& endpoints = usable(is_local);
    for (std::size_t i = 0; i < endpoints.size(); ++i)
      element(fmt::format("{}{}{}", prefix, kPick, i), key, fmt::format("{} . {}", endpoints[i].address, endpoints[i].port));
    share(fmt::format("{}{}{}", prefix, kChoose, endpoints.size()));
    if (is_masqueraded) share(fmt::format("{}{}{}", prefix, kChooseMasqueraded, endpoints.size()));
    return "goto " + out_.shared.back();
  }
  /// The same where clients come back to where they were.
  std::string affine_way(std::string_view prefix, const std::string& key, const std::vector<Endpoint>& endpoints, bool is_masqueraded) {
    const int seconds = port_.affinity_seconds;
    const auto marks = marks_of(endpoints);
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      element(fmt::format("{}{}{}-{}", prefix, kAffinePick, seconds, i), key, fmt::format("0x{:08x}", marks[i]));
      element(fmt::format("{}affine-endpoints", prefix), fmt::format("{} . 0x{:08x}", key, marks[i]),
              fmt::format("{} . {}", endpoints[i].address, endpoints[i].port));
    }
    share(fmt::format("{}{}{}-{}", prefix, kAffine, seconds, endpoints.size()));
    if (is_masqueraded) share(fmt::format("{}{}{}-{}", prefix, kAffineMasqueraded, seconds, endpoints.size()));
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

namespace {

/// "numgen random mod 2 vmap { 0 : goto pick-0, 1 : goto pick-1 }".
std::string drawn(const std::vector<std::string>& picks) {
  std::string choices;
  for (std::size_t i = 0; i < picks.size(); ++i) choices += fmt::format("{}{} : goto {}", i == 0 ? "" : ", ", i, picks[i]);
  return fmt::format("numgen random mod {} vmap {{ {} }}", picks.size(), choices);
}

/// A shared chain for Services with session affinity. The set `affinity` has an element for each client, address, protocol, port and
/// endpoint's mark; `affine-endpoints` leads from a mark to the endpoint. `rest` is the chain's name behind the prefix. The connection's
/// mark carries the endpoint's from rule to rule, since no rule can look up what another lookup says. (A map from clients to marks would do
/// without asking for one endpoint after the other, but nft 1.0.6 ends when it is told of one with IPv6 addresses.)
SharedChain affine_chain(std::string_view prefix, std::string_view rest, const std::string& own_key, const std::string& own_type,
                         const Family& family, const RuleOptions& options) {
  SharedChain out;
  const auto number_behind = [&](std::string_view word) {
    return std::string(rest.substr(word.size(), rest.find('-', word.size()) - word.size()));
  };
  if (rest.starts_with(kAffineKnown)) {
    if (options.masquerades_local) out.rules.emplace_back("jump mark-as-led");
    out.rules.push_back(fmt::format("update @affinity {{ {} timeout {}s }}", client_key(family), number_behind(kAffineKnown)));
    out.rules.push_back(fmt::format("dnat {} to {} . ct mark map @{}affine-endpoints", family.name, own_key, prefix));
  } else if (rest.starts_with(kAffinePick)) {
    out.rules.push_back(fmt::format("ct mark set {} map @{}{}", own_key, prefix, rest));
    out.rules.push_back(fmt::format("goto {}{}{}", prefix, kAffineKnown, number_behind(kAffinePick)));
    out.map = fmt::format("type {} : mark;", own_type);
  } else if (rest.starts_with(kAffineMasqueraded)) {
    out.rules = {"jump mark-for-masquerade", fmt::format("goto {}{}{}", prefix, kAffine, rest.substr(kAffineMasqueraded.size()))};
  } else {
    const std::string seconds = number_behind(kAffine), known = fmt::format("{}{}{}", prefix, kAffineKnown, seconds);
    std::vector<std::string> picks;
    for (int i = 0, count = std::stoi(std::string(rest.substr(rest.rfind('-') + 1))); i < count; ++i) {
      picks.push_back(fmt::format("{}{}{}-{}", prefix, kAffinePick, seconds, i));
      out.rules.push_back(fmt::format("ct mark set {} map @{}", own_key, picks.back()));
      out.rules.push_back(fmt::format("{} @affinity goto {}", client_key(family), known));
    }
    out.rules.push_back(drawn(picks));
    out.picks = {known};
    out.picks.insert(out.picks.end(), picks.begin(), picks.end());
  }
  return out;
}

}  // namespace

SharedChain shared_chain(const std::string& name, const Family& family, const RuleOptions& options) {
  SharedChain out;
  const bool by_node_port = name.starts_with(kNode);
  const std::string_view prefix = by_node_port ? kNode : "", rest = std::string_view(name).substr(prefix.size());
  const std::string own_key = by_node_port ? "meta l4proto . th dport" : fmt::format("{} daddr . meta l4proto . th dport", family.name);
  const std::string own_type = by_node_port ? "inet_proto . inet_service" : fmt::format("{} . inet_proto . inet_service", family.type);
  if (rest.starts_with(kAffine)) return affine_chain(prefix, rest, own_key, own_type, family, options);
  if (rest.starts_with(kPick)) {
    if (options.masquerades_local) out.rules.emplace_back("jump mark-as-led");
    out.rules.push_back(fmt::format("dnat {} to {} map @{}", family.name, own_key, name));
    out.map = fmt::format("type {} : {} . inet_service;", own_type, family.type);
  } else if (rest.starts_with(kChooseMasqueraded)) {
    out.rules = {"jump mark-for-masquerade", fmt::format("goto {}{}{}", prefix, kChoose, rest.substr(kChooseMasqueraded.size()))};
  } else {
    for (int i = 0, count = std::stoi(std::string(rest.substr(kChoose.size()))); i < count; ++i)
      out.picks.push_back(fmt::format("{}{}{}", prefix, kPick, i));
    out.rules.push_back(drawn(out.picks));
  }
  return out;
}

}  // namespace berth::node::services
