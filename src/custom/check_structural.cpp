// Whether a schema is structural (apiextensions-apiserver/pkg/apiserver/schema/validation.go, complete.go).
#include "custom/check_definition.h"
#include "custom/metadata.h"
#include "custom/objects.h"
#include "model/go_words.h"

namespace berth::custom {
namespace {

using Type = model::FieldError::Type;
enum class Level { kRoot, kItem, kField };

std::string property_path(const std::string& path, std::string_view name) { return fmt::format("{}.properties[{}]", path, name); }

bool is_only_type(const Schema& schema, std::string_view type) {
  return schema.type == type && schema.said == 0 && schema.properties.empty() && schema.items == nullptr && !schema.default_value;
}

/// anyOf: integer, string: how int-or-string is written.
bool is_int_or_string_choice(const Schema& schema) {
  return schema.any_of.size() == 2 && is_only_type(schema.any_of[0], "integer") && is_only_type(schema.any_of[1], "string");
}

/// What is said of a reference is that there must be none.
bool is_reference(const Schema& schema) { return std::ranges::find(schema.forbidden, "$ref") != schema.forbidden.end(); }

class Structural {
 public:
  explicit Structural(model::FieldErrors& errors) : errors_(errors) {}

  void node(const Schema& schema, Level level, const std::string& path) {
    if (schema.type == "array" && schema.items == nullptr && schema.item_list.empty())
      add(Type::kRequired, path + ".items", "", "must be specified");
    if (schema.items != nullptr) node(*schema.items, Level::kItem, path + ".items");
    for (const auto& [name, below] : schema.properties) node(below, Level::kField, property_path(path, name));
    if (schema.additional_allowed) {
      if (level == Level::kRoot) add(Type::kForbidden, path + ".additionalProperties", "", "must not be used at the root");
      if (schema.additional != nullptr) node(*schema.additional, Level::kField, path + ".additionalProperties");
    }
    extensions(schema, path);
    values(schema, is_int_or_string_choice(schema), !schema.all_of.empty() && is_int_or_string_choice(schema.all_of[0]), path);
    types(schema, level, path);
    metadata(schema, level, path);
    if (schema.is_embedded && !schema.preserves_unknown && schema.properties.empty())
      add(Type::kRequired, path + ".properties", "",
          "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields");
  }

  /// What value validations name has to be in the structure.
  void complete(const Schema& rule, const Schema* structure, const std::string& there, const std::string& here) {
    if (structure == nullptr) return add(Type::kRequired, there, "", fmt::format("because it is defined in {}", here));
    alternatives(rule, structure, there, here);
    if (rule.items != nullptr) complete(*rule.items, structure->items.get(), there + ".items", here + ".items");
    for (const auto& [name, below] : rule.properties)
      complete(below, structure->property(name), property_path(there, name), property_path(here, name));
  }
  void alternatives(const Schema& rule, const Schema* structure, const std::string& there, const std::string& here) {
    if (rule.negated != nullptr) complete(*rule.negated, structure, there, here + ".not");
    const auto each = [&](const std::vector<Schema>& list, std::string_view word) {
      for (std::size_t i = 0; i < list.size(); ++i) complete(list[i], structure, there, fmt::format("{}.{}[{}]", here, word, i));
    };
    each(rule.all_of, "allOf");
    each(rule.any_of, "anyOf");
    each(rule.one_of, "oneOf");
  }
  void inner_completeness(const Schema& schema, const std::string& path) { alternatives(schema, &schema, path, path); }

 private:
  void add(Type type, std::string field, std::string value, std::string detail) {
    errors_.push_back({type, std::move(field), std::move(value), std::move(detail)});
  }

  void extensions(const Schema& schema, const std::string& path) {
    if (schema.is_int_or_string && schema.preserves_unknown)
      add(Type::kInvalid, path + ".x-kubernetes-preserve-unknown-fields", "true", "must be false if x-kubernetes-int-or-string is true");
    if (schema.is_int_or_string && schema.is_embedded)
      add(Type::kInvalid, path + ".x-kubernetes-embedded-resource", "true", "must be false if x-kubernetes-int-or-string is true");
  }

  void types(const Schema& schema, Level level, const std::string& path) {
    if (schema.is_embedded && schema.type != "object") {
      if (schema.type.empty()) {
        add(Type::kRequired, path + ".type", "", "must be object if x-kubernetes-embedded-resource is true");
      } else {
        add(Type::kInvalid, path + ".type", model::go_quote(schema.type), "must be object if x-kubernetes-embedded-resource is true");
      }
    } else if (schema.type.empty() && !schema.is_int_or_string && !schema.preserves_unknown && !is_reference(schema)) {
      add(Type::kRequired, path + ".type", "",
          level == Level::kRoot   ? "must not be empty at the root"
          : level == Level::kItem ? "must not be empty for specified array items"
                                  : "must not be empty for specified object fields");
    }
    if (schema.is_embedded && schema.additional_allowed)
      add(Type::kForbidden, path + ".additionalProperties", "", "must not be used if x-kubernetes-embedded-resource is set");
    if (level == Level::kRoot && !schema.type.empty() && schema.type != "object")
      add(Type::kInvalid, path + ".type", model::go_quote(schema.type), "must be object at the root");
  }

