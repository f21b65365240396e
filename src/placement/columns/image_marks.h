// Which images a node may have, in one cache line.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

namespace berth::placement {

/// A set of names that may answer yes for one that it does not hold (about once in fifty, with forty names), and never no for one it does.
class ImageMarks {
 public:
  /// A name's two bits.
  struct Place {
    std::uint16_t first, second;
  };
  static Place place_of(std::string_view name) {
    const std::uint64_t hash = std::hash<std::string_view>{}(name);
    return {static_cast<std::uint16_t>(hash % kBits), static_cast<std::uint16_t>((hash >> 32) % kBits)};
  }
  void add(std::string_view name) {
    const Place place = place_of(name);
    bits_[place.first / 64] |= 1ULL << place.first % 64;
    bits_[place.second / 64] |= 1ULL << place.second % 64;
  }
  friend bool operator==(const ImageMarks&, const ImageMarks&) = default;
  [[nodiscard]] bool may_have(Place place) const { return has(place.first) && has(place.second); }

 private:
  static constexpr std::size_t kBits = 512;
  [[nodiscard]] bool has(std::uint16_t bit) const { return (bits_[bit / 64] >> bit % 64 & 1) != 0; }
  std::array<std::uint64_t, kBits / 64> bits_{};
};

}  // namespace berth::placement
