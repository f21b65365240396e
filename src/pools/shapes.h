// The nodes that pools could make: each of a pool's instance types in each place and manner in which it can be had.
#pragma once
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "placement/cluster.h"
#include "pools/catalogue.h"
#include "pools/node_pool.h"

namespace berth::pools {

/// Offerings (type, zone, capacity type) that could not be had lately, each until when it is not asked for again.
using Unavailable = std::map<std::tuple<std::string, std::string, std::string>, TimePoint>;

struct NodeShape {
  std::size_t pool = 0, type = 0;  ///< Indices into what it was made of.
  const Offering* offering = nullptr;
  model::Labels labels;  ///< Without the node's own name.
  double price = 0;
  placement::Resource allocatable;
  std::vector<model::Taint> taints;  ///< Of the pool, and of the type itself.
};

/// Labels with that place and manner added, as far as it names them.
void put_place(std::map<std::string, std::string, std::less<>>& labels, const Offering& offering);

/// Of an hour of a node with these labels; 0: the catalogue does not know it.
double price_of(const Catalogue& catalogue, const model::Labels& labels);

/// `pools` and `catalogue` must outlive it. Pools that are going, and offerings that are not to be had now, are left out. A requirement of
/// a key that no type has (a label of the user's own) makes a shape for each of its values, sixteen at most.
std::vector<NodeShape> make_shapes(const std::vector<NodePool>& pools, const Catalogue& catalogue, const Unavailable& unavailable,
                                   TimePoint now);

/// A node of that shape, ready, without startup taints: as it will be once it has started.
model::NodeViewPtr node_of(const NodeShape& shape, const NodePool& pool, const InstanceType& type, const std::string& name);

}  // namespace berth::pools
