// Scenarios made by seed for berth and for Karpenter's own scheduler alike: what both are asked, as files.
#pragma once
#include <string>
#include <vector>

namespace berth::pools::tests {

/// Texts as tests/peers/karpenter reads them: an InstanceTypeCatalogue, and a stream of NodePools, Nodes, NodeClaims, Pods and DaemonSets.
struct Scenario {
  std::string name;  ///< Kind and seed: "spread-3".
  std::string catalogue, cluster;
};

/// The kinds, in the order of the table in docs/node-pools.md.
const std::vector<std::string>& scenario_kinds();
/// The same for the same kind and seed, on every machine.
Scenario make_scenario(const std::string& kind, unsigned seed);
/// Sixty nodes of a pool of many types, which pods fill by a fifth to a half: what can be saved?
Scenario make_half_empty(unsigned seed);
/// 5,000 pods of 400 kinds onto about 700 types.
Scenario make_large_scenario();

}  // namespace berth::pools::tests
