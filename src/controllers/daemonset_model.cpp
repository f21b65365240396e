#include "controllers/daemonset_model.h"

namespace berth::controllers::daemon {
namespace {

/// The one living pod of each sort; is_clear: there are not two of a sort.
struct Pair {
  PodRef fresh, old;
  bool is_clear = true;
};
Pair pair_of(const NodePods& node, const Wish& wish) {
  Pair pair;
  for (const PodRef& pod : node.pods) {
    if (pod->deleting) continue;
    PodRef& slot = is_updated(*pod, wish) ? pair.fresh : pair.old;
    if (slot) pair.is_clear = false;
    slot = pod;
  }
  return pair;
}

/// With surge two may live on a node: the oldest of the present template while it is not available, and the oldest old one while that is
/// ready.
void prune_surge(Steps& steps, const std::vector<PodRef>& running, const Wish& wish, TimePoint now) {
  PodRef fresh, old;
  for (const PodRef& pod : running) {
    PodRef& slot = is_updated(*pod, wish) ? fresh : old;
    if (slot)
      steps.remove.push_back(pod);
    else
      slot = pod;
  }
  if (fresh && old && (!old->ready || fresh->is_available(wish.min_ready, now))) steps.remove.push_back(old);
}

void keep_node(Steps& steps, const NodePods& node, const Wish& wish, TimePoint now,
               const std::function<bool(const std::string& node)>& may_replace) {
  if (!node.match.may_stay) {
    for (const PodRef& pod : node.pods)
      if (!pod->deleting) steps.remove.push_back(pod);
    return;
  }
  if (node.match.belongs && node.pods.empty()) {
    steps.create_on.push_back(node.node);
    return;
  }
  std::vector<PodRef> running;
  for (const PodRef& pod : node.pods) {
    if (pod->deleting) continue;
    if (!pod->is_finished()) {
      running.push_back(pod);
      continue;
    }
    const bool failed = pod->phase == PodPhase::kFailed;
    if (failed && !may_replace(node.node)) continue;
    (failed ? steps.failed : steps.succeeded).push_back(pod);
    steps.remove.push_back(pod);
  }
  if (wish.max_surge == 0) {
    for (std::size_t i = 1; i < running.size(); ++i) steps.remove.push_back(running[i]);
  } else if (running.empty()) {
    if (node.match.belongs) steps.create_on.push_back(node.node);
  } else if (running.size() > 1) {
    prune_surge(steps, running, wish, now);
  }
}

/// Pods of the old template go as far as maxUnavailable allows; one that gives nothing goes at once.
Steps roll_in_place(const std::vector<NodePods>& nodes, const Wish& wish, TimePoint now) {
  Steps steps;
  std::vector<PodRef> candidates;
  std::int64_t unavailable = 0;
  for (const NodePods& node : nodes) {
    if (node.pods.empty() && !node.match.belongs) continue;
    const Pair pair = pair_of(node, wish);
    if (!pair.is_clear || (pair.fresh != nullptr) == (pair.old != nullptr)) {
      ++unavailable;
    } else if (pair.fresh) {
      unavailable += !pair.fresh->is_available(wish.min_ready, now);
    } else if (!pair.old->is_available(wish.min_ready, now)) {
      steps.remove.push_back(pair.old);
      ++unavailable;
    } else {
      candidates.push_back(pair.old);
    }
  }
  for (const PodRef& pod : candidates) {
    if (unavailable >= wish.max_unavailable) break;
    steps.remove.push_back(pod);
    ++unavailable;
  }
  return steps;
}

/// New pods come beside the old ones, maxSurge at a time; an old one goes when its new one is available. On nodes where the set no longer
/// belongs, old pods stay until enough others are available.
Steps roll_with_surge(const std::vector<NodePods>& nodes, const Wish& wish, TimePoint now) {
  Steps steps;
  std::vector<std::string> candidates;
  std::vector<PodRef> sunset;
  std::int64_t surging = 0, available = 0, desired = 0;
  for (const NodePods& node : nodes) {
    desired += node.exists && node.match.belongs;
    const Pair pair = pair_of(node, wish);
    if (!pair.is_clear) {
      ++surging;
      continue;
    }
    const PodRef& counted = pair.old ? pair.old : pair.fresh;
    const bool is_available = counted && counted->is_available(wish.min_ready, now);
    available += is_available;
    if (!pair.old) continue;
    if (pair.fresh) {
      if (pair.fresh->is_available(wish.min_ready, now))
        steps.remove.push_back(pair.old);
      else
        ++surging;
    } else if (!node.match.belongs) {
      (is_available ? sunset : steps.remove).push_back(pair.old);
    } else {
      (is_available ? candidates : steps.create_on).push_back(node.node);
    }
  }
  for (const std::string& node : candidates) {
    if (surging >= wish.max_surge) break;
    steps.create_on.push_back(node);
    ++surging;
  }
  for (std::size_t i = 0; i < sunset.size() && static_cast<std::int64_t>(i) < available - desired; ++i) steps.remove.push_back(sunset[i]);
  return steps;
}

}  // namespace

bool is_updated(const PodInfo& pod, const Wish& wish) {
  const std::string* hash = pod.labels().get("controller-revision-hash");
  if (hash != nullptr && !wish.hash.empty() && *hash == wish.hash) return true;
  const std::string* generation = pod.labels().get("pod-template-generation");
  return generation != nullptr && !wish.template_generation.empty() && *generation == wish.template_generation;
}

void sort_oldest_first(std::vector<PodRef>& pods) {
  std::sort(pods.begin(), pods.end(), [](const PodRef& a, const PodRef& b) {
    return std::tuple(a->node.empty(), a->created, a->name()) < std::tuple(b->node.empty(), b->created, b->name());
  });
}

Steps keep_nodes(const std::vector<NodePods>& nodes, const Wish& wish, TimePoint now,
                 const std::function<bool(const std::string& node)>& may_replace) {
  Steps steps;
  for (const NodePods& node : nodes) {
    if (node.exists) {
      keep_node(steps, node, wish, now, may_replace);
      continue;
    }
    // Bound pods of a node that is gone are the pod garbage collector's; those that wait for it would wait forever.
    for (const PodRef& pod : node.pods)
      if (!pod->deleting && pod->node.empty() && !node.node.empty()) steps.remove.push_back(pod);
  }
  return steps;
}

Steps roll(const std::vector<NodePods>& nodes, const Wish& wish, TimePoint now) {
  if (!wish.rolling) return {};
  return wish.max_surge == 0 ? roll_in_place(nodes, wish, now) : roll_with_surge(nodes, wish, now);
}

Counts count(std::span<const NodePods> nodes, const Wish& wish, TimePoint now) {
  Counts counts;
  for (const NodePods& node : nodes) {
    if (!node.exists) continue;
    if (!node.match.belongs) {
      counts.misscheduled += !node.pods.empty();
      continue;
    }
    ++counts.desired;
    if (node.pods.empty()) continue;
    const PodInfo& oldest = *node.pods.front();
    ++counts.current;
    counts.ready += oldest.ready;
    counts.available += oldest.ready && oldest.is_available(wish.min_ready, now);
    counts.updated += is_updated(oldest, wish);
  }
  return counts;
}

}  // namespace berth::controllers::daemon
