// A sampling profile of this process's processor time: a hundred stacks a second of every thread that runs, taken by the kernel's timers
// of the threads' own clocks. Nothing is paid while none is taken.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace berth {

struct CpuProfile {
  static constexpr int kSamplesPerSecond = 100;
  std::map<std::vector<std::uintptr_t>, std::size_t> stacks;  ///< Return addresses, innermost first; how often each was met.
  std::chrono::nanoseconds duration{0};
  std::size_t lost = 0;  ///< Samples for which there was no room.
};

/// One at a time in a process. Threads that begin meanwhile are found within a second of calls to look_for_threads.
class CpuSampler {
 public:
  /// Null while another one runs, or where the kernel gives no timers.
  static std::unique_ptr<CpuSampler> start();
  ~CpuSampler();
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;
  void look_for_threads();
  /// Ends it.
  CpuProfile finish();

 private:
  CpuSampler() = default;
  void stop();
  std::map<int, void*> timers_;  ///< By thread.
  std::chrono::steady_clock::time_point started_;
  bool running_ = false;
};

/// Names of this process's functions, from the symbol tables of its executable and libraries.
class Symbols {
 public:
  /// Reads the tables; some milliseconds.
  static Symbols load();
  struct Mapping {
    std::uintptr_t start = 0, end = 0;
    std::uint64_t offset = 0;
    std::string file;
  };
  [[nodiscard]] const std::vector<Mapping>& mappings() const { return mappings_; }
  /// Demangled; "file+0x12" where there is no name.
  [[nodiscard]] std::string name_of(std::uintptr_t address) const;

 private:
  struct Function {
    std::uintptr_t address, end;
    std::string name;  ///< As the linker has it.
  };
  void read_executable();
  std::vector<Mapping> mappings_;
  std::vector<Function> functions_;  ///< Of the executable, by address.
};

}  // namespace berth
