// A pass' shrinking: nodes that nobody needs, since when, and which of them go now.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/pass.h"
#include "autoscaler/scale_down.h"

namespace berth::autoscaler {

/// Remembers between passes since when nodes are unneeded, which of them are going, and how the last removals ended.
class Shrinking {
 public:
  /// What is gone is not being removed any more.
  void begin(const placement::Cluster& cluster);
  void run(Pass& pass, ClusterLimits limits, const std::optional<TimePoint>& last_growth);
  /// Nothing is known to be unneeded.
  void forget_unneeded() { unneeded_.clear(); }
  void removal_ended(const std::string& node, bool succeeded, TimePoint now);
  [[nodiscard]] bool is_removing(const std::string& node) const { return removing_.contains(node); }
  void shift_times(Duration jump);

 private:
  using Left = std::map<std::string, std::int64_t, std::less<>>;
  void place_leaving(Pass& pass) const;
  [[nodiscard]] ScaleDownFindings find_nodes_to_go(Pass& pass) const;
  [[nodiscard]] std::vector<ScaleDownInput::Candidate> candidates(const Pass& pass) const;
  void follow_unneeded(Pass& pass, ScaleDownFindings& found);
  void tell_of_blocked(Pass& pass);
  [[nodiscard]] Left left_in_groups(const Pass& pass) const;
  void choose_removals(Pass& pass, std::vector<Removable>& removable, ClusterLimits& limits);
  std::string_view why_kept(const Pass& pass, const Removable& one, Left& left, ClusterLimits& limits) const;
  void remove(Pass& pass, const Removable& one);
  void soft_taint(Pass& pass) const;

  std::map<std::string, TimePoint> unneeded_;  ///< Nodes, since when.
  std::vector<std::string> left_;              ///< Nodes that the last pass had no time for, in turn.
  std::map<std::string, std::string> told_;    ///< Nodes that would be worth removing, and what holds them.
  std::map<std::string, bool> removing_;       ///< Nodes; whether they are drained.
  std::optional<TimePoint> last_removal_, last_failure_;
};

}  // namespace berth::autoscaler
