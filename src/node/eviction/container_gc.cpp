#include "node/eviction/container_gc.h"

#include <algorithm>
#include <map>
#include <set>

namespace berth::node::eviction {
namespace {

template <typename Instance>
void newest_first(std::vector<Instance>& instances) {
  std::ranges::stable_sort(instances, [](const Instance& a, const Instance& b) {
    return a.attempt != b.attempt ? a.attempt > b.attempt : a.created > b.created;
  });
}

/// Keeps the newest `keep`; what is cut off goes to `removed`, oldest first.
void cut(std::vector<DeadContainer>& instances, std::size_t keep, std::vector<std::string>& removed) {
  newest_first(instances);
  while (instances.size() > keep) {
    removed.push_back(std::move(instances.back().id));
    instances.pop_back();
  }
}

bool is_over(PodExistence pod, bool of_terminated) {
  return pod == PodExistence::kGone || (pod == PodExistence::kTerminated && of_terminated);
}

}  // namespace

std::vector<std::string> containers_to_remove(std::vector<DeadContainer> containers, const ContainerGcPolicy& policy,
                                              const std::function<PodExistence(const std::string& uid)>& pod, bool of_terminated,
                                              TimePoint now) {
  std::map<std::pair<std::string, std::string>, std::vector<DeadContainer>> units;
  for (DeadContainer& container : containers)
    if (!container.is_running && container.created <= now - policy.minimum_age)
      units[{container.pod_uid, container.name}].push_back(std::move(container));
  std::vector<std::string> removed;
  for (auto& [key, instances] : units)
    if (is_over(pod(key.first), of_terminated)) cut(instances, 0, removed);
  std::erase_if(units, [](const auto& unit) { return unit.second.empty(); });
  if (policy.most_per_container >= 0)
    for (auto& [key, instances] : units) cut(instances, static_cast<std::size_t>(policy.most_per_container), removed);
  const auto count = [&] {
    std::size_t n = 0;
    for (const auto& [key, instances] : units) n += instances.size();
    return n;
  };
  if (policy.most < 0 || count() <= static_cast<std::size_t>(policy.most)) return removed;
  // An equal number for everybody first, one at least; then the oldest of all.
  const std::size_t share = std::max<std::size_t>(1, static_cast<std::size_t>(policy.most) / units.size());
  for (auto& [key, instances] : units) cut(instances, share, removed);
  std::vector<DeadContainer> rest;
  for (auto& [key, instances] : units) std::ranges::move(instances, std::back_inserter(rest));
  cut(rest, static_cast<std::size_t>(policy.most), removed);
  return removed;
}

std::vector<std::string> sandboxes_to_remove(std::vector<DeadSandbox> sandboxes, const std::vector<DeadContainer>& containers,
                                             const std::function<PodExistence(const std::string& uid)>& pod, bool of_terminated) {
  std::set<std::string> in_use;
  for (const DeadContainer& container : containers) in_use.insert(container.sandbox_id);
  std::map<std::string, std::vector<DeadSandbox>> pods;
  for (DeadSandbox& sandbox : sandboxes) pods[sandbox.pod_uid].push_back(std::move(sandbox));
  std::vector<std::string> removed;
  for (auto& [uid, instances] : pods) {
    newest_first(instances);
    const std::size_t keep = is_over(pod(uid), of_terminated) ? 0 : 1;
    for (std::size_t i = instances.size(); i > keep; --i)
      if (const DeadSandbox& sandbox = instances[i - 1]; !sandbox.is_ready && !in_use.contains(sandbox.id)) removed.push_back(sandbox.id);
  }
  return removed;
}

}  // namespace berth::node::eviction
