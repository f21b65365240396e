#include "placement/cluster.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "model/views/node_topology_view.h"
#include "placement/cluster_journal.h"

namespace berth::placement {
namespace {

/// Beyond this many entries the older half of the log goes; whoever lags that far rebuilds.
constexpr std::size_t kMinLog = 1 << 16;
/// Of pods, each time that one is named: large ones shorten the log.
constexpr std::size_t kMostLogBytes = std::size_t{64} << 20;

std::string object_key(const model::ObjectMeta& meta) { return meta.key(); }

bool is_same_image(const model::NodeImage& a, const model::NodeImage& b) { return a.size_bytes == b.size_bytes && a.names == b.names; }

}  // namespace

Cluster::Cluster(Era era) : era_(era) {
  objects_.services = std::make_shared<Table<model::ServiceView>>();
  objects_.replication_controllers = std::make_shared<Table<model::WorkloadView>>();
  objects_.replica_sets = std::make_shared<Table<model::WorkloadView>>();
  objects_.stateful_sets = std::make_shared<Table<model::WorkloadView>>();
  objects_.namespaces = std::make_shared<Table<model::NamespaceView>>();
  objects_.persistent_volumes = std::make_shared<Table<model::PersistentVolumeView>>();
  objects_.claims = std::make_shared<Table<model::PersistentVolumeClaimView>>();
  objects_.storage_classes = std::make_shared<Table<model::StorageClassView>>();
  objects_.csi_nodes = std::make_shared<Table<model::CsiNodeView>>();
  objects_.csi_drivers = std::make_shared<Table<model::CsiDriverView>>();
  objects_.storage_capacities = std::make_shared<Table<model::CsiStorageCapacityView>>();
  objects_.volume_attachments = std::make_shared<Table<model::VolumeAttachmentView>>();
  objects_.volume_attachments_by_name = std::make_shared<Table<model::VolumeAttachmentView>>();
  objects_.disruption_budgets = std::make_shared<Table<model::PodDisruptionBudgetView>>();
  objects_.priority_classes = std::make_shared<Table<model::PriorityClassView>>();
  objects_.resource_claims = std::make_shared<Table<model::ResourceClaimView>>();
  objects_.resource_slices = std::make_shared<Table<model::ResourceSliceView>>();
  objects_.device_classes = std::make_shared<Table<model::DeviceClassView>>();
  objects_.device_taint_rules = std::make_shared<Table<model::DeviceTaintRuleView>>();
  objects_.node_topologies = std::make_shared<Table<model::NodeTopologyView>>();
}

Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;
Cluster& Cluster::operator=(Cluster&&) noexcept = default;

Cluster Cluster::fork() const {
  Cluster out(*this);
  out.forget_log();
  out.journal_ = nullptr;
  return out;
}

// Nodes

NodeInfo& Cluster::writable(NodeIndex index) {
  keep_slot(index);
  auto& chunk = unshare(chunks_[index.value / kChunkNodes]);
  NodeInfo& out = unshare(chunk[index.value % kChunkNodes]);
  out.notes.clear();
  out.version = new_version();
  return out;
}

std::uint32_t Cluster::new_version() {
  if (++last_version_ == 0) ++last_version_;
  return last_version_;
}

const NodeInfo* Cluster::node(NodeIndex index) const {
  if (index.value >= slot_count_) return nullptr;
  return (*chunks_[index.value / kChunkNodes])[index.value % kChunkNodes].get();
}

const NodeInfo* Cluster::find_node(std::string_view name) const {
  const NodeIndex* known = names_.find(name);
  return known == nullptr ? nullptr : node(*known);
}

NodeIndex Cluster::slot_for(std::string_view name) {
  if (const NodeIndex* known = names_.find(name)) return *known;
  NodeIndex index;
  if (!free_slots_.empty()) {
    index = free_slots_.back();
    free_slots_.pop_back();
    keep_slot(index);
  } else {
    index = NodeIndex{slot_count_++};
    if (index.value % kChunkNodes == 0) chunks_.push_back(std::make_shared<NodeChunk>());
    arrivals_.push_back(0);
  }
  auto info = std::make_shared<NodeInfo>();
  info->index = index;
  info->version = new_version();
  info->name = std::string(name);
  keep_name(info->name);
  names_[info->name] = index;
  unshare(chunks_[index.value / kChunkNodes])[index.value % kChunkNodes] = std::move(info);
  return index;
}

void Cluster::release_slot_if_empty(NodeIndex index) {
  const NodeInfo& info = *node(index);
  if (info.node != nullptr || !info.pods.empty()) return;
  keep_slot(index);
  keep_name(info.name);
  names_.erase(info.name);
  unshare(chunks_[index.value / kChunkNodes])[index.value % kChunkNodes] = nullptr;
  free_slots_.push_back(index);
}

NodeIndex Cluster::upsert_node(model::NodeViewPtr view) {
  const NodeIndex index = slot_for(view->name());
  NodeInfo& info = writable(index);
  if (info.node == nullptr) {
    ++node_count_;
    ++images_version_;
    arrivals_.edit(index.value) = next_arrival_++;
    count_images(*view, 1);
  } else if (!std::ranges::equal(info.node->images, view->images, is_same_image)) {
    count_images(*info.node, -1);
    count_images(*view, 1);
  }
  info.allocatable = Resource::from_list(view->allocatable);
  if (era_ == Era::k120) {
    info.image_states.clear();
    for (const auto& image : view->images)
      for (const auto& name : image.names)
        if (const auto* state = this->image(name)) info.image_states.emplace_back(name, *state);
  }
  const bool is_new = info.node == nullptr;
  info.node = std::move(view);
  if (const auto known = objects_.node_topologies->find(info.name); known != objects_.node_topologies->end()) info.topology = known->second;
  record(Change::Kind::kNode, index);
  if (is_new && !nominations_->by_pod.empty()) {
    for (auto& [key, nomination] : nominations().by_pod) {
      if (nomination.node.is_valid() || nomination.node_name != info.name) continue;
      attach(nomination, index);
      record(Change::Kind::kNominated, index, nomination.pod);
    }
  }
  return index;
}

bool Cluster::remove_node(std::string_view name) {
  const NodeIndex* known = names_.find(name);
  if (known == nullptr) return false;
  const NodeIndex index = *known;
  NodeInfo& info = writable(index);
  if (info.node == nullptr) return false;
  count_images(*info.node, -1);
  ++images_version_;
  info.node = nullptr;
  info.topology = nullptr;
  info.allocatable = {};
  --node_count_;
  record(Change::Kind::kNode, index);
  // The slot may be another node's next.
  for (const PodInfoPtr& pod : std::vector<PodInfoPtr>(nominated(index))) {
    detach(nominations().by_pod.find(pod->key)->second);
    record(Change::Kind::kNominated, index, pod);
  }
  release_slot_if_empty(index);
  return true;
}

std::vector<const NodeInfo*> Cluster::nodes() const {
  std::vector<const NodeInfo*> out;
  out.reserve(node_count_);
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    const NodeInfo* info = node(NodeIndex{i});
    if (info != nullptr && info->node != nullptr) out.push_back(info);
  }
  const auto arrival = [&](const NodeInfo* info) { return arrivals_[info->index.value]; };
  if (!std::ranges::is_sorted(out, {}, arrival)) std::ranges::sort(out, {}, arrival);
  return out;
}

