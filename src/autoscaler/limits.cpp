#include "autoscaler/limits.h"

#include <algorithm>

namespace berth::autoscaler {
namespace {

std::int64_t amount(const model::NodeView& node, std::string_view name) {
  const model::Quantity* found = model::find_resource(node.capacity, name);
  return found == nullptr ? 0 : std::max<std::int64_t>(found->value(), 0);
}

}  // namespace

Amounts amounts_of(const model::NodeView& node, const Options& options) {
  Amounts out{{"cpu", amount(node, "cpu")}, {"memory", amount(node, "memory")}};
  const std::string* type = node.labels().get(options.accelerator_label);
  for (const GpuLimit& limit : options.gpus) {
    std::int64_t count = 0;
    if (type != nullptr && !type->empty()) {
      if (*type == limit.type)
        for (const auto& [name, quantity] : node.capacity)
          if (name.ends_with("/gpu")) count = placement::saturating_add(count, std::max<std::int64_t>(quantity.value(), 0));
    } else {
      count = amount(node, limit.type);
    }
    out[limit.type] += count;
  }
  return out;
}

ClusterLimits::ClusterLimits(const Snapshot& snapshot, const NodeTemplates& templates, const Options& options) {
  bounds_["cpu"] = options.cores;
  bounds_["memory"] = options.memory_bytes;
  for (const GpuLimit& limit : options.gpus) bounds_[limit.type] = limit.bounds;
  std::set<std::string_view> counted;
  for (const NodeGroup& group : snapshot.groups) {
    const auto found = templates.find(group.id);
    if (found == templates.end() || found->second.node == nullptr) continue;
    for (const Instance& instance : group.instances) counted.insert(instance.node);
    add(amounts_of(*found->second.node, options), group.target);
  }
  Amounts rest;
  std::int64_t cores = snapshot.totals->cores, memory_bytes = snapshot.totals->memory_bytes;
  if (options.gpus.empty() && cores != INT64_MAX && memory_bytes != INT64_MAX) {
    for (const std::string_view name : counted) {
      const auto facts = snapshot.nodes->find(name);
      if (facts == snapshot.nodes->end() || facts->second.is_to_be_deleted) continue;
      cores -= facts->second.cores;
      memory_bytes -= facts->second.memory_bytes;
    }
  } else {
    // What is counted by labels, and what exceeds all numbers, takes a walk.
    cores = memory_bytes = 0;
    for (const auto& [name, facts] : *snapshot.nodes) {
      if (facts.is_to_be_deleted || counted.contains(name)) continue;
      cores = placement::saturating_add(cores, facts.cores);
      memory_bytes = placement::saturating_add(memory_bytes, facts.memory_bytes);
      const placement::NodeInfo* node = options.gpus.empty() ? nullptr : snapshot.cluster->find_node(name);
      if (node == nullptr || node->node == nullptr) continue;
      for (const auto& [type, amount] : amounts_of(*node->node, options))
        if (type != "cpu" && type != "memory") rest[type] = placement::saturating_add(rest[type], amount);
    }
  }
  rest["cpu"] = cores;
  rest["memory"] = memory_bytes;
  add(rest, 1);
}

void ClusterLimits::add(const Amounts& node, std::int64_t count) {
  for (const auto& [name, value] : node) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(value, count, &product)) product = INT64_MAX;
    totals_[name] = placement::saturating_add(totals_[name], product);
  }
}

std::int64_t ClusterLimits::allowed(const Amounts& node, std::int64_t wanted) const {
  for (const auto& [name, value] : node) {
    const auto bound = bounds_.find(name);
    if (bound == bounds_.end() || value <= 0 || bound->second.max == INT64_MAX) continue;
    const auto used = totals_.find(name);
    const std::int64_t left = bound->second.max - (used == totals_.end() ? 0 : used->second);
    wanted = std::min(wanted, std::max<std::int64_t>(left, 0) / value);
  }
  return wanted;
}

std::vector<std::string> ClusterLimits::exceeded(const Amounts& node) const {
  std::vector<std::string> out;
  for (const auto& [name, value] : node)
    if (allowed({{name, value}}, 1) < 1) out.push_back(name);
  return out;
}

bool ClusterLimits::may_remove(const Amounts& node) const {
  return std::ranges::all_of(node, [&](const auto& entry) {
    const auto bound = bounds_.find(entry.first);
    const auto used = totals_.find(entry.first);
    if (bound == bounds_.end() || entry.second <= 0 || bound->second.min <= 0) return true;
    return (used == totals_.end() ? 0 : used->second) - entry.second >= bound->second.min;
  });
}

}  // namespace berth::autoscaler
