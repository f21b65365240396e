#include "placement/preemption_index.h"

#include <algorithm>

#include "placement/disruption_ledger.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

constexpr std::size_t kMinTouched = 1 << 16;
/// Kinds of pods that are gone, beyond this and as many as there were: worth starting over.
constexpr std::size_t kSpareTraits = 1 << 18, kSpareBytes = std::size_t{64} << 20;

bool covers_alike(const model::PodDisruptionBudgetView& a, const model::PodDisruptionBudgetView& b) {
  return a.meta.ns == b.meta.ns && a.selector_is_empty == b.selector_is_empty && a.selector == b.selector;
}

std::uint8_t readable(const PodInfo& pod) {
  return static_cast<std::uint8_t>((pod.request.total.scalars.empty() ? 0 : RemovableLoad::kExtendedResources) |
                                   (pod.host_ports.empty() ? 0 : RemovableLoad::kHostPorts) |
                                   (pod.required_anti_affinity.empty() ? 0 : RemovableLoad::kRequiredAntiAffinity) |
                                   RemovableLoad::kAnything);
}

bool counts_alike(const PodInfo& a, const PodInfo& b) {
  return a.request.total.scalars == b.request.total.scalars && a.host_ports == b.host_ports && same_traits(a, b);
}

}  // namespace

void PreemptionIndex::sync() {
  index_.sync();
  const bool same_budgets = update_budgets();
  const bool is_overgrown = kind_count_ > 2 * kinds_at_start_ + kSpareTraits || kind_bytes_ > 2 * kind_bytes_at_start_ + kSpareBytes;
  if (!same_budgets || is_overgrown || index_epoch_ != index_.epoch() || index_position_ < index_.touched_begin()) return rebuild();
  for (const std::uint64_t end = index_.touched_end(); index_position_ < end; ++index_position_) {
    const std::uint32_t node = index_.touched(index_position_).node;
    if (node < nodes_.size() && nodes_[node]->version == index_.version(node)) continue;
    rebuild_node(node);
    touch(node);
  }
}

void PreemptionIndex::rebuild() {
  ++epoch_;
  index_epoch_ = index_.epoch();
  index_position_ = index_.touched_end();
  touched_.restart(0);
  nodes_.renew(cluster_->slot_count());
  kinds_.clear();
  kind_count_ = kind_bytes_ = 0;
  take_budgets();
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) rebuild_node(i);
  kinds_at_start_ = kind_count_;
  kind_bytes_at_start_ = kind_bytes_;
}

void PreemptionIndex::rebuild_node(std::uint32_t node) {
  const std::size_t before = nodes_.size();
  if (before <= node) nodes_.resize(node + 1);
  for (std::size_t i = before; i < node; ++i) nodes_.edit(i) = std::make_shared<PreemptionNode>();
  // All of it is new: nothing of what a copy may hold is worth copying.
  nodes_.edit(node) = std::make_shared<PreemptionNode>();
  PreemptionNode& out = *nodes_.edit(node);
  const NodeInfo* info = cluster_->node(NodeIndex{node});
  out.is_candidate = info != nullptr && info->node != nullptr;
  out.version = info == nullptr ? 0 : info->version;
  if (info == nullptr) return;
  out.used = preemption_amounts(info->requested, static_cast<std::int64_t>(info->pods.size()));
  out.allocatable = preemption_amounts(info->allocatable, info->allocatable.allowed_pods);
  out.rows.reserve(info->pods.size());
  for (const auto& pod : info->pods) {
    const std::uint32_t kind = kind_of(*pod);
    if (!budgets_.empty()) hold(budgets_of(kind, *pod), node);
    out.rows.push_back(
        {pod->view().priority, pod->start_time_ns, preemption_amounts(pod->request.total, 1), pod.get(), readable(*pod), kind});
  }
  std::ranges::stable_sort(out.rows, [](const auto& a, const auto& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.start_time_ns < b.start_time_ns;
  });
}

void PreemptionIndex::touch(std::uint32_t node) {
  if (touched_.size() >= std::max<std::size_t>(kMinTouched, 2 * nodes_.size())) touched_.drop_half();
  touched_.push_back(node);
}

