#include "model/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

namespace berth::model {
namespace {

constexpr std::int64_t kNano = 1'000'000'000;
/// A decimal amount of 10^37 units of 1e-9 and more is not counted but told: kHuge, and on it the power of ten of its first digit in units
/// of 2^64, and on that its first 18 digits, rounded up. So larger ones are larger, and what is alike is alike.
constexpr __int128 kHuge = static_cast<__int128>(1'000'000'000'000'000'000) * 1'000'000'000'000'000'000 * 10;
constexpr int kHugePower = 37, kToldDigits = 18;
constexpr std::int64_t kToldRange = 1'000'000'000'000'000'000;
constexpr __int128 kCap = static_cast<__int128>(std::numeric_limits<std::int64_t>::max()) * kNano;

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
__int128 scale_digits(std::string digits, int power, int binary, __int128 cap) {
  const auto size = static_cast<std::int64_t>(digits.size());
  if (size == 0) return 0;
  if (power + size > 40) return cap;
  if (power + size < -60) return 1;
  // A whole number over 2^binary has no more decimals than `binary`: what stands behind them is never needed but to round up.
  bool inexact = false;
  if (const std::int64_t beyond = -static_cast<std::int64_t>(power) - binary; beyond > 0) {
    const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(size - beyond, 0));
    inexact = digits.find_first_not_of('0', kept) != std::string::npos;
    digits.resize(kept);
    power = -binary;
  }
  BigNumber number;
  for (const char c : digits) number.multiply_add(10, static_cast<std::uint32_t>(c - '0'));
  for (int i = 0; i < binary; i += 10) number.multiply_add(1024, 0);
  for (; power > 0; --power) number.multiply_add(10, 0);
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

/// 0.DIGITS × 10^(power + 1), in units of 1e-9.
struct Told {
  std::int64_t power = 0, digits = 0;
};

__int128 tell(Told told) {
  if (told.digits >= kToldRange) told = {told.power + 1, told.digits / 10};
  return kHuge + (static_cast<__int128>(told.power) << 64U) + told.digits;
}

Told told_of(__int128 magnitude) {
  if (magnitude >= kHuge)
    return {static_cast<std::int64_t>((magnitude - kHuge) >> 64U),
            static_cast<std::int64_t>(static_cast<unsigned __int128>(magnitude - kHuge) & ~std::uint64_t{0})};
  Told out{-1, 0};
  for (__int128 rest = magnitude; rest != 0; rest /= 10) ++out.power;
  for (int at = kToldDigits - 1; at > out.power; --at) magnitude *= 10;
  for (std::int64_t at = kToldDigits - 1; at < out.power; ++at) magnitude = magnitude / 10 + (magnitude % 10 != 0);
  if (magnitude >= kToldRange) return {out.power + 1, static_cast<std::int64_t>(magnitude / 10)};
  out.digits = static_cast<std::int64_t>(magnitude);
  return out;
}

/// Of the digits of a text, times 10^power; `digits` has no leading zero.
__int128 tell_text(const std::string& digits, std::int64_t power) {
  Told told{power + static_cast<std::int64_t>(digits.size()) - 1, 0};
  for (std::size_t i = 0; i < kToldDigits; ++i) told.digits = told.digits * 10 + (i < digits.size() ? digits[i] - '0' : 0);
  if (digits.size() > kToldDigits && digits.find_first_not_of('0', kToldDigits) != std::string::npos) ++told.digits;
  return tell(told);
}

/// The sum of two of which one is told.
__int128 add_told(__int128 a, __int128 b) {
  const __int128 size_a = a < 0 ? -a : a, size_b = b < 0 ? -b : b;
  if (size_a < size_b) return add_told(b, a);
  if (size_a == size_b && (a < 0) != (b < 0)) return 0;
  Told large = told_of(size_a);
  const Told small = told_of(size_b);
  std::int64_t rest = small.digits;
  for (std::int64_t at = small.power; at < large.power && rest > 1; ++at) rest = rest / 10 + (rest % 10 != 0);
  large.digits += (a < 0) == (b < 0) ? rest : -rest;
  if (large.digits >= kToldRange) large = {large.power + 1, large.digits / 10};
  large.digits = std::max<std::int64_t>(large.digits, 1);  // They differ, though by less than is told.
  for (; large.digits < kToldRange / 10; --large.power) large.digits *= 10;
  __int128 out = 0;
  if (large.power >= kHugePower) {
    out = tell(large);
  } else {
    out = large.digits;
    for (std::int64_t at = kToldDigits - 1; at < large.power; ++at) out *= 10;
    for (std::int64_t at = kToldDigits - 1; at > large.power; --at) out = out / 10 + (out % 10 != 0);
  }
  return a < 0 ? -out : out;
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

std::string decimal_canonical(__int128 nano, bool exponent_form) {
  std::int64_t exponent = -9;
  const __int128 magnitude = nano < 0 ? -nano : nano;
  if (magnitude >= kHuge) {
    const Told told = told_of(magnitude);
    nano = nano < 0 ? -told.digits : told.digits;
    exponent += told.power - kToldDigits + 1;
    for (; exponent % 3 != 0; --exponent) nano *= 10;
  }
  // Kubernetes has no suffix beyond E, and goes on with zeros.
  while (nano % 1000 == 0 && (exponent_form || exponent < 18)) {
    nano /= 1000;
    exponent += 3;
  }
  if (exponent_form) return decimal_text(nano) + (exponent == 0 ? "" : "e" + std::to_string(exponent));
  constexpr std::string_view kSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  const std::size_t zeros = exponent > 18 ? static_cast<std::size_t>(std::min<std::int64_t>(exponent, 1000) - 18) : 0;
  return decimal_text(nano) + std::string(zeros, '0') + std::string(kSuffixes[(std::min<std::int64_t>(exponent, 18) + 9) / 3]);
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
  const auto power =
      static_cast<int>(std::clamp<std::int64_t>(9LL + suffix->power_of_ten - fraction_digits, -1'000'000'000, 1'000'000'000));
  const bool is_binary = suffix->format == Format::kBinarySI;
  const __int128 cap = is_binary ? kCap : kHuge;
  if (!is_binary && !digits.empty() && static_cast<std::int64_t>(digits.size()) + power > kHugePower) {
    out.nano_ = tell_text(digits, power);
  } else if (digits.size() <= 18) {
    std::uint64_t value = 0;
    for (const char c : digits) value = value * 10 + static_cast<std::uint64_t>(c - '0');
    out.nano_ = scale_small(value, power, suffix->power_of_two, cap);
  } else {
    out.nano_ = scale_digits(std::move(digits), power, suffix->power_of_two, cap);
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

std::int64_t Quantity::value() const { return saturate(divide_up(nano_, kNano)); }

std::int64_t Quantity::milli_value() const { return saturate(divide_up(nano_, kNano / 1000)); }

double Quantity::as_double() const {
  const __int128 magnitude = nano_ < 0 ? -nano_ : nano_;
  if (magnitude < kHuge) return static_cast<double>(nano_) / 1e9;
  const Told told = told_of(magnitude);
  return static_cast<double>(nano_ < 0 ? -told.digits : told.digits) *
         std::pow(10.0, static_cast<double>(told.power - kToldDigits + 1 - 9));
}

std::string Quantity::to_string() const {
  if (nano_ == 0) return "0";
  const __int128 magnitude = nano_ < 0 ? -nano_ : nano_;
  if (format_ != Format::kBinarySI || nano_ % kNano != 0 || magnitude < static_cast<__int128>(1024) * kNano)
    return decimal_canonical(nano_, format_ == Format::kDecimalExponent);
  __int128 whole = nano_ / kNano;
  int step = 0;
  while (step < 6 && whole % 1024 == 0) {
    whole /= 1024;
    ++step;
  }
  constexpr std::string_view kSuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  return decimal_text(whole) + std::string(kSuffixes[step]);
}

Quantity& Quantity::operator+=(const Quantity& o) {
  if (nano_ == 0) format_ = o.format_;
  const auto is_counted = [](__int128 value) { return value < kHuge && value > -kHuge; };
  if (is_counted(nano_) && is_counted(o.nano_) && is_counted(nano_ + o.nano_))
    nano_ += o.nano_;
  else
    nano_ = add_told(nano_, o.nano_);
  return *this;
}

Quantity& Quantity::operator-=(const Quantity& o) {
  if (nano_ == 0) format_ = o.format_;
  Quantity negated = o;
  negated.nano_ = -o.nano_;
  return *this += negated;
}

}  // namespace berth::model
