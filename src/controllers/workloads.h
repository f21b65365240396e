// The workload controllers' cores, one file each. Options are kube-controller-manager's with its defaults.
#pragma once
#include "controllers/controller.h"

namespace berth::controllers {

struct ReplicaSetOptions {
  int burst = 5000;  ///< Pods created or deleted in one step at most.
  int concurrency = 50;
};
/// pkg/controller/replicaset, for ReplicaSets.
ControllerPtr make_replicaset_controller(ReplicaSetOptions options = {});
/// The same for ReplicationControllers.
ControllerPtr make_replication_controller(ReplicaSetOptions options = {});
/// pkg/controller/deployment.
ControllerPtr make_deployment_controller();
/// pkg/controller/statefulset.
ControllerPtr make_statefulset_controller();
/// pkg/controller/daemon.
ControllerPtr make_daemonset_controller();
struct JobOptions {
  bool makes_groups = false;  ///< A Workload and a PodGroup for each Job that is a gang (gate WorkloadWithJob).
};
/// pkg/controller/job.
ControllerPtr make_job_controller(JobOptions options = {});
/// pkg/controller/cronjob.
ControllerPtr make_cronjob_controller();
/// pkg/controller/ttlafterfinished.
ControllerPtr make_ttl_after_finished_controller();
/// pkg/controller/disruption.
ControllerPtr make_disruption_controller();
/// pkg/controller/podautoscaler.
struct HorizontalPodAutoscalerOptions {
  Duration sync_period = std::chrono::seconds(15), downscale_stabilization = std::chrono::minutes(5);
  Duration cpu_initialization_period = std::chrono::minutes(5), initial_readiness_delay = std::chrono::seconds(30);
  double tolerance = 0.1;
};
ControllerPtr make_horizontal_pod_autoscaler_controller(const HorizontalPodAutoscalerOptions& options);

}  // namespace berth::controllers
