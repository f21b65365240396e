// The parts of a request's path, for the small servers of a node.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace berth::node {

/// What stands between slashes; empty parts are left out.
inline std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    if (!part.empty()) parts.emplace_back(part);
    path.remove_prefix(std::min(path.size(), part.size() + 1));
  }
  return parts;
}

}  // namespace berth::node
