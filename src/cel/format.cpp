// string.format (ext/formatting.go, the first version with its English digit grouping).
#include <charconv>
#include <cmath>

#include "cel/functions.h"
#include "cel/limits.h"
#include "cel/opaque.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

using Kind = Value::Kind;
using Text = Expected<std::string, std::string>;
constexpr int kDefaultPrecision = 6;

Text text_of(const Value& v, int depth);

std::string fixed(double value, int precision) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.{}f}", value, precision);
}

/// How a value stands inside a list or map.
Text member_of(const Value& v, int depth) {
  switch (v.kind()) {
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kBool:
    case Kind::kNull:
    case Kind::kType:
      return to_text(v);
    case Kind::kString:
      return go::quote(v.text());
    case Kind::kBytes:
      return "b" + go::quote(v.text());
    case Kind::kTimestamp:
      return fmt::format("timestamp({})", go::quote(to_text(v)));
    case Kind::kDuration:
      return fmt::format("duration({})", go::quote(to_text(v)));
    case Kind::kDouble: {
      auto text = fixed(v.as_double(), kDefaultPrecision);
      return std::isfinite(v.as_double()) ? text : go::quote(text);
    }
    case Kind::kList:
    case Kind::kMap:
      return text_of(v, depth + 1);
    default:
      return std::unexpected(fmt::format("no formatting function for {}", type_name(v)));
  }
}

Text list_text(const List& list, int depth) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto member = member_of(list.at(i), depth);
    if (!member) return member;
    out += (i > 0 ? ", " : "") + *member;
    if (out.size() > kMostText) return std::unexpected("string is too large");
  }
  return out + "]";
}

Text map_text(const Map& map, int depth) {
  std::vector<std::pair<std::string, std::string>> entries;
  std::string error;
  map.each([&](const Value& key, const Value& value) {
    if (key.kind() != Kind::kString && key.kind() != Kind::kBool && key.kind() != Kind::kInt && key.kind() != Kind::kUint) {
      error = fmt::format("no formatting function for map key of type {}", type_name(key));
      return false;
    }
    auto text = member_of(value, depth);
    if (!text)
      error = text.error();
    else
      entries.emplace_back(key.kind() == Kind::kString ? go::quote(key.text()) : to_text(key), std::move(*text));
    return error.empty();
  });
  if (!error.empty()) return std::unexpected(error);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out = "{";
  for (std::size_t i = 0; i < entries.size(); ++i) out += fmt::format("{}{}:{}", i > 0 ? ", " : "", entries[i].first, entries[i].second);
  return out + "}";
}

Text text_of(const Value& v, int depth) {
  if (depth > 500) return std::unexpected("the value is nested too deeply");
  switch (v.kind()) {
    case Kind::kList:
      return list_text(v.as_list(), depth);
    case Kind::kMap:
      return map_text(v.as_map(), depth);
    case Kind::kOptional:
    case Kind::kOpaque:
    case Kind::kError:
      return std::unexpected(
          fmt::format("error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
                      "types, durations, and timestamps, was given {}",
                      type_name(v)));
    default:
      return to_text(v);
  }
}

