#include "placement/heap_bytes.h"

#include "placement/cluster.h"

namespace berth::placement {

std::size_t heap_bytes(const model::Labels& labels) { return heap_bytes(labels.pairs()); }
std::size_t heap_bytes(const model::Requirement& requirement) { return heap_bytes(requirement.key, requirement.values); }
std::size_t heap_bytes(const model::Selector& selector) { return heap_bytes(selector.requirements()); }
std::size_t heap_bytes(const AffinityTerm& term) {
  return heap_bytes(term.namespaces, term.namespace_selector, term.selector, term.topology_key);
}
std::size_t heap_bytes(const model::PodAffinityTerm& term) {
  return heap_bytes(term.selector, term.selector_error, term.namespaces, term.namespace_selector, term.topology_key);
}
std::size_t heap_bytes(const model::WeightedPodAffinityTerm& weighted) { return heap_bytes(weighted.term); }
std::size_t heap_bytes(const model::NodeSelectorTerm& term) { return heap_bytes(term.expressions, term.fields, term.errors); }
std::size_t heap_bytes(const model::PreferredSchedulingTerm& weighted) { return heap_bytes(weighted.preference); }
std::size_t heap_bytes(const model::Toleration& toleration) {
  return heap_bytes(toleration.key, toleration.op, toleration.value, toleration.effect);
}
std::size_t heap_bytes(const model::OwnerReference& owner) { return heap_bytes(owner.api_version, owner.kind, owner.name, owner.uid); }
std::size_t heap_bytes(const model::TopologySpreadConstraint& constraint) {
  return heap_bytes(constraint.topology_key, constraint.selector, constraint.selector_error, constraint.match_label_keys);
}
std::size_t heap_bytes(const model::HostPort& port) { return heap_bytes(port.protocol, port.host_ip); }
std::size_t heap_bytes(const model::ContainerView& container) {
  return heap_bytes(container.name, container.image, container.requests, container.limits, container.host_ports);
}
std::size_t heap_bytes(const model::ContainerResourceStatus& status) { return heap_bytes(status.name, status.requests, status.allocated); }
std::size_t heap_bytes(const model::VolumeView& volume) {
  return heap_bytes(volume.name, volume.id, volume.disk_uri, volume.pool, volume.monitors, volume.target_portal);
}
std::size_t heap_bytes(const model::PodResourceClaim& claim) {
  return heap_bytes(claim.name, claim.claim_name, claim.template_name, claim.made_name);
}
std::size_t heap_bytes(const model::ObjectMeta& meta) {
  return heap_bytes(meta.ns, meta.name, meta.uid, meta.labels, meta.annotations, meta.owner_references, meta.creation_timestamp);
}
std::size_t heap_bytes(const model::PodView& pod) {
  return heap_bytes(pod.meta, pod.scheduling_gates, pod.containers, pod.init_containers, pod.overhead, pod.container_statuses) +
         heap_bytes(pod.node_selector, pod.node_affinity.preferred) +
         (pod.node_affinity.required ? heap_bytes(pod.node_affinity.required->terms) : 0) +
         heap_bytes(pod.required_affinity, pod.required_anti_affinity, pod.preferred_affinity, pod.preferred_anti_affinity) +
         heap_bytes(pod.tolerations, pod.spread_constraints, pod.volumes, pod.resource_claims, pod.required_features);
}

std::size_t PodInfo::count_bytes() const {
  return sizeof(PodInfo) + sizeof(model::PodView) + heap_bytes(*pod) + heap_bytes(key, images, host_ports) +
         heap_bytes(required_affinity, required_anti_affinity, preferred_affinity, preferred_anti_affinity);
}

}  // namespace berth::placement
