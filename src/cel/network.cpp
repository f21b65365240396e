// ip(), cidr() and their functions (apiserver/pkg/cel/library/ip.go, cidr.go over Go's net/netip).
#include <arpa/inet.h>

#include <charconv>

#include "cel/functions.h"
#include "cel/opaque.h"
#include "cel/text.h"

namespace berth::cel {
namespace {

using Bytes = std::array<std::uint8_t, 16>;
std::unexpected<std::string> parse_error(std::string_view text, std::string_view why) {
  return std::unexpected(fmt::format("ParseAddr({}): {}", go::quote(text), why));
}

/// netip.ParseAddr; sets `zone` for IPv6 addresses with one.
Expected<IpValue, std::string> parse_address(std::string_view text, std::string& zone) {
  IpValue out;
  const auto first = text.find_first_of(".:%");
  if (first == std::string_view::npos) return parse_error(text, "unable to parse IP");
  if (text[first] == '%') return parse_error(text, "missing IPv6 address");
  if (text[first] == '.') {
    std::size_t at = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto start = at;
      int value = 0;
      while (at < text.size() && text[at] != '.') {
        if (std::isdigit(static_cast<unsigned char>(text[at])) == 0)
          return parse_error(text, "unexpected character (at " + go::quote(text.substr(at)) + ")");
        if (at > start && text[start] == '0') return parse_error(text, "IPv4 field has octet with leading zero");
        value = value * 10 + (text[at] - '0');
        if (value > 255) return parse_error(text, "IPv4 field has value >255");
        ++at;
      }
      if (at == start) return parse_error(text, "IPv4 field must have at least one digit (at " + go::quote(text.substr(start)) + ")");
      out.bytes[i] = static_cast<std::uint8_t>(value);
      if (i < 3) {
        if (at == text.size()) return parse_error(text, "IPv4 address too short");
        ++at;
      } else if (at != text.size()) {
        return parse_error(text, "IPv4 address too long");
      }
    }
    return out;
  }
  auto body = text;
  if (const auto percent = body.find('%'); percent != std::string_view::npos) {
    zone = body.substr(percent + 1);
    if (zone.empty()) return parse_error(text, "zone must be a non-empty string");
    body = body.substr(0, percent);
  }
  out.is_v4 = false;
  if (inet_pton(AF_INET6, std::string(body).c_str(), out.bytes.data()) != 1) return parse_error(text, "unable to parse IP");
  return out;
}

bool is_mapped(const IpValue& ip) {
  static constexpr Bytes kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return !ip.is_v4 && std::equal(kPrefix.begin(), kPrefix.begin() + 12, ip.bytes.begin());
}

void mask(Bytes& bytes, int prefix) {
  for (int i = 0; i < 16; ++i) {
    const int bits = std::clamp(prefix - i * 8, 0, 8);
    bytes[static_cast<std::size_t>(i)] &= static_cast<std::uint8_t>(0xFF00 >> bits);
  }
}

bool starts_like(const Bytes& bytes, std::uint8_t a, std::uint8_t b, int bits_of_b) {
  return bytes[0] == a && (bytes[1] & (0xFF00 >> bits_of_b) & 0xFF) == b;
}
bool is_zero(const IpValue& ip) { return ip.bytes == Bytes{}; }
bool is_loopback(const IpValue& ip) {
  if (ip.is_v4) return ip.bytes[0] == 127;
  Bytes one{};
  one[15] = 1;
  return ip.bytes == one;
}
bool is_link_local_unicast(const IpValue& ip) {
  return ip.is_v4 ? starts_like(ip.bytes, 169, 254, 8) : starts_like(ip.bytes, 0xFE, 0x80, 2);
}
bool is_multicast(const IpValue& ip) { return ip.is_v4 ? (ip.bytes[0] & 0xF0) == 0xE0 : ip.bytes[0] == 0xFF; }
bool is_link_local_multicast(const IpValue& ip) {
  if (ip.is_v4) return ip.bytes[0] == 224 && ip.bytes[1] == 0 && ip.bytes[2] == 0;
  return ip.bytes[0] == 0xFF && (ip.bytes[1] & 0x0F) == 0x02;
}
bool is_global_unicast(const IpValue& ip) {
  const Bytes broadcast = {255, 255, 255, 255};
  if (ip.is_v4 && ip.bytes == broadcast) return false;
  return !is_zero(ip) && !is_loopback(ip) && !is_multicast(ip) && !is_link_local_unicast(ip);
}

Value to_ip(std::string_view text) {
  auto ip = IpValue::parse(text);
  return ip ? Value::opaque(std::make_shared<const IpValue>(*ip)) : Value::error(ip.error());
}
Value to_cidr(std::string_view text) {
  auto cidr = CidrValue::parse(text);
  if (!cidr) return Value::error("network address parse error during conversion from string: " + cidr.error());
  return Value::opaque(std::make_shared<const CidrValue>(*cidr));
}

template <bool (*Test)(const IpValue&)>
Value test_ip(const Args& a) {
  return Value::boolean(Test(*as_opaque<IpValue>(a[0])));
}

Value contains_cidr(const CidrValue& outer, const CidrValue& inner) {
  return Value::boolean(outer.prefix <= inner.prefix && outer.contains(inner.address));
}

}  // namespace

