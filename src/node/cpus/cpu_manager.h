// The processors that containers of a node have to themselves, kept over restarts (kubelet's CPU manager with the policy "static"). What
// follows from it is decided in cpu_ledger.h.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "node/cpus/cpu_ledger.h"

namespace berth::node::cpus {

struct CpuManagerOptions {
  std::string policy = "none", reserved;       ///< reserved: reservedSystemCPUs; empty: the lowest cores, so many as are reserved.
  std::map<std::string, std::string> options;  ///< cpuManagerPolicyOptions.
  std::int64_t reserved_milli = 0;             ///< Of the system and the kubelet together.
  std::string checkpoint;                      ///< A file: who has what, for the next process.
  std::function<void()> changed;               ///< The shared processors are others. Any thread.
  std::string system_root = "/sys/devices/system";
};

/// Thread-safe.
class CpuManager : public numa::Giver {
 public:
  /// Null for the policy "none". The error says what in the configuration, the machine or the checkpoint is in the way, and what to do.
  static Result<std::unique_ptr<CpuManager>> start(CpuManagerOptions options);
  /// Where a container is to run, as the kernel's lists have it.
  [[nodiscard]] virtual std::string cpus_of(const std::string& uid, const std::string& container) const = 0;
  /// Those that it has to itself; empty: none.
  [[nodiscard]] virtual CpuSet own(const std::string& uid, const std::string& container) const = 0;
  [[nodiscard]] virtual CpuSet allocatable() const = 0;
  virtual void tell(numa::Offer& offer) const = 0;
  /// How many threads a core has, where only whole cores are given; else 1.
  [[nodiscard]] virtual int threads_of_whole_cores() const = 0;
  /// As CpuLedger has them.
  [[nodiscard]] virtual std::vector<numa::NodeSet> sockets() const = 0;
};

}  // namespace berth::node::cpus
