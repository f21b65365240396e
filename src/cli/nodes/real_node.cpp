#include "cli/nodes/real_node.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/event_loop.h"
#include "base/owned_fd.h"
#include "cli/command/process.h"
#include "cli/nodes/node_dns.h"
#include "cli/nodes/node_settings.h"
#include "cli/nodes/service_proxy.h"
#include "node/agent/agent.h"
#include "node/agent/cgroups.h"
#include "node/agent/leftovers.h"
#include "node/agent/own_runtime.h"
#include "node/devices/device_plugins.h"
#include "node/devices/pod_resources.h"
#include "node/plugins/plugin_watcher.h"
#include "security/pki.h"

namespace berth::cli {
namespace {

namespace agent = node::agent;

constexpr const char* kUsualSockets[] = {"/run/containerd/containerd.sock", "/run/crio/crio.sock"};

bool is_socket(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

std::string binary_of(const std::string& socket) {
  return socket.find("crio") != std::string::npos ? "/usr/bin/crio" : "/usr/bin/containerd";
}

std::string trouble_with(const std::string& socket) { return trouble_with_runtime(socket, binary_of(socket)); }

/// The socket to be used when no own runtime is started; empty: none is there.
std::string find_socket(const RealNodeFlags& flags) {
  if (!flags.runtime_endpoint.empty()) return flags.runtime_endpoint;
  for (const char* path : kUsualSockets)
    if (is_socket(path)) return path;
  return {};
}

std::string without_scheme(std::string endpoint) {
  if (endpoint.starts_with("unix://")) endpoint.erase(0, std::string_view("unix://").size());
  return endpoint;
}

class RealNodeImpl final : public RealNode {
 public:
  RealNodeImpl(std::shared_ptr<client::Transport> transport, std::shared_ptr<client::Transport> network, agent::DirectoryLock lock,
               std::unique_ptr<agent::OwnRuntime> own)
      : lock_(std::move(lock)),
        own_(std::move(own)),
        loop_(lasting_loop("node")),
        network_(std::move(network)),
        client_(transport, &loop_, "berth-node"),
        blocking_(std::move(transport), nullptr, "berth-node") {}
  ~RealNodeImpl() override {
    proxy_.reset();
    agent_.reset();
    loop_.stop();
  }
  Result<void> start(agent::AgentOptions options) {
    name_ = options.node_name;
    runtime_ = options.runtime.socket;
    const std::string directory = options.root;
    if (options.settings.cluster_dns.empty()) {
      dns_ = std::make_unique<NodeDns>(network_, name_, directory, options.settings.cluster_domain);
      options.settings.cluster_dns = dns_->servers();
    }
    auto started = agent::Agent::start(client_, blocking_, std::move(options));
    if (!started) return std::unexpected(started.error());
    agent_ = std::move(*started);
    proxy_ = ServiceProxy::start(network_, name_, directory, dns_ ? dns_->own_address() : "");
    return {};
  }
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const std::string& runtime() const override { return runtime_; }
  [[nodiscard]] const std::string& serving_ca_pem() const override { return serving_ca_pem_; }
  void set_serving_ca(std::string pem) { serving_ca_pem_ = std::move(pem); }

 private:
  agent::DirectoryLock lock_;
  std::unique_ptr<agent::OwnRuntime> own_;
  ThreadLoop& loop_;
  std::shared_ptr<client::Transport> network_;
  client::Client client_, blocking_;
  std::unique_ptr<NodeDns> dns_;
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<ServiceProxy> proxy_;
  std::string name_, runtime_, serving_ca_pem_;
};

/// The kubelet's port where it is free.
std::uint16_t choose_port() {
  constexpr std::uint16_t kKubeletPort = 10250;
  const OwnedFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kKubeletPort);
  const int one = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? kKubeletPort : 0;
}

}  // namespace

void RealNodeFlags::add_to(CLI::App& app) {
  app.add_option("--real-node", mode,
                 "This machine as a real node, its pods as containers: auto (when --nodes is not given and a container runtime runs here), "
                 "on (starts a containerd of its own when none runs), off")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "on", "off"}));
  app.add_option("--real-node-name", name, "Its name; the machine's when empty");
  app.add_option("--runtime-endpoint", runtime_endpoint,
                 "The container runtime's CRI socket, when it is not at containerd's or CRI-O's usual place");
  app.add_option("--node-config", config, "KubeletConfiguration or node-config.yaml of the real node");
  app.add_option("--kubelet-arg", kubelet_arguments, "NAME=VALUE of a kubelet flag for the real node; may be repeated");
  device_plugins = node::devices::PluginOptions().directory;
  app.add_option("--device-plugins", device_plugins, "Where device plugins register at the real node; \"\": none can")
      ->capture_default_str();
  plugins_registry = node::plugins::WatcherOptions().directory;
  app.add_option("--plugins-registry", plugins_registry,
                 "The directory of the sockets by which the real node finds drivers (CSI, DRA) and device plugins; \"\": none")
      ->capture_default_str();
  pod_resources = node::devices::PodResourcesOptions().directory;
  app.add_option("--pod-resources", pod_resources,
                 "Where monitoring agents ask which pod of the real node has which devices; \"\": it is not served")
      ->capture_default_str();
}

