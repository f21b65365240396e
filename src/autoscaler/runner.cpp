#include "autoscaler/runner.h"

#include <fmt/format.h>

#include <set>

#include "autoscaler/actuator.h"
#include "autoscaler/external/expander_client.h"
#include "autoscaler/external/external_provider.h"
#include "autoscaler/machine_api.h"
#include "autoscaler/own_writes.h"
#include "autoscaler/pass_log.h"
#include "autoscaler/pass_metrics.h"
#include "autoscaler/rules.h"
#include "autoscaler/watches.h"
#include "autoscaler/written.h"
#include "base/lifeline.h"
#include "base/log.h"

namespace berth::autoscaler {
namespace {

/// The release whose rules the scheduler follows.
placement::Era era_of(const placement::Profiles& profiles) {
  const auto& framework = profiles.find("default-scheduler");
  return framework == nullptr ? placement::Era::k136 : framework->profile().era;
}

void keep_only_words(Actions& actions) {
  actions.grow.clear();
  actions.give_up.clear();
  actions.delete_instances.clear();
  actions.remove.clear();
  actions.soft_taints.clear();
  actions.requests.clear();
  for (Note& note : actions.notes) note.message = "dry run: " + note.message;
}

}  // namespace

/// When a pass runs, on what, and where its answer goes; each of the parts below knows how.
struct Runner::Impl : Guarded<Impl> {
  Impl(client::Client& c, RunnerOptions o, metrics::Registry& m)
      : options(std::move(o)),
        leadership(options.leader_elect ? seek_leadership(c) : nullptr),
        client(leadership ? leadership->transport() : c.transport(), c.loop(), c.user_agent()),
        metrics(m),
        core(options.profiles, options.seed),
        events(client, {.component = "cluster-autoscaler"}),
        actuator(client, cache, events,
                 {[this](const std::string& group, std::int64_t nodes) { grown(group, nodes); },
                  [this](const std::string& group, const std::string& message) { grow_failed(group, message); },
                  [this](const std::string& node, bool was_empty, bool succeeded) { removed(node, was_empty, succeeded); },
                  [this](std::int64_t pods) { metrics.evicted(pods, true); }, [this](std::int64_t pods) { metrics.evicted(pods, false); },
                  [this](const NodeRemoval& removal) { return grounds.why_not(removal); }, options.steady_clock},
                 provider) {
    if (options.grpc_expander_url.empty()) return;
    if (auto ask = external::connect_expander(options.grpc_expander_url, options.grpc_expander_ca_pem))
      core.set_expander(std::move(*ask));
    else
      log::error("autoscaler", "the expander grpc: {}", ask.error().message);
  }

  std::shared_ptr<Provider> make_provider() {
    if (options.external) {
      if (auto made = connect_external_provider(*options.external, *client.loop(), cache))
        return std::move(*made);
      else
        log::error("autoscaler", "the external provider: {}", made.error().message);
    }
    return std::make_shared<MachineApi>(
        client, cache,
        WriteCallbacks{
            .write_started = [this](const std::string& resource) { own_writes.started(resource); },
            .write_ended = [this](const std::string& resource, std::int64_t revision) { own_writes.ended(resource, revision); }});
  }

  RunnerOptions options;
  std::unique_ptr<client::Leadership> leadership;  ///< Null: nobody competes.
  client::Client client;
  PassMetrics metrics;
  ClusterCache cache{era_of(options.profiles)};
  Rules rules{options.options, era_of(options.profiles)};
  RemovalGrounds grounds;
  ClockJumps clock_jumps;
  Autoscaler core;
  client::EventRecorder events;
  OwnWrites own_writes;
  std::shared_ptr<Provider> provider = make_provider();
  Actuator actuator;
  std::shared_ptr<Watches> watches = std::make_shared<Watches>(client, cache, options.ns, rules.are_fixed());
  std::shared_ptr<StatusMap> status_map = std::make_shared<StatusMap>(
      client, options.ns, [this](const client::ObjectReference& object) { actuator.set_status_object(object); });
  std::shared_ptr<RequestStatuses> requests = std::make_shared<RequestStatuses>(client, own_writes);
  std::function<void()> lost;
  Options current;
  std::string last_said;
  std::optional<TimePoint> waiting_since;  ///< For own writes to be seen.
  std::set<std::string> told_problems;     ///< Of the provider.
  bool leading = false, ready = false, is_active = false;
  TimerId timer = TimerId::kNone;

