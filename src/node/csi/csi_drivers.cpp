#include "node/csi/csi_drivers.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/log.h"
#include "base/mutex.h"
#include "node/csi/csi_protocol.h"

namespace berth::node::csi {
namespace {

using net::proto::Messages;

std::string_view code_name(int code) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  return code >= 0 && code < static_cast<int>(kNames.size()) ? kNames[static_cast<std::size_t>(code)] : "Unknown";
}

/// Whether an answer says that the thing was not done (IsCSIFinalError): Canceled, DeadlineExceeded, ResourceExhausted, Aborted and
/// Unavailable do not.
Outcome outcome_of(int code) {
  return code == 1 || code == 4 || code == 8 || code == 10 || code == 14 ? Outcome::kUnknown : Outcome::kRefused;
}

}  // namespace

Result<std::unique_ptr<CsiDrivers>> CsiDrivers::make(DriverHooks hooks) {
  auto messages = Messages::of(kCsiProtocol);
  if (!messages) return std::unexpected(messages.error());
  return std::make_unique<CsiDrivers>(std::move(hooks), std::move(*messages));
}

CsiDrivers::CsiDrivers(DriverHooks hooks, std::unique_ptr<Messages> messages) : hooks_(std::move(hooks)), messages_(std::move(messages)) {}

Result<std::pair<int, int>> CsiDrivers::best_version(const plugins::PluginInfo& plugin) const {
  std::pair<int, int> best{-1, 0};
  for (const std::string& version : plugin.versions) {
    std::pair<int, int> one;
    if (std::sscanf(version.c_str() + (version.starts_with('v') ? 1 : 0), "%d.%d", &one.first, &one.second) == 2 && one.first == 1)
      best = std::max(best, one);
  }
  if (best.first < 0)
    return invalid(fmt::format("CSI driver {}: none of the versions [{}] is supported: this node speaks 1.x", plugin.name,
                               fmt::join(plugin.versions, ", ")));
  const MutexLock lock(mutex_);
  if (const auto known = drivers_.find(plugin.name);
      known != drivers_.end() && known->second.socket != plugin.socket && best < known->second.version)
    return fail(ErrorCode::kConflict, fmt::format("CSI driver {} is registered already with a higher version: {}.{}", plugin.name,
                                                  known->second.version.first, known->second.version.second));
  return best;
}

Result<void> CsiDrivers::register_plugin(const plugins::PluginInfo& plugin, const std::atomic<bool>& cancel) {
  const auto version = best_version(plugin);
  if (!version) return std::unexpected(version.error());
  auto calls = net::GrpcCalls::open({.target = "unix://" + plugin.endpoint});
  if (!calls) return std::unexpected(calls.error());
  Driver driver{plugin.socket, *version, std::shared_ptr<net::GrpcCalls>(std::move(*calls)), {}};
  const auto able = call(*driver.calls, "NodeGetCapabilities", json::Object{}, cancel, kCallTimeoutMs);
  if (!able) return fail(ErrorCode::kUnavailable, "NodeGetCapabilities: " + able.error().message);
  for (const json::Value& one : json::get_array(*able, {"capabilities"}))
    driver.capabilities.emplace(json::get_string(one, {"rpc", "type"}));
  const auto info = call(*driver.calls, "NodeGetInfo", json::Object{}, cancel, kCallTimeoutMs);
  if (!info) return fail(ErrorCode::kUnavailable, "NodeGetInfo: " + info.error().message);
  const auto about = DriverNodeInfo::of(plugin.name, *info);
  if (about.node_id.empty()) return invalid("NodeGetInfo: the node's id is empty");
  if (auto installed = hooks_.install(about); !installed) return installed;
  {
    const MutexLock lock(mutex_);
    drivers_.insert_or_assign(plugin.name, std::move(driver));
  }
  hooks_.came(plugin.name);
  return {};
}

void CsiDrivers::deregister_plugin(const plugins::PluginInfo& plugin) {
  {
    const MutexLock lock(mutex_);
    const auto known = drivers_.find(plugin.name);
    // Another may have taken its place.
    if (known == drivers_.end() || known->second.socket != plugin.socket) return;
    drivers_.erase(known);
  }
  hooks_.went(plugin.name);
  hooks_.uninstall(plugin.name);
}

std::optional<Capabilities> CsiDrivers::capabilities(const std::string& driver) const {
  const MutexLock lock(mutex_);
  const auto known = drivers_.find(driver);
  return known == drivers_.end() ? std::nullopt : std::optional(known->second.capabilities);
}

CallAnswer CsiDrivers::call(const std::string& driver, const std::string& method, const json::Value& request,
                            const std::atomic<bool>& cancel, int timeout_ms) const {
  std::shared_ptr<net::GrpcCalls> calls;
  {
    const MutexLock lock(mutex_);
    if (const auto known = drivers_.find(driver); known != drivers_.end()) calls = known->second.calls;
  }
  if (calls == nullptr)
    return std::unexpected(
        CallFailure{Outcome::kUnknown, fmt::format("driver name {} not found in the list of registered CSI drivers", driver)});
  return call(*calls, method, request, cancel, timeout_ms);
}

CallAnswer CsiDrivers::call(net::GrpcCalls& calls, const std::string& method, const json::Value& request, const std::atomic<bool>& cancel,
                            int timeout_ms) const {
  const std::string whole = "csi.v1.Node/" + method;
  const auto bytes = messages_->encode(whole, Messages::Side::kRequest, request);
  if (!bytes) return std::unexpected(CallFailure{Outcome::kRefused, bytes.error().message});
  const auto answer = calls.call("/" + whole, *bytes, timeout_ms, &cancel);
  if (!answer)
    return std::unexpected(
        CallFailure{outcome_of(answer.error().code),
                    fmt::format("rpc error: code = {} desc = {}", code_name(answer.error().code), answer.error().message)});
  auto document = messages_->decode(whole, Messages::Side::kAnswer, *answer);
  if (!document) return std::unexpected(CallFailure{Outcome::kUnknown, document.error().message});
  return std::move(*document);
}

}  // namespace berth::node::csi
