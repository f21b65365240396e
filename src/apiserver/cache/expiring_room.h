// How much the objects that go by themselves in time (Events) hold, and how much of it is too much.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "apiserver/cache/object_cache.h"

namespace berth::apiserver {

/// Counts the bytes of their texts. Changed by who publishes, read by anybody.
class ExpiringRoom {
 public:
  /// `most_bytes` 0: no bound.
  explicit ExpiringRoom(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  [[nodiscard]] bool is_bounded() const { return most_bytes_ != 0; }
  /// `now` stands where `before` stood; null: nothing does or did.
  void replace(const StoredObject* before, const StoredObject* now);
  /// Bytes beyond the bound.
  [[nodiscard]] std::size_t excess() const;
  /// So many went before their time; the first ones are told to the log.
  void went_early(std::size_t count);
  [[nodiscard]] std::uint64_t early() const { return early_; }

 private:
  const std::size_t most_bytes_;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::uint64_t> early_{0};
};

}  // namespace berth::apiserver
