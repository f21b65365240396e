#include "node/agent/own_runtime.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json.h"
#include "base/log.h"
#include "base/owned_fd.h"
#include "node/agent/cgroups.h"
#include "node/agent/leftovers.h"
#include "security/digest.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

std::string find_program(const std::string& name) {
  for (const char* directory : {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}) {
    std::string path = fmt::format("{}/{}", directory, name);
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

std::string find_cni_directory() {
  for (const char* directory : {"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"})
    if (::access(fmt::format("{}/bridge", directory).c_str(), X_OK) == 0) return directory;
  return {};
}

RuntimeAbilities find_abilities(const std::string& directory) {
  RuntimeAbilities out;
  // An overlay cannot lie on an overlay (a container's root), nor its upper part on a network.
  constexpr long kOverlay = 0x794c7630, kNfs = 0x6969;
  struct statfs kind {};
  if (::statfs(directory.c_str(), &kind) == 0 && (kind.f_type == kOverlay || kind.f_type == kNfs)) out.snapshotter = "native";
  out.cni_directory = find_cni_directory();
  out.has_iptables = !find_program("iptables").empty();
  out.has_apparmor = read_small_file("/sys/module/apparmor/parameters/enabled").value_or("").starts_with('Y');
  constexpr int kCapSysResource = 24;
  const std::string status = read_small_file("/proc/self/status").value_or("");
  if (const std::size_t at = status.find("CapEff:\t"); at != std::string::npos)
    out.can_lower_oom_scores = ((std::strtoull(status.c_str() + at + 8, nullptr, 16) >> kCapSysResource) & 1) != 0;
  return out;
}

/// Runs a program to its end; its exit code, or -1.
int run_program(const std::vector<std::string>& words, const std::string& log) {
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool can_connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::ranges::copy(path, address.sun_path);
  const OwnedFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Connects first: ctr tries a socket that nobody listens on for ten seconds.
bool answers(const std::string& ctr, const std::string& socket) {
  return can_connect(socket) && run_program({ctr, "-a", socket, "--connect-timeout", "2s", "--timeout", "2s", "version"}, "/dev/null") == 0;
}

std::uint32_t hash_of(const std::string& directory) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : directory) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

class ContainerdProcess final : public OwnRuntime {
 public:
  explicit ContainerdProcess(const OwnRuntimeOptions& options)
      : options_(options), socket_(options.directory + "/containerd.sock"), log_(options.directory + "/containerd.log") {
    const std::uint32_t hash = hash_of(options_.directory);
    if (options_.pod_subnet.empty()) options_.pod_subnet = fmt::format("10.88.{}.0/24", hash % 251);  // Of kPodBlock.
    if (options_.bridge.empty()) options_.bridge = bridge_of(options_.directory);
  }

  ~ContainerdProcess() override {
    for (const pid_t process : containerds_of(options_.directory)) stop_process(process);
    remove_unused_bridge(options_.bridge);
  }

  Result<void> start() {
    if (const auto missing = missing_for_own_runtime(); !missing.empty())
      return fail(ErrorCode::kUnavailable, fmt::format("{} missing", fmt::join(missing, ", ")));
    binary_ = find_program("containerd");
    const std::string ctr = find_program("ctr");
    std::error_code error;
    fs::create_directories(options_.directory + "/cni", error);
    if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", options_.directory, error.message()));
    if (socket_.size() > 100) return invalid(fmt::format("{} is too long for a socket's name: use a shorter --data-dir", socket_));
    const RuntimeAbilities abilities = find_abilities(options_.directory);
    if (!abilities.has_iptables)
      log::info("node", "iptables is missing: pods reach each other and this machine, but not the world, and host ports are not mapped");
    std::ofstream(options_.directory + "/containerd.toml", std::ios::trunc) << containerd_config(options_, abilities);
    std::ofstream(options_.directory + "/cni/10-berth.conflist", std::ios::trunc) << cni_config(options_, abilities);
    // One that an agent left which was killed is stopped, not taken over: it may be about to go. Its containers stay.
    for (const pid_t process : containerds_of(options_.directory)) stop_process(process);
    if (const auto started = spawn(); !started) return started;
    for (int i = 0; i < 150 && !answers(ctr, socket_); ++i) {
      if (::waitpid(child_, nullptr, WNOHANG) == child_)
        return fail(ErrorCode::kUnavailable, fmt::format("containerd ended at once; see {}", log_));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return import_pause(ctr);
  }

  [[nodiscard]] const std::string& socket() const override { return socket_; }
  [[nodiscard]] const std::string& binary() const override { return binary_; }

 private:
  Result<void> spawn() {
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) return fail(ErrorCode::kInternal, std::strerror(errno));
    if (child_ > 0) return {};
    // With the agent it goes, however that ends: nobody would stop it otherwise. Containers have parents of their own.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(0);
    ::setsid();  // A Ctrl-C at the terminal is for berth alone, which then stops this process in order.
    const int out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::close_range(3, ~0U, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const std::string config = options_.directory + "/containerd.toml";
    ::execl(binary_.c_str(), "containerd", "-c", config.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }

  Result<void> import_pause(const std::string& ctr) {
    const std::string image = pause_image_tar();
    if (image.empty()) return {};
    const std::string file = options_.directory + "/pause.tar";
    std::ofstream(file, std::ios::binary | std::ios::trunc) << image;
    if (run_program({ctr, "-a", socket_, "-n", "k8s.io", "images", "import", "--base-name", "berth.local/pause", file}, log_) != 0)
      return fail(ErrorCode::kInternal, fmt::format("the pause image could not be imported; see {}", log_));
    return {};
  }

  OwnRuntimeOptions options_;
  std::string socket_, log_, binary_;
  pid_t child_ = -1;
};

// ---- the pause image

#if defined(__x86_64__)
/// A static program: SIGCHLD is set to be ignored, so that the kernel collects orphans (shareProcessNamespace), then pause(2) for ever.
std::string pause_program() {
  static constexpr unsigned char kCode[] = {0xb8, 13,   0,    0,    0,           // mov eax, rt_sigaction
                                            0xbf, 17,   0,    0,    0,           // mov edi, SIGCHLD
                                            0x48, 0x8d, 0x35, 0x13, 0, 0, 0,     // lea rsi, [rip + action]
                                            0x31, 0xd2,                          // xor edx, edx
                                            0x41, 0xba, 8,    0,    0, 0,        // mov r10d, 8
                                            0x0f, 0x05,                          // syscall
                                            0xb8, 34,   0,    0,    0,           // again: mov eax, pause
                                            0x0f, 0x05,                          // syscall
                                            0xeb, 0xf7,                          // jmp again
                                            1,    0,    0,    0,    0, 0, 0, 0,  // action: SIG_IGN, no flags, no mask
                                            0,    0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::string out;
  const auto put = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  };
  constexpr std::uint64_t kBase = 0x400000, kHeaders = 64 + 56;
  out += std::string(
             "\x7f"
             "ELF\x02\x01\x01",
             7) +
         std::string(9, '\0');
  put(2, 2), put(62, 2), put(1, 4), put(kBase + kHeaders, 8), put(64, 8), put(0, 8), put(0, 4), put(64, 2), put(56, 2), put(1, 2),
      put(64, 2), put(0, 2), put(0, 2);
  // One segment, readable and executable: the whole file.
  put(1, 4), put(5, 4), put(0, 8), put(kBase, 8), put(kBase, 8), put(kHeaders + sizeof kCode, 8), put(kHeaders + sizeof kCode, 8),
      put(0x1000, 8);
  out.append(reinterpret_cast<const char*>(kCode), sizeof kCode);
  return out;
}
constexpr const char* kImageArchitecture = "amd64";
#else
std::string pause_program() { return {}; }
constexpr const char* kImageArchitecture = "";
#endif

/// One member of a ustar archive.
std::string tar_member(const std::string& name, const std::string& content, int mode) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, fmt::format("{:07o}", mode));
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", content.size()));
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, std::string("ustar\0"
                       "00",
                       8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512, '\0');
  return header + padded;
}

std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace

std::string bridge_of(const std::string& directory) { return fmt::format("berth{:06x}", hash_of(directory) & 0xffffff); }

std::vector<std::string> missing_for_own_runtime() {
  std::vector<std::string> missing;
  for (const char* program : {"containerd", "ctr", "runc"})
    if (find_program(program).empty())
      missing.push_back(fmt::format("{} (package {})", program, program == std::string_view("runc") ? "runc" : "containerd"));
  if (find_cni_directory().empty()) missing.emplace_back("the CNI plugin \"bridge\" (package containernetworking-plugins)");
  return missing;
}

std::string containerd_config(const OwnRuntimeOptions& options, const RuntimeAbilities& abilities) {
  const std::string pause = pause_program().empty() ? "registry.k8s.io/pause:3.10" : kPauseImage;
  return fmt::format(R"(version = 2
root = "{0}/containerd"
state = "{0}/state"
oom_score = 0
[grpc]
  address = "{0}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{1}"
  disable_apparmor = {2}
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = {3}
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{5}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{0}/certs.d:/etc/containerd/certs.d"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{4}"
    conf_dir = "{0}/cni"
)",
                     options.directory, pause, !abilities.has_apparmor, !abilities.can_lower_oom_scores, abilities.cni_directory,
                     abilities.snapshotter);
}

std::string cni_config(const OwnRuntimeOptions& options, const RuntimeAbilities& abilities) {
  json::Object bridge{{"type", "bridge"},
                      {"bridge", options.bridge},
                      {"isGateway", true},
                      {"ipMasq", abilities.has_iptables},
                      {"hairpinMode", true},
                      {"ipam", json::Object{{"type", "host-local"},
                                            {"dataDir", options.directory + "/ipam"},
                                            {"ranges", json::Array{json::Array{json::Object{{"subnet", options.pod_subnet}}}}},
                                            {"routes", json::Array{json::Object{{"dst", "0.0.0.0/0"}}}}}}};
  json::Array plugins{std::move(bridge)};
  if (abilities.has_iptables) plugins.push_back(json::Object{{"type", "portmap"}, {"capabilities", json::Object{{"portMappings", true}}}});
  return json::serialize(json::Object{{"cniVersion", "0.4.0"}, {"name", "berth"}, {"plugins", std::move(plugins)}}) + "\n";
}

std::string pause_image_tar() {
  const std::string program = pause_program();
  if (program.empty()) return {};
  const std::string layer = tar_member("pause", program, 0755) + tar_end();
  const auto blob = [](const std::string& bytes, const char* type) {
    return json::Object{{"mediaType", type}, {"digest", "sha256:" + security::sha256_hex(bytes)}, {"size", bytes.size()}};
  };
  const std::string config = json::serialize(json::Object{
      {"architecture", kImageArchitecture},
      {"os", "linux"},
      {"config", json::Object{{"Entrypoint", json::Array{"/pause"}}}},
      {"rootfs", json::Object{{"type", "layers"}, {"diff_ids", json::Array{json::Value("sha256:" + security::sha256_hex(layer))}}}}});
  const std::string manifest =
      json::serialize(json::Object{{"schemaVersion", 2},
                                   {"mediaType", "application/vnd.oci.image.manifest.v1+json"},
                                   {"config", blob(config, "application/vnd.oci.image.config.v1+json")},
                                   {"layers", json::Array{json::Value(blob(layer, "application/vnd.oci.image.layer.v1.tar"))}}});
  json::Object entry = blob(manifest, "application/vnd.oci.image.manifest.v1+json");
  entry["annotations"] = json::Object{{"org.opencontainers.image.ref.name", "1"}};
  const std::string index = json::serialize(json::Object{{"schemaVersion", 2}, {"manifests", json::Array{json::Value(std::move(entry))}}});
  std::string out = tar_member("oci-layout", "{\"imageLayoutVersion\":\"1.0.0\"}", 0644) + tar_member("index.json", index, 0644);
  for (const std::string* bytes : {&layer, &config, &manifest})
    out += tar_member("blobs/sha256/" + security::sha256_hex(*bytes), *bytes, 0644);
  return out + tar_end();
}

Result<std::unique_ptr<OwnRuntime>> OwnRuntime::start(const OwnRuntimeOptions& options) {
  auto process = std::make_unique<ContainerdProcess>(options);
  if (const auto started = process->start(); !started) return std::unexpected(started.error());
  return process;
}

}  // namespace berth::node::agent
