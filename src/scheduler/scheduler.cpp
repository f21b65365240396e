#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include "base/check.h"
#include "scheduler/scheduler_impl.h"

namespace berth::scheduler {

using placement::PodInfoPtr;

namespace {

void count_held_by(metrics::Registry& registry, std::string_view plugin, const std::string& profile, bool holds) {
  registry
      .gauge("scheduler_unschedulable_pods",
             "The number of unschedulable pods broken down by plugin name. A pod counts for every plugin that rejected it, so that the "
             "figures of several plugins are not to be added.",
             {{"plugin", std::string(plugin)}, {"profile", profile}})
      .add(holds ? 1 : -1);
}

QueueOptions queue_options(const SchedulerOptions& options) {
  QueueOptions out = options.queue;
  if (options.profiles.front().era == placement::Era::k120) out.pops_from_backoff = false;
  return out;
}

}  // namespace

Scheduler::Impl::Impl(client::Client& c, client::InformerFactory& f, SchedulerOptions o, placement::Profiles profiles)
    : client(c),
      informers(f),
      options(std::move(o)),
      loop(*c.loop()),
      cluster(options.profiles.front().era),
      trial(cluster, std::move(profiles), {options.engine, options.preemption}),
      queue(queue_options(options)),
      registry(options.metrics ? options.metrics : std::make_shared<metrics::Registry>()),
      frameworks(trial.profiles().by_name()) {
  queue.observe({[this](std::string_view name, std::string_view event) { count_incoming(name, event); },
                 [this](const std::string& uid, PluginSet rejected_by, bool holds) { count_rejection(uid, rejected_by, holds); }});
  registry->counter("scheduler_pod_scheduled_after_flush_total",
                    "Number of pods successfully scheduled after being flushed from unschedulablePods due to timeout.");
}

client::ObjectReference Scheduler::Impl::reference(const client::Object& pod) {
  client::ObjectReference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.ns = pod.ns();
  out.name = pod.name();
  out.uid = pod.uid();
  out.resource_version = fmt::format("{}", pod.revision());
  return out;
}

client::ObjectReference Scheduler::Impl::reference(const placement::PodInfo& pod) {
  client::ObjectReference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.ns = pod.view().meta.ns;
  out.name = pod.view().meta.name;
  out.uid = pod.view().meta.uid;
  return out;
}

void Scheduler::Impl::observe(const char* result, const PodInfoPtr& info, double seconds) {
  const metrics::Labels labels = {{"profile", info->view().scheduler_name}, {"result", result}};
  registry->counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result.", labels).add();
  registry
      ->histogram("scheduler_scheduling_attempt_duration_seconds",
                  "Scheduling attempt latency in seconds (scheduling algorithm + binding).", metrics::exponential_buckets(0.001, 2, 15),
                  labels)
      .observe(seconds);
}

metrics::Histogram& Scheduler::Impl::frequent(const std::array<std::string_view, 4>& key,
                                              const std::function<metrics::Histogram&()>& make) {
  if (const auto known = frequent_series.find(key); known != frequent_series.end()) return *known->second;
  std::array<std::string_view, 4> kept;
  for (std::size_t i = 0; i < key.size(); ++i) kept[i] = frequent_texts.emplace_back(key[i]);
  return *frequent_series.emplace(kept, &make()).first->second;
}

void Scheduler::Impl::observe_point(const char* point, const std::string& profile, double seconds, const char* status) {
  frequent({"point", point, profile, status}, [&]() -> metrics::Histogram& {
    return registry->histogram(
        "scheduler_framework_extension_point_duration_seconds", "Latency for running all plugins of a specific extension point.",
        metrics::exponential_buckets(0.0001, 2, 12), {{"extension_point", point}, {"profile", profile}, {"status", status}});
  }).observe(seconds);
}

void Scheduler::Impl::observe_event(const std::string& label, TimePoint start) {
  frequent({"event", label, "", ""}, [&]() -> metrics::Histogram& {
    return registry->histogram("scheduler_event_handling_duration_seconds", "Event handling latency in seconds.",
                               metrics::exponential_buckets(0.0001, 2, 12), {{"event", label}});
  }).observe(seconds_since(start));
}

void Scheduler::Impl::observe_events(EventSet events, TimePoint start) {
  for (unsigned i = 0; i < static_cast<unsigned>(ClusterEvent::kCount); ++i)
    if (const auto event = static_cast<ClusterEvent>(i); events.has(event) && event != ClusterEvent::kNodeCordoned)
      observe_event(event_label(event), start);
}

void Scheduler::Impl::count_incoming(std::string_view queue_name, std::string_view event) {
  registry
      ->counter("scheduler_queue_incoming_pods_total", "Number of pods added to scheduling queues by event and queue type.",
                {{"event", std::string(event)}, {"queue", std::string(queue_name)}})
      .add();
}

void Scheduler::Impl::count_rejection(const std::string& uid, PluginSet rejected_by, bool holds) {
  const Tracked* pod = wanting(uid);
  if (pod == nullptr) return;
  for (const std::string_view plugin : bits.names(rejected_by))
    if (plugin != kDisruptionBudgets) count_held_by(*registry, plugin, pod->info->view().scheduler_name, holds);
}

void Scheduler::Impl::set_gate(Tracked& tracked, std::string_view plugin) {
  if (tracked.gated_by == plugin) return;
  const model::PodView& pod = tracked.info->view();
  const std::string before = std::exchange(tracked.gated_by, std::string(plugin));
  if (!before.empty()) {
    count_held_by(*registry, before, pod.scheduler_name, false);
    const auto left = gates.find(before);
    BERTH_CHECK(left != gates.end() && left->second.uids.erase(pod.meta.uid) == 1, "pod {} is not among those that {} holds back",
                tracked.info->key, before);
    if (left->second.uids.empty()) gates.erase(left);
  }
  if (plugin.empty()) return;
  count_held_by(*registry, plugin, pod.scheduler_name, true);
  Gate& gate = gates[tracked.gated_by];
  if (const placement::Plugin* by = frameworks.at(pod.scheduler_name)->find(plugin)) gate.asked_again_on |= by->gate_events();
  gate.uids.insert(pod.meta.uid);
}

void Scheduler::Impl::update_gauges() {
  if (gauges[0] == nullptr) {
    std::size_t next = 0;
    for (const char* name : {"active", "backoff", "unschedulable", "gated"})
      gauges[next++] = &registry->gauge("scheduler_pending_pods", "Number of pending pods, by the queue type.", {{"queue", name}});
    for (const char* type : {"nodes", "pods", "assumed_pods"})
      gauges[next++] = &registry->gauge("scheduler_cache_size", "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
                                        {{"type", type}});
    gauges[next] = &registry->gauge("scheduler_goroutines", "Number of running goroutines split by the work they do such as binding.",
                                    {{"operation", "binding"}});
  }
  const auto sizes = queue.sizes();
  const std::array<std::size_t, 8> values = {sizes.active,        sizes.backoff, sizes.unschedulable, sizes.gated, cluster.node_count(),
                                             cluster.pod_count(), assumed,       bindings_in_flight};
  for (std::size_t i = 0; i < values.size(); ++i) gauges[i]->set(static_cast<double>(values[i]));
}

Scheduler::Scheduler(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Scheduler::~Scheduler() {
  if (impl_->timer != TimerId::kNone) impl_->loop.cancel(impl_->timer);
}

Result<std::unique_ptr<Scheduler>> Scheduler::create(client::Client& client, client::InformerFactory& informers, SchedulerOptions options) {
  if (options.profiles.empty()) options.profiles.push_back(placement::default_profile(placement::Era::k136));
  for (const placement::Profile& profile : options.profiles)
    if (profile.era != options.profiles.front().era)
      return invalid(fmt::format("profile \"{}\": all profiles of one scheduler follow one release", profile.scheduler_name));
  auto profiles = placement::Profiles::create(options.profiles);
  if (!profiles) return std::unexpected(profiles.error());
  auto impl = std::make_shared<Impl>(client, informers, options, std::move(*profiles));
  if (!options.extenders.empty()) {
    if (options.extender_post) {
      impl->extenders = std::make_shared<const Extenders>(options.extenders, options.extender_post);
    } else {
      auto extenders = Extenders::create(options.extenders);
      if (!extenders) return std::unexpected(extenders.error());
      impl->extenders = std::move(*extenders);
    }
    impl->asker = std::make_unique<Worker>(impl->loop, "extenders", options.extender_executor);
    impl->binder = std::make_unique<Worker>(impl->loop, "extender-bind", options.extender_executor);
  }
  for (const placement::Profile& profile : options.profiles) {
    client::EventRecorderOptions recorder;
    recorder.shape = client::EventRecorderOptions::Shape::kEvents;
    recorder.component = profile.scheduler_name;
    recorder.host = options.host;
    impl->recorders.emplace(profile.scheduler_name, std::make_unique<client::EventRecorder>(client, recorder));
  }
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

void Scheduler::start() { impl_->subscribe(); }

void Scheduler::lead(bool is_leader) {
  impl_->is_leader = is_leader;
  if (!is_leader) {
    for (const auto& [uid, pod] : impl_->pods)
      if (pod.as<AwaitingClaims>() != nullptr) impl_->look_again(uid);
    while (!impl_->at_permit.empty()) impl_->binding_failed(impl_->pods.at(*impl_->at_permit.begin()).held(), {}, "leadership was lost");
  }
  impl_->post_turn();
}

void Scheduler::forget() { impl_->trial.forget(); }
bool Scheduler::has_synced() const { return impl_->is_ready; }
const placement::Cluster& Scheduler::cluster() const { return impl_->cluster; }
SchedulingQueue::Sizes Scheduler::queue_sizes() const { return impl_->queue.sizes(); }
metrics::Registry& Scheduler::metrics() { return *impl_->registry; }

}  // namespace berth::scheduler
