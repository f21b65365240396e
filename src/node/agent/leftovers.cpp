#include "node/agent/leftovers.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "node/agent/cgroups.h"
#include "node/agent/mounts.h"
#include "node/agent/own_runtime.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

/// A process's words; empty for the kernel's threads and for what is gone.
std::vector<std::string> words_of(pid_t process) {
  std::vector<std::string> words;
  const std::string line = read_small_file(fmt::format("/proc/{}/cmdline", process)).value_or("");
  for (std::string_view rest = line; !rest.empty();) {
    words.emplace_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  return words;
}

std::vector<pid_t> processes_where(const std::function<bool(pid_t, const std::vector<std::string>&)>& is_wanted) {
  std::vector<pid_t> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ptr != name.data() + name.size()) continue;
    if (process != ::getpid() && is_wanted(process, words_of(process))) out.push_back(process);
  }
  return out;
}

pid_t parent_of(pid_t process) {
  const std::string stat = read_small_file(fmt::format("/proc/{}/stat", process)).value_or("");
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + std::min(stat.size(), name_end + 4));
}

/// Removes the sandboxes of the pods that this node has, through its runtime, so that their network is undone as well.
void remove_pods(const cri::ChannelOptions& runtime, const std::string& root, std::vector<std::string>& done,
                 std::vector<std::string>& troubles) {
  const auto channel = cri::Channel::open(runtime);
  if (!channel) return troubles.push_back(channel.error().message);
  const auto listed = (*channel)->call("RuntimeService/ListPodSandbox", json::Object{}, 10'000);
  if (!listed)
    return troubles.push_back(fmt::format("the container runtime does not answer at {}: {}", runtime.socket, listed.error().message));
  for (const json::Value& sandbox : json::get_array(*listed, {"items"})) {
    const std::string uid(json::get_string(sandbox, {"metadata", "uid"}));
    if (uid.empty() || !fs::exists(fmt::format("{}/pods/{}", root, uid))) continue;
    const json::Object which{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}};
    (void)(*channel)->call("RuntimeService/StopPodSandbox", which, 30'000);
    const std::string name =
        fmt::format("{}/{}", json::get_string(sandbox, {"metadata", "namespace"}), json::get_string(sandbox, {"metadata", "name"}));
    if (const auto removed = (*channel)->call("RuntimeService/RemovePodSandbox", which, 30'000); !removed)
      troubles.push_back(fmt::format("pod {}: {}", name, removed.error().message));
    else
      done.push_back(fmt::format("pod {} removed", name));
  }
}

/// What a runtime that cannot be started left running: each shim with the processes of its container.
void kill_containers(const std::string& directory, std::vector<std::string>& done) {
  for (const pid_t shim : shims_of(directory)) {
    for (const pid_t child : processes_where([shim](pid_t process, const auto&) { return parent_of(process) == shim; }))
      ::kill(child, SIGKILL);
    stop_process(shim);
    done.push_back(fmt::format("container of shim {} killed", shim));
  }
}

/// A group is busy until the last of its killed processes is gone, which the kernel takes a moment for.
Result<void> remove_when_empty(const Cgroups& cgroups, const std::string& group) {
  constexpr int kTries = 100;
  Result<void> removed = cgroups.remove(group);
  for (int i = 0; !removed && i < kTries; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    removed = cgroups.remove(group);
  }
  return removed;
}

/// What of cgroups is the node's: the group of all pods where it made that, else, where it found one, those of its own pods in it.
std::vector<std::string> groups_of(const Cgroups& cgroups, const std::string& root, const std::vector<std::string>& uids) {
  if (auto group = read_small_file(root + "/" + kCgroupMarker)) return {std::move(*group)};
  std::vector<std::string> out;
  for (const std::string& uid : uids)
    for (const char* quality : {"", "/burstable", "/besteffort"})
      if (std::string group = fmt::format("/kubepods{}/pod{}", quality, uid); cgroups.exists(group)) out.push_back(std::move(group));
  return out;
}

void remove_groups(const std::string& root, const std::vector<std::string>& uids, std::vector<std::string>& done,
                   std::vector<std::string>& troubles) {
  const auto cgroups = Cgroups::detect();
  if (!cgroups) {
    if (fs::exists(root + "/" + kCgroupMarker)) troubles.push_back(cgroups.error().message);
    return;
  }
  for (const std::string& group : groups_of(*cgroups, root, uids))
    if (const auto removed = remove_when_empty(*cgroups, group))
      done.push_back(fmt::format("cgroup {} removed", group));
    else
      troubles.push_back(fmt::format("cgroup {}: {}", group, removed.error().message));
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) out.push_back(entry.path().filename());
  return out;
}

}  // namespace

std::vector<pid_t> containerds_of(const std::string& directory) {
  return processes_where([config = directory + "/containerd.toml"](pid_t, const std::vector<std::string>& words) {
    return words.size() == 3 && fs::path(words[0]).filename() == "containerd" && words[1] == "-c" && words[2] == config;
  });
}

std::vector<pid_t> shims_of(const std::string& directory) {
  return processes_where([socket = directory + "/containerd.sock"](pid_t, const std::vector<std::string>& words) {
    return !words.empty() && fs::path(words[0]).filename().string().starts_with("containerd-shim") &&
           std::ranges::find(words, socket) != words.end();
  });
}

void stop_process(pid_t process) {
  // By descriptor, so that no other process of the same number is meant once this one is gone.
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  const auto send = [&](int signal) {
    return handle < 0 ? ::kill(process, signal) : static_cast<int>(::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0));
  };
  const auto ends_within = [&](int milliseconds) {
    pollfd gone{handle, POLLIN, 0};
    return handle >= 0 && ::poll(&gone, 1, milliseconds) == 1;
  };
  if (send(SIGTERM) == 0 && !ends_within(10'000)) {
    send(SIGKILL);
    ends_within(5'000);
  }
  ::waitpid(process, nullptr, WNOHANG);  // Of a child; others have somebody else to reap them.
  if (handle >= 0) ::close(handle);
}

bool remove_unused_bridge(const std::string& bridge) {
  std::error_code error;
  if (bridge.size() >= IFNAMSIZ || !fs::exists("/sys/class/net/" + bridge + "/brif", error)) return false;
  if (!fs::is_empty("/sys/class/net/" + bridge + "/brif", error)) return false;
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::ranges::copy(bridge, request.ifr_name);
  // The kernel deletes only bridges that are down.
  const bool is_down =
      ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 &&
      (request.ifr_flags = static_cast<short>(request.ifr_flags & ~IFF_UP), ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0);
  return is_down && ::ioctl(socket.get(), SIOCBRDELBR, bridge.c_str()) == 0;
}

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string file = directory + "/lock";
  OwnedFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.is_open()) return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", file, std::strerror(errno)));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return DirectoryLock(std::move(fd));
  return fail(ErrorCode::kConflict, fmt::format("a node agent works in {} already: stop it, or use another directory", directory));
}

