#include "queues/runner.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "base/lifeline.h"
#include "base/log.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/leadership.h"
#include "queues/documents.h"
#include "queues/installer.h"
#include "queues/queue_metrics.h"

namespace berth::queues {
namespace {

using client::ApiResult;
using client::ObjectRef;
using json::Value;
using model::Gvr;

struct Watched {
  Kind kind;
  Gvr gvr;
  const char* name;      ///< The kind's, as documents say it.
  const char* recorder;  ///< Who tells of it.
  bool is_queued_only = false;
};

const std::vector<Watched>& watched() {
  constexpr const char* kGroup = "kueue.x-k8s.io";
  static const std::vector<Watched> table = {
      {Kind::kClusterQueue, {kGroup, "v1beta1", "clusterqueues"}, "ClusterQueue", "kueue-admission"},
      {Kind::kLocalQueue, {kGroup, "v1beta1", "localqueues"}, "LocalQueue", "kueue-admission"},
      {Kind::kResourceFlavor, {kGroup, "v1beta1", "resourceflavors"}, "ResourceFlavor", "kueue-admission"},
      {Kind::kCohort, {kGroup, "v1beta1", "cohorts"}, "Cohort", "kueue-admission"},
      {Kind::kWorkloadPriorityClass, {kGroup, "v1beta1", "workloadpriorityclasses"}, "WorkloadPriorityClass", "kueue-admission"},
      {Kind::kWorkload, {kGroup, "v1beta1", "workloads"}, "Workload", "kueue-admission"},
      {Kind::kJob, {"batch", "v1", "jobs"}, "Job", "batch/job-kueue-controller", true},
      {Kind::kPod, {"", "v1", "pods"}, "Pod", "pod-kueue-controller", true},
      {Kind::kPodGroup, {"scheduling.k8s.io", "v1alpha2", "podgroups"}, "PodGroup", "pod-kueue-controller"},
      {Kind::kNamespace, {"", "v1", "namespaces"}, "Namespace", "kueue-admission"},
      {Kind::kPriorityClass, {"scheduling.k8s.io", "v1", "priorityclasses"}, "PriorityClass", "kueue-admission"}};
  return table;
}

const Watched& of(Kind kind) {
  for (const Watched& one : watched())
    if (one.kind == kind) return one;
  return watched().front();
}

std::string api_version(const Gvr& gvr) { return gvr.group.empty() ? gvr.version : gvr.group + "/" + gvr.version; }

}  // namespace

struct Runner::Impl : Guarded<Impl> {
  Impl(client::Client& c, RunnerOptions o, metrics::Registry& m)
      : options(std::move(o)),
        leadership(options.leader_elect ? seek_leadership(c) : nullptr),
        client(leadership ? leadership->transport() : c.transport(), c.loop(), c.user_agent()),
        metrics(m),
        core(options.settings) {
    for (const Watched& one : watched())
      if (!recorders.contains(one.recorder))
        recorders.emplace(one.recorder,
                          std::make_unique<client::EventRecorder>(client, client::EventRecorderOptions{.component = one.recorder}));
  }

  RunnerOptions options;
  std::unique_ptr<client::Leadership> leadership;  ///< Null: nobody competes.
  client::Client client;
  QueueMetrics metrics;
  Core core;
  std::map<std::string, std::unique_ptr<client::EventRecorder>> recorders;
  std::shared_ptr<void> installation;
  std::vector<std::unique_ptr<client::Informer>> informers;
  std::size_t probes_open = 0;
  std::set<std::string> told;
  std::function<void()> lost;
  bool ready = false, is_step_posted = false, is_show_due = false;
  TimerId timer = TimerId::kNone;

  std::unique_ptr<client::Leadership> seek_leadership(client::Client& plain) {
    return client::seek_leadership(
        plain, {.ns = options.ns, .name = "berth-queues", .identity = options.identity}, [this] { lead(); },
        [this] {
          if (lost) lost();
        });
  }

  void start() {
    if (leadership)
      leadership->start();
    else
      lead();
  }

  void lead() {
    log::info("queues", "leading");
    installation = install_definitions(client, options.installs, guarded(&Impl::watch));
  }

  void watch() {
    for (const Watched& one : watched()) {
      ++probes_open;
      if (one.kind == Kind::kPodGroup)
        probe(one);
      else
        follow(one);
    }
    wait_for_sync();
  }

  /// PodGroups are served where their gate is on.
  void probe(const Watched& one) {
    client::Call call{.verb = "list", .gvr = one.gvr, .query = "limit=1"};
    call.answer = client::Answer::kNone;
    client.call(std::move(call), guarded([&one](Impl& self, const ApiResult<Value>& result) {
                  if (result) return self.follow(one);
                  if (result.error().code == 404 || result.error().code == 403) {
                    --self.probes_open;
                    return;
                  }
                  self.client.loop()->schedule_after(std::chrono::seconds(2), self.guarded([&one](Impl& again) { again.probe(one); }));
                }));
  }

