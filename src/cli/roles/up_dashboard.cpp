#include "cli/roles/up_dashboard.h"

#include <cstdio>

#include "cli/roles/dashboard_role.h"

namespace berth::cli {

std::shared_ptr<void> start_dashboard_of_up(const std::string& port, const std::string& kubeconfig, std::function<std::string()> metrics) {
  if (port == "0") return nullptr;
  DashboardPlan plan;
  plan.connection.kubeconfig = kubeconfig;
  plan.port = port;
  plan.metrics = std::move(metrics);
  auto started = start_dashboard(std::move(plan));
  if (!started) {
    std::printf("no dashboard: %s\n", started.error().message.c_str());
    return nullptr;
  }
  std::printf("dashboard: %s\n", (*started)->url().c_str());
  return std::move(*started);
}

}  // namespace berth::cli
