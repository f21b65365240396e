#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

namespace berth::net {
namespace {

constexpr std::size_t kMappedPrefix = 12;

IpAddress from_ipv4(const void* four) {
  IpAddress out;
  out.bytes[10] = out.bytes[11] = 0xff;
  std::memcpy(out.bytes.data() + kMappedPrefix, four, 4);
  return out;
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string copy(text);
  if (copy.size() != text.size() || copy.find('\0') != std::string::npos) return std::nullopt;
  in_addr four{};
  if (inet_pton(AF_INET, copy.c_str(), &four) == 1) return from_ipv4(&four);
  IpAddress out;
  if (inet_pton(AF_INET6, copy.c_str(), out.bytes.data()) != 1) return std::nullopt;
  return out;
}

std::optional<IpAddress> IpAddress::of(const sockaddr& address) {
  if (address.sa_family == AF_INET) return from_ipv4(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  if (address.sa_family != AF_INET6) return std::nullopt;
  IpAddress out;
  std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, out.bytes.size());
  return out;
}

bool IpAddress::is_ipv4() const {
  return std::all_of(bytes.begin(), bytes.begin() + 10, [](std::uint8_t b) { return b == 0; }) && bytes[10] == 0xff && bytes[11] == 0xff;
}

bool IpAddress::is_unspecified() const {
  if (is_ipv4()) return bytes[12] == 0;
  return std::ranges::all_of(bytes, [](std::uint8_t b) { return b == 0; });
}

bool IpAddress::is_loopback() const {
  if (is_ipv4()) return bytes[12] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](std::uint8_t b) { return b == 0; }) && bytes[15] == 1;
}

bool IpAddress::is_link_local() const {
  if (is_ipv4()) return bytes[12] == 169 && bytes[13] == 254;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool IpAddress::is_multicast() const { return is_ipv4() ? bytes[12] >= 224 : bytes[0] == 0xff; }

bool IpAddress::is_in(std::string_view cidr) const {
  const auto slash = cidr.find('/');
  if (slash == std::string_view::npos) return false;
  const auto network = parse(cidr.substr(0, slash));
  const auto length = cidr.substr(slash + 1);
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (!network || error != std::errc() || end != length.data() + length.size() || network->is_ipv4() != is_ipv4()) return false;
  if (is_ipv4()) bits += 8 * kMappedPrefix;
  if (bits > 128) return false;
  for (std::size_t i = 0; i < bytes.size() && bits > 0; ++i) {
    const unsigned here = std::min(bits, 8U);
    const auto mask = static_cast<std::uint8_t>(0xff << (8 - here));
    if (((bytes[i] ^ network->bytes[i]) & mask) != 0) return false;
    bits -= here;
  }
  return true;
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> out{};
  if (is_ipv4())
    inet_ntop(AF_INET, bytes.data() + kMappedPrefix, out.data(), out.size());
  else
    inet_ntop(AF_INET6, bytes.data(), out.data(), out.size());
  return out.data();
}

std::optional<SocketAddress> SocketAddress::of(const sockaddr& address) {
  const auto ip = IpAddress::of(address);
  if (!ip) return std::nullopt;
  const auto port = address.sa_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                                 : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
  return SocketAddress{*ip, ntohs(port)};
}

std::vector<IpAddress> addresses_of_this_machine() {
  std::vector<IpAddress> out;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  for (const auto* at = first; at != nullptr; at = at->ifa_next)
    if (at->ifa_addr != nullptr)
      if (const auto ip = IpAddress::of(*at->ifa_addr)) out.push_back(*ip);
  return out;
}

bool leads_to_this_machine(const IpAddress& address) {
  return address.is_loopback() || address.is_unspecified() || [&] {
    const auto own = addresses_of_this_machine();
    return std::ranges::find(own, address) != own.end();
  }();
}

}  // namespace berth::net
