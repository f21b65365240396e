#include "node/eviction/thresholds.h"

#include <cmath>

namespace berth::node::eviction {
namespace {

struct SignalInfo {
  std::string_view name;
  StarvedResource resource;
  NodeCondition condition;
};
constexpr std::array<SignalInfo, kSignalCount> kSignals = {{
    {"memory.available", StarvedResource::kMemory, NodeCondition::kMemoryPressure},
    {"allocatableMemory.available", StarvedResource::kMemory, NodeCondition::kMemoryPressure},
    {"nodefs.available", StarvedResource::kEphemeralStorage, NodeCondition::kDiskPressure},
    {"nodefs.inodesFree", StarvedResource::kInodes, NodeCondition::kDiskPressure},
    {"imagefs.available", StarvedResource::kEphemeralStorage, NodeCondition::kDiskPressure},
    {"imagefs.inodesFree", StarvedResource::kInodes, NodeCondition::kDiskPressure},
    {"containerfs.available", StarvedResource::kEphemeralStorage, NodeCondition::kDiskPressure},
    {"containerfs.inodesFree", StarvedResource::kInodes, NodeCondition::kDiskPressure},
    {"pid.available", StarvedResource::kPids, NodeCondition::kPidPressure},
}};

const SignalInfo& info(Signal signal) { return kSignals[static_cast<std::size_t>(signal)]; }

std::unexpected<std::string> unsupported(std::string_view signal) {
  return std::unexpected(fmt::format("unsupported eviction signal {}", signal));
}

TextResult<float> parse_percentage(std::string_view text) {
  while (text.ends_with('%')) text.remove_suffix(1);
  const auto value = parse_float32(text);
  if (!value) return std::unexpected(value.error());
  return *value / 100;
}

/// Nullopt: a statement that says nothing (0% and 100%).
TextResult<std::optional<Threshold>> parse_statement(const std::string& name, const std::string& text) {
  const std::optional<Signal> signal = parse_signal(name);
  if (!signal) return unsupported(name);
  Threshold threshold;
  threshold.signal = *signal;
  if (text.ends_with('%')) {
    if (text == "0%" || text == "100%") return std::nullopt;
    const auto share = parse_percentage(text);
    if (!share) return std::unexpected(share.error());
    if (*share < 0) return std::unexpected(fmt::format("eviction percentage threshold {} must be >= 0%: {}", name, text));
    if (*share > 1) return std::unexpected(fmt::format("eviction percentage threshold {} must be <= 100%: {}", name, text));
    threshold.value.percentage = *share;
    return threshold;
  }
  const auto quantity = parse_quantity(text);
  if (!quantity) return std::unexpected(quantity.error());
  if (quantity->value.sign() <= 0) return std::unexpected(fmt::format("eviction threshold {} must be positive: {}", name, quantity->text));
  threshold.value.quantity = quantity->value;
  threshold.value.text = quantity->text;
  return threshold;
}

TextResult<std::int64_t> parse_grace_period(const std::string& name, const std::string& text) {
  if (!parse_signal(name)) return unsupported(name);
  const auto ns = parse_duration_ns(text);
  if (!ns) return std::unexpected(ns.error());
  if (*ns < 0) return std::unexpected(fmt::format("invalid eviction grace period specified: {}, must be a positive value", text));
  return *ns;
}

TextResult<ThresholdValue> parse_minimum_reclaim(const std::string& name, const std::string& text) {
  if (!parse_signal(name)) return unsupported(name);
  ThresholdValue value;
  if (text.ends_with('%')) {
    const auto share = parse_percentage(text);
    if (!share) return std::unexpected(share.error());
    if (*share <= 0) return std::unexpected(fmt::format("eviction percentage minimum reclaim {} must be positive: {}", name, text));
    value.percentage = *share;
    return value;
  }
  const auto quantity = parse_quantity(text);
  if (!quantity) return std::unexpected(quantity.error());
  if (quantity->value.sign() < 0) return std::unexpected(fmt::format("negative eviction minimum reclaim specified for {}", name));
  value.quantity = quantity->value;
  value.text = quantity->text;
  return value;
}

/// The errors of one map's entries: any of them may be the one that the kubelet meets first.
template <typename Parse>
std::vector<std::string> errors_of(const StatementMap& map, Parse parse) {
  std::vector<std::string> errors;
  for (const auto& [name, text] : map)
    if (const auto result = parse(name, text); !result) errors.push_back(result.error());
  return errors;
}

std::vector<std::string> missing_grace_periods(const EvictionSettings& settings) {
  std::vector<std::string> errors;
  for (const auto& [name, text] : settings.soft) {
    const auto threshold = parse_statement(name, text);
    if (threshold && *threshold && !settings.soft_grace_period.contains(name))
      errors.push_back(fmt::format("grace period must be specified for the soft eviction threshold {}", name));
  }
  return errors;
}

bool is_same_value(const ThresholdValue& a, const ThresholdValue& b, int a_id, int b_id) {
  if (a.quantity.has_value() != b.quantity.has_value()) return false;
  return a.quantity ? a_id == b_id : a.percentage == b.percentage;
}

}  // namespace

std::string_view to_string(Signal signal) { return info(signal).name; }
StarvedResource resource_of(Signal signal) { return info(signal).resource; }
NodeCondition condition_of(Signal signal) { return info(signal).condition; }

std::optional<Signal> parse_signal(std::string_view text) {
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i].name == text) return static_cast<Signal>(i);
  return std::nullopt;
}

