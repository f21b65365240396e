#include "scheduler/hints.h"

#include <algorithm>
#include <array>
#include <map>

#include "model/quantity.h"
#include "model/topology_labels.h"
#include "placement/node_match.h"
#include "placement/plugins/pod_topology_spread.h"
#include "placement/plugins/volumes.h"

namespace berth::scheduler {
namespace {

using enum ClusterEvent;
using model::NodeView;
using model::VolumeView;
using placement::AffinityTerm;
using placement::PodInfo;
using placement::Resource;

bool is_node_update(const Change& change) { return change.node != nullptr && change.node_before != nullptr; }
bool is_of_the_pod_itself(const PodInfo& pending, const Change& change) {
  return change.pod != nullptr && change.pod->view().meta.uid == pending.view().meta.uid;
}

bool always(const HintContext&, const PodInfo&, const Change&) { return true; }

// -- Resources.

/// The request would fit on the node if nothing else were there.
bool fits_empty_node(const Resource& wanted, const Resource& room) {
  if (room.allowed_pods < 1 || wanted.cpu_milli > room.cpu_milli || wanted.memory_bytes > room.memory_bytes ||
      wanted.ephemeral_storage_bytes > room.ephemeral_storage_bytes)
    return false;
  return std::ranges::all_of(wanted.scalars, [&](const auto& one) { return one.second <= room.scalar(one.first); });
}

/// `more` has more than `less` of something that the pod asks for.
bool has_more_of(const Resource& wanted, const Resource& less, const Resource& more) {
  if ((wanted.cpu_milli > 0 && more.cpu_milli > less.cpu_milli) || (wanted.memory_bytes > 0 && more.memory_bytes > less.memory_bytes) ||
      (wanted.ephemeral_storage_bytes > 0 && more.ephemeral_storage_bytes > less.ephemeral_storage_bytes))
    return true;
  return std::ranges::any_of(wanted.scalars,
                             [&](const auto& one) { return one.second != 0 && more.scalar(one.first) > less.scalar(one.first); });
}

bool node_resources_fit(const HintContext&, const PodInfo& pending, const Change& change) {
  const Resource& wanted = pending.wanted();
  if (change.event == kNodeTaints) return true;
  if (change.node != nullptr) {
    const Resource room = Resource::from_list(change.node->allocatable);
    if (!fits_empty_node(wanted, room)) return false;
    if (change.node_before == nullptr) return true;
    const Resource before = Resource::from_list(change.node_before->allocatable);
    return room.allowed_pods > before.allowed_pods || has_more_of(wanted, before, room);
  }
  if (change.event == kAssignedPodResized && change.pod != nullptr && change.pod_before != nullptr)
    return has_more_of(wanted, change.pod->request.total, change.pod_before->request.total);
  return true;
}

// -- One node's properties.

bool node_affinity(const HintContext& context, const PodInfo& pending, const Change& change) {
  if (change.event == kNodeTaints || change.node == nullptr) return true;
  const auto& added = context.profile.args.added_affinity;
  if (added && added->required && !added->required->matches(change.node->labels(), change.node->name())) return false;
  if (!pending.view().matches_node_selector(change.node->labels(), change.node->name())) return false;
  return change.node_before == nullptr || !pending.view().matches_node_selector(change.node_before->labels(), change.node_before->name());
}

bool taint_toleration(const HintContext&, const PodInfo& pending, const Change& change) {
  constexpr std::array<std::string_view, 2> kKeepAway = {"NoSchedule", "NoExecute"};
  if (change.node == nullptr) return true;
  const auto is_kept_away = [&](const NodeView& node) {
    return placement::find_untolerated_taint(node.taints, pending.view().tolerations, kKeepAway) != nullptr;
  };
  return (change.node_before == nullptr || is_kept_away(*change.node_before)) && !is_kept_away(*change.node);
}

bool node_unschedulable(const HintContext&, const PodInfo& pending, const Change& change) {
  if (change.node != nullptr) return !change.node->unschedulable && (change.node_before == nullptr || change.node_before->unschedulable);
  const model::Taint cordon{"node.kubernetes.io/unschedulable", "", "NoSchedule"};
  return std::ranges::any_of(pending.view().tolerations, [&](const auto& one) { return one.tolerates(cordon); });
}

bool node_declared_features(const HintContext&, const PodInfo& pending, const Change& change) {
  if (change.node != nullptr)
    return change.event == kNodeTaints || change.node_before == nullptr ||
           change.node_before->declared_features != change.node->declared_features;
  return change.pod_before == nullptr || change.pod == nullptr ||
         (is_of_the_pod_itself(pending, change) && change.pod_before->view().required_features != change.pod->view().required_features);
}

bool node_ports(const HintContext&, const PodInfo& pending, const Change& change) {
  if (change.pod == nullptr && change.pod_before == nullptr) return true;
  const PodInfo& gone = change.pod_before != nullptr ? *change.pod_before : *change.pod;
  return std::ranges::any_of(gone.host_ports, [&](const auto& used) {
    return std::ranges::any_of(pending.host_ports, [&](const auto& wanted) {
      return used.port == wanted.port && used.protocol == wanted.protocol &&
             (used.host_ip == wanted.host_ip || used.host_ip == "0.0.0.0" || wanted.host_ip == "0.0.0.0");
    });
  });
}

// -- Other pods.

bool matches(const HintContext& context, const AffinityTerm& term, const PodInfo& pod) {
  return term.matches(pod.view(), context.cluster.namespace_labels(pod.view().ns()));
}
bool matches_all(const HintContext& context, const std::vector<AffinityTerm>& terms, const PodInfo& pod) {
  return !terms.empty() && std::ranges::all_of(terms, [&](const auto& term) { return matches(context, term, pod); });
}
bool matches_any(const HintContext& context, const std::vector<AffinityTerm>& terms, const PodInfo& pod) {
  return std::ranges::any_of(terms, [&](const auto& term) { return matches(context, term, pod); });
}

bool affinity_after_node(const HintContext& context, const PodInfo& pending, const Change& change) {
  if (change.node == nullptr || change.event == kNodeTaints) return true;
  const auto label = [](const NodeView* node, const std::string& key) { return node != nullptr ? node->labels().get(key) : nullptr; };
  for (const AffinityTerm& term : pending.required_affinity) {
    const std::string* before = label(change.node_before, term.topology_key);
    const std::string* now = label(change.node, term.topology_key);
    if (now != nullptr && (before == nullptr || *before != *now)) return true;
  }
  for (const AffinityTerm& term : pending.required_anti_affinity) {
    if (change.node_before == nullptr) return true;
    const std::string* before = label(change.node_before, term.topology_key);
    const std::string* now = label(change.node, term.topology_key);
    if (before != nullptr && (now == nullptr || *before != *now)) return true;
  }
  // Pods that are there may keep this one off; kube-scheduler's hint forgets them.
  return context.cluster.required_anti_affinity_pods() > 0;
}

bool inter_pod_affinity(const HintContext& context, const PodInfo& pending, const Change& change) {
  if (change.node != nullptr || change.node_before != nullptr) return affinity_after_node(context, pending, change);
  if (change.event == kNamespaces) {
    const auto selects = [](const AffinityTerm& term) { return term.namespace_selector.has_value(); };
    return std::ranges::any_of(pending.required_affinity, selects) || std::ranges::any_of(pending.required_anti_affinity, selects) ||
           context.cluster.required_anti_affinity_pods() > 0;
  }
  if (is_of_the_pod_itself(pending, change)) return true;
  if (change.pod != nullptr && change.pod_before != nullptr)
    return (!matches_all(context, pending.required_affinity, *change.pod_before) &&
            matches_all(context, pending.required_affinity, *change.pod)) ||
           (matches_any(context, pending.required_anti_affinity, *change.pod_before) &&
            !matches_all(context, pending.required_anti_affinity, *change.pod)) ||
           // It has left the last group that was wanted near: the first of its own group may go anywhere. Or it keeps others off.
           (matches_all(context, pending.required_affinity, *change.pod_before) &&
            !matches_all(context, pending.required_affinity, *change.pod));
  if (change.pod != nullptr) return matches_all(context, pending.required_affinity, *change.pod);
  if (change.pod_before == nullptr) return true;
  return matches_any(context, pending.required_anti_affinity, *change.pod_before) ||
         matches_any(context, change.pod_before->required_anti_affinity, pending) ||
         matches_all(context, pending.required_affinity, *change.pod_before);
}

bool spread_after_node(const std::vector<placement::SpreadConstraint>& constraints, const Change& change) {
  const auto has_all_keys = [&](const NodeView* node) {
    return node != nullptr &&
           std::ranges::all_of(constraints, [&](const auto& one) { return node->labels().get(one.topology_key) != nullptr; });
  };
  const bool was_counted = has_all_keys(change.node_before), is_counted = has_all_keys(change.node);
  if (!is_node_update(change)) return change.node != nullptr ? is_counted : was_counted;
  if (was_counted != is_counted) return true;
  return is_counted && (change.node_before->taints != change.node->taints || std::ranges::any_of(constraints, [&](const auto& one) {
                          return *change.node_before->labels().get(one.topology_key) != *change.node->labels().get(one.topology_key);
                        }));
}

bool pod_topology_spread(const HintContext& context, const PodInfo& pending, const Change& change) {
  const bool is_about_node = change.node != nullptr || change.node_before != nullptr;
  const bool is_own = is_of_the_pod_itself(pending, change);
  for (const PodInfo* pod : {change.pod_before, change.pod})
    if (pod != nullptr && !is_own && pod->view().ns() != pending.view().ns()) return false;
  const auto constraints =
      placement::spread_constraints(pending.view(), context.cluster, context.profile.args.spread, context.cluster.era(), true).list;
  if (is_about_node) return spread_after_node(constraints, change);
  const auto counts = [&](const auto& constraint, const PodInfo& pod) { return constraint.selector.matches(pod.view().meta.labels); };
  if (change.pod != nullptr && change.pod_before != nullptr) {
    if (change.event == kOwnTolerations) return std::ranges::any_of(constraints, [](const auto& one) { return one.honor_taints; });
    return std::ranges::any_of(constraints, [&](const auto& one) { return counts(one, *change.pod_before) != counts(one, *change.pod); });
  }
  const PodInfo* pod = change.pod != nullptr ? change.pod : change.pod_before;
  return pod == nullptr || std::ranges::any_of(constraints, [&](const auto& one) { return counts(one, *pod); });
}

// -- Volumes.

/// The claim of the event is one of the pod's.
bool is_own_claim(const PodInfo& pending, const Change& change, bool ephemeral_too) {
  if (change.object == nullptr || json::get_string(*change.object, {"metadata", "namespace"}) != pending.view().ns()) return false;
  const std::string_view name = json::get_string(*change.object, {"metadata", "name"});
  return std::ranges::any_of(pending.view().volumes, [&](const VolumeView& volume) {
    const auto use = placement::volumes::claim_use(pending.view(), volume);
    return use.uses_claim && (ephemeral_too || !use.is_ephemeral) && use.name == name;
  });
}
bool differs(const Change& change, std::initializer_list<std::string_view> path) {
  const json::Value* before = json::find(*change.object_before, path);
  const json::Value* now = json::find(*change.object, path);
  return (before == nullptr) != (now == nullptr) || (before != nullptr && *before != *now);
}
bool is_object_update(const Change& change) { return change.object != nullptr && change.object_before != nullptr; }

/// A size that the capacity offers for one volume, in bytes; -1 for none known.
double volume_limit(const json::Value& capacity) {
  for (const std::string_view field : {"maximumVolumeSize", "capacity"})
    if (const json::Value* found = json::find(capacity, {field}); found != nullptr && found->is_string())
      if (const auto quantity = model::Quantity::parse(std::string_view(found->get_string()))) return quantity->as_double();
  return -1;
}

bool volume_binding(const HintContext&, const PodInfo& pending, const Change& change) {
  switch (change.event) {
    case kClaim:
      return is_own_claim(pending, change, true);
    case kStorageClass:
      return !is_object_update(change) || differs(change, {"allowedTopologies"});
    case kCsiNode:
      return !is_object_update(change) || differs(change, {"metadata", "annotations", "storage.alpha.kubernetes.io/migrated-plugins"});
    case kCsiDriver: {
      if (!is_object_update(change)) return false;
      const auto tracks = [](const json::Value& driver) {
        const json::Value* found = json::find(driver, {"spec", "storageCapacity"});
        return found != nullptr && found->is_bool() && found->get_bool();
      };
      // kube-scheduler looks for inline volumes alone; claims of the driver's classes gain by it as well.
      return tracks(*change.object_before) && !tracks(*change.object);
    }
    case kCsiStorageCapacity:
      return !is_object_update(change) || volume_limit(*change.object) > volume_limit(*change.object_before);
    default:
      return true;
  }
}

bool volume_zone(const HintContext&, const PodInfo& pending, const Change& change) {
  switch (change.event) {
    case kClaim:
      return is_own_claim(pending, change, false);
    case kStorageClass:
      return !is_object_update(change) && change.object != nullptr &&
             json::get_string(*change.object, {"volumeBindingMode"}) == "WaitForFirstConsumer";
    case kPersistentVolume:
      return !is_object_update(change) || std::ranges::any_of(model::kTopologyLabels, [&](const model::LabelGenerations& keys) {
        return differs(change, {"metadata", "labels", keys.present}) || differs(change, {"metadata", "labels", keys.old});
      });
    default:
      return true;
  }
}

bool uses_any_claim(const PodInfo& pod) {
  return std::ranges::any_of(pod.view().volumes,
                             [&](const VolumeView& volume) { return placement::volumes::claim_use(pod.view(), volume).uses_claim; });
}

bool volume_restrictions(const HintContext&, const PodInfo& pending, const Change& change) {
  if (change.event == kClaim) return !is_object_update(change) && is_own_claim(pending, change, false);
  if (change.pod_before == nullptr) return true;
  const PodInfo& gone = *change.pod_before;
  if (gone.view().ns() != pending.view().ns()) return false;
  return std::ranges::any_of(gone.view().volumes, [&](const VolumeView& used) {
    return std::ranges::any_of(pending.view().volumes, [&](const VolumeView& wanted) {
      if (used.kind != wanted.kind) return false;
      const bool is_claim = used.kind == VolumeView::Kind::kPersistentVolumeClaim;
      return is_claim ? used.id == wanted.id : placement::volumes::conflict(wanted, used);
    });
  });
}

bool node_volume_limits(const HintContext&, const PodInfo& pending, const Change& change) {
  switch (change.event) {
    case kClaim:
      return !is_object_update(change) && is_own_claim(pending, change, true);
    case kCsiNode: {
      if (!is_object_update(change)) return true;
      std::map<std::string, std::int64_t, std::less<>> before;
      const auto view = model::CsiNodeView::parse(*change.object_before);
      for (const auto& driver : view.drivers) before[driver.name] = driver.count.value_or(0);
      return std::ranges::any_of(model::CsiNodeView::parse(*change.object).drivers,
                                 [&](const auto& driver) { return driver.count.value_or(0) > before[driver.name]; });
    }
    case kAssignedPodDeleted:
      return change.pod_before == nullptr || std::ranges::any_of(change.pod_before->view().volumes, [&](const VolumeView& volume) {
               return placement::volumes::claim_use(change.pod_before->view(), volume).uses_claim ||
                      !placement::volumes::in_tree_plugin(volume).empty();
             });
    case kVolumeAttachmentDeleted:
      return uses_any_claim(pending) || std::ranges::any_of(pending.view().volumes, [](const VolumeView& volume) {
               return !placement::volumes::in_tree_plugin(volume).empty();
             });
    default:
      return true;
  }
}

}  // namespace

Hint hint_of(std::string_view plugin) {
  static const std::map<std::string_view, Hint> table = {{"NodeResourcesFit", node_resources_fit},
                                                         {"NodeAffinity", node_affinity},
                                                         {"TaintToleration", taint_toleration},
                                                         {"NodeUnschedulable", node_unschedulable},
                                                         {"NodeDeclaredFeatures", node_declared_features},
                                                         {"NodePorts", node_ports},
                                                         {"InterPodAffinity", inter_pod_affinity},
                                                         {"PodTopologySpread", pod_topology_spread},
                                                         {"VolumeBinding", volume_binding},
                                                         {"VolumeZone", volume_zone},
                                                         {"VolumeRestrictions", volume_restrictions},
                                                         {"NodeVolumeLimits", node_volume_limits}};
  const auto found = table.find(plugin);
  return found == table.end() ? always : found->second;
}

}  // namespace berth::scheduler