Expected<IpValue, std::string> IpValue::parse(std::string_view text) {
  std::string zone;
  auto ip = parse_address(text, zone);
  if (!ip) return std::unexpected(fmt::format("IP Address {} parse error during conversion from string: {}", go::quote(text), ip.error()));
  if (!zone.empty()) return std::unexpected(fmt::format("IP address {} with zone value is not allowed", go::quote(text)));
  if (is_mapped(*ip)) return std::unexpected(fmt::format("IPv4-mapped IPv6 address {} is not allowed", go::quote(text)));
  return ip;
}

std::string IpValue::text() const {
  if (is_v4) return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
  // RFC 5952: the longest run of at least two zero groups becomes "::".
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) groups[i] = static_cast<unsigned>(bytes[2 * i]) << 8 | bytes[2 * i + 1];
  std::size_t best = 8, length = 1;
  for (std::size_t i = 0; i < 8;) {
    std::size_t j = i;
    while (j < 8 && groups[j] == 0) ++j;
    if (j - i > length) {
      best = i;
      length = j - i;
    }
    i = std::max(j, i + 1);
  }
  std::string out;
  for (std::size_t i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += length - 1;
      continue;
    }
    if (!out.empty() && out.back() != ':') out += ':';
    out += fmt::format("{:x}", groups[i]);
  }
  return out;
}

Expected<CidrValue, std::string> CidrValue::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return std::unexpected(
        fmt::format("network address parse error during conversion from string: netip.ParsePrefix({}): {}", go::quote(text), why));
  };
  const auto slash = text.rfind('/');
  if (slash == std::string_view::npos) return wrong("no '/'");
  std::string zone;
  auto address = parse_address(text.substr(0, slash), zone);
  if (!address) return wrong(address.error());
  if (!zone.empty()) return wrong("IPv6 zones cannot be present in a prefix");
  const auto digits = text.substr(slash + 1);
  int prefix = -1;
  const bool is_plain =
      !digits.empty() && std::isdigit(static_cast<unsigned char>(digits[0])) != 0 && (digits.size() == 1 || digits[0] != '0');
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (!is_plain || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
    return wrong("bad bits after slash: " + go::quote(digits));
  if (prefix > address->bits()) return wrong("prefix length out of range");
  if (is_mapped(*address)) return std::unexpected(fmt::format("IPv4-mapped IPv6 address {} is not allowed", go::quote(text)));
  CidrValue out;
  out.address = *address;
  out.prefix = prefix;
  return out;
}

bool CidrValue::contains(const IpValue& ip) const {
  if (ip.is_v4 != address.is_v4) return false;
  auto a = address.bytes, b = ip.bytes;
  mask(a, prefix);
  mask(b, prefix);
  return a == b;
}