void Cluster::count_images(const model::NodeView& view, int sign) {
  if (view.images.empty()) return;
  ++images_version_;
  Images& images = unshare(images_);
  std::unordered_set<std::string_view> seen;  // A node counts once, however often it lists an image.
  for (const auto& image : view.images) {
    for (const auto& name : image.names) {
      if (!seen.insert(name).second) continue;
      const auto known = images.find(name);
      if (journal_ != nullptr) journal_->images.emplace_back(name, known == images.end() ? std::nullopt : std::optional(known->second));
      if (known == images.end()) {
        // The first node to report an image decides its size for all.
        if (sign > 0) images.emplace(name, ImageState{image.size_bytes, 1});
      } else if ((known->second.node_count += sign) <= 0) {
        images.erase(known);
      }
    }
  }
}

const ImageState* Cluster::image(std::string_view name) const {
  const auto at = images_->find(name);
  return at == images_->end() ? nullptr : &at->second;
}

// Pods

void Cluster::place(const PodInfoPtr& pod, NodeIndex index) {
  BERTH_CHECK(!pods_.contains(pod->key), "pod {} is put on a node while it is on one", pod->key);
  writable(index).add_pod(pod);
  pods_[pod->key] = PodSlot{pod.get(), index};
  affinity_pods_ += pod->has_affinity();
  required_anti_affinity_pods_ += !pod->required_anti_affinity.empty();
  record(Change::Kind::kPodAdded, index, pod);
}

