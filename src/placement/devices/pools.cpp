#include "placement/devices/pools.h"

#include <algorithm>
#include <map>
#include <set>

namespace berth::placement::devices {
namespace {

using model::ResourceSliceView;
using Slices = std::vector<const ResourceSliceView*>;

bool concerns(const ResourceSliceView& slice, const model::NodeView& node) {
  if (!slice.counter_sets.empty()) return true;
  if ((slice.node_name && !slice.node_name->empty()) || slice.all_nodes || slice.node_selector)
    return reaches(node, slice.node_name, slice.all_nodes, slice.node_selector);
  return slice.per_device && std::ranges::any_of(slice.devices, [&](const model::DeviceView& device) {
           return reaches(node, device.node_name, device.all_nodes, device.node_selector);
         });
}

const model::CounterSet* find_set(const std::vector<const model::CounterSet*>& sets, const std::string& name) {
  const auto at = std::ranges::find(sets, name, &model::CounterSet::name);
  return at == sets.end() ? nullptr : *at;
}

/// Every counter that a device consumes is one of the pool's.
bool counters_are_known(const std::vector<const model::CounterSet*>& sets, const Slices& slices) {
  for (const auto* slice : slices)
    for (const auto& device : slice->devices)
      for (const auto& consumed : device.consumes) {
        const auto* set = find_set(sets, consumed.counter_set);
        if (set == nullptr) return false;
        for (const auto& [name, amount] : consumed.counters)
          if (model::find_resource(set->counters, name) == nullptr) return false;
      }
  return true;
}

/// `all` is empty when `slices` is the whole pool.
Pool build(PoolId id, Slices slices, const Slices& all) {
  std::ranges::sort(slices, {}, [](const auto* slice) { return std::string_view(slice->meta.name); });
  Pool out{std::move(id), false, false, {}, {}, {}};
  const auto invalid = [&] {
    Pool bad{out.id, false, true, {}, {}, {}};
    return bad;
  };
  std::set<std::string_view> names, sets;
  for (const auto* slice : slices) {
    if (slice->counter_sets.empty()) {
      out.slices.push_back(slice);
      for (const auto& device : slice->devices)
        if (!names.insert(device.name).second) return invalid();
    } else {
      for (const auto& set : slice->counter_sets) {
        if (!sets.insert(set.name).second) return invalid();
        out.counter_sets.push_back(&set);
      }
    }
  }
  if (!counters_are_known(out.counter_sets, slices)) return invalid();
  if (all.empty() || all.size() == slices.size()) return out;
  for (const auto* slice : all)
    if (std::ranges::find(slices, slice->meta.name, [](const auto* one) -> const std::string& { return one->meta.name; }) == slices.end())
      out.others.push_back(slice);
  return counters_are_known(out.counter_sets, out.others) ? out : invalid();
}

bool has_binding_conditions(const Pool& pool) {
  return std::ranges::any_of(pool.slices, [](const auto* slice) {
    return std::ranges::any_of(slice->devices, [](const auto& device) { return !device.binding_conditions.empty(); });
  });
}

}  // namespace

bool reaches(const model::NodeView& node, const std::optional<std::string>& node_name, bool all_nodes,
             const std::optional<model::NodeSelector>& selector) {
  if (node_name && !node_name->empty()) return *node_name == node.name();
  if (all_nodes) return true;
  return selector && selector->matches(node.meta.labels, node.name());
}

std::vector<Pool> gather_pools(std::span<const ResourceSliceView* const> candidates, const model::NodeView& node,
                               std::span<const ResourceSliceView* const> all) {
  std::map<PoolId, Slices> found;
  for (const auto* slice : candidates) {
    if (!concerns(*slice, node)) continue;
    Slices& known = found[{slice->driver, slice->pool}];
    if (!known.empty() && slice->generation < known.front()->generation) continue;
    if (!known.empty() && slice->generation > known.front()->generation) known.clear();
    known.push_back(slice);
  }
  std::vector<Pool> out, last;
  for (auto& [id, slices] : found) {
    const std::int64_t wanted = slices.front()->slice_count, generation = slices.front()->generation;
    Slices whole;
    if (static_cast<std::int64_t>(slices.size()) != wanted) {
      bool is_obsolete = false;
      for (const auto* slice : all) {
        if (slice->driver != id.driver || slice->pool != id.pool) continue;
        is_obsolete |= slice->generation > generation;
        if (slice->generation == generation) whole.push_back(slice);
      }
      if (is_obsolete) continue;
      if (static_cast<std::int64_t>(whole.size()) != wanted) {
        out.push_back({id, true, false, {}, {}, {}});
        continue;
      }
    }
    Pool pool = build(id, std::move(slices), whole);
    (has_binding_conditions(pool) ? last : out).push_back(std::move(pool));
  }
  // The map has both in order already.
  std::ranges::move(last, std::back_inserter(out));
  return out;
}

}  // namespace berth::placement::devices
