// The libraries' own value types, and helpers on values. Internal to the folder.
#pragma once
#include <array>

#include "base/expected.h"
#include "base/go/url.h"
#include "cel/value.h"

namespace berth::cel {

/// What "%v" prints of a value in messages.
std::string to_text(const Value& value);
std::string_view type_value_name(const Value& value);
/// -1, 0, 1; -2 when either is not a number. Both are int, uint or double.
int compare_numbers(const Value& a, const Value& b);

class QuantityValue final : public Opaque {
 public:
  explicit QuantityValue(const model::Quantity& quantity) : quantity(quantity) {}
  [[nodiscard]] std::string_view type_name() const override { return "kubernetes.Quantity"; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return quantity == static_cast<const QuantityValue&>(other).quantity; }
  model::Quantity quantity;
};

/// Semantic Versioning 2.0.0 as blang/semver reads it.
class Semver final : public Opaque {
 public:
  static Expected<Semver, std::string> parse(std::string_view text);
  /// With a leading "v", short versions and leading zeros.
  static Expected<Semver, std::string> parse_tolerant(std::string_view text);
  [[nodiscard]] std::string_view type_name() const override { return "kubernetes.Semver"; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return compare(static_cast<const Semver&>(other)) == 0; }
  [[nodiscard]] int compare(const Semver& other) const;
  std::uint64_t major = 0, minor = 0, patch = 0;
  std::vector<std::string> prerelease;
};

/// An IPv4 (4 bytes) or IPv6 (16 bytes) address.
class IpValue final : public Opaque {
 public:
  static Expected<IpValue, std::string> parse(std::string_view text);
  [[nodiscard]] std::string_view type_name() const override { return "net.IP"; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return same(static_cast<const IpValue&>(other)); }
  [[nodiscard]] bool same(const IpValue& o) const { return is_v4 == o.is_v4 && bytes == o.bytes; }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] int bits() const { return is_v4 ? 32 : 128; }
  bool is_v4 = true;
  std::array<std::uint8_t, 16> bytes{};
};

class CidrValue final : public Opaque {
 public:
  static Expected<CidrValue, std::string> parse(std::string_view text);
  [[nodiscard]] std::string_view type_name() const override { return "net.CIDR"; }
  [[nodiscard]] bool equals(const Opaque& other) const override {
    const auto& o = static_cast<const CidrValue&>(other);
    return prefix == o.prefix && address.same(o.address);
  }
  [[nodiscard]] bool contains(const IpValue& ip) const;
  [[nodiscard]] CidrValue masked() const;
  IpValue address;
  int prefix = 0;
};

class UrlValue final : public Opaque {
 public:
  /// url.ParseRequestURI, then url.Parse. The error is Go's: `parse "x": invalid URI for request`.
  static Expected<UrlValue, std::string> parse(std::string_view text);
  [[nodiscard]] std::string_view type_name() const override { return "kubernetes.URL"; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return text == static_cast<const UrlValue&>(other).text; }
  std::string text;
  go::Url url;
};

class FormatValue final : public Opaque {
 public:
  [[nodiscard]] std::string_view type_name() const override { return "kubernetes.NamedFormat"; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return name == static_cast<const FormatValue&>(other).name; }
  std::string name;
  std::uint64_t max_regex_size = 0;
  std::function<std::vector<std::string>(std::string_view)> validate;
};

template <typename T>
const T* as_opaque(const Value& value) {
  return value.kind() == Value::Kind::kOpaque ? dynamic_cast<const T*>(&value.as_opaque()) : nullptr;
}
inline const model::Quantity* as_quantity(const Value& value) {
  const auto* quantity = as_opaque<QuantityValue>(value);
  return quantity == nullptr ? nullptr : &quantity->quantity;
}

}  // namespace berth::cel
