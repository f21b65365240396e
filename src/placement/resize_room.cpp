#include "placement/resize_room.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "placement/explain.h"

namespace berth::placement {
namespace {

using Amounts = std::vector<std::pair<std::string, std::int64_t>>;

Amounts amounts_of(const Resource& resource) {
  Amounts out = {{"cpu", resource.cpu_milli}, {"memory", resource.memory_bytes}, {"ephemeral-storage", resource.ephemeral_storage_bytes}};
  for (const auto& [name, amount] : resource.scalars) out.emplace_back(name, amount);
  return out;
}

std::vector<Shortage> shortages_of(const Resource& wanted, const Resource& used, const Resource& allocatable) {
  std::vector<Shortage> out;
  for (const auto& [name, asked] : amounts_of(wanted)) {
    const std::int64_t all = amount_of(allocatable, name), free = saturating_sub(all, amount_of(used, name));
    if (asked > 0 && asked > free) out.push_back({name, asked, free, all});
  }
  return out;
}

/// The least important first: who would go is the last that anybody misses.
bool is_less_important(const PodInfo* a, const PodInfo* b) {
  if (a->view().priority != b->view().priority) return a->view().priority < b->view().priority;
  return a->start_time_ns != b->start_time_ns ? a->start_time_ns > b->start_time_ns : a->key < b->key;
}

}  // namespace

Resource granted_request(const model::PodView& pod, Era era) {
  if (pod.container_statuses.empty() && !pod.pod_level_status) return pod_request(pod, era, false).total;
  model::PodView granted = pod;
  const auto take = [&](model::ContainerView& container) {
    const auto status = std::ranges::find(pod.container_statuses, container.name, &model::ContainerResourceStatus::name);
    if (status == pod.container_statuses.end()) return;
    if (!status->allocated.empty())
      container.requests = status->allocated;
    else if (status->requests)
      container.requests = *status->requests;
  };
  granted.containers.change_each(take);
  granted.init_containers.change_each(take);
  if (pod.pod_level_status)
    granted.pod_requests.change_each([&](auto& request) {
      if (const auto* allocated = model::find_resource(pod.pod_level_status->allocated, request.first)) request.second = *allocated;
    });
  return pod_request(granted, era, false).total;
}

std::optional<ResizeRoom> room_for_resize(const Cluster& cluster, const PodInfo& pod, const Resource* wanted) {
  const NodeInfo* node = cluster.node(cluster.pod_node(pod.key));
  if (node == nullptr || node->node == nullptr) return std::nullopt;
  const Era era = cluster.era();
  const Resource by_spec = pod_request(pod.view(), era, false).total;
  const Resource& asked = wanted == nullptr ? by_spec : *wanted;
  if (const Resource now = granted_request(pod.view(), era); amounts_of(now) == amounts_of(asked)) return std::nullopt;
  ResizeRoom out{pod.key, node->name, {}, false, {}};
  out.is_too_large = !shortages_of(asked, {}, node->allocatable).empty();
  std::vector<std::pair<const PodInfo*, Resource>> others;
  Resource used;
  for (const PodInfoPtr& other : node->pods) {
    if (other->key == pod.key) continue;
    others.emplace_back(other.get(), granted_request(other->view(), era));
    used.add(others.back().second);
  }
  out.lacks = shortages_of(asked, out.is_too_large ? Resource{} : used, node->allocatable);
  if (out.lacks.empty() || out.is_too_large) return out;
  std::ranges::sort(others, is_less_important, &std::pair<const PodInfo*, Resource>::first);
  std::vector<std::pair<const PodInfo*, Resource>> gone;
  for (const auto& one : others) {
    const auto lacks = shortages_of(asked, used, node->allocatable);
    if (lacks.empty()) break;
    if (std::ranges::none_of(lacks, [&](const Shortage& lack) { return amount_of(one.second, lack.resource) > 0; })) continue;
    used.subtract(one.second);
    gone.push_back(one);
  }
  // Whoever turns out not to be needed stays, the most important first.
  for (auto one = gone.rbegin(); one != gone.rend(); ++one) {
    used.add(one->second);
    if (shortages_of(asked, used, node->allocatable).empty())
      one->first = nullptr;
    else
      used.subtract(one->second);
  }
  for (const auto& [other, amounts] : gone)
    if (other != nullptr) out.after.push_back(fmt::format("{} (priority {})", other->key, other->view().priority));
  return out;
}

std::string words_of(const ResizeRoom& room) {
  if (room.lacks.empty()) return fmt::format("Its resize has room on {}", room.node);
  std::vector<std::string> lacks;
  for (const Shortage& one : room.lacks)
    lacks.push_back(room.is_too_large
                        ? fmt::format("{} (asks {}, the node has {})", one.resource, format_amount(one.resource, one.asked),
                                      format_amount(one.resource, one.allocatable))
                        : fmt::format("{}: {} more (asks {}, free {} of {})", one.resource,
                                      format_amount(one.resource, one.asked - one.free), format_amount(one.resource, one.asked),
                                      format_amount(one.resource, one.free), format_amount(one.resource, one.allocatable)));
  if (room.is_too_large) return fmt::format("Its resize never has room on {}: {}", room.node, fmt::join(lacks, ", "));
  return fmt::format("Its resize waits on {} for {}; it would fit after {} {} gone", room.node, fmt::join(lacks, ", "),
                     some_of(room.after, 5), room.after.size() == 1 ? "is" : "are");
}

json::Value to_json(const ResizeRoom& room) {
  json::Array lacks, after;
  for (const Shortage& one : room.lacks)
    lacks.push_back(json::Object{{"resource", one.resource}, {"asked", one.asked}, {"free", one.free}, {"allocatable", one.allocatable}});
  for (const std::string& one : room.after) after.push_back(json::Value(one));
  return json::Object{{"node", room.node},
                      {"fits", room.lacks.empty()},
                      {"neverFits", room.is_too_large},
                      {"lacks", std::move(lacks)},
                      {"after", std::move(after)}};
}

}  // namespace berth::placement
