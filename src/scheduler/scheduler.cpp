#include "scheduler/scheduler.h"

#include <fmt/format.h>

#include "base/json_scan.h"
#include "base/log.h"
#include "placement/preemptor.h"
#include "scheduler/extender.h"
#include "scheduler/wakeup.h"

namespace berth::scheduler {
namespace {

using client::Gvr;
using client::Object;
using client::ObjectRef;
using placement::Decision;
using placement::FrameworkPtr;
using placement::NodeIndex;
using placement::PodInfoPtr;

const Gvr kPods{"", "v1", "pods"};
const Gvr kNodes{"", "v1", "nodes"};

/// Kinds that plugins consult; a server that does not have one is served without it.
struct Consulted {
  Gvr gvr;
  std::string_view kind;
  std::optional<ClusterEvent> event;
};
const std::vector<Consulted>& consulted() {
  static const std::vector<Consulted> table = {
      {{"", "v1", "namespaces"}, "Namespace", ClusterEvent::kNamespaces},
      {{"", "v1", "services"}, "Service", ClusterEvent::kServices},
      {{"", "v1", "replicationcontrollers"}, "ReplicationController", ClusterEvent::kServices},
      {{"apps", "v1", "replicasets"}, "ReplicaSet", ClusterEvent::kServices},
      {{"apps", "v1", "statefulsets"}, "StatefulSet", ClusterEvent::kServices},
      {{"", "v1", "persistentvolumes"}, "PersistentVolume", ClusterEvent::kVolumes},
      {{"", "v1", "persistentvolumeclaims"}, "PersistentVolumeClaim", ClusterEvent::kVolumes},
      {{"storage.k8s.io", "v1", "storageclasses"}, "StorageClass", ClusterEvent::kVolumes},
      {{"storage.k8s.io", "v1", "csinodes"}, "CSINode", ClusterEvent::kVolumes},
      {{"storage.k8s.io", "v1", "csidrivers"}, "CSIDriver", ClusterEvent::kVolumes},
      {{"storage.k8s.io", "v1", "csistoragecapacities"}, "CSIStorageCapacity", ClusterEvent::kVolumes},
      {{"policy", "v1", "poddisruptionbudgets"}, "PodDisruptionBudget", std::nullopt},
  };
  return table;
}

/// What of a pod decides whether placement must look at a new revision of it, read without building a document.
struct PodGlance {
  std::string_view node_name, phase, generation, scheduler_name, resize, nominated;
  explicit PodGlance(const std::string& bytes) {
    static const json::PathScanner scanner(
        {"spec.nodeName", "status.phase", "metadata.generation", "spec.schedulerName", "status.resize", "status.nominatedNodeName"});
    std::array<std::string_view, 6> values;
    if (!scanner.scan(bytes, values)) return;
    const auto plain = [](std::string_view raw) {
      bool ok = true;
      const std::string_view text = json::unquote_plain(raw, ok);
      return ok ? text : std::string_view();
    };
    node_name = plain(values[0]);
    phase = plain(values[1]);
    generation = values[2];
    scheduler_name = plain(values[3]);
    resize = values[4];
    nominated = plain(values[5]);
  }
  [[nodiscard]] bool is_terminal() const { return phase == "Succeeded" || phase == "Failed"; }
};

/// What of a node decides whether placement must look at a new revision: everything but heartbeats.
bool same_for_placement(const model::NodeView& a, const model::NodeView& b) {
  const auto conditions = [](const model::NodeView& node) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const auto& condition : node.conditions) out.emplace_back(condition.type, condition.status);
    return out;
  };
  const auto images = [](const model::NodeView& node) {
    std::size_t count = node.images.size();
    std::int64_t bytes = 0;
    for (const auto& image : node.images) bytes += image.size_bytes;
    return std::pair(count, bytes);
  };
  return a.unschedulable == b.unschedulable && a.taints == b.taints && a.allocatable == b.allocatable && a.meta.labels == b.meta.labels && a.meta.annotations == b.meta.annotations &&
         conditions(a) == conditions(b) && images(a) == images(b);
}

}  // namespace

