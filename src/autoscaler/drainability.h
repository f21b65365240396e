// May this pod be moved so that its node can go (SPEC H3; the cluster autoscaler's drainability rules, in their order).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/options.h"
#include "autoscaler/snapshot.h"

namespace berth::placement {
class DisruptionLedger;
}

namespace berth::autoscaler {

struct Drainability {
  enum class Verdict {
    kMove,    ///< It must find a place elsewhere.
    kLeave,   ///< It goes with its node: daemons' pods, and those that have ended.
    kIgnore,  ///< As if it were not there: mirror pods, and those that are ending for too long already.
    kWait,    ///< The node waits until it has ended by itself.
    kBlock    ///< The node stays.
  };
  Verdict verdict = Verdict::kMove;
  std::string_view reason;  ///< Of kBlock: the cluster autoscaler's name of it, e.g. "NotReplicated".
  std::string message;      ///< Of kBlock.
};
Drainability drainability_of(const Pod& pod, const placement::DisruptionLedger& budgets, const Snapshot& snapshot, const Options& options,
                             TimePoint now);

}  // namespace berth::autoscaler