  void metadata(const Schema& schema, Level level, const std::string& path) {
    const bool is_resource = level == Level::kRoot || schema.is_embedded;
    for (const std::string_view name : {"kind", "apiVersion"})
      if (const auto* one = schema.property(name); is_resource && one != nullptr && one->type != "string")
        add(Type::kInvalid, property_path(path, name) + ".type", model::go_quote(one->type), "must be string");
    const auto* meta = schema.property("metadata");
    if (meta == nullptr) return;
    const auto at = property_path(path, "metadata");
    if (is_resource && meta->type != "object") add(Type::kInvalid, at + ".type", model::go_quote(meta->type), "must be object");
    if (level != Level::kRoot) return;
    const bool names_only =
        std::ranges::all_of(meta->properties, [](const auto& one) { return one.first == "name" || one.first == "generateName"; });
    const bool is_plain = names_only && meta->said == 0 && meta->items == nullptr;
    if (!is_plain)
      add(Type::kForbidden, at, "", "must not specify anything other than name and generateName, but metadata is implicitly specified");
  }

  void values(const Schema& schema, bool skips_any, bool skips_first_all, const std::string& path) {
    const auto each = [&](const std::vector<Schema>& list, std::string_view word, bool skips_first) {
      for (std::size_t i = 0; i < list.size(); ++i) nested(list[i], skips_first && i == 0, fmt::format("{}.{}[{}]", path, word, i));
    };
    if (!skips_any) each(schema.any_of, "anyOf", false);
    each(schema.all_of, "allOf", skips_first_all);
    each(schema.one_of, "oneOf", false);
    if (schema.negated != nullptr) nested(*schema.negated, false, path + ".not");
    if (!schema.pattern_error.empty())
      add(Type::kInvalid, path + ".pattern", model::go_quote(schema.pattern),
          fmt::format("must be a valid regular expression, but isn't: {}", schema.pattern_error));
  }

  void nested(const Schema& schema, bool skips_any, const std::string& path) {
    values(schema, skips_any, false, path);
    if (schema.items != nullptr) nested(*schema.items, false, path + ".items");
    for (const auto& [name, below] : schema.properties) nested(below, false, property_path(path, name));
    const auto forbid = [&](bool is_there, std::string_view field, std::string_view what) {
      if (is_there) add(Type::kForbidden, fmt::format("{}.{}", path, field), "", fmt::format("must be {} to be structural", what));
    };
    forbid(!schema.type.empty(), "type", "empty");
    forbid(schema.additional != nullptr || schema.additional_allowed.value_or(false), "additionalProperties", "undefined");
    forbid(schema.default_value.has_value(), "default", "undefined");
    forbid(!schema.title.empty(), "title", "empty");
    forbid(!schema.description.empty(), "description", "empty");
    forbid(schema.nullable, "nullable", "false");
    forbid(schema.preserves_unknown, "x-kubernetes-preserve-unknown-fields", "false");
    forbid(schema.is_embedded, "x-kubernetes-embedded-resource", "false");
    forbid(schema.is_int_or_string, "x-kubernetes-int-or-string", "false");
    forbid(!schema.list_map_keys.empty(), "x-kubernetes-list-map-keys", "empty");
    forbid(schema.list_type.has_value(), "x-kubernetes-list-type", "undefined");
    forbid(schema.map_type.has_value(), "x-kubernetes-map-type", "undefined");
    forbid(!schema.rules.empty(), "x-kubernetes-validations", "empty");
    if (schema.property("metadata") != nullptr)
      add(Type::kForbidden, property_path(path, "metadata"), "", "must not be specified in a nested context");
  }

  model::FieldErrors& errors_;
};

}  // namespace

model::FieldErrors check_structural(const Schema& schema, const std::string& path) {
  model::FieldErrors errors;
  if (!schema.unsupported.empty()) return {{Type::kInvalid, path, "\"\"", schema.unsupported}};
  Structural check(errors);
  check.node(schema, Level::kRoot, path);
  check.inner_completeness(schema, path);
  std::ranges::stable_sort(errors, {}, [](const model::FieldError& error) { return error.render(); });
  return errors;
}

}  // namespace berth::custom
