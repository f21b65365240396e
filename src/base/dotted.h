// Places in documents as "spec.replicas": names with dots between them.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace berth::json {

/// The names; a dot before the first means nothing.
inline std::vector<std::string_view> dotted_names(std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  std::vector<std::string_view> out;
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find('.', start), path.size());
    out.push_back(path.substr(start, end - start));
    start = end + 1;
  }
  return out;
}

/// What stands there; null when nothing does. Of an empty path the document itself.
inline const Value* find_dotted(const Value& document, std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  const Value* at = &document;
  while (at != nullptr && !path.empty()) {
    const auto dot = std::min(path.find('.'), path.size());
    at = find(*at, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

/// Makes what is missing on the way.
inline void set_dotted(Value& document, std::string_view path, Value value) {
  Value* at = &document;
  for (const auto name : dotted_names(path)) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[name];
  }
  *at = std::move(value);
}

}  // namespace berth::json
