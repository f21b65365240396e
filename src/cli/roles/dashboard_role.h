// The dashboard of a cluster: `berth dashboard`, and the one that `berth up` has.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "cli/command/session.h"
#include "dashboard/dashboard.h"

namespace berth::cli {

struct DashboardPlan {
  ConnectionFlags connection;  ///< `ns`: pods of that namespace only.
  bool has_cluster = true;     ///< False: a recording alone.
  std::string recording_file;
  std::string port = "auto";  ///< "auto": 6480 or, when that is taken, any free one.
  bool allows_changes = false;
  std::function<std::string()> metrics;  ///< The scheduler's, where it runs in this process.
};

/// Serves it until the result is destroyed; prints the address for a further browser after one was used. Errors name the flag.
Result<std::unique_ptr<dashboard::Dashboard>> start_dashboard(DashboardPlan plan);

}  // namespace berth::cli
