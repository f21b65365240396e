#include "descheduler/memory.h"

#include <algorithm>

#include "placement/relabelled.h"

namespace berth::descheduler {
namespace {

std::string controller_of(const Pod& pod) {
  const model::OwnerReference* owner = pod.view().meta.controller();
  return owner == nullptr ? std::string() : owner->uid;
}

/// They come and go with their nodes.
bool belongs_to_node(const Pod& pod) {
  const model::ObjectMeta& meta = pod.view().meta;
  return model::goes_with_its_node(meta) || model::is_static(meta);
}

}  // namespace

void Memory::look_at(const Snapshot& snapshot, TimePoint now) {
  change_.reset();
  look_at_nodes(snapshot, now);
  SeenPods there;
  there.reserve(pods_.size());
  std::vector<PodPtr> fresh;
  std::set<std::string> ending;  // Controllers whose pods are on their way out: others come in their place.
  for (const auto& [key, pod] : snapshot.pods) {
    if (belongs_to_node(*pod)) continue;
    const model::ObjectMeta& meta = pod->view().meta;
    if (meta.is_deleting) {
      ending.insert(controller_of(*pod));
      continue;
    }
    there.emplace(meta.uid, pod);
    const auto known = pods_.find(meta.uid);
    if (known == pods_.end()) {
      fresh.push_back(pod);
    } else if (known->second != pod) {
      const model::PodView& was = known->second->view();
      if (pod->view().is_terminal() && !was.is_terminal())
        changed(*before_);
      else if (placement::is_relabelled(was.meta.labels.pairs(), meta.labels.pairs()))
        changed(now);
    }
  }
  if (before_) {
    look_for_lost(snapshot, there);
    look_for_new(fresh);
  }
  if (moves_.wait_only_for(ending) && before_) changed(*before_);
  if (change_) moves_.changed(*change_);
  pods_ = std::move(there);
  before_ = now;
}

void Memory::look_at_nodes(const Snapshot& snapshot, TimePoint now) {
  std::set<std::string, std::less<>> there;
  for (const placement::NodeInfo* info : snapshot.cluster.nodes()) {
    if (info->node == nullptr) continue;
    there.insert(info->name);
    if (!moves_.see_node(*info->node)) continue;
    const auto since = ready_changed(*info->node);
    changed(before_ && since && *since >= *before_ ? *since : now);
  }
  for (const std::string& name : nodes_)
    if (!there.contains(name) && moves_.node_gone(name, false)) changed(*before_);
  nodes_ = std::move(there);
}

void Memory::look_for_lost(const Snapshot& snapshot, const SeenPods& there) {
  for (const auto& [uid, pod] : pods_) {
    if (there.contains(uid)) continue;
    moves_.gone(std::string(uid));
    if (pod->view().is_terminal()) continue;
    const std::string controller = controller_of(*pod);
    const placement::NodeInfo* node = snapshot.cluster.find_node(pod->node());
    const bool is_there = node != nullptr && node->node != nullptr;
    const auto since = is_there ? ready_changed(*node->node) : std::nullopt;
    // Its node failed: that nobody moved.
    const bool is_down = is_there && !is_ready(*node->node);
    if (is_down || controller.empty()) changed(*before_);
    if (since && *since >= *before_) changed(*since);
    // From a node that is back it may as well have been evicted: who came for it after that stays until the next news.
    if (!is_down) moves_.evicted(controller);
  }
}

void Memory::look_for_new(const std::vector<PodPtr>& fresh) {
  std::vector<PodPtr> in_order = fresh;
  std::ranges::stable_sort(in_order, {}, [](const PodPtr& pod) { return pod->facts.created.value_or(TimePoint::min()); });
  for (const PodPtr& pod : in_order) {
    const TimePoint created = pod->facts.created.value_or(*before_);
    if (!moves_.came(pod->view().meta.uid, controller_of(*pod), created)) changed(created);
  }
}

}  // namespace berth::descheduler
