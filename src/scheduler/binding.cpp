// Permit: a pod that has its place may have to wait until plugins allow it to be bound; it keeps the place meanwhile.
//
//   reserved --> Permit --> bind
//                  |  ^ every plugin that made it wait allows it
//                  |  |
//                  +--> waits --> a plugin rejects it, its time is over, it is deleted or preempted: the place is given back, and the pod
//                                 waits as unschedulable for what could change the plugin's mind
//
// The binding cycle: the volumes' writes, the wait for their claims, then the node. Asynchronous; the pod is assumed meanwhile.
//
//   pre-bind writes --> claims bound? --> bind --> done (the watch confirms)
//        |                  |              | refused: unreserve, forget, try again after a backoff
//        +------------------+--------------+ no answer: ask how it ended, hold the room
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "client/response.h"
#include "placement/plugins/volumes.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using client::ObjectRef;

namespace {

constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
std::string claim_key(std::string_view resource, std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}/{}", resource, ns, name);
}
std::string claim_key(const placement::PreBindWrite& write) {
  return claim_key(write.uid.empty() ? write.resource : kResourceClaims.resource, write.ns, write.name);
}

constexpr Step kVolumeStep{"PreBind", "VolumeBinding"};

}  // namespace

class Core::PermitRoom final : public placement::WaitingPods {
 public:
  explicit PermitRoom(Core& core) : core_(core) {}
  void for_each(const std::function<void(const placement::PodInfo& pod, std::string_view node_name)>& each) const override {
    for (const std::string& uid : core_.at_permit) {
      const Held& held = *core_.pods.at(uid).held();
      each(*held.info, held.node_name);
    }
  }
  void allow(const std::string& uid, std::string_view plugin) override {
    core_.out.later([&core = core_, uid, plugin = std::string(plugin)] { core.permit_allowed(uid, plugin); });
  }
  void reject(const std::string& uid, std::string_view plugin, const std::string& message) override {
    core_.out.later([&core = core_, uid, plugin = std::string(plugin), message] { core.permit_rejected(uid, plugin, message); });
  }

 private:
  Core& core_;
};

void Core::permit(const HeldPtr& held) {
  if (!held->framework->has_permit()) return announce(held);
  const std::string uid = held->entry.pod.uid;
  const TimePoint asked = meters.start();
  PermitRoom room(*this);
  std::vector<placement::Framework::PermitWait> waits;
  const placement::Status status =
      held->framework->run_permit(held->reservation.state, *held->info, *cluster.node(held->node), room, waits);
  meters.point("Permit", held->info->view().scheduler_name, meters.since(asked),
               status.is_success()                     ? "Success"
               : status.code == placement::Code::kWait ? "Wait"
               : status.is_rejected()                  ? "Unschedulable"
                                                       : "Error");
  if (status.is_success()) return announce(held);
  if (status.is_rejected()) return not_permitted(held, status);
  if (status.is_error()) return binding_failed(held, {}, status.message());
  AtPermit& wait = *pods.at(uid).as<AtPermit>();
  at_permit.insert(uid);
  for (const auto& [plugin, timeout] : waits)
    wait.plugins[std::string(plugin)] = out.at(now + timeout, [this, uid, plugin = std::string(plugin), timeout = timeout] {
      permit_rejected(uid, plugin,
                      fmt::format("rejected due to timeout after waiting {} at plugin {}", format_go_duration(timeout), plugin));
    });
  give_slot(*held);  // However long it waits, other pods go on.
}

HeldPtr Core::leave_permit(const std::string& uid) {
  if (at_permit.erase(uid) == 0) return nullptr;
  AtPermit& wait = *pods.at(uid).as<AtPermit>();
  for (const auto& [plugin, timer] : wait.plugins) out.cancel(timer);
  wait.plugins.clear();
  return wait.held;
}

void Core::permit_allowed(const std::string& uid, const std::string& plugin) {
  if (!at_permit.contains(uid)) return;
  auto& plugins = pods.at(uid).as<AtPermit>()->plugins;
  const auto held_by = plugins.find(plugin);
  if (held_by == plugins.end()) return;
  out.cancel(held_by->second);
  plugins.erase(held_by);
  if (!plugins.empty()) return;
  const HeldPtr held = leave_permit(uid);
  if (!is_leader) return binding_failed(held, {}, "leadership was lost");
  take_slot(*held);
  announce(held);
}

