// Workloads as their controllers see them: which pods they have, which they would make, which they would give up first.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "whatif/world.h"

namespace berth::whatif {

/// One ReplicaSet, or what its pods tell of one that is not known; or what has pods directly.
struct PodSet {
  std::string kind, name, uid;
  const json::Value* document = nullptr;  ///< Null: known by its pods alone.
};

/// What has a scale.
struct Workload {
  std::string kind, ns, name;
  const json::Value* document = nullptr;  ///< Null: a Deployment known by its pods alone.
  std::vector<PodSet> sets;               ///< Oldest first; those of a Deployment, else itself.
  std::size_t newest = 0;                 ///< Into sets: whose template is the present one. sets.size(): none has it.
  [[nodiscard]] std::string key() const { return ns + "/" + name; }
};

/// "Deployment" for "deploy", "deployments.apps", "Deployment"; empty for an unknown word.
std::string kind_meant(std::string_view word);
/// KIND/NAMESPACE/NAME, KIND/NAME, NAMESPACE/NAME or NAME.
struct ObjectName {
  std::string kind, ns, name;  ///< kind is empty where none was said.
};
ObjectName parse_object_name(std::string_view text, const std::string& default_namespace);

/// The workload that is meant; the error tells near names, or between what is to be chosen.
Result<Workload> find_workload(const World& world, const ObjectName& name);
/// In order of key.
std::vector<std::string> pods_of(const World& world, const PodSet& set);
std::vector<std::string> pods_of(const World& world, const Workload& workload);
/// Those to be deleted first come first, as the ReplicaSet controller picks them. `related`: the pods that count for colocation.
std::vector<std::string> in_order_of_deletion(World& world, const std::vector<std::string>& pods, const std::vector<std::string>& related);

/// Asks the quotas of a namespace: why the API server would refuse a pod; one that it would not counts from here on.
std::function<std::optional<std::string>(const placement::PodInfo&)> quota_of(const World& world, const std::string& ns);
/// Makes `count` pods of the owner's template; they wait. Those that a quota refuses wait for good, and say so.
Result<std::vector<std::string>> make_pods(World& world, const json::Value& owner, std::int64_t count);
/// A pod of the owner's template under this very name.
Result<void> make_pod(World& world, const json::Value& owner, const std::string& name);
/// Pods like this one, where no template is known.
void make_pods_like(World& world, const std::string& pod, std::int64_t count);
/// The claims of a StatefulSet's pod that are not there yet.
void make_claims(World& world, const json::Value& stateful_set, const std::string& pod_name);
/// The number behind SET-; -1 when the pod is not called so.
std::int64_t ordinal_of(std::string_view set, std::string_view pod);

/// Keeps the document as the cluster's state from here on; what placement reads of it counts at once.
void keep_object(World& world, json::Value document);

}  // namespace berth::whatif
