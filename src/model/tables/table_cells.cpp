// What the cells of several kinds show.
#include "model/tables/table_cells.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "model/selector.h"
#include "model/tables/tables.h"

namespace berth::model::tables {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

Value name_of(const Value& o) { return Value(get_string(o, {"metadata", "name"})); }
Value age_of(const Value& o, TimePoint now) { return Value(human_age(get_string(o, {"metadata", "creationTimestamp"}), now)); }
Value or_none(std::string_view text) { return Value(text.empty() ? std::string_view("<none>") : text); }
Value or_unset(std::string_view text) { return Value(text.empty() ? std::string_view("<unset>") : text); }

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string map_text(const Object& map) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : map)
    parts.push_back(fmt::format("{}={}", std::string_view(key.data(), key.size()), value.is_string() ? json::as_view(value) : ""));
  std::sort(parts.begin(), parts.end());
  return parts.empty() ? "<none>" : join(parts);
}

std::string selector_text(const Value& object, json::Path path) {
  const Value* selector = json::find(object, path);
  if (selector == nullptr) return "<none>";
  const auto compiled = Selector::from_label_selector(selector);
  if (!compiled) return "<error>";
  const std::string text = compiled->to_string();
  return text.empty() ? "<none>" : text;
}

std::pair<std::string, std::string> containers_and_images(const Array& containers) {
  std::vector<std::string> names, images;
  for (const Value& container : containers) {
    names.emplace_back(get_string(container, {"name"}));
    images.emplace_back(get_string(container, {"image"}));
  }
  return {join(names), join(images)};
}

std::string array_text(const Array& array) {
  std::vector<std::string> parts;
  for (const Value& item : array) parts.emplace_back(item.is_string() ? json::as_view(item) : "");
  return join(parts);
}

}  // namespace berth::model::tables
