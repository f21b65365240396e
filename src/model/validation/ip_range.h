// Addresses and ranges of them, as texts of API objects hold them.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::model::validation {

/// An address, or a range when `bits` is shorter than it.
struct IpRange {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> bytes{};
  unsigned bits = 0;  ///< Of the prefix.

  [[nodiscard]] unsigned width() const { return is_v6 ? 128 : 32; }
  /// Whether the other's first address lies within.
  [[nodiscard]] bool contains(const IpRange& other) const;
};

/// Empty: the text is no address.
std::optional<IpRange> parse_ip(std::string_view text);
/// "10.0.0.0/8", "fd00::/64"; bits beyond the prefix may be set.
std::optional<IpRange> parse_cidr(std::string_view text);

/// Whether addresses (or ranges, `are_ranges`) are of both families; `problem`: why that cannot be told, as of the first that is none.
struct DualStack {
  bool has_both = false;
  std::string problem;
};
DualStack check_dual_stack(const std::vector<std::string_view>& texts, bool are_ranges);

/// Why neither an endpoint nor a Service's outside may have the address, which stood there as `text` (ValidateNonSpecialIP); empty: it may.
std::string special_ip_problem(const IpRange& address, std::string_view text);
/// In IPv4's range or IPv6's, or in IPv4's written as IPv6.
bool is_loopback(const IpRange& address);
/// Whether Endpoints or a slice of them say where this server itself is: one that listens on the loopback alone is found there.
bool is_of_this_server(const json::Value& endpoints);

}  // namespace berth::model::validation
