// One process a store: an advisory lock on a file beside the database, holding the owner's process id and the last revision that was
// acknowledged as durable, by which a store that lost its log, or was exchanged for an older one, is recognised; and which start of the
// machine that was in: what was not synced may be gone since.
#pragma once
#include <string>

#include "base/error.h"

namespace berth::store::sqlite {

/// Holds the lock until destroyed or the process ends, however it ends. The file itself stays.
class FileLock {
 public:
  /// kConflict: another process (named when known) has it.
  static Result<FileLock> take(const std::string& path, const std::string& of);
  FileLock(FileLock&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        acknowledged_(other.acknowledged_),
        number_at_(other.number_at_),
        boot_at_(other.boot_at_),
        was_of_earlier_boot_(other.was_of_earlier_boot_) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

  /// The highest revision that this process or an earlier one acknowledged; 0: none is known.
  [[nodiscard]] std::int64_t acknowledged() const { return acknowledged_; }
  /// Whoever had it last had it before the machine was started anew. False where that is not known.
  [[nodiscard]] bool was_of_earlier_boot() const { return was_of_earlier_boot_; }
  /// The store is whole again, whatever was lost: from now on this boot stands in the file. Synced.
  void note_boot();
  /// Notes it for later starts. Not synced: after a power failure an earlier one may stand there.
  void acknowledge(std::int64_t revision);

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
  std::int64_t acknowledged_ = 0;
  std::int64_t number_at_ = 0;  ///< Where in the file the revision stands.
  std::int64_t boot_at_ = 0;    ///< Where the boot does.
  bool was_of_earlier_boot_ = false;
};

}  // namespace berth::store::sqlite