  void follow(const Watched& one) {
    --probes_open;
    informers.push_back(std::make_unique<client::Informer>(
        client, one.gvr, client::InformerOptions{.label_selector = one.is_queued_only ? std::string(kQueueLabel) : std::string()}));
    const auto put = [kind = one.kind](Impl& self, const ObjectRef& object) {
      self.core.observe(kind, *object->parsed());
      self.post_step();
    };
    informers.back()->add_handler({.on_add = guarded(put),
                                   .on_update = guarded([put](Impl& self, const ObjectRef&, const ObjectRef& after) { put(self, after); }),
                                   .on_delete = guarded([kind = one.kind](Impl& self, const ObjectRef& object) {
                                     self.core.forget({kind, object->ns(), object->name()});
                                     self.post_step();
                                   })});
    informers.back()->start();
  }

  void wait_for_sync() {
    bool all = probes_open == 0;
    for (const auto& informer : informers) all = all && informer->has_synced();
    if (!all) {
      client.loop()->schedule_after(std::chrono::milliseconds(50), guarded(&Impl::wait_for_sync));
      return;
    }
    ready = true;
    log::info("queues", "the caches are filled");
    post_step();
  }

  /// What comes together is looked at together.
  void post_step() {
    if (!ready || is_step_posted) return;
    is_step_posted = true;
    client.loop()->post(guarded([](Impl& self) {
      self.is_step_posted = false;
      self.step();
    }));
  }

  void step() {
    const Duration start = options.stopwatch != nullptr ? options.stopwatch() : Duration::zero();
    Effects effects = core.step(client.loop()->now());
    metrics.attempted(effects, options.stopwatch != nullptr ? options.stopwatch() - start : Duration::zero());
    for (const EventNote& event : effects.events) tell(event);
    for (Write& write : effects.writes) send(std::move(write));
    show_soon();
    if (timer != TimerId::kNone) client.loop()->cancel(timer);
    timer = TimerId::kNone;
    if (effects.wake)
      timer = client.loop()->schedule_at(*effects.wake, guarded([](Impl& self) {
        self.timer = TimerId::kNone;
        self.post_step();
      }));
  }

  /// Sums over all who have quota: once a second is enough for who reads metrics.
  void show_soon() {
    if (is_show_due) return;
    is_show_due = true;
    client.loop()->schedule_after(std::chrono::seconds(1), guarded([](Impl& self) {
                                    self.is_show_due = false;
                                    self.metrics.show(self.core.figures());
                                  }));
  }

  void tell(const EventNote& event) {
    const Watched& kind = of(event.object.kind);
    recorders.at(kind.recorder)
        ->event(
            {.api_version = api_version(kind.gvr), .kind = kind.name, .ns = event.object.ns, .name = event.object.name, .uid = event.uid},
            event.type, event.reason, event.message);
  }

  void send(Write write) {
    const Watched& kind = of(write.object.kind);
    const auto shared = std::make_shared<Write>(std::move(write));
    const auto done = guarded([shared](Impl& self, const ApiResult<Value>& result) { self.answered(*shared, result); });
    const ObjectKey& object = shared->object;
    Value body = shared->body;
    if (body.is_object()) {
      body.get_object()["apiVersion"] = api_version(kind.gvr);
      body.get_object()["kind"] = kind.name;
    }
    switch (shared->verb) {
      case Write::Verb::kCreate:
        return client.create(kind.gvr, object.ns, body, done);
      case Write::Verb::kUpdate:
        return client.update(kind.gvr, object.ns, object.name, body, done, shared->is_status ? "status" : "");
      case Write::Verb::kDelete:
        return client.remove(kind.gvr, object.ns, object.name,
                             {.propagation = client::Propagation::kBackground, .precondition_uid = shared->uid}, done);
    }
  }

  void answered(const Write& write, const ApiResult<Value>& result) {
    WriteResult outcome;
    if (result) {
      outcome.document = *result;
      for (const Tally& tally : write.tallies) metrics.count(tally);
    } else {
      outcome.code = result.error().code == 0 ? 503 : result.error().code;
      outcome.message = result.error().message;
      // Gone, or changed meanwhile: the watch tells, and the core looks again.
      if (outcome.code != 404 && outcome.code != 409 && told.insert(outcome.message).second)
        log::warning("queues", "{} {}/{}: {}", of(write.object.kind).name, write.object.ns, write.object.name, outcome.message);
    }
    core.answered(write, outcome, client.loop()->now());
    post_step();
  }
};

Runner::Runner(client::Client& client, RunnerOptions options, metrics::Registry& metrics)
    : impl_(std::make_shared<Impl>(client, std::move(options), metrics)) {}

Runner::~Runner() {
  impl_->end();
  impl_->installation.reset();
  impl_->leadership.reset();
  if (impl_->timer != TimerId::kNone) impl_->client.loop()->cancel(impl_->timer);
}

void Runner::start() { impl_->start(); }
bool Runner::has_synced() const { return impl_->ready; }
void Runner::on_lost_leadership(std::function<void()> lost) { impl_->lost = std::move(lost); }

}  // namespace berth::queues
