// resource.Quantity (apimachinery/pkg/api/resource): decimal and binary suffixes, exact.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace berth::model {

/// An exact amount in units of 1e-9, as Kubernetes keeps it (finer values round up away from zero, larger ones are capped at 2^63-1).
class Quantity {
 public:
  enum class Format { kDecimalSI, kBinarySI, kDecimalExponent };

  constexpr Quantity() = default;
  /// nullopt when malformed. Accepts all of Kubernetes' grammar: "0.1", "100m", "129e6", "1Gi", "128974848000m", "+5", "1E3".
  static std::optional<Quantity> parse(std::string_view text);
  static Quantity from_value(std::int64_t value, Format format = Format::kDecimalSI);
  static Quantity from_milli(std::int64_t milli, Format format = Format::kDecimalSI);

  /// Rounded up to whole units; saturates at the int64 limits.
  [[nodiscard]] std::int64_t value() const;
  /// Rounded up to thousandths; saturates.
  [[nodiscard]] std::int64_t milli_value() const;
  [[nodiscard]] __int128 nano() const { return nano_; }
  [[nodiscard]] double as_double() const;
  [[nodiscard]] bool is_zero() const { return nano_ == 0; }
  [[nodiscard]] int sign() const { return nano_ < 0 ? -1 : nano_ > 0; }
  [[nodiscard]] Format format() const { return format_; }
  /// Canonical form, Quantity.String(): largest suffix without fraction, in the format it was given in.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] auto parts() const { return std::tuple(static_cast<std::int64_t>(nano_ >> 64), static_cast<std::int64_t>(nano_), format_); }

  Quantity& operator+=(const Quantity& o);
  Quantity& operator-=(const Quantity& o);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }
  friend auto operator<=>(const Quantity& a, const Quantity& b) { return a.nano_ <=> b.nano_; }
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nano_ == b.nano_; }

 private:
  __int128 nano_ = 0;
  Format format_ = Format::kDecimalSI;
};

}  // namespace berth::model
