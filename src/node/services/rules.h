// The table of Services as nftables: two tables of our own (ip and ip6), maps from address, protocol and port to a chain a
// Service, a chain an endpoint. The shape is kube-proxy's nftables mode (KEP-3866). Pure: text for `nft -f`, each text one transaction of
// the kernel.
#pragma once
#include <string>

#include "node/services/service_table.h"

namespace berth::node::services {

struct RuleOptions {
  std::string table = "berth";  ///< The name of our tables: nodes of one machine keep apart.
  /// Traffic between pods of this machine does not pass the rules a second time on its way back (bridge-nf-call-iptables is off), so its
  /// source is masqueraded.
  bool masquerades_local = false;
};

/// Takes whatever is there of ours away and sets the whole table.
std::string whole_rules(const ServiceTable& table, const RuleOptions& options);
/// What leads from one table to the next: chains and elements of ports that changed, and no others. Empty: nothing to do.
std::string rules_between(const ServiceTable& before, const ServiceTable& after, const RuleOptions& options);
/// 16 hex digits of a text: names of chains and tables have room for that and a prefix, whatever it is.
std::string digest(std::string_view text);
/// Takes everything of ours away.
std::string no_rules(const std::string& table);

}  // namespace berth::node::services
