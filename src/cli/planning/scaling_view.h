// One pass of the autoscaler in thought, over files or over a live cluster: for dry runs and for `berth explain`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autoscaler/advice.h"
#include "autoscaler/autoscaler.h"
#include "autoscaler/cluster_cache.h"
#include "cli/command/session.h"

namespace berth::cli {

struct ScalingView {
  std::unique_ptr<autoscaler::ClusterCache> cache;
  autoscaler::Options options;
  autoscaler::Snapshot snapshot;
  autoscaler::Actions actions;
  autoscaler::Patience patience;  ///< As configured.
};

/// Whether anybody adds nodes to the cluster, or takes them away: it has a ClusterAutoscaler or a NodePool. For who would read all pods
/// next.
Result<bool> is_scaled(client::Client& client);
/// Everything that the autoscaler watches, as far as the server serves it. `refused` gets what the server said, where it gave a kind not.
Result<std::vector<json::Value>> read_scaling_objects(client::Client& client, std::optional<model::ApiStatus>* refused = nullptr);
/// The ClusterAutoscaler of the documents, the one named default first.
Result<autoscaler::Options> scaling_options_of(const std::vector<json::Value>& documents);
/// What a fresh autoscaler would do now. Every pause and delay counts as over, and pods without a node as refused by the scheduler.
ScalingView look_at_scaling(const std::vector<json::Value>& documents, autoscaler::Options options, const placement::Profiles& profiles);

}  // namespace berth::cli
