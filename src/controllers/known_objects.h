// The objects of the controllers' cache in sets that are ordered, so that every walk is repeatable.
#pragma once
#include <ranges>
#include <set>
#include <string_view>
#include <tuple>

#include "controllers/pod_info.h"

namespace berth::controllers {

/// An object that the cache knows, of one namespace and name. It stays where it is for as long as it is known; what stands in it is the
/// last revision, so that a change of an object that keeps its owner, node and labels touches no set.
struct KnownObject {
  ObjectRef object;  ///< Never null.
  PodRef pod;        ///< Of a pod, and of nothing else.
};

struct ObjectName {
  std::string_view ns, name;
};
inline ObjectName name_of(const ObjectName& name) { return name; }
template <typename Pointer>
ObjectName name_of(const Pointer& known) {
  return {known->object->ns(), known->object->name()};
}

/// In order of (namespace, name).
struct ByName {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    const ObjectName left = name_of(a), right = name_of(b);
    return std::tie(left.ns, left.name) < std::tie(right.ns, right.name);
  }
};
using ObjectSet = std::set<const KnownObject*, ByName>;

struct NameHash {
  using is_transparent = void;
  template <typename T>
  std::size_t operator()(const T& known) const {
    const ObjectName key = name_of(known);
    return std::hash<std::string_view>()(key.name) * 31 + std::hash<std::string_view>()(key.ns);
  }
};
struct SameName {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    const ObjectName left = name_of(a), right = name_of(b);
    return left.name == right.name && left.ns == right.ns;
  }
};

inline const PodRef& pod_of(const KnownObject* known) { return known->pod; }
/// The pods of a set of pods. Good until the cache is told of the next change.
using PodRange = std::ranges::transform_view<std::ranges::ref_view<const ObjectSet>, const PodRef& (*)(const KnownObject*)>;
inline PodRange pods_of(const ObjectSet& set) { return {std::ranges::ref_view(set), &pod_of}; }

}  // namespace berth::controllers
