// What the informers say: nodes, pods and consulted objects into the cluster, pods without a node into the queue.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/json_scan.h"
#include "base/log.h"
#include "client/heartbeats.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using client::Object;
using client::ObjectRef;
using placement::NodeIndex;
using placement::PodInfo;
using placement::PodInfoPtr;

PodGlance::PodGlance(HeldText of) : text(std::move(of)) {
  static const json::PathScanner scanner(
      {"spec.nodeName", "status.phase", "metadata.generation", "spec.schedulerName", "status.resize", "status.nominatedNodeName",
       "status.startTime", "status.resourceClaimStatuses", "status.containerStatuses", "status.initContainerStatuses", "status.resources",
       "metadata.annotations", "metadata.ownerReferences", "spec.schedulingGroup.podGroupName", "status.conditions"});
  std::array<std::string_view, 15> values;
  if (!scanner.scan(*text, values)) return;
  const auto plain = [](std::string_view raw) {
    bool ok = true;
    const std::string_view unquoted = json::unquote_plain(raw, ok);
    return ok ? unquoted : std::string_view();
  };
  node_name = plain(values[0]);
  phase = plain(values[1]);
  generation = values[2];
  scheduler_name = plain(values[3]);
  resize = values[4];
  nominated = plain(values[5]);
  start_time = values[6];
  claims = values[7];
  running = values[8];
  running_init = values[9];
  resources = values[10];
  annotations = values[11];
  owners = values[12];
  group = plain(values[13]);
  conditions = values[14];
}

namespace {

/// Two statuses of containers that may say otherwise what they run with.
bool runs_with_other_resources(std::string_view before, std::string_view now) {
  if (before == now) return false;
  return std::ranges::any_of(std::array{before, now}, [](std::string_view one) {
    return one.find("\"resources\"") != std::string_view::npos || one.find("\"allocatedResources\"") != std::string_view::npos;
  });
}

/// Two lists of conditions that may not say the same of this type.
bool differ_about(std::string_view type, std::string_view before, std::string_view now) {
  return before != now && (before.find(type) != std::string_view::npos || now.find(type) != std::string_view::npos);
}

bool same_but_labels(const PodGlance& a, const PodGlance& b) {
  if (!a.generation.empty() && !b.generation.empty()) return a.generation == b.generation;
  static const json::PathScanner scanner({"spec"});
  std::array<std::string_view, 1> spec_a, spec_b;
  return scanner.scan(*a.text, spec_a) && scanner.scan(*b.text, spec_b) && spec_a[0] == spec_b[0];
}

/// A container list of a status says that each container runs with what the spec asks for, as all do that nobody resizes.
bool run_as_asked(std::string_view statuses, const std::vector<model::ContainerView>& containers) {
  static const json::PathScanner scanner({"name", "resources", "resources.requests", "allocatedResources"});
  const auto says = [](std::string_view raw, const model::ResourceList& asked) {
    const auto amounts = json::parse(raw);
    return amounts && model::parse_resource_list(&*amounts) == asked;
  };
  bool all = true;
  const bool is_list = statuses.empty() || json::for_each_element(statuses, [&](std::string_view status) {
                         std::array<std::string_view, 4> raw;
                         all = all && scanner.scan(status, raw);
                         if (!all || (raw[1].empty() && raw[3].empty())) return;
                         const auto asks = std::ranges::find(containers, json::unquote(raw[0]), &model::ContainerView::name);
                         all = asks != containers.end() && !raw[1].empty() &&
                               (raw[2].empty() ? asks->requests.empty() : says(raw[2], asks->requests)) &&
                               (raw[3].empty() || raw[3] == raw[2] || says(raw[3], asks->requests));
                       });
  return is_list && all;
}

/// Of what a status says only phase, start time and nomination concern placement, now as before: nobody resizes the pod or preempts it.
/// What it says of the pod as a whole counts only where the spec asks for that.
bool is_plain_start(const model::PodView& known, const PodGlance& now, std::string_view status) {
  return known.container_statuses.empty() && !known.pod_level_status && !known.resize_infeasible && !known.terminating_by_preemption &&
         (now.resources.empty() || known.pod_requests.empty()) && status.find("PodResizePending") == std::string_view::npos &&
         status.find("DisruptionTarget") == std::string_view::npos && run_as_asked(now.running, known.containers) &&
         run_as_asked(now.running_init, known.init_containers);
}

/// The annotations are those that the pod is known with: as it was decided on, or with what Reserve gave it.
bool has_annotations_of(const PodGlance& now, const PodGlance& then, const PodInfo& known) {
  if (now.annotations == then.annotations) return true;
  const auto texts = now.annotations.empty() ? json::Value(json::Object()) : json::parse(now.annotations).value_or(json::Value());
  const json::Value pod = json::Object{{"metadata", json::Object{{"annotations", texts}}}};
  return model::ObjectMeta::parse(pod).annotations == known.view().meta.annotations;
}

/// What came is what was assumed, as far as placement reads it.
bool is_as_assumed(const PodInfo& assumed, const PodInfo& seen) {
  const model::PodView &a = assumed.view(), &b = seen.view();
  return !b.is_terminal() && same_traits(assumed, seen) && assumed.request == seen.request && assumed.start_time_ns == seen.start_time_ns &&
         a.meta.annotations == b.meta.annotations && a.meta.owner_references == b.meta.owner_references &&
         a.resource_claims == b.resource_claims && a.resize_infeasible == b.resize_infeasible &&
         a.terminating_by_preemption == b.terminating_by_preemption;
}

}  // namespace

