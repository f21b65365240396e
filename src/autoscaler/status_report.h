// What the autoscaler says of itself: the ConfigMap cluster-autoscaler-status.
#pragma once
#include <map>
#include <string>

#include "autoscaler/autoscaler.h"
#include "base/json.h"

namespace berth::autoscaler {

/// The status as the cluster autoscaler's document (clusterstate/api), with the times of the last changes kept between calls.
class StatusReport {
 public:
  /// YAML for data.status.
  std::string write(const Status& status, TimePoint now);

 private:
  /// When a condition last changed.
  std::string since(const std::string& what, std::string_view value, TimePoint now);
  std::map<std::string, std::pair<std::string, std::string>> last_;  ///< By condition: its value, and since when.
  json::Value document_;                                             ///< As last written, but for the time of the look; and as YAML.
  std::string text_;
};

}  // namespace berth::autoscaler
