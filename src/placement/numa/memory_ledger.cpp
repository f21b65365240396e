#include "placement/numa/memory_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace berth::placement::numa {
namespace {

json::Array numbers_as_json(NodeSet nodes) {
  json::Array out;
  for (const int number : numbers_of(nodes)) out.push_back(static_cast<std::int64_t>(number));
  return out;
}

std::optional<NodeSet> nodes_in(const json::Value& block) {
  NodeSet out = 0;
  for (const json::Value& number : json::get_array(block, {"numaAffinity"})) {
    if (!number.is_int64() || number.get_int64() < 0 || number.get_int64() >= kMostNodes) return std::nullopt;
    out |= NodeSet{1} << number.get_int64();
  }
  return out == 0 ? std::nullopt : std::optional(out);
}

Result<MemoryBlock> read_block(const json::Value& block) {
  const auto nodes = nodes_in(block);
  const std::string type(json::get_string(block, {"type"}));
  const json::Value* bytes = json::find(block, "size");
  if (!nodes || !is_memory(type) || bytes == nullptr || !bytes->is_int64() || bytes->get_int64() < 0)
    return invalid("not a block of memory");
  return MemoryBlock{*nodes, type, bytes->get_int64()};
}

}  // namespace

MemoryLedger::MemoryLedger(const MemoryByNode& total, const MemoryByNode& reserved) {
  for (const auto& [number, memory] : total) {
    Node& node = empty_[number];
    node.group = NodeSet{1} << number;
    for (const auto& [type, bytes] : memory) {
      const auto of_node = reserved.find(number);
      const auto found = of_node == reserved.end() ? Amounts::const_iterator() : of_node->second.find(type);
      const bool is_reserved = of_node != reserved.end() && found != of_node->second.end();
      node.memory[type] = {.total = bytes, .reserved = is_reserved ? std::min(found->second, bytes) : 0};
    }
  }
  nodes_ = empty_;
}

std::int64_t MemoryLedger::sum(NodeSet nodes, const std::string& type, std::int64_t (Table::*figure)() const) const {
  std::int64_t out = 0;
  for (const auto& [number, node] : nodes_)
    if ((nodes >> number & 1) != 0)
      if (const auto table = node.memory.find(type); table != node.memory.end()) out += (table->second.*figure)();
  return out;
}

std::int64_t MemoryLedger::lent(const std::string& uid, NodeSet nodes, const std::string& type) const {
  if (uid != lender_) return 0;
  const auto found = lent_.find({nodes, type});
  return found == lent_.end() ? 0 : found->second;
}

/// A NUMA node that has given something is for its group alone.
bool MemoryLedger::breaks_groups(NodeSet nodes) const {
  const bool is_single = std::popcount(nodes) == 1;
  return std::ranges::any_of(nodes_, [&](const auto& entry) {
    const Node& node = entry.second;
    if ((nodes >> entry.first & 1) == 0) return false;
    return is_single ? std::popcount(node.group) > 1 : node.assignments > 0 && node.group != nodes;
  });
}

/// The same for all types of memory that are wanted together.
std::vector<Hint> MemoryLedger::possible(const std::string& uid, const Amounts& amounts) const {
  NodeSet all = 0;
  for (const auto& [number, node] : nodes_) all |= NodeSet{1} << number;
  const auto have = [&](NodeSet nodes, auto figure, bool with_lent) {
    return std::ranges::all_of(amounts, [&](const auto& amount) {
      return sum(nodes, amount.first, figure) + (with_lent ? lent(uid, nodes, amount.first) : 0) >= amount.second;
    });
  };
  const auto could = [&](NodeSet nodes) { return have(nodes, &Table::allocatable, false); };
  return hints_where(all, could, [&](NodeSet nodes) { return could(nodes) && !breaks_groups(nodes) && have(nodes, &Table::free, true); });
}

HintsByResource MemoryLedger::hints(const PodWishes& pod, const Wish& container) const {
  HintsByResource out;
  if (const auto own = blocks(pod.uid, container.name); !own.empty()) {
    for (const MemoryBlock& block : own) out[block.type] = std::vector{Hint{block.nodes, true}};
    return out;
  }
  // Where nothing fits the kubelet has no hints, which is no preference: giving says what is missing.
  if (const auto found = possible(pod.uid, container.memory); !found.empty())
    for (const auto& [type, bytes] : container.memory) out[type] = found;
  return out;
}

