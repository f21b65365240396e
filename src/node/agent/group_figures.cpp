#include "node/agent/group_figures.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = 1ULL << 60;  ///< Version 1 writes a number near 2^63 for "none".

std::vector<std::int64_t> processes_of(const Cgroups& cgroups, const std::string& group) {
  std::istringstream text(read_small_file(cgroups.directory("memory", group) + "/cgroup.procs").value_or(""));
  std::vector<std::int64_t> out;
  for (std::int64_t pid = 0; text >> pid;) out.push_back(pid);
  return out;
}

/// Ticks of the kernel's clock as nanoseconds.
std::optional<std::uint64_t> ticks_ns(std::optional<std::uint64_t> ticks) {
  if (!ticks) return std::nullopt;
  return *ticks * (1'000'000'000 / static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_CLK_TCK))));
}

std::optional<std::uint64_t> us_to_ns(std::optional<std::uint64_t> us) { return us ? std::optional(*us * 1000) : std::nullopt; }

CpuFigures measure_cpu(const Cgroups& cgroups, const std::string& group) {
  const std::string at = cgroups.directory("cpu", group);
  CpuFigures out;
  out.usage_ns = cgroups.cpu_usage_ns(group);
  out.periods = read_key(at + "/cpu.stat", "nr_periods");
  out.throttled_periods = read_key(at + "/cpu.stat", "nr_throttled");
  if (!cgroups.is_v2()) {
    const std::string times = cgroups.directory("cpuacct", group) + "/cpuacct.stat";
    out.user_ns = ticks_ns(read_key(times, "user"));
    out.system_ns = ticks_ns(read_key(times, "system"));
    out.throttled_ns = read_key(at + "/cpu.stat", "throttled_time");
    out.shares = read_number(at + "/cpu.shares");
    out.period_us = read_number(at + "/cpu.cfs_period_us");
    out.quota_us = read_number(at + "/cpu.cfs_quota_us");  // -1: none, and no number for us.
    return out;
  }
  out.user_ns = us_to_ns(read_key(at + "/cpu.stat", "user_usec"));
  out.system_ns = us_to_ns(read_key(at + "/cpu.stat", "system_usec"));
  out.throttled_ns = us_to_ns(read_key(at + "/cpu.stat", "throttled_usec"));
  if (const auto weight = read_number(at + "/cpu.weight"); weight && *weight > 0) out.shares = 2 + (*weight - 1) * 262142 / 9999;
  // "max 100000" or "50000 100000".
  if (const std::string most = read_small_file(at + "/cpu.max").value_or(""); !most.empty()) {
    std::istringstream words(most);
    std::string quota;
    std::uint64_t period = 0;
    words >> quota >> period;
    if (period > 0) out.period_us = period;
    std::uint64_t value = 0;
    if (std::from_chars(quota.data(), quota.data() + quota.size(), value).ec == std::errc()) out.quota_us = value;
  }
  return out;
}

std::optional<std::uint64_t> read_limit(const std::string& path) {
  const auto limit = read_number(path);
  return limit && *limit < kNoLimit ? limit : std::nullopt;
}

ProcessFigures measure_processes(const Cgroups& cgroups, const std::string& group, const std::string& proc) {
  ProcessFigures out;
  std::error_code error;
  for (const std::int64_t pid : processes_of(cgroups, group)) {
    ++out.processes;
    for (fs::directory_iterator it(fmt::format("{}/{}/fd", proc, pid), error), end; !error && it != end; it.increment(error)) {
      ++out.descriptors;
      std::error_code unread;
      out.sockets += fs::read_symlink(it->path(), unread).string().starts_with("socket:");
    }
  }
  out.threads = cgroups.process_count(group).value_or(out.processes);
  out.threads_max = read_limit(cgroups.directory("pids", group) + "/pids.max");
  return out;
}

/// "8:0" as "/dev/sda".
std::string device_path(const std::string& proc, const std::string& numbers) {
  std::error_code error;
  const fs::path link = fs::read_symlink(proc + "/../sys/dev/block/" + numbers, error);
  return error || link.empty() ? numbers : "/dev/" + link.filename().string();
}

/// Lines of "8:0 Read 123", an operation each.
void add_operations(const std::string& text, const std::string& proc, bool are_bytes, std::map<std::string, DiskFigures>& disks) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device, operation;
    std::uint64_t amount = 0;
    if (!(words >> device >> operation >> amount) || (operation != "Read" && operation != "Write")) continue;
    DiskFigures& disk = disks[device_path(proc, device)];
    (operation == "Read" ? (are_bytes ? disk.read_bytes : disk.reads) : (are_bytes ? disk.written_bytes : disk.writes)) += amount;
  }
}

