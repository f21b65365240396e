// berth scheduler: for this or any Kubernetes API server.
#include "cli/roles/scheduler_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <future>

#include "base/log.h"
#include "cli/command/findings.h"
#include "cli/command/master_config.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/command/tracing_flags.h"
#include "cli/planning/placement_question.h"
#include "cli/roles/roles.h"
#include "client/informer.h"
#include "client/kubeconfig.h"
#include "client/leader_election.h"
#include "client/traced_transport.h"
#include "model/quantity.h"
#include "scheduler/config/arguments.h"
#include "scheduler/config/shown.h"
#include "scheduler/extender.h"
#include "scheduler/group_options.h"
#include "scheduler/groups_seen.h"

namespace berth::cli {
namespace {

constexpr const char* kAgent = "berth-scheduler";

}  // namespace

void SchedulerFlags::add_to(CLI::App& app) {
  app.add_option(
      "--scheduler-name", scheduler_name,
      "Places the pods of this schedulerName (default-scheduler); a KubeSchedulerConfiguration names its own. One that is not the "
      "default leads by a Lease of its own name");
  app.add_option("--config", config_file, "KubeSchedulerConfiguration (v1, v1beta3, v1beta2, v1beta1) or Policy, YAML or JSON");
  app.add_option("--policy-config-file", policy_file, "Policy file, YAML or JSON");
  compatibility.add_to(app, compatibility_acts_on);
  app.add_option("--columns-memory", columns_memory,
                 "Memory for what is kept of each kind of pods between decisions, such as 256Mi; beyond it what is unused longest goes")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const auto amount = model::Quantity::parse(text);
        return amount && amount->sign() > 0 ? std::string() : fmt::format("{} is not an amount of memory such as 256Mi", text);
      });
  app.add_option("--seed", seed, "Seed of the choice among equally good nodes")->capture_default_str();
  const auto is_duration = [](const std::string& text) {
    const auto read = parse_go_duration(text);
    return read && *read >= Duration(0) ? std::string() : fmt::format("{} is not a duration such as 5m or 1h30m", text);
  };
  app.add_flag("--gangs-as-kubernetes", gangs_as_kubernetes,
               "Groups of pods by kube-scheduler 1.36's rules alone: no search beyond the order of members, no preemption with a topology, "
               "no levels of annotations, no room kept");
  app.add_option("--gang-reservation-after", gang_reservation_after,
                 "A gang that fits nowhere for so long has room kept from pods that came later; 0: never")
      ->capture_default_str()
      ->check(is_duration);
  app.add_option("--gang-reservation-for", gang_reservation_for, "Room is kept for so long; then the gang waits as long again")
      ->capture_default_str()
      ->check(is_duration);
  app.add_flag("--hard-disruption-budgets", hard_budgets, "Preemption never breaks a PodDisruptionBudget (default: as a last resort)");
}

Result<scheduler::config::SchedulerConfig> SchedulerFlags::config(const apiserver::MasterConfig& master,
                                                                  const std::string& master_config_file) const {
  if (!config_file.empty() && !policy_file.empty()) return invalid("--config and --policy-config-file: give one of them");
  const std::optional<placement::Era> era = compatibility.era();
  const std::string directory = master_config_file.empty() ? "" : std::filesystem::absolute(master_config_file).parent_path().string();
  std::string file = !config_file.empty()   ? config_file
                     : !policy_file.empty() ? policy_file
                                            : scheduler::config::file_of(master.scheduler_arguments, directory);
  if (file.empty()) file = master.scheduler_config_file;
  auto config = scheduler::config::default_config(era.value_or(placement::Era::k136));
  if (!file.empty()) {
    auto loaded = scheduler::config::load(file, {file, era});
    if (!loaded) return loaded;
    config = std::move(*loaded);
  }
  if (auto applied = scheduler::config::apply(master.scheduler_arguments, config); !applied) return std::unexpected(applied.error());
  // A Policy and the defaults name no scheduler; the profiles of a configuration name themselves.
  if (!scheduler_name.empty() && !config.is_policy && !config.source.is_null())
    return invalid(fmt::format("--scheduler-name: {} names its schedulers itself (profiles[].schedulerName)", file));
  if (!scheduler_name.empty()) config.profiles.front().scheduler_name = scheduler_name;
  // Their certificates' files are looked at.
  if (const auto extenders = scheduler::Extenders::create(config.extenders); !extenders) return std::unexpected(extenders.error());
  return config;
}

scheduler::SchedulerOptions SchedulerFlags::options(const scheduler::config::SchedulerConfig& config) const {
  scheduler::SchedulerOptions out;
  out.engine.seed = seed;
  out.engine.columns_bytes = static_cast<std::size_t>(model::Quantity::parse(columns_memory)->value());
  out.preemption.budgets_are_hard = hard_budgets;
  const auto groups = std::make_shared<scheduler::GroupOptions>();
  groups->as_kubernetes = gangs_as_kubernetes;
  groups->reservation_after = *parse_go_duration(gang_reservation_after);
  groups->reservation_for = *parse_go_duration(gang_reservation_for);
  out.groups = groups;
  out.profiles = config.profiles;
  out.extenders = config.extenders;
  out.queue.initial_backoff = std::chrono::seconds(config.pod_initial_backoff_seconds);
  out.queue.max_backoff = std::chrono::seconds(config.pod_max_backoff_seconds);
  return out;
}

