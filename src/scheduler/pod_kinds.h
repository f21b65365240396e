// Which waiting pods are alike: what the queue groups them by, so that an event asks once for all of them.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/cluster.h"
#include "scheduler/queue.h"

namespace berth::scheduler {

/// Gives pods that get one answer from every hint and every node one kind. A kind lives as long as somebody holds it. Single-threaded.
class PodKinds {
 public:
  /// `nominated` is the node where room is made for the pod, which counts in the answers; empty for none. Null for a pod that is like no
  /// other.
  [[nodiscard]] PodKindPtr of(const placement::PodInfoPtr& pod, const std::string& nominated);
  /// Kinds that somebody holds, at most.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Known {
    placement::PodInfoPtr first;
    std::string nominated;
    std::weak_ptr<const PodKind> kind;
  };
  void sweep();

  std::unordered_map<std::uint64_t, std::vector<Known>> by_hash_;
  std::size_t size_ = 0, sweep_at_ = 1024;
  std::uint64_t last_id_ = 0;
};

}  // namespace berth::scheduler
