// Groups of machines as what NodePools buy from: the template of each is an instance type, its maximum what can be had of it. A group is
// the pools' by a label of its template (autoscaler::kMachineClassLabel), and its size follows the claims:
//
//   claim launched -> the group grows by one, where no machine is on its way for nobody -> the claim takes the machine that comes
//   claim deleted  -> its node is drained, and exactly its machine goes; one that has none yet is taken back where it can be
//
// Pure.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "autoscaler/snapshot.h"
#include "pools/catalogue.h"
#include "pools/node_pool.h"

namespace berth::pools {

class PoolsCache;

/// On a claim that is launched: the group that its machine is of, as MachineGroup::id.
inline constexpr std::string_view kGroupAnnotation = "berth.dev/node-group";

struct MachineGroup {
  autoscaler::NodeGroup group;
  bool is_external = false;  ///< Of an external provider, not of the Machine API's objects.
  bool is_current = true;    ///< False: the provider is asked, or does not answer; nothing is wanted of it meanwhile.
  [[nodiscard]] std::string id() const { return is_external ? "provider/" + group.id : group.id; }
};

/// As a claim's status has it: the provider's own, or "machine:///NAMESPACE/NAME".
std::string provider_id_of(const autoscaler::Instance& machine);

/// Whose machines of a group are.
struct GroupBalance {
  const MachineGroup* of = nullptr;
  std::vector<const NodeClaim*> waiting;  ///< Launched, without a machine; those that are to stay first, then the older ones.
  std::vector<std::pair<const NodeClaim*, const autoscaler::Instance*>> taking;  ///< Claims and the machines that came for them.
  std::int64_t coming = 0;                                                       ///< Machines that are asked for, and not there yet.
  /// For how many more claims there would be a machine.
  [[nodiscard]] std::int64_t supply() const;
  /// Those of `waiting` that take none now.
  [[nodiscard]] std::vector<const NodeClaim*> left() const;
};
/// By group's id. A claim takes a machine that is nobody's and has no node yet, or one that is younger than the claim's launch: who stands
/// there for longer was wanted by somebody else. Holds until the cache's next change.
std::map<std::string, GroupBalance> balances(PoolsCache& cache);

/// The catalogue with the types of all groups. One is called as its template's node.kubernetes.io/instance-type, and as the group where
/// that name is taken. An hour costs what the provider or the annotation says, else what the catalogue does for a type of that name, else
/// what such sizes usually cost. `notes`: groups that are left out, and why.
Catalogue with_machines(Catalogue base, PoolsCache& cache, std::vector<std::string>* notes = nullptr);

}  // namespace berth::pools
