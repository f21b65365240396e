// Documents as values of rules (apiserver/pkg/cel/common/valuesunstructured.go).
#include <set>

#include "base/base64.h"
#include "base/json_canonical.h"
#include "custom/formats.h"
#include "custom/rules.h"

namespace berth::custom {
namespace {

std::string_view go_type_of(const json::Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_int64()) return "int64";
  if (value.is_number()) return "float64";
  return value.is_array() ? "[]interface {}" : "map[string]interface {}";
}

/// What a set knows an element by.
std::string text_of(const cel::Value& value) {
  const auto as_json = cel::to_json(value);
  return as_json ? json::canonical_text(*as_json) : std::string(cel::type_name(value));
}

/// Elements by what they are known by: a set's own value, or the keys of an object.
class Identity {
 public:
  Identity(bool is_set, std::vector<std::string> keys) : is_set_(is_set), keys_(std::move(keys)) {}
  [[nodiscard]] std::string of(const cel::Value& element) const {
    if (is_set_ || element.kind() != cel::Value::Kind::kMap) return text_of(element);
    std::string out;
    for (const auto& key : keys_) {
      const auto found = element.as_map().find(cel::Value::borrowed_string(key));
      out += found ? text_of(*found) : std::string();
      out += '\0';
    }
    return out;
  }
  [[nodiscard]] bool is_set() const { return is_set_; }

 private:
  bool is_set_;
  std::vector<std::string> keys_;
};

/// A list whose order does not count. Subclasses have the elements.
class Unordered : public cel::List {
 public:
  explicit Unordered(std::shared_ptr<const Identity> identity) : identity_(std::move(identity)) {}
  [[nodiscard]] std::optional<bool> equals(const List& other) const override {
    if (size() != other.size()) return false;
    std::map<std::string, cel::Value> mine;
    for (std::size_t i = 0; i < size(); ++i) mine.emplace(identity_->of(at(i)), at(i));
    for (std::size_t i = 0; i < other.size(); ++i) {
      const auto element = other.at(i);
      const auto found = mine.find(identity_->of(element));
      if (found == mine.end() || (!identity_->is_set() && !cel::equal(found->second, element))) return false;
    }
    return true;
  }
  [[nodiscard]] std::optional<cel::Value> joined(const List& other) const override;

 private:
  std::shared_ptr<const Identity> identity_;
};

class Joined final : public Unordered {
 public:
  Joined(std::shared_ptr<const Identity> identity, std::vector<cel::Value> values)
      : Unordered(std::move(identity)), values_(std::move(values)) {}
  [[nodiscard]] std::size_t size() const override { return values_.size(); }
  [[nodiscard]] cel::Value at(std::size_t index) const override { return values_[index]; }

 private:
  std::vector<cel::Value> values_;
};

std::optional<cel::Value> Unordered::joined(const List& other) const {
  std::vector<cel::Value> values;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < size(); ++i) {
    values.push_back(at(i));
    places.emplace(identity_->of(values.back()), i);
  }
  for (std::size_t i = 0; i < other.size(); ++i) {
    auto element = other.at(i);
    const auto [place, is_new] = places.emplace(identity_->of(element), values.size());
    if (is_new) {
      values.push_back(std::move(element));
    } else if (!identity_->is_set()) {
      values[place->second] = std::move(element);
    }
  }
  return cel::Value::list(std::make_shared<const Joined>(identity_, std::move(values)));
}

class PlainList final : public cel::List {
 public:
  PlainList(const json::Array& list, const Schema& items) : list_(list), items_(items) {}
  [[nodiscard]] std::size_t size() const override { return list_.size(); }
  [[nodiscard]] cel::Value at(std::size_t index) const override { return to_cel(list_[index], items_); }

 private:
  const json::Array& list_;
  const Schema& items_;
};

class UnorderedList final : public Unordered {
 public:
  UnorderedList(std::shared_ptr<const Identity> identity, const json::Array& list, const Schema& items)
      : Unordered(std::move(identity)), list_(list), items_(items) {}
  [[nodiscard]] std::size_t size() const override { return list_.size(); }
  [[nodiscard]] cel::Value at(std::size_t index) const override { return to_cel(list_[index], items_); }

 private:
  const json::Array& list_;
  const Schema& items_;
};

const Schema& plain_string() {
  static const Schema kString = [] {
    Schema out;
    out.type = "string";
    return out;
  }();
  return kString;
}

const Schema& plain_metadata() {
  static const Schema kMetadata = [] {
    Schema out;
    out.type = "object";
    for (const char* name : {"name", "generateName"}) {
      Schema text;
      text.type = "string";
      out.properties.emplace(name, std::move(text));
    }
    return out;
  }();
  return kMetadata;
}

/// An object with properties, or a map.
class ObjectMap final : public cel::Map {
 public:
  ObjectMap(const json::Object& object, const Schema& schema, bool is_resource)
      : object_(object), schema_(schema), is_resource_(is_resource), has_fields_(is_resource || !schema.properties.empty()) {}

