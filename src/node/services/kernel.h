// The kernel's packet rules, by libnftables. One script is one transaction: all of it or nothing.
#pragma once
#include <memory>
#include <string>

#include "base/error.h"

namespace berth::node::services {

/// Not thread-safe; blocks for milliseconds, with thousands of rules for hundreds of them.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Runs a script of nft. The error has the first complaint of nft's.
  virtual Result<void> run(const std::string& script) = 0;
};

/// kUnavailable: no rights (CAP_NET_ADMIN), no nf_tables in the kernel, or built without libnftables; the message says which.
Result<std::unique_ptr<Kernel>> open_kernel();
/// Whether packets between two ports of one bridge pass the rules; turned on where it can be.
bool bridged_traffic_passes_rules();

}  // namespace berth::node::services
