// ProvisioningRequests (autoscaling.x-k8s.io): room for pods that are asked for before they are there (kubernetes/autoscaler,
// proposals/provisioning-request.md). A request, the pods that it stands for, and its conditions in the cluster autoscaler's words.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/snapshot.h"

namespace berth::autoscaler {

inline constexpr std::string_view kCheckCapacity = "check-capacity.autoscaling.x-k8s.io";
inline constexpr std::string_view kBestEffortAtomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
inline constexpr std::string_view kClassOfPod = "autoscaling.x-k8s.io/provisioning-class-name";
/// A request for more is failed: its pods are all held in memory.
inline constexpr std::int64_t kMostRequestedPods = 50'000;

// Reasons and messages of conditions.
inline constexpr std::string_view kAcceptedMessage = "ProvisioningRequest is accepted by ClusterAutoscaler";
inline constexpr std::string_view kCapacityIsFound = "CapacityIsFound";
inline constexpr std::string_view kCapacityIsProvisioned = "CapacityIsProvisioned";
inline constexpr std::string_view kCapacityIsFoundMessage = "Capacity is found in the cluster";
inline constexpr std::string_view kCapacityIsNotFound = "CapacityIsNotFound";
inline constexpr std::string_view kLaterMessage = "Capacity is not found, CA will try to find it later.";
inline constexpr std::string_view kNoRetryMessage = "CA could not find requested capacity";
inline constexpr std::string_view kPartialCapacityIsFound = "PartialCapacityIsFound";
inline constexpr std::string_view kSchedulablePodSets = "schedulablePodSets";  ///< Of provisioningClassDetails.

struct RequestCondition {
  std::string type, status, reason, message;
  TimePoint since{};
  std::int64_t generation = 0;
};

struct ProvisioningRequest {
  struct PodSet {
    std::string template_name;
    std::int64_t count = 0;
    std::vector<PodPtr> pods;
  };
  std::string ns, name, uid, revision, class_name;
  std::int64_t generation = 0;
  TimePoint created{};
  bool is_leaving = false;  ///< Deleted, and held by a finalizer.
  std::map<std::string, std::string, std::less<>> parameters;
  std::vector<PodSet> sets;
  std::vector<std::string> missing_templates;
  bool is_too_large = false;
  std::vector<RequestCondition> conditions;
  json::Object details;

  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  [[nodiscard]] std::int64_t count() const;
  [[nodiscard]] const RequestCondition* condition(std::string_view type) const;
  [[nodiscard]] bool is_true(std::string_view type) const;
  [[nodiscard]] std::string_view parameter(std::string_view name) const;
  /// Failed, or its time is over: nothing happens to it any more but its deletion.
  [[nodiscard]] bool has_ended() const { return is_true("Failed") || is_true("BookingExpired") || is_true("CapacityRevoked"); }
  [[nodiscard]] bool is_booked() const { return is_true("Provisioned") && !has_ended(); }
  /// Why it has no pods, in the cluster autoscaler's words; empty when it has.
  [[nodiscard]] std::string problem() const;
  /// Every pod, set after set.
  [[nodiscard]] std::vector<PodPtr> pods() const;

  /// `template_of` finds a PodTemplate of the request's namespace, null when there is none. Pods of `before` are taken over where they are
  /// the same. Pods are made only of requests that wait for room or have it.
  static ProvisioningRequest parse(const json::Value& object, placement::Era era,
                                   const std::function<const json::Value*(std::string_view)>& template_of,
                                   const ProvisioningRequest* before = nullptr);
};
using RequestPtr = std::shared_ptr<const ProvisioningRequest>;

/// What a request's status is to be; or that the request goes, having ended a week ago.
struct RequestUpdate {
  RequestPtr request;
  std::vector<RequestCondition> conditions;
  json::Object details;
  bool is_deleted = false;
  /// Groups whose growth it stands on: when one of them does not grow, capacity was not found.
  std::vector<std::string> awaited_groups;

  explicit RequestUpdate(RequestPtr of) : request(std::move(of)), conditions(request->conditions), details(request->details) {}
  void set(std::string_view type, bool status, std::string_view reason, std::string_view message, TimePoint now);
  /// As when no capacity was found.
  void set_not_found(TimePoint now);
  [[nodiscard]] json::Value status() const;
};

}  // namespace berth::autoscaler
