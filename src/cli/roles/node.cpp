#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "base/config_reader.h"
#include "base/event_loop.h"
#include "base/split.h"
#include "cli/command/compatibility.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/command/tracing_flags.h"
#include "cli/nodes/node_dns.h"
#include "cli/nodes/node_identity.h"
#include "cli/nodes/node_join.h"
#include "cli/nodes/node_settings.h"
#include "cli/nodes/real_node.h"
#include "cli/nodes/service_proxy.h"
#include "cli/nodes/serving_certificate.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"
#include "client/traced_transport.h"
#include "node/agent/agent.h"
#include "node/agent/leftovers.h"
#include "node/agent/own_runtime.h"
#include "node/devices/device_plugins.h"
#include "node/devices/pod_resources.h"
#include "node/plugins/plugin_watcher.h"
#include "security/pki.h"

namespace berth::cli {
namespace {

struct NodeFlags {
  std::string config, labels, client_ca;
  std::vector<std::string> kubelet_arguments, taints;
  bool own_runtime = false, validate_only = false, orders_serving = true, serves_services = true, serves_names = true;
  Compatibility compatibility;
  TracingFlags tracing;
};

void read_settings(const NodeFlags& flags, node::agent::AgentOptions& options, Findings& findings) {
  if (auto settings = findings.take(read_kubelet_settings(flags.config, flags.kubelet_arguments))) {
    findings.notes(std::exchange(settings->warnings, {}));
    options.settings = std::move(*settings);
    flags.compatibility.apply(options.settings);
  }
  for (const std::string_view part : words(flags.labels, ',')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      findings.error(fmt::format("--node-labels: \"{}\" is not KEY=VALUE", part));
    else
      options.labels[std::string(part.substr(0, equals))] = part.substr(equals + 1);
  }
  for (const std::string& text : flags.taints) {
    // KEY=VALUE:EFFECT or KEY:EFFECT
    const std::size_t colon = text.rfind(':'), equals = text.find('=');
    const std::string effect = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
      findings.error(
          fmt::format("--register-with-taints: \"{}\" is not KEY[=VALUE]:EFFECT with NoSchedule, PreferNoSchedule or NoExecute", text));
      continue;
    }
    json::Object taint{{"key", text.substr(0, std::min(equals, colon))}, {"effect", effect}};
    if (equals < colon) taint["value"] = text.substr(equals + 1, colon - equals - 1);
    options.taints.push_back(std::move(taint));
  }
}

/// `berth node reset`
int run_reset(const std::vector<std::string>& args) {
  CLI::App app(
      "Ends a node for good: its pods' containers, its own containerd with its bridge, mounts, cgroups, and its directory. The cluster "
      "keeps its\n"
      "Node object; `kubectl delete node NAME` takes that away. Stop the agent first.",
      "berth node reset");
  std::string data_dir;
  node::agent::ResetOptions options{.root = node::agent::AgentOptions().root};
  app.add_option("--root-dir", options.root, "the directory of berth node")->capture_default_str();
  app.add_option("--data-dir", data_dir, "or that of berth up, whose node is in DIR/node");
  app.add_option("--runtime-endpoint", options.runtime.socket, "the runtime's CRI socket, of a node without a containerd of its own")
      ->capture_default_str();
  app.add_option("--runtime-binary", options.runtime.runtime_binary, "the runtime's binary")->capture_default_str();
  if (const auto code = parse_args(app, args)) return *code;
  if (geteuid() != 0) return report(fail(ErrorCode::kUnavailable, "berth node reset must run as root").error());
  if (!data_dir.empty()) options.root = data_dir + "/node";
  options.root = std::filesystem::absolute(options.root).lexically_normal().string();  // Sockets and rules are named by the whole path.
  const auto done = node::agent::reset_node(options);
  if (!done && (done.error().code == ErrorCode::kConflict || done.error().code == ErrorCode::kNotFound)) return report(done.error());
  for (const std::string& line : done.value_or(std::vector<std::string>())) std::printf("%s\n", line.c_str());
  for (const std::string& line : {remove_service_rules(options.root), remove_dns_address(options.root)})
    if (!line.empty()) std::printf("%s\n", line.c_str());
  return done ? 0 : report(done.error());  // What the host keeps of Services goes even where something else would not.
}

struct JoinFlags {
  JoinRequest request;
  std::string timeout = "5m";
  bool register_only = false;
  void add_to(CLI::App& app) {
    app.add_option("server", request.server, "the API server: HOST:PORT")->required();
    app.add_option("--token", request.token, "from `berth token create` on the cluster")->required();
    app.add_option("--ca-hash,--discovery-token-ca-cert-hash", request.ca_hashes,
                   "sha256:… of the cluster's certificate authority: whom to trust; may be repeated")
        ->required();
    app.add_option("--timeout", timeout, "how long to wait for the node's certificate")->capture_default_str();
    app.add_flag("--certificate-only", register_only, "ends when the kubeconfig is written, without running the node: for a kubelet");
  }
};

/// The node's kubeconfig, ordered with a token; empty connection data on `error`. Nothing is done where there is one of this cluster.
Result<void> join_cluster(const JoinFlags& flags, const std::string& node, const std::string& path) {
  const auto facts = discover_cluster(flags.request, network_fetch());
  if (!facts) return std::unexpected(facts.error());
  if (const auto known = client::load_kubeconfig(path);
      known && known->http.ca_pem == facts->ca_pem && node_of_certificate(known->http.certificate_pem) == node) {
    const auto certificate = net::read_certificate_facts(known->http.certificate_pem);
    if (certificate && certificate->not_after > SystemClock().now()) {
      std::printf("this machine has a certificate of the cluster already (%s), good until %s\n", path.c_str(),
                  format_rfc3339(certificate->not_after).c_str());
      return {};
    }
  }
  net::ClientConfig http;
  http.url = facts->url;
  http.ca_pem = facts->ca_pem;
  const auto transport = client::make_https_transport(std::move(http), flags.request.token);
  if (!transport) return std::unexpected(transport.error());
  client::Client client(*transport, nullptr, "berth-node");
  const auto deadline = std::chrono::steady_clock::now() + parse_go_duration(flags.timeout).value_or(Duration::zero());
  auto order = client_order(node, [deadline] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return std::chrono::steady_clock::now() < deadline;
  });
  order.ordered = [](const std::string& name) {
    std::printf("asked for the node's certificate (certificatesigningrequest %s)\n", name.c_str());
    std::fflush(stdout);
  };
  order.unknown_user = fmt::format(
      "the cluster does not take the token {}.… any more: it has expired, or is not for authentication; `{} token "
      "create --print-join-command` on the cluster makes a new one",
      flags.request.token.substr(0, flags.request.token.find('.')), program_name());
  const auto identity = order_certificate(client, order);
  if (!identity) return std::unexpected(identity.error());
  client::KubeconfigEntry entry;
  entry.user = "system:node:" + node;
  entry.server = facts->url;
  entry.ca_pem = facts->ca_pem;
  entry.certificate_pem = identity->certificate_pem;
  entry.private_key_pem = identity->private_key_pem;
  if (auto written = client::write_kubeconfig(path, entry); !written) return written;
  std::printf("the cluster has given node %s its certificate; its kubeconfig is %s\n", node.c_str(), path.c_str());
  return {};
}

