#include "node/agent/cgroups.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "base/owned_fd.h"
#include "base/split.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

/// The number behind `key ` in lines of such.
std::optional<std::uint64_t> key_in(const std::string& text, std::string_view key) {
  const std::string needle = "\n" + std::string(key) + " ";
  const std::size_t at = ("\n" + text).find(needle);
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t value = 0;
  const char* from = text.data() + at + needle.size() - 1;
  if (std::from_chars(from, text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

bool has_word(std::string_view text, std::string_view word) {
  std::istringstream words{std::string(text)};
  for (std::string one; words >> one;)
    if (one == word) return true;
  return false;
}

/// Version 2's weight for version 1's shares, as the OCI runtimes convert it.
std::uint64_t weight_of(std::uint64_t shares) { return 1 + ((shares - 2) * 9999) / 262142; }

/// "avg10=0.12 avg60=… avg300=… total=123".
std::optional<PressureShares> parse_shares(std::string_view text) {
  PressureShares out;
  bool has_total = false;
  for (const std::string_view word : words(text)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
    const auto read = [&](auto& number) {
      const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      return error == std::errc() && stop == value.data() + value.size();
    };
    bool ok = true;
    if (key == "avg10")
      ok = read(out.avg10);
    else if (key == "avg60")
      ok = read(out.avg60);
    else if (key == "avg300")
      ok = read(out.avg300);
    else if (key == "total")
      ok = has_total = read(out.total_us);
    if (!ok) return std::nullopt;
  }
  return has_total ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<Pressure> parse_pressure(std::string_view text) {
  std::optional<PressureShares> some, full;
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("some "))
      some = parse_shares(line.substr(5));
    else if (line.starts_with("full "))
      full = parse_shares(line.substr(5));
  }
  if (!some) return std::nullopt;
  return Pressure{*some, full};
}

std::optional<std::string> read_small_file(const std::string& path) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::nullopt;
  std::string out;
  char buffer[8192];
  ssize_t n;
  while ((n = ::read(file.get(), buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<std::size_t>(n));
  if (n < 0) return std::nullopt;
  return out;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto text = read_small_file(path);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  if (std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_key(const std::string& path, std::string_view key) {
  const auto text = read_small_file(path);
  return text ? key_in(*text, key) : std::nullopt;
}

Result<void> write_control_file(const std::string& path, const std::string& value) {
  const OwnedFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open()) return fail(ErrorCode::kInternal, fmt::format("{}: {}", path, std::strerror(errno)));
  if (::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size()))
    return fail(ErrorCode::kInternal, fmt::format("{}: writing \"{}\": {}", path, value, std::strerror(errno)));
  return {};
}

Result<Cgroups> Cgroups::detect() { return at("/sys/fs/cgroup"); }

Result<Cgroups> Cgroups::at(std::string root) {
  Cgroups groups;
  groups.root_ = std::move(root);
  if (const auto controllers = read_small_file(groups.root_ + "/cgroup.controllers")) {
    groups.v2_ = true;
    for (const std::string_view needed : {"cpu", "memory"})
      if (!has_word(*controllers, needed))
        return fail(ErrorCode::kUnavailable, fmt::format("the kernel hands down no {} controller at {}, only: {}", needed, groups.root_,
                                                         controllers->substr(0, controllers->find('\n'))));
  } else if (!fs::exists(groups.root_ + "/memory/memory.limit_in_bytes") && !fs::exists(groups.root_ + "/memory/cgroup.procs"))
    return fail(ErrorCode::kUnavailable, "no cgroup hierarchy with a memory controller at " + groups.root_);
  const std::string probe = groups.directory("memory", "");
  if (::access(probe.c_str(), W_OK) != 0) return fail(ErrorCode::kUnavailable, probe + " is not writable: the node agent must run as root");
  return groups;
}

Cgroups Cgroups::at(std::string root, bool is_v2) {
  Cgroups groups;
  groups.root_ = std::move(root);
  groups.v2_ = is_v2;
  return groups;
}

/// Every hierarchy that is mounted, also the version 2 one of a hybrid setup, where the runtime makes groups too. Version 2 alone has one.
std::vector<std::string> Cgroups::hierarchies() const {
  if (v2_) return {root_};
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_, error))
    if (!entry.is_symlink(error) && entry.is_directory(error)) out.push_back(entry.path());
  return out;
}

std::string Cgroups::directory(const std::string& controller, const std::string& path) const {
  return v2_ ? root_ + path : root_ + "/" + controller + path;
}

Result<void> Cgroups::create(const std::string& path, const CgroupLimits& limits) const {
  std::error_code error;
  if (v2_) {
    // Controllers are handed down group by group.
    std::string at = root_;
    const fs::path relative(path.substr(1));
    for (const fs::path& part : relative) {
      for (const char* controller : {"+memory", "+cpu", "+pids", "+cpuset"})
        (void)write_control_file(at + "/cgroup.subtree_control", controller);
      at += "/" + part.string();
      fs::create_directory(at, error);
    }
  } else {
    for (const std::string controller : {"memory", "cpu", "cpuacct", "pids"}) {
      if (!fs::is_directory(root_ + "/" + controller)) continue;  // cpu may be a link to cpu,cpuacct.
      const std::string full = directory(controller, path);
      fs::create_directories(full, error);
      if (controller == "memory") (void)write_control_file(full + "/memory.use_hierarchy", "1");
    }
  }
  if (!exists(path)) return fail(ErrorCode::kInternal, fmt::format("cgroup {} cannot be made: {}", path, error.message()));
  // The kernel hands nothing down from a group with processes, unless that is the machine's root: the one of a container is not.
  if (v2_ && !fs::exists(directory("", path) + "/memory.max"))
    return fail(
        ErrorCode::kUnavailable,
        fmt::format("cgroup {} has no memory controller: processes in a group above it are in the way, as in a container, until they "
                    "are moved (mkdir {}/init; xargs -n 1 <{}/cgroup.procs >{}/init/cgroup.procs)",
                    path, root_, root_, root_));
  return set_limits(path, limits);
}

Result<void> Cgroups::set_limits(const std::string& path, const CgroupLimits& limits) const {
  const auto text = [](std::int64_t value, const char* none) { return value < 0 ? std::string(none) : std::to_string(value); };
  if (limits.memory_bytes) {
    const auto written = v2_ ? write_control_file(directory("", path) + "/memory.max", text(*limits.memory_bytes, "max"))
                             : write_control_file(directory("memory", path) + "/memory.limit_in_bytes", text(*limits.memory_bytes, "-1"));
    if (!written) return written;
  }
  if (limits.cpu_shares) {
    const auto written = v2_ ? write_control_file(directory("", path) + "/cpu.weight", std::to_string(weight_of(*limits.cpu_shares)))
                             : write_control_file(directory("cpu", path) + "/cpu.shares", std::to_string(*limits.cpu_shares));
    if (!written) return written;
  }
  if (limits.cpu_quota_us && v2_) {
    if (const auto max = write_control_file(directory("", path) + "/cpu.max", text(*limits.cpu_quota_us, "max") + " 100000"); !max)
      return max;
  } else if (limits.cpu_quota_us) {
    if (const auto period = write_control_file(directory("cpu", path) + "/cpu.cfs_period_us", "100000"); !period) return period;
    if (const auto quota = write_control_file(directory("cpu", path) + "/cpu.cfs_quota_us", text(*limits.cpu_quota_us, "-1")); !quota)
      return quota;
  }
  if (limits.pids) return write_control_file(directory("pids", path) + "/pids.max", text(*limits.pids, "max"));
  return {};
}

Result<void> Cgroups::remove(const std::string& path) const {
  Result<void> result;
  for (const std::string& hierarchy : hierarchies()) {
    const std::string full = hierarchy + path;
    std::error_code error;
    if (!fs::is_directory(full, error)) continue;
    std::vector<std::string> below;
    for (fs::recursive_directory_iterator it(full, error), end; !error && it != end; it.increment(error))
      if (it->is_directory(error)) below.push_back(it->path());
    std::ranges::sort(below, std::greater<>{});
    below.push_back(full);
    for (const std::string& group : below)
      if (::rmdir(group.c_str()) != 0 && errno != ENOENT)
        result = fail(ErrorCode::kInternal, fmt::format("{}: {}", group, std::strerror(errno)));
  }
  return result;
}

bool Cgroups::counts_swap(const std::string& group) const {
  return fs::exists(directory("memory", group) + (v2_ ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"));
}

bool Cgroups::exists(const std::string& path) const { return fs::is_directory(directory("memory", path)); }

std::vector<std::string> Cgroups::children(const std::string& path) const {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory("memory", path), error))
    if (entry.is_directory(error)) out.push_back(entry.path().filename());
  return out;
}

std::optional<CgroupMemory> Cgroups::memory(const std::string& path) const {
  const std::string at = directory("memory", path);
  CgroupMemory out;
  const std::string stat = read_small_file(at + "/memory.stat").value_or("");
  auto usage = read_number(at + (v2_ ? "/memory.current" : "/memory.usage_in_bytes"));
  // Version 2's root has no memory.current: what version 1 counts there, as the kubelet's libraries have it (opencontainers/cgroups).
  if (const auto anon = key_in(stat, "anon"); !usage && anon && v2_ && path.empty()) usage = *anon + key_in(stat, "file").value_or(0);
  if (!usage) return std::nullopt;
  out.usage_bytes = *usage;
  const std::uint64_t inactive = key_in(stat, v2_ ? "inactive_file" : "total_inactive_file").value_or(0);
  out.rss_bytes = key_in(stat, v2_ ? "anon" : "total_rss");
  out.page_faults = key_in(stat, v2_ ? "pgfault" : "total_pgfault");
  out.major_page_faults = key_in(stat, v2_ ? "pgmajfault" : "total_pgmajfault");
  out.working_set_bytes = *usage > inactive ? *usage - inactive : 0;
  // "No limit" is the word max, or a number near 2^63.
  if (const auto limit = read_number(at + (v2_ ? "/memory.max" : "/memory.limit_in_bytes")); limit && *limit < (1ULL << 60))
    out.limit_bytes = *limit;
  return out;
}

std::optional<std::uint64_t> Cgroups::usage_in_the_way(const std::string& path, std::int64_t memory_bytes) const {
  const auto now = memory_bytes > 0 ? memory(path) : std::nullopt;
  const auto wanted = static_cast<std::uint64_t>(memory_bytes);
  if (!now || now->limit_bytes.value_or(UINT64_MAX) <= wanted || now->usage_bytes < wanted) return std::nullopt;
  return now->usage_bytes;
}

std::optional<std::uint64_t> Cgroups::cpu_usage_ns(const std::string& path) const {
  if (!v2_) return read_number(directory("cpuacct", path) + "/cpuacct.usage");
  const auto us = read_key(directory("", path) + "/cpu.stat", "usage_usec");
  return us ? std::optional(*us * 1000) : std::nullopt;
}

std::optional<std::uint64_t> Cgroups::process_count(const std::string& path) const {
  return read_number(directory("pids", path) + "/pids.current");
}

std::optional<Pressure> Cgroups::pressure(const std::string& path, std::string_view resource) const {
  if (!v2_) return std::nullopt;
  const auto text = read_small_file(fmt::format("{}/{}.pressure", directory("", path), resource));
  return text ? parse_pressure(*text) : std::nullopt;
}

std::optional<std::uint64_t> Cgroups::oom_kills(const std::string& path) const {
  return read_key(directory("memory", path) + (v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill");
}

}  // namespace berth::node::agent
