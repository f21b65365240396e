#include "apiserver/request/element_limit.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::apiserver {
namespace {

std::size_t elements_of(const json::Array& list) {
  return static_cast<std::size_t>(std::ranges::count_if(list, [](const json::Value& one) { return one.is_object() || one.is_null(); }));
}

std::size_t count_elements(const json::Value& value) {
  std::size_t count = 0;
  if (const auto* list = value.if_array()) {
    count = elements_of(*list);
    for (const auto& one : *list) count += count_elements(one);
  } else if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object) count += count_elements(member);
  }
  return count;
}

struct Longest {
  std::size_t elements = 0;
  std::string path;  ///< Without indices.
};

void find_longest(const json::Value& value, const std::string& path, Longest& longest) {
  if (const auto* list = value.if_array()) {
    if (const auto elements = elements_of(*list); elements > longest.elements) longest = {elements, path};
    for (const auto& one : *list)
      if (one.is_structured()) find_longest(one, path, longest);
  } else if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object)
      if (member.is_structured()) find_longest(member, fmt::format("{}{}{}", path, path.empty() ? "" : ".", key.substr(0, 256)), longest);
  }
}

}  // namespace

std::optional<model::ApiStatus> refuse_many_elements(const json::Value& document) {
  const auto count = count_elements(document);
  if (count <= kMostElements) return std::nullopt;
  Longest longest;
  find_longest(document, "", longest);
  model::ApiStatus status;
  status.code = 413;
  status.reason = "RequestEntityTooLarge";
  status.message = fmt::format("Request entity too large: limit is {} objects in lists: there are {}, and {} of them in one list{}{}",
                               kMostElements, count, longest.elements, longest.path.empty() ? "" : ", ", longest.path.substr(0, 1024));
  return status;
}

}  // namespace berth::apiserver
