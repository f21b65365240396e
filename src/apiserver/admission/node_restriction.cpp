// NodeRestriction: a node's own identity (system:node:NAME in system:nodes) changes itself and its own pods, nothing else
// (plugin/pkg/admission/noderestriction).
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_audiences.h"
#include "apiserver/admission/pod_helpers.h"
#include "apiserver/cache/object_codec.h"
#include "model/go_words.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kUserPrefix = "system:node:";

std::string node_of(const UserInfo& user) {
  return user.name.starts_with(kUserPrefix) && user.in_group("system:nodes") ? user.name.substr(kUserPrefix.size()) : std::string();
}

/// Labels in Kubernetes' own domains that a node may set on itself.
bool may_set_label(std::string_view label) {
  const auto slash = label.find('/');
  if (slash == std::string_view::npos) return true;
  const auto domain = label.substr(0, slash);
  const auto within = [&](std::string_view parent) {
    return domain == parent ||
           (domain.size() > parent.size() && domain.ends_with(parent) && domain[domain.size() - parent.size() - 1] == '.');
  };
  if (within("node-restriction.kubernetes.io")) return false;
  if (!within("kubernetes.io") && !within("k8s.io")) return true;
  if (within("kubelet.kubernetes.io") || within("node.kubernetes.io")) return true;
  static const std::set<std::string_view> kAllowed = {"kubernetes.io/hostname",
                                                      "kubernetes.io/arch",
                                                      "kubernetes.io/os",
                                                      "topology.kubernetes.io/zone",
                                                      "topology.kubernetes.io/region",
                                                      "failure-domain.beta.kubernetes.io/zone",
                                                      "failure-domain.beta.kubernetes.io/region",
                                                      "beta.kubernetes.io/instance-type",
                                                      "beta.kubernetes.io/arch",
                                                      "beta.kubernetes.io/os"};
  return kAllowed.contains(label);
}

class NodeRestriction final : public AdmissionPlugin {
 public:
  explicit NodeRestriction(const AdmissionContext& context) : cache_(context.cache), authorizer_(context.authorizer) {}
  [[nodiscard]] std::string_view name() const override { return "NodeRestriction"; }

  [[nodiscard]] bool wants_whole(const AdmissionRequest& request) override {
    // Taints that are not sent are as they were.
    const bool is_of_status = request.is("", "pods", "status") || (request.is("", "nodes", "status") && !request.present->is_rest_sent);
    return !is_of_status && !node_of(*request.user).empty();
  }
  bool add_circumstances(const AdmissionRequest& request, Circumstances&) override {
    const auto node = node_of(*request.user);
    if (node.empty()) return true;
    // That it is its own pod or lease is part of the write.
    if (request.operation != Operation::kUpdate || !request.present) return false;
    if (request.is("", "pods", "status")) return request.present->object->meta.field("spec.nodeName") == node;
    return request.name == node && (request.is("coordination.k8s.io", "leases") || request.is("", "nodes", "status"));
  }
  // In the mutating pass, as in Kubernetes: what a node may not do is refused before other plugins derive anything from it.
  Admitted mutate(AdmissionRequest& request) override {
    const auto node = node_of(*request.user);
    if (node.empty()) return {};
    const auto& kind = *request.kind;
    if (kind.group.empty() && kind.plural == "pods") return admit_pod(request, node);
    if (kind.group.empty() && kind.plural == "nodes") return admit_node(request, node);
    if (kind.group.empty() && kind.plural == "serviceaccounts" && request.subresource == "token") return admit_token(request, node);
    if (kind.group == "coordination.k8s.io" && kind.plural == "leases") return admit_lease(request, node);
    if (kind.group == "resource.k8s.io" && kind.plural == "resourceslices") return admit_slice(request, node);
    if (kind.group == "storage.k8s.io" && kind.plural == "csinodes" && request.name != node)
      return std::unexpected(request.forbidden("can only access CSINode with the same name as the requesting node"));
    if (kind.group == "topology.node.k8s.io" && kind.plural == "noderesourcetopologies" && request.name != node)
      return std::unexpected(request.forbidden("can only access NodeResourceTopology with the same name as the requesting node"));
    if (kind.group.empty() && kind.plural == "persistentvolumeclaims") return admit_claim(request, node);
    if (kind.group.empty() && kind.plural == "services" && request.ns == "kube-system") return admit_name_service(request, node);
    if (kind.group == "discovery.k8s.io" && kind.plural == "endpointslices" && request.ns == "kube-system")
      return admit_name_server(request, node);
    return {};
  }

