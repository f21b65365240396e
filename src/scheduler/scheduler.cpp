#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/lifeline.h"
#include "base/log.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "scheduler/core.h"
#include "scheduler/groups_seen.h"
#include "scheduler/worker.h"

namespace berth::scheduler {

using client::ObjectRef;
using placement::PodInfo;

namespace {

/// Whole objects for extenders without a cache of their own, by the key of what was known when the asking began.
using Documents = std::map<std::string, ObjectRef>;
json::Value document_of(const Documents& documents, const std::string& key, json::Value otherwise) {
  const auto found = documents.find(key);
  return found != documents.end() && found->second != nullptr ? found->second->document() : otherwise;
}
json::Value nameless_node(const std::string& name) { return {{"metadata", {{"name", name}}}}; }
json::Value bare_pod(const PodInfo& pod) {
  return {{"metadata", {{"name", pod.view().meta.name}, {"namespace", pod.view().meta.ns}, {"uid", pod.view().meta.uid}}}};
}

/// A fork to be asked on another thread: it comes back to the loop's, which alone may let go of what forks share.
using LentFork = std::shared_ptr<std::shared_ptr<placement::Trial>>;
LentFork lend(placement::Trial fork) {
  return std::make_shared<std::shared_ptr<placement::Trial>>(std::make_shared<placement::Trial>(std::move(fork)));
}

}  // namespace

/// Brings events to the core, carries its effects out, and brings their answers back. All on the loop but extenders, which block.
struct Scheduler::Impl : Guarded<Scheduler::Impl> {
  Impl(client::Client& c, client::InformerFactory& f, const SchedulerOptions& options, placement::Profiles profiles)
      : client(c),
        informers(f),
        loop(*c.loop()),
        core(
            options, std::move(profiles),
            [this](const client::Gvr& gvr, const std::string& ns, const std::string& name) { return informers.get(gvr).get(ns, name); },
            loop, [this](Effect effect) { std::visit([this](auto& one) { carry_out(std::move(one)); }, effect); }) {}
  ~Impl() {
    if (timer != TimerId::kNone) loop.cancel(timer);
  }

  client::Client& client;
  client::InformerFactory& informers;
  EventLoop& loop;
  Core core;
  std::unique_ptr<Worker> asker, binder;  ///< Where extenders are asked, and where they bind; null without any.
  std::unique_ptr<Worker> beholder;       ///< Where others look at the cluster; null before the first does.
  std::map<std::string, std::unique_ptr<client::EventRecorder>, std::less<>> recorders;  ///< By scheduler name.
  std::vector<Consulted> kinds;  ///< What this server serves of what plugins consult.
  std::unordered_map<Ask, TimerId> timers;
  bool turns_posted = false;
  TimerId timer = TimerId::kNone;  ///< Of the next turn.

  Core& at_present() {
    loop.assert_on_loop();
    core.now = loop.now();
    return core;
  }
  void answer(Ask id, Answer answer) { at_present().out.answered(id, std::move(answer)); }

