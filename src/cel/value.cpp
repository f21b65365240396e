#include "cel/value.h"

#include <cmath>

#include "base/base64.h"
#include "cel/opaque.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

constexpr int kMostValueDepth = 500;

class VectorList final : public List {
 public:
  explicit VectorList(std::vector<Value> values) : values_(std::move(values)) {}
  [[nodiscard]] std::size_t size() const override { return values_.size(); }
  [[nodiscard]] Value at(std::size_t index) const override { return values_[index]; }

 private:
  std::vector<Value> values_;
};

class EntryMap final : public Map {
 public:
  explicit EntryMap(std::vector<std::pair<std::string, Value>> entries) : entries_(std::move(entries)) {}
  [[nodiscard]] std::size_t size() const override { return entries_.size(); }
  [[nodiscard]] std::optional<Value> find(const Value& key) const override {
    if (key.kind() != Value::Kind::kString) return std::nullopt;
    for (const auto& [name, value] : entries_)
      if (name == key.text()) return value;
    return std::nullopt;
  }
  void each(const std::function<bool(const Value&, const Value&)>& visit) const override {
    for (const auto& [name, value] : entries_)
      if (!visit(Value::borrowed_string(name), value)) return;
  }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
};

class JsonList final : public List {
 public:
  explicit JsonList(const json::Array& array) : array_(array) {}
  [[nodiscard]] std::size_t size() const override { return array_.size(); }
  [[nodiscard]] Value at(std::size_t index) const override { return Value::borrowed_json(array_[index]); }

 private:
  const json::Array& array_;
};

class JsonMap final : public Map {
 public:
  explicit JsonMap(const json::Object& object) : object_(object) {}
  [[nodiscard]] std::size_t size() const override { return object_.size(); }
  [[nodiscard]] std::optional<Value> find(const Value& key) const override {
    if (key.kind() != Value::Kind::kString) return std::nullopt;
    const auto it = object_.find(boost::json::string_view(key.text().data(), key.text().size()));
    if (it == object_.end()) return std::nullopt;
    return Value::borrowed_json(it->value());
  }
  void each(const std::function<bool(const Value&, const Value&)>& visit) const override {
    for (const auto& entry : object_)
      if (!visit(Value::borrowed_string({entry.key().data(), entry.key().size()}), Value::borrowed_json(entry.value()))) return;
  }

 private:
  const json::Object& object_;
};

bool equal_at(const Value& a, const Value& b, int depth);

bool equal_lists(const List& a, const List& b, int depth) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal_at(a.at(i), b.at(i), depth)) return false;
  return true;
}

bool equal_maps(const Map& a, const Map& b, int depth) {
  if (a.size() != b.size()) return false;
  bool is_equal = true;
  a.each([&](const Value& key, const Value& value) {
    const auto other = b.find(key);
    is_equal = other && equal_at(value, *other, depth);
    return is_equal;
  });
  return is_equal;
}

bool holds_number(const Value& v) {
  return v.kind() == Value::Kind::kInt || v.kind() == Value::Kind::kUint || v.kind() == Value::Kind::kDouble;
}

bool equal_at(const Value& a, const Value& b, int depth) {
  if (depth > kMostValueDepth) return false;
  if (holds_number(a) && holds_number(b)) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kNull:
      return true;
    case Value::Kind::kBool:
      return a.as_bool() == b.as_bool();
    case Value::Kind::kString:
    case Value::Kind::kBytes:
      return a.text() == b.text();
    case Value::Kind::kDuration:
    case Value::Kind::kTimestamp:
      return a.seconds() == b.seconds() && a.nanos() == b.nanos();
    case Value::Kind::kList:
      if (const auto own = a.as_list().equals(b.as_list())) return *own;
      return equal_lists(a.as_list(), b.as_list(), depth + 1);
    case Value::Kind::kMap:
      return equal_maps(a.as_map(), b.as_map(), depth + 1);
    case Value::Kind::kType:
      return type_value_name(a) == type_value_name(b);
    case Value::Kind::kOptional: {
      const auto *x = a.optional_value(), *y = b.optional_value();
      if (x == nullptr || y == nullptr) return x == y;
      return equal_at(*x, *y, depth + 1);
    }
    case Value::Kind::kOpaque:
      return a.as_opaque().type_name() == b.as_opaque().type_name() && a.as_opaque().equals(b.as_opaque());
    default:
      return false;
  }
}

