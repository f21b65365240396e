// The members of Kubernetes' internal structs in their order, by the names that Go's JSON gives them: what error messages show where a
// whole struct was wrong (facts of k8s.io/kubernetes/pkg/apis/*/types.go and k8s.io/apimachinery's meta/v1).
#include "model/schema_text.h"

namespace berth::model {

std::string_view internal_shapes() {
  return R"shapes(
apps.v1.RollingUpdateStatefulSetStrategy: Partition *MaxUnavailable
apps.v1.StatefulSetOrdinals: Start
apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy: WhenDeleted WhenScaled
apps.v1.StatefulSetSpec: Replicas *Selector Template VolumeClaimTemplates ServiceName PodManagementPolicy UpdateStrategy
  *RevisionHistoryLimit MinReadySeconds *PersistentVolumeClaimRetentionPolicy *Ordinals
apps.v1.StatefulSetUpdateStrategy: Type *RollingUpdate
batch.v1.PodFailurePolicy: Rules
batch.v1.PodFailurePolicyOnExitCodesRequirement: *ContainerName Operator Values
batch.v1.PodFailurePolicyOnPodConditionsPattern: Type Status
batch.v1.PodFailurePolicyRule: Action *OnExitCodes OnPodConditions
batch.v1.SuccessPolicy: Rules
batch.v1.SuccessPolicyRule: *SucceededIndexes *SucceededCount
core.v1.AWSElasticBlockStoreVolumeSource: VolumeID FSType Partition ReadOnly
core.v1.Affinity: *NodeAffinity *PodAffinity *PodAntiAffinity
core.v1.AppArmorProfile: Type *LocalhostProfile
core.v1.AzureDiskVolumeSource: DiskName DataDiskURI=diskURI *CachingMode *FSType *ReadOnly *Kind
core.v1.AzureFilePersistentVolumeSource: SecretName ShareName ReadOnly *SecretNamespace
core.v1.AzureFileVolumeSource: SecretName ShareName ReadOnly
core.v1.CSIPersistentVolumeSource: Driver VolumeHandle ReadOnly FSType VolumeAttributes *ControllerPublishSecretRef *NodeStageSecretRef
  *NodePublishSecretRef *ControllerExpandSecretRef *NodeExpandSecretRef
core.v1.CSIVolumeSource: Driver *ReadOnly *FSType VolumeAttributes *NodePublishSecretRef
core.v1.Capabilities: Add Drop
core.v1.CephFSPersistentVolumeSource: Monitors Path User SecretFile *SecretRef ReadOnly
core.v1.CephFSVolumeSource: Monitors Path User SecretFile *SecretRef ReadOnly
core.v1.CinderPersistentVolumeSource: VolumeID FSType ReadOnly *SecretRef
core.v1.CinderVolumeSource: VolumeID FSType ReadOnly *SecretRef
core.v1.ClusterTrustBundleProjection: *Name *SignerName *LabelSelector *Optional Path
core.v1.ConfigMapEnvSource: Name *Optional
core.v1.ConfigMapKeySelector: Name Key *Optional
core.v1.ConfigMapProjection: Name Items *Optional
core.v1.ConfigMapVolumeSource: Name Items *DefaultMode *Optional
core.v1.Container: Name Image Command Args WorkingDir Ports EnvFrom Env Resources ResizePolicy *RestartPolicy RestartPolicyRules
  VolumeMounts VolumeDevices *LivenessProbe *ReadinessProbe *StartupProbe *Lifecycle TerminationMessagePath TerminationMessagePolicy
  ImagePullPolicy *SecurityContext Stdin StdinOnce TTY
core.v1.ContainerPort: Name HostPort ContainerPort Protocol HostIP
core.v1.ContainerResizePolicy: ResourceName RestartPolicy
core.v1.ContainerRestartRule: Action *ExitCodes
core.v1.ContainerRestartRuleOnExitCodes: Operator Values
core.v1.DownwardAPIProjection: Items
core.v1.DownwardAPIVolumeFile: Path *FieldRef *ResourceFieldRef *Mode
core.v1.DownwardAPIVolumeSource: Items *DefaultMode
core.v1.EmptyDirVolumeSource: Medium *SizeLimit
core.v1.EnvFromSource: Prefix *ConfigMapRef *SecretRef
core.v1.EnvVar: Name Value *ValueFrom
core.v1.EnvVarSource: *FieldRef *ResourceFieldRef *ConfigMapKeyRef *SecretKeyRef *FileKeyRef
core.v1.EphemeralContainer: Name Image Command Args WorkingDir Ports EnvFrom Env Resources ResizePolicy *RestartPolicy RestartPolicyRules
  VolumeMounts VolumeDevices *LivenessProbe *ReadinessProbe *StartupProbe *Lifecycle TerminationMessagePath TerminationMessagePolicy
  ImagePullPolicy *SecurityContext Stdin StdinOnce TTY TargetContainerName
core.v1.EphemeralVolumeSource: *VolumeClaimTemplate
core.v1.ExecAction: Command
core.v1.FCVolumeSource: TargetWWNs *Lun FSType ReadOnly WWIDs
core.v1.FileKeySelector: VolumeName Path Key *Optional
core.v1.FlexPersistentVolumeSource: Driver FSType *SecretRef ReadOnly Options
core.v1.FlexVolumeSource: Driver FSType *SecretRef ReadOnly Options
core.v1.FlockerVolumeSource: DatasetName DatasetUUID
core.v1.GCEPersistentDiskVolumeSource: PDName FSType Partition ReadOnly
core.v1.GRPCAction: Port *Service
core.v1.GitRepoVolumeSource: Repository Revision Directory
core.v1.GlusterfsPersistentVolumeSource: EndpointsName=endpoints Path ReadOnly *EndpointsNamespace
core.v1.GlusterfsVolumeSource: EndpointsName=endpoints Path ReadOnly
core.v1.HTTPGetAction: Path Port Host Scheme HTTPHeaders
core.v1.HTTPHeader: Name Value
core.v1.HostAlias: IP Hostnames
core.v1.HostPathVolumeSource: Path *Type
core.v1.ISCSIPersistentVolumeSource: TargetPortal IQN Lun ISCSIInterface FSType ReadOnly Portals DiscoveryCHAPAuth=chapAuthDiscovery
  SessionCHAPAuth=chapAuthSession *SecretRef *InitiatorName
core.v1.ISCSIVolumeSource: TargetPortal IQN Lun ISCSIInterface FSType ReadOnly Portals DiscoveryCHAPAuth=chapAuthDiscovery
  SessionCHAPAuth=chapAuthSession *SecretRef *InitiatorName
core.v1.ImageVolumeSource: Reference PullPolicy
core.v1.KeyToPath: Key Path *Mode
core.v1.Lifecycle: *PostStart *PreStop *StopSignal
core.v1.LifecycleHandler: *Exec *HTTPGet *TCPSocket *Sleep
core.v1.LocalObjectReference: Name
core.v1.LocalVolumeSource: Path *FSType
core.v1.ModifyVolumeStatus: TargetVolumeAttributesClassName Status
core.v1.NFSVolumeSource: Server Path ReadOnly
core.v1.NodeAddress: Type Address
core.v1.NodeAffinity: *RequiredDuringSchedulingIgnoredDuringExecution PreferredDuringSchedulingIgnoredDuringExecution
core.v1.NodeSelector: NodeSelectorTerms
core.v1.NodeSelectorRequirement: Key Operator Values
core.v1.NodeSelectorTerm: MatchExpressions MatchFields
core.v1.ObjectFieldSelector: APIVersion FieldPath
core.v1.ObjectReference: Kind Namespace Name UID APIVersion ResourceVersion FieldPath
core.v1.PersistentVolumeClaim: +metadata Spec Status
core.v1.PersistentVolumeClaimCondition: Type Status LastProbeTime LastTransitionTime Reason Message
core.v1.PersistentVolumeClaimSpec: AccessModes *Selector Resources VolumeName *StorageClassName *VolumeMode *DataSource *DataSourceRef
  *VolumeAttributesClassName
core.v1.PersistentVolumeClaimStatus: Phase AccessModes Capacity Conditions AllocatedResources AllocatedResourceStatuses
  *CurrentVolumeAttributesClassName *ModifyVolumeStatus
core.v1.PersistentVolumeClaimTemplate: +metadata Spec
core.v1.PersistentVolumeClaimVolumeSource: ClaimName ReadOnly
core.v1.PersistentVolumeSpec: Capacity *GCEPersistentDisk *AWSElasticBlockStore *HostPath *Glusterfs *NFS *RBD *Quobyte *ISCSI *FlexVolume
  *Cinder *CephFS *FC *Flocker *AzureFile *VsphereVolume *AzureDisk *PhotonPersistentDisk *PortworxVolume *ScaleIO *Local *StorageOS *CSI
  AccessModes *ClaimRef PersistentVolumeReclaimPolicy StorageClassName MountOptions *VolumeMode *NodeAffinity *VolumeAttributesClassName
core.v1.PersistentVolumeSource: *GCEPersistentDisk *AWSElasticBlockStore *HostPath *Glusterfs *NFS *RBD *Quobyte *ISCSI *FlexVolume
  *Cinder *CephFS *FC *Flocker *AzureFile *VsphereVolume *AzureDisk *PhotonPersistentDisk *PortworxVolume *ScaleIO *Local *StorageOS *CSI
core.v1.PhotonPersistentDiskVolumeSource: PdID FSType
core.v1.PodAffinity: RequiredDuringSchedulingIgnoredDuringExecution PreferredDuringSchedulingIgnoredDuringExecution
core.v1.PodAffinityTerm: *LabelSelector Namespaces TopologyKey *NamespaceSelector MatchLabelKeys MismatchLabelKeys
core.v1.PodAntiAffinity: RequiredDuringSchedulingIgnoredDuringExecution PreferredDuringSchedulingIgnoredDuringExecution
core.v1.PodCertificateProjection: SignerName KeyType *MaxExpirationSeconds CredentialBundlePath KeyPath CertificateChainPath
  UserAnnotations
core.v1.PodDNSConfig: Nameservers Searches Options
core.v1.PodDNSConfigOption: Name *Value
core.v1.PodOS: Name
core.v1.PodReadinessGate: ConditionType
core.v1.PodResourceClaim: Name *ResourceClaimName *ResourceClaimTemplateName
core.v1.PodSchedulingGate: Name
core.v1.PodSchedulingGroup: *PodGroupName
core.v1.PodSecurityContext: HostNetwork HostPID HostIPC *ShareProcessNamespace *HostUsers *SELinuxOptions *WindowsOptions *RunAsUser *RunAsGroup *RunAsNonRoot SupplementalGroups *SupplementalGroupsPolicy
  *FSGroup *FSGroupChangePolicy Sysctls *SeccompProfile *AppArmorProfile *SELinuxChangePolicy
core.v1.PodSpec: Volumes InitContainers Containers EphemeralContainers RestartPolicy *TerminationGracePeriodSeconds *ActiveDeadlineSeconds
  DNSPolicy NodeSelector ServiceAccountName *AutomountServiceAccountToken NodeName *SecurityContext ImagePullSecrets Hostname Subdomain
  *SetHostnameAsFQDN *Affinity SchedulerName Tolerations HostAliases PriorityClassName *Priority *PreemptionPolicy *DNSConfig
  ReadinessGates *RuntimeClassName Overhead *EnableServiceLinks TopologySpreadConstraints *OS SchedulingGates ResourceClaims *Resources
  *HostnameOverride *SchedulingGroup
core.v1.PodTemplateSpec: +metadata Spec
core.v1.PortworxVolumeSource: VolumeID FSType ReadOnly
core.v1.PreferredSchedulingTerm: Weight Preference
core.v1.Probe: *Exec *HTTPGet *TCPSocket *GRPC InitialDelaySeconds TimeoutSeconds PeriodSeconds SuccessThreshold FailureThreshold
  *TerminationGracePeriodSeconds
core.v1.ProjectedVolumeSource: Sources *DefaultMode
core.v1.QuobyteVolumeSource: Registry Volume ReadOnly User Group Tenant
core.v1.RBDPersistentVolumeSource: CephMonitors=monitors RBDImage=image FSType RBDPool=pool RadosUser=user Keyring
  *SecretRef ReadOnly
core.v1.RBDVolumeSource: CephMonitors=monitors RBDImage=image FSType RBDPool=pool RadosUser=user Keyring *SecretRef
  ReadOnly
core.v1.ResourceClaim: Name Request
core.v1.ResourceFieldSelector: ContainerName Resource Divisor
core.v1.ResourceRequirements: Limits Requests Claims
core.v1.SELinuxOptions: User Role Type Level
core.v1.ScaleIOPersistentVolumeSource: Gateway System *SecretRef SSLEnabled ProtectionDomain StoragePool StorageMode VolumeName FSType
  ReadOnly
core.v1.ScaleIOVolumeSource: Gateway System *SecretRef SSLEnabled ProtectionDomain StoragePool StorageMode VolumeName FSType ReadOnly
core.v1.SeccompProfile: Type *LocalhostProfile
core.v1.SecretEnvSource: Name *Optional
core.v1.SecretKeySelector: Name Key *Optional
core.v1.SecretProjection: Name Items *Optional
core.v1.SecretReference: Name Namespace
core.v1.SecretVolumeSource: SecretName Items *DefaultMode *Optional
core.v1.SecurityContext: *Capabilities *Privileged *SELinuxOptions *WindowsOptions *RunAsUser *RunAsGroup *RunAsNonRoot
  *ReadOnlyRootFilesystem *AllowPrivilegeEscalation *ProcMount *SeccompProfile *AppArmorProfile
core.v1.ServiceAccountTokenProjection: Audience ExpirationSeconds Path
core.v1.SleepAction: Seconds
core.v1.StorageOSPersistentVolumeSource: VolumeName VolumeNamespace FSType ReadOnly *SecretRef
core.v1.StorageOSVolumeSource: VolumeName VolumeNamespace FSType ReadOnly *SecretRef
core.v1.Sysctl: Name Value
core.v1.TCPSocketAction: Port Host
core.v1.Taint: Key Value Effect *TimeAdded
core.v1.Toleration: Key Operator Value Effect *TolerationSeconds
core.v1.TopologySpreadConstraint: MaxSkew TopologyKey WhenUnsatisfiable *LabelSelector *MinDomains *NodeAffinityPolicy *NodeTaintsPolicy
  MatchLabelKeys
core.v1.TypedLocalObjectReference: *APIGroup Kind Name
core.v1.TypedObjectReference: *APIGroup Kind Name *Namespace
core.v1.Volume: Name *HostPath *EmptyDir *GCEPersistentDisk *AWSElasticBlockStore *GitRepo *Secret *NFS *ISCSI *Glusterfs
  *PersistentVolumeClaim *RBD *Quobyte *FlexVolume *Cinder *CephFS *Flocker *DownwardAPI *FC *AzureFile *ConfigMap *VsphereVolume
  *AzureDisk *PhotonPersistentDisk *Projected *PortworxVolume *ScaleIO *StorageOS *CSI *Ephemeral *Image
core.v1.VolumeDevice: Name DevicePath
core.v1.VolumeMount: Name ReadOnly *RecursiveReadOnly MountPath SubPath *MountPropagation SubPathExpr
core.v1.VolumeNodeAffinity: *Required
core.v1.VolumeProjection: *Secret *DownwardAPI *ConfigMap *ServiceAccountToken *ClusterTrustBundle *PodCertificate
core.v1.VolumeResourceRequirements: Limits Requests
core.v1.VsphereVirtualDiskVolumeSource: VolumePath FSType StoragePolicyName StoragePolicyID
core.v1.WeightedPodAffinityTerm: Weight PodAffinityTerm
core.v1.WindowsSecurityContextOptions: *GMSACredentialSpecName *GMSACredentialSpec *RunAsUserName *HostProcess
flowcontrol.v1.ExemptPriorityLevelConfiguration: *NominalConcurrencyShares *LendablePercent
flowcontrol.v1.FlowDistinguisherMethod: Type
flowcontrol.v1.FlowSchemaSpec: PriorityLevelConfiguration MatchingPrecedence *DistinguisherMethod Rules
flowcontrol.v1.GroupSubject: Name
flowcontrol.v1.LimitResponse: Type *Queuing
flowcontrol.v1.LimitedPriorityLevelConfiguration: NominalConcurrencyShares LimitResponse *LendablePercent *BorrowingLimitPercent
flowcontrol.v1.NonResourcePolicyRule: Verbs NonResourceURLs
flowcontrol.v1.PolicyRulesWithSubjects: Subjects ResourceRules NonResourceRules
flowcontrol.v1.PriorityLevelConfigurationReference: Name
flowcontrol.v1.PriorityLevelConfigurationSpec: Type *Limited *Exempt
flowcontrol.v1.QueuingConfiguration: Queues HandSize QueueLengthLimit
flowcontrol.v1.ResourcePolicyRule: Verbs APIGroups Resources ClusterScope Namespaces
flowcontrol.v1.ServiceAccountSubject: Namespace Name
flowcontrol.v1.Subject: Kind *User *Group *ServiceAccount
flowcontrol.v1.UserSubject: Name
meta.v1.LabelSelector: matchLabels? matchExpressions?
meta.v1.LabelSelectorRequirement: key operator values?
meta.v1.ObjectMeta: name? generateName? namespace? selfLink? uid? resourceVersion? generation? creationTimestamp? deletionTimestamp?
  deletionGracePeriodSeconds? labels? annotations? ownerReferences? finalizers? managedFields?
meta.v1.OwnerReference: apiVersion kind name uid controller? blockOwnerDeletion?
policy.v1.PodDisruptionBudgetSpec: *MinAvailable *Selector *MaxUnavailable *UnhealthyPodEvictionPolicy
rbac.v1.RoleRef: APIGroup Kind Name
storage.v1.VolumeAttachmentSource: *PersistentVolumeName *InlineVolumeSpec
storage.v1.VolumeAttachmentSpec: Attacher Source NodeName
)shapes";
}

}  // namespace berth::model
