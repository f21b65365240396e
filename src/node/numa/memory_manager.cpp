#include "node/numa/memory_manager.h"

#include <fmt/format.h>

#include "node/numa/kept_ledger.h"
#include "node/numa/shared.h"

namespace berth::node::numa {
namespace {

constexpr const char* kWhose = "memory";

class StaticMemory final : public MemoryManager {
 public:
  StaticMemory(const NumaMachine& machine, MemoryManagerOptions options)
      : kept_(MemoryLedger(machine.memory, options.reserved), std::move(options.checkpoint), kWhose) {}

  Result<void> begin() { return kept_.begin(); }

  void keep_only(const std::set<std::string>& uids) override {
    kept_.change([&](MemoryLedger& ledger) { ledger.keep_only(uids); });
  }
  void release(const std::string& uid) override {
    kept_.change([&](MemoryLedger& ledger) { ledger.release(uid); });
  }
  HintsByResource hints(const PodWishes& pod, const Wish& container) const override {
    return kept_.look([&](const MemoryLedger& ledger) { return ledger.hints(pod, container); });
  }
  HintsByResource pod_hints(const PodWishes& pod) const override {
    return kept_.look([&](const MemoryLedger& ledger) { return ledger.pod_hints(pod); });
  }
  std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near) override {
    return kept_.change([&](MemoryLedger& ledger) { return ledger.give(pod, container, near); });
  }
  std::string nodes_of(const std::string& uid, const std::string& container) const override {
    const auto nodes = numbers_of(kept_.look([&](const MemoryLedger& ledger) { return ledger.nodes_of(uid, container); }));
    return number_list({nodes.begin(), nodes.end()});
  }
  std::vector<MemoryBlock> blocks(const std::string& uid, const std::string& container) const override {
    return kept_.look([&](const MemoryLedger& ledger) { return ledger.blocks(uid, container); });
  }
  std::vector<MemoryBlock> allocatable() const override {
    return kept_.look([](const MemoryLedger& ledger) { return ledger.allocatable(); });
  }
  void tell(Offer& offer) const override {
    kept_.look([&](const MemoryLedger& ledger) { ledger.tell(offer); });
  }

 private:
  KeptLedger<MemoryLedger> kept_;
};

/// What is reserved on the NUMA nodes has to be what is reserved of the node (memorymanager, validateReservedMemory).
Result<void> check_reserved(const NumaMachine& machine, const MemoryManagerOptions& options) {
  std::map<std::string, std::int64_t> sums;
  for (const auto& [number, amounts] : options.reserved) {
    if (!machine.memory.contains(number))
      return invalid(fmt::format(
          "reservedMemory: the reserved memory configuration references a NUMA node {} that does not exist on this machine", number));
    for (const auto& [type, bytes] : amounts) sums[type] += bytes;
  }
  for (const auto& [type, bytes] : options.node_total) sums.emplace(type, 0);
  for (const auto& [type, bytes] : sums) {
    const auto total = options.node_total.find(type);
    const std::int64_t wanted = total == options.node_total.end() ? 0 : total->second;
    if (bytes != wanted)
      return invalid(fmt::format(
          "reservedMemory: the total amount \"{}\" of type \"{}\" is not equal to the value \"{}\" determined by Node Allocatable feature "
          "(kubeReserved, systemReserved and the hard eviction threshold together)",
          bytes, type, wanted));
  }
  if (const auto memory = sums.find("memory"); memory == sums.end() || memory->second <= 0)
    return invalid("reservedMemory: [memorymanager] you should specify the system reserved memory");
  return {};
}

}  // namespace

Result<std::unique_ptr<MemoryManager>> MemoryManager::start(const NumaMachine& machine, MemoryManagerOptions options) {
  if (options.policy == "None" || options.policy.empty()) {
    if (!options.reserved.empty())
      log::warning("node", "reservedMemory has no effect: it is for memoryManagerPolicy: Static, and that is None");
    if (auto ours = KeptLedger<MemoryLedger>::expect_no_file(options.checkpoint, kWhose, "None", "Static"); !ours)
      return std::unexpected(ours.error());
    return nullptr;
  }
  if (options.policy != "Static") return invalid(fmt::format("memoryManagerPolicy: unknown policy: \"{}\" (None, Static)", options.policy));
  if (auto sound = check_reserved(machine, options); !sound) return std::unexpected(sound.error());
  auto out = std::make_unique<StaticMemory>(machine, std::move(options));
  if (auto begun = out->begin(); !begun) return std::unexpected(begun.error());
  return out;
}

}  // namespace berth::node::numa