struct Scheduler::Impl : std::enable_shared_from_this<Scheduler::Impl> {
  Impl(client::Client& c, client::InformerFactory& f, SchedulerOptions o)
      : client(c), informers(f), options(std::move(o)), loop(*c.loop()), cluster(options.profiles.front().era), engine(cluster, options.engine), preemptor(cluster, options.preemption), queue(options.queue),
        registry(options.metrics ? options.metrics : std::make_shared<metrics::Registry>()) {}

  // ---- what is waiting for a node
  struct Waiting {
    PodInfoPtr info;
    ObjectRef object;
    std::string message;    ///< The condition's message last written.
    std::string nominated;  ///< status.nominatedNodeName as the API has it.
  };

  client::Client& client;
  client::InformerFactory& informers;
  SchedulerOptions options;
  EventLoop& loop;
  placement::Cluster cluster;
  placement::Engine engine;
  placement::Preemptor preemptor;
  std::unique_ptr<Extenders> extenders;  ///< Null without any.
  SchedulingQueue queue;
  std::shared_ptr<metrics::Registry> registry;
  PluginBits bits;
  std::map<std::string, FrameworkPtr, std::less<>> frameworks;
  std::map<std::string, std::unique_ptr<client::EventRecorder>, std::less<>> recorders;
  std::unordered_map<std::string, Waiting> waiting;          ///< By uid.
  std::unordered_map<std::string, std::string> assumed;      ///< uid to key: bound by us, not yet confirmed by the watch.
  std::size_t bindings_in_flight = 0;
  bool is_leader = false, is_ready = false, turn_posted = false;
  TimerId timer = TimerId::kNone;

  // ---- informers in

  void subscribe() {
    const auto weak = weak_from_this();
    const auto with_self = [weak](auto method) {
      return [weak, method](const auto&... args) {
        if (const auto self = weak.lock()) ((*self).*method)(args...);
      };
    };
    informers.get(kNodes).add_handler({with_self(&Impl::node_added), with_self(&Impl::node_updated), with_self(&Impl::node_deleted)});
    informers.get(kPods).add_handler({with_self(&Impl::pod_added), with_self(&Impl::pod_updated), with_self(&Impl::pod_deleted)});
    for (const Consulted& one : consulted()) {
      const auto changed = [weak, &one](const ObjectRef& object) {
        if (const auto self = weak.lock()) self->object_changed(one, *object);
      };
      informers.get(one.gvr).add_handler({changed, [changed](const ObjectRef&, const ObjectRef& after) { changed(after); },
                                          [weak, &one](const ObjectRef& object) {
                                            if (const auto self = weak.lock()) {
                                              self->cluster.remove(one.kind, object->ns(), object->name());
                                              if (one.event) self->wake(*one.event, {});
                                            }
                                          }});
    }
  }

  /// Nodes, pods and everything placement may consult are known; kinds that the server lacks are not waited for beyond a grace.
  void wait_for_sync(int round) {
    const bool essential = informers.get(kNodes).has_synced() && informers.get(kPods).has_synced();
    bool all = essential;
    for (const Consulted& one : consulted()) all = all && informers.get(one.gvr).has_synced();
    if (all || (essential && round > 150)) {
      is_ready = true;
      log::info("scheduler", "caches are synced: {} nodes, {} pods placed, {} waiting", cluster.node_count(), cluster.pod_count(), waiting.size());
      post_turn();
      return;
    }
    loop.schedule_after(std::chrono::milliseconds(20), [weak = weak_from_this(), round] {
      if (const auto self = weak.lock()) self->wait_for_sync(round + 1);
    });
  }

  void node_added(const ObjectRef& object) {
    const NodeIndex index = cluster.upsert_node(std::make_shared<model::NodeView>(model::NodeView::parse(object->document())));
    wake(ClusterEvent::kNodeAdded, index);
  }

