#include "node/agent/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/owned_fd.h"
#include "base/split.h"
#include "node/agent/cgroups.h"
#include "node/agent/environment.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMaxFileRead = 1 << 20;

/// Opens `path` below `base` without ever leaving it: links that point outside are refused by the kernel.
int open_beneath(int base, const char* path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, base, path, &how, sizeof how));
}

}  // namespace

std::optional<std::string> read_file_beneath(const std::string& directory, const std::string& path) {
  OwnedFd base(::open(directory.c_str(), O_PATH | O_CLOEXEC));
  OwnedFd file(base.get() < 0 ? -1 : open_beneath(base.get(), path.c_str(), O_RDONLY | O_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while (text.size() <= kMaxFileRead && (n = ::read(file.get(), buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(n));
  return n < 0 || text.size() > kMaxFileRead ? std::nullopt : std::optional(std::move(text));
}

namespace {

/// Opens volume/sub, making directories that are missing.
Result<OwnedFd> open_sub_path(const std::string& volume, const std::string& sub) {
  const auto failed = [&] {
    return fail(ErrorCode::kInternal,
                fmt::format("failed to prepare subPath for volumeMount: {}/{}: {}", volume, sub, std::strerror(errno)));
  };
  OwnedFd base(::open(volume.c_str(), O_PATH | O_CLOEXEC));
  if (base.get() < 0) return failed();
  if (OwnedFd whole(open_beneath(base.get(), sub.c_str(), O_PATH)); whole.get() >= 0) return whole;
  if (errno != ENOENT) return failed();
  std::string done;
  for (const fs::path& part : fs::path(sub)) {
    if (part.empty() || part == ".") continue;
    OwnedFd parent(open_beneath(base.get(), done.empty() ? "." : done.c_str(), O_PATH | O_DIRECTORY));
    if (parent.get() < 0) return failed();
    struct stat above {};
    ::fstat(parent.get(), &above);
    if (::mkdirat(parent.get(), part.c_str(), above.st_mode & 07777) == 0) {
      // As the volume's root: the process's umask must not matter.
      if (::fchownat(parent.get(), part.c_str(), above.st_uid, above.st_gid, AT_SYMLINK_NOFOLLOW) != 0) return failed();
      OwnedFd directory(open_beneath(parent.get(), part.c_str(), O_RDONLY | O_DIRECTORY));
      if (directory.get() < 0 || ::fchmod(directory.get(), above.st_mode & 07777) != 0) return failed();
    } else if (errno != EEXIST) {
      return failed();
    }
    done += (done.empty() ? "" : "/") + part.string();
  }
  OwnedFd made(open_beneath(base.get(), done.empty() ? "." : done.c_str(), O_PATH));
  if (made.get() < 0) return failed();
  return made;
}

/// Binds volume/sub to a place of its own, so that what the container gets cannot be exchanged afterwards.
Result<std::string> bind_sub_path(const PodContext& context, const std::string& volume_name, const std::string& volume,
                                  const std::string& sub, const std::string& container, std::size_t index) {
  auto target = open_sub_path(volume, sub);
  if (!target) return std::unexpected(target.error());
  const std::string place = fmt::format("{}/volume-subpaths/{}/{}/{}", context.pod_directory, volume_name, container, index);
  std::error_code error;
  fs::create_directories(fs::path(place).parent_path(), error);
  struct stat kind {};
  ::fstat(target->get(), &kind);
  ::umount2(place.c_str(), MNT_DETACH);
  fs::remove(place, error);
  if (S_ISDIR(kind.st_mode))
    fs::create_directory(place, error);
  else
    std::ofstream(place).flush();
  const std::string source = fmt::format("/proc/self/fd/{}", target->get());
  if (::mount(source.c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return fail(ErrorCode::kInternal, fmt::format("failed to prepare subPath for volumeMount \"{}\" of container \"{}\": {}", volume_name,
                                                  container, std::strerror(errno)));
  return place;
}

std::string_view propagation(const json::Value& mount) {
  const std::string_view wanted = json::get_string(mount, {"mountPropagation"});
  if (wanted == "Bidirectional") return "PROPAGATION_BIDIRECTIONAL";
  if (wanted == "HostToContainer") return "PROPAGATION_HOST_TO_CONTAINER";
  return "PROPAGATION_PRIVATE";
}

Result<void> add_hosts_file(const PodContext& context, json::Array& mounts) {
  const std::string file = context.pod_directory + "/etc-hosts";
  std::error_code error;
  fs::create_directories(context.pod_directory, error);
  std::ofstream(file, std::ios::trunc) << hosts_file(context.pod, context.names, context.pod_ips,
                                                     read_small_file("/etc/hosts").value_or(""));
  ::chmod(file.c_str(), 0644);
  mounts.push_back(json::Object{{"container_path", "/etc/hosts"}, {"host_path", file}, {"readonly", false}});
  return {};
}

}  // namespace

Result<json::Array> container_mounts(const PodContext& context, std::size_t index, int attempt,
                                     const std::map<std::string, std::string>& variables, std::string& termination_file) {
  const json::Value& container = container_spec(context.pod, index);
  const std::string container_name(json::get_string(container, {"name"}));
  json::Array out;
  bool own_hosts = false;
  std::size_t number = 0;
  for (const json::Value& mount : json::get_array(container, {"volumeMounts"})) {
    const std::string name(json::get_string(mount, {"name"}));
    const auto volume = context.volumes.find(name);
    if (volume == context.volumes.end())
      return invalid(fmt::format("cannot find volume \"{}\" to mount into container \"{}\"", name, container_name));
    if (volume->second.is_block)
      return invalid(fmt::format("volume \"{}\" is a block device: container \"{}\" gets it by volumeDevices", name, container_name));
    std::string host = volume->second.host_path;
    std::string sub(json::get_string(mount, {"subPath"}));
    if (const std::string_view expression = json::get_string(mount, {"subPathExpr"}); !expression.empty()) {
      std::vector<std::string> missing;
      sub = expand_variables(expression, variables, &missing);
      for (const auto& [name_of, value] : variables)  // An empty value makes no path either.
        if (value.empty() && expression.find(fmt::format("$({})", name_of)) != std::string_view::npos) missing.push_back(name_of);
      std::ranges::sort(missing);
      missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
      if (!missing.empty()) return invalid(fmt::format("missing value for {}", fmt::join(missing, ", ")));
    }
    if (!sub.empty()) {
      if (sub.starts_with('/')) return invalid(fmt::format("error SubPath `{}` must not be an absolute path", sub));
      if (("/" + sub + "/").find("/../") != std::string::npos)
        return invalid(fmt::format("unable to provision SubPath `{}`: must not contain '..'", sub));
      auto bound = bind_sub_path(context, name, host, sub, container_name, number);
      if (!bound && volume->second.is_image)
        return fail(ErrorCode::kNotFound,
                    fmt::format("{}: subPath \"{}\" of volume \"{}\" is not in the image", kImageVolumeMountFailed, sub, name));
      if (!bound) {
        // The pod's owner need not know what lies on the machine.
        log::warning("node", "pod {}/{}: {}", context.spec.ns, context.spec.name, bound.error().message);
        return invalid(fmt::format("failed to prepare subPath for volumeMount \"{}\" of container \"{}\"", name, container_name));
      }
      host = std::move(*bound);
    }
    ++number;
    std::string path(json::get_string(mount, {"mountPath"}));
    if (!path.starts_with('/')) path = "/" + path;
    own_hosts = own_hosts || path == "/etc/hosts";
    out.push_back(json::Object{{"container_path", path},
                               {"host_path", host},
                               {"readonly", json::get_bool(mount, {"readOnly"}) || volume->second.read_only},
                               {"propagation", propagation(mount)}});
  }
  if (!own_hosts && !context.pod_ips.empty())
    if (const auto added = add_hosts_file(context, out); !added) return std::unexpected(added.error());
  if (const std::string_view path = json::get_string(container, {"terminationMessagePath"}); !path.empty()) {
    termination_file = termination_message_file(context.pod_directory, container_name, attempt);
    std::error_code error;
    fs::create_directories(fs::path(termination_file).parent_path(), error);
    std::ofstream(termination_file, std::ios::trunc).flush();
    ::chmod(termination_file.c_str(), 0666);  // The container's user writes it, whoever that is.
    out.push_back(json::Object{{"container_path", path}, {"host_path", termination_file}, {"readonly", false}});
  }
  return out;
}

std::string termination_message_file(const std::string& pod_directory, std::string_view container, int attempt) {
  return fmt::format("{}/containers/{}/{}", pod_directory, container, attempt);
}

std::vector<std::string> mount_points_below(std::string_view mountinfo, const std::string& directory) {
  std::vector<std::string> out;
  const std::string prefix = directory + "/";
  for (const std::string_view line : split(mountinfo, '\n')) {
    // ID PARENT MAJOR:MINOR ROOT MOUNT-POINT …
    std::size_t at = 0;
    for (int skipped = 0; skipped < 4 && at != std::string_view::npos; ++skipped) at = line.find(' ', at + (skipped > 0));
    if (at == std::string_view::npos) continue;
    std::string_view raw = line.substr(at + 1);
    raw = raw.substr(0, raw.find(' '));
    std::string point;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      // Blanks and the like are octal there.
      if (raw[i] == '\\' && i + 3 < raw.size()) {
        point += static_cast<char>((raw[i + 1] - '0') * 64 + (raw[i + 2] - '0') * 8 + (raw[i + 3] - '0'));
        i += 3;
      } else {
        point += raw[i];
      }
    }
    if (point.starts_with(prefix)) out.push_back(std::move(point));
  }
  std::ranges::sort(out, std::greater<>{});
  return out;
}

void unmount_below(const std::string& directory) {
  for (const std::string& point : mount_points_below(read_small_file("/proc/self/mountinfo").value_or(""), directory))
    ::umount2(point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

}  // namespace berth::node::agent
