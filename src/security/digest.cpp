#include "security/digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/hex.h"

namespace berth::security {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return hex({digest.data(), size});
}

}  // namespace berth::security
