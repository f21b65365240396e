// The verdict of a plugin: kube-scheduler's framework Status.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::placement {

/// Which release's formulas and words apply. Policy files and v1beta1 mean 1.20, v1beta3 and v1 mean 1.36.
enum class Era : std::uint8_t { k120, k136 };

/// What happens next decides the code (pkg/scheduler/framework/interface.go).
enum class Code : std::uint8_t {
  kSuccess,                       ///< Go on.
  kError,                         ///< The cycle ends; retried with backoff.
  kUnschedulable,                 ///< Not now; evicting pods may help.
  kUnschedulableAndUnresolvable,  ///< Not now; evicting pods cannot help.
  kWait,                          ///< Permit: hold the pod.
  kSkip,                          ///< PreFilter, PreScore: nothing to do for this pod; the coupled Filter or Score is not run.
  kPending,                       ///< PreEnqueue, PreFilter: waits for something outside the scheduler.
};
std::string_view code_name(Code code);

/// Success is cheap: no allocation. `plugin` names a plugin object or constant that outlives the status.
struct [[nodiscard]] Status {
  Code code = Code::kSuccess;
  std::string_view plugin;
  std::vector<std::string> reasons;

  static Status success() { return {}; }
  static Status skip() { return {Code::kSkip, {}, {}}; }
  static Status unschedulable(std::string reason) { return {Code::kUnschedulable, {}, {std::move(reason)}}; }
  static Status unresolvable(std::string reason) { return {Code::kUnschedulableAndUnresolvable, {}, {std::move(reason)}}; }
  static Status wait() { return {Code::kWait, {}, {}}; }
  static Status error(std::string message) { return {Code::kError, {}, {std::move(message)}}; }

  [[nodiscard]] bool is_success() const { return code == Code::kSuccess; }
  [[nodiscard]] bool is_skip() const { return code == Code::kSkip; }
  [[nodiscard]] bool is_error() const { return code == Code::kError; }
  /// The pod is refused, as opposed to an error.
  [[nodiscard]] bool is_rejected() const {
    return code == Code::kUnschedulable || code == Code::kUnschedulableAndUnresolvable || code == Code::kPending;
  }
  /// The reasons joined by ", ".
  [[nodiscard]] std::string message() const;
};

}  // namespace berth::placement
