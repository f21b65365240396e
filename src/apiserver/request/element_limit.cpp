#include "apiserver/request/element_limit.h"

#include <fmt/format.h>

#include <array>

namespace berth::apiserver {
namespace {

enum Counted : std::size_t { kObjects, kWords, kOfMetadata };

struct Limit {
  std::size_t most;
  std::string_view what, where;
};
constexpr std::array<Limit, 3> kLimits = {{{kMostElements, "objects in lists", "list"},
                                           {kMostWords, "values in lists", "list"},
                                           {kMostMetadata, "values in the lists and maps of metadata", "list or map"}}};

/// What stands where: a field's name says more than its value does.
enum class Place { kElsewhere, kMetadata, kLabels };

Place place_of(Place above, std::string_view key) {
  if (key == "metadata" && above != Place::kMetadata) return Place::kMetadata;
  if (above == Place::kMetadata && (key == "labels" || key == "annotations")) return Place::kLabels;
  return above;
}

Counted counted_as(const json::Value& element, Place place) {
  if (element.is_object() || element.is_null()) return kObjects;
  return place == Place::kElsewhere ? kWords : kOfMetadata;
}

using Counts = std::array<std::size_t, kLimits.size()>;

/// What one list or map has by itself.
Counts counts_of(const json::Value& value, Place place) {
  Counts counts{};
  if (const auto* list = value.if_array()) {
    for (const auto& one : *list)
      if (!one.is_array()) ++counts[counted_as(one, place)];
  } else if (const auto* map = value.if_object(); map != nullptr && place == Place::kLabels) {
    counts[kOfMetadata] = map->size();
  }
  return counts;
}

/// Calls `see(value, place, path)` for every list and map. `path`: without indices, empty unless `with_paths`.
template <typename See>
void walk(const json::Value& value, Place place, const std::string& path, bool with_paths, const See& see) {
  see(value, place, path);
  if (const auto* list = value.if_array()) {
    for (const auto& one : *list)
      if (one.is_structured()) walk(one, place, path, with_paths, see);
  } else if (const auto* object = value.if_object()) {
    for (const auto& [key, member] : *object)
      if (member.is_structured())
        walk(member, place_of(place, key),
             with_paths ? fmt::format("{}{}{}", path, path.empty() ? "" : ".", std::string_view(key).substr(0, 256)) : std::string(),
             with_paths, see);
  }
}

model::ApiStatus refusal(const json::Value& root, Place place, const std::string& path, Counted counted, std::size_t count) {
  std::size_t longest = 0;
  std::string where;
  walk(root, place, path, true, [&](const json::Value& value, Place its_place, const std::string& its_path) {
    if (const std::size_t own = counts_of(value, its_place)[counted]; own > longest) longest = own, where = its_path;
  });
  const Limit& limit = kLimits[counted];
  model::ApiStatus status;
  status.code = 413;
  status.reason = "RequestEntityTooLarge";
  status.message = fmt::format("Request entity too large: limit is {} {}: there are {}, and {} of them in one {}{}{}", limit.most,
                               limit.what, count, longest, limit.where, where.empty() ? "" : ", ", where.substr(0, 1024));
  return status;
}

}  // namespace

std::optional<model::ApiStatus> refuse_many_elements(const json::Value& document, bool is_custom) {
  const json::Value* metadata = is_custom ? json::find(document, "metadata") : nullptr;
  if (is_custom && metadata == nullptr) return std::nullopt;
  const json::Value& root = is_custom ? *metadata : document;
  const Place place = is_custom ? Place::kMetadata : Place::kElsewhere;
  const std::string path = is_custom ? "metadata" : "";
  Counts counts{};
  walk(root, place, path, false, [&](const json::Value& value, Place its_place, const std::string&) {
    const Counts own = counts_of(value, its_place);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += own[i];
  });
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > kLimits[i].most) return refusal(root, place, path, static_cast<Counted>(i), counts[i]);
  return std::nullopt;
}

}  // namespace berth::apiserver
