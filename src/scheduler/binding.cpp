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
#include "scheduler/scheduler_impl.h"

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

void Scheduler::Impl::take_slot(Held& held) {
  if (held.holds_slot) return;
  held.holds_slot = true;
  ++bindings_in_flight;
}

void Scheduler::Impl::begin_span(Held& held) {
  if (!options.tracer) return;
  const model::PodView& pod = held.info->view();
  auto& span =
      held.span.emplace(options.tracer->begin("Schedule pod", net::tracing::SpanKind::kInternal, options.tracer->way_of(pod.meta.uid)));
  span.start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(held.started.time_since_epoch()).count();
  span.attributes = {{"k8s.namespace.name", pod.meta.ns},
                     {"k8s.pod.name", pod.meta.name},
                     {"k8s.pod.uid", pod.meta.uid},
                     {"k8s.node.name", held.node_name},
                     {"scheduler.profile", pod.scheduler_name},
                     {"scheduler.attempts", std::int64_t{held.entry.attempts}}};
}

void Scheduler::Impl::end_span(Held& held, const std::string& error) {
  if (!held.span) return;
  held.span->error = error;
  options.tracer->end(std::move(*held.span));
  held.span.reset();
}

void Scheduler::Impl::give_slot(Held& held) {
  if (!held.holds_slot) return;
  held.holds_slot = false;
  BERTH_CHECK(bindings_in_flight > 0, "{}: a binding ends that does not count among those under way", held.info->key);
  --bindings_in_flight;
}

void Scheduler::Impl::announce(const HeldPtr& held) {
  holder(held)->enter(PreBinding{held});
  if (held->writes.empty()) return bind(held);
  if (cluster.era() == placement::Era::k120) return next_pre_bind(held);
  const model::PodView& pod = held->info->view();
  client.patch(
      kPods, pod.meta.ns, pod.meta.name, client::PatchType::kMerge,
      {{"metadata", {{"uid", pod.meta.uid}}}, {"status", {{"nominatedNodeName", held->node_name}}}},
      [weak = weak_from_this(), held](const client::ApiResult<json::Value>&) {
        if (const auto self = weak.lock()) self->next_pre_bind(held);  // Only an announcement: whatever the answer.
      },
      "status");
}

void Scheduler::Impl::next_pre_bind(const HeldPtr& held) {
  if (holder(held) == nullptr) return;
  if (!is_leader) return binding_failed(held, {}, "leadership was lost");
  if (held->written == held->writes.size()) {
    held->claims_deadline = loop.now() + std::chrono::seconds(held->framework->profile().args.volume_binding.bind_timeout_seconds);
    give_slot(*held);  // However long volumes take, other pods go on.
    post_turn();
    return wait_for_claims(held);
  }
  const placement::PreBindWrite& write = held->writes[held->written];
  if (!write.to_create.is_null()) return create_claim(held);
  if (!write.uid.empty()) {
    const ObjectRef claim = informers.get(kResourceClaims).get(write.ns, write.name);
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
  client.call(std::move(call), [weak = weak_from_this(), held](client::ApiResult<json::Value> result) {
    const auto self = weak.lock();
    if (!self || self->holder(held) == nullptr) return;
    if (!result) return self->binding_failed(held, {"PreBind", held->writes[held->written].plugin}, result.error().message);
    std::int64_t revision = 0;
    const std::string text(json::get_string(*result, {"metadata", "resourceVersion"}));
    (void)std::from_chars(text.data(), text.data() + text.size(), revision);
    held->written_at.push_back(revision);
    ++held->written;
    self->next_pre_bind(held);
  });
}

void Scheduler::Impl::keep_waiting(Tracked& pod, const HeldPtr& held) {
  if (pod.as<AwaitingClaims>() != nullptr) return;
  for (const placement::PreBindWrite& write : held->writes) bindings_by_claim[claim_key(write)].insert(held->entry.pod.uid);
  pod.enter(AwaitingClaims{held, loop.schedule_at(held->claims_deadline, [weak = weak_from_this(), held] {
                             if (const auto self = weak.lock()) self->wait_for_claims(held);
                           })});
}

void Scheduler::Impl::stop_waiting(const Tracked& pod) {
  const AwaitingClaims* wait = pod.as<AwaitingClaims>();
  if (wait == nullptr) return;
  loop.cancel(wait->deadline);
  for (const placement::PreBindWrite& write : wait->held->writes) {
    const auto found = bindings_by_claim.find(claim_key(write));
    if (found == bindings_by_claim.end()) continue;
    found->second.erase(wait->held->entry.pod.uid);
    if (found->second.empty()) bindings_by_claim.erase(found);
  }
}

void Scheduler::Impl::look_again(const std::string& uid) {
  const auto found = pods.find(uid);
  if (found == pods.end() || found->second.as<AwaitingClaims>() == nullptr) return;
  // Later: whoever is told of the change first is to have it in the cluster.
  loop.post([weak = weak_from_this(), held = found->second.held()] {
    if (const auto self = weak.lock()) self->wait_for_claims(held);
  });
}

void Scheduler::Impl::claim_moved(std::string_view resource, const client::Object& claim) {
  const auto found = bindings_by_claim.find(claim_key(resource, claim.ns(), claim.name()));
  if (found == bindings_by_claim.end()) return;
  for (const std::string& uid : found->second) look_again(uid);
}

/// Goes on to bind when all claims are bound, as the cache has them; looks again when one of them, or the pod, changes.
void Scheduler::Impl::wait_for_claims(const HeldPtr& held) {
  Tracked* waiter = holder(held);
  if (waiter == nullptr || waiter->as<Binding>() != nullptr) return;
  const auto fail = [&](const std::string& why) { binding_failed(held, kVolumeStep, "binding volumes: " + why); };
  if (!is_leader) return fail("leadership was lost");
  const model::PodView& pod = held->info->view();
  const ObjectRef now = informers.get(kPods).get(pod.meta.ns, pod.meta.name);
  if (now == nullptr || now->uid() != pod.meta.uid || now->is_deleting())
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
    const ObjectRef claim = informers.get(kClaims).get(write.ns, write.name);
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
    if (loop.now() >= held->claims_deadline) return fail("context deadline exceeded");
    return keep_waiting(*waiter, held);
  }
  stop_waiting(*waiter);
  take_slot(*held);
  bind(held);
}