bool same_spec(const Object& a, const PodGlance& glance_a, const Object& b, const PodGlance& glance_b) {
  return a.labels() == b.labels() && same_but_labels(glance_a, glance_b);
}

void Core::node_added(const ObjectRef& object) {
  const TimePoint start = meters.start();
  ++node_changes_seen;
  const NodeIndex index = cluster.upsert_node(std::make_shared<model::NodeView>(model::NodeView::parse(*object->parsed())));
  wake(ClusterEvent::kNodeAdded, index, {.node = cluster.node(index)->node.get()});
  meters.events(ClusterEvent::kNodeAdded, start);
}

void Core::node_updated(const ObjectRef& before, const ObjectRef& after) {
  if (client::is_heartbeat(*before, *after)) return;
  const TimePoint start = meters.start();
  auto view = std::make_shared<model::NodeView>(model::NodeView::parse(*after->parsed()));
  const placement::NodeInfo* known = cluster.find_node(view->name());
  const model::NodeViewPtr was = known != nullptr ? known->node : nullptr;
  const EventSet events = was != nullptr ? node_changes(*was, *view) : EventSet(ClusterEvent::kNodeAdded);
  if (events.empty()) return;
  const NodeIndex index = cluster.upsert_node(std::move(view));
  wake(events, index, {.node_before = was.get(), .node = cluster.node(index)->node.get()});
  wake_nominated(index);
  meters.events(events, start);
}

void Core::node_deleted(const ObjectRef& object) {
  const TimePoint start = meters.start();
  const placement::NodeInfo* known = cluster.find_node(object->name());
  const std::vector<PodInfoPtr> nominated = known != nullptr ? cluster.nominated(known->index) : std::vector<PodInfoPtr>();
  const model::NodeViewPtr was = known != nullptr ? known->node : nullptr;
  ++node_changes_seen;
  cluster.remove_node(object->name());
  // Nothing will be freed there any more.
  for (const PodInfoPtr& pod : nominated)
    if (Tracked* loser = wanting(pod->view().meta.uid)) {
      set_nominated(*loser, "");
      queue.wake_one(pod->view().meta.uid, now);
    }
  std::vector<std::string> lost;
  for (const auto& [key, kept] : reservations)
    if (std::ranges::find(kept.stand_ins, object->name(), [](const auto& one) { return one.second; }) != kept.stand_ins.end())
      lost.push_back(key);
  for (const std::string& key : lost) give_room_back(key, fmt::format("node {} is gone", object->name()));
  wake(ClusterEvent::kNodeDeleted, {}, {.node_before = was.get()});
  meters.events(ClusterEvent::kNodeDeleted, start);
}

