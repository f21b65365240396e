// Values of the Common Expression Language while a program runs.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cel/type.h"
#include "model/quantity.h"

namespace berth::cel {

class Value;

/// A list. Immutable while programs see it.
class List {
 public:
  virtual ~List() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// `index` < size().
  [[nodiscard]] virtual Value at(std::size_t index) const = 0;
  /// Sets, and lists by keys, say themselves what they equal and what they are together with another list; nullopt: as any list.
  [[nodiscard]] virtual std::optional<bool> equals(const List& other) const;
  [[nodiscard]] virtual std::optional<Value> joined(const List& other) const;
};

/// A map or an object. Immutable while programs see it.
class Map {
 public:
  virtual ~Map() = default;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// nullopt: no such key. A value of kind kError: the key is there and its value could not be computed (lazy variables).
  [[nodiscard]] virtual std::optional<Value> find(const Value& key) const = 0;
  /// Every entry in a fixed order, until `visit` answers false.
  virtual void each(const std::function<bool(const Value& key, const Value& value)>& visit) const = 0;
};

/// A value of a library's own type. Immutable.
class Opaque {
 public:
  virtual ~Opaque() = default;
  /// "kubernetes.Quantity", …
  [[nodiscard]] virtual std::string_view type_name() const = 0;
  /// `other` has the same type name.
  [[nodiscard]] virtual bool equals(const Opaque& other) const = 0;
};

/// One value; cheap to copy. Values made by `borrowed…` point into what the caller keeps alive until the last use of the result.
class Value {
 public:
  enum class Kind : std::uint8_t {
    kNull,
    kBool,
    kInt,
    kUint,
    kDouble,
    kString,
    kBytes,
    kDuration,
    kTimestamp,
    kList,
    kMap,
    kType,
    kOptional,
    kOpaque,
    kError
  };

  Value() = default;  ///< null
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value uinteger(std::uint64_t value);
  static Value real(double value);
  static Value string(std::string value);
  static Value bytes(std::string value);
  static Value borrowed_string(std::string_view value);
  /// Seconds and nanoseconds carry the same sign.
  static Value duration(std::int64_t seconds, std::int32_t nanos);
  /// Seconds since 1970 in UTC; nanos in [0, 1e9).
  static Value timestamp(std::int64_t seconds, std::int32_t nanos);
  static Value list(std::shared_ptr<const List> value);
  static Value list(std::vector<Value> values);
  static Value map(std::shared_ptr<const Map> value);
  /// String keys in the given order; a later duplicate is ignored.
  static Value map(std::vector<std::pair<std::string, Value>> entries);
  static Value type(Type value);
  static Value none();
  static Value optional(Value value);
  static Value opaque(std::shared_ptr<const Opaque> value);
  static Value error(std::string message);
  /// The error of an operator or function that is not for values like these.
  static Value no_overload(std::string message);
  /// A document as it is: whole numbers are ints, objects are maps, read in place.
  static Value borrowed_json(const json::Value& document);
  /// The same with a shared document.
  static Value json(std::shared_ptr<const json::Value> document);
  static Value quantity(const model::Quantity& quantity);
  /// An error value unless the text is a semantic version (2.0.0, strictly).
  static Value semver(std::string_view text);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_error() const { return kind_ == Kind::kError; }
  [[nodiscard]] bool is_no_overload() const { return kind_ == Kind::kError && number_.boolean; }
  [[nodiscard]] bool is_true() const { return kind_ == Kind::kBool && number_.boolean; }
  [[nodiscard]] bool as_bool() const { return number_.boolean; }
  [[nodiscard]] std::int64_t as_int() const { return number_.integer; }
  [[nodiscard]] std::uint64_t as_uint() const { return number_.uinteger; }
  [[nodiscard]] double as_double() const { return number_.real; }
  /// The text of a string, the bytes, or an error's message.
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::int64_t seconds() const { return number_.integer; }
  [[nodiscard]] std::int32_t nanos() const { return nanos_; }
  [[nodiscard]] const List& as_list() const { return *static_cast<const List*>(object_); }
  [[nodiscard]] const Map& as_map() const { return *static_cast<const Map*>(object_); }
  [[nodiscard]] const Opaque& as_opaque() const { return *static_cast<const Opaque*>(object_); }
  /// The value inside an optional, or null for none().
  [[nodiscard]] const Value* optional_value() const { return static_cast<const Value*>(object_); }

 private:
  union Number {
    bool boolean;
    std::int64_t integer;
    std::uint64_t uinteger;
    double real;
  };
  Kind kind_ = Kind::kNull;
  std::int32_t nanos_ = 0;
  Number number_{.integer = 0};
  std::string_view text_;
  const void* object_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// The language's name of a value's type: "int", "map", "google.protobuf.Duration", "kubernetes.Quantity".
std::string_view type_name(const Value& value);
/// The language's ==: numbers across their types, lists and maps deeply; values of different types are unequal. Deeper than 500 levels:
/// unequal.
bool equal(const Value& a, const Value& b);
/// The value as JSON where it has one (bytes in base64, durations and timestamps as text); the error names the type that has none.
Result<json::Value> to_json(const Value& value);

}  // namespace berth::cel
