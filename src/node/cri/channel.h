// Calls to a container runtime by the CRI (runtime.v1) over gRPC, with requests and answers as JSON documents in the CRI's own field names.
//
// No package ships the CRI's api.proto; the runtime's binary carries its descriptor, so messages are built from that at run time and no
// code is generated. int64 fields are strings in JSON (proto3's mapping), enums their names.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace berth::node::cri {

struct ChannelOptions {
  std::string socket = "/run/containerd/containerd.sock";
  /// Where the CRI's descriptor is found.
  std::string runtime_binary = "/usr/bin/containerd";
};

/// kNotFound, kUnavailable (runtime not reachable, or too slow) or kInternal, with the runtime's message.
struct CallFailure : Error {
  CallFailure(Error error, bool is_late = false) : Error(std::move(error)), is_late(is_late) {}
  bool is_late;  ///< The call's time was over, or that of what it asked for: gRPC's DeadlineExceeded.
};
using CallAnswer = Expected<json::Value, CallFailure>;

/// Thread-safe; calls block.
class Channel {
 public:
  /// Finds the descriptor and prepares the connection. kUnavailable when this program was built without gRPC or the binary has none.
  static Result<std::unique_ptr<Channel>> open(const ChannelOptions& options);
  virtual ~Channel() = default;
  /// `method`: "RuntimeService/RunPodSandbox". When `cancel` becomes true the call ends within a fraction of a second, with kUnavailable.
  virtual CallAnswer call(const std::string& method, const json::Value& request, int timeout_ms = 30'000,
                          const std::atomic<bool>* cancel = nullptr) = 0;
  /// Whether the runtime's CRI has this field: what it has not is left out of messages.
  [[nodiscard]] virtual bool has_field(const std::string& message, const std::string& field) const = 0;
};

}  // namespace berth::node::cri
