// Finding the end of strings, objects and arrays in JSON text, many bytes at a time. For those that look for places in it.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace berth::json::detail {

/// Bit i is set when byte i of a block of 64 is the thing.
struct BlockMasks {
  std::uint64_t quote = 0, backslash = 0;
  std::uint64_t bracket = 0;  ///< Of any kind. 'Y', 'y', '_' and DEL as well: valid JSON has them in strings only.
};

inline BlockMasks masks_of(const char* block) {
  BlockMasks out;
#ifdef __SSE2__
  // The brackets differ in these bits alone.
  const __m128i other_bits = _mm_set1_epi8(0x26), bracket = _mm_set1_epi8(0x7F);
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  const auto mask = [](int i, __m128i equal) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(equal))) << (16 * i);
  };
  __m128i backslashes[4];
  for (int i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    out.quote |= mask(i, _mm_cmpeq_epi8(bytes, quote));
    out.bracket |= mask(i, _mm_cmpeq_epi8(_mm_or_si128(bytes, other_bits), bracket));
    backslashes[i] = _mm_cmpeq_epi8(bytes, backslash);
  }
  // Most blocks have none.
  const __m128i any = _mm_or_si128(_mm_or_si128(backslashes[0], backslashes[1]), _mm_or_si128(backslashes[2], backslashes[3]));
  if (_mm_movemask_epi8(any) != 0)
    for (int i = 0; i < 4; ++i) out.backslash |= mask(i, backslashes[i]);
#else
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (block[i] == '"') out.quote |= bit;
    if (block[i] == '\\') out.backslash |= bit;
    if ((block[i] | 0x26) == 0x7F) out.bracket |= bit;
  }
#endif
  return out;
}

/// The bytes that a backslash before them takes the meaning from; `carry` leads from block to block.
inline std::uint64_t escaped_by(std::uint64_t backslash, bool& carry) {
  std::uint64_t escaped = carry ? 1 : 0;
  backslash &= ~escaped;
  carry = false;
  while (backslash != 0) {
    const int i = std::countr_zero(backslash);
    if (i == 63) {
      carry = true;
      break;
    }
    escaped |= std::uint64_t{2} << i;
    backslash &= ~(std::uint64_t{3} << i);
  }
  return escaped;
}

/// Bit i of the result is the parity of the bits 0..i: between quotes.
inline std::uint64_t prefix_xor(std::uint64_t bits) {
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
}

/// `at` on an opening bracket; moves it behind the closing one. False when there is none.
inline bool skip_container(const char*& at, const char* end) {
  std::uint64_t in_string = 0;
  bool carry = false;
  long depth = 0;
  char padded[64];
  for (const char* block = at; block < end; block += 64) {
    const char* bytes = block;
    if (end - block < 64) {
      std::memset(padded, ' ', sizeof padded);
      std::memcpy(padded, block, static_cast<std::size_t>(end - block));
      bytes = padded;
    }
    auto masks = masks_of(bytes);
    if (masks.backslash != 0 || carry) masks.quote &= ~escaped_by(masks.backslash, carry);
    const auto strings = prefix_xor(masks.quote) ^ in_string;
    in_string = (strings >> 63) != 0 ? ~std::uint64_t{0} : 0;
    for (auto brackets = masks.bracket & ~strings; brackets != 0; brackets &= brackets - 1) {
      const int i = std::countr_zero(brackets);
      // '{' and '[' differ only in bit 5, as do '}' and ']'.
      const int folded = bytes[i] | 0x20;
      depth += (folded == '{') - (folded == '}');
      if (depth == 0) {
        at = block + i + 1;
        return true;
      }
    }
  }
  return false;
}

/// `at` on the opening quote; moves it behind the closing one. False when there is none.
inline bool skip_string(const char*& at, const char* end) {
  ++at;
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const auto special =
        static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash))));
    if (special == 0) {
      at += 16;
      continue;
    }
    at += std::countr_zero(special);
    if (*at == '"') {
      ++at;
      return true;
    }
    at += 2;
  }
#endif
  while (at < end) {
    if (*at == '"') {
      ++at;
      return true;
    }
    at += *at == '\\' ? 2 : 1;
  }
  return false;
}

inline void skip_space(const char*& at, const char* end) {
  // Mostly there is none: one comparison says so.
  while (at < end && static_cast<unsigned char>(*at) <= ' ' && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
}

/// Moves `at` behind the value. False where there is none, or none that ends.
inline bool skip_value(const char*& at, const char* end) {
  if (at >= end) return false;
  if (*at == '"') return skip_string(at, end);
  if (*at == '{' || *at == '[') return skip_container(at, end);
  const char* start = at;
  while (at < end && *at != ',' && *at != '}' && *at != ']' && *at != ' ' && *at != '\n' && *at != '\r' && *at != '\t') ++at;
  return at > start;
}

inline std::string_view slice(const char* from, const char* to) { return {from, static_cast<std::size_t>(to - from)}; }

/// Walks what is between the brackets, `at` on the first of them: `one(at)` must move `at` behind a member or an element.
template <typename One>
bool walk_list(const char*& at, const char* end, char last, const One& one) {
  ++at;
  skip_space(at, end);
  if (at < end && *at == last) {
    ++at;
    return true;
  }
  while (at < end) {
    skip_space(at, end);
    if (!one(at) || at > end) return false;
    skip_space(at, end);
    if (at >= end) return false;
    if (*at == last) {
      ++at;
      return true;
    }
    if (*at != ',') return false;
    ++at;
  }
  return false;
}

/// Walks the members of an object: `member(raw_key, at)` must move `at` behind the value.
template <typename Member>
bool walk_object(const char*& at, const char* end, const Member& member) {
  skip_space(at, end);
  if (at >= end || *at != '{') return false;
  return walk_list(at, end, '}', [&](const char*& key_at) {
    if (key_at >= end || *key_at != '"') return false;
    const char* key_start = key_at;
    if (!skip_string(key_at, end) || key_at > end) return false;
    const std::string_view raw_key = slice(key_start, key_at);
    skip_space(key_at, end);
    if (key_at >= end || *key_at != ':') return false;
    ++key_at;
    skip_space(key_at, end);
    return member(raw_key, key_at);
  });
}

}  // namespace berth::json::detail
