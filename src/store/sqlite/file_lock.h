// One process a store: an advisory lock on a file beside the database, holding the owner's process id.
#pragma once
#include <string>

#include "base/error.h"

namespace berth::store::sqlite {

/// Holds the lock until destroyed or the process ends, however it ends. The file itself stays.
class FileLock {
 public:
  /// kConflict: another process (named when known) has it.
  static Result<FileLock> take(const std::string& path, const std::string& of);
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace berth::store::sqlite
