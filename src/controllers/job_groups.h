// The group of a Job's pods (gate WorkloadWithJob; KEP-5547, pkg/controller/job/job_scheduling_manager.go of 1.36): a Job whose pods are of
// use together alone has a Workload and a PodGroup made of it, and its pods name the group.
#pragma once
#include "controllers/job_model.h"

namespace berth::controllers::job {

/// Workloads by the Job that they say they are of, PodGroups by their Workload: both say so by name alone.
class GroupIndex {
 public:
  void on_event(const Event& event);
  [[nodiscard]] std::vector<ObjectRef> workloads_of(const Object& job, const Cache& cache) const;
  [[nodiscard]] std::vector<ObjectRef> groups_of(const Object& workload, const Cache& cache) const;

 private:
  using Names = std::map<std::string, std::set<std::string>, std::less<>>;  ///< "ns/name" to names in that namespace.
  Names workloads_, groups_;
};

/// Where a Job is on its way to a group.
struct Grouping {
  std::optional<Write> next;  ///< Has to be made and seen first; nothing else may be done meanwhile.
  std::string pod_group;      ///< Of new pods; empty: they are scheduled one by one.
};
/// Indexed, as many pods at once as completions, more than one, and no group of the user's own. What is there already and has not the
/// Job's mark (ownership) or more than one template, or is there twice, is left alone, and the pods are scheduled one by one; so are those
/// of a Job that had pods, or was suspended, before it could have a Workload.
Grouping grouping_of(const View& view, const GroupIndex& index, const Cache& cache);

/// JOB-HASH, of the Job's uid; WORKLOAD-TEMPLATE-HASH. At most 253 characters, as Kubernetes shortens them.
std::string workload_name(std::string_view job, std::string_view uid);
std::string pod_group_name(std::string_view workload, std::string_view pod_group_template);

}  // namespace berth::controllers::job
