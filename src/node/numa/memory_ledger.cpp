#include "node/numa/memory_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "model/quantity.h"
#include "node/eviction/pod_facts.h"

namespace berth::node::numa {
namespace {

bool is_memory(std::string_view resource) { return resource == "memory" || resource.starts_with("hugepages-"); }

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

MemoryLedger::MemoryLedger(const NumaMachine& machine, const ReservedMemory& reserved) {
  for (const auto& [number, memory] : machine.memory) {
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

/// Containers of Guaranteed pods alone; not where the resources are the pod's (kubelet's rule).
MemoryLedger::Amounts MemoryLedger::wanted(const json::Value& pod, const json::Value& container) const {
  Amounts out;
  const eviction::PodFacts facts = eviction::read_pod_facts(pod);
  if (facts.qos != eviction::QosClass::kGuaranteed || facts.has_pod_level_resources) return out;
  for (const std::string_view list : {"limits", "requests"})
    for (const auto& [name, amount] : json::get_object(container, {"resources", list}))
      if (is_memory(name) && amount.is_string())
        if (const auto quantity = model::Quantity::parse(json::as_view(amount))) out[std::string(name)] = quantity->value();
  return out;
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
  int fewest = std::popcount(all);
  std::vector<Hint> out;
  for_each_subset(all, [&](NodeSet nodes) {
    const auto have = [&](auto figure, bool with_lent) {
      return std::ranges::all_of(amounts, [&](const auto& amount) {
        return sum(nodes, amount.first, figure) + (with_lent ? lent(uid, nodes, amount.first) : 0) >= amount.second;
      });
    };
    if (!have(&Table::allocatable, false)) return;
    fewest = std::min(fewest, std::popcount(nodes));
    if (!breaks_groups(nodes) && have(&Table::free, true)) out.push_back({nodes, false});
  });
  prefer_narrow(out, fewest);
  return out;
}

HintsByResource MemoryLedger::hints(const json::Value& pod, const json::Value& container) const {
  const std::string uid(json::get_string(pod, {"metadata", "uid"}));
  const Amounts amounts = wanted(pod, container);
  HintsByResource out;
  if (const auto own = blocks(uid, std::string(json::get_string(container, {"name"}))); !own.empty()) {
    for (const MemoryBlock& block : own) out[block.type] = std::vector{Hint{block.nodes, true}};
    return out;
  }
  // Where nothing fits the kubelet has no hints, which is no preference: giving says what is missing.
  if (const auto found = possible(uid, amounts); !found.empty())
    for (const auto& [type, bytes] : amounts) out[type] = found;
  return out;
}

HintsByResource MemoryLedger::pod_hints(const json::Value& pod) const {
  Amounts amounts;
  for (const std::string_view list : {"initContainers", "containers"})
    for (const json::Value& container : json::get_array(pod, {"spec", list}))
      for (const auto& [type, bytes] : wanted(pod, container)) amounts.emplace(type, 0);
  for (auto& [type, bytes] : amounts)
    bytes = most_at_a_time(pod, [&](const json::Value& container) {
      const Amounts own = wanted(pod, container);
      const auto found = own.find(type);
      return found == own.end() ? 0 : found->second;
    });
  HintsByResource out;
  if (const auto found = possible(std::string(json::get_string(pod, {"metadata", "uid"})), amounts); !found.empty())
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

std::optional<Refusal> MemoryLedger::give(const json::Value& pod, const json::Value& container, const Hint& near) {
  const std::string uid(json::get_string(pod, {"metadata", "uid"})), name(json::get_string(container, {"name"}));
  const Amounts amounts = wanted(pod, container);
  if (amounts.empty() || !blocks(uid, name).empty()) return std::nullopt;
  if (lender_ != uid) {
    lender_ = uid;
    lent_.clear();
  }
  const auto nodes = choose(uid, amounts, near);
  if (!nodes) return unexpected(nodes.error().message);
  std::vector<MemoryBlock> given;
  for (const auto& [type, bytes] : amounts) given.push_back({*nodes, type, bytes});
  take_back_lent(pod, container, given);
  const bool lends = is_lender(pod, container);
  for (const MemoryBlock& block : given) {
    std::int64_t& left = lent_[{block.nodes, block.type}];
    left = lends ? std::max(left, block.bytes) : left - std::min(left, block.bytes);
  }
  Entries entries = entries_;
  entries[uid][name] = std::move(given);
  change(std::move(entries));
  return std::nullopt;
}

/// What ended init containers had of the same nodes is this container's now: together they have what the machine gave.
void MemoryLedger::take_back_lent(const json::Value& pod, const json::Value& container, const std::vector<MemoryBlock>& blocks) {
  const auto of_pod = entries_.find(lender_);
  if (of_pod == entries_.end()) return;
  for (const MemoryBlock& block : blocks) {
    std::int64_t open = block.bytes;
    for (const json::Value& init : json::get_array(pod, {"spec", "initContainers"})) {
      if (json::get_string(init, {"name"}) == json::get_string(container, {"name"})) break;
      const auto had = of_pod->second.find(std::string(json::get_string(init, {"name"})));
      if (had == of_pod->second.end() || !is_lender(pod, init)) continue;
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

}  // namespace berth::node::numa
