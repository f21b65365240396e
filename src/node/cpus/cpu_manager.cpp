#include "node/cpus/cpu_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/log.h"
#include "node/devices/plugin_files.h"

namespace berth::node::cpus {
namespace {

class StaticCpus final : public CpuManager {
 public:
  StaticCpus(CpuManagerOptions options, CpuTopology topology, CpuPolicy policy)
      : options_(std::move(options)), ledger_(std::move(topology), std::move(policy)) {}

  Result<void> begin() {
    const auto text = devices::read_file(options_.checkpoint);
    if (!text) return {};
    const auto document = json::parse(*text);
    const auto restored = document ? ledger_.restore(*document) : Result<void>(invalid("it cannot be read"));
    if (restored) return {};
    return invalid(
        fmt::format("could not restore state from checkpoint: {}; drain this node and delete the CPU manager checkpoint file {} "
                    "before starting it again",
                    restored.error().message, options_.checkpoint));
  }

  std::optional<CpuRefusal> admit(const json::Value& pod, std::set<std::string> others) override {
    others.emplace(json::get_string(pod, {"metadata", "uid"}));
    return change([&](CpuLedger& ledger) {
      ledger.keep_only(others);
      return ledger.admit(pod);
    });
  }
  void release(const std::string& uid) override {
    (void)change([&](CpuLedger& ledger) -> std::optional<CpuRefusal> {
      ledger.release(uid);
      return std::nullopt;
    });
  }
  std::string cpus_of(const std::string& uid, const std::string& container) const override {
    const std::lock_guard lock(mutex_);
    return cpu_list(ledger_.cpus_of(uid, container));
  }
  CpuSet own(const std::string& uid, const std::string& container) const override {
    const std::lock_guard lock(mutex_);
    return ledger_.has_own(uid, container) ? ledger_.cpus_of(uid, container) : CpuSet{};
  }
  CpuSet allocatable() const override { return ledger_.allocatable(); }

 private:
  template <typename Change>
  std::optional<CpuRefusal> change(const Change& how) {
    std::optional<CpuRefusal> refusal;
    bool is_other = false;
    {
      const std::lock_guard lock(mutex_);
      const CpuSet before = ledger_.shared();
      refusal = how(ledger_);
      is_other = ledger_.shared() != before;
      const std::string text = json::serialize(ledger_.checkpoint());
      if (text != saved_ && devices::replace_file(options_.checkpoint, text))
        saved_ = text;
      else if (text != saved_)
        log::warning("node", "{} cannot be written: the next start of this node will not know which container has which processors",
                     options_.checkpoint);
    }
    if (is_other && options_.changed) options_.changed();
    return refusal;
  }

  const CpuManagerOptions options_;
  mutable std::mutex mutex_;
  CpuLedger ledger_;
  std::string saved_;
};

Result<bool> read_options(const std::map<std::string, std::string>& options) {
  bool full_cores_only = false;
  for (const auto& [name, value] : options) {
    if (name != "full-pcpus-only") return invalid(fmt::format("cpuManagerPolicyOptions.{}: this node knows full-pcpus-only alone", name));
    if (value != "true" && value != "false") return invalid(fmt::format("cpuManagerPolicyOptions.{}: true or false is wanted", name));
    full_cores_only = value == "true";
  }
  return full_cores_only;
}

/// The processors that the system keeps: those that are named, or so many of the lowest cores.
Result<CpuSet> reserved_cpus(const CpuManagerOptions& options, const CpuTopology& topology) {
  if (!options.reserved.empty()) {
    auto named = parse_cpu_list(options.reserved);
    if (!named) return invalid("reservedSystemCPUs: " + named.error().message);
    if (!std::ranges::includes(topology.all(), *named))
      return invalid(
          fmt::format("reservedSystemCPUs: this machine has the processors {}, not {}", cpu_list(topology.all()), options.reserved));
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
    if (!devices::read_file(options.checkpoint)) return nullptr;
    return invalid(
        fmt::format("configured policy \"none\" differs from state checkpoint policy \"static\"; drain this node and delete the "
                    "CPU manager checkpoint file {} before starting it again",
                    options.checkpoint));
  }
  if (options.policy != "static") return invalid(fmt::format("cpuManagerPolicy: unknown policy: \"{}\" (none, static)", options.policy));
  const auto full_cores_only = read_options(options.options);
  if (!full_cores_only) return std::unexpected(full_cores_only.error());
  auto topology = read_cpu_topology(options.system_root);
  if (!topology) return std::unexpected(topology.error());
  auto reserved = reserved_cpus(options, *topology);
  if (!reserved) return std::unexpected(reserved.error());
  auto out = std::make_unique<StaticCpus>(std::move(options), std::move(*topology),
                                          CpuPolicy{.reserved = std::move(*reserved), .full_cores_only = *full_cores_only});
  if (auto begun = out->begin(); !begun) return std::unexpected(begun.error());
  return out;
}

}  // namespace berth::node::cpus
