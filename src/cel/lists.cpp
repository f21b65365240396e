// Lists, sets and optionals (ext/lists.go version 3, ext/sets.go, apiserver/pkg/cel/library/lists.go, cel/library.go).
#include <cmath>

#include "cel/functions.h"
#include "cel/limits.h"
#include "cel/opaque.h"

namespace berth::cel {
namespace {

using Kind = Value::Kind;

bool is_comparable(const Value& v) {
  switch (v.kind()) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDouble:
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kDuration:
    case Kind::kTimestamp:
      return true;
    default:
      return false;
  }
}

bool has(const List& list, const Value& wanted) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (equal(list.at(i), wanted)) return true;
  return false;
}
bool has_all(const List& list, const List& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!has(list, wanted.at(i))) return false;
  return true;
}

Value is_sorted(const Args& a) {
  const auto& list = a[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_comparable(list.at(i))) return no_such_overload();
    if (i == 0) continue;
    const auto order = compare_values(list.at(i - 1), list.at(i));
    if (order && *order > 0) return Value::boolean(false);
  }
  return Value::boolean(true);
}

Value sum(const Args& a, Value total) {
  const auto& list = a[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    total = add_values(total, list.at(i));
    if (total.is_error()) return total;
  }
  return total;
}

Value extreme(const Args& a, int wanted, std::string_view name) {
  const auto& list = a[0].as_list();
  if (list.size() == 0) return Value::error(fmt::format("{} called on empty list", name));
  auto best = list.at(0);
  if (!is_comparable(best)) return no_such_overload();
  for (std::size_t i = 1; i < list.size(); ++i) {
    const auto next = list.at(i);
    if (!is_comparable(next)) return no_such_overload();
    const auto order = compare_values(next, best);
    if (order && *order == wanted) best = next;
  }
  return best;
}

Value index_of(const Args& a, bool from_end) {
  const auto& list = a[0].as_list();
  for (std::size_t n = 0; n < list.size(); ++n) {
    const auto i = from_end ? list.size() - 1 - n : n;
    if (equal(list.at(i), a[1])) return Value::integer(static_cast<std::int64_t>(i));
  }
  return Value::integer(-1);
}

Value slice(const Args& a) {
  const auto start = a[1].as_int(), end = a[2].as_int();
  const auto size = static_cast<std::int64_t>(a[0].as_list().size());
  if (start < 0 || end < 0) return Value::error(fmt::format("cannot slice({}, {}), negative indexes not supported", start, end));
  if (start > end)
    return Value::error(fmt::format("cannot slice({}, {}), start index must be less than or equal to end index", start, end));
  if (size < end) return Value::error(fmt::format("cannot slice({}, {}), list is length {}", start, end, size));
  std::vector<Value> out;
  for (auto i = start; i < end; ++i) out.push_back(a[0].as_list().at(static_cast<std::size_t>(i)));
  return Value::list(std::move(out));
}

void flatten_into(const List& list, std::int64_t depth, int nested, std::vector<Value>& out) {
  for (std::size_t i = 0; i < list.size() && out.size() <= kMostElements; ++i) {
    auto value = list.at(i);
    if (value.kind() != Kind::kList || depth == 0 || nested > 500)
      out.push_back(std::move(value));
    else
      flatten_into(value.as_list(), depth - 1, nested + 1, out);
  }
}

Value flatten(const Args& a) {
  const auto depth = a.size() > 1 ? a[1].as_int() : 1;
  if (depth < 0) return Value::error("level must be non-negative");
  std::vector<Value> out;
  flatten_into(a[0].as_list(), depth, 0, out);
  if (out.size() > kMostElements) return Value::error("list is too large");
  return Value::list(std::move(out));
}