void Scheduler::Impl::bind(const HeldPtr& held) {
  if (!is_leader) return binding_failed(held, {}, "leadership was lost");
  const model::PodView& pod = held->info->view();
  observe_point("PreBind", pod.scheduler_name, seconds_since(held->step_started));
  held->step_started = loop.now();
  holder(held)->enter(Binding{held});
  if (extenders != nullptr && extenders->bind_for(pod)) return bind_by_extender(held);
  post_binding(held);
}

void Scheduler::Impl::bind_by_extender(const HeldPtr& held) {
  binder->run([extenders = extenders, view = held->info->pod, node = held->node_name, weak = weak_from_this(), held] {
    const Result<bool> bound = extenders->bind(*view, node);
    return [weak, held, bound] {
      const auto self = weak.lock();
      if (!self) return;
      if (!bound) return self->binding_failed(held, {}, bound.error().message);
      if (*bound) return self->binding_done(held);
      self->post_binding(held);
    };
  });
}

void Scheduler::Impl::post_binding(const HeldPtr& held) {
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
  std::optional<net::tracing::Scope> scope;
  if (held->span) scope.emplace(held->span->context);
  client.call(std::move(call), [weak = weak_from_this(), held](client::ApiResult<json::Value> result) {
    const auto self = weak.lock();
    if (!self) return;
    if (result) return self->binding_done(held);
    if (client::is_uncertain(result.error())) return self->find_out(held, result.error().message);
    self->binding_failed(held, {"Bind", held->bind_plugin}, result.error().message);
  });
}

void Scheduler::Impl::find_out(const HeldPtr& held, const std::string& why) {
  const model::PodView& pod = held->info->view();
  if (!held->is_assumed) return binding_failed(held, {"Bind", held->bind_plugin}, why);  // The watch knows already.
  client.get(kPods, pod.meta.ns, pod.meta.name, [weak = weak_from_this(), held, why](const client::ApiResult<json::Value>& now) {
    const auto self = weak.lock();
    if (!self) return;
    if (now) {
      const bool is_bound = json::get_string(*now, {"metadata", "uid"}) == held->info->view().meta.uid &&
                            !json::get_string(*now, {"spec", "nodeName"}).empty();
      return is_bound ? self->binding_done(held) : self->binding_failed(held, {"Bind", held->bind_plugin}, why);
    }
    if (!client::is_uncertain(now.error())) return self->binding_failed(held, {"Bind", held->bind_plugin}, why);
    self->loop.schedule_after(std::chrono::seconds(1), [weak, held, why] {
      if (const auto later = weak.lock()) later->find_out(held, why);
    });
  });
}

