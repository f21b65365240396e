#include "placement/columns/pod_kinds.h"

#include <algorithm>

#include "base/check.h"
#include "placement/plugins/default_selector.h"

namespace berth::placement {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
/// Unused kinds beyond this, and as many as are used, are forgotten.
constexpr std::size_t kSpareKinds = 1 << 16;
constexpr std::size_t kSpareMatchers = 1 << 16;
/// The same in bytes: what users write into terms and labels has any length.
constexpr std::size_t kSpareBytes = std::size_t{64} << 20;

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

}  // namespace

void PodKinds::clear() {
  kinds_.clear();
  free_kinds_.clear();
  kinds_by_hash_.clear();
  used_kinds_ = 0;
  idle_kind_bytes_ = idle_term_bytes_ = matcher_bytes_ = 0;
  kinds_by_label_.clear();
  matchers_by_label_.clear();
  held_by_label_.clear();
  matchers_.clear();
  held_terms_.clear();
  matcher_index_.clear();
  held_index_.clear();
  held_at_start_ = 0;
  counts_all_ = false;
  last_pod_ = nullptr;
}

bool PodKinds::is_overgrown() const {
  return matchers_.size() > kSpareMatchers || held_terms_.size() > 2 * held_at_start_ + kSpareMatchers ||
         idle_kind_bytes_ + idle_term_bytes_ + matcher_bytes_ > kSpareBytes;
}

void PodKinds::note_namespace_selectors(const PodInfo& pod) {
  const auto selects = [](const AffinityTerm& term) { return term.namespace_selector && !term.namespace_selector->is_everything(); };
  for (const auto* terms : {&pod.required_affinity, &pod.required_anti_affinity, &pod.preferred_affinity, &pod.preferred_anti_affinity})
    selects_namespaces_ |= std::ranges::any_of(*terms, selects);
}

void PodKinds::apply(const Cluster& cluster, const PodInfo& pod, std::uint32_t node, std::int32_t delta, std::uint32_t slots) {
  if (!counts_all_ && !pod.has_affinity()) return;
  const std::uint32_t id = kind_of(cluster, pod);
  count_pods(id, delta);
  Kind& kind = unshare(kinds_.edit(id));
  if (kind.held.empty() && pod.has_affinity()) {
    for (const auto& term : pod.required_affinity) kind.held.push_back(hold(HeldTerm::Kind::kRequiredAffinity, term));
    for (const auto& term : pod.required_anti_affinity) kind.held.push_back(hold(HeldTerm::Kind::kRequiredAntiAffinity, term));
    for (const auto& term : pod.preferred_affinity) kind.held.push_back(hold(HeldTerm::Kind::kPreferred, term));
    for (auto term : pod.preferred_anti_affinity) {
      term.weight = -term.weight;
      kind.held.push_back(hold(HeldTerm::Kind::kPreferred, term));
    }
  }
  if (counts_all_) {
    kind.nodes.add(node, delta, slots);
    for (const auto id : kind.matchers) unshare(matchers_.edit(id)).count.add(node, delta, slots);
  }
  for (const auto term : kind.held) {
    HeldTerm& held = unshare(held_terms_.edit(term));
    held.count.add(node, delta, slots);
    if (held.pods == 0) idle_term_bytes_ -= held.own_bytes();
    held.pods += static_cast<std::uint64_t>(static_cast<std::int64_t>(delta));
    if (held.pods == 0) idle_term_bytes_ += held.own_bytes();
  }
}

void PodKinds::count_pods(std::uint32_t id, std::int64_t delta) {
  Kind& kind = unshare(kinds_.edit(id));
  if (kind.pods == 0) idle_kind_bytes_ -= kind.example->bytes;
  BERTH_CHECK(delta > 0 || kind.pods > 0, "a pod like {} goes, and none is counted", kind.example->key);
  kind.pods += static_cast<std::uint64_t>(delta);
  if (kind.pods == 0) idle_kind_bytes_ += kind.example->bytes;
}

bool PodKinds::matches(const Cluster& cluster, const PodMatcher& matcher, const PodInfo& pod) {
  const auto& view = pod.view();
  if (matcher.skip_terminating && view.meta.is_deleting) return false;
  const auto& labels = cluster.namespace_labels(view.ns());
  return std::ranges::all_of(matcher.terms, [&](const AffinityTerm& term) { return term.matches(view, labels); });
}

