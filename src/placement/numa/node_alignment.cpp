#include "placement/numa/node_alignment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "placement/explain.h"

namespace berth::placement::numa {
namespace {

std::set<std::string> uids_of(std::span<const PodInfoPtr> pods) {
  std::set<std::string> out;
  for (const PodInfoPtr& pod : pods) out.insert(pod->view().meta.uid);
  return out;
}

/// The node has told of it. One that does not tell holders counts the pods that it has begun with.
bool is_told(const model::NodeTopologyView& topology, const model::PodView& pod) {
  return topology.attributes.contains(model::kTellsHolders) ? topology.attributes.contains(std::string(model::kHoldsPrefix) + pod.meta.uid)
                                                            : !pod.start_time.empty();
}

std::string amount_words(const std::string& resource, std::int64_t amount) {
  if (resource == "cpu") return fmt::format("{} exclusive CPU{}", amount, amount == 1 ? "" : "s");
  if (is_memory(resource)) return fmt::format("{} of {}", format_amount("memory", amount), resource);
  return fmt::format("{} {}", amount, resource);
}

}  // namespace

NodeAlignment::NodeAlignment(const model::NodeTopologyView& topology, std::span<const PodInfoPtr> pods, Untold how)
    : ledger_(topology, uids_of(pods)) {
  const auto policy = alignment_policy(
      topology.policy, topology.scope,
      {{"prefer-closest-numa-nodes", topology.attribute(model::kPrefersClosest) == "true" ? "true" : "false"}}, ledger_.machine());
  if (!policy || ledger_.machine().nodes == 0) return;
  policy_ = *policy;
  for (const PodInfoPtr& pod : pods) {
    const PodWishes wishes = wishes_of(pod->view());
    if (wishes.empty() || !ledger_.gives(wishes) || is_told(topology, pod->view())) continue;
    is_closed_ |= how == Untold::kNobodyElse;
    // Whom the node would refuse may have come in another order: it has something, somewhere.
    if (how != Untold::kAsTheNode || admit(*policy_, ledger_.machine(), wishes, {&ledger_})) ledger_.set_aside(wishes);
  }
}

std::optional<Refusal> NodeAlignment::refuse(const PodWishes& pod) const {
  if (is_no_matter(pod)) return std::nullopt;
  ZoneLedger ledger = ledger_;
  return admit(*policy_, ledger.machine(), pod, {&ledger});
}

/// What no set of NUMA nodes has that is as narrow as it could be.
std::vector<NodeAlignment::Shortage> NodeAlignment::shortages(const Amounts& amounts, const ZoneLedger& ledger) const {
  const NodeSet all = ledger.machine().nodes;
  std::vector<Shortage> out;
  std::vector<std::string> wanted;
  int widest = 1;
  for (const auto& [resource, amount] : amounts) {
    if (amount == 0 || !ledger.knows(resource)) continue;
    wanted.push_back(amount_words(resource, amount));
    const auto could = [&](NodeSet nodes) { return ledger.most(nodes, resource) >= amount; };
    const auto hints = hints_where(all, could, could);
    const auto narrow = std::ranges::find(hints, true, &Hint::is_preferred);
    const int width = narrow == hints.end() ? std::popcount(all) : std::popcount(*narrow->nodes);
    if (narrow == hints.end() || (width > 1 && policy_->align == Align::kSingleNumaNode)) return {{1, wanted.back()}};
    widest = std::max(widest, width);
    if (std::ranges::none_of(hints, [&](const Hint& hint) { return hint.is_preferred && ledger.free(*hint.nodes, resource) >= amount; }))
      out.push_back({width, wanted.back() + " free"});
  }
  if (out.empty()) out.push_back({widest, fmt::format("{} free together", fmt::join(wanted, " and "))});
  return out;
}

std::vector<NodeAlignment::Shortage> NodeAlignment::shortages(const Refusal& refusal, const PodWishes& pod) const {
  if (refusal.reason != "TopologyAffinityError") return {};
  if (refusal.container.empty()) return shortages(pod.most_at_a_time(), ledger_);
  // As it was when the container's turn came.
  ZoneLedger ledger = ledger_;
  PodWishes before = pod;
  const auto at = std::ranges::find(before.containers, refusal.container, &Wish::name);
  const Wish container = *at;
  before.containers.erase(at, before.containers.end());
  (void)admit(*policy_, ledger.machine(), before, {&ledger});
  Amounts amounts = container.memory;
  if (container.cpus > 0) amounts["cpu"] = container.cpus;
  amounts.insert(container.devices.begin(), container.devices.end());
  return shortages(amounts, ledger);
}

std::string NodeAlignment::words_of(const Refusal& refusal, const PodWishes& pod) const {
  std::vector<std::string> out;
  for (const auto& [width, what] : shortages(refusal, pod))
    out.push_back(width == 1 ? fmt::format("no NUMA node has {}", what) : fmt::format("no {} NUMA nodes have {}", width, what));
  return out.empty() ? refusal.message : fmt::format("{}", fmt::join(out, ", "));
}

std::vector<std::string> NodeAlignment::lacks_of(const Refusal& refusal, const PodWishes& pod) const {
  std::vector<std::string> out;
  for (const auto& [width, what] : shortages(refusal, pod))
    out.push_back(width == 1 ? fmt::format("a NUMA node with {}", what) : fmt::format("{} NUMA nodes with {}", width, what));
  return out;
}

std::vector<std::string> lacks_beforehand(const NodeInfo& node, const PodInfo& pod) {
  if (node.topology == nullptr) return {};
  const PodWishes wishes = wishes_of(pod.view());
  const NodeAlignment alignment(*node.topology, node.pods, Untold::kAsTheNode);
  const auto refusal = alignment.refuse(wishes);
  return refusal ? alignment.lacks_of(*refusal, wishes) : std::vector<std::string>{};
}

std::string refusal_beforehand(const NodeInfo& node, const PodInfo& pod) {
  if (node.topology == nullptr) return "";
  const PodWishes wishes = wishes_of(pod.view());
  if (wishes.empty()) return "";
  const NodeAlignment alignment(*node.topology, node.pods, Untold::kAsTheNode);
  const auto refusal = alignment.refuse(wishes);
  if (!refusal) return "";
  return fmt::format("{} would refuse it: {} ({})", node.name, alignment.words_of(*refusal, wishes), refusal->reason);
}

}  // namespace berth::placement::numa