Result<std::vector<std::string>> reset_node(const ResetOptions& options) {
  std::error_code error;
  if (!fs::is_directory(options.root, error)) return fail(ErrorCode::kNotFound, fmt::format("{}: no node was here", options.root));
  auto lock = DirectoryLock::take(options.root);
  if (!lock) return std::unexpected(lock.error());
  std::vector<std::string> done, troubles;
  const std::string root = fs::canonical(options.root, error), runtime = options.root + "/runtime";
  const std::vector<std::string> uids = names_in(root + "/pods");
  if (const std::string config = runtime + "/containerd.toml"; fs::exists(config)) {
    if (auto own = OwnRuntime::start({.directory = runtime}))
      remove_pods({(*own)->socket(), (*own)->binary()}, root, done, troubles);
    else
      troubles.push_back(own.error().message);
    for (const pid_t process : containerds_of(runtime)) stop_process(process);
    kill_containers(runtime, done);
    if (remove_unused_bridge(bridge_of(runtime))) done.push_back(fmt::format("bridge {} deleted", bridge_of(runtime)));
  } else {
    remove_pods(options.runtime, root, done, troubles);
  }
  remove_groups(root, uids, done, troubles);
  unmount_below(root);
  if (const auto points = mount_points_below(read_small_file("/proc/self/mountinfo").value_or(""), root); !points.empty()) {
    troubles.push_back(fmt::format("still mounted: {}", fmt::join(points, ", ")));
  } else {
    fs::remove_all(root, error);
    if (error)
      troubles.push_back(fmt::format("{}: {}", root, error.message()));
    else
      done.push_back(fmt::format("{} deleted", root));
  }
  if (!troubles.empty())
    return fail(ErrorCode::kUnavailable, fmt::format("{}{}not everything could be taken away: {}", fmt::join(done, "; "),
                                                     done.empty() ? "" : "; ", fmt::join(troubles, "; ")));
  return done;
}

}  // namespace berth::node::agent