bool Cluster::take_away(std::string_view key) {
  const PodSlot* there = pods_.find(key);
  if (there == nullptr) return false;
  const NodeIndex index = there->node;
  const PodInfoPtr pod = there->pod->shared_from_this();
  pods_.erase(key);
  affinity_pods_ -= pod->has_affinity();
  required_anti_affinity_pods_ -= !pod->required_anti_affinity.empty();
  BERTH_CHECK(writable(index).remove_pod(pod->key), "pod {} is not among those of its node", pod->key);
  record(Change::Kind::kPodRemoved, index, pod);
  release_slot_if_empty(index);
  return true;
}

void Cluster::upsert_pod(model::PodViewPtr pod) { upsert_pod(PodInfo::make(std::move(pod), era_)); }

void Cluster::upsert_pod(PodInfoPtr pod) {
  const model::PodView& view = pod->view();
  take_away(pod->key);
  drop_nomination(pod->key);
  if (view.is_terminal()) return;
  if (!view.node_name.empty()) {
    place(pod, slot_for(view.node_name));
  } else if (!view.nominated_node_name.empty()) {
    nominate(pod, view.nominated_node_name);
  }
}

bool Cluster::remove_pod(std::string_view key) {
  const std::string kept(key);  // The caller's view may point into the pod that goes.
  drop_nomination(kept);
  return take_away(kept);
}

void Cluster::assume(const PodInfoPtr& pod, NodeIndex index) {
  drop_nomination(pod->key);
  take_away(pod->key);
  if (node(index) != nullptr) place(pod, index);
}

bool Cluster::forget(std::string_view key) { return take_away(std::string(key)); }

void Cluster::drop_nomination(std::string_view key) {
  if (!nominations_->by_pod.contains(key)) return;
  const auto at = nominations().by_pod.find(key);
  const Nomination gone = at->second;
  detach(at->second);
  nominations().by_pod.erase(at);
  if (gone.node.is_valid()) record(Change::Kind::kNominated, gone.node, gone.pod);
}

void Cluster::attach(Nomination& nomination, NodeIndex index) {
  nomination.node = index;
  (void)writable(index);
  nominations().by_node[index].push_back(nomination.pod);
  nominated_affinity_pods_ += nomination.pod->has_affinity();
}

void Cluster::detach(Nomination& nomination) {
  if (!nomination.node.is_valid()) return;
  auto& by_node = nominations().by_node;
  const auto there = by_node.find(nomination.node);
  BERTH_CHECK(there != by_node.end() && std::erase(there->second, nomination.pod) == 1, "pod {} is not among those nominated to its node",
              nomination.pod->key);
  if (there->second.empty()) by_node.erase(there);
  nominated_affinity_pods_ -= nomination.pod->has_affinity();
  (void)writable(nomination.node);
  nomination.node = {};
}

void Cluster::nominate(const PodInfoPtr& pod, std::string_view node_name) {
  drop_nomination(pod->key);
  if (node_name.empty()) return;
  Nomination& made = nominations().by_pod.emplace(pod->key, Nomination{pod, std::string(node_name), {}}).first->second;
  const NodeInfo* info = find_node(node_name);
  if (info == nullptr || info->node == nullptr) return;
  attach(made, info->index);
  record(Change::Kind::kNominated, info->index, pod);
}

