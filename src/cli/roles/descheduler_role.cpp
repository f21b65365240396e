#include "cli/roles/descheduler_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/planning/placement_input.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"

namespace berth::cli {
namespace {

using descheduler::PlacementCheck;

/// A dump's cluster: the same cycle, with nothing behind it.
int plan_for_files(const std::vector<json::Value>& objects, const descheduler::DeschedulerOptions& options, const std::string& at,
                   const std::function<void(const descheduler::CycleResult&)>& print) {
  descheduler::Snapshot snapshot(options.era);
  for (const json::Value& object : objects)
    if (!json::get_string(object, {"metadata", "name"}).empty()) snapshot.add(object);
  for (const std::string& query : options.policy.prometheus_queries())
    snapshot.queried_usage.emplace(query,
                                   invalid("a dump has no answer of Prometheus: plan on the live cluster (--kubeconfig, --dry-run)"));
  snapshot.finish();
  descheduler::CycleOptions cycle;
  cycle.now = SystemClock().now();
  if (!at.empty()) {
    const auto time = parse_rfc3339(at);
    if (!time) return report(Error{ErrorCode::kInvalid, fmt::format("--at {}: not a time such as 2026-01-02T03:04:05Z", at)});
    cycle.now = *time;
  }
  cycle.check = options.check;
  cycle.lists_everyone = options.lists_everyone;
  const auto plan = descheduler::plan_cycle(options.policy, snapshot, options.profiles, cycle);
  if (!plan) return report(plan.error());
  print(plan->result);
  return 0;
}

struct Flags {
  PlacementFlags placement;
  ComponentPortFlags port;
  std::string policy_file, interval = "0", check = "better", output = "text", at;
  std::string lease_duration = "137s", renew_deadline = "107s", retry_period = "26s", lease_name = "descheduler", lease_ns = "kube-system";
  int most_in_flight = 16;
  bool dry_run = false, leader_elect = false, disable_metrics = false, validate_only = false;
  int verbosity = 0;

  void add_to(CLI::App& app) {
    app.add_option("--policy-config-file", policy_file, "DeschedulerPolicy (descheduler/v1alpha1 or v1alpha2), YAML or JSON")->required();
    placement.add_to(app, false);
    app.add_option("--client-connection-kubeconfig", placement.connection.kubeconfig, "The same as --kubeconfig");
    app.add_flag("--dry-run", dry_run, "Print the plan: which pod, from where, why, and where it would go; change nothing");
    app.add_option("--descheduling-interval", interval, "Pause between the starts of two cycles, such as 5m; 0: one cycle, then the end")
        ->capture_default_str();
    app.add_option("--placement-check", check,
                   "When a pod is evicted: better (the placement engine puts it elsewhere), fits (it fits on some node, perhaps the same), "
                   "off (always)")
        ->capture_default_str()
        ->check(CLI::IsMember({"better", "fits", "off"}));
    app.add_option("--max-evictions-in-flight", most_in_flight, "Evictions asked for and not yet answered; 1: one after the other")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    app.add_option("-o,--output", output, "text or json")->capture_default_str()->check(CLI::IsMember({"text", "json"}));
    app.add_option("--at", at, "With --cluster: the time at which pods' ages count (RFC 3339; default: now)");
    add_validate_flag(app, validate_only);
    app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "With an interval: only one of several works at a time");
    app.add_option("--leader-elect-lease-duration", lease_duration, "How long the others wait for a leader that is silent")
        ->capture_default_str();
    app.add_option("--leader-elect-renew-deadline", renew_deadline, "How long the leader tries to renew")->capture_default_str();
    app.add_option("--leader-elect-retry-period", retry_period, "Pause between two tries")->capture_default_str();
    app.add_option("--leader-elect-resource-name", lease_name, "Name of the Lease")->capture_default_str();
    app.add_option("--leader-elect-resource-namespace", lease_ns, "Its namespace")->capture_default_str();
    app.add_flag("--disable-metrics", disable_metrics, "Serve no port at all");
    app.add_option("-v,--v", verbosity, "4 or more tells of every pod that stays why");
    port.add_to(app, 10258);
  }

