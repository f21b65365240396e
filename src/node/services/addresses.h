// Addresses as the kernel compares them.
#pragma once
#include <string>
#include <string_view>

namespace berth::node::services {

inline bool is_ipv6_text(std::string_view address) { return address.find(':') != std::string_view::npos; }
/// One text an address, of whatever texts it has; empty: not an address.
std::string canonical_address(std::string_view address);
/// A block ("10.1.0.0/16", or an address alone) with the bits behind its mask cleared; empty: not a block.
std::string canonical_block(std::string_view cidr);
/// 16 hex digits of a text: names of chains and tables have room for that and a prefix, whatever it is.
std::string digest(std::string_view text);

}  // namespace berth::node::services
