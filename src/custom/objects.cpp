#include "custom/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/go/strings.h"
#include "base/json_canonical.h"
#include "base/json_size.h"
#include "custom/metadata.h"
#include "model/unknown_fields.h"
#include "model/validation/validation.h"

namespace berth::custom {
namespace {

using json::Value;
using Type = model::FieldError::Type;

bool is_meta(std::string_view key) { return key == "apiVersion" || key == "kind" || key == "metadata"; }

/// A step of a path on the stack: rendered only for what is pruned.
struct Place {
  const Place* parent = nullptr;
  std::string_view key;
  std::size_t index = 0;
  bool is_index = false;
};

void render(const Place* place, std::string& out) {
  if (place == nullptr) return;
  render(place->parent, out);
  if (place->is_index) {
    fmt::format_to(std::back_inserter(out), "[{}]", place->index);
  } else {
    if (!out.empty()) out += '.';
    out += place->key;
  }
}

class Pruner {
 public:
  explicit Pruner(std::vector<std::string>* unknown) : unknown_(unknown) {}

  void prune(Value& value, const Schema* schema, const Place* at, bool is_resource) {
    if (schema != nullptr && schema->preserves_unknown) return skip(value, *schema, at, is_resource);
    if (auto* list = value.if_array()) {
      std::size_t i = 0;
      const Schema* items = schema == nullptr ? nullptr : schema->items.get();
      for (auto& element : *list) {
        const Place here{at, {}, i++, true};
        prune(element, items, &here, items != nullptr && items->is_embedded);
      }
      return;
    }
    auto* object = value.if_object();
    if (object == nullptr) return;
    bool loses = false;
    for (auto& [key, member] : *object) {
      const std::string_view name(key.data(), key.size());
      const Place here{at, name};
      if (keeps(schema, name, is_resource)) {
        if (is_resource && is_meta(name)) continue;
        const auto* below = schema->member(name);
        prune(member, below, &here, below != nullptr && below->is_embedded);
      } else {
        loses = true;
        if (at != nullptr || !is_meta(name)) report(here);
      }
    }
    if (!loses) return;
    json::Object kept(object->storage());
    for (auto& [key, member] : *object)
      if (keeps(schema, {key.data(), key.size()}, is_resource)) kept.emplace(key, std::move(member));
    *object = std::move(kept);
  }

 private:
  static bool keeps(const Schema* schema, std::string_view name, bool is_resource) {
    if (schema == nullptr) return false;
    return (is_resource && is_meta(name)) || schema->property(name) != nullptr || schema->additional_allowed.has_value();
  }

  /// Unknown fields stay here, and are pruned again where a schema begins.
  void skip(Value& value, const Schema& schema, const Place* at, bool is_resource) {
    if (auto* list = value.if_array()) {
      if (schema.items == nullptr) return;
      std::size_t i = 0;
      for (auto& element : *list) {
        const Place here{at, {}, i++, true};
        skip(element, *schema.items, &here, schema.items->is_embedded);
      }
      return;
    }
    auto* object = value.if_object();
    if (object == nullptr) return;
    for (auto& [key, member] : *object) {
      const std::string_view name(key.data(), key.size());
      if (is_resource && is_meta(name)) continue;
      const Place here{at, name};
      const auto* below = schema.property(name);
      if (below == nullptr && !schema.additional_allowed) continue;
      if (below == nullptr) below = schema.additional.get();
      prune(member, below, &here, below != nullptr && below->is_embedded);
    }
  }

  void report(const Place& place) {
    if (unknown_ == nullptr || unknown_->size() >= model::kMaxStrictFindings || bytes_ > model::kMaxStrictFindingBytes) return;
    std::string path;
    render(&place, path);
    bytes_ += path.size();
    unknown_->push_back(std::move(path));
  }

  std::vector<std::string>* unknown_;
  std::size_t bytes_ = 0;
};

/// The key of a list element that its schema's list type compares by; nullopt where the element is no object.
json::Value list_key(const Value& element, const Schema& schema) {
  json::Object key;
  if (const auto* object = element.if_object()) {
    for (const auto& name : schema.list_map_keys)
      if (const auto* value = object->if_contains(name)) key[name] = *value;
  }
  return key;
}

/// Indices of elements that are there for the second time.
std::vector<std::size_t> repeated(const std::vector<std::string>& texts) {
  std::unordered_map<std::string_view, int> seen;
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (++seen[texts[i]] == 2) out.push_back(i);
  return out;
}

void check_list(const json::Array& list, const Schema& schema, const std::string& path, model::FieldErrors& errors) {
  const bool is_set = schema.list_type == "set", is_map = schema.list_type == "map";
  if (!is_set && !is_map) return;
  if (is_map) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!list[i].is_object() && !list[i].is_null()) {
        errors.push_back({Type::kInvalid, index_path(path, i), shown(list[i]), "must be an object for an array of list-type map"});
        return;
      }
  }
  if (list.size() <= 1) return;
  std::vector<Value> keys;
  std::vector<std::string> texts;
  for (const auto& element : list) {
    keys.push_back(is_map ? list_key(element, schema) : element);
    texts.push_back(json::canonical_text(keys.back()));
  }
  for (const auto i : repeated(texts)) errors.push_back({Type::kDuplicate, index_path(path, i), shown(keys[i]), ""});
}

