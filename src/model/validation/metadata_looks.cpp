#include "model/validation/metadata_looks.h"

#include <set>

namespace berth::model {

MetadataLooks metadata_looks(const KindInfo& kind) {
  using Names = std::set<std::string_view>;
  // Their rules of updates are those of the whole object alone.
  static const Names kWithoutChanges = {"MutatingAdmissionPolicy",
                                        "MutatingAdmissionPolicyBinding",
                                        "MutatingWebhookConfiguration",
                                        "ValidatingAdmissionPolicy",
                                        "ValidatingAdmissionPolicyBinding",
                                        "ValidatingWebhookConfiguration",
                                        "CSINode",
                                        "EndpointSlice",
                                        "FlowSchema",
                                        "LimitRange",
                                        "PersistentVolume",
                                        "PodDisruptionBudget",
                                        "PriorityLevelConfiguration",
                                        "VolumeAttachment"};
  // They look at both.
  static const Names kWithBoth = {"APIService",
                                  "CertificateSigningRequest",
                                  "ClusterRole",
                                  "ClusterRoleBinding",
                                  "ConfigMap",
                                  "ControllerRevision",
                                  "Endpoints",
                                  "Ingress",
                                  "IngressClass",
                                  "Node",
                                  "PersistentVolumeClaim",
                                  "Pod",
                                  "ResourceClaim",
                                  "Role",
                                  "RoleBinding",
                                  "Secret",
                                  "ServiceAccount",
                                  "StatefulSet",
                                  "VolumeAttributesClass"};
  if (kWithoutChanges.contains(kind.kind)) return {.whole = 2, .changes = 1};
  if (kWithBoth.contains(kind.kind)) return {.whole = 2, .changes = 2};
  // Of the old group: they look at nothing more.
  static const Names kWithNeither = {"Event"};
  if (kind.group.empty() && kWithNeither.contains(kind.kind)) return {.whole = 1, .changes = 1};
  return {};
}

}  // namespace berth::model
