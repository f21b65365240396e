#include "node/eviction/pod_facts.h"

#include <algorithm>

#include "model/schema.h"
#include "model/views/common.h"

namespace berth::node::eviction {
namespace {

using model::Quantity;
constexpr std::int32_t kSystemCriticalPriority = 2'000'000'000;

bool is_static_or_mirror(const json::Value& pod) {
  const json::Object& annotations = json::get_object(pod, {"metadata", "annotations"});
  if (annotations.contains("kubernetes.io/config.mirror")) return true;
  const json::Value* source = annotations.if_contains("kubernetes.io/config.source");
  return source && source->is_string() && json::as_view(*source) != "api";
}

bool is_compute(std::string_view name) { return name == "cpu" || name == "memory"; }

/// What a pod as a whole can ask for.
bool is_pod_level_resource(std::string_view name) { return is_compute(name) || name.starts_with("hugepages-"); }

/// The first amount of a resource keeps its text.
void add(ResourceList& list, const std::string& name, const Amount& amount) {
  if (const auto [at, added] = list.emplace(name, amount); !added) at->second += amount;
}

/// Nothing where it cannot be read.
std::optional<Amount> read_amount(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kSpace);
  if (start == std::string_view::npos) return std::nullopt;
  const auto parsed = parse_quantity(text.substr(start, text.find_last_not_of(kSpace) - start + 1));
  return parsed ? std::optional<Amount>(*parsed) : std::nullopt;
}

/// Of the node.kubernetes.io/memory-pressure:NoSchedule taint.
bool tolerates_memory_pressure(const json::Value& pod) {
  const model::Taint taint{"node.kubernetes.io/memory-pressure", "", "NoSchedule"};
  return std::ranges::any_of(model::parse_tolerations(json::get_array(pod, {"spec", "tolerations"})),
                             [&](const model::Toleration& one) { return one.tolerates(taint); });
}

VolumeFacts read_volume(const json::Value& volume) {
  VolumeFacts facts;
  facts.name = json::get_string(volume, {"name"});
  if (const json::Value* empty_dir = json::find(volume, "emptyDir")) {
    facts.is_empty_dir = true;
    facts.is_local = json::get_string(*empty_dir, {"medium"}).empty();
    facts.size_limit = read_amount(json::get_string(*empty_dir, {"sizeLimit"}));
  }
  for (const std::string_view kind : {"hostPath", "configMap", "gitRepo"})
    if (json::find(volume, kind)) facts.is_local = true;
  return facts;
}

/// Sum of the main containers and sidecars, and what init containers need at most while they run, sidecars started before them included.
ResourceList aggregate(const PodFacts& pod, ResourceList ContainerFacts::*list) {
  ResourceList total, sidecars, init_peak;
  for (const ContainerFacts& container : pod.containers)
    if (!container.is_init)
      for (const auto& [name, quantity] : container.*list) add(total, name, quantity);
  for (const ContainerFacts& container : pod.containers) {
    if (!container.is_init) continue;
    ResourceList needs = container.*list;
    if (container.is_sidecar) {
      for (const auto& [name, quantity] : container.*list) {
        add(total, name, quantity);
        add(sidecars, name, quantity);
      }
      needs = sidecars;
    } else {
      for (const auto& [name, quantity] : sidecars) add(needs, name, quantity);
    }
    for (const auto& [name, quantity] : needs)
      if (const auto [at, added] = init_peak.emplace(name, quantity); !added && at->second < quantity) at->second = quantity;
  }
  for (const auto& [name, quantity] : init_peak)
    if (const auto [at, added] = total.emplace(name, quantity); !added && at->second < quantity) at->second = quantity;
  return total;
}

std::int64_t value_or_zero(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? 0 : found->second.value();
}

/// The part of the pod-level memory request that no container asks for, shared out evenly.
std::int64_t unallocated_request_share(const PodFacts& pod) {
  const std::int64_t requested = value_or_zero(pod.pod_requests, "memory");
  if (requested == 0 || pod.containers.empty()) return 0;
  return (requested - value_or_zero(aggregate(pod, &ContainerFacts::requests), "memory")) /
         static_cast<std::int64_t>(pod.containers.size());
}

}  // namespace

ResourceList read_resources(const json::Object& list) {
  ResourceList out;
  for (const auto& [name, value] : list) {
    std::optional<Amount> quantity;
    if (value.is_string())
      quantity = read_amount(json::as_view(value));
    else if (value.is_number())
      quantity = read_amount(json::serialize(value));
    if (quantity) out.emplace(std::string(name), *quantity);
  }
  return out;
}

std::string_view to_string(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kBestEffort:
      return "BestEffort";
  }
  return {};
}

