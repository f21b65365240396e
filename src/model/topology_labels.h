// The labels of a node's region and zone, in both generations: the documents' pods name the old keys, today's the present ones (SPEC B8;
// kubernetes.io well-known labels).
#pragma once
#include <array>
#include <string_view>

#include "base/json.h"

namespace berth::model {

struct LabelGenerations {
  std::string_view present, old;
};
inline constexpr LabelGenerations kRegionLabel{"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"};
inline constexpr LabelGenerations kZoneLabel{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"};
inline constexpr std::array<LabelGenerations, 2> kTopologyLabels = {kRegionLabel, kZoneLabel};

/// For whoever registers a node: where one generation of a label is there, the other is added with its value. What is there stays.
inline void complete_topology_labels(json::Object& labels) {
  for (const auto& [present, old] : kTopologyLabels) {
    const auto *now = labels.find(present), *before = labels.find(old);
    if (now != labels.end() && before == labels.end())
      labels[std::string(old)] = json::Value(now->value());
    else if (now == labels.end() && before != labels.end())
      labels[std::string(present)] = json::Value(before->value());
  }
}

}  // namespace berth::model
