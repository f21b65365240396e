#include "cli/command/process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/mutex.h"
#include "cli/command/configuration.h"

namespace berth::cli {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  // A closed terminal stops it as Ctrl-C does, unless it was started with nohup: a blocked signal is waited for even when it is ignored.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void block_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int wait_for_signal() {
  const sigset_t set = stop_signals();
  int number = 0;
  while (sigwait(&set, &number) != 0 || (number == SIGHUP && reload_configuration())) {
  }
  // From here on a second Ctrl-C has its default effect.
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  return number;
}

Result<ListenAddress> parse_listen(const std::string& text, std::uint16_t default_port) {
  ListenAddress out;
  out.port = default_port;
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  const bool has_port = colon != std::string::npos && (!bracketed || colon > text.find(']'));
  std::string host = has_port ? text.substr(0, colon) : text;
  if (bracketed && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (!has_port && !host.empty() && host.find_first_not_of("0123456789") == std::string::npos)
    return invalid(fmt::format("--listen {0}: HOST:PORT is wanted; a port alone is written :{0}", text));
  if (!host.empty()) out.host = host;
  if (has_port) {
    const std::string digits = text.substr(colon + 1);
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value > 65535)
      return invalid(fmt::format("--listen {}: \"{}\" is not a port (0 to 65535)", text, digits));
    out.port = static_cast<std::uint16_t>(value);
  }
  return out;
}

Result<void> make_private_directory(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && (info.st_mode & 022) != 0)
      log::warning("files", "{} may be written by others than its owner (mode {:04o}): `chmod 700` it", path, info.st_mode & 07777);
    return {};
  }
  const auto parent = std::filesystem::absolute(path).parent_path();
  std::filesystem::create_directories(parent, error);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::kInvalid, fmt::format("{}: cannot make the directory: {}", path, std::strerror(errno)));
  return {};
}

std::string shell_word(std::string_view text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("/._-+:@%=,").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string directory_to_add_to_path() {
  const char* const path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::string_view directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), directory.size() + 1));
    if (::access((std::string(directory.empty() ? "." : directory) + "/berth").c_str(), X_OK) == 0) return {};
  }
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  return error || own.filename() != "berth" ? std::string() : own.parent_path().string();
}

std::string url_host(const std::string& host) { return host.find(':') == std::string::npos ? host : "[" + host + "]"; }

std::string host_name() {
  char host[256] = {};
  return gethostname(host, sizeof host - 1) == 0 ? host : "";
}

void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

ThreadLoop& lasting_loop(std::string name) {
  static auto& loops = *new std::vector<std::unique_ptr<ThreadLoop>>();
  static Mutex mutex;
  const MutexLock lock(mutex);
  return *loops.emplace_back(std::make_unique<ThreadLoop>(std::move(name)));
}

}  // namespace berth::cli
