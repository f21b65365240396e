// The dashboard within `berth up`. Its own header, so that up.cpp does without the dashboard's.
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace berth::cli {

/// Serves it until the result goes, and says where it is, or why there is none: a cluster without one is a cluster. `metrics`: the
/// scheduler's.
std::shared_ptr<void> start_dashboard_of_up(const std::string& port, const std::string& kubeconfig, std::function<std::string()> metrics);

}  // namespace berth::cli
