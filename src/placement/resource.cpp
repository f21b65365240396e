#include "placement/resource.h"

#include <algorithm>
#include <ranges>

namespace berth::placement {
namespace {

using model::Quantity;
using model::ResourceList;

constexpr std::int64_t kDefaultCpuMilli = 100;
constexpr std::int64_t kDefaultMemoryBytes = 200LL * 1024 * 1024;

std::int64_t& scalar_slot(Resource& resource, std::string_view name) {
  auto at = std::ranges::lower_bound(resource.scalars, name, {}, [](const auto& pair) -> std::string_view { return pair.first; });
  if (at == resource.scalars.end() || at->first != name) at = resource.scalars.emplace(at, std::string(name), 0);
  return at->second;
}

/// Adds one list, each amount rounded up by itself (1.20's Resource.Add).
void add_rounded(Resource& out, const ResourceList& list) {
  for (const auto& [name, amount] : list) {
    if (name == "cpu") {
      out.cpu_milli = saturating_add(out.cpu_milli, amount.milli_value());
    } else if (name == "memory") {
      out.memory_bytes = saturating_add(out.memory_bytes, amount.value());
    } else if (name == "pods") {
      out.allowed_pods = saturating_add(out.allowed_pods, amount.value());
    } else if (name == "ephemeral-storage") {
      out.ephemeral_storage_bytes = saturating_add(out.ephemeral_storage_bytes, amount.value());
    } else if (is_scalar_resource_name(name)) {
      auto& slot = scalar_slot(out, name);
      slot = saturating_add(slot, amount.value());
    }
  }
}

void max_rounded(Resource& out, const ResourceList& list) {
  for (const auto& [name, amount] : list) {
    if (name == "cpu") {
      out.cpu_milli = std::max(out.cpu_milli, amount.milli_value());
    } else if (name == "memory") {
      out.memory_bytes = std::max(out.memory_bytes, amount.value());
    } else if (name == "ephemeral-storage") {
      out.ephemeral_storage_bytes = std::max(out.ephemeral_storage_bytes, amount.value());
    } else if (is_scalar_resource_name(name) && amount.value() > out.scalar(name)) {
      scalar_slot(out, name) = amount.value();
    }
  }
}

std::int64_t or_default(const ResourceList& list, std::string_view name) {
  const auto* amount = model::find_resource(list, name);
  if (name == "cpu") return amount == nullptr ? kDefaultCpuMilli : amount->milli_value();
  return amount == nullptr ? kDefaultMemoryBytes : amount->value();
}

PodRequest request_120(const model::PodView& pod) {
  PodRequest out;
  for (const auto& container : pod.containers) {
    add_rounded(out.total, container.requests);
    out.nonzero_cpu_milli = saturating_add(out.nonzero_cpu_milli, or_default(container.requests, "cpu"));
    out.nonzero_memory_bytes = saturating_add(out.nonzero_memory_bytes, or_default(container.requests, "memory"));
  }
  for (const auto& container : pod.init_containers) {
    max_rounded(out.total, container.requests);
    out.nonzero_cpu_milli = std::max(out.nonzero_cpu_milli, or_default(container.requests, "cpu"));
    out.nonzero_memory_bytes = std::max(out.nonzero_memory_bytes, or_default(container.requests, "memory"));
  }
  add_rounded(out.total, pod.overhead);
  if (const auto* cpu = model::find_resource(pod.overhead, "cpu"))
    out.nonzero_cpu_milli = saturating_add(out.nonzero_cpu_milli, cpu->milli_value());
  if (const auto* memory = model::find_resource(pod.overhead, "memory"))
    out.nonzero_memory_bytes = saturating_add(out.nonzero_memory_bytes, memory->value());
  return out;
}

// 1.36 keeps exact quantities until the end.

void set_amount(ResourceList& list, std::string_view name, const Quantity& amount) {
  for (auto& [key, value] : list)
    if (key == name) {
      value = amount;
      return;
    }
  list.emplace_back(std::string(name), amount);
}

void add_list(ResourceList& out, const ResourceList& list) {
  for (const auto& [name, amount] : list) {
    const auto* old = model::find_resource(out, name);
    set_amount(out, name, old == nullptr ? amount : *old + amount);
  }
}

void max_list(ResourceList& out, const ResourceList& list) {
  for (const auto& [name, amount] : list) {
    const auto* old = model::find_resource(out, name);
    if (old == nullptr || *old < amount) set_amount(out, name, amount);
  }
}

/// What is asked for, what runs and what is allocated, the largest of each; without the wish if the node cannot grant it.
ResourceList effective_request(const model::PodView& pod, const ResourceList& asked, const ResourceList& runs,
                               const ResourceList& allocated) {
  ResourceList out = pod.resize_infeasible ? ResourceList{} : asked;
  max_list(out, runs);
  max_list(out, allocated);
  return out;
}

/// A status speaks for its container only when it says what runs there; of two with one name the last counts.
ResourceList container_request(const model::PodView& pod, const model::ContainerView& container, bool use_status) {
  if (!use_status) return container.requests;
  for (const auto& status : std::views::reverse(pod.container_statuses)) {
    if (status.name != container.name) continue;
    return status.requests ? effective_request(pod, container.requests, *status.requests, status.allocated) : container.requests;
  }
  return container.requests;
}

/// The containers that ask for nothing of these get the default.
struct Defaults {
  bool cpu = false, memory = false;
};

ResourceList with_defaults(ResourceList list, Defaults defaults) {
  if (defaults.cpu && model::find_resource(list, "cpu") == nullptr) set_amount(list, "cpu", Quantity::from_milli(kDefaultCpuMilli));
  if (defaults.memory && model::find_resource(list, "memory") == nullptr)
    set_amount(list, "memory", Quantity::from_value(kDefaultMemoryBytes));
  return list;
}

bool is_pod_level_resource(std::string_view name) { return name == "cpu" || name == "memory" || name.starts_with("hugepages-"); }

bool has_pod_level_requests(const model::PodView& pod) {
  return std::ranges::any_of(pod.pod_requests, [](const auto& pair) { return is_pod_level_resource(pair.first); });
}

void set_pod_level(const model::PodView& pod, bool use_status, ResourceList& out) {
  ResourceList effective;
  const bool from_status = use_status && pod.pod_level_status != nullptr;
  if (from_status)
    effective =
        effective_request(pod, pod.pod_requests, pod.pod_level_status->requests.value_or(ResourceList{}), pod.pod_level_status->allocated);
  for (const auto& [name, amount] : pod.pod_requests) {
    if (!is_pod_level_resource(name)) continue;
    if (!from_status) {
      set_amount(out, name, amount);
      continue;
    }
    const auto* actual = model::find_resource(effective, name);
    set_amount(out, name, actual != nullptr ? *actual : Quantity::from_value(0));
  }
}

ResourceList pod_requests_136(const model::PodView& pod, bool use_status, Defaults defaults, bool pod_level = true) {
  ResourceList out;
  for (const auto& container : pod.containers) add_list(out, with_defaults(container_request(pod, container, use_status), defaults));
  ResourceList sidecars;
  ResourceList init_peak;
  for (const auto& container : pod.init_containers) {
    // Of init containers 1.36 goes by the statuses of sidecars alone (component-helpers/resource of v0.36.2), though nodes resize others.
    ResourceList step = with_defaults(container_request(pod, container, use_status && container.restarts_always), defaults);
    if (container.restarts_always) {
      add_list(out, step);
      add_list(sidecars, step);
      step = sidecars;
    } else {
      add_list(step, sidecars);
    }
    max_list(init_peak, step);
  }
  max_list(out, init_peak);
  if (pod_level) set_pod_level(pod, use_status, out);
  add_list(out, pod.overhead);
  return out;
}

/// Every container runs with what the spec asks for, which is so of all pods but those under resize: then no status changes a request.
bool runs_as_asked(const model::PodView& pod) {
  if (pod.pod_level_status) return false;
  return std::ranges::all_of(pod.container_statuses, [&](const model::ContainerResourceStatus& status) {
    const auto& containers = status.is_init ? pod.init_containers : pod.containers;
    const auto asks = std::ranges::find(containers, status.name, &model::ContainerView::name);
    return asks != containers.end() && status.requests == asks->requests &&
           (status.allocated.empty() || status.allocated == asks->requests);
  });
}

/// Nothing but containers, each of which asks for CPU and memory itself: no default, status or pod-level request changes what they ask for.
bool is_said_by_containers(const model::PodView& pod, bool use_status) {
  return pod.init_containers.empty() && (!use_status || (pod.container_statuses.empty() && !pod.pod_level_status)) &&
         pod.pod_requests.empty() && std::ranges::all_of(pod.containers, [](const auto& container) {
           return model::find_resource(container.requests, "cpu") != nullptr &&
                  model::find_resource(container.requests, "memory") != nullptr;
         });
}

PodRequest request_136(const model::PodView& pod, bool use_status) {
  PodRequest out;
  use_status = use_status && !runs_as_asked(pod);
  const ResourceList plain = pod_requests_136(pod, use_status, {});
  out.total = Resource::from_list(plain);
  out.total.allowed_pods = 0;
  // Where the pod as a whole asks, its containers need no defaults, unless nobody asks for that resource at all.
  const bool by_pod = has_pod_level_requests(pod);
  const ResourceList filled = is_said_by_containers(pod, use_status)
                                  ? plain
                                  : pod_requests_136(pod, use_status,
                                                     {.cpu = !by_pod || model::find_resource(plain, "cpu") == nullptr,
                                                      .memory = !by_pod || model::find_resource(plain, "memory") == nullptr});
  if (const auto* cpu = model::find_resource(filled, "cpu")) out.nonzero_cpu_milli = cpu->milli_value();
  if (const auto* memory = model::find_resource(filled, "memory")) out.nonzero_memory_bytes = memory->value();
  return out;
}

Resource scoring_request_120(const model::PodView& pod) {
  model::PodView without_overhead;
  without_overhead.containers = pod.containers;
  without_overhead.init_containers = pod.init_containers;
  const PodRequest request = request_120(without_overhead);
  Resource out = request.total;
  out.cpu_milli = request.nonzero_cpu_milli;
  out.memory_bytes = request.nonzero_memory_bytes;
  for (const auto& [name, amount] : pod.overhead) {
    if (name == "cpu") {
      out.cpu_milli = saturating_add(out.cpu_milli, amount.value());
    } else {
      add_rounded(out, {{name, amount}});
    }
  }
  return out;
}

/// No API server lets a negative request pass; should one turn up in a dump, it must not make room for others.
void drop_negative(Resource& resource) {
  resource.cpu_milli = std::max<std::int64_t>(resource.cpu_milli, 0);
  resource.memory_bytes = std::max<std::int64_t>(resource.memory_bytes, 0);
  resource.ephemeral_storage_bytes = std::max<std::int64_t>(resource.ephemeral_storage_bytes, 0);
  for (auto& [name, amount] : resource.scalars) amount = std::max<std::int64_t>(amount, 0);
}

}  // namespace

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kSuccess:
      return "Success";
    case Code::kError:
      return "Error";
    case Code::kUnschedulable:
      return "Unschedulable";
    case Code::kUnschedulableAndUnresolvable:
      return "UnschedulableAndUnresolvable";
    case Code::kWait:
      return "Wait";
    case Code::kSkip:
      return "Skip";
    case Code::kPending:
      return "Pending";
  }
  return "";
}