  void node_updated(const ObjectRef&, const ObjectRef& after) {
    auto view = std::make_shared<model::NodeView>(model::NodeView::parse(after->document()));
    const placement::NodeInfo* known = cluster.find_node(view->name());
    if (known != nullptr && known->node != nullptr && same_for_placement(*known->node, *view)) return;
    const NodeIndex index = cluster.upsert_node(std::move(view));
    wake(ClusterEvent::kNodeChanged, index);
  }

  void node_deleted(const ObjectRef& object) { cluster.remove_node(object->name()); }

  void object_changed(const Consulted& one, const Object& object) {
    cluster.upsert(object.document());
    if (one.event) wake(*one.event, {});
  }

  void pod_added(const ObjectRef& object) {
    const PodGlance glance(object->bytes());
    if (!glance.node_name.empty()) place(object, ClusterEvent::kAssignedPodAdded);
    else want_node(object, glance, nullptr);
  }

  void pod_updated(const ObjectRef& before, const ObjectRef& after) {
    const PodGlance then(before->bytes()), now(after->bytes());
    if (now.node_name.empty()) return want_node(after, now, before);
    if (then.node_name.empty()) {
      forget_waiting(after->uid());
      return place(after, ClusterEvent::kAssignedPodAdded);
    }
    if (now.is_terminal() != then.is_terminal()) return place(after, ClusterEvent::kAssignedPodRemoved);
    const bool same = before->labels() == after->labels() && then.generation == now.generation && then.resize == now.resize && before->is_deleting() == after->is_deleting();
    if (!same) place(after, ClusterEvent::kAssignedPodChanged);
  }

  void pod_deleted(const ObjectRef& object) {
    const std::string key = object->key();
    const NodeIndex node = cluster.pod_node(key);
    cluster.remove_pod(key);
    assumed.erase(object->uid());
    forget_waiting(object->uid());
    if (node.is_valid()) wake(ClusterEvent::kAssignedPodRemoved, node);
  }

