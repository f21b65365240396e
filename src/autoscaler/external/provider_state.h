// What an external provider says there is, read and checked. Pure but for the calls, which are asked of a function.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscaler/options.h"
#include "autoscaler/provider.h"
#include "base/error.h"
#include "base/json.h"

namespace berth::autoscaler::external {

/// Asks the provider: a method's short name ("NodeGroups") and its request. Errors as Channel::call's.
using Ask = std::function<Result<json::Value>(std::string_view method, const json::Value& request)>;

/// A node of the cluster, as the protocol knows it.
struct KnownNode {
  std::string name, provider_id;
  json::Value labels, annotations;  ///< Objects of strings.
  bool is_ready = false;
};
/// ExternalGrpcNode.
json::Value to_message(const KnownNode& node);

/// One of the pods that wait for the same, as the protocol is asked what they cost.
struct KnownPod {
  std::string shape;  ///< shape_of
  json::Value document;
};

/// What is remembered between readings.
struct Memory {
  std::map<std::string, std::string> group_of;  ///< Provider ids that were listed, and where.
  /// By group, with its devices: for when it is asked again and does not answer.
  std::map<std::string, std::pair<model::NodeViewPtr, Slices>> templates;
  std::set<std::string> removed;               ///< Machines that were deleted, while their nodes are there.
  std::map<std::string, std::string> answers;  ///< Of NodeGroupForNode, by name and provider id.
  std::set<std::string> missing_methods;       ///< That the provider does not have.
  std::optional<std::string> gpu_label;        ///< With its values, asked once, as the real one does.
  std::set<std::string> gpu_types;
};

/// Asks everything anew: Refresh, the groups, of each its size, machines, options and template, and of nodes that nobody lists whose they
/// are. What does not come, or cannot be, leaves its group out and is told: a size below what is listed or below zero, or above both what
/// is listed and the maximum, bounds that cross, a machine in two groups, a ready node that was listed and is no more. What `pods` cost is
/// asked with the expander price. Several calls without an answer end the reading.
ProviderState read_state(const Ask& ask, const std::vector<KnownNode>& nodes, const Options& options, TimePoint now, Memory& memory,
                         const std::vector<KnownPod>& pods = {});

}  // namespace berth::autoscaler::external
