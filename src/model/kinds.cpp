#include "model/kinds.h"

#include <map>

#include "model/kind_hooks.h"

namespace berth::model {
namespace {

const std::vector<std::string> kAllVerbs = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"};
const std::vector<std::string> kCreateOnly = {"create"};
const std::vector<std::string> kReadOnly = {"get", "list"};

/// Builder of table entries: what most kinds share is the default, the rest is said.
struct Entry {
  KindInfo info;
  Entry(std::string group, std::string version, std::string kind, std::string plural) {
    info.group = info.storage_group = std::move(group);
    info.version = info.storage_version = std::move(version);
    info.kind = std::move(kind);
    info.list_kind = info.kind + "List";
    info.plural = std::move(plural);
    for (const char c : info.kind) info.singular += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    info.verbs = kAllVerbs;
  }
  Entry& shorts(std::vector<std::string> names) {
    info.short_names = std::move(names);
    return *this;
  }
  Entry& categories(std::vector<std::string> names) {
    info.categories = std::move(names);
    return *this;
  }
  Entry& cluster() {
    info.namespaced = false;
    return *this;
  }
  Entry& subs(std::vector<std::string> names) {
    info.subresources = std::move(names);
    return *this;
  }
  Entry& fields(std::vector<std::string> names) {
    info.field_selectors = std::move(names);
    return *this;
  }
  Entry& generation() {
    info.generation = true;
    return *this;
  }
  Entry& verbs(std::vector<std::string> names) {
    info.verbs = std::move(names);
    return *this;
  }
  Entry& stored_as(std::string group, std::string version) {
    info.storage_group = std::move(group);
    info.storage_version = std::move(version);
    return *this;
  }
  Entry& not_stored() {
    info.is_virtual = true;
    return *this;
  }
  Entry& hooks(KindHooks own) {
    info.hooks = std::make_shared<const KindHooks>(std::move(own));
    return *this;
  }
  operator KindInfo() const { return info; }  // NOLINT: the table below reads as a list of kinds.
};

std::vector<KindInfo> make_core() {
  const std::vector<std::string> event_fields = {"involvedObject.kind",
                                                 "involvedObject.namespace",
                                                 "involvedObject.name",
                                                 "involvedObject.uid",
                                                 "involvedObject.apiVersion",
                                                 "involvedObject.resourceVersion",
                                                 "involvedObject.fieldPath",
                                                 "reason",
                                                 "reportingComponent",
                                                 "source",
                                                 "type"};
  return {
      Entry("", "v1", "Binding", "bindings").verbs(kCreateOnly).not_stored(),
      Entry("", "v1", "ConfigMap", "configmaps").shorts({"cm"}),
      Entry("", "v1", "Endpoints", "endpoints").shorts({"ep"}),
      Entry("", "v1", "Event", "events").shorts({"ev"}).fields(event_fields),
      Entry("", "v1", "LimitRange", "limitranges").shorts({"limits"}),
      Entry("", "v1", "Namespace", "namespaces")
          .shorts({"ns"})
          .cluster()
          .subs({"finalize", "status"})
          .fields({"status.phase"})
          .verbs({"create", "delete", "get", "list", "patch", "update", "watch"}),
      Entry("", "v1", "Node", "nodes").shorts({"no"}).cluster().subs({"proxy", "status"}).fields({"spec.unschedulable"}),
      Entry("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims").shorts({"pvc"}).subs({"status"}),
      Entry("", "v1", "PersistentVolume", "persistentvolumes").shorts({"pv"}).cluster().subs({"status"}),
      Entry("", "v1", "Pod", "pods")
          .shorts({"po"})
          .categories({"all"})
          .subs({"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status"})
          .generation()
          .fields({"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
                   "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"}),
      Entry("", "v1", "PodTemplate", "podtemplates").generation(),
      Entry("", "v1", "ReplicationController", "replicationcontrollers")
          .shorts({"rc"})
          .categories({"all"})
          .subs({"scale", "status"})
          .fields({"status.replicas"})
          .generation(),
      Entry("", "v1", "ResourceQuota", "resourcequotas").shorts({"quota"}).subs({"status"}),
      Entry("", "v1", "Secret", "secrets").fields({"type"}),
      Entry("", "v1", "ServiceAccount", "serviceaccounts").shorts({"sa"}).subs({"token"}),
      Entry("", "v1", "Service", "services")
          .shorts({"svc"})
          .categories({"all"})
          .subs({"proxy", "status"})
          .fields({"spec.clusterIP", "spec.type"}),
  };
}

std::vector<KindInfo> make_groups() {
  const std::vector<std::string> event_fields = {"regarding.kind",       "regarding.namespace",
                                                 "regarding.name",       "regarding.uid",
                                                 "regarding.apiVersion", "regarding.resourceVersion",
                                                 "regarding.fieldPath",  "reason",
                                                 "reportingController",  "type"};
  return {
      Entry("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
          .categories({"api-extensions"})
          .cluster()
          .generation(),
      Entry("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
          .categories({"api-extensions"})
          .cluster()
          .subs({"status"})
          .generation(),
      Entry("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
          .categories({"api-extensions"})
          .cluster()
          .generation(),
      Entry("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
          .categories({"api-extensions"})
          .cluster()
          .generation(),
      Entry("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
          .shorts({"crd", "crds"})
          .categories({"api-extensions"})
          .cluster()
          .subs({"status"})
          .generation(),
      Entry("apiregistration.k8s.io", "v1", "APIService", "apiservices").categories({"api-extensions"}).cluster().subs({"status"}),
      Entry("apps", "v1", "ControllerRevision", "controllerrevisions"),
      Entry("apps", "v1", "DaemonSet", "daemonsets").shorts({"ds"}).categories({"all"}).subs({"status"}).generation(),
      Entry("apps", "v1", "Deployment", "deployments").shorts({"deploy"}).categories({"all"}).subs({"scale", "status"}).generation(),
      Entry("apps", "v1", "ReplicaSet", "replicasets").shorts({"rs"}).categories({"all"}).subs({"scale", "status"}).generation(),
      Entry("apps", "v1", "StatefulSet", "statefulsets").shorts({"sts"}).categories({"all"}).subs({"scale", "status"}).generation(),
      Entry("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews").cluster().verbs(kCreateOnly).not_stored(),
      Entry("authentication.k8s.io", "v1", "TokenReview", "tokenreviews").cluster().verbs(kCreateOnly).not_stored(),
      Entry("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews").verbs(kCreateOnly).not_stored(),
      Entry("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews").cluster().verbs(kCreateOnly).not_stored(),
      Entry("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster().verbs(kCreateOnly).not_stored(),
      Entry("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews").cluster().verbs(kCreateOnly).not_stored(),
      Entry("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
          .shorts({"hpa"})
          .categories({"all"})
          .subs({"status"}),
      Entry("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
          .shorts({"hpa"})
          .categories({"all"})
          .subs({"status"})
          .stored_as("autoscaling", "v2"),
      Entry("autoscaling", "v2beta2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
          .shorts({"hpa"})
          .categories({"all"})
          .subs({"status"})
          .stored_as("autoscaling", "v2"),
      Entry("batch", "v1", "CronJob", "cronjobs").shorts({"cj"}).categories({"all"}).subs({"status"}).generation(),
      Entry("batch", "v1", "Job", "jobs").categories({"all"}).subs({"status"}).fields({"status.successful"}).generation(),
      Entry("batch", "v1beta1", "CronJob", "cronjobs")
          .shorts({"cj"})
          .categories({"all"})
          .subs({"status"})
          .generation()
          .stored_as("batch", "v1"),
      Entry("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests")
          .shorts({"csr"})
          .cluster()
          .subs({"approval", "status"})
          .fields({"spec.signerName"}),
      Entry("coordination.k8s.io", "v1", "Lease", "leases"),
      Entry("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices").generation(),
      Entry("discovery.k8s.io", "v1beta1", "EndpointSlice", "endpointslices").generation().stored_as("discovery.k8s.io", "v1"),
      Entry("events.k8s.io", "v1", "Event", "events").shorts({"ev"}).fields(event_fields).stored_as("", "v1"),
      Entry("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas").cluster().subs({"status"}).generation(),
      Entry("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations")
          .cluster()
          .subs({"status"})
          .generation(),
      Entry("networking.k8s.io", "v1", "IngressClass", "ingressclasses").cluster().generation(),
      Entry("networking.k8s.io", "v1", "Ingress", "ingresses").shorts({"ing"}).subs({"status"}).generation(),
      Entry("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies").shorts({"netpol"}).generation(),
      Entry("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses").cluster(),
      Entry("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets").shorts({"pdb"}).subs({"status"}).generation(),
      Entry("policy", "v1beta1", "PodDisruptionBudget", "poddisruptionbudgets")
          .shorts({"pdb"})
          .subs({"status"})
          .generation()
          .stored_as("policy", "v1"),
      Entry("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings").cluster(),
      Entry("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles").cluster(),
      Entry("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
      Entry("rbac.authorization.k8s.io", "v1", "Role", "roles"),
      Entry("rbac.authorization.k8s.io", "v1beta1", "ClusterRoleBinding", "clusterrolebindings")
          .cluster()
          .stored_as("rbac.authorization.k8s.io", "v1"),
      Entry("rbac.authorization.k8s.io", "v1beta1", "ClusterRole", "clusterroles").cluster().stored_as("rbac.authorization.k8s.io", "v1"),
      Entry("rbac.authorization.k8s.io", "v1beta1", "RoleBinding", "rolebindings").stored_as("rbac.authorization.k8s.io", "v1"),
      Entry("rbac.authorization.k8s.io", "v1beta1", "Role", "roles").stored_as("rbac.authorization.k8s.io", "v1"),
      Entry("resource.k8s.io", "v1", "DeviceClass", "deviceclasses").cluster().generation(),
      Entry("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims").subs({"status"}),
      Entry("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
      Entry("resource.k8s.io", "v1", "ResourceSlice", "resourceslices").cluster().generation().fields({"spec.driver", "spec.nodeName"}),
      Entry("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses").shorts({"pc"}).cluster().generation(),
      Entry("scheduling.k8s.io", "v1beta1", "PriorityClass", "priorityclasses")
          .shorts({"pc"})
          .cluster()
          .generation()
          .stored_as("scheduling.k8s.io", "v1"),
      Entry("storage.k8s.io", "v1", "CSIDriver", "csidrivers").cluster().generation(),
      Entry("storage.k8s.io", "v1", "CSINode", "csinodes").cluster(),
      Entry("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities"),
      Entry("storage.k8s.io", "v1", "StorageClass", "storageclasses").shorts({"sc"}).cluster(),
      Entry("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments").cluster().subs({"status"}),
      Entry("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses").shorts({"vac"}).cluster(),
      Entry("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes").cluster().verbs(kReadOnly).not_stored(),
      Entry("metrics.k8s.io", "v1beta1", "PodMetrics", "pods").verbs(kReadOnly).not_stored(),
      Entry("machine.openshift.io", "v1beta1", "Machine", "machines").subs({"status"}).generation(),
      Entry("machine.openshift.io", "v1beta1", "MachineSet", "machinesets").subs({"scale", "status"}).generation(),
      Entry("autoscaling.openshift.io", "v1", "ClusterAutoscaler", "clusterautoscalers")
          .shorts({"ca"})
          .cluster()
          .subs({"status"})
          .generation(),
      Entry("autoscaling.openshift.io", "v1beta1", "MachineAutoscaler", "machineautoscalers")
          .shorts({"ma"})
          .subs({"scale", "status"})
          .generation(),
  };
}

/// Its elements point to one another: it is moved, never copied.
std::vector<KindInfo> make_all() {
  std::vector<KindInfo> all = make_core();
  for (KindInfo& kind : make_groups()) all.push_back(std::move(kind));
  for (KindInfo& kind : all)
    if (kind.kind == "Endpoints") kind.singular = "endpoints";
  for (KindInfo& kind : all) {
    if (kind.group == kind.storage_group && kind.version == kind.storage_version) continue;
    for (const KindInfo& other : all)
      if (other.plural == kind.plural && other.version == kind.storage_version && other.group == kind.storage_group) kind.stored = &other;
  }
  return all;
}

}  // namespace

bool KindInfo::has_subresource(std::string_view name) const {
  return std::find(subresources.begin(), subresources.end(), name) != subresources.end();
}
bool KindInfo::has_verb(std::string_view name) const { return std::find(verbs.begin(), verbs.end(), name) != verbs.end(); }

const std::vector<KindInfo>& all_kinds() {
  static const std::vector<KindInfo> kinds = make_all();
  return kinds;
}

const KindInfo* find_kind(std::string_view group, std::string_view version, std::string_view kind) {
  for (const KindInfo& info : all_kinds())
    if (info.kind == kind && info.version == version && info.group == group) return &info;
  return nullptr;
}

const KindInfo* find_resource(std::string_view group, std::string_view version, std::string_view plural) {
  for (const KindInfo& info : all_kinds())
    if (info.plural == plural && info.version == version && info.group == group) return &info;
  return nullptr;
}

const KindInfo* find_resource(std::string_view group, std::string_view plural) {
  for (const KindInfo& info : all_kinds())
    if (info.plural == plural && info.group == group) return &info;
  return nullptr;
}

}  // namespace berth::model