  void start() { watches->start(guarded(&Impl::begin)); }

  void begin() {
    ready = true;
    if (!watches->has_machines() && !options.external)
      log::warning("autoscaler",
                   "this server serves no MachineSets, of machine.openshift.io or cluster.x-k8s.io: there is nothing to scale");
    if (leadership)
      leadership->start();
    else
      lead();
  }

  std::unique_ptr<client::Leadership> seek_leadership(client::Client& plain) {
    return client::seek_leadership(
        plain, {.ns = options.ns, .name = "cluster-autoscaler", .identity = options.identity, .seed = options.seed}, [this] { lead(); },
        [this] {
          leading = false;
          if (lost) lost();
        },
        [this](std::function<void()> done) { watches->catch_up(std::move(done)); }, options.election_loop);
  }

  void lead() {
    leading = true;
    if (cache.cluster_autoscaler() != nullptr || rules.are_fixed()) actuator.clean_up();
    actuator.set_status_object(status_map->reference());
    tick();
  }

  void tick() {
    if (!leading) return;
    const TimePoint start = client.loop()->now();
    if (has_unseen_writes(start)) {
      timer = client.loop()->schedule_after(std::chrono::milliseconds(100), guarded(&Impl::tick));
      return;
    }
    provider->refresh(rules.read(cache.cluster_autoscaler()).value_or(current),
                      guarded([start](Impl& self, std::optional<ProviderState> state) {
                        self.step(std::move(state));
                        self.schedule_next(start);
                      }));
  }

  void schedule_next(TimePoint start) {
    const Duration pause = options.scan_interval.value_or(current.scan_interval);
    // Never at once after a long pass: what waits on the loop comes first.
    const TimePoint next = std::max(start + pause, client.loop()->now() + pause / 10);
    timer = client.loop()->schedule_at(next, guarded(&Impl::tick));
  }

  /// A pass before its own writes are seen would ask for the same again.
  bool has_unseen_writes(TimePoint now) {
    const auto resources = own_writes.outstanding([this](const std::string& resource) { return watches->seen(resource); });
    if (resources.empty()) {
      waiting_since.reset();
      return false;
    }
    if (!waiting_since) waiting_since = now;
    say_once(now - *waiting_since > std::chrono::seconds(30)
                 ? fmt::format("no pass for 30s: own writes are not seen yet: {}", fmt::join(resources, ", "))
                 : "");
    return true;
  }

  void say_once(const std::string& text) {
    if (!text.empty() && text != last_said) log::warning("autoscaler", "{}", text);
    last_said = text;
  }

  void step(std::optional<ProviderState> state) {
    if (!leading) return;
    follow_clock();
    const auto options_now = rules.read(cache.cluster_autoscaler());
    grounds.follow(options_now, rules.problem());
    if (!options_now && !rules.problem().empty()) return refuse_rules();
    if (!options_now) return retire();
    current = *options_now;
    current.enforce_min_sizes |= options.enforce_min_sizes;
    current.check_capacity_processor_instance = options.check_capacity_processor_instance;
    is_active = true;
    if (state) tell_problems(state->problems);
    if (state && !state->is_usable) return stand_still(std::move(state->problems), client.loop()->now());
    if (state) current.gpu_types = std::move(state->gpu_types);
    // After hours of standing by it has much to read, which is none of the pass's time.
    const Snapshot snapshot = state ? cache.snapshot(std::move(*state)) : cache.snapshot();
    const TimePoint now = client.loop()->now();
    grounds.follow(snapshot.groups);
    current.accelerator_label = cache.accelerator_label();
    const auto clock = [loop = client.loop()] { return loop->now(); };
    Actions actions = core.step(snapshot, current, now, {clock, now + options.max_pass_time, clock});
    if (options.dry_run) {
      for (const NodeRemoval& removal : actions.remove) core.removal_ended(removal.node, true, now);
      keep_only_words(actions);
    }
    for (RequestUpdate& update : actions.requests) requests->take(std::move(update));
    actuator.carry_out(actions, current);
    report(actions, now);
  }

