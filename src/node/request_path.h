// The parts of a request's path, for the small servers of a node.
#pragma once
#include <string>
#include <vector>

#include "base/split.h"

namespace berth::node {

/// What stands between slashes; empty parts are left out.
inline std::vector<std::string> split_path(std::string_view path) { return words(path, '/').list<std::string>(); }

}  // namespace berth::node
