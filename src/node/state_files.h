// Small files that are there whole or not at all.
#pragma once
#include <optional>
#include <string>

namespace berth::node {

/// Nullopt: it is not there, or cannot be read.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);
/// The old text or the new one, whatever happens meanwhile. False: the old one.
[[nodiscard]] bool replace_file(const std::string& path, const std::string& text);

}  // namespace berth::node
