// The string functions of the language and of its extension library, version 2 (ext/strings.go).
#include "base/utf8.h"
#include "cel/functions.h"
#include "cel/limits.h"
#include "cel/opaque.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

Value out_of_range(std::int64_t index) { return Value::error(fmt::format("index out of range: {}", index)); }

/// Where in `text` the code point `index` starts.
std::size_t byte_at(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (std::int64_t i = 0; i < index && at < text.size(); ++i) at += utf8_length(text, at);
  return at;
}
std::int64_t points_before(std::string_view text, std::size_t byte) { return static_cast<std::int64_t>(rune_count(text.substr(0, byte))); }

Value char_at(const Args& a) {
  const auto index = a[1].as_int();
  const auto count = static_cast<std::int64_t>(rune_count(a[0].text()));
  if (index < 0 || index > count) return out_of_range(index);
  const auto at = byte_at(a[0].text(), index);
  return Value::string(index == count ? "" : std::string(a[0].text().substr(at, utf8_length(a[0].text(), at))));
}

Value index_of(const Args& a) {
  const auto text = a[0].text(), wanted = a[1].text();
  const auto offset = a.size() > 2 ? a[2].as_int() : 0;
  if (wanted.empty()) return Value::integer(offset);
  if (offset < 0) return out_of_range(offset);
  const auto found = text.find(wanted, byte_at(text, offset));
  return Value::integer(found == std::string_view::npos ? -1 : points_before(text, found));
}

Value last_index_of(const Args& a) {
  const auto text = a[0].text(), wanted = a[1].text();
  const auto count = static_cast<std::int64_t>(rune_count(text));
  if (a.size() == 2) {
    if (wanted.empty()) return Value::integer(count);
    const auto found = text.rfind(wanted);
    return Value::integer(found == std::string_view::npos ? -1 : points_before(text, found));
  }
  const auto offset = a[2].as_int();
  if (wanted.empty()) return Value::integer(offset);
  if (offset < 0) return out_of_range(offset);
  if (offset >= count) return Value::integer(-1);
  const auto found = text.rfind(wanted, byte_at(text, offset));
  return Value::integer(found == std::string_view::npos ? -1 : points_before(text, found));
}

template <typename Change>
Value ascii(const Value& v, Change change) {
  std::string out(v.text());
  for (auto& c : out)
    if (static_cast<unsigned char>(c) < 0x80) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return Value::string(std::move(out));
}

Value replace(const Args& a) {
  const auto text = a[0].text(), from = a[1].text(), to = a[2].text();
  std::int64_t left = a.size() > 3 ? a[3].as_int() : -1;
  std::string out;
  std::size_t at = 0;
  const auto append = [&](std::string_view piece) { out += piece; };
  while (left != 0) {
    std::size_t found = 0;
    if (from.empty()) {
      found = at;
    } else {
      found = text.find(from, at);
      if (found == std::string_view::npos) break;
    }
    append(text.substr(at, found - at));
    append(to);
    at = found + from.size();
    if (out.size() > kMostText) return Value::error("string is too large");
    if (left > 0) --left;
    if (from.empty()) {
      if (at >= text.size()) break;
      const auto n = utf8_length(text, at);
      append(text.substr(at, n));
      at += n;
    }
  }
  append(text.substr(std::min(at, text.size())));
  return Value::string(std::move(out));
}

Value split(const Args& a) {
  const auto text = a[0].text(), separator = a[1].text();
  const std::int64_t limit = a.size() > 2 ? a[2].as_int() : -1;
  std::vector<Value> out;
  if (limit == 0) return Value::list(std::move(out));
  if (separator.empty()) {
    auto points = split_points(text);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (limit > 0 && static_cast<std::int64_t>(out.size()) + 1 == limit) {
        out.push_back(Value::string(std::string(text.substr(static_cast<std::size_t>(points[i].data() - text.data())))));
        break;
      }
      out.push_back(Value::string(std::string(points[i])));
    }
    return Value::list(std::move(out));
  }
  std::size_t at = 0;
  while (limit < 0 || static_cast<std::int64_t>(out.size()) + 1 < limit) {
    const auto found = text.find(separator, at);
    if (found == std::string_view::npos) break;
    out.push_back(Value::string(std::string(text.substr(at, found - at))));
    at = found + separator.size();
  }
  out.push_back(Value::string(std::string(text.substr(at))));
  return Value::list(std::move(out));
}

