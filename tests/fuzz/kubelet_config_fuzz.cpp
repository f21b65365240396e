// Fuzz target: a node's configuration file, or (first byte '-') its flags, one NAME=VALUE a line. What is not refused must make a node:
// thresholds, policies, resources; and no threshold may be met or reclaimed by accident of its numbers.
#include <cstdio>
#include <cstdlib>

#include "node/eviction/policies.h"

using namespace berth;
using namespace berth::node::eviction;

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

std::optional<KubeletSettings> read(std::string_view text) {
  if (!text.starts_with('-')) {
    auto settings = load_config_text(text, "fuzz");
    return settings ? std::optional(std::move(*settings)) : std::nullopt;
  }
  KubeletSettings settings;
  text.remove_prefix(1);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t equals = std::min(line.find('='), line.size());
    if (apply_kubelet_argument(settings, std::string(line.substr(0, equals)),
                               {std::string(line.substr(std::min(line.size(), equals + 1)))}))
      return std::nullopt;
  }
  return settings;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  const auto settings = read(std::string_view(reinterpret_cast<const char*>(bytes), size));
  if (!settings || validate(*settings)) return 0;
  const auto config = manager_config(*settings);
  require(config.has_value(), "validated thresholds do not parse");
  (void)container_gc_policy(*settings);
  require(image_gc_policy(*settings).low_threshold_percent < image_gc_policy(*settings).high_threshold_percent, "image thresholds");
  Machine machine{.cores = 4, .memory_bytes = 16LL << 30, .root_fs_bytes = 100LL << 30, .max_pid = 32768};
  if (const auto resources = compute_node_resources(machine, reservation_settings(*settings)))
    for (const auto& [name, quantity] : resources->allocatable) require(quantity.sign() >= 0, "a negative allocatable amount");
  EvictionManager manager(*config);
  (void)manager.set_layout({});
  // A machine that has everything free: only thresholds that are no smaller than all of it are met, and nothing evicts without pods.
  Summary summary;
  summary.node.memory = MemoryUsage{16ULL << 30, 0, 0, TimePoint(Duration(1))};
  const std::vector<PodFacts> nobody;
  const Outcome& outcome = manager.begin(nobody, summary, TimePoint(Duration(1)));
  require(outcome.evictions.empty(), "an eviction without pods");
  return 0;
}
