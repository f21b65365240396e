#include "autoscaler/runner.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "autoscaler/actuator.h"
#include "autoscaler/external/expander_client.h"
#include "autoscaler/external/external_provider.h"
#include "autoscaler/machine_api.h"
#include "autoscaler/own_writes.h"
#include "autoscaler/pass_log.h"
#include "autoscaler/pass_metrics.h"
#include "autoscaler/status_report.h"
#include "base/log.h"
#include "client/informer.h"

namespace berth::autoscaler {
namespace {

/// The release whose rules the scheduler follows.
placement::Era era_of(const placement::Profiles& profiles) {
  const auto& framework = profiles.find("default-scheduler");
  return framework == nullptr ? placement::Era::k136 : framework->profile().era;
}

using client::Object;
using client::ObjectRef;

const model::Gvr kConfigMaps{"", "v1", "configmaps"};
const model::Gvr kRequests{"autoscaling.x-k8s.io", "v1", "provisioningrequests"};
constexpr std::string_view kStatusName = "cluster-autoscaler-status";
constexpr std::string_view kRules = "ClusterAutoscaler";

bool may_do_without(std::string_view kind) {
  constexpr std::string_view kNeeded[] = {"Node", "Pod", "Namespace", "PodDisruptionBudget", "ClusterAutoscaler", "Machine", "MachineSet"};
  return std::ranges::find(kNeeded, kind) == std::end(kNeeded);
}

}  // namespace

struct Runner::Impl : std::enable_shared_from_this<Impl> {
  Impl(client::Client& c, RunnerOptions o, metrics::Registry& m)
      : options(std::move(o)),
        leadership(options.leader_elect ? seek_leadership(c) : nullptr),
        client(leadership ? leadership->transport() : c.transport(), c.loop(), c.user_agent()),
        metrics(m),
        core(options.profiles, options.seed),
        events(client, {.component = "cluster-autoscaler"}),
        actuator(client, world, events,
                 {[this](const std::string& group, std::int64_t nodes) { grown(group, nodes); },
                  [this](const std::string& group, const std::string& message) { grow_failed(group, message); },
                  [this](const std::string& node, bool was_empty, bool succeeded) { removed(node, was_empty, succeeded); },
                  [this](std::int64_t pods) { metrics.evicted(pods, true); }, [this](std::int64_t pods) { metrics.evicted(pods, false); },
                  [this](const NodeRemoval& removal) { return why_given_up(removal); }, options.steady_clock},
                 provider) {
    if (options.grpc_expander_url.empty()) return;
    if (auto ask = external::connect_expander(options.grpc_expander_url, options.grpc_expander_ca_pem))
      core.set_expander(std::move(*ask));
    else
      log::error("autoscaler", "the expander grpc: {}", ask.error().message);
  }

  std::shared_ptr<Provider> make_provider() {
    if (options.external) {
      if (auto made = connect_external_provider(*options.external, *client.loop(), world))
        return std::move(*made);
      else
        log::error("autoscaler", "the external provider: {}", made.error().message);
    }
    return std::make_shared<MachineApi>(
        client, world,
        WriteCallbacks{
            .write_started = [this](const std::string& resource) { own_writes.started(resource); },
            .write_ended = [this](const std::string& resource, std::int64_t revision) { own_writes.ended(resource, revision); }});
  }

  RunnerOptions options;
  std::unique_ptr<client::Leadership> leadership;  ///< Null: nobody competes.
  client::Client client;
  PassMetrics metrics;
  World world{era_of(options.profiles)};
  Autoscaler core;
  client::EventRecorder events;
  OwnWrites own_writes;
  std::shared_ptr<Provider> provider = make_provider();
  Actuator actuator;
  StatusReport report;
  std::vector<std::unique_ptr<client::Informer>> informers;
  std::map<std::string, const client::Informer*> informer_of;  ///< By resource.
  std::size_t probes_open = 0;
  std::function<void()> lost;
  Options current;
  std::string last_problem, last_said;
  std::optional<std::pair<TimePoint, Duration>> last_read;  ///< Of both clocks.
  std::optional<TimePoint> waiting_since;                   ///< For own writes to be seen.
  std::vector<std::string> last_notes;
  std::vector<RequestUpdate> held_requests;  ///< Until the groups that they stand on have grown.
  std::set<std::string> told_problems;       ///< Of the provider.
  std::set<std::string> told;                ///< Why kinds are waited for.
  bool stopped = false, leading = false, ready = false, has_machines = false, is_active = false, is_watching = false;
  bool has_status = false;                                              ///< The ConfigMap is there.
  std::string no_removals;                                              ///< Why none goes on; empty: they do.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> bounds;  ///< Groups of the last pass: least and present size.
  TimerId timer = TimerId::kNone;