void Core::object_changed(const Consulted& kind, const ObjectRef& before, const ObjectRef& after) {
  const TimePoint start = meters.start();
  if (kind.kind == "PodGroup") return group_changed(before, after);
  if (!bindings_by_claim.empty()) claim_moved(kind.gvr.resource, after != nullptr ? *after : *before);
  json::Value document = after != nullptr ? after->document() : json::Value();
  const Object& either = after != nullptr ? *after : *before;
  const bool is_claim = kind.event == ClusterEvent::kResourceClaim;
  const placement::ClaimPtr claim_before = is_claim && after != nullptr ? cluster.find_claim(after->ns(), after->name()) : nullptr;
  if (after == nullptr) {
    cluster.remove(kind.kind, before->ns(), before->name());
  } else {
    if (!document.is_object()) return;
    // The items of a list leave out what the list says.
    if (json::find(document, "kind") == nullptr) document.get_object()["kind"] = kind.kind;
    cluster.upsert(document);
  }
  if (could_open_gates(kind.event)) {
    const json::Value was = before != nullptr ? before->document() : json::Value();
    ask_gates({.event = kind.event, .object_before = before != nullptr ? &was : nullptr, .object = after != nullptr ? &document : nullptr});
  }
  if (is_claim)
    return claim_changed(either.key(), claim_before, after != nullptr ? cluster.find_claim(after->ns(), after->name()) : nullptr);
  const ObjectVerb verb = after == nullptr ? ObjectVerb::kDeleted : before == nullptr ? ObjectVerb::kAdded : ObjectVerb::kUpdated;
  wake_for_object(kind, before, after == nullptr ? nullptr : &document, verb);
  meters.event(event_label(kind.event, kind.kind, verb), start);
}

void Core::wake_for_object(const Consulted& kind, const ObjectRef& before, const json::Value* after, ObjectVerb verb) {
  note_missed(kind.event);
  if (!could_wake(kind.event)) return;
  const bool counts_when_gone = kind.event == ClusterEvent::kVolumeAttachmentDeleted;
  // Of volumes and their like only what comes or changes helps; of attachments only what goes; of namespaces, services and budgets all.
  using enum ClusterEvent;
  constexpr EventSet kVolumeEvents = {kPersistentVolume, kClaim, kStorageClass, kCsiNode, kCsiDriver, kCsiStorageCapacity};
  const bool is_about_volumes = kVolumeEvents.has(kind.event);
  if (after == nullptr ? is_about_volumes : counts_when_gone) return;
  const json::Value was = before != nullptr ? before->document() : json::Value();
  const EventChange change{.event = kind.event, .object_before = before != nullptr ? &was : nullptr, .object = after};
  if (wake_for({}, change, event_label(kind.event, kind.kind, verb)) > 0) post_turn();
}

void Core::pod_added(const ObjectRef& object) {
  const TimePoint start = meters.start();
  const PodGlance glance(object->text());
  if (!glance.group.empty()) note_member(*object, glance, true);
  if (object->is_deleting()) victim_seen(object->uid());
  const bool is_assigned = !glance.node_name.empty();
  if (is_assigned) {
    place(object, ClusterEvent::kAssignedPodAdded);
    if (!glance.group.empty()) wake_members(fmt::format("{}/{}", object->ns(), glance.group));
  } else {
    want_node(object, glance, nullptr);
  }
  meters.event(is_assigned ? "AssignedPodAdd" : "UnschedulablePodAdd", start);
}

void Core::pod_updated(const ObjectRef& before, const ObjectRef& after) {
  const TimePoint start = meters.start();
  const PodGlance then(before->text()), now(after->text());
  if (!now.group.empty()) note_member(*after, now, true);
  if (now.node_name.empty()) {
    if (after->is_deleting()) victim_seen(after->uid());
    if (after->is_deleting()) look_again(after->uid());
    want_node(after, now, before);
    return meters.event("UnschedulablePodUpdate", start);
  }
  if (then.node_name.empty()) {
    const auto found = pods.find(after->uid());
    const bool is_ours = found != pods.end() && found->second.held() != nullptr;
    if (!confirm_assumed(after, now)) place(after, ClusterEvent::kAssignedPodAdded);
    if (!is_ours && !now.group.empty()) wake_members(fmt::format("{}/{}", after->ns(), now.group));
  } else if (now.is_terminal() != then.is_terminal()) {
    if (!now.is_terminal() || !take_away_ended(*after)) place(after, ClusterEvent::kAssignedPodDeleted);
  } else {
    EventSet events;
    if (before->labels() != after->labels()) events |= ClusterEvent::kAssignedPodLabels;
    const bool same = same_spec(*before, then, *after, now) && then.resize == now.resize && before->is_deleting() == after->is_deleting();
    // What runs counts against what is asked for, while a resize is under way.
    const bool runs_otherwise = then.resources != now.resources || runs_with_other_resources(then.running, now.running) ||
                                runs_with_other_resources(then.running_init, now.running_init) ||
                                differ_about("PodResizePending", then.conditions, now.conditions);
    if (!same || runs_otherwise) events |= ClusterEvent::kAssignedPodResized;
    const bool is_status_alone = same && then.claims == now.claims && same_metadata(then, now);
    if (!same_metadata(then, now)) events |= ClusterEvent::kAssignedPodOther;
    // Preemption goes by when pods started and whether they end by it; nobody is woken by that.
    const bool preempts_otherwise = then.start_time != now.start_time || differ_about("DisruptionTarget", then.conditions, now.conditions);
    if (!events.empty() || preempts_otherwise) place(after, events, is_status_alone ? with_status(*after, now) : nullptr);
  }
  if (after->is_deleting()) victim_seen(after->uid());
  meters.event(then.node_name.empty() ? "AssignedPodAdd" : "AssignedPodUpdate", start);
}