/// Renews the client certificate of a kubeconfig that is the node's own. Null: it is not, and is left as it is.
std::unique_ptr<IdentityThread> look_after(const client::Connection& known, const ConnectionFlags& connection, const std::string& node,
                                           const std::shared_ptr<client::ReplaceableTransport>& transport) {
  const std::string& path = connection.kubeconfig;
  if (path.empty() || node_of_certificate(known.http.certificate_pem) != node) return nullptr;
  IdentityKeeper::Options options;
  options.node = node;
  options.path = path;
  options.entry = {.user = known.user,
                   .server = known.http.url,
                   .ca_pem = known.http.ca_pem,
                   .certificate_pem = known.http.certificate_pem,
                   .private_key_pem = known.http.private_key_pem};
  options.share = static_cast<double>(std::random_device{}() % 1000) / 1000;
  options.transport = transport.get();
  auto keeper = IdentityKeeper::create(std::move(options));
  if (!keeper) return nullptr;
  return std::make_unique<IdentityThread>(std::move(*keeper), transport);
}

/// Everything that `berth node` and `berth node join` are told.
struct AgentCommand {
  JoinFlags* join = nullptr;  ///< Null: the node has joined before.
  ConnectionFlags connection;
  NodeFlags flags;
  node::agent::AgentOptions options;
  std::shared_ptr<const net::tracing::TracerOptions> tracing;  ///< Null: nobody is told.

