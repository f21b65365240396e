#include "base/process_metrics.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace berth::metrics {
namespace {

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

double boot_time_seconds() {
  std::ifstream in("/proc/stat");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("btime ")) return std::strtod(line.c_str() + 6, nullptr);
  return 0;
}

int open_files() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(directory);
  return count - 1;  // The directory itself.
}

void add(std::string& out, const char* name, const char* type, const char* help, double value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

}  // namespace

std::string expose_process() {
  const std::string stat = first_line("/proc/self/stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  // From the third field on: state, then numbers; 14 utime, 15 stime, 22 starttime, 23 vsize, 24 rss (proc(5)).
  std::istringstream fields(stat.substr(name_end + 2));
  std::string state;
  fields >> state;
  std::vector<double> numbers;
  for (double value = 0; numbers.size() < 22 && fields >> value;) numbers.push_back(value);
  if (numbers.size() < 21) return {};
  const auto field = [&](std::size_t number) { return numbers[number - 4]; };
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  std::string out;
  add(out, "process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", (field(14) + field(15)) / ticks);
  add(out, "process_max_fds", "gauge", "Maximum number of open file descriptors.", static_cast<double>(files.rlim_cur));
  add(out, "process_open_fds", "gauge", "Number of open file descriptors.", open_files());
  add(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.",
      field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  add(out, "process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.",
      boot_time_seconds() + field(22) / ticks);
  add(out, "process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", field(23));
  return out;
}

}  // namespace berth::metrics
