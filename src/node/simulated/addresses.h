// The addresses of a simulated node follow from its number: one of its own, and 254 for its pods.
#pragma once
#include <cstdio>
#include <optional>
#include <string>

#include "node/simulated/fleet.h"

namespace berth::node::simulated {

inline constexpr int kFirstOutOfPrivate = 60'000;  ///< 10.10.0.0/24 … 10.249.249.0/24 come first, then what is nobody's: 240.0.0.0/4.

[[nodiscard]] inline std::string node_address(int index) {
  return fmt::format("172.{}.{}.{}", 16 + index / 62500, index / 250 % 250, index % 250 + 1);
}

/// The number of the node whose address this is; nullopt: it is none of ours.
[[nodiscard]] inline std::optional<int> index_of_address(const std::string& address) {
  int high = 0, middle = 0, low = 0;
  if (std::sscanf(address.c_str(), "172.%d.%d.%d", &high, &middle, &low) != 3) return std::nullopt;
  const int index = (high - 16) * 62500 + middle * 250 + low - 1;
  if (index < 0 || index >= kMostNodes || node_address(index) != address) return std::nullopt;
  return index;
}

/// "10.10.0.": what the addresses of a node's pods begin with.
[[nodiscard]] inline std::string pod_prefix(int index) {
  if (index < kFirstOutOfPrivate) return fmt::format("10.{}.{}.", 10 + index / 250, index % 250);
  const int beyond = index - kFirstOutOfPrivate;
  return fmt::format("{}.{}.{}.", 240 + beyond / 65536, beyond / 256 % 256, beyond % 256);
}

/// The number of the node that has this range for its pods ("10.10.0.0/24"); nullopt: it is none of ours.
[[nodiscard]] inline std::optional<int> index_of_pod_range(const std::string& range) {
  int first = 0, high = 0, low = 0;
  if (std::sscanf(range.c_str(), "%d.%d.%d.0/24", &first, &high, &low) != 3) return std::nullopt;
  const int index = first == 10 ? (high - 10) * 250 + low : kFirstOutOfPrivate + ((first - 240) * 256 + high) * 256 + low;
  if (index < 0 || index >= kMostNodes || pod_prefix(index) + "0/24" != range) return std::nullopt;
  return index;
}

}  // namespace berth::node::simulated
