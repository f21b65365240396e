#include "cel/text.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>

#include "base/utf8.h"

namespace berth::cel {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

/// One escape after the backslash at `at`; moves `at` behind it.
Expected<void, std::string> unescape_one(std::string_view text, std::size_t& at, bool is_bytes, std::string& out) {
  if (at + 1 >= text.size()) return std::unexpected("unable to unescape string, found '\\' as last character");
  const char c = text[at + 1];
  at += 2;
  static constexpr std::string_view kFrom = "abfnrtv\\'\"`?", kTo = "\a\b\f\n\r\t\v\\'\"`?";
  if (const auto i = kFrom.find(c); i != std::string_view::npos) {
    out += kTo[i];
    return {};
  }
  char32_t point = 0;
  bool encode = true;
  if (c == 'x' || c == 'X' || c == 'u' || c == 'U') {
    const std::size_t n = c == 'u' ? 4 : c == 'U' ? 8 : 2;
    if (n > 2 && is_bytes) return std::unexpected("unable to unescape string");
    if (n == 2) encode = !is_bytes;
    if (at + n > text.size()) return std::unexpected("unable to unescape string");
    for (std::size_t i = 0; i < n; ++i) {
      const int digit = hex_value(text[at + i]);
      if (digit < 0) return std::unexpected("unable to unescape string");
      point = (point << 4) | static_cast<char32_t>(digit);
    }
    at += n;
  } else if (c >= '0' && c <= '3') {
    if (at + 2 > text.size()) return std::unexpected("unable to unescape octal sequence in string");
    point = static_cast<char32_t>(c - '0');
    for (std::size_t i = 0; i < 2; ++i) {
      if (text[at + i] < '0' || text[at + i] > '7') return std::unexpected("unable to unescape octal sequence in string");
      point = point * 8 + static_cast<char32_t>(text[at + i] - '0');
    }
    at += 2;
    encode = !is_bytes;
  } else {
    return std::unexpected("unable to unescape string");
  }
  if (!is_bytes && (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))) return std::unexpected("invalid unicode code point");
  if (encode)
    append_rune(out, point);
  else
    out += static_cast<char>(point);
  return {};
}

std::int64_t days_from_civil(std::int64_t y, int m, int d) {
  y -= m <= 2;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const auto yoe = static_cast<std::int64_t>(y - era * 400);
  const std::int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) { return std::max<std::size_t>(1, first_rune(text.substr(at)).length); }
char32_t utf8_at(std::string_view text, std::size_t at) { return first_rune(text.substr(at)).point; }

std::vector<std::string_view> split_points(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto n = utf8_length(text, at);
    out.push_back(text.substr(at, n));
    at += n;
  }
  return out;
}

Expected<std::string, std::string> unescape(std::string_view literal, bool is_bytes) {
  std::string text;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\r') {
      text += literal[i];
    } else {
      text += '\n';
      if (i + 1 < literal.size() && literal[i + 1] == '\n') ++i;
    }
  }
  std::string_view body = text;
  const bool is_raw = !body.empty() && (body[0] == 'r' || body[0] == 'R');
  if (is_raw) body.remove_prefix(1);
  const std::size_t quotes = body.size() >= 6 && (body.starts_with("'''") || body.starts_with("\"\"\"")) ? 3 : 1;
  if (body.size() < 2 * quotes) return std::unexpected("unable to unescape string");
  body = body.substr(quotes, body.size() - 2 * quotes);
  if (is_raw || body.find('\\') == std::string_view::npos) return std::string(body);
  std::string out;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      out += body[at++];
    } else if (auto done = unescape_one(body, at, is_bytes, out); !done) {
      return std::unexpected(done.error());
    }
  }
  return out;
}

std::string duration_text(std::int64_t seconds, std::int32_t nanos) {
  // Seconds as a decimal number, as Go's strconv.FormatFloat(d.Seconds(), 'f', -1, 64) prints it.
  const double value = static_cast<double>(seconds) + static_cast<double>(nanos) / 1e9;
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  return std::string(buffer, end.ptr) + "s";
}

