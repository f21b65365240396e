// Eviction signals and thresholds, and how they are read from a configuration (SPEC F2, F3; kubelet pkg/kubelet/eviction/api, helpers.go).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity.h"
#include "node/eviction/go_text.h"

namespace berth::node::eviction {

using model::Quantity;

/// In the order in which signals are acted upon when several thresholds are met: memory first, as the kubelet does; among the others the
/// kubelet picks one at random, this order is one of its choices.
enum class Signal {
  kMemoryAvailable,
  kAllocatableMemoryAvailable,
  kNodeFsAvailable,
  kNodeFsInodesFree,
  kImageFsAvailable,
  kImageFsInodesFree,
  kContainerFsAvailable,
  kContainerFsInodesFree,
  kPidAvailable,
};
inline constexpr std::size_t kSignalCount = 9;

[[nodiscard]] std::string_view to_string(Signal signal);
[[nodiscard]] std::optional<Signal> parse_signal(std::string_view text);

enum class StarvedResource { kMemory, kEphemeralStorage, kInodes, kPids };
[[nodiscard]] StarvedResource resource_of(Signal signal);
[[nodiscard]] std::string_view to_string(StarvedResource resource);

enum class NodeCondition { kDiskPressure, kMemoryPressure, kPidPressure };  ///< In the order of their names.
inline constexpr std::size_t kConditionCount = 3;
[[nodiscard]] NodeCondition condition_of(Signal signal);
[[nodiscard]] std::string_view to_string(NodeCondition condition);

/// A quantity, or a share of the capacity in single precision.
struct ThresholdValue {
  std::optional<Quantity> quantity;
  std::string text;  ///< The quantity as it is printed.
  float percentage = 0;
  /// The amount it stands for at this capacity. Shares are computed as the kubelet does, in double precision from the single-precision
  /// share and cut to whole units; a NaN share becomes the smallest number, which nothing is below.
  [[nodiscard]] Quantity of(const Quantity& capacity) const;
  /// The same as text.
  [[nodiscard]] std::string text_of(const Quantity& capacity) const { return quantity ? text : of(capacity).to_string(); }
};

struct Threshold {
  Signal signal = Signal::kMemoryAvailable;
  /// False only for the containerfs placeholders that mirror a filesystem threshold nobody configured: never met.
  bool has_operator = true;
  ThresholdValue value;
  std::int64_t grace_period_ns = 0;
  std::optional<ThresholdValue> min_reclaim;
  /// Which configured statement the value and the minimum reclaim come from: the kubelet tells thresholds apart by these, not by content.
  int value_id = 0, min_reclaim_id = 0;

  [[nodiscard]] bool is_hard() const { return grace_period_ns == 0; }
};

/// The same statement (Go's map key equality on Threshold).
[[nodiscard]] bool is_same(const Threshold& a, const Threshold& b);
/// The same meaning, the minimum reclaim aside (kubelet hasThreshold).
[[nodiscard]] bool is_equivalent(const Threshold& a, const Threshold& b);

using StatementMap = std::map<std::string, std::string>;

/// What a kubelet configuration says about eviction.
struct EvictionSettings {
  StatementMap hard, soft, soft_grace_period, minimum_reclaim;
  std::vector<std::string> enforce_node_allocatable = {"pods"};
};

/// All thresholds: hard, soft, and allocatableMemory.available when "pods" is enforced. The error is the kubelet's text for the first wrong
/// statement (by signal name; the kubelet takes a random one): hard ones first, then soft, grace periods, minimum reclaims, then missing
/// grace periods.
[[nodiscard]] TextResult<std::vector<Threshold>> parse_thresholds(const EvictionSettings& settings);
/// Every error text that some order of reading gives; empty when there is none. For comparison with recorded kubelets.
[[nodiscard]] std::vector<std::string> all_parse_errors(const EvictionSettings& settings);

/// Where images and containers are kept.
struct DiskLayout {
  bool dedicated_image_fs = false;      ///< Images not on the node's filesystem.
  bool dedicated_container_fs = false;  ///< Writable layers not on the images' filesystem.
};

/// What add_container_fs_thresholds did.
struct ContainerFsUpdate {
  std::string warning;                ///< About ignored settings, or empty.
  std::vector<Threshold> first_pass;  ///< What the kubelet's first pass works on: see there.
};
/// Gives containerfs.* the thresholds of the filesystem it shares: nodefs or imagefs. Configured ones are replaced in place (their
/// positions are kept), others are appended. The kubelet's first pass still holds the list of before: it sees the replacements made until
/// the first addition that no longer fitted into the list's memory (`spare_places`, see thresholds_spare_places), and no addition.
ContainerFsUpdate add_container_fs_thresholds(std::vector<Threshold>& thresholds, DiskLayout layout, std::size_t spare_places);
/// How many thresholds can be appended to the list that a kubelet reads from these settings before Go moves it to larger memory.
[[nodiscard]] std::size_t thresholds_spare_places(const EvictionSettings& settings);

/// "memory.available<1Gi" (flags, node-config.yaml) split at the operator; "memory.available=1m30s" with '='. The error says what is
/// missing.
[[nodiscard]] TextResult<std::pair<std::string, std::string>> split_statement(std::string_view statement, char operator_sign);

}  // namespace berth::node::eviction