std::string group_thousands(std::string text) {
  const auto start = text.starts_with('-') ? 1UL : 0UL;
  auto dot = text.find('.');
  if (dot == std::string::npos) dot = text.size();
  for (auto at = dot; at > start + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

Text number_clause(const Value& v, char clause, int precision) {
  double value = 0;
  if (v.kind() == Kind::kDouble)
    value = v.as_double();
  else if (v.kind() == Kind::kString && v.text() == "NaN")
    value = NAN;
  else if (v.kind() == Kind::kString && v.text() == "Infinity")
    value = INFINITY;
  else if (v.kind() == Kind::kString && v.text() == "-Infinity")
    value = -INFINITY;
  else
    return std::unexpected(fmt::format("error during formatting: {} clause can only be used on doubles, was given {}",
                                       clause == 'f' ? "fixed-point" : "scientific", type_name(v)));
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "-∞";
  if (clause == 'f') return group_thousands(fixed(value, precision));
  const auto text = fmt::format("{:.{}e}", value, precision);
  const auto e = text.find('e');
  const bool is_negative = text[e + 1] == '-';
  std::string exponent = text.substr(e + 2), raised;
  if (exponent.size() < 2) exponent.insert(0, "0");
  static constexpr const char* kRaised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  for (const char c : exponent) raised += kRaised[c - '0'];
  return fmt::format("{}×10{}{}", text.substr(0, e), is_negative ? "⁻" : "", raised);
}

template <typename Format>
Text integer_clause(const Value& v, std::string_view wrong, Format format) {
  if (v.kind() == Kind::kInt) {
    const auto value = v.as_int();
    const auto magnitude = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
    return (value < 0 ? "-" : "") + format(magnitude);
  }
  if (v.kind() == Kind::kUint) return format(v.as_uint());
  return std::unexpected(fmt::format("error during formatting: {}, was given {}", wrong, type_name(v)));
}

Text clause_text(const Value& v, char clause, int precision) {
  switch (clause) {
    case 's':
      return text_of(v, 0);
    case 'd':
      return integer_clause(v, "decimal clause can only be used on integers", [](std::uint64_t n) { return fmt::format("{}", n); });
    case 'f':
    case 'e':
      return number_clause(v, clause, precision);
    case 'b':
      if (v.kind() == Kind::kBool) return v.as_bool() ? "1" : "0";
      return integer_clause(v, "only integers and bools can be formatted as binary",
                            [](std::uint64_t n) { return fmt::format("{:b}", n); });
    case 'o':
      return integer_clause(v, "octal clause can only be used on integers", [](std::uint64_t n) { return fmt::format("{:o}", n); });
    case 'x':
    case 'X': {
      if (v.kind() == Kind::kString || v.kind() == Kind::kBytes) {
        std::string out;
        for (const char c : v.text())
          out +=
              clause == 'x' ? fmt::format("{:02x}", static_cast<unsigned char>(c)) : fmt::format("{:02X}", static_cast<unsigned char>(c));
        return out;
      }
      return integer_clause(v, "only integers, byte buffers, and strings can be formatted as hex",
                            [&](std::uint64_t n) { return clause == 'x' ? fmt::format("{:x}", n) : fmt::format("{:X}", n); });
    }
    default:
      return std::unexpected(fmt::format("could not parse formatting clause: unrecognized formatting clause \"{}\"", clause));
  }
}

Value format(const Args& args) {
  const auto pattern = args[0].text();
  const auto& list = args[1].as_list();
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    if (++i >= pattern.size()) return Value::error("unexpected end of string");
    if (pattern[i] == '%') {
      out += '%';
      continue;
    }
    if (next >= list.size()) return Value::error(fmt::format("index {} out of range", next));
    int precision = kDefaultPrecision;
    if (pattern[i] == '.') {
      const auto start = ++i;
      while (i < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[i])) != 0) ++i;
      if (i >= pattern.size()) return Value::error("error while parsing precision: could not find end of precision specifier");
      if (std::from_chars(pattern.data() + start, pattern.data() + i, precision).ec != std::errc())
        return Value::error("error while parsing precision: error while converting precision to integer");
      precision = std::min(precision, 10'000);
    }
    auto text = clause_text(list.at(next++), pattern[i], precision);
    if (!text) return Value::error(std::move(text.error()));
    out += *text;
    if (out.size() > kMostText) return Value::error("string is too large");
  }
  return Value::string(std::move(out));
}

}  // namespace

namespace {

/// Why a clause cannot take a type; empty: it can.
std::string refuse_type(char clause, const std::string& type) {
  const auto is = [&](std::initializer_list<std::string_view> names) { return std::find(names.begin(), names.end(), type) != names.end(); };
  const auto wrong = [&](std::string_view why) { return fmt::format("error during formatting: {}, was given {}", why, type); };
  switch (clause) {
    case 's':
      if (is({"list", "map", "int", "uint", "double", "bool", "string", "google.protobuf.Timestamp", "bytes", "google.protobuf.Duration",
              "null_type"}) ||
          type.starts_with("type"))
        return {};
      return wrong("string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps");
    case 'd':
      return is({"int", "uint"}) ? "" : wrong("decimal clause can only be used on integers");
    case 'f':
      return is({"double", "string"}) ? "" : wrong("fixed-point clause can only be used on doubles");
    case 'e':
      return is({"double", "string"}) ? "" : wrong("scientific clause can only be used on doubles");
    case 'b':
      return is({"int", "uint", "bool"}) ? "" : wrong("only integers and bools can be formatted as binary");
    case 'o':
      return is({"int", "uint"}) ? "" : wrong("octal clause can only be used on integers");
    case 'x':
    case 'X':
      return is({"int", "uint", "string", "bytes"}) ? "" : wrong("only integers, byte buffers, and strings can be formatted as hex");
    default:
      return fmt::format("could not parse formatting clause: unrecognized formatting clause \"{}\"", clause);
  }
}

}  // namespace

std::optional<FormatIssue> check_format(std::string_view pattern, const std::vector<FormatArgument>& arguments) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    if (++i >= pattern.size()) return FormatIssue{SIZE_MAX, "unexpected end of string"};
    if (pattern[i] == '%') continue;
    if (next >= arguments.size()) return FormatIssue{SIZE_MAX, fmt::format("index {} out of range", next)};
    if (pattern[i] == '.') {
      ++i;
      while (i < pattern.size() && std::isdigit(static_cast<unsigned char>(pattern[i])) != 0) ++i;
      if (i >= pattern.size()) return FormatIssue{SIZE_MAX, "error while parsing precision: could not find end of precision specifier"};
    }
    const auto& argument = arguments[next];
    const bool is_clause = std::string_view("sdfeboxX").find(pattern[i]) != std::string_view::npos;
    if (!is_clause || !argument.is_unknown)
      if (auto why = refuse_type(pattern[i], argument.type); !why.empty()) return FormatIssue{is_clause ? next : SIZE_MAX, std::move(why)};
    ++next;
  }
  if (arguments.size() > next)
    return FormatIssue{SIZE_MAX, fmt::format("too many arguments supplied to string.format (expected {}, got {})", next, arguments.size())};
  return std::nullopt;
}

void add_format(Registry& r) { r.add("format", "string_format", "string.(list(dyn)): string", format); }

}  // namespace berth::cel
