#include "placement/plugins/default_selector.h"

#include <map>

namespace berth::placement {
namespace {

using model::Requirement;
using model::Selector;

void merge_map(std::map<std::string, std::string>& out, const Selector& selector) {
  for (const auto& requirement : selector.requirements())
    if (requirement.op == Requirement::Op::kIn && requirement.values.size() == 1) out[requirement.key] = requirement.values.front();
}

std::vector<Requirement> as_requirements(const std::map<std::string, std::string>& map) {
  std::vector<Requirement> out;
  for (const auto& [key, value] : map) out.push_back({key, Requirement::Op::kIn, {value}});
  return out;
}

void append(std::vector<Requirement>& out, const model::WorkloadView& workload) {
  if (!workload.selector_ok || workload.selector.is_nothing()) return;
  out.insert(out.end(), workload.selector.requirements().begin(), workload.selector.requirements().end());
}

/// Whether 1.20's listers would find the workload for the pod.
bool controls_by_labels(const model::WorkloadView& workload, const model::PodView& pod) {
  if (workload.meta.ns != pod.meta.ns || !workload.selector_ok || pod.meta.labels.empty()) return false;
  return !workload.selector.is_everything() && workload.selector.matches(pod.meta.labels);
}

Selector selector_120(const model::PodView& pod, const Cluster& cluster, std::map<std::string, std::string> labels) {
  for (const auto& [key, controller] : cluster.replication_controllers())
    if (controls_by_labels(*controller, pod)) merge_map(labels, controller->selector);
  auto requirements = as_requirements(labels);
  for (const auto& [key, set] : cluster.replica_sets())
    if (controls_by_labels(*set, pod)) append(requirements, *set);
  for (const auto& [key, set] : cluster.stateful_sets())
    if (controls_by_labels(*set, pod)) append(requirements, *set);
  return Selector(std::move(requirements));
}

const model::WorkloadView* find(const Cluster::Table<model::WorkloadView>& table, const model::PodView& pod, const std::string& name) {
  const auto at = table.find(pod.meta.ns + "/" + name);
  return at == table.end() ? nullptr : at->second.get();
}

}  // namespace

std::vector<std::shared_ptr<const model::ServiceView>> pod_services(const model::PodView& pod, const Cluster& cluster) {
  std::vector<std::shared_ptr<const model::ServiceView>> out;
  const auto& services = cluster.services();
  const std::string prefix = pod.meta.ns + "/";
  for (auto at = services.lower_bound(prefix); at != services.end() && at->first.starts_with(prefix); ++at)
    if (at->second->has_selector && at->second->selector.matches(pod.meta.labels)) out.push_back(at->second);
  return out;
}

Selector default_selector(const model::PodView& pod, const Cluster& cluster, Era era) {
  std::map<std::string, std::string> labels;
  for (const auto& service : pod_services(pod, cluster)) merge_map(labels, service->selector);
  if (era == Era::k120) return selector_120(pod, cluster, std::move(labels));

  const auto* owner = pod.meta.controller();
  if (owner != nullptr && owner->kind == "ReplicationController" && owner->api_version == "v1") {
    if (const auto* controller = find(cluster.replication_controllers(), pod, owner->name)) merge_map(labels, controller->selector);
  }
  auto requirements = as_requirements(labels);
  if (owner != nullptr && owner->kind == "ReplicaSet" && owner->api_version == "apps/v1") {
    if (const auto* set = find(cluster.replica_sets(), pod, owner->name)) append(requirements, *set);
  }
  if (owner != nullptr && owner->kind == "StatefulSet" && owner->api_version == "apps/v1") {
    if (const auto* set = find(cluster.stateful_sets(), pod, owner->name)) append(requirements, *set);
  }
  return Selector(std::move(requirements));
}

std::string zone_key(const model::Labels& labels) {
  const auto* zone = labels.get("failure-domain.beta.kubernetes.io/zone");
  if (zone == nullptr) zone = labels.get("topology.kubernetes.io/zone");
  const auto* region = labels.get("failure-domain.beta.kubernetes.io/region");
  if (region == nullptr) region = labels.get("topology.kubernetes.io/region");
  const bool no_zone = zone == nullptr || zone->empty();
  const bool no_region = region == nullptr || region->empty();
  if (no_zone && no_region) return {};
  return (no_region ? "" : *region) + std::string(":\0:", 3) + (no_zone ? "" : *zone);
}

}  // namespace berth::placement
