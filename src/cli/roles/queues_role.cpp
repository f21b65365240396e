// berth queues: Kueue's queues, for this or any cluster.
#include "cli/roles/queues_role.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <future>

#include "base/log.h"
#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/planning/placement_input.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"
#include "queues/definitions.h"

namespace berth::cli {

QueuesRole::QueuesRole(std::shared_ptr<client::Transport> transport, queues::RunnerOptions options)
    : loop_(lasting_loop("queues")), client_(std::move(transport), &loop_, "berth-queues") {
  options.stopwatch = [] { return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()); };
  std::promise<void> made;
  loop_.post([&] {
    runner_ = std::make_unique<queues::Runner>(client_, std::move(options), *metrics_);
    runner_->on_lost_leadership([] {
      log::error("queues", "leadership lost: stopping");
      kill(getpid(), SIGTERM);
    });
    runner_->start();
    made.set_value();
  });
  made.get_future().wait();
}

client::ComponentServerOptions QueuesRole::port_options() {
  client::ComponentServerOptions out;
  out.name = "berth-queues";
  out.metrics = [registry = metrics_] { return registry->expose(); };
  out.checks.push_back(loop_check("queues-loop", loop_));
  out.transport = client_.transport();
  return out;
}

QueuesRole::~QueuesRole() {
  std::promise<void> gone;
  loop_.post([&] {
    runner_.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  loop_.stop();
}

namespace {

struct QueuesFlags {
  ConnectionFlags connection;
  ComponentPortFlags port;
  queues::RunnerOptions options;
  std::string ready_timeout, requeue_base = "60s", requeue_most = "1h";
  std::int64_t requeue_limit = -1;
  bool leader_elect = true, installs = true, shows_definitions = false, validate_only = false;

  void add_to(CLI::App& app) {
    connection.add_to(app);
    port.add_to(app, 8443);
    add_validate_flag(app, validate_only);
    app.add_flag("--fair-sharing", options.settings.fair_sharing,
                 "Who uses the least beyond his quota, by weight, comes first, and is preempted for last");
    app.add_option("--pods-ready-timeout", ready_timeout,
                   "Whose pods are not all ready so long after admission is evicted and queued again later, such as 5m (default: nobody)");
    app.add_option("--requeuing-backoff-base", requeue_base, "How long such a Workload waits, doubled with each time")
        ->capture_default_str();
    app.add_option("--requeuing-backoff-max", requeue_most, "At most")->capture_default_str();
    app.add_option("--requeuing-backoff-limit-count", requeue_limit, "After so many times it is deactivated (default: never)");
    app.add_flag("--install,!--no-install", installs, "Bring the kinds of kueue.x-k8s.io and the policies into the cluster (default true)");
    app.add_flag("--definitions", shows_definitions, "Print them, for kubectl apply -f -, and end");
    app.add_option("--leader-elect-resource-namespace", options.ns, "Of the Lease berth-queues")->capture_default_str();
    app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several works at a time (default true)");
  }

  void check(Findings& findings) {
    const auto read = [&](std::string_view flag, const std::string& text, auto& target) {
      const auto parsed = parse_go_duration(text);
      if (!parsed || *parsed < std::chrono::seconds(1))
        findings.error(fmt::format("{}: \"{}\" is not a duration of a second or more, such as 5m", flag, text));
      else
        target = *parsed;
    };
    if (!ready_timeout.empty()) read("--pods-ready-timeout", ready_timeout, options.settings.pods_ready_timeout);
    read("--requeuing-backoff-base", requeue_base, options.settings.requeue_base);
    read("--requeuing-backoff-max", requeue_most, options.settings.requeue_most);
    if (requeue_limit >= 0) options.settings.requeue_limit = requeue_limit;
    if (ready_timeout.empty() && requeue_limit >= 0)
      findings.note("--requeuing-backoff-limit-count has no effect without --pods-ready-timeout");
    check_connection(connection.kubeconfig, connection.context, findings);
    port.check(findings);
  }
};

}  // namespace

int run_queues(const std::vector<std::string>& args) {
  CLI::App app(
      "Queues with quotas and fair shares, by Kueue's API (kueue.x-k8s.io/v1beta1): Jobs and pods with the label "
      "kueue.x-k8s.io/queue-name\n"
      "wait until their ClusterQueue, or its cohort, has quota for all of their pods.\n"
      "  berth queues --kubeconfig K\n"
      "  berth queues --definitions | kubectl apply -f -    # only the kinds and policies",
      "berth queues");
  QueuesFlags flags;
  flags.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  if (flags.shows_definitions) {
    fmt::print("{}---\n{}", queues::kinds_text(), queues::policies_text());
    return 0;
  }
  Findings findings;
  flags.check(findings);
  if (flags.validate_only) return findings.print_validation("the configuration is valid");
  if (!findings.may_start("queues")) return 1;
  block_signals();
  auto transport = client::transport_from_kubeconfig(flags.connection.kubeconfig, flags.connection.context);
  if (!transport) return report(transport.error());
  flags.options.installs = flags.installs;
  flags.options.leader_elect = flags.leader_elect;
  flags.options.identity = fmt::format("{}_{}", host_name(), getpid());
  QueuesRole role(*transport, std::move(flags.options));
  auto served = serve_component(flags.port, role.port_options());
  if (!served) return report(served.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
