// Fleet: NUMA nodes of its nodes, by an annotation (numa.h).
#include "base/log.h"
#include "node/simulated/fleet_state.h"

namespace berth::node::simulated {

void Fleet::see_numa(const NodeRef& node, const json::Value& document) {
  const std::string_view text = json::get_string(document, {"metadata", "annotations", kNumaAnnotation});
  if (node->numa.annotation == text) return;
  node->numa.annotation = text;
  node->numa.part.reset();
  if (text.empty()) return;
  const auto from = parse_numa(text);
  const NodeTemplate& t = *node->spec.node_template;
  auto part = from ? NumaPart::make(*from, t.capacity, t.allocatable.empty() ? t.capacity : t.allocatable)
                   : Result<NumaPart>(std::unexpected(from.error()));
  if (!part) return log::warning("nodes", "node {}: {}: {}", node->spec.name, kNumaAnnotation, part.error().message);
  node->numa.part = std::move(*part);
  // Pods that were here first have theirs in the order of their names.
  if (documents_)
    for (const std::string& uid : active_pods(*node))
      if (const PodSimulation* pod = find_pod(uid))
        if (const auto known = documents_(pod->spec().ns, pod->spec().name)) (void)refuse_by_numa(*node, *known);
  numa_changed(node);
}

void Fleet::numa_changed(const NodeRef& node) {
  if (!node->numa.part || node->is_removed) return;
  node->numa.is_dirty = true;
  enqueue(node);
}

std::set<std::string> Fleet::active_pods(const Node& node) const {
  std::set<std::string> out;
  for (const std::string_view uid : node.pods)
    if (const auto pod = pods_.find(uid); pod != pods_.end() && !pod->second->sim.is_terminal()) out.emplace(uid);
  return out;
}

std::optional<Refusal> Fleet::refuse_by_numa(Node& node, const json::Value& pod) {
  return node.numa.part ? node.numa.part->admit(pod, active_pods(node)) : std::nullopt;
}

std::optional<Write> Fleet::topology_write(Node& node, TimePoint now) {
  if (!node.numa.part || !node.numa.is_dirty || node.numa.not_before > now) return std::nullopt;
  node.numa.is_dirty = false;
  node.numa.part->keep_only(active_pods(node));
  std::string document = node.numa.part->document(node.spec.name, node.uid);
  if (document == node.numa.told) return std::nullopt;
  node.numa.told = document;
  return Write{Write::Kind::kNodeTopology, "", node.spec.name, node.uid, std::move(document)};
}

}  // namespace berth::node::simulated
