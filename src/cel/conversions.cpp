// Conversions between types, and the functions of timestamps and durations.
#include <charconv>
#include <cmath>

#include "base/go/duration.h"
#include "base/utf8.h"
#include "cel/functions.h"
#include "cel/limits.h"
#include "cel/opaque.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

using Kind = Value::Kind;

Value cannot(const Value& from, std::string_view to) {
  return Value::error(fmt::format("type conversion error from '{}' to '{}'", type_name(from), to));
}

/// Go's ParseInt and ParseUint in base 10.
template <typename Int>
std::optional<Int> parse_integer(std::string_view text) {
  if (std::is_signed_v<Int> && text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  Int out = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

std::optional<double> parse_double(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::string_view body = lower;
  const bool is_negative = body.starts_with('-');
  if (is_negative || body.starts_with('+')) body.remove_prefix(1);
  double out = 0;
  if (body == "inf" || body == "infinity") {
    out = INFINITY;
  } else if (body == "nan") {
    return NAN;
  } else {
    if (body.empty() || (body[0] != '.' && std::isdigit(static_cast<unsigned char>(body[0])) == 0)) return std::nullopt;
    const auto result = std::from_chars(body.data(), body.data() + body.size(), out);
    if (result.ec != std::errc() || result.ptr != body.data() + body.size()) return std::nullopt;
  }
  return is_negative ? -out : out;
}

Value to_int(const Args& args) {
  const auto& v = args[0];
  switch (v.kind()) {
    case Kind::kInt:
      return v;
    case Kind::kDouble:
      if (std::isinf(v.as_double()) || std::isnan(v.as_double()) || v.as_double() <= -9223372036854775808.0 ||
          v.as_double() >= 9223372036854775807.0)
        return Value::error("integer overflow");
      return Value::integer(static_cast<std::int64_t>(v.as_double()));
    case Kind::kDuration:
      return Value::integer(v.seconds() * 1'000'000'000 + v.nanos());
    case Kind::kTimestamp:
      return Value::integer(v.seconds());
    case Kind::kUint:
      return v.as_uint() > static_cast<std::uint64_t>(INT64_MAX) ? Value::error("integer overflow")
                                                                 : Value::integer(static_cast<std::int64_t>(v.as_uint()));
    case Kind::kString: {
      const auto out = parse_integer<std::int64_t>(v.text());
      return out ? Value::integer(*out) : cannot(v, "int");
    }
    default:
      return cannot(v, "int");
  }
}

Value to_uint(const Args& args) {
  const auto& v = args[0];
  switch (v.kind()) {
    case Kind::kUint:
      return v;
    case Kind::kInt:
      return v.as_int() < 0 ? Value::error("unsigned integer overflow") : Value::uinteger(static_cast<std::uint64_t>(v.as_int()));
    case Kind::kDouble:
      if (std::isnan(v.as_double()) || v.as_double() < 0 || v.as_double() >= 18446744073709551615.0)
        return Value::error("unsigned integer overflow");
      return Value::uinteger(static_cast<std::uint64_t>(v.as_double()));
    case Kind::kString: {
      const auto out = parse_integer<std::uint64_t>(v.text());
      return out ? Value::uinteger(*out) : cannot(v, "uint");
    }
    default:
      return cannot(v, "uint");
  }
}

Value to_double(const Args& args) {
  const auto& v = args[0];
  switch (v.kind()) {
    case Kind::kDouble:
      return v;
    case Kind::kInt:
      return Value::real(static_cast<double>(v.as_int()));
    case Kind::kUint:
      return Value::real(static_cast<double>(v.as_uint()));
    case Kind::kString: {
      const auto out = parse_double(v.text());
      return out ? Value::real(*out) : cannot(v, "double");
    }
    default:
      return cannot(v, "double");
  }
}

Value to_string_value(const Args& args) {
  const auto& v = args[0];
  switch (v.kind()) {
    case Kind::kString:
      return v;
    case Kind::kBytes:
      if (!is_utf8(v.text())) return Value::error("invalid UTF-8 in bytes, cannot convert to string");
      return Value::string(std::string(v.text()));
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDouble:
    case Kind::kDuration:
    case Kind::kTimestamp:
      return Value::string(to_text(v));
    default:
      return cannot(v, "string");
  }
}

Value to_bool(const Args& args) {
  const auto text = args[0].text();
  for (const auto* word : {"1", "t", "T", "TRUE", "true", "True"})
    if (text == word) return Value::boolean(true);
  for (const auto* word : {"0", "f", "F", "FALSE", "false", "False"})
    if (text == word) return Value::boolean(false);
  return cannot(args[0], "bool");
}

Value to_duration(const Args& args) {
  const auto nanos = parse_duration_ns(args[0].text());
  if (!nanos) return cannot(args[0], "google.protobuf.Duration");
  return Value::duration(*nanos / 1'000'000'000, static_cast<std::int32_t>(*nanos % 1'000'000'000));
}

Value to_timestamp(const Args& args) {
  if (args[0].kind() == Kind::kInt) {
    if (args[0].as_int() < kLeastUnix || args[0].as_int() > kMostUnix) return Value::error("timestamp overflow");
    return Value::timestamp(args[0].as_int(), 0);
  }
  const auto instant = parse_rfc3339(args[0].text());
  if (!instant) return cannot(args[0], "google.protobuf.Timestamp");
  if (instant->seconds < kLeastUnix || instant->seconds > kMostUnix) return Value::error("timestamp overflow");
  return Value::timestamp(instant->seconds, instant->nanos);
}

Value same(const Args& args) { return args[0]; }

/// The local civil time of a timestamp, in the zone of the second argument when there is one.
Expected<Civil, Value> civil_of(const Args& args) {
  std::int64_t offset = 0;
  if (args.size() > 1) {
    const auto found = zone_offset(args[1].text(), args[0].seconds());
    if (!found) return std::unexpected(Value::error(fmt::format("unknown time zone {}", args[1].text())));
    offset = *found;
  }
  return civil_from_seconds(args[0].seconds() + offset);
}

template <typename Read>
Value part(const Args& args, Read read) {
  const auto civil = civil_of(args);
  return civil ? Value::integer(read(*civil)) : civil.error();
}

std::int64_t int64_nanos_of(const Value& v) { return v.seconds() * 1'000'000'000 + v.nanos(); }

}  // namespace

void add_conversions(Registry& r) {
  r.add("type", "type", "(A): type(A)", [](const Args& args) {
    if (args[0].kind() == Kind::kType) return Value::type(type_type());
    return Value::type(opaque_type(std::string(type_name(args[0]))));
  });
  r.add("bool", "bool_to_bool", "(bool): bool", same);
  r.add("bool", "string_to_bool", "(string): bool", to_bool);
  r.add("bytes", "bytes_to_bytes", "(bytes): bytes", same);
  r.add("bytes", "string_to_bytes", "(string): bytes", [](const Args& args) { return Value::bytes(std::string(args[0].text())); });
  r.add("double", "double_to_double", "(double): double", same);
  r.add("double", "int64_to_double", "(int): double", to_double);
  r.add("double", "string_to_double", "(string): double", to_double);
  r.add("double", "uint64_to_double", "(uint): double", to_double);
  r.add("duration", "duration_to_duration", "(duration): duration", same);
  r.add("duration", "int64_to_duration", "(int): duration", [](const Args& args) {
    return Value::duration(args[0].as_int() / 1'000'000'000, static_cast<std::int32_t>(args[0].as_int() % 1'000'000'000));
  });
  r.add("duration", "string_to_duration", "(string): duration", to_duration);
  r.add("dyn", "to_dyn", "(A): dyn", same);
  for (const auto* text : {"int64_to_int64|(int): int", "double_to_int64|(double): int", "duration_to_int64|(duration): int",
                           "string_to_int64|(string): int", "timestamp_to_int64|(timestamp): int", "uint64_to_int64|(uint): int"}) {
    const std::string_view line = text;
    r.add("int", line.substr(0, line.find('|')), line.substr(line.find('|') + 1), to_int);
  }
  for (const auto* text : {"string_to_string|(string): string", "bool_to_string|(bool): string", "bytes_to_string|(bytes): string",
                           "double_to_string|(double): string", "duration_to_string|(duration): string", "int64_to_string|(int): string",
                           "timestamp_to_string|(timestamp): string", "uint64_to_string|(uint): string"}) {
    const std::string_view line = text;
    r.add("string", line.substr(0, line.find('|')), line.substr(line.find('|') + 1), to_string_value);
  }
  r.add("timestamp", "timestamp_to_timestamp", "(timestamp): timestamp", same);
  r.add("timestamp", "int64_to_timestamp", "(int): timestamp", to_timestamp);
  r.add("timestamp", "string_to_timestamp", "(string): timestamp", to_timestamp);
  r.add("uint", "uint64_to_uint64", "(uint): uint", same);
  r.add("uint", "double_to_uint64", "(double): uint", to_uint);
  r.add("uint", "int64_to_uint64", "(int): uint", to_uint);
  r.add("uint", "string_to_uint64", "(string): uint", to_uint);
}

void add_time(Registry& r) {
  const auto both = [&](const char* name, Code code) {
    r.add(name, fmt::format("timestamp_{}", name), "timestamp.(): int", code);
    r.add(name, fmt::format("timestamp_{}_with_tz", name), "timestamp.(string): int", code);
  };
  both("getFullYear", [](const Args& a) { return part(a, [](const Civil& c) { return c.year; }); });
  both("getMonth", [](const Args& a) { return part(a, [](const Civil& c) { return c.month - 1; }); });
  both("getDayOfYear", [](const Args& a) { return part(a, [](const Civil& c) { return c.yearday; }); });
  both("getDayOfMonth", [](const Args& a) { return part(a, [](const Civil& c) { return c.day - 1; }); });
  both("getDate", [](const Args& a) { return part(a, [](const Civil& c) { return c.day; }); });
  both("getDayOfWeek", [](const Args& a) { return part(a, [](const Civil& c) { return c.weekday; }); });
  both("getHours", [](const Args& a) { return part(a, [](const Civil& c) { return c.hour; }); });
  both("getMinutes", [](const Args& a) { return part(a, [](const Civil& c) { return c.minute; }); });
  both("getSeconds", [](const Args& a) { return part(a, [](const Civil& c) { return c.second; }); });
  both("getMilliseconds", [](const Args& a) {
    const auto nanos = a[0].nanos();
    return part(a, [nanos](const Civil&) { return nanos / 1'000'000; });
  });
  r.add("getHours", "duration_to_hours", "duration.(): int",
        [](const Args& a) { return Value::integer(int64_nanos_of(a[0]) / 3'600'000'000'000); });
  r.add("getMinutes", "duration_to_minutes", "duration.(): int",
        [](const Args& a) { return Value::integer(int64_nanos_of(a[0]) / 60'000'000'000); });
  r.add("getSeconds", "duration_to_seconds", "duration.(): int",
        [](const Args& a) { return Value::integer(int64_nanos_of(a[0]) / 1'000'000'000); });
  r.add("getMilliseconds", "duration_to_milliseconds", "duration.(): int",
        [](const Args& a) { return Value::integer(int64_nanos_of(a[0]) / 1'000'000); });
}

}  // namespace berth::cel