bool PodKinds::is_of(std::uint32_t kind, const PodInfo& pod) const {
  const PodInfoPtr& example = kinds_[kind]->example;
  return example.get() == &pod || (example->traits_hash == pod.traits_hash && same_traits(*example, pod));
}

std::uint32_t PodKinds::find(const PodInfo& pod) const {
  if (const auto* ids = kinds_by_hash_.find(pod.traits_hash))
    for (const auto id : *ids)
      if (is_of(id, pod)) return id;
  return kNone;
}

std::uint32_t PodKinds::kind_of(const Cluster& cluster, const PodInfo& pod) {
  if (last_pod_ == &pod && is_of(last_kind_, pod)) return last_kind_;
  std::uint32_t id = find(pod);
  if (id == kNone) id = learn(cluster, pod);
  last_pod_ = &pod;
  last_kind_ = id;
  return id;
}

std::uint32_t PodKinds::learn(const Cluster& cluster, const PodInfo& pod) {
  if (kinds_.size() - free_kinds_.size() > 2 * used_kinds_ + kSpareKinds || idle_kind_bytes_ > kSpareBytes / 2) forget_unused();
  auto made = std::make_shared<Kind>();
  made->example = pod.shared_from_this();
  idle_kind_bytes_ += pod.bytes;
  note_namespace_selectors(pod);
  matchers_by_label_.for_labels(pod.view().meta.labels, 0, [&](std::uint32_t matcher) {
    if (matches(cluster, *matchers_[matcher], pod)) made->matchers.push_back(matcher);
  });
  std::ranges::sort(made->matchers);
  made->matchers.erase(std::ranges::unique(made->matchers).begin(), made->matchers.end());
  auto id = static_cast<std::uint32_t>(kinds_.size());
  if (free_kinds_.empty()) {
    kinds_.push_back(std::move(made));
  } else {
    id = free_kinds_.back();
    free_kinds_.pop_back();
    kinds_.edit(id) = std::move(made);
  }
  kinds_by_hash_[pod.traits_hash].push_back(id);
  kinds_by_label_.add_labels(id, pod.view().meta.labels);
  return id;
}

void PodKinds::forget_unused() {
  if (idle_kind_bytes_ == 0) return;
  kinds_by_label_.clear();
  kinds_by_hash_.clear();
  free_kinds_.clear();
  last_pod_ = nullptr;
  idle_kind_bytes_ = 0;
  for (std::uint32_t id = 0; id < kinds_.size(); ++id) {
    if (kinds_[id] == nullptr || kinds_[id]->pods == 0) {
      kinds_.edit(id) = nullptr;
      free_kinds_.push_back(id);
      continue;
    }
    kinds_by_hash_[kinds_[id]->example->traits_hash].push_back(id);
    kinds_by_label_.add_labels(id, kinds_[id]->example->view().meta.labels);
  }
  used_kinds_ = kinds_.size() - free_kinds_.size();
}

/// From here on every pod is counted, those that are there first.
void PodKinds::start_counting(const Cluster& cluster, std::uint32_t slots) {
  counts_all_ = true;
  for (std::uint32_t i = 0; i < slots; ++i) {
    const NodeInfo* node = cluster.node(NodeIndex{i});
    if (node == nullptr) continue;
    for (const auto& pod : node->pods) {
      const std::uint32_t id = kind_of(cluster, *pod);
      unshare(kinds_.edit(id)).nodes.add(i, 1, slots);
      if (!pod->has_affinity()) count_pods(id, 1);  // Those with terms are counted already.
    }
  }
}

