#include "placement/columns/cluster_index.h"

#include <algorithm>

namespace berth::placement {
namespace {

constexpr std::size_t kMinTouched = 1 << 16;
/// More different kinds of pods than this are forgotten and learned again.
constexpr std::size_t kMaxTraits = 1 << 18;

void mix(std::size_t& hash, std::size_t value) {
  hash = (hash ^ (value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2))) * 0xff51afd7ed558ccdULL;
}

void mix(std::size_t& hash, const model::Selector& selector) {
  mix(hash, selector.is_nothing() ? 1 : 0);
  for (const auto& requirement : selector.requirements()) {
    mix(hash, std::hash<std::string>{}(requirement.key));
    mix(hash, static_cast<std::size_t>(requirement.op));
    for (const auto& value : requirement.values) mix(hash, std::hash<std::string>{}(value));
  }
}

std::size_t hash_of(const AffinityTerm& term) {
  std::size_t out = std::hash<std::string>{}(term.topology_key);
  mix(out, static_cast<std::size_t>(term.weight));
  for (const auto& ns : term.namespaces) mix(out, std::hash<std::string>{}(ns));
  if (term.namespace_selector) mix(out, *term.namespace_selector);
  mix(out, term.selector);
  return out;
}

bool has_terms(const PodInfo& pod) { return pod.has_affinity(); }

}  // namespace

void ClusterIndex::sync() {
  if (position_ < cluster_->log_begin() || (selects_namespaces_ && namespaces_version_ != cluster_->namespaces_version())) return rebuild();
  namespaces_version_ = cluster_->namespaces_version();
  for (const std::uint64_t end = cluster_->log_end(); position_ < end; ++position_) apply(cluster_->change(position_));
}

void ClusterIndex::rebuild() {
  ++epoch_;
  namespaces_version_ = cluster_->namespaces_version();
  position_ = cluster_->log_end();
  slots_ = 0;
  touched_.restart(0);
  topologies_.clear();
  topology_index_.clear();
  matchers_.clear();
  held_terms_.clear();
  matcher_index_.clear();
  held_index_.clear();
  traits_.clear();
  nominations_ = std::make_shared<Nominations>();
  amounts_.clear();
  grow(cluster_->slot_count());
  for (std::uint32_t i = 0; i < slots_; ++i) refresh_amounts(i);
  if (cluster_->has_nominations())
    for (std::uint32_t i = 0; i < slots_; ++i)
      for (const auto& pod : cluster_->nominated(NodeIndex{i})) apply_nomination(pod);
  if (cluster_->affinity_pods() == 0) return;
  for (std::uint32_t i = 0; i < slots_; ++i) {
    const NodeInfo* node = cluster_->node(NodeIndex{i});
    if (node == nullptr || node->pods_with_affinity == 0) continue;
    for (const auto& pod : node->pods) apply_pod(*pod, i, 1);
  }
}

void ClusterIndex::note_namespace_selectors(const PodInfo& pod) {
  const auto selects = [](const AffinityTerm& term) { return term.namespace_selector && !term.namespace_selector->is_everything(); };
  for (const auto* terms : {&pod.required_affinity, &pod.required_anti_affinity, &pod.preferred_affinity, &pod.preferred_anti_affinity})
    selects_namespaces_ |= std::ranges::any_of(*terms, selects);
}

void ClusterIndex::grow(std::uint32_t slots) {
  if (slots <= slots_) return;
  slots_ = slots;
  const std::size_t capacity = std::max<std::size_t>(slots, 64);
  amounts_.resize(capacity);
  for (auto& column : topologies_) unshare(column).value_plus_one_of.resize(capacity);
}

void ClusterIndex::refresh_amounts(std::uint32_t node) {
  const NodeInfo* info = cluster_->node(NodeIndex{node});
  amounts_.edit(node) = info == nullptr || info->node == nullptr ? NodeAmounts{} : NodeAmounts::of(*info);
}

void ClusterIndex::touch(std::uint32_t node, bool is_static) {
  refresh_amounts(node);
  if (touched_.size() >= std::max<std::size_t>(kMinTouched, 2UL * slots_)) {
    touched_.drop_half();
  }
  touched_.push_back({node, is_static});
}

void ClusterIndex::apply(const Change& change) {
  grow(cluster_->slot_count());
  switch (change.kind) {
    case Change::Kind::kPodAdded:
    case Change::Kind::kPodRemoved:
      apply_pod(*change.pod, change.node.value, change.kind == Change::Kind::kPodAdded ? 1 : -1);
      touch(change.node.value, false);
      break;
    case Change::Kind::kNode:
      apply_node(change.node.value);
      touch(change.node.value, true);
      break;
    case Change::Kind::kNominated:
      apply_nomination(change.pod);
      touch(change.node.value, false);
      break;
    case Change::Kind::kOther:
      break;
  }
}