HintsByResource MemoryLedger::pod_hints(const PodWishes& pod) const {
  Amounts amounts = pod.most_at_a_time();
  std::erase_if(amounts, [](const auto& entry) { return !is_memory(entry.first); });
  HintsByResource out;
  if (const auto found = possible(pod.uid, amounts); !found.empty())
    for (const auto& [type, bytes] : amounts) out[type] = found;
  return out;
}

/// Near what the policy chose; where that has not enough, near more nodes with these among them.
Result<NodeSet> MemoryLedger::choose(const std::string& uid, const Amounts& amounts, const Hint& near) const {
  const auto best_of = [](const std::vector<Hint>& hints) {
    return std::ranges::min(hints, {},
                            [](const Hint& hint) { return std::tuple(!hint.is_preferred, std::popcount(*hint.nodes), *hint.nodes); });
  };
  auto hints = possible(uid, amounts);
  Hint chosen = near;
  if (!chosen.nodes) {
    if (hints.empty())
      return invalid("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available");
    chosen = best_of(hints);
    if (!chosen.is_preferred && near.is_preferred) return invalid("[memorymanager] failed to find the default preferred hint");
  }
  if (!std::ranges::all_of(amounts, [&](const auto& one) { return sum(*chosen.nodes, one.first, &Table::free) >= one.second; })) {
    std::erase_if(hints, [&](const Hint& hint) { return (*chosen.nodes & ~*hint.nodes) != 0; });
    if (hints.empty()) return invalid("[memorymanager] failed to find NUMA nodes to extend the current topology hint");
    const Hint wider = best_of(hints);
    if (!wider.is_preferred && chosen.is_preferred) return invalid("[memorymanager] failed to find the extended preferred hint");
    chosen = wider;
  }
  if (std::popcount(*chosen.nodes) > 1 && breaks_groups(*chosen.nodes))
    return invalid("[memorymanager] preferred hint violates NUMA node allocation");
  return *chosen.nodes;
}

std::optional<Refusal> MemoryLedger::give(const PodWishes& pod, const Wish& container, const Hint& near) {
  const Amounts& amounts = container.memory;
  if (amounts.empty() || !blocks(pod.uid, container.name).empty()) return std::nullopt;
  if (lender_ != pod.uid) {
    lender_ = pod.uid;
    lent_.clear();
  }
  const auto nodes = choose(pod.uid, amounts, near);
  if (!nodes) return unexpected(nodes.error().message);
  std::vector<MemoryBlock> given;
  for (const auto& [type, bytes] : amounts) given.push_back({*nodes, type, bytes});
  take_back_lent(pod, container, given);
  for (const MemoryBlock& block : given) {
    std::int64_t& left = lent_[{block.nodes, block.type}];
    left = container.lends() ? std::max(left, block.bytes) : left - std::min(left, block.bytes);
  }
  Entries entries = entries_;
  entries[pod.uid][container.name] = std::move(given);
  change(std::move(entries));
  return std::nullopt;
}

/// What ended init containers had of the same nodes is this container's now: together they have what the machine gave.
void MemoryLedger::take_back_lent(const PodWishes& pod, const Wish& container, const std::vector<MemoryBlock>& blocks) {
  const auto of_pod = entries_.find(lender_);
  if (of_pod == entries_.end()) return;
  for (const MemoryBlock& block : blocks) {
    std::int64_t open = block.bytes;
    for (const Wish& init : pod.containers) {
      if (!init.is_init || init.name == container.name) break;
      const auto had = of_pod->second.find(init.name);
      if (had == of_pod->second.end() || !init.lends()) continue;
      for (MemoryBlock& old : had->second) {
        if (old.type != block.type || old.nodes != block.nodes) continue;
        const std::int64_t moved = std::min(open, old.bytes);
        old.bytes -= moved;
        open -= moved;
      }
    }
  }
}

/// Who has what, counted anew: from the lowest NUMA node of each block, as much as it has.
std::map<int, MemoryLedger::Node> MemoryLedger::counted(const Entries& entries) const {
  std::map<int, Node> out = empty_;
  for (const auto& [uid, pod] : entries)
    for (const auto& [name, blocks] : pod)
      for (const MemoryBlock& block : blocks) {
        std::int64_t open = block.bytes;
        for (const int number : numbers_of(block.nodes)) {
          Node& node = out.at(number);
          ++node.assignments;
          node.group = block.nodes;
          Table& table = node.memory[block.type];
          const std::int64_t taken = std::min(open, table.free());
          table.used += taken;
          open -= taken;
        }
      }
  return out;
}

void MemoryLedger::change(Entries entries) {
  nodes_ = counted(entries);
  entries_ = std::move(entries);
}

