// What binding does with a pod's resource claims: the devices that were decided become the claim's own, and the pod one of its users.
//
//   (creation) --> finalizer --> allocation and reservation --> conditions of the devices hold?
//                      ^                 |                            | failed, or too late: unreserve, try again
//                      +-- conflict: read the claim again ------------+
//
// Created is the claim for what containers ask for by the name of a resource that a class backs; the pod's status names it.
#include <fmt/format.h>

#include "base/log.h"
#include "placement/devices/binding.h"
#include "placement/plugins/pod_claims.h"
#include "scheduler/core.h"

namespace berth::scheduler {

using client::ObjectRef;

namespace {

constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";
constexpr int kMaxConflicts = 5;

bool uses(const model::PodView& pod, const placement::Cluster& cluster, std::string_view claim_uid) {
  const auto claims = placement::claims_of(pod, cluster);
  return claims && std::ranges::any_of(*claims, [&](const auto& claim) { return claim->meta.uid == claim_uid; });
}

/// The document has the devices that were decided: another pod of the group was faster.
bool has_devices(const json::Value& document, const model::Allocation& decided) {
  const auto results = [](const json::Value& allocation) { return json::get_array(allocation, {"devices", "results"}); };
  const json::Value* there = json::find(document, {"status", "allocation"});
  return there != nullptr && json::equal(json::Value(results(*there)), json::Value(results(decided.document)));
}

/// What was written counts until the watch shows it, also for others of the group.
void keep_pending(placement::Cluster& cluster, const placement::PreBindWrite& write, const json::Object& user) {
  if (cluster.pending_allocation(write.uid) == write.allocation) return cluster.hold_pending_allocation(write.uid, write.allocation);
  const bool is_shared = json::as_view(user.at("resource")) == "podgroups";
  cluster.set_pending_allocation(write.uid, write.allocation, is_shared ? std::string(json::as_view(user.at("name"))) : std::string());
}

bool is_reserved_for(const json::Value& document, std::string_view uid) {
  return std::ranges::any_of(json::get_array(document, {"status", "reservedFor"}),
                             [&](const json::Value& one) { return json::get_string(one, {"uid"}) == uid; });
}

}  // namespace

json::Object Core::user_of_claim(const model::PodView& pod, const std::string& claim) const {
  const placement::PodGroupPtr group = groups.find(groups.group_of(pod.meta.uid));
  for (const auto& entry : pod.resource_claims) {
    if (group == nullptr || (entry.claim_name.empty() ? entry.made_name : entry.claim_name) != claim) continue;
    if (std::ranges::find(group->claims, placement::GroupClaim{entry.name, entry.claim_name, entry.template_name}) == group->claims.end())
      continue;
    return {{"apiGroup", "scheduling.k8s.io"}, {"resource", "podgroups"}, {"name", group->name}, {"uid", group->uid}};
  }
  return {{"resource", "pods"}, {"name", pod.meta.name}, {"uid", pod.meta.uid}};
}

/// From here on the binding knows the claim by its own name and uid.
void Core::create_claim(const HeldPtr& held) {
  const placement::PreBindWrite& write = held->writes[held->written];
  out.create(kResourceClaims, write.ns, write.to_create, [this, held](client::ApiResult<json::Value> made) {
    placement::PreBindWrite& mine = held->writes[held->written];
    if (!made) {
      if (holder(held) != nullptr)
        binding_failed(held, kClaimStep,
                       fmt::format("create claim for extended resources {}/<extended-resources>: {}", mine.ns, made.error().message));
      return;
    }
    const std::string uid(json::get_string(*made, {"metadata", "uid"})), name(json::get_string(*made, {"metadata", "name"}));
    if (holder(held) == nullptr) return delete_claim(mine.ns, name, uid);
    cluster.set_pending_allocation(mine.uid, nullptr);
    cluster.set_pending_allocation(uid, mine.allocation);
    mine.uid = uid;
    mine.name = name;
    mine.to_create = nullptr;
    bind_claim(held, std::move(*made), 0);
  });
}

/// One step of writing the claim that `written` points at; `document` is the claim as it is known now.
void Core::bind_claim(const HeldPtr& held, json::Value document, int conflicts) {
  const placement::PreBindWrite& write = held->writes[held->written];
  const std::string key = fmt::format("{}/{}", write.ns, write.name);
  const auto fail = [&](const std::string& why) { binding_failed(held, kClaimStep, why); };
  if (json::find(document, {"metadata", "deletionTimestamp"}) != nullptr || json::get_string(document, {"metadata", "uid"}) != write.uid)
    return fail(fmt::format("claim {} got deleted in the meantime", key));
  const bool is_allocated = json::find(document, {"status", "allocation"}) != nullptr;
  const bool is_done = write.allocation != nullptr && is_allocated && has_devices(document, *write.allocation);
  const bool allocates = write.allocation != nullptr && !is_done;
  if (allocates && is_allocated) return fail(fmt::format("claim {} got allocated elsewhere in the meantime", key));
  if (write.allocation == nullptr && !is_allocated) return fail(fmt::format("claim {} got deallocated elsewhere in the meantime", key));

  json::Object user = user_of_claim(held->info->view(), write.name);
  if (!allocates && is_reserved_for(document, json::as_view(user["uid"]))) return claim_is_bound(held, document);
  const auto& finalizers = json::get_array(document, {"metadata", "finalizers"});
  const bool adds_finalizer =
      allocates && std::ranges::none_of(finalizers, [](const auto& one) { return one.is_string() && json::as_view(one) == kFinalizer; });
  if (adds_finalizer) {
    json::Array list = finalizers;
    list.emplace_back(kFinalizer);
    json::set(document, {"metadata", "finalizers"}, std::move(list));
  } else {
    if (allocates) {
      json::set(document, {"status", "allocation"}, write.allocation->document);
      json::set(document, {"status", "allocation", "allocationTimestamp"}, json::Value(format_rfc3339(now)));
    }
    json::Array users = json::get_array(document, {"status", "reservedFor"});
    users.emplace_back(std::move(user));
    json::set(document, {"status", "reservedFor"}, std::move(users));
  }
  // The items of a list leave out what the list says.
  json::set(document, {"apiVersion"}, "resource.k8s.io/v1");
  json::set(document, {"kind"}, "ResourceClaim");
  const std::string what = adds_finalizer ? fmt::format("add finalizer to claim {}", key)
                           : allocates    ? fmt::format("add allocation and reservation to claim {}", key)
                                          : fmt::format("add reservation to claim {}", key);
  out.update(
      kResourceClaims, write.ns, write.name, document,
      [this, held, what, conflicts, adds_finalizer](client::ApiResult<json::Value> result) {
        if (holder(held) == nullptr) return;
        if (result && adds_finalizer) return bind_claim(held, std::move(*result), conflicts);
        if (result) return claim_is_bound(held, *result);
        if (result.error().code != 409 || conflicts >= kMaxConflicts)
          return binding_failed(held, kClaimStep, fmt::format("{}: {}", what, result.error().message));
        read_claim(held, conflicts + 1);
      },
      adds_finalizer ? "" : "status");
}

void Core::read_claim(const HeldPtr& held, int conflicts) {
  const placement::PreBindWrite& write = held->writes[held->written];
  out.get(kResourceClaims, write.ns, write.name, [this, held, conflicts](client::ApiResult<json::Value> result) {
    if (holder(held) == nullptr) return;
    if (!result) return binding_failed(held, kClaimStep, result.error().message);
    bind_claim(held, std::move(*result), conflicts);
  });
}

void Core::claim_is_bound(const HeldPtr& held, const json::Value& claim) {
  std::int64_t revision = 0;
  const std::string text(json::get_string(claim, {"metadata", "resourceVersion"}));
  (void)std::from_chars(text.data(), text.data() + text.size(), revision);
  held->written_at.push_back(revision);
  const placement::PreBindWrite& write = held->writes[held->written++];
  if (!write.pod_status.empty()) return tell_of_claim(held, write);
  next_pre_bind(held);
}

/// The pod's status names the claim that was made for it.
void Core::tell_of_claim(const HeldPtr& held, const placement::PreBindWrite& write) {
  json::Value status(write.pod_status);
  json::set(status, {"extendedResourceClaimStatus", "resourceClaimName"}, json::Value(write.name));
  const model::PodView& pod = held->info->view();
  out.patch(
      kPods, pod.meta.ns, pod.meta.name, client::PatchType::kMerge, {{"metadata", {{"uid", pod.meta.uid}}}, {"status", std::move(status)}},
      [this, held](const client::ApiResult<json::Value>& answer) {
        if (holder(held) == nullptr) return;
        if (answer) return next_pre_bind(held);
        binding_failed(held, kClaimStep,
                       fmt::format("update pod {} ExtendedResourceClaimStatus: {}", held->info->key, answer.error().message));
      },
      "status");
}

/// Whether all devices of the claim at `index` are ready for the pod. A failure ends the binding.
Core::ClaimState Core::claim_state(const HeldPtr& held, std::size_t index) {
  const placement::PreBindWrite& write = held->writes[index];
  // Without conditions the write itself was the last word: no need to see it come back.
  const bool has_conditions = [&] {
    if (write.allocation == nullptr) return true;
    return std::ranges::any_of(write.allocation->devices, [](const auto& device) { return !device.binding_conditions.empty(); });
  }();
  if (!has_conditions) return ClaimState::kReady;
  const ObjectRef object = known(kResourceClaims, write.ns, write.name);
  if (object == nullptr || object->uid() != write.uid) {
    binding_failed(held, kClaimStep, fmt::format("resourceclaim.resource.k8s.io \"{}\" not found", write.name));
    return ClaimState::kFailed;
  }
  if (object->revision() < held->written_at[index]) return ClaimState::kWaiting;
  const auto state = placement::devices::binding_state(model::ResourceClaimView::parse(object->document()));
  if (!state.failure.empty()) {
    binding_failed(held, kClaimStep, state.failure);
    return ClaimState::kFailed;
  }
  if (state.is_ready) return ClaimState::kReady;
  if (now >= held->claims_deadline) {
    binding_failed(held, kClaimStep, fmt::format("device binding timeout: claim={}", write.name));
    return ClaimState::kFailed;
  }
  if (!std::exchange(held->told_of_conditions, true))
    out.report(held->info->view().scheduler_name, reference(*held->object), "Normal", "BindingConditionsPending",
               fmt::format("waiting for binding conditions for device on node {}", held->node_name), "Scheduling");
  return ClaimState::kWaiting;
}

/// The pod does not use the claims after all. What they were given stays theirs, until somebody takes it back; a claim that was made for
/// this binding goes.
void Core::unreserve_claims(const Held& held) {
  for (const placement::PreBindWrite& write : held.writes) {
    if (write.pod_status.empty() || !write.to_create.is_null()) continue;
    cluster.set_pending_allocation(write.uid, nullptr);
    delete_claim(write.ns, write.name, write.uid);
  }
  for (std::size_t i = 0; i < held.written; ++i) {
    const placement::PreBindWrite& write = held.writes[i];
    if (write.uid.empty() || !write.pod_status.empty()) continue;
    const ObjectRef seen = known(kResourceClaims, write.ns, write.name);
    if (write.allocation != nullptr && seen != nullptr && seen->uid() == write.uid && seen->revision() < held.written_at[i])
      keep_pending(cluster, write, user_of_claim(held.info->view(), write.name));  // The watch will say so in a moment.
    // What is the group's stays so: others of it use the claim.
    if (json::as_view(user_of_claim(held.info->view(), write.name)["resource"]) != "pods") continue;
    const json::Object mine{{"$patch", "delete"}, {"uid", held.info->view().meta.uid}};
    out.patch(kResourceClaims, write.ns, write.name, client::PatchType::kStrategicMerge,
              {{"metadata", {{"uid", write.uid}}}, {"status", {{"reservedFor", json::Array{mine}}}}}, {}, "status");
  }
}

/// Without the finalizer that protects what is in use: it was made for one held, and that failed.
void Core::delete_claim(const std::string& ns, const std::string& name, const std::string& uid) {
  const json::Value without{{"metadata", {{"uid", uid}, {"$deleteFromPrimitiveList/finalizers", json::Array{kFinalizer}}}}};
  out.patch(kResourceClaims, ns, name, client::PatchType::kStrategicMerge, without,
            [this, ns, name, uid](const client::ApiResult<json::Value>&) { out.remove(kResourceClaims, ns, name, uid, {}); });
}

/// The claim gives its devices back, so that the pod can get others.
void Core::release_claim(const placement::ClaimRelease& claim) {
  const ObjectRef object = known(kResourceClaims, claim.ns, claim.name);
  if (object == nullptr || object->uid() != claim.uid) return;
  if (claim.is_deleted) return delete_claim(claim.ns, claim.name, claim.uid);
  const std::string revision(json::get_string(object->document(), {"metadata", "resourceVersion"}));
  out.patch(kResourceClaims, claim.ns, claim.name, client::PatchType::kMerge,
            {{"metadata", {{"uid", claim.uid}, {"resourceVersion", revision}}},
             {"status", {{"allocation", nullptr}, {"reservedFor", nullptr}, {"devices", nullptr}}}},
            {}, "status");
}

/// A claim came, changed or went (`after` null): pods that wait for it may enter the queue, pods that use it are tried again when its
/// status changed, and all that lacked devices when it gave some back.
void Core::claim_changed(const std::string& key, const placement::ClaimPtr& before, const placement::ClaimPtr& after) {
  const auto found = waiting_for_claim.find(key);
  const std::set<std::string> users = found != waiting_for_claim.end() ? found->second : std::set<std::string>();
  for (const std::string& uid : users) ask_gate(pods.at(uid));  // Without its claims it stays out of the queue.
  const bool gave_back = before != nullptr && (after == nullptr || (before->allocation != nullptr && after->allocation == nullptr));
  if (gave_back) return wake(ClusterEvent::kResourceClaim, {});
  if (after == nullptr) return;
  static constexpr std::array<std::string_view, 1> kPlugin = {"DynamicResources"};
  const bool is_same = before != nullptr && (before->allocation == nullptr) == (after->allocation == nullptr) &&
                       before->reserved_for == after->reserved_for && before->device_statuses == after->device_statuses;
  if (is_same) return;
  for (const std::string& uid : users) {
    const SchedulingQueue::Entry* queued = queue.find(uid);
    if (queued == nullptr) continue;
    const PluginSet plugin = bits.set_of(kPlugin, *frameworks.at(pods.at(uid).info->view().scheduler_name));
    const bool is_held_by_claims = queued->rejected_by == 0 || (queued->rejected_by & plugin) != 0;
    if (is_held_by_claims && uses(pods.at(uid).info->view(), cluster, after->meta.uid)) wake_pod(uid);
  }
}

/// Which claims the waiting pod uses; either may be null.
void Core::index_claims(const placement::PodInfoPtr& before, const placement::PodInfoPtr& after) {
  const auto for_each_key = [](const model::PodView& pod, auto each) {
    for (const auto& entry : pod.resource_claims)
      if (const std::string& name = entry.claim_name.empty() ? entry.made_name : entry.claim_name; !name.empty())
        each(fmt::format("{}/{}", pod.ns(), name), pod.meta.uid);
  };
  if (before != nullptr)
    for_each_key(before->view(), [&](const std::string& key, const std::string& uid) {
      const auto found = waiting_for_claim.find(key);
      if (found == waiting_for_claim.end()) return;
      found->second.erase(uid);
      if (found->second.empty()) waiting_for_claim.erase(found);
    });
  if (after != nullptr)
    for_each_key(after->view(), [&](const std::string& key, const std::string& uid) { waiting_for_claim[key].insert(uid); });
}

}  // namespace berth::scheduler
