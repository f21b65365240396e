// Arithmetic, comparison, containment (cel-go common/types, common/stdlib).
#include <cmath>

#include "cel/functions.h"
#include "cel/limits.h"
#include "cel/opaque.h"

namespace berth::cel {
namespace {

using Kind = Value::Kind;

/// Two lists after each other, without copying.
class Concatenation final : public List {
 public:
  Concatenation(Value a, Value b) : a_(std::move(a)), b_(std::move(b)) {}
  [[nodiscard]] std::size_t size() const override { return a_.as_list().size() + b_.as_list().size(); }
  [[nodiscard]] Value at(std::size_t index) const override {
    const auto first = a_.as_list().size();
    return index < first ? a_.as_list().at(index) : b_.as_list().at(index - first);
  }

 private:
  Value a_, b_;
};

/// Without the trait a value has no such operator at all; strings and times answer for themselves.
Value missing(const Value& v, std::string_view function, bool has_trait) {
  const bool answers = v.kind() == Kind::kString || v.kind() == Kind::kTimestamp || v.kind() == Kind::kDuration;
  return has_trait || answers ? no_such_overload() : Value::no_overload(fmt::format("no such overload: {}", function));
}
bool is_number(const Value& v) { return v.kind() == Kind::kInt || v.kind() == Kind::kUint || v.kind() == Kind::kDouble; }

__int128 nanos_of(const Value& v) { return static_cast<__int128>(v.seconds()) * 1'000'000'000 + v.nanos(); }
Value duration_of(__int128 nanos) {
  if (nanos > INT64_MAX || nanos < INT64_MIN) return Value::error("duration overflow");
  const auto value = static_cast<std::int64_t>(nanos);
  return Value::duration(value / 1'000'000'000, static_cast<std::int32_t>(value % 1'000'000'000));
}
Value timestamp_of(__int128 nanos) {
  auto seconds = nanos / 1'000'000'000, rest = nanos % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  if (seconds < kLeastUnix || seconds > kMostUnix) return Value::error("timestamp overflow");
  return Value::timestamp(static_cast<std::int64_t>(seconds), static_cast<std::int32_t>(rest));
}

Value add_lists(const Value& a, const Value& b) {
  if (const auto* growing = dynamic_cast<const GrowingList*>(&a.as_list())) {
    for (std::size_t i = 0; i < b.as_list().size(); ++i) growing->values.push_back(b.as_list().at(i));
    return a;
  }
  if (auto own = a.as_list().joined(b.as_list())) return std::move(*own);
  if (a.as_list().size() == 0) return b;
  if (b.as_list().size() == 0) return a;
  const auto size = a.as_list().size() + b.as_list().size();
  if (size > kMostElements) return Value::error("list is too large");
  if (size > 64) return Value::list(std::make_shared<const Concatenation>(a, b));
  std::vector<Value> values;
  values.reserve(size);
  for (std::size_t i = 0; i < a.as_list().size(); ++i) values.push_back(a.as_list().at(i));
  for (std::size_t i = 0; i < b.as_list().size(); ++i) values.push_back(b.as_list().at(i));
  return Value::list(std::move(values));
}

Value subtract(const Args& args) {
  const auto &a = args[0], &b = args[1];
  if (a.kind() == Kind::kInt && b.kind() == Kind::kInt) {
    std::int64_t out = 0;
    return __builtin_sub_overflow(a.as_int(), b.as_int(), &out) ? Value::error("integer overflow") : Value::integer(out);
  }
  if (a.kind() == Kind::kUint && b.kind() == Kind::kUint)
    return a.as_uint() < b.as_uint() ? Value::error("unsigned integer overflow") : Value::uinteger(a.as_uint() - b.as_uint());
  if (a.kind() == Kind::kDouble && b.kind() == Kind::kDouble) return Value::real(a.as_double() - b.as_double());
  if (a.kind() == Kind::kDuration && b.kind() == Kind::kDuration) return duration_of(nanos_of(a) - nanos_of(b));
  if (a.kind() == Kind::kTimestamp && b.kind() == Kind::kDuration) return timestamp_of(nanos_of(a) - nanos_of(b));
  if (a.kind() == Kind::kTimestamp && b.kind() == Kind::kTimestamp) return duration_of(nanos_of(a) - nanos_of(b));
  return missing(a, op::kSubtract, is_number(a));
}

Value multiply(const Args& args) {
  const auto &a = args[0], &b = args[1];
  if (a.kind() == Kind::kInt && b.kind() == Kind::kInt) {
    std::int64_t out = 0;
    return __builtin_mul_overflow(a.as_int(), b.as_int(), &out) ? Value::error("integer overflow") : Value::integer(out);
  }
  if (a.kind() == Kind::kUint && b.kind() == Kind::kUint) {
    std::uint64_t out = 0;
    return __builtin_mul_overflow(a.as_uint(), b.as_uint(), &out) ? Value::error("unsigned integer overflow") : Value::uinteger(out);
  }
  if (a.kind() == Kind::kDouble && b.kind() == Kind::kDouble) return Value::real(a.as_double() * b.as_double());
  return missing(a, op::kMultiply, is_number(a));
}

Value divide(const Args& args) {
  const auto &a = args[0], &b = args[1];
  if (a.kind() == Kind::kInt && b.kind() == Kind::kInt) {
    if (b.as_int() == 0) return Value::error("division by zero");
    if (a.as_int() == INT64_MIN && b.as_int() == -1) return Value::error("integer overflow");
    return Value::integer(a.as_int() / b.as_int());
  }
  if (a.kind() == Kind::kUint && b.kind() == Kind::kUint)
    return b.as_uint() == 0 ? Value::error("division by zero") : Value::uinteger(a.as_uint() / b.as_uint());
  if (a.kind() == Kind::kDouble && b.kind() == Kind::kDouble) return Value::real(a.as_double() / b.as_double());
  return missing(a, op::kDivide, is_number(a));
}

Value modulo(const Args& args) {
  const auto &a = args[0], &b = args[1];
  if (a.kind() == Kind::kInt && b.kind() == Kind::kInt) {
    if (b.as_int() == 0) return Value::error("modulus by zero");
    if (a.as_int() == INT64_MIN && b.as_int() == -1) return Value::error("integer overflow");
    return Value::integer(a.as_int() % b.as_int());
  }
  if (a.kind() == Kind::kUint && b.kind() == Kind::kUint)
    return b.as_uint() == 0 ? Value::error("modulus by zero") : Value::uinteger(a.as_uint() % b.as_uint());
  return missing(a, op::kModulo, a.kind() == Kind::kInt || a.kind() == Kind::kUint);
}

Value negate(const Args& args) {
  const auto& a = args[0];
  if (a.kind() == Kind::kInt) return a.as_int() == INT64_MIN ? Value::error("integer overflow") : Value::integer(-a.as_int());
  if (a.kind() == Kind::kDouble) return Value::real(-a.as_double());
  return missing(a, op::kNegate, false);
}

template <typename Test>
Value compared(const Args& args, std::string_view function, Test test) {
  const auto kind = args[0].kind();
  const bool is_comparer = kind == Kind::kBool || kind == Kind::kInt || kind == Kind::kUint || kind == Kind::kDouble ||
                           kind == Kind::kString || kind == Kind::kBytes || kind == Kind::kDuration || kind == Kind::kTimestamp;
  if (!is_comparer) return missing(args[0], function, false);
  const auto order = compare_values(args[0], args[1]);
  return order ? Value::boolean(test(*order)) : order.error();
}

Value contains(const Args& args) {
  if (args[1].kind() == Kind::kMap) {
    const auto found = args[1].as_map().find(args[0]);
    if (found && found->is_error()) return *found;
    return Value::boolean(found.has_value());
  }
  if (args[1].kind() != Kind::kList) return no_such_overload();
  const auto& list = args[1].as_list();
  for (std::size_t i = 0; i < list.size(); ++i)
    if (equal(list.at(i), args[0])) return Value::boolean(true);
  return Value::boolean(false);
}

Value size(const Args& args) {
  switch (args[0].kind()) {
    case Kind::kString: {
      std::int64_t count = 0;
      for (const char c : args[0].text()) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      return Value::integer(count);
    }
    case Kind::kBytes:
      return Value::integer(static_cast<std::int64_t>(args[0].text().size()));
    case Kind::kList:
      return Value::integer(static_cast<std::int64_t>(args[0].as_list().size()));
    case Kind::kMap:
      return Value::integer(static_cast<std::int64_t>(args[0].as_map().size()));
    default:
      return Value::no_overload("no such overload: size");
  }
}

void add_comparison(Registry& r, std::string_view name, std::string_view word, Code code) {
  static constexpr std::pair<const char*, const char*> kPairs[] = {
      {"bool", "bool"},     {"int", "int"},     {"int", "double"},          {"int", "uint"},         {"uint", "uint"},
      {"uint", "double"},   {"uint", "int"},    {"double", "double"},       {"double", "int"},       {"double", "uint"},
      {"string", "string"}, {"bytes", "bytes"}, {"timestamp", "timestamp"}, {"duration", "duration"}};
  for (const auto& [a, b] : kPairs) {
    const auto id = std::string_view(a) == b ? fmt::format("{}_{}", word, a) : fmt::format("{}_{}_{}", word, a, b);
    r.add(name, id, fmt::format("({}, {}): bool", a, b));
  }
  r.add_any(name, code);
}

}  // namespace

Expected<int, Value> compare_values(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) {
    const int order = compare_numbers(a, b);
    if (order == -2) return std::unexpected(Value::error("NaN values cannot be ordered"));
    return order;
  }
  if (a.kind() != b.kind()) return std::unexpected(no_such_overload());
  switch (a.kind()) {
    case Kind::kBool:
      return static_cast<int>(a.as_bool()) - static_cast<int>(b.as_bool());
    case Kind::kString:
    case Kind::kBytes: {
      const int order = a.text().compare(b.text());
      return order < 0 ? -1 : order > 0;
    }
    case Kind::kDuration:
    case Kind::kTimestamp: {
      const auto x = nanos_of(a), y = nanos_of(b);
      return x < y ? -1 : x > y;
    }
    default:
      return std::unexpected(no_such_overload());
  }
}