void check_lists_below(const Value& value, const Schema& schema, const std::string& path, model::FieldErrors& errors);

void check_members(const json::Object& object, const Schema& schema, const std::string& path, model::FieldErrors& errors) {
  for (const auto& [key, member] : object) {
    if (!member.is_object() && !member.is_array()) continue;
    const std::string_view name(key.data(), key.size());
    if (schema.additional != nullptr) check_lists_below(member, *schema.additional, key_path(path, name), errors);
    if (const auto* below = schema.property(name)) check_lists_below(member, *below, child_path(path, name), errors);
  }
}

void check_lists_below(const Value& value, const Schema& schema, const std::string& path, model::FieldErrors& errors) {
  if (const auto* list = value.if_array()) {
    check_list(*list, schema, path, errors);
    if (schema.items == nullptr) return;
    for (std::size_t i = 0; i < list->size(); ++i)
      if ((*list)[i].is_object() || (*list)[i].is_array()) check_lists_below((*list)[i], *schema.items, index_path(path, i), errors);
  } else if (const auto* object = value.if_object()) {
    check_members(*object, schema, path, errors);
  }
}

bool is_forbidden_null(const Value& value, const Schema* schema) { return value.is_null() && schema != nullptr && !schema->nullable; }

}  // namespace

std::string child_path(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}
std::string key_path(const std::string& parent, std::string_view key) { return fmt::format("{}[{}]", parent, key); }
std::string index_path(const std::string& parent, std::size_t index) { return fmt::format("{}[{}]", parent, index); }

void prune(Value& object, const Schema& schema, bool is_root, std::vector<std::string>* unknown) {
  Pruner pruner(unknown);
  pruner.prune(object, &schema, nullptr, is_root || schema.is_embedded);
  if (unknown != nullptr) std::ranges::sort(*unknown);
}

void drop_nulls(Value& value, const Schema& schema) {
  if (auto* object = value.if_object()) {
    bool loses = false;
    const auto goes = [](const Value& member, const Schema* below) { return is_forbidden_null(member, below) && !below->default_value; };
    for (auto& [key, member] : *object) {
      const auto* below = schema.member({key.data(), key.size()});
      if (below == nullptr) continue;
      if (goes(member, below)) {
        loses = true;
      } else {
        drop_nulls(member, *below);
      }
    }
    if (!loses) return;
    json::Object kept(object->storage());
    for (auto& [key, member] : *object)
      if (!goes(member, schema.member({key.data(), key.size()}))) kept.emplace(key, std::move(member));
    *object = std::move(kept);
  } else if (auto* list = value.if_array(); list != nullptr && schema.items != nullptr) {
    for (auto& element : *list) drop_nulls(element, *schema.items);
  }
}

namespace {

/// A megabyte of `{}` can mean a gigabyte of defaults: they are counted while they are put.
class Defaulter {
 public:
  void fill(Value& value, const Schema& schema) {
    if (!schema.has_defaults || is_over()) return;
    if (auto* object = value.if_object()) return fill_object(*object, schema);
    auto* list = value.if_array();
    if (list == nullptr || schema.items == nullptr) return;
    for (auto& element : *list) {
      replace_null(element, *schema.items);
      fill(element, *schema.items);
      if (is_over()) return;
    }
  }

 private:
  [[nodiscard]] bool is_over() const { return bytes_ > kMostDefaultBytes; }

  void fill_object(json::Object& object, const Schema& schema) {
    for (const auto name : schema.defaulted) {
      if (is_over()) return;
      const auto& below = *schema.property(name);
      if (auto* present = object.if_contains(name))
        replace_null(*present, below);
      else
        object.emplace(name, take(*below.default_value, name.size() + 4));
    }
    for (auto& [key, member] : object) {
      if (is_over()) return;
      const std::string_view name(key.data(), key.size());
      const auto* below = schema.member(name);
      if (below == nullptr) continue;
      replace_null(member, *below);
      fill(member, *below);
    }
  }

  void replace_null(Value& value, const Schema& schema) {
    if (is_forbidden_null(value, &schema) && schema.default_value) value = take(*schema.default_value, 0);
  }

  const Value& take(const Value& value, std::size_t name_bytes) {
    bytes_ += json::text_size(value) + name_bytes;
    return value;
  }

  std::size_t bytes_ = 0;
};

}  // namespace

void set_defaults(Value& value, const Schema& schema) { Defaulter().fill(value, schema); }

void check_lists(const Value& object, const Schema& schema, model::FieldErrors& errors) {
  if (const auto* members = object.if_object()) check_members(*members, schema, "", errors);
}

