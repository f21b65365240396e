// What a pod has of NUMA nodes, as a text: "0:cpu=4 0-1:memory=17179869184". How nodes tell schedulers.
#pragma once
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

[[nodiscard]] std::string text_of(const std::vector<Holding>& holdings);
/// What cannot be read is left out.
[[nodiscard]] std::vector<Holding> holdings_in(std::string_view text);

}  // namespace berth::placement::numa