  [[nodiscard]] std::size_t size() const override { return object_.size(); }
  [[nodiscard]] std::optional<cel::Value> find(const cel::Value& key) const override {
    if (key.kind() != cel::Value::Kind::kString) return std::nullopt;
    std::optional<std::string> name;
    if (has_fields_) {
      name = unescape_name(key.text());
      if (!name) return std::nullopt;
    }
    const std::string_view text = name ? std::string_view(*name) : key.text();
    const auto* value = object_.if_contains(text);
    if (value == nullptr || (has_fields_ && value->is_null())) return std::nullopt;
    const auto* schema = schema_of(text);
    if (schema == nullptr) return std::nullopt;
    return to_cel(*value, *schema);
  }
  void each(const std::function<bool(const cel::Value&, const cel::Value&)>& visit) const override {
    for (const auto& [key, value] : object_) {
      const std::string_view name(key.data(), key.size());
      const auto* schema = schema_of(name);
      if (schema == nullptr || (has_fields_ && value.is_null())) continue;
      auto shown = has_fields_ ? escape_name(name) : std::optional(std::string(name));
      if (!shown) continue;
      if (!visit(cel::Value::string(std::move(*shown)), to_cel(value, *schema))) return;
    }
  }

 private:
  [[nodiscard]] const Schema* schema_of(std::string_view name) const {
    if (!has_fields_) return schema_.additional.get();
    if (is_resource_) {
      // What declare() shows of a resource that says less of itself.
      const auto* own = schema_.property(name);
      if (name == "kind" || name == "apiVersion") return own != nullptr && own->type == "string" ? own : &plain_string();
      if (name == "metadata")
        return own != nullptr && own->property("name") != nullptr && own->property("generateName") != nullptr ? own : &plain_metadata();
    }
    return schema_.property(name);
  }

  const json::Object& object_;
  const Schema& schema_;
  bool is_resource_, has_fields_;
};

cel::Value string_value(const json::Value& value, const Schema& schema) {
  if (!value.is_string()) return cel::Value::error(fmt::format("invalid data, expected string, got {}", go_type_of(value)));
  const auto text = json::as_view(value);
  if (schema.format == "duration") {
    const auto nanos = parse_any_duration(text);
    if (!nanos) return cel::Value::error(fmt::format("Invalid duration {}: unable to parse {} as duration", text, text));
    return cel::Value::duration(*nanos / 1'000'000'000, static_cast<std::int32_t>(*nanos % 1'000'000'000));
  }
  if (schema.format == "date" || schema.format == "date-time") {
    const auto instant = schema.format == "date" ? parse_date(text) : parse_date_time(text);
    if (!instant) return cel::Value::error(fmt::format("Invalid {} formatted string {}", schema.format, text));
    return cel::Value::timestamp(instant->seconds, instant->nanos);
  }
  if (schema.format == "byte") {
    std::string standard(text);
    std::ranges::replace(standard, '-', '+');
    std::ranges::replace(standard, '_', '/');
    auto bytes = base64_decode(standard);
    if (!bytes) return cel::Value::error(fmt::format("Invalid byte formatted string {}", text));
    return cel::Value::bytes(std::move(*bytes));
  }
  return cel::Value::borrowed_string(text);
}

cel::Value object_value(const json::Value& value, const Schema& schema, bool is_resource) {
  const auto* object = value.if_object();
  if (object == nullptr) return cel::Value::error("invalid data, expected a map for the provided schema with type=object");
  return cel::Value::map(std::make_shared<const ObjectMap>(*object, schema, is_resource));
}

cel::Value list_value(const json::Value& value, const Schema& schema) {
  const auto* list = value.if_array();
  if (list == nullptr) return cel::Value::error("invalid data, expected an array for the provided schema with type=array");
  if (schema.items == nullptr) return cel::Value::error("invalid array type, expected Items with a non-empty Schema");
  if (schema.list_type == "set" || schema.list_type == "map") {
    std::vector<std::string> keys;
    for (const auto& key : schema.list_map_keys) keys.push_back(escape_name(key).value_or(key));
    auto identity = std::make_shared<const Identity>(schema.list_type == "set", std::move(keys));
    return cel::Value::list(std::make_shared<const UnorderedList>(std::move(identity), *list, *schema.items));
  }
  return cel::Value::list(std::make_shared<const PlainList>(*list, *schema.items));
}

}  // namespace

cel::Value root_to_cel(const json::Value& value, const Schema& schema) { return object_value(value, schema, true); }

cel::Value to_cel(const json::Value& value, const Schema& schema) {
  if (value.is_null()) return schema.nullable ? cel::Value() : cel::Value::error("invalid data, got null for schema with nullable=false");
  if (schema.is_int_or_string) {
    if (value.is_string()) return cel::Value::borrowed_string(json::as_view(value));
    if (value.is_int64()) return cel::Value::integer(value.get_int64());
    return cel::Value::error("invalid data, expected XIntOrString value to be either a string or integer");
  }
  if (schema.type == "object") return object_value(value, schema, schema.is_embedded);
  if (schema.type == "array") return list_value(value, schema);
  if (schema.type == "string") return string_value(value, schema);
  const auto wrong = [&](std::string_view wanted) {
    return cel::Value::error(fmt::format("invalid data, expected {}, got {}", wanted, go_type_of(value)));
  };
  if (schema.type == "number") return value.is_number() ? cel::Value::real(value.to_number<double>()) : wrong("float");
  if (schema.type == "integer") return value.is_int64() ? cel::Value::integer(value.get_int64()) : wrong("int");
  if (schema.type == "boolean") return value.is_bool() ? cel::Value::boolean(value.get_bool()) : wrong("bool");
  return cel::Value::borrowed_json(value);
}

}  // namespace berth::custom
