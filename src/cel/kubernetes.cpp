// quantity(), semver() and format.named() (apiserver/pkg/cel/library).
#include <charconv>
#include <cmath>

#include "base/base64.h"
#include "cel/functions.h"
#include "cel/opaque.h"
#include "cel/text.h"
#include "model/validation/validation.h"

namespace berth::cel {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kAlphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";

bool only(std::string_view text, std::string_view of) { return text.find_first_not_of(of) == std::string_view::npos; }
bool has_leading_zeroes(std::string_view text) { return text.size() > 1 && text[0] == '0'; }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const auto at = text.find(separator);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

Expected<std::uint64_t, std::string> read_number(std::string_view text, std::string_view name, std::string_view title) {
  if (!only(text, kDigits)) return std::unexpected(fmt::format("Invalid character(s) found in {} number {}", name, go::quote(text)));
  if (has_leading_zeroes(text)) return std::unexpected(fmt::format("{} number must not contain leading zeroes {}", title, go::quote(text)));
  std::uint64_t out = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  if (result.ec == std::errc::result_out_of_range)
    return std::unexpected(fmt::format("strconv.ParseUint: parsing {}: value out of range", go::quote(text)));
  if (result.ec != std::errc()) return std::unexpected(fmt::format("strconv.ParseUint: parsing {}: invalid syntax", go::quote(text)));
  return out;
}

Value semver_value(std::string_view text, bool normalize) {
  auto parsed = normalize ? Semver::parse_tolerant(text) : Semver::parse(text);
  if (!parsed) return Value::error(parsed.error());
  return Value::opaque(std::make_shared<const Semver>(std::move(*parsed)));
}
bool is_semver(std::string_view text, bool normalize) {
  return (normalize ? Semver::parse_tolerant(text) : Semver::parse(text)).has_value();
}
int compare_semver(const Args& a) { return as_opaque<Semver>(a[0])->compare(*as_opaque<Semver>(a[1])); }

const model::Quantity& quantity_of(const Args& a, std::size_t i) { return *as_quantity(a[i]); }
int compare_quantity(const Args& a) { return quantity_of(a, 0) < quantity_of(a, 1) ? -1 : quantity_of(a, 0) > quantity_of(a, 1) ? 1 : 0; }
constexpr __int128 kNano = 1'000'000'000;
bool is_integer(const model::Quantity& q) {
  return q.nano() % kNano == 0 && q.nano() / kNano <= INT64_MAX && q.nano() / kNano >= INT64_MIN;
}

void add_quantity(Registry& r) {
  r.add("quantity", "string_to_quantity", "(string): Quantity", [](const Args& a) {
    const auto q = model::Quantity::parse(a[0].text());
    if (q) return Value::quantity(*q);
    return Value::error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  });
  r.add("isQuantity", "is_quantity_string", "(string): bool",
        [](const Args& a) { return Value::boolean(model::Quantity::parse(a[0].text()).has_value()); });
  // Declared as a function, not as a member, by the real library.
  r.add("sign", "quantity_sign", "(Quantity): int", [](const Args& a) { return Value::integer(quantity_of(a, 0).sign()); });
  r.add("isGreaterThan", "quantity_is_greater_than", "Quantity.(Quantity): bool",
        [](const Args& a) { return Value::boolean(compare_quantity(a) > 0); });
  r.add("isLessThan", "quantity_is_less_than", "Quantity.(Quantity): bool",
        [](const Args& a) { return Value::boolean(compare_quantity(a) < 0); });
  r.add("compareTo", "quantity_compare_to", "Quantity.(Quantity): int", [](const Args& a) { return Value::integer(compare_quantity(a)); });
  r.add("asApproximateFloat", "quantity_get_float", "Quantity.(): double",
        [](const Args& a) { return Value::real(quantity_of(a, 0).as_double()); });
  r.add("asInteger", "quantity_get_int", "Quantity.(): int", [](const Args& a) {
    const auto& q = quantity_of(a, 0);
    return is_integer(q) ? Value::integer(q.value()) : Value::error("cannot convert value to integer");
  });
  r.add("isInteger", "quantity_is_integer", "Quantity.(): bool",
        [](const Args& a) { return Value::boolean(is_integer(quantity_of(a, 0))); });
  r.add("add", "quantity_add", "Quantity.(Quantity): Quantity",
        [](const Args& a) { return Value::quantity(quantity_of(a, 0) + quantity_of(a, 1)); });
  r.add("add", "quantity_add_int", "Quantity.(int): Quantity", [](const Args& a) {
    return Value::quantity(quantity_of(a, 0) + model::Quantity::from_value(a[1].as_int(), model::Quantity::Format::kDecimalExponent));
  });
  r.add("sub", "quantity_sub", "Quantity.(Quantity): Quantity",
        [](const Args& a) { return Value::quantity(quantity_of(a, 0) - quantity_of(a, 1)); });
  r.add("sub", "quantity_sub_int", "Quantity.(int): Quantity", [](const Args& a) {
    return Value::quantity(quantity_of(a, 0) - model::Quantity::from_value(a[1].as_int(), model::Quantity::Format::kDecimalExponent));
  });
}

void add_semver(Registry& r) {
  r.add("semver", "string_to_semver", "(string): Semver", [](const Args& a) { return semver_value(a[0].text(), false); });
  r.add("semver", "string_bool_to_semver", "(string, bool): Semver",
        [](const Args& a) { return semver_value(a[0].text(), a[1].as_bool()); });
  r.add("isSemver", "is_semver_string", "(string): bool", [](const Args& a) { return Value::boolean(is_semver(a[0].text(), false)); });
  r.add("isSemver", "is_semver_string_bool", "(string, bool): bool",
        [](const Args& a) { return Value::boolean(is_semver(a[0].text(), a[1].as_bool())); });
  r.add("isGreaterThan", "semver_is_greater_than", "Semver.(Semver): bool",
        [](const Args& a) { return Value::boolean(compare_semver(a) > 0); });
  r.add("isLessThan", "semver_is_less_than", "Semver.(Semver): bool", [](const Args& a) { return Value::boolean(compare_semver(a) < 0); });
  r.add("compareTo", "semver_compare_to", "Semver.(Semver): int", [](const Args& a) { return Value::integer(compare_semver(a)); });
  r.add("major", "semver_major", "Semver.(): int",
        [](const Args& a) { return Value::integer(static_cast<std::int64_t>(as_opaque<Semver>(a[0])->major)); });
  r.add("minor", "semver_minor", "Semver.(): int",
        [](const Args& a) { return Value::integer(static_cast<std::int64_t>(as_opaque<Semver>(a[0])->minor)); });
  r.add("patch", "semver_patch", "Semver.(): int",
        [](const Args& a) { return Value::integer(static_cast<std::int64_t>(as_opaque<Semver>(a[0])->patch)); });
}

using Complaints = std::vector<std::string>;
/// A line each.
Complaints complaint(const std::string& text) { return text.empty() ? Complaints{} : split(text, '\n'); }

/// A trailing dash belongs to a prefix of a generated name.
std::string unmasked(std::string_view text) {
  std::string out(text);
  if (out.size() > 1 && out.back() == '-') out.back() = 'a';
  return out;
}

Complaints check_label_value(std::string_view text) { return complaint(model::validation::check_label_value(text)); }

bool is_uuid(std::string_view text) {
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '-') {
      if (digits.size() != 8 && digits.size() != 12 && digits.size() != 16 && digits.size() != 20) return false;
      continue;
    }
    if (std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
    digits += text[i];
  }
  return digits.size() == 32;
}

