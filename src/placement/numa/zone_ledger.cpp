#include "placement/numa/zone_ledger.h"

#include <algorithm>
#include <numeric>

namespace berth::placement::numa {
namespace {

NodeSet bit(int number) { return NodeSet{1} << number; }

std::int64_t sum(const std::map<int, std::int64_t>& parts, NodeSet nodes) {
  std::int64_t out = 0;
  for (const auto& [number, amount] : parts)
    if ((nodes & bit(number)) != 0) out += amount;
  return out;
}

/// `left` is the rest of a NUMA node that has `capacity`.
struct Rest {
  int number = 0;
  std::int64_t left = 0, capacity = 0;
};

}  // namespace

ZoneLedger::ZoneLedger(const model::NodeTopologyView& topology, const std::set<std::string>& present) {
  const bool tells_holders = topology.attributes.contains(model::kTellsHolders);
  read(topology, tells_holders);
  if (tells_holders) take_over(topology, present);
}

void ZoneLedger::read(const model::NodeTopologyView& topology, bool tells_holders) {
  const bool gives_cpus = topology.attribute(model::kCpuManagerPolicy) != "none";
  const bool gives_memory = topology.attribute(model::kMemoryManagerPolicy) != "None";
  if (const auto threads = topology.attribute(model::kThreadsOfWholeCores); !threads.empty())
    threads_of_whole_cores_ = std::max<std::int64_t>(1, std::atoll(std::string(threads).c_str()));
  sockets_ = node_sets_in(topology.attribute(model::kSockets));
  MemoryByNode total, reserved;
  MemoryLedger::Entries others;
  machine_.nodes = 0;
  for (const model::NumaZone& zone : topology.zones) machine_.nodes |= bit(zone.number);
  for (const model::NumaZone& zone : topology.zones) {
    for (const int to : numbers_of(machine_.nodes)) {
      const auto cost = zone.costs.find(to);
      machine_.distances[zone.number].push_back(cost == zone.costs.end() ? 255 : cost->second);
    }
    for (const model::ZoneResource& one : zone.resources) {
      const std::int64_t capacity = one.capacity.value(), allocatable = one.allocatable.value(), available = one.available.value();
      if (is_memory(one.name)) {
        total[zone.number][one.name] = capacity;
        reserved[zone.number][one.name] = std::max<std::int64_t>(0, capacity - allocatable);
        if (!tells_holders && available < allocatable)
          others[""][std::to_string(zone.number)].push_back({bit(zone.number), one.name, allocatable - available});
      } else if (one.name != "cpu" || gives_cpus) {
        counts_[one.name][zone.number] = {.capacity = capacity, .free = tells_holders ? allocatable : available};
      }
    }
  }
  if (!gives_memory || total.empty()) return;
  memory_.emplace(total, reserved);
  memory_->take_over(std::move(others));
}

void ZoneLedger::take_over(const model::NodeTopologyView& topology, const std::set<std::string>& present) {
  MemoryLedger::Entries memory;
  for (const auto& [name, text] : topology.attributes) {
    if (!name.starts_with(model::kHoldsPrefix)) continue;
    const std::string uid = name.substr(model::kHoldsPrefix.size());
    if (!present.contains(uid)) continue;
    for (const Holding& one : holdings_in(text)) {
      if ((one.nodes & ~machine_.nodes) != 0) continue;
      if (is_memory(one.resource)) {
        memory[uid][""].push_back({one.nodes, one.resource, one.amount});
        continue;
      }
      const auto counts = counts_.find(one.resource);
      if (counts == counts_.end()) continue;
      // Devices near several NUMA nodes are counted with each.
      for (const int number : numbers_of(one.nodes)) {
        counts->second[number].free -= one.amount;
        held_[uid][one.resource][number] += one.amount;
      }
    }
  }
  if (memory_) memory_->take_over(std::move(memory));
}

bool ZoneLedger::knows(const std::string& resource) const { return is_memory(resource) ? memory_.has_value() : counts_.contains(resource); }

bool ZoneLedger::gives(const PodWishes& pod) const {
  return std::ranges::any_of(pod.most_at_a_time(), [&](const auto& entry) { return entry.second > 0 && knows(entry.first); });
}

void ZoneLedger::set_aside(const PodWishes& pod) {
  MemoryLedger::Entries memory = memory_ ? memory_->entries() : MemoryLedger::Entries{};
  for (const auto& [resource, amount] : pod.most_at_a_time()) {
    if (!knows(resource)) continue;
    for (const int number : numbers_of(machine_.nodes)) {
      if (is_memory(resource)) {
        memory[pod.uid][std::to_string(number)].push_back({bit(number), resource, amount});
        continue;
      }
      counts_[resource][number].free -= amount;
      held_[pod.uid][resource][number] += amount;
    }
  }
  if (memory_) memory_->take_over(std::move(memory));
}

std::int64_t ZoneLedger::free(NodeSet nodes, const std::string& resource) const {
  if (is_memory(resource)) return memory_ ? memory_->free(nodes, resource) : 0;
  std::int64_t out = 0;
  if (const auto counts = counts_.find(resource); counts != counts_.end())
    for (const auto& [number, count] : counts->second)
      if ((nodes & bit(number)) != 0) out += std::max<std::int64_t>(0, count.free);
  return out;
}

std::int64_t ZoneLedger::most(NodeSet nodes, const std::string& resource) const {
  std::int64_t out = 0;
  if (is_memory(resource)) {
    if (memory_)
      for (const MemoryBlock& block : memory_->allocatable())
        if (block.type == resource && (block.nodes & nodes) != 0) out += block.bytes;
    return out;
  }
  if (const auto counts = counts_.find(resource); counts != counts_.end())
    for (const auto& [number, count] : counts->second)
      if ((nodes & bit(number)) != 0) out += count.capacity;
  return out;
}

void ZoneLedger::tell(Offer& offer) const {
  for (const auto& [resource, counts] : counts_)
    for (const auto& [number, count] : counts)
      offer.amounts[resource][number] = {count.capacity, count.free, std::max<std::int64_t>(0, count.free)};
  for (const auto& [uid, of_pod] : held_)
    for (const auto& [resource, parts] : of_pod)
      for (const auto& [number, amount] : parts) {
        offer.amounts[resource][number].allocatable += amount;
        offer.holders[uid].push_back({bit(number), resource, amount});
      }
  if (memory_) memory_->tell(offer);
}

void ZoneLedger::keep_only(const std::set<std::string>& uids) {
  std::vector<std::string> gone;
  for (const auto& [uid, of_pod] : held_)
    if (!uids.contains(uid)) gone.push_back(uid);
  for (const std::string& uid : gone) release(uid);
  if (memory_) memory_->keep_only(uids);
}

void ZoneLedger::release(const std::string& uid) {
  if (const auto held = held_.find(uid); held != held_.end()) {
    for (const auto& [resource, parts] : held->second)
      for (const auto& [number, amount] : parts) counts_[resource][number].free += amount;
    held_.erase(held);
  }
  if (memory_) memory_->release(uid);
}

ZoneLedger::Parts ZoneLedger::lent(const std::string& uid, const std::string& resource) const {
  const auto found = lent_.find(resource);
  return uid != lender_ || found == lent_.end() ? Parts{} : found->second;
}

std::vector<Hint> ZoneLedger::possible(const std::string& uid, const std::string& resource, std::int64_t count) const {
  const Parts borrowed = lent(uid, resource);
  const std::int64_t of_borrowed = sum(borrowed, machine_.nodes);
  const auto could = [&](NodeSet nodes) { return most(nodes, resource) >= count; };
  return hints_where(machine_.nodes, could,
                     [&](NodeSet nodes) { return sum(borrowed, nodes) == of_borrowed && of_borrowed + free(nodes, resource) >= count; });
}

HintsByResource ZoneLedger::hints(const PodWishes& pod, const Wish& container) const {
  HintsByResource out = memory_ ? memory_->hints(pod, container) : HintsByResource{};
  for (const auto& [resource, counts] : counts_)
    if (const std::int64_t count = container.of(resource); count > 0) out[resource] = possible(pod.uid, resource, count);
  return out;
}

HintsByResource ZoneLedger::pod_hints(const PodWishes& pod) const {
  HintsByResource out = memory_ ? memory_->pod_hints(pod) : HintsByResource{};
  for (const auto& [resource, count] : pod.most_at_a_time())
    if (count > 0 && counts_.contains(resource)) out[resource] = possible(pod.uid, resource, count);
  return out;
}

/// From near the nodes as far as they have it, then from the others. Processors: whole NUMA nodes first, then those with the least left.
ZoneLedger::Parts ZoneLedger::choose(const Counts& counts, const Parts& lent, std::int64_t count, const Hint& near,
                                     bool whole_first) const {
  Parts out;
  const auto take = [&](NodeSet nodes) {
    std::vector<Rest> rests;
    for (const auto& [number, one] : counts) {
      const auto borrowed = lent.find(number);
      const std::int64_t left = std::max<std::int64_t>(0, one.free) + (borrowed == lent.end() ? 0 : borrowed->second);
      if ((nodes & bit(number)) != 0 && left > 0) rests.push_back({number, left, one.capacity});
    }
    if (whole_first) std::ranges::stable_sort(rests, {}, &Rest::left);
    const auto take_from = [&](Rest& rest) {
      const std::int64_t part = std::min(rest.left, count);
      if (part > 0) out[rest.number] += part;
      rest.left -= part;
      count -= part;
    };
    if (whole_first)
      for (Rest& rest : rests)
        if (rest.left == rest.capacity && rest.left <= count) take_from(rest);
    for (Rest& rest : rests) take_from(rest);
  };
  NodeSet first = near.nodes.value_or(machine_.nodes);
  for (const NodeSet socket : sockets_)
    if (whole_first && near.nodes && (*near.nodes & socket) != 0) first |= socket;
  take(first);
  take(machine_.nodes & ~first);
  return out;
}

std::optional<Refusal> ZoneLedger::give_counted(const PodWishes& pod, const Wish& container, const std::string& resource,
                                                const Hint& near) {
  const std::int64_t count = container.of(resource);
  const bool is_cpu = resource == "cpu";
  if (count == 0) return std::nullopt;
  if (is_cpu)
    if (auto refusal = refuse_half_cores(count, threads_of_whole_cores_)) return refusal;
  const Parts borrowed = lent(pod.uid, resource);
  if (const std::int64_t available = free(machine_.nodes, resource) + sum(borrowed, machine_.nodes); available < count)
    return is_cpu ? too_few_cpus(count, available) : too_few_devices(resource, count, available);
  Counts& counts = counts_.at(resource);
  Parts& left = lent_[resource];
  for (const auto& [number, amount] : choose(counts, borrowed, count, near, is_cpu)) {
    const auto had = borrowed.find(number);
    const std::int64_t again = std::min(amount, had == borrowed.end() ? 0 : had->second);
    counts[number].free -= amount - again;
    held_[pod.uid][resource][number] += amount - again;
    left[number] += container.lends() ? amount - again : -again;
  }
  return std::nullopt;
}

std::optional<Refusal> ZoneLedger::give(const PodWishes& pod, const Wish& container, const Hint& near) {
  if (lender_ != pod.uid) {
    lender_ = pod.uid;
    lent_.clear();
  }
  // In the order of the kubelet's managers: of what is missing it says the first.
  for (const auto& [resource, counts] : counts_)
    if (resource != "cpu")
      if (auto refusal = give_counted(pod, container, resource, near)) return refusal;
  if (knows("cpu"))
    if (auto refusal = give_counted(pod, container, "cpu", near)) return refusal;
  return memory_ ? memory_->give(pod, container, near) : std::nullopt;
}

}  // namespace berth::placement::numa