void Core::permit_rejected(const std::string& uid, const std::string& plugin, const std::string& message) {
  const HeldPtr held = leave_permit(uid);
  if (held == nullptr) return;
  const placement::Plugin* known = held->framework->find(plugin);
  placement::Status status = placement::Status::unschedulable(message);
  if (known != nullptr) status.plugin = known->name();
  not_permitted(held, status);
}

/// The pod's one node is as good as full, in the words of a node that did not fit (schedule_one.go, handleBindingCycleError).
Tracked* Core::take_place_from(const HeldPtr& held) {
  if (holder(held) == nullptr) return nullptr;
  const std::string uid = held->entry.pod.uid;
  give_slot(*held);
  give_place_back(held);
  const model::PodView& pod = held->info->view();
  const ObjectRef current = known(kPods, pod.meta.ns, pod.meta.name);
  post_turn();
  const bool is_there = current != nullptr && current->uid() == uid && !current->is_deleting();
  const bool is_bound = is_there && !PodGlance(current->text()).node_name.empty();  // By somebody else.
  if (is_there && !is_bound) want_node(current, PodGlance(current->text()), nullptr);
  Tracked* again = wanting(uid);
  if (again == nullptr) queue.done(uid);
  return again;
}

void Core::not_permitted(const HeldPtr& held, const placement::Status& status) {
  if (holder(held) == nullptr) return;
  meters.attempt("unschedulable", *held->info, meters.since(held->started));
  Tracked* again = take_place_from(held);
  if (again == nullptr) return;
  auto diagnosis = std::make_shared<placement::Diagnosis>();
  diagnosis->node_count = 1;
  diagnosis->reasons = {{status.message(), 1}};
  if (!status.plugin.empty()) diagnosis->plugins = {status.plugin};
  set_nominated(*again, "");
  rejected({.entry = held->entry,
            .info = again->info,
            .framework = held->framework,
            .started = held->started,
            .diagnosis = std::move(diagnosis)},
           "", "");
}

void Core::take_slot(Held& held) {
  if (held.holds_slot) return;
  held.holds_slot = true;
  ++bindings_in_flight;
}

void Core::give_slot(Held& held) {
  if (!held.holds_slot) return;
  held.holds_slot = false;
  BERTH_CHECK(bindings_in_flight > 0, "{}: a binding ends that does not count among those under way", held.info->key);
  --bindings_in_flight;
}

void Core::announce(const HeldPtr& held) {
  holder(held)->enter(PreBinding{held});
  if (held->writes.empty()) return bind(held);
  if (cluster.era() == placement::Era::k120) return next_pre_bind(held);
  const model::PodView& pod = held->info->view();
  out.patch(
      kPods, pod.meta.ns, pod.meta.name, client::PatchType::kMerge,
      {{"metadata", {{"uid", pod.meta.uid}}}, {"status", {{"nominatedNodeName", held->node_name}}}},
      [this, held](const client::ApiResult<json::Value>&) {
        next_pre_bind(held);  // Only an announcement: whatever the answer.
      },
      "status");
}

void Core::next_pre_bind(const HeldPtr& held) {
  if (holder(held) == nullptr) return;
  if (!is_leader) return binding_failed(held, {}, "leadership was lost");
  if (held->written == held->writes.size()) {
    held->claims_deadline = now + std::chrono::seconds(held->framework->profile().args.volume_binding.bind_timeout_seconds);
    give_slot(*held);  // However long volumes take, other pods go on.
    post_turn();
    return wait_for_claims(held);
  }
  const placement::PreBindWrite& write = held->writes[held->written];
  if (!write.to_create.is_null()) return create_claim(held);
  if (!write.uid.empty()) {
    const ObjectRef claim = known(kResourceClaims, write.ns, write.name);
    return claim != nullptr ? bind_claim(held, claim->document(), 0) : read_claim(held, 0);
  }
  client::Call call;
  call.verb = "patch";
  call.gvr = {write.group, "v1", write.resource};
  call.ns = write.ns;
  call.name = write.name;
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(write.merge_patch);
  call.answer = client::Answer::kIdentity;
  out.call(std::move(call), [this, held](client::ApiResult<json::Value> result) {
    if (holder(held) == nullptr) return;
    if (!result) return binding_failed(held, {"PreBind", held->writes[held->written].plugin}, result.error().message);
    std::int64_t revision = 0;
    const std::string text(json::get_string(*result, {"metadata", "resourceVersion"}));
    (void)std::from_chars(text.data(), text.data() + text.size(), revision);
    held->written_at.push_back(revision);
    ++held->written;
    next_pre_bind(held);
  });
}

