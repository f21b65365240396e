#include "model/go_time.h"

#include <fmt/format.h>

namespace berth::model {
namespace {

constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

bool is_digit(std::string_view text, std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

/// Reads a text as Go's layout goes through it, from its beginning to the first thing that does not fit.
class GoTimeReader {
 public:
  GoTimeReader(std::string_view text, bool is_micro)
      : text_(text),
        rest_(text),
        layout_(is_micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00"),
        is_micro_(is_micro) {}

  std::string read() {
    int year = 0, month = 0, day = 0, unused = 0;
    const bool read = number(4, 4, "2006", year) && literal("-") && number(2, 2, "01", month) && in(month, 1, 12, "month") &&
                      literal("-") && number(2, 2, "02", day) && literal("T") && number(1, 2, "15", unused) && in(unused, 0, 23, "hour") &&
                      literal(":") && number(2, 2, "04", unused) && in(unused, 0, 59, "minute") && literal(":") &&
                      number(2, 2, "05", unused) && in(unused, 0, 59, "second") && fraction() && zone();
    if (!read) return error_;
    if (!rest_.empty()) return fmt::format("parsing time \"{}\": extra text: \"{}\"", text_, rest_);
    const bool leaps = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day < 1 || day > kDays[month - 1] + (leaps ? 1 : 0)) return range("day");
    return {};
  }

 private:
  std::string range(std::string_view what) const { return fmt::format("parsing time \"{}\": {} out of range", text_, what); }
  bool fail(std::string_view element) {
    error_ = fmt::format("parsing time \"{}\" as \"{}\": cannot parse \"{}\" as \"{}\"", text_, layout_, rest_, element);
    return false;
  }
  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return fail(text);
    rest_.remove_prefix(text.size());
    return true;
  }
  bool number(std::size_t least, std::size_t most, std::string_view element, int& out) {
    std::size_t count = 0;
    out = 0;
    while (count < most && is_digit(rest_, count)) out = out * 10 + (rest_[count++] - '0');
    if (count < least) return fail(element);
    rest_.remove_prefix(count);
    return true;
  }
  bool in(int value, int low, int high, std::string_view what) {
    if (value >= low && value <= high) return true;
    error_ = range(what);
    return false;
  }
  bool fraction() {
    if (is_micro_) {
      std::size_t count = 0;
      if (rest_.starts_with("."))
        while (count < 6 && is_digit(rest_, 1 + count)) ++count;
      if (count < 6) return fail(".000000");
      rest_.remove_prefix(7);
      return true;
    }
    if (rest_.size() < 2 || (rest_[0] != '.' && rest_[0] != ',') || !is_digit(rest_, 1)) return true;
    std::size_t count = 1;
    while (is_digit(rest_, count)) ++count;
    rest_.remove_prefix(count);
    return true;
  }
  bool zone() {
    if (rest_.starts_with("Z")) return literal("Z");
    const bool fits = rest_.size() >= 6 && (rest_[0] == '+' || rest_[0] == '-') && is_digit(rest_, 1) && is_digit(rest_, 2) &&
                      rest_[3] == ':' && is_digit(rest_, 4) && is_digit(rest_, 5);
    if (!fits) return fail("Z07:00");
    const int hours = (rest_[1] - '0') * 10 + rest_[2] - '0', minutes = (rest_[4] - '0') * 10 + rest_[5] - '0';
    if (!in(hours, 0, 24, "time zone offset hour") || !in(minutes, 0, 60, "time zone offset minute")) return false;
    rest_.remove_prefix(6);
    return true;
  }

  std::string_view text_, rest_, layout_;
  bool is_micro_;
  std::string error_;
};

}  // namespace

std::string go_time_error(std::string_view text, bool is_micro) { return GoTimeReader(text, is_micro).read(); }

}  // namespace berth::model
