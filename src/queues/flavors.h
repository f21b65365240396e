// Which flavors a Workload gets (Kueue: pkg/scheduler/flavorassigner).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "queues/preemption.h"

namespace berth::queues {

/// Ordered: the worst of its parts is that of the whole.
enum class Mode { kNoFit, kPreempt, kFit };

struct FlavorChoice {
  std::string flavor;
  Mode mode = Mode::kFit;
  int borrowing = 0;
};

struct PodSetChoice {
  std::string name;
  std::map<std::string, FlavorChoice, std::less<>> flavors;  ///< By resource; empty where nothing fits.
  std::vector<std::string> reasons;                          ///< Why it is not kFit.
  Requests requests;                                         ///< Of all its pods.
  std::int64_t count = 0;
  [[nodiscard]] Mode mode() const;
};

struct Assignment {
  std::vector<PodSetChoice> pod_sets;
  FlavorAmounts usage;
  int borrowing = 0;
  /// Some flavors behind those chosen were not looked at.
  bool has_more_flavors = false;
  [[nodiscard]] Mode mode() const;
  /// "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"; empty where it fits.
  [[nodiscard]] std::string message() const;
  /// What there is too little of.
  [[nodiscard]] std::set<FlavorResource> short_of() const;
};

struct AssignmentQuestion {
  const ClusterQueue* queue = nullptr;
  const Workload* workload = nullptr;
  TimePoint queued{};
  const std::map<std::string, Flavor>* flavors = nullptr;
  bool fair_sharing = false;
  bool looks_at_all = false;  ///< Until one fits: none is good enough because somebody could be preempted for it.
};

/// The books are as before.
Assignment assign_flavors(Books& books, const AssignmentQuestion& question);

}  // namespace berth::queues
