#include "security/uuid.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <cstdint>

#include "base/hex.h"

namespace berth::security {
std::string random_uuid() {
  std::array<unsigned char, 16> b{};
  if (RAND_bytes(b.data(), b.size()) != 1) std::abort();  // Without randomness nothing here is safe.
  b[6] = static_cast<unsigned char>((b[6] & 0x0f) | 0x40);
  b[8] = static_cast<unsigned char>((b[8] & 0x3f) | 0x80);
  std::string out = hex(b);
  for (const std::size_t at : {8, 13, 18, 23}) out.insert(at, 1, '-');
  return out;
}

}  // namespace berth::security
