#include "tests/complexity/steps.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace {

std::uint64_t step_count = 0;  // One thread: the server under test has none of its own.
std::uint64_t alive = 0, peak = 0;

void* allocate(std::size_t size, std::size_t alignment) {
  void* at = alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                                                          : std::malloc(size);
  if (at == nullptr) throw std::bad_alloc();
  alive += malloc_usable_size(at);
  if (alive > peak) peak = alive;
  return at;
}

void release(void* at) noexcept {
  if (at != nullptr) alive -= malloc_usable_size(at);
  std::free(at);
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() { ++step_count; }

void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new[](std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) { return allocate(size, static_cast<std::size_t>(alignment)); }
void operator delete(void* at) noexcept { release(at); }
void operator delete[](void* at) noexcept { release(at); }
void operator delete(void* at, std::size_t) noexcept { release(at); }
void operator delete[](void* at, std::size_t) noexcept { release(at); }
void operator delete(void* at, std::align_val_t) noexcept { release(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { release(at); }

namespace berth::testing {

std::uint64_t steps() { return step_count; }

std::uint64_t peak_bytes() {
  const auto most = peak;
  peak = alive;
  return most;
}

}  // namespace berth::testing