void Core::pod_deleted(const ObjectRef& object) {
  const TimePoint start = meters.start();
  const std::string key = object->key();
  const PodGlance glance(object->text());
  if (!glance.group.empty()) note_member(*object, glance, false);
  look_again(object->uid());
  if (at_permit.contains(object->uid())) binding_failed(pods.at(object->uid()).held(), {}, "removed");
  const PodInfoPtr info = cluster.find_pod(key);
  const NodeIndex node = cluster.pod_node(key);
  const Tracked* waited = wanting(object->uid());
  const PodInfoPtr last_known = info == nullptr && waited != nullptr ? waited->info : info;
  cluster.remove_pod(key);
  assume_no_more(object->uid());
  forget_waiting(object->uid());
  victim_seen(object->uid());
  if (node.is_valid()) wake(ClusterEvent::kAssignedPodDeleted, node, {.pod_before = info.get()});
  meters.event(node.is_valid() ? "AssignedPodDelete" : "UnschedulablePodDelete", start);
  if (last_known != nullptr) note_gone(*last_known);
}

void Core::place(const ObjectRef& object, EventSet events, PodInfoPtr info) {
  forget_waiting(object->uid());
  const bool confirmed = assume_no_more(object->uid());
  if (info == nullptr) info = PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*object->parsed())), cluster.era());
  const PodInfoPtr before = cluster.find_pod(info->key);
  const NodeIndex node_before = cluster.pod_node(info->key);
  const placement::NodeInfo* node = node_before.is_valid() ? cluster.node(node_before) : nullptr;
  // Labels may change, and a resize may come, between the decision and the binding.
  const bool confirms_assumption = confirmed && node != nullptr && node->name == info->view().node_name && is_as_assumed(*before, *info);
  // The room is already taken by the assumed pod; only somebody's first sight of it can help others.
  if (!confirms_assumption) cluster.upsert_pod(info);
  const NodeIndex node_after = cluster.pod_node(object->key());
  if (events.has(ClusterEvent::kAssignedPodResized) && (before == nullptr || !is_scaled_down(*before, *info)))
    events = events.without(ClusterEvent::kAssignedPodResized) | ClusterEvent::kAssignedPodOther;
  EventChange change{.pod_before = before.get(), .pod = info.get()};
  if (events.has(ClusterEvent::kAssignedPodAdded)) change.pod_before = nullptr;
  if (events.has(ClusterEvent::kAssignedPodDeleted)) {
    change.pod_before = before != nullptr ? before.get() : info.get();
    change.pod = nullptr;
  }
  wake(events, node_after.is_valid() ? node_after : node_before, change);
}

/// A placed pod has ended: it holds no room any more, and nothing of its new revision is read. False: it is not known there.
bool Core::take_away_ended(const Object& object) {
  const std::string key = object.key();
  const NodeIndex index = cluster.pod_node(key);
  if (!index.is_valid()) return false;
  const PodInfoPtr known = cluster.find_pod(key);
  forget_waiting(object.uid());
  assume_no_more(object.uid());
  cluster.remove_pod(key);
  wake(ClusterEvent::kAssignedPodDeleted, index, {.pod_before = known.get()});
  note_gone(*known);
  return true;
}

