// Nodes that NodePools would buy (pools/plan.h), in a world.
#pragma once
#include <string>
#include <vector>

#include "pools/plan.h"
#include "whatif/world.h"

namespace berth::whatif {

/// A pool of a question, or a class of its nodes, with its defaults. The error names it, and the field.
Result<json::Value> read_pool(const json::Value& document);
/// Instance types of a question: the document of a file. The error names the field.
Result<std::shared_ptr<const pools::Catalogue>> read_catalogue(const json::Value& document);
/// Buying for whatever waits in worlds, from pools that are given.
struct Shop {
  std::vector<pools::NodePool> pools;
  std::shared_ptr<const pools::Catalogue> catalogue;
  /// For the pods of these names.
  [[nodiscard]] pools::ProvisionPlan plan(World& world, const std::vector<std::string>& pods) const;
};
/// Adds the nodes of these claims with their daemons; their names.
std::vector<std::string> add_bought(World& world, const std::vector<pools::NewClaim>& claims, const std::vector<pools::NodePool>& pools,
                                    const pools::Catalogue& catalogue);
/// A pool of whatever the catalogue has, on demand, of the architectures that the world's nodes have.
pools::NodePool pool_of_everything(const World& world);

}  // namespace berth::whatif
