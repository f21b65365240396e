// How probes that run on threads of their own hand their results to their pod's worker. For pod_worker.cpp and pod_probes.cpp only.
#pragma once
#include <vector>

#include "base/mutex.h"
#include "node/agent/pod_worker.h"

namespace berth::node::agent {

struct PodWorker::ProbeInbox {
  struct Result {
    std::size_t container = 0;
    std::string container_id;
    ProbeKind kind{};
    std::optional<ProbeFailure> wrong;
  };
  Mutex mutex;
  std::vector<Result> results BERTH_GUARDED_BY(mutex);
  PodWorker* worker BERTH_GUARDED_BY(mutex) = nullptr;  ///< Null once it is gone.
};

}  // namespace berth::node::agent