 private:
  /// Ours: a node of berth's makes the Service of the name service where there is none. It chooses no pods: where questions go is said by
  /// the nodes' own slices.
  static Admitted admit_name_service(const AdmissionRequest& request, const std::string& node) {
    const bool is_it = request.operation == Operation::kCreate && json::get_string(request.object, {"metadata", "name"}) == "kube-dns" &&
                       json::find(request.object, {"spec", "selector"}) == nullptr &&
                       json::find(request.object, {"spec", "externalIPs"}) == nullptr &&
                       json::get_string(request.object, {"spec", "internalTrafficPolicy"}) == "Local" &&
                       json::get_string(request.object, {"spec", "type"}, "ClusterIP") == "ClusterIP";
    if (is_it) return {};
    return std::unexpected(request.forbidden(fmt::format(
        "node \"{}\" can only create the Service kube-dns there, without a selector, of type ClusterIP and local traffic", node)));
  }

  static Admitted admit_name_server(const AdmissionRequest& request, const std::string& node) {
    if (request.operation == Operation::kDelete) return {};
    const bool is_its_own = std::ranges::all_of(json::get_array(request.object, {"endpoints"}), [&](const json::Value& endpoint) {
      return json::get_string(endpoint, {"nodeName"}) == node;
    });
    if (is_its_own && json::get_string(request.object, {"metadata", "labels", "kubernetes.io/service-name"}) == "kube-dns") return {};
    return std::unexpected(
        request.forbidden(fmt::format("node \"{}\" can only write endpoints of kube-dns with nodeName set to itself", node)));
  }

  static Admitted admit_slice(const AdmissionRequest& request, const std::string& node) {
    const bool creates = request.operation == Operation::kCreate;
    if (!creates && request.operation != Operation::kDelete) return {};
    if (json::get_string(creates ? request.object : request.old_object, {"spec", "nodeName"}) == node) return {};
    return std::unexpected(request.forbidden(
        fmt::format("can only {} ResourceSlice with the same NodeName as the requesting node", creates ? "create" : "delete")));
  }

