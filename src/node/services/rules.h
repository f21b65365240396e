// The table of Services as nftables: two tables of our own (ip and ip6), kept in step by elements of maps (port_rules.h has the shape). The
// first idea is kube-proxy's nftables mode (KEP-3866). Pure: text for `nft -f`, each text one transaction of the kernel.
#pragma once
#include <memory>
#include <string>

#include "node/services/port_rules.h"
#include "node/services/service_table.h"

namespace berth::node::services {

/// What the kernel's tables should hold, and what leads there from what it was last told. The price of a step is that of what changed in
/// it. Not thread-safe.
class Rules {
 public:
  explicit Rules(RuleOptions options);
  ~Rules();
  /// A port by its name in a ServiceTable; endpoints that stay keep their places.
  void set(const std::string& name, ServicePort port);
  void erase(const std::string& name);
  [[nodiscard]] std::size_t size() const;
  /// What changed since the last step, taken as told. Empty: nothing to do. Where two Services claim one address and port, the first by
  /// name has it, as long as it is there.
  std::string step();
  /// Takes whatever is there of ours away and sets the whole, taken as told: for the beginning, and after a step that failed.
  std::string whole();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Takes everything of ours away.
std::string no_rules(const std::string& table);

}  // namespace berth::node::services
