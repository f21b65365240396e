// What one port of a Service needs in the kernel's tables. Pure: words of nft, without the commands around them.
//
// A packet's way: its address, protocol and port lead by the map `service-ips` to a chain that all Services with as many endpoints share
// ("choose-3"); that draws a number and goes on to the chain of that number ("pick-1"), which finds an endpoint by address, protocol and
// port in the map of its name. So a Service that changes is elements of maps that change, whose price in the kernel does not grow with
// their number; chains of its own it has only for loadBalancerSourceRanges. (One map with the number in its key
// would do, but nft 1.0.6 cannot read such a map again from the kernel, or takes it for TCP's alone.) With session affinity the chains are
// others ("affine-10800-3"): first they look into one set of all clients for the endpoint that this one had.
#pragma once
#include <compare>
#include <map>
#include <string>
#include <vector>

#include "node/services/service_table.h"

namespace berth::node::services {

struct RuleOptions {
  std::string table = "berth";  ///< The name of our tables: nodes of one machine keep apart.
  /// Traffic between pods of this machine does not pass the rules a second time on its way back (bridge-nf-call-iptables is off), so its
  /// source is masqueraded.
  bool masquerades_local = false;
  /// The block of all pods of this machine's nodes (IPv4): among themselves they see each other's addresses, whatever else changes the
  /// sources of what leaves a node. Empty: not known.
  std::string pod_block;
};

/// nft's words for one address family.
struct Family {
  const char *name, *type, *localhost;
  bool is_ipv6;
};
inline constexpr Family kFamilies[] = {{"ip", "ipv4_addr", "127.0.0.0/8", false}, {"ip6", "ipv6_addr", "::1", true}};

/// An element of a map, or of a set (no value).
struct Element {
  std::string map, key, value;
  friend auto operator<=>(const Element&, const Element&) = default;
};

using Chain = std::vector<std::string>;  ///< Its rules.

struct PortRules {
  std::vector<Element> elements;        ///< In order.
  std::map<std::string, Chain> chains;  ///< Its own alone.
  /// Chains that it shares with others, in the order of their making; `shared_chain` says what is in them.
  std::vector<std::string> shared;
};

PortRules rules_of_port(const ServicePort& port, const RuleOptions& options);

struct SharedChain {
  Chain rules;
  std::string map;                 ///< What stands in braces behind the map of the chain's name; empty: it has none.
  std::vector<std::string> picks;  ///< Chains that it leads to and that no port names.
};
SharedChain shared_chain(const std::string& name, const Family& family, const RuleOptions& options);

}  // namespace berth::node::services