std::string RealNode::missing(const RealNodeFlags& flags, RealNodeMode mode) {
  if (geteuid() != 0) return "it needs root";
  if (const auto cgroups = agent::Cgroups::detect(); !cgroups) return cgroups.error().message;
  const std::string socket = without_scheme(find_socket(flags));
  const std::string trouble =
      socket.empty() ? fmt::format("no container runtime runs here (looked at {})", fmt::join(kUsualSockets, ", ")) : trouble_with(socket);
  if (trouble.empty()) return {};
  const auto lacking = agent::missing_for_own_runtime();
  if (mode == RealNodeMode::kOn && flags.runtime_endpoint.empty())
    return lacking.empty() ? "" : fmt::format("{}, and to start one {} missing", trouble, fmt::join(lacking, ", "));
  if (!flags.runtime_endpoint.empty() || !lacking.empty()) return trouble;
  return trouble + "; --real-node on starts a containerd of its own";
}

Result<std::unique_ptr<RealNode>> RealNode::start(const RealNodeFlags& flags, RealNodeMode mode, const Place& place) {
  if (auto why = missing(flags, mode); !why.empty()) return fail(ErrorCode::kUnavailable, why);
  auto settings = read_kubelet_settings(flags.config, flags.kubelet_arguments);
  if (!settings) return std::unexpected(settings.error());
  agent::AgentOptions options;
  settings->warnings.clear();  // Said by whoever looked at the flags.
  options.settings = std::move(*settings);
  flags.compatibility.apply(options.settings);
  // A laptop swaps; the kubelet's refusal would surprise here. Said in the log.
  if (flags.config.empty() &&
      std::ranges::none_of(flags.kubelet_arguments, [](const std::string& argument) { return argument.starts_with("fail-swap-on="); }))
    options.settings.fail_swap_on = false;
  options.node_name = real_node_name(flags);
  options.root = place.data_dir + "/node";
  options.address = machine_address();
  options.port = choose_port();
  options.client_ca_pem = place.ca_pem;
  options.tracer = place.tracer;
  options.device_plugins = flags.device_plugins;
  options.plugins_registry = flags.plugins_registry;
  options.pod_resources = flags.pod_resources;
  if (auto made = make_private_directory(options.root); !made) return std::unexpected(made.error());
  auto lock = agent::DirectoryLock::take(options.root);
  if (!lock) return std::unexpected(lock.error());
  std::unique_ptr<agent::OwnRuntime> own;
  options.runtime.socket = without_scheme(find_socket(flags));
  if (options.runtime.socket.empty() || !trouble_with(options.runtime.socket).empty()) {
    auto started = agent::OwnRuntime::start({.directory = options.root + "/runtime"});
    if (!started) return std::unexpected(started.error());
    own = std::move(*started);
    options.runtime = {own->socket(), own->binary()};
  } else {
    options.runtime.runtime_binary = binary_of(options.runtime.socket);
  }
  const auto pki =
      security::Pki::open({.directory = options.root + "/pki", .names = {options.address, options.node_name}}, SystemClock().now());
  if (!pki) return std::unexpected(pki.error());
  options.certificate_pem = pki->server().certificate_pem;
  options.private_key_pem = pki->server().private_key_pem;
  auto node = std::make_unique<RealNodeImpl>(place.transport, place.network, std::move(*lock), std::move(own));
  node->set_serving_ca(pki->ca_certificate_pem());
  if (const auto started = node->start(std::move(options)); !started) return std::unexpected(started.error());
  return node;
}

std::string trouble_with_runtime(const std::string& socket, const std::string& binary) {
  const auto channel = node::cri::Channel::open({socket, binary});
  if (!channel) return channel.error().message;
  const auto status = (*channel)->call("RuntimeService/Status", json::Object{}, 3000);
  if (!status) return fmt::format("the container runtime does not answer at {} ({})", socket, status.error().message);
  for (const json::Value& condition : json::get_array(*status, {"status", "conditions"}))
    if (!json::get_bool(condition, {"status"}))
      return fmt::format("the container runtime at {} is not ready: {}", socket, json::get_string(condition, {"message"}));
  return {};
}

std::string machine_name() {
  std::string name = host_name();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::string machine_address() {
  // Nothing is sent: connecting a datagram socket only asks for the route.
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{}, own{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);
  socklen_t size = sizeof own;
  char text[INET_ADDRSTRLEN] = "127.0.0.1";
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&far), sizeof far) == 0 &&
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
    inet_ntop(AF_INET, &own.sin_addr, text, sizeof text);
  return text;
}

}  // namespace berth::cli
