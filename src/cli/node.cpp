#include <unistd.h>

#include <cstdio>

#include "apiserver/auth/pki.h"
#include "base/config_reader.h"
#include "base/event_loop.h"
#include "cli/compatibility.h"
#include "cli/findings.h"
#include "cli/node_settings.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/real_node.h"
#include "cli/roles.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "node/agent/agent.h"
#include "node/agent/leftovers.h"
#include "node/agent/own_runtime.h"

namespace berth::cli {
namespace {

struct NodeFlags {
  std::string config, labels, client_ca;
  std::vector<std::string> kubelet_arguments, taints;
  bool own_runtime = false, validate_only = false;
  Compatibility compatibility;
};

void read_settings(const NodeFlags& flags, node::agent::AgentOptions& options, Findings& findings) {
  if (auto settings = findings.take(read_kubelet_settings(flags.config, flags.kubelet_arguments))) {
    findings.notes(std::exchange(settings->warnings, {}));
    options.settings = std::move(*settings);
    flags.compatibility.apply(options.settings);
  }
  for (std::string_view rest = flags.labels; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
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
  const auto done = node::agent::reset_node(options);
  if (!done) return report(done.error());
  for (const std::string& line : *done) std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace

int run_node(const std::vector<std::string>& args) {
  if (!args.empty() && args.front() == "reset") return run_reset({args.begin() + 1, args.end()});
  CLI::App app{
      "This machine as a node: runs pods as real containers through a CRI runtime (containerd).\nNeeds root, a running containerd and a "
      "writable cgroup hierarchy. `berth node reset` takes everything of it away again.",
      "berth node"};
  ConnectionFlags connection;
  connection.add_to(app);
  node::agent::AgentOptions options;
  NodeFlags flags;
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
  app.add_flag("--own-runtime", flags.own_runtime, "starts a containerd of its own below --root-dir");
  app.add_option("--runtime-binary", options.runtime.runtime_binary, "the runtime's binary, which carries the CRI's description")
      ->capture_default_str();
  app.add_option("--runtime-root", options.runtime_root, "a path on the runtime's filesystem; asked of the runtime when empty");
  app.add_option("--root-dir", options.root, "pods' volumes and logs")->capture_default_str();
  app.add_option("--address", options.address, "where the API server reaches this node")->capture_default_str();
  app.add_option("--port", options.port, "of the node's endpoints; 0: any free one")->capture_default_str();
  app.add_option("--client-ca-file", flags.client_ca,
                 "who signs the API server's client certificate; the kubeconfig's authority when empty");
  app.add_option("--node-cgroup", options.node_cgroup,
                 "the cgroup that stands for the machine, such as /node1; its memory limit is the node's memory");
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  read_settings(flags, options, findings);
  check_connection(connection.kubeconfig, connection.context, findings);
  if (!flags.client_ca.empty()) options.client_ca_pem = findings.take(config::read_whole_file(flags.client_ca)).value_or("");
  if (flags.own_runtime && app.count("--runtime-endpoint") > 0) findings.error("--own-runtime and --runtime-endpoint: give one of them");
  if (flags.own_runtime)
    if (const auto lacking = node::agent::missing_for_own_runtime(); !lacking.empty())
      findings.error(fmt::format("--own-runtime: {} missing", fmt::join(lacking, ", ")));
  if (flags.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("node")) return 1;
  const auto known = client::load_kubeconfig(connection.kubeconfig, connection.context);
  if (!known) return report(known.error());
  if (flags.client_ca.empty()) options.client_ca_pem = known->http.ca_pem;
  if (auto made = make_private_directory(options.root); !made) return report(made.error());
  if (options.runtime.socket.starts_with("unix://")) options.runtime.socket.erase(0, std::string_view("unix://").size());
  block_signals();
  const auto lock = node::agent::DirectoryLock::take(options.root);
  if (!lock) return report(lock.error());
  std::unique_ptr<node::agent::OwnRuntime> runtime;
  if (flags.own_runtime) {
    auto started = node::agent::OwnRuntime::start({.directory = options.root + "/runtime"});
    if (!started) return report(started.error());
    runtime = std::move(*started);
    options.runtime = {runtime->socket(), runtime->binary()};
  }
  // A certificate of the node's own making, kept: the API server takes nodes' certificates as they are.
  const auto pki =
      apiserver::auth::Pki::open({.directory = options.root + "/pki", .names = {options.address, options.node_name}}, SystemClock().now());
  if (!pki) return report(pki.error());
  options.certificate_pem = pki->server().certificate_pem;
  options.private_key_pem = pki->server().private_key_pem;
  const auto transport = client::transport_for(*known);
  if (!transport) return report(transport.error());
  ThreadLoop loop("node");
  client::Client client(*transport, &loop, "berth-node"), blocking(*transport, nullptr, "berth-node");
  const std::string name = options.node_name;
  auto agent = node::agent::Agent::start(client, blocking, std::move(options));
  if (!agent) return report(agent.error());
  std::printf("node %s is running; Ctrl-C stops the agent, containers keep running\n", name.c_str());
  std::fflush(stdout);
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
