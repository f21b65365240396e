#include "node/eviction/allocatable.h"

namespace berth::node::eviction {
namespace {

using Format = Quantity::Format;

TextResult<Quantity> parse_reserved(const std::string& name, const std::string& text) {
  if (name != "cpu" && name != "memory" && name != "ephemeral-storage" && name != "pid")
    return std::unexpected(fmt::format("cannot reserve \"{}\" resource", name));
  const auto quantity = parse_quantity(text);
  if (!quantity)
    return std::unexpected(
        fmt::format("failed to parse quantity {} for {} resource: {}", go::quote(text), go::quote(name), quantity.error()));
  if (quantity->value.sign() < 0)
    return std::unexpected(fmt::format("resource quantity for {} cannot be negative: {}", go::quote(name), text));
  return quantity->value;
}

std::vector<std::string> reserved_errors(std::string_view flag, const std::map<std::string, std::string>& settings) {
  std::vector<std::string> errors;
  for (const auto& [name, text] : settings)
    if (const auto parsed = parse_reserved(name, text); !parsed)
      errors.push_back(fmt::format("--{} value failed to parse: {}", flag, parsed.error()));
  return errors;
}

ResourceList read_reserved(const std::map<std::string, std::string>& settings) {
  ResourceList list;
  for (const auto& [name, text] : settings) list.emplace(name, *parse_reserved(name, text));
  return list;
}

EvictionSettings hard_only(const ReservationSettings& settings) {
  EvictionSettings eviction;
  eviction.hard = settings.eviction_hard;
  eviction.enforce_node_allocatable.clear();
  return eviction;
}

Quantity get(const ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? Quantity{} : Quantity(found->second);
}

/// Negative amounts make no sense to offer; the format stays.
void clamp_to_zero(Quantity& quantity) {
  if (quantity.sign() < 0) quantity = Quantity::from_value(0, quantity.format());
}

void take_huge_pages_from_memory(ResourceList& list) {
  for (const auto& [name, quantity] : ResourceList(list)) {
    if (!name.starts_with("hugepages-")) continue;
    Amount& memory = list["memory"];
    memory -= quantity;
    clamp_to_zero(memory);
  }
}

ResourceList machine_capacity(const Machine& machine, bool local_storage) {
  ResourceList capacity;
  capacity["cpu"] = Quantity::from_milli(machine.cores * 1000, Format::kDecimalSI);
  capacity["memory"] = Quantity::from_value(machine.memory_bytes, Format::kBinarySI);
  for (const Machine::HugePages& huge : machine.huge_pages) {
    const std::int64_t page_bytes = huge.page_kib * 1024;
    capacity["hugepages-" + Quantity::from_value(page_bytes, Format::kBinarySI).to_string()] =
        Quantity::from_value(page_bytes * huge.pages, Format::kBinarySI);
  }
  if (local_storage) capacity["ephemeral-storage"] = Quantity::from_value(machine.root_fs_bytes, Format::kBinarySI);
  return capacity;
}

}  // namespace

std::vector<std::string> all_reservation_errors(const ReservationSettings& settings) {
  if (auto errors = reserved_errors("kube-reserved", settings.kube_reserved); !errors.empty()) return errors;
  if (auto errors = reserved_errors("system-reserved", settings.system_reserved); !errors.empty()) return errors;
  return settings.ignore_eviction_threshold ? std::vector<std::string>{} : all_parse_errors(hard_only(settings));
}

TextResult<NodeResources> offer_resources(const ResourceList& capacity, const ReservationSettings& settings) {
  if (const auto errors = all_reservation_errors(settings); !errors.empty()) return std::unexpected(errors.front());
  const ResourceList kube = read_reserved(settings.kube_reserved), system = read_reserved(settings.system_reserved);
  std::vector<Threshold> thresholds;
  if (!settings.ignore_eviction_threshold) thresholds = *parse_thresholds(hard_only(settings));

  NodeResources out;
  for (const Threshold& threshold : thresholds) {
    const std::string_view name = threshold.signal == Signal::kMemoryAvailable   ? "memory"
                                  : threshold.signal == Signal::kNodeFsAvailable ? "ephemeral-storage"
                                                                                 : "";
    if (name.empty()) continue;
    const Quantity whole = get(capacity, name);
    out.eviction_reservation[std::string(name)] = WrittenQuantity{threshold.value.of(whole), threshold.value.text_of(whole)};
  }
  out.capacity = capacity;
  for (const auto& [name, whole] : capacity) {
    Quantity reserved = Quantity::from_value(0);
    reserved += get(system, name);
    reserved += get(kube, name);
    const Quantity by_daemons = reserved;
    reserved += get(out.eviction_reservation, name);
    if (!reserved.is_zero()) {
      if (whole < reserved) out.invalid.push_back(name);
      out.reservation[name] = reserved;
    }
    Quantity left = whole, limit = whole;
    left -= reserved;
    limit -= by_daemons;
    clamp_to_zero(left);
    clamp_to_zero(limit);
    out.allocatable[name] = left;
    out.cgroup[name] = limit;
  }
  take_huge_pages_from_memory(out.allocatable);
  return out;
}

TextResult<NodeResources> compute_node_resources(const Machine& machine, const ReservationSettings& settings) {
  auto out = offer_resources(machine_capacity(machine, settings.local_storage_capacity_isolation), settings);
  if (!out) return out;
  const std::int64_t by_cores = machine.cores * settings.pods_per_core;
  out->capacity["pods"] = out->allocatable["pods"] =
      Quantity::from_value(settings.pods_per_core > 0 ? std::min(by_cores, settings.max_pods) : settings.max_pods);
  if (machine.max_pid > 0) {
    Quantity left = Quantity::from_value(machine.max_pid);
    for (const auto* reserved : {&settings.system_reserved, &settings.kube_reserved}) left -= get(read_reserved(*reserved), "pid");
    clamp_to_zero(left);
    out->cgroup["pid"] = left;
  }
  return out;
}

}  // namespace berth::node::eviction
