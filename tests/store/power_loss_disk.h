// A disk that can lose its power: an SQLite VFS over the real file system which also keeps, beside what programs see, what a disk would
// still have if the power failed now.
#pragma once
#include <sqlite3.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace berth::store {

/// What a file system may do with writes that were not synced when the power fails.
enum class Unsynced { kLost, kKept, kCutOff, kScattered };

/// Registered as SQLite's default VFS from construction to destruction; every database whose path begins with `prefix` lives on it, others
/// are passed through. Syncs of files on it do not reach the real disk: it is the disk. One at a time. Thread-safe.
class PowerLossDisk {
 public:
  explicit PowerLossDisk(std::string prefix);
  ~PowerLossDisk();
  PowerLossDisk(const PowerLossDisk&) = delete;

  using Image = std::map<std::string, std::string>;  ///< File name (without directory) to content.
  /// What is on the disk after a power failure at this moment. Sectors have 512 bytes: each is written or not, none is half written.
  [[nodiscard]] Image after_power_loss(Unsynced unsynced, std::mt19937& random);
  /// Called before every write, truncation, deletion and sync, with the file's name; the disk is not locked meanwhile.
  std::function<void(const std::string& file, bool is_sync)> before;
  /// The next so many syncs fail: the disk reports an error, and what was to be synced is lost on power loss.
  std::atomic<int> failing_syncs{0};
  /// The next so many writes find no room.
  std::atomic<int> failing_writes{0};
  /// The operation that is so many away fails, whatever it is: opening, reading, writing, cutting, syncing, deleting, asking for the size
  /// or for a lock. 0: none does. What it was stands in `failed`.
  std::atomic<int> failing_at{0};
  std::string failed;

 private:
  struct Change {
    bool is_truncation = false;
    std::int64_t at = 0;  ///< Offset, or the new size.
    std::string data;
  };
  struct File {
    std::string durable;
    std::vector<Change> pending;
    bool has_durable_entry = true;  ///< Its directory has been synced since it was made.
    bool is_deleted = false;        ///< Without the directory being synced: it may come back.
  };
  struct Handle;
  friend struct HandleMethods;
  static void apply(std::string& content, const Change& change);
  void open(const std::string& path, bool is_new);
  void erase(const std::string& path, bool is_durable);
  void write(const std::string& path, Change change);
  void sync(const std::string& path);
  void announce(const std::string& path, bool is_sync);
  bool fails_now(const std::string& path, const char* what);

  std::string prefix_;
  sqlite3_vfs vfs_{};
  sqlite3_vfs* real_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, File> files_;
};

}  // namespace berth::store
