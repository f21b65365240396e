#include "placement/scorers/resource_allocation.h"

#include <algorithm>
#include <cmath>

#include "placement/devices/class_totals.h"
#include "placement/devices/extended.h"

namespace berth::placement {
namespace {

ScoredResource::Kind kind_of(std::string_view name) {
  if (name == "cpu") return ScoredResource::Kind::kCpu;
  if (name == "memory") return ScoredResource::Kind::kMemory;
  if (name == "ephemeral-storage") return ScoredResource::Kind::kEphemeralStorage;
  return is_scalar_resource_name(name) ? ScoredResource::Kind::kScalar : ScoredResource::Kind::kUnknown;
}

std::int64_t requested_amount(const Resource& request, std::string_view name, ScoredResource::Kind kind) {
  switch (kind) {
    case ScoredResource::Kind::kCpu:
      return request.cpu_milli;
    case ScoredResource::Kind::kMemory:
      return request.memory_bytes;
    case ScoredResource::Kind::kEphemeralStorage:
      return request.ephemeral_storage_bytes;
    case ScoredResource::Kind::kScalar:
      return request.scalar(name);
    case ScoredResource::Kind::kUnknown:
      return 0;
  }
  return 0;
}

std::int64_t average(__int128 sum, std::int64_t weights) { return weights == 0 ? 0 : static_cast<std::int64_t>(sum / weights); }

/// (1 - standard deviation of the used fractions) * 100, truncated.
std::int64_t balance(const std::vector<double>& fractions) {
  double deviation = 0;
  if (fractions.size() == 2) {
    deviation = std::abs((fractions[0] - fractions[1]) / 2);
  } else if (fractions.size() > 2) {
    double total = 0;
    for (const double fraction : fractions) total += fraction;
    const double mean = total / static_cast<double>(fractions.size());
    double sum = 0;
    for (const double fraction : fractions) sum = sum + (fraction - mean) * (fraction - mean);
    deviation = std::sqrt(sum / static_cast<double>(fractions.size()));
  }
  return static_cast<std::int64_t>((1 - deviation) * static_cast<double>(kMaxNodeScore));
}

double used_fraction(std::int64_t requested, std::int64_t allocatable) {
  return std::min(static_cast<double>(requested) / static_cast<double>(allocatable), 1.0);
}

}  // namespace

std::vector<ScoredResource> scored_resources(const PodInfo& pod, const std::vector<ResourceWeight>& resources, Era era,
                                             bool use_requested) {
  std::vector<ScoredResource> out;
  const Resource& request = use_requested && era != Era::k120 ? pod.request.total : pod.scoring_request;
  for (const auto& [name, weight] : resources) {
    const auto same = std::ranges::find(out, name, &ScoredResource::name);
    if (era == Era::k120 && same != out.end()) {
      same->weight = weight;
      continue;
    }
    ScoredResource one{kind_of(name), name, weight, 0};
    one.pod_request = requested_amount(request, name, one.kind);
    out.push_back(std::move(one));
  }
  return out;
}

bool scores_devices(const PodInfo& pod, const std::vector<ResourceWeight>& resources, const Cluster& cluster) {
  if (cluster.device_classes().empty() || pod.wanted().scalars.empty()) return false;
  return std::ranges::any_of(resources, [&](const ResourceWeight& one) {
    return pod.wanted().scalar(one.name) != 0 && devices::class_behind(cluster, one.name) != nullptr;
  });
}

void add_devices(std::vector<ScoredResource>& resources, const Cluster& cluster) {
  if (cluster.device_classes().empty()) return;
  std::shared_ptr<devices::ClassTotals> totals;
  for (ScoredResource& one : resources) {
    if (one.pod_request == 0 || devices::class_behind(cluster, one.name) == nullptr) continue;
    if (totals == nullptr) totals = std::make_shared<devices::ClassTotals>(cluster);
    one.devices = totals;
  }
}

ResourceAmounts resource_amounts(const NodeInfo& node, const ScoredResource& resource, Era era, bool use_requested) {
  // A scalar that the pod does not ask for does not count for it.
  if (era != Era::k120 && resource.kind == ScoredResource::Kind::kScalar && resource.pod_request == 0) return {};
  ResourceAmounts out;
  switch (resource.kind) {
    case ScoredResource::Kind::kCpu:
      out = {node.allocatable.cpu_milli, use_requested ? node.requested.cpu_milli : node.nonzero_cpu_milli, 0};
      break;
    case ScoredResource::Kind::kMemory:
      out = {node.allocatable.memory_bytes, use_requested ? node.requested.memory_bytes : node.nonzero_memory_bytes, 0};
      break;
    case ScoredResource::Kind::kEphemeralStorage:
      out = {node.allocatable.ephemeral_storage_bytes, node.requested.ephemeral_storage_bytes, 0};
      break;
    case ScoredResource::Kind::kScalar:
      out = {node.allocatable.scalar(resource.name), node.requested.scalar(resource.name), 0};
      if (out.allocatable == 0 && resource.devices != nullptr) {
        const auto [capacity, allocated] = resource.devices->of(node, resource.name);
        if (capacity > 0) out = {capacity, allocated, 0};
      }
      break;
    case ScoredResource::Kind::kUnknown:
      return {};
  }
  out.requested = saturating_add(out.allocated, resource.pod_request);
  return out;
}

std::int64_t least_allocated_score(const std::vector<ScoredResource>& resources, const NodeInfo& node, Era era) {
  __int128 sum = 0;
  std::int64_t weights = 0;
  for (const auto& resource : resources) {
    const auto amounts = resource_amounts(node, resource, era, false);
    if (era != Era::k120 && amounts.allocatable == 0) continue;
    sum += static_cast<__int128>(least_requested_score(amounts.requested, amounts.allocatable)) * resource.weight;
    weights += resource.weight;
  }
  return average(sum, weights);
}

std::int64_t most_allocated_score(const std::vector<ScoredResource>& resources, const NodeInfo& node, Era era) {
  __int128 sum = 0;
  std::int64_t weights = 0;
  for (const auto& resource : resources) {
    const auto amounts = resource_amounts(node, resource, era, false);
    if (era != Era::k120 && amounts.allocatable == 0) continue;
    sum += static_cast<__int128>(most_requested_score(amounts.requested, amounts.allocatable, era)) * resource.weight;
    weights += resource.weight;
  }
  return average(sum, weights);
}

std::vector<UtilizationShapePoint> scaled_shape(std::vector<UtilizationShapePoint> shape) {
  for (auto& point : shape) point.score *= kMaxNodeScore / 10;
  return shape;
}

std::int64_t broken_linear(const std::vector<UtilizationShapePoint>& shape, std::int64_t utilization) {
  if (shape.empty()) return 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (utilization > shape[i].utilization) continue;
    if (i == 0) return shape[0].score;
    const auto& from = shape[i - 1];
    const auto width = shape[i].utilization - from.utilization;
    if (width <= 0) return shape[i].score;
    return from.score + (shape[i].score - from.score) * (utilization - from.utilization) / width;
  }
  return shape.back().score;
}

