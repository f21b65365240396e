#include "node/eviction/go_text.h"

#include <cmath>
#include <cstdlib>

#include "base/go/strings.h"

namespace berth::node::eviction {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

/// Whether Go's grammar takes this number: sign, digits with one dot, exponent. Hexadecimal numbers need their 'p' exponent.
bool is_float_syntax(std::string_view s) {
  std::size_t i = 0;
  if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
  const std::string body = go::to_lower(s.substr(i));
  std::size_t at = 0;
  const bool hex = body.starts_with("0x");
  if (hex) at = 2;
  bool digits = false, dot = false;
  for (; at < body.size(); ++at) {
    if (body[at] == '.' && !dot)
      dot = true;
    else if (hex ? is_hex(body[at]) : is_digit(body[at]))
      digits = true;
    else
      break;
  }
  if (!digits) return false;
  if (at == body.size()) return !hex;
  if (body[at] != (hex ? 'p' : 'e')) return false;
  ++at;
  if (at < body.size() && (body[at] == '+' || body[at] == '-')) ++at;
  if (at == body.size()) return false;
  return std::all_of(body.begin() + static_cast<std::ptrdiff_t>(at), body.end(), is_digit);
}

/// Underscores stand between digits; a base prefix counts as one.
bool has_valid_underscores(std::string_view s) {
  char saw = '^';
  if (!s.empty() && (s[0] == '+' || s[0] == '-')) s.remove_prefix(1);
  bool hex = false;
  if (s.size() >= 2 && s[0] == '0' && std::string_view("bBoOxX").find(s[1]) != std::string_view::npos) {
    saw = '0';
    hex = s[1] == 'x' || s[1] == 'X';
    s.remove_prefix(2);
  }
  for (const char c : s) {
    if (is_digit(c) || (hex && is_hex(static_cast<char>(c | 0x20)))) {
      saw = '0';
    } else if (c == '_') {
      if (saw != '0') return false;
      saw = '_';
    } else {
      if (saw == '_') return false;
      saw = '!';
    }
  }
  return saw != '_';
}

/// A quantity's text cut as Go cuts it; the whole part without leading zeros, "0" when nothing is left.
struct QuantityParts {
  std::string_view whole, fraction, suffix;
};

/// Nullopt: not of a quantity's shape.
std::optional<QuantityParts> split_quantity(std::string_view text) {
  QuantityParts parts;
  std::size_t at = text[0] == '+' || text[0] == '-' ? 1 : 0;
  while (at < text.size() && text[at] == '0') ++at;
  const std::size_t whole = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  parts.whole = at == whole ? std::string_view("0") : text.substr(whole, at - whole);
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
    parts.fraction = text.substr(fraction, at - fraction);
  }
  parts.suffix = text.substr(at);
  while (at < text.size() && std::string_view("eEinumkKMGTP").find(text[at]) != std::string_view::npos) ++at;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at != text.size()) return std::nullopt;
  return parts;
}

struct SuffixInfo {
  bool is_binary = false;
  int exponent = 0;  ///< Of ten, or of two.
};

std::optional<SuffixInfo> read_suffix(std::string_view suffix) {
  static constexpr std::string_view kDecimal = "num kMGTPE";
  if (suffix.empty()) return SuffixInfo{};
  if (suffix.size() == 1 && suffix != " ")
    if (const std::size_t at = kDecimal.find(suffix); at != std::string_view::npos) return SuffixInfo{false, static_cast<int>(at) * 3 - 9};
  if (suffix.size() == 2 && suffix[1] == 'i')
    if (const std::size_t at = std::string_view("KMGTPE").find(suffix[0]); at != std::string_view::npos)
      return SuffixInfo{true, 10 * (static_cast<int>(at) + 1)};
  if (suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E')) {
    std::string_view digits = suffix.substr(1);
    if (digits[0] == '+') digits.remove_prefix(1);
    int exponent = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (!digits.empty() && error == std::errc() && end == digits.data() + digits.size()) return SuffixInfo{false, exponent};
  }
  return std::nullopt;
}

