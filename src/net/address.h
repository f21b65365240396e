// IP addresses in one form, whatever their spelling, and which of them lead to this very machine.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace berth::net {

/// IPv6, or IPv4 as ::ffff:a.b.c.d: two spellings of one address are equal.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  /// Dotted IPv4, or IPv6 without a zone; nullopt otherwise.
  static std::optional<IpAddress> parse(std::string_view text);
  static std::optional<IpAddress> of(const sockaddr& address);

  [[nodiscard]] bool is_ipv4() const;
  [[nodiscard]] bool is_unspecified() const;  ///< 0.0.0.0/8, ::. Connecting there leads to this machine.
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] bool is_link_local() const;
  [[nodiscard]] bool is_multicast() const;  ///< Broadcast and what is reserved above multicast included.
  /// Within "10.0.0.0/8" or "fd00::/8"; false also when `cidr` is malformed.
  [[nodiscard]] bool is_in(std::string_view cidr) const;
  [[nodiscard]] std::string text() const;
  bool operator==(const IpAddress&) const = default;
};

/// An address and a port, as a connection is made to.
struct SocketAddress {
  IpAddress address;
  std::uint16_t port = 0;

  static std::optional<SocketAddress> of(const sockaddr& address);
};

/// What this machine's interfaces have at this moment.
std::vector<IpAddress> addresses_of_this_machine();
/// Whether connecting to the address ends on this machine: loopback, the unspecified address, or an interface's own.
bool leads_to_this_machine(const IpAddress& address);

}  // namespace berth::net
