#include "node/agent/termination_message.h"

#include <fcntl.h>

#include "base/owned_fd.h"
#include "node/agent/container_logs.h"

namespace berth::node::agent {
namespace {

constexpr std::size_t kMaxMessage = 4096, kMaxLogBytes = 2048, kTailWindow = 64 * 1024;
constexpr std::int64_t kMaxLogLines = 80;

/// The last `window` bytes of a file.
std::string read_end(const std::string& path, std::size_t window) {
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return {};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::string out(std::min<std::size_t>(window, static_cast<std::size_t>(std::max<off_t>(size, 0))), '\0');
  const ssize_t n = ::pread(file.get(), out.data(), out.size(), size - static_cast<off_t>(out.size()));
  out.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return out;
}

}  // namespace

std::string tail_of_log(std::string_view raw) {
  LogOptions options;
  options.tail_lines = kMaxLogLines;
  std::string text = render_log(raw, options);
  if (text.size() > kMaxLogBytes) text.erase(0, text.size() - kMaxLogBytes);
  return text;
}

std::string termination_message(const std::string& file, std::string_view policy, int exit_code, const std::string& log_file,
                                std::string runtime_message) {
  std::string message = file.empty() ? std::string() : read_end(file, kMaxMessage);
  if (message.empty() && policy == "FallbackToLogsOnError" && exit_code != 0) {
    std::string window = read_end(log_file, kTailWindow);
    if (window.size() == kTailWindow) window.erase(0, window.find('\n') + 1);
    message = tail_of_log(window);
  }
  return message.empty() ? runtime_message : message;
}

}  // namespace berth::node::agent