std::string_view to_string(StarvedResource resource) {
  switch (resource) {
    case StarvedResource::kMemory:
      return "memory";
    case StarvedResource::kEphemeralStorage:
      return "ephemeral-storage";
    case StarvedResource::kInodes:
      return "inodes";
    case StarvedResource::kPids:
      return "pids";
  }
  return {};
}

std::string_view to_string(NodeCondition condition) {
  switch (condition) {
    case NodeCondition::kDiskPressure:
      return "DiskPressure";
    case NodeCondition::kMemoryPressure:
      return "MemoryPressure";
    case NodeCondition::kPidPressure:
      return "PIDPressure";
  }
  return {};
}

Quantity ThresholdValue::of(const Quantity& capacity) const {
  if (quantity) return *quantity;
  const double amount = static_cast<double>(capacity.value()) * static_cast<double>(percentage);
  // What amd64 gives for a number that does not fit (NaN included).
  if (!(amount >= -0x1p63 && amount < 0x1p63))
    return Quantity::from_value(std::numeric_limits<std::int64_t>::min(), Quantity::Format::kBinarySI);
  return Quantity::from_value(static_cast<std::int64_t>(amount), Quantity::Format::kBinarySI);
}

bool is_same(const Threshold& a, const Threshold& b) {
  return a.signal == b.signal && a.has_operator == b.has_operator && a.grace_period_ns == b.grace_period_ns &&
         is_same_value(a.value, b.value, a.value_id, b.value_id) && a.min_reclaim.has_value() == b.min_reclaim.has_value() &&
         (!a.min_reclaim || a.min_reclaim_id == b.min_reclaim_id);
}

bool is_equivalent(const Threshold& a, const Threshold& b) {
  if (a.signal != b.signal || a.has_operator != b.has_operator || a.grace_period_ns != b.grace_period_ns) return false;
  if (a.value.quantity.has_value() != b.value.quantity.has_value()) return false;
  return a.value.quantity ? *a.value.quantity == *b.value.quantity : a.value.percentage == b.value.percentage;
}

TextResult<std::vector<Threshold>> parse_thresholds(const EvictionSettings& settings) {
  if (const std::vector<std::string> errors = all_parse_errors(settings); !errors.empty()) return std::unexpected(errors.front());
  std::vector<Threshold> thresholds;
  int id = 0;
  for (const auto& [name, text] : settings.hard)
    if (auto threshold = *parse_statement(name, text)) thresholds.push_back(*threshold);
  for (const auto& [name, text] : settings.soft) {
    auto threshold = *parse_statement(name, text);
    if (!threshold) continue;
    threshold->grace_period_ns = *parse_grace_period(name, settings.soft_grace_period.at(name));
    thresholds.push_back(*threshold);
  }
  for (Threshold& threshold : thresholds) {
    threshold.value_id = ++id;
    const auto reclaim = settings.minimum_reclaim.find(std::string(to_string(threshold.signal)));
    if (reclaim == settings.minimum_reclaim.end()) continue;
    threshold.min_reclaim = *parse_minimum_reclaim(reclaim->first, reclaim->second);
    threshold.min_reclaim_id = ++id;
  }
  if (std::ranges::find(settings.enforce_node_allocatable, "pods") != settings.enforce_node_allocatable.end()) {
    for (std::size_t i = 0, count = thresholds.size(); i < count; ++i) {
      if (thresholds[i].signal != Signal::kMemoryAvailable || !thresholds[i].is_hard()) continue;
      Threshold copy = thresholds[i];
      copy.signal = Signal::kAllocatableMemoryAvailable;
      thresholds.push_back(std::move(copy));
    }
  }
  return thresholds;
}

std::vector<std::string> all_parse_errors(const EvictionSettings& settings) {
  if (auto errors = errors_of(settings.hard, parse_statement); !errors.empty()) return errors;
  if (auto errors = errors_of(settings.soft, parse_statement); !errors.empty()) return errors;
  if (auto errors = errors_of(settings.soft_grace_period, parse_grace_period); !errors.empty()) return errors;
  if (auto errors = errors_of(settings.minimum_reclaim, parse_minimum_reclaim); !errors.empty()) return errors;
  return missing_grace_periods(settings);
}