namespace {

std::string kind_problem(std::string_view kind) {
  auto why = model::validation::check_dns1035_label(go::to_lower(kind));
  std::ranges::replace(why, '\n', ',');
  return why;
}

void check_resource(const json::Object& object, const std::string& path, model::FieldErrors& errors) {
  for (const std::string_view field : {"apiVersion", "kind"}) {
    const auto* value = object.if_contains(field);
    const auto at = child_path(path, field);
    if (value == nullptr) {
      errors.push_back({Type::kRequired, at, "", ""});
    } else if (!value->is_string()) {
      errors.push_back({Type::kInvalid, at, shown(*value), "must be a string"});
    } else if (value->get_string().empty()) {
      errors.push_back({Type::kInvalid, at, "\"\"", "must not be empty"});
    } else if (field == "apiVersion" && std::ranges::count(value->get_string(), '/') > 1) {
      errors.push_back({Type::kInvalid, at, shown(*value), fmt::format("unexpected GroupVersion string: {}", json::as_view(*value))});
    } else if (field == "kind") {
      if (const auto why = kind_problem(json::as_view(*value)); !why.empty())
        errors.push_back({Type::kInvalid, at, shown(*value), "may have mixed case, but should otherwise match: " + why});
    }
  }
  const auto* metadata = object.if_contains("metadata");
  if (metadata == nullptr) return;
  auto copy = *metadata;
  if (const auto wrong = decode_metadata(copy, nullptr)) {
    errors.push_back({Type::kInvalid, child_path(path, "metadata"), shown(*metadata), wrong->sentence()});
    return;
  }
  auto found = check_embedded_metadata(copy, child_path(path, "metadata"));
  std::ranges::move(found, std::back_inserter(errors));
}

}  // namespace

void check_embedded(const Value& value, const Schema& schema, bool is_root, const std::string& path, model::FieldErrors& errors) {
  if (const auto* object = value.if_object()) {
    if (is_root || schema.is_embedded) check_resource(*object, path, errors);
    for (const auto& [key, member] : *object) {
      if (!member.is_object() && !member.is_array()) continue;
      const std::string_view name(key.data(), key.size());
      if (const auto* below = schema.property(name)) {
        check_embedded(member, *below, false, child_path(path, name), errors);
      } else if (schema.additional != nullptr) {
        check_embedded(member, *schema.additional, false, key_path(path, name), errors);
      }
    }
  } else if (const auto* list = value.if_array(); list != nullptr && schema.items != nullptr) {
    for (std::size_t i = 0; i < list->size(); ++i) check_embedded((*list)[i], *schema.items, false, index_path(path, i), errors);
  }
}

namespace {

/// The members of metadata that can be read alone stay.
void drop_malformed(json::Object& resource, const Value& metadata) {
  const auto* members = metadata.if_object();
  if (members == nullptr) {
    resource.erase("metadata");
    return;
  }
  json::Object kept;
  for (const auto& [key, member] : *members) {
    Value alone = json::Object{{key, member}};
    if (!decode_metadata(alone, nullptr)) kept.emplace(key, member);
  }
  resource["metadata"] = std::move(kept);
}

}  // namespace

std::optional<model::FieldError> coerce_embedded(Value& value, const Schema& schema, const std::string& path, bool drops,
                                                 std::vector<std::string>* unknown, bool is_root) {
  if (auto* object = value.if_object()) {
    if (is_root || schema.is_embedded) {
      for (const std::string_view field : {"apiVersion", "kind"}) {
        const auto* member = object->if_contains(field);
        if (member == nullptr || member->is_string()) continue;
        if (!drops) return model::FieldError{Type::kInvalid, child_path(path, field), shown(*member), "must be a string"};
        object->erase(field);
      }
      if (auto* metadata = object->if_contains("metadata")) {
        if (drops && metadata->is_null()) *metadata = json::Object();
        const auto before = *metadata;
        std::vector<std::string> fields;
        const auto wrong = decode_metadata(*metadata, unknown == nullptr ? nullptr : &fields);
        if (wrong && !drops) return model::FieldError{Type::kInvalid, child_path(path, "metadata"), shown(before), wrong->sentence()};
        if (wrong) drop_malformed(*object, before);
        for (const auto& field : fields) unknown->push_back(fmt::format("{}.{}", child_path(path, "metadata"), field));
      }
    }
    for (auto& [key, member] : *object) {
      if (!member.is_object() && !member.is_array()) continue;
      const std::string_view name(key.data(), key.size());
      const bool is_named = schema.property(name) != nullptr;
      const auto* below = schema.member(name);
      if (below == nullptr) continue;
      if (auto error = coerce_embedded(member, *below, is_named ? child_path(path, name) : key_path(path, name), drops, unknown))
        return error;
    }
  } else if (auto* list = value.if_array(); list != nullptr && schema.items != nullptr) {
    for (std::size_t i = 0; i < list->size(); ++i)
      if (auto error = coerce_embedded((*list)[i], *schema.items, index_path(path, i), drops, unknown)) return error;
  }
  return std::nullopt;
}

}  // namespace berth::custom