/// Takes over what the budgets allow now, which concerns the nodes of their pods. False when budgets came, went or select otherwise.
bool PreemptionIndex::update_budgets() {
  if (budgets_version_ == cluster_->budgets_version()) return true;
  const auto& table = cluster_->disruption_budgets();
  if (table.size() != budgets_.size()) return false;
  const bool alike = std::ranges::equal(table, budgets_, [](const auto& entry, const auto& budget) {
    return entry.second == budget->view ||
           (entry.second->meta.name == budget->view->meta.name && covers_alike(*entry.second, *budget->view));
  });
  if (!alike) return false;
  budgets_version_ = cluster_->budgets_version();
  std::size_t at = 0;
  for (const auto& [key, view] : table) {
    auto& shared = budgets_[at++];
    if (shared->view == view) continue;
    Budget& budget = unshare(shared);
    budget.view = view;
    tidy(budget.holders);
    for (std::size_t i = 0; i < budget.holders.size(); ++i) touch(budget.holders[i]);
  }
  return true;
}

void PreemptionIndex::take_budgets() {
  budgets_version_ = cluster_->budgets_version();
  budgets_.clear();
  for (const auto& [key, view] : cluster_->disruption_budgets()) budgets_.push_back(std::make_shared<Budget>(view));
  sets_.assign(1, {});
  set_index_.clear();
  set_index_.emplace(sets_[0], 0);
  set_of_kind_.renew(kind_count_);
}

std::uint32_t PreemptionIndex::kind_of(const PodInfo& pod) {
  if (const auto* bucket = kinds_.find(pod.traits_hash))
    for (const auto& [example, kind] : *bucket)
      if (example.get() == &pod || counts_alike(*example, pod)) return kind;
  const auto made = static_cast<std::uint32_t>(kind_count_++);
  kinds_[pod.traits_hash].emplace_back(pod.shared_from_this(), made);
  kind_bytes_ += pod.bytes;
  set_of_kind_.push_back(0);
  return made;
}

/// Each kind of pod is tried once, not each pod.
std::uint32_t PreemptionIndex::budgets_of(std::uint32_t kind, const PodInfo& pod) {
  if (const std::uint32_t known = set_of_kind_[kind]; known != 0) return known - 1;
  std::vector<std::uint32_t> covering;
  for (std::uint32_t i = 0; i < budgets_.size(); ++i)
    if (DisruptionLedger::covers(*budgets_[i]->view, pod.view(), BudgetRule::kPreemption)) covering.push_back(i);
  const auto [at, is_new] = set_index_.try_emplace(covering, static_cast<std::uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(std::move(covering));
  set_of_kind_.edit(kind) = at->second + 1;
  return at->second;
}

void PreemptionIndex::hold(std::uint32_t set, std::uint32_t node) {
  for (const auto id : sets_[set]) {
    if (const auto& known = budgets_[id]->holders; !known.empty() && known.back() == node) continue;
    auto& holders = unshare(budgets_[id]).holders;
    if (holders.size() > 2 * nodes_.size() + 64) tidy(holders);
    holders.push_back(node);
  }
}

/// Each node once.
void PreemptionIndex::tidy(Pages<std::uint32_t>& holders) {
  std::vector<std::uint32_t> all;
  for (std::size_t i = 0; i < holders.size(); ++i) all.push_back(holders[i]);
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  holders.clear();
  for (const auto node : all) holders.push_back(node);
}

std::vector<bool> PreemptionIndex::violations(std::span<const PreemptionRow> rows) const {
  const auto set_of = [&](const PreemptionRow& row) -> const std::vector<std::uint32_t>& { return sets_[set_of_kind_[row.kind] - 1]; };
  if (budgets_.empty() || std::ranges::all_of(rows, [&](const auto& row) { return set_of(row).empty(); })) return {};
  std::vector<bool> out(rows.size(), false);
  DisruptionLedger ledger(*cluster_, BudgetRule::kPreemption);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (const auto id : set_of(rows[i]))
      if (!ledger.take_from(*budgets_[id]->view, rows[i].pod->view())) out[i] = true;
  return out;
}

std::size_t PreemptionIndex::memory_bytes() const {
  std::size_t out = nodes_.memory_bytes() + nodes_.size() * sizeof(PreemptionNode) + touched_.memory_bytes() + index_.memory_bytes();
  for (std::size_t i = 0; i < nodes_.size(); ++i) out += nodes_[i]->rows.capacity() * sizeof(PreemptionRow);
  for (const auto& budget : budgets_) out += budget->holders.memory_bytes();
  return out + kind_bytes_;
}

}  // namespace berth::placement
