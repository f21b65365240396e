// What the parts of a pod hold on the heap: strings, lists by their capacity, selectors. What users write has any size, so that whoever
// keeps pods in a bounded place counts them by this and not by their number. What pods share counts for each.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_pool.h"
#include "model/views/pod_view.h"

namespace berth::placement {

inline std::size_t heap_bytes(const std::string& text) { return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + 1; }
template <typename A, typename B>
std::size_t heap_bytes(const std::pair<A, B>& pair);
template <typename T>
std::size_t heap_bytes(const std::optional<T>& value);
template <typename T>
std::size_t heap_bytes(const std::vector<T>& list);
template <typename T>
std::size_t heap_bytes(const SharedList<T>& list);

template <typename T>
concept HasHeap = !std::is_arithmetic_v<T> && !std::is_enum_v<T> && !std::is_same_v<T, model::Quantity>;

/// By its parts() (base/shared_pool.h).
template <typename T>
std::size_t heap_bytes(const T& value) {
  if constexpr (HasHeap<T>)
    return std::apply([](const auto&... part) { return (std::size_t{0} + ... + heap_bytes(part)); }, value.parts());
  else
    return 0;
}

template <typename T>
std::size_t heap_bytes(const std::vector<T>& list) {
  std::size_t out = list.capacity() * sizeof(T);
  if constexpr (HasHeap<T>)
    for (const T& one : list) out += heap_bytes(one);
  return out;
}

template <typename T>
std::size_t heap_bytes(const SharedList<T>& list) {
  return heap_bytes(*list);
}

template <typename A, typename B>
std::size_t heap_bytes(const std::pair<A, B>& pair) {
  return heap_bytes(pair.first) + heap_bytes(pair.second);
}

template <typename T>
std::size_t heap_bytes(const std::optional<T>& value) {
  return value ? heap_bytes(*value) : 0;
}

template <typename First, typename... Rest>
requires(sizeof...(Rest) > 0) std::size_t heap_bytes(const First& first, const Rest&... rest) {
  return heap_bytes(first) + (heap_bytes(rest) + ...);
}

}  // namespace berth::placement
