#include "placement/numa/wishes.h"

#include <algorithm>

#include "model/views/pod_view.h"

namespace berth::placement::numa {
namespace {

Wish wish_of(const model::ContainerView& container, bool has_own) {
  Wish out{.name = container.name};
  for (const auto& [name, amount] : container.limits)
    if (name != "cpu" && name != "ephemeral-storage" && !is_memory(name) && amount.value() > 0) out.devices[name] = amount.value();
  if (!has_own) return out;
  for (const auto* list : {&container.limits, &container.requests})
    for (const auto& [name, amount] : *list)
      if (is_memory(name)) out.memory[name] = amount.value();
  const model::Quantity* cpu = model::find_resource(container.requests, "cpu");
  if (cpu == nullptr) cpu = model::find_resource(container.limits, "cpu");
  if (cpu != nullptr && cpu->milli_value() > 0 && cpu->milli_value() % 1000 == 0) out.cpus = cpu->milli_value() / 1000;
  return out;
}

bool has_compute(const model::SharedResourceList& list) {
  return std::ranges::any_of(list, [](const auto& entry) { return entry.first == "cpu" || is_memory(entry.first); });
}

}  // namespace

bool is_memory(std::string_view resource) { return resource == "memory" || resource.starts_with("hugepages-"); }

std::int64_t Wish::of(std::string_view resource) const {
  if (resource == "cpu") return cpus;
  const Amounts& amounts = is_memory(resource) ? memory : devices;
  const auto found = amounts.find(std::string(resource));
  return found == amounts.end() ? 0 : found->second;
}

bool PodWishes::empty() const {
  return std::ranges::all_of(containers, [](const Wish& one) { return one.cpus == 0 && one.memory.empty() && one.devices.empty(); });
}

Amounts PodWishes::most_at_a_time() const {
  Amounts out;
  for (const Wish& one : containers) {
    if (one.cpus > 0) out.emplace("cpu", 0);
    for (const Amounts* amounts : {&one.memory, &one.devices})
      for (const auto& [resource, amount] : *amounts) out.emplace(resource, 0);
  }
  for (auto& [resource, most] : out) {
    std::int64_t sidecars = 0, starting = 0, running = 0;
    for (const Wish& one : containers) {
      const std::int64_t own = one.of(resource);
      if (!one.is_init)
        running += own;
      else if (one.is_sidecar)
        sidecars += own;
      else
        starting = std::max(starting, sidecars + own);
    }
    most = std::max(starting, sidecars + running);
  }
  return out;
}

PodWishes wishes_of(const model::PodView& pod) {
  const bool has_own = pod.is_guaranteed && !has_compute(pod.pod_requests) && !has_compute(pod.pod_limits);
  PodWishes out{.uid = pod.meta.uid, .containers = {}};
  for (const model::ContainerView& container : pod.init_containers) {
    out.containers.push_back(wish_of(container, has_own));
    out.containers.back().is_init = true;
    out.containers.back().is_sidecar = container.restarts_always;
  }
  for (const model::ContainerView& container : pod.containers) out.containers.push_back(wish_of(container, has_own));
  return out;
}

}  // namespace berth::placement::numa
