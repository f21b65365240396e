#include "placement/trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/attempt.h"
#include "placement/cluster_journal.h"
#include "placement/devices/extended.h"
#include "placement/numa/node_alignment.h"
#include "placement/plugins/pod_claims.h"
#include "placement/plugins/volumes.h"
#include "placement/preemptor.h"

namespace berth::placement {
namespace {

using model::PersistentVolumeClaimView;

Status no_profile(const PodInfo& pod) {
  return Status::error(
      fmt::format("no profile is known of its scheduler \"{}\": give that scheduler's configuration", pod.view().scheduler_name));
}

/// The resource claims that the pod has, those that are there.
std::vector<ClaimPtr> claims_there(const model::PodView& pod, const Cluster& cluster) {
  std::vector<ClaimPtr> out;
  for (const auto& entry : pod.resource_claims) {
    const std::string& name = entry.claim_name.empty() ? entry.made_name : entry.claim_name;
    if (auto claim = name.empty() ? nullptr : cluster.find_claim(pod.ns(), name)) out.push_back(std::move(claim));
  }
  return out;
}

void take_pending(const std::string& claim_uid, Cluster& cluster, EvictedPod& out) {
  auto allocation = cluster.pending_allocation(claim_uid);
  if (allocation == nullptr) return;
  out.pending.emplace_back(claim_uid, std::move(allocation));
  cluster.set_pending_allocation(claim_uid, nullptr);
}

/// The claim made for what the pod asks for by the names of resources goes with it, and to the eviction's.
void take_extended_claim(const model::PodView& pod, Cluster& cluster, EvictedPod& out) {
  take_pending(devices::extended_claim_uid(pod), cluster, out);
  const ClaimPtr own = cluster.device_classes().empty() ? nullptr : devices::find_extended_claim(pod, cluster);
  if (own == nullptr) return;
  out.claims.push_back(own);
  cluster.remove("ResourceClaim", own->meta.ns, own->meta.name);
}

std::vector<std::shared_ptr<const PersistentVolumeClaimView>> ephemeral_claims(const model::PodView& pod, const Cluster& cluster) {
  std::vector<std::shared_ptr<const PersistentVolumeClaimView>> out;
  for (const auto& volume : pod.volumes) {
    if (volume.kind != model::VolumeView::Kind::kEphemeral) continue;
    const auto found = cluster.claims().find(pod.ns() + "/" + volume.id);
    if (found != cluster.claims().end()) out.push_back(found->second);
  }
  return out;
}

/// The object as made again for the pod's successor; false when it is not the pod's own.
bool hand_over(model::ObjectMeta& meta, const model::PodView& from, const model::PodView& to) {
  bool is_own = false;
  meta.owner_references.change_each([&](model::OwnerReference& owner) {
    if (!owner.controller || owner.uid != from.meta.uid) return;
    owner.uid = to.meta.uid;
    is_own = true;
  });
  meta.uid += "-next";
  return is_own;
}

/// What binding writes into a resource claim: its allocation, and that the pod uses it.
void settle(Cluster& cluster, const PodInfo& pod, const PreBindWrite& write) {
  const ClaimPtr now = cluster.find_claim(write.ns, write.name);
  if (now == nullptr || now->meta.uid != write.uid) return;
  auto claim = std::make_shared<model::ResourceClaimView>(*now);
  if (claim->allocation == nullptr) claim->allocation = write.allocation;
  claim->reserved_for.push_back(pod.view().meta.uid);
  cluster.upsert(ClaimPtr(std::move(claim)));
}

/// The pod as it is once its place is written.
PodInfoPtr annotated(const PodInfo& pod, std::span<const PodAnnotation> annotations, Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  auto all = *view->meta.annotations;  // Sorted by key.
  for (const PodAnnotation& one : annotations) {
    const auto at = std::ranges::lower_bound(all, one.key, {}, &std::pair<std::string, std::string>::first);
    if (at != all.end() && at->first == one.key)
      at->second = one.value;
    else
      all.emplace(at, one.key, one.value);
  }
  view->meta.annotations = std::move(all);
  return PodInfo::make(std::move(view), era);
}

/// Of the pod that had the place reserved and no other of its name.
PreBindWrite write_of(std::span<const PodAnnotation> annotations, const PodInfo& pod) {
  const model::ObjectMeta& meta = pod.view().meta;
  json::Object texts;
  for (const PodAnnotation& one : annotations) texts[one.key] = one.value;
  PreBindWrite out{"", "pods", meta.ns, meta.name, json::Object{{"metadata", json::Object{{"uid", meta.uid}, {"annotations", texts}}}}};
  out.plugin = annotations.front().plugin;
  return out;
}

}  // namespace

std::expected<std::vector<PreBindWrite>, Status> Reservation::pre_bind(const Cluster& cluster) const {
  const NodeInfo* there = cluster.node(node);
  if (there == nullptr) return std::vector<PreBindWrite>();
  auto out = framework->run_pre_bind(state, *pod, *there);
  if (out && !state.annotations().empty()) out->push_back(write_of(state.annotations(), *pod));
  return out;
}

PodInfoPtr successor_of(const PodInfo& pod, Era era, const model::Labels* labels) {
  auto view = std::make_shared<model::PodView>(pod.view());
  if (labels != nullptr) view->meta.labels = *labels;
  view->meta.uid += "-next";
  view->meta.is_deleting = false;
  view->node_name.clear();
  view->nominated_node_name.clear();
  view->phase = "Pending";
  view->start_time.clear();
  view->container_statuses.clear();
  view->pod_level_status.reset();
  view->resize_infeasible = false;
  view->terminating_by_preemption = false;
  return PodInfo::make(std::move(view), era);
}

struct Trial::Impl {
  std::unique_ptr<Cluster> own;  ///< Null for a trial over its asker's cluster.
  Cluster& cluster;
  Profiles profiles;
  TrialOptions options;
  Engine engine;
  std::unique_ptr<Preemptor> preemptors[2];  ///< Made when first asked; the second never breaks a disruption budget.