  Admitted admit_pod(const AdmissionRequest& request, const std::string& node) const {
    const auto refuse = [&](std::string text) { return std::unexpected(request.forbidden(text)); };
    if (request.subresource.empty() && request.operation == Operation::kCreate) {
      if (!is_mirror_pod(request.object))
        return refuse(
            fmt::format("pod does not have \"kubernetes.io/config.mirror\" annotation, node \"{}\" can only create mirror pods", node));
      if (json::get_string(request.object, {"spec", "nodeName"}) != node)
        return refuse(fmt::format("node \"{}\" can only create pods with spec.nodeName set to itself", node));
      return admit_mirror_pod(request, node);
    }
    if (request.subresource.empty() && request.operation == Operation::kDelete)
      return bound_here(request.old_object, node)
                 ? Admitted()
                 : refuse(fmt::format("node \"{}\" can only delete pods with spec.nodeName set to itself", node));
    if (request.subresource == "status") {
      const auto its_node = request.present ? request.present->object->meta.field("spec.nodeName") : std::string_view();
      if (its_node != node)
        return refuse(fmt::format("node \"{}\" can only update pod status for pods with spec.nodeName set to itself", node));
      const auto& before = json::get_object(request.old_object, {"metadata", "labels"});
      const auto& after = json::get_object(request.object, {"metadata", "labels"});
      if (!json::equal(json::Value(before), json::Value(after)))
        return refuse(fmt::format("node \"{}\" cannot update labels through pod status", node));
      if (!same(request, {"status", "resourceClaimStatuses"}))
        return refuse(fmt::format("node \"{}\" cannot update resource claim statues", node));
      if (!same(request, {"status", "extendedResourceClaimStatus"}))
        return refuse(fmt::format("node \"{}\" cannot update extended resource claim status", node));
      return {};
    }
    if (request.subresource == "eviction") {
      const auto pod = cache_.get(make_key("", "pods", request.ns, request.name));
      if (pod == nullptr) return std::unexpected(model::not_found("", "pod", request.name));
      return pod->meta.field("spec.nodeName") == node
                 ? Admitted()
                 : refuse(fmt::format("node {} can only evict pods with spec.nodeName set to itself", node));
    }
    if (!request.subresource.empty())
      return refuse(fmt::format("unexpected pod subresource \"{}\", only 'status' and 'eviction' are allowed", request.subresource));
    return refuse(
        fmt::format("unexpected operation \"{}\", node \"{}\" can only create and delete mirror pods", to_string(request.operation), node));
  }

  static bool same(const AdmissionRequest& request, json::Path path) {
    const auto *before = json::find(request.old_object, path), *after = json::find(request.object, path);
    return (before == nullptr) == (after == nullptr) && (before == nullptr || json::equal(*before, *after));
  }

  /// A mirror pod is owned by its node, by nobody else, and refers to nothing that the node might read through it.
  Admitted admit_mirror_pod(const AdmissionRequest& request, const std::string& node) const {
    const auto refuse = [&](std::string text) { return std::unexpected(request.forbidden(text)); };
    const auto& owners = json::get_array(request.object, {"metadata", "ownerReferences"});
    if (owners.size() > 1) return refuse(fmt::format("node \"{}\" can only create pods with a single owner reference set to itself", node));
    if (owners.empty() || json::get_string(owners[0], {"apiVersion"}) != "v1" || json::get_string(owners[0], {"kind"}) != "Node" ||
        json::get_string(owners[0], {"name"}) != node)
      return refuse(fmt::format("node \"{}\" can only create pods with an owner reference set to itself", node));
    if (!json::get_bool(owners[0], {"controller"}))
      return refuse(fmt::format("node \"{}\" can only create pods with a controller owner reference set to itself", node));
    if (json::get_bool(owners[0], {"blockOwnerDeletion"}))
      return refuse(fmt::format("node \"{}\" must not set blockOwnerDeletion on an owner reference", node));
    const auto itself = cache_.get(make_key("", "nodes", "", node));
    if (itself == nullptr) return std::unexpected(model::not_found("", "node", node));
    const auto uid = json::get_string(owners[0], {"uid"});
    if (uid != itself->meta.uid) return refuse(fmt::format("node {} UID mismatch: expected {} got {}", node, uid, itself->meta.uid));
    if (const auto referenced = referenced_resource(request.object); !referenced.empty())
      return refuse(fmt::format("node \"{}\" can not create pods that reference {}", node, referenced));
    return {};
  }

