// NodePools, NodeClaims and node classes as a server reads them that has their definitions: for files that no server has seen.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"

namespace berth::pools {

struct Finding {
  std::string path, what;   ///< "spec.weight", "Invalid value: …".
  bool is_dropped = false;  ///< A server would take the rest of the document without a word; else it would refuse the whole.
};
/// Gives the document its defaults, and tells all that a server would refuse, or drop in silence. Thread-safe.
std::vector<Finding> complete(json::Value& document);

}  // namespace berth::pools