CidrValue CidrValue::masked() const {
  auto out = *this;
  mask(out.address.bytes, prefix);
  return out;
}

void add_network(Registry& r) {
  r.add("ip", "string_to_ip", "(string): IP", [](const Args& a) { return to_ip(a[0].text()); });
  r.add("family", "ip_family", "IP.(): int", [](const Args& a) { return Value::integer(as_opaque<IpValue>(a[0])->is_v4 ? 4 : 6); });
  r.add("ip.isCanonical", "ip_is_canonical", "(string): bool", [](const Args& a) {
    const auto ip = IpValue::parse(a[0].text());
    return ip ? Value::boolean(ip->text() == a[0].text()) : Value::error(ip.error());
  });
  r.add("isUnspecified", "ip_is_unspecified", "IP.(): bool", test_ip<is_zero>);
  r.add("isLoopback", "ip_is_loopback", "IP.(): bool", test_ip<is_loopback>);
  r.add("isLinkLocalMulticast", "ip_is_link_local_multicast", "IP.(): bool", test_ip<is_link_local_multicast>);
  r.add("isLinkLocalUnicast", "ip_is_link_local_unicast", "IP.(): bool", test_ip<is_link_local_unicast>);
  r.add("isGlobalUnicast", "ip_is_global_unicast", "IP.(): bool", test_ip<is_global_unicast>);
  r.add("isIP", "is_ip", "(string): bool", [](const Args& a) { return Value::boolean(IpValue::parse(a[0].text()).has_value()); });
  r.add("string", "ip_to_string", "(IP): string", [](const Args& a) { return Value::string(as_opaque<IpValue>(a[0])->text()); });
  r.add("cidr", "string_to_cidr", "(string): CIDR", [](const Args& a) { return to_cidr(a[0].text()); });
  r.add("containsIP", "cidr_contains_ip_string", "CIDR.(string): bool", [](const Args& a) {
    const auto ip = IpValue::parse(a[1].text());
    return ip ? Value::boolean(as_opaque<CidrValue>(a[0])->contains(*ip)) : no_such_overload();
  });
  r.add("containsIP", "cidr_contains_ip_ip", "CIDR.(IP): bool",
        [](const Args& a) { return Value::boolean(as_opaque<CidrValue>(a[0])->contains(*as_opaque<IpValue>(a[1]))); });
  r.add("containsCIDR", "cidr_contains_cidr_string", "CIDR.(string): bool", [](const Args& a) {
    const auto inner = to_cidr(a[1].text());
    return inner.is_error() ? inner : contains_cidr(*as_opaque<CidrValue>(a[0]), *as_opaque<CidrValue>(inner));
  });
  r.add("containsCIDR", "cidr_contains_cidr", "CIDR.(CIDR): bool",
        [](const Args& a) { return contains_cidr(*as_opaque<CidrValue>(a[0]), *as_opaque<CidrValue>(a[1])); });
  r.add("ip", "cidr_ip", "CIDR.(): IP",
        [](const Args& a) { return Value::opaque(std::make_shared<const IpValue>(as_opaque<CidrValue>(a[0])->address)); });
  r.add("prefixLength", "cidr_prefix_length", "CIDR.(): int",
        [](const Args& a) { return Value::integer(as_opaque<CidrValue>(a[0])->prefix); });
  r.add("masked", "cidr_masked", "CIDR.(): CIDR",
        [](const Args& a) { return Value::opaque(std::make_shared<const CidrValue>(as_opaque<CidrValue>(a[0])->masked())); });
  r.add("isCIDR", "is_cidr", "(string): bool", [](const Args& a) { return Value::boolean(CidrValue::parse(a[0].text()).has_value()); });
  r.add("string", "cidr_to_string", "(CIDR): string", [](const Args& a) {
    const auto* cidr = as_opaque<CidrValue>(a[0]);
    return Value::string(fmt::format("{}/{}", cidr->address.text(), cidr->prefix));
  });
}

}  // namespace berth::cel
