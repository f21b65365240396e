#include "base/json_size.h"

namespace berth::json {

std::size_t text_size(const Value& value, std::size_t enough) {
  if (const auto* text = value.if_string()) return text->size() + 2;
  std::size_t size = 2;
  if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      size += key.size() + 4 + text_size(member, enough);
      if (size > enough) break;
    }
  } else if (const auto* list = value.if_array()) {
    for (const auto& element : *list) {
      size += 1 + text_size(element, enough);
      if (size > enough) break;
    }
  } else {
    size = value.is_bool() || value.is_null() ? 4 : 1;
  }
  return size;
}

}  // namespace berth::json
