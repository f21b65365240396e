#include "node/eviction/ranking.h"

#include "base/go/sort.h"

namespace berth::node::eviction {
namespace {

/// True sorts before false.
int compare_flags(bool a, bool b) { return a == b ? 0 : a ? -1 : 1; }

int compare_quantities(const Quantity& a, const Quantity& b) { return a < b ? -1 : b < a ? 1 : 0; }

Quantity memory_use(const PodUsage& usage) {
  return Quantity::from_value(usage.memory ? static_cast<std::int64_t>(usage.memory->working_set_bytes.value_or(0)) : 0,
                              Quantity::Format::kBinarySI);
}

Quantity disk_use(const RankedPod& pod, DiskParts parts, bool inodes) {
  Quantity total;
  const auto add = [&](const std::optional<FsUsage>& fs) {
    if (fs) total += Quantity::from_value(static_cast<std::int64_t>((inodes ? fs->inodes_used : fs->used_bytes).value_or(0)));
  };
  for (const ContainerUsage& container : pod.usage->containers) {
    if (parts.rootfs) add(container.rootfs);
    if (parts.logs) add(container.logs);
  }
  if (!parts.local_volumes) return total;
  for (const VolumeFacts& volume : pod.facts->volumes) {
    if (!volume.is_local) continue;
    const auto used = std::ranges::find(pod.usage->volumes, volume.name, &VolumeUsage::name);
    if (used != pod.usage->volumes.end()) add(used->fs);
  }
  return total;
}

int compare_priority(const RankedPod& a, const RankedPod& b) {
  return a.facts->priority == b.facts->priority ? 0 : a.facts->priority > b.facts->priority ? 1 : -1;
}

int compare_memory(const RankedPod& a, const RankedPod& b) {
  const bool measured = a.usage && b.usage;
  const Quantity a_use = a.usage ? memory_use(*a.usage) : Quantity{}, b_use = b.usage ? memory_use(*b.usage) : Quantity{};
  const Quantity a_request = pod_request(*a.facts, "memory"), b_request = pod_request(*b.facts, "memory");
  const int exceeds = measured ? compare_flags(a_use > a_request, b_use > b_request) : compare_flags(!a.usage, !b.usage);
  if (exceeds != 0) return exceeds;
  if (const int priority = compare_priority(a, b); priority != 0) return priority;
  if (!measured) return compare_flags(!a.usage, !b.usage);
  return compare_quantities(b_use - b_request, a_use - a_request);
}

int compare_processes(const RankedPod& a, const RankedPod& b) {
  if (const int priority = compare_priority(a, b); priority != 0) return priority;
  if (!a.usage || !b.usage) return compare_flags(!a.usage, !b.usage);
  const auto difference = static_cast<std::int64_t>(b.usage->process_count.value_or(0) - a.usage->process_count.value_or(0));
  return difference == 0 ? 0 : difference < 0 ? -1 : 1;
}

int compare_disk(const RankedPod& a, const RankedPod& b, DiskParts parts, bool inodes) {
  const bool measured = a.usage && b.usage;
  Quantity a_use, b_use;
  if (measured) {
    a_use = disk_use(a, parts, inodes);
    b_use = disk_use(b, parts, inodes);
    // Nobody requests inodes, so any use exceeds the request; the order below takes away the ephemeral-storage request all the same.
    const std::string_view resource = inodes ? "inodes" : "ephemeral-storage";
    const int exceeds = compare_flags(a_use > pod_request(*a.facts, resource), b_use > pod_request(*b.facts, resource));
    if (exceeds != 0) return exceeds;
  } else if (const int missing = compare_flags(!a.usage, !b.usage); missing != 0) {
    return missing;
  }
  if (const int priority = compare_priority(a, b); priority != 0) return priority;
  if (!measured) return 0;
  return compare_quantities(b_use - pod_request(*b.facts, "ephemeral-storage"), a_use - pod_request(*a.facts, "ephemeral-storage"));
}

/// What a pod uses of the starved resource, and what of it the document counts as its request: disk, inodes and processes are nobody's by
/// request ("local disk is a BestEffort resource").
std::pair<Quantity, Quantity> use_and_request(const RankedPod& pod, Signal signal, DiskLayout layout) {
  switch (resource_of(signal)) {
    case StarvedResource::kMemory:
      return {memory_use(*pod.usage), pod_request(*pod.facts, "memory")};
    case StarvedResource::kPids:
      return {Quantity::from_value(static_cast<std::int64_t>(pod.usage->process_count.value_or(0))), Quantity{}};
    case StarvedResource::kEphemeralStorage:
      return {disk_use(pod, disk_parts(signal, layout), false), Quantity{}};
    case StarvedResource::kInodes:
      return {disk_use(pod, disk_parts(signal, layout), true), Quantity{}};
  }
  return {};
}

int compare_as_documented(Signal signal, DiskLayout layout, const RankedPod& a, const RankedPod& b) {
  // QosClass counts from Guaranteed to BestEffort.
  if (a.facts->qos != b.facts->qos) return a.facts->qos > b.facts->qos ? -1 : 1;
  if (!a.usage || !b.usage) {
    const int missing = compare_flags(!a.usage, !b.usage);
    return missing != 0 ? missing : compare_priority(a, b);
  }
  const auto [a_use, a_request] = use_and_request(a, signal, layout);
  const auto [b_use, b_request] = use_and_request(b, signal, layout);
  const bool a_exceeds = a_use > a_request, b_exceeds = b_use > b_request;
  if (const int exceeds = compare_flags(a_exceeds, b_exceeds); exceeds != 0) return exceeds;
  const int amount = a_exceeds ? compare_quantities(b_use - b_request, a_use - a_request) : compare_quantities(b_use, a_use);
  return amount != 0 ? amount : compare_priority(a, b);
}

}  // namespace

DiskParts disk_parts(Signal signal, DiskLayout layout) {
  const bool images = signal == Signal::kImageFsAvailable || signal == Signal::kImageFsInodesFree;
  const bool containers = signal == Signal::kContainerFsAvailable || signal == Signal::kContainerFsInodesFree;
  if (!layout.dedicated_image_fs) return {.rootfs = true, .logs = true, .local_volumes = true};
  if (!layout.dedicated_container_fs)
    return images || containers ? DiskParts{.rootfs = true} : DiskParts{.logs = true, .local_volumes = true};
  return images ? DiskParts{} : DiskParts{.rootfs = true, .logs = true, .local_volumes = true};
}

int compare_for_eviction(EvictionRules rules, Signal signal, DiskLayout layout, const RankedPod& a, const RankedPod& b) {
  if (rules == EvictionRules::kDocument) return compare_as_documented(signal, layout, a, b);
  switch (resource_of(signal)) {
    case StarvedResource::kMemory:
      return compare_memory(a, b);
    case StarvedResource::kPids:
      return compare_processes(a, b);
    case StarvedResource::kEphemeralStorage:
      return compare_disk(a, b, disk_parts(signal, layout), false);
    case StarvedResource::kInodes:
      return compare_disk(a, b, disk_parts(signal, layout), true);
  }
  return 0;
}

void rank_pods(std::vector<RankedPod>& pods, EvictionRules rules, Signal signal, DiskLayout layout) {
  go_sort(pods, [&](const RankedPod& a, const RankedPod& b) { return compare_for_eviction(rules, signal, layout, a, b) < 0; });
}

}  // namespace berth::node::eviction
