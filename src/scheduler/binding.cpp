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

void Scheduler::Impl::take_slot(Binding& binding) {
  if (binding.holds_slot) return;
  binding.holds_slot = true;
  ++bindings_in_flight;
}

void Scheduler::Impl::begin_span(Binding& binding) {
  if (!options.tracer) return;
  const model::PodView& pod = binding.info->view();
  auto& span =
      binding.span.emplace(options.tracer->begin("Schedule pod", net::tracing::SpanKind::kInternal, options.tracer->way_of(pod.meta.uid)));
  span.start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(binding.started.time_since_epoch()).count();
  span.attributes = {{"k8s.namespace.name", pod.meta.ns},
                     {"k8s.pod.name", pod.meta.name},
                     {"k8s.pod.uid", pod.meta.uid},
                     {"k8s.node.name", binding.node_name},
                     {"scheduler.profile", pod.scheduler_name},
                     {"scheduler.attempts", std::int64_t{binding.entry.attempts}}};
}

void Scheduler::Impl::end_span(Binding& binding, const std::string& error) {
  if (!binding.span) return;
  binding.span->error = error;
  options.tracer->end(std::move(*binding.span));
  binding.span.reset();
}

void Scheduler::Impl::give_slot(Binding& binding) {
  if (!binding.holds_slot) return;
  binding.holds_slot = false;
  BERTH_CHECK(bindings_in_flight > 0, "{}: a binding ends that does not count among those under way", binding.info->key);
  --bindings_in_flight;
}

void Scheduler::Impl::announce(const BindingPtr& binding) {
  if (binding->writes.empty()) return bind(binding);
  if (cluster.era() == placement::Era::k120) return next_pre_bind(binding);
  const model::PodView& pod = binding->info->view();
  pre_binding[pod.meta.uid] = binding;
  client.patch(
      kPods, pod.meta.ns, pod.meta.name, client::PatchType::kMerge,
      {{"metadata", {{"uid", pod.meta.uid}}}, {"status", {{"nominatedNodeName", binding->node_name}}}},
      [weak = weak_from_this(), binding](const client::ApiResult<json::Value>&) {
        if (const auto self = weak.lock()) self->next_pre_bind(binding);  // Only an announcement: whatever the answer.
      },
      "status");
}

void Scheduler::Impl::next_pre_bind(const BindingPtr& binding) {
  if (binding->is_over) return;
  if (!is_leader) return binding_failed(binding, {}, "leadership was lost");
  if (binding->written == binding->writes.size()) {
    binding->claims_deadline = loop.now() + std::chrono::seconds(binding->framework->profile().args.volume_binding.bind_timeout_seconds);
    give_slot(*binding);  // However long volumes take, other pods go on.
    post_turn();
    return wait_for_claims(binding);
  }
  const placement::PreBindWrite& write = binding->writes[binding->written];
  if (!write.to_create.is_null()) return create_claim(binding);
  if (!write.uid.empty()) {
    const ObjectRef claim = informers.get(kResourceClaims).get(write.ns, write.name);
    return claim != nullptr ? bind_claim(binding, claim->document(), 0) : read_claim(binding, 0);
  }
  client::Call call;
  call.verb = "patch";
  call.gvr = {write.group, "v1", write.resource};
  call.ns = write.ns;
  call.name = write.name;
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(write.merge_patch);
  call.answer = client::Answer::kIdentity;
  client.call(std::move(call), [weak = weak_from_this(), binding](client::ApiResult<json::Value> result) {
    const auto self = weak.lock();
    if (!self || binding->is_over) return;
    if (!result) return self->binding_failed(binding, {"PreBind", binding->writes[binding->written].plugin}, result.error().message);
    std::int64_t revision = 0;
    const std::string text(json::get_string(*result, {"metadata", "resourceVersion"}));
    (void)std::from_chars(text.data(), text.data() + text.size(), revision);
    binding->written_at.push_back(revision);
    ++binding->written;
    self->next_pre_bind(binding);
  });
}