Value add_values(const Value& a, const Value& b) {
  if (a.kind() == Kind::kInt && b.kind() == Kind::kInt) {
    std::int64_t out = 0;
    return __builtin_add_overflow(a.as_int(), b.as_int(), &out) ? Value::error("integer overflow") : Value::integer(out);
  }
  if (a.kind() == Kind::kUint && b.kind() == Kind::kUint) {
    std::uint64_t out = 0;
    return __builtin_add_overflow(a.as_uint(), b.as_uint(), &out) ? Value::error("unsigned integer overflow") : Value::uinteger(out);
  }
  if (a.kind() == Kind::kDouble && b.kind() == Kind::kDouble) return Value::real(a.as_double() + b.as_double());
  if ((a.kind() == Kind::kString || a.kind() == Kind::kBytes) && a.kind() == b.kind()) {
    if (a.text().size() + b.text().size() > kMostText) return Value::error("string is too large");
    std::string joined(a.text());
    joined += b.text();
    return a.kind() == Kind::kString ? Value::string(std::move(joined)) : Value::bytes(std::move(joined));
  }
  if (a.kind() == Kind::kList && b.kind() == Kind::kList) return add_lists(a, b);
  if (a.kind() == Kind::kDuration && b.kind() == Kind::kDuration) return duration_of(nanos_of(a) + nanos_of(b));
  if (a.kind() == Kind::kTimestamp && b.kind() == Kind::kDuration) return timestamp_of(nanos_of(a) + nanos_of(b));
  if (a.kind() == Kind::kDuration && b.kind() == Kind::kTimestamp) return timestamp_of(nanos_of(a) + nanos_of(b));
  if (a.kind() == Kind::kBool || a.kind() == Kind::kNull || a.kind() == Kind::kMap || a.kind() == Kind::kType || a.kind() == Kind::kOpaque)
    return Value::no_overload("no such overload: _+_");
  return no_such_overload();
}