struct NamedFormat {
  const char *name, *title;
  std::uint64_t max_regex_size;
  Complaints (*validate)(std::string_view);
};

constexpr NamedFormat kFormats[] = {
    {"dns1123Label", "DNS1123Label", 30, [](std::string_view s) { return complaint(model::validation::check_dns1123_label(s)); }},
    {"dns1123Subdomain", "DNS1123Subdomain", 60,
     [](std::string_view s) { return complaint(model::validation::check_dns1123_subdomain(s)); }},
    {"dns1035Label", "DNS1035Label", 30, [](std::string_view s) { return complaint(model::validation::check_dns1035_label(s)); }},
    {"qualifiedName", "QualifiedName", 60, [](std::string_view s) { return complaint(model::validation::check_qualified_name(s)); }},
    {"dns1123LabelPrefix", "DNS1123LabelPrefix", 30,
     [](std::string_view s) { return complaint(model::validation::check_dns1123_label(unmasked(s))); }},
    {"dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60,
     [](std::string_view s) { return complaint(model::validation::check_dns1123_subdomain(unmasked(s))); }},
    {"dns1035LabelPrefix", "DNS1035LabelPrefix", 30,
     [](std::string_view s) { return complaint(model::validation::check_dns1035_label(unmasked(s))); }},
    {"labelValue", "LabelValue", 40, check_label_value},
    {"uri", "URI", 1103,
     [](std::string_view s) {
       const auto url = UrlValue::parse(s);
       return url ? Complaints{} : Complaints{url.error()};
     }},
    {"uuid", "uuid", 70, [](std::string_view s) { return is_uuid(s) ? Complaints{} : Complaints{"does not match the UUID format"}; }},
    {"byte", "byte", 84,
     [](std::string_view s) { return !s.empty() && s.size() % 4 == 0 && base64_decode(s) ? Complaints{} : Complaints{"invalid base64"}; }},
    {"date", "date", 70,
     [](std::string_view s) {
       return s.size() == 10 && parse_rfc3339(std::string(s) + "T00:00:00Z") ? Complaints{} : Complaints{"invalid date"};
     }},
    {"datetime", "datetime", 70, [](std::string_view s) { return parse_rfc3339(s) ? Complaints{} : Complaints{"invalid datetime"}; }},
};

std::shared_ptr<const FormatValue> format_of(const NamedFormat& format) {
  auto out = std::make_shared<FormatValue>();
  out->name = format.title;
  out->max_regex_size = format.max_regex_size;
  out->validate = format.validate;
  return out;
}

