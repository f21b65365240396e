// A pass' growth: who waits, what of it has a place, and which groups grow for the rest.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autoscaler/gangs.h"
#include "autoscaler/pass.h"
#include "autoscaler/scale_up.h"

namespace berth::autoscaler {

class RequestRoom;

/// What nobody who is placed in thought is told of.
inline void nobody_asks(const PodPtr&, placement::NodeIndex) {}
/// The group's new size, into what the pass wants done.
void record_growth(Pass& pass, const Resize& resize);
/// For an event: why the plan helps a pod nothing.
std::string why_not_helped(const ScaleUpPlan& plan, const Refusals& why);

/// Remembers between passes when something last grew.
class Growing {
 public:
  using AskExpander = std::function<Result<std::vector<std::string>>(const std::vector<ExpansionOption>&)>;
  explicit Growing(std::uint64_t seed) : seed_(seed) {}
  void set_expander(AskExpander ask) { ask_expander_ = std::move(ask); }

  /// Each pass: whom the expanders' draw falls on goes by how many there were.
  void begin() { ++passes_; }
  /// Pods and requests of the pass, in that order or by turns.
  void run(Pass& pass, RequestRoom& requests, const ClusterLimits& limits);
  /// For pods that fit nowhere in `soon`. All it is given must outlive it.
  [[nodiscard]] ScaleUpInput input_for(const Pass& pass, placement::Trial& soon, std::vector<PodPtr> pending, Kinds& kinds,
                                       const ClusterLimits& limits) const;
  [[nodiscard]] const std::optional<TimePoint>& last() const { return last_; }
  void shift_times(Duration jump) {
    if (last_) *last_ += jump;
  }

 private:
  void look(Pass& pass, RequestRoom& requests, const ClusterLimits& limits) const;
  void grow(Pass& pass, placement::Trial& soon, std::vector<PodPtr> pending, std::vector<Gang> gangs, Kinds& kinds,
            ClusterLimits limits) const;

  std::uint64_t seed_;
  std::uint64_t passes_ = 0;
  AskExpander ask_expander_;
  std::optional<TimePoint> last_;
};

}  // namespace berth::autoscaler
