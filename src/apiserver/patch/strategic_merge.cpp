#include "apiserver/patch/strategic_merge.h"

#include "base/json_canonical.h"
#include "model/go_words.h"

namespace berth::apiserver::patch {
namespace {

constexpr std::string_view kPatch = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kElementOrder = "$setElementOrder/";
constexpr std::string_view kDeletePrimitives = "$deleteFromPrimitiveList/";

bool is_directive(std::string_view key) {
  return key == kPatch || key == kRetainKeys || key.starts_with(kElementOrder) || key.starts_with(kDeletePrimitives);
}

/// A value that is new to the target: without nulls, directives and deletions.
json::Value cleaned(const json::Value& value) {
  if (const auto* object = value.if_object()) {
    json::Object out;
    for (const auto& [key, member] : *object)
      if (!member.is_null() && !is_directive(key)) out[key] = cleaned(member);
    return out;
  }
  if (const auto* list = value.if_array()) {
    json::Array out;
    for (const auto& element : *list) {
      const auto* object = element.if_object();
      if (object != nullptr && object->contains(kPatch) && (json::get_string(element, {kPatch}) == "delete" || object->size() == 1))
        continue;
      out.push_back(cleaned(element));
    }
    return out;
  }
  return value;
}

/// A list that replaces another: its elements stay what they are, only directives say nothing there.
json::Value without_directives(const json::Value& value) {
  if (const auto* object = value.if_object()) {
    json::Object out;
    for (const auto& [key, member] : *object)
      if (!is_directive(key)) out[key] = without_directives(member);
    return out;
  }
  if (const auto* list = value.if_array()) {
    json::Array out;
    for (const auto& element : *list) out.push_back(without_directives(element));
    return out;
  }
  return value;
}

// What is no patch is the client's mistake; what cannot be merged is told as the server's (handlers/patch.go).
std::unexpected<model::ApiStatus> malformed(std::string_view why) { return std::unexpected(model::bad_request(why)); }
std::unexpected<model::ApiStatus> unmergeable(std::string why, model::ApiStatus status = {}) {
  status.message = std::move(why);
  return std::unexpected(std::move(status));
}

std::unexpected<model::ApiStatus> unknown_directive(const json::Value& directive, const json::Value& map) {
  return unmergeable(fmt::format("unknown patch type: {} in map: {}", model::go_value(directive), model::go_value(map)));
}

std::unexpected<model::ApiStatus> no_merge_key(const json::Value& map, std::string_view key) {
  return unmergeable(fmt::format("map: {} does not contain declared merge key: {}", model::go_value(map), key));
}

/// Lists of one kind of values only.
model::ApiResult<void> check_elements(const json::Array& target, const json::Array& patch) {
  const json::Value* first = nullptr;
  for (const auto* list : {&target, &patch}) {
    for (const auto& element : *list) {
      if (first == nullptr) first = &element;
      if (first->is_array()) return unmergeable("lists of lists are not supported", model::unprocessable());
      if (model::go_json_kind(element) != model::go_json_kind(*first))
        return unmergeable(fmt::format("list element types are not identical: [{} {}]", model::go_value(target), model::go_value(patch)));
    }
  }
  return {};
}

model::ApiResult<void> merge_object(const Shape& shape, json::Object& target, const json::Object& patch);

model::ApiResult<void> retain_keys(json::Object& target, const json::Object& patch, const json::Value& keys) {
  const auto* list = keys.if_array();
  if (list == nullptr) return malformed("invalid patch format of retainKeys");
  std::set<std::string_view> kept;
  for (const auto& key : *list) {
    if (!key.is_string()) return malformed("invalid patch format of retainKeys");
    kept.insert(json::as_view(key));
  }
  for (const auto& [key, value] : patch)
    if (!value.is_null() && !is_directive(key) && !kept.contains(key)) return malformed("invalid patch format of retainKeys");
  std::vector<std::string> dropped;
  for (const auto& [key, value] : target)
    if (!kept.contains(key)) dropped.emplace_back(key);
  for (const auto& key : dropped) target.erase(key);
  return {};
}

/// What tells an element of the list from the others: its merge key, or all of it where there is none. Nothing when the key is missing.
std::optional<std::string> identity_of(const Shape& list, const json::Value& element) {
  const auto key = list.merge_key();
  const auto* value = key.empty() ? &element : json::find(element, key);
  if (value == nullptr) return std::nullopt;
  return json::canonical_text(*value);
}

/// The first place of each identity.
std::unordered_map<std::string, std::size_t> places_of(const Shape& list, const json::Array& elements) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (auto identity = identity_of(list, elements[i])) places.emplace(std::move(*identity), i);
  return places;
}

template <typename Gone>
void erase_elements(json::Array& elements, const Gone& is_gone) {
  elements.erase(std::remove_if(elements.begin(), elements.end(), is_gone), elements.end());
}

/// {"$patch": "delete"} and {"$patch": "replace"} in a list; true when the list's old content goes.
model::ApiResult<bool> apply_element_directives(const Shape& list, json::Array& target, const json::Array& patch) {
  bool replaces = false;
  std::unordered_set<std::string> gone;
  for (const auto& element : patch) {
    const auto* directive = json::find(element, kPatch);
    if (directive == nullptr) continue;
    const auto word = directive->is_string() ? json::as_view(*directive) : std::string_view();
    if (word == "merge") return unmergeable("merging lists cannot yet be specified in the patch");
    if (word != "delete" && word != "replace") return unknown_directive(*directive, element);
    replaces = replaces || word == "replace";
    if (word != "delete") continue;
    auto identity = identity_of(list, element);
    if (!identity) return no_merge_key(element, list.merge_key());
    gone.insert(std::move(*identity));
  }
  if (replaces) {
    target.clear();  // A word on the whole list: its fellow elements are the new content.
  } else if (!gone.empty()) {
    // Merge keys need not be unique (two protocols on one port): all of them go.
    erase_elements(target, [&](const json::Value& element) {
      const auto identity = identity_of(list, element);
      return identity && gone.contains(*identity);
    });
  }
  return replaces;
}

model::ApiResult<void> merge_elements(const Shape& list, json::Array& target, const json::Array& patch) {
  const auto key = list.merge_key();
  if (key.empty()) {
    auto places = places_of(list, target);
    for (const auto& element : patch)
      if (places.emplace(json::canonical_text(element), target.size()).second) target.push_back(element);
    return {};
  }
  const auto replaces = apply_element_directives(list, target, patch);
  if (!replaces) return std::unexpected(replaces.error());
  auto places = places_of(list, target);
  const auto element_shape = list.element();
  for (const auto& element : patch) {
    if (json::find(element, kPatch) != nullptr) continue;
    if (*replaces) {
      target.push_back(cleaned(element));
      continue;
    }
    auto identity = identity_of(list, element);
    if (!identity) return no_merge_key(element, key);
    if (const auto found = places.find(*identity); found != places.end()) {
      if (auto merged = merge_object(element_shape, target[found->second].get_object(), element.get_object()); !merged) return merged;
    } else {
      places.emplace(std::move(*identity), target.size());
      target.push_back(cleaned(element));
    }
  }
  return {};
}

/// Brings the elements that `order` names into its order; the others keep their place relative to those around them on the server.
void order_elements(const Shape& list, json::Array& target, const json::Array& order, const json::Array& before) {
  const auto places = places_of(list, before);
  struct Placed {
    json::Value element;
    std::size_t before;  ///< Its place on the server; the list's length when it was not there.
  };
  std::unordered_map<std::string, std::vector<Placed>> named;
  for (const auto& wanted : order)
    if (auto identity = identity_of(list, wanted)) named.try_emplace(std::move(*identity));
  std::vector<Placed> ordered, others;
  for (auto& element : target) {
    if (element.is_null()) continue;
    const auto identity = identity_of(list, element);
    const auto place = identity ? places.find(*identity) : places.end();
    Placed placed{std::move(element), place == places.end() ? before.size() : place->second};
    const auto found = identity ? named.find(*identity) : named.end();
    (found == named.end() ? others : found->second).push_back(std::move(placed));
  }
  for (const auto& wanted : order) {
    const auto identity = identity_of(list, wanted);
    if (!identity) continue;
    for (auto& placed : named[*identity]) ordered.push_back(std::move(placed));
    named[*identity].clear();
  }
  json::Array result;
  result.reserve(ordered.size() + others.size());
  std::size_t i = 0, j = 0;
  while (i < ordered.size() || j < others.size()) {
    bool take_other = i == ordered.size();
    if (!take_other && j < others.size()) take_other = ordered[i].before < before.size() && others[j].before < ordered[i].before;
    result.push_back(std::move((take_other ? others[j++] : ordered[i++]).element));
  }
  target = std::move(result);
}

/// Elements that the patch holds must stand in `order`, in its order.
model::ApiResult<void> check_order(const Shape& list, const json::Array& patch, const json::Array& order) {
  if (patch.empty() || order.empty()) return {};
  const auto key = list.merge_key();
  std::size_t at = 0;
  for (const auto& element : patch) {
    if (!key.empty() && json::find(element, kPatch) != nullptr) continue;
    const auto* wanted = key.empty() ? &element : json::find(element, key);
    if (wanted == nullptr) return no_merge_key(element, key);
    const auto is_wanted = [&](const json::Value& one) {
      const auto* named = key.empty() ? &one : json::find(one, key);
      return named != nullptr && json::equal(*named, *wanted);
    };
    while (at < order.size() && !is_wanted(order[at])) ++at;
    if (at == order.size())
      return unmergeable(fmt::format("The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n", model::go_value(patch),
                                     model::go_value(order)));
    ++at;
  }
  return {};
}

/// What the patch names comes in its order and first, unless the server's list says otherwise (strategicpatch.normalizeElementOrder):
/// a container that is new stands before those that were there.
model::ApiResult<void> merge_list(const Shape& list, json::Value& target, const json::Array& patch, const json::Value* order) {
  const json::Array before = target.get_array();
  if (auto alike = check_elements(before, patch); !alike) return alike;
  const bool has_order = order != nullptr && order->is_array();
  if (has_order)
    if (auto fits = check_order(list, patch, order->get_array()); !fits) return fits;
  const bool replaces = std::ranges::any_of(patch, [](const auto& e) { return json::get_string(e, {kPatch}) == "replace"; });
  if (auto merged = merge_elements(list, target.get_array(), patch); !merged) return merged;
  if (has_order) {
    order_elements(list, target.get_array(), order->get_array(), before);
  } else if (!replaces) {
    order_elements(list, target.get_array(), patch, before);
  }
  return {};
}

model::ApiResult<void> merge_object(const Shape& shape, json::Object& target, const json::Object& patch) {
  if (const auto* directive = patch.if_contains(kPatch)) {
    const auto word = directive->is_string() ? json::as_view(*directive) : std::string_view{};
    if (word == "delete") {
      target.clear();
      return {};
    }
    if (word == "replace") {
      target.clear();
      for (const auto& [key, value] : patch)
        if (!is_directive(key) && !value.is_null()) target[key] = cleaned(value);
      return {};
    }
    return unknown_directive(*directive, patch);
  }
  if (const auto* keys = patch.if_contains(kRetainKeys))
    if (auto retained = retain_keys(target, patch, *keys); !retained) return retained;

  for (const auto& [raw_key, value] : patch) {
    const std::string_view key(raw_key.data(), raw_key.size());
    if (key.starts_with(kDeletePrimitives)) {
      auto* list = target.if_contains(key.substr(kDeletePrimitives.size()));
      if (!value.is_array()) return malformed("invalid patch format of primitive list");
      if (list == nullptr || !list->is_array()) continue;
      std::unordered_set<std::string> gone;
      for (const auto& element : value.get_array()) gone.insert(json::canonical_text(element));
      erase_elements(list->get_array(), [&](const json::Value& element) { return gone.contains(json::canonical_text(element)); });
      continue;
    }
    if (key.starts_with(kElementOrder)) {
      // With a change of the list itself the order is applied there.
      const auto name = key.substr(kElementOrder.size());
      if (!value.is_array()) return malformed("invalid patch format of setElementOrder list");
      auto* list = target.if_contains(name);
      if (patch.contains(name) || list == nullptr || !list->is_array()) continue;
      const json::Array before = list->get_array();
      order_elements(shape.member(name), list->get_array(), value.get_array(), before);
      continue;
    }
    if (is_directive(key)) continue;
    if (value.is_null()) {
      target.erase(key);
      continue;
    }
    auto* present = target.if_contains(key);
    if (present == nullptr || present->kind() != value.kind()) {
      target[key] = cleaned(value);
      continue;
    }
    const auto below = shape.member(key);
    if (below.is_replaced()) {
      *present = without_directives(value);
    } else if (auto* object = present->if_object()) {
      if (auto merged = merge_object(below, *object, value.get_object()); !merged) return merged;
    } else if (present->is_array() && below.merges()) {
      const auto* order = patch.if_contains(std::string(kElementOrder) + std::string(key));
      if (auto merged = merge_list(below, *present, value.get_array(), order); !merged) return merged;
    } else {
      *present = without_directives(value);
    }
  }
  return {};
}

}  // namespace

model::ApiResult<void> apply_strategic_merge(const Shape& shape, json::Value& target, const json::Value& patch) {
  if (!patch.is_object()) return unmergeable("a strategic merge patch must be an object");
  if (!target.is_object()) target = json::Object();
  return merge_object(shape, target.get_object(), patch.get_object());
}

}  // namespace berth::apiserver::patch
