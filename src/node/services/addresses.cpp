#include "node/services/addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/go/strings.h"

namespace berth::node::services {

std::string canonical_block(std::string_view cidr) {
  // Ranges of sources may be written with blanks around them, and are meant all the same: who left them out would let everybody in.
  cidr = go::trim_space(cidr);
  const auto slash = cidr.find('/');
  const std::string address(cidr.substr(0, slash));
  std::array<unsigned char, 16> bytes{};
  const int family = is_ipv6_text(address) ? AF_INET6 : AF_INET;
  if (::inet_pton(family, address.c_str(), bytes.data()) != 1) return {};
  const int all = family == AF_INET6 ? 128 : 32;
  int bits = all;
  if (slash != std::string_view::npos) std::from_chars(cidr.data() + slash + 1, cidr.data() + cidr.size(), bits);
  bits = std::clamp(bits, 0, all);
  for (int bit = bits; bit < all; ++bit) bytes[static_cast<std::size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80U >> (bit % 8)));
  std::array<char, INET6_ADDRSTRLEN> text{};
  return fmt::format("{}/{}", ::inet_ntop(family, bytes.data(), text.data(), text.size()), bits);
}

std::string canonical_address(std::string_view address) {
  if (address.find('/') != std::string_view::npos) return {};
  const std::string block = canonical_block(address);
  return block.substr(0, block.find('/'));
}

std::string digest(std::string_view text) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash);
}

}  // namespace berth::node::services
