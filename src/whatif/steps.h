// The changes that a question can make, each applied to a world and settled. An error says what is wrong with the change and what was meant
// perhaps; the world is of no use then.
#pragma once
#include <string>
#include <vector>

#include "base/config_reader.h"
#include "whatif/world.h"

namespace berth::whatif {

/// The nodes that a NODES of a question means, in order of name: names, KEY=VALUE of labels, or a list of these.
Result<std::vector<std::string>> choose_nodes(const World& world, const json::Value& which);
/// The label that people mean by "zone", "region", "hostname", "type" or "arch" where no node has a label of just that key.
std::string label_meant(const World& world, std::string_view key);
/// "node-7", "3 nodes", for reasons.
std::string words_of(const std::vector<std::string>& nodes);

// Nodes.
void cordon(World& world, const std::vector<std::string>& nodes, bool is_cordoned);
void drain(World& world, const std::vector<std::string>& nodes);
void fail_nodes(World& world, const std::vector<std::string>& nodes);
void remove_nodes(World& world, const std::vector<std::string>& nodes);
Result<void> add_nodes(World& world, const json::Value& change);
Result<void> label_nodes(World& world, const std::vector<std::string>& nodes, const json::Value& labels);
Result<void> taint_nodes(World& world, const std::vector<std::string>& nodes, const json::Value& taints);
Result<void> set_allocatable(World& world, const std::vector<std::string>& nodes, const json::Value& resources);
/// DaemonSets put their pods on nodes where they belong by now, and take them from others.
void keep_daemons(World& world, const std::vector<std::string>& nodes);

/// A node of the shape ("m5.2xlarge", "node-7", "cpu=8,memory=32Gi", an object), without a name. The error names what is known.
struct Shape {
  model::NodeViewPtr node;
  std::string name;                ///< Short, for names of nodes: "m5.2xlarge".
  std::string like;                ///< The node that it is like; empty for one that was described.
  std::vector<std::string> zones;  ///< Where such nodes come, in turn; empty: nobody has zones.
};
Result<Shape> shape_of(const World& world, const json::Value& shape);
/// Adds one; its name is new. DaemonSets have not seen it yet.
std::string add_node(World& world, const Shape& shape, const std::string& zone);

// Workloads.
Result<void> apply(World& world, const json::Value& object);
Result<void> scale(World& world, const std::string& name, const std::string& kind, std::int64_t replicas);
Result<void> remove(World& world, const std::string& what);
Result<void> evict_pod(World& world, const std::string& name);
/// In place. An empty container: the only one, or the pod as a whole where its own requests say what it may have.
Result<void> resize_pod(World& world, const std::string& name, const std::string& container, const json::Value& requests);
/// "namespace/name" of the pod that NAME or NAMESPACE/NAME means; the error names what was meant perhaps.
Result<std::string> running_pod(const World& world, const std::string& name);

}  // namespace berth::whatif