/// A placed pod of which nothing but the status is another: what placement knows of it, with that status. Only that is read. Null: it is
/// not known there.
PodInfoPtr Core::with_status(const Object& object, const PodGlance& now) {
  static const json::PathScanner scanner({"status"});
  std::array<std::string_view, 1> raw;
  const PodInfoPtr known = cluster.find_pod(object.key());
  const NodeIndex index = cluster.pod_node(object.key());
  const placement::NodeInfo* node = index.is_valid() ? cluster.node(index) : nullptr;
  if (known == nullptr || known->view().meta.uid != object.uid() || node == nullptr || node->name != now.node_name) return nullptr;
  if (!scanner.scan(*now.text, raw)) return nullptr;
  if (is_plain_start(known->view(), now, raw[0])) {
    auto view = std::make_shared<model::PodView>(known->view());
    view->node_name = now.node_name;
    view->phase = now.phase;
    view->start_time = json::unquote(now.start_time);
    view->nominated_node_name = now.nominated;
    return known->moved_on(std::move(view));
  }
  auto status = json::parse(raw[0]);
  if (!status) return nullptr;
  auto said = model::PodView::parse(json::Object{{"status", std::move(*status)}});
  auto view = std::make_shared<model::PodView>(known->view());
  view->node_name = now.node_name;  // Of what was assumed it is not there yet.
  view->phase = std::move(said.phase);
  view->start_time = std::move(said.start_time);
  view->nominated_node_name = std::move(said.nominated_node_name);
  view->container_statuses = std::move(said.container_statuses);
  view->pod_level_status = std::move(said.pod_level_status);
  view->resize_infeasible = said.resize_infeasible;
  view->terminating_by_preemption = said.terminating_by_preemption;
  return PodInfo::make(std::move(view), cluster.era());
}

bool Core::confirm_assumed(const ObjectRef& object, const PodGlance& now) {
  const auto found = pods.find(object->uid());
  const HeldPtr held = found != pods.end() ? found->second.held() : nullptr;
  if (held == nullptr || !held->is_assumed) return false;
  const ObjectRef& decided_on = held->object;
  const std::string& key = held->info->key;
  const PodInfoPtr info = cluster.find_pod(key);
  const NodeIndex index = cluster.pod_node(key);
  const placement::NodeInfo* node = index.is_valid() ? cluster.node(index) : nullptr;
  if (info == nullptr || node == nullptr || node->name != now.node_name || now.is_terminal()) return false;
  const PodGlance then(decided_on->text());
  const bool is_same = same_but_labels(then, now) && info->view().meta.is_deleting == object->is_deleting() && then.resize == now.resize &&
                       then.claims == now.claims && then.resources == now.resources && then.running == now.running &&
                       then.running_init == now.running_init && then.owners == now.owners && then.start_time == now.start_time &&
                       !differ_about("PodResizePending", then.conditions, now.conditions) &&
                       !differ_about("DisruptionTarget", then.conditions, now.conditions) && has_annotations_of(now, then, *info);
  if (!is_same) return false;
  if (decided_on->labels() != object->labels()) {
    // A Binding brings labels along (the node's zone), and nothing else of it was changed.
    auto view = std::make_shared<model::PodView>(info->view());
    view->meta.labels = object->labels();
    view->node_name = now.node_name;
    view->nominated_node_name = now.nominated;
    place(object, ClusterEvent::kAssignedPodAdded, PodInfo::make(std::move(view), cluster.era()));
    return true;
  }
  assume_no_more(object->uid());
  forget_waiting(object->uid());
  // Somebody's first sight of it can help others.
  wake(ClusterEvent::kAssignedPodAdded, index, {.pod = info.get()});
  return true;
}

