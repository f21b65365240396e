#include "placement/columns/cluster_index.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMinTouched = 1 << 16;
/// Each change of a node is told to every topology key.
constexpr std::size_t kMostTopologies = 8192;
constexpr std::uint32_t kUntainted = 1;
/// Beyond these, nodes are like no other.
constexpr std::uint32_t kMostKindsOfTaints = 1024;

}  // namespace

void ClusterIndex::sync() {
  const bool namespaces_changed = pods_.selects_namespaces() && namespaces_version_ != cluster_->namespaces_version();
  if (position_ < cluster_->log_begin() || namespaces_changed) return rebuild();
  namespaces_version_ = cluster_->namespaces_version();
  for (const std::uint64_t end = cluster_->log_end(); position_ < end; ++position_) apply(cluster_->change(position_));
  touch_changed();
  if (pods_.is_overgrown() || topologies_.size() > kMostTopologies) rebuild();
}

void ClusterIndex::rebuild() {
  ++epoch_;
  ++line_;
  attempt_begin_ = kNoAttempt;
  namespaces_version_ = cluster_->namespaces_version();
  position_ = cluster_->log_end();
  slots_ = 0;
  touched_.restart(0);
  topologies_.clear();
  topology_index_.clear();
  pods_.clear();
  nominations_ = std::make_shared<Nominations>();
  amounts_.clear();
  taint_kinds_.clear();
  kinds_of_taints_.clear();
  image_marks_.clear();
  static_end_.clear();
  grow(cluster_->slot_count());
  for (std::uint32_t i = 0; i < slots_; ++i) {
    refresh_amounts(i);
    note_object(i);
  }
  if (cluster_->has_nominations())
    for (std::uint32_t i = 0; i < slots_; ++i)
      for (const auto& pod : cluster_->nominated(NodeIndex{i})) apply_nomination(pod);
  if (cluster_->affinity_pods() == 0) return;
  for (std::uint32_t i = 0; i < slots_; ++i) {
    const NodeInfo* node = cluster_->node(NodeIndex{i});
    if (node == nullptr || node->pods_with_affinity == 0) continue;
    for (const auto& pod : node->pods) pods_.apply(*cluster_, *pod, i, 1, slots_);
  }
  pods_.note_start();
}

void ClusterIndex::grow(std::uint32_t slots) {
  if (slots <= slots_) return;
  slots_ = slots;
  const std::size_t capacity = std::max<std::size_t>(slots, 64);
  amounts_.resize(capacity);
  taint_kinds_.resize(capacity);
  image_marks_.resize(capacity);
  static_end_.resize(capacity);
  for (auto& column : topologies_) unshare(column).value_plus_one_of.resize(capacity);
}

void ClusterIndex::refresh_amounts(std::uint32_t node) {
  const NodeInfo* info = cluster_->node(NodeIndex{node});
  NodeAmounts& out = amounts_.edit(node);
  out = info == nullptr || info->node == nullptr ? NodeAmounts{} : NodeAmounts::of(*info);
  out.version = info == nullptr ? 0 : info->version;
}

void ClusterIndex::apply(const Change& change) {
  grow(cluster_->slot_count());
  const std::uint32_t node = change.node.value;
  switch (change.kind) {
    case Change::Kind::kPodAdded:
    case Change::Kind::kPodRemoved:
      pods_.apply(*cluster_, *change.pod, node, change.kind == Change::Kind::kPodAdded ? 1 : -1, slots_);
      break;
    case Change::Kind::kNode:
      apply_node(node);
      static_end_.edit(node) = touched_.end() + 1;  // Of the entry that comes, if one does.
      break;
    case Change::Kind::kNominated:
      apply_nomination(change.pod);
      break;
    case Change::Kind::kOther:
      return;
  }
  if (changed_.empty() || changed_.back() != node) changed_.push_back(node);
}

/// An entry for each of the nodes that is not as it was when the last one was made.
void ClusterIndex::touch_changed() {
  const std::uint64_t begin = touched_.end();
  for (const std::uint32_t node : changed_) {
    const NodeInfo* info = cluster_->node(NodeIndex{node});
    if (version(node) == (info == nullptr ? 0 : info->version)) continue;
    refresh_amounts(node);
    if (touched_.size() >= std::max<std::size_t>(kMinTouched, 2UL * slots_)) touched_.drop_half();
    const bool is_static = is_static_since(node, begin);
    if (is_static) static_end_.edit(node) = touched_.end() + 1;
    touched_.push_back({node, is_static});
  }
  changed_.clear();
}

/// Nodes have the versions again that they had before, so that whoever did not look meanwhile has missed nothing.
void ClusterIndex::end_attempt(bool taken_back) {
  const std::uint64_t begin = std::exchange(attempt_begin_, kNoAttempt);
  if (!taken_back || begin == kNoAttempt || begin < touched_.begin() || begin == touched_.end()) return;
  for (std::uint64_t at = begin; at < touched_.end(); ++at)
    if (touched_[at].is_static) static_end_.edit(touched_[at].node) = begin;
  touched_.truncate(begin);
  ++line_;
}