SchedulerRole::SchedulerRole(std::shared_ptr<client::Transport> transport, scheduler::SchedulerOptions options,
                             std::optional<client::LeaderElectionConfig> election, std::shared_ptr<client::Transport> election_transport)
    : loop_(lasting_loop("scheduler")),
      transport_(std::move(transport)),
      options_(std::move(options)),
      leadership_(election ? seek_leadership(*election, std::move(election_transport)) : nullptr),
      client_(leadership_ ? leadership_->transport() : transport_, &loop_, kAgent) {
  if (std::string host = host_name(); !host.empty()) options_.host = std::move(host);
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
  out.profiling = config.enable_profiling;
  out.config_name = "componentconfig";
  out.config = [document = scheduler::config::shown(config)] { return document; };
  out.checks.push_back(loop_check("scheduler-loop", loop_));
  out.checks.push_back(
      {"informer-sync",
       [this] { return ask_loop(loop_, [this] { return scheduler_ && scheduler_->has_synced() ? "" : "the informers have not synced"; }); },
       true});
  out.transport = transport_;
  return out;
}

namespace {

model::ApiStatus refusal(int code, const char* reason, std::string message) {
  model::ApiStatus out;
  out.code = code;
  out.reason = reason;
  out.message = std::move(message);
  return out;
}

/// The answer over a fork of the scheduler's cluster, on another thread than its own. `seen`: null for a pod without a group.
model::ApiResult<std::string> answer_on_fork(const PlacementQuestion& question, const std::vector<placement::Profile>& of_scheduler,
                                             const placement::Cluster& cluster, const scheduler::GroupsSeen* seen) {
  // Plugins keep what they found for themselves: this thread has its own.
  auto profiles = placement::Profiles::create(of_scheduler);
  if (!profiles) return std::unexpected(model::internal_error(profiles.error().message));
  const std::string& first = of_scheduler.front().scheduler_name;
  std::optional<placement::GroupExplanation> group;
  if (seen != nullptr && seen->asked.group != nullptr) {
    placement::Profiles for_all = *profiles;
    for_all.set_otherwise(for_all.find(first));
    placement::Trial trial = placement::Trial::on_fork(cluster, std::move(for_all));
    group = placement::explain_group(trial, seen->groups, seen->asked);
  }
  if (!question.group.empty()) return answer_of(*group, question.output, fmt::format("{}: {}", first, KnownSchedulers::source_of(first)));
  const std::string name(json::get_string(question.pod, {"spec", "schedulerName"}, "default-scheduler"));
  return answer_of(question, profiles->find(name), cluster, KnownSchedulers::source_of(name), group ? &*group : nullptr);
}

}  // namespace

std::optional<model::ApiStatus> SchedulerRole::refusal_of(const PlacementQuestion& question) const {
  constexpr std::size_t kMostAsked = 16;
  if (!scheduler_ || !scheduler_->has_synced()) return refusal(503, "ServiceUnavailable", "the scheduler does not know the cluster yet");
  if (asked_ >= kMostAsked) return refusal(429, "TooManyRequests", "so many questions wait that another has to come later");
  const std::string name(json::get_string(question.pod, {"spec", "schedulerName"}, "default-scheduler"));
  if (question.group.empty() && std::ranges::find(options_.profiles, name, &placement::Profile::scheduler_name) == options_.profiles.end())
    return refusal(404, "NotFound", fmt::format("no profile of this scheduler is called {}", name));
  return std::nullopt;
}

std::function<void(PlacementQuestion, SchedulerRole::Told)> SchedulerRole::answers() {
  return [this](PlacementQuestion question, Told done) { explain(std::move(question), std::move(done)); };
}

void SchedulerRole::explain(PlacementQuestion question, Told done) {
  loop_.post([this, question = std::move(question), done = std::move(done)]() mutable {
    if (auto refused = refusal_of(question)) return done(std::unexpected(std::move(*refused)));
    const std::string key = question.group.empty() ? model::pod_group_key(question.pod) : question.group;
    const auto seen = key.empty() ? nullptr : scheduler_->see_groups(key);
    if (!question.group.empty() && seen->asked.group == nullptr)
      return done(std::unexpected(refusal(404, "NotFound", fmt::format("the scheduler knows no PodGroup {}", key))));
    question.budgets_are_hard |= options_.preemption.budgets_are_hard;
    ++asked_;
    scheduler_->consult(
        [this, question = std::move(question), seen, profiles = options_.profiles, done](const placement::Cluster& cluster) {
          done(answer_on_fork(question, profiles, cluster, seen.get()));
          return [this] { --asked_; };
        });
  });
}

