#include "store/sqlite/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth::store::sqlite {

Result<FileLock> FileLock::take(const std::string& path, const std::string& of) {
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return fail(ErrorCode::kInvalid, fmt::format("{}: cannot open the lock file: {}", path, std::strerror(errno)));
  FileLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    ssize_t n = ::pread(fd, text, sizeof(text) - 1, 0);
    std::string owner = n > 0 ? fmt::format("process {}", std::string_view(text, static_cast<std::size_t>(n))) : "another process";
    return fail(ErrorCode::kConflict, fmt::format("{}: in use by {}. Stop it first, or choose another data directory.", of, owner));
  }
  std::string pid = std::to_string(::getpid());
  // The id only helps the message above; the lock itself does not depend on it.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    return fail(ErrorCode::kUnavailable, fmt::format("{}: cannot write the lock file: {}", path, std::strerror(errno)));
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace berth::store::sqlite
