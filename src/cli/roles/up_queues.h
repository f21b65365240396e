// Queues within `berth up`. Its own header, so that up.cpp does without theirs.
#pragma once
#include <memory>

#include "client/transport.h"

namespace berth::client {
struct ComponentServerOptions;
}

namespace berth::cli {

/// Runs from the start until it is destroyed.
class UpQueues {
 public:
  UpQueues(std::shared_ptr<client::Transport> transport, bool fair_sharing);
  ~UpQueues();
  [[nodiscard]] client::ComponentServerOptions port_options();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::cli