  template <typename F>
  auto guarded(F f) {
    return [weak = weak_from_this(), f = std::move(f)](auto&&... args) {
      const auto self = weak.lock();
      if (self && !self->stopped) f(*self, std::forward<decltype(args)>(args)...);
    };
  }

  /// Until somebody wants scaling, only that is watched: the rest costs as much as a scheduler's caches.
  void start() {
    if (options.options) return watch_all();
    for (const WatchedKind& one : watched_kinds())
      if (one.kind == kRules) probe(one);
  }

  void watch_all() {
    if (is_watching) return;
    is_watching = true;
    for (const WatchedKind& one : watched_kinds())
      if (options.options || one.kind != kRules) ++probes_open;
    for (const WatchedKind& one : watched_kinds())
      if (options.options || one.kind != kRules) probe(one);
    // Only two objects of the namespace's ConfigMaps matter.
    informers.push_back(std::make_unique<client::Informer>(
        client, kConfigMaps,
        client::InformerOptions{.ns = options.ns, .field_selector = "metadata.name=cluster-autoscaler-priority-expander"}));
    subscribe(*informers.back(), "ConfigMap");
    informers.back()->start();
    informers.push_back(std::make_unique<client::Informer>(
        client, kConfigMaps,
        client::InformerOptions{.ns = options.ns, .field_selector = "metadata.name=cluster-autoscaler-price-expander"}));
    subscribe(*informers.back(), "ConfigMap");
    informers.back()->start();
  }

  /// A kind that this server does not serve is left out; a server that does not answer is asked again.
  void probe(const WatchedKind& one) {
    client::Call call{.verb = "list", .gvr = one.gvr, .query = "limit=1"};
    call.answer = client::Answer::kNone;
    client.call(std::move(call), guarded([&one](Impl& self, const client::ApiResult<json::Value>& result) {
                  const bool is_counted = self.is_watching;
                  // Who may not list volumes, devices or owners scales without them; the informer says which right is missing.
                  const bool goes_without = !result && result.error().code == 403 && may_do_without(one.kind);
                  if (!result && result.error().code != 404 && !goes_without) {
                    if (self.told.insert(result.error().message).second)
                      log::warning("autoscaler", "waiting for {}: {}", one.gvr.resource, result.error().message);
                    self.client.loop()->schedule_after(std::chrono::seconds(2), self.guarded([&one](Impl& again) { again.probe(one); }));
                    return;
                  }
                  if (result || goes_without) {
                    self.has_machines |= result && (one.kind.ends_with("MachineSet") || one.kind.ends_with("MachineDeployment"));
                    self.informers.push_back(
                        std::make_unique<client::Informer>(self.client, one.gvr, client::InformerOptions{.is_optional = goes_without}));
                    self.informer_of[resource_name(one.gvr)] = self.informers.back().get();
                    self.subscribe(*self.informers.back(), one.kind);
                    self.informers.back()->start();
                  }
                  if (!result && !goes_without && one.kind == kRules && !is_counted)
                    log::warning("autoscaler", "this server serves no ClusterAutoscaler: there are no rules to scale by");
                  if (is_counted && --self.probes_open == 0) self.wait_for_sync();
                }));
  }