Result<json::Value> json_at(const Value& value, int depth) {
  if (depth > kMostValueDepth) return invalid("the value is nested too deeply");
  switch (value.kind()) {
    case Value::Kind::kNull:
      return json::Value(nullptr);
    case Value::Kind::kBool:
      return json::Value(value.as_bool());
    case Value::Kind::kInt:
      return json::Value(value.as_int());
    case Value::Kind::kUint:
      return json::Value(value.as_uint());
    case Value::Kind::kDouble:
      return json::Value(value.as_double());
    case Value::Kind::kString:
      return json::Value(boost::json::string_view(value.text().data(), value.text().size()));
    case Value::Kind::kBytes:
      return json::Value(base64_encode(value.text()));
    case Value::Kind::kDuration:
      return json::Value(duration_text(value.seconds(), value.nanos()));
    case Value::Kind::kTimestamp:
      return json::Value(rfc3339_text(value.seconds(), value.nanos()));
    case Value::Kind::kList: {
      json::Array out;
      for (std::size_t i = 0; i < value.as_list().size(); ++i) {
        auto element = json_at(value.as_list().at(i), depth + 1);
        if (!element) return element;
        out.push_back(std::move(*element));
      }
      return json::Value(std::move(out));
    }
    case Value::Kind::kMap: {
      json::Object out;
      std::optional<Error> error;
      value.as_map().each([&](const Value& key, const Value& entry) {
        auto converted = json_at(entry, depth + 1);
        if (!converted)
          error = converted.error();
        else
          out[to_text(key)] = std::move(*converted);
        return !error;
      });
      if (error) return std::unexpected(*error);
      return json::Value(std::move(out));
    }
    case Value::Kind::kOptional:
      return value.optional_value() == nullptr ? json::Value(nullptr) : json_at(*value.optional_value(), depth + 1);
    case Value::Kind::kOpaque:
      if (const auto* quantity = as_quantity(value)) return json::Value(quantity->to_string());
      [[fallthrough]];
    default:
      return invalid(fmt::format("a value of type {} has no JSON form", type_name(value)));
  }
}

}  // namespace

Value Value::boolean(bool value) {
  Value out;
  out.kind_ = Kind::kBool;
  out.number_.boolean = value;
  return out;
}
Value Value::integer(std::int64_t value) {
  Value out;
  out.kind_ = Kind::kInt;
  out.number_.integer = value;
  return out;
}
Value Value::uinteger(std::uint64_t value) {
  Value out;
  out.kind_ = Kind::kUint;
  out.number_.uinteger = value;
  return out;
}
Value Value::real(double value) {
  Value out;
  out.kind_ = Kind::kDouble;
  out.number_.real = value;
  return out;
}
Value Value::string(std::string value) {
  auto owner = std::make_shared<const std::string>(std::move(value));
  Value out;
  out.kind_ = Kind::kString;
  out.text_ = *owner;
  out.owner_ = std::move(owner);
  return out;
}
Value Value::bytes(std::string value) {
  auto out = string(std::move(value));
  out.kind_ = Kind::kBytes;
  return out;
}
Value Value::borrowed_string(std::string_view value) {
  Value out;
  out.kind_ = Kind::kString;
  out.text_ = value;
  return out;
}
Value Value::duration(std::int64_t seconds, std::int32_t nanos) {
  Value out;
  out.kind_ = Kind::kDuration;
  out.number_.integer = seconds;
  out.nanos_ = nanos;
  return out;
}
Value Value::timestamp(std::int64_t seconds, std::int32_t nanos) {
  auto out = duration(seconds, nanos);
  out.kind_ = Kind::kTimestamp;
  return out;
}
Value Value::list(std::shared_ptr<const List> value) {
  Value out;
  out.kind_ = Kind::kList;
  out.object_ = value.get();
  out.owner_ = std::move(value);
  return out;
}
Value Value::list(std::vector<Value> values) { return list(std::make_shared<const VectorList>(std::move(values))); }
Value Value::map(std::shared_ptr<const Map> value) {
  Value out;
  out.kind_ = Kind::kMap;
  out.object_ = value.get();
  out.owner_ = std::move(value);
  return out;
}
Value Value::map(std::vector<std::pair<std::string, Value>> entries) { return map(std::make_shared<const EntryMap>(std::move(entries))); }
Value Value::type(Type value) {
  Value out;
  out.kind_ = Kind::kType;
  out.text_ = value->name;
  out.owner_ = std::move(value);
  return out;
}
Value Value::none() {
  Value out;
  out.kind_ = Kind::kOptional;
  return out;
}
Value Value::optional(Value value) {
  auto owner = std::make_shared<const Value>(std::move(value));
  Value out;
  out.kind_ = Kind::kOptional;
  out.object_ = owner.get();
  out.owner_ = std::move(owner);
  return out;
}
Value Value::opaque(std::shared_ptr<const Opaque> value) {
  Value out;
  out.kind_ = Kind::kOpaque;
  out.object_ = value.get();
  out.owner_ = std::move(value);
  return out;
}
Value Value::error(std::string message) {
  auto out = string(std::move(message));
  out.kind_ = Kind::kError;
  return out;
}
Value Value::no_overload(std::string message) {
  auto out = error(std::move(message));
  out.number_.boolean = true;
  return out;
}
Value Value::borrowed_json(const json::Value& document) {
  switch (document.kind()) {
    case boost::json::kind::bool_:
      return boolean(document.get_bool());
    case boost::json::kind::int64:
      return integer(document.get_int64());
    case boost::json::kind::uint64: {
      const auto value = document.get_uint64();
      return value <= static_cast<std::uint64_t>(INT64_MAX) ? integer(static_cast<std::int64_t>(value)) : real(static_cast<double>(value));
    }
    case boost::json::kind::double_:
      return real(document.get_double());
    case boost::json::kind::string:
      return borrowed_string({document.get_string().data(), document.get_string().size()});
    case boost::json::kind::array:
      return list(std::make_shared<const JsonList>(document.get_array()));
    case boost::json::kind::object:
      return map(std::make_shared<const JsonMap>(document.get_object()));
    default:
      return {};
  }
}
Value Value::json(std::shared_ptr<const json::Value> document) {
  // What is read out of it borrows: the caller keeps the root value, and with it the document, alive.
  struct Holder {
    std::shared_ptr<const json::Value> document;
    std::shared_ptr<const void> inner;
  };
  auto out = borrowed_json(*document);
  out.owner_ = std::make_shared<const Holder>(Holder{std::move(document), std::move(out.owner_)});
  return out;
}
Value Value::quantity(const model::Quantity& quantity) { return opaque(std::make_shared<const QuantityValue>(quantity)); }
Value Value::semver(std::string_view text) {
  auto parsed = Semver::parse(text);
  if (!parsed) return error(parsed.error());
  return opaque(std::make_shared<const Semver>(std::move(*parsed)));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "null_type";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInt:
      return "int";
    case Value::Kind::kUint:
      return "uint";
    case Value::Kind::kDouble:
      return "double";
    case Value::Kind::kString:
      return "string";
    case Value::Kind::kBytes:
      return "bytes";
    case Value::Kind::kDuration:
      return "google.protobuf.Duration";
    case Value::Kind::kTimestamp:
      return "google.protobuf.Timestamp";
    case Value::Kind::kList:
      return "list";
    case Value::Kind::kMap:
      return "map";
    case Value::Kind::kType:
      return "type";
    case Value::Kind::kOptional:
      return "optional_type";
    case Value::Kind::kOpaque:
      return value.as_opaque().type_name();
    case Value::Kind::kError:
      return "*error*";
  }
  return {};
}