/// Whether Go prints the amount as it was written: it was held in one integer and the text looks canonical to Go's quick check (which lets
/// a sign, leading zeros and a bare dot through).
bool is_kept_as_written(const QuantityParts& parts, const SuffixInfo& suffix) {
  const std::string digits = std::string(parts.whole) + std::string(parts.fraction);
  if (suffix.is_binary) {
    if (!parts.fraction.empty()) return false;
    if (15 - static_cast<int>(digits.size()) - static_cast<int>(static_cast<float>(suffix.exponent) * 3 / 10) - 1 < 0) return false;
    return std::strtoull(digits.c_str(), nullptr, 10) % 8 != 0;
  }
  const int scale = suffix.exponent - static_cast<int>(parts.fraction.size());
  return digits.size() <= 18 && scale >= -9 && scale % 3 == 0 && !digits.ends_with("000") && digits[0] != '0';
}

/// Canonical text of a decimal amount, also of one too large for model::Quantity, which caps it.
std::string canonical_decimal(const model::Quantity& value, std::string digits, int exponent, bool negative) {
  digits.erase(0, digits.find_first_not_of('0'));
  if (static_cast<int>(digits.size()) + exponent <= 18) return value.to_string();
  while (digits.ends_with('0')) {
    digits.pop_back();
    ++exponent;
  }
  if (exponent < 0) return value.to_string();
  for (; exponent % 3 != 0; --exponent) digits += '0';
  if (value.format() == model::Quantity::Format::kDecimalExponent)
    return fmt::format("{}{}{}", negative ? "-" : "", digits, exponent == 0 ? "" : fmt::format("e{}", exponent));
  static constexpr std::array<std::string_view, 7> kSuffixes = {"", "k", "M", "G", "T", "P", "E"};
  const std::string_view suffix = exponent / 3 < 7 ? kSuffixes[static_cast<std::size_t>(exponent / 3)] : std::string_view{};
  return fmt::format("{}{}{}", negative ? "-" : "", digits, suffix);
}

}  // namespace

TextResult<float> parse_float32(std::string_view text) {
  if (text.find('_') != std::string_view::npos && has_valid_underscores(text)) {
    std::string plain(text);
    std::erase(plain, '_');
    // The error, if it comes to one, names the text as it was given.
    const auto value = parse_float32(plain);
    if (value) return value;
    if (value.error().ends_with("out of range"))
      return std::unexpected(fmt::format("strconv.ParseFloat: parsing {}: value out of range", go::quote(text)));
  }
  const std::string_view unsigned_text = !text.empty() && (text[0] == '+' || text[0] == '-') ? text.substr(1) : text;
  const float sign = !text.empty() && text[0] == '-' ? -1.0F : 1.0F;
  const std::string word = go::to_lower(unsigned_text);
  if (word == "inf" || word == "infinity") return sign * std::numeric_limits<float>::infinity();
  if (go::to_lower(text) == "nan") return std::numeric_limits<float>::quiet_NaN();
  if (!is_float_syntax(text)) return std::unexpected(fmt::format("strconv.ParseFloat: parsing {}: invalid syntax", go::quote(text)));
  const float value = std::strtof(std::string(text).c_str(), nullptr);
  if (std::isinf(value)) return std::unexpected(fmt::format("strconv.ParseFloat: parsing {}: value out of range", go::quote(text)));
  return value;
}

TextResult<WrittenQuantity> parse_quantity(std::string_view text) {
  static constexpr const char* kFormatWrong = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  if (text.empty()) return std::unexpected(kFormatWrong);
  const auto parts = split_quantity(text);
  if (!parts) return std::unexpected(kFormatWrong);
  const std::optional<SuffixInfo> suffix = read_suffix(parts->suffix);
  if (!suffix) return std::unexpected("unable to parse quantity's suffix");
  WrittenQuantity out;
  const std::string digits = std::string(parts->whole) + std::string(parts->fraction);
  if (digits.find_first_not_of('0') == std::string::npos) {
    out.text = "0";
    return out;
  }
  const auto value = model::Quantity::parse(text);
  if (!value) return std::unexpected(kFormatWrong);
  out.value = *value;
  out.text = is_kept_as_written(*parts, *suffix) ? std::string(text)
             : suffix->is_binary
                 ? value->to_string()
                 : canonical_decimal(*value, digits, suffix->exponent - static_cast<int>(parts->fraction.size()), text[0] == '-');
  return out;
}

}  // namespace berth::node::eviction