const std::vector<PodInfoPtr>& Cluster::nominated(NodeIndex index) const {
  static const std::vector<PodInfoPtr> kNone;
  const auto& by_node = nominations_->by_node;
  if (by_node.empty()) return kNone;
  const auto at = by_node.find(index);
  return at == by_node.end() ? kNone : at->second;
}

NodeIndex Cluster::nominated_node(std::string_view key) const {
  const auto at = nominations_->by_pod.find(key);
  return at == nominations_->by_pod.end() ? NodeIndex{} : at->second.node;
}

PodInfoPtr Cluster::find_pod(std::string_view key) const {
  const PodSlot* there = pods_.find(key);
  return there == nullptr ? nullptr : there->pod->shared_from_this();
}

NodeIndex Cluster::pod_node(std::string_view key) const {
  const PodSlot* there = pods_.find(key);
  return there == nullptr ? NodeIndex{} : there->node;
}

std::size_t Cluster::pod_count() const { return pods_.size(); }

void Cluster::record(Change::Kind kind, NodeIndex index, PodInfoPtr pod) {
  if (log_.size() >= std::max<std::size_t>(kMinLog, 2 * slot_count_) || log_bytes_ > kMostLogBytes) shorten_log();
  log_bytes_ += pod == nullptr ? 0 : pod->bytes;
  if (journal_ != nullptr) journal_->changes.push_back({kind, index, pod});
  log_.push_back({kind, index, std::move(pod)});
}

void Cluster::shorten_log() {
  do {
    log_.drop_half();
    log_bytes_ = 0;
    for (std::uint64_t at = log_.begin(); at < log_.end(); ++at)
      if (const auto& pod = log_[at].pod; pod != nullptr) log_bytes_ += pod->bytes;
  } while (log_bytes_ > kMostLogBytes / 2 && log_.size() > 1);
}

// Other objects

template <typename T>
void Cluster::touch_objects() {
  ++objects_version_;
  if constexpr (std::is_same_v<T, model::NamespaceView>) ++namespaces_version_;
  if constexpr (std::is_same_v<T, model::PodDisruptionBudgetView>) ++budgets_version_;
  if constexpr (std::is_same_v<T, model::ServiceView> || std::is_same_v<T, model::WorkloadView>) ++workloads_version_;
  record(Change::Kind::kOther, {});
}

namespace {

// Statuses and annotations change with every pod, and concern nobody here.
template <typename T>
bool selects_alike(const T&, const T&) {
  return false;
}
bool selects_alike(const model::NamespaceView& a, const model::NamespaceView& b) { return a.meta.labels == b.meta.labels; }
bool selects_alike(const model::ServiceView& a, const model::ServiceView& b) {
  return a.has_selector == b.has_selector && a.selector == b.selector;
}
bool selects_alike(const model::WorkloadView& a, const model::WorkloadView& b) {
  return a.selector_ok == b.selector_ok && a.selector == b.selector;
}
/// The node itself is another then.
bool selects_alike(const model::NodeTopologyView&, const model::NodeTopologyView&) { return true; }

}  // namespace

template <typename T>
void Cluster::put(TablePtr<T>& table, std::shared_ptr<const T> object, std::string key) {
  const auto at = table->find(key);
  const bool says_the_same = at != table->end() && selects_alike(*at->second, *object);
  unshare(table).insert_or_assign(std::move(key), std::move(object));
  if (!says_the_same) touch_objects<T>();
}

template <typename T>
bool Cluster::drop(TablePtr<T>& table, std::string_view key) {
  if (!table->contains(key)) return false;
  auto& own = unshare(table);
  own.erase(own.find(key));
  touch_objects<T>();
  return true;
}