  /// A pod that has a node: in the cluster it takes its room.
  void place(const ObjectRef& object, ClusterEvent event) {
    forget_waiting(object->uid());
    const bool confirmed = assumed.erase(object->uid()) != 0;
    auto info = placement::PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(object->document())), cluster.era());
    const NodeIndex before = cluster.pod_node(info->key);
    const placement::NodeInfo* node = before.is_valid() ? cluster.node(before) : nullptr;
    const bool confirms_assumption = confirmed && node != nullptr && node->name == info->view().node_name && !info->view().is_terminal();
    // The room is already taken by the assumed pod; only somebody's first sight of it can help others.
    if (!confirms_assumption) cluster.upsert_pod(std::move(info));
    const NodeIndex after = cluster.pod_node(object->key());
    wake(event, after.is_valid() ? after : before);
  }

  /// A pod that needs a node: ours to place, or somebody else's.
  void want_node(const ObjectRef& object, const PodGlance& glance, const ObjectRef& before) {
    const std::string& uid = object->uid();
    if (assumed.contains(uid)) return;  // On its way; the watch will say.
    const bool ours = frameworks.contains(glance.scheduler_name) && !object->is_deleting() && !glance.is_terminal();
    if (!ours) {
      forget_waiting(uid);
      return;
    }
    if (before != nullptr && waiting.contains(uid) && before->labels() == object->labels() && PodGlance(before->bytes()).generation == glance.generation && !glance.generation.empty()) {
      waiting[uid].object = object;
      waiting[uid].nominated = glance.nominated;
      return;  // Status alone changed, mostly by us.
    }
    auto info = placement::PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(object->document())), cluster.era());
    Waiting& entry = waiting[uid];
    entry.info = info;
    entry.object = object;
    entry.nominated = glance.nominated;
    if (!glance.nominated.empty()) cluster.nominate(info, glance.nominated);
    const model::PodView& view = info->view();
    QueuedPod queued{uid, view.meta.ns, view.meta.name, static_cast<std::int32_t>(std::clamp<std::int64_t>(view.priority, INT32_MIN, INT32_MAX)), !view.scheduling_gates.empty()};
    queue.add_or_update(queued, loop.now(), before != nullptr);
    post_turn();
  }

  void forget_waiting(const std::string& uid) {
    const auto found = waiting.find(uid);
    if (found == waiting.end()) return;
    cluster.nominate(found->second.info, "");
    waiting.erase(found);
    queue.remove(uid);
  }

  // ---- wake-ups

  /// Wakes the pods that the event could help. `node` is the node it happened on, where there is one: a pod whose rejection was about nodes
  /// one by one is woken only if it fits there now.
  void wake(ClusterEvent event, NodeIndex node) {
    if (queue.sizes().unschedulable == 0) return;
    const placement::NodeInfo* info = node.is_valid() ? cluster.node(node) : nullptr;
    std::size_t checks_left = 200;
    const std::size_t moved = queue.wake(bits.cured_by(event), loop.now(), [&](const SchedulingQueue::Entry& entry) {
      if (info == nullptr || info->node == nullptr || entry.rejected_by == 0 || checks_left == 0) return true;
      static const std::array<std::string_view, 3> kBeyondOneNode = {"InterPodAffinity", "PodTopologySpread", "ServiceAffinity"};
      if ((entry.rejected_by & bits.set_of(kBeyondOneNode)) != 0) return true;
      --checks_left;
      return fits(entry.pod.uid, *info);
    });
    if (moved > 0) post_turn();
  }

  bool fits(const std::string& uid, const placement::NodeInfo& node) {
    const auto found = waiting.find(uid);
    if (found == waiting.end()) return true;
    const FrameworkPtr& framework = frameworks.at(found->second.info->view().scheduler_name);
    auto state = framework->new_cycle(cluster);
    const auto outcome = framework->run_pre_filter(state, *found->second.info);
    if (!outcome.status.is_success() && !outcome.status.is_skip()) return true;  // About more than this node.
    return framework->run_filter_with_nominated(state, *found->second.info, node).is_success();
  }

  // ---- cycles

  void post_turn() {
    if (turn_posted || !is_ready || !is_leader) return;
    turn_posted = true;
    loop.post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->turn();
    });
  }

  void turn() {
    turn_posted = false;
    if (!is_leader) return;
    for (std::size_t i = 0; i < options.cycles_per_turn && bindings_in_flight < options.max_bindings_in_flight; ++i) {
      auto entry = queue.pop(loop.now());
      if (!entry) break;
      schedule_one(*entry);
    }
    update_gauges();
    if (bindings_in_flight >= options.max_bindings_in_flight) return;  // A finished binding posts the next turn.
    if (queue.has_ready(loop.now())) return post_turn();
    if (timer != TimerId::kNone) loop.cancel(timer);
    timer = TimerId::kNone;
    if (const auto next = queue.next_wake())
      timer = loop.schedule_at(*next, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
          self->timer = TimerId::kNone;
          self->post_turn();
        }
      });
  }

  void schedule_one(const SchedulingQueue::Entry& entry) {
    const auto found = waiting.find(entry.pod.uid);
    if (found == waiting.end()) return queue.done(entry.pod.uid);
    const PodInfoPtr info = found->second.info;
    const FrameworkPtr& framework = frameworks.at(info->view().scheduler_name);
    const TimePoint start = loop.now();
    const Decision decision = decide(framework, info, found->second.object);
    const double seconds = static_cast<double>((loop.now() - start).count()) / 1e6;
    switch (decision.outcome) {
      case Decision::Outcome::kScheduled:
        observe("scheduled", info, seconds);
        return commit(entry, info, framework, decision.node, std::string(decision.node_name));
      case Decision::Outcome::kUnschedulable:
        observe("unschedulable", info, seconds);
        return give_up_for_now(entry, info, framework, *decision.diagnosis);
      case Decision::Outcome::kError:
        observe("error", info, seconds);
        report_failure(info, "SchedulerError", decision.error, std::nullopt);
        return queue.failed(entry.pod.uid, loop.now());
    }
  }

  /// The engine's decision, or the extenders' among the nodes that the engine found feasible.
  Decision decide(const FrameworkPtr& framework, const PodInfoPtr& info, const ObjectRef& object) {
    Decision decision = engine.schedule(framework, info);
    if (extenders == nullptr || decision.outcome != Decision::Outcome::kScheduled || !extenders->are_interested(info->view())) return decision;
    return extenders->choose(cluster, *info, object->document(), engine.evaluate(*framework, *info), [this](const std::string& name) {
      const ObjectRef node = informers.get(kNodes).get("", name);
      return node != nullptr ? node->document() : json::Value{{"metadata", {{"name", name}}}};
    });
  }

  /// Assumes the pod on the node and binds it.
  void commit(const SchedulingQueue::Entry& entry, const PodInfoPtr& info, const FrameworkPtr& framework, NodeIndex node, const std::string& node_name) {
    std::vector<placement::PreBindWrite> writes;
    if (!info->view().volumes.empty()) {
      auto state = framework->new_cycle(cluster);
      placement::Status status = framework->run_pre_filter(state, *info).status;
      if (status.is_success() || status.is_skip()) status = framework->run_filter(state, *info, *cluster.node(node));
      if (status.is_success()) status = framework->run_reserve(state, *info, *cluster.node(node), cluster);
      if (!status.is_success()) {
        report_failure(info, "SchedulerError", status.message(), std::nullopt);
        return queue.failed(entry.pod.uid, loop.now());
      }
      writes = framework->run_pre_bind(state, *info, *cluster.node(node));
    }
    const ObjectRef object = waiting.at(entry.pod.uid).object;
    cluster.assume(info, node);
    assumed[entry.pod.uid] = info->key;
    waiting.erase(entry.pod.uid);  // In the queue it stays in flight until the binding is over: a failure keeps its count of attempts.
    ++bindings_in_flight;
    auto binding = std::make_shared<Binding>(Binding{entry, info, object, node_name, std::move(writes), 0});
    next_pre_bind(binding);
  }

  struct Binding {
    SchedulingQueue::Entry entry;
    PodInfoPtr info;
    ObjectRef object;
    std::string node_name;
    std::vector<placement::PreBindWrite> writes;
    std::size_t written = 0;
  };
  using BindingPtr = std::shared_ptr<Binding>;

  void next_pre_bind(const BindingPtr& binding) {
    if (binding->written == binding->writes.size()) return wait_for_claims(binding, 0);
    const placement::PreBindWrite& write = binding->writes[binding->written];
    client::Call call;
    call.verb = "patch";
    call.gvr = {write.group, "v1", write.resource};
    call.ns = write.ns;
    call.name = write.name;
    call.content_type = "application/merge-patch+json";
    call.body = json::serialize(write.merge_patch);
    client.call(std::move(call), [weak = weak_from_this(), binding](client::ApiResult<json::Value> result) {
      const auto self = weak.lock();
      if (!self) return;
      if (!result) return self->binding_failed(binding, result.error().message);
      ++binding->written;
      self->next_pre_bind(binding);
    });
  }

  /// A claim that is to be bound first is watched for through the cache.
  void wait_for_claims(const BindingPtr& binding, int round) {
    constexpr int kRounds = 6000;  // Of 100 ms: VolumeBinding's bindTimeoutSeconds, 600.
    for (const placement::PreBindWrite& write : binding->writes) {
      if (!write.wait_bound || write.resource != "persistentvolumeclaims") continue;
      const auto found = cluster.claims().find(write.ns + "/" + write.name);
      const ObjectRef claim = informers.get({"", "v1", "persistentvolumeclaims"}).get(write.ns, write.name);
      const bool bound = claim != nullptr && json::get_string(claim->document(), {"status", "phase"}) == "Bound";
      if (bound) continue;
      if (found == cluster.claims().end() || round >= kRounds) return binding_failed(binding, fmt::format("binding volumes: claim {}/{} is not bound", write.ns, write.name));
      loop.schedule_after(std::chrono::milliseconds(100), [weak = weak_from_this(), binding, round] {
        if (const auto self = weak.lock()) self->wait_for_claims(binding, round + 1);
      });
      return;
    }
    bind(binding);
  }

  void bind(const BindingPtr& binding) {
    const model::PodView& pod = binding->info->view();
    if (extenders != nullptr && extenders->bind_for(pod)) {
      const auto bound = extenders->bind(pod, binding->node_name);
      return bound ? binding_done(*binding) : binding_failed(binding, bound.error().message);
    }
    client::Call call;
    call.verb = "create";
    call.gvr = kPods;
    call.ns = pod.meta.ns;
    call.name = pod.meta.name;
    call.subresource = "binding";
    call.body = fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}","namespace":"{}","uid":"{}"}},"target":{{"apiVersion":"v1","kind":"Node","name":"{}"}}}})",
                            pod.meta.name, pod.meta.ns, pod.meta.uid, binding->node_name);
    client.call(std::move(call), [weak = weak_from_this(), binding](client::ApiResult<json::Value> result) {
      const auto self = weak.lock();
      if (!self) return;
      if (!result) return self->binding_failed(binding, result.error().message);
      self->binding_done(*binding);
    });
  }

  void binding_done(const Binding& binding) {
    --bindings_in_flight;
    queue.done(binding.entry.pod.uid);
    const model::PodView& pod = binding.info->view();
    recorder(pod.scheduler_name).event(reference(*binding.object), "Normal", "Scheduled", fmt::format("Successfully assigned {} to {}", binding.info->key, binding.node_name), "Binding");
    registry->histogram("scheduler_pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", {1, 2, 4, 8, 16}).observe(binding.entry.attempts);
    registry->histogram("scheduler_pod_scheduling_sli_duration_seconds", "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue.", metrics::exponential_buckets(0.01, 2, 20),
                        {{"attempts", fmt::format("{}", std::min(binding.entry.attempts, 15))}})
        .observe(static_cast<double>((loop.now() - binding.entry.first_attempt).count()) / 1e6);
    post_turn();
  }

  void binding_failed(const BindingPtr& binding, const std::string& why) {
    --bindings_in_flight;
    const std::string& uid = binding->entry.pod.uid;
    const NodeIndex node = cluster.pod_node(binding->info->key);
    if (assumed.erase(uid) != 0) cluster.forget(binding->info->key);
    log::warning("scheduler", "binding {} to {} failed: {}", binding->info->key, binding->node_name, why);
    registry->counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result.", {{"profile", binding->info->view().scheduler_name}, {"result", "error"}}).add();
    const ObjectRef now = informers.get(kPods).get(binding->info->view().meta.ns, binding->info->view().meta.name);
    if (node.is_valid()) wake(ClusterEvent::kAssignedPodRemoved, node);
    if (now != nullptr && now->uid() == uid && PodGlance(now->bytes()).node_name.empty() && !now->is_deleting()) {
      want_node(now, PodGlance(now->bytes()), nullptr);
      queue.failed(uid, loop.now());
      report_failure(binding->info, "SchedulerError", "binding rejected: " + why, std::nullopt);
    } else {
      queue.done(uid);
    }
    post_turn();
  }

  // ---- pods that fit nowhere

  void give_up_for_now(const SchedulingQueue::Entry& entry, const PodInfoPtr& info, const FrameworkPtr& framework, const placement::Diagnosis& diagnosis) {
    std::string post_filter_message;
    std::optional<std::string> nominate;
    if (!framework->profile().post_filter.empty()) {
      const placement::PostFilterResult result = preemptor.find(framework, info);
      post_filter_message = result.status.message();
      Waiting& mine = waiting.at(entry.pod.uid);
      registry->counter("scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now.").add();
      if (const placement::Candidate* choice = result.choice()) {
        nominate = cluster.node(choice->node)->name;
        preempt(info, *choice, *nominate);
      } else if (!mine.nominated.empty() && post_filter_message.find("not eligible due to a terminating pod") == std::string::npos) {
        nominate = "";  // The room that was promised will not come.
      }
      if (nominate) {
        cluster.nominate(info, *nominate);
        mine.nominated = *nominate;
      }
    }
    queue.unschedulable(entry.pod.uid, bits.set_of(diagnosis.plugins), loop.now());
    report_failure(info, "Unschedulable", placement::fit_error_message(diagnosis, framework->profile().era, post_filter_message), nominate);
  }

  /// Evicts the victims, each with its grace period, and takes the nomination from lower pods that count on the same node.
  void preempt(const PodInfoPtr& info, const placement::Candidate& choice, const std::string& node_name) {
    const model::PodView& preemptor = info->view();
    registry->histogram("scheduler_preemption_victims", "Number of selected preemption victims", metrics::exponential_buckets(1, 2, 7)).observe(static_cast<double>(choice.victims.size()));
    for (const PodInfoPtr& victim : choice.victims) {
      const model::PodView& pod = victim->view();
      const ObjectRef object = informers.get(kPods).get(pod.meta.ns, pod.meta.name);
      if (object == nullptr || object->is_deleting()) continue;
      const json::Value patch = {{"status", {{"conditions", json::Array{json::Object{{"type", "DisruptionTarget"}, {"status", "True"}, {"lastProbeTime", nullptr},
                                                                                    {"lastTransitionTime", format_rfc3339(loop.now())}, {"reason", "PreemptionByScheduler"},
                                                                                    {"message", fmt::format("{}: preempting to accommodate a higher priority pod", preemptor.scheduler_name)}}}}}}};
      client.patch(kPods, pod.meta.ns, pod.meta.name, client::PatchType::kStrategicMerge, patch,
                   [weak = weak_from_this(), victim, object, preemptor_uid = preemptor.meta.uid, scheduler_name = preemptor.scheduler_name, node_name](const client::ApiResult<json::Value>&) {
                     const auto self = weak.lock();
                     if (!self) return;
                     client::DeleteOptions deletion;
                     deletion.precondition_uid = victim->view().meta.uid;
                     self->client.remove(kPods, victim->view().meta.ns, victim->view().meta.name, deletion, [](const client::ApiResult<json::Value>&) {});
                     self->recorder(scheduler_name).event(reference(*object), "Normal", "Preempted", fmt::format("Preempted by pod {} on node {}", preemptor_uid, node_name), "Preempting");
                   },
                   "status");
    }
    std::vector<PodInfoPtr> losing;
    for (const PodInfoPtr& other : cluster.nominated(choice.node))
      if (other->view().priority < preemptor.priority) losing.push_back(other);
    for (const PodInfoPtr& other : losing) {
      cluster.nominate(other, "");
      if (const auto found = waiting.find(other->view().meta.uid); found != waiting.end()) found->second.nominated.clear();
      client.patch(kPods, other->view().meta.ns, other->view().meta.name, client::PatchType::kMerge, {{"status", {{"nominatedNodeName", nullptr}}}}, [](const client::ApiResult<json::Value>&) {}, "status");
      queue.activate(other->view().meta.uid, loop.now());
    }
  }

  /// Condition PodScheduled=False and a FailedScheduling event; the condition is written only when its text changes.
  void report_failure(const PodInfoPtr& info, std::string_view reason, const std::string& message, const std::optional<std::string>& nominate) {
    const auto found = waiting.find(info->view().meta.uid);
    if (found == waiting.end()) return;
    Waiting& entry = found->second;
    recorder(info->view().scheduler_name).event(reference(*entry.object), "Warning", "FailedScheduling", message, "Scheduling");
    if (entry.message == message && !nominate) return;
    entry.message = message;
    json::Value patch = {{"status", {{"conditions", json::Array{json::Object{{"type", "PodScheduled"}, {"status", "False"}, {"lastProbeTime", nullptr},
                                                                              {"lastTransitionTime", format_rfc3339(loop.now())}, {"reason", reason}, {"message", message}}}}}}};
    if (nominate) json::set(patch, {"status", "nominatedNodeName"}, nominate->empty() ? json::Value(nullptr) : json::Value(*nominate));
    client.patch(kPods, info->view().meta.ns, info->view().meta.name, client::PatchType::kStrategicMerge, patch, [](const client::ApiResult<json::Value>&) {}, "status");
  }

  // ---- small things

  client::EventRecorder& recorder(const std::string& scheduler_name) { return *recorders.at(scheduler_name); }

  static client::ObjectReference reference(const Object& pod) {
    client::ObjectReference out;
    out.api_version = "v1";
    out.kind = "Pod";
    out.ns = pod.ns();
    out.name = pod.name();
    out.uid = pod.uid();
    out.resource_version = fmt::format("{}", pod.revision());
    return out;
  }

  void observe(const char* result, const PodInfoPtr& info, double seconds) {
    const metrics::Labels labels = {{"profile", info->view().scheduler_name}, {"result", result}};
    registry->counter("scheduler_schedule_attempts_total", "Number of attempts to schedule pods, by the result.", labels).add();
    registry->histogram("scheduler_scheduling_attempt_duration_seconds", "Scheduling attempt latency in seconds (scheduling algorithm + binding).", metrics::exponential_buckets(0.0001, 2, 16), labels).observe(seconds);
  }

  void update_gauges() {
    const auto sizes = queue.sizes();
    const auto set = [&](const char* name, std::size_t value) {
      registry->gauge("scheduler_pending_pods", "Number of pending pods, by the queue type.", {{"queue", name}}).set(static_cast<double>(value));
    };
    set("active", sizes.active);
    set("backoff", sizes.backoff);
    set("unschedulable", sizes.unschedulable);
    set("gated", sizes.gated);
  }
};

