// The controllers that keep the cluster itself in order: owners and dependents, namespaces, accounts, nodes, pods of lost nodes.
#pragma once
#include "controllers/controller.h"

namespace berth::controllers {

/// pkg/controller/garbagecollector: background, foreground and orphan deletion.
ControllerPtr make_garbage_collector();
/// pkg/controller/namespace: empties a namespace that is being deleted, pods first, then lets it go.
ControllerPtr make_namespace_controller();
/// pkg/controller/serviceaccount: the "default" account in every active namespace.
ControllerPtr make_serviceaccount_controller();
/// pkg/controller/certificates/rootcacertpublisher: ConfigMap kube-root-ca.crt in every active namespace.
ControllerPtr make_root_ca_publisher(std::string root_ca_pem);
/// Legacy Secrets of type kubernetes.io/service-account-token get their token, and go with their account.
ControllerPtr make_serviceaccount_token_controller(std::string root_ca_pem);

struct NodeLifecycleOptions {
  Duration monitor_period = std::chrono::seconds(5);         ///< --node-monitor-period
  Duration monitor_grace_period = std::chrono::seconds(50);  ///< --node-monitor-grace-period
  Duration startup_grace_period = std::chrono::seconds(60);  ///< --node-startup-grace-period
  double eviction_rate = 0.1;                                ///< --node-eviction-rate, nodes a second and zone
  double secondary_eviction_rate = 0.01;                     ///< --secondary-node-eviction-rate
  double unhealthy_zone_threshold = 0.55;                    ///< --unhealthy-zone-threshold
  int large_cluster_size_threshold = 50;                     ///< --large-cluster-size-threshold
};
/// pkg/controller/nodelifecycle: heartbeats, conditions into taints, zones (SPEC D3, D4).
ControllerPtr make_node_lifecycle_controller(NodeLifecycleOptions options = {});
/// pkg/controller/tainteviction: pods leave nodes whose NoExecute taints they do not tolerate (SPEC D2).
ControllerPtr make_taint_eviction_controller();

/// pkg/controller/ttl: the annotation that tells kubelets how long to keep secrets and config maps.
ControllerPtr make_node_ttl_controller();

struct PodGarbageCollectorOptions {
  std::int64_t terminated_pod_threshold = 12500;  ///< --terminated-pod-gc-threshold; <= 0: none are collected
  Duration period = std::chrono::seconds(20);
  Duration quarantine = std::chrono::seconds(40);  ///< How long a node must be missing before its pods go.
};
/// pkg/controller/podgc.
ControllerPtr make_pod_garbage_collector(PodGarbageCollectorOptions options = {});

struct UnclaimedPodsOptions {
  Duration patience = std::chrono::minutes(1);  ///< Without a sign of any scheduler of the pod's.
  Duration pause = std::chrono::minutes(5);     ///< Between two events about one pod.
};
/// Tells of pods whose schedulerName no scheduler answers to. Of berth alone.
ControllerPtr make_unclaimed_pod_controller(UnclaimedPodsOptions options = {});

}  // namespace berth::controllers
