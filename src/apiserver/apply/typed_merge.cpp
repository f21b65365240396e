#include "apiserver/apply/typed_merge.h"

#include "base/json_quote.h"

namespace berth::apiserver::apply {
namespace {

using List = Shape::List;

/// How the elements of a list are named in paths; nullopt when the list has to be taken whole.
std::optional<std::vector<std::string>> element_names(const Shape& shape, const json::Array& list) {
  std::vector<std::string> names;
  names.reserve(list.size());
  if (!shape.is_list() || shape.list() == List::kAtomic) return std::nullopt;
  for (const auto& element : list) {
    if (shape.list() == List::kSet) {
      names.push_back("v:" + json::serialize(element));
    } else {
      auto name = key_element(shape, element);
      if (!name) return std::nullopt;
      names.push_back(std::move(*name));
    }
  }
  return names;
}

bool is_granular_object(const Shape& shape, const json::Value& value) { return value.is_object() && !shape.is_atomic_object(); }

bool is_owned_whole(const Shape& shape, const json::Value& value) {
  return !is_granular_object(shape, value) && !(value.is_array() && shape.is_list() && shape.list() != List::kAtomic);
}

const json::Value* present(const json::Value* value) { return value != nullptr && !value->is_null() ? value : nullptr; }

/// Empty containers stand for themselves, so that {} and absence stay different.
bool is_empty_container(const json::Value* value) {
  return value == nullptr || (value->is_object() && value->get_object().empty()) || (value->is_array() && value->get_array().empty());
}

/// What Go writes of a member that nobody set.
bool is_zero(const json::Value& value) {
  if (value.is_null()) return true;
  if (value.is_object()) return value.get_object().empty();
  if (value.is_string()) return json::as_view(value).empty();
  if (value.is_bool()) return !value.get_bool();
  return value.is_int64() && value.get_int64() == 0;
}

void compare_leaf(const json::Value* before, const json::Value* after, FieldSet& changed, FieldSet& removed) {
  if (before == nullptr) {
    changed.set_member();
  } else if (after == nullptr) {
    removed.set_member();
  } else if (!json::equal(*before, *after)) {
    changed.set_member();
  }
}

void compare_at(const Shape& shape, const json::Value* before, const json::Value* after, bool always_present, FieldSet& changed,
                FieldSet& removed);

/// What differs below one value, gathered in any order.
struct Difference {
  FieldSet::Children changed, removed;
};

/// `element` names the member; asked only where something differs.
template <typename Element>
void compare_member(const Shape& shape, const Element& element, const json::Value* before, const json::Value* after, bool always_present,
                    Difference& out) {
  // A null in place of what is owned as one is written like any other value.
  if (present(before) != nullptr && after != nullptr && after->is_null() && is_owned_whole(shape, *before) &&
      !(always_present && is_zero(*before))) {
    out.changed.emplace_back(element(), FieldSet::of(true, {}));
    return;
  }
  FieldSet changed_below, removed_below;
  compare_at(shape, present(before), present(after), always_present, changed_below, removed_below);
  // A null that was written was there: only what is in it now is new.
  if (before != nullptr && before->is_null() && !changed_below.children().empty()) changed_below.set_member(false);
  if (!changed_below.empty()) out.changed.emplace_back(element(), std::move(changed_below));
  if (!removed_below.empty()) out.removed.emplace_back(element(), std::move(removed_below));
}

/// `always_present`: of the object itself. What is always there in an object is so only where that object was there as well.
/// `left_out`: a member that is not looked at; empty: none.
Difference compare_objects(const Shape& shape, const json::Object* before, const json::Object* after, bool always_present,
                           std::string_view left_out = {}) {
  static const json::Object kNone;
  Difference out;
  const auto& old_members = before ? *before : kNone;
  const auto& new_members = after ? *after : kNone;
  const bool was_there = before != nullptr || always_present;
  for (const auto& [key, value] : new_members) {
    if (!left_out.empty() && key == left_out) continue;
    const auto* old = old_members.if_contains(key);
    const bool was_written = was_there && shape.is_always_present(key);
    // What is written is new, nulls included.
    if (value.is_null() && old == nullptr && !was_written) out.changed.emplace_back(field_element(key), FieldSet::of(true, {}));
    compare_member(
        shape.member(key), [&] { return field_element(key); }, old, &value, was_written, out);
  }
  for (const auto& [key, value] : old_members) {
    if (new_members.contains(key) || (!left_out.empty() && key == left_out)) continue;
    if (value.is_null()) out.removed.emplace_back(field_element(key), FieldSet::of(true, {}));
    compare_member(
        shape.member(key), [&] { return field_element(key); }, &value, nullptr,
        (after != nullptr || always_present) && shape.is_always_present(key), out);
  }
  return out;
}

/// Nothing when the lists have to be taken whole.
std::optional<Difference> compare_lists(const Shape& shape, const json::Array* before, const json::Array* after) {
  static const json::Array kNone;
  const auto& old_items = before ? *before : kNone;
  const auto& new_items = after ? *after : kNone;
  const auto old_names = element_names(shape, old_items);
  const auto new_names = element_names(shape, new_items);
  if (!old_names || !new_names) return std::nullopt;
  std::map<std::string_view, const json::Value*> old_by_name;
  for (std::size_t i = 0; i < old_items.size(); ++i) old_by_name[(*old_names)[i]] = &old_items[i];
  Difference out;
  const auto below = shape.element();
  for (std::size_t i = 0; i < new_items.size(); ++i) {
    const auto found = old_by_name.find((*new_names)[i]);
    compare_member(
        below, [&] { return (*new_names)[i]; }, found == old_by_name.end() ? nullptr : found->second, &new_items[i], false, out);
    if (found != old_by_name.end()) old_by_name.erase(found);
  }
  for (const auto& [name, item] : old_by_name)
    compare_member(
        below, [&, of = name] { return std::string(of); }, item, nullptr, false, out);
  return out;
}

void compare_at(const Shape& shape, const json::Value* before, const json::Value* after, bool always_present, FieldSet& changed,
                FieldSet& removed) {
  if (before == nullptr && after == nullptr) return;
  // Most of an object stays as it is in most updates: no names are made for that. Objects are looked through once, in what follows: a
  // nesting as deep as a body allows would be compared again at every level.
  if (before != nullptr && after != nullptr && !after->is_object() && json::equal(*before, *after)) return;
  // A zero that is always written is there before anybody writes it.
  if (always_present && before == nullptr && is_zero(*after)) return;
  if (always_present && after == nullptr && is_zero(*before)) return;
  const auto& sample = after ? *after : *before;
  if (before != nullptr && after != nullptr && before->kind() != after->kind()) return compare_leaf(before, after, changed, removed);
  if (is_owned_whole(shape, sample) || (is_empty_container(before) && is_empty_container(after)))
    return compare_leaf(before, after, changed, removed);
  auto difference = sample.is_object()
                        ? std::optional(compare_objects(shape, before ? &before->get_object() : nullptr,
                                                        after ? &after->get_object() : nullptr, always_present))
                        : compare_lists(shape, before ? &before->get_array() : nullptr, after ? &after->get_array() : nullptr);
  if (!difference) return compare_leaf(before, after, changed, removed);
  changed = FieldSet::of(before == nullptr && !always_present, std::move(difference->changed));
  removed = FieldSet::of(after == nullptr && !always_present, std::move(difference->removed));
}

FieldSet collect(const Shape& shape, const json::Value& value) {
  FieldSet::Children children;
  if (is_granular_object(shape, value)) {
    for (const auto& [key, member] : value.get_object()) {
      const auto inner = shape.member(key);
      auto below = collect(inner, member);
      // A map's key is owned by itself, and so is what a struct is not said to have; a struct's field only where it ends.
      const bool empty_object = member.is_object() && member.get_object().empty();
      const bool is_free = shape.is_struct() && !inner.is_known() && key != "metadata";
      if (shape.is_map() || shape.is_untyped() || is_free || member.is_null() || empty_object) below.set_member();
      if (!below.empty()) children.emplace_back(field_element(key), std::move(below));
    }
    return FieldSet::of(false, std::move(children));
  }
  const auto names = value.is_array() ? element_names(shape, value.get_array()) : std::nullopt;
  if (!names) return FieldSet::of(true, {});
  const auto element_shape = shape.element();
  for (std::size_t i = 0; i < names->size(); ++i) {
    auto below = shape.list() == List::kMap ? collect(element_shape, value.get_array()[i]) : FieldSet();
    below.set_member();
    children.emplace_back((*names)[i], std::move(below));
  }
  return FieldSet::of(false, std::move(children));
}

void merge_lists(const Shape& shape, json::Array& live, const json::Array& config, const std::vector<std::string>& live_names,
                 const std::vector<std::string>& config_names) {
  std::map<std::string_view, std::size_t> live_index;
  for (std::size_t i = 0; i < live_names.size(); ++i) live_index.emplace(live_names[i], i);
  const std::set<std::string_view> in_config(config_names.begin(), config_names.end());
  // What both name, in the applied order: that order counts. `next` is the first of it that is not placed.
  std::vector<std::string_view> shared;
  for (const auto& name : config_names)
    if (live_index.contains(name)) shared.push_back(name);
  std::size_t l = 0, c = 0, next = 0;
  const auto below = shape.element();
  std::set<std::string_view> placed;
  json::Array merged;
  const auto place = [&] {
    const std::string_view name = config_names[c];
    if (const auto found = live_index.find(name); found == live_index.end()) {
      merged.push_back(config[c]);
    } else {
      json::Value element = live[found->second];
      merge(below, element, config[c]);
      merged.push_back(std::move(element));
    }
    placed.insert(name);
    if (next < shared.size() && shared[next] == name) ++next;
    ++c;
  };
  while (l < live.size() || c < config.size()) {
    if (l < live.size() && c < config.size()) {
      if (live_names[l] == config_names[c]) {
        place();
        ++l;
        continue;
      }
      // It comes later in the applied order.
      if (in_config.contains(live_names[l]) && next < shared.size() && shared[next] != live_names[l]) {
        ++l;
        continue;
      }
    }
    if (l < live.size()) {
      if (!in_config.contains(live_names[l])) {
        merged.push_back(live[l++]);
        continue;
      }
      if (placed.contains(live_names[l])) ++l;
    }
    if (c < config.size()) place();
  }
  live = std::move(merged);
}

}  // namespace

std::optional<std::string> key_element(const Shape& list, const json::Value& element) {
  const auto* object = element.if_object();
  if (object == nullptr || list.list_keys().empty()) return std::nullopt;
  std::vector<std::string_view> keys(list.list_keys().begin(), list.list_keys().end());
  std::sort(keys.begin(), keys.end());
  std::string out = "k:{";
  for (const auto key : keys) {
    const auto* value = object->if_contains(key);
    if (value == nullptr) value = list.list_key_default(key);
    // A key may be absent (a topology constraint's, a port's host address); validation says where it may not.
    if (value == nullptr) continue;
    if (out.size() > 3) out += ',';
    json::quote_to(out, key);
    out += ':';
    json::serialize_to(out, *value);
  }
  return out + "}";
}

FieldSet set_of(const Shape& shape, const json::Value& value) { return collect(shape, value); }

Comparison compare(const Shape& shape, const json::Value* before, const json::Value& after, std::string_view left_out) {
  Comparison out;
  const bool are_objects = (before == nullptr || before->is_object()) && is_granular_object(shape, after);
  if (!left_out.empty() && are_objects) {
    auto difference = compare_objects(shape, before ? &before->get_object() : nullptr, &after.get_object(), true, left_out);
    out.changed = FieldSet::of(false, std::move(difference.changed));
    out.removed = FieldSet::of(false, std::move(difference.removed));
    return out;
  }
  compare_at(shape, before, &after, true, out.changed, out.removed);
  return out;
}

void merge(const Shape& shape, json::Value& live, const json::Value& config) {
  if (is_granular_object(shape, config) && live.is_object()) {
    auto& members = live.get_object();
    for (const auto& [key, value] : config.get_object()) {
      if (value.is_null() && !shape.keeps_nulls()) {
        members.erase(key);
      } else if (auto* present_value = members.if_contains(key)) {
        merge(shape.member(key), *present_value, value);
      } else {
        members[key] = value;
      }
    }
    return;
  }
  if (config.is_array() && live.is_array()) {
    const auto live_names = element_names(shape, live.get_array());
    const auto config_names = element_names(shape, config.get_array());
    if (live_names && config_names) return merge_lists(shape, live.get_array(), config.get_array(), *live_names, *config_names);
  }
  live = config;
}

void prune(const Shape& shape, json::Value& value, const FieldSet& last, const FieldSet& owned) {
  if (auto* object = value.if_object()) {
    for (const auto& [element, below] : last.children()) {
      if (!element.starts_with("f:")) continue;
      const auto key = std::string_view(element).substr(2);
      auto* member = object->if_contains(key);
      if (member == nullptr) continue;
      const auto* kept = owned.find(element);
      if (kept == nullptr) {
        object->erase(key);
      } else if (!below.children().empty()) {
        prune(shape.member(key), *member, below, *kept);
      }
    }
    return;
  }
  auto* list = value.if_array();
  const auto names = list ? element_names(shape, *list) : std::nullopt;
  if (!names) return;
  const auto element_shape = shape.element();
  json::Array left;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const auto* below = last.find((*names)[i]);
    if (below != nullptr) {
      const auto* kept = owned.find((*names)[i]);
      if (kept == nullptr) continue;
      prune(element_shape, (*list)[i], *below, *kept);
    }
    left.push_back(std::move((*list)[i]));
  }
  *list = std::move(left);
}

}  // namespace berth::apiserver::apply
