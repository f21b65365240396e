// What a Job makes of a pod that is taken from its node: a pod that is deleted counts as failed
// (pkg/controller/job: getNewFinishedPods, exceedsBackoffLimit, matchPodFailurePolicy).
#pragma once
#include <cstdint>
#include <string>

#include "base/json.h"
#include "model/views/pod_view.h"

namespace berth::whatif {

/// Failures of this question, by what the Job counts them by.
struct JobFailures {
  std::int64_t of_job = 0, of_index = 0;
};

struct JobVerdict {
  bool counts = true;    ///< As a failure; the Job's podFailurePolicy may ignore disruptions.
  std::string gives_up;  ///< Why the Job makes no other pod; empty: it makes one.
  bool fails = false;    ///< The whole Job does by it: its other pods end too.
  bool waits = false;    ///< It makes the next one only when this one is known to have ended.
};

/// `before`: what this question has taken from the Job already.
JobVerdict verdict_of(const json::Value& job, const model::PodView& pod, const JobFailures& before);

/// The pod's completion index; empty: its Job has none.
std::string index_of(const model::PodView& pod);

}  // namespace berth::whatif
