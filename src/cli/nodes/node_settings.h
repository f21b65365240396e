// The kubelet's configuration of `berth node` and of the real node in `berth up`.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "node/eviction/kubelet_config.h"

namespace berth::cli {

/// The configuration file (may be empty) first, then NAME=VALUE kubelet arguments over it.
Result<node::eviction::KubeletSettings> read_kubelet_settings(const std::string& config_file, const std::vector<std::string>& arguments);

}  // namespace berth::cli
