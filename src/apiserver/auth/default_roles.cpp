#include "apiserver/auth/default_roles.h"

#include "model/features.h"

namespace berth::apiserver::auth {
namespace {

// A rule is "VERBS GROUPS RESOURCES [NAMES]" or "VERBS url PATHS", each a list with commas; the core group is written "core". Verb lists
// that occur often have names. "if=GATE " before a rule: there only where that feature is on; a role without any rule left is not there.
constexpr std::string_view kVerbLists[][2] = {
    {"READ", "get,list,watch"},
    {"WRITE", "create,delete,deletecollection,patch,update"},
    {"ALL", "create,delete,deletecollection,get,list,patch,update,watch"},
    {"EVENTS", "create,patch,update"},
};
constexpr std::string_view kEvents = "EVENTS core,events.k8s.io events";

struct RoleRow {
  std::string_view name;  ///< "NAMESPACE/NAME" for a Role.
  std::vector<std::string_view> rules;
  std::string_view aggregated_by;  ///< The label rbac.authorization.k8s.io/aggregate-to-…, when others gather this one.
  std::string_view gathers;        ///< The label it gathers by; then it has no rules of its own.
};

struct BindingRow {
  std::string_view name;                   ///< "NAMESPACE/NAME" for a RoleBinding.
  std::string_view role;                   ///< Of the same scope.
  std::vector<std::string_view> subjects;  ///< "g:GROUP", "u:USER", "s:NAMESPACE/NAME"
};

std::vector<RoleRow> user_facing_roles() {
  return {
      {"cluster-admin", {"* * *", "* url *"}, "", ""},
      {"admin", {}, "", "admin"},
      {"edit", {}, "admin", "edit"},
      {"view", {}, "edit", "view"},
      {"system:aggregate-to-admin",
       {"create authorization.k8s.io localsubjectaccessreviews", "ALL rbac.authorization.k8s.io rolebindings,roles"},
       "admin",
       ""},
      {"system:aggregate-to-edit",
       {"READ core pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy", "impersonate core serviceaccounts",
        "WRITE core pods,pods/attach,pods/exec,pods/portforward,pods/proxy", "create core pods/eviction",
        "WRITE core "
        "configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/scale,secrets,serviceaccounts,services,"
        "services/proxy",
        "create core serviceaccounts/token", "WRITE core,events.k8s.io events",
        "WRITE apps "
        "daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,statefulsets/scale",
        "WRITE autoscaling horizontalpodautoscalers", "WRITE batch cronjobs,jobs",
        "WRITE extensions "
        "daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,replicasets/scale,"
        "replicationcontrollers/scale",
        "WRITE policy poddisruptionbudgets", "WRITE networking.k8s.io ingresses,networkpolicies", "ALL coordination.k8s.io leases",
        "WRITE resource.k8s.io resourceclaims,resourceclaimtemplates"},
       "edit",
       ""},
      {"system:aggregate-to-view",
       {"READ core configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,"
        "replicationcontrollers/scale,serviceaccounts,services,services/status",
        "READ core bindings,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,"
        "resourcequotas/status",
        "READ core namespaces", "READ core,events.k8s.io events", "READ discovery.k8s.io endpointslices",
        "READ apps "
        "controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,replicasets/scale,"
        "replicasets/status,statefulsets,statefulsets/scale,statefulsets/status",
        "READ autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status", "READ batch cronjobs,cronjobs/status,jobs,jobs/status",
        "READ extensions "
        "daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,networkpolicies,"
        "replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale",
        "READ policy poddisruptionbudgets,poddisruptionbudgets/status", "READ networking.k8s.io ingresses,ingresses/status,networkpolicies",
        "READ resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates"},
       "view",
       ""},
      // metrics.k8s.io is served here, so its reader's role comes with it (in Kubernetes metrics-server brings it).
      {"system:aggregated-metrics-reader", {"READ metrics.k8s.io nodes,pods"}, "view", ""},
  };
}

std::vector<RoleRow> system_roles() {
  return {
      {"system:discovery", {"get url /api,/api/*,/apis,/apis/*,/healthz,/livez,/openapi,/openapi/*,/readyz,/version,/version/"}, "", ""},
      {"system:public-info-viewer", {"get url /healthz,/livez,/readyz,/version,/version/"}, "", ""},
      {"system:monitoring",
       {"get url /flagz,/healthz,/healthz/*,/livez,/livez/*,/metrics,/metrics/slis,/readyz,/readyz/*,/statusz"},
       "",
       ""},
      {"system:basic-user",
       {"create authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews", "create authentication.k8s.io selfsubjectreviews"},
       "",
       ""},
      {"system:service-account-issuer-discovery",
       {"get url /.well-known/openid-configuration,/.well-known/openid-configuration/,/openid/v1/jwks,/openid/v1/jwks/"},
       "",
       ""},
      {"system:auth-delegator", {"create authentication.k8s.io tokenreviews", "create authorization.k8s.io subjectaccessreviews"}, "", ""},
      {"system:heapster", {"READ core events,namespaces,nodes,pods", "READ extensions deployments"}, "", ""},
      {"system:kube-aggregator", {"READ core endpoints,services"}, "", ""},
      {"system:kube-dns", {"list,watch core endpoints,services"}, "", ""},
      {"system:kubelet-api-admin",
       {"get,list,watch core nodes", "proxy core nodes", "* core nodes/log,nodes/metrics,nodes/proxy,nodes/stats"},
       "",
       ""},
      {"system:node-bootstrapper", {"create,get,list,watch certificates.k8s.io certificatesigningrequests"}, "", ""},
      {"kubeadm:get-nodes", {"get core nodes"}, "", ""},
      {"system:node-problem-detector", {"get core nodes", "patch core nodes/status", kEvents}, "", ""},
      {"berth:node-proxier", {"list,watch core namespaces,services", "list,watch discovery.k8s.io endpointslices"}, "", ""},
      {"berth:node-topologies", {"READ topology.node.k8s.io noderesourcetopologies"}, "", ""},
      {"berth:node-policies", {"list,watch core namespaces,pods", "list,watch networking.k8s.io networkpolicies"}, "", ""},
      {"system:node-proxier",
       {"list,watch core endpoints,services", "get,list,watch core nodes", kEvents, "list,watch discovery.k8s.io endpointslices"},
       "",
       ""},
      {"system:persistent-volume-provisioner",
       {"create,delete,get,list,watch core persistentvolumes", "get,list,update,watch core persistentvolumeclaims",
        "READ storage.k8s.io storageclasses", "watch core events", kEvents},
       "",
       ""},
      {"system:volume-scheduler",
       {"get,list,patch,update,watch core persistentvolumes", "READ storage.k8s.io storageclasses",
        "get,list,patch,update,watch core persistentvolumeclaims"},
       "",
       ""},
      {"system:certificates.k8s.io:certificatesigningrequests:nodeclient",
       {"create certificates.k8s.io certificatesigningrequests/nodeclient"},
       "",
       ""},
      {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       {"create certificates.k8s.io certificatesigningrequests/selfnodeclient"},
       "",
       ""},
      {"system:certificates.k8s.io:kube-apiserver-client-approver",
       {"approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client"},
       "",
       ""},
      {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
       {"approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet"},
       "",
       ""},
      {"system:certificates.k8s.io:kubelet-serving-approver",
       {"approve certificates.k8s.io signers kubernetes.io/kubelet-serving"},
       "",
       ""},
      {"system:certificates.k8s.io:legacy-unknown-approver", {"approve certificates.k8s.io signers kubernetes.io/legacy-unknown"}, "", ""},
  };
}

// Longer than a screen: a table, a line a role.
std::vector<RoleRow> component_roles() {
  return {
      {"system:node",
       {"create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews",
        "READ core services",
        "create,get,list,watch core nodes",
        "patch,update core nodes/status",
        "patch,update core nodes",
        "EVENTS core,events.k8s.io events",
        "READ core pods",
        "create,delete core pods",
        "patch,update core pods/status",
        "create core pods/eviction",
        "READ core configmaps,secrets",
        "get core persistentvolumeclaims,persistentvolumes",
        "get core endpoints",
        "create,get,list,watch certificates.k8s.io certificatesigningrequests",
        "create,delete,get,patch,update coordination.k8s.io leases",
        "get storage.k8s.io volumeattachments",
        "create core serviceaccounts/token",
        "get,patch,update core persistentvolumeclaims/status",
        "READ storage.k8s.io csidrivers",
        "create,delete,get,patch,update storage.k8s.io csinodes",
        "READ node.k8s.io runtimeclasses",
        "get resource.k8s.io resourceclaims",
        "deletecollection resource.k8s.io resourceslices"},
       "",
       ""},
      {"system:kube-scheduler",
       {kEvents,
        "create coordination.k8s.io leases",
        "get,list,update,watch coordination.k8s.io leases kube-scheduler",
        "create coordination.k8s.io leasecandidates",
        "delete,get,list,patch,update,watch coordination.k8s.io leasecandidates",
        "READ core nodes",
        "delete,get,list,watch core pods",
        "create core bindings,pods/binding",
        "patch,update core pods/status",
        "READ core replicationcontrollers,services",
        "READ apps,extensions replicasets",
        "READ apps statefulsets",
        "READ policy poddisruptionbudgets",
        "READ core persistentvolumeclaims,persistentvolumes",
        "create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io subjectaccessreviews",
        "READ storage.k8s.io csinodes",
        "READ core namespaces",
        "READ storage.k8s.io csidrivers",
        "READ storage.k8s.io csistoragecapacities",
        "READ storage.k8s.io volumeattachments",
        "READ resource.k8s.io deviceclasses",
        "get,list,patch,update,watch resource.k8s.io resourceclaims",
        "get,list,patch,update,watch resource.k8s.io resourceclaims/status",
        "update core pods/finalizers",
        "READ resource.k8s.io resourceslices",
        "if=DRADeviceTaintRules READ resource.k8s.io devicetaintrules",
        "create,delete resource.k8s.io resourceclaims",
        "patch,update resource.k8s.io resourceclaims/binding",
        "if=GenericWorkload READ scheduling.k8s.io podgroups",
        "if=GenericWorkload patch,update scheduling.k8s.io podgroups/status"},
       "",
       ""},
      {"system:kube-controller-manager",
       {kEvents, "create coordination.k8s.io leases", "get,list,update,watch coordination.k8s.io leases kube-controller-manager",
        "create coordination.k8s.io leasecandidates", "delete,get,list,patch,update,watch coordination.k8s.io leasecandidates",
        "create core secrets,serviceaccounts", "delete core secrets", "get core configmaps,namespaces,secrets,serviceaccounts",
        "update core secrets,serviceaccounts", "create authentication.k8s.io tokenreviews",
        "create authorization.k8s.io subjectaccessreviews", "list,watch * *", "create core serviceaccounts/token"},
       "",
       ""},
  };
}

/// Each is bound to the service account of its name in kube-system.
// Longer than a screen: a table, a line a role.
std::vector<RoleRow> controller_roles() {
  return {
      {"attachdetach-controller",
       {"list,watch core persistentvolumeclaims,persistentvolumes", "READ core nodes", "patch,update core nodes/status",
        "list,watch core pods", kEvents, "create,delete,get,list,watch storage.k8s.io volumeattachments", "READ storage.k8s.io csidrivers",
        "READ storage.k8s.io csinodes"}},
      {"clusterrole-aggregation-controller", {"escalate,get,list,patch,update,watch rbac.authorization.k8s.io clusterroles"}},
      {"cronjob-controller",
       {"get,list,update,watch batch cronjobs", "create,delete,get,list,patch,update,watch batch jobs", "update batch cronjobs/status",
        "update batch cronjobs/finalizers", "delete,list,watch core pods", kEvents}},
      {"daemon-set-controller",
       {"READ apps,extensions daemonsets", "update apps,extensions daemonsets/status", "update apps,extensions daemonsets/finalizers",
        "list,watch core nodes", "create,delete,list,patch,watch core pods", "create core pods/binding",
        "create,delete,get,list,patch,update,watch apps controllerrevisions", kEvents}},
      {"deployment-controller",
       {"get,list,update,watch apps,extensions deployments", "update apps,extensions deployments/status",
        "update apps,extensions deployments/finalizers", "create,delete,get,list,patch,update,watch apps,extensions replicasets",
        "get,list,update,watch core pods", kEvents}},
      {"disruption-controller",
       {"READ apps,extensions deployments", "READ apps,extensions replicasets", "READ core replicationcontrollers",
        "READ policy poddisruptionbudgets", "READ apps statefulsets", "update policy poddisruptionbudgets/status",
        "patch,update core pods/status", "get * */scale", kEvents}},
      {"endpoint-controller",
       {"READ core pods,services", "create,delete,get,list,update,watch core endpoints", "create core endpoints/restricted", kEvents}},
      {"endpointslice-controller",
       {"READ core nodes,pods,services", "update core services/finalizers",
        "create,delete,get,list,update,watch discovery.k8s.io endpointslices", kEvents}},
      {"endpointslicemirroring-controller",
       {"READ core endpoints,services", "update core services/finalizers", "update core endpoints/finalizers",
        "create,delete,get,list,update,watch discovery.k8s.io endpointslices", kEvents}},
      {"ephemeral-volume-controller",
       {"READ core pods", "update core pods/finalizers", "create,get,list,watch core persistentvolumeclaims", kEvents}},
      {"resource-claim-controller",
       {"READ core pods", "update core pods/finalizers", "create,delete,get,list,watch resource.k8s.io resourceclaims",
        "patch,update resource.k8s.io resourceclaims,resourceclaims/status", "patch,update core pods/status", kEvents,
        "patch,update resource.k8s.io resourceclaims/binding", "if=DRAWorkloadResourceClaims READ scheduling.k8s.io podgroups",
        "if=DRAWorkloadResourceClaims patch,update scheduling.k8s.io podgroups/status"}},
      {"device-taint-eviction-controller",
       {"delete,get,list,watch core pods", "patch,update core pods/status", "READ resource.k8s.io resourceclaims",
        "READ resource.k8s.io resourceslices", "READ resource.k8s.io deviceclasses",
        "if=DRADeviceTaintRules READ resource.k8s.io devicetaintrules",
        "if=DRADeviceTaintRules patch,update resource.k8s.io devicetaintrules/status", kEvents}},
      {"expand-controller",
       {"get,list,patch,update,watch core persistentvolumes", "patch,update core persistentvolumeclaims/status",
        "READ core persistentvolumeclaims", "get core services", kEvents}},
      {"generic-garbage-collector", {"delete,get,list,patch,update,watch * *", kEvents}},
      {"horizontal-pod-autoscaler",
       {"READ autoscaling horizontalpodautoscalers", "update autoscaling horizontalpodautoscalers/status", "get,update * */scale",
        "list,watch core pods", "list,watch metrics.k8s.io pods", "READ custom.metrics.k8s.io *", "READ external.metrics.k8s.io *",
        kEvents}},
      {"job-controller",
       {"get,list,patch,update,watch batch jobs", "update batch jobs/status", "update batch jobs/finalizers",
        "create,delete,list,patch,watch core pods", kEvents,
        "if=WorkloadWithJob create,get,list,patch,update,watch scheduling.k8s.io podgroups,workloads"}},
      {"legacy-service-account-token-cleaner",
       {"get core configmaps kube-apiserver-legacy-service-account-token-tracking", "delete,patch core secrets"}},
      {"namespace-controller",
       {"delete,get,list,watch core namespaces", "update core namespaces/finalize,namespaces/status",
        "delete,deletecollection,get,list,watch * *"}},
      {"node-controller",
       {"delete,get,list,patch,update,watch core nodes", "patch,update core nodes/status", "patch,update core pods/status",
        "delete,get,list,watch core pods", kEvents}},
      {"persistent-volume-binder",
       {"create,delete,get,list,update,watch core persistentvolumes", "update core persistentvolumes/status",
        "get,list,update,watch core persistentvolumeclaims", "update core persistentvolumeclaims/status",
        "create,delete,get,list,watch core pods", "READ storage.k8s.io storageclasses", "list,watch core nodes", "watch core events",
        "get core services", kEvents}},
      {"pod-garbage-collector", {"delete,list,watch core pods", "READ core nodes", "patch core pods/status"}},
      {"podgroup-protection-controller",
       {"if=GenericWorkload get,list,update,watch scheduling.k8s.io podgroups", "if=GenericWorkload READ core pods"}},
      {"pv-protection-controller", {"get,list,update,watch core persistentvolumes", kEvents}},
      {"pvc-protection-controller", {"get,list,update,watch core persistentvolumeclaims", "READ core pods", kEvents}},
      {"replicaset-controller",
       {"get,list,update,watch apps,extensions replicasets", "update apps,extensions replicasets/status",
        "update apps,extensions replicasets/finalizers", "create,delete,list,patch,watch core pods", kEvents}},
      {"replication-controller",
       {"get,list,update,watch core replicationcontrollers", "update core replicationcontrollers/status",
        "update core replicationcontrollers/finalizers", "create,delete,list,patch,watch core pods", kEvents}},
      {"resourcequota-controller", {"list,watch * *", "update core resourcequotas/status", kEvents}},
      {"root-ca-cert-publisher", {"create,update core configmaps", kEvents}},
      {"route-controller", {"list,watch core nodes", "patch core nodes/status", kEvents}},
      {"service-account-controller", {"create core serviceaccounts", kEvents}},
      {"service-controller", {"READ core services", "patch,update core services/status", "list,watch core nodes", kEvents}},
      {"statefulset-controller",
       {"list,watch core pods", "READ apps statefulsets", "update apps statefulsets/status", "update apps statefulsets/finalizers",
        "create,delete,get,patch,update core pods", "create,delete,get,list,patch,update,watch apps controllerrevisions",
        "create,get,list,watch core persistentvolumeclaims", "delete,update core persistentvolumeclaims", "update core pods/finalizers",
        kEvents}},
      {"taint-eviction-controller", {"patch,update core pods/status", "delete,get,list,watch core pods", "READ core nodes", kEvents}},
      {"ttl-after-finished-controller", {"delete,get,list,watch batch jobs", kEvents}},
      {"ttl-controller", {"list,patch,update,watch core nodes", kEvents}},
      {"certificate-controller",
       {"delete,get,list,watch certificates.k8s.io certificatesigningrequests",
        "update certificates.k8s.io certificatesigningrequests/approval,certificatesigningrequests/status",
        "approve certificates.k8s.io signers kubernetes.io/kube-apiserver-client-kubelet",
        "sign certificates.k8s.io signers "
        "kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,kubernetes.io/kubelet-serving,kubernetes.io/"
        "legacy-unknown",
        "create authorization.k8s.io subjectaccessreviews", kEvents}},
      {"validatingadmissionpolicy-status-controller",
       {"READ admissionregistration.k8s.io validatingadmissionpolicies",
        "get,patch,update admissionregistration.k8s.io validatingadmissionpolicies/status", kEvents}},
      {"volumeattributesclass-protection-controller",
       {"READ core persistentvolumeclaims", "READ core persistentvolumes", "get,list,update,watch storage.k8s.io volumeattributesclasses",
        kEvents}},
  };
}

std::vector<RoleRow> namespaced_roles() {
  return {
      {"kube-system/extension-apiserver-authentication-reader", {"READ core configmaps extension-apiserver-authentication"}, "", ""},
      {"kube-system/system:controller:bootstrap-signer", {"READ core secrets"}, "", ""},
      {"kube-system/system:controller:cloud-provider", {"create,get,list,watch core configmaps"}, "", ""},
      {"kube-system/system:controller:token-cleaner", {"delete,get,list,watch core secrets", kEvents}, "", ""},
      {"kube-system/system::leader-locking-kube-controller-manager",
       {"watch core configmaps", "get,update core configmaps kube-controller-manager"},
       "",
       ""},
      {"kube-system/system::leader-locking-kube-scheduler", {"watch core configmaps", "get,update core configmaps kube-scheduler"}, "", ""},
      // A scheduler tells there how it decides, for whatever explains and plans.
      {"kube-system/berth:scheduler-configuration",
       {"create core configmaps", "get,patch core configmaps berth-scheduler-default-scheduler"},
       "",
       ""},
      {"kube-system/berth:scheduler-configuration-reader", {"get core configmaps berth-scheduler-default-scheduler"}, "", ""},
      // What kubeadm makes, so that machines may join: the cluster's address and authority for everybody, the rest by a token.
      {"kube-public/kubeadm:bootstrap-signer-clusterinfo", {"get core configmaps cluster-info"}, "", ""},
      {"kube-system/kubeadm:nodes-kubeadm-config", {"get core configmaps kubeadm-config"}, "", ""},
      {"kube-system/kubeadm:kubelet-config", {"get core configmaps kubelet-config"}, "", ""},
      {"kube-public/system:controller:bootstrap-signer", {"READ core configmaps", "update core configmaps cluster-info", kEvents}, "", ""},
  };
}

std::vector<BindingRow> bindings() {
  constexpr std::string_view kNodeTokens = "g:system:bootstrappers:kubeadm:default-node-token";
  return {
      {"cluster-admin", "cluster-admin", {"g:system:masters"}},
      {"system:discovery", "system:discovery", {"g:system:authenticated"}},
      {"system:basic-user", "system:basic-user", {"g:system:authenticated"}},
      {"system:public-info-viewer", "system:public-info-viewer", {"g:system:authenticated", "g:system:unauthenticated"}},
      {"system:monitoring", "system:monitoring", {"g:system:monitoring"}},
      {"system:service-account-issuer-discovery", "system:service-account-issuer-discovery", {"g:system:serviceaccounts"}},
      {"system:kube-dns", "system:kube-dns", {"s:kube-system/kube-dns"}},
      {"system:node-proxier", "system:node-proxier", {"u:system:kube-proxy"}},
      // berth node leads Services to their pods itself and answers for their names, as agents of kube-proxy and CoreDNS do elsewhere. Who
      // has these instead takes the subjects away. To hold NetworkPolicies a node must see every pod, berth:node-policies: that is for
      // whoever runs the cluster to give (docs/security.md).
      {"berth:node-proxier", "berth:node-proxier", {"g:system:nodes"}},
      {"system:kube-controller-manager", "system:kube-controller-manager", {"u:system:kube-controller-manager"}},
      // `berth controllers` works under its certificate's own name, where kube-controller-manager takes a service account for each
      // controller. All of them together may do everything: the namespace controller alone empties any namespace.
      {"berth:controllers", "cluster-admin", {"u:system:kube-controller-manager"}},
      {"system:kube-scheduler", "system:kube-scheduler", {"u:system:kube-scheduler"}},
      {"system:volume-scheduler", "system:volume-scheduler", {"u:system:kube-scheduler"}},
      {"berth:node-topologies", "berth:node-topologies", {"u:system:kube-scheduler"}},
      {"berth:kubelet-clients", "system:kubelet-api-admin", {"g:berth:kubelet-clients"}},
      {"kube-public/kubeadm:bootstrap-signer-clusterinfo", "kubeadm:bootstrap-signer-clusterinfo", {"u:system:anonymous"}},
      {"kubeadm:kubelet-bootstrap", "system:node-bootstrapper", {kNodeTokens}},
      {"kubeadm:get-nodes", "kubeadm:get-nodes", {kNodeTokens}},
      {"kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", {kNodeTokens}},
      {"kubeadm:node-autoapprove-certificate-rotation",
       "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
       {"g:system:nodes"}},
      {"kube-system/kubeadm:nodes-kubeadm-config", "kubeadm:nodes-kubeadm-config", {kNodeTokens, "g:system:nodes"}},
      {"kube-system/kubeadm:kubelet-config", "kubeadm:kubelet-config", {kNodeTokens, "g:system:nodes"}},
      {"berth:cluster-admins", "cluster-admin", {"g:berth:cluster-admins"}},
      // Nodes are judged by the node authorizer; the binding stays for whoever adds subjects to it.
      {"system:node", "system:node", {}},
      {"kube-system/system::extension-apiserver-authentication-reader",
       "extension-apiserver-authentication-reader",
       {"u:system:kube-controller-manager", "u:system:kube-scheduler"}},
      {"kube-system/system::leader-locking-kube-controller-manager",
       "system::leader-locking-kube-controller-manager",
       {"u:system:kube-controller-manager", "s:kube-system/kube-controller-manager"}},
      {"kube-system/system::leader-locking-kube-scheduler",
       "system::leader-locking-kube-scheduler",
       {"u:system:kube-scheduler", "s:kube-system/kube-scheduler"}},
      {"kube-system/berth:scheduler-configuration", "berth:scheduler-configuration", {"u:system:kube-scheduler"}},
      {"kube-system/berth:scheduler-configuration-reader",
       "berth:scheduler-configuration-reader",
       {"g:system:serviceaccounts:kube-system"}},
      {"kube-system/system:controller:bootstrap-signer", "system:controller:bootstrap-signer", {"s:kube-system/bootstrap-signer"}},
      {"kube-system/system:controller:cloud-provider", "system:controller:cloud-provider", {"s:kube-system/cloud-provider"}},
      {"kube-system/system:controller:token-cleaner", "system:controller:token-cleaner", {"s:kube-system/token-cleaner"}},
      {"kube-public/system:controller:bootstrap-signer", "system:controller:bootstrap-signer", {"s:kube-system/bootstrap-signer"}},
  };
}

json::Array list(std::string_view text) {
  for (const auto& [name, verbs] : kVerbLists) {
    if (text == name) text = verbs;
  }
  json::Array out;
  while (!text.empty()) {
    auto comma = std::min(text.find(','), text.size());
    std::string_view entry = text.substr(0, comma);
    out.emplace_back(entry == "core" ? std::string_view() : entry);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

json::Object rule(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    auto space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  if (words[1] == "url") return {{"nonResourceURLs", list(words[2])}, {"verbs", list(words[0])}};
  json::Object out{{"apiGroups", list(words[1])}, {"resources", list(words[2])}, {"verbs", list(words[0])}};
  if (words.size() > 3) out["resourceNames"] = list(words[3]);
  return out;
}

/// Document with the metadata all defaults have; `name` may carry a namespace in front.
json::Object document(std::string_view kind, std::string_view name) {
  json::Object metadata{{"annotations", {{"rbac.authorization.kubernetes.io/autoupdate", "true"}}},
                        {"labels", {{"kubernetes.io/bootstrapping", "rbac-defaults"}}}};
  auto slash = name.find('/');
  metadata["name"] = name.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (slash != std::string_view::npos) metadata["namespace"] = name.substr(0, slash);
  return {{"apiVersion", "rbac.authorization.k8s.io/v1"}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

json::Value role_document(const RoleRow& row, std::string_view prefix = {}) {
  std::string name = std::string(prefix) + std::string(row.name);
  json::Object object = document(name.find('/') == std::string::npos ? "ClusterRole" : "Role", name);
  constexpr std::string_view kAggregate = "rbac.authorization.k8s.io/aggregate-to-";
  if (!row.aggregated_by.empty()) {
    object["metadata"].get_object()["labels"].get_object()[std::string(kAggregate) + std::string(row.aggregated_by)] = "true";
  }
  if (!row.gathers.empty()) {
    json::Object labels{{std::string(kAggregate) + std::string(row.gathers), "true"}};
    object["aggregationRule"] = json::Object{{"clusterRoleSelectors", json::Array{json::Object{{"matchLabels", std::move(labels)}}}}};
  }
  json::Array rules;
  for (std::string_view text : row.rules) rules.emplace_back(rule(text));
  object["rules"] = std::move(rules);
  return object;
}

json::Value binding_document(const BindingRow& row) {
  const bool cluster = row.name.find('/') == std::string_view::npos;
  json::Object object = document(cluster ? "ClusterRoleBinding" : "RoleBinding", row.name);
  object["roleRef"] =
      json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", cluster ? "ClusterRole" : "Role"}, {"name", row.role}};
  json::Array subjects;
  for (std::string_view text : row.subjects) {
    std::string_view name = text.substr(2);
    if (text.front() == 's') {
      auto slash = name.find('/');
      subjects.push_back(json::Object{{"kind", "ServiceAccount"}, {"name", name.substr(slash + 1)}, {"namespace", name.substr(0, slash)}});
    } else {
      subjects.push_back(
          json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", text.front() == 'g' ? "Group" : "User"}, {"name", name}});
    }
  }
  if (!subjects.empty()) object["subjects"] = std::move(subjects);
  return object;
}

/// The rows as they are with these features.
std::vector<RoleRow> with_features(std::vector<RoleRow> rows, model::Features features) {
  constexpr std::string_view kIf = "if=";
  for (RoleRow& row : rows) {
    std::vector<std::string_view> left;
    for (std::string_view text : row.rules) {
      const bool is_gated = text.starts_with(kIf);
      const auto end = is_gated ? text.find(' ') : 0;
      if (is_gated && !model::has(features, *model::feature_named(text.substr(kIf.size(), end - kIf.size())))) continue;
      left.push_back(is_gated ? text.substr(end + 1) : text);
    }
    std::swap(row.rules, left);
    if (row.rules.empty() && !left.empty()) row.name = {};
  }
  std::erase_if(rows, [](const RoleRow& row) { return row.name.empty(); });
  return rows;
}

}  // namespace

std::vector<json::Value> default_rbac_objects(model::Features features) {
  constexpr std::string_view kController = "system:controller:";
  std::vector<json::Value> objects;
  for (const auto& rows : {user_facing_roles(), system_roles(), component_roles()}) {
    for (const auto& row : with_features(rows, features)) objects.push_back(role_document(row));
  }
  const auto of_controllers = with_features(controller_roles(), features);
  for (const auto& row : of_controllers) objects.push_back(role_document(row, kController));
  for (const auto& row : namespaced_roles()) objects.push_back(role_document(row));
  for (const auto& row : bindings()) objects.push_back(binding_document(row));
  for (const auto& row : of_controllers) {
    std::string name = std::string(kController) + std::string(row.name), account = "s:kube-system/" + std::string(row.name);
    objects.push_back(binding_document({name, name, {account}}));
  }
  return objects;
}

}  // namespace berth::apiserver::auth
