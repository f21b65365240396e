// What is wrong with the single statements of a node's configuration ("memory.available<500MB", "memory=1.5Gi"): in the kubelet's words,
// and with what was probably meant. For whoever knows where the statement stands; `start_errors` (kubelet_config.h) tells without places.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "node/eviction/kubelet_config.h"

namespace berth::node::eviction {

struct StatementFault {
  std::string_view field, flag;  ///< "evictionHard", "eviction-hard"
  std::string name;              ///< "memory.available"
  std::string what;
  bool is_refused = true;  ///< False: the kubelet takes it, and it is hardly meant.
};
[[nodiscard]] std::vector<StatementFault> statement_faults(const KubeletSettings& settings);

}  // namespace berth::node::eviction
