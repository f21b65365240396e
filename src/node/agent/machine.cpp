#include "node/agent/machine.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/owned_fd.h"
#include "base/split.h"

namespace berth::node::agent {
namespace {

std::optional<std::uint64_t> meminfo_kib(const MachinePaths& paths, std::string_view key) {
  const auto text = read_small_file(paths.proc + "/meminfo");
  if (!text) return std::nullopt;
  const std::size_t at = text->find(std::string(key) + ":");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t from = text->find_first_of("0123456789", at);
  if (from == std::string::npos) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text->data() + from, text->data() + text->size(), value);
  return value;
}

eviction::MemoryUsage observe_memory(const Cgroups& cgroups, const std::string& group, std::optional<std::uint64_t> capacity,
                                     TimePoint now) {
  eviction::MemoryUsage out;
  const auto memory = cgroups.memory(group);
  if (!memory) return out;
  const std::optional<std::uint64_t> limit = memory->limit_bytes ? memory->limit_bytes : capacity;
  out.usage_bytes = memory->usage_bytes;
  out.working_set_bytes = memory->working_set_bytes;
  out.rss_bytes = memory->rss_bytes;
  out.page_faults = memory->page_faults;
  out.major_page_faults = memory->major_page_faults;
  if (limit) out.available_bytes = *limit > memory->working_set_bytes ? *limit - memory->working_set_bytes : 0;
  out.time = now;
  return out;
}

/// Where control groups tell nothing of the whole machine: what the kernel takes for available, slab that it could give back included.
eviction::MemoryUsage guess_whole_memory(const MachinePaths& paths, TimePoint now) {
  const auto bytes = [&](std::string_view key) { return meminfo_kib(paths, key).value_or(0) * 1024; };
  const std::uint64_t total = bytes("MemTotal"), available = bytes("MemAvailable");
  eviction::MemoryUsage out;
  out.available_bytes = available;
  out.working_set_bytes = total - std::min(total, available);
  out.usage_bytes = total - std::min(total, bytes("MemFree"));
  out.rss_bytes = bytes("AnonPages");
  out.time = now;
  return out;
}

/// How many processes the kernel allows: the smaller of its two settings, as the kubelet takes it; 0: unknown.
std::int64_t max_processes(const MachinePaths& paths) {
  std::int64_t least = 0;
  for (const char* name : {"pid_max", "threads-max"}) {
    std::int64_t value = 0;
    if (const auto text = read_small_file(paths.proc + "/sys/kernel/" + name))
      std::from_chars(text->data(), text->data() + text->size(), value);
    if (value > 0 && (least == 0 || value < least)) least = value;
  }
  return least;
}

}  // namespace

eviction::FsUsage observe_filesystem(const std::string& path, TimePoint now) {
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

eviction::Machine read_machine(const Cgroups& cgroups, const MachinePaths& paths) {
  eviction::Machine machine;
  machine.cores = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  machine.memory_bytes = static_cast<std::int64_t>(meminfo_kib(paths, "MemTotal").value_or(0) * 1024);
  if (!paths.node_cgroup.empty())
    if (const auto memory = cgroups.memory(paths.node_cgroup); memory && memory->limit_bytes)
      machine.memory_bytes = std::min(machine.memory_bytes, static_cast<std::int64_t>(*memory->limit_bytes));
  machine.root_fs_bytes = static_cast<std::int64_t>(observe_filesystem(paths.node_fs, {}).capacity_bytes.value_or(0));
  machine.max_pid = max_processes(paths);
  // hugepages-2048kB and the like, each with a file that says how many there are.
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    const std::string name = entry.path().filename();
    std::int64_t kib = 0, pages = 0;
    if (!name.starts_with("hugepages-") || std::from_chars(name.data() + 10, name.data() + name.size(), kib).ec != std::errc()) continue;
    const std::string text = read_small_file(entry.path().string() + "/nr_hugepages").value_or("0");
    std::from_chars(text.data(), text.data() + text.size(), pages);
    machine.huge_pages.push_back({kib, pages});
  }
  return machine;
}

eviction::NodeUsage observe_machine(const Cgroups& cgroups, const MachinePaths& paths, TimePoint now) {
  eviction::NodeUsage out;
  out.memory = observe_group_memory(cgroups, paths, paths.node_cgroup, now);
  out.pods_memory = observe_group_memory(cgroups, paths, paths.pods_cgroup, now);
  out.fs = observe_filesystem(paths.node_fs, now);
  out.image_fs = observe_filesystem(paths.image_fs, now);
  out.container_fs = paths.container_fs.empty() ? out.image_fs : observe_filesystem(paths.container_fs, now);
  // The fourth field is "runnable/all".
  if (const auto text = read_small_file(paths.proc + "/loadavg")) {
    const std::size_t slash = text->find('/');
    std::int64_t running = 0;
    if (slash != std::string::npos && std::from_chars(text->data() + slash + 1, text->data() + text->size(), running).ec == std::errc())
      out.running_processes = running;
  }
  if (const std::int64_t max_pid = max_processes(paths); max_pid > 0) out.max_pid = max_pid;
  out.process_time = now;
  return out;
}

eviction::MemoryUsage observe_group_memory(const Cgroups& cgroups, const MachinePaths& paths, const std::string& group, TimePoint now) {
  if (group.empty() && !cgroups.memory(group)) return guess_whole_memory(paths, now);
  return observe_memory(cgroups, group, meminfo_kib(paths, "MemTotal").value_or(0) * 1024, now);
}

std::int64_t pid_behind(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return 0;
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  const OwnedFd to(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool is_known = ::connect(to.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                        ::getsockopt(to.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  return is_known ? peer.pid : 0;
}

bool is_separate_filesystem(const std::string& a, const std::string& b) {
  struct stat first {
  }, second{};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_dev != second.st_dev;
}

SwapSpace swap_space(const std::string& proc) {
  MachinePaths paths;
  paths.proc = proc;
  const auto bytes = [&](std::string_view key) { return static_cast<std::int64_t>(meminfo_kib(paths, key).value_or(0) * 1024); };
  return {bytes("SwapTotal"), bytes("SwapFree")};
}

std::optional<TimePoint> boot_time(const std::string& proc) {
  const auto seconds = read_key(proc + "/stat", "btime");
  return seconds ? std::optional(TimePoint(std::chrono::seconds(*seconds))) : std::nullopt;
}

bool is_swap_on(const std::string& proc) {
  const auto text = read_small_file(proc + "/swaps");
  return text && std::ranges::count(*text, '\n') > 1;
}

std::string os_image_name(std::string_view os_release) {
  for (std::string_view line : split(os_release, '\n')) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    line.remove_prefix(std::string_view("PRETTY_NAME=").size());
    if (line.size() >= 2 && (line.front() == '"' || line.front() == '\'')) line = line.substr(1, line.size() - 2);
    if (!line.empty()) return std::string(line);
  }
  return "Linux";
}

MachineIdentity read_machine_identity() {
  struct utsname kernel {};
  uname(&kernel);
  MachineIdentity out{first_line("/etc/machine-id"), first_line("/sys/class/dmi/id/product_uuid"),
                      first_line("/proc/sys/kernel/random/boot_id"), kernel.release,
                      os_image_name(read_small_file("/etc/os-release").value_or(""))};
  if (out.system_uuid.empty()) out.system_uuid = out.machine_id;
  return out;
}

std::string first_line(const char* path) {
  std::string text = read_small_file(path).value_or("");
  return text.substr(0, text.find('\n'));
}

}  // namespace berth::node::agent
