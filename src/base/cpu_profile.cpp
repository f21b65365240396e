#include "base/cpu_profile.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>

namespace berth {
namespace {

constexpr int kDepth = 48;
constexpr std::size_t kSamples = 64 * 1024;
/// The handler's own frame and the kernel's trampoline.
constexpr int kOwnFrames = 2;

struct Sample {
  std::array<void*, kDepth> frames;
  int depth = 0;
};

std::atomic<bool> in_use{false};
/// Where the handler writes; null: nowhere.
std::atomic<Sample*> room{nullptr};
std::atomic<std::size_t> taken{0};
std::atomic<int> writing{0};

/// Everything here may run within a signal: unwinding finds its tables without a lock since glibc 2.35 (_dl_find_object).
void on_signal(int) {
  const int saved = errno;
  writing.fetch_add(1);
  if (auto* samples = room.load(); samples != nullptr) {
    const auto at = taken.fetch_add(1);
    if (at < kSamples) samples[at].depth = ::backtrace(samples[at].frames.data(), kDepth);
  }
  writing.fetch_sub(1);
  errno = saved;
}

void install_handler() {
  static const bool once [[maybe_unused]] = [] {
    std::array<void*, 4> warm;
    ::backtrace(warm.data(), warm.size());  // The first call loads the unwinder, which a signal must not.
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(SIGPROF, &action, nullptr);
    return true;
  }();
}

/// The clock of another thread's processor time (clock_getcpuclockid(3) knows processes only).
clockid_t clock_of_thread(int tid) { return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6U); }

}  // namespace

std::unique_ptr<CpuSampler> CpuSampler::start() {
  if (in_use.exchange(true)) return nullptr;
  install_handler();
  std::unique_ptr<CpuSampler> sampler(new CpuSampler());
  sampler->running_ = true;
  sampler->started_ = std::chrono::steady_clock::now();
  taken = 0;
  room = new Sample[kSamples];
  sampler->look_for_threads();
  if (sampler->timers_.empty()) return nullptr;
  return sampler;
}

CpuSampler::~CpuSampler() { stop(); }

void CpuSampler::look_for_threads() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const int tid = std::atoi(entry.path().filename().c_str());
    if (timers_.contains(tid)) continue;
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGPROF;
    event._sigev_un._tid = tid;
    timer_t timer{};
    if (::timer_create(clock_of_thread(tid), &event, &timer) != 0) continue;
    const timespec period{0, 1'000'000'000 / CpuProfile::kSamplesPerSecond};
    const itimerspec when{period, period};
    ::timer_settime(timer, 0, &when, nullptr);
    timers_[tid] = timer;
  }
}

void CpuSampler::stop() {
  if (!std::exchange(running_, false)) return;
  for (const auto& [tid, timer] : timers_) ::timer_delete(timer);
  const auto* samples = room.exchange(nullptr);
  while (writing.load() != 0) ::sched_yield();
  delete[] samples;
  in_use = false;
}

CpuProfile CpuSampler::finish() {
  CpuProfile out;
  out.duration = std::chrono::steady_clock::now() - started_;
  for (const auto& [tid, timer] : timers_) ::timer_delete(timer);
  timers_.clear();
  auto* samples = room.exchange(nullptr);
  while (writing.load() != 0) ::sched_yield();
  const auto count = taken.load();
  out.lost = count > kSamples ? count - kSamples : 0;
  for (std::size_t i = 0; i < std::min(count, kSamples); ++i) {
    const auto& sample = samples[i];
    if (sample.depth <= kOwnFrames) continue;
    std::vector<std::uintptr_t> stack;
    for (int at = kOwnFrames; at < sample.depth; ++at)
      stack.push_back(reinterpret_cast<std::uintptr_t>(sample.frames[static_cast<std::size_t>(at)]));
    ++out.stacks[std::move(stack)];
  }
  delete[] samples;
  running_ = false;
  in_use = false;
  return out;
}

// --- names ---

Symbols Symbols::load() {
  Symbols out;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    std::istringstream fields(line);
    std::string range, rights, offset, device, inode, file;
    fields >> range >> rights >> offset >> device >> inode >> file;
    if (rights.size() < 3 || rights[2] != 'x' || file.empty()) continue;
    const auto dash = range.find('-');
    out.mappings_.push_back({std::stoull(range.substr(0, dash), nullptr, 16), std::stoull(range.substr(dash + 1), nullptr, 16),
                             std::stoull(offset, nullptr, 16), file});
  }
  out.read_executable();
  return out;
}

void Symbols::read_executable() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto read = [&file](std::uint64_t at, void* to, std::size_t size) {
    file.seekg(static_cast<std::streamoff>(at));
    return static_cast<bool>(file.read(static_cast<char*>(to), static_cast<std::streamsize>(size)));
  };
  Elf64_Ehdr header{};
  if (!read(0, &header, sizeof header) || header.e_shentsize != sizeof(Elf64_Shdr)) return;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr))) return;
  // Where the linker put it and where it is: apart by the same amount everywhere.
  std::uintptr_t base = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = info->dlpi_addr;
        return 1;  // The first is the executable.
      },
      &base);
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
    std::string names(sections[section.sh_link].sh_size, '\0');
    if (!read(section.sh_offset, symbols.data(), symbols.size() * sizeof(Elf64_Sym)) ||
        !read(sections[section.sh_link].sh_offset, names.data(), names.size()))
      return;
    for (const auto& symbol : symbols)
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && symbol.st_name < names.size())
        functions_.push_back({base + symbol.st_value, base + symbol.st_value + symbol.st_size, names.c_str() + symbol.st_name});
  }
  std::ranges::sort(functions_, {}, &Function::address);
}

std::string Symbols::name_of(std::uintptr_t address) const {
  const auto demangled = [](const char* name) {
    int status = 0;
    char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string out = text != nullptr ? text : name;
    std::free(text);
    return out;
  };
  auto found = std::ranges::upper_bound(functions_, address, {}, &Function::address);
  if (found != functions_.begin() && address < (--found)->end) return demangled(found->name.c_str());
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(address), &info) != 0 && info.dli_sname != nullptr) return demangled(info.dli_sname);
  for (const auto& mapping : mappings_)
    if (address >= mapping.start && address < mapping.end)
      return fmt::format("{}+0x{:x}", std::filesystem::path(mapping.file).filename().string(), address - mapping.start + mapping.offset);
  return fmt::format("0x{:x}", address);
}

}  // namespace berth