Scheduler::Scheduler(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Scheduler::~Scheduler() {
  if (impl_->timer != TimerId::kNone) impl_->loop.cancel(impl_->timer);
}

Result<std::unique_ptr<Scheduler>> Scheduler::create(client::Client& client, client::InformerFactory& informers, SchedulerOptions options) {
  if (options.profiles.empty()) options.profiles.push_back(placement::default_profile(placement::Era::k136));
  for (const placement::Profile& profile : options.profiles)
    if (profile.era != options.profiles.front().era) return invalid(fmt::format("profile \"{}\": all profiles of one scheduler follow one release", profile.scheduler_name));
  auto impl = std::make_shared<Impl>(client, informers, options);
  if (!options.extenders.empty()) {
    auto extenders = Extenders::create(options.extenders);
    if (!extenders) return std::unexpected(extenders.error());
    impl->extenders = std::move(*extenders);
  }
  for (const placement::Profile& profile : options.profiles) {
    auto framework = placement::Framework::create(profile);
    if (!framework) return invalid(fmt::format("profile \"{}\": {}", profile.scheduler_name, framework.error().message));
    if (!impl->frameworks.emplace(profile.scheduler_name, std::move(*framework)).second) return invalid(fmt::format("two profiles are named \"{}\"", profile.scheduler_name));
    client::EventRecorderOptions recorder;
    recorder.shape = client::EventRecorderOptions::Shape::kEvents;
    recorder.component = profile.scheduler_name;
    recorder.host = "berth";
    impl->recorders.emplace(profile.scheduler_name, std::make_unique<client::EventRecorder>(client, recorder));
  }
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

void Scheduler::start() {
  impl_->subscribe();
  impl_->wait_for_sync(0);
}

void Scheduler::lead(bool is_leader) {
  impl_->is_leader = is_leader;
  impl_->post_turn();
}

bool Scheduler::has_synced() const { return impl_->is_ready; }
const placement::Cluster& Scheduler::cluster() const { return impl_->cluster; }
SchedulingQueue::Sizes Scheduler::queue_sizes() const { return impl_->queue.sizes(); }
metrics::Registry& Scheduler::metrics() { return *impl_->registry; }

}  // namespace berth::scheduler