void Scheduler::Impl::keep_waiting(const BindingPtr& binding) {
  const std::string& uid = binding->entry.pod.uid;
  if (!waiting_for_claims.emplace(uid, binding).second) return;
  for (const placement::PreBindWrite& write : binding->writes) bindings_by_claim[claim_key(write)].insert(uid);
  binding->deadline = loop.schedule_at(binding->claims_deadline, [weak = weak_from_this(), binding] {
    if (const auto self = weak.lock()) self->wait_for_claims(binding);
  });
}

void Scheduler::Impl::stop_waiting(const Binding& binding) {
  if (waiting_for_claims.erase(binding.entry.pod.uid) == 0) return;
  loop.cancel(binding.deadline);
  for (const placement::PreBindWrite& write : binding.writes) {
    const auto found = bindings_by_claim.find(claim_key(write));
    if (found == bindings_by_claim.end()) continue;
    found->second.erase(binding.entry.pod.uid);
    if (found->second.empty()) bindings_by_claim.erase(found);
  }
}

void Scheduler::Impl::look_again(const std::string& uid) {
  const auto found = waiting_for_claims.find(uid);
  if (found == waiting_for_claims.end()) return;
  // Later: whoever is told of the change first is to have it in the cluster.
  loop.post([weak = weak_from_this(), binding = found->second] {
    if (const auto self = weak.lock()) self->wait_for_claims(binding);
  });
}

void Scheduler::Impl::claim_moved(std::string_view resource, const client::Object& claim) {
  const auto found = bindings_by_claim.find(claim_key(resource, claim.ns(), claim.name()));
  if (found == bindings_by_claim.end()) return;
  for (const std::string& uid : found->second) look_again(uid);
}

/// Goes on to bind when all claims are bound, as the cache has them; looks again when one of them, or the pod, changes.
void Scheduler::Impl::wait_for_claims(const BindingPtr& binding) {
  if (binding->is_over || binding->has_its_claims) return;
  const auto fail = [&](const std::string& why) { binding_failed(binding, kVolumeStep, "binding volumes: " + why); };
  if (!is_leader) return fail("leadership was lost");
  const model::PodView& pod = binding->info->view();
  const ObjectRef now = informers.get(kPods).get(pod.meta.ns, pod.meta.name);
  if (now == nullptr || now->uid() != pod.meta.uid || now->is_deleting())
    return fail(fmt::format("pod does not exist any more: pod \"{}\" not found", pod.meta.name));
  for (std::size_t i = 0; i < binding->writes.size(); ++i) {
    const placement::PreBindWrite& write = binding->writes[i];
    if (!write.uid.empty()) {
      const ClaimState state = claim_state(binding, i);
      if (state == ClaimState::kFailed) return;
      if (state == ClaimState::kReady) continue;
      return keep_waiting(binding);
    }
    if (!write.wait_bound || write.resource != "persistentvolumeclaims") continue;
    const ObjectRef claim = informers.get(kClaims).get(write.ns, write.name);
    const bool wants_provisioning = json::find(write.merge_patch, {"metadata", "annotations", kSelectedNode}) != nullptr;
    if (claim == nullptr)
      return fail(fmt::format("failed to check {}: persistentvolumeclaims \"{}/{}\" not found",
                              wants_provisioning ? "provisioning pvc" : "binding", write.ns, write.name));
    const json::Value document = claim->document();
    const bool is_current = claim->revision() >= binding->written_at[i];
    // A provisioner that cannot serve this node takes the annotation away.
    if (is_current && wants_provisioning && json::get_string(document, {"metadata", "annotations", kSelectedNode}) != binding->node_name) {
      const bool has_any = !json::get_object(document, {"metadata", "annotations"}).empty();
      return fail(has_any ? fmt::format("provisioning failed for PVC \"{}\"", write.name)
                          : fmt::format("selectedNode annotation reset for PVC \"{}\"", write.name));
    }
    const bool is_bound = !json::get_string(document, {"spec", "volumeName"}).empty() &&
                          json::find(document, {"metadata", "annotations", placement::volumes::kBindCompleted}) != nullptr;
    if (is_current && is_bound) continue;
    if (loop.now() >= binding->claims_deadline) return fail("context deadline exceeded");
    return keep_waiting(binding);
  }
  binding->has_its_claims = true;
  stop_waiting(*binding);
  take_slot(*binding);
  bind(binding);
}

