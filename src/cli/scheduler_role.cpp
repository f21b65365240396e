// berth scheduler: for this or any Kubernetes API server.
#include <unistd.h>

#include <cstdio>
#include <future>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/parse.h"
#include "cli/process.h"
#include "cli/roles.h"
#include "cli/scheduler_role.h"
#include "cli/session.h"
#include "client/kubeconfig.h"
#include "client/leader_election.h"

namespace berth::cli {

void SchedulerFlags::add_to(CLI::App& app) {
  app.add_option("--scheduler-name", scheduler_name, "Places the pods of this schedulerName (without a configuration file)")->capture_default_str();
  app.add_option("--seed", seed, "Seed of the choice among equally good nodes")->capture_default_str();
}

scheduler::SchedulerOptions SchedulerFlags::options() const {
  scheduler::SchedulerOptions out;
  out.engine.seed = seed;
  placement::Profile profile = placement::default_profile(placement::Era::k136);
  profile.scheduler_name = scheduler_name;
  for (auto* point : {&profile.pre_enqueue, &profile.queue_sort, &profile.pre_filter, &profile.filter, &profile.post_filter, &profile.pre_score, &profile.score, &profile.reserve, &profile.permit, &profile.pre_bind, &profile.bind, &profile.post_bind})
    std::erase_if(*point, [](const placement::PluginUse& use) { return placement::find_plugin(use.name) == nullptr; });
  out.profiles.push_back(std::move(profile));
  return out;
}

SchedulerRole::SchedulerRole(std::shared_ptr<client::Transport> transport, scheduler::SchedulerOptions options, bool leader_elect, std::string identity)
    : loop_("scheduler"), client_(std::move(transport), &loop_, "berth-scheduler"), options_(std::move(options)), leader_elect_(leader_elect), identity_(std::move(identity)) {}

Result<void> SchedulerRole::start() {
  std::promise<Result<void>> started;
  loop_.post([&] { started.set_value(start_on_loop()); });
  return started.get_future().get();
}

Result<void> SchedulerRole::start_on_loop() {
  informers_ = std::make_unique<client::InformerFactory>(client_);
  auto created = scheduler::Scheduler::create(client_, *informers_, options_);
  if (!created) return std::unexpected(created.error());
  scheduler_ = std::move(*created);
  scheduler_->start();
  informers_->start();
  if (!leader_elect_) {
    scheduler_->lead(true);
    return {};
  }
  client::LeaderElectionConfig election;
  election.name = "kube-scheduler";
  election.identity = identity_;
  elector_ = std::make_unique<client::LeaderElector>(
      client_, election,
      client::LeaderCallbacks{[this] { log::info("scheduler", "leading"); scheduler_->lead(true); }, [this] { log::warning("scheduler", "leadership lost"); scheduler_->lead(false); elector_->start(); },
                              [](const std::string& leader) { log::info("scheduler", "the leader is {}", leader); }});
  elector_->start();
  return {};
}

SchedulerRole::~SchedulerRole() {
  std::promise<void> done;
  loop_.post([&] {
    if (elector_ && elector_->is_leader()) {
      elector_->stop([&] { done.set_value(); });
    } else {
      done.set_value();
    }
  });
  done.get_future().wait_for(std::chrono::seconds(2));
  std::promise<void> gone;
  loop_.post([&] {
    elector_.reset();
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
  bool leader_elect = true;
  app.add_flag("--leader-elect,!--no-leader-elect", leader_elect, "Only one of several schedulers works at a time (default true)");
  if (const auto code = parse_args(app, args)) return *code;
  block_signals();
  auto transport = client::transport_from_kubeconfig(connection.kubeconfig, connection.context);
  if (!transport) return report(transport.error());
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  SchedulerRole role(*transport, flags.options(), leader_elect, fmt::format("{}_{}", host, getpid()));
  if (auto started = role.start(); !started) return report(started.error());
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
