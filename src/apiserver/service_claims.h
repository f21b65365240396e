// Who else gives away cluster IPs and node ports: nobody over a store of one's own; over a shared one, every API server.
#pragma once
#include <cstdint>
#include <optional>

#include "base/error.h"

namespace berth::apiserver {

enum class Claimed { kAddress, kPort };

/// Thread-safe. Waits for the store.
class ServiceClaims {
 public:
  virtual ~ServiceClaims() = default;
  /// Takes that one, or (unset) a free one, for all servers. An address counts from the range's first (the network's own plus one), a port
  /// from the first port. Nothing: it is taken, or all are.
  virtual Result<std::optional<std::uint32_t>> claim(Claimed what, std::optional<std::uint32_t> wanted) = 0;
  virtual void release(Claimed what, std::uint32_t index) = 0;
};

}  // namespace berth::apiserver