void Core::keep_waiting(Tracked& pod, const HeldPtr& held) {
  if (pod.as<AwaitingClaims>() != nullptr) return;
  for (const placement::PreBindWrite& write : held->writes) bindings_by_claim[claim_key(write)].insert(held->entry.pod.uid);
  pod.enter(AwaitingClaims{held, out.at(held->claims_deadline, [this, held] { wait_for_claims(held); })});
}

void Core::stop_waiting(const Tracked& pod) {
  const AwaitingClaims* wait = pod.as<AwaitingClaims>();
  if (wait == nullptr) return;
  out.cancel(wait->deadline);
  for (const placement::PreBindWrite& write : wait->held->writes) {
    const auto found = bindings_by_claim.find(claim_key(write));
    if (found == bindings_by_claim.end()) continue;
    found->second.erase(wait->held->entry.pod.uid);
    if (found->second.empty()) bindings_by_claim.erase(found);
  }
}

void Core::look_again(const std::string& uid) {
  const auto found = pods.find(uid);
  if (found == pods.end() || found->second.as<AwaitingClaims>() == nullptr) return;
  // Later: whoever is told of the change first is to have it in the cluster.
  out.later([this, held = found->second.held()] { wait_for_claims(held); });
}

void Core::claim_moved(std::string_view resource, const client::Object& claim) {
  const auto found = bindings_by_claim.find(claim_key(resource, claim.ns(), claim.name()));
  if (found == bindings_by_claim.end()) return;
  for (const std::string& uid : found->second) look_again(uid);
}

/// Goes on to bind when all claims are bound, as the cache has them; looks again when one of them, or the pod, changes.
void Core::wait_for_claims(const HeldPtr& held) {
  Tracked* waiter = holder(held);
  if (waiter == nullptr || waiter->as<Binding>() != nullptr) return;
  const auto fail = [&](const std::string& why) { binding_failed(held, kVolumeStep, "binding volumes: " + why); };
  if (!is_leader) return fail("leadership was lost");
  const model::PodView& pod = held->info->view();
  const ObjectRef current = known(kPods, pod.meta.ns, pod.meta.name);
  if (current == nullptr || current->uid() != pod.meta.uid || current->is_deleting())
    return fail(fmt::format("pod does not exist any more: pod \"{}\" not found", pod.meta.name));
  for (std::size_t i = 0; i < held->writes.size(); ++i) {
    const placement::PreBindWrite& write = held->writes[i];
    if (!write.uid.empty()) {
      const ClaimState state = claim_state(held, i);
      if (state == ClaimState::kFailed) return;
      if (state == ClaimState::kReady) continue;
      return keep_waiting(*waiter, held);
    }
    if (!write.wait_bound || write.resource != "persistentvolumeclaims") continue;
    const ObjectRef claim = known(kClaims, write.ns, write.name);
    const bool wants_provisioning = json::find(write.merge_patch, {"metadata", "annotations", kSelectedNode}) != nullptr;
    if (claim == nullptr)
      return fail(fmt::format("failed to check {}: persistentvolumeclaims \"{}/{}\" not found",
                              wants_provisioning ? "provisioning pvc" : "binding", write.ns, write.name));
    const json::Value document = claim->document();
    const bool is_current = claim->revision() >= held->written_at[i];
    // A provisioner that cannot serve this node takes the annotation away.
    if (is_current && wants_provisioning && json::get_string(document, {"metadata", "annotations", kSelectedNode}) != held->node_name) {
      const bool has_any = !json::get_object(document, {"metadata", "annotations"}).empty();
      return fail(has_any ? fmt::format("provisioning failed for PVC \"{}\"", write.name)
                          : fmt::format("selectedNode annotation reset for PVC \"{}\"", write.name));
    }
    const bool is_bound = !json::get_string(document, {"spec", "volumeName"}).empty() &&
                          json::find(document, {"metadata", "annotations", placement::volumes::kBindCompleted}) != nullptr;
    if (is_current && is_bound) continue;
    if (now >= held->claims_deadline) return fail("context deadline exceeded");
    return keep_waiting(*waiter, held);
  }
  stop_waiting(*waiter);
  take_slot(*held);
  bind(held);
}

