// Who was moved already. Components that move pods (the descheduler, the autoscaler) ask before they move one or take its node: without
// this two of them, or one alone, would move the same pods back and forth as each other's moves change what is best.
//
//   a pod is evicted ──> the next new pod of its controller is "moved" ──> something changes from outside ──> it may be moved again
//
// From outside is what no such component did: pods that come, end or are deleted, nodes that fail, recover, are relabelled or cordoned.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "model/views/node_view.h"

namespace berth::placement {

/// A memory, told of what happens in its order; whoever lists now and then tells of the differences. Single-threaded. It begins empty: who
/// was moved before is not known.
class Moves {
 public:
  /// A pod of this controller was asked to leave by the eviction API.
  void evicted(const std::string& controller_uid);
  /// A pod that was not there before. True: it takes an evicted one's place. Otherwise it is news, and `changed` is for the caller to call.
  bool came(const std::string& uid, const std::string& controller_uid, TimePoint when);
  void gone(const std::string& uid) { moved_.erase(uid); }
  /// Of the evicted pods whose successors have not come, only those of these controllers are still to have some. True: others had been
  /// waited for, whose controllers want fewer pods by now.
  bool wait_only_for(const std::set<std::string>& controller_uids);
  /// Something has changed from outside: who came before `when` may be moved.
  void changed(TimePoint when);
  /// The same, of everybody there.
  void changed() { moved_.clear(); }
  /// It took an evicted pod's place, and nothing has changed since.
  [[nodiscard]] bool is_moved(const std::string& uid) const { return !moved_.empty() && moved_.contains(uid); }

  /// A node as it is now. True: it has changed from outside, or came by other hands than a machine's. The autoscaler's own taints do not
  /// count, nor what a node that was made for a machine becomes until it is ready.
  bool see_node(const model::NodeView& node);
  /// True: it went by other hands than the autoscaler's, as far as the node itself told; a machine's node counts only where it did not
  /// carry the taint of the way out and `knows_all` says that every change of it was seen.
  bool node_gone(const std::string& name, bool knows_all);

 private:
  struct Node {
    std::uint64_t mark = 0;  ///< Of all that counts.
    bool was_ready = false, is_machine = false, is_leaving = false;
  };

  std::unordered_map<std::string, std::int64_t> homeless_;  ///< Evicted pods whose successors have not come, by controller.
  std::unordered_map<std::string, TimePoint> moved_;        ///< By uid, when they came.
  std::map<std::string, Node, std::less<>> nodes_;
};

}  // namespace berth::placement
