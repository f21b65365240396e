#include <map>
#include <string>
#include <vector>

#include "model/descriptions.h"

namespace berth::model {
namespace {

/// "Type" or "Type.field" without the package: the same words serve all versions.
const std::map<std::string_view, std::string_view>& texts() {
  static const std::map<std::string_view, std::string_view> table = {
      {".apiVersion", "Group and version of this representation of the object."},
      {".kind", "The REST resource this object represents, in CamelCase."},
      {".metadata", "Standard object metadata: name, namespace, labels, annotations, owners."},
      {".spec", "The desired behaviour."},
      {".status", "The state last observed. Written by the system."},
      {"Pod", "A group of containers that run together on one node."},
      {"PodSpec.containers", "Containers of the pod; at least one. Cannot be added or removed later."},
      {"PodSpec.initContainers", "Containers that run to completion, in order, before the others start; with restartPolicy Always, sidecars."},
      {"PodSpec.nodeName", "The node the pod runs on. Set by the scheduler; set by hand it bypasses scheduling."},
      {"PodSpec.nodeSelector", "Labels that a node must all have for the pod to fit on it."},
      {"PodSpec.affinity", "Scheduling constraints on nodes and on other pods."},
      {"PodSpec.tolerations", "Taints that the pod tolerates."},
      {"PodSpec.topologySpreadConstraints", "How pods are spread over zones, hosts or other topology domains. All constraints are ANDed."},
      {"PodSpec.priorityClassName", "Name of a PriorityClass, which gives the priority."},
      {"PodSpec.priority", "The priority value. Filled in by admission from the class."},
      {"PodSpec.preemptionPolicy", "Whether the pod may preempt lower ones: PreemptLowerPriority (default) or Never."},
      {"PodSpec.schedulerName", "The scheduler that places this pod; default-scheduler when empty."},
      {"PodSpec.schedulingGates", "While any is left, the scheduler does not consider the pod. Can only be removed."},
      {"PodSpec.restartPolicy", "What happens when containers end: Always, OnFailure or Never."},
      {"PodSpec.terminationGracePeriodSeconds", "Seconds between the request to end and the kill."},
      {"PodSpec.overhead", "Resources that running the pod costs beyond its containers, by RuntimeClass."},
      {"PodSpec.volumes", "Volumes that containers may mount."},
      {"PodSpec.hostNetwork", "Use the node's network namespace."},
      {"PodSpec.serviceAccountName", "The ServiceAccount the pod runs as."},
      {"Container.name", "Unique name within the pod (DNS label)."},
      {"Container.image", "Container image name."},
      {"Container.command", "Entrypoint; the image's when not given."},
      {"Container.args", "Arguments of the entrypoint."},
      {"Container.env", "Environment variables."},
      {"Container.ports", "Ports that the container exposes."},
      {"Container.resources", "Compute resources: requests guide scheduling, limits are enforced."},
      {"Container.imagePullPolicy", "Always, Never or IfNotPresent."},
      {"Container.livenessProbe", "When it fails, the container is restarted."},
      {"Container.readinessProbe", "While it fails, the pod gets no traffic."},
      {"Container.startupProbe", "Until it succeeds, the other probes wait."},
      {"ResourceRequirements.requests", "The least amount of each resource; what the scheduler counts."},
      {"ResourceRequirements.limits", "The most of each resource."},
      {"Toleration.key", "The taint key; empty with operator Exists matches all."},
      {"Toleration.operator", "Equal (default) or Exists."},
      {"Toleration.value", "The taint value, for Equal."},
      {"Toleration.effect", "The taint effect; empty matches all."},
      {"Toleration.tolerationSeconds", "For NoExecute: how long to stay after the taint came; for ever when not given."},
      {"Taint.key", "The taint key."},
      {"Taint.value", "The taint value."},
      {"Taint.effect", "NoSchedule, PreferNoSchedule or NoExecute."},
      {"NodeSpec.taints", "Taints: keep pods off that do not tolerate them."},
      {"NodeSpec.unschedulable", "No new pods are scheduled onto the node."},
      {"Affinity.nodeAffinity", "Which nodes the pod needs or prefers."},
      {"Affinity.podAffinity", "Other pods it wants to be near."},
      {"Affinity.podAntiAffinity", "Other pods it wants to be away from."},
      {"TopologySpreadConstraint.maxSkew", "The largest allowed difference of matching pods between domains."},
      {"TopologySpreadConstraint.topologyKey", "The node label whose values are the domains."},
      {"TopologySpreadConstraint.whenUnsatisfiable", "DoNotSchedule or ScheduleAnyway."},
      {"Deployment", "Declarative updates for pods and ReplicaSets."},
      {"DeploymentSpec.replicas", "Number of desired pods; 1 when not given."},
      {"DeploymentSpec.selector", "Label selector of the pods; must match the template's labels."},
      {"DeploymentSpec.template", "The pods that will be created."},
      {"DeploymentSpec.strategy", "How old pods are replaced by new ones."},
      {"DeploymentSpec.paused", "The deployment is paused."},
      {"DeploymentSpec.progressDeadlineSeconds", "Seconds without progress before the deployment counts as failed."},
      {"DeploymentSpec.revisionHistoryLimit", "Old ReplicaSets kept for rollback."},
      {"DeploymentStrategy.type", "Recreate or RollingUpdate."},
      {"DeploymentStrategy.rollingUpdate", "Parameters of RollingUpdate."},
      {"RollingUpdateDeployment.maxSurge", "How many pods above the desired number may exist; a number or a percentage."},
      {"RollingUpdateDeployment.maxUnavailable", "How many pods may be unavailable; a number or a percentage."},
      {"PriorityClass.value", "The priority; higher wins."},
      {"PriorityClass.globalDefault", "The class of pods that name none. At most one."},
      {"PriorityClass.preemptionPolicy", "PreemptLowerPriority or Never."},
      {"PodDisruptionBudgetSpec.minAvailable", "How many pods must stay available; a number or a percentage."},
      {"PodDisruptionBudgetSpec.maxUnavailable", "How many pods may be unavailable; a number or a percentage."},
  };
  return table;
}

}  // namespace

std::string_view describe(std::string_view type, std::string_view field) {
  const std::string_view short_name = type.substr(type.rfind('.') + 1);
  const std::string key = field.empty() ? std::string(short_name) : std::string(short_name) + "." + std::string(field);
  if (const auto found = texts().find(key); found != texts().end()) return found->second;
  const auto any = texts().find("." + std::string(field));
  return field.empty() || any == texts().end() ? std::string_view() : any->second;
}

const std::vector<std::string_view>& enum_values(std::string_view type, std::string_view field) {
  static const std::map<std::string_view, std::vector<std::string_view>> table = {
      {"PodSpec.restartPolicy", {"Always", "Never", "OnFailure"}},
      {"PodSpec.dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"}},
      {"PodSpec.preemptionPolicy", {"Never", "PreemptLowerPriority"}},
      {"Container.imagePullPolicy", {"Always", "IfNotPresent", "Never"}},
      {"Container.terminationMessagePolicy", {"FallbackToLogsOnError", "File"}},
      {"ContainerPort.protocol", {"SCTP", "TCP", "UDP"}},
      {"ServicePort.protocol", {"SCTP", "TCP", "UDP"}},
      {"ServiceSpec.type", {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"}},
      {"ServiceSpec.sessionAffinity", {"ClientIP", "None"}},
      {"Taint.effect", {"NoExecute", "NoSchedule", "PreferNoSchedule"}},
      {"Toleration.effect", {"NoExecute", "NoSchedule", "PreferNoSchedule"}},
      {"Toleration.operator", {"Equal", "Exists"}},
      {"NodeSelectorRequirement.operator", {"DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"}},
      {"TopologySpreadConstraint.whenUnsatisfiable", {"DoNotSchedule", "ScheduleAnyway"}},
      {"TopologySpreadConstraint.nodeAffinityPolicy", {"Honor", "Ignore"}},
      {"TopologySpreadConstraint.nodeTaintsPolicy", {"Honor", "Ignore"}},
      {"DeploymentStrategy.type", {"Recreate", "RollingUpdate"}},
      {"StatefulSetSpec.podManagementPolicy", {"OrderedReady", "Parallel"}},
      {"StatefulSetUpdateStrategy.type", {"OnDelete", "RollingUpdate"}},
      {"DaemonSetUpdateStrategy.type", {"OnDelete", "RollingUpdate"}},
      {"CronJobSpec.concurrencyPolicy", {"Allow", "Forbid", "Replace"}},
      {"JobSpec.completionMode", {"Indexed", "NonIndexed"}},
      {"PriorityClass.preemptionPolicy", {"Never", "PreemptLowerPriority"}},
      {"PersistentVolumeSpec.persistentVolumeReclaimPolicy", {"Delete", "Recycle", "Retain"}},
      {"StorageClass.reclaimPolicy", {"Delete", "Recycle", "Retain"}},
      {"StorageClass.volumeBindingMode", {"Immediate", "WaitForFirstConsumer"}},
      {"PodStatus.phase", {"Failed", "Pending", "Running", "Succeeded", "Unknown"}},
      {"NamespaceStatus.phase", {"Active", "Terminating"}},
  };
  static const std::vector<std::string_view> none;
  const std::string key = std::string(type.substr(type.rfind('.') + 1)) + "." + std::string(field);
  const auto found = table.find(key);
  return found == table.end() ? none : found->second;
}

}  // namespace berth::model