void Core::bind(const HeldPtr& held) {
  if (!is_leader) return binding_failed(held, {}, "leadership was lost");
  const model::PodView& pod = held->info->view();
  meters.point("PreBind", pod.scheduler_name, meters.since(held->step_started));
  held->step_started = meters.start();
  holder(held)->enter(Binding{held});
  if (extenders != nullptr && extenders->bind_for(pod)) return bind_by_extender(held);
  post_binding(held);
}

void Core::bind_by_extender(const HeldPtr& held) {
  out.ask<AskToBind>(
      [this, held](Answer& answer) {
        const auto& bound = std::get<Bound>(answer);
        if (!bound) return binding_failed(held, {}, bound.error().message);
        if (*bound) return binding_done(held);
        post_binding(held);
      },
      held->info, held->node_name);
}

void Core::post_binding(const HeldPtr& held) {
  auto chosen = held->framework->run_bind(held->reservation.state, *held->info, held->node_name);
  if (!chosen) return binding_failed(held, {"Bind", {}}, "no Bind plugin binds the pod");
  held->bind_plugin = chosen->first;
  placement::BindCall& wanted = chosen->second;
  client::Call call;
  call.verb = "create";
  call.gvr = client::Gvr{wanted.group, wanted.version, wanted.resource};
  call.ns = std::move(wanted.ns);
  call.name = std::move(wanted.name);
  call.subresource = std::move(wanted.subresource);
  call.body = std::move(wanted.body);
  call.answer = client::Answer::kNone;
  out.call(
      std::move(call),
      [this, held](client::ApiResult<json::Value> result) {
        if (result) return binding_done(held);
        if (client::is_uncertain(result.error())) return find_out(held, result.error().message);
        binding_failed(held, {"Bind", held->bind_plugin}, result.error().message);
      },
      held->span ? std::optional(held->span->context) : std::nullopt);
}

void Core::find_out(const HeldPtr& held, const std::string& why) {
  const model::PodView& pod = held->info->view();
  if (!held->is_assumed) return binding_failed(held, {"Bind", held->bind_plugin}, why);  // The watch knows already.
  out.get(kPods, pod.meta.ns, pod.meta.name, [this, held, why](const Answered& answer) {
    if (answer) {
      const bool is_bound = json::get_string(*answer, {"metadata", "uid"}) == held->info->view().meta.uid &&
                            !json::get_string(*answer, {"spec", "nodeName"}).empty();
      return is_bound ? binding_done(held) : binding_failed(held, {"Bind", held->bind_plugin}, why);
    }
    if (!client::is_uncertain(answer.error())) return binding_failed(held, {"Bind", held->bind_plugin}, why);
    out.at(now + std::chrono::seconds(1), [this, held, why] { find_out(held, why); });
  });
}

void Core::binding_done(const HeldPtr& held) {
  Tracked* bound = holder(held);
  BERTH_CHECK(bound != nullptr && bound->as<Binding>() != nullptr && !bound->as<Binding>()->is_answered,
              "{}: a binding is answered that is not under way", held->info->key);
  bound->as<Binding>()->is_answered = true;
  give_slot(*held);
  meters.end_span(*held, {});
  queue.done(held->entry.pod.uid);
  const model::PodView& pod = held->info->view();
  meters.point("Bind", pod.scheduler_name, meters.since(held->step_started));
  held->framework->run_post_bind(held->reservation.state, *held->info, held->node_name);
  meters.attempt("scheduled", *held->info, meters.since(held->started));
  out.report(pod.scheduler_name, reference(*held->object), "Normal", "Scheduled",
             fmt::format("Successfully assigned {} to {}", held->info->key, held->node_name), "Binding");
  meters.bound(*held, now);
  post_turn();
  if (!held->is_assumed) pods.erase(held->entry.pod.uid);
}

