// Which waiting pods are alike: what the queue groups them by, so that an event asks once for all of them.
#pragma once
#include <map>
#include <string>
#include <tuple>

#include "placement/framework.h"
#include "scheduler/queue.h"

namespace berth::scheduler {

/// Gives pods that get one answer from every hint and every node one kind: those of one signature under one profile, and of one nomination.
/// A kind lives as long as somebody holds it, and so does what it is known by: a signature may be large. Single-threaded.
class WaitingKinds {
 public:
  /// `nominated` is the node where room is made for the pod, which counts in the answers; empty for none.
  [[nodiscard]] PodKindPtr of(const placement::Framework& framework, const placement::PodInfo& pod, const std::string& nominated);
  /// Kinds that somebody holds.
  [[nodiscard]] std::size_t size() const { return kinds_->size(); }

 private:
  /// schedulerName, signature, nominated node, whether the pod never preempts.
  using Key = std::tuple<std::string, placement::Signature, std::string, bool>;
  using Table = std::map<Key, std::weak_ptr<const PodKind>>;
  std::shared_ptr<Table> kinds_ = std::make_shared<Table>();  ///< The last kinds may outlive this.
  std::uint64_t last_id_ = 0;
};

}  // namespace berth::scheduler
