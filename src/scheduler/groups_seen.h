// Groups of pods as the scheduler knows them at a moment, for who explains one.
#pragma once
#include "placement/groups/group_explain.h"
#include "placement/groups/pod_groups.h"

namespace berth::scheduler {

struct GroupsSeen {
  placement::PodGroups groups;
  placement::GroupToExplain asked;  ///< Without a group where there is none of the key.
};

}  // namespace berth::scheduler