  [[nodiscard]] Result<std::optional<client::LeaderElectionConfig>> election(Duration every, Findings& findings) const {
    if (!leader_elect) return std::nullopt;
    if (every == Duration::zero()) return invalid("--leader-elect: leaderElection must be used with deschedulingInterval");
    if (dry_run) {
      findings.note("--leader-elect: a dry run does not compete for the leadership");
      return std::nullopt;
    }
    const auto lease = parse_interval(lease_duration), renew = parse_interval(renew_deadline), retry = parse_interval(retry_period);
    if (!lease || !renew || !retry) return invalid("--leader-elect-…: a duration such as 15s is wanted");
    client::LeaderElectionConfig out{.ns = lease_ns,
                                     .name = lease_name,
                                     .identity = fmt::format("{}_{}", host_name(), getpid()),
                                     .lease_duration = *lease,
                                     .renew_deadline = *renew,
                                     .retry_period = *retry};
    if (const auto valid = client::LeaderElector::validate(out); !valid) return std::unexpected(valid.error());
    return out;
  }
};

}  // namespace

std::optional<Duration> parse_interval(const std::string& text) {
  const auto out = parse_go_duration(text);
  return !out || *out < Duration::zero() ? std::nullopt : out;
}

DeschedulerRole::DeschedulerRole(std::shared_ptr<client::Transport> transport, descheduler::DeschedulerOptions options, Duration interval,
                                 std::optional<client::LeaderElectionConfig> election)
    : transport_(std::move(transport)),
      leadership_(election ? seek_leadership(*election) : nullptr),
      descheduler_(leadership_ ? leadership_->transport() : transport_, std::move(options), metrics_),
      interval_(interval) {
  if (leadership_)
    leadership_->start();
  else
    is_leading_ = true;
  thread_ = std::thread([this] { run(); });
}

std::unique_ptr<client::Leadership> DeschedulerRole::seek_leadership(const client::LeaderElectionConfig& election) {
  const auto lead = [this](bool is_leading) {
    if (!is_leading) descheduler_.stop();
    const MutexLock lock(mutex_);
    is_leading_ = is_leading;
    wake_.notify_all();
    return is_stopping_;
  };
  return std::make_unique<client::Leadership>(
      transport_, client::LeadershipOptions{.election = election, .user_agent = "berth-descheduler"}, nullptr,
      client::LeaderCallbacks{.on_started_leading =
                                  [lead] {
                                    log::info("descheduler", "leading");
                                    lead(true);
                                  },
                              .on_stopped_leading =
                                  [lead] {
                                    if (lead(false)) return;
                                    log::error("descheduler", "leadership lost: stopping");
                                    kill(getpid(), SIGTERM);
                                  },
                              .on_new_leader = [](const std::string& leader) { log::info("descheduler", "the leader is {}", leader); }});
}

void DeschedulerRole::run() {
  MutexLock lock(mutex_);
  while (!is_stopping_) {
    wake_.wait(mutex_, [this]() BERTH_REQUIRES(mutex_) { return is_leading_ || is_stopping_; });
    if (is_stopping_) return;
    const auto next = std::chrono::steady_clock::now() + interval_;
    lock.unlock();
    const auto fresh = descheduler_.refresh_policy();
    const auto result = fresh ? descheduler_.run_once() : Result<descheduler::CycleResult>(std::unexpected(fresh.error()));
    if (!result)
      log::error("descheduler", "the cycle failed: {}", result.error().message);
    else
      log::info("descheduler", "cycle done: {} of {} chosen pods evicted", result->evicted(), result->removals.size());
    if (result)
      for (const auto& run : result->runs)
        if (!run.error.empty()) log::error("descheduler", "{}: {}", descheduler::strategy_name(run.strategy), run.error);
    lock.lock();
    wake_.wait_until(mutex_, next, [this]() BERTH_REQUIRES(mutex_) { return is_stopping_; });
  }
}

client::ComponentServerOptions DeschedulerRole::port_options() {
  client::ComponentServerOptions out;
  out.name = "descheduler";
  out.metrics = [registry = metrics_] { return registry->expose(); };
  out.transport = transport_;
  return out;
}