bool equal(const Value& a, const Value& b) { return equal_at(a, b, 0); }

std::optional<bool> List::equals(const List&) const { return std::nullopt; }
std::optional<Value> List::joined(const List&) const { return std::nullopt; }

Result<json::Value> to_json(const Value& value) { return json_at(value, 0); }

std::string_view type_value_name(const Value& value) { return value.text(); }

std::string to_text(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return "null";
    case Value::Kind::kBool:
      return value.as_bool() ? "true" : "false";
    case Value::Kind::kInt:
      return fmt::format("{}", value.as_int());
    case Value::Kind::kUint:
      return fmt::format("{}", value.as_uint());
    case Value::Kind::kDouble:
      return go::format_float(value.as_double());
    case Value::Kind::kDuration:
      return duration_text(value.seconds(), value.nanos());
    case Value::Kind::kTimestamp:
      return rfc3339_text(value.seconds(), value.nanos());
    case Value::Kind::kString:
    case Value::Kind::kBytes:
    case Value::Kind::kType:
    case Value::Kind::kError:
      return std::string(value.text());
    default:
      return std::string(type_name(value));
  }
}

int compare_numbers(const Value& a, const Value& b) {
  using Kind = Value::Kind;
  const auto compare = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  // -2: unordered (NaN).
  const auto with_double = [&](double d, const Value& other) {
    if (std::isnan(d)) return -2;
    if (other.kind() == Kind::kInt) {
      if (d < -9223372036854775808.0) return -1;
      if (d >= 9223372036854775808.0) return 1;
      const auto truncated = static_cast<std::int64_t>(d);
      if (truncated != other.as_int()) return compare(truncated, other.as_int());
      return compare(d, std::trunc(d));
    }
    if (d < 0) return -1;
    if (d >= 18446744073709551616.0) return 1;
    const auto truncated = static_cast<std::uint64_t>(d);
    if (truncated != other.as_uint()) return compare(truncated, other.as_uint());
    return compare(d, std::trunc(d));
  };
  if (a.kind() == Kind::kDouble && b.kind() == Kind::kDouble) {
    if (std::isnan(a.as_double()) || std::isnan(b.as_double())) return -2;
    return compare(a.as_double(), b.as_double());
  }
  if (a.kind() == Kind::kDouble) return with_double(a.as_double(), b);
  if (b.kind() == Kind::kDouble) {
    const int reverse = with_double(b.as_double(), a);
    return reverse == -2 ? -2 : -reverse;
  }
  if (a.kind() == b.kind()) return a.kind() == Kind::kInt ? compare(a.as_int(), b.as_int()) : compare(a.as_uint(), b.as_uint());
  if (a.kind() == Kind::kInt) return a.as_int() < 0 ? -1 : compare(static_cast<std::uint64_t>(a.as_int()), b.as_uint());
  return b.as_int() < 0 ? 1 : compare(a.as_uint(), static_cast<std::uint64_t>(b.as_int()));
}

}  // namespace berth::cel
