// Groups of pods (PodGroup) as commands about placement know them: those of the cluster, and those of manifests.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "placement/cluster.h"
#include "placement/groups/group_explain.h"

namespace berth::cli {

/// PodGroups, their members, and which of these have no node.
class GroupInput {
 public:
  explicit GroupInput(placement::Era era) : era_(era) {}
  /// A PodGroup, or a pod that names one; everything else is passed over.
  void add(const json::Value& object);
  [[nodiscard]] const placement::PodGroups& groups() const { return groups_; }
  /// What is there to explain about the group; null group: there is none of the key.
  [[nodiscard]] placement::GroupToExplain question(const std::string& key) const;

 private:
  placement::Era era_;
  placement::PodGroups groups_;
  std::map<std::string, std::vector<placement::PodInfoPtr>, std::less<>> waiting_;  ///< By group.
};

/// The group that a Job's pods would be of, as the Job controller makes it (gate WorkloadWithJob); empty for Jobs that get none, and for
/// other documents.
json::Value group_of_job(const json::Value& document);

}  // namespace berth::cli