DeschedulerRole::~DeschedulerRole() {
  descheduler_.stop();
  {
    const MutexLock lock(mutex_);
    is_stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

// Longer than a screen: flags, what is wrong with them, then the parts in the order in which they start and stop.
int run_descheduler(const std::vector<std::string>& args) {
  CLI::App app(
      "Evicts pods that have a better place by now, as a DeschedulerPolicy says, so that the scheduler moves them. A pod goes only if the\n"
      "scheduler's own placement engine shows that it would not come back to where it was.\n"
      "  berth descheduler --policy-config-file policy.yaml --dry-run            # the plan, on the current cluster\n"
      "  berth descheduler --policy-config-file policy.yaml --cluster dump.yaml  # the plan, on a dump\n"
      "  berth descheduler --policy-config-file policy.yaml --descheduling-interval 5m --leader-elect",
      "berth descheduler");
  Flags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  Findings findings;
  const auto interval = parse_interval(flags.interval);
  if (!interval) findings.error(fmt::format("--descheduling-interval {}: not a duration such as 5m", flags.interval));
  auto policy = findings.take(descheduler::load_policy(flags.policy_file));
  if (policy) findings.notes(policy->warnings);
  auto election = findings.take(flags.election(interval.value_or(std::chrono::minutes(1)), findings));
  if (auto given = findings.take(read_placement_config(flags.placement, {}))) findings.notes(given->config.notes);
  const bool is_live = flags.placement.cluster_files.empty();
  if (is_live)
    check_connection(flags.placement.connection.kubeconfig, flags.placement.connection.context, findings);
  else if (flags.validate_only)
    static_cast<void>(findings.take(read_objects(flags.placement.cluster_files)));
  if (!flags.at.empty() && !parse_rfc3339(flags.at))
    findings.error(fmt::format("--at {}: not a time such as 2026-01-02T03:04:05Z", flags.at));
  if (!flags.at.empty() && is_live) findings.note("--at has no effect without --cluster");
  flags.port.check(findings);
  if (flags.validate_only)
    return findings.print_validation(fmt::format("the policy is valid: {} profile(s)", policy ? policy->profiles.size() : 0));
  if (!findings.may_start("descheduler")) return 1;
  // Before the first thread.
  if (*interval != Duration::zero()) block_signals();
  // What judges better places is the scheduler's own configuration, as it runs.
  Result<std::vector<json::Value>> objects;
  std::shared_ptr<client::Transport> transport;
  KnownSchedulers known;
  if (!is_live) {
    objects = read_objects(flags.placement.cluster_files);
    if (!objects) return report(objects.error());
    known = known_schedulers_of(*objects);
  } else {
    auto made = client::transport_from_kubeconfig(flags.placement.connection.kubeconfig, flags.placement.connection.context);
    if (!made) return report(made.error());
    transport = std::move(*made);
    client::Client client(transport, nullptr, "berth-descheduler");
    if (!flags.placement.has_configuration()) known = read_known_schedulers(client);
  }
  auto input = read_placement_config(flags.placement, known);
  if (!input) return report(input.error());
  tell_configuration(*input, "default-scheduler");
  descheduler::DeschedulerOptions options;
  options.policy = std::move(*policy);
  options.policy_file = flags.policy_file;
  options.profiles = input->profiles;
  options.era = input->config.era;
  options.check = flags.check == "off"    ? PlacementCheck::kOff
                  : flags.check == "fits" ? PlacementCheck::kFits
                                          : PlacementCheck::kBetterPlace;
  options.dry_run = flags.dry_run;
  options.most_in_flight = static_cast<std::size_t>(flags.most_in_flight);
  options.lists_everyone = flags.verbosity >= 4;
  options.host = host_name();
  const auto print = [&](const descheduler::CycleResult& result) {
    const bool is_plan = flags.dry_run || !flags.placement.cluster_files.empty();
    const std::string text = flags.output == "json" ? json::serialize_pretty(descheduler::to_json(result, is_plan))
                                                    : descheduler::to_text(result, is_plan, flags.verbosity >= 4 ? SIZE_MAX : 20);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  if (!is_live) return plan_for_files(*objects, options, flags.at, print);

  if (*interval == Duration::zero()) {
    descheduler::Descheduler once(transport, std::move(options), std::make_shared<metrics::Registry>());
    const auto result = once.run_once();
    if (!result) return report(result.error());
    print(*result);
    return 0;
  }
  DeschedulerRole role(transport, std::move(options), *interval, std::move(*election));
  if (flags.disable_metrics) flags.port.port = 0;
  auto served = serve_component(flags.port, role.port_options());
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