void Scheduler::Impl::bind(const BindingPtr& binding) {
  if (!is_leader) return binding_failed(binding, {}, "leadership was lost");
  const model::PodView& pod = binding->info->view();
  observe_point("PreBind", pod.scheduler_name, seconds_since(binding->step_started));
  binding->step_started = loop.now();
  pre_binding.erase(pod.meta.uid);
  if (extenders != nullptr && extenders->bind_for(pod)) return bind_by_extender(binding);
  post_binding(binding);
}

void Scheduler::Impl::bind_by_extender(const BindingPtr& binding) {
  binder->run([extenders = extenders, view = binding->info->pod, node = binding->node_name, weak = weak_from_this(), binding] {
    const Result<bool> bound = extenders->bind(*view, node);
    return [weak, binding, bound] {
      const auto self = weak.lock();
      if (!self) return;
      if (!bound) return self->binding_failed(binding, {}, bound.error().message);
      if (*bound) return self->binding_done(*binding);
      self->post_binding(binding);
    };
  });
}

void Scheduler::Impl::post_binding(const BindingPtr& binding) {
  auto chosen = binding->framework->run_bind(binding->reservation.state, *binding->info, binding->node_name);
  if (!chosen) return binding_failed(binding, {"Bind", {}}, "no Bind plugin binds the pod");
  binding->bind_plugin = chosen->first;
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
  if (binding->span) scope.emplace(binding->span->context);
  client.call(std::move(call), [weak = weak_from_this(), binding](client::ApiResult<json::Value> result) {
    const auto self = weak.lock();
    if (!self) return;
    if (result) return self->binding_done(*binding);
    if (client::is_uncertain(result.error())) return self->find_out(binding, result.error().message);
    self->binding_failed(binding, {"Bind", binding->bind_plugin}, result.error().message);
  });
}

void Scheduler::Impl::find_out(const BindingPtr& binding, const std::string& why) {
  const model::PodView& pod = binding->info->view();
  if (!assumed.contains(pod.meta.uid)) return binding_failed(binding, {"Bind", binding->bind_plugin}, why);  // The watch knows already.
  client.get(kPods, pod.meta.ns, pod.meta.name, [weak = weak_from_this(), binding, why](const client::ApiResult<json::Value>& now) {
    const auto self = weak.lock();
    if (!self) return;
    if (now) {
      const bool is_bound = json::get_string(*now, {"metadata", "uid"}) == binding->info->view().meta.uid &&
                            !json::get_string(*now, {"spec", "nodeName"}).empty();
      return is_bound ? self->binding_done(*binding) : self->binding_failed(binding, {"Bind", binding->bind_plugin}, why);
    }
    if (!client::is_uncertain(now.error())) return self->binding_failed(binding, {"Bind", binding->bind_plugin}, why);
    self->loop.schedule_after(std::chrono::seconds(1), [weak, binding, why] {
      if (const auto later = weak.lock()) later->find_out(binding, why);
    });
  });
}