  void sweep_later();
  void subscribe();
  void subscribe_to_kinds(std::vector<Consulted> served);
  void wait_for_sync(int round);
  void take_turns();
  void carry_out(Request request);
  void carry_out(const Report& report);
  void carry_out(const WakeAt& wake);
  void carry_out(const CancelWake& wake);
  void carry_out(const Later& later);
  void carry_out(const TakeTurns&);
  void carry_out(const AskForNode& question);
  void carry_out(const AskForVictims& question);
  void carry_out(const AskToBind& question);
};

void Scheduler::Impl::subscribe() {
  const auto tell = [this](auto method) {
    return guarded([method](Impl& self, const auto&... args) { (self.at_present().*method)(args...); });
  };
  informers.get(kNodes).add_handler({tell(&Core::node_added), tell(&Core::node_updated), tell(&Core::node_deleted)});
  informers.get(kPods).add_handler({tell(&Core::pod_added), tell(&Core::pod_updated), tell(&Core::pod_deleted)});
  discover_consulted(
      client, [weak = weak_from_this()] { return !weak.expired(); }, guarded(&Impl::subscribe_to_kinds));
}

/// Without volumes, classes or devices the pods that use them wait, with the reason; without owners and services fewer pods are spread.
/// What decides whether others are broken (budgets, namespaces that terms select) is waited for.
static bool may_do_without(const Consulted& kind) {
  return kind.event != ClusterEvent::kDisruptionBudget && kind.event != ClusterEvent::kNamespaces;
}

void Scheduler::Impl::subscribe_to_kinds(std::vector<Consulted> served) {
  kinds = std::move(served);
  core.serves_groups = std::ranges::any_of(kinds, [](const Consulted& kind) { return kind.kind == "PodGroup"; });
  for (const Consulted& kind : kinds) {
    const auto changed = guarded(
        [kind](Impl& self, const ObjectRef& before, const ObjectRef& after) { self.at_present().object_changed(kind, before, after); });
    informers.get(kind.gvr, may_do_without(kind))
        .add_handler({[changed](const ObjectRef& object) { changed(nullptr, object); }, changed,
                      [changed](const ObjectRef& object) { changed(object, nullptr); }});
  }
  wait_for_sync(0);
}

/// Decisions wait until all that placement consults is known: without a budget or a claim they would be wrong, not only worse.
void Scheduler::Impl::wait_for_sync(int round) {
  std::vector<std::string> missing;
  for (const client::Gvr& gvr : {kNodes, kPods})
    if (!informers.get(gvr).has_synced()) missing.push_back(gvr.resource);
  for (const Consulted& kind : kinds)
    if (!informers.get(kind.gvr).has_synced()) missing.push_back(kind.gvr.resource);
  if (missing.empty()) {
    core.is_ready = true;
    log::info("scheduler", "caches are synced: {} nodes, {} pods placed, {} waiting", core.cluster.node_count(), core.cluster.pod_count(),
              core.pods.size());
    core.post_turn();
    sweep_later();
    return;
  }
  constexpr int kRoundsOfTenSeconds = 500;
  if (round > 0 && round % kRoundsOfTenSeconds == 0)
    log::warning("scheduler", "still waiting for the first list of {}", fmt::join(missing, ", "));
  loop.schedule_after(std::chrono::milliseconds(20), guarded([round](Impl& self) { self.wait_for_sync(round + 1); }));
}

static constexpr Duration kSweep = std::chrono::minutes(10);

/// Jobs come and go, and each of them has pods like no other's: what is known of those that came no more goes with the second sweep.
void Scheduler::Impl::sweep_later() {
  loop.schedule_after(kSweep, guarded([](Impl& self) {
                        self.core.trial.forget_unused();
                        self.sweep_later();
                      }));
}

void Scheduler::Impl::carry_out(Request request) {
  std::optional<net::tracing::Scope> scope;
  if (request.span) scope.emplace(*request.span);
  if (request.id == 0) return client.call(std::move(request.call), [](const Answered&) {});
  client.call(std::move(request.call), guarded([id = request.id](Impl& self, Answered answered) { self.answer(id, std::move(answered)); }));
}

void Scheduler::Impl::carry_out(const Report& report) {
  recorders.at(report.profile)
      ->event(report.regarding, report.type, report.reason, report.message, report.action, report.related ? &*report.related : nullptr);
}

void Scheduler::Impl::carry_out(const WakeAt& wake) {
  timers[wake.id] = loop.schedule_at(wake.when, guarded([id = wake.id](Impl& self) {
                                       self.timers.erase(id);
                                       self.answer(id, {});
                                     }));
}

void Scheduler::Impl::carry_out(const CancelWake& wake) {
  const auto found = timers.extract(wake.id);
  loop.cancel(found.mapped());
}

void Scheduler::Impl::carry_out(const Later& later) {
  loop.post(guarded([id = later.id](Impl& self) { self.answer(id, {}); }));
}

void Scheduler::Impl::carry_out(const TakeTurns&) {
  if (std::exchange(turns_posted, true)) return;
  loop.post(guarded([](Impl& self) { self.take_turns(); }));
}

void Scheduler::Impl::take_turns() {
  turns_posted = false;
  if (!core.is_leader) return;
  for (std::size_t i = 0; i < core.options.cycles_per_turn && at_present().take_turn(); ++i) continue;
  const auto next = at_present().next_turn();
  if (timer != TimerId::kNone) loop.cancel(timer);
  timer = TimerId::kNone;
  if (next && *next <= core.now) return carry_out(TakeTurns{});
  if (next)
    timer = loop.schedule_at(*next, guarded([](Impl& self) {
      self.timer = TimerId::kNone;
      self.carry_out(TakeTurns{});
    }));
}

void Scheduler::Impl::carry_out(const AskForNode& question) {
  Documents nodes;
  for (const auto& one : question.evaluation->feasible) {
    const std::string& name = core.cluster.node(one.node)->name;
    nodes.emplace(name, informers.get(kNodes).get("", name));
  }
  asker->run(
      [question, nodes = std::move(nodes), fork = lend(core.trial.fork()), extenders = core.extenders, answered = guarded(&Impl::answer)] {
        Chosen chosen;
        chosen.decision = extenders->choose((*fork)->cluster(), *question.info, question.object->document(), *question.evaluation,
                                            [&](const std::string& name) { return document_of(nodes, name, nameless_node(name)); });
        chosen.node_name = chosen.decision.node_name;
        return [=, fork = std::exchange(*fork, nullptr)] { answered(question.id, chosen); };
      });
}

void Scheduler::Impl::carry_out(const AskForVictims& question) {
  Documents pods;
  for (const placement::Candidate& candidate : question.candidates)
    for (const placement::PodInfoPtr& victim : candidate.victims)
      pods.emplace(victim->key, informers.get(kPods).get(victim->view().meta.ns, victim->view().meta.name));
  asker->run(
      [question, pods = std::move(pods), fork = lend(core.trial.fork()), extenders = core.extenders, answered = guarded(&Impl::answer)] {
        const Extenders::Documents whole{[&](const PodInfo& pod) { return document_of(pods, pod.key, bare_pod(pod)); }, nameless_node};
        LeftVictims left =
            extenders->process_preemption((*fork)->cluster(), *question.info, question.object->document(), question.candidates, whole);
        return [=, fork = std::exchange(*fork, nullptr)] { answered(question.id, left); };
      });
}

void Scheduler::Impl::carry_out(const AskToBind& question) {
  binder->run([question, extenders = core.extenders, answered = guarded(&Impl::answer)] {
    return [id = question.id, answered, bound = extenders->bind(question.info->view(), question.node_name)] { answered(id, bound); };
  });
}

Scheduler::Scheduler(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Scheduler::~Scheduler() = default;

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
      impl->core.extenders = std::make_shared<const Extenders>(options.extenders, options.extender_post);
    } else {
      auto extenders = Extenders::create(options.extenders);
      if (!extenders) return std::unexpected(extenders.error());
      impl->core.extenders = std::move(*extenders);
    }
    impl->asker = std::make_unique<Worker>(impl->loop, "extenders", options.aside);
    impl->binder = std::make_unique<Worker>(impl->loop, "extender-bind", options.aside);
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

void Scheduler::consult(Look look) {
  Impl& self = *impl_;
  self.loop.assert_on_loop();
  if (!self.beholder) self.beholder = std::make_unique<Worker>(self.loop, "looks", self.core.options.aside);
  // Of the cluster alone: the columns are the scheduler's own.
  auto fork = lend(placement::Trial::on_fork(self.core.cluster, self.core.trial.profiles()));
  self.beholder->run([look = std::move(look), fork = std::move(fork)] {
    auto after = look((*fork)->cluster());
    return [after = std::move(after), fork = std::exchange(*fork, nullptr)] { after(); };
  });
}

std::shared_ptr<const GroupsSeen> Scheduler::see_groups(const std::string& key) {
  Core& core = impl_->at_present();
  auto out = std::make_shared<GroupsSeen>(core.groups);
  out->asked.group = core.groups.find(key);
  for (const placement::PodGroups::Member& member : core.groups.members(key))
    if (const Tracked* pod = core.wanting(member.uid)) out->asked.waiting.push_back(pod->info);
  std::ranges::stable_sort(out->asked.waiting, std::greater(), [](const auto& pod) { return pod->view().priority; });
  return out;
}

void Scheduler::lead(bool is_leader) { impl_->at_present().lead(is_leader); }
void Scheduler::forget() { impl_->core.trial.forget(); }
bool Scheduler::has_synced() const { return impl_->core.is_ready; }
const placement::Cluster& Scheduler::cluster() const { return impl_->core.cluster; }
SchedulingQueue::Sizes Scheduler::queue_sizes() const { return impl_->core.queue.sizes(); }
metrics::Registry& Scheduler::metrics() { return impl_->core.meters.registry(); }

}  // namespace berth::scheduler
