#include "node/cpus/cpu_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "model/quantity.h"
#include "node/eviction/pod_facts.h"

namespace berth::node::cpus {
namespace {

/// Takes processors for one request, from what is left.
class Taker {
 public:
  Taker(const CpuTopology& topology, CpuSet available, std::size_t count)
      : topology_(topology), left_(std::move(available)), wanted_(count) {}

  CpuSet run() {
    if (left_.size() < wanted_) return {};
    take_whole(&Cpu::numa_node);
    take_whole(&Cpu::socket);
    take_whole(&Cpu::core);
    for (const int core : in_order(&Cpu::core))
      for (const int cpu : members(&Cpu::core, core))
        if (taken_.size() < wanted_) take({cpu});
    return std::move(taken_);
  }

 private:
  using Level = int Cpu::*;
  /// Of this group: those that are left.
  [[nodiscard]] CpuSet members(Level level, int group) const {
    CpuSet out;
    for (const Cpu& one : topology_.cpus)
      if (one.*level == group && left_.contains(one.id)) out.insert(one.id);
    return out;
  }
  /// Groups that have any left. Cores first by how few their socket has left, then groups by how few they have left, then by number.
  [[nodiscard]] std::vector<int> in_order(Level level) const {
    std::map<int, std::pair<std::size_t, int>> socket_of;  // How many the group's socket has left, and the socket.
    for (const Cpu& one : topology_.cpus)
      if (left_.contains(one.id)) socket_of[one.*level] = {members(&Cpu::socket, one.socket).size(), one.socket};
    std::vector<int> out;
    for (const auto& [group, socket] : socket_of) out.push_back(group);
    std::ranges::stable_sort(out, {}, [&](int group) { return std::tuple(socket_of[group], members(level, group).size(), group); });
    return out;
  }
  [[nodiscard]] std::size_t size_of(Level level, int group) const {
    return static_cast<std::size_t>(std::ranges::count(topology_.cpus, group, level));
  }

  void take_whole(Level level) {
    for (const int group : in_order(level)) {
      const CpuSet free = members(level, group);
      if (free.size() == size_of(level, group) && free.size() <= wanted_ - taken_.size()) take(free);
    }
  }
  void take(const CpuSet& cpus) {
    for (const int cpu : cpus) {
      taken_.insert(cpu);
      left_.erase(cpu);
    }
  }

