// DynamicResources (pkg/scheduler/framework/plugins/dynamicresources): devices for the pod's resource claims. A claim that has devices
// restricts the nodes; one that has none gets them on the node that is chosen, by the structured allocator (devices/allocator.h).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "placement/devices/allocator.h"
#include "placement/devices/binding.h"
#include "placement/devices/class_totals.h"
#include "placement/devices/extended.h"
#include "placement/devices/selector_failures.h"
#include "placement/plugins/factories.h"
#include "placement/plugins/pod_claims.h"
#include "placement/preemption.h"

namespace berth::placement {
namespace {

using model::ResourceClaimView;
using AllocationPtr = std::shared_ptr<const model::Allocation>;

constexpr std::string_view kNothingToRelease = "no new claims to deallocate";
constexpr std::string_view kCannotAllocate = "cannot allocate all claims";
constexpr std::string_view kNotOnNode = "resourceclaim not available on the node";

/// What the claims get on one node.
struct OnNode {
  std::vector<AllocationPtr> allocations;            ///< Of `to_allocate`, then of the extended claim.
  const devices::ExtendedClaim* extended = nullptr;  ///< Null: the node has all that the pod's containers ask for by name.
};

/// What is found out about nodes while they are asked: shared by the copies of one cycle's state.
struct Findings {
  std::vector<ClaimPtr> claims;                       ///< In the pod's order.
  std::vector<const ResourceClaimView*> to_allocate;  ///< Those without an allocation.
  std::set<const ResourceClaimView*> followed;        ///< Those that another pod of the group is about to get, as if they had it.
  std::unique_ptr<devices::Matcher> matcher;
  std::unique_ptr<devices::Allocator> allocator;  ///< Null when nothing is to be allocated.
  std::map<std::string, OnNode, std::less<>> by_node;
  std::set<std::size_t> unavailable;                                    ///< Claims whose devices some node cannot use.
  bool asks_by_name = false;                                            ///< Containers ask for resources that classes back.
  ClaimPtr left_over;                                                   ///< The claim that an earlier attempt made for those.
  std::map<std::vector<std::string>, devices::ExtendedClaim> extended;  ///< By what the node has none of.
};

struct State : Cloneable<State> {
  std::shared_ptr<Findings> findings;
  std::vector<std::pair<ClaimPtr, AllocationPtr>> reserved;
  const devices::ExtendedClaim* extended = nullptr;  ///< The last of `reserved`, unless null.
};

class DynamicResources final : public PluginOf<DynamicResources> {
 public:
  std::string_view name() const override { return "DynamicResources"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.resource_claims(); }
  ColumnKind column_kind() const override { return ColumnKind::kVolumes; }
  [[nodiscard]] bool may_fail(const CycleState& state, const PodInfo& pod) const override;
  /// Devices are the claims', not the pods': whose pod is evicted is asked for them later.
  [[nodiscard]] bool refuses_for_good() const override { return true; }
  Status pre_enqueue_in(const model::PodView& pod, const Cluster& cluster) const override;
  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override;
  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override;
  std::expected<std::int64_t, Status> score(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override;
  Status normalize(const CycleState& state, const PodInfo& pod, std::span<const NodeInfo* const> feasible,
                   std::span<std::int64_t> scores) const override;
  Status reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const override;
  void unreserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const override;
  std::expected<std::vector<PreBindWrite>, Status> pre_bind(const CycleState& state, const PodInfo& pod,
                                                            const NodeInfo& node) const override;
  Status post_filter(const PostFilterCall& call, PostFilterResult& out) const override;
  [[nodiscard]] std::string post_filter_refusal(std::string_view) const override { return std::string(kNothingToRelease); }
  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeLabels, kNodeAllocatable, kResourceClaim, kDevices, kOwnClaims};
  }
  /// Whoever holds pods back knows them by their claims, and asks again when one of those changes.
  [[nodiscard]] EventSet gate_events() const override { return {}; }

