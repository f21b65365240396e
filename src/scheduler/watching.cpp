// What the informers say: nodes, pods and consulted objects into the cluster, pods without a node into the queue.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_scan.h"
#include "base/log.h"
#include "scheduler/scheduler_impl.h"

namespace berth::scheduler {

using client::Object;
using client::ObjectRef;
using placement::NodeIndex;
using placement::PodInfo;
using placement::PodInfoPtr;

PodGlance::PodGlance(const std::string& bytes) {
  static const json::PathScanner scanner({"spec.nodeName", "status.phase", "metadata.generation", "spec.schedulerName", "status.resize",
                                          "status.nominatedNodeName", "status.startTime", "status.resourceClaimStatuses"});
  std::array<std::string_view, 8> values;
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
  start_time = values[6];
  claims = values[7];
}

bool same_spec(const Object& a, const PodGlance& glance_a, const Object& b, const PodGlance& glance_b) {
  if (a.labels() != b.labels()) return false;
  if (!glance_a.generation.empty() && !glance_b.generation.empty()) return glance_a.generation == glance_b.generation;
  static const json::PathScanner scanner({"spec"});
  std::array<std::string_view, 1> spec_a, spec_b;
  return scanner.scan(a.bytes(), spec_a) && scanner.scan(b.bytes(), spec_b) && spec_a[0] == spec_b[0];
}

void Scheduler::Impl::subscribe() {
  const auto weak = weak_from_this();
  const auto with_self = [weak](auto method) {
    return [weak, method](const auto&... args) {
      if (const auto self = weak.lock()) ((*self).*method)(args...);
    };
  };
  informers.get(kNodes).add_handler({with_self(&Impl::node_added), with_self(&Impl::node_updated), with_self(&Impl::node_deleted)});
  informers.get(kPods).add_handler({with_self(&Impl::pod_added), with_self(&Impl::pod_updated), with_self(&Impl::pod_deleted)});
  discover_consulted(
      client, [weak] { return !weak.expired(); },
      [weak](std::vector<Consulted> served) {
        if (const auto self = weak.lock()) self->subscribe_to_kinds(std::move(served));
      });
}

void Scheduler::Impl::subscribe_to_kinds(std::vector<Consulted> served) {
  kinds = std::move(served);
  for (const Consulted& kind : kinds) {
    const auto changed = [weak = weak_from_this(), kind](const ObjectRef& object) {
      if (const auto self = weak.lock()) self->object_changed(kind, *object);
    };
    informers.get(kind.gvr).add_handler({changed, [changed](const ObjectRef&, const ObjectRef& after) { changed(after); },
                                         [weak = weak_from_this(), kind](const ObjectRef& object) {
                                           if (const auto self = weak.lock()) {
                                             self->cluster.remove(kind.kind, object->ns(), object->name());
                                             if (kind.event == ClusterEvent::kResourceClaim) return self->claim_changed(nullptr, nullptr);
                                             self->wake(kind.event, {});
                                           }
                                         }});
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
    is_ready = true;
    log::info("scheduler", "caches are synced: {} nodes, {} pods placed, {} waiting", cluster.node_count(), cluster.pod_count(),
              waiting.size());
    post_turn();
    return;
  }
  constexpr int kRoundsOfTenSeconds = 500;
  if (round > 0 && round % kRoundsOfTenSeconds == 0)
    log::warning("scheduler", "still waiting for the first list of {}", fmt::join(missing, ", "));
  loop.schedule_after(std::chrono::milliseconds(20), [weak = weak_from_this(), round] {
    if (const auto self = weak.lock()) self->wait_for_sync(round + 1);
  });
}

void Scheduler::Impl::node_added(const ObjectRef& object) {
  const NodeIndex index = cluster.upsert_node(std::make_shared<model::NodeView>(model::NodeView::parse(object->document())));
  wake(ClusterEvent::kNodeAdded, index);
}

void Scheduler::Impl::node_updated(const ObjectRef& before, const ObjectRef& after) {
  auto view = std::make_shared<model::NodeView>(model::NodeView::parse(after->document()));
  const placement::NodeInfo* known = cluster.find_node(view->name());
  const EventSet events =
      known != nullptr && known->node != nullptr ? node_changes(*known->node, *view) : EventSet(ClusterEvent::kNodeAdded);
  if (events.empty()) return;
  const NodeIndex index = cluster.upsert_node(std::move(view));
  wake(events, index);
  wake_nominated(index);
}

void Scheduler::Impl::node_deleted(const ObjectRef& object) {
  const placement::NodeInfo* known = cluster.find_node(object->name());
  const std::vector<PodInfoPtr> nominated = known != nullptr ? cluster.nominated(known->index) : std::vector<PodInfoPtr>();
  cluster.remove_node(object->name());
  // Nothing will be freed there any more.
  for (const PodInfoPtr& pod : nominated)
    if (const auto found = waiting.find(pod->view().meta.uid); found != waiting.end()) {
      set_nominated(found->second, "");
      queue.wake(~PluginSet{0}, loop.now(), [&](const SchedulingQueue::Entry& entry) { return entry.pod.uid == pod->view().meta.uid; });
    }
  wake(ClusterEvent::kNodeDeleted, {});
}

void Scheduler::Impl::object_changed(const Consulted& kind, const Object& object) {
  json::Value document = object.document();
  if (!document.is_object()) return;
  // The items of a list leave out what the list says.
  if (json::find(document, "kind") == nullptr) document.get_object()["kind"] = kind.kind;
  if (kind.event == ClusterEvent::kResourceClaim) {
    const placement::ClaimPtr before = cluster.find_claim(object.ns(), object.name());
    cluster.upsert(document);
    return claim_changed(before, cluster.find_claim(object.ns(), object.name()));
  }
  cluster.upsert(document);
  wake(kind.event, {});
}

void Scheduler::Impl::pod_added(const ObjectRef& object) {
  const PodGlance glance(object->bytes());
  if (object->is_deleting()) victim_seen(object->uid());
  if (!glance.node_name.empty())
    place(object, ClusterEvent::kAssignedPodAdded);
  else
    want_node(object, glance, nullptr);
}

void Scheduler::Impl::pod_updated(const ObjectRef& before, const ObjectRef& after) {
  const PodGlance then(before->bytes()), now(after->bytes());
  if (now.node_name.empty()) {
    if (after->is_deleting()) victim_seen(after->uid());
    return want_node(after, now, before);
  }
  if (then.node_name.empty()) {
    place(after, ClusterEvent::kAssignedPodAdded);
  } else if (now.is_terminal() != then.is_terminal()) {
    place(after, ClusterEvent::kAssignedPodDeleted);
  } else {
    EventSet events;
    if (before->labels() != after->labels()) events |= ClusterEvent::kAssignedPodLabels;
    const bool same = same_spec(*before, then, *after, now) && then.resize == now.resize && before->is_deleting() == after->is_deleting();
    if (!same && events.empty()) events |= ClusterEvent::kAssignedPodResized;
    // Preemption goes by when pods started; nobody is woken by it.
    if (!same || then.start_time != now.start_time) place(after, events);
  }
  if (after->is_deleting()) victim_seen(after->uid());
}

void Scheduler::Impl::pod_deleted(const ObjectRef& object) {
  const std::string key = object->key();
  const PodInfoPtr info = cluster.find_pod(key);
  const NodeIndex node = cluster.pod_node(key);
  cluster.remove_pod(key);
  assumed.erase(object->uid());
  forget_waiting(object->uid());
  victim_seen(object->uid());
  if (node.is_valid()) wake(ClusterEvent::kAssignedPodDeleted, node, {ClusterEvent::kAssignedPodDeleted, info.get(), nullptr});
}

void Scheduler::Impl::place(const ObjectRef& object, EventSet events) {
  forget_waiting(object->uid());
  const bool confirmed = assumed.erase(object->uid()) != 0;
  auto info = PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(object->document())), cluster.era());
  const PodInfoPtr before = cluster.find_pod(info->key);
  const NodeIndex node_before = cluster.pod_node(info->key);
  const placement::NodeInfo* node = node_before.is_valid() ? cluster.node(node_before) : nullptr;
  const bool confirms_assumption =
      confirmed && node != nullptr && node->name == info->view().node_name && !info->view().is_terminal() && !object->is_deleting();
  // The room is already taken by the assumed pod; only somebody's first sight of it can help others.
  if (!confirms_assumption) cluster.upsert_pod(info);
  const NodeIndex node_after = cluster.pod_node(object->key());
  wake(events, node_after.is_valid() ? node_after : node_before, {events, info.get(), before.get()});
}

