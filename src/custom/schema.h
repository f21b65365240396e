// The schema of a custom resource: apiextensions.k8s.io/v1 JSONSchemaProps as a tree that objects are pruned, defaulted and validated by
// (apiextensions-apiserver/pkg/apiserver/schema).
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace re2 {
class RE2;
}

namespace berth::custom {

/// One entry of x-kubernetes-validations.
struct Rule {
  std::string rule, message, message_expression, field_path;
  std::optional<std::string> reason;
  std::optional<bool> optional_old_self;
  json::Value source;  ///< As written: what errors show.
};

/// One node. Immutable once read; shared freely between threads.
struct Schema {
  using Properties = std::map<std::string, Schema, std::less<>>;

  std::string type, format, title, description;
  bool nullable = false, unique_items = false;
  std::optional<double> maximum, minimum, multiple_of;
  bool exclusive_maximum = false, exclusive_minimum = false;
  std::optional<std::int64_t> max_length, min_length, max_items, min_items, max_properties, min_properties;
  std::string checked_format;  ///< The format without dashes; empty for formats that validation passes over (known_format).
  std::string pattern;
  std::shared_ptr<const re2::RE2> expression;  ///< Of the pattern; null without one, or when it is none.
  std::string pattern_error;                   ///< Why it is none, in the words of Go's regexp.
  std::vector<json::Value> enums;
  std::optional<json::Value> default_value, example, external_docs;
  std::vector<std::string> required;

  Properties properties;
  std::unique_ptr<Schema> items, additional, negated;  ///< `additional`: the schema of additionalProperties.
  std::optional<bool> additional_allowed;              ///< additionalProperties, where it is there.
  std::vector<Schema> all_of, any_of, one_of;

  bool preserves_unknown = false, is_embedded = false, is_int_or_string = false;
  std::optional<std::string> list_type, map_type;
  std::vector<std::string> list_map_keys;
  std::vector<Rule> rules;

  /// What has no place in a structural schema: the sentence of the first such field ("OpenAPIV3Schema '$ref' is not supported").
  std::string unsupported;
  /// Fields that are forbidden by name, with their schemas where they hold any (definitions, patternProperties, dependencies).
  std::vector<std::string> forbidden;
  std::vector<std::string_view> defaulted;  ///< The properties that have a default.
  bool has_defaults = false;                ///< Here or anywhere below.
  std::size_t said = 0;                     ///< Fields with something in them, besides type, default, properties and items.
  bool refuses_unknown = false;             ///< x-kubernetes-preserve-unknown-fields: false
  std::vector<Schema> item_list;            ///< items as an array.
  std::size_t definitions = 0;              ///< Nodes of definitions and the like: counted, not kept.

  Schema();
  ~Schema();
  Schema(Schema&&) noexcept;
  Schema& operator=(Schema&&) noexcept;
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  [[nodiscard]] const Schema* property(std::string_view name) const {
    const auto found = properties.find(name);
    return found == properties.end() ? nullptr : &found->second;
  }
  /// The schema of a member: a property's, or that of additionalProperties; null when there is none.
  [[nodiscard]] const Schema* member(std::string_view name) const {
    const auto* named = property(name);
    return named != nullptr ? named : additional.get();
  }
};

/// Reads a document that has the types of JSONSchemaProps (what the API server's decoder lets through); whatever is odd is left out.
Schema read_schema(const json::Value& document);

/// Calls `visit` with every node, the root first, until it answers true; whether it did.
template <typename Visit>
bool any_node(const Schema& schema, const Visit& visit) {
  if (visit(schema)) return true;
  for (const auto* one : {schema.items.get(), schema.additional.get(), schema.negated.get()})
    if (one != nullptr && any_node(*one, visit)) return true;
  for (const auto* list : {&schema.all_of, &schema.any_of, &schema.one_of, &schema.item_list})
    for (const auto& one : *list)
      if (any_node(one, visit)) return true;
  for (const auto& [name, one] : schema.properties)
    if (any_node(one, visit)) return true;
  return false;
}

/// A format that validation passes over, where the schema has one.
inline std::string_view unknown_format(const Schema& schema) {
  return schema.checked_format.empty() ? std::string_view(schema.format) : std::string_view();
}

}  // namespace berth::custom
