// What controllers need to know of a pod, read once per revision and shared by all of them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/shared_pool.h"
#include "client/object.h"

namespace berth::controllers {

using client::Object;
using client::ObjectRef;

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool is_controller = false;
  bool blocks_deletion = false;
  friend bool operator==(const OwnerReference&, const OwnerReference&) = default;
  [[nodiscard]] auto parts() const { return std::tie(api_version, kind, name, uid, is_controller, blocks_deletion); }
};
using OwnerReferences = SharedList<OwnerReference>;
/// metadata.ownerReferences; entries without a uid are left out.
OwnerReferences owner_references(const json::Value& document);

struct Toleration {
  std::string key, op, value, effect;
  std::optional<std::int64_t> seconds;
  friend bool operator==(const Toleration&, const Toleration&) = default;
  [[nodiscard]] auto parts() const { return std::tie(key, op, value, effect, seconds); }
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

/// One revision of a pod, compact. Immutable, shared.
struct PodInfo {
  ObjectRef object;
  std::string node;
  PodPhase phase = PodPhase::kPending;
  bool ready = false;
  bool deleting = false;
  bool has_scheduled_condition = false;   ///< Of whatever status: a scheduler looked at it, or it has gates.
  bool has_disruption_condition = false;  ///< DisruptionTarget, of whatever status.
  bool has_job_finalizer = false;
  bool has_claim_volumes = false;  ///< Names a PersistentVolumeClaim or has an ephemeral volume.
  bool has_resource_claims = false;
  Shared<std::string> scheduler;   ///< spec.schedulerName
  std::string scheduling_group;    ///< spec.schedulingGroup.podGroupName
  std::string extended_claim;      ///< status.extendedResourceClaimStatus.resourceClaimName
  std::int32_t restarts = 0;       ///< The largest restartCount of its containers.
  std::int32_t deletion_cost = 0;  ///< controller.kubernetes.io/pod-deletion-cost
  TimePoint created{}, ready_since{}, scheduled_since{}, deletion_time{};
  OwnerReferences owners;
  SharedList<Toleration> no_execute_tolerations;  ///< In the pod's order; those whose effect is empty or NoExecute.

  [[nodiscard]] const std::string& ns() const { return object->ns(); }
  [[nodiscard]] const std::string& name() const { return object->name(); }
  [[nodiscard]] const std::string& uid() const { return object->uid(); }
  [[nodiscard]] const model::Labels& labels() const { return object->labels(); }
  [[nodiscard]] bool is_finished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  /// Neither finished nor being deleted: what workload controllers count.
  [[nodiscard]] bool is_active() const { return !is_finished() && !deleting; }
  /// Ready for at least `min_ready` by `now`.
  [[nodiscard]] bool is_available(Duration min_ready, TimePoint now) const {
    return ready && (min_ready.count() == 0 || (ready_since != TimePoint{} && ready_since + min_ready <= now));
  }
};
using PodRef = std::shared_ptr<const PodInfo>;

PodRef make_pod_info(ObjectRef object);

/// The answer to one question about labels, asked once for pods in a row that share theirs.
class LabelMemo {
 public:
  template <typename Ask>
  bool operator()(const PodInfo& pod, const Ask& ask) {
    if (&pod.labels() != last_) {  // One for all pods of a template.
      last_ = &pod.labels();
      answer_ = ask(*last_);
    }
    return answer_;
  }

 private:
  const model::Labels* last_ = nullptr;
  bool answer_ = false;
};

/// For claims of pods that no further condition narrows.
inline bool any_pod(const PodInfo&) { return true; }

}  // namespace berth::controllers