std::int64_t capacity_ratio_score(const std::vector<ScoredResource>& resources, const std::vector<UtilizationShapePoint>& shape,
                                  const NodeInfo& node, Era era) {
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  for (const auto& resource : resources) {
    const auto [capacity, allocated, requested] = resource_amounts(node, resource, era, false);
    if (era != Era::k120 && capacity == 0) continue;
    std::int64_t utilization = 100;
    if (capacity > 0 && requested <= capacity) {
      // 1.20 rounds the free part down, 1.36 the used part.
      utilization = era == Era::k120 ? 100 - static_cast<std::int64_t>(static_cast<__int128>(capacity - requested) * 100 / capacity)
                                     : static_cast<std::int64_t>(static_cast<__int128>(requested) * 100 / capacity);
    }
    const auto score = broken_linear(shape, utilization);
    if (score <= 0) continue;
    sum += score * resource.weight;
    weights += resource.weight;
  }
  if (weights == 0) return 0;
  return static_cast<std::int64_t>(std::round(static_cast<double>(sum) / static_cast<double>(weights)));
}

std::int64_t balanced_score_136(const std::vector<ScoredResource>& resources, const NodeInfo& node) {
  std::vector<double> with, without;
  for (const auto& resource : resources) {
    const auto amounts = resource_amounts(node, resource, Era::k136, true);
    if (amounts.allocatable == 0) continue;
    with.push_back(used_fraction(amounts.requested, amounts.allocatable));
    without.push_back(used_fraction(amounts.allocated, amounts.allocatable));
  }
  return kMaxNodeScore / 2 + (kMaxNodeScore / 2 + balance(with) - balance(without)) / 2;
}

std::int64_t balanced_score_120(const std::vector<ScoredResource>& resources, const NodeInfo& node) {
  double fractions[2] = {1, 1};
  for (const auto& resource : resources) {
    const auto amounts = resource_amounts(node, resource, Era::k120, false);
    if (amounts.allocatable == 0) continue;
    fractions[resource.kind == ScoredResource::Kind::kCpu ? 0 : 1] =
        static_cast<double>(amounts.requested) / static_cast<double>(amounts.allocatable);
  }
  if (fractions[0] >= 1 || fractions[1] >= 1) return 0;
  return static_cast<std::int64_t>((1 - std::abs(fractions[0] - fractions[1])) * static_cast<double>(kMaxNodeScore));
}

}  // namespace berth::placement