std::string Status::message() const { return fmt::format("{}", fmt::join(reasons, ", ")); }

Resource Resource::from_list(const ResourceList& list) {
  Resource out;
  add_rounded(out, list);
  return out;
}

std::int64_t Resource::scalar(std::string_view name) const {
  for (const auto& [key, amount] : scalars)
    if (key == name) return amount;
  return 0;
}

void Resource::add(const Resource& other) {
  cpu_milli = saturating_add(cpu_milli, other.cpu_milli);
  memory_bytes = saturating_add(memory_bytes, other.memory_bytes);
  ephemeral_storage_bytes = saturating_add(ephemeral_storage_bytes, other.ephemeral_storage_bytes);
  for (const auto& [name, amount] : other.scalars) {
    auto& slot = scalar_slot(*this, name);
    slot = saturating_add(slot, amount);
  }
}

void Resource::subtract(const Resource& other) {
  cpu_milli = saturating_sub(cpu_milli, other.cpu_milli);
  memory_bytes = saturating_sub(memory_bytes, other.memory_bytes);
  ephemeral_storage_bytes = saturating_sub(ephemeral_storage_bytes, other.ephemeral_storage_bytes);
  for (const auto& [name, amount] : other.scalars) {
    auto& slot = scalar_slot(*this, name);
    slot = saturating_sub(slot, amount);
  }
}

PodRequest pod_request(const model::PodView& pod, Era era, bool use_status) {
  PodRequest out = era == Era::k120 ? request_120(pod) : request_136(pod, use_status);
  drop_negative(out.total);
  out.nonzero_cpu_milli = std::max<std::int64_t>(out.nonzero_cpu_milli, 0);
  out.nonzero_memory_bytes = std::max<std::int64_t>(out.nonzero_memory_bytes, 0);
  return out;
}

Resource scoring_request(const model::PodView& pod, Era era) {
  Resource out =
      era == Era::k120 ? scoring_request_120(pod) : Resource::from_list(pod_requests_136(pod, false, {.cpu = true, .memory = true}, false));
  drop_negative(out);
  return out;
}
bool is_extended_resource_name(std::string_view name) {
  if (name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos) return false;
  return !name.starts_with("requests.");
}

bool is_scalar_resource_name(std::string_view name) {
  return is_extended_resource_name(name) || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-") ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

}  // namespace berth::placement