ContainerFsUpdate add_container_fs_thresholds(std::vector<Threshold>& thresholds, DiskLayout layout, std::size_t spare_places) {
  const bool shares_node_fs = layout.dedicated_image_fs == layout.dedicated_container_fs;
  const bool shares_image_fs = layout.dedicated_image_fs && !layout.dedicated_container_fs;
  struct Slot {
    Signal target, source;
    bool hard;
    std::string_view name;
  };
  const Signal bytes = shares_image_fs ? Signal::kImageFsAvailable : Signal::kNodeFsAvailable;
  const Signal inodes = shares_image_fs ? Signal::kImageFsInodesFree : Signal::kNodeFsInodesFree;
  const std::array<Slot, 4> slots = {{{Signal::kContainerFsAvailable, bytes, true, "containerfs.available for hard"},
                                      {Signal::kContainerFsAvailable, bytes, false, "containerfs.available for soft"},
                                      {Signal::kContainerFsInodesFree, inodes, true, "containerfs.inodesFree for hard"},
                                      {Signal::kContainerFsInodesFree, inodes, false, "containerfs.inodesFree for soft"}}};
  const std::vector<Threshold> configured = thresholds;
  ContainerFsUpdate update{{}, thresholds};
  // The last configured entry decides what is said, as the kubelet keeps only the latest error.
  for (const Threshold& threshold : configured)
    for (const Slot& slot : slots)
      if (threshold.signal == slot.target && threshold.is_hard() == slot.hard)
        update.warning = fmt::format("found {} eviction. ignoring", slot.name);
  if (!shares_node_fs && !shares_image_fs) return update;
  bool moved = false;
  for (const Slot& slot : slots) {
    Threshold mirrored;
    mirrored.has_operator = false;
    std::optional<std::size_t> place;
    for (std::size_t i = 0; i < configured.size(); ++i) {
      if (configured[i].is_hard() != slot.hard) continue;
      if (configured[i].signal == slot.source) mirrored = configured[i];
      if (configured[i].signal == slot.target) place = i;
    }
    mirrored.signal = slot.target;
    if (place) {
      if (!moved) update.first_pass[*place] = mirrored;
      thresholds[*place] = std::move(mirrored);
    } else {
      thresholds.push_back(std::move(mirrored));
      moved = moved || thresholds.size() > configured.size() + spare_places;
    }
  }
  return update;
}

namespace {

/// Go's memory sizes for small objects, as far as a list of thresholds can need them.
constexpr std::array<std::size_t, 48> kGoSizeClasses = {8,    16,   24,   32,   48,   64,   80,   96,   112,  128,  144,  160,
                                                        176,  192,  208,  224,  240,  256,  288,  320,  352,  384,  416,  448,
                                                        480,  512,  576,  640,  704,  768,  896,  1024, 1152, 1280, 1408, 1536,
                                                        1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5120, 5376, 6144};
constexpr std::size_t kThresholdBytes = 64, kHeaderBytes = 8, kLargestWithoutHeader = 512;

struct GoSlice {
  std::size_t length = 0, capacity = 0;
  /// append(slice, count elements): Go's growslice.
  void append(std::size_t count) {
    length += count;
    if (length <= capacity) return;
    const std::size_t wanted = std::max(length, 2 * capacity) * kThresholdBytes;
    const std::size_t header = wanted > kLargestWithoutHeader ? kHeaderBytes : 0;
    const auto fitting = std::ranges::lower_bound(kGoSizeClasses, wanted + header);
    capacity = ((fitting == kGoSizeClasses.end() ? wanted : *fitting) - header) / kThresholdBytes;
  }
};

}  // namespace

std::size_t thresholds_spare_places(const EvictionSettings& settings) {
  const auto count = [](const StatementMap& map) {
    return static_cast<std::size_t>(std::ranges::count_if(map, [](const auto& entry) {
      const auto parsed = parse_statement(entry.first, entry.second);
      return parsed && *parsed;
    }));
  };
  GoSlice list;
  list.append(count(settings.hard));
  list.append(count(settings.soft));
  if (std::ranges::find(settings.enforce_node_allocatable, "pods") != settings.enforce_node_allocatable.end()) {
    const auto thresholds = parse_thresholds(settings);
    GoSlice copy;
    copy.append(list.length);
    copy.append(thresholds ? thresholds->size() - list.length : 0);
    list = copy;
  }
  return list.capacity - list.length;
}

TextResult<std::pair<std::string, std::string>> split_statement(std::string_view statement, char operator_sign) {
  const std::size_t at = statement.find(operator_sign);
  if (at == std::string_view::npos)
    return std::unexpected(fmt::format("invalid eviction setting \"{}\": must be <eviction signal>{}<value>", statement, operator_sign));
  return std::pair(std::string(statement.substr(0, at)), std::string(statement.substr(at + 1)));
}

}  // namespace berth::node::eviction