 private:
  [[nodiscard]] std::optional<ClaimRelease> find_release(const CycleState& state, const PodInfo& pod) const;
  mutable devices::SelectorFailures failures_;  ///< A cache of what follows from classes, requests and slices.
};

Status DynamicResources::pre_enqueue_in(const model::PodView& pod, const Cluster& cluster) const {
  if (pod.resource_claims.empty()) return Status::success();
  const auto found = claims_of(pod, cluster);
  return found ? Status::success() : Status::unresolvable(found.error());
}

/// The PodGroup that a pod with claims is of; empty: none.
std::string group_of(const model::PodView& pod) { return pod.resource_claims.empty() ? std::string() : pod.resource_claims.front().group; }

/// Empty, or why the classes of the claim's requests will not do.
std::string missing_class(const ResourceClaimView& claim, const Cluster& cluster) {
  const auto look = [&](const model::DeviceRequest& request, const std::string& name) -> std::string {
    if (cluster.device_classes().contains(request.class_name)) return {};
    return fmt::format("request {}: device class {} does not exist", name, request.class_name);
  };
  for (const auto& group : claim.requests) {
    if (group.exactly) {
      if (auto why = look(*group.exactly, group.name); !why.empty()) return why;
    } else if (!group.first_available.empty()) {
      for (const auto& sub : group.first_available)
        if (auto why = look(sub, group.name + "/" + sub.name); !why.empty()) return why;
    } else {
      return fmt::format("resource claim {}, request {}: unknown request type", claim.meta.key(), group.name);
    }
  }
  return {};
}

std::unique_ptr<devices::Allocator> make_allocator(const Cluster& cluster, devices::Matcher& matcher) {
  devices::Inventory inventory;
  for (const auto& [key, slice] : cluster.resource_slices()) inventory.slices.push_back(slice.get());
  for (const auto& [name, rule] : cluster.device_taint_rules()) inventory.taint_rules.push_back(rule.get());
  inventory.find_class = [&cluster](std::string_view name) -> const model::DeviceClassView* {
    const auto at = cluster.device_classes().find(name);
    return at == cluster.device_classes().end() ? nullptr : at->second.get();
  };
  inventory.allocated = devices::allocated_devices(cluster);
  return std::make_unique<devices::Allocator>(std::move(inventory), matcher);
}

PreFilterOutcome DynamicResources::pre_filter(CycleState& state, const PodInfo& pod) const {
  const Cluster& cluster = state.cluster();
  const bool asks_by_name = !devices::backed_resources(pod.wanted(), cluster).empty();
  if (pod.view().resource_claims.empty() && !asks_by_name) return {Status::skip(), {}};
  auto claims = claims_of(pod.view(), cluster);
  if (!claims) return {Status::unresolvable(claims.error()), {}};
  if (claims->empty() && !asks_by_name) return {Status::skip(), {}};
  auto data = std::make_unique<State>();
  data->findings = std::make_shared<Findings>();
  Findings& findings = *data->findings;
  findings.asks_by_name = asks_by_name;
  if (asks_by_name) findings.left_over = devices::find_extended_claim(pod.view(), cluster);
  findings.claims = std::move(*claims);
  const std::string group = group_of(pod.view());
  for (ClaimPtr& claim : findings.claims) {
    if (claim->allocation != nullptr) continue;
    if (AllocationPtr pending = cluster.pending_allocation(claim->meta.uid);
        pending != nullptr && !group.empty() && cluster.pending_group(claim->meta.uid) == group) {
      // Decided a moment ago for one of its group, who are bound together.
      auto followed = std::make_shared<ResourceClaimView>(*claim);
      followed->allocation = std::move(pending);
      findings.followed.insert(followed.get());
      claim = std::move(followed);
      continue;
    }
    if (cluster.pending_allocation(claim->meta.uid) != nullptr)
      return {Status::unresolvable(fmt::format("resource claim {} is in the process of being allocated", claim->meta.key())), {}};
    if (auto why = missing_class(*claim, cluster); !why.empty()) return {Status::unresolvable(std::move(why)), {}};
    findings.to_allocate.push_back(claim.get());
  }
  if (!findings.to_allocate.empty() || asks_by_name) {
    findings.matcher = std::make_unique<devices::Matcher>();
    findings.allocator = make_allocator(cluster, *findings.matcher);
  }
  state.set(slot(), std::move(data));
  return {};
}

/// The claim for what the node itself has none of; null where it lacks nothing.
const devices::ExtendedClaim* extended_on(const Cluster& cluster, const PodInfo& pod, const NodeInfo& node, Findings& findings) {
  if (!findings.asks_by_name) return nullptr;
  std::vector<std::string> lacks;
  for (const auto& resource : devices::backed_resources(pod.wanted(), cluster))
    if (devices::is_left_to_devices(cluster, node.allocatable, resource)) lacks.push_back(resource);
  if (lacks.empty()) return nullptr;
  const auto known = findings.extended.find(lacks);
  if (known != findings.extended.end()) return &known->second;
  auto made = devices::make_extended_claim(pod.view(), lacks, cluster);
  return &findings.extended.emplace(std::move(lacks), std::move(made)).first->second;
}

Status DynamicResources::filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const {
  const auto* data = state.get<State>(slot());
  if (data == nullptr) return Status::success();
  Findings& findings = *data->findings;
  // Whether its devices would still do is not asked: it is deleted, and the pod tried again.
  if (findings.left_over != nullptr) return Status::unresolvable("cannot schedule extended resource claim");
  bool is_available = true;
  for (std::size_t i = 0; i < findings.claims.size(); ++i) {
    const ResourceClaimView& claim = *findings.claims[i];
    if (claim.allocation == nullptr) continue;
    const auto& selector = claim.allocation->node_selector;
    const bool reaches = !selector || selector->matches(node.labels(), node.name);
    if (reaches && devices::binding_failure(claim).empty()) continue;
    findings.unavailable.insert(i);
    is_available = false;
  }
  std::optional<OnNode> found;
  const auto* extended = extended_on(state.cluster(), pod, node, findings);
  auto to_allocate = findings.to_allocate;
  if (extended != nullptr) to_allocate.push_back(extended->view.get());
  if (!to_allocate.empty()) {
    auto answer = findings.allocator->allocate(*node.node, to_allocate);
    using Kind = devices::AllocationError::Kind;
    if (!answer && answer.error().kind == Kind::kExhausted)
      return Status::error(fmt::format("node {}: timed out trying to allocate devices", node.name));
    if (!answer && answer.error().kind == Kind::kThisNode) return Status::unresolvable(answer.error().message);
    if (!answer) return Status::error(answer.error().message);
    if (!*answer) return Status::unresolvable(std::string(kCannotAllocate));
    found = OnNode{std::move(**answer), extended};
  }
  if (!is_available) return Status::unresolvable(std::string(kNotOnNode));
  if (found) findings.by_node.insert_or_assign(node.name, std::move(*found));
  return Status::success();
}

/// Selectors may fail on devices of some nodes alone; so may requests for all devices, by how many there are and what they are like.
bool DynamicResources::may_fail(const CycleState& state, const PodInfo& pod) const {
  const auto* data = state.get<State>(slot());
  if (data == nullptr || data->findings->allocator == nullptr) return false;
  const Findings& findings = *data->findings;
  const Cluster& cluster = state.cluster();
  auto claims = findings.to_allocate;
  devices::ExtendedClaim extended;
  if (findings.asks_by_name) {
    extended = devices::make_extended_claim(pod.view(), devices::backed_resources(pod.wanted(), cluster), cluster);
    claims.push_back(extended.view.get());
  }
  const auto fails = [&](const model::DeviceRequest& request) {
    const auto found = cluster.device_classes().find(request.class_name);
    if (request.is_all || found == cluster.device_classes().end()) return request.is_all;
    return failures_.any(found->second->selectors, request.selectors, cluster.resource_slices());
  };
  return std::ranges::any_of(claims, [&](const ResourceClaimView* claim) {
    return std::ranges::any_of(claim->requests, [&](const auto& group) {
      return (group.exactly && fails(*group.exactly)) || std::ranges::any_of(group.first_available, fails);
    });
  });
}

/// The higher, the earlier in their lists the alternatives are that were taken.
std::expected<std::int64_t, Status> DynamicResources::score(const CycleState& state, const PodInfo&, const NodeInfo& node) const {
  constexpr std::int64_t kMostAlternatives = 8;
  const auto* data = state.get<State>(slot());
  if (data == nullptr) return 0;
  const auto found = data->findings->by_node.find(node.name);
  if (found == data->findings->by_node.end()) return 0;
  std::int64_t out = 0;
  std::size_t next = 0;
  for (const ClaimPtr& claim : data->findings->claims) {
    const model::Allocation& allocation = claim->allocation != nullptr ? *claim->allocation : *found->second.allocations[next++];
    std::set<std::string_view> taken;
    for (const auto& device : allocation.devices) taken.insert(device.request);
    for (const auto& group : claim->requests)
      for (std::size_t i = 0; i < group.first_available.size(); ++i)
        if (taken.contains(group.name + "/" + group.first_available[i].name)) out += kMostAlternatives - static_cast<std::int64_t>(i);
  }
  return out;
}

Status DynamicResources::normalize(const CycleState&, const PodInfo&, std::span<const NodeInfo* const>,
                                   std::span<std::int64_t> scores) const {
  std::int64_t most = 0;
  for (const auto one : scores) most = std::max(most, one);
  if (most == 0) return Status::success();
  for (auto& one : scores) one = one * kMaxNodeScore / most;
  return Status::success();
}

Status DynamicResources::reserve(CycleState& state, const PodInfo& pod, const NodeInfo& node, Cluster& cluster) const {
  auto* data = state.get<State>(slot());
  if (data == nullptr) return Status::success();
  const auto found = data->findings->by_node.find(node.name);
  if (found == data->findings->by_node.end() && !data->findings->to_allocate.empty())
    return Status::error("claim allocation not found for node");
  for (const ClaimPtr& claim : data->findings->claims) {
    if (!data->findings->followed.contains(claim.get())) continue;
    cluster.hold_pending_allocation(claim->meta.uid, claim->allocation);
    data->reserved.emplace_back(claim, claim->allocation);
  }
  if (found == data->findings->by_node.end()) return Status::success();
  std::set<devices::DeviceId> given;
  const auto take = [&](const ClaimPtr& claim, const AllocationPtr& allocation) {
    BERTH_CHECK(cluster.pending_allocation(claim->meta.uid) == nullptr, "claim {} is given devices on {} while it is given others",
                claim->meta.key(), node.name);
    for (const auto& one : allocation->devices)
      BERTH_CHECK(one.admin_access || one.share_id || given.insert({one.driver, one.pool, one.device}).second,
                  "device {} of pool {} on {} is given twice, the second time to claim {}", one.device, one.pool, node.name,
                  claim->meta.key());
    data->reserved.emplace_back(claim, allocation);
    cluster.set_pending_allocation(claim->meta.uid, allocation, group_of(pod.view()));
  };
  std::size_t next = 0;
  for (const ClaimPtr& claim : data->findings->claims) {
    if (claim->allocation != nullptr) continue;
    take(claim, found->second.allocations[next++]);
  }
  data->extended = found->second.extended;
  if (data->extended != nullptr) take(data->extended->view, found->second.allocations.back());
  return Status::success();
}

void DynamicResources::unreserve(CycleState& state, const PodInfo&, const NodeInfo&, Cluster& cluster) const {
  auto* data = state.get<State>(slot());
  if (data == nullptr) return;
  for (const auto& [claim, allocation] : data->reserved) cluster.drop_pending_allocation(claim->meta.uid, allocation);
  data->reserved.clear();
  data->extended = nullptr;
}

std::expected<std::vector<PreBindWrite>, Status> DynamicResources::pre_bind(const CycleState& state, const PodInfo& pod,
                                                                            const NodeInfo&) const {
  std::vector<PreBindWrite> out;
  const auto* data = state.get<State>(slot());
  if (data == nullptr) return out;
  for (const ClaimPtr& claim : data->findings->claims) {
    if (claim->is_reserved_for(pod.view().meta.uid)) continue;
    PreBindWrite write{"resource.k8s.io", "resourceclaims", claim->meta.ns, claim->meta.name, {}, false};
    write.uid = claim->meta.uid;
    for (const auto& [reserved, allocation] : data->reserved)
      if (reserved == claim) write.allocation = allocation;
    out.push_back(std::move(write));
  }
  if (data->extended != nullptr) {
    PreBindWrite write{"resource.k8s.io", "resourceclaims", pod.view().ns(), {}, {}, false};
    write.allocation = data->reserved.back().second;
    write.uid = data->extended->view->meta.uid;
    write.to_create = data->extended->document;
    write.pod_status = {{"extendedResourceClaimStatus", {{"requestMappings", data->extended->mappings}}}};
    out.push_back(std::move(write));
  }
  return out;
}

/// Nobody but the pod uses it.
bool is_releasable(const ResourceClaimView& claim, const PodInfo& pod) {
  return claim.reserved_for.empty() || (claim.reserved_for.size() == 1 && claim.is_reserved_for(pod.view().meta.uid));
}

/// A claim that is given back, so that the pod can get other devices. When another plugin's PreFilter rejected the pod before this one's
/// ran, there is no state to go by, which is reported as an error.
Status DynamicResources::post_filter(const PostFilterCall& call, PostFilterResult& out) const {
  const PodInfo& pod = *call.pod;
  const Status before = call.pre_filter();
  for (const Plugin* plugin : before.is_success() ? std::span<const Plugin* const>() : call.framework->pre_filters()) {
    if (plugin == this) break;
    if (plugin->name() == before.plugin) return Status::error("not found");
  }
  const auto claims = claims_of(pod.view(), call.cluster);
  const bool has_none = claims && claims->empty() && devices::backed_resources(pod.wanted(), call.cluster).empty();
  if (!claims || has_none || before.plugin == name()) return Status::unschedulable(std::string(kNothingToRelease));
  const auto prepares = call.framework->pre_filters();
  CycleState state = call.framework->new_cycle(call.cluster);
  if (std::ranges::find(prepares, this) != prepares.end() && pre_filter(state, pod).status.is_success()) {
    // What nodes say is only of interest where there is something to give back: it costs a question to each.
    const auto might_go = [&](const ClaimPtr& claim) { return claim->allocation != nullptr && is_releasable(*claim, pod); };
    if (std::ranges::any_of(*claims, might_go))
      for (const auto& rejected : call.failed().rejected)
        if (rejected.status.plugin == name()) (void)filter(state, pod, *call.cluster.node(rejected.node));
    out.release = find_release(state, pod);
  }
  if (!out.release) return Status::unschedulable("still not schedulable");
  return Status::unschedulable(out.release->is_deleted ? "deletion of ResourceClaim completed" : "deallocation of ResourceClaim completed");
}

/// The claim whose devices keep the pod from a node, and that nobody else uses.
std::optional<ClaimRelease> DynamicResources::find_release(const CycleState& state, const PodInfo& pod) const {
  const auto* data = state.get<State>(slot());
  if (data == nullptr) return std::nullopt;
  for (const std::size_t index : data->findings->unavailable) {
    const ResourceClaimView& claim = *data->findings->claims[index];
    if (is_releasable(claim, pod)) return ClaimRelease{claim.meta.ns, claim.meta.name, claim.meta.uid};
  }
  if (const auto& claim = data->findings->left_over) return ClaimRelease{claim->meta.ns, claim->meta.name, claim->meta.uid, true};
  return std::nullopt;
}

}  // namespace

