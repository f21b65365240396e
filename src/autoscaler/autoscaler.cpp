#include "autoscaler/autoscaler.h"

#include <fmt/format.h>

namespace berth::autoscaler {
namespace {

void publish_group_states(Pass& pass) {
  Status& status = pass.out.status;
  pass.state.describe(status.groups, pass.now);
  std::map<std::string, int> candidates;
  for (const auto& [node, since] : status.unneeded)
    if (const auto member = pass.memberships.find(node); member != pass.memberships.end()) ++candidates[member->second.group->id];
  for (GroupStatus& group : status.groups) {
    group.candidates = candidates[group.id];
    status.whole.candidates += group.candidates;
    status.whole.is_growing |= group.is_growing;
  }
}

}  // namespace

Actions Autoscaler::step(const Snapshot& snapshot, const Options& options, TimePoint now, const TimeLimit& limit) {
  growing_.begin();
  shrinking_.begin(*snapshot.cluster);
  Pass pass{.snapshot = snapshot,
            .options = options,
            .now = now,
            .limit = limit,
            .state = state_,
            .templates = groups_.templates(),
            .thought = {snapshot, options, profiles_, state_.not_started()}};
  pass.measure("updateClusterState", [&] {
    pass.memberships = state_.update(snapshot, options, now, pass.out);
    groups_.make_templates(pass);
  });
  pass.out.status.problems = snapshot.problems;
  for (const NodeGroup& group : snapshot.groups)
    for (const std::string& problem : group.overrides.problems)
      pass.out.status.problems.push_back(fmt::format("{}: {}", group.id, problem));
  groups_.tell_of_gone(pass);
  requests_.begin(pass);
  const ClusterLimits limits(snapshot, groups_.templates(), options);
  pass.out.status.totals = limits.totals();
  if (pass.out.status.is_healthy) {
    pass.measure("scaleUp", [&] { growing_.run(pass, requests_, limits); });
    if (pass.out.grow.empty() && !pass.has_promised) shrinking_.run(pass, limits, growing_.last());
    publish_group_states(pass);
  } else {
    pass.note({}, {}, true, "ClusterUnhealthy", "Cluster is unhealthy");
    shrinking_.forget_unneeded();
  }
  pass.out.requests = requests_.take_updates();
  return std::move(pass.out);
}

void Autoscaler::shift_times(Duration jump) {
  state_.shift_times(jump);
  growing_.shift_times(jump);
  requests_.shift_times(jump);
  shrinking_.shift_times(jump);
}

}  // namespace berth::autoscaler
