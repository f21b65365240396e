// How much a peer may ask of a connection without getting on: what costs it little and us much is paid from a purse that fills by time.
#pragma once
#include <algorithm>
#include <chrono>

#include "net/reactor.h"

namespace berth::net {

/// A token bucket. Not thread-safe; time is the caller's.
class TokenBucket {
 public:
  TokenBucket(double most, double per_second) : most_(most), per_second_(per_second), left_(most) {}
  /// False when nothing is left.
  [[nodiscard]] bool take(MonotonicTime now, double tokens = 1) {
    if (last_ != MonotonicTime{}) give(std::chrono::duration<double>(now - last_).count() * per_second_);
    last_ = now;
    left_ -= tokens;
    return left_ >= 0;
  }
  void give(double tokens) { left_ = std::min(most_, left_ + tokens); }

 private:
  double most_, per_second_, left_;
  MonotonicTime last_{};
};

/// The purses of one HTTP/2 connection. Resets: of streams by the peer, and by us for what it did wrong (CVE-2023-44487, CVE-2025-8671);
/// 1,000 at once and 33 a second, as nghttp2 has them. Frames: those that carry neither a request nor a body worth its frame (settings,
/// pings, windows a byte at a time, empty data); what is sent to the peer earns windows.
struct Http2Budget {
  TokenBucket resets{1000, 33};
  TokenBucket frames{10'000, 1000};
  static constexpr double kFramesPerByteSent = 1.0 / 1024;
};

}  // namespace berth::net
