// One server's own store: the real SQLite store on a disk that loses its power (tests/store/power_loss_disk.h). What was not synced then is
// lost, kept, cut off or scattered.
//
//   cache ── Tap (what is acknowledged) ── encryption ── Tap (what is stored) ── SqliteStore ── PowerLossDisk
#pragma once
#include <memory>
#include <optional>
#include <random>

#include "apiserver/encryption/store.h"
#include "tests/store/power_loss_disk.h"
#include "tests/store/store_fixture.h"
#include "tests/world/held.h"

namespace berth::world {

/// For the loop's thread, but for what SQLite's checkpoints do on their own.
class Disk final : public Held {
 public:
  explicit Disk(std::uint64_t seed);

  /// As a server of that build finds it that starts. What is there is held against what was acknowledged. One at a time.
  Result<std::unique_ptr<store::Store>> open(std::size_t build, std::shared_ptr<apiserver::encryption::StaleKeys> stale);
  /// The process dies: all that it wrote is there.
  void kill_process() { photograph(store::Unsynced::kKept); }
  /// Before the disk's so manieth operation from now the power fails; `off` is told from within it.
  void lose_power_after(int operations, std::function<void()> off);
  /// At once, if it has not failed yet.
  void lose_power();
  /// There is no room for anything.
  void set_full(bool is_full);
  [[nodiscard]] bool is_full() const { return is_full_; }
  /// What stands on the disk for each secret.
  [[nodiscard]] const std::map<std::string, Bytes, std::less<>>& secrets() const { return secrets_; }
  /// How often power failed, and what of the acknowledged went with it: Leases and Events alone may.
  int failures = 0, lost = 0;
  std::vector<std::string> wrongs;

 private:
  class Tap;
  void photograph(store::Unsynced unsynced);
  void restore();
  /// Every record that the store still has is the one that was acknowledged.
  Result<void> compare(store::Store& store);

  store::TemporaryDirectory directory_;
  std::mt19937 random_;
  std::unique_ptr<store::PowerLossDisk> disk_;
  std::optional<store::PowerLossDisk::Image> image_;  ///< Of the disk since the power failed; nothing that happens now counts.
  int operations_ = 0;                                ///< Until it fails; 0: it does not.
  std::function<void()> off_;
  bool is_full_ = false;
  std::map<std::string, Bytes, std::less<>> secrets_;
};

}  // namespace berth::world