PodFacts read_pod_facts(const json::Value& pod) {
  PodFacts facts;
  facts.ns = json::get_string(pod, {"metadata", "namespace"});
  facts.name = json::get_string(pod, {"metadata", "name"});
  facts.uid = json::get_string(pod, {"metadata", "uid"});
  facts.generation = json::get_int(pod, {"metadata", "generation"});
  const json::Value* priority = json::find(pod, {"spec", "priority"});
  facts.priority = static_cast<std::int32_t>(json::get_int(pod, {"spec", "priority"}));
  facts.is_critical = is_static_or_mirror(pod) || (priority && facts.priority >= kSystemCriticalPriority);
  facts.is_node_critical = facts.is_critical && json::get_string(pod, {"spec", "priorityClassName"}) == "system-node-critical";
  if (json::find(pod, {"spec", "terminationGracePeriodSeconds"}))
    facts.grace_period_seconds = json::get_int(pod, {"spec", "terminationGracePeriodSeconds"});
  for (const bool init : {false, true}) {
    for (const json::Value& container : json::get_array(pod, {"spec", init ? "initContainers" : "containers"})) {
      ContainerFacts c;
      c.name = json::get_string(container, {"name"});
      c.is_init = init;
      c.is_sidecar = init && json::get_string(container, {"restartPolicy"}) == "Always";
      c.requests = read_resources(json::get_object(container, {"resources", "requests"}));
      c.limits = read_resources(json::get_object(container, {"resources", "limits"}));
      facts.containers.push_back(std::move(c));
    }
  }
  for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"})) facts.volumes.push_back(read_volume(volume));
  const json::Value* resources = json::find(pod, {"spec", "resources"});
  facts.has_resources_field = resources && resources->is_object();
  facts.pod_requests = read_resources(json::get_object(pod, {"spec", "resources", "requests"}));
  facts.pod_limits = read_resources(json::get_object(pod, {"spec", "resources", "limits"}));
  const auto is_pod_level = [](const auto& entry) { return is_pod_level_resource(entry.first); };
  facts.has_pod_level_resources =
      std::ranges::any_of(facts.pod_requests, is_pod_level) || std::ranges::any_of(facts.pod_limits, is_pod_level);
  facts.overhead = read_resources(json::get_object(pod, {"spec", "overhead"}));
  const std::string_view reported = json::get_string(pod, {"status", "qosClass"}), computed = model::pod_qos_class(pod);
  for (const std::string_view said : {computed, reported})
    for (const QosClass qos : {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort})
      if (to_string(qos) == said) facts.qos = qos;
  facts.tolerates_memory_pressure = tolerates_memory_pressure(pod);
  return facts;
}

Quantity pod_request(const PodFacts& pod, std::string_view resource) {
  Quantity total;
  if (pod.has_pod_level_resources) {
    // The kubelet then looks at the pod's own requests alone, also for resources that cannot be requested there (disk).
    if (const auto own = pod.pod_requests.find(resource); own != pod.pod_requests.end() && is_pod_level_resource(resource))
      total = own->second;
  } else {
    const ResourceList requests = aggregate(pod, &ContainerFacts::requests);
    if (const auto found = requests.find(resource); found != requests.end()) total = found->second;
  }
  if (const auto overhead = pod.overhead.find(resource); overhead != pod.overhead.end() && !total.is_zero()) total += overhead->second;
  return total;
}

std::optional<Amount> pod_limit(const PodFacts& pod, std::string_view resource) {
  ResourceList limits = aggregate(pod, &ContainerFacts::limits);
  if (pod.has_pod_level_resources && is_pod_level_resource(resource))
    if (const auto own = pod.pod_limits.find(resource); own != pod.pod_limits.end()) limits.insert_or_assign(own->first, own->second);
  const auto found = limits.find(resource);
  if (found == limits.end()) return std::nullopt;
  if (const auto overhead = pod.overhead.find(resource); overhead != pod.overhead.end() && !found->second.is_zero())
    found->second += overhead->second;
  return found->second;
}

std::int64_t oom_score_adjust(const PodFacts& pod, const ContainerFacts& container, std::int64_t memory_capacity_bytes, OomScores scores) {
  constexpr int kBestEffort = 1000;
  const int guaranteed = scores == OomScores::kDocument ? -998 : -997;
  if (pod.is_node_critical) return guaranteed;
  if (pod.qos == QosClass::kGuaranteed) return guaranteed;
  if (pod.qos == QosClass::kBestEffort) return kBestEffort;
  const std::int64_t share = pod.pod_requests.empty() ? 0 : unallocated_request_share(pod);
  // Products may pass 2^63 for absurd requests: they wrap, as they do in the kubelet.
  const auto score = [&](std::int64_t request) {
    const auto product = static_cast<std::int64_t>(1000ULL * static_cast<std::uint64_t>(request));
    return 1000 - product / memory_capacity_bytes;
  };
  std::int64_t adjust = score(value_or_zero(container.requests, "memory") + share);
  if (container.is_sidecar) {
    std::optional<std::int64_t> least;
    for (const ContainerFacts& other : pod.containers)
      if (!other.is_init)
        least = std::min(least.value_or(std::numeric_limits<std::int64_t>::max()), value_or_zero(other.requests, "memory"));
    adjust = std::min(adjust, score(least.value_or(0) + share));
  }
  if (adjust < 1000 + guaranteed) return 1000 + guaranteed;
  if (adjust == kBestEffort) return kBestEffort - 1;
  return adjust;
}

}  // namespace berth::node::eviction