// Longer than a screen: a table, a line an operator.
void add_operators(Registry& r) {
  r.add(op::kConditional, "conditional", "(bool, A, A): A");
  r.add(op::kAnd, "logical_and", "(bool, bool): bool");
  r.add(op::kOr, "logical_or", "(bool, bool): bool");
  r.add(op::kNot, "logical_not", "(bool): bool");
  r.add_any(op::kNot,
            [](const Args& args) { return args[0].kind() == Kind::kBool ? Value::boolean(!args[0].as_bool()) : no_such_overload(); });
  r.add(op::kNotStrictlyFalse, "not_strictly_false", "(bool): bool");
  r.add(op::kEquals, "equals", "(A, A): bool");
  r.add(op::kNotEquals, "not_equals", "(A, A): bool");
  for (const auto* signature :
       {"add_bytes|(bytes, bytes): bytes", "add_double|(double, double): double", "add_duration_duration|(duration, duration): duration",
        "add_duration_timestamp|(duration, timestamp): timestamp", "add_timestamp_duration|(timestamp, duration): timestamp",
        "add_int64|(int, int): int", "add_list|(list(A), list(A)): list(A)", "add_string|(string, string): string",
        "add_uint64|(uint, uint): uint"}) {
    const std::string_view text = signature;
    r.add(op::kAdd, text.substr(0, text.find('|')), text.substr(text.find('|') + 1));
  }
  r.add_any(op::kAdd, [](const Args& args) { return add_values(args[0], args[1]); });
  r.add(op::kDivide, "divide_double", "(double, double): double");
  r.add(op::kDivide, "divide_int64", "(int, int): int");
  r.add(op::kDivide, "divide_uint64", "(uint, uint): uint");
  r.add_any(op::kDivide, divide);
  r.add(op::kModulo, "modulo_int64", "(int, int): int");
  r.add(op::kModulo, "modulo_uint64", "(uint, uint): uint");
  r.add_any(op::kModulo, modulo);
  r.add(op::kMultiply, "multiply_double", "(double, double): double");
  r.add(op::kMultiply, "multiply_int64", "(int, int): int");
  r.add(op::kMultiply, "multiply_uint64", "(uint, uint): uint");
  r.add_any(op::kMultiply, multiply);
  r.add(op::kNegate, "negate_double", "(double): double");
  r.add(op::kNegate, "negate_int64", "(int): int");
  r.add_any(op::kNegate, negate);
  r.add(op::kSubtract, "subtract_double", "(double, double): double");
  r.add(op::kSubtract, "subtract_duration_duration", "(duration, duration): duration");
  r.add(op::kSubtract, "subtract_int64", "(int, int): int");
  r.add(op::kSubtract, "subtract_timestamp_duration", "(timestamp, duration): timestamp");
  r.add(op::kSubtract, "subtract_timestamp_timestamp", "(timestamp, timestamp): duration");
  r.add(op::kSubtract, "subtract_uint64", "(uint, uint): uint");
  r.add_any(op::kSubtract, subtract);
  add_comparison(r, op::kLess, "less", [](const Args& args) { return compared(args, op::kLess, [](int o) { return o < 0; }); });
  add_comparison(r, op::kLessEquals, "less_equals",
                 [](const Args& args) { return compared(args, op::kLessEquals, [](int o) { return o <= 0; }); });
  add_comparison(r, op::kGreater, "greater", [](const Args& args) { return compared(args, op::kGreater, [](int o) { return o > 0; }); });
  add_comparison(r, op::kGreaterEquals, "greater_equals",
                 [](const Args& args) { return compared(args, op::kGreaterEquals, [](int o) { return o >= 0; }); });
  r.add(op::kIndex, "index_list", "(list(A), int): A");
  r.add(op::kIndex, "index_map", "(map(A, B), A): B");
  r.add(op::kIndex, "optional_list_index_int", "(optional(list(V)), int): optional(V)");
  r.add(op::kIndex, "optional_map_index_value", "(optional(map(K, V)), K): optional(V)");
  r.add(op::kOptIndex, "list_optindex_optional_int", "(list(V), int): optional(V)");
  r.add(op::kOptIndex, "optional_list_optindex_optional_int", "(optional(list(V)), int): optional(V)");
  r.add(op::kOptIndex, "map_optindex_optional_value", "(map(K, V), K): optional(V)");
  r.add(op::kOptIndex, "optional_map_optindex_optional_value", "(optional(map(K, V)), K): optional(V)");
  r.add(op::kOptSelect, "select_optional_field", "(dyn, string): optional(V)");
  r.add(op::kIn, "in_list", "(A, list(A)): bool");
  r.add(op::kIn, "in_map", "(A, map(A, B)): bool");
  r.add_any(op::kIn, contains);
  r.add("size", "size_bytes", "(bytes): int");
  r.add("size", "bytes_size", "bytes.(): int");
  r.add("size", "size_list", "(list(A)): int");
  r.add("size", "list_size", "list(A).(): int");
  r.add("size", "size_map", "(map(A, B)): int");
  r.add("size", "map_size", "map(A, B).(): int");
  r.add("size", "size_string", "(string): int");
  r.add("size", "string_size", "string.(): int");
  r.add_any("size", size);
  // The accumulation of transformMap and transformMapEntry.
  static const auto insert = [](const Args& args) {
    const auto& target = static_cast<const ValueMap&>(args[0].as_map());
    if (args.size() == 3)
      return target.insert(args[1], args[2]) ? args[0]
                                             : Value::error(fmt::format("insert failed: key {} already exists", to_text(args[1])));
    std::string failed;
    args[1].as_map().each([&](const Value& key, const Value& value) {
      if (!target.insert(key, value)) failed = fmt::format("insert failed: key {} already exists", to_text(key));
      return failed.empty();
    });
    return failed.empty() ? args[0] : Value::error(failed);
  };
  r.add("cel.@mapInsert", "@mapInsert_map_key_value", "(map(K, V), K, V): map(K, V)", [](const Args& args) { return insert(args); });
  r.add("cel.@mapInsert", "@mapInsert_map_map", "(map(K, V), map(K, V)): map(K, V)", [](const Args& args) { return insert(args); });
}

}  // namespace berth::cel
