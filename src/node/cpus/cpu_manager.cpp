#include "node/cpus/cpu_manager.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "node/numa/kept_ledger.h"
#include "node/numa/shared.h"

namespace berth::node::cpus {
namespace {

constexpr const char* kWhose = "CPU";

class StaticCpus final : public CpuManager {
 public:
  StaticCpus(CpuManagerOptions options, CpuTopology topology, CpuPolicy policy)
      : changed_(std::move(options.changed)),
        kept_(CpuLedger(std::move(topology), std::move(policy)), std::move(options.checkpoint), kWhose) {}

  Result<void> begin() { return kept_.begin(); }

  void keep_only(const std::set<std::string>& uids) override {
    change([&](CpuLedger& ledger) { return ledger.keep_only(uids), std::optional<Refusal>(); });
  }
  void release(const std::string& uid) override {
    change([&](CpuLedger& ledger) { return ledger.release(uid), std::optional<Refusal>(); });
  }
  numa::HintsByResource hints(const numa::PodWishes& pod, const numa::Wish& container) const override {
    return kept_.look([&](const CpuLedger& ledger) { return ledger.hints(pod, container); });
  }
  numa::HintsByResource pod_hints(const numa::PodWishes& pod) const override {
    return kept_.look([&](const CpuLedger& ledger) { return ledger.pod_hints(pod); });
  }
  std::optional<Refusal> give(const numa::PodWishes& pod, const numa::Wish& container, const numa::Hint& near) override {
    return change([&](CpuLedger& ledger) { return ledger.give(pod, container, near); });
  }
  std::string cpus_of(const std::string& uid, const std::string& container) const override {
    return kept_.look([&](const CpuLedger& ledger) { return numa::number_list(ledger.cpus_of(uid, container)); });
  }
  CpuSet own(const std::string& uid, const std::string& container) const override {
    return kept_.look([&](const CpuLedger& ledger) { return ledger.has_own(uid, container) ? ledger.cpus_of(uid, container) : CpuSet{}; });
  }
  CpuSet allocatable() const override {
    return kept_.look([](const CpuLedger& ledger) { return ledger.allocatable(); });
  }
  void tell(numa::Offer& offer) const override {
    kept_.look([&](const CpuLedger& ledger) { ledger.tell(offer); });
  }
  std::vector<numa::NodeSet> sockets() const override {
    return kept_.look([](const CpuLedger& ledger) { return ledger.sockets(); });
  }
  int threads_of_whole_cores() const override {
    return kept_.look([](const CpuLedger& ledger) { return ledger.threads_of_whole_cores(); });
  }

 private:
  template <typename Change>
  std::optional<Refusal> change(const Change& how) {
    bool is_other = false;
    auto refusal = kept_.change([&](CpuLedger& ledger) {
      const CpuSet before = ledger.shared();
      auto out = how(ledger);
      is_other = ledger.shared() != before;
      return out;
    });
    if (is_other && changed_) changed_();
    return refusal;
  }

  const std::function<void()> changed_;
  numa::KeptLedger<CpuLedger> kept_;
};

/// What the options of the policy say; what they reserve comes later.
Result<CpuPolicy> read_options(const std::map<std::string, std::string>& options) {
  CpuPolicy out;
  const std::map<std::string_view, bool*> known{{"full-pcpus-only", &out.full_cores_only},
                                                {"strict-cpu-reservation", &out.is_strict},
                                                {"distribute-cpus-across-numa", &out.is_spread},
                                                {"distribute-cpus-across-cores", &out.by_core},
                                                {"align-by-socket", &out.by_socket},
                                                {"prefer-align-cpus-by-uncorecache", &out.by_cache}};
  for (const auto& [name, value] : options) {
    const auto found = known.find(name);
    if (found == known.end())
      return invalid(fmt::format("cpuManagerPolicyOptions.{}: this node knows {}", name, fmt::join(std::views::keys(known), ", ")));
    if (value != "true" && value != "false") return invalid(fmt::format("cpuManagerPolicyOptions.{}: true or false is wanted", name));
    *found->second = value == "true";
  }
  const auto both = [](const char* one, const char* other) {
    return invalid(fmt::format("cpuManagerPolicyOptions: static policy options {} and {} can not be used at the same time", one, other));
  };
  if (out.full_cores_only && out.by_core) return both("full-pcpus-only", "distribute-cpus-across-cores");
  if (out.is_spread && out.by_core) return both("distribute-cpus-across-numa", "distribute-cpus-across-cores");
  if (out.by_cache && out.by_core) return both("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores");
  if (out.by_cache && out.is_spread) return both("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa");
  return out;
}

/// The processors that the system keeps: those that are named, or so many of the lowest cores.
Result<CpuSet> reserved_cpus(const CpuManagerOptions& options, const CpuTopology& topology) {
  if (!options.reserved.empty()) {
    auto named = numa::parse_number_list(options.reserved, "processors");
    if (!named) return invalid("reservedSystemCPUs: " + named.error().message);
    if (!std::ranges::includes(topology.all(), *named))
      return invalid(fmt::format("reservedSystemCPUs: this machine has the processors {}, not {}", numa::number_list(topology.all()),
                                 options.reserved));
    return named;
  }
  if (options.reserved_milli <= 0)
    return invalid("the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero");
  const auto count = static_cast<std::size_t>((options.reserved_milli + 999) / 1000);
  CpuSet out = take_close(topology, topology.all(), count);
  if (out.empty()) return invalid(fmt::format("{} processors are reserved, and this machine has {}", count, topology.cpus.size()));
  return out;
}

}  // namespace

Result<std::unique_ptr<CpuManager>> CpuManager::start(CpuManagerOptions options) {
  if (options.policy == "none" || options.policy.empty()) {
    if (auto ours = numa::KeptLedger<CpuLedger>::expect_no_file(options.checkpoint, kWhose, "none", "static"); !ours)
      return std::unexpected(ours.error());
    return nullptr;
  }
  if (options.policy != "static") return invalid(fmt::format("cpuManagerPolicy: unknown policy: \"{}\" (none, static)", options.policy));
  auto policy = read_options(options.options);
  if (!policy) return std::unexpected(policy.error());
  auto topology = read_cpu_topology(options.system_root);
  if (!topology) return std::unexpected(topology.error());
  auto reserved = reserved_cpus(options, *topology);
  if (!reserved) return std::unexpected(reserved.error());
  policy->reserved = std::move(*reserved);
  if (policy->by_socket && topology->count(&Cpu::socket) > topology->count(&Cpu::numa_node))
    return invalid(
        "cpuManagerPolicyOptions.align-by-socket: Align by socket is not compatible with hardware where number of sockets are more than "
        "number of NUMA");
  auto out = std::make_unique<StaticCpus>(std::move(options), std::move(*topology), std::move(*policy));
  if (auto begun = out->begin(); !begun) return std::unexpected(begun.error());
  return out;
}

}  // namespace berth::node::cpus