void Scheduler::Impl::want_node(const ObjectRef& object, const PodGlance& glance, const ObjectRef& before) {
  const std::string& uid = object->uid();
  if (assumed.contains(uid)) return;  // On its way; the watch will say.
  if (!frameworks.contains(glance.scheduler_name) || object->is_deleting() || glance.is_terminal()) return forget_waiting(uid);
  const auto known = waiting.find(uid);
  if (known != waiting.end() && before != nullptr) {
    Waiting& entry = known->second;
    const PodGlance then(before->bytes());
    entry.object = object;
    // Only a revision that changes the nomination says something about it: ours may not have arrived there yet.
    if (then.nominated != glance.nominated && entry.nominated != glance.nominated) set_nominated(entry, std::string(glance.nominated));
    if (same_spec(*before, then, *object, glance) && then.claims == glance.claims) return;  // Status alone changed, mostly by us.
  }
  auto view = std::make_shared<model::PodView>(model::PodView::parse(object->document()));
  if (known != waiting.end()) view->nominated_node_name = known->second.nominated;
  const auto info = PodInfo::make(std::move(view), cluster.era());
  Waiting& entry = waiting[uid];
  const EventSet own = entry.info != nullptr ? own_changes(*entry.info, *info) : EventSet();
  entry.info = info;
  entry.object = object;
  set_nominated(entry, info->view().nominated_node_name);
  const placement::FrameworkPtr& framework = frameworks.at(info->view().scheduler_name);
  const bool is_gated = !framework->run_pre_enqueue(info->view(), &cluster).is_success();
  const auto priority = static_cast<std::int32_t>(std::clamp<std::int64_t>(info->view().priority, INT32_MIN, INT32_MAX));
  const SchedulingQueue::Entry* queued = queue.find(uid);
  if (queued == nullptr) count_incoming(is_gated ? "gated" : "active", "UnschedulablePodAdd");
  const bool may_help = queued == nullptr || queued->rejected_by == 0 || (queued->rejected_by & bits.cured_by(own)) != 0;
  queue.add_or_update({uid, info->view().meta.ns, info->view().meta.name, priority, is_gated}, loop.now(), may_help);
  post_turn();
}

void Scheduler::Impl::set_nominated(Waiting& entry, const std::string& node_name) {
  const std::string before = std::exchange(entry.nominated, node_name);
  if (entry.info->view().nominated_node_name != node_name) {
    auto view = std::make_shared<model::PodView>(entry.info->view());
    view->nominated_node_name = node_name;
    entry.info = PodInfo::make(std::move(view), cluster.era());
  }
  cluster.nominate(entry.info, node_name);
  if (before != node_name) wake_for_nomination(entry.info, before);
}

void Scheduler::Impl::forget_waiting(const std::string& uid) {
  const auto found = waiting.find(uid);
  if (found == waiting.end()) return;
  const PodInfoPtr info = found->second.info;
  const std::string promised = found->second.nominated;
  cluster.nominate(info, "");
  waiting.erase(found);
  queue.remove(uid);
  if (const auto open = preempting.find(uid); open != preempting.end()) {
    for (const std::string& victim : open->second.victims) preempted_by.erase(victim);
    preempting.erase(open);
  }
  wake_for_nomination(info, promised);
}

}  // namespace berth::scheduler
