// Which fields Go's structs write even when they are "", 0, false, [] or {}: pointers, and members without omitempty; those of a struct's
// own (marked !) are there even when nobody gave them: as "", 0, false, {}, or null for lists and times, and pointers (marked !!) as null
// (facts of k8s.io/api). All others a round trip through the API server leaves out.
#include "model/schema_text.h"

namespace berth::model {

std::string_view kept_zeros() {
  return R"kept(
admissionregistration.v1.AuditAnnotation: key! valueExpression!
admissionregistration.v1.ExpressionWarning: fieldRef! warning!
admissionregistration.v1.MatchCondition: expression! name!
admissionregistration.v1.MatchResources: matchPolicy
admissionregistration.v1.MutatingWebhook: admissionReviewVersions! clientConfig! failurePolicy matchPolicy name! reinvocationPolicy
  sideEffects timeoutSeconds
admissionregistration.v1.NamedRuleWithOperations: scope
admissionregistration.v1.ParamRef: parameterNotFoundAction
admissionregistration.v1.RuleWithOperations: scope
admissionregistration.v1.ServiceReference: name! namespace! path port
admissionregistration.v1.ValidatingAdmissionPolicy: spec! status!
admissionregistration.v1.ValidatingAdmissionPolicyBinding: spec!
admissionregistration.v1.ValidatingAdmissionPolicySpec: failurePolicy
admissionregistration.v1.ValidatingWebhook: admissionReviewVersions! clientConfig! failurePolicy matchPolicy name! sideEffects
  timeoutSeconds
admissionregistration.v1.Validation: expression! reason
admissionregistration.v1.Variable: expression! name!
admissionregistration.v1.WebhookClientConfig: url
apiextensions.v1.CustomResourceColumnDefinition: jsonPath! name! type!
apiextensions.v1.CustomResourceConversion: strategy!
apiextensions.v1.CustomResourceDefinition: spec!
apiextensions.v1.CustomResourceDefinitionCondition: status! type!
apiextensions.v1.CustomResourceDefinitionNames: kind! plural!
apiextensions.v1.CustomResourceDefinitionSpec: group! names! scope! versions!
apiextensions.v1.CustomResourceDefinitionVersion: deprecationWarning name! served! storage!
apiextensions.v1.CustomResourceSubresourceScale: labelSelectorPath specReplicasPath! statusReplicasPath!
apiextensions.v1.JSONSchemaProps: $ref maxItems maxLength maxProperties maximum minItems minLength minProperties minimum multipleOf
  x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-preserve-unknown-fields
apiextensions.v1.SelectableField: jsonPath!
apiextensions.v1.ServiceReference: name! namespace! path port
apiextensions.v1.ValidationRule: optionalOldSelf reason rule!
apiextensions.v1.WebhookClientConfig: url
apiextensions.v1.WebhookConversion: conversionReviewVersions!
apiregistration.v1.APIService: spec! status!
apiregistration.v1.APIServiceCondition: lastTransitionTime! status! type!
apiregistration.v1.APIServiceSpec: groupPriorityMinimum! versionPriority!
apiregistration.v1.ServiceReference: port
apps.v1.ControllerRevision: revision!
apps.v1.DaemonSet: spec! status!
apps.v1.DaemonSetCondition: lastTransitionTime! status! type!
apps.v1.DaemonSetSpec: revisionHistoryLimit template! updateStrategy!
apps.v1.DaemonSetStatus: collisionCount currentNumberScheduled! desiredNumberScheduled! numberMisscheduled! numberReady!
apps.v1.Deployment: spec! status!
apps.v1.DeploymentCondition: lastTransitionTime! lastUpdateTime! status! type!
apps.v1.DeploymentSpec: progressDeadlineSeconds replicas revisionHistoryLimit strategy! template!
apps.v1.DeploymentStatus: collisionCount terminatingReplicas
apps.v1.ReplicaSet: spec! status!
apps.v1.ReplicaSetCondition: lastTransitionTime! status! type!
apps.v1.ReplicaSetSpec: replicas template!
apps.v1.ReplicaSetStatus: replicas! terminatingReplicas
apps.v1.RollingUpdateStatefulSetStrategy: partition
apps.v1.StatefulSet: spec! status!
apps.v1.StatefulSetCondition: lastTransitionTime! status! type!
apps.v1.StatefulSetOrdinals: start!
apps.v1.StatefulSetSpec: replicas revisionHistoryLimit serviceName! template! updateStrategy!
apps.v1.StatefulSetStatus: availableReplicas! collisionCount replicas!
authentication.v1.SelfSubjectReview: status!
authentication.v1.SelfSubjectReviewStatus: userInfo!
authentication.v1.TokenRequest: spec! status!
authentication.v1.TokenRequestSpec: audiences! expirationSeconds
authentication.v1.TokenRequestStatus: expirationTimestamp! token!
authentication.v1.TokenReview: spec! status!
authentication.v1.TokenReviewStatus: user!
authorization.v1.LocalSubjectAccessReview: spec! status!
authorization.v1.NonResourceRule: verbs!
authorization.v1.ResourceRule: verbs!
authorization.v1.SelfSubjectAccessReview: spec! status!
authorization.v1.SelfSubjectRulesReview: spec! status!
authorization.v1.SubjectAccessReview: spec! status!
authorization.v1.SubjectAccessReviewStatus: allowed!
authorization.v1.SubjectRulesReviewStatus: incomplete! nonResourceRules! resourceRules!
autoscaling.v1.CrossVersionObjectReference: kind! name!
autoscaling.v1.HorizontalPodAutoscaler: spec! status!
autoscaling.v1.HorizontalPodAutoscalerSpec: maxReplicas! minReplicas scaleTargetRef! targetCPUUtilizationPercentage
autoscaling.v1.HorizontalPodAutoscalerStatus: currentCPUUtilizationPercentage currentReplicas! desiredReplicas! observedGeneration
autoscaling.v1.Scale: spec! status!
autoscaling.v1.ScaleStatus: replicas!
autoscaling.v2.ContainerResourceMetricSource: container! name! target!
autoscaling.v2.ContainerResourceMetricStatus: container! current! name!
autoscaling.v2.CrossVersionObjectReference: kind! name!
autoscaling.v2.ExternalMetricSource: metric! target!
autoscaling.v2.ExternalMetricStatus: current! metric!
autoscaling.v2.HPAScalingPolicy: periodSeconds! type! value!
autoscaling.v2.HPAScalingRules: selectPolicy stabilizationWindowSeconds
autoscaling.v2.HorizontalPodAutoscaler: spec! status!
autoscaling.v2.HorizontalPodAutoscalerCondition: lastTransitionTime! status! type!
autoscaling.v2.HorizontalPodAutoscalerSpec: maxReplicas! minReplicas scaleTargetRef!
autoscaling.v2.HorizontalPodAutoscalerStatus: currentMetrics! desiredReplicas! observedGeneration
autoscaling.v2.MetricIdentifier: name!
autoscaling.v2.MetricSpec: type!
autoscaling.v2.MetricStatus: type!
autoscaling.v2.MetricTarget: averageUtilization type!
autoscaling.v2.MetricValueStatus: averageUtilization
autoscaling.v2.ObjectMetricSource: describedObject! metric! target!
autoscaling.v2.ObjectMetricStatus: current! describedObject! metric!
autoscaling.v2.PodsMetricSource: metric! target!
autoscaling.v2.PodsMetricStatus: current! metric!
autoscaling.v2.ResourceMetricSource: name! target!
autoscaling.v2.ResourceMetricStatus: current! name!
batch.v1.CronJob: spec! status!
batch.v1.CronJobSpec: failedJobsHistoryLimit jobTemplate! schedule! startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone
batch.v1.Job: spec! status!
batch.v1.JobCondition: lastProbeTime! lastTransitionTime! status! type!
batch.v1.JobSpec: activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector
  maxFailedIndexes parallelism podReplacementPolicy suspend template! ttlSecondsAfterFinished
batch.v1.JobStatus: failedIndexes ready terminating
batch.v1.JobTemplateSpec: metadata! spec!
batch.v1.PodFailurePolicy: rules!
batch.v1.PodFailurePolicyOnExitCodesRequirement: containerName operator! values!
batch.v1.PodFailurePolicyOnPodConditionsPattern: status! type!
batch.v1.PodFailurePolicyRule: action!
batch.v1.SuccessPolicy: rules!
batch.v1.SuccessPolicyRule: succeededCount succeededIndexes
certificates.v1.CertificateSigningRequest: spec! status!
certificates.v1.CertificateSigningRequestCondition: lastTransitionTime! lastUpdateTime! status! type!
certificates.v1.CertificateSigningRequestSpec: expirationSeconds request! signerName!
coordination.v1.Lease: spec!
coordination.v1.LeaseSpec: holderIdentity leaseDurationSeconds leaseTransitions preferredHolder strategy
core.v1.AWSElasticBlockStoreVolumeSource: volumeID!
core.v1.AppArmorProfile: localhostProfile type!
core.v1.AttachedVolume: devicePath! name!
core.v1.AzureDiskVolumeSource: cachingMode diskName! diskURI! fsType kind readOnly
core.v1.AzureFilePersistentVolumeSource: secretName! secretNamespace shareName!
core.v1.AzureFileVolumeSource: secretName! shareName!
core.v1.Binding: target!
core.v1.CSIPersistentVolumeSource: driver! volumeHandle!
core.v1.CSIVolumeSource: driver! fsType readOnly
core.v1.CephFSPersistentVolumeSource: monitors!
core.v1.CephFSVolumeSource: monitors!
core.v1.CinderPersistentVolumeSource: volumeID!
core.v1.CinderVolumeSource: volumeID!
core.v1.ClientIPConfig: timeoutSeconds
core.v1.ClusterTrustBundleProjection: name optional path! signerName
core.v1.ConfigMap: immutable
core.v1.ConfigMapEnvSource: optional
core.v1.ConfigMapKeySelector: key! optional
core.v1.ConfigMapNodeConfigSource: kubeletConfigKey! name! namespace!
core.v1.ConfigMapProjection: optional
core.v1.ConfigMapVolumeSource: defaultMode optional
core.v1.Container: name! resources! restartPolicy
core.v1.ContainerExtendedResourceRequest: containerName! requestName! resourceName!
core.v1.ContainerImage: names!
core.v1.ContainerPort: containerPort!
core.v1.ContainerResizePolicy: resourceName! restartPolicy!
core.v1.ContainerStateRunning: startedAt!
core.v1.ContainerStateTerminated: exitCode! finishedAt! startedAt!
core.v1.ContainerStatus: image! imageID! lastState! name! ready! restartCount! started state! stopSignal
core.v1.DaemonEndpoint: Port!
core.v1.DownwardAPIVolumeFile: mode path!
core.v1.DownwardAPIVolumeSource: defaultMode
core.v1.EndpointAddress: ip! nodeName
core.v1.EndpointPort: appProtocol port!
core.v1.EnvVar: name!
core.v1.EphemeralContainer: name! resources! restartPolicy
core.v1.Event: eventTime! firstTimestamp! involvedObject! lastTimestamp! reportingComponent! reportingInstance! source!
core.v1.EventSeries: lastObservedTime!
core.v1.FCVolumeSource: lun
core.v1.FileKeySelector: key! optional path! volumeName!
core.v1.FlexPersistentVolumeSource: driver!
core.v1.FlexVolumeSource: driver!
core.v1.GCEPersistentDiskVolumeSource: pdName!
core.v1.GRPCAction: port! service
core.v1.GitRepoVolumeSource: repository!
core.v1.GlusterfsPersistentVolumeSource: endpoints! endpointsNamespace path!
core.v1.GlusterfsVolumeSource: endpoints! path!
core.v1.HTTPGetAction: port!
core.v1.HTTPHeader: name! value!
core.v1.HostAlias: ip!
core.v1.HostIP: ip!
core.v1.HostPathVolumeSource: path! type
core.v1.ISCSIPersistentVolumeSource: initiatorName iqn! lun! targetPortal!
core.v1.ISCSIVolumeSource: initiatorName iqn! lun! targetPortal!
core.v1.KeyToPath: key! mode path!
core.v1.Lifecycle: stopSignal
core.v1.LimitRange: spec!
core.v1.LimitRangeItem: type!
core.v1.LimitRangeSpec: limits!
core.v1.LinuxContainerUser: gid! uid!
core.v1.LoadBalancerIngress: ipMode
core.v1.LocalVolumeSource: fsType path!
core.v1.ModifyVolumeStatus: status!
core.v1.NFSVolumeSource: path! server!
core.v1.Namespace: spec! status!
core.v1.NamespaceCondition: lastTransitionTime! status! type!
core.v1.Node: spec! status!
core.v1.NodeAddress: address! type!
core.v1.NodeAllocatableResourceClaimStatus: resourceClaimName! resources!
core.v1.NodeCondition: lastHeartbeatTime! lastTransitionTime! status! type!
core.v1.NodeDaemonEndpoints: kubeletEndpoint!
core.v1.NodeFeatures: supplementalGroupsPolicy
core.v1.NodeRuntimeHandler: name!
core.v1.NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts userNamespaces
core.v1.NodeSelector: nodeSelectorTerms!
core.v1.NodeSelectorRequirement: key! operator!
core.v1.NodeStatus: daemonEndpoints! nodeInfo!
core.v1.NodeSwapStatus: capacity
core.v1.NodeSystemInfo: architecture! bootID! containerRuntimeVersion! kernelVersion! kubeProxyVersion! kubeletVersion! machineID!
  operatingSystem! osImage! systemUUID!
core.v1.ObjectFieldSelector: fieldPath!
core.v1.PersistentVolume: spec! status!
core.v1.PersistentVolumeClaim: spec! status!
core.v1.PersistentVolumeClaimCondition: lastProbeTime! lastTransitionTime! status! type!
core.v1.PersistentVolumeClaimSpec: resources! storageClassName volumeAttributesClassName volumeMode
core.v1.PersistentVolumeClaimStatus: currentVolumeAttributesClassName
core.v1.PersistentVolumeClaimTemplate: metadata! spec!
core.v1.PersistentVolumeClaimVolumeSource: claimName!
core.v1.PersistentVolumeSpec: volumeAttributesClassName volumeMode
core.v1.PhotonPersistentDiskVolumeSource: pdID!
core.v1.Pod: spec! status!
core.v1.PodAffinityTerm: topologyKey!
core.v1.PodCertificateProjection: maxExpirationSeconds
core.v1.PodCondition: lastProbeTime! lastTransitionTime! status! type!
core.v1.PodDNSConfigOption: value
core.v1.PodExtendedResourceClaimStatus: requestMappings! resourceClaimName!
core.v1.PodIP: ip!
core.v1.PodOS: name!
core.v1.PodReadinessGate: conditionType!
core.v1.PodResourceClaim: name! resourceClaimName resourceClaimTemplateName
core.v1.PodResourceClaimStatus: name! resourceClaimName
core.v1.PodSchedulingGate: name!
core.v1.PodSchedulingGroup: podGroupName
core.v1.PodSecurityContext: fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy supplementalGroupsPolicy
core.v1.PodSpec: activeDeadlineSeconds automountServiceAccountToken containers! enableServiceLinks hostUsers hostnameOverride
  preemptionPolicy priority runtimeClassName setHostnameAsFQDN shareProcessNamespace terminationGracePeriodSeconds
core.v1.PodTemplate: template!
core.v1.PodTemplateSpec: metadata! spec!
core.v1.PortStatus: error port! protocol!
core.v1.PortworxVolumeSource: volumeID!
core.v1.PreferredSchedulingTerm: preference! weight!
core.v1.Probe: terminationGracePeriodSeconds
core.v1.ProjectedVolumeSource: defaultMode sources!
core.v1.QuobyteVolumeSource: registry! volume!
core.v1.RBDPersistentVolumeSource: image! monitors!
core.v1.RBDVolumeSource: image! monitors!
core.v1.ReplicationController: spec! status!
core.v1.ReplicationControllerCondition: lastTransitionTime! status! type!
core.v1.ReplicationControllerSpec: replicas
core.v1.ReplicationControllerStatus: replicas!
core.v1.ResourceClaim: name!
core.v1.ResourceFieldSelector: divisor! resource!
core.v1.ResourceHealth: message resourceID!
core.v1.ResourceQuota: spec! status!
core.v1.ResourceStatus: name!
core.v1.ScaleIOPersistentVolumeSource: gateway! system!
core.v1.ScaleIOVolumeSource: gateway! system!
core.v1.ScopedResourceSelectorRequirement: operator! scopeName!
core.v1.SeccompProfile: localhostProfile type!
core.v1.Secret: immutable
core.v1.SecretEnvSource: optional
core.v1.SecretKeySelector: key! optional
core.v1.SecretProjection: optional
core.v1.SecretVolumeSource: defaultMode optional
core.v1.SecurityContext: allowPrivilegeEscalation privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser
core.v1.Service: spec! status!
core.v1.ServiceAccount: automountServiceAccountToken
core.v1.ServiceAccountTokenProjection: expirationSeconds path!
core.v1.ServicePort: appProtocol port! targetPort!
core.v1.ServiceSpec: allocateLoadBalancerNodePorts internalTrafficPolicy ipFamilyPolicy loadBalancerClass trafficDistribution
core.v1.ServiceStatus: loadBalancer!
core.v1.SleepAction: seconds!
core.v1.Sysctl: name! value!
core.v1.TCPSocketAction: port!
core.v1.Taint: effect! key!
core.v1.Toleration: tolerationSeconds
core.v1.TopologySelectorLabelRequirement: key! values!
core.v1.TopologySpreadConstraint: maxSkew! minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey! whenUnsatisfiable!
core.v1.TypedLocalObjectReference: apiGroup!! kind! name!
core.v1.TypedObjectReference: apiGroup!! kind! name! namespace
core.v1.Volume: name!
core.v1.VolumeDevice: devicePath! name!
core.v1.VolumeMount: mountPath! mountPropagation name! recursiveReadOnly
core.v1.VolumeMountStatus: mountPath! name! recursiveReadOnly
core.v1.VsphereVirtualDiskVolumeSource: volumePath!
core.v1.WeightedPodAffinityTerm: podAffinityTerm! weight!
core.v1.WindowsSecurityContextOptions: gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName
discovery.v1.Endpoint: addresses! conditions! hostname nodeName zone
discovery.v1.EndpointConditions: ready serving terminating
discovery.v1.EndpointPort: appProtocol name port protocol
discovery.v1.EndpointSlice: addressType! endpoints! ports!
discovery.v1.ForNode: name!
discovery.v1.ForZone: name!
events.v1.Event: deprecatedFirstTimestamp! deprecatedLastTimestamp! deprecatedSource! eventTime! regarding!
events.v1.EventSeries: count! lastObservedTime!
flowcontrol.v1.ExemptPriorityLevelConfiguration: lendablePercent nominalConcurrencyShares
flowcontrol.v1.FlowDistinguisherMethod: type!
flowcontrol.v1.FlowSchema: spec! status!
flowcontrol.v1.FlowSchemaCondition: lastTransitionTime!
flowcontrol.v1.FlowSchemaSpec: matchingPrecedence! priorityLevelConfiguration!
flowcontrol.v1.GroupSubject: name!
flowcontrol.v1.LimitResponse: type!
flowcontrol.v1.LimitedPriorityLevelConfiguration: borrowingLimitPercent lendablePercent limitResponse! nominalConcurrencyShares
flowcontrol.v1.NonResourcePolicyRule: nonResourceURLs! verbs!
flowcontrol.v1.PolicyRulesWithSubjects: subjects!
flowcontrol.v1.PriorityLevelConfiguration: spec! status!
flowcontrol.v1.PriorityLevelConfigurationCondition: lastTransitionTime!
flowcontrol.v1.PriorityLevelConfigurationReference: name!
flowcontrol.v1.PriorityLevelConfigurationSpec: type!
flowcontrol.v1.QueuingConfiguration: handSize! queueLengthLimit! queues!
flowcontrol.v1.ResourcePolicyRule: apiGroups! namespaces! resources! verbs!
flowcontrol.v1.ServiceAccountSubject: name! namespace!
flowcontrol.v1.Subject: kind!
flowcontrol.v1.UserSubject: name!
meta.v1.Condition: lastTransitionTime! message! reason! status! type!
meta.v1.DeleteOptions: gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents propagationPolicy
meta.v1.FieldSelectorRequirement: key! operator!
meta.v1.LabelSelectorRequirement: key! operator!
meta.v1.ListMeta: remainingItemCount
meta.v1.ObjectMeta: deletionGracePeriodSeconds
meta.v1.OwnerReference: apiVersion! blockOwnerDeletion controller kind! name! uid!
meta.v1.Preconditions: resourceVersion uid
meta.v1.ShardInfo: selector!
networking.v1.HTTPIngressPath: backend! pathType
networking.v1.HTTPIngressRuleValue: paths!
networking.v1.IPBlock: cidr!
networking.v1.Ingress: spec! status!
networking.v1.IngressClass: spec!
networking.v1.IngressClassParametersReference: apiGroup kind! name! namespace scope
networking.v1.IngressPortStatus: error port! protocol!
networking.v1.IngressServiceBackend: name! port!
networking.v1.IngressSpec: ingressClassName
networking.v1.IngressStatus: loadBalancer!
networking.v1.NetworkPolicy: spec!
networking.v1.NetworkPolicyPort: endPort protocol
networking.v1.NetworkPolicySpec: podSelector!
node.v1.RuntimeClass: handler!
policy.v1.PodDisruptionBudget: spec! status!
policy.v1.PodDisruptionBudgetSpec: unhealthyPodEvictionPolicy
policy.v1.PodDisruptionBudgetStatus: currentHealthy! desiredHealthy! disruptionsAllowed! expectedPods!
rbac.v1.ClusterRole: rules!
rbac.v1.ClusterRoleBinding: roleRef!
rbac.v1.PolicyRule: verbs!
rbac.v1.Role: rules!
rbac.v1.RoleBinding: roleRef!
rbac.v1.RoleRef: apiGroup! kind! name!
rbac.v1.Subject: kind! name!
resource.v1.AllocatedDeviceStatus: conditions! device! driver! pool! shareID
resource.v1.AllocationResult: devices!
resource.v1.CELDeviceSelector: expression!
resource.v1.Counter: value!
resource.v1.CounterSet: name!
resource.v1.Device: allNodes allowMultipleAllocations bindsToNode name! nodeName
resource.v1.DeviceAllocationConfiguration: source!
resource.v1.DeviceAttribute: bool int string version
resource.v1.DeviceCapacity: value!
resource.v1.DeviceClaim: requests!
resource.v1.DeviceClass: spec!
resource.v1.DeviceClassSpec: extendedResourceName
resource.v1.DeviceConstraint: distinctAttribute matchAttribute
resource.v1.DeviceCounterConsumption: counterSet!
resource.v1.DeviceRequest: name!
resource.v1.DeviceRequestAllocationResult: adminAccess device! driver! pool! request! shareID
resource.v1.DeviceSubRequest: deviceClassName! name!
resource.v1.DeviceTaint: effect! key!
resource.v1.DeviceToleration: tolerationSeconds
resource.v1.ExactDeviceRequest: adminAccess deviceClassName!
resource.v1.NodeAllocatableResourceMapping: capacityKey
resource.v1.OpaqueDeviceConfiguration: driver!
resource.v1.ResourceClaim: spec! status!
resource.v1.ResourceClaimConsumerReference: name! resource! uid!
resource.v1.ResourceClaimSpec: devices!
resource.v1.ResourceClaimTemplate: spec!
resource.v1.ResourceClaimTemplateSpec: metadata! spec!
resource.v1.ResourcePool: generation! name! resourceSliceCount!
resource.v1.ResourceSlice: spec!
resource.v1.ResourceSliceSpec: allNodes driver! nodeName perDeviceNodeSelection pool!
scheduling.v1.PriorityClass: preemptionPolicy value!
storage.v1.CSIDriver: spec!
storage.v1.CSIDriverSpec: attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount preventPodSchedulingIfMissing
  requiresRepublish seLinuxMount serviceAccountTokenInSecrets storageCapacity
storage.v1.CSINode: spec!
storage.v1.CSINodeDriver: name! nodeID! topologyKeys!
storage.v1.CSINodeSpec: drivers!
storage.v1.CSIStorageCapacity: storageClassName!
storage.v1.StorageClass: allowVolumeExpansion provisioner! reclaimPolicy volumeBindingMode
storage.v1.TokenRequest: audience! expirationSeconds
storage.v1.VolumeAttachment: spec! status!
storage.v1.VolumeAttachmentSource: persistentVolumeName
storage.v1.VolumeAttachmentSpec: attacher! nodeName! source!
storage.v1.VolumeAttachmentStatus: attached!
storage.v1.VolumeAttributesClass: driverName!
storage.v1.VolumeError: errorCode time!
storage.v1.VolumeNodeResources: count
)kept";
}

}  // namespace berth::model
