// Two upgraded connections joined: what one says the other hears, until either has ended.
#pragma once
#include <chrono>
#include <memory>

#include "net/http.h"

namespace berth::net {

struct SplicePatience {
  /// No byte either way: as long as a kubelet keeps a session that nobody uses (--streaming-connection-idle-timeout).
  std::chrono::milliseconds idle = std::chrono::hours(4);
  /// The last bytes of one side that the other does not take, once the first has ended.
  std::chrono::milliseconds unread = std::chrono::seconds(60);
};

/// Takes both over and keeps them until both have ended: when one side ends, the other gets what was read of it and is closed. Of each
/// direction at most about three quarters of a megabyte is held; then the sender waits for the receiver.
void splice(std::unique_ptr<RawStream> a, std::unique_ptr<RawStream> b, SplicePatience patience = {});

}  // namespace berth::net