void MemoryLedger::keep_only(const std::set<std::string>& uids) {
  Entries entries = entries_;
  if (std::erase_if(entries, [&](const auto& entry) { return !uids.contains(entry.first); }) > 0) change(std::move(entries));
}

void MemoryLedger::release(const std::string& uid) {
  Entries entries = entries_;
  if (entries.erase(uid) > 0) change(std::move(entries));
}

std::vector<MemoryBlock> MemoryLedger::blocks(const std::string& uid, const std::string& container) const {
  const auto pod = entries_.find(uid);
  if (pod == entries_.end()) return {};
  const auto found = pod->second.find(container);
  return found == pod->second.end() ? std::vector<MemoryBlock>{} : found->second;
}

NodeSet MemoryLedger::nodes_of(const std::string& uid, const std::string& container) const {
  NodeSet out = 0;
  for (const MemoryBlock& block : blocks(uid, container)) out |= block.nodes;
  return out;
}

std::vector<MemoryBlock> MemoryLedger::allocatable() const {
  std::vector<MemoryBlock> out;
  for (const auto& [number, node] : empty_)
    for (const auto& [type, table] : node.memory)
      if (table.allocatable() > 0) out.push_back({NodeSet{1} << number, type, table.allocatable()});
  return out;
}

void MemoryLedger::tell(Offer& offer) const {
  for (const auto& [number, node] : nodes_)
    for (const auto& [type, table] : node.memory) offer.amounts[type][number] = {table.total, table.allocatable(), table.free()};
  for (const auto& [uid, pod] : entries_)
    for (const auto& [name, blocks] : pod)
      for (const MemoryBlock& block : blocks) offer.holders[uid].push_back({block.nodes, block.type, block.bytes});
}

json::Value MemoryLedger::checkpoint() const {
  json::Object machine, entries;
  for (const auto& [number, node] : nodes_) {
    json::Object memory;
    for (const auto& [type, table] : node.memory)
      memory[type] = json::Object{{"total", table.total},
                                  {"systemReserved", table.reserved},
                                  {"allocatable", table.allocatable()},
                                  {"reserved", table.used},
                                  {"free", table.free()}};
    machine[std::to_string(number)] =
        json::Object{{"numberOfAssignments", node.assignments}, {"memoryMap", std::move(memory)}, {"cells", numbers_as_json(node.group)}};
  }
  for (const auto& [uid, pod] : entries_) {
    json::Object of_pod;
    for (const auto& [name, blocks] : pod) {
      json::Array list;
      for (const MemoryBlock& block : blocks)
        list.push_back(json::Object{{"numaAffinity", numbers_as_json(block.nodes)}, {"type", block.type}, {"size", block.bytes}});
      of_pod[name] = std::move(list);
    }
    entries[uid] = std::move(of_pod);
  }
  return json::Object{{"policyName", "Static"}, {"machineState", std::move(machine)}, {"entries", std::move(entries)}};
}

Result<void> MemoryLedger::restore(const json::Value& checkpoint) {
  if (json::get_string(checkpoint, {"policyName"}) != "Static") return invalid("it was written by another policy");
  const Error other{ErrorCode::kInvalid, "[memorymanager] the expected machine state is different from the real one"};
  const json::Object& machine = json::get_object(checkpoint, {"machineState"});
  if (machine.size() != empty_.size()) return std::unexpected(other);
  for (const auto& [number, node] : empty_)
    for (const auto& [type, table] : node.memory) {
      const auto figure = [&](std::string_view name) {
        return json::get_int(checkpoint, {"machineState", std::to_string(number), "memoryMap", type, name}, -1);
      };
      if (figure("total") != table.total || figure("systemReserved") != table.reserved) return std::unexpected(other);
    }
  Entries read;
  for (const auto& [uid, pod] : json::get_object(checkpoint, {"entries"}))
    for (const auto& [name, blocks] : pod.is_object() ? pod.get_object() : json::Object())
      for (const json::Value& one : blocks.is_array() ? blocks.get_array() : json::Array()) {
        auto block = read_block(one);
        if (!block) return std::unexpected(block.error());
        for (const int number : numbers_of(block->nodes))
          if (!empty_.contains(number))
            return invalid(fmt::format("[memorymanager] (pod: {}, container: {}) the memory assignment uses the NUMA that does not exist",
                                       std::string_view(uid), std::string_view(name)));
        read[std::string(uid)][std::string(name)].push_back(std::move(*block));
      }
  change(std::move(read));
  return {};
}

}  // namespace berth::placement::numa
