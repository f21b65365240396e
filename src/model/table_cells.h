// Columns and cells kind by kind. Within src/model only; everybody else uses tables.h.
#pragma once
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/kinds.h"

namespace berth::model {

struct Column {
  const char* name;
  int priority = 0;  ///< 1: shown with -o wide.
  const char* type = "string";
};

struct Printer {
  std::vector<Column> columns;
  json::Array (*cells)(const json::Value& object, TimePoint now);
};

/// The kind's printer, or that of name and age.
const Printer& printer_of(const KindInfo& kind);

/// The STATUS column of a pod, its ready, total and restart counts (printers.go printPod).
struct PodSummary {
  std::string status;
  int ready = 0, total = 0, restarts = 0;
  std::string last_restart;  ///< RFC 3339, or empty.
};
PodSummary summarise_pod(const json::Value& pod);

}  // namespace berth::model
