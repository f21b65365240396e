#include "custom/schema.h"

#include <re2/re2.h>

#include <algorithm>
#include <set>

#include "cel/pattern.h"
#include "model/schema.h"

namespace berth::custom {
namespace {

using json::Value;

std::string text_of(const Value& document, std::string_view key) { return std::string(json::get_string(document, {key})); }

std::optional<double> number_of(const Value& document, std::string_view key) {
  const auto* value = json::find(document, key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

std::optional<std::int64_t> count_of(const Value& document, std::string_view key) {
  const auto* value = json::find(document, key);
  return value != nullptr && value->is_int64() ? std::optional(value->get_int64()) : std::nullopt;
}

std::vector<std::string> texts_of(const Value& document, std::string_view key) {
  std::vector<std::string> out;
  for (const auto& one : json::get_array(document, {key}))
    if (one.is_string()) out.emplace_back(json::as_view(one));
  return out;
}

std::vector<Schema> schemas_of(const Value& document, std::string_view key) {
  std::vector<Schema> out;
  const auto& list = json::get_array(document, {key});
  out.reserve(list.size());
  for (const auto& one : list) out.push_back(read_schema(one));
  return out;
}

std::unique_ptr<Schema> schema_of(const Value& document, std::string_view key) {
  const auto* value = json::find(document, key);
  return value != nullptr && value->is_object() ? std::make_unique<Schema>(read_schema(*value)) : nullptr;
}

void read_pattern(Schema& schema) {
  if (schema.pattern.empty()) return;
  auto compiled = cel::compile_pattern(schema.pattern);
  if (compiled) {
    schema.expression = std::static_pointer_cast<const re2::RE2>(std::move(*compiled));
  } else {
    schema.pattern_error = compiled.error();
  }
}

void read_rules(const Value& document, Schema& schema) {
  for (const auto& one : json::get_array(document, {"x-kubernetes-validations"})) {
    Rule rule;
    rule.rule = text_of(one, "rule");
    rule.message = text_of(one, "message");
    rule.message_expression = text_of(one, "messageExpression");
    rule.field_path = text_of(one, "fieldPath");
    if (const auto* reason = json::find(one, "reason"); reason != nullptr && reason->is_string()) rule.reason = json::as_view(*reason);
    if (const auto* optional = json::find(one, "optionalOldSelf"); optional != nullptr && optional->is_bool())
      rule.optional_old_self = optional->get_bool();
    rule.source = one;
    schema.rules.push_back(std::move(rule));
  }
}

/// What structural schemas do not know, in the order in which Kubernetes asks for it.
void read_unsupported(const Value& document, Schema& schema) {
  const auto holds = [&](std::string_view key) {
    const auto* value = json::find(document, key);
    if (value == nullptr) return false;
    if (value->is_string()) return !value->get_string().empty();
    if (value->is_object() && key != "additionalItems") return !value->get_object().empty();
    return true;
  };
  static constexpr std::pair<std::string_view, std::string_view> kFields[] = {{"id", "id"},
                                                                              {"$schema", "schema"},
                                                                              {"$ref", "$ref"},
                                                                              {"patternProperties", "patternProperties"},
                                                                              {"dependencies", "dependencies"},
                                                                              {"additionalItems", "additionalItems"},
                                                                              {"definitions", "definitions"}};
  for (const auto& [field, name] : kFields)
    if (schema.unsupported.empty() && holds(field)) schema.unsupported = fmt::format("OpenAPIV3Schema '{}' is not supported", name);
  for (const std::string_view field : {"id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}) {
    const auto* value = json::find(document, field);
    const bool is_there = field == "$ref" || field == "dependencies" ? value != nullptr : holds(field);
    if (is_there) schema.forbidden.emplace_back(field);
  }
}

void read_children(const Value& document, Schema& schema) {
  for (const auto& [name, one] : json::get_object(document, {"properties"}))
    schema.properties.emplace(std::string_view(name), read_schema(one));
  if (const auto* items = json::find(document, "items"); items != nullptr && items->is_array()) {
    for (const auto& one : items->get_array()) schema.item_list.push_back(read_schema(one));
  } else {
    schema.items = schema_of(document, "items");
  }
  if (const auto* additional = json::find(document, "additionalProperties"); additional != nullptr) {
    if (additional->is_bool()) {
      schema.additional_allowed = additional->get_bool();
    } else if (additional->is_object()) {
      schema.additional_allowed = true;
      schema.additional = std::make_unique<Schema>(read_schema(*additional));
    }
  }
  schema.all_of = schemas_of(document, "allOf");
  schema.any_of = schemas_of(document, "anyOf");
  schema.one_of = schemas_of(document, "oneOf");
  schema.negated = schema_of(document, "not");
}

void read_values(const Value& document, Schema& schema) {
  schema.maximum = number_of(document, "maximum");
  schema.minimum = number_of(document, "minimum");
  schema.multiple_of = number_of(document, "multipleOf");
  schema.exclusive_maximum = json::get_bool(document, {"exclusiveMaximum"});
  schema.exclusive_minimum = json::get_bool(document, {"exclusiveMinimum"});
  schema.max_length = count_of(document, "maxLength");
  schema.min_length = count_of(document, "minLength");
  schema.max_items = count_of(document, "maxItems");
  schema.min_items = count_of(document, "minItems");
  schema.max_properties = count_of(document, "maxProperties");
  schema.min_properties = count_of(document, "minProperties");
  schema.unique_items = json::get_bool(document, {"uniqueItems"});
  schema.pattern = text_of(document, "pattern");
  read_pattern(schema);
  const auto& enums = json::get_array(document, {"enum"});
  schema.enums.assign(enums.begin(), enums.end());
  if (const auto* value = json::find(document, "default"); value != nullptr) schema.default_value = *value;
  if (const auto* value = json::find(document, "example"); value != nullptr) schema.example = *value;
  if (const auto* value = json::find(document, "externalDocs"); value != nullptr) schema.external_docs = *value;
  schema.required = texts_of(document, "required");
}

void read_extensions(const Value& document, Schema& schema) {
  if (const auto* value = json::find(document, "x-kubernetes-preserve-unknown-fields"); value != nullptr && value->is_bool()) {
    schema.preserves_unknown = value->get_bool();
    schema.refuses_unknown = !value->get_bool();
  }
  schema.is_embedded = json::get_bool(document, {"x-kubernetes-embedded-resource"});
  schema.is_int_or_string = json::get_bool(document, {"x-kubernetes-int-or-string"});
  if (const auto* value = json::find(document, "x-kubernetes-list-type"); value != nullptr && value->is_string())
    schema.list_type = json::as_view(*value);
  if (const auto* value = json::find(document, "x-kubernetes-map-type"); value != nullptr && value->is_string())
    schema.map_type = json::as_view(*value);
  schema.list_map_keys = texts_of(document, "x-kubernetes-list-map-keys");
  read_rules(document, schema);
}

bool is_zero(const Value& value) {
  if (const auto* text = value.if_string()) return text->empty();
  return value.is_null() || value == Value(false);
}

/// Pointers of JSONSchemaProps and lists are there even when empty.
std::size_t count_said(const Value& document) {
  static const auto* type = model::find_type("apiextensions.v1.JSONSchemaProps");
  static const std::set<std::string_view> kElsewhere = {"type", "default", "properties", "items"};
  static const std::set<std::string_view> kNotKept = {"allOf", "anyOf", "oneOf", "enum"};
  const auto counts = [&](std::string_view key, const Value& value) {
    if (kElsewhere.contains(key) || type->field(key) == nullptr) return false;
    if (key == "additionalProperties" || key == "x-kubernetes-list-type" || key == "x-kubernetes-map-type") return !value.is_null();
    return !is_zero(value) && !(kNotKept.contains(key) && value.is_array() && value.get_array().empty());
  };
  std::size_t out = 0;
  if (const auto* object = document.if_object())
    for (const auto& [key, value] : *object)
      if (counts(std::string_view(key), value)) ++out;
  return out;
}

/// A format as validation knows it, without dashes; empty for those that it passes over (apiserver/validation/formats.go).
std::string known_format(const Schema& schema) {
  static const std::set<std::string, std::less<>> kStrings = {
      "bsonobjectid", "uri",   "email",    "hostname", "ipv4",     "ipv6",     "cidr",         "mac",        "uuid",
      "uuid3",        "uuid4", "uuid5",    "isbn",     "isbn10",   "isbn13",   "creditcard",   "ssn",        "hexcolor",
      "rgbcolor",     "byte",  "password", "date",     "duration", "datetime", "k8sshortname", "k8slongname"};
  if (schema.format.empty()) return {};
  if (schema.type.empty() || schema.type == "string" || schema.is_int_or_string) {
    std::string name = schema.format;
    std::erase(name, '-');
    return kStrings.contains(name) ? name : std::string();
  }
  if (schema.type == "integer") return schema.format == "int32" || schema.format == "int64" ? schema.format : std::string();
  if (schema.type == "number") return schema.format == "float" || schema.format == "double" ? schema.format : std::string();
  return {};
}

}  // namespace

Schema::Schema() = default;
Schema::~Schema() = default;
Schema::Schema(Schema&&) noexcept = default;
Schema& Schema::operator=(Schema&&) noexcept = default;

Schema read_schema(const Value& document) {
  Schema schema;
  schema.type = text_of(document, "type");
  schema.format = text_of(document, "format");
  schema.title = text_of(document, "title");
  schema.description = text_of(document, "description");
  schema.nullable = json::get_bool(document, {"nullable"});
  read_values(document, schema);
  read_extensions(document, schema);
  schema.checked_format = known_format(schema);
  read_unsupported(document, schema);
  read_children(document, schema);
  schema.said = count_said(document);
  for (const auto& [name, below] : schema.properties)
    if (below.default_value) schema.defaulted.push_back(name);
  const auto has_some = [](const Schema* one) { return one != nullptr && (one->default_value || one->has_defaults); };
  schema.has_defaults = has_some(schema.items.get()) || has_some(schema.additional.get()) ||
                        std::ranges::any_of(schema.properties, [&](const auto& entry) { return has_some(&entry.second); });
  return schema;
}

}  // namespace berth::custom