/// Claims and volumes that nobody counts on any more are what the watch shows, whoever reserved them on top of whom.
void Core::show_volumes_again(const Held& held) {
  for (const placement::PreBindWrite& write : held.writes) {
    const auto is_same = [&](const placement::PreBindWrite& other) {
      return other.resource == write.resource && other.ns == write.ns && other.name == write.name;
    };
    const bool is_claim = write.resource == kClaims.resource;
    if (!is_claim && write.resource != "persistentvolumes") continue;
    const bool is_held = std::ranges::any_of(pods, [&](const auto& pod) {
      const HeldPtr other = pod.second.held();
      return other != nullptr && other.get() != &held && std::ranges::any_of(other->writes, is_same);
    });
    const ObjectRef seen = is_held ? nullptr : known({write.group, "v1", write.resource}, write.ns, write.name);
    if (seen == nullptr) continue;
    json::Value document = seen->document();
    document.get_object()["kind"] = is_claim ? "PersistentVolumeClaim" : "PersistentVolume";
    cluster.upsert(document);
  }
}

void Core::give_place_back(const HeldPtr& held) {
  const placement::PodInfoPtr& info = held->info;
  const std::string& uid = held->entry.pod.uid;
  const ObjectRef current = known(kPods, info->view().meta.ns, info->view().meta.name);
  const bool is_bound = current != nullptr && current->uid() == uid && !PodGlance(current->text()).node_name.empty();
  if (!is_bound) {
    const TimePoint unreserving = meters.start();
    trial.undo(held->reservation);
    unreserve_claims(*held);
    show_volumes_again(*held);
    meters.point("Unreserve", info->view().scheduler_name, meters.since(unreserving));
  }
  const bool was_assumed = assume_no_more(uid);
  pods.erase(uid);
  if (!was_assumed) return;
  const placement::NodeInfo* node = cluster.node(held->node);
  if (node != nullptr) wake(ClusterEvent::kAssignedPodDeleted, held->node, {.pod_before = info.get()});
}

/// By value: what held the binding may let go of it here.
void Core::binding_failed(HeldPtr held, Step step, const std::string& why) {
  Tracked* holding = holder(held);
  if (holding == nullptr) return;
  give_slot(*held);
  meters.end_span(*held, why);
  const placement::PodInfoPtr& info = held->info;
  const std::string& uid = held->entry.pod.uid;
  (void)leave_permit(uid);
  stop_waiting(*holding);
  const ObjectRef current = known(kPods, info->view().meta.ns, info->view().meta.name);
  const bool is_bound = current != nullptr && current->uid() == uid && !PodGlance(current->text()).node_name.empty();
  const bool is_claims_own = step == kClaimStep;
  if (!step.point.empty() && !is_claims_own)
    meters.point(step.point == "Bind" ? "Bind" : "PreBind", info->view().scheduler_name, meters.since(held->step_started), "Error");
  if (step == kVolumeStep)
    meters.registry()
        .counter("scheduler_volume_scheduling_stage_error_total", "Volume scheduling stage error count", {{"operation", "bind"}})
        .add();
  give_place_back(held);
  const bool still_waits = current != nullptr && current->uid() == uid && !is_bound && !current->is_deleting();
  if (still_waits) {
    std::string message = step.plugin.empty() ? why : fmt::format("running {} plugin \"{}\": {}", step.point, step.plugin, why);
    if (cluster.era() == placement::Era::k120 && step.point != "PreBind") message = "binding rejected: " + message;
    log::warning("scheduler", "binding {} to {} failed: {}", info->key, held->node_name, message);
    meters.attempt("error", *info, meters.since(held->started));
    want_node(current, PodGlance(current->text()), nullptr);
    if (wanting(uid) != nullptr)
      queue.failed(uid, now);
    else
      queue.done(uid);
    if (is_leader) report_error(info, message, !held->writes.empty());
  } else {
    queue.done(uid);
  }
  post_turn();
}

}  // namespace berth::scheduler
