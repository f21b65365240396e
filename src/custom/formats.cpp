#include "custom/formats.h"

#include <re2/re2.h>

#include <map>

#include "base/go/duration.h"
#include "base/go/strings.h"
#include "base/mutex.h"
#include "base/split.h"
#include "cel/opaque.h"
#include "model/validation/ip_range.h"

namespace berth::custom {
namespace {

bool matches(std::string_view text, const char* pattern) {
  // As many as there are formats, compiled once.
  static Mutex mutex;
  static std::map<const char*, std::unique_ptr<re2::RE2>> compiled BERTH_GUARDED_BY(mutex);
  const re2::RE2* expression = nullptr;
  {
    const MutexLock lock(mutex);
    auto& slot = compiled[pattern];
    if (slot == nullptr) slot = std::make_unique<re2::RE2>(pattern);
    expression = slot.get();
  }
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *expression);
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

int number(std::string_view digits) {
  int out = 0;
  for (const char c : digits) out = out * 10 + (c - '0');
  return out;
}

bool is_hostname(std::string_view text) {
  if (text.size() > 255) return false;
  // How long a label may be is counted below: with `{0,62}` and the like the expression becomes 250,000 instructions, more than RE2's
  // automaton holds.
  if (!matches(text,
               "^([a-zA-Z0-9\\p{S}\\p{L}](-?[a-zA-Z0-9\\p{S}\\p{L}]*)|"
               "([a-zA-Z0-9\\p{S}\\p{L}]([a-zA-Z0-9-\\p{S}\\p{L}]*[a-zA-Z0-9\\p{S}\\p{L}])?\\.)+[a-zA-Z\\p{L}]{2,})$"))
    return false;
  return std::ranges::all_of(words(text, '.').list(), [](std::string_view label) { return label.size() <= 63; });
}

/// The forms of net/mail that people write: local@domain, and "Name <local@domain>".
bool is_email(std::string_view text) {
  static constexpr auto kAddress =
      "^\\s*([A-Za-z0-9!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10FFFF}-]+(\\.[A-Za-z0-9!#$%&'*+/"
      "=?^_`{|}~\\x{80}-\\x{10FFFF}-]+)*|\"([^\"\\\\]|\\\\.)*\")"
      "@([A-Za-z0-9!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10FFFF}-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10FFFF}-]+)*|\\[[^\\]]*\\])\\s*$";
  if (text.ends_with('>'))
    if (const auto open = text.rfind('<'); open != std::string_view::npos) text = text.substr(open + 1, text.size() - open - 2);
  return matches(text, kAddress);
}

bool is_isbn10(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '-' && c != ' ') digits += c;
  if (digits.size() != 10 || !is_digits(std::string_view(digits).substr(0, 9))) return false;
  int sum = 0;
  for (int i = 0; i < 9; ++i) sum += (i + 1) * (digits[static_cast<std::size_t>(i)] - '0');
  if (digits[9] == 'X') return (sum + 10 * 10) % 11 == 0;
  return digits[9] >= '0' && digits[9] <= '9' && (sum + 10 * (digits[9] - '0')) % 11 == 0;
}

bool is_isbn13(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '-' && c != ' ') digits += c;
  if (digits.size() != 13 || !is_digits(digits)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < 12; ++i) sum += (i % 2 == 0 ? 1 : 3) * (digits[i] - '0');
  return digits[12] - '0' == (10 - sum % 10) % 10;
}

bool is_credit_card(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c >= '0' && c <= '9') digits += c;
  if (!matches(digits,
               "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:"
               "2131|1800|"
               "35\\d{3})\\d{11})$"))
    return false;
  int sum = 0;
  bool doubles = false;
  for (std::size_t i = digits.size(); i-- > 0; doubles = !doubles) {
    int digit = digits[i] - '0';
    if (doubles && (digit *= 2) >= 10) digit = digit % 10 + 1;
    sum += digit;
  }
  return sum % 10 == 0;
}

