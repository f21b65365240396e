// What goes wrong in a world, when and for how long: drawn from a seed.
#pragma once
#include <string>
#include <vector>

#include "base/clock.h"

namespace berth::world {

/// One thing that goes wrong, or that somebody does, and for how long.
struct Fault {
  enum class What {
    kKillServer,
    kCutEtcd,
    kLoseEtcdAnswers,
    kLoseEtcdRequests,
    kLagWatch,
    kSlowEtcd,
    kNoLeader,
    kFullDisk,
    kCompact,
    kTurnEtcdClock,
    kCutWire,
    kLoseAnswers,
    kLoseRequests,
    kSlowWire,
    kKillComponent,
    kStopComponent,
    kStopServer,
    kTurnClocks,
    kNodeDies,
    kUpgrade,
    kScale,
    kDeletePod,
    kGang,
    kEndGang,
    kSubject,  ///< One of the subjects acts (subject.h).
    kCount
  };
  What what = What::kKillServer;
  Duration at{}, lasts{};
  std::uint64_t which = 0;
  double share = 0;
};

std::string words(const Fault& fault);
std::vector<Fault> story(std::uint64_t seed, int faults);

}  // namespace berth::world
