#include "store/sqlite/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace berth::store::sqlite {

namespace {

constexpr std::string_view kAcknowledged = "\nacknowledged ";
constexpr std::string_view kBoot = "\nboot ";

std::string number_text(std::int64_t revision) { return fmt::format("{:<19}\n", revision); }

/// A word that is another one after each start of the machine; empty: it does not say.
std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

std::string boot_text(std::string_view boot) { return fmt::format("{}{}\n", kBoot, boot); }

std::string read_text(int fd) {
  std::string text(128, '\0');
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

}  // namespace

Result<FileLock> FileLock::take(const std::string& path, const std::string& of) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot open the lock file: {}", path, std::strerror(errno)));
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::string text = read_text(fd);
    std::string owner = text.empty() ? "another process" : fmt::format("process {}", text.substr(0, text.find('\n')));
    return fail(ErrorCode::kConflict, fmt::format("{}: in use by {}. Stop it first, or choose another data directory.", of, owner));
  }
  const std::string before = read_text(fd);
  if (const auto at = before.find(kAcknowledged); at != std::string::npos) {
    const char* digits = before.data() + at + kAcknowledged.size();
    std::from_chars(digits, before.data() + before.size(), lock.acknowledged_);
  }
  std::string text = fmt::format("{}{}", ::getpid(), kAcknowledged);
  lock.number_at_ = static_cast<std::int64_t>(text.size());
  text += number_text(lock.acknowledged_);
  lock.boot_at_ = static_cast<std::int64_t>(text.size()) - 1;  // Its mark begins with the end of the number's line.
  std::string boot = boot_id();
  if (const auto at = before.find(kBoot); at != std::string::npos && !boot.empty()) {
    const std::string_view rest = std::string_view(before).substr(at + kBoot.size());
    const std::string_view was = rest.substr(0, rest.find('\n'));
    lock.was_of_earlier_boot_ = was != boot;
    boot = was;
  }
  text += boot_text(boot).substr(1);
  // The id only helps the message above; the lock itself does not depend on it. Written over what was there, then cut: at no time is the
  // file empty.
  if (::pwrite(fd, text.data(), text.size(), 0) < 0 || ::ftruncate(fd, static_cast<off_t>(text.size())) != 0) {
    return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot write the lock file: {}", path, std::strerror(errno)));
  }
  return lock;
}

void FileLock::acknowledge(std::int64_t revision) {
  acknowledged_ = revision;
  const std::string text = number_text(revision);
  (void)!::pwrite(fd_, text.data(), text.size(), number_at_);  // A note: without it a later start checks less.
}

void FileLock::note_boot() {
  const std::string text = boot_text(boot_id());
  if (::pwrite(fd_, text.data(), text.size(), boot_at_) >= 0) (void)!::ftruncate(fd_, boot_at_ + static_cast<off_t>(text.size()));
  (void)!::fsync(fd_);
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace berth::store::sqlite