std::optional<Instant> parse_rfc3339(std::string_view text) {
  const auto number = [&](std::size_t at, std::size_t n) -> int {
    int out = 0;
    for (std::size_t i = at; i < at + n; ++i) {
      if (i >= text.size() || !is_decimal(text[i])) return -1;
      out = out * 10 + (text[i] - '0');
    }
    return out;
  };
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') return std::nullopt;
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2), hour = number(11, 2), minute = number(14, 2),
            second = number(17, 2);
  if (year < 0 || month < 1 || month > 12 || day < 1 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
    return std::nullopt;
  const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (day > kDays[month - 1] + (month == 2 && is_leap)) return std::nullopt;
  std::size_t at = 19;
  std::int64_t nanos = 0, scale = 100'000'000;
  if (text[at] == '.' || text[at] == ',') {
    const auto start = ++at;
    for (; at < text.size() && is_decimal(text[at]); ++at) {
      nanos += (text[at] - '0') * scale;
      scale /= 10;
    }
    if (at == start) return std::nullopt;
  }
  std::int64_t offset = 0;
  if (at < text.size() && text[at] == 'Z') {
    ++at;
  } else if (at + 6 == text.size() && (text[at] == '+' || text[at] == '-') && text[at + 3] == ':') {
    const int h = number(at + 1, 2), m = number(at + 4, 2);
    if (h < 0 || h > 23 || m < 0 || m > 59) return std::nullopt;
    offset = (h * 3600 + m * 60) * (text[at] == '-' ? -1 : 1);
    at += 6;
  } else {
    return std::nullopt;
  }
  if (at != text.size()) return std::nullopt;
  return Instant{days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset, static_cast<std::int32_t>(nanos)};
}

Civil civil_from_seconds(std::int64_t seconds) {
  std::int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  Civil out;
  out.hour = static_cast<int>(rest / 3600);
  out.minute = static_cast<int>(rest / 60 % 60);
  out.second = static_cast<int>(rest % 60);
  out.weekday = static_cast<int>(((days + 4) % 7 + 7) % 7);
  const std::int64_t z = days + 719468;
  const std::int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const std::int64_t doe = z - era * 146097;
  const std::int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const std::int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::int64_t mp = (5 * doy + 2) / 153;
  out.day = static_cast<int>(doy - (153 * mp + 2) / 5 + 1);
  out.month = static_cast<int>(mp < 10 ? mp + 3 : mp - 9);
  out.year = yoe + era * 400 + (out.month <= 2);
  out.yearday = static_cast<int>(days - days_from_civil(out.year, 1, 1));
  return out;
}

std::string rfc3339_text(std::int64_t seconds, std::int32_t nanos) {
  const auto c = civil_from_seconds(seconds);
  auto out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", c.year, c.month, c.day, c.hour, c.minute, c.second);
  if (nanos != 0) {
    auto fraction = fmt::format(".{:09}", nanos);
    while (fraction.back() == '0') fraction.pop_back();
    out += fraction;
  }
  return out + "Z";
}

std::optional<std::int64_t> zone_offset(std::string_view zone, std::int64_t at_seconds) {
  if (zone.empty() || zone == "UTC" || zone == "Z") return 0;
  const auto colon = zone.find(':');
  if (colon != std::string_view::npos) {
    const bool has_sign = zone[0] == '+' || zone[0] == '-';
    const auto h_text = zone.substr(has_sign, colon - has_sign), m_text = zone.substr(colon + 1);
    int h = 0, m = 0;
    if (std::from_chars(h_text.data(), h_text.data() + h_text.size(), h).ec != std::errc() ||
        std::from_chars(m_text.data(), m_text.data() + m_text.size(), m).ec != std::errc())
      return std::nullopt;
    return (h * 3600 + m * 60) * (zone[0] == '-' ? -1 : 1);
  }
  // The system's zone files, read as data: version 1 blocks carry every transition until 2037.
  if (zone.find("..") != std::string_view::npos || zone[0] == '/' || zone.size() > 64) return std::nullopt;
  std::ifstream in("/usr/share/zoneinfo/" + std::string(zone), std::ios::binary);
  std::string data{std::istreambuf_iterator<char>(in), {}};
  if (data.size() < 44 || !data.starts_with("TZif")) return std::nullopt;
  const auto be32 = [&](std::size_t at) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<unsigned char>(at + i < data.size() ? data[at + i] : 0);
    return static_cast<std::int32_t>(v);
  };
  const auto be64 = [&](std::size_t at) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(be32(at))) << 32 |
                                     static_cast<std::uint32_t>(be32(at + 4)));
  };
  const auto count = [&](std::size_t header, int i) {
    return static_cast<std::size_t>(static_cast<std::uint32_t>(be32(header + 20 + 4 * static_cast<std::size_t>(i))));
  };
  std::size_t header = 0, width = 4;
  if (data[4] >= '2') {
    header = 44 + count(0, 0) + count(0, 1) + count(0, 2) * 8 + count(0, 3) * 5 + count(0, 4) * 6 + count(0, 5);
    width = 8;
  }
  if (header + 44 > data.size()) return std::nullopt;
  const auto times = count(header, 3), types = count(header, 4);
  const std::size_t body = header + 44, kinds = body + times * width, infos = kinds + times;
  if (infos + types * 6 > data.size() || types == 0) return std::nullopt;
  std::size_t kind = 0;
  for (std::size_t i = 0; i < times; ++i) {
    const auto when = width == 8 ? be64(body + i * 8) : be32(body + i * 4);
    if (when > at_seconds) break;
    kind = static_cast<unsigned char>(data[kinds + i]);
  }
  if (kind >= types) return std::nullopt;
  return be32(infos + kind * 6);
}

}  // namespace berth::cel
