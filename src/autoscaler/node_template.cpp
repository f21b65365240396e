#include "autoscaler/node_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace berth::autoscaler {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";

/// Taints that a node has for what happens to it, not for what it is (utils/taints).
bool is_passing(const model::Taint& taint) {
  static constexpr std::string_view kOfConditions[] = {"node.kubernetes.io/not-ready",
                                                       "node.kubernetes.io/unreachable",
                                                       "node.kubernetes.io/unschedulable",
                                                       "node.kubernetes.io/memory-pressure",
                                                       "node.kubernetes.io/disk-pressure",
                                                       "node.kubernetes.io/network-unavailable",
                                                       "node.kubernetes.io/pid-pressure",
                                                       "node.cloudprovider.kubernetes.io/uninitialized",
                                                       "node.cloudprovider.kubernetes.io/shutdown",
                                                       "cloud.google.com/impending-node-termination",
                                                       "NodeWithImpairedVolumes"};
  return taint.key == kToBeDeletedTaint || taint.key == kDeletionCandidateTaint || is_startup_taint(taint.key) ||
         taint.key.starts_with("status-taint.cluster-autoscaler.kubernetes.io/") ||
         std::ranges::find(kOfConditions, taint.key) != std::end(kOfConditions);
}

std::shared_ptr<model::NodeView> cleaned(const model::NodeView& node) {
  auto out = std::make_shared<model::NodeView>(node);
  std::erase_if(out->taints, is_passing);
  out->unschedulable = false;
  out->meta.uid.clear();
  out->meta.annotations.clear();
  out->meta.is_deleting = false;
  return out;
}

/// The first node of the group that works and takes pods, one that has done so for a minute at least or one that has not.
const placement::NodeInfo* sample_node(const NodeGroup& group, const Snapshot& snapshot, bool is_settled, TimePoint now) {
  constexpr auto kStabilization = std::chrono::minutes(1);
  for (const Instance& instance : group.instances) {
    const auto facts = instance.node.empty() || instance.is_leaving ? snapshot.nodes->end() : snapshot.nodes->find(instance.node);
    if (facts == snapshot.nodes->end() || !facts->second.is_working() || facts->second.is_cordoned) continue;
    if ((facts->second.changed + kStabilization < now) != is_settled) continue;
    const placement::NodeInfo* node = snapshot.cluster->find_node(instance.node);
    if (node != nullptr && node->node != nullptr) return node;
  }
  return nullptr;
}

/// With the daemons and mirror pods that run on it.
NodeTemplate template_like(const placement::NodeInfo& node, const Snapshot& snapshot) {
  NodeTemplate out{cleaned(*node.node), {}, {}, true};
  if (const auto* slices = snapshot.slices; slices != nullptr && slices->contains(node.name))
    for (const auto& [name, slice] : slices->find(node.name)->second) out.slices.push_back(slice);
  for (const placement::PodInfoPtr& info : node.pods) {
    const auto pod = snapshot.pods().find(info->key);
    if (pod == snapshot.pods().end() || info->view().meta.is_deleting) continue;
    if (model::counts_as_daemon(pod->second->view().meta) || model::is_mirror(pod->second->view().meta)) out.daemons.push_back(info);
  }
  return out;
}

model::NodeViewPtr named(const model::NodeView& node, const std::string& name) {
  auto out = std::make_shared<model::NodeView>(node);
  out->meta.name = name;
  auto labels = *node.meta.labels.pairs();
  std::erase_if(labels, [](const auto& pair) { return pair.first == kHostname; });
  labels.emplace_back(kHostname, name);
  std::ranges::sort(labels);
  out->meta.labels = model::Labels(std::move(labels));
  return out;
}

placement::PodInfoPtr named(const placement::PodInfo& pod, const std::string& node, placement::Era era) {
  auto view = std::make_shared<model::PodView>(pod.view());
  view->node_name.clear();
  view->nominated_node_name.clear();
  view->phase = "Pending";
  view->start_time.clear();
  view->container_statuses.clear();
  view->pod_level_status.reset();
  view->meta.name += "-" + node;
  view->meta.uid = view->meta.ns + "/" + view->meta.name;
  return placement::PodInfo::make(std::move(view), era);
}

/// The slice as a node of that name would have it, in a pool of its own.
json::Value named(json::Value slice, const std::string& node, std::size_t number) {
  const std::string pool = fmt::format("{}-{}", json::get_string(slice, {"spec", "pool", "name"}), node);
  json::set(slice, {"metadata", "name"}, json::Value(fmt::format("{}-{}", node, number)));
  json::set(slice, {"metadata", "uid"}, json::Value(fmt::format("{}-{}", node, number)));
  json::set(slice, {"spec", "nodeName"}, json::Value(node));
  json::set(slice, {"spec", "pool", "name"}, json::Value(pool));
  return slice;
}

bool within(const model::ResourceList& a, const model::ResourceList& b, double tolerance) {
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a, [&](const auto& entry) {
    const model::Quantity* other = model::find_resource(b, entry.first);
    if (other == nullptr) return false;
    const double one = entry.second.as_double(), two = other->as_double();
    return std::max(one, two) - std::min(one, two) <= std::max(one, two) * tolerance;
  });
}

}  // namespace

