// What the parts of a pod hold on the heap: strings, lists by their capacity, selectors. What users write has any size, so that whoever
// keeps pods in a bounded place counts them by this and not by their number.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/views/pod_view.h"

namespace berth::placement {

struct AffinityTerm;
struct PodInfo;

template <typename T>
inline constexpr bool kIsFlat = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, model::Quantity>;

inline std::size_t heap_bytes(const std::string& text) { return text.capacity() < sizeof(std::string) / 2 ? 0 : text.capacity() + 1; }
std::size_t heap_bytes(const model::Labels& labels);
std::size_t heap_bytes(const model::Requirement& requirement);
std::size_t heap_bytes(const model::Selector& selector);
std::size_t heap_bytes(const AffinityTerm& term);
std::size_t heap_bytes(const model::PodAffinityTerm& term);
std::size_t heap_bytes(const model::WeightedPodAffinityTerm& weighted);
std::size_t heap_bytes(const model::NodeSelectorTerm& term);
std::size_t heap_bytes(const model::PreferredSchedulingTerm& weighted);
std::size_t heap_bytes(const model::Toleration& toleration);
std::size_t heap_bytes(const model::OwnerReference& owner);
std::size_t heap_bytes(const model::TopologySpreadConstraint& constraint);
std::size_t heap_bytes(const model::HostPort& port);
std::size_t heap_bytes(const model::ContainerView& container);
std::size_t heap_bytes(const model::ContainerResourceStatus& status);
std::size_t heap_bytes(const model::VolumeView& volume);
std::size_t heap_bytes(const model::PodResourceClaim& claim);
std::size_t heap_bytes(const model::ObjectMeta& meta);
std::size_t heap_bytes(const model::PodView& pod);

template <typename A, typename B>
std::size_t heap_bytes(const std::pair<A, B>& pair);

template <typename T>
std::size_t heap_bytes(const std::vector<T>& list) {
  std::size_t out = list.capacity() * sizeof(T);
  if constexpr (!kIsFlat<T>)
    for (const T& one : list) out += heap_bytes(one);
  return out;
}

template <typename A, typename B>
std::size_t heap_bytes(const std::pair<A, B>& pair) {
  std::size_t out = 0;
  if constexpr (!kIsFlat<A>) out += heap_bytes(pair.first);
  if constexpr (!kIsFlat<B>) out += heap_bytes(pair.second);
  return out;
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
