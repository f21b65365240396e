// How large a value may become while an expression runs, and the years a timestamp may be in (as cel-go has it).
#pragma once
#include <cstddef>
#include <cstdint>

namespace berth::cel {

inline constexpr std::size_t kMostText = 16UL << 20;      ///< Bytes.
inline constexpr std::size_t kMostElements = 4'000'000;   ///< Of a list.
inline constexpr std::int64_t kLeastUnix = -62135596800;  ///< Seconds: the year 1.
inline constexpr std::int64_t kMostUnix = 253402300799;   ///< Seconds: the end of the year 9999.

}  // namespace berth::cel
