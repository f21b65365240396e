// Waiting pods by kind: those of one kind are interchangeable to the engine.
#pragma once
#include <unordered_map>
#include <vector>

#include "placement/trial.h"

namespace berth::pools {

struct PodKind {
  std::vector<placement::PodInfoPtr> pods;
  [[nodiscard]] const placement::PodInfo& first() const { return *pods.front(); }
};
/// In the order in which their first pods stand.
std::vector<PodKind> kinds_of(placement::Trial& trial, const std::vector<placement::PodInfoPtr>& pods);

}  // namespace berth::pools