Value sort_by(const List& list, const List& keys, const Value& whole) {
  if (list.size() != keys.size())
    return Value::error(fmt::format(
        "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} elements respectively",
        list.size(), keys.size()));
  if (list.size() == 0) return whole;
  std::vector<std::pair<Value, std::size_t>> order;
  for (std::size_t i = 0; i < keys.size(); ++i) order.emplace_back(keys.at(i), i);
  if (!is_comparable(order[0].first)) return Value::error("list elements must be comparable");
  for (const auto& [key, index] : order)
    if (key.kind() != order[0].first.kind()) return Value::error("list elements must have the same type");
  // NaN compares to nothing; ordering it last keeps the order strict.
  const auto is_nan = [](const Value& v) { return v.kind() == Kind::kDouble && std::isnan(v.as_double()); };
  std::stable_sort(order.begin(), order.end(), [&](const auto& x, const auto& y) {
    if (is_nan(x.first) || is_nan(y.first)) return !is_nan(x.first) && is_nan(y.first);
    return compare_values(x.first, y.first).value_or(0) < 0;
  });
  std::vector<Value> out;
  for (const auto& [key, index] : order) out.push_back(list.at(index));
  return Value::list(std::move(out));
}

Value distinct(const Args& a) {
  const auto& list = a[0].as_list();
  std::vector<Value> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto value = list.at(i);
    if (std::none_of(out.begin(), out.end(), [&](const Value& seen) { return equal(seen, value); })) out.push_back(value);
  }
  return Value::list(std::move(out));
}

Value reverse(const Args& a) {
  std::vector<Value> out;
  for (std::size_t i = a[0].as_list().size(); i > 0; --i) out.push_back(a[0].as_list().at(i - 1));
  return Value::list(std::move(out));
}

Value range(const Args& a) {
  if (a[0].as_int() > static_cast<std::int64_t>(kMostElements)) return Value::error("list is too large");
  std::vector<Value> out;
  for (std::int64_t i = 0; i < a[0].as_int(); ++i) out.push_back(Value::integer(i));
  return Value::list(std::move(out));
}

bool is_zero(const Value& v) {
  switch (v.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return !v.as_bool();
    case Kind::kInt:
      return v.as_int() == 0;
    case Kind::kUint:
      return v.as_uint() == 0;
    case Kind::kDouble:
      return v.as_double() == 0;
    case Kind::kString:
    case Kind::kBytes:
      return v.text().empty();
    case Kind::kDuration:
      return v.seconds() == 0 && v.nanos() == 0;
    case Kind::kTimestamp:
      return v.seconds() == -62135596800 && v.nanos() == 0;
    case Kind::kList:
      return v.as_list().size() == 0;
    case Kind::kMap:
      return v.as_map().size() == 0;
    default:
      return false;
  }
}

Value unwrap(const Args& a) {
  std::vector<Value> out;
  for (std::size_t i = 0; i < a[0].as_list().size(); ++i) {
    const auto element = a[0].as_list().at(i);
    if (element.kind() != Kind::kOptional) return Value::error(fmt::format("value {} is not optional", to_text(element)));
    if (element.optional_value() != nullptr) out.push_back(*element.optional_value());
  }
  return Value::list(std::move(out));
}

}  // namespace

