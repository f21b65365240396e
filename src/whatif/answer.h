// The answer's document, made of a world before and after.
#pragma once
#include <map>
#include <string>

#include "whatif/world.h"

namespace berth::whatif {

/// How full something is.
struct Use {
  std::int64_t nodes = 0, pods = 0;
  double cpu = 0, memory = 0, cpu_of = 0, memory_of = 0;  ///< Given away, and of how much: cores and bytes.
  void add(const placement::NodeInfo& node);
  [[nodiscard]] json::Object to_json(bool counts_nodes) const;
};

/// How full everything was.
struct Fullness {
  struct Node {
    std::string zone, type, capacity_type;
    Use use;
  };
  std::map<std::string, Node> nodes;
  static Fullness of(const placement::Cluster& cluster);
};

/// Everything but `each`. `present_notes` come first.
json::Object answer_of(World& world, const Fullness& before, const std::vector<std::string>& present_notes);
json::Object to_json(const Move& move);
json::Object to_json(const Departure& departure);

}  // namespace berth::whatif