template <std::size_t... I>
void add_constant_formats(Registry& r, std::index_sequence<I...>) {
  (r.add(fmt::format("format.{}", kFormats[I].name), fmt::format("format.{}", kFormats[I].name), "(): Format",
         [](const Args&) { return Value::opaque(format_of(kFormats[I])); }),
   ...);
}

void add_formats(Registry& r) {
  r.add("format.named", "format-named", "(string): optional(Format)", [](const Args& a) {
    for (const auto& format : kFormats)
      if (a[0].text() == format.name) return Value::optional(Value::opaque(format_of(format)));
    return Value::none();
  });
  r.add("validate", "format-validate", "Format.(string): optional(list(string))", [](const Args& a) {
    auto complaints = as_opaque<FormatValue>(a[0])->validate(a[1].text());
    if (complaints.empty()) return Value::none();
    std::vector<Value> out;
    for (auto& text : complaints) out.push_back(Value::string(std::move(text)));
    return Value::optional(Value::list(std::move(out)));
  });
  add_constant_formats(r, std::make_index_sequence<std::size(kFormats)>());
}

}  // namespace

Expected<Semver, std::string> Semver::parse(std::string_view text) {
  if (text.empty()) return std::unexpected("Version string empty");
  const auto first = text.find('.');
  const auto second = first == std::string_view::npos ? first : text.find('.', first + 1);
  if (second == std::string_view::npos) return std::unexpected("No Major.Minor.Patch elements found");
  Semver out;
  auto major = read_number(text.substr(0, first), "major", "Major");
  if (!major) return std::unexpected(major.error());
  auto minor = read_number(text.substr(first + 1, second - first - 1), "minor", "Minor");
  if (!minor) return std::unexpected(minor.error());
  auto rest = text.substr(second + 1);
  std::optional<std::string_view> build, prerelease;
  if (const auto plus = rest.find('+'); plus != std::string_view::npos) {
    build = rest.substr(plus + 1);
    rest = rest.substr(0, plus);
  }
  if (const auto dash = rest.find('-'); dash != std::string_view::npos) {
    prerelease = rest.substr(dash + 1);
    rest = rest.substr(0, dash);
  }
  auto patch = read_number(rest, "patch", "Patch");
  if (!patch) return std::unexpected(patch.error());
  out.major = *major;
  out.minor = *minor;
  out.patch = *patch;
  if (prerelease) {
    for (auto& part : split(*prerelease, '.')) {
      if (part.empty()) return std::unexpected("Prerelease is empty");
      if (only(part, kDigits)) {
        if (has_leading_zeroes(part))
          return std::unexpected(fmt::format("Numeric PreRelease version must not contain leading zeroes {}", go::quote(part)));
      } else if (!only(part, kAlphanumeric)) {
        return std::unexpected(fmt::format("Invalid character(s) found in prerelease {}", go::quote(part)));
      }
      out.prerelease.push_back(std::move(part));
    }
  }
  if (build) {
    for (const auto& part : split(*build, '.')) {
      if (part.empty()) return std::unexpected("Build meta data is empty");
      if (!only(part, kAlphanumeric))
        return std::unexpected(fmt::format("Invalid character(s) found in build meta data {}", go::quote(part)));
    }
  }
  return out;
}

Expected<Semver, std::string> Semver::parse_tolerant(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  std::vector<std::string> parts;
  while (parts.size() < 2 && text.find('.') != std::string_view::npos) {
    parts.emplace_back(text.substr(0, text.find('.')));
    text.remove_prefix(text.find('.') + 1);
  }
  parts.emplace_back(text);
  for (auto& part : parts) {
    if (part.size() <= 1) continue;
    part.erase(0, std::min(part.find_first_not_of('0'), part.size()));
    if (part.empty() || kDigits.find(part[0]) == std::string_view::npos) part.insert(0, "0");
  }
  if (parts.size() < 3) {
    if (parts.back().find_first_of("+-") != std::string::npos)
      return std::unexpected("short version cannot contain PreRelease/Build meta data");
    parts.resize(3, "0");
  }
  return parse(fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]));
}

int Semver::compare(const Semver& other) const {
  if (const auto order = std::tie(major, minor, patch) <=> std::tie(other.major, other.minor, other.patch); order != 0)
    return order < 0 ? -1 : 1;
  if (prerelease.empty() != other.prerelease.empty()) return prerelease.empty() ? 1 : -1;
  for (std::size_t i = 0; i < prerelease.size() && i < other.prerelease.size(); ++i) {
    const auto &a = prerelease[i], &b = other.prerelease[i];
    if (a == b) continue;
    const bool a_is_number = only(a, kDigits), b_is_number = only(b, kDigits);
    if (a_is_number != b_is_number) return a_is_number ? -1 : 1;
    if (a_is_number && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a < b ? -1 : 1;
  }
  return prerelease.size() == other.prerelease.size() ? 0 : prerelease.size() < other.prerelease.size() ? -1 : 1;
}

void add_kubernetes(Registry& r) {
  add_quantity(r);
  add_semver(r);
  add_formats(r);
}

}  // namespace berth::cel
