// What one port of a Service needs in the kernel's tables. Pure: words of nft, without the commands around them.
//
// A packet's way: its address, protocol and port lead by the map `service-ips` to a chain that all Services with as many endpoints share
// ("choose-3"); that draws a number and finds, by address, protocol, port and number, an endpoint in the map `endpoints`. So a Service
// that changes is elements of maps that change, whose price in the kernel does not grow with their number; chains of its own it has only
// for session affinity and for loadBalancerSourceRanges.
#pragma once
#include <compare>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "node/services/service_table.h"

namespace berth::node::services {

struct RuleOptions {
  std::string table = "berth";  ///< The name of our tables: nodes of one machine keep apart.
  /// Traffic between pods of this machine does not pass the rules a second time on its way back (bridge-nf-call-iptables is off), so its
  /// source is masqueraded.
  bool masquerades_local = false;
};

/// nft's words for one address family.
struct Family {
  const char *name, *type, *localhost;
  bool is_ipv6;
};
inline constexpr Family kFamilies[] = {{"ip", "ipv4_addr", "127.0.0.0/8", false}, {"ip6", "ipv6_addr", "::1", true}};

/// An element of a map, or of a set (no value).
struct Element {
  const char* map;
  std::string key, value;
  friend bool operator==(const Element& a, const Element& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Element& a, const Element& b) {
    if (const auto by_map = std::string_view(a.map) <=> std::string_view(b.map); by_map != 0) return by_map;
    if (const auto by_key = a.key <=> b.key; by_key != 0) return by_key;
    return a.value <=> b.value;
  }
};

using Chain = std::vector<std::string>;  ///< Its rules.

struct PortRules {
  std::vector<Element> elements;            ///< In order.
  std::map<std::string, Chain> chains;      ///< Its own alone.
  std::map<std::string, std::string> sets;  ///< Its own alone: what stands in braces behind the name.
  std::set<std::string> shared;             ///< Chains that it shares with others: rules_of_shared says what is in them.
};

PortRules rules_of_port(const ServicePort& port, const RuleOptions& options);
/// `name`: one of PortRules::shared. Those that another one leads to are named in `needs`.
Chain rules_of_shared(const std::string& name, const Family& family, const RuleOptions& options, std::vector<std::string>& needs);

}  // namespace berth::node::services
