#include "autoscaler/thought.h"

#include <algorithm>

#include "autoscaler/node_template.h"

namespace berth::autoscaler {

using placement::NodeInfo;
using placement::Trial;

bool is_expendable(const model::PodView& pod, const Options& options) { return pod.priority < options.pod_priority_threshold; }

Trial& Thought::as_is() {
  if (!as_is_)
    as_is_ = Trial::on_fork(*snapshot_.cluster, profiles_,
                            {.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
  return *as_is_;
}

Trial& Thought::here() {
  if (!here_) {
    here_ = as_is().fork();
    drop_expendable();
    place_nominated();
    for (const std::string& name : not_started_) drop_node(*here_, name);
  }
  return *here_;
}

bool Thought::is_changed(bool some_wait) const {
  const auto expendable = [&](const auto& entry) { return is_expendable(entry.second->view(), options_); };
  const auto nominated = [](const auto& entry) { return !entry.second->view().nominated_node_name.empty(); };
  return some_wait || !not_started_.empty() || options_.pod_priority_threshold > 0 ||
         std::ranges::any_of(snapshot_.pod_sets->below_zero, expendable) || std::ranges::any_of(snapshot_.pod_sets->unplaced, nominated);
}

// Pods below the threshold hold no node: they are as if they were not there.
void Thought::drop_expendable() {
  // Walking all pods is for thresholds above zero alone.
  for (const auto& [key, pod] : options_.pod_priority_threshold > 0 ? snapshot_.pods() : snapshot_.pod_sets->below_zero)
    if (is_expendable(pod->view(), options_)) here_->evict(pod->info);
}

// Pods that wait for the end of others on a node have their place there.
void Thought::place_nominated() {
  for (const auto& [key, pod] : snapshot_.pod_sets->unplaced) {
    const std::string& name = pod->view().nominated_node_name;
    if (name.empty() || is_expendable(pod->view(), options_)) continue;
    const NodeInfo* node = here_->cluster().find_node(name);
    if (node == nullptr || node->node == nullptr) continue;
    // Its victims hold what it will have until they are gone: then it counts there all the same.
    here_->hold(pod->info, node->index);
  }
}

}  // namespace berth::autoscaler