  /// What the pass found and did, for people.
  void report(const Actions& actions, TimePoint now) {
    const Duration length = client.loop()->now() - now;
    std::vector<std::string> odd = actions.status.problems;
    if (!actions.status.left_groups.empty() || !actions.status.left_nodes.empty())
      odd.push_back(fmt::format("the pass ended after {}: {} groups and {} nodes were not looked at",
                                format_go_duration(options.max_pass_time), actions.status.left_groups.size(),
                                actions.status.left_nodes.size()));
    say_once(fmt::format("{}", fmt::join(odd, "; ")));
    metrics.pass(actions, current, cache.nodes(), cache.totals(), now, length);
    for (const std::string& group : actions.failed_growth) metrics.grow_failed(group);
    log_pass(actions, current.log_verbosity, length);
    status_map->write(actions.status, now);
  }

  /// The loop's clock was set, or stood still while the machine slept: nothing is unneeded or late for that.
  void follow_clock() {
    if (!options.steady_clock) return;
    const Duration jump = clock_jumps.look(client.loop()->now(), options.steady_clock());
    if (jump == Duration::zero()) return;
    core.shift_times(jump);
    const std::string length = format_go_duration(jump < Duration::zero() ? -jump : jump);
    Actions words;
    words.notes.push_back(
        {{},
         {},
         true,
         "ClockJumped",
         fmt::format("this machine's clock went {} by {}: how long nodes are unneeded and groups wait is counted on from before",
                     jump < Duration::zero() ? "back" : "forward", length)});
    actuator.carry_out(words, current);
  }

  /// The rules make no sense: nothing is done by those that were there before, nor by defaults.
  void refuse_rules() {
    retire();
    const std::string problem = "ClusterAutoscaler default: " + rules.problem();
    tell_problems({problem}, "InvalidClusterAutoscaler");
    stand_still({problem}, client.loop()->now(), "internalError");
  }

  /// Each in an event, once until it is over.
  void tell_problems(const std::vector<std::string>& problems, const std::string& reason = "CloudProviderProblem") {
    Actions words;
    for (const std::string& problem : problems)
      if (!told_problems.contains(problem)) words.notes.push_back({{}, {}, true, reason, problem});
    told_problems = {problems.begin(), problems.end()};
    if (!words.notes.empty()) actuator.carry_out(words, current);
  }

  /// Nothing is known of the groups: no node is added or removed on a guess.
  void stand_still(std::vector<std::string> problems, TimePoint now, const std::string& type = "cloudProviderError") {
    Status status;
    status.is_healthy = false;
    status.problems = std::move(problems);
    say_once(fmt::format("no pass: {}", fmt::join(status.problems, "; ")));
    metrics.failed(type);
    status_map->write(status, now);
  }

  /// Nobody wants scaling any more: what it left on nodes goes.
  void retire() {
    if (!is_active) return;
    is_active = false;
    Actions farewell;
    for (const placement::NodeInfo* node : cache.cluster().nodes())
      if (has_taint(*node->node, kDeletionCandidateTaint)) farewell.soft_taints.emplace_back(node->name, false);
    actuator.carry_out(farewell, current);
  }

  void grown(const std::string& group, std::int64_t nodes) {
    metrics.grown(group, nodes);
    requests->release(group, true);
  }
  void grow_failed(const std::string& group, const std::string& message) {
    requests->release(group, false);
    metrics.grow_failed(group);
    core.grow_failed(group, message, current, client.loop()->now());
  }

  void removed(const std::string& node, bool, bool succeeded) {
    if (succeeded) metrics.removed(node, client.loop()->now());
    core.removal_ended(node, succeeded, client.loop()->now());
  }
};

Runner::Runner(client::Client& client, RunnerOptions options, metrics::Registry& metrics)
    : impl_(std::make_shared<Impl>(client, std::move(options), metrics)) {}

Runner::~Runner() {
  impl_->end();
  impl_->leadership.reset();
  if (impl_->timer != TimerId::kNone) impl_->client.loop()->cancel(impl_->timer);
}

void Runner::start() { impl_->start(); }
bool Runner::has_synced() const { return impl_->ready; }
void Runner::on_lost_leadership(std::function<void()> lost) { impl_->lost = std::move(lost); }

}  // namespace berth::autoscaler
