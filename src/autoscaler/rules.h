// The rules that hold for a pass, and what lasts while they change.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autoscaler/actions.h"
#include "autoscaler/options.h"

namespace berth::autoscaler {

/// Reads the ClusterAutoscaler named default, as often as it changes; says in the log once what of it makes no sense.
class Rules {
 public:
  /// `fixed`: instead of the object.
  Rules(std::optional<Options> fixed, placement::Era era) : fixed_(std::move(fixed)), era_(era) {
    if (fixed_) fixed_->follow(era_);
  }
  [[nodiscard]] bool are_fixed() const { return fixed_.has_value(); }
  /// nullopt: nobody wants scaling (`object` is null), or what they want makes no sense: `problem` says which.
  std::optional<Options> read(const json::Value* object);
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::optional<Options> fixed_;
  placement::Era era_;
  std::string problem_;
  std::vector<std::string> notes_;
};

/// What removals under way stand on: it may be gone when a node's pods have left.
class RemovalGrounds {
 public:
  /// Of a pass: `rules` are those that hold, `problem` why none do.
  void follow(const std::optional<Options>& rules, const std::string& problem);
  void follow(const std::vector<NodeGroup>& groups);
  /// Why a removal may not go on; empty: it may.
  [[nodiscard]] std::string why_not(const NodeRemoval& removal) const;

 private:
  std::string why_none_;                                                 ///< Empty: they go on.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> bounds_;  ///< Groups of the last pass: least and present size.
};

/// Compares a clock that is set by people with one that nobody sets.
class ClockJumps {
 public:
  /// By how much the first went otherwise than the second since the last look; zero for what a clock that is kept right does.
  Duration look(TimePoint wall, Duration steady);

 private:
  std::optional<std::pair<TimePoint, Duration>> last_;
};

}  // namespace berth::autoscaler
