#include "cli/roles/dashboard_role.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "cli/command/findings.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/roles/component_port.h"
#include "cli/roles/dashboard_answers.h"
#include "cli/roles/roles.h"
#include "client/kubeconfig.h"

namespace berth::cli {
namespace {

constexpr std::uint16_t kDashboardPort = 6480;

Result<std::unique_ptr<dashboard::Dashboard>> start_at(const std::string& port, dashboard::Options options) {
  options.port = kDashboardPort;
  if (port == "auto") {
    // Not by the error's words: whatever is wrong with the usual port, a free one may do.
    if (auto started = dashboard::Dashboard::start(options)) return started;
    options.port = 0;
  } else {
    const auto parsed = parse_listen(":" + port, kDashboardPort);
    if (!parsed) return invalid(fmt::format("\"{}\" is neither \"auto\" nor a port", port));
    options.port = parsed->port;
  }
  return dashboard::Dashboard::start(std::move(options));
}

}  // namespace

Result<std::unique_ptr<dashboard::Dashboard>> start_dashboard(DashboardPlan plan) {
  if (!dashboard::has_page()) return fail(ErrorCode::kUnavailable, dashboard::kNoPage);
  dashboard::Options options;
  options.recording_file = plan.recording_file;
  options.allows_changes = plan.allows_changes;
  options.on_new_url = [](const std::string& url) {
    std::printf("dashboard opened; for another browser: %s\n", url.c_str());
    std::fflush(stdout);
  };
  if (plan.has_cluster) {
    const auto connection = client::load_kubeconfig(plan.connection.kubeconfig, plan.connection.context);
    if (!connection) return std::unexpected(connection.error());
    auto transport = client::transport_for(*connection);
    if (!transport) return std::unexpected(transport.error());
    options.transport = std::move(*transport);
    options.ns = plan.connection.ns;
    options.own_ns = connection->ns.empty() ? "default" : connection->ns;
    options.about = {{"context", connection->context}, {"server", connection->http.url}, {"user", connection->user}};
    options.answers = dashboard_answers(plan.connection);
    options.answers.metrics = std::move(plan.metrics);
  }
  auto started = start_at(plan.port, std::move(options));
  if (!started) return fail(started.error().code, fmt::format("the dashboard's port: {}", started.error().message));
  return started;
}

int run_dashboard(const std::vector<std::string>& args) {
  CLI::App app(
      "The dashboard of a cluster, in the browser: the map of its nodes, pending pods and why, what happens now, what would happen if.\n"
      "It serves this machine alone and prints an address with a token, good for one browser. It acts with the rights that the\n"
      "kubeconfig gives, and only reads unless --allow-changes is there.\n"
      "  berth dashboard\n"
      "  berth dashboard --kubeconfig prod.yaml --context prod -n shop\n"
      "  berth dashboard --recording day.jsonl\n"
      "From afar: ssh -L 6480:127.0.0.1:6480 HOST, then open the address here",
      "berth dashboard");
  DashboardPlan plan;
  app.add_option("--kubeconfig", plan.connection.kubeconfig, "Path of the kubeconfig (default: $KUBECONFIG, then ~/.kube/config)");
  app.add_option("--context", plan.connection.context, "The kubeconfig context to use");
  app.add_option("-n,--namespace", plan.connection.ns, "Show the pods of this namespace only (for users who may not list all)");
  app.add_option("--port", plan.port, "Port on 127.0.0.1; auto: 6480 or, when that is taken, any free one")->capture_default_str();
  app.add_option("--recording", plan.recording_file,
                 "Show this recording (berth record, berth simulate --recording) on the map, with a time slider; needs no cluster");
  app.add_flag("--allow-changes", plan.allows_changes, "Let the page cordon nodes, evict pods and scale workloads");
  if (const auto code = parse_args(app, args)) return *code;
  if (!plan.recording_file.empty() && !std::filesystem::is_regular_file(plan.recording_file))
    return report(invalid(fmt::format("--recording {}: there is no such file", plan.recording_file)).error());
  // A recording needs no cluster: one is shown beside it only where it was asked for.
  plan.has_cluster = plan.recording_file.empty() || app.count("--kubeconfig") + app.count("--context") > 0;
  block_signals();
  const auto started = start_dashboard(plan);
  if (!started) return report(started.error());
  std::printf("dashboard: %s\n", (*started)->url().c_str());
  std::fflush(stdout);
  wait_for_signal();
  return 0;
}

}  // namespace berth::cli
