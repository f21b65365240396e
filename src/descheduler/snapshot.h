// The cluster as one descheduling cycle sees it. A value: no I/O, no clock.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "placement/cluster.h"
#include "placement/groups/pod_groups.h"
#include "placement/read_pod.h"

namespace berth::descheduler {

using Pod = placement::ReadPod;  ///< Of all pods, with their status.
using PodPtr = placement::ReadPodPtr;
using model::ContainerState, model::PodCondition;
/// The pod asks that others go first.
bool prefers_no_eviction(const Pod& pod);

/// Amounts by resource: cpu in thousandths, everything else in whole units.
using Amounts = std::map<std::string, std::int64_t, std::less<>>;

/// Reads one quantity in the units of Amounts.
std::int64_t amount_of(std::string_view resource, const model::Quantity& quantity);
/// What the pod requests, without "pods".
Amounts requests_of(const placement::PodInfo& pod);
/// A node's allocatable, or its capacity when it has none.
Amounts capacity_of(const model::NodeView& node);
bool is_ready(const model::NodeView& node);
/// When Ready last became what it is, where the node says so.
std::optional<TimePoint> ready_changed(const model::NodeView& node);

struct Snapshot {
  placement::Cluster cluster;
  std::map<std::string, PodPtr, std::less<>> pods;                        ///< By "namespace/name". The next two are made of it by finish.
  std::map<std::string, std::vector<PodPtr>, std::less<>> pods_by_node;   ///< Finished pods too; each in order of namespace and name.
  std::map<std::string, std::vector<PodPtr>, std::less<>> pods_by_owner;  ///< By the owner's uid: of all pods, whether on a node or not.
  /// What the pods that a ReplicaSet, ReplicationController or StatefulSet makes are labelled with, by its uid.
  std::map<std::string, model::Labels, std::less<>> template_labels;
  /// What metrics.k8s.io says; empty when it was not asked.
  std::map<std::string, Amounts, std::less<>> node_usage;
  std::map<std::string, Amounts, std::less<>> pod_usage;  ///< By "namespace/name".
  /// What Prometheus says of nodes, in whole percent by node, or why it says nothing; by the query.
  std::map<std::string, Result<Amounts>, std::less<>> queried_usage;

  std::map<std::string, placement::PodGroupPtr, std::less<>> groups;       ///< PodGroups by "namespace/name".
  std::map<std::string, std::vector<PodPtr>, std::less<>> members_placed;  ///< Of each: those on nodes that have not ended. Made by finish.

  explicit Snapshot(placement::Era era = placement::Era::k136) : cluster(era) {}
  /// Any kind: what is of no use is ignored. Call finish when all are in.
  void add(const json::Value& object);
  /// Read before, perhaps for an earlier snapshot of the same era.
  void add(PodPtr pod);
  void add(model::NodeViewPtr node) { cluster.upsert_node(std::move(node)); }
  void finish();
  /// The labels of the pod's replacement; nullopt when nothing is known but its own.
  [[nodiscard]] std::optional<model::Labels> replacement_labels(const model::PodView& pod) const;
  /// A NodeMetrics or PodMetrics of metrics.k8s.io.
  void add_usage(const json::Value& metrics);
};

/// Pods and nodes as they were read for the last snapshot: between two cycles most do not change. By uid, with the revision that was read.
class ReadObjects {
 public:
  /// The object of this text, read now where it is not known. Whoever reads a list asks for all that is in it.
  PodPtr pod(std::string_view text, placement::Era era);
  model::NodeViewPtr node(std::string_view text);
  /// Forgets what was not asked for since the last call.
  void forget_others();

 private:
  template <typename T>
  struct Known {
    std::unordered_map<std::string, std::pair<std::string, T>> before, asked;
    template <typename Read>
    T get(std::string_view text, const Read& read);
  };
  Known<PodPtr> pods_;
  Known<model::NodeViewPtr> nodes_;
};

}  // namespace berth::descheduler
