// `berth-parity DIR…`: replays recordings of the real kube-scheduler, kubelet, cluster-autoscaler and descheduler, and says where this
// build decides otherwise (`make parity VECTORS=DIR`).
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <span>

#include "base/json.h"
#include "parity/autoscaling.h"
#include "parity/descheduling.h"
#include "parity/eviction.h"
#include "parity/gangs.h"
#include "parity/scheduling.h"
#include "parity/vector_files.h"

namespace berth {
namespace {

constexpr std::string_view kUsage =
    "Usage: berth-parity [--limit N] PATH…\n"
    "Replays recorded decisions; PATH is a folder, a scenario (.json) or a pack of them (.jsonl.gz).\n"
    "  --limit N   differences printed for one scenario (20)\n"
    "Exits 1 where this build decides otherwise or something cannot be read, 2 for wrong usage.\n";

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

int wrong_usage(std::string_view why) {
  fmt::print(stderr, "error: {}\n{}", why, kUsage);
  return 2;
}

int run(std::span<const char* const> args) {
  std::vector<std::string> paths;
  std::size_t limit = 20;
  for (std::size_t at = 0; at < args.size(); ++at) {
    const std::string_view one = args[at];
    if (one == "--help") return fmt::print("{}", kUsage), 0;
    if (!one.starts_with("-")) {
      paths.emplace_back(one);
      continue;
    }
    if (one != "--limit") return wrong_usage(fmt::format("unknown flag {}", one));
    const std::string_view value = at + 1 < args.size() ? args[++at] : "";
    if (const auto [end, error] = std::from_chars(value.begin(), value.end(), limit); value.empty() || end != value.end())
      return wrong_usage(fmt::format("--limit: \"{}\" is not a number", value));
  }
  if (paths.empty()) return wrong_usage("no path is given");
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

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1)); }
