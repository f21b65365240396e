#include "base/go/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace berth {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t ns;
};
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1'000},
                                         {"\xc2\xb5s", 1'000},
                                         {"\xce\xbcs", 1'000},
                                         {"ms", 1'000'000},
                                         {"s", 1'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"h", 3'600'000'000'000}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// How Go's package time quotes: every byte that is not plain ASCII by its number.
std::string quote_in_time(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x80)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

Expected<std::int64_t, std::string> parse_duration_ns(std::string_view text) {
  const auto invalid = [&] { return std::unexpected(fmt::format("time: invalid duration {}", quote_in_time(text))); };
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  std::string_view s = text;
  bool negative = false;
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) {
    negative = s[0] == '-';
    s.remove_prefix(1);
  }
  if (s == "0") return 0;
  if (s.empty()) return invalid();
  std::uint64_t total = 0;
  while (!s.empty()) {
    if (s[0] != '.' && !is_digit(s[0])) return invalid();
    std::uint64_t whole = 0, fraction = 0;
    double scale = 1;
    const std::size_t before = s.size();
    while (!s.empty() && is_digit(s[0])) {
      if (whole > kLimit / 10) return invalid();
      whole = whole * 10 + static_cast<std::uint64_t>(s[0] - '0');
      if (whole > kLimit) return invalid();
      s.remove_prefix(1);
    }
    const bool has_whole = s.size() != before;
    bool has_fraction = false;
    if (!s.empty() && s[0] == '.') {
      s.remove_prefix(1);
      const std::size_t start = s.size();
      bool overflow = false;
      while (!s.empty() && is_digit(s[0])) {
        const std::uint64_t next = fraction * 10 + static_cast<std::uint64_t>(s[0] - '0');
        // Go keeps as many digits as fit and ignores the rest.
        if (!overflow && (fraction > (kLimit - 1) / 10 || next > kLimit)) overflow = true;
        if (!overflow) {
          fraction = next;
          scale *= 10;
        }
        s.remove_prefix(1);
      }
      has_fraction = s.size() != start;
    }
    if (!has_whole && !has_fraction) return invalid();
    std::size_t unit_end = 0;
    while (unit_end < s.size() && s[unit_end] != '.' && !is_digit(s[unit_end])) ++unit_end;
    if (unit_end == 0) return std::unexpected(fmt::format("time: missing unit in duration {}", quote_in_time(text)));
    const std::string_view name = s.substr(0, unit_end);
    const auto unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == kUnits.end())
      return std::unexpected(fmt::format("time: unknown unit {} in duration {}", quote_in_time(name), quote_in_time(text)));
    s.remove_prefix(unit_end);
    if (whole > kLimit / unit->ns) return invalid();
    whole *= unit->ns;
    if (fraction > 0) {
      whole += static_cast<std::uint64_t>(static_cast<double>(fraction) * (static_cast<double>(unit->ns) / scale));
      if (whole > kLimit) return invalid();
    }
    total += whole;
    if (total > kLimit) return invalid();
  }
  if (negative) return -static_cast<std::int64_t>(total - 1) - 1;
  if (total > kLimit - 1) return invalid();
  return static_cast<std::int64_t>(total);
}

std::string format_duration_ns(std::int64_t ns) {
  if (ns == 0) return "0s";
  const bool negative = ns < 0;
  const std::uint64_t u = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  const auto fraction = [](std::uint64_t value, int digits) {
    std::string text = fmt::format("{:0{}}", value, digits);
    while (!text.empty() && text.back() == '0') text.pop_back();
    return text.empty() ? text : "." + text;
  };
  std::string out;
  if (u < 1'000)
    out = fmt::format("{}ns", u);
  else if (u < 1'000'000)
    out = fmt::format("{}{}\xc2\xb5s", u / 1'000, fraction(u % 1'000, 3));
  else if (u < 1'000'000'000)
    out = fmt::format("{}{}ms", u / 1'000'000, fraction(u % 1'000'000, 6));
  else {
    const std::uint64_t seconds = u / 1'000'000'000;
    if (seconds >= 3600) out += fmt::format("{}h", seconds / 3600);
    if (seconds >= 60) out += fmt::format("{}m", seconds / 60 % 60);
    out += fmt::format("{}{}s", seconds % 60, fraction(u % 1'000'000'000, 9));
  }
  return negative ? "-" + out : out;
}

}  // namespace berth
