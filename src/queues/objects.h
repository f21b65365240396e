// What is read of Kueue's kinds (kueue.x-k8s.io/v1beta1). Parsed from any JSON: what is missing has its default, what makes no sense is as
// if it were missing; the kinds' schemas refuse it earlier.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/selector.h"
#include "model/views/common.h"
#include "queues/amounts.h"

namespace berth::queues {

struct ResourceQuota {
  Amount nominal = 0;
  std::optional<Amount> borrowing_limit, lending_limit;
};
using Quotas = std::map<FlavorResource, ResourceQuota>;

/// Flavors are tried in this order, for all resources of the group at once.
struct ResourceGroup {
  std::vector<std::string> resources, flavors;
};

enum class StopPolicy { kNone, kHold, kHoldAndDrain };
enum class PreemptionPolicy { kNever, kLowerPriority, kLowerOrNewerEqualPriority, kAny };

struct ClusterQueue {
  std::string name, cohort;
  std::vector<ResourceGroup> groups;
  Quotas quotas;
  bool is_strict = false;  ///< StrictFIFO
  model::Selector namespaces = model::Selector::nothing();
  bool tries_next_before_borrowing = false;  ///< flavorFungibility.whenCanBorrow: TryNextFlavor
  bool tries_next_before_preempting = true;  ///< whenCanPreempt: TryNextFlavor
  PreemptionPolicy within_queue = PreemptionPolicy::kNever;
  PreemptionPolicy reclaim = PreemptionPolicy::kNever;  ///< reclaimWithinCohort
  bool may_borrow_and_preempt = false;                  ///< borrowWithinCohort.policy: LowerPriority
  std::optional<std::int64_t> borrow_threshold;         ///< Its maxPriorityThreshold.
  StopPolicy stop = StopPolicy::kNone;
  std::int64_t weight_milli = 1000;  ///< fairSharing.weight
  std::vector<std::string> admission_checks;
  bool is_deleting = false;

  static ClusterQueue parse(const json::Value& document);
  /// Null where no group covers the resource.
  [[nodiscard]] const ResourceGroup* group_of(std::string_view resource) const;
};

struct Cohort {
  std::string name, parent;
  Quotas quotas;
  std::int64_t weight_milli = 1000;
  static Cohort parse(const json::Value& document);
};

struct LocalQueue {
  std::string ns, name, cluster_queue;
  StopPolicy stop = StopPolicy::kNone;
  bool is_deleting = false;
  static LocalQueue parse(const json::Value& document);
};

struct Flavor {
  std::string name, topology;
  std::vector<std::pair<std::string, std::string>> node_labels;  ///< Sorted by key.
  std::vector<model::Taint> taints;
  std::vector<model::Toleration> tolerations;
  json::Array toleration_documents;
  bool is_deleting = false;
  static Flavor parse(const json::Value& document);
};

struct Condition {
  std::string type, reason, message;
  bool is_true = false;
  TimePoint since{};
};

struct PodSet {
  std::string name;
  std::int64_t count = 1;
  Requests per_pod;
  json::Value pod_template;
};

struct PodSetAdmission {
  std::string name;
  std::map<std::string, std::string, std::less<>> flavors;  ///< By resource.
  Requests usage;                                           ///< Of all its pods.
  std::int64_t count = 0;
};

/// A Workload: what asks for quota as a whole.
struct Workload {
  std::string ns, name, uid;
  TimePoint created{};
  std::int64_t generation = 0;
  bool is_deleting = false;
  std::string owner_kind, owner_name, owner_uid;  ///< Of the controller, else of the first owner.
  std::string job_uid;                            ///< The label of that name.
  std::string queue, priority_class;
  std::int64_t priority = 0;
  bool is_active = true;
  std::optional<std::int64_t> most_execution_seconds;
  std::vector<PodSet> pod_sets;
  std::vector<Condition> conditions;
  std::optional<std::string> admitted_by;  ///< status.admission.clusterQueue
  std::vector<PodSetAdmission> assignments;
  std::map<std::string, std::int64_t, std::less<>> reclaimable;  ///< Pods by pod set.
  std::int64_t requeue_count = 0, past_execution_seconds = 0;
  std::optional<TimePoint> requeue_at;

  static Workload parse(const json::Value& document);
  [[nodiscard]] std::pair<std::string, std::string> key() const { return {ns, name}; }
  [[nodiscard]] const Condition* condition(std::string_view type) const;
  [[nodiscard]] bool is(std::string_view type) const;
  [[nodiscard]] bool has_reservation() const { return admitted_by && is("QuotaReserved"); }
  /// What all pods ask for, less those that are reclaimable, by pod set in the order of `pod_sets`.
  [[nodiscard]] std::vector<Requests> totals() const;
  [[nodiscard]] std::int64_t count_of(const PodSet& pod_set) const;
  /// What it holds of its ClusterQueue; empty without a reservation.
  [[nodiscard]] FlavorAmounts usage() const;
};

/// What one pod of a template asks for; limits stand for requests that are missing.
Requests requests_of_template(const json::Value& pod_template);

}  // namespace berth::queues
