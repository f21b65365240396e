// Who else gives away cluster IPs and node ports: nobody over a store of one's own; over a shared one, every API server.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"

namespace berth::apiserver {

enum class Claimed { kAddress, kPort };

/// The Service that a claim is for: kube-apiserver looks whether it is there.
struct ClaimOwner {
  std::string ns, name;
};

/// Thread-safe. Waits for the store.
class ServiceClaims {
 public:
  virtual ~ServiceClaims() = default;
  /// Takes that one, or (unset) a free one, for all servers. An address counts from the range's first (the network's own plus one), a port
  /// from the first port. Nothing: it is taken, or all are.
  virtual Result<std::optional<std::uint32_t>> claim(Claimed what, std::optional<std::uint32_t> wanted, const ClaimOwner& owner) = 0;
  /// Enters what a stored Service holds where it is not entered, or not as this Service's.
  virtual void confirm(Claimed what, std::uint32_t index, const ClaimOwner& owner) = 0;
  virtual void release(Claimed what, std::uint32_t index) = 0;
  /// Frees what was claimed for a Service and is `held` by none, once three calls in a row have found it so: a server that died between the
  /// claim and the Service, or never heard what came of it, left it behind. Minutes are to lie between two calls: a Service that is being
  /// created is not held yet.
  virtual void repair(Claimed what, const std::set<std::uint32_t>& held) = 0;
};

}  // namespace berth::apiserver