std::map<std::string, DiskFigures> measure_disks(const Cgroups& cgroups, const std::string& group, const std::string& proc) {
  std::map<std::string, DiskFigures> out;
  const std::string at = cgroups.directory("blkio", group);
  if (!cgroups.is_v2()) {
    add_operations(read_small_file(at + "/blkio.throttle.io_service_bytes").value_or(""), proc, true, out);
    add_operations(read_small_file(at + "/blkio.throttle.io_serviced").value_or(""), proc, false, out);
    return out;
  }
  // "8:0 rbytes=1 wbytes=2 rios=3 wios=4 …".
  std::istringstream lines(read_small_file(at + "/io.stat").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device;
    if (!(words >> device)) continue;
    DiskFigures& disk = out[device_path(proc, device)];
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) continue;
      const std::uint64_t amount = std::strtoull(word.c_str() + equals + 1, nullptr, 10);
      const std::string_view key = std::string_view(word).substr(0, equals);
      if (key == "rbytes") disk.read_bytes = amount;
      if (key == "wbytes") disk.written_bytes = amount;
      if (key == "rios") disk.reads = amount;
      if (key == "wios") disk.writes = amount;
    }
  }
  return out;
}

bool is_told(std::string_view interface) {
  return interface != "lo" && !interface.starts_with("veth") && !interface.starts_with("docker") && !interface.starts_with("nerdctl");
}

}  // namespace

MemoryFigures measure_more_memory(const Cgroups& cgroups, const std::string& group) {
  const std::string at = cgroups.directory("memory", group);
  const std::string stat = at + "/memory.stat";
  MemoryFigures out;
  if (cgroups.is_v2()) {
    out.cache_bytes = read_key(stat, "file");
    out.mapped_bytes = read_key(stat, "file_mapped");
    out.kernel_bytes = read_key(stat, "kernel");
    out.most_bytes = read_number(at + "/memory.peak");
    out.swap_bytes = read_number(at + "/memory.swap.current");
    out.swap_limit_bytes = read_limit(at + "/memory.swap.max");
    out.reservation_bytes = read_limit(at + "/memory.low");
    out.limit_hits = read_key(at + "/memory.events", "max");
    return out;
  }
  out.cache_bytes = read_key(stat, "total_cache");
  out.mapped_bytes = read_key(stat, "total_mapped_file");
  out.kernel_bytes = read_number(at + "/memory.kmem.usage_in_bytes");
  out.most_bytes = read_number(at + "/memory.max_usage_in_bytes");
  out.swap_bytes = read_key(stat, "total_swap");
  // Memory and swap have one limit together.
  const auto both = read_limit(at + "/memory.memsw.limit_in_bytes"), memory = read_limit(at + "/memory.limit_in_bytes");
  if (both && memory) out.swap_limit_bytes = *both > *memory ? *both - *memory : 0;
  out.reservation_bytes = read_limit(at + "/memory.soft_limit_in_bytes");
  out.limit_hits = read_number(at + "/memory.failcnt");
  return out;
}

PressureFigures measure_pressure(const Cgroups& cgroups, const std::string& group) {
  return {cgroups.pressure(group, "cpu"), cgroups.pressure(group, "memory"), cgroups.pressure(group, "io")};
}

GroupFigures measure_group(const Cgroups& cgroups, const std::string& group, const std::string& proc) {
  GroupFigures out;
  out.cpu = measure_cpu(cgroups, group);
  out.memory = cgroups.memory(group);
  out.more_memory = measure_more_memory(cgroups, group);
  out.processes = measure_processes(cgroups, group, proc);
  out.pressure = measure_pressure(cgroups, group);
  out.disks = measure_disks(cgroups, group, proc);
  out.oom_kills = cgroups.oom_kills(group);
  return out;
}

std::vector<InterfaceFigures> measure_interfaces(const std::string& proc, std::int64_t pid) {
  std::istringstream lines(read_small_file(fmt::format("{}/{}/net/dev", proc, pid)).value_or(""));
  std::vector<InterfaceFigures> out;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;  // The two lines of headings.
    InterfaceFigures one;
    one.name = line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '));
    std::istringstream words(line.substr(colon + 1));
    std::uint64_t unread = 0;  // Of received: fifo, frame, compressed, multicast.
    words >> one.received_bytes >> one.received_packets >> one.received_errors >> one.received_dropped >> unread >> unread >> unread >>
        unread >> one.sent_bytes >> one.sent_packets >> one.sent_errors >> one.sent_dropped;
    if (words && is_told(one.name)) out.push_back(std::move(one));
  }
  return out;
}

std::vector<InterfaceFigures> group_interfaces(const Cgroups& cgroups, const std::string& group, const std::string& proc) {
  for (const std::int64_t pid : processes_of(cgroups, group))
    if (auto found = measure_interfaces(proc, pid); !found.empty()) return found;
  return {};
}

}  // namespace berth::node::agent
