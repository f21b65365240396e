// What NodePools would do with a cluster, for commands that are asked.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/placement_input.h"
#include "cli/session.h"
#include "pools/state.h"

namespace berth::cli {

/// NodePools and NodeClaims of a live cluster; one that does not serve these kinds has none.
Result<void> read_live_pools(client::Client& client, std::vector<json::Value>& into);

/// The document of a file of instance types, once all of it is right. The error tells what is not, with its lines.
Result<json::Value> read_instance_types(const std::string& file);
/// The same of what `berth autoscaler` has published in the cluster of the flags, live or dumped. Nullopt: nobody has.
std::optional<json::Value> published_instance_types(const PlacementFlags& flags);
/// Of the file, or, where none is named, published among these objects. The error says that neither is there, or what is wrong.
Result<pools::Catalogue> catalogue_of(const std::string& file, const std::vector<json::Value>& objects);

/// Stays where it is made: its parts point to one another.
struct PoolView {
  pools::Catalogue catalogue;
  pools::PoolsWorld world;
  placement::Profiles profiles;
  pools::PoolsView view;
  /// When the objects are in `world`: every pod without a node counts as waiting.
  void look(TimePoint now) { view = pools::view_of(world, catalogue, profiles, {}, now, true); }
};

/// Why the pod gets no node, or which; empty: it has one. `view` has it.
std::string explain_buying(PoolView& view, const std::string& pod);
/// What the node costs and why it stays; empty: it is no pool's.
std::string explain_keeping(PoolView& view, const std::string& node);

}  // namespace berth::cli