  const CpuTopology& topology_;
  CpuSet left_, taken_;
  const std::size_t wanted_;
};

bool is_sidecar_container(const json::Value& container) { return json::get_string(container, {"restartPolicy"}) == "Always"; }

CpuSet without(CpuSet from, const CpuSet& these) {
  for (const int cpu : these) from.erase(cpu);
  return from;
}

}  // namespace

CpuSet take_close(const CpuTopology& topology, const CpuSet& available, std::size_t count) {
  return Taker(topology, available, count).run();
}

std::size_t own_cpus(const json::Value& pod, const json::Value& container) {
  const eviction::PodFacts facts = eviction::read_pod_facts(pod);
  if (facts.qos != eviction::QosClass::kGuaranteed || facts.has_pod_level_resources) return 0;
  const auto amount = model::Quantity::parse(
      json::get_string(container, {"resources", "requests", "cpu"}, json::get_string(container, {"resources", "limits", "cpu"})));
  if (!amount || amount->milli_value() <= 0 || amount->milli_value() % 1000 != 0) return 0;
  return static_cast<std::size_t>(amount->milli_value() / 1000);
}

std::optional<CpuRefusal> CpuLedger::admit(const json::Value& pod) {
  const std::string uid(json::get_string(pod, {"metadata", "uid"}));
  if (own_.contains(uid)) return std::nullopt;
  std::map<std::string, CpuSet> given;
  CpuSet available = free(), lent;  // Lent: what init containers that end had.
  const auto give = [&](const json::Value& container, bool lends) -> std::optional<CpuRefusal> {
    const std::size_t count = own_cpus(pod, container);
    if (count == 0) return std::nullopt;
    const auto threads = static_cast<std::size_t>(topology_.threads_per_core());
    if (policy_.full_cores_only && count % threads != 0)
      return CpuRefusal{"SMTAlignmentError",
                        fmt::format("SMT Alignment Error: requested {} cpus not multiple cpus per core = {}", count, threads)};
    CpuSet cpus = take_close(topology_, lent, std::min(count, lent.size()));
    const CpuSet more = take_close(topology_, available, count - cpus.size());
    if (cpus.size() + more.size() < count)
      return CpuRefusal{
          "UnexpectedAdmissionError",
          fmt::format("Allocate failed due to not enough cpus available to satisfy request: requested={}, available={}, which "
                      "is unexpected",
                      count, lent.size() + available.size())};
    lent = without(lent, cpus);
    available = without(available, more);
    cpus.insert(more.begin(), more.end());
    if (lends) lent.insert(cpus.begin(), cpus.end());
    given.emplace(json::get_string(container, {"name"}), std::move(cpus));
    return std::nullopt;
  };
  for (const auto& container : json::get_array(pod, {"spec", "initContainers"}))
    if (auto refusal = give(container, !is_sidecar_container(container))) return refusal;
  for (const auto& container : json::get_array(pod, {"spec", "containers"}))
    if (auto refusal = give(container, false)) return refusal;
  if (!given.empty()) own_.emplace(uid, std::move(given));
  return std::nullopt;
}

bool CpuLedger::keep_only(const std::set<std::string>& uids) {
  return std::erase_if(own_, [&](const auto& entry) { return !uids.contains(entry.first); }) > 0;
}

CpuSet CpuLedger::shared() const {
  CpuSet out = topology_.all();
  for (const auto& [uid, pod] : own_)
    for (const auto& [name, cpus] : pod) out = without(std::move(out), cpus);
  return out;
}

CpuSet CpuLedger::free() const { return without(shared(), policy_.reserved); }
CpuSet CpuLedger::allocatable() const { return without(topology_.all(), policy_.reserved); }

bool CpuLedger::has_own(const std::string& uid, const std::string& container) const {
  const auto pod = own_.find(uid);
  return pod != own_.end() && pod->second.contains(container);
}

CpuSet CpuLedger::cpus_of(const std::string& uid, const std::string& container) const {
  return has_own(uid, container) ? own_.at(uid).at(container) : shared();
}

json::Value CpuLedger::checkpoint() const {
  json::Object entries;
  for (const auto& [uid, pod] : own_) {
    json::Object of_pod;
    for (const auto& [name, cpus] : pod) of_pod[name] = cpu_list(cpus);
    entries[uid] = std::move(of_pod);
  }
  return json::Object{{"policyName", "static"}, {"defaultCpuSet", cpu_list(shared())}, {"entries", std::move(entries)}};
}

Result<void> CpuLedger::restore(const json::Value& checkpoint) {
  if (json::get_string(checkpoint, {"policyName"}) != "static") return invalid("it was written by another policy");
  std::map<std::string, std::map<std::string, CpuSet>> read;
  const CpuSet allowed = allocatable();
  for (const auto& [uid, pod] : json::get_object(checkpoint, {"entries"}))
    for (const auto& [name, text] : pod.is_object() ? pod.get_object() : json::Object()) {
      const auto cpus = text.is_string() ? parse_cpu_list(json::as_view(text)) : Result<CpuSet>(invalid("not a list of processors"));
      if (!cpus) return std::unexpected(cpus.error());
      if (!std::ranges::includes(allowed, *cpus))
        return invalid(
            fmt::format("container {} has processors {} that are reserved or not there", std::string_view(name), cpu_list(*cpus)));
      read[std::string(uid)][std::string(name)] = *cpus;
    }
  own_ = std::move(read);
  return {};
}

}  // namespace berth::node::cpus
