// What a cluster was before an attempt, as far as it was changed since.
#pragma once
#include <boost/unordered/unordered_flat_set.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "placement/cluster.h"

namespace berth::placement {

/// Tables of objects are kept whole, by their pointers: whoever writes into one copies it. Nodes are kept one by one as each is first
/// written, and so are images, of which a large cluster has ten thousands; pods' places and the change log are undone from the changes
/// themselves.
struct Cluster::Journal {
  struct Slot {
    NodeIndex index;
    std::shared_ptr<NodeInfo> info;  ///< Null: the slot was free.
    std::uint64_t arrival = 0;
  };
  Journal* outer = nullptr;  ///< Of the attempt around this one.

  std::size_t node_count = 0, affinity_pods = 0, required_anti_affinity_pods = 0, nominated_affinity_pods = 0;
  std::uint32_t slot_count = 0;
  std::vector<NodeIndex> free_slots;
  std::shared_ptr<Nominations> nominations;
  std::shared_ptr<Allocations> pending_allocations;
  Objects objects;
  std::uint64_t objects_version = 0, images_version = 0, namespaces_version = 0, workloads_version = 0, budgets_version = 0;

  // In order; taken back from the end, so that the earliest entry of several decides.
  std::vector<Change> changes;
  std::vector<Slot> slots;
  std::vector<std::pair<std::string, std::optional<NodeIndex>>> names;
  std::vector<std::pair<std::string, std::optional<ImageState>>> images;
  boost::unordered_flat_set<std::uint32_t> kept_slots;  ///< Those of `slots`.
};

}  // namespace berth::placement
