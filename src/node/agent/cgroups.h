// Control groups, version 1 or 2, as far as a node needs them: the tree above its pods, their limits, and what they use.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace berth::node::agent {

/// Limits of one group; absent: left as it is.
struct CgroupLimits {
  std::optional<std::int64_t> memory_bytes;  ///< -1: none.
  std::optional<std::uint64_t> cpu_shares;   ///< cgroup v1's scale, 2 … 262144; converted for v2.
  std::optional<std::int64_t> cpu_quota_us;  ///< Per 100 ms; -1: none.
  std::optional<std::int64_t> pids;
};

struct CgroupMemory {
  std::uint64_t usage_bytes = 0, working_set_bytes = 0;  ///< The working set leaves out page cache that nobody used lately.
  std::optional<std::uint64_t> limit_bytes;
  std::optional<std::uint64_t> rss_bytes, page_faults, major_page_faults;
};

/// Pressure stall information of one resource (kernel Documentation/accounting/psi): the share of the last 10, 60, 300 s, in percent, in
/// which some, or all, tasks waited for it, and the total in microseconds.
struct PressureShares {
  double avg10 = 0, avg60 = 0, avg300 = 0;
  std::uint64_t total_us = 0;
};
struct Pressure {
  PressureShares some;
  std::optional<PressureShares> full;  ///< Not told for the machine's cpu by older kernels.
};
/// Nullopt where the text is not of the kernel's form.
[[nodiscard]] std::optional<Pressure> parse_pressure(std::string_view text);

/// Groups are named by their path below the hierarchy's root, "/kubepods/burstable/podUID". Stateless but for the version found at start;
/// thread-safe.
class Cgroups {
 public:
  /// kUnavailable when there is no writable hierarchy with a memory controller; the message says what was found.
  static Result<Cgroups> detect();
  /// As detect, for a hierarchy mounted elsewhere.
  static Result<Cgroups> at(std::string root);
  /// A hierarchy somewhere else (tests): nothing is checked.
  static Cgroups at(std::string root, bool is_v2);
  /// Whether the kernel counts swap for this group, so that it can be limited.
  [[nodiscard]] bool counts_swap(const std::string& group) const;
  [[nodiscard]] bool is_v2() const { return v2_; }

  Result<void> create(const std::string& path, const CgroupLimits& limits) const;
  Result<void> set_limits(const std::string& path, const CgroupLimits& limits) const;
  /// Removes a group and those below it. Groups with processes stay: then an error.
  Result<void> remove(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;
  /// The names of the groups right below `path`.
  [[nodiscard]] std::vector<std::string> children(const std::string& path) const;
  /// Nullopt when the group is gone.
  [[nodiscard]] std::optional<CgroupMemory> memory(const std::string& path) const;
  /// What a group uses, where that is in the way of a limit below the one in force: version 1's kernel refuses such a limit, version 2's
  /// takes it and kills. Nullopt: it is not, or nothing would be lowered. (Kubelet, validateMemoryResizeAction.)
  [[nodiscard]] std::optional<std::uint64_t> usage_in_the_way(const std::string& path, std::int64_t memory_bytes) const;
  [[nodiscard]] std::optional<std::uint64_t> cpu_usage_ns(const std::string& path) const;
  [[nodiscard]] std::optional<std::uint64_t> process_count(const std::string& path) const;
  /// Of "cpu", "memory" or "io"; nullopt on version 1, and where the kernel does not tell.
  [[nodiscard]] std::optional<Pressure> pressure(const std::string& path, std::string_view resource) const;
  /// Processes that the kernel's OOM killer took from this group and those below it since it was made; nullopt where that is not told.
  [[nodiscard]] std::optional<std::uint64_t> oom_kills(const std::string& path) const;
  /// The directory of a group; version 1 has one per controller, version 2 ignores it.
  [[nodiscard]] std::string directory(const std::string& controller, const std::string& path) const;

 private:
  [[nodiscard]] std::vector<std::string> hierarchies() const;
  bool v2_ = false;
  std::string root_ = "/sys/fs/cgroup";
};

/// Reads a whole small file (procfs, cgroupfs); nullopt when that fails.
std::optional<std::string> read_small_file(const std::string& path);
/// The number that a file holds.
std::optional<std::uint64_t> read_number(const std::string& path);
/// The number behind `key ` in a file of such lines.
std::optional<std::uint64_t> read_key(const std::string& path, std::string_view key);
/// Writes a value to a control file. The error names the file.
Result<void> write_control_file(const std::string& path, const std::string& value);

}  // namespace berth::node::agent