  void add_to(CLI::App& app);
  /// Reads the files and looks at all flags; changes nothing on the machine.
  void check(const CLI::App& app, Findings& findings);
};

void AgentCommand::add_to(CLI::App& app) {
  if (join == nullptr)
    connection.add_to(app);
  else
    join->add_to(app);
  options.node_name = machine_name();
  options.address = machine_address();
  app.add_option("--node-name", options.node_name, "the node's name")->capture_default_str();
  app.add_option("--node-labels", flags.labels, "KEY=VALUE,… of the node");
  app.add_option("--config", flags.config, "a KubeletConfiguration, or an OpenShift node-config.yaml");
  add_validate_flag(app, flags.validate_only);
  app.add_option("--kubelet-arg", flags.kubelet_arguments,
                 "NAME=VALUE of a kubelet flag, such as eviction-hard=memory.available<500Mi; may be repeated");
  app.add_option("--runtime-endpoint", options.runtime.socket, "the runtime's CRI socket")->capture_default_str();
  app.add_option("--register-with-taints", flags.taints, "KEY=VALUE:EFFECT of a node that is new, comma separated")->delimiter(',');
  flags.compatibility.add_to(app, kNodeCompatibility);
  flags.tracing.add_to(app);
  app.add_flag("--own-runtime", flags.own_runtime, "starts a containerd of its own below --root-dir");
  app.add_option("--runtime-binary", options.runtime.runtime_binary, "the runtime's binary, which carries the CRI's description")
      ->capture_default_str();
  app.add_option("--runtime-root", options.runtime_root, "a path on the runtime's filesystem; asked of the runtime when empty");
  app.add_option("--root-dir", options.root, "pods' volumes and logs")->capture_default_str();
  app.add_option("--address", options.address, "where the API server reaches this node")->capture_default_str();
  app.add_option("--port", options.port, "of the node's endpoints; 0: any free one")->capture_default_str();
  app.add_option("--client-ca-file", flags.client_ca,
                 "who signs the API server's client certificate; the kubeconfig's authority when empty");
  app.add_flag("--rotate-server-certificates,!--no-rotate-server-certificates", flags.orders_serving,
               "Orders what the endpoints show from the cluster (kubernetes.io/kubelet-serving), and renews it; somebody must approve the "
               "request. Without it, and until then: one of the node's own making (default true)");
  app.add_flag(
      "--service-proxy,!--no-service-proxy", flags.serves_services,
      "Leads the addresses of Services to their pods by nftables; off where kube-proxy or a network plugin does it (default true)");
  app.add_flag(
      "--name-service,!--no-name-service", flags.serves_names,
      "Serves the cluster's names to the pods of this node (package pdns-recursor), unless clusterDNS says who does (default true)");
  options.device_plugins = node::devices::PluginOptions().directory;
  app.add_option("--device-plugins", options.device_plugins, "the directory where device plugins register; \"\": none can")
      ->capture_default_str();
  options.plugins_registry = node::plugins::WatcherOptions().directory;
  app.add_option("--plugins-registry", options.plugins_registry,
                 "the directory of the sockets by which drivers are found (CSI, DRA) and device plugins; \"\": none are")
      ->capture_default_str();
  options.pod_resources = node::devices::PodResourcesOptions().directory;
  app.add_option("--pod-resources", options.pod_resources,
                 "the directory where monitoring agents ask which pod has which devices; \"\": it is not served")
      ->capture_default_str();
  app.add_option("--node-cgroup", options.node_cgroup,
                 "the cgroup that stands for the machine, such as /node1; its memory limit is the node's memory");
}

void AgentCommand::check(const CLI::App& app, Findings& findings) {
  read_settings(flags, options, findings);
  tracing = flags.tracing.plan("berth-node", findings);
  if (join == nullptr) {
    check_connection(connection.kubeconfig, connection.context, findings);
  } else {
    findings.take(check_join_request(join->request));
    if (const auto timeout = parse_go_duration(join->timeout); !timeout || *timeout <= Duration::zero())
      findings.error(fmt::format("--timeout: \"{}\" is not a duration above zero", join->timeout));
  }
  if (!flags.client_ca.empty()) options.client_ca_pem = findings.take(config::read_whole_file(flags.client_ca)).value_or("");
  if (flags.own_runtime && app.count("--runtime-endpoint") > 0) findings.error("--own-runtime and --runtime-endpoint: give one of them");
  if (flags.own_runtime)
    if (const auto lacking = node::agent::missing_for_own_runtime(); !lacking.empty())
      findings.error(fmt::format("--own-runtime: {} missing", fmt::join(lacking, ", ")));
  if (options.runtime.socket.starts_with("unix://")) options.runtime.socket.erase(0, std::string_view("unix://").size());
}