bool is_mac(std::string_view text) {
  return matches(text, "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$") || matches(text, "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){7}$") ||
         matches(text, "^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){19}$") || matches(text, "^[0-9a-fA-F]{4}(\\.[0-9a-fA-F]{4}){2}$") ||
         matches(text, "^[0-9a-fA-F]{4}(\\.[0-9a-fA-F]{4}){3}$") || matches(text, "^[0-9a-fA-F]{4}(\\.[0-9a-fA-F]{4}){9}$");
}

/// Leading zeros are let through, as Go once did.
std::string without_leading_zeros(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return std::string(text);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_number = i == 0 || text[i - 1] == '.';
    if (starts_number)
      while (i + 1 < text.size() && text[i] == '0' && text[i + 1] >= '0' && text[i + 1] <= '9') ++i;
    out += text[i];
  }
  return out;
}

bool is_date_time(std::string_view text) {
  const std::string lower = go::to_lower(text);
  const auto t = lower.find('t');
  if (lower.size() < 4 || t == std::string::npos || !parse_date(lower.substr(0, t))) return false;
  auto time = std::string_view(lower).substr(t + 1);
  time = time.substr(0, time.find('t'));
  if (!matches(time, "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$")) return false;
  return time.substr(0, 2) <= "23" && time.substr(3, 2) <= "59" && time.substr(6, 2) <= "59";
}

std::int64_t days_from_civil(int year, int month, int day) {
  return std::chrono::sys_days(std::chrono::year(year) / month / day).time_since_epoch().count();
}

using Check = bool (*)(std::string_view);

}  // namespace

std::optional<Instant> parse_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-' || !is_digits(text.substr(0, 4)) || !is_digits(text.substr(5, 2)) ||
      !is_digits(text.substr(8, 2)))
    return std::nullopt;
  const auto day = std::chrono::year(number(text.substr(0, 4))) / number(text.substr(5, 2)) / number(text.substr(8, 2));
  if (!day.ok()) return std::nullopt;
  return Instant{days_from_civil(number(text.substr(0, 4)), number(text.substr(5, 2)), number(text.substr(8, 2))) * 86400, 0};
}

std::optional<Instant> parse_date_time(std::string_view text) {
  if (text.empty()) return Instant{};
  if (text.size() < 19 || text[10] != 'T' || text[13] != ':' || text[16] != ':') return std::nullopt;
  auto instant = parse_date(text.substr(0, 10));
  if (!instant || !is_digits(text.substr(11, 2)) || !is_digits(text.substr(14, 2)) || !is_digits(text.substr(17, 2))) return std::nullopt;
  const int hour = number(text.substr(11, 2)), minute = number(text.substr(14, 2)), second = number(text.substr(17, 2));
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  instant->seconds += hour * 3600 + minute * 60 + second;
  auto rest = text.substr(19);
  if (rest.starts_with('.')) {
    std::size_t end = 1;
    std::int64_t nanos = 0, unit = 100'000'000;
    for (; end < rest.size() && rest[end] >= '0' && rest[end] <= '9'; ++end, unit /= 10) nanos += unit * (rest[end] - '0');
    if (end == 1) return std::nullopt;
    instant->nanos = static_cast<std::int32_t>(nanos);
    rest.remove_prefix(end);
  }
  if (rest.empty() || rest == "Z") return instant;
  if (rest.size() != 6 || (rest[0] != '+' && rest[0] != '-') || rest[3] != ':' || !is_digits(rest.substr(1, 2)) ||
      !is_digits(rest.substr(4, 2)))
    return std::nullopt;
  const std::int64_t offset = number(rest.substr(1, 2)) * 3600 + number(rest.substr(4, 2)) * 60;
  instant->seconds += rest[0] == '+' ? -offset : offset;
  return instant;
}

