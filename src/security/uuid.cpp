#include "security/uuid.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <cstdint>

namespace berth::security {
std::string random_uuid() {
  std::array<unsigned char, 16> b{};
  if (RAND_bytes(b.data(), b.size()) != 1) std::abort();  // Without randomness nothing here is safe.
  b[6] = static_cast<unsigned char>((b[6] & 0x0f) | 0x40);
  b[8] = static_cast<unsigned char>((b[8] & 0x3f) | 0x80);
  std::string out;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", b[i]);
  }
  return out;
}

}  // namespace berth::security