NodeTemplate make_template(const NodeGroup& group, const Snapshot& snapshot, const std::function<placement::Trial&()>& base,
                           const NodeTemplate* known, TimePoint now) {
  if (const placement::NodeInfo* node = sample_node(group, snapshot, true, now)) return template_like(*node, snapshot);
  if (known != nullptr && known->is_of_real_node) return *known;
  if (group.template_node == nullptr) {
    const placement::NodeInfo* node = sample_node(group, snapshot, false, now);
    return node == nullptr ? NodeTemplate{} : template_like(*node, snapshot);
  }
  NodeTemplate out{cleaned(*group.template_node), {}, group.template_slices, false};
  if (snapshot.daemons.empty()) return out;
  placement::Trial trial = base().fork();
  const auto index = add_node(trial, out, "template-node-for-" + group.id);
  for (const placement::PodInfoPtr& daemon : snapshot.daemons)
    if (trial.place_on(named(*daemon, "template", snapshot.cluster->era()), index).is_success()) out.daemons.push_back(daemon);
  return out;
}

model::NodeViewPtr node_like(const model::NodeView& node, const std::string& name) { return named(*cleaned(node), name); }

void drop_node(placement::Trial& trial, const std::string& name) {
  const placement::NodeInfo* node = trial.cluster().find_node(name);
  if (node == nullptr) return;
  for (const placement::PodInfoPtr& pod : std::vector<placement::PodInfoPtr>(node->pods)) trial.evict(pod);
  trial.cluster().remove_node(name);
}

placement::NodeIndex add_node(placement::Trial& trial, const NodeTemplate& node_template, const std::string& name) {
  placement::Cluster& cluster = trial.cluster();
  const auto index = cluster.upsert_node(named(*node_template.node, name));
  for (std::size_t i = 0; i < node_template.slices.size(); ++i) (void)cluster.upsert(named(node_template.slices[i], name, i));
  for (const placement::PodInfoPtr& daemon : node_template.daemons) {
    // What was found to fit on the template; a daemon that a node of its own would refuse stays away from it.
    (void)trial.reserve(named(*daemon, name, cluster.era()), index);
  }
  return index;
}

namespace {

/// What daemons leave of the node, of each resource that they or pods in general ask for.
std::map<std::string, double> free_of(const NodeTemplate& one) {
  const placement::Resource all = placement::Resource::from_list(one.node->allocatable);
  placement::Resource used;
  for (const placement::PodInfoPtr& daemon : one.daemons) used.add(daemon->wanted());
  std::map<std::string, double> out = {
      {"cpu", static_cast<double>(all.cpu_milli - used.cpu_milli)},
      {"memory", static_cast<double>(all.memory_bytes - used.memory_bytes)},
      {"ephemeral-storage", static_cast<double>(all.ephemeral_storage_bytes - used.ephemeral_storage_bytes)}};
  for (const auto& [name, amount] : used.scalars) out[name] = static_cast<double>(all.scalar(name) - amount);
  return out;
}

bool are_close(const std::map<std::string, double>& a, const std::map<std::string, double>& b, double tolerance) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& entry) {
           const auto other = b.find(entry.first);
           if (other == b.end()) return false;
           const double larger = std::max(entry.second, other->second), smaller = std::min(entry.second, other->second);
           return larger - smaller <= std::abs(larger) * tolerance;
         });
}

/// How many devices each driver has.
std::map<std::string, std::size_t> devices_of(const NodeTemplate& one) {
  std::map<std::string, std::size_t> out;
  for (const json::Value& slice : one.slices)
    out[std::string(json::get_string(slice, {"spec", "driver"}))] += json::get_array(slice, {"spec", "devices"}).size();
  return out;
}

}  // namespace

bool are_similar(const NodeTemplate& a, const NodeTemplate& b, const std::vector<std::string>& ignored_labels) {
  if (a.node == nullptr || b.node == nullptr) return false;
  constexpr double kMemoryTolerance = 0.015, kAllocatableTolerance = 0.05, kFreeTolerance = 0.05;
  if (a.node->capacity.size() != b.node->capacity.size()) return false;
  for (const auto& [name, quantity] : a.node->capacity) {
    const model::Quantity* other = model::find_resource(b.node->capacity, name);
    if (other == nullptr) return false;
    if (name == "memory" ? !within({{name, quantity}}, {{name, *other}}, kMemoryTolerance) : quantity != *other) return false;
  }
  if (!within(a.node->allocatable, b.node->allocatable, kAllocatableTolerance)) return false;
  if (!are_close(free_of(a), free_of(b), kFreeTolerance) || devices_of(a) != devices_of(b)) return false;
  static constexpr std::string_view kAlwaysDiffer[] = {kHostname,
                                                       "failure-domain.beta.kubernetes.io/zone",
                                                       "failure-domain.beta.kubernetes.io/region",
                                                       "topology.kubernetes.io/zone",
                                                       "topology.kubernetes.io/region",
                                                       "beta.kubernetes.io/fluentd-ds-ready",
                                                       "kops.k8s.io/instancegroup"};
  const auto relevant = [&](const NodeTemplate& one) {
    auto pairs = *one.node->meta.labels.pairs();
    std::erase_if(pairs, [&](const auto& pair) {
      return std::ranges::find(kAlwaysDiffer, pair.first) != std::end(kAlwaysDiffer) ||
             std::ranges::find(ignored_labels, pair.first) != ignored_labels.end();
    });
    return pairs;
  };
  return relevant(a) == relevant(b);
}

}  // namespace berth::autoscaler
