// Pools, claims and the cluster as what a pass decides on, from documents. Pure: told of objects, no I/O.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autoscaler/cluster_cache.h"
#include "pools/consolidate.h"
#include "pools/machines.h"

namespace berth::autoscaler {
struct ProviderState;
}

namespace berth::pools {

/// The kinds of karpenter.sh and ours by name; the rest is autoscaler::ClusterCache's.
class PoolsCache {
 public:
  explicit PoolsCache(placement::Era era = placement::Era::k136) : cache_(era) {}
  /// Any object; kinds that do not matter are ignored.
  void upsert(const json::Value& object);
  void upsert_pod(client::ObjectRef pod) {
    ++version_;
    cache_.upsert_pod(std::move(pod));
  }
  void remove(std::string_view kind, std::string_view ns, std::string_view name);

  /// Another one after each change.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  [[nodiscard]] autoscaler::ClusterCache& cluster() { return cache_; }
  [[nodiscard]] const std::map<std::string, NodePool>& pools() const { return pools_; }
  [[nodiscard]] const std::map<std::string, NodeClaim>& claims() const { return claims_; }
  /// Null when there is none of that name, or of no kind that makes nodes here.
  [[nodiscard]] const json::Value* node_class(const NodeClassRef& ref) const;
  /// Of the MachineNodeClasses: none where there is no such class. Holds until the next change.
  [[nodiscard]] const std::vector<MachineGroup>& machine_groups();
  /// Why sets that are meant to be some of them are none.
  [[nodiscard]] const std::vector<std::string>& machine_problems() const { return group_problems_; }
  /// What an external provider says; one that is not usable leaves its groups as they were, of which nothing is wanted meanwhile.
  void see_provider(autoscaler::ProviderState state);
  /// Something is asked of the provider: what it said last holds no more.
  void outdate_provider();
  /// The node of the claim, whether it knows it already or not; empty: there is none yet.
  [[nodiscard]] std::string node_name_of(const NodeClaim& claim);
  /// By name; null when there is none.
  [[nodiscard]] const json::Value* node(const std::string& name) const;
  [[nodiscard]] const std::map<std::string, json::Value>& nodes() const { return nodes_; }
  [[nodiscard]] const json::Value* pool_document(const std::string& name) const;

 private:
  std::uint64_t version_ = 0;
  autoscaler::ClusterCache cache_;
  std::map<std::string, NodePool> pools_;
  std::map<std::string, NodeClaim> claims_;
  std::map<std::string, json::Value> node_classes_;  ///< By "kind/name".
  std::map<std::string, json::Value> nodes_, pool_documents_;
  std::vector<autoscaler::NodeGroup> provider_groups_;
  bool is_provider_current_ = false;
  std::vector<MachineGroup> groups_;
  std::vector<std::string> group_problems_;
  std::uint64_t groups_version_ = UINT64_MAX;
};

/// One pass's view: a trial in which every claim that is on its way is a node already, and nodes that go are none.
struct PoolsView {
  std::vector<NodePool> pools;  ///< Usable ones, by name.
  ProvisionInput provision;     ///< `waiting` are the pods that the scheduler refused.
  std::vector<OwnedNode> owned;
  std::vector<std::string> notes;  ///< What is wrong, for people.
  /// Waiting pods for which a node group of the ClusterAutoscaler grows, or may grow.
  std::vector<placement::PodInfoPtr> left_to_groups;
  std::unique_ptr<placement::Trial> trial;
  /// To be asked with; holds while this stands where it is.
  [[nodiscard]] const ProvisionInput& input() {
    provision.pools = &pools;
    return provision;
  }
};
/// What `cache` and `catalogue` hold must outlive it. `every_pod`: pods that no scheduler has looked at count as waiting too (files).
PoolsView view_of(PoolsCache& cache, const Catalogue& catalogue, const placement::Profiles& profiles, const Unavailable& unavailable,
                  TimePoint now, bool every_pod);

/// In which way the claim is not as its pool would make it now; empty: it is.
std::string drift_of(const NodeClaim& claim, const NodePool& pool);

}  // namespace berth::pools