  void subscribe(client::Informer& informer, std::string_view kind) {
    const auto put = [kind](Impl& self, const ObjectRef& object) {
      if (kind == "Pod") return self.world.upsert_pod(object);
      const auto parsed = object->parsed();
      if (!parsed->is_object()) return;
      if (json::get_string(*parsed, {"kind"}) == kind) {
        self.world.upsert(*parsed);
      } else {
        // The items of a list leave out what the list says.
        json::Value document = *parsed;
        document.get_object()["kind"] = kind;
        self.world.upsert(document);
      }
      if (self.world.cluster_autoscaler() != nullptr) self.watch_all();
    };
    informer.add_handler(
        {.on_add = guarded(put),
         .on_update = guarded([put](Impl& self, const ObjectRef&, const ObjectRef& after) { put(self, after); }),
         .on_delete = guarded([kind](Impl& self, const ObjectRef& object) { self.world.remove(kind, object->ns(), object->name()); })});
  }

  void wait_for_sync() {
    for (const auto& informer : informers)
      if (!informer->has_synced()) {
        client.loop()->schedule_after(std::chrono::milliseconds(50), guarded([](Impl& self) { self.wait_for_sync(); }));
        return;
      }
    ready = true;
    if (!has_machines && !options.external)
      log::warning("autoscaler",
                   "this server serves no MachineSets, of machine.openshift.io or cluster.x-k8s.io: there is nothing to scale");
    elect();
  }

  void elect() {
    if (leadership)
      leadership->start();
    else
      lead();
  }

  std::unique_ptr<client::Leadership> seek_leadership(client::Client& plain) {
    client::LeaderElectionConfig election;
    election.ns = options.ns;
    election.name = "cluster-autoscaler";
    election.identity = options.identity;
    election.seed = options.seed;
    return client::seek_leadership(
        plain, std::move(election), [this] { lead(); },
        [this] {
          leading = false;
          if (lost) lost();
        });
  }

  void lead() {
    leading = true;
    if (world.cluster_autoscaler() != nullptr || options.options) actuator.clean_up();
    actuator.set_status_object({"v1", "ConfigMap", options.ns, std::string(kStatusName), "", "", ""});
    tick();
  }

  void tick() {
    if (!leading) return;
    const TimePoint start = client.loop()->now();
    if (has_unseen_writes(start)) {
      timer = client.loop()->schedule_after(std::chrono::milliseconds(100), guarded([](Impl& self) { self.tick(); }));
      return;
    }
    provider->refresh(wanted().value_or(current), guarded([start](Impl& self, std::optional<ProviderState> state) {
                        self.step(std::move(state));
                        self.schedule_next(start);
                      }));
  }

  void schedule_next(TimePoint start) {
    const Duration pause = options.scan_interval.value_or(current.scan_interval);
    // Never at once after a long pass: what waits on the loop comes first.
    const TimePoint next = std::max(start + pause, client.loop()->now() + pause / 10);
    timer = client.loop()->schedule_at(next, guarded([](Impl& self) { self.tick(); }));
  }