/// Counts the pod as what it is now: nominated or not.
void ClusterIndex::apply_nomination(const PodInfoPtr& pod) {
  auto& [kinds, pods] = unshare(nominations_);
  const auto kind_of = [&kinds = kinds](const PodInfo& one) {
    return std::ranges::find_if(kinds, [&](const auto& kind) { return same_traits(*kind.example, one); });
  };
  if (const auto counted = pods.find(pod->key); counted != pods.end()) {
    const auto kind = kind_of(*counted->second);
    if (--kind->count == 0) kinds.erase(kind);
    pods.erase(counted);
  }
  if (!cluster_->is_nominated(pod->key)) return;
  // The log may hold an older version of the pod than the one that is nominated now.
  PodInfoPtr now = pod;
  for (const auto& other : cluster_->nominated(cluster_->nominated_node(pod->key)))
    if (other->key == pod->key) now = other;
  const auto kind = kind_of(*now);
  if (kind == kinds.end()) {
    kinds.push_back({now, 1});
  } else {
    ++kind->count;
  }
  pods.emplace(now->key, std::move(now));
}

void ClusterIndex::note_object(std::uint32_t node) {
  const NodeInfo* info = cluster_->node(NodeIndex{node});
  const model::NodeView* object = info == nullptr ? nullptr : info->node.get();
  if (const std::uint32_t kind = object == nullptr ? kNoNode : kind_of_taints(*object); taint_kinds_[node] != kind)
    taint_kinds_.edit(node) = kind;
  ImageMarks marks;
  if (object != nullptr)
    for (const auto& image : object->images)
      for (const std::string& name : image.names) marks.add(name);
  if (image_marks_[node] != marks) image_marks_.edit(node) = marks;
}

std::uint32_t ClusterIndex::kind_of_taints(const model::NodeView& node) {
  if (node.taints.empty() && !node.unschedulable) return kUntainted;
  std::string key = node.unschedulable ? "1" : "0";
  for (const model::Taint& taint : node.taints)
    for (const std::string* part : {&taint.key, &taint.value, &taint.effect}) key.append(*part).push_back('\0');
  if (const std::uint32_t* known = kinds_of_taints_.find(key)) return *known;
  if (kinds_of_taints_.size() >= kMostKindsOfTaints) return kLikeNoOther;
  const auto kind = static_cast<std::uint32_t>(kUntainted + 1 + kinds_of_taints_.size());
  kinds_of_taints_[key] = kind;
  return kind;
}

void ClusterIndex::apply_node(std::uint32_t node) {
  note_object(node);
  const NodeInfo* info = cluster_->node(NodeIndex{node});
  for (auto& column : topologies_)
    set_value(unshare(column), node, info == nullptr || info->node == nullptr ? nullptr : info->label(column->key));
}

void ClusterIndex::set_value(TopologyColumn& column, std::uint32_t node, const std::string* value) {
  std::int32_t id = -1;
  if (value != nullptr) {
    if (const std::int32_t* known = column.ids.find(*value)) {
      id = *known;
    } else {
      id = column.ids[*value] = static_cast<std::int32_t>(column.population.size());
      column.population.push_back(0);
    }
    if (value->empty()) column.empty_value = id;
  }
  const std::int32_t before = column.value_of(node);
  if (before == id) return;
  BERTH_CHECK(before < 0 || column.population[static_cast<std::size_t>(before)] > 0, "node {} leaves a domain of {} that has no nodes",
              node, column.key);
  if (before >= 0 && --column.population.edit(static_cast<std::size_t>(before)) == 1) --column.shared_values;
  if (id >= 0 && ++column.population.edit(static_cast<std::size_t>(id)) == 2) ++column.shared_values;
  column.value_plus_one_of.edit(node) = id + 1;
}

std::size_t ClusterIndex::topology(const std::string& key) {
  const auto [at, is_new] = topology_index_.try_emplace(key, topologies_.size());
  if (!is_new) return at->second;
  TopologyColumn& column = *topologies_.emplace_back(std::make_shared<TopologyColumn>());
  column.key = key;
  column.value_plus_one_of.renew(std::max<std::size_t>(slots_, 64));
  for (std::uint32_t i = 0; i < slots_; ++i) {
    const NodeInfo* node = cluster_->node(NodeIndex{i});
    if (node != nullptr && node->node != nullptr) set_value(column, i, node->label(key));
  }
  return at->second;
}

std::size_t ClusterIndex::memory_bytes() const {
  std::size_t out = touched_.memory_bytes() + amounts_.memory_bytes() + taint_kinds_.memory_bytes() + image_marks_.memory_bytes();
  for (const auto& column : topologies_)
    out += sizeof(TopologyColumn) + heap_bytes(column->key) + column->value_plus_one_of.memory_bytes() + column->population.memory_bytes() +
           column->ids.size() * 64;
  return out + pods_.memory_bytes();
}

}  // namespace berth::placement
