// berth scheduler: for this or any Kubernetes API server.
#include "cli/scheduler_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <future>

#include "base/log.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/roles.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "client/leader_election.h"
#include "scheduler/config/shown.h"
#include "scheduler/extender.h"

namespace berth::cli {
void SchedulerFlags::add_to(CLI::App& app) {
  app.add_option("--scheduler-name", scheduler_name, "Places the pods of this schedulerName (without a configuration file)")
      ->capture_default_str();
  app.add_option("--config", config_file, "KubeSchedulerConfiguration (v1, v1beta3, v1beta2, v1beta1) or Policy, YAML or JSON");
  app.add_option("--policy-config-file", policy_file, "Policy file, YAML or JSON");
  app.add_option("--compatibility", compatibility,
                 "Follow another release's formulas and words than the configuration's version means: 1.20 or 1.36")
      ->check(CLI::IsMember({"1.20", "1.36"}));
  app.add_option("--seed", seed, "Seed of the choice among equally good nodes")->capture_default_str();
  app.add_flag("--hard-disruption-budgets", hard_budgets, "Preemption never breaks a PodDisruptionBudget (default: as a last resort)");
}

Result<scheduler::config::SchedulerConfig> SchedulerFlags::config(const std::string& default_policy_file) const {
  if (!config_file.empty() && !policy_file.empty()) return invalid("--config and --policy-config-file: give one of them");
  std::optional<placement::Era> era;
  if (!compatibility.empty()) era = compatibility == "1.20" ? placement::Era::k120 : placement::Era::k136;
  const std::string& file = !config_file.empty() ? config_file : !policy_file.empty() ? policy_file : default_policy_file;
  if (file.empty()) {
    auto config = scheduler::config::default_config(era.value_or(placement::Era::k136));
    config.profiles.front().scheduler_name = scheduler_name;
    return config;
  }
  return scheduler::config::load(file, {file, era});
}

scheduler::SchedulerOptions SchedulerFlags::options(const scheduler::config::SchedulerConfig& config) const {
  scheduler::SchedulerOptions out;
  out.engine.seed = seed;
  out.preemption.budgets_are_hard = hard_budgets;
  out.profiles = config.profiles;
  out.extenders = config.extenders;
  out.queue.initial_backoff = std::chrono::seconds(config.pod_initial_backoff_seconds);
  out.queue.max_backoff = std::chrono::seconds(config.pod_max_backoff_seconds);
  return out;
}

SchedulerRole::SchedulerRole(std::shared_ptr<client::Transport> transport, scheduler::SchedulerOptions options,
                             std::optional<client::LeaderElectionConfig> election)
    : loop_(lasting_loop("scheduler")),
      client_(std::move(transport), &loop_, "berth-scheduler"),
      options_(std::move(options)),
      election_(std::move(election)) {
  char host[256] = {};
  if (gethostname(host, sizeof host - 1) == 0 && host[0] != 0) options_.host = host;
  if (!options_.metrics) options_.metrics = std::make_shared<metrics::Registry>();
  metrics_ = options_.metrics;
}

Result<void> SchedulerRole::start() {
  std::promise<Result<void>> started;
  loop_.post([&] { started.set_value(start_on_loop()); });
  return started.get_future().get();
}

client::ComponentServerOptions SchedulerRole::port_options(const scheduler::config::SchedulerConfig& config) {
  client::ComponentServerOptions out;
  out.name = "kube-scheduler";
  out.metrics = [registry = metrics_] { return registry->expose(); };
  out.config_name = "componentconfig";
  out.config = [document = scheduler::config::shown(config)] { return document; };
  out.checks.push_back(loop_check("scheduler-loop", loop_));
  out.checks.push_back(
      {"informer-sync",
       [this] { return ask_loop(loop_, [this] { return scheduler_ && scheduler_->has_synced() ? "" : "the informers have not synced"; }); },
       true});
  out.transport = client_.transport();
  return out;
}

Result<void> SchedulerRole::start_on_loop() {
  informers_ = std::make_unique<client::InformerFactory>(client_);
  auto created = scheduler::Scheduler::create(client_, *informers_, options_);
  if (!created) return std::unexpected(created.error());
  scheduler_ = std::move(*created);
  scheduler_->start();
  informers_->start();
  if (!election_) {
    scheduler_->lead(true);
    cli::publish(client_, published_);
  } else {
    elect();
  }
  return {};
}

void SchedulerRole::elect() {
  election_loop_ = std::make_unique<ThreadLoop>("election");
  election_client_ = std::make_unique<client::Client>(client_.transport(), election_loop_.get(), "berth-scheduler");
  metrics::Gauge& status =
      metrics_->gauge("leader_election_master_status",
                      "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
                      {{"name", election_->name}});
  const auto lead = [this, &status](bool is_leader) {
    status.set(is_leader ? 1 : 0);
    loop_.post([this, is_leader] {
      if (!scheduler_) return;
      scheduler_->lead(is_leader);
      if (is_leader) cli::publish(client_, published_);
    });
  };
  election_loop_->post([this, lead] {
    elector_ = std::make_unique<client::LeaderElector>(
        *election_client_, *election_,
        client::LeaderCallbacks{[lead] {
                                  log::info("scheduler", "leading");
                                  lead(true);
                                },
                                // Nothing is decided or written from here on; then it is a candidate again.
                                [this, lead] {
                                  lead(false);
                                  if (is_stopping_) return;
                                  log::warning("scheduler", "leadership lost");
                                  elector_->start();
                                },
                                [](const std::string& leader) { log::info("scheduler", "the leader is {}", leader); }});
    elector_->start();
  });
}

SchedulerRole::~SchedulerRole() {
  if (election_loop_) {
    auto done = std::make_shared<std::promise<void>>();
    election_loop_->post([this, done] {
      is_stopping_ = true;
      if (elector_ && elector_->is_leader())
        elector_->stop([done] { done->set_value(); });
      else
        done->set_value();
    });
    done->get_future().wait_for(std::chrono::seconds(2));
    std::promise<void> stopped;
    election_loop_->post([&] {
      elector_.reset();
      stopped.set_value();
    });
    stopped.get_future().wait();
    election_loop_->stop();
  }
  std::promise<void> gone;
  loop_.post([&] {
    scheduler_.reset();
    informers_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

int run_scheduler(const std::vector<std::string>& args) {
  CLI::App app("Places pods for any Kubernetes API server, in kube-scheduler's place or beside it", "berth scheduler");
  ConnectionFlags connection;
  connection.add_to(app);
  SchedulerFlags flags;
  flags.add_to(app);
  ComponentPortFlags port;
  port.add_to(app, 10259);
  bool leader_elect = true, validate_only = false;
  app.add_flag("--validate", validate_only, "Only check the configuration");
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several schedulers works at a time (default true)");
  if (const auto code = parse_args(app, args)) return *code;
  auto config = flags.config();
  if (!config) return report(config.error());
  if (validate_only) {
    if (const auto extenders = scheduler::Extenders::create(config->extenders); !extenders) return report(extenders.error());
    std::printf("the configuration is valid: %zu profile(s)\n", config->profiles.size());
    return 0;
  }
  block_signals();
  const std::string& kubeconfig = connection.kubeconfig.empty() ? config->client_connection.kubeconfig : connection.kubeconfig;
  auto transport = client::transport_from_kubeconfig(kubeconfig, connection.context);
  if (!transport) return report(transport.error());
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::optional<client::LeaderElectionConfig> election;
  if (leader_elect && config->leader_election.leader_elect) {
    const auto& wanted = config->leader_election;
    election = client::LeaderElectionConfig{.ns = wanted.resource_namespace,
                                            .name = wanted.resource_name,
                                            .identity = fmt::format("{}_{}", host, getpid()),
                                            .lease_duration = std::chrono::milliseconds(wanted.lease_duration_ms),
                                            .renew_deadline = std::chrono::milliseconds(wanted.renew_deadline_ms),
                                            .retry_period = std::chrono::milliseconds(wanted.retry_period_ms)};
    if (const auto valid = client::LeaderElector::validate(*election); !valid) return report(valid.error());
  }
  SchedulerRole role(*transport, flags.options(*config), election);
  role.publish(published_of(*config, flags.hard_budgets));
  if (auto started = role.start(); !started) return report(started.error());
  auto served = serve_component(port, role.port_options(*config));
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