void Core::want_node(const ObjectRef& object, const PodGlance& glance, const ObjectRef& before) {
  const std::string& uid = object->uid();
  const auto found = pods.find(uid);
  Tracked* known = found != pods.end() ? &found->second : nullptr;
  if (known != nullptr && known->held() != nullptr) return;  // On its way; the watch will say.
  if (!frameworks.contains(glance.scheduler_name) || glance.is_terminal()) return forget_waiting(uid);
  if (known != nullptr && before != nullptr) {
    Tracked& entry = *known;
    const PodGlance then(before->text());
    entry.object = object;
    if (object->is_deleting()) set_nominated(entry, "");  // It will not come; its next turn says so.
    // Only a revision that changes the nomination says something about it: ours may not have arrived there yet.
    if (then.nominated != glance.nominated && entry.nominated() != glance.nominated) set_nominated(entry, std::string(glance.nominated));
    // Status alone changed, mostly by us.
    if (same_spec(*before, then, *object, glance) && same_metadata(then, glance) && then.claims == glance.claims) return;
  }
  auto view = std::make_shared<model::PodView>(model::PodView::parse(*object->parsed()));
  if (known != nullptr) view->nominated_node_name = known->nominated();
  const auto info = PodInfo::make(std::move(view), cluster.era());
  Tracked& entry = pods[uid];
  const PodInfoPtr was = entry.info;
  const EventSet own = was != nullptr ? own_changes(*was, *info) : EventSet();
  index_claims(was, info);
  entry.info = info;
  entry.object = object;
  set_nominated(entry, info->view().nominated_node_name);
  const placement::FrameworkPtr& framework = frameworks.at(info->view().scheduler_name);
  const TimePoint asked = meters.start();
  const placement::Status gate = gate_of(info->view());
  const bool is_gated = !gate.is_success();
  meters.point("PreEnqueue", info->view().scheduler_name, meters.since(asked), is_gated ? "UnschedulableAndUnresolvable" : "Success");
  const auto priority = static_cast<std::int32_t>(std::clamp<std::int64_t>(info->view().priority, INT32_MIN, INT32_MAX));
  const SchedulingQueue::Entry* queued = queue.find(uid);
  set_gate(entry, gate.plugin);
  bool may_help = queued == nullptr || queued->rejected_by == 0;
  std::string label = "UnschedulablePodUpdate";
  for (const ClusterEvent event : {ClusterEvent::kOwnLabels, ClusterEvent::kOwnScaledDown, ClusterEvent::kOwnTolerations,
                                   ClusterEvent::kOwnClaims, ClusterEvent::kOwnOther}) {
    if (may_help || !own.has(event)) continue;
    const EventChange change{.event = event, .pod_before = was.get(), .pod = info.get()};
    may_help = bits.any_hint(queued->rejected_by, *framework, cluster, *info, change);
    label = event_label(event);
  }
  queue.add_or_update({uid, info->view().meta.ns, info->view().meta.name, priority, is_gated}, now, may_help, label);
  if (was != nullptr) queue.set_kind(uid, kinds_of_pods.of(*framework, *entry.info, entry.nominated()));
  post_turn();
}

void Core::set_nominated(Tracked& entry, const std::string& node_name) {
  const std::string before = entry.nominated();
  if (before != node_name) {
    auto view = std::make_shared<model::PodView>(entry.info->view());
    view->nominated_node_name = node_name;
    entry.info = PodInfo::make(std::move(view), cluster.era());
  }
  cluster.nominate(entry.info, node_name);
  const std::string& uid = entry.info->view().meta.uid;
  if (before != node_name && queue.find(uid) != nullptr)
    queue.set_kind(uid, kinds_of_pods.of(*frameworks.at(entry.info->view().scheduler_name), *entry.info, node_name));
  if (before != node_name) wake_for_nomination(entry.info, before);
}

void Core::forget_waiting(const std::string& uid) {
  Tracked* pod = wanting(uid);
  if (pod == nullptr) return;
  const PodInfoPtr info = pod->info;
  cluster.nominate(info, "");
  queue.remove(uid);
  set_gate(*pod, {});
  index_claims(info, nullptr);
  stop_preempting(*pod);
  pods.erase(uid);
  wake_for_nomination(info, info->view().nominated_node_name);
}

bool Core::assume_no_more(const std::string& uid) {
  const auto found = pods.find(uid);
  const HeldPtr held = found != pods.end() ? found->second.held() : nullptr;
  if (held == nullptr || !std::exchange(held->is_assumed, false)) return false;
  BERTH_CHECK(assumed > 0, "{}: a place is confirmed that does not count among the assumed", held->info->key);
  --assumed;
  if (const Binding* bound = found->second.as<Binding>(); bound != nullptr && bound->is_answered) pods.erase(found);
  return true;
}

}  // namespace berth::scheduler
