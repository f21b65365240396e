// Which words a field may have, as Kubernetes' schemas tell them (the +enum types of k8s.io/api), in the order of their bytes.
#include <map>

#include "model/published/descriptions.h"
#include "model/schema_text.h"

namespace berth::model {
namespace {

/// TYPE.FIELD…: WORD…; a line that begins with blanks goes on. "" is the empty word.
constexpr std::string_view kEnums = R"enums(
AppArmorProfile.type SeccompProfile.type: Localhost RuntimeDefault Unconfined
AzureDiskVolumeSource.cachingMode: None ReadOnly ReadWrite
AzureDiskVolumeSource.kind: Dedicated Managed Shared
Container.imagePullPolicy EphemeralContainer.imagePullPolicy ImageVolumeSource.pullPolicy: Always IfNotPresent Never
Container.terminationMessagePolicy EphemeralContainer.terminationMessagePolicy: FallbackToLogsOnError File
ContainerPort.protocol EndpointPort.protocol IngressPortStatus.protocol NetworkPolicyPort.protocol PortStatus.protocol
  ServicePort.protocol: SCTP TCP UDP
CronJobSpec.concurrencyPolicy: Allow Forbid Replace
DaemonSetUpdateStrategy.type StatefulSetUpdateStrategy.type: OnDelete RollingUpdate
DeploymentStrategy.type: Recreate RollingUpdate
DeviceAllocationConfiguration.source: FromClaim FromClass
DeviceSubRequest.allocationMode ExactDeviceRequest.allocationMode: All ExactCount
DeviceTaint.effect DeviceToleration.effect: NoExecute NoSchedule None
DeviceToleration.operator: Equal Exists
EndpointSlice.addressType: FQDN IPv4 IPv6
HTTPGetAction.scheme: HTTP HTTPS
HTTPIngressPath.pathType: Exact ImplementationSpecific Prefix
HostPathVolumeSource.type: "" BlockDevice CharDevice Directory DirectoryOrCreate File FileOrCreate Socket
JobSpec.completionMode: Indexed NonIndexed
JobSpec.podReplacementPolicy: Failed TerminatingOrFailed
MatchResources.matchPolicy MutatingWebhook.matchPolicy ValidatingWebhook.matchPolicy: Equivalent Exact
ModifyVolumeStatus.status: InProgress Infeasible Pending
MutatingWebhook.failurePolicy ValidatingAdmissionPolicySpec.failurePolicy ValidatingWebhook.failurePolicy: Fail Ignore
MutatingWebhook.reinvocationPolicy: IfNeeded Never
MutatingWebhook.sideEffects ValidatingWebhook.sideEffects: None NoneOnDryRun Some Unknown
NamedRuleWithOperations.operations RuleWithOperations.operations: * CONNECT CREATE DELETE UPDATE
NamedRuleWithOperations.scope RuleWithOperations.scope: * Cluster Namespaced
NamespaceStatus.phase: Active Terminating
NetworkPolicySpec.policyTypes: Egress Ingress
NodeSelectorRequirement.operator: DoesNotExist Exists Gt In Lt NotIn
NodeStatus.phase: Pending Running Terminated
PersistentVolumeClaimSpec.accessModes PersistentVolumeClaimStatus.accessModes PersistentVolumeSpec.accessModes: ReadOnlyMany
  ReadWriteMany ReadWriteOnce ReadWriteOncePod
PersistentVolumeClaimSpec.volumeMode PersistentVolumeSpec.volumeMode: Block Filesystem
PersistentVolumeClaimStatus.phase: Bound Lost Pending
PersistentVolumeSpec.persistentVolumeReclaimPolicy StorageClass.reclaimPolicy: Delete Recycle Retain
PersistentVolumeStatus.phase: Available Bound Failed Pending Released
PodDisruptionBudgetSpec.unhealthyPodEvictionPolicy: AlwaysAllow IfHealthyBudget
PodFailurePolicyOnExitCodesRequirement.operator: In NotIn
PodFailurePolicyRule.action: Count FailIndex FailJob Ignore
PodSecurityContext.fsGroupChangePolicy: Always OnRootMismatch
PodSecurityContext.supplementalGroupsPolicy: Merge Strict
PodSpec.dnsPolicy: ClusterFirst ClusterFirstWithHostNet Default None
PodSpec.preemptionPolicy PriorityClass.preemptionPolicy: Never PreemptLowerPriority
PodSpec.restartPolicy: Always Never OnFailure
PodStatus.phase: Failed Pending Running Succeeded Unknown
PodStatus.qosClass: BestEffort Burstable Guaranteed
ResourceQuotaSpec.scopes ScopedResourceSelectorRequirement.scopeName: BestEffort CrossNamespacePodAffinity NotBestEffort NotTerminating
  PriorityClass Terminating VolumeAttributesClass
ScopedResourceSelectorRequirement.operator: DoesNotExist Exists In NotIn
SecurityContext.procMount: Default Unmasked
ServiceSpec.externalTrafficPolicy ServiceSpec.internalTrafficPolicy: Cluster Local
ServiceSpec.ipFamilies: "" IPv4 IPv6
ServiceSpec.ipFamilyPolicy: PreferDualStack RequireDualStack SingleStack
ServiceSpec.sessionAffinity: ClientIP None
ServiceSpec.type: ClusterIP ExternalName LoadBalancer NodePort
StatefulSetSpec.podManagementPolicy: OrderedReady Parallel
StorageClass.volumeBindingMode: Immediate WaitForFirstConsumer
Taint.effect Toleration.effect: NoExecute NoSchedule PreferNoSchedule
Toleration.operator: Equal Exists Gt Lt
TopologySpreadConstraint.nodeAffinityPolicy TopologySpreadConstraint.nodeTaintsPolicy: Honor Ignore
TopologySpreadConstraint.whenUnsatisfiable: DoNotSchedule ScheduleAnyway
ValidatingAdmissionPolicyBindingSpec.validationActions: Audit Deny Warn
VolumeMount.mountPropagation: Bidirectional HostToContainer None
ContainerStatus.stopSignal Lifecycle.stopSignal: SIGABRT SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGIO SIGIOT
  SIGKILL SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMAX-1 SIGRTMAX-10 SIGRTMAX-11 SIGRTMAX-12 SIGRTMAX-13 SIGRTMAX-14
  SIGRTMAX-2 SIGRTMAX-3 SIGRTMAX-4 SIGRTMAX-5 SIGRTMAX-6 SIGRTMAX-7 SIGRTMAX-8 SIGRTMAX-9 SIGRTMIN SIGRTMIN+1 SIGRTMIN+10 SIGRTMIN+11
  SIGRTMIN+12 SIGRTMIN+13 SIGRTMIN+14 SIGRTMIN+15 SIGRTMIN+2 SIGRTMIN+3 SIGRTMIN+4 SIGRTMIN+5 SIGRTMIN+6 SIGRTMIN+7 SIGRTMIN+8
  SIGRTMIN+9 SIGSEGV SIGSTKFLT SIGSTOP SIGSYS SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU
  SIGXFSZ
)enums";

using Enums = std::map<std::string_view, std::vector<std::string_view>>;

void read_enums(std::string_view rest, Enums& out) {
  std::vector<std::string_view> fields, words;
  bool in_fields = true;
  const auto close = [&] {
    for (const auto field : fields) out[field] = words;
    fields.clear();
    words.clear();
    in_fields = true;
  };
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.starts_with(' ')) close();
    for (std::size_t at = 0; at < line.size();) {
      const auto end = std::min(line.find(' ', at), line.size());
      auto word = line.substr(at, end - at);
      at = end + 1;
      if (word.empty()) continue;
      if (in_fields) {
        in_fields = !word.ends_with(':');
        if (!in_fields) word.remove_suffix(1);
        fields.push_back(word);
      } else {
        words.push_back(word == "\"\"" ? std::string_view() : word);
      }
    }
  }
  close();
}

const Enums& enums() {
  static const Enums all = [] {
    Enums out;
    read_enums(kEnums, out);
    for (const std::string_view text : enums_texts()) read_enums(text, out);
    return out;
  }();
  return all;
}

}  // namespace

const std::vector<std::string_view>& enum_values(std::string_view type, std::string_view field) {
  static const std::vector<std::string_view> none;
  const auto found = enums().find(std::string(type.substr(type.rfind('.') + 1)) + "." + std::string(field));
  return found == enums().end() ? none : found->second;
}

}  // namespace berth::model
