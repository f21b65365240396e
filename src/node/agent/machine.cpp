#include "node/agent/machine.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace berth::node::agent {
namespace {

std::optional<std::uint64_t> meminfo_kib(std::string_view key) {
  const auto text = read_small_file("/proc/meminfo");
  if (!text) return std::nullopt;
  const std::size_t at = text->find(std::string(key) + ":");
  if (at == std::string::npos) return std::nullopt;
  std::size_t from = text->find_first_of("0123456789", at);
  std::uint64_t value = 0;
  std::from_chars(text->data() + from, text->data() + text->size(), value);
  return value;
}

eviction::FsUsage observe_fs(const std::string& path, TimePoint now) {
  struct statvfs info {};
  eviction::FsUsage out;
  if (statvfs(path.c_str(), &info) != 0) return out;
  const std::uint64_t unit = info.f_frsize;
  out.capacity_bytes = info.f_blocks * unit;
  out.available_bytes = info.f_bavail * unit;
  out.used_bytes = (info.f_blocks - info.f_bfree) * unit;
  if (info.f_files > 0) {
    out.inodes = info.f_files;
    out.inodes_free = info.f_ffree;
    out.inodes_used = info.f_files - info.f_ffree;
  }
  out.time = now;
  return out;
}

eviction::MemoryUsage observe_memory(const Cgroups& cgroups, const std::string& group, std::optional<std::uint64_t> capacity, TimePoint now) {
  eviction::MemoryUsage out;
  const auto memory = cgroups.memory(group);
  if (!memory) return out;
  const std::optional<std::uint64_t> limit = memory->limit_bytes ? memory->limit_bytes : capacity;
  out.usage_bytes = memory->usage_bytes;
  out.working_set_bytes = memory->working_set_bytes;
  if (limit) out.available_bytes = *limit > memory->working_set_bytes ? *limit - memory->working_set_bytes : 0;
  out.time = now;
  return out;
}

/// The machine's own figures where no cgroup stands for it (version 2's root has no memory.current).
eviction::MemoryUsage observe_whole_memory(TimePoint now) {
  eviction::MemoryUsage out;
  const std::uint64_t total = meminfo_kib("MemTotal").value_or(0) * 1024, available = meminfo_kib("MemAvailable").value_or(0) * 1024;
  out.available_bytes = available;
  out.working_set_bytes = total - std::min(total, available);
  out.usage_bytes = out.working_set_bytes;
  out.time = now;
  return out;
}

}  // namespace

eviction::Machine read_machine(const Cgroups& cgroups, const MachinePaths& paths) {
  eviction::Machine machine;
  machine.cores = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory_bytes = static_cast<std::int64_t>(meminfo_kib("MemTotal").value_or(0) * 1024);
  if (!paths.node_cgroup.empty())
    if (const auto memory = cgroups.memory(paths.node_cgroup); memory && memory->limit_bytes)
      machine.memory_bytes = std::min(machine.memory_bytes, static_cast<std::int64_t>(*memory->limit_bytes));
  machine.root_fs_bytes = static_cast<std::int64_t>(observe_fs(paths.node_fs, {}).capacity_bytes.value_or(0));
  if (const auto text = read_small_file("/proc/sys/kernel/pid_max")) std::from_chars(text->data(), text->data() + text->size(), machine.max_pid);
  return machine;
}

eviction::NodeUsage observe_machine(const Cgroups& cgroups, const MachinePaths& paths, TimePoint now) {
  eviction::NodeUsage out;
  const std::uint64_t total = meminfo_kib("MemTotal").value_or(0) * 1024;
  out.memory = paths.node_cgroup.empty() ? observe_whole_memory(now) : observe_memory(cgroups, paths.node_cgroup, total, now);
  out.pods_memory = observe_memory(cgroups, paths.pods_cgroup, total, now);
  out.fs = observe_fs(paths.node_fs, now);
  out.image_fs = observe_fs(paths.image_fs, now);
  out.container_fs = out.image_fs;
  std::int64_t max_pid = 0;
  if (const auto text = read_small_file("/proc/sys/kernel/pid_max")) std::from_chars(text->data(), text->data() + text->size(), max_pid);
  // The fourth field is "runnable/all".
  if (const auto text = read_small_file("/proc/loadavg")) {
    const std::size_t slash = text->find('/');
    std::int64_t running = 0;
    if (slash != std::string::npos && std::from_chars(text->data() + slash + 1, text->data() + text->size(), running).ec == std::errc()) out.running_processes = running;
  }
  if (max_pid > 0) out.max_pid = max_pid;
  out.process_time = now;
  return out;
}

std::optional<std::uint64_t> memory_available(const Cgroups& cgroups, const MachinePaths& paths) {
  if (paths.node_cgroup.empty()) {
    const auto kib = meminfo_kib("MemAvailable");
    return kib ? std::optional(*kib * 1024) : std::nullopt;
  }
  return observe_memory(cgroups, paths.node_cgroup, meminfo_kib("MemTotal").value_or(0) * 1024, {}).available_bytes;
}

bool is_separate_filesystem(const std::string& a, const std::string& b) {
  struct stat first {}, second {};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_dev != second.st_dev;
}

bool is_swap_on() {
  const auto text = read_small_file("/proc/swaps");
  return text && std::ranges::count(*text, '\n') > 1;
}

}  // namespace berth::node::agent
