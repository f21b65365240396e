// Why not: what holds a node, what would free it, and why no group grows for a pod, in words for people.
#pragma once
#include <string>
#include <string_view>

#include "autoscaler/actions.h"
#include "base/clock.h"

namespace berth::autoscaler {

/// What somebody could do so that the node may go; empty where only time helps.
std::string advice_for(const Unremovable& node);

/// How long a node is unneeded before it goes, where the pass took that for over.
struct Patience {
  TimePoint now{};
  Duration unneeded_time{}, unready_time{};
};

/// Of one pass: why the node stays, or that it would go, when, and what would free it. Lines, each with its end. `snapshot` and `actions`
/// are those of the pass.
std::string explain_node(const Snapshot& snapshot, const Actions& actions, std::string_view node, const Patience& patience = {});

/// Of one pass: what each group would do for the waiting pod ("namespace/name"), or why the autoscaler does not look at it. Lines, each
/// with its end; empty for a pod that has a node.
std::string explain_growth(const Snapshot& snapshot, const Actions& actions, const Options& options, std::string_view pod);

}  // namespace berth::autoscaler
