// What a command need not take apart.
#pragma once
#include <deque>
#include <utility>

namespace berth::cli {

/// Left to the end of the process: to free a large cluster object by object is seconds' work for nothing. For commands alone, on their one
/// thread; what is kept is never given back.
template <typename T>
T& keep_to_the_end(T value) {
  static auto& kept = *new std::deque<T>;
  return kept.emplace_back(std::move(value));
}

}  // namespace berth::cli
