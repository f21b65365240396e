#include "controllers/daemonset_ledger.h"

namespace berth::controllers::daemon {

std::string target_node(const PodInfo& pod) {
  if (!pod.node.empty()) return pod.node;
  const auto parsed = pod.object->parsed();
  const json::Value& document = *parsed;
  for (const json::Value& term : json::get_array(
           document, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}))
    for (const json::Value& field : json::get_array(term, {"matchFields"}))
      for (const json::Value& value : json::get_array(field, {"values"}))
        if (value.is_string()) return std::string(json::as_view(value));
  return {};
}

void Ledger::build(Basis basis, model::Selector selector, const std::vector<PodRef>& pods, const NodeFactsMap& nodes,
                   model::PodView template_view) {
  *this = Ledger();
  basis_ = std::move(basis);
  selector_ = std::move(selector);
  view_ = std::move(template_view);
  for (const auto& [name, facts] : nodes) take_node(name, &facts);
  for (const PodRef& pod : pods) add_pod(pod);
}

Ledger::NodeState& Ledger::state_of(const std::string& node) {
  const auto [state, is_new] = nodes_.try_emplace(node);
  if (is_new) state->second.node = {node, false, {}, {}};
  changed_.insert(node);
  open_.insert(node);
  return state->second;
}

void Ledger::count_hash(const PodInfo& pod, int sign) {
  const std::string* hash = pod.labels().get("controller-revision-hash");
  if (hash != nullptr && (hashes_[*hash] += sign) == 0) hashes_.erase(*hash);
}

void Ledger::take_pod(const PodRef& before, const PodRef& after) {
  if (!basis_) return;
  // One that is adopted was counted when it was claimed: by its name, whatever was known of it.
  remove_pod((after ? after : before)->name());
  // Of another set of this name, which is gone: not ours to count.
  if (!after || after->object->controller_uid() != basis_->uid) return;
  if (!selector_.matches(after->labels())) return forget();
  add_pod(after);
}

void Ledger::remove_pod(const std::string& name) {
  const auto known = node_of_.find(name);
  if (known == node_of_.end()) return;
  std::vector<PodRef>& pods = state_of(known->second).node.pods;
  const auto pod = std::ranges::find(pods, name, [](const PodRef& one) -> const std::string& { return one->name(); });
  count_hash(**pod, -1);
  pods.erase(pod);
  node_of_.erase(known);
}

void Ledger::add_pod(const PodRef& pod) {
  if (pod->is_finished() && pod->deleting) return;
  const std::string node = target_node(*pod);
  if (node.empty()) return;  // One that was adopted, and is meant for no node: nobody counts or rolls it.
  std::vector<PodRef>& pods = state_of(node).node.pods;
  pods.push_back(pod);
  sort_oldest_first(pods);
  node_of_[pod->name()] = node;
  count_hash(*pod, 1);
}

void Ledger::take_node(const std::string& name, const NodeFacts* facts) {
  if (!basis_) return;
  NodePods& node = state_of(name).node;
  node.exists = facts != nullptr;
  node.match = facts != nullptr ? placement::match_node(view_, name, facts->labels, facts->taints) : placement::NodeMatch{};
}

void Ledger::look(const std::string& name, const Wish& wish, TimePoint now) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  NodeState& state = found->second;
  counts_ -= state.counted;
  if (state.due) due_.erase({*state.due, name});
  state.due.reset();
  outdated_.erase(name);
  if (!state.node.exists && state.node.pods.empty()) {
    nodes_.erase(found);
    open_.erase(name);
    return;
  }
  state.counted = count({&state.node, 1}, wish, now);
  counts_ += state.counted;
  for (const PodRef& pod : state.node.pods) {
    if (!pod->deleting && !is_updated(*pod, wish)) outdated_.insert(name);
    if (!pod->ready || pod->is_available(wish.min_ready, now)) continue;
    if (pod->deleting && pod != state.node.pods.front()) continue;  // The oldest counts even on its way out.
    const TimePoint due = pod->ready_since + wish.min_ready;
    if (!state.due || due < *state.due) state.due = due;
  }
  if (state.due) due_.emplace(*state.due, name);
}

void Ledger::refresh(const Wish& wish, TimePoint now) {
  // What is due is open too: a pod that became available may be what a roll waits for.
  for (auto first = due_.begin(); first != due_.end() && first->first <= now; ++first) {
    changed_.insert(first->second);
    open_.insert(first->second);
  }
  for (const std::string& node : std::exchange(changed_, {})) look(node, wish, now);
}

std::optional<TimePoint> Ledger::next_due() const { return due_.empty() ? std::nullopt : std::optional(due_.begin()->first); }

std::vector<NodePods> Ledger::open_nodes() const {
  std::vector<NodePods> out;
  for (const std::string& name : open_)
    if (const auto state = nodes_.find(name); state != nodes_.end()) out.push_back(state->second.node);
  return out;
}

std::vector<NodePods> Ledger::all_nodes() const {
  std::vector<NodePods> out;
  out.reserve(nodes_.size());
  for (const auto& [name, state] : nodes_) out.push_back(state.node);
  return out;
}

}  // namespace berth::controllers::daemon
