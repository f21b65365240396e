// What is tried in passing and taken back: a trial changed in place instead of forked.
#pragma once
#include <memory>

#include "placement/trial.h"

namespace berth::placement {

/// Everything that is done to the trial and its cluster while an attempt lives is taken back when it ends, unless it was kept:
///
///   { Attempt attempt(trial); trial.evict(pod); if (trial.place(other).is_placed()) attempt.keep(); }
///
/// Costs what was changed, and nothing is copied but the nodes that were: for a drain in thought, or one lost node of ten thousand, a
/// fraction of a fork, which copies pages and columns at each first write. In exchange only one line of thought is open at a time.
///
/// Nodes, pods in their order, objects and what is drawn among equals next are as before; change logs and versions go on. Attempts nest
/// and end in the opposite order; a fork made meanwhile is of the trial as it is then. The trial must outlive it and may be moved.
class Attempt {
 public:
  explicit Attempt(Trial& trial);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// What was done stays (for an attempt around this one to keep or take back). At most once; the attempt is over.
  void keep();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::placement
