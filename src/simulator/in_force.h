// What faults that overlap want of one thing.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth::simulator {

/// The last that began holds; when it ends, the last before it that has not ended does again.
template <typename T>
class InForce {
 public:
  void begin(std::uint64_t strike, T value) { all_.emplace_back(strike, std::move(value)); }
  void end(std::uint64_t strike) {
    std::erase_if(all_, [&](const auto& one) { return one.first == strike; });
  }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  /// T{} while nothing is in force.
  [[nodiscard]] T value() const { return all_.empty() ? T{} : all_.back().second; }

 private:
  std::vector<std::pair<std::uint64_t, T>> all_;
};

}  // namespace berth::simulator
