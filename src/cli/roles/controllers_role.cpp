#include "cli/roles/controllers_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <future>

#include "base/config_reader.h"
#include "base/log.h"
#include "cli/command/master_config.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"
#include "model/features.h"

namespace berth::cli {

void ControllersFlags::add_to(CLI::App& app) {
  app.add_option("--controller-arg", arguments,
                 "NAME=VALUE as kube-controller-manager's flags, e.g. node-monitor-grace-period=20s; may be repeated");
}

controllers::ManagerOptions ControllersFlags::options(const config::Arguments& configured, controllers::ManagerOptions out,
                                                      Findings& findings) const {
  std::vector<std::string> notes;
  if (auto read = findings.take(controllers::parse_controller_arguments(configured, out, notes))) out = std::move(*read);
  for (const std::string& argument : arguments)
    if (auto read = findings.take(controllers::parse_manager_flags({"--" + argument}, out, notes))) out = std::move(*read);
  findings.take(controllers::check_election(out));
  findings.notes(notes);
  check_signing(out.signing, findings);
  return out;
}

controllers::AuthoritySource authority_from_files(std::string certificate_file, std::string key_file) {
  return [certificate_file = std::move(certificate_file), key_file = std::move(key_file)]() -> Result<net::SigningAuthority> {
    auto certificate = config::read_whole_file(certificate_file);
    if (!certificate) return std::unexpected(certificate.error());
    auto key = config::read_whole_file(key_file);
    if (!key) return std::unexpected(key.error());
    return net::SigningAuthority{std::move(*certificate), std::move(*key)};
  };
}

void check_signing(controllers::SigningOptions& signing, Findings& findings) {
  const auto check = [&](const std::string& flag, const std::string& certificate, const std::string& key,
                         controllers::AuthoritySource& source) {
    if (certificate.empty() && key.empty()) return;
    if (certificate.empty() || key.empty())
      return findings.error(fmt::format("--{0}-cert-file and --{0}-key-file: give both of them", flag));
    source = authority_from_files(certificate, key);
    if (const auto pair = findings.take(source()))
      if (const auto read = net::read_certificate_facts(pair->certificate_pem); !read)
        findings.error(fmt::format("--{}-cert-file: {}: {}", flag, certificate, read.error().message));
  };
  check("cluster-signing", signing.certificate_file, signing.key_file, signing.authority);
  for (auto& [signer, authority] : signing.own_authorities)
    check("cluster-signing-" + signer, authority.certificate_file, authority.key_file, authority.source);
}

ControllersRole::ControllersRole(std::shared_ptr<client::Transport> transport, controllers::ManagerOptions options)
    : loop_(lasting_loop("controllers")),
      transport_(std::move(transport)),
      options_(std::move(options)),
      config_(controllers::config_document(options_)) {
  std::promise<void> made;
  loop_.post([&] {
    begin();
    made.set_value();
  });
  made.get_future().wait();
}

void ControllersRole::begin() {
  manager_ = controllers::make_controller_manager(transport_, loop_, options_, metrics_.get());
  manager_->on_lost_leadership([this] { lost(); });
  manager_->start();
}

void ControllersRole::lost() {
  loop_.assert_on_loop();
  if (!options_.stands_again) {
    log::error("controllers", "leadership lost: stopping");
    kill(getpid(), SIGTERM);
    return;
  }
  log::warning("controllers", "another has led: beginning anew");
  // Not within a call of the one that goes.
  loop_.post([this] {
    if (is_ending_) return;
    manager_.reset();
    begin();
  });
}

client::ComponentServerOptions ControllersRole::port_options() {
  client::ComponentServerOptions out;
  out.name = "kube-controller-manager";
  out.metrics = [registry = metrics_] { return registry->expose(); };
  out.config_name = "kubecontrollermanager.config.k8s.io";
  out.config = [shown = config_] { return shown; };
  out.checks.push_back(loop_check("controllers-loop", loop_));
  out.transport = transport_;
  return out;
}

ControllersRole::~ControllersRole() {
  std::promise<void> gone;
  loop_.post([&] {
    is_ending_ = true;
    manager_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

int run_controllers(const std::vector<std::string>& args) {
  CLI::App app("The controllers: workloads, node life cycle, taint eviction, garbage collection", "berth controllers");
  ConnectionFlags connection;
  connection.add_to(app);
  ControllersFlags flags;
  flags.add_to(app);
  ComponentPortFlags port;
  port.add_to(app, 10257);
  bool leader_elect = true, validate_only = false;
  std::string master_config;
  std::vector<std::string> feature_gates;
  add_validate_flag(app, validate_only);
  app.add_option("--master-config", master_config, "OpenShift's master-config.yaml: controllerArguments are used");
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several works at a time (default true)");
  app.add_option("--feature-gates", feature_gates,
                 fmt::format("NAME=true|false, comma separated, as the server has them: WorkloadWithJob makes gangs of Jobs; of {}",
                             fmt::join(model::feature_names(), ", ")));
  if (const auto code = parse_args(app, args)) return *code;
  for (const std::string& gates : feature_gates) flags.arguments.push_back("feature-gates=" + gates);
  Findings findings;
  const auto master = findings.take(read_master_config(master_config));
  auto options = flags.options(master.value_or(apiserver::MasterConfig{}).controller_arguments, {.leader_elect = true}, findings);
  if (app.count("--leader-elect") > 0) options.leader_elect = leader_elect;
  port.check(findings);
  check_connection(connection.kubeconfig, connection.context, findings);
  if (validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("controllers")) return 1;
  block_signals();
  const auto config = client::load_kubeconfig(connection.kubeconfig, connection.context);
  if (!config) return report(config.error());
  auto transport = client::transport_for(*config);
  if (!transport) return report(transport.error());
  auto election_transport = client::transport_for(*config);
  if (!election_transport) return report(election_transport.error());
  options.election_transport = std::move(*election_transport);
  options.root_ca_pem = config->http.ca_pem;
  options.identity = fmt::format("{}_{}", host_name(), getpid());
  ControllersRole role(*transport, options);
  auto served = serve_component(port, role.port_options());
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