void Scheduler::Impl::binding_done(Binding& binding) {
  give_slot(binding);
  end_span(binding, {});
  queue.done(binding.entry.pod.uid);
  const model::PodView& pod = binding.info->view();
  observe_point("Bind", pod.scheduler_name, seconds_since(binding.step_started));
  binding.framework->run_post_bind(binding.reservation.state, *binding.info, binding.node_name);
  observe("scheduled", binding.info, seconds_since(binding.started));
  recorder(pod.scheduler_name)
      .event(reference(*binding.object), "Normal", "Scheduled",
             fmt::format("Successfully assigned {} to {}", binding.info->key, binding.node_name), "Binding");
  registry->histogram("scheduler_pod_scheduling_attempts", "Number of attempts to successfully schedule a pod.", {1, 2, 4, 8, 16})
      .observe(binding.entry.attempts);
  registry
      ->histogram("scheduler_pod_scheduling_sli_duration_seconds",
                  "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue.",
                  metrics::exponential_buckets(0.01, 2, 20),
                  {{"attempts", binding.entry.attempts >= 15 ? "15+" : fmt::format("{}", binding.entry.attempts)}})
      .observe(static_cast<double>((loop.now() - binding.entry.first_attempt).count()) / 1e6);
  if (binding.entry.waited_in_vain)
    registry
        ->counter("scheduler_pod_scheduled_after_flush_total",
                  "Number of pods successfully scheduled after being flushed from unschedulablePods due to timeout.")
        .add();
  post_turn();
}

void Scheduler::Impl::give_place_back(Binding& binding) {
  const placement::PodInfoPtr& info = binding.info;
  const std::string& uid = binding.entry.pod.uid;
  const ObjectRef now = informers.get(kPods).get(info->view().meta.ns, info->view().meta.name);
  const bool is_bound = now != nullptr && now->uid() == uid && !PodGlance(now->bytes()).node_name.empty();
  if (!is_bound) {
    const TimePoint unreserving = loop.now();
    trial.undo(binding.reservation);
    unreserve_claims(binding);
    observe_point("Unreserve", info->view().scheduler_name, seconds_since(unreserving));
  }
  if (assumed.erase(uid) == 0) return;
  const placement::NodeInfo* node = cluster.node(binding.node);
  if (node != nullptr) wake(ClusterEvent::kAssignedPodDeleted, binding.node, {.pod_before = info.get()});
}

/// By value: what held the binding may let go of it here.
void Scheduler::Impl::binding_failed(BindingPtr binding, Step step, const std::string& why) {
  if (std::exchange(binding->is_over, true)) return;
  give_slot(*binding);
  end_span(*binding, why);
  const placement::PodInfoPtr& info = binding->info;
  const std::string& uid = binding->entry.pod.uid;
  pre_binding.erase(uid);
  (void)leave_permit(uid);
  stop_waiting(*binding);
  const ObjectRef now = informers.get(kPods).get(info->view().meta.ns, info->view().meta.name);
  const bool is_bound = now != nullptr && now->uid() == uid && !PodGlance(now->bytes()).node_name.empty();
  const bool is_claims_own = step == kClaimStep;
  if (!step.point.empty() && !is_claims_own)
    observe_point(step.point == "Bind" ? "Bind" : "PreBind", info->view().scheduler_name, seconds_since(binding->step_started), "Error");
  if (step == kVolumeStep)
    registry->counter("scheduler_volume_scheduling_stage_error_total", "Volume scheduling stage error count", {{"operation", "bind"}})
        .add();
  give_place_back(*binding);
  const bool still_waits = now != nullptr && now->uid() == uid && !is_bound && !now->is_deleting();
  if (still_waits) {
    std::string message = step.plugin.empty() ? why : fmt::format("running {} plugin \"{}\": {}", step.point, step.plugin, why);
    if (cluster.era() == placement::Era::k120 && step.point != "PreBind") message = "binding rejected: " + message;
    log::warning("scheduler", "binding {} to {} failed: {}", info->key, binding->node_name, message);
    observe("error", info, seconds_since(binding->started));
    want_node(now, PodGlance(now->bytes()), nullptr);
    queue.failed(uid, loop.now());
    if (is_leader) report_error(info, message, !binding->writes.empty());
  } else {
    queue.done(uid);
  }
  post_turn();
}

}  // namespace berth::scheduler
