// What the containers of a pod are to have of a node for themselves: the kubelet's rules, read by its managers and by the scheduler.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::model {
struct PodView;
}

namespace berth::placement::numa {

using Amounts = std::map<std::string, std::int64_t>;  ///< By resource: pieces, or bytes.

struct Wish {
  std::string name;
  bool is_init = false, is_sidecar = false;
  std::int64_t cpus = 0;  ///< Processors: where the request is whole and the pod Guaranteed.
  Amounts memory;         ///< memory, hugepages-…: of containers of Guaranteed pods.
  Amounts devices;        ///< Limits of other resources, whoever gives them.

  /// What it is given is free again when it ends, for those after it.
  [[nodiscard]] bool lends() const { return is_init && !is_sidecar; }
  [[nodiscard]] std::int64_t of(std::string_view resource) const;
};

/// Of a whole pod. Where the resources are the pod's (spec.resources) no container has processors or memory of its own.
struct PodWishes {
  std::string uid;
  std::vector<Wish> containers;  ///< In the order of their start.

  [[nodiscard]] bool empty() const;
  /// The most that its containers have at a time of each resource that any of them wishes for.
  [[nodiscard]] Amounts most_at_a_time() const;
};

[[nodiscard]] PodWishes wishes_of(const model::PodView& pod);
[[nodiscard]] bool is_memory(std::string_view resource);

}  // namespace berth::placement::numa