void ClusterIndex::apply_pod(const PodInfo& pod, std::uint32_t node, std::int32_t delta) {
  if (matchers_.empty() && !has_terms(pod)) return;
  const Traits& traits = traits_of(pod);
  for (const auto index : traits.matchers) unshare(matchers_.edit(index)).count.add(node, delta, slots_);
  for (const auto index : traits.held) unshare(held_terms_.edit(index)).count.add(node, delta, slots_);
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

void ClusterIndex::apply_node(std::uint32_t node) {
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

bool ClusterIndex::matches(const PodMatcher& matcher, const PodInfo& pod) const {
  const auto& view = pod.view();
  if (matcher.skip_terminating && view.meta.is_deleting) return false;
  const auto& labels = cluster_->namespace_labels(view.ns());
  return std::ranges::all_of(matcher.terms, [&](const AffinityTerm& term) { return term.matches(view, labels); });
}

CountId ClusterIndex::matcher(std::vector<AffinityTerm> terms, bool skip_terminating) {
  // Where the pods are does not matter to who matches.
  for (auto& term : terms) {
    term.topology_key.clear();
    term.weight = 0;
  }
  std::size_t hash = skip_terminating ? 1 : 0;
  for (const auto& term : terms) mix(hash, hash_of(term));
  if (const auto* alike = matcher_index_.find(hash))
    for (const auto known : *alike)
      if (matchers_[known]->skip_terminating == skip_terminating && matchers_[known]->terms == terms) return {known * 2};
  const auto index = static_cast<std::uint32_t>(matchers_.size());
  matcher_index_[hash].push_back(index);
  const auto made = std::make_shared<PodMatcher>();
  made->terms = std::move(terms);
  made->skip_terminating = skip_terminating;
  matchers_.push_back(made);
  // Each kind of pod is tried once, not each pod.
  for (std::uint32_t i = 0; i < slots_; ++i) {
    const NodeInfo* node = cluster_->node(NodeIndex{i});
    if (node == nullptr) continue;
    for (const auto& pod : node->pods)
      if (std::ranges::binary_search(traits_of(*pod).matchers, index)) made->count.add(i, 1, slots_);
  }
  return {index * 2};
}

const ClusterIndex::Traits& ClusterIndex::traits_of(const PodInfo& pod) {
  const auto is_it = [&](const std::shared_ptr<Traits>& traits) {
    return traits->example.get() == &pod || same_traits(*traits->example, pod);
  };
  if (const auto* known = traits_.find(pod.traits_hash)) {
    const auto at = std::ranges::find_if(*known, is_it);
    if (at != known->end() && (*at)->matchers_seen == matchers_.size()) return **at;
  }
  if (traits_.size() > kMaxTraits) traits_.clear();
  auto& bucket = traits_[pod.traits_hash];
  auto at = std::ranges::find_if(bucket, is_it);
  if (at == bucket.end()) {
    bucket.push_back(learn_traits(pod));
    at = std::prev(bucket.end());
  }
  Traits& traits = unshare(*at);
  for (; traits.matchers_seen < matchers_.size(); ++traits.matchers_seen)
    if (matches(*matchers_[traits.matchers_seen], pod)) traits.matchers.push_back(static_cast<std::uint32_t>(traits.matchers_seen));
  return traits;
}

std::shared_ptr<ClusterIndex::Traits> ClusterIndex::learn_traits(const PodInfo& pod) {
  auto out = std::make_shared<Traits>();
  out->example = pod.shared_from_this();
  note_namespace_selectors(pod);
  for (const auto& term : pod.required_affinity) out->held.push_back(hold(HeldTerm::Kind::kRequiredAffinity, term));
  for (const auto& term : pod.required_anti_affinity) out->held.push_back(hold(HeldTerm::Kind::kRequiredAntiAffinity, term));
  for (const auto& term : pod.preferred_affinity) out->held.push_back(hold(HeldTerm::Kind::kPreferred, term));
  for (auto term : pod.preferred_anti_affinity) {
    term.weight = -term.weight;
    out->held.push_back(hold(HeldTerm::Kind::kPreferred, term));
  }
  return out;
}

std::uint32_t ClusterIndex::hold(HeldTerm::Kind kind, const AffinityTerm& term) {
  std::size_t hash = static_cast<std::size_t>(kind);
  mix(hash, hash_of(term));
  if (const auto* alike = held_index_.find(hash))
    for (const auto known : *alike)
      if (held_terms_[known]->kind == kind && held_terms_[known]->term == term) return known;
  const auto index = static_cast<std::uint32_t>(held_terms_.size());
  held_index_[hash].push_back(index);
  auto made = std::make_shared<HeldTerm>();
  made->kind = kind;
  made->term = term;
  held_terms_.push_back(std::move(made));
  return index;
}

std::size_t ClusterIndex::memory_bytes() const {
  std::size_t out = touched_.memory_bytes() + amounts_.memory_bytes();
  for (const auto& column : topologies_)
    out += column->value_plus_one_of.memory_bytes() + column->population.memory_bytes() + column->ids.size() * 64;
  for (std::size_t i = 0; i < matchers_.size(); ++i) out += matchers_[i]->count.memory_bytes();
  for (std::size_t i = 0; i < held_terms_.size(); ++i) out += held_terms_[i]->count.memory_bytes();
  return out;
}

}  // namespace berth::placement
