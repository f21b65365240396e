// The cluster as a pass thinks of it.
#pragma once
#include <optional>

#include "autoscaler/options.h"
#include "autoscaler/snapshot.h"
#include "placement/trial.h"

namespace berth::autoscaler {

/// Below the threshold of priority: it holds no node, and adds none.
[[nodiscard]] bool is_expendable(const model::PodView& pod, const Options& options);

/// Trials of one pass, each made when it is first asked for: a pass with nothing to do makes none. All it is given outlives it.
class Thought {
 public:
  /// `not_started`: nodes that count as not there, known before `here` is first asked for.
  Thought(const Snapshot& snapshot, const Options& options, const placement::Profiles& profiles,
          const std::vector<std::string>& not_started)
      : snapshot_(snapshot), options_(options), profiles_(profiles), not_started_(not_started) {}

  /// The cluster as it is; every what-if is a fork of it.
  placement::Trial& as_is();
  /// As it counts: without pods that hold no node and without nodes that have not started, with pods that have a place to come to. What is
  /// there has its place before anything that is not.
  placement::Trial& here();
  /// Whether anything makes the two differ, where `some_wait` says that pods do.
  [[nodiscard]] bool is_changed(bool some_wait) const;
  /// Of `here`, where somebody asked for it.
  [[nodiscard]] const placement::Cluster& cluster() const { return here_ ? here_->cluster() : *snapshot_.cluster; }
  /// Pods of bookings that have their places in `here`, and that nobody has made yet.
  [[nodiscard]] PodMap& imagined() { return imagined_; }

 private:
  void drop_expendable();
  void place_nominated();

  const Snapshot& snapshot_;
  const Options& options_;
  const placement::Profiles& profiles_;
  const std::vector<std::string>& not_started_;
  std::optional<placement::Trial> as_is_, here_;
  PodMap imagined_;
};

}  // namespace berth::autoscaler