Expected<std::vector<ClaimPtr>, std::string> claims_of(const model::PodView& pod, const Cluster& cluster) {
  std::vector<ClaimPtr> out;
  for (const auto& entry : pod.resource_claims) {
    if (entry.claim_name.empty() && entry.template_name.empty())
      return std::unexpected(
          fmt::format("pod \"{}\", spec.resourceClaim \"{}\": none of the supported fields are set", pod.key(), entry.name));
    const bool is_made = entry.claim_name.empty();
    if (is_made && !entry.has_status) return std::unexpected(fmt::format("pod \"{}\": ResourceClaim not created yet", pod.key()));
    const std::string& name = is_made ? entry.made_name : entry.claim_name;
    if (name.empty()) continue;  // The driver needs none.
    const auto found = cluster.resource_claims().find(pod.ns() + "/" + name);
    if (found == cluster.resource_claims().end())
      return std::unexpected(fmt::format("resourceclaim.resource.k8s.io \"{}\" not found", name));
    const ResourceClaimView& claim = *found->second;
    if (claim.meta.is_deleting) return std::unexpected(fmt::format("resourceclaim \"{}\" is being deleted", name));
    const auto* owner = claim.meta.controller();
    // A claim that was made for the pod's group is as good: its controller's word is the pod's status, which names it.
    const bool is_of_group = owner != nullptr && !entry.group.empty() && owner->kind == "PodGroup" && owner->name == entry.group;
    if (is_made && !is_of_group && (owner == nullptr || owner->uid != pod.meta.uid))
      return std::unexpected(fmt::format("ResourceClaim {} was not created for Pod {} (Pod is not owner)", claim.meta.key(), pod.key()));
    out.push_back(found->second);
  }
  return out;
}

bool has_alternatives(const model::PodView& pod, const Cluster& cluster) {
  if (pod.resource_claims.empty()) return false;
  const auto claims = claims_of(pod, cluster);
  return claims && std::ranges::any_of(*claims, [](const ClaimPtr& claim) {
           return std::ranges::any_of(claim->requests, [](const auto& group) { return !group.first_available.empty(); });
         });
}

Result<PluginPtr> make_dynamic_resources(const Profile&) { return std::make_unique<DynamicResources>(); }

}  // namespace berth::placement
