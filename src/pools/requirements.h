// What a pool or a claim wants of its nodes' labels (karpenter.sh/v1 requirements): operators, their intersection, minValues.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/selector.h"

namespace berth::pools {

inline constexpr std::string_view kPoolLabel = "karpenter.sh/nodepool";
inline constexpr std::string_view kCapacityTypeLabel = "karpenter.sh/capacity-type";
inline constexpr std::string_view kInstanceTypeLabel = "node.kubernetes.io/instance-type";
inline constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
inline constexpr std::string_view kArchLabel = "kubernetes.io/arch";
inline constexpr std::string_view kOsLabel = "kubernetes.io/os";
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

/// Which values a label may have. Several entries of one key hold together.
class ValueSet {
 public:
  /// Narrows it by one entry; an unknown operator or a bound that is no number leaves it as it was (the API refuses both).
  void narrow(std::string_view op, const std::vector<std::string>& values);
  /// `value` null: a node without the label.
  [[nodiscard]] bool admits(const std::string* value) const;
  /// The values that are named, where only these are admitted; sorted.
  [[nodiscard]] const std::optional<std::set<std::string>>& named() const { return named_; }

  std::int64_t min_values = 0;  ///< 0: no matter.

 private:
  std::optional<std::set<std::string>> named_;
  std::set<std::string> excluded_;
  std::optional<std::int64_t> above_, below_;  ///< Neither itself.
  bool may_be_absent_ = true, must_be_absent_ = false;
};

/// By key.
using Requirements = std::map<std::string, ValueSet, std::less<>>;

/// `entries`: key, operator, values, minValues each. Anything else in them is ignored.
Requirements parse_requirements(const json::Array& entries);
/// Labels that a node would have all admit; `unknown` keys (no node's labels tell them) are passed over.
bool admit(const Requirements& requirements, const model::Labels& labels, const std::set<std::string, std::less<>>& unknown = {});

}  // namespace berth::pools
