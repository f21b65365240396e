// What a node tells schedulers of its NUMA nodes: what each has, and who has what of it.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "placement/numa/alignment.h"

namespace berth::placement::numa {

struct Holding {
  NodeSet nodes = 0;
  std::string resource;
  std::int64_t amount = 0;
  friend bool operator==(const Holding&, const Holding&) = default;
};

struct Offer {
  struct Amount {
    std::int64_t capacity = 0, allocatable = 0, available = 0;
    friend bool operator==(const Amount&, const Amount&) = default;
  };
  std::map<std::string, std::map<int, Amount>> amounts;  ///< By resource and NUMA node.
  std::map<std::string, std::vector<Holding>> holders;   ///< By the pod's uid.
};

/// "0-1 2-3"; what is none is left out.
[[nodiscard]] std::string text_of(const std::vector<NodeSet>& sets);
[[nodiscard]] std::vector<NodeSet> node_sets_in(std::string_view text);
/// Of one pod: "0:cpu=4 0-1:memory=17179869184".
[[nodiscard]] std::string text_of(const std::vector<Holding>& holdings);
/// What cannot be read is left out.
[[nodiscard]] std::vector<Holding> holdings_in(std::string_view text);

}  // namespace berth::placement::numa