std::optional<std::int64_t> parse_any_duration(std::string_view text) {
  if (const auto parsed = parse_duration_ns(text)) return *parsed;
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {{"ns", 1},
                                                                         {"nano", 1},
                                                                         {"us", 1'000},
                                                                         {"µs", 1'000},
                                                                         {"micro", 1'000},
                                                                         {"ms", 1'000'000},
                                                                         {"milli", 1'000'000},
                                                                         {"sec", 1'000'000'000},
                                                                         {"m", 60'000'000'000},
                                                                         {"min", 60'000'000'000},
                                                                         {"h", 3'600'000'000'000},
                                                                         {"hour", 3'600'000'000'000},
                                                                         {"d", 86'400'000'000'000},
                                                                         {"day", 86'400'000'000'000},
                                                                         {"w", 604'800'000'000'000},
                                                                         {"wk", 604'800'000'000'000},
                                                                         {"week", 604'800'000'000'000},
                                                                         {"s", 1'000'000'000}};
  static const re2::RE2 kPart("(-?)(\\d+)\\s*([A-Za-zµ]+)");
  re2::StringPiece rest(text.data(), text.size());
  std::string sign, digits, unit;
  std::int64_t total = 0;
  bool found = false;
  while (re2::RE2::FindAndConsume(&rest, kPart, &sign, &digits, &unit)) {
    if (digits.size() > 15) return std::nullopt;
    const std::string lower = go::to_lower(unit);
    const std::pair<std::string_view, std::int64_t>* best = nullptr;
    for (const auto& one : kUnits)
      if (lower == one.first || (one.first.size() > 2 && lower.starts_with(one.first))) best = &one;
    if (best == nullptr) continue;
    found = true;
    total += std::stoll(digits) * best->second;
  }
  return found ? std::optional(total) : std::nullopt;
}

bool has_format(std::string_view format, std::string_view text) {
  using model::validation::parse_cidr;
  using model::validation::parse_ip;
  static const std::map<std::string_view, Check> kChecks = {
      {"uri", [](std::string_view s) { return cel::UrlValue::parse(s).has_value(); }},
      {"email", is_email},
      {"hostname", is_hostname},
      {"ipv4",
       [](std::string_view s) {
         const auto ip = parse_ip(without_leading_zeros(s));
         return ip && s.find('.') != std::string_view::npos;
       }},
      {"ipv6", [](std::string_view s) { return s.find(':') != std::string_view::npos && parse_ip(s).has_value(); }},
      {"cidr", [](std::string_view s) { return parse_cidr(without_leading_zeros(s)).has_value(); }},
      {"mac", is_mac},
      {"uuid", [](std::string_view s) { return matches(s, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"); }},
      {"uuid3", [](std::string_view s) { return matches(s, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"); }},
      {"uuid4",
       [](std::string_view s) { return matches(s, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"); }},
      {"uuid5",
       [](std::string_view s) { return matches(s, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"); }},
      {"bsonobjectid", [](std::string_view s) { return matches(s, "^[0-9a-fA-F]{24}$"); }},
      {"isbn", [](std::string_view s) { return is_isbn10(s) || is_isbn13(s); }},
      {"isbn10", is_isbn10},
      {"isbn13", is_isbn13},
      {"creditcard", is_credit_card},
      {"ssn", [](std::string_view s) { return s.size() == 11 && matches(s, "^\\d{3}[- ]?\\d{2}[- ]?\\d{4}$"); }},
      {"hexcolor", [](std::string_view s) { return matches(s, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"); }},
      {"rgbcolor",
       [](std::string_view s) {
         return matches(s,
                        "^rgb\\(\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|["
                        "1-9]\\d?|1\\d\\d?|2[0-4]\\d|25["
                        "0-5])\\s*\\)$");
       }},
      {"byte",
       [](std::string_view s) {
         return matches(s, "^(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=|[A-Za-z0-9+\\/]{4})$");
       }},
      {"password", [](std::string_view) { return true; }},
      {"date", [](std::string_view s) { return parse_date(s).has_value(); }},
      {"datetime", is_date_time},
      {"duration", [](std::string_view s) { return parse_any_duration(s).has_value(); }},
      {"k8sshortname", [](std::string_view s) { return s.size() <= 63 && matches(s, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"); }},
      {"k8slongname", [](std::string_view s) {
         return s.size() <= 253 && matches(s, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
       }}};
  const auto found = kChecks.find(format);
  return found == kChecks.end() || found->second(text);
}

}  // namespace berth::custom
