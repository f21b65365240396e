#include "base/json_scan.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/hex.h"
#include "base/json_skip.h"
#include "base/split.h"
#include "base/utf8.h"

namespace berth::json {
namespace {

constexpr int kMaxScanDepth = 600;

using detail::skip_space;
using detail::skip_value;
using detail::slice;
using detail::walk_object;

/// The code unit of the four hex digits at `i`, or -1.
int hex4(std::string_view text, std::size_t i) {
  if (i + 4 > text.size()) return -1;
  int unit = 0;
  for (std::size_t k = i; k < i + 4; ++k) {
    int digit = hex_digit(text[k]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

/// Appends the escape at inside[i] (behind the backslash) and returns the index behind it.
std::size_t append_escape(std::string& out, std::string_view inside, std::size_t i) {
  static constexpr std::string_view kFrom = "bfnrt", kTo = "\b\f\n\r\t";
  if (inside[i] != 'u') {
    auto known = kFrom.find(inside[i]);
    out += known == std::string_view::npos ? inside[i] : kTo[known];
    return i + 1;
  }
  int unit = hex4(inside, i + 1);
  if (unit < 0) return i + 1;
  i += 5;
  auto code = static_cast<std::uint32_t>(unit);
  if (code >= 0xD800 && code < 0xDC00 && i + 1 < inside.size() && inside[i] == '\\' && inside[i + 1] == 'u') {
    int low = hex4(inside, i + 2);
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (static_cast<std::uint32_t>(low) - 0xDC00);
      i += 6;
    }
  }
  // Half of a pair is no character, as in Go.
  append_rune(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  return i;
}

}  // namespace

PathScanner::PathScanner(const std::vector<std::string>& paths) : count_(paths.size()) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::vector<Step>* level = &root_;
    Step* step = nullptr;
    for (const auto key : split(paths[i], '.')) {
      step = nullptr;
      for (Step& known : *level) {
        if (known.key == key) step = &known;
      }
      if (step == nullptr) step = &level->emplace_back(Step{std::string(key), -1, {}});
      level = &step->below;
    }
    if (step != nullptr) step->path = static_cast<int>(i);
  }
}

bool PathScanner::scan(std::string_view text, std::span<std::string_view> values) const {
  for (std::size_t i = 0; i < count_; ++i) values[i] = {};
  const char* at = text.data();
  const char* end = at + text.size();
  if (!scan_object(at, end, root_, values, 0)) return false;
  skip_space(at, end);
  return at == end;
}

bool PathScanner::scan_object(const char*& at, const char* end, const std::vector<Step>& steps, std::span<std::string_view> values,
                              int depth) {
  if (depth > kMaxScanDepth) return false;
  return walk_object(at, end, [&](std::string_view raw_key, const char*& value_at) {
    std::string_view key = raw_key.substr(1, raw_key.size() - 2);
    std::string unescaped;
    if (key.find('\\') != std::string_view::npos) key = unescaped = unquote(raw_key);
    for (const Step& step : steps) {
      if (key != step.key) continue;
      const char* start = value_at;
      bool ok = !step.below.empty() && value_at < end && *value_at == '{' ? scan_object(value_at, end, step.below, values, depth + 1)
                                                                          : skip_value(value_at, end);
      if (ok && value_at <= end && step.path >= 0) values[static_cast<std::size_t>(step.path)] = slice(start, value_at);
      return ok;
    }
    return skip_value(value_at, end);
  });
}

std::string unquote(std::string_view raw) {
  if (raw.size() < 2 || raw.front() != '"' || raw.back() != '"') return {};
  std::string_view inside = raw.substr(1, raw.size() - 2);
  if (inside.find('\\') == std::string_view::npos) return std::string(inside);
  std::string out;
  out.reserve(inside.size());
  for (std::size_t i = 0; i < inside.size();) {
    if (inside[i] != '\\' || i + 1 >= inside.size()) {
      out += inside[i++];
      continue;
    }
    i = append_escape(out, inside, i + 1);
  }
  return out;
}

std::string_view unquote_plain(std::string_view raw, bool& ok) {
  ok = raw.size() >= 2 && raw.front() == '"' && raw.find('\\') == std::string_view::npos;
  return ok ? raw.substr(1, raw.size() - 2) : std::string_view();
}

bool for_each_member(std::string_view raw, const std::function<void(std::string_view raw_key, std::string_view raw_value)>& each) {
  const char* at = raw.data();
  const char* end = at + raw.size();
  return walk_object(at, end, [&](std::string_view raw_key, const char*& value_at) {
    const char* start = value_at;
    if (!skip_value(value_at, end) || value_at > end) return false;
    each(raw_key, slice(start, value_at));
    return true;
  });
}

bool for_each_element(std::string_view raw, const std::function<void(std::string_view raw_value)>& each) {
  const char* at = raw.data();
  const char* end = at + raw.size();
  skip_space(at, end);
  if (at >= end || *at != '[') return false;
  ++at;
  skip_space(at, end);
  if (at < end && *at == ']') return true;
  while (at < end) {
    skip_space(at, end);
    const char* start = at;
    if (!skip_value(at, end) || at > end) return false;
    each(slice(start, at));
    skip_space(at, end);
    if (at >= end) return false;
    if (*at == ']') return true;
    if (*at != ',') return false;
    ++at;
  }
  return false;
}

}  // namespace berth::json