  /// The first kind of API object that a pod refers to (pkg/api/pod's HasAPIObjectReference); empty: none.
  static std::string referenced_resource(const json::Value& pod) {
    if (!json::get_string(pod, {"spec", "serviceAccountName"}).empty()) return "serviceaccounts";
    bool secrets = !json::get_array(pod, {"spec", "imagePullSecrets"}).empty(), config_maps = false;
    for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
      for (const auto& container : json::get_array(pod, {"spec", list})) {
        for (const auto& env : json::get_array(container, {"env"})) {
          secrets |= json::find(env, {"valueFrom", "secretKeyRef"}) != nullptr;
          config_maps |= json::find(env, {"valueFrom", "configMapKeyRef"}) != nullptr;
        }
        for (const auto& from : json::get_array(container, {"envFrom"})) {
          secrets |= json::find(from, "secretRef") != nullptr;
          config_maps |= json::find(from, "configMapRef") != nullptr;
        }
      }
    }
    const auto& volumes = json::get_array(pod, {"spec", "volumes"});
    for (const auto& volume : volumes) {
      config_maps |= json::find(volume, "configMap") != nullptr;
      secrets |= json::find(volume, "secret") != nullptr;
      for (const auto& projected : json::get_array(volume, {"projected", "sources"})) {
        config_maps |= json::find(projected, "configMap") != nullptr;
        secrets |= json::find(projected, "secret") != nullptr;
      }
      // Drivers that read a secret by themselves.
      for (std::string_view driver : {"cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"})
        if (const auto* source = json::find(volume, driver)) secrets |= json::find(*source, "secretRef") != nullptr;
    }
    if (secrets) return "secrets";
    if (config_maps) return "configmaps";
    if (!json::get_array(pod, {"spec", "resourceClaims"}).empty()) return "resourceclaims";
    static constexpr std::pair<std::string_view, std::string_view> kSources[] = {
        {"configMap", "configmaps (via configmap volumes)"},
        {"secret", "secrets (via secret volumes)"},
        {"csi", "csidrivers (via CSI volumes)"},
        {"glusterfs", "endpoints (via glusterFS volumes)"},
        {"persistentVolumeClaim", "persistentvolumeclaims"},
        {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
        {"azureFile", "secrets (via azureFile volumes)"}};
    static constexpr std::pair<std::string_view, std::string_view> kProjected[] = {
        {"configMap", "configmaps (via projected volumes)"},
        {"secret", "secrets (via projected volumes)"},
        {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
        {"clusterTrustBundle", "clustertrustbundles"},
        {"podCertificate", "podcertificates"}};
    for (const auto& volume : volumes) {
      for (const auto& [source, resource] : kSources)
        if (json::find(volume, source) != nullptr) return std::string(resource);
      for (const auto& projected : json::get_array(volume, {"projected", "sources"}))
        for (const auto& [source, resource] : kProjected)
          if (json::find(projected, source) != nullptr) return std::string(resource);
    }
    return {};
  }

  /// Of a claim a node tells the size and how its expansion goes.
  static Admitted admit_claim(const AdmissionRequest& request, const std::string& node) {
    if (request.subresource != "status") return std::unexpected(request.forbidden("may only update PVC status"));
    auto before = request.old_object, after = request.object;
    for (auto* claim : {&before, &after}) {
      auto& metadata = json::ensure_object(*claim, {"metadata"});
      for (std::string_view field : {"resourceVersion", "managedFields"}) metadata.erase(field);
      auto& status = json::ensure_object(*claim, {"status"});
      for (std::string_view field : {"capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"}) status.erase(field);
    }
    if (json::equal(before, after)) return {};
    return std::unexpected(request.forbidden(
        fmt::format("node \"{}\" is not allowed to update fields other than status.quantity and status.conditions", node)));
  }

  static bool bound_here(const json::Value& pod, const std::string& node) { return json::get_string(pod, {"spec", "nodeName"}) == node; }

  static Admitted admit_node(const AdmissionRequest& request, const std::string& node) {
    const auto refuse = [&](std::string text) { return std::unexpected(request.forbidden(text)); };
    if (request.name != node) return refuse(fmt::format("node \"{}\" is not allowed to modify node \"{}\"", node, request.name));
    if (request.operation == Operation::kCreate) {
      const auto changed = restricted_labels(json::Object(), json::get_object(request.object, {"metadata", "labels"}));
      if (!changed.empty()) return refuse(fmt::format("node \"{}\" is not allowed to set the following labels: {}", node, changed));
    }
    if (request.operation == Operation::kUpdate) {
      if (!same(request, {"spec", "taints"})) return refuse(fmt::format("node \"{}\" is not allowed to modify taints", node));
      if (!same(request, {"metadata", "ownerReferences"}))
        return refuse(fmt::format("node \"{}\" is not allowed to modify ownerReferences", node));
      const auto changed = restricted_labels(json::get_object(request.old_object, {"metadata", "labels"}),
                                             json::get_object(request.object, {"metadata", "labels"}));
      if (!changed.empty()) return refuse(fmt::format("is not allowed to modify labels: {}", changed));
    }
    return {};
  }

  static std::string restricted_labels(const json::Object& before, const json::Object& after) {
    std::set<std::string> changed;
    for (const auto& [key, value] : after) {
      const auto* old = before.if_contains(key);
      if ((old == nullptr || !json::equal(*old, value)) && !may_set_label(key)) changed.emplace(key);
    }
    for (const auto& [key, value] : before)
      if (!after.contains(key) && !may_set_label(key)) changed.emplace(key);
    std::string text;
    for (const auto& key : changed) text += (text.empty() ? "" : ", ") + key;
    return text;
  }

  static Admitted admit_lease(const AdmissionRequest& request, const std::string& node) {
    if (request.ns != "kube-node-lease")
      return std::unexpected(request.forbidden("can only access leases in the \"kube-node-lease\" system namespace"));
    if (request.name != node)
      return std::unexpected(request.forbidden("can only access node lease with the same name as the requesting node"));
    return {};
  }

  Admitted admit_token(const AdmissionRequest& request, const std::string& node) const {
    const auto refuse = [&](std::string text) { return std::unexpected(request.forbidden(text)); };
    const auto bound = [&](std::string_view field) { return json::get_string(request.object, {"spec", "boundObjectRef", field}); };
    if (bound("kind") != "Pod" || bound("apiVersion") != "v1" || bound("name").empty())
      return refuse("node requested token not bound to a pod");
    if (bound("uid").empty()) return refuse("node requested token with a pod binding without a uid");
    const auto pod = cache_.get(make_key("", "pods", request.ns, bound("name")));
    if (pod == nullptr) return std::unexpected(model::not_found("", "pod", bound("name")));
    if (pod->meta.uid != bound("uid"))
      return refuse(
          fmt::format("the UID in the bound object reference ({}) does not match the UID in record. The object might have been "
                      "deleted and then recreated",
                      bound("uid")));
    if (pod->meta.field("spec.nodeName") != node) return refuse("node requested token bound to a pod scheduled on a different node");
    return admit_audience(request, decode_object(*pod));
  }

  /// A node asks only for what its pod uses (ServiceAccountNodeAudienceRestriction), or what it has the right to by name.
  Admitted admit_audience(const AdmissionRequest& request, const json::Value& pod) const {
    const auto& audiences = json::get_array(request.object, {"spec", "audiences"});
    if (audiences.size() > 1) return std::unexpected(request.forbidden("node may only request 0 or 1 audiences"));
    const auto audience = audiences.empty() || !audiences[0].is_string() ? std::string() : std::string(json::as_view(audiences[0]));
    if (pod_uses_audience(cache_, pod, request.ns, audience)) return {};
    Attributes right;
    right.verb = "request-serviceaccounts-token-audience";
    right.resource = audience;
    right.ns = request.ns;
    right.name = request.name;
    if (authorizer_.authorize(*request.user, right).allowed) return {};
    return std::unexpected(
        request.forbidden(fmt::format("audience {} not found in pod spec volume, {} is not authorized to request tokens for this audience",
                                      model::go_quote(audience), request.user->name)));
  }

  ObjectCache& cache_;
  Authorizer& authorizer_;
};

}  // namespace

PluginResult make_node_restriction(const AdmissionContext& context) { return std::make_unique<NodeRestriction>(context); }

}  // namespace berth::apiserver
