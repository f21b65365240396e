// `berth parity DIR…`: replays recordings of the real kube-scheduler, kubelet, cluster-autoscaler and descheduler (`make parity
// VECTORS=DIR`).
#include <fmt/format.h>

#include <cstdio>

#include "autoscaler/replay.h"
#include "base/json.h"
#include "cli/parse.h"
#include "cli/placement_commands.h"
#include "descheduler/replay.h"
#include "node/eviction/replay.h"
#include "scheduler/parity/gangs.h"
#include "scheduler/parity/replay.h"
#include "scheduler/parity/vector_files.h"

namespace berth::cli {
namespace {

std::vector<std::string> replay(const std::string& text) {
  const auto file = json::parse(text);
  if (!file) return {file.error().message};
  if (scheduler::parity::is_scheduling_vector(*file)) return scheduler::parity::replay_scheduling(*file);
  if (scheduler::parity::is_gang_vector(*file)) return scheduler::parity::replay_gangs(*file);
  if (node::eviction::is_eviction_vector(*file)) return node::eviction::replay_eviction(*file);
  if (autoscaler::is_autoscaler_vector(*file)) return autoscaler::replay_autoscaler(*file);
  if (descheduler::is_descheduler_vector(*file)) return descheduler::replay_descheduler(*file);
  return {"not a recording that is known: of a scheduler, a kubelet, a cluster autoscaler or a descheduler"};
}

}  // namespace

int run_parity(const std::vector<std::string>& args) {
  CLI::App app(
      "Replays recorded decisions of kube-scheduler, kubelet, cluster-autoscaler and descheduler, and says where this build decides "
      "otherwise.",
      "berth parity");
  std::vector<std::string> paths;
  std::size_t limit = 20;
  app.add_option("path", paths, "Folders, scenario files (.json) or packs (.jsonl.gz)")->required();
  app.add_option("--limit", limit, "Differences printed for one file");
  if (const auto code = parse_args(app, args)) return *code;
  std::size_t passed = 0, failed = 0;
  bool unreadable = false;
  for (const auto& path : paths) {
    const auto count = scheduler::parity::for_each_vector(path, [&](const std::string& name, const std::string& text) {
      const auto differences = replay(text);
      fmt::print("{} {}\n", name, differences.empty() ? "ok" : "FAILED");
      for (std::size_t i = 0; i < differences.size() && i < limit; ++i) fmt::print("    {}\n", differences[i]);
      if (differences.size() > limit) fmt::print("    ... and {} more\n", differences.size() - limit);
      ++(differences.empty() ? passed : failed);
    });
    if (count) continue;
    fmt::print(stderr, "error: {}\n", count.error().message);
    unreadable = true;
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 && !unreadable ? 0 : 1;
}

}  // namespace berth::cli
