// Memory that an idle thread would keep in its allocator's cache.
#pragma once
#include <cstddef>

extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_size, void* new_value, std::size_t new_size)
    __attribute__((weak));

namespace berth::node::agent {

/// Gives this thread's cached memory back to the allocator: a hundred threads that mostly wait would hold a good part of the agent's
/// memory. Does nothing without jemalloc.
inline void release_thread_memory() {
  if (&mallctl != nullptr) mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
}

}  // namespace berth::node::agent
