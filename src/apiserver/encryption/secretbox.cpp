// NaCl's secretbox: XSalsa20 and Poly1305 (D. J. Bernstein, "Extending the Salsa20 nonce"; OpenSSL has the second alone).
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstring>

#include "apiserver/encryption/transform.h"

namespace berth::apiserver::encryption {
namespace {

constexpr std::size_t kSalsaBlock = 64, kPolyKey = 32, kPolyTag = 16;
using Words = std::array<std::uint32_t, 16>;

std::uint32_t word_at(std::string_view bytes, std::size_t index) {
  std::uint32_t out = 0;
  std::memcpy(&out, bytes.data() + 4 * index, 4);
  return std::endian::native == std::endian::little ? out : std::byteswap(out);
}

/// The 20 rounds.
void mix(Words& x) {
  const auto quarter = [&](int a, int b, int c, int d) {
    const auto at = [&](int i) -> std::uint32_t& { return x[static_cast<std::size_t>(i)]; };
    at(b) ^= std::rotl(at(a) + at(d), 7);
    at(c) ^= std::rotl(at(b) + at(a), 9);
    at(d) ^= std::rotl(at(c) + at(b), 13);
    at(a) ^= std::rotl(at(d) + at(c), 18);
  };
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) quarter(5 * i, (5 * i + 4) % 16, (5 * i + 8) % 16, (5 * i + 12) % 16);
    for (int i = 0; i < 4; ++i) quarter(5 * i, 4 * i + (i + 1) % 4, 4 * i + (i + 2) % 4, 4 * i + (i + 3) % 4);
  }
}

/// `input` is 16 bytes: a nonce and a counter, or the first part of a long nonce.
Words initial(std::string_view key, std::string_view input) {
  constexpr std::string_view kSigma = "expand 32-byte k";
  Words x{};
  for (std::size_t i = 0; i < 4; ++i) {
    x[5 * i] = word_at(kSigma, i);
    x[1 + i] = word_at(key, i);
    x[11 + i] = word_at(key, 4 + i);
    x[6 + i] = word_at(input, i);
  }
  return x;
}

std::string bytes_of(std::span<const std::uint32_t> words) {
  std::string out;
  for (const std::uint32_t word : words)
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift & 0xff);
  return out;
}

/// HSalsa20.
std::string subkey_of(std::string_view key, std::string_view nonce) {
  Words x = initial(key, nonce.substr(0, 16));
  mix(x);
  const std::array<std::uint32_t, 8> out = {x[0], x[5], x[10], x[15], x[6], x[7], x[8], x[9]};
  return bytes_of(out);
}

/// The stream from its beginning, xored over `text`.
std::string xor_stream(std::string_view subkey, std::string_view nonce, std::string text) {
  std::string input(nonce.substr(16, 8));
  input.resize(16);
  for (std::uint64_t block = 0; block * kSalsaBlock < text.size(); ++block) {
    for (int i = 0; i < 8; ++i) input[static_cast<std::size_t>(8 + i)] = static_cast<char>(block >> (8 * i) & 0xff);
    const Words start = initial(subkey, input);
    Words x = start;
    mix(x);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += start[i];
    const std::string stream = bytes_of(x);
    for (std::size_t i = 0; i < kSalsaBlock && block * kSalsaBlock + i < text.size(); ++i) text[block * kSalsaBlock + i] ^= stream[i];
  }
  return text;
}

std::string poly1305(std::string_view key, std::string_view text) {
  using Mac = std::unique_ptr<EVP_MAC, decltype([](EVP_MAC* mac) { EVP_MAC_free(mac); })>;
  using Context = std::unique_ptr<EVP_MAC_CTX, decltype([](EVP_MAC_CTX* context) { EVP_MAC_CTX_free(context); })>;
  static const Mac kMac(EVP_MAC_fetch(nullptr, "POLY1305", nullptr));
  const Context context(EVP_MAC_CTX_new(kMac.get()));
  std::string out(kPolyTag, '\0');
  std::size_t size = 0;
  const bool ok = context && EVP_MAC_init(context.get(), reinterpret_cast<const unsigned char*>(key.data()), key.size(), nullptr) == 1 &&
                  EVP_MAC_update(context.get(), reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1 &&
                  EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size, out.size()) == 1;
  if (!ok) std::abort();  // OpenSSL without Poly1305: nothing may be written or believed.
  return out;
}

}  // namespace

std::string secretbox_seal(std::string_view key, std::string_view nonce, std::string_view text) {
  // The stream's first bytes are the authenticator's key.
  const std::string all = xor_stream(subkey_of(key, nonce), nonce, std::string(kPolyKey, '\0') + std::string(text));
  return poly1305(std::string_view(all).substr(0, kPolyKey), std::string_view(all).substr(kPolyKey)) + all.substr(kPolyKey);
}

Result<std::string> secretbox_open(std::string_view key, std::string_view nonce, std::string_view sealed) {
  if (sealed.size() < kPolyTag) return fail(ErrorCode::kCorrupt, "too short");
  const std::string subkey = subkey_of(key, nonce);
  const std::string poly_key = xor_stream(subkey, nonce, std::string(kPolyKey, '\0'));
  const std::string tag = poly1305(poly_key, sealed.substr(kPolyTag));
  if (CRYPTO_memcmp(tag.data(), sealed.data(), kPolyTag) != 0) return fail(ErrorCode::kCorrupt, "its authenticator is wrong");
  return xor_stream(subkey, nonce, std::string(kPolyKey, '\0') + std::string(sealed.substr(kPolyTag))).substr(kPolyKey);
}

}  // namespace berth::apiserver::encryption