void Scheduler::Impl::binding_done(const HeldPtr& held) {
  Tracked* bound = holder(held);
  BERTH_CHECK(bound != nullptr && bound->as<Binding>() != nullptr && !bound->as<Binding>()->is_answered,
              "{}: a binding is answered that is not under way", held->info->key);
  bound->as<Binding>()->is_answered = true;
  give_slot(*held);
  end_span(*held, {});
  queue.done(held->entry.pod.uid);
  const model::PodView& pod = held->info->view();
  observe_point("Bind", pod.scheduler_name, seconds_since(held->step_started));
  held->framework->run_post_bind(held->reservation.state, *held->info, held->node_name);
  observe("scheduled", held->info, seconds_since(held->started));
  recorder(pod.scheduler_name)
      .event(reference(*held->object), "Normal", "Scheduled",
             fmt::format("Successfully assigned {} to {}", held->info->key, held->node_name), "Binding");
  registry->histogram("scheduler_pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", {1, 2, 4, 8, 16})
      .observe(held->entry.attempts);
  registry
      ->histogram("scheduler_pod_scheduling_sli_duration_seconds",
                  "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue.",
                  metrics::exponential_buckets(0.01, 2, 20),
                  {{"attempts", held->entry.attempts >= 15 ? "15+" : fmt::format("{}", held->entry.attempts)}})
      .observe(static_cast<double>((loop.now() - held->entry.first_attempt).count()) / 1e6);
  if (held->entry.waited_in_vain)
    registry
        ->counter("scheduler_pod_scheduled_after_flush_total",
                  "Number of pods successfully scheduled after being flushed from unschedulablePods due to timeout.")
        .add();
  post_turn();
  if (!held->is_assumed) pods.erase(held->entry.pod.uid);
}

void Scheduler::Impl::give_place_back(const HeldPtr& held) {
  const placement::PodInfoPtr& info = held->info;
  const std::string& uid = held->entry.pod.uid;
  const ObjectRef now = informers.get(kPods).get(info->view().meta.ns, info->view().meta.name);
  const bool is_bound = now != nullptr && now->uid() == uid && !PodGlance(now->bytes()).node_name.empty();
  if (!is_bound) {
    const TimePoint unreserving = loop.now();
    trial.undo(held->reservation);
    unreserve_claims(*held);
    observe_point("Unreserve", info->view().scheduler_name, seconds_since(unreserving));
  }
  const bool was_assumed = assume_no_more(uid);
  pods.erase(uid);
  if (!was_assumed) return;
  const placement::NodeInfo* node = cluster.node(held->node);
  if (node != nullptr) wake(ClusterEvent::kAssignedPodDeleted, held->node, {.pod_before = info.get()});
}

/// By value: what held the binding may let go of it here.
void Scheduler::Impl::binding_failed(HeldPtr held, Step step, const std::string& why) {
  Tracked* holding = holder(held);
  if (holding == nullptr) return;
  give_slot(*held);
  end_span(*held, why);
  const placement::PodInfoPtr& info = held->info;
  const std::string& uid = held->entry.pod.uid;
  (void)leave_permit(uid);
  stop_waiting(*holding);
  const ObjectRef now = informers.get(kPods).get(info->view().meta.ns, info->view().meta.name);
  const bool is_bound = now != nullptr && now->uid() == uid && !PodGlance(now->bytes()).node_name.empty();
  const bool is_claims_own = step == kClaimStep;
  if (!step.point.empty() && !is_claims_own)
    observe_point(step.point == "Bind" ? "Bind" : "PreBind", info->view().scheduler_name, seconds_since(held->step_started), "Error");
  if (step == kVolumeStep)
    registry->counter("scheduler_volume_scheduling_stage_error_total", "Volume scheduling stage error count", {{"operation", "bind"}})
        .add();
  give_place_back(held);
  const bool still_waits = now != nullptr && now->uid() == uid && !is_bound && !now->is_deleting();
  if (still_waits) {
    std::string message = step.plugin.empty() ? why : fmt::format("running {} plugin \"{}\": {}", step.point, step.plugin, why);
    if (cluster.era() == placement::Era::k120 && step.point != "PreBind") message = "binding rejected: " + message;
    log::warning("scheduler", "binding {} to {} failed: {}", info->key, held->node_name, message);
    observe("error", info, seconds_since(held->started));
    want_node(now, PodGlance(now->bytes()), nullptr);
    if (wanting(uid) != nullptr)
      queue.failed(uid, loop.now());
    else
      queue.done(uid);
    if (is_leader) report_error(info, message, !held->writes.empty());
  } else {
    queue.done(uid);
  }
  post_turn();
}

}  // namespace berth::scheduler