  Impl(Cluster& over, Profiles with, const TrialOptions& how)
      : cluster(over), profiles(std::move(with)), options(how), engine(cluster, how.engine) {}
  Impl(std::unique_ptr<Cluster> fork, Profiles with, const TrialOptions& how)
      : own(std::move(fork)), cluster(*own), profiles(std::move(with)), options(how), engine(cluster, how.engine) {}
  Impl(Impl& from, std::unique_ptr<Cluster> fork)
      : own(std::move(fork)), cluster(*own), profiles(from.profiles), options(from.options), engine(from.engine, cluster) {
    for (std::size_t i = 0; i < std::size(preemptors); ++i)
      if (from.preemptors[i] != nullptr) preemptors[i] = std::make_unique<Preemptor>(*from.preemptors[i], cluster);
  }

  [[nodiscard]] PreemptionOptions preemption_of(const Framework& framework) const {
    PreemptionOptions out = options.preemption;
    out.budgets_are_hard |= framework.profile().args.preemption.budgets_are_hard;
    return out;
  }
  Preemptor& preemptor(const PreemptionOptions& how) {
    auto& out = preemptors[how.budgets_are_hard ? 1 : 0];
    if (out == nullptr) out = std::make_unique<Preemptor>(cluster, how);
    return *out;
  }
};

Trial::Trial(Cluster& cluster, Profiles profiles, TrialOptions options)
    : impl_(std::make_unique<Impl>(cluster, std::move(profiles), options)) {}
Trial::Trial(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trial Trial::on_fork(const Cluster& cluster, Profiles profiles, TrialOptions options) {
  return Trial(std::make_unique<Impl>(std::make_unique<Cluster>(cluster.fork()), std::move(profiles), options));
}
Trial::~Trial() = default;
Trial::Trial(Trial&&) noexcept = default;
Trial& Trial::operator=(Trial&&) noexcept = default;

Trial Trial::within(const std::vector<NodeIndex>& nodes) const {
  const Cluster& from = impl_->cluster;
  auto out = std::make_unique<Cluster>(from.era_);
  out->objects_ = from.objects_;
  out->pending_allocations_ = from.pending_allocations_;
  out->objects_version_ = from.objects_version_;
  out->namespaces_version_ = from.namespaces_version_;
  out->workloads_version_ = from.workloads_version_;
  out->budgets_version_ = from.budgets_version_;
  out->least_volume_limit_ = from.least_volume_limit_;
  for (const NodeIndex index : nodes) {
    const NodeInfo* node = from.node(index);
    if (node == nullptr || node->node == nullptr) continue;
    const NodeIndex to = out->upsert_node(node->node);
    for (const PodInfoPtr& pod : node->pods) out->place(pod, to);
    for (const PodInfoPtr& pod : from.nominated(index)) out->nominate(pod, node->name);
  }
  out->forget_log();
  return Trial(std::make_unique<Impl>(std::move(out), impl_->profiles, impl_->options));
}

Trial Trial::fork() { return Trial(std::make_unique<Impl>(*impl_, std::make_unique<Cluster>(impl_->cluster.fork()))); }

Cluster& Trial::cluster() { return impl_->cluster; }
const Cluster& Trial::cluster() const { return impl_->cluster; }
const Profiles& Trial::profiles() const { return impl_->profiles; }

void Trial::prepare(const PodInfoPtr& pod) {
  if (const FrameworkPtr& framework = impl_->profiles.of(*pod)) impl_->engine.prepare(framework, pod);
}

// Questions

Status Trial::admits(const PodInfo& pod) const {
  const FrameworkPtr& framework = impl_->profiles.of(pod);
  return framework == nullptr ? no_profile(pod) : framework->run_pre_enqueue(pod.view(), &impl_->cluster);
}

Decision Trial::decide(const PodInfoPtr& pod) {
  if (const FrameworkPtr& framework = impl_->profiles.of(*pod)) {
    const auto& choose = impl_->options.choose_among_equals;
    if (!choose) return impl_->engine.schedule(framework, pod);
    BestNodes best = impl_->engine.best(framework, pod);
    const NodeIndex chosen = best.nodes.size() > 1 ? choose(impl_->cluster, *pod, best.nodes) : NodeIndex();
    if (chosen.is_valid()) {
      best.decision.node = chosen;
      best.decision.node_name = impl_->cluster.node(chosen)->name;
    }
    return best.decision;
  }
  Decision out;
  out.outcome = Decision::Outcome::kError;
  out.error = no_profile(*pod).message();
  return out;
}

Signature Trial::sign(const PodInfo& pod) {
  const FrameworkPtr& framework = impl_->profiles.of(pod);
  return framework == nullptr ? Signature() : impl_->engine.sign(*framework, pod);
}

BestNodes Trial::best(const PodInfoPtr& pod) {
  if (const FrameworkPtr& framework = impl_->profiles.of(*pod)) return impl_->engine.best(framework, pod);
  return {decide(pod), {}};
}

bool Trial::is_best(const PodInfoPtr& pod, NodeIndex node) {
  const BestNodes found = best(pod);
  return std::ranges::find(found.nodes, node) != found.nodes.end();
}

Status Trial::fits(const PodInfoPtr& pod, NodeIndex node) {
  if (Status gate = admits(*pod); !gate.is_success()) return gate;
  return impl_->engine.fits(impl_->profiles.of(*pod), pod, node);
}

std::vector<NodeIndex> Trial::fitting(const PodInfo& pod, std::span<const NodeIndex> nodes) const {
  std::vector<NodeIndex> out;
  if (!admits(pod).is_success()) return out;
  const Framework& framework = *impl_->profiles.of(pod);
  CycleState state = framework.new_cycle(impl_->cluster);
  const PreFilterOutcome outcome = framework.run_pre_filter(state, pod);
  if (!outcome.status.is_success() && !outcome.status.is_skip()) return out;
  for (const NodeIndex index : nodes) {
    const NodeInfo* info = impl_->cluster.node(index);
    if (info == nullptr || info->node == nullptr || (outcome.node_names && !outcome.node_names->contains(info->name))) continue;
    if (framework.run_filter_with_nominated(state, pod, *info).is_success()) out.push_back(index);
  }
  return out;
}

Evaluation Trial::evaluate(const PodInfo& pod) const {
  if (const FrameworkPtr& framework = impl_->profiles.of(pod)) return impl_->engine.evaluate(*framework, pod);
  Evaluation out;
  out.errors.push_back(no_profile(pod).message());
  return out;
}

PostFilterResult Trial::victims_for(const PodInfoPtr& pod, const Evaluation* failed) {
  const FrameworkPtr& framework = impl_->profiles.of(*pod);
  PostFilterResult out;
  if (framework == nullptr) {
    out.status = no_profile(*pod);
    return out;
  }
  const PreemptionOptions how = impl_->preemption_of(*framework);
  return failed == nullptr ? impl_->preemptor(how).find(framework, pod) : run_post_filter(framework, impl_->cluster, pod, *failed, how);
}

void Trial::choose_among(PostFilterResult& result, const PodInfo& pod) const {
  if (const FrameworkPtr& framework = impl_->profiles.of(pod))
    choose_candidate(framework, impl_->cluster, pod, impl_->preemption_of(*framework), result);
}

std::optional<Candidate> Trial::victims_on(const PodInfo& pod, NodeIndex node, Status& why) const {
  const FrameworkPtr& framework = impl_->profiles.of(pod);
  const NodeInfo* info = impl_->cluster.node(node);
  if (framework == nullptr || info == nullptr || info->node == nullptr) {
    why = framework == nullptr ? no_profile(pod) : Status::unresolvable("node is gone");
    return std::nullopt;
  }
  CycleState state = framework->new_cycle(impl_->cluster);
  const PreFilterOutcome outcome = framework->run_pre_filter(state, pod);
  if (!outcome.status.is_success() && !outcome.status.is_skip()) {
    why = outcome.status;
    return std::nullopt;
  }
  return select_victims(*framework, state, pod, *info, why);
}

// Changes

Expected<Reservation, Status> Trial::reserve(const PodInfoPtr& pod, NodeIndex node) {
  Cluster& cluster = impl_->cluster;
  const FrameworkPtr& framework = impl_->profiles.of(*pod);
  if (framework == nullptr) return std::unexpected(no_profile(*pod));
  const NodeInfo* there = cluster.node(node);
  if (there == nullptr || there->node == nullptr) return std::unexpected(Status::error("node is gone"));
  Reservation out{pod, framework, node, framework->new_cycle(cluster)};
  Status status = framework->prepare_reserve(out.state, *pod, *there);
  if (status.is_success()) status = framework->run_reserve(out.state, *pod, *there, cluster);
  if (!status.is_success()) return std::unexpected(std::move(status));
  if (!out.state.annotations().empty()) out.pod = annotated(*pod, out.state.annotations(), cluster.era());
  cluster.assume(out.pod, node);
  return out;
}

void Trial::hold(const PodInfoPtr& pod, NodeIndex node) {
  if (!reserve(pod, node)) impl_->cluster.assume(pod, node);
}

void Trial::undo(Reservation& reservation) {
  static const NodeInfo kGone;
  Cluster& cluster = impl_->cluster;
  const NodeInfo* there = cluster.node(reservation.node);
  reservation.framework->run_unreserve(reservation.state, *reservation.pod, there != nullptr ? *there : kGone, cluster);
  // Another pod may have the name by now, or a newer version of this one its place.
  if (cluster.find_pod(reservation.pod->key) == reservation.pod) cluster.forget(reservation.pod->key);
}

Status Trial::place_on(const PodInfoPtr& pod, NodeIndex node) {
  if (Status status = fits(pod, node); !status.is_success()) return status;
  auto reserved = reserve(pod, node);
  return reserved ? settle_all(*reserved) : reserved.error();
}

Placement Trial::place(const PodInfoPtr& pod) {
  Placement out;
  out.status = admits(*pod);
  if (!out.status.is_success()) return out;
  out.decision = decide(pod);
  switch (out.decision.outcome) {
    case Decision::Outcome::kScheduled:
      break;
    case Decision::Outcome::kUnschedulable:
      out.status = Status::unschedulable(
          out.decision.diagnosis == nullptr ? "" : fit_error_message(*out.decision.diagnosis, impl_->cluster.era(), ""));
      return out;
    case Decision::Outcome::kError:
      out.status = Status::error(out.decision.error);
      return out;
  }
  out.would_refuse = numa::refusal_beforehand(*cluster().node(out.decision.node), *pod);
  auto reserved = reserve(pod, out.decision.node);
  out.status = reserved ? settle_all(*reserved) : reserved.error();
  if (out.status.is_success()) out.node = out.decision.node;
  return out;
}

Status Trial::settle_all(Reservation& reservation) {
  const auto writes = reservation.pre_bind(impl_->cluster);
  if (!writes) {
    undo(reservation);
    return writes.error();
  }
  for (const PreBindWrite& write : *writes)
    if (!write.uid.empty()) settle(impl_->cluster, *reservation.pod, write);
  return Status::success();
}

EvictedPod Trial::evict(const PodInfoPtr& pod) {
  Cluster& cluster = impl_->cluster;
  const model::PodView& view = pod->view();
  EvictedPod out{pod, cluster.pod_node(pod->key), claims_there(view, cluster), {}, ephemeral_claims(view, cluster)};
  cluster.remove_pod(pod->key);
  take_extended_claim(view, cluster, out);
  for (const ClaimPtr& claim : out.claims) {
    // Made for this pod alone: what it is about to be given is given to nobody else.
    if (const auto* owner = claim->meta.controller(); owner != nullptr && owner->uid == view.meta.uid)
      take_pending(claim->meta.uid, cluster, out);
    if (!claim->is_reserved_for(view.meta.uid) || devices::is_extended_claim(*claim)) continue;
    auto left = std::make_shared<model::ResourceClaimView>(*claim);
    std::erase(left->reserved_for, view.meta.uid);
    // A claim that nobody uses is deallocated (controller/resourceclaim).
    if (left->reserved_for.empty()) left->allocation = nullptr;
    cluster.upsert(ClaimPtr(std::move(left)));
  }
  return out;
}

PodInfoPtr Trial::renew(const EvictedPod& eviction, const model::Labels* labels) {
  Cluster& cluster = impl_->cluster;
  const model::PodView& before = eviction.pod->view();
  PodInfoPtr successor = successor_of(*eviction.pod, cluster.era(), labels);
  for (const ClaimPtr& claim : eviction.claims) {
    if (devices::is_extended_claim(*claim)) continue;  // The scheduler makes another one.
    auto made = std::make_shared<model::ResourceClaimView>(*claim);
    if (!hand_over(made->meta, before, successor->view())) continue;
    made->allocation = nullptr;
    made->reserved_for.clear();
    made->device_statuses.clear();
    cluster.upsert(ClaimPtr(std::move(made)));
  }
  for (const auto& claim : eviction.volume_claims) {
    auto made = std::make_shared<PersistentVolumeClaimView>(*claim);
    if (!hand_over(made->meta, before, successor->view())) continue;
    // Where the volume is made before its user has a node, nobody knows where: as good a guess as any is that it is like the old one.
    const auto* storage_class = volumes::find_class(cluster, claim->class_name());
    if (storage_class != nullptr && storage_class->wait_for_first_consumer) {
      made->volume_name.clear();
      made->phase = "Pending";
      made->meta.annotations.erase_if(
          [](const auto& pair) { return pair.first == volumes::kSelectedNode || pair.first == volumes::kBindCompleted; });
    }
    cluster.upsert(std::shared_ptr<const PersistentVolumeClaimView>(std::move(made)));
  }
  return successor;
}

void Trial::undo(const EvictedPod& eviction) {
  Cluster& cluster = impl_->cluster;
  cluster.remove_pod(eviction.pod->key);
  for (const ClaimPtr& claim : eviction.claims) cluster.upsert(claim);
  for (const auto& [claim_uid, allocation] : eviction.pending) cluster.set_pending_allocation(claim_uid, allocation);
  for (const auto& claim : eviction.volume_claims) cluster.upsert(claim);
  if (eviction.node.is_valid()) cluster.assume(eviction.pod, eviction.node);
}

struct Attempt::Impl {
  Trial::Impl& trial;
  Cluster::Journal journal;
};

Attempt::Attempt(Trial& trial) : impl_(std::make_unique<Impl>(*trial.impl_)) {
  impl_->trial.cluster.begin(impl_->journal);
  impl_->trial.engine.begin_attempt();
}

Attempt::~Attempt() {
  if (impl_ == nullptr) return;
  impl_->trial.cluster.take_back(impl_->journal);
  impl_->trial.engine.end_attempt(true);
}

void Attempt::keep() {
  impl_->trial.cluster.keep(impl_->journal);
  impl_->trial.engine.end_attempt(false);
  impl_ = nullptr;
}

void Trial::forget() {
  impl_->engine.forget();
  for (auto& preemptor : impl_->preemptors) preemptor.reset();
  impl_->cluster.forget_log();
}

void Trial::forget_unused() { impl_->engine.forget_unused(); }

std::size_t Trial::memory_bytes() const {
  std::size_t out = impl_->engine.memory_bytes();
  for (const auto& preemptor : impl_->preemptors)
    if (preemptor != nullptr) out += preemptor->memory_bytes();
  return out;
}

}  // namespace berth::placement
