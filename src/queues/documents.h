// Names of Kueue's API, and how its documents are changed.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "queues/objects.h"

namespace berth::queues {

inline constexpr std::string_view kApiVersion = "kueue.x-k8s.io/v1beta1";
inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kPriorityClassLabel = "kueue.x-k8s.io/priority-class";
inline constexpr std::string_view kMostSecondsLabel = "kueue.x-k8s.io/max-exec-time-seconds";
inline constexpr std::string_view kJobUidLabel = "kueue.x-k8s.io/job-uid";
inline constexpr std::string_view kPodSetLabel = "kueue.x-k8s.io/podset";
inline constexpr std::string_view kManagedLabel = "kueue.x-k8s.io/managed";
inline constexpr std::string_view kGroupNameLabel = "kueue.x-k8s.io/pod-group-name";
inline constexpr std::string_view kGroupCountAnnotation = "kueue.x-k8s.io/pod-group-total-count";
inline constexpr std::string_view kRoleAnnotation = "kueue.x-k8s.io/role-hash";
inline constexpr std::string_view kRetriableAnnotation = "kueue.x-k8s.io/retriable-in-group";
inline constexpr std::string_view kWorkloadAnnotation = "kueue.x-k8s.io/workload";
inline constexpr std::string_view kGroupWorkloadAnnotation = "kueue.x-k8s.io/is-group-workload";
inline constexpr std::string_view kAdmissionGate = "kueue.x-k8s.io/admission";
inline constexpr std::string_view kInUseFinalizer = "kueue.x-k8s.io/resource-in-use";
/// Ours: the Workload was deactivated because a user suspended its Job.
inline constexpr std::string_view kSuspendedByUserAnnotation = "berth.dev/suspended-by-user";

void drop_if(json::Array& items, const std::function<bool(const json::Value&)>& is_unwanted);
/// Sets a condition of status.conditions; its time changes with its status alone. False where all was so already.
bool set_condition(json::Value& document, std::string_view type, bool is_true, std::string_view reason, std::string_view message,
                   TimePoint now);
/// The quota is taken away, or is still not given, because of that. False where all was so already.
bool unset_reservation(json::Value& workload, std::string_view reason, std::string_view message, TimePoint now);
void set_eviction(json::Value& workload, std::string_view reason, std::string_view message, TimePoint now);

/// What admission adds to pods: the labels and tolerations of the flavors.
struct Placement {
  std::vector<std::pair<std::string, std::string>> node_labels;
  json::Array tolerations;
};
Placement placement_of(const PodSetAdmission& assignment, const std::map<std::string, Flavor>& flavors);
/// Adds it to a pod's spec. The key of a node selector that says otherwise already, or empty.
std::string place(json::Value& spec, const Placement& placement);

/// "job-NAME-HASH" (Kueue: jobframework/workload_names.go).
std::string workload_name(std::string_view kind, std::string_view group, std::string_view name, std::string_view uid);
/// Of pods that are alike in what quotas and nodes ask about: 8 digits.
std::string role_of(const json::Value& pod);
std::string label_of(const json::Value& document, std::string_view key);
std::string annotation_of(const json::Value& document, std::string_view key);

}  // namespace berth::queues