void add_lists(Registry& r) {
  static constexpr const char* kComparable[] = {"int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"};
  for (const auto* t : kComparable) {
    r.add("isSorted", fmt::format("list_{}_is_sorted_bool", t), fmt::format("list({}).(): bool", t), is_sorted);
    r.add("max", fmt::format("list_{0}_max_{0}", t), fmt::format("list({0}).(): {0}", t),
          [](const Args& a) { return extreme(a, 1, "max"); });
    r.add("min", fmt::format("list_{0}_min_{0}", t), fmt::format("list({0}).(): {0}", t),
          [](const Args& a) { return extreme(a, -1, "min"); });
    r.add("sort", fmt::format("list_{}_sort", t), fmt::format("list({0}).(): list({0})", t),
          [](const Args& a) { return sort_by(a[0].as_list(), a[0].as_list(), a[0]); });
    r.add("@sortByAssociatedKeys", fmt::format("list_{}_sortByAssociatedKeys", t), fmt::format("list(T).(list({})): list(T)", t),
          [](const Args& a) { return sort_by(a[0].as_list(), a[1].as_list(), a[0]); });
  }
  r.add("sum", "list_int_sum_int", "list(int).(): int", [](const Args& a) { return sum(a, Value::integer(0)); });
  r.add("sum", "list_uint_sum_uint", "list(uint).(): uint", [](const Args& a) { return sum(a, Value::uinteger(0)); });
  r.add("sum", "list_double_sum_double", "list(double).(): double", [](const Args& a) { return sum(a, Value::real(0)); });
  r.add("sum", "list_duration_sum_duration", "list(duration).(): duration", [](const Args& a) { return sum(a, Value::duration(0, 0)); });
  r.add("indexOf", "list_a_index_of_int", "list(A).(A): int", [](const Args& a) { return index_of(a, false); });
  r.add("lastIndexOf", "list_a_last_index_of_int", "list(A).(A): int", [](const Args& a) { return index_of(a, true); });
  r.add("slice", "list_slice", "list(T).(int, int): list(T)", slice);
  r.add("flatten", "list_flatten", "list(list(T)).(): list(T)", flatten);
  r.add("flatten", "list_flatten_int", "list(dyn).(int): list(dyn)", flatten);
  r.add("lists.range", "lists_range", "(int): list(int)", range);
  r.add("reverse", "list_reverse", "list(T).(): list(T)", reverse);
  r.add("distinct", "list_distinct", "list(T).(): list(T)", distinct);
  r.add("sets.contains", "list_sets_contains_list", "(list(T), list(T)): bool",
        [](const Args& a) { return Value::boolean(has_all(a[0].as_list(), a[1].as_list())); });
  r.add("sets.equivalent", "list_sets_equivalent_list", "(list(T), list(T)): bool",
        [](const Args& a) { return Value::boolean(has_all(a[0].as_list(), a[1].as_list()) && has_all(a[1].as_list(), a[0].as_list())); });
  r.add("sets.intersects", "list_sets_intersects_list", "(list(T), list(T)): bool", [](const Args& a) {
    for (std::size_t i = 0; i < a[0].as_list().size(); ++i)
      if (has(a[1].as_list(), a[0].as_list().at(i))) return Value::boolean(true);
    return Value::boolean(false);
  });
}

void add_optionals(Registry& r) {
  r.add("optional.of", "optional_of", "(V): optional(V)", [](const Args& a) { return Value::optional(a[0]); });
  r.add("optional.ofNonZeroValue", "optional_ofNonZeroValue", "(V): optional(V)",
        [](const Args& a) { return is_zero(a[0]) ? Value::none() : Value::optional(a[0]); });
  r.add("optional.none", "optional_none", "(): optional(V)", [](const Args&) { return Value::none(); });
  r.add("value", "optional_value", "optional(V).(): V", [](const Args& a) {
    return a[0].optional_value() != nullptr ? *a[0].optional_value() : Value::error("optional.none() dereference");
  });
  r.add("hasValue", "optional_hasValue", "optional(V).(): bool",
        [](const Args& a) { return Value::boolean(a[0].optional_value() != nullptr); });
  r.add("or", "optional_or_optional", "optional(V).(optional(V)): optional(V)");
  r.add("orValue", "optional_orValue_value", "optional(V).(V): V");
  r.add("first", "list_first", "list(V).(): optional(V)",
        [](const Args& a) { return a[0].as_list().size() == 0 ? Value::none() : Value::optional(a[0].as_list().at(0)); });
  r.add("last", "list_last", "list(V).(): optional(V)", [](const Args& a) {
    const auto size = a[0].as_list().size();
    return size == 0 ? Value::none() : Value::optional(a[0].as_list().at(size - 1));
  });
  r.add("optional.unwrap", "optional_unwrap", "(list(optional(V))): list(V)", unwrap);
  r.add("unwrapOpt", "optional_unwrapOpt", "list(optional(V)).(): list(V)", unwrap);
}

}  // namespace berth::cel