  /// A pass before its own writes are seen would ask for the same again.
  bool has_unseen_writes(TimePoint now) {
    const auto resources = own_writes.outstanding([this](const std::string& resource) {
      const auto found = informer_of.find(resource);
      return found == informer_of.end() ? INT64_MAX : found->second->revision();
    });
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

  /// The options that hold now; nullopt: nobody wants scaling, or what they want makes no sense.
  std::optional<Options> wanted() {
    if (options.options) {
      options.options->follow(era_of(options.profiles));
      return options.options;
    }
    const json::Value* object = world.cluster_autoscaler();
    if (object == nullptr) {
      last_problem.clear();
      return std::nullopt;
    }
    std::vector<std::string> notes;
    auto parsed = Options::parse(*object, &notes);
    if (parsed) {
      last_problem.clear();
      if (notes != last_notes)
        for (const std::string& note : notes) log::warning("autoscaler", "{}", note);
      last_notes = std::move(notes);
      parsed->follow(era_of(options.profiles));
      return std::move(*parsed);
    }
    if (last_problem != parsed.error().message) log::error("autoscaler", "ClusterAutoscaler default: {}", parsed.error().message);
    last_problem = parsed.error().message;
    return std::nullopt;
  }

  void step(std::optional<ProviderState> state) {
    if (!leading) return;
    follow_clock();
    const auto options_now = wanted();
    no_removals = options_now            ? options_now->scale_down_enabled ? "" : "nodes are not to be removed any more"
                  : last_problem.empty() ? "nobody wants nodes to be scaled any more"
                                         : "the ClusterAutoscaler makes no sense any more";
    if (!options_now && !last_problem.empty()) return refuse_rules();
    if (!options_now) return retire();
    current = *options_now;
    current.enforce_min_sizes |= options.enforce_min_sizes;
    current.check_capacity_processor_instance = options.check_capacity_processor_instance;
    is_active = true;
    Snapshot snapshot = world.snapshot();  // After hours of standing by it has much to read, which is none of the pass's time.
    const TimePoint now = client.loop()->now();
    if (state) {
      tell_problems(state->problems);
      if (!state->is_usable) return stand_still(std::move(state->problems), now);
      snapshot.left_alone = std::move(state->left_alone);
      if (state->gpu_label) world.set_accelerator_label(*state->gpu_label);
      current.gpu_types = std::move(state->gpu_types);
      snapshot.pod_prices = std::move(state->pod_prices);
      snapshot.groups = std::move(state->groups);
      world.mark_incomplete_nodes(snapshot.groups);
      std::ranges::move(state->problems, std::back_inserter(snapshot.problems));
    }
    bounds.clear();
    for (const NodeGroup& group : snapshot.groups) bounds[group.id] = {group.min, group.target};
    current.accelerator_label = world.accelerator_label();
    const auto clock = [loop = client.loop()] { return loop->now(); };
    Actions actions = core.step(snapshot, current, now, {clock, now + options.max_pass_time, clock});
    if (options.dry_run) {
      for (const NodeRemoval& removal : actions.remove) core.removal_ended(removal.node, true, now);
      keep_only_words(actions);
    }
    for (RequestUpdate& update : actions.requests) take_request(std::move(update));
    actuator.carry_out(actions, current);
    const Duration length = client.loop()->now() - now;
    std::vector<std::string> odd = actions.status.problems;
    if (!actions.status.left_groups.empty() || !actions.status.left_nodes.empty())
      odd.push_back(fmt::format("the pass ended after {}: {} groups and {} nodes were not looked at",
                                format_go_duration(options.max_pass_time), actions.status.left_groups.size(),
                                actions.status.left_nodes.size()));
    say_once(fmt::format("{}", fmt::join(odd, "; ")));
    metrics.pass(actions, current, world.nodes(), world.totals(), now, length);
    for (const std::string& group : actions.failed_growth) metrics.grow_failed(group);
    log_pass(actions, current.log_verbosity, length);
    write_status(report.write(actions.status, now), now);
  }

  /// The loop's clock was set, or stood still while the machine slept: nothing is unneeded or late for that.
  void follow_clock() {
    if (!options.steady_clock) return;
    const std::pair<TimePoint, Duration> read{client.loop()->now(), options.steady_clock()};
    const Duration jump = last_read ? (read.first - last_read->first) - (read.second - last_read->second) : Duration::zero();
    last_read = read;
    constexpr auto kJump = std::chrono::seconds(30);  // Less is a clock that is kept right.
    if (jump < kJump && jump > -kJump) return;
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

  /// What a removal stands on may be gone when its pods have left: rules, its group, room above the minimum.
  std::string why_given_up(const NodeRemoval& removal) const {
    if (!no_removals.empty()) return no_removals;
    const auto group = bounds.find(removal.group);
    if (group == bounds.end()) return fmt::format("group {} is gone, no longer scaled, or too little is known of it", removal.group);
    const auto& [least, present] = group->second;
    return present <= least ? fmt::format("group {} is at its minimum by now", removal.group) : "";
  }

  /// The rules make no sense: nothing is done by those that were there before, nor by defaults.
  void refuse_rules() {
    retire();
    const std::string problem = "ClusterAutoscaler default: " + last_problem;
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
    write_status(report.write(status, now), now);
  }

  static void keep_only_words(Actions& actions) {
    actions.grow.clear();
    actions.give_up.clear();
    actions.delete_instances.clear();
    actions.remove.clear();
    actions.soft_taints.clear();
    actions.requests.clear();
    for (Note& note : actions.notes) note.message = "dry run: " + note.message;
  }

  /// Nobody wants scaling any more: what it left on nodes goes.
  void retire() {
    if (!is_active) return;
    is_active = false;
    Actions farewell;
    for (const placement::NodeInfo* node : world.cluster().nodes())
      if (has_taint(*node->node, kDeletionCandidateTaint)) farewell.soft_taints.emplace_back(node->name, false);
    actuator.carry_out(farewell, current);
  }

  /// Made or taken over by the first write; from then on only what changes is sent.
  void write_status(const std::string& text, TimePoint now) {
    json::Object metadata{{"annotations", json::Object{{"cluster-autoscaler.kubernetes.io/last-updated", format_rfc3339(now)}}}};
    json::Object body{{"data", json::Object{{"status", text}}}};
    if (!has_status) {
      body["apiVersion"] = "v1";
      body["kind"] = "ConfigMap";
      metadata["name"] = kStatusName;
      metadata["namespace"] = options.ns;
    }
    body["metadata"] = std::move(metadata);
    client.patch(kConfigMaps, options.ns, std::string(kStatusName), has_status ? client::PatchType::kMerge : client::PatchType::kApply,
                 std::move(body), guarded([text, now](Impl& self, const client::ApiResult<json::Value>& result) {
                   const bool is_gone = !result && result.error().code == 404 && std::exchange(self.has_status, false);
                   if (is_gone) return self.write_status(text, now);
                   if (!result) {
                     log::warning("autoscaler", "status: {}", result.error().message);
                     return;
                   }
                   self.has_status = true;
                   self.actuator.set_status_object({"v1", "ConfigMap", self.options.ns, std::string(kStatusName),
                                                    std::string(json::get_string(*result, {"metadata", "uid"})), "", ""});
                 }),
                 "", client::Answer::kIdentity);
  }

  /// What a request's status is to be: written when what it stands on was asked for. The next pass waits for it.
  void take_request(RequestUpdate update) {
    own_writes.started(resource_name(kRequests));
    if (update.awaited_groups.empty())
      write_request(update);
    else
      held_requests.push_back(std::move(update));
  }
  /// The group's growth was asked for, or was not.
  void release_requests(const std::string& group, bool is_grown) {
    for (auto held = held_requests.begin(); held != held_requests.end();) {
      const bool is_concerned = std::erase(held->awaited_groups, group) > 0;
      if (is_concerned && !is_grown) {
        held->set_not_found(client.loop()->now());
        held->awaited_groups.clear();
      }
      if (is_concerned && held->awaited_groups.empty()) {
        write_request(*held);
        held = held_requests.erase(held);
      } else {
        ++held;
      }
    }
  }
  void write_request(const RequestUpdate& update) {
    const auto written = [key = update.request->key(), is_deleted = update.is_deleted](Impl& self,
                                                                                       const client::ApiResult<json::Value>& result) {
      self.own_writes.ended(resource_name(kRequests), result && !is_deleted ? revision_in(*result) : 0);
      // Gone, or changed meanwhile: the next pass looks again.
      if (!result && result.error().code != 404 && result.error().code != 409)
        log::warning("autoscaler", "ProvisioningRequest {}: {}", key, result.error().message);
    };
    const ProvisioningRequest& request = *update.request;
    if (update.is_deleted) return client.remove(kRequests, request.ns, request.name, {.precondition_uid = request.uid}, guarded(written));
    const json::Value body =
        json::Object{{"metadata", json::Object{{"uid", request.uid}, {"resourceVersion", request.revision}}}, {"status", update.status()}};
    client.patch(kRequests, request.ns, request.name, client::PatchType::kMerge, body, guarded(written), "status",
                 client::Answer::kIdentity);
  }

  void grown(const std::string& group, std::int64_t nodes) {
    metrics.grown(group, nodes);
    release_requests(group, true);
  }
  void grow_failed(const std::string& group, const std::string& message) {
    release_requests(group, false);
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
  impl_->stopped = true;
  impl_->leadership.reset();
  if (impl_->timer != TimerId::kNone) impl_->client.loop()->cancel(impl_->timer);
}

void Runner::start() { impl_->start(); }
bool Runner::has_synced() const { return impl_->ready; }
void Runner::on_lost_leadership(std::function<void()> lost) { impl_->lost = std::move(lost); }

}  // namespace berth::autoscaler
