#include "model/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

namespace berth::model {
namespace {

constexpr std::int64_t kNano = 1'000'000'000;
constexpr __int128 kCap = static_cast<__int128>(std::numeric_limits<std::int64_t>::max()) * kNano;
constexpr int kMostDigits = 38;  ///< Of a 128-bit integer, whatever they are.
constexpr __int128 kHuge = static_cast<__int128>(10'000'000'000'000'000'000U) * 10'000'000'000'000'000'000U;  ///< 10^38.
constexpr __int128 kMost = static_cast<__int128>((static_cast<unsigned __int128>(1) << 127U) - 1);

struct Suffix {
  Quantity::Format format = Quantity::Format::kDecimalSI;
  int power_of_ten = 0;
  int power_of_two = 0;
};

std::optional<Suffix> parse_suffix(std::string_view text) {
  using Format = Quantity::Format;
  if (text.empty()) return Suffix{};
  if (text.size() == 1) {
    switch (text[0]) {
      case 'n':
        return Suffix{Format::kDecimalSI, -9, 0};
      case 'u':
        return Suffix{Format::kDecimalSI, -6, 0};
      case 'm':
        return Suffix{Format::kDecimalSI, -3, 0};
      case 'k':
        return Suffix{Format::kDecimalSI, 3, 0};
      case 'M':
        return Suffix{Format::kDecimalSI, 6, 0};
      case 'G':
        return Suffix{Format::kDecimalSI, 9, 0};
      case 'T':
        return Suffix{Format::kDecimalSI, 12, 0};
      case 'P':
        return Suffix{Format::kDecimalSI, 15, 0};
      case 'E':
        return Suffix{Format::kDecimalSI, 18, 0};
      default:
        return std::nullopt;
    }
  }
  if (text.size() == 2 && text[1] == 'i') {
    constexpr std::string_view kPrefixes = "KMGTPE";
    const auto at = kPrefixes.find(text[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Suffix{Format::kBinarySI, 0, 10 * (static_cast<int>(at) + 1)};
  }
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  std::string_view digits = text.substr(1);
  if (digits.front() == '+') {
    digits.remove_prefix(1);
    if (digits.empty() || digits.front() == '-') return std::nullopt;
  }
  std::int32_t exponent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return Suffix{Format::kDecimalExponent, exponent, 0};
}

/// An unsigned integer of any size, least significant word first: only for the rare texts of more than 18 digits.
class BigNumber {
 public:
  void multiply_add(std::uint32_t factor, std::uint32_t addend) {
    std::uint64_t carry = addend;
    for (auto& word : words_) {
      carry += static_cast<std::uint64_t>(word) * factor;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words_.push_back(static_cast<std::uint32_t>(carry));
  }
  /// The remainder.
  std::uint32_t divide(std::uint32_t divisor) {
    std::uint64_t rest = 0;
    for (std::size_t i = words_.size(); i-- > 0;) {
      rest = rest << 32 | words_[i];
      words_[i] = static_cast<std::uint32_t>(rest / divisor);
      rest %= divisor;
    }
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
    return static_cast<std::uint32_t>(rest);
  }
  [[nodiscard]] __int128 capped(__int128 cap) const {
    if (words_.size() > 4) return cap;
    unsigned __int128 value = 0;
    for (std::size_t i = words_.size(); i-- > 0;) value = value << 32U | words_[i];
    return value > static_cast<unsigned __int128>(cap) ? cap : static_cast<__int128>(value);
  }

 private:
  std::vector<std::uint32_t> words_;
};

/// digits × 10^power × 2^binary, rounded up, capped.
__int128 scale_digits(const std::string& digits, int power, int binary, __int128 cap) {
  const auto size = static_cast<int>(digits.size());
  if (size == 0) return 0;
  if (power + size > 40) return cap;
  if (power + size < -60) return 1;
  BigNumber number;
  for (const char c : digits) number.multiply_add(10, static_cast<std::uint32_t>(c - '0'));
  for (int i = 0; i < binary; i += 10) number.multiply_add(1024, 0);
  for (; power > 0; --power) number.multiply_add(10, 0);
  bool inexact = false;
  for (; power < 0; ++power) inexact |= number.divide(10) != 0;
  if (inexact) number.multiply_add(1, 1);
  return number.capped(cap);
}

__int128 scale_small(std::uint64_t digits, int power, int binary, __int128 cap) {
  __int128 value = static_cast<__int128>(digits) << binary;  // Below 2^120: 18 digits and at most 2^60.
  if (digits == 0) return 0;
  if (power < -40) return 1;
  for (; power > 0; --power)
    if (value > cap || __builtin_mul_overflow(value, static_cast<__int128>(10), &value)) return cap;
  bool inexact = false;
  for (; power < 0; ++power) {
    inexact |= value % 10 != 0;
    value /= 10;
  }
  value += inexact;
  return value > cap ? cap : value;
}

std::int64_t saturate(__int128 value) {
  if (value > std::numeric_limits<std::int64_t>::max()) return std::numeric_limits<std::int64_t>::max();
  if (value < std::numeric_limits<std::int64_t>::min()) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

/// Away from zero: "some" never becomes "none".
__int128 divide_up(__int128 value, std::int64_t by) {
  const __int128 quotient = value / by;
  const __int128 rest = value % by;
  return rest == 0 ? quotient : quotient + (value < 0 ? -1 : 1);
}

std::string decimal_text(__int128 value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string out;
  for (; value != 0; value /= 10) out.insert(out.begin(), static_cast<char>('0' + static_cast<int>(negative ? -(value % 10) : value % 10)));
  if (negative) out.insert(out.begin(), '-');
  return out;
}

std::string decimal_canonical(__int128 nano, int thousands, bool exponent_form) {
  int exponent = -9 + 3 * thousands;
  while (nano % 1000 == 0 && (exponent_form || exponent < 18)) {
    nano /= 1000;
    exponent += 3;
  }
  if (exponent_form) return decimal_text(nano) + (exponent == 0 ? "" : "e" + std::to_string(exponent));
  constexpr std::string_view kSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  std::string out = decimal_text(nano);
  if (exponent > 18) out.append(static_cast<std::size_t>(std::min(exponent, 1000) - 18), '0');  // Kubernetes has no larger suffix.
  return out + std::string(kSuffixes[(std::min(exponent, 18) + 9) / 3]);
}

}  // namespace

std::optional<Quantity> Quantity::parse(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::string digits;
  int fraction_digits = 0;
  bool in_fraction = false;
  bool any = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    any = true;
    if (in_fraction) ++fraction_digits;
    if (c != '0' || !digits.empty()) digits.push_back(c);
  }
  if (!any) return std::nullopt;
  const auto suffix = parse_suffix(text.substr(at));
  if (!suffix) return std::nullopt;
  while (fraction_digits > 0 && !digits.empty() && digits.back() == '0') {
    digits.pop_back();
    --fraction_digits;
  }

  Quantity out;
  out.format_ = suffix->format;
  // An int32 exponent and a text's length both fit easily; the sum is clamped where it can no longer matter.
  auto power = static_cast<int>(std::clamp<std::int64_t>(9LL + suffix->power_of_ten - fraction_digits, -1'000'000'000, 1'000'000'000));
  const bool is_binary = suffix->format == Format::kBinarySI;
  if (const int size = static_cast<int>(std::min<std::size_t>(digits.size(), 1U << 20U));
      !is_binary && !digits.empty() && size + power > kMostDigits) {
    out.thousands_ = (size + power - kMostDigits + 2) / 3;
    power -= 3 * out.thousands_;
  }
  const __int128 cap = is_binary ? kCap : kMost;
  if (digits.size() <= 18) {
    std::uint64_t value = 0;
    for (const char c : digits) value = value * 10 + static_cast<std::uint64_t>(c - '0');
    out.nano_ = scale_small(value, power, suffix->power_of_two, cap);
  } else {
    out.nano_ = scale_digits(digits, power, suffix->power_of_two, cap);
  }
  if (negative) out.nano_ = -out.nano_;
  if (out.format_ == Format::kBinarySI && out.nano_ > 0 && out.nano_ < kNano) out.format_ = Format::kDecimalSI;
  return out;
}

Quantity Quantity::from_value(std::int64_t value, Format format) {
  Quantity out;
  out.nano_ = static_cast<__int128>(value) * kNano;
  out.format_ = format;
  return out;
}

Quantity Quantity::from_milli(std::int64_t milli, Format format) {
  Quantity out;
  out.nano_ = static_cast<__int128>(milli) * (kNano / 1000);
  out.format_ = format;
  return out;
}

std::int64_t Quantity::value() const { return saturate(divide_up(nano(), kNano)); }

std::int64_t Quantity::milli_value() const { return saturate(divide_up(nano(), kNano / 1000)); }

__int128 Quantity::nano() const { return thousands_ == 0 ? nano_ : nano_ < 0 ? -kMost : kMost; }

double Quantity::as_double() const {
  const double value = static_cast<double>(nano_) / 1e9;
  return thousands_ == 0 ? value : value * std::pow(1000.0, thousands_);
}

std::string Quantity::to_string() const {
  if (nano_ == 0) return "0";
  const __int128 magnitude = nano_ < 0 ? -nano_ : nano_;
  if (format_ != Format::kBinarySI || thousands_ != 0 || nano_ % kNano != 0 || magnitude < static_cast<__int128>(1024) * kNano)
    return decimal_canonical(nano_, thousands_, format_ == Format::kDecimalExponent);
  __int128 whole = nano_ / kNano;
  int step = 0;
  while (step < 6 && whole % 1024 == 0) {
    whole /= 1024;
    ++step;
  }
  constexpr std::string_view kSuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  return decimal_text(whole) + std::string(kSuffixes[step]);
}

/// One of them is of 10^29 or more: of two with the same sign the one that counts larger units is farther from zero.
std::strong_ordering Quantity::compare_huge(const Quantity& a, const Quantity& b) {
  if (a.sign() != b.sign()) return a.sign() <=> b.sign();
  return a.sign() > 0 ? a.thousands_ <=> b.thousands_ : b.thousands_ <=> a.thousands_;
}

void Quantity::add(const Quantity& o, bool is_taken_away) {
  if (nano_ == 0) format_ = o.format_;
  int thousands = std::max(thousands_, o.thousands_);
  // Beside what is that much larger, no digit of the other is kept.
  const auto in_units = [&](__int128 value, int units) {
    for (int i = std::min(thousands - units, kMostDigits); i > 0 && value != 0; --i) value = divide_up(value, 1000);
    return value;
  };
  const __int128 mine = in_units(nano_, thousands_), other = in_units(is_taken_away ? -o.nano_ : o.nano_, o.thousands_);
  __int128 sum = 0;
  if (__builtin_add_overflow(mine, other, &sum)) {
    sum = divide_up(mine, 1000) + divide_up(other, 1000);
    ++thousands;
  }
  // In the smallest units that hold it, so that alike is alike.
  if (sum == 0) thousands = 0;
  for (; thousands > 0 && sum < kHuge / 1000 && sum > -kHuge / 1000; --thousands) sum *= 1000;
  for (; sum >= kHuge || sum <= -kHuge; ++thousands) sum = divide_up(sum, 1000);
  nano_ = sum;
  thousands_ = thousands;
}

Quantity& Quantity::operator+=(const Quantity& o) {
  __int128 sum = 0;
  const bool is_plain = thousands_ == 0 && o.thousands_ == 0 && nano_ != 0 && !__builtin_add_overflow(nano_, o.nano_, &sum);
  if (is_plain && sum < kHuge && sum > -kHuge)
    nano_ = sum;
  else
    add(o, false);
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& o) {
  add(o, true);
  return *this;
}

}  // namespace berth::model
