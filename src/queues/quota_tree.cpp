#include "queues/quota_tree.h"

#include <algorithm>
#include <limits>
#include <set>

namespace berth::queues {

QuotaTree::QuotaTree(const std::map<std::string, ClusterQueue>& queues, const std::map<std::string, Cohort>& cohorts) {
  for (const auto& [name, cohort] : cohorts) {
    const QuotaNode node = cohort_named(name);
    at(node).quotas = cohort.quotas;
    at(node).weight_milli = cohort.weight_milli;
    if (cohort.parent.empty()) continue;
    const QuotaNode parent = cohort_named(cohort.parent);
    at(node).parent = parent;
  }
  cut_circles();
  for (const auto& [name, node] : cohorts_)
    if (at(node).parent != QuotaNode::kNone) at(at(node).parent).cohorts.push_back(node);
  for (const auto& [name, queue] : queues) {
    Node made{.name = name, .quotas = queue.quotas, .weight_milli = queue.weight_milli};
    for (const auto& [what, quota] : queue.quotas) made.subtree[what] = quota.nominal;
    const auto id = static_cast<QuotaNode>(nodes_.size());
    queues_[name] = id;
    nodes_.push_back(std::move(made));
    if (queue.cohort.empty()) continue;
    const QuotaNode cohort = cohort_named(queue.cohort);
    at(id).is_circular = at(cohort).is_circular;
    if (at(id).is_circular) continue;
    at(id).parent = cohort;
    at(cohort).queues.push_back(id);
  }
  for (const auto& [name, node] : cohorts_)
    if (at(node).parent == QuotaNode::kNone) sum_up(node);
}

QuotaNode QuotaTree::cohort_named(const std::string& name) {
  const auto [place, is_new] = cohorts_.try_emplace(name, static_cast<QuotaNode>(nodes_.size()));
  if (is_new) nodes_.push_back(Node{.name = name});
  return place->second;
}

void QuotaTree::cut_circles() {
  std::vector<QuotaNode> circular;
  for (const auto& [name, start] : cohorts_) {
    std::set<QuotaNode> seen;
    QuotaNode node = start;
    while (node != QuotaNode::kNone && seen.insert(node).second) node = at(node).parent;
    if (node != QuotaNode::kNone) circular.push_back(start);
  }
  for (const QuotaNode node : circular) {
    at(node).is_circular = true;
    at(node).parent = QuotaNode::kNone;
  }
}

void QuotaTree::sum_up(QuotaNode cohort) {
  for (const auto& [what, quota] : at(cohort).quotas) at(cohort).subtree[what] = quota.nominal;
  for (const QuotaNode child : at(cohort).cohorts) sum_up(child);
  for (const auto* children : {&at(cohort).cohorts, &at(cohort).queues})
    for (const QuotaNode child : *children)
      for (const auto& [what, amount] : at(child).subtree) {
        Amount& sum = at(cohort).subtree[what];
        sum = plus(sum, amount - kept(at(child), what));
      }
}

QuotaNode QuotaTree::queue(std::string_view name) const {
  const auto found = queues_.find(name);
  return found == queues_.end() ? QuotaNode::kNone : found->second;
}

QuotaNode QuotaTree::root(QuotaNode node) const {
  while (at(node).parent != QuotaNode::kNone) node = at(node).parent;
  return node;
}

std::vector<QuotaNode> QuotaTree::queues_below(QuotaNode node) const {
  if (const auto own = queues_.find(at(node).name); own != queues_.end() && own->second == node) return {node};
  std::vector<QuotaNode> out = at(node).queues;
  for (const QuotaNode child : at(node).cohorts) std::ranges::copy(queues_below(child), std::back_inserter(out));
  return out;
}

Amount QuotaTree::value(const FlavorAmounts& amounts, const FlavorResource& what) {
  const auto found = amounts.find(what);
  return found == amounts.end() ? 0 : found->second;
}

const ResourceQuota* QuotaTree::quota(QuotaNode node, const FlavorResource& what) const {
  const auto found = at(node).quotas.find(what);
  return found == at(node).quotas.end() ? nullptr : &found->second;
}

Amount QuotaTree::kept(const Node& node, const FlavorResource& what) const {
  const auto found = node.quotas.find(what);
  if (found == node.quotas.end() || !found->second.lending_limit) return 0;
  return std::max<Amount>(0, value(node.subtree, what) - *found->second.lending_limit);
}

Amount QuotaTree::locally_available(QuotaNode node, const FlavorResource& what) const {
  return std::max<Amount>(0, kept(at(node), what) - used(node, what));
}

Amount QuotaTree::available(QuotaNode id, const FlavorResource& what) const {
  const Node& node = at(id);
  if (node.parent == QuotaNode::kNone) return nominal(id, what) - used(id, what);
  Amount of_parent = available(node.parent, what);
  if (const ResourceQuota* own = quota(id, what); own != nullptr && own->borrowing_limit) {
    const Amount lent = nominal(id, what) - kept(node, what);
    const Amount lent_and_used = std::max<Amount>(0, used(id, what) - kept(node, what));
    of_parent = std::min(of_parent, plus(lent - lent_and_used, *own->borrowing_limit));
  }
  return plus(locally_available(id, what), of_parent);
}

Amount QuotaTree::potential(QuotaNode id, const FlavorResource& what) const {
  const Node& node = at(id);
  if (node.parent == QuotaNode::kNone) return nominal(id, what);
  Amount all = plus(kept(node, what), potential(node.parent, what));
  if (const ResourceQuota* own = quota(id, what); own != nullptr && own->borrowing_limit)
    all = std::min(all, plus(nominal(id, what), *own->borrowing_limit));
  return all;
}

bool QuotaTree::fits(QuotaNode node, const FlavorAmounts& amounts) const {
  return std::ranges::all_of(amounts, [&](const auto& one) { return one.second <= available(node, one.first); });
}

std::int64_t QuotaTree::share(QuotaNode id) const {
  const Node& node = at(id);
  if (node.parent == QuotaNode::kNone) return 0;
  Requests borrowed;
  for (const auto& [what, own] : node.subtree)
    if (const Amount over = used(id, what) - own; over > 0) {
      Amount& sum = borrowed[what.resource];
      sum = plus(sum, over);
    }
  if (borrowed.empty()) return 0;
  if (node.weight_milli == 0) return std::numeric_limits<std::int64_t>::max();
  Requests lendable;
  for (const auto& [what, amount] : at(root(id)).subtree) {
    Amount& sum = lendable[what.resource];
    sum = plus(sum, potential(node.parent, what));
  }
  std::int64_t largest = 0;
  for (const auto& [resource, amount] : borrowed)
    if (const auto lent = lendable.find(resource); lent != lendable.end() && lent->second > 0)
      largest = std::max<std::int64_t>(largest, static_cast<std::int64_t>(static_cast<__int128>(amount) * 1000 / lent->second));
  return times(largest, 1000) / node.weight_milli;
}

int QuotaTree::height(QuotaNode cohort) const {
  const Node& node = at(cohort);
  int out = node.queues.empty() && node.cohorts.empty() ? 0 : 1;
  for (const QuotaNode child : node.cohorts) out = std::max(out, height(child) + 1);
  return out;
}

void QuotaTree::add(QuotaNode queue, const FlavorAmounts& amounts) {
  for (const auto& [what, amount] : amounts) add_one(queue, what, amount);
}

void QuotaTree::remove(QuotaNode queue, const FlavorAmounts& amounts) {
  for (const auto& [what, amount] : amounts) remove_one(queue, what, amount);
}

void QuotaTree::add_one(QuotaNode id, const FlavorResource& what, Amount amount) {
  Node& node = at(id);
  const Amount own = locally_available(id, what);
  node.used[what] += amount;
  if (node.parent != QuotaNode::kNone && amount > own) add_one(node.parent, what, amount - own);
}

void QuotaTree::remove_one(QuotaNode id, const FlavorResource& what, Amount amount) {
  Node& node = at(id);
  const Amount in_parent = used(id, what) - kept(node, what);
  node.used[what] -= amount;
  if (in_parent > 0 && node.parent != QuotaNode::kNone) remove_one(node.parent, what, std::min(amount, in_parent));
}

}  // namespace berth::queues