Result<void> SchedulerRole::start_on_loop() {
  informers_ = std::make_unique<client::InformerFactory>(client_);
  auto created = scheduler::Scheduler::create(client_, *informers_, options_);
  if (!created) return std::unexpected(created.error());
  scheduler_ = std::move(*created);
  scheduler_->start();
  informers_->start();
  if (leadership_)
    leadership_->start();
  else
    lead(true);
  return {};
}

void SchedulerRole::lead(bool is_leader) {
  if (!scheduler_) return;
  scheduler_->lead(is_leader);
  if (is_leader) cli::publish(client_, published_);
}

std::unique_ptr<client::Leadership> SchedulerRole::seek_leadership(const client::LeaderElectionConfig& election,
                                                                   std::shared_ptr<client::Transport> transport) {
  const auto lead = [this, name = election.name](bool is_leader) {
    metrics_
        ->gauge("leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
                {{"name", name}})
        .set(is_leader ? 1 : 0);
    if (is_leader)
      log::info("scheduler", "leading");
    else
      log::warning("scheduler", "leadership lost");
    this->lead(is_leader);
  };
  return std::make_unique<client::Leadership>(
      transport_,
      client::LeadershipOptions{.election = election,
                                .user_agent = kAgent,
                                .stands_again = true,
                                .transport = std::move(transport),
                                .catch_up = [this](std::function<void()> done) { informers_->catch_up(std::move(done)); }},
      &loop_,
      client::LeaderCallbacks{.on_started_leading = [lead] { lead(true); },
                              .on_stopped_leading = [lead] { lead(false); },
                              .on_new_leader = [](const std::string& leader) { log::info("scheduler", "the leader is {}", leader); }});
}

SchedulerRole::~SchedulerRole() {
  leadership_.reset();
  std::promise<void> gone;
  loop_.post([&] {
    scheduler_.reset();
    informers_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

std::optional<client::LeaderElectionConfig> election_of(const scheduler::config::SchedulerConfig& config, std::string identity,
                                                        Findings& findings) {
  const auto& wanted = config.leader_election;
  if (!wanted.leader_elect) return std::nullopt;
  client::LeaderElectionConfig out{.ns = wanted.resource_namespace,
                                   .name = lease_name(config),
                                   .identity = std::move(identity),
                                   .lease_duration = wanted.times.lease_duration,
                                   .renew_deadline = wanted.times.renew_deadline,
                                   .retry_period = wanted.times.retry_period,
                                   // The documents' role system:kube-scheduler gives rights to the Lease kube-scheduler alone.
                                   .goes_without = wanted.resource_name.empty() && config.profile("") == nullptr};
  findings.take(client::LeaderElector::validate(out));
  return out;
}

int run_scheduler(const std::vector<std::string>& args) {
  CLI::App app("Places pods for any Kubernetes API server, in kube-scheduler's place or beside it", "berth scheduler");
  ConnectionFlags connection;
  connection.add_to(app);
  SchedulerFlags flags;
  flags.add_to(app);
  TracingFlags tracing;
  tracing.add_to(app);
  ComponentPortFlags port;
  port.add_to(app, 10259);
  bool leader_elect = true, validate_only = false;
  std::string master_config;
  add_validate_flag(app, validate_only);
  app.add_option("--master-config", master_config, "OpenShift's master-config.yaml: schedulerConfigFile and schedulerArguments are used");
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several schedulers works at a time (default true)");
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  const auto master = findings.take(read_master_config(master_config));
  auto config = findings.take(flags.config(master.value_or(apiserver::MasterConfig{}), master_config));
  port.check(findings);
  const auto traced = tracing.plan("berth-scheduler", findings);
  std::optional<client::LeaderElectionConfig> election;
  std::string kubeconfig = connection.kubeconfig;
  if (config) {
    findings.notes(config->notes);
    if (kubeconfig.empty()) kubeconfig = config->kubeconfig;
    if (leader_elect) election = election_of(*config, fmt::format("{}_{}", host_name(), getpid()), findings);
  }
  check_connection(kubeconfig, connection.context, findings);
  if (validate_only)
    return findings.print_validation(fmt::format("the configuration is valid: {} profile(s)", config ? config->profiles.size() : 0));
  if (!findings.may_start("scheduler")) return 1;
  block_signals();
  auto transport = client::transport_from_kubeconfig(kubeconfig, connection.context);
  if (!transport) return report(transport.error());
  auto election_transport = client::transport_from_kubeconfig(kubeconfig, connection.context);
  if (!election_transport) return report(election_transport.error());
  auto options = flags.options(*config);
  if (traced) {
    auto tracer = net::tracing::Tracer::start(*traced);
    if (!tracer) return report(tracer.error());
    options.tracer = *tracer;
    *transport = client::with_tracing(*transport, *tracer);
  }
  SchedulerRole role(*transport, std::move(options), election, std::move(*election_transport));
  role.publish(published_of(*config, flags.hard_budgets));
  if (auto started = role.start(); !started) return report(started.error());
  auto served = serve_component(port, role.port_options(*config));
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
