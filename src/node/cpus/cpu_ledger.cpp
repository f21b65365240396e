#include "node/cpus/cpu_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ranges>
#include <tuple>

#include "node/numa/shared.h"

namespace berth::node::cpus {
namespace {

/// Takes processors for one request, from what is left.
class Taker {
 public:
  Taker(const CpuTopology& topology, CpuSet available, std::size_t count, const CpuPolicy& policy)
      : topology_(topology), left_(std::move(available)), wanted_(count), by_cache_(policy.by_cache), by_core_(policy.by_core) {}

  CpuSet run() {
    if (left_.size() < wanted_) return {};
    take_whole(&Cpu::numa_node);
    take_whole(&Cpu::socket);
    if (by_cache_) take_of_caches();
    if (!by_core_) take_whole(&Cpu::core);
    // By number the first threads of all cores come before the second ones.
    const Level level = by_core_ ? &Cpu::socket : &Cpu::core;
    for (const int group : in_order(level))
      for (const int cpu : members(level, group))
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
  /// Whole caches, and the rest from one that has as many.
  void take_of_caches() {
    take_whole(&Cpu::cache);
    const std::size_t rest = wanted_ - taken_.size();
    if (rest == 0) return;
    for (const int cache : in_order(&Cpu::cache))
      if (const CpuSet free = members(&Cpu::cache, cache); free.size() >= rest) return take(Taker(topology_, free, rest, {}).run());
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
  const bool by_cache_, by_core_;
};

CpuSet without(CpuSet from, const CpuSet& these) {
  for (const int cpu : these) from.erase(cpu);
  return from;
}

}  // namespace

CpuSet take_close(const CpuTopology& topology, const CpuSet& available, std::size_t count, const CpuPolicy& policy) {
  return Taker(topology, available, count, policy).run();
}

namespace {

CpuSet of_nodes(const CpuTopology& topology, const CpuSet& cpus, numa::NodeSet nodes) {
  CpuSet out;
  for (const Cpu& one : topology.cpus)
    if ((nodes >> one.numa_node & 1) != 0 && cpus.contains(one.id)) out.insert(one.id);
  return out;
}

numa::NodeSet all_nodes(const CpuTopology& topology) {
  numa::NodeSet out = 0;
  for (const Cpu& one : topology.cpus) out |= numa::NodeSet{1} << one.numa_node;
  return out;
}

/// How many each of these NUMA nodes gives, or nothing where they cannot give alike; what is left over comes from those with the most.
std::map<int, std::size_t> even_shares(std::map<int, std::size_t> free, std::size_t count, std::size_t step) {
  const std::size_t each = count / free.size() / step * step;
  std::map<int, std::size_t> out;
  for (auto& [node, left] : free) {
    if (left < each) return {};
    out[node] = each;
    left -= each;
  }
  for (std::size_t rest = count - each * free.size(); rest > 0; rest -= std::min(rest, step)) {
    const auto most = std::ranges::max_element(free, {}, [](const auto& entry) { return entry.second; });
    const std::size_t more = std::min(rest, step);
    if (most->second < more) return {};
    most->second -= more;
    out[most->first] += more;
  }
  return out;
}

double unevenness(const std::map<int, std::size_t>& free) {
  double sum = 0, squares = 0;
  for (const auto& [node, count] : free) {
    sum += static_cast<double>(count);
    squares += static_cast<double>(count) * static_cast<double>(count);
  }
  const double mean = sum / static_cast<double>(free.size());
  return squares / static_cast<double>(free.size()) - mean * mean;
}

}  // namespace

CpuSet take_spread(const CpuTopology& topology, const CpuSet& available, std::size_t count, std::size_t step) {
  const numa::NodeSet all = all_nodes(topology);
  std::map<int, std::size_t> free;
  for (const int node : numa::numbers_of(all)) free[node] = of_nodes(topology, available, numa::NodeSet{1} << node).size();
  using Rank = std::tuple<int, double, numa::NodeSet>;  // How many NUMA nodes, how uneven they are left, which they are.
  std::optional<std::pair<Rank, std::map<int, std::size_t>>> best;
  numa::for_each_subset(all, [&](numa::NodeSet nodes) {
    std::map<int, std::size_t> chosen, rest = free;
    for (const int node : numa::numbers_of(nodes)) chosen[node] = free[node];
    const auto shares = even_shares(std::move(chosen), count, step);
    for (const auto& [node, share] : shares) rest[node] -= share;
    const Rank rank{std::popcount(nodes), unevenness(rest), nodes};
    if (!shares.empty() && (!best || rank < best->first)) best = {rank, shares};
  });
  if (!best) return take_close(topology, available, count);
  CpuSet out;
  for (const auto& [node, share] : best->second)
    out.merge(take_close(topology, of_nodes(topology, available, numa::NodeSet{1} << node), share));
  return out;
}

CpuSet CpuLedger::take(const CpuSet& available, std::size_t count) const {
  if (!policy_.is_spread) return take_close(topology_, available, count, policy_);
  return take_spread(topology_, available, count, static_cast<std::size_t>(threads_of_whole_cores()));
}

std::vector<numa::Hint> CpuLedger::possible(const CpuSet& available, const CpuSet& lent, std::size_t count) const {
  const auto could = [&](numa::NodeSet nodes) { return of_nodes(topology_, topology_.all(), nodes).size() >= count; };
  const numa::NodeSet all = all_nodes(topology_);
  auto out = numa::hints_where(all, could, [&](numa::NodeSet nodes) {
    return of_nodes(topology_, lent, nodes) == lent && lent.size() + of_nodes(topology_, available, nodes).size() >= count;
  });
  numa::prefer_sockets(out, all, numa::fewest_nodes(all, could), sockets());
  return out;
}

numa::HintsByResource CpuLedger::hints(const numa::PodWishes& pod, const numa::Wish& container) const {
  const auto count = static_cast<std::size_t>(container.cpus);
  if (count == 0) return {};
  if (!has_own(pod.uid, container.name)) return {{"cpu", possible(free(), lent(pod.uid), count)}};
  const CpuSet& own = own_.at(pod.uid).at(container.name);
  return {{"cpu", own.size() == count ? possible(own, {}, count) : std::vector<numa::Hint>{}}};
}

numa::HintsByResource CpuLedger::pod_hints(const numa::PodWishes& pod) const {
  const auto most = pod.most_at_a_time();
  const auto cpus = most.find("cpu");
  if (cpus == most.end()) return {};
  const auto count = static_cast<std::size_t>(cpus->second);
  CpuSet own = lent(pod.uid);
  if (const auto known = own_.find(pod.uid); known != own_.end())
    for (const auto& [name, theirs] : known->second) own.insert(theirs.begin(), theirs.end());
  return {{"cpu", own.size() == count ? possible(own, {}, count) : possible(free(), own, count)}};
}

std::optional<Refusal> CpuLedger::give(const numa::PodWishes& pod, const numa::Wish& container, const numa::Hint& near) {
  const std::string &uid = pod.uid, &name = container.name;
  const auto count = static_cast<std::size_t>(container.cpus);
  if (count == 0 || has_own(uid, name)) return std::nullopt;
  if (auto refusal = numa::refuse_half_cores(container.cpus, threads_of_whole_cores())) return refusal;
  if (lender_ != uid) {
    lender_ = uid;
    lent_.clear();
  }
  CpuSet available = free();
  available.insert(lent_.begin(), lent_.end());
  if (available.size() < count) return numa::too_few_cpus(container.cpus, static_cast<std::int64_t>(available.size()));
  CpuSet cpus;
  if (near.nodes) {
    numa::NodeSet nodes = *near.nodes;
    for (const numa::NodeSet socket : sockets())
      if ((*near.nodes & socket) != 0) nodes |= socket;
    const CpuSet aligned = of_nodes(topology_, available, nodes);
    cpus = take(aligned, std::min(aligned.size(), count));
  }
  cpus.merge(take(without(available, cpus), count - cpus.size()));
  if (container.lends())
    lent_.insert(cpus.begin(), cpus.end());
  else
    lent_ = without(std::move(lent_), cpus);
  own_[uid].emplace(name, std::move(cpus));
  return std::nullopt;
}

bool CpuLedger::keep_only(const std::set<std::string>& uids) {
  return std::erase_if(own_, [&](const auto& entry) { return !uids.contains(entry.first); }) > 0;
}

CpuSet CpuLedger::shared() const {
  CpuSet out = policy_.is_strict ? allocatable() : topology_.all();
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

std::vector<numa::NodeSet> CpuLedger::sockets() const {
  std::map<int, numa::NodeSet> out;
  if (policy_.by_socket)
    for (const Cpu& one : topology_.cpus) out[one.socket] |= numa::NodeSet{1} << one.numa_node;
  const auto sets = std::views::values(out);
  return {sets.begin(), sets.end()};
}

void CpuLedger::tell(numa::Offer& offer) const {
  const CpuSet allowed = allocatable(), open = free();
  std::map<int, int> node_of;
  for (const Cpu& one : topology_.cpus) {
    node_of[one.id] = one.numa_node;
    numa::Offer::Amount& amount = offer.amounts["cpu"][one.numa_node];
    ++amount.capacity;
    amount.allocatable += allowed.contains(one.id);
    amount.available += open.contains(one.id);
  }
  for (const auto& [uid, pod] : own_) {
    std::map<int, CpuSet> theirs;  // Once, also those that an init container left to others.
    for (const auto& [name, cpus] : pod)
      for (const int cpu : cpus) theirs[node_of[cpu]].insert(cpu);
    for (const auto& [node, cpus] : theirs)
      offer.holders[uid].push_back({numa::NodeSet{1} << node, "cpu", static_cast<std::int64_t>(cpus.size())});
  }
}

json::Value CpuLedger::checkpoint() const {
  json::Object entries;
  for (const auto& [uid, pod] : own_) {
    json::Object of_pod;
    for (const auto& [name, cpus] : pod) of_pod[name] = numa::number_list(cpus);
    entries[uid] = std::move(of_pod);
  }
  return json::Object{{"policyName", "static"}, {"defaultCpuSet", numa::number_list(shared())}, {"entries", std::move(entries)}};
}

Result<void> CpuLedger::restore(const json::Value& checkpoint) {
  if (json::get_string(checkpoint, {"policyName"}) != "static") return invalid("it was written by another policy");
  std::map<std::string, std::map<std::string, CpuSet>> read;
  const CpuSet allowed = allocatable();
  for (const auto& [uid, pod] : json::get_object(checkpoint, {"entries"}))
    for (const auto& [name, text] : pod.is_object() ? pod.get_object() : json::Object()) {
      const auto cpus = text.is_string() ? numa::parse_number_list(json::as_view(text), "processors")
                                         : Result<CpuSet>(invalid("not a list of processors"));
      if (!cpus) return std::unexpected(cpus.error());
      if (!std::ranges::includes(allowed, *cpus))
        return invalid(
            fmt::format("container {} has processors {} that are reserved or not there", std::string_view(name), numa::number_list(*cpus)));
      read[std::string(uid)][std::string(name)] = *cpus;
    }
  own_ = std::move(read);
  return {};
}

}  // namespace berth::node::cpus
