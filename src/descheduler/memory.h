// What a descheduler that goes on running knows of the cycles before: which pods took the place of evicted ones, whoever evicted them.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "descheduler/snapshot.h"
#include "placement/moves.h"

namespace berth::descheduler {

/// Learns from the differences of snapshots. What nobody dates has happened right after the snapshot before: a pod that was moved since is
/// rather left alone once too often. Single-threaded.
class Memory {
 public:
  /// The cluster as it is now; `now` never goes back.
  void look_at(const Snapshot& snapshot, TimePoint now);
  /// It took an evicted pod's place, and nothing has changed from outside since. Nobody, before the second look.
  [[nodiscard]] bool is_moved(const Pod& pod) const { return moves_.is_moved(pod.view().meta.uid); }

 private:
  /// By uid, as the pod itself has it: most are the same as in the snapshot before, and nothing of them is copied.
  using SeenPods = std::unordered_map<std::string_view, PodPtr>;

  void look_at_nodes(const Snapshot& snapshot, TimePoint now);
  void look_for_lost(const Snapshot& snapshot, const SeenPods& there);
  void look_for_new(const std::vector<PodPtr>& fresh);
  void changed(TimePoint when) { change_ = change_ ? std::max(*change_, when) : when; }

  placement::Moves moves_;
  SeenPods pods_;  ///< Those that are on their way out are gone.
  std::set<std::string, std::less<>> nodes_;
  std::optional<TimePoint> before_;  ///< The last look.
  std::optional<TimePoint> change_;  ///< The latest from outside, as this look finds it.
};

}  // namespace berth::descheduler