void Cluster::upsert(std::shared_ptr<const model::PersistentVolumeView> object) {
  auto key = object_key(object->meta);
  put(objects_.persistent_volumes, std::move(object), std::move(key));
}
void Cluster::upsert(std::shared_ptr<const model::PersistentVolumeClaimView> object) {
  auto key = object_key(object->meta);
  put(objects_.claims, std::move(object), std::move(key));
}
void Cluster::upsert(std::shared_ptr<const model::NamespaceView> object) {
  auto key = object_key(object->meta);
  put(objects_.namespaces, std::move(object), std::move(key));
}
void Cluster::upsert(std::shared_ptr<const model::ServiceView> object) {
  auto key = object_key(object->meta);
  put(objects_.services, std::move(object), std::move(key));
}
void Cluster::upsert(std::shared_ptr<const model::CsiNodeView> object) {
  for (const auto& driver : object->drivers)
    if (driver.count) least_volume_limit_ = std::min(least_volume_limit_, *driver.count);
  auto key = object_key(object->meta);
  put(objects_.csi_nodes, std::move(object), std::move(key));
}
void Cluster::upsert(std::shared_ptr<const model::PodDisruptionBudgetView> object) {
  auto key = object_key(object->meta);
  put(objects_.disruption_budgets, std::move(object), std::move(key));
}

void Cluster::upsert(std::shared_ptr<const model::ResourceClaimView> object) {
  if (object->allocation != nullptr) set_pending_allocation(object->meta.uid, nullptr);
  auto key = object_key(object->meta);
  put(objects_.resource_claims, std::move(object), std::move(key));
}

ClaimPtr Cluster::find_claim(std::string_view ns, std::string_view name) const {
  const auto at = objects_.resource_claims->find(std::string(ns) + "/" + std::string(name));
  return at == objects_.resource_claims->end() ? nullptr : at->second;
}

std::shared_ptr<const model::Allocation> Cluster::pending_allocation(std::string_view claim_uid) const {
  const auto at = pending_allocations_->find(claim_uid);
  return at == pending_allocations_->end() ? nullptr : at->second.allocation;
}

std::string_view Cluster::pending_group(std::string_view claim_uid) const {
  const auto at = pending_allocations_->find(claim_uid);
  return at == pending_allocations_->end() ? std::string_view() : at->second.group;
}

void Cluster::hold_pending_allocation(const std::string& claim_uid, const std::shared_ptr<const model::Allocation>& allocation) {
  if (pending_allocation(claim_uid) == allocation && allocation != nullptr) ++unshare(pending_allocations_)[claim_uid].holders;
}

void Cluster::drop_pending_allocation(const std::string& claim_uid, const std::shared_ptr<const model::Allocation>& allocation) {
  if (pending_allocation(claim_uid) != allocation || allocation == nullptr) return;
  Allocations& all = unshare(pending_allocations_);
  if (const auto at = all.find(claim_uid); --at->second.holders == 0) all.erase(at);
}

void Cluster::set_pending_allocation(const std::string& claim_uid, std::shared_ptr<const model::Allocation> allocation,
                                     const std::string& group) {
  if (allocation != nullptr)
    unshare(pending_allocations_)[claim_uid] = {std::move(allocation), group};
  else if (pending_allocations_->contains(claim_uid))
    unshare(pending_allocations_).erase(claim_uid);
}

void Cluster::put_attachment(std::shared_ptr<const model::VolumeAttachmentView> attachment) {
  drop_attachment(attachment->meta.name);
  put(objects_.volume_attachments, attachment, attachment->node_name + "/" + attachment->meta.name);
  const std::string name = attachment->meta.name;
  put(objects_.volume_attachments_by_name, std::move(attachment), name);
}

bool Cluster::drop_attachment(std::string_view name) {
  const auto found = objects_.volume_attachments_by_name->find(name);
  if (found == objects_.volume_attachments_by_name->end()) return false;
  drop(objects_.volume_attachments, found->second->node_name + "/" + std::string(name));
  return drop(objects_.volume_attachments_by_name, name);
}

/// A node's NUMA nodes are the node's own: whoever follows the node follows them.
void Cluster::tell_topology(std::string_view node_name, model::NodeTopologyViewPtr topology) {
  const NodeIndex* known = names_.find(node_name);
  if (known == nullptr || node(*known)->node == nullptr) return;
  const NodeIndex index = *known;
  writable(index).topology = std::move(topology);
  record(Change::Kind::kNode, index);
}

