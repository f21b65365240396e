// Columns and cells kind by kind. Within src/model only; everybody else uses tables.h.
#pragma once
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/kind_hooks.h"

namespace berth::model {

/// The STATUS column of a pod, its ready, total and restart counts (printers.go printPod).
struct PodSummary {
  std::string status;
  int ready = 0, total = 0, restarts = 0;
  std::string last_restart;  ///< RFC 3339, or empty.
};
PodSummary summarise_pod(const json::Value& pod);

}  // namespace berth::model