Value substring(const Args& a) {
  const auto text = a[0].text();
  const auto count = static_cast<std::int64_t>(rune_count(text));
  const auto start = a[1].as_int();
  const auto end = a.size() > 2 ? a[2].as_int() : count;
  if (a.size() > 2 && start > end) return Value::error(fmt::format("invalid substring range. start: {}, end: {}", start, end));
  if (start < 0 || start > count) return out_of_range(start);
  if (end < 0 || end > count) return out_of_range(end);
  const auto from = byte_at(text, start);
  return Value::string(std::string(text.substr(from, byte_at(text, end) - from)));
}

/// These three check their arguments themselves.
template <typename Test>
Value test(const Args& a, Test holds) {
  const bool are_strings = a[0].kind() == Value::Kind::kString && a[1].kind() == Value::Kind::kString;
  return are_strings ? Value::boolean(holds(a[0].text(), a[1].text())) : no_such_overload();
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

Value trim(const Args& a) {
  const auto points = split_points(a[0].text());
  std::size_t first = 0, last = points.size();
  while (first < last && is_space(utf8_at(points[first], 0))) ++first;
  while (last > first && is_space(utf8_at(points[last - 1], 0))) --last;
  std::string out;
  for (; first < last; ++first) out += points[first];
  return Value::string(std::move(out));
}

Value quote(const Args& a) {
  std::string out = "\"";
  for (const auto point : split_points(a[0].text())) {
    static constexpr std::string_view kFrom = "\a\b\f\n\r\t\v\\\"", kTo = "abfnrtv\\\"";
    if (const auto i = point.size() == 1 ? kFrom.find(point[0]) : std::string_view::npos; i != std::string_view::npos) {
      out += '\\';
      out += kTo[i];
    } else if (is_utf8(point)) {
      out += point;
    } else {
      append_rune(out, 0xFFFD);
    }
  }
  return Value::string(out + "\"");
}

Value join(const Args& a) {
  std::string out;
  const auto& list = a[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto element = list.at(i);
    if (element.kind() != Value::Kind::kString) return Value::error(fmt::format("join: invalid input: {}", to_text(element)));
    if (i > 0 && a.size() > 1) out += a[1].text();
    out += element.text();
    if (out.size() > kMostText) return Value::error("string is too large");
  }
  return Value::string(std::move(out));
}

}  // namespace

void add_strings(Registry& r) {
  r.add("contains", "contains_string", "string.(string): bool");
  r.add_any("contains", [](const Args& a) { return test(a, [](auto s, auto t) { return s.find(t) != std::string_view::npos; }); });
  r.add("endsWith", "ends_with_string", "string.(string): bool");
  r.add_any("endsWith", [](const Args& a) { return test(a, [](auto s, auto t) { return s.ends_with(t); }); });
  r.add("startsWith", "starts_with_string", "string.(string): bool");
  r.add_any("startsWith", [](const Args& a) { return test(a, [](auto s, auto t) { return s.starts_with(t); }); });
  r.add("charAt", "string_char_at_int", "string.(int): string", char_at);
  r.add("indexOf", "string_index_of_string", "string.(string): int", index_of);
  r.add("indexOf", "string_index_of_string_int", "string.(string, int): int", index_of);
  r.add("lastIndexOf", "string_last_index_of_string", "string.(string): int", last_index_of);
  r.add("lastIndexOf", "string_last_index_of_string_int", "string.(string, int): int", last_index_of);
  r.add("lowerAscii", "string_lower_ascii", "string.(): string",
        [](const Args& a) { return ascii(a[0], [](int c) { return std::tolower(c); }); });
  r.add("upperAscii", "string_upper_ascii", "string.(): string",
        [](const Args& a) { return ascii(a[0], [](int c) { return std::toupper(c); }); });
  r.add("replace", "string_replace_string_string", "string.(string, string): string", replace);
  r.add("replace", "string_replace_string_string_int", "string.(string, string, int): string", replace);
  r.add("split", "string_split_string", "string.(string): list(string)", split);
  r.add("split", "string_split_string_int", "string.(string, int): list(string)", split);
  r.add("substring", "string_substring_int", "string.(int): string", substring);
  r.add("substring", "string_substring_int_int", "string.(int, int): string", substring);
  r.add("trim", "string_trim", "string.(): string", trim);
  r.add("strings.quote", "strings_quote", "(string): string", quote);
  r.add("join", "list_join", "list(string).(): string", join);
  r.add("join", "list_join_string", "list(string).(string): string", join);
}

}  // namespace berth::cel
