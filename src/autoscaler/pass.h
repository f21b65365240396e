// What the parts of one pass share: what it looks at, what it thinks of it, what it wants done.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "autoscaler/cluster_state.h"
#include "autoscaler/limits.h"
#include "autoscaler/thought.h"
#include "autoscaler/time_limit.h"

namespace berth::autoscaler {

/// Lives as long as the pass: what points into the snapshot stands here, and nowhere else.
struct Pass {
  const Snapshot& snapshot;
  const Options& options;
  TimePoint now;
  const TimeLimit& limit;
  ClusterState& state;
  const NodeTemplates& templates;  ///< One a group of the snapshot.
  Thought thought;
  Memberships memberships{};
  Actions out{};
  bool has_promised = false;  ///< A request found room in this pass: no node goes before that is booked.

  [[nodiscard]] const NodeTemplate& template_of(const std::string& group) const { return templates.find(group)->second; }
  void note(PodPtr pod, std::string node, bool is_warning, std::string reason, std::string message) {
    out.notes.push_back({std::move(pod), std::move(node), is_warning, std::move(reason), std::move(message)});
  }
  /// How long a part takes is told by its name.
  void measure(const char* part, const std::function<void()>& work) {
    const TimePoint start = limit.stopwatch ? limit.stopwatch() : now;
    work();
    if (limit.stopwatch) out.status.lengths[part] += limit.stopwatch() - start;
  }
};

}  // namespace berth::autoscaler
