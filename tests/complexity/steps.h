// Work as a number that is the same in every run: the basic blocks that the instrumented sources enter (tests/complexity/CMakeLists.txt).
#pragma once
#include <cstdint>

namespace berth::testing {

/// Of the whole process so far.
std::uint64_t steps();

/// The largest sum of allocations that were alive together since the last call.
std::uint64_t peak_bytes();

}  // namespace berth::testing