void Cluster::put_topology(const model::NodeTopologyViewPtr& topology) {
  put(objects_.node_topologies, topology, topology->meta.name);
  tell_topology(topology->meta.name, topology);
}

bool Cluster::drop_topology(std::string_view name) {
  tell_topology(name, nullptr);
  return drop(objects_.node_topologies, name);
}

namespace {

/// Of the kinds that are kept as they come. Found: what `use` gives for the table.
template <typename Objects, typename Use>
bool with_table(std::string_view kind, Objects& objects, const Use& use) {
  if (kind == "Service") return use(objects.services);
  if (kind == "ReplicationController") return use(objects.replication_controllers);
  if (kind == "ReplicaSet") return use(objects.replica_sets);
  if (kind == "StatefulSet") return use(objects.stateful_sets);
  if (kind == "Namespace") return use(objects.namespaces);
  if (kind == "PersistentVolume") return use(objects.persistent_volumes);
  if (kind == "PersistentVolumeClaim") return use(objects.claims);
  if (kind == "StorageClass") return use(objects.storage_classes);
  if (kind == "CSINode") return use(objects.csi_nodes);
  if (kind == "CSIDriver") return use(objects.csi_drivers);
  if (kind == "CSIStorageCapacity") return use(objects.storage_capacities);
  if (kind == "PodDisruptionBudget") return use(objects.disruption_budgets);
  if (kind == "PriorityClass") return use(objects.priority_classes);
  if (kind == "ResourceClaim") return use(objects.resource_claims);
  if (kind == "ResourceSlice") return use(objects.resource_slices);
  if (kind == "DeviceClass") return use(objects.device_classes);
  if (kind == "DeviceTaintRule") return use(objects.device_taint_rules);
  return false;
}

}  // namespace

bool Cluster::upsert(const json::Value& object) {
  const auto kind = json::get_string(object, {"kind"});
  const auto read = [&]<typename T>(std::type_identity<T>) { return std::make_shared<const T>(T::parse(object)); };
  if (kind == "Node") return upsert_node(read(std::type_identity<model::NodeView>())), true;
  if (kind == "Pod") return upsert_pod(read(std::type_identity<model::PodView>())), true;
  if (kind == "VolumeAttachment") return put_attachment(read(std::type_identity<model::VolumeAttachmentView>())), true;
  if (kind == "NodeResourceTopology") return put_topology(read(std::type_identity<model::NodeTopologyView>())), true;
  return with_table(kind, objects_, [&]<typename T>(TablePtr<T>& table) {
    auto view = read(std::type_identity<T>());
    if constexpr (std::is_same_v<T, model::CsiNodeView> || std::is_same_v<T, model::ResourceClaimView>) {
      upsert(std::move(view));
    } else {
      auto key = object_key(view->meta);
      put(table, std::move(view), std::move(key));
    }
    return true;
  });
}

bool Cluster::remove(std::string_view kind, std::string_view ns, std::string_view name) {
  const std::string key = ns.empty() ? std::string(name) : std::string(ns) + "/" + std::string(name);
  if (kind == "Node") return remove_node(name);
  if (kind == "Pod") return remove_pod(key);
  if (kind == "VolumeAttachment") return drop_attachment(name);
  if (kind == "NodeResourceTopology") return drop_topology(name);
  if (kind == "ResourceClaim")
    if (const auto at = objects_.resource_claims->find(key); at != objects_.resource_claims->end())
      set_pending_allocation(at->second->meta.uid, nullptr);
  return with_table(kind, objects_, [&](auto& table) { return drop(table, key); });
}

const model::Labels& Cluster::namespace_labels(std::string_view name) const {
  static const model::Labels kNone;
  const auto at = objects_.namespaces->find(name);
  return at == objects_.namespaces->end() ? kNone : at->second->meta.labels;
}

}  // namespace berth::placement