/// The agent and what runs beside it, in the order in which they start; they end in the opposite one.
class RunningNode {
 public:
  RunningNode(AgentCommand& command, client::Connection known)
      : flags_(command.flags),
        options_(std::move(command.options)),
        connection_(command.connection),
        known_(std::move(known)),
        tracing_(command.tracing) {}

  /// The directory for this process alone, the runtime where it is the node's own, and what the endpoints show at first.
  Result<void> prepare();
  /// The way to the API server, with a certificate that is renewed.
  Result<void> connect();
  Result<void> start_agent();
  void start_services();
  [[nodiscard]] const std::string& name() const { return name_; }
  /// What its pods go without though nobody asked for that, a sentence each.
  [[nodiscard]] std::vector<std::string> lacks() const {
    std::vector<std::string> out;
    if (names_ && !names_->trouble().empty()) out.push_back("its pods get no names of the cluster: " + names_->trouble());
    if (flags_.serves_services && !proxy_) out.emplace_back("its pods reach no Services, and NetworkPolicies do not hold (see the log)");
    return out;
  }

 private:
  const NodeFlags& flags_;
  node::agent::AgentOptions options_;  ///< The agent's, once it has started.
  const ConnectionFlags& connection_;
  const client::Connection known_;
  const std::shared_ptr<const net::tracing::TracerOptions> tracing_;
  const std::string name_ = options_.node_name, address_ = options_.address, root_ = options_.root;
  std::optional<node::agent::DirectoryLock> lock_;
  std::unique_ptr<node::agent::OwnRuntime> runtime_;
  std::shared_ptr<client::ReplaceableTransport> transport_;
  ThreadLoop loop_{"node"};
  std::optional<client::Client> client_, blocking_;
  std::unique_ptr<IdentityThread> identity_;
  std::unique_ptr<NodeDns> names_;
  std::unique_ptr<node::agent::Agent> agent_;
  std::unique_ptr<ServingThread> serving_;  ///< Goes before the agent, to which it gives what it gets.
  std::unique_ptr<ServiceProxy> proxy_;
};

Result<void> RunningNode::prepare() {
  auto lock = node::agent::DirectoryLock::take(root_);
  if (!lock) return std::unexpected(lock.error());
  lock_ = std::move(*lock);
  if (flags_.own_runtime) {
    auto started = node::agent::OwnRuntime::start({.directory = root_ + "/runtime"});
    if (!started) return std::unexpected(started.error());
    runtime_ = std::move(*started);
    options_.runtime = {runtime_->socket(), runtime_->binary()};
  }
  // A certificate of the node's own making, kept: the API server takes nodes' certificates as they are.
  const auto pki = security::Pki::open({.directory = root_ + "/pki", .names = {address_, name_}}, SystemClock().now());
  if (!pki) return std::unexpected(pki.error());
  options_.certificate_pem = pki->server().certificate_pem;
  options_.private_key_pem = pki->server().private_key_pem;
  if (flags_.client_ca.empty()) options_.client_ca_pem = known_.http.ca_pem;
  return {};
}

Result<void> RunningNode::connect() {
  const auto first = client::transport_for(known_);
  if (!first) return std::unexpected(first.error());
  transport_ = std::make_shared<client::ReplaceableTransport>(*first);
  std::shared_ptr<client::Transport> told = transport_;
  if (tracing_) {
    auto tracer = net::tracing::Tracer::start(*tracing_);
    if (!tracer) return invalid(fmt::format("--tracing-config-file: {}", tracer.error().message));
    options_.tracer = *tracer;
    told = client::with_tracing(transport_, *tracer);
  }
  client_.emplace(told, &loop_, "berth-node");
  blocking_.emplace(transport_, nullptr, "berth-node");
  identity_ = look_after(known_, connection_, name_, transport_);
  return {};
}

