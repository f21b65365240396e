// Liveness, readiness and startup probes of a real container, and its lifecycle hooks (kubelet prober, lifecycle/handlers.go).
#pragma once
#include <atomic>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "node/cri/channel.h"

namespace berth::node::agent {

struct ProbeTarget {
  cri::Channel& runtime;
  std::string container_id, pod_ip;
  json::Value container;  ///< Its spec, for named ports.
};

struct ProbeFailure {
  std::string text;  ///< As it appears behind "Readiness probe failed: ".
  /// The probe could not be made at all: that says nothing about the container, and counts for nothing.
  bool is_error = false;
  bool is_warning = false;  ///< It counts as a success; the text stands behind "Readiness probe warning: ".
};

/// One try: nullopt means success, otherwise what went wrong. Blocks up to the probe's timeout.
[[nodiscard]] std::optional<ProbeFailure> run_probe(const json::Value& probe, const ProbeTarget& target);

struct HookFailure {
  std::string error, output;
};

/// A postStart or preStop handler: nullopt when it ran well. Blocks up to `seconds`, or until `cancel`.
[[nodiscard]] std::optional<HookFailure> run_hook(const json::Value& handler, const ProbeTarget& target, std::int64_t seconds,
                                                  const std::atomic<bool>* cancel);

/// What a container's status says of a failed postStart handler. `pod` is NAME_NAMESPACE(UID).
[[nodiscard]] std::string hook_message(const json::Value& handler, std::string_view container, std::string_view pod,
                                       const HookFailure& failure);

/// Counts tries against successThreshold and failureThreshold.
class ProbeCounter {
 public:
  /// Takes one result in. True when the verdict changed.
  bool take(const json::Value& probe, bool success);
  /// Nullopt until a threshold was reached.
  [[nodiscard]] std::optional<bool> verdict() const { return verdict_; }
  TimePoint next{};
  bool is_running = false;  ///< A try is under way.

 private:
  int successes_ = 0, failures_ = 0;
  std::optional<bool> verdict_;
};

}  // namespace berth::node::agent
