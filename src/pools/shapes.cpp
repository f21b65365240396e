#include "pools/shapes.h"

#include <algorithm>

namespace berth::pools {
namespace {

using LabelMap = std::map<std::string, std::string, std::less<>>;

/// What pool, type and offering say of a node's labels.
LabelMap labels_of(const NodePool& pool, const InstanceType& type, const Offering& offering) {
  LabelMap out;
  for (const auto& [key, value] : pool.labels.pairs()) out[key] = value;
  for (const auto& [key, value] : type.labels.pairs()) out[key] = value;
  put_place(out, offering);
  out[std::string(kPoolLabel)] = pool.name;
  return out;
}

std::vector<model::Taint> taints_of(const NodePool& pool, const InstanceType& type) {
  std::vector<model::Taint> out = pool.taints;
  out.insert(out.end(), type.taints.begin(), type.taints.end());
  return out;
}

model::Labels as_labels(const LabelMap& map) {
  return model::Labels(std::vector<std::pair<std::string, std::string>>(map.begin(), map.end()));
}

/// Values for the keys that only the pool speaks of: every combination.
std::vector<LabelMap> own_values(const NodePool& pool, const std::set<std::string, std::less<>>& told) {
  constexpr std::size_t kMost = 16;
  std::vector<LabelMap> out(1);
  for (const auto& [key, set] : pool.requirements) {
    if (told.contains(key) || pool.labels.get(key) != nullptr || !set.named()) continue;
    std::vector<LabelMap> next;
    for (const LabelMap& so_far : out)
      for (const std::string& value : *set.named()) {
        if (next.size() == kMost || !set.admits(&value)) continue;
        next.push_back(so_far);
        next.back()[key] = value;
      }
    out = std::move(next);
  }
  return out;
}

/// Keys that the catalogue or the machinery gives labels of.
std::set<std::string, std::less<>> told_keys(const Catalogue& catalogue) {
  std::set<std::string, std::less<>> out = {std::string(kZoneLabel), std::string(kCapacityTypeLabel), std::string(kPoolLabel),
                                            std::string(kInstanceTypeLabel)};
  for (const InstanceType& type : catalogue.types)
    for (const auto& [key, value] : type.labels.pairs()) out.insert(key);
  return out;
}

}  // namespace

void put_place(std::map<std::string, std::string, std::less<>>& labels, const Offering& offering) {
  if (!offering.zone.empty()) labels[std::string(kZoneLabel)] = offering.zone;
  labels[std::string(kCapacityTypeLabel)] = offering.capacity_type;
}

double price_of(const Catalogue& catalogue, const model::Labels& labels) {
  const auto label = [&](std::string_view key) {
    const std::string* value = labels.get(key);
    return value == nullptr ? std::string_view() : std::string_view(*value);
  };
  if (const InstanceType* type = catalogue.find(label(kInstanceTypeLabel)))
    for (const Offering& one : type->offerings)
      if (one.zone == label(kZoneLabel) && one.capacity_type == label(kCapacityTypeLabel)) return one.price;
  return 0;
}

std::vector<NodeShape> make_shapes(const std::vector<NodePool>& pools, const Catalogue& catalogue, const Unavailable& unavailable,
                                   TimePoint now) {
  std::vector<NodeShape> out;
  const std::set<std::string, std::less<>> told = told_keys(catalogue);
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const NodePool& pool = pools[p];
    if (pool.is_deleting) continue;
    std::set<std::string, std::less<>> unknown;
    for (const auto& [key, set] : pool.requirements)
      if (!told.contains(key) && !set.named()) unknown.insert(key);
    const std::vector<LabelMap> own = own_values(pool, told);
    for (std::size_t t = 0; t < catalogue.types.size(); ++t) {
      const InstanceType& type = catalogue.types[t];
      if (type.node_class != pool.node_class.types_of()) continue;
      const std::vector<model::Taint> taints = taints_of(pool, type);
      const auto allocatable = placement::Resource::from_list(type.allocatable);
      for (const Offering& offering : type.offerings) {
        if (!offering.is_available) continue;
        const auto gone = unavailable.find({type.name, offering.zone, offering.capacity_type});
        if (gone != unavailable.end() && gone->second > now) continue;
        const LabelMap base = labels_of(pool, type, offering);
        for (const LabelMap& more : own) {
          LabelMap all = base;
          for (const auto& [key, value] : more) all[key] = value;
          model::Labels labels = as_labels(all);
          if (admit(pool.requirements, labels, unknown))
            out.push_back({p, t, &offering, std::move(labels), offering.price, allocatable, taints});
        }
      }
    }
  }
  return out;
}

model::NodeViewPtr node_of(const NodeShape& shape, const NodePool& pool, const InstanceType& type, const std::string& name) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = name;
  auto labels = *shape.labels.pairs();
  std::erase_if(labels, [](const auto& one) { return one.first == kHostnameLabel; });
  labels.emplace_back(kHostnameLabel, name);
  std::ranges::sort(labels);
  out->meta.labels = model::Labels(std::move(labels));
  out->taints = taints_of(pool, type);
  out->capacity = type.capacity;
  out->allocatable = type.allocatable;
  out->conditions.push_back({"Ready", "True", "KubeletReady"});
  return out;
}

}  // namespace berth::pools