Result<void> RunningNode::start_agent() {
  if (flags_.serves_names && options_.settings.cluster_dns.empty()) {
    names_ = std::make_unique<NodeDns>(transport_, name_, root_, options_.settings.cluster_domain);
    options_.settings.cluster_dns = names_->servers();
  }
  auto started = node::agent::Agent::start(*client_, *blocking_, std::move(options_));
  if (!started) return std::unexpected(started.error());
  agent_ = std::move(*started);
  return {};
}

void RunningNode::start_services() {
  // Only a node of its own name may ask for a certificate of the cluster's.
  if (flags_.orders_serving && identity_ != nullptr)
    serving_ = std::make_unique<ServingThread>(
        ServingKeeper(
            {.node = name_,
             .names = {name_, address_},
             .directory = root_ + "/pki",
             .share = static_cast<double>(std::random_device{}() % 1000) / 1000,
             .wait = {},
             .use = [this](const NodeIdentity& one) { return agent_->show_certificate(one.certificate_pem, one.private_key_pem); }}),
        transport_);
  if (flags_.serves_services) proxy_ = ServiceProxy::start(transport_, name_, root_, names_ ? names_->own_address() : "");
}

/// Until a signal comes.
Result<void> run_until_stopped(RunningNode& node) {
  if (auto done = node.prepare(); !done) return done;
  if (auto done = node.connect(); !done) return done;
  if (auto done = node.start_agent(); !done) return done;
  node.start_services();
  std::printf("node %s is running; Ctrl-C stops the agent, containers keep running\n", node.name().c_str());
  for (const std::string& line : node.lacks()) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  wait_for_signal();
  return {};
}

/// What stands in the way of a node here, found out before the cluster is told of one; empty: nothing.
std::string hindrance(const AgentCommand& command) {
  if (geteuid() != 0) return "a node makes cgroups, mounts and networks: it must run as root";
  if (command.flags.own_runtime) return {};
  const std::string trouble = trouble_with_runtime(command.options.runtime.socket, command.options.runtime.runtime_binary);
  if (trouble.empty()) return {};
  const auto lacking = node::agent::missing_for_own_runtime();
  return fmt::format("{}; start it, name another by --runtime-endpoint, or give --own-runtime, which starts a containerd for this node{}",
                     trouble, lacking.empty() ? "" : fmt::format(" ({} missing for that)", fmt::join(lacking, ", ")));
}

int run_agent(const std::vector<std::string>& args, JoinFlags* join) {
  CLI::App app{join == nullptr
                   ? "This machine as a node: runs pods as real containers through a CRI runtime (containerd).\nNeeds root, a running "
                     "containerd and a writable cgroup hierarchy. `berth node join` makes it a node of a cluster by a token, `berth node "
                     "reset` takes everything of it away again."
                   : "Makes this machine a node of a cluster, by an address, a token and the hash of the cluster's authority, and runs it. "
                     "`berth token create --print-join-command` on the cluster prints what to type.\nThe kubeconfig stays in "
                     "--root-dir: `berth node --kubeconfig ROOT/kubelet.kubeconfig` runs the node again.",
               join == nullptr ? "berth node" : "berth node join"};
  AgentCommand command{.join = join};
  command.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  command.check(app, findings);
  if (command.flags.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("node")) return 1;
  if (join == nullptr || !join->register_only)
    if (const std::string why = hindrance(command); !why.empty()) return report(Error{ErrorCode::kUnavailable, why});
  const std::string root = command.options.root;
  ConnectionFlags& connection = command.connection;
  if (join != nullptr) {
    if (auto made = make_private_directory(root); !made) return report(made.error());
    connection.kubeconfig = root + "/kubelet.kubeconfig";
    if (const auto joined = join_cluster(*join, command.options.node_name, connection.kubeconfig); !joined) return report(joined.error());
    if (join->register_only) return 0;
  }
  auto known = client::load_kubeconfig(connection.kubeconfig, connection.context);
  if (!known) return report(known.error());
  if (auto made = make_private_directory(root); !made) return report(made.error());
  block_signals();
  RunningNode node(command, std::move(*known));
  const auto ran = run_until_stopped(node);
  return ran ? 0 : report(ran.error());
}

}  // namespace

int run_node(const std::vector<std::string>& args) {
  const std::vector<std::string> rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  if (!args.empty() && args.front() == "reset") return run_reset(rest);
  if (args.empty() || args.front() != "join") return run_agent(args, nullptr);
  JoinFlags join;
  return run_agent(rest, &join);
}

}  // namespace berth::cli
