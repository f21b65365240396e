// What NodePools would do with a cluster, for commands that are asked.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/command/session.h"
#include "pools/state.h"

namespace berth::cli {

/// NodePools and NodeClaims of a live cluster; one that does not serve these kinds has none.
Result<void> read_live_pools(client::Client& client, std::vector<json::Value>& into);

/// Stays where it is made: its parts point to one another.
struct PoolView {
  pools::Catalogue catalogue;
  pools::PoolsCache cache;
  placement::Profiles profiles;
  pools::PoolsView view;
  std::vector<std::string> notes;  ///< Groups of machines that offer nothing, and why.
  /// When the objects are in `cache`: every pod without a node counts as waiting.
  void look(TimePoint now) {
    catalogue = pools::with_machines(std::move(catalogue), cache, &notes);
    view = pools::view_of(cache, catalogue, profiles, {}, now, true);
  }
};

/// Why the pod gets no node, or which; empty: it has one. `view` has it.
std::string explain_buying(PoolView& view, const std::string& pod);
/// What the node costs and why it stays; empty: it is no pool's.
std::string explain_keeping(PoolView& view, const std::string& node);

}  // namespace berth::cli
