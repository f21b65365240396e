#include "model/validation/ip_range.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "model/validation/validation.h"

namespace berth::model::validation {

std::optional<IpRange> parse_ip(std::string_view text) {
  if (!is_ip(text)) return std::nullopt;
  IpRange out;
  out.is_v6 = text.find(':') != std::string_view::npos;
  out.bits = out.width();
  if (inet_pton(out.is_v6 ? AF_INET6 : AF_INET, std::string(text).c_str(), out.bytes.data()) != 1) return std::nullopt;
  return out;
}

std::optional<IpRange> parse_cidr(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  auto out = parse_ip(text.substr(0, slash));
  const std::string_view bits = text.substr(slash + 1);
  if (!out || bits.empty() || bits.size() > 3) return std::nullopt;
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), out->bits);
  if (error != std::errc() || end != bits.data() + bits.size() || out->bits > out->width()) return std::nullopt;
  return out;
}

bool IpRange::contains(const IpRange& other) const {
  if (is_v6 != other.is_v6) return false;
  for (unsigned bit = 0; bit < bits; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if (((bytes[bit / 8] ^ other.bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

DualStack check_dual_stack(const std::vector<std::string_view>& texts, bool are_ranges) {
  bool v4 = false, v6 = false;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto parsed = are_ranges ? parse_cidr(texts[i]) : parse_ip(texts[i]);
    if (!parsed && are_ranges) return {false, fmt::format("invalid CIDR[{}]: <nil> (invalid CIDR address: {})", i, texts[i])};
    if (!parsed) return {false, fmt::format("invalid IP[{}]: {}", i, texts[i])};
    (parsed->is_v6 ? v6 : v4) = true;
  }
  return {v4 && v6, {}};
}

namespace {

/// As Go's net.IP has it: ::ffff:10.0.0.1 is 10.0.0.1.
IpRange unmapped(const IpRange& address) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (!address.is_v6 || !std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) return address;
  IpRange out{.bits = 32};
  std::copy(address.bytes.begin() + 12, address.bytes.end(), out.bytes.begin());
  return out;
}

}  // namespace

bool is_loopback(const IpRange& address) {
  const IpRange ip = unmapped(address);
  if (!ip.is_v6) return ip.bytes[0] == 127;
  return ip.bytes[15] == 1 && std::all_of(ip.bytes.begin(), ip.bytes.end() - 1, [](auto byte) { return byte == 0; });
}

bool is_of_this_server(const json::Value& endpoints) {
  return json::get_string(endpoints, {"metadata", "namespace"}) == "default" &&
         json::get_string(endpoints, {"metadata", "name"}) == "kubernetes";
}

std::string special_ip_problem(const IpRange& address, std::string_view text) {
  const IpRange ip = unmapped(address);
  const auto& bytes = ip.bytes;
  if (std::ranges::all_of(bytes, [](auto byte) { return byte == 0; })) return fmt::format("may not be unspecified ({})", text);
  if (is_loopback(ip)) return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
  if (ip.is_v6 ? bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80 : bytes[0] == 169 && bytes[1] == 254)
    return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
  if (ip.is_v6 ? bytes[0] == 0xFF && (bytes[1] & 0x0F) == 2 : bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0)
    return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
  return {};
}

}  // namespace berth::model::validation