CountId PodKinds::matcher(const Cluster& cluster, std::vector<AffinityTerm> terms, bool skip_terminating, std::uint32_t slots) {
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
  if (!counts_all_) start_counting(cluster, slots);
  const auto index = static_cast<std::uint32_t>(matchers_.size());
  matcher_index_[hash].push_back(index);
  auto made = std::make_shared<PodMatcher>();
  made->terms = std::move(terms);
  made->skip_terminating = skip_terminating;
  const model::Requirement* key = nullptr;
  for (const auto& term : made->terms)
    if (key == nullptr) key = LabelPostings::key_of(term.selector);
  matchers_by_label_.add_selector(index, key);
  const auto consider = [&](std::uint32_t id) {
    const std::shared_ptr<Kind>& known = kinds_[id];
    if (known == nullptr || (!known->matchers.empty() && known->matchers.back() == index)) return;
    if (!matches(cluster, *made, *known->example)) return;
    unshare(kinds_.edit(id)).matchers.push_back(index);
    kinds_[id]->nodes.for_each(
        [&](std::uint32_t node, std::uint32_t pods) { made->count.add(node, static_cast<std::int32_t>(pods), slots); });
  };
  if (key != nullptr) {
    kinds_by_label_.for_requirement(*key, consider);
  } else {
    for (std::uint32_t id = 0; id < kinds_.size(); ++id) consider(id);
  }
  matcher_bytes_ += made->own_bytes();
  matchers_.push_back(std::move(made));
  return {index * 2};
}

std::uint32_t PodKinds::hold(HeldTerm::Kind kind, const AffinityTerm& term) {
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
  idle_term_bytes_ += made->own_bytes();  // Until its first pod is counted.
  held_by_label_.add_selector(index, LabelPostings::key_of(term.selector));
  held_terms_.push_back(std::move(made));
  return index;
}

std::span<const std::uint32_t> PodKinds::terms_that_match(const Cluster& cluster, const PodInfo& pod) {
  if (held_terms_.empty()) return {};
  const std::uint32_t id = kind_of(cluster, pod);
  if (kinds_[id]->audience_seen < held_terms_.size()) {
    Kind& kind = unshare(kinds_.edit(id));
    const auto& labels_of_namespace = cluster.namespace_labels(pod.view().ns());
    const auto known = static_cast<std::ptrdiff_t>(kind.audience.size());
    held_by_label_.for_labels(pod.view().meta.labels, static_cast<std::uint32_t>(kind.audience_seen), [&](std::uint32_t term) {
      if (held_terms_[term]->term.matches(pod.view(), labels_of_namespace)) kind.audience.push_back(term);
    });
    std::sort(kind.audience.begin() + known, kind.audience.end());
    kind.audience.erase(std::unique(kind.audience.begin() + known, kind.audience.end()), kind.audience.end());
    kind.audience_seen = held_terms_.size();
  }
  return kinds_[id]->audience;
}

const model::Selector& PodKinds::default_selector(const Cluster& cluster, const PodInfo& pod) {
  static const model::Selector kNothingSelects;
  if (cluster.services().empty() && cluster.replica_sets().empty() && cluster.stateful_sets().empty() &&
      cluster.replication_controllers().empty())
    return kNothingSelects;
  const std::uint32_t id = kind_of(cluster, pod);
  const auto* controller = pod.view().meta.controller();
  const model::OwnerReference owner = controller == nullptr ? model::OwnerReference{} : *controller;
  const Kind& known = *kinds_[id];
  if (known.selector == nullptr || known.selector_version != cluster.workloads_version() || known.selector_owner != owner) {
    Kind& kind = unshare(kinds_.edit(id));
    kind.selector = std::make_shared<const model::Selector>(placement::default_selector(pod.view(), cluster, cluster.era()));
    kind.selector_version = cluster.workloads_version();
    kind.selector_owner = owner;
  }
  return *kinds_[id]->selector;
}

std::size_t PodKinds::memory_bytes() const {
  std::size_t out = kinds_by_label_.memory_bytes() + matchers_by_label_.memory_bytes() + held_by_label_.memory_bytes();
  for (std::size_t i = 0; i < kinds_.size(); ++i)
    if (const auto& kind = kinds_[i]; kind != nullptr)
      out += sizeof(Kind) + kind->nodes.memory_bytes() + (kind->pods == 0 ? kind->example->bytes : 0) +
             heap_bytes(kind->matchers, kind->held, kind->audience);
  for (std::size_t i = 0; i < matchers_.size(); ++i) out += matchers_[i]->own_bytes() + matchers_[i]->count.memory_bytes();
  for (std::size_t i = 0; i < held_terms_.size(); ++i) out += held_terms_[i]->own_bytes() + held_terms_[i]->count.memory_bytes();
  return out;
}

}  // namespace berth::placement
