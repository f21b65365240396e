#include "apiserver/auth/node_authorizer.h"

#include "apiserver/auth/default_roles.h"

namespace berth::apiserver::auth {
namespace {

using Decision = Authorizer::Decision;

Decision no(std::string reason) { return {false, std::move(reason)}; }
Decision yes() { return {true, ""}; }
bool is_read(const std::string& verb) { return verb == "get" || verb == "list" || verb == "watch"; }

/// The value that the field selector demands of `field`, or empty.
std::string demanded(const Attributes& attributes, std::string_view field) {
  auto selector = model::FieldSelector::parse(attributes.field_selector);
  if (!selector) return {};
  for (const auto& term : selector->terms) {
    if (term.equals && term.field == field) return term.value;
  }
  return {};
}

bool names(const json::Value& holder, json::Path path, std::string_view name) { return json::get_string(holder, path) == name; }

/// Kinds of volumes that name a secret by `secretRef`.
constexpr std::array<std::string_view, 6> kWithSecretRef = {"cephfs", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"};

bool volume_refers(const json::Value& volume, std::string_view pod_name, std::string_view resource, std::string_view name) {
  if (resource == "secrets") {
    if (names(volume, {"secret", "secretName"}, name) || names(volume, {"azureFile", "secretName"}, name) ||
        names(volume, {"csi", "nodePublishSecretRef", "name"}, name)) {
      return true;
    }
    for (std::string_view kind : kWithSecretRef) {
      if (names(volume, {kind, "secretRef", "name"}, name)) return true;
    }
  }
  if (resource == "configmaps" && names(volume, {"configMap", "name"}, name)) return true;
  if (resource == "persistentvolumeclaims") {
    if (names(volume, {"persistentVolumeClaim", "claimName"}, name)) return true;
    if (json::find(volume, "ephemeral") != nullptr) return fmt::format("{}-{}", pod_name, json::get_string(volume, {"name"})) == name;
  }
  for (const auto& source : json::get_array(volume, {"projected", "sources"})) {
    if (resource == "secrets" && names(source, {"secret", "name"}, name)) return true;
    if (resource == "configmaps" && names(source, {"configMap", "name"}, name)) return true;
  }
  return false;
}

bool container_refers(const json::Value& container, std::string_view resource, std::string_view name) {
  const bool secret = resource == "secrets";
  if (!secret && resource != "configmaps") return false;
  for (const auto& source : json::get_array(container, {"envFrom"})) {
    if (names(source, {secret ? "secretRef" : "configMapRef", "name"}, name)) return true;
  }
  for (const auto& variable : json::get_array(container, {"env"})) {
    if (names(variable, {"valueFrom", secret ? "secretKeyRef" : "configMapKeyRef", "name"}, name)) return true;
  }
  return false;
}

/// Secrets that a PersistentVolume names for the node: those of its controller's calls are none (pkg/api/v1/persistentvolume/util.go).
bool persistent_volume_refers(const json::Value& volume, std::string_view ns, std::string_view name) {
  const auto claim_ns = json::get_string(volume, {"spec", "claimRef", "namespace"});
  const auto is = [&](std::string_view source, std::string_view reference) {
    if (!names(volume, {"spec", source, reference, "name"}, name)) return false;
    const auto own_ns = json::get_string(volume, {"spec", source, reference, "namespace"});
    return (own_ns.empty() ? claim_ns : own_ns) == ns;
  };
  for (const std::string_view reference : {"nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"})
    if (is("csi", reference)) return true;
  for (const std::string_view source : kWithSecretRef)
    if (is(source, "secretRef")) return true;
  const auto share_ns = json::get_string(volume, {"spec", "azureFile", "secretNamespace"});
  return names(volume, {"spec", "azureFile", "secretName"}, name) && (share_ns.empty() ? claim_ns : share_ns) == ns;
}

bool pod_refers(const json::Value& pod, std::string_view resource, std::string_view name) {
  // A mirror pod says what the node wants it to say: it must not open secrets.
  if (json::find(pod, {"metadata", "annotations", "kubernetes.io/config.mirror"}) != nullptr) return false;
  if (resource == "serviceaccounts") return names(pod, {"spec", "serviceAccountName"}, name);
  if (resource == "resourceclaims") {
    const auto says = [&](std::string_view part, std::string_view list) {
      return std::ranges::any_of(json::get_array(pod, {part, list}),
                                 [&](const auto& entry) { return names(entry, {"resourceClaimName"}, name); });
    };
    return says("spec", "resourceClaims") || says("status", "resourceClaimStatuses") ||
           names(pod, {"status", "extendedResourceClaimStatus", "resourceClaimName"}, name);
  }
  if (resource == "secrets") {
    for (const auto& reference : json::get_array(pod, {"spec", "imagePullSecrets"})) {
      if (names(reference, {"name"}, name)) return true;
    }
  }
  for (const auto& volume : json::get_array(pod, {"spec", "volumes"})) {
    if (volume_refers(volume, json::get_string(pod, {"metadata", "name"}), resource, name)) return true;
  }
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const auto& container : json::get_array(pod, {"spec", list})) {
      if (container_refers(container, resource, name)) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> node_name_of(const UserInfo& user) {
  constexpr std::string_view kPrefix = "system:node:";
  if (!user.name.starts_with(kPrefix) || user.name.size() == kPrefix.size() || !user.in_group("system:nodes")) return std::nullopt;
  return user.name.substr(kPrefix.size());
}

NodeAuthorizer::NodeAuthorizer(const ObjectCache& cache) : cache_(cache) {
  for (const auto& object : default_rbac_objects()) {
    if (json::get_string(object, {"kind"}) == "ClusterRole" && json::get_string(object, {"metadata", "name"}) == "system:node") {
      rules_ = PolicyRule::list_from_json(json::find(object, "rules"));
    }
  }
}

std::optional<Decision> NodeAuthorizer::authorize(const std::string& node, const Attributes& attributes, bool may_take_long) const {
  Effort effort{may_take_long};
  auto decision = decide(node, attributes, effort);
  return effort.gave_up ? std::nullopt : std::optional(std::move(decision));
}

Decision NodeAuthorizer::decide(const std::string& node, const Attributes& attributes, Effort& effort) const {
  if (!attributes.is_resource) return no("");
  const std::string& resource = attributes.resource;
  if (attributes.group.empty()) {
    if (resource == "secrets" || resource == "configmaps") return read_for_pods(node, attributes, effort);
    if (resource == "persistentvolumeclaims" || resource == "persistentvolumes") return volume(node, attributes, effort);
    if (resource == "nodes") return node_object(node, attributes);
    if (resource == "pods") return pod(node, attributes);
    if (resource == "serviceaccounts" && attributes.subresource == "token") {
      if (attributes.verb != "create" || attributes.name.empty()) return no("can only create tokens for individual service accounts");
      return is_referred_to(node, attributes.ns, resource, attributes.name, effort)
                 ? yes()
                 : no(fmt::format("no relationship found between node '{}' and this object", node));
    }
  }
  if (attributes.group == "coordination.k8s.io" && resource == "leases") {
    if (attributes.ns != "kube-node-lease") return no("can only access leases in the \"kube-node-lease\" system namespace");
    return own_object(node, attributes, "node lease");
  }
  if (attributes.group == "storage.k8s.io" && resource == "csinodes") return own_object(node, attributes, "CSINode");
  // Ours: elsewhere an agent of its own tells of the NUMA nodes.
  if (attributes.group == "topology.node.k8s.io" && resource == "noderesourcetopologies")
    return own_object(node, attributes, "NodeResourceTopology");
  if (attributes.group == "storage.k8s.io" && resource == "volumeattachments") return volume(node, attributes, effort);
  if (attributes.group == "resource.k8s.io" && resource == "resourceclaims") {
    if (attributes.verb != "get" || !attributes.subresource.empty()) return no("can only get individual resources of this type");
    return is_referred_to(node, attributes.ns, resource, attributes.name, effort)
               ? yes()
               : no(fmt::format("no relationship found between node '{}' and this object", node));
  }
  if (attributes.group == "resource.k8s.io" && resource == "resourceslices") return resource_slice(node, attributes);
  if (is_name_service(node, attributes)) return yes();
  return by_rules(attributes);
}

/// What is written is looked at by admission (NodeRestriction).
bool NodeAuthorizer::is_name_service(const std::string& node, const Attributes& attributes) {
  if (attributes.ns != "kube-system" || !attributes.subresource.empty()) return false;
  if (attributes.group.empty() && attributes.resource == "services") return attributes.verb == "create";
  static constexpr std::string_view kVerbs[] = {"get", "create", "update", "patch", "delete"};
  return attributes.group == "discovery.k8s.io" && attributes.resource == "endpointslices" && attributes.name == "kube-dns-" + node &&
         std::ranges::find(kVerbs, attributes.verb) != std::end(kVerbs);
}

/// Its own: what a creation says is looked at by admission (NodeRestriction).
Decision NodeAuthorizer::resource_slice(const std::string& node, const Attributes& attributes) const {
  if (!attributes.subresource.empty()) return no("cannot authorize ResourceSlice subresources");
  const std::string& verb = attributes.verb;
  if (verb == "create") return yes();
  if (verb == "get" || verb == "update" || verb == "patch" || verb == "delete") {
    const auto object = cache_.get(make_key(attributes.group, attributes.resource, "", attributes.name));
    return object != nullptr && object->meta.field("spec.nodeName") == node
               ? yes()
               : no(fmt::format("no relationship found between node '{}' and this object", node));
  }
  if (verb == "watch" || verb == "list" || verb == "deletecollection")
    return demanded(attributes, "spec.nodeName") == node
               ? yes()
               : no("can only list/watch/deletecollection resourceslices with nodeName field selector");
  return no("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection");
}

Decision NodeAuthorizer::read_for_pods(const std::string& node, const Attributes& attributes, Effort& effort) const {
  if (!is_read(attributes.verb)) return no("can only read resources of this type");
  if (!attributes.subresource.empty()) return no("cannot read subresource");
  std::string name = !attributes.name.empty() ? attributes.name : demanded(attributes, "metadata.name");
  if (name.empty() || attributes.ns.empty()) return no("No Object name found");
  const bool is_related = is_referred_to(node, attributes.ns, attributes.resource, name, effort) ||
                          (attributes.resource == "secrets" && is_secret_of_volume(node, attributes.ns, name, effort));
  return is_related ? yes() : no(fmt::format("no relationship found between node '{}' and this object", node));
}

Decision NodeAuthorizer::volume(const std::string& node, const Attributes& attributes, Effort& effort) const {
  const bool is_claim = attributes.resource == "persistentvolumeclaims";
  if (is_claim && attributes.subresource == "status") {
    if (attributes.verb != "get" && attributes.verb != "update" && attributes.verb != "patch")
      return no("can only get, update, or patch status");
  } else if (attributes.verb != "get" || !attributes.subresource.empty() || attributes.name.empty()) {
    return no("can only get individual resources of this type");
  }
  const auto related = [&]() {
    if (is_claim) return is_referred_to(node, attributes.ns, attributes.resource, attributes.name, effort);
    auto object = cache_.get(make_key(attributes.group, attributes.resource, "", attributes.name));
    auto document = object != nullptr ? json::parse(object->text().here()) : Result<json::Value>(json::Value());
    if (!document) return false;
    if (attributes.resource == "volumeattachments") return json::get_string(*document, {"spec", "nodeName"}) == node;
    return is_claimed(node, *document, effort);
  };
  return related() ? yes() : no(fmt::format("no relationship found between node '{}' and this object", node));
}

Decision NodeAuthorizer::own_object(const std::string& node, const Attributes& attributes, std::string_view what) const {
  static constexpr std::string_view kVerbs[] = {"get", "create", "update", "patch", "delete"};
  if (std::find(std::begin(kVerbs), std::end(kVerbs), attributes.verb) == std::end(kVerbs)) {
    return no(fmt::format("can only get, create, update, patch, or delete a {}", what));
  }
  if (!attributes.subresource.empty()) return no(fmt::format("cannot access {} subresources", what));
  // A creation's path has no name; admission (NodeRestriction) looks into the body.
  if (attributes.verb != "create" && attributes.name != node)
    return no(fmt::format("can only access {} with the same name as the requesting node", what));
  return yes();
}

Decision NodeAuthorizer::node_object(const std::string& node, const Attributes& attributes) const {
  if (attributes.subresource.empty() && is_read(attributes.verb)) {
    std::string name = !attributes.name.empty() ? attributes.name : demanded(attributes, "metadata.name");
    if (name == node) return yes();
    return no(fmt::format("node '{}' cannot read '{}', only its own Node object", node, name.empty() ? "all nodes" : name));
  }
  return by_rules(attributes);
}

Decision NodeAuthorizer::pod(const std::string& node, const Attributes& attributes) const {
  if (!attributes.subresource.empty() || !is_read(attributes.verb)) return by_rules(attributes);
  if (attributes.verb == "get") {
    auto object = cache_.get(make_key("", "pods", attributes.ns, attributes.name));
    if (object == nullptr || object->meta.field("spec.nodeName") == node) return yes();
    return no(fmt::format("no relationship found between node '{}' and this object", node));
  }
  return demanded(attributes, "spec.nodeName") == node ? yes() : no("can only list/watch pods with spec.nodeName field selector");
}

Decision NodeAuthorizer::by_rules(const Attributes& attributes) const {
  bool allowed = std::any_of(rules_.begin(), rules_.end(), [&](const PolicyRule& rule) { return rule.allows(attributes); });
  return {allowed, ""};
}

bool NodeAuthorizer::is_claimed(const std::string& node, const json::Value& volume, Effort& effort) const {
  const auto claim = json::get_string(volume, {"spec", "claimRef", "name"});
  return !claim.empty() &&
         is_referred_to(node, json::get_string(volume, {"spec", "claimRef", "namespace"}), "persistentvolumeclaims", claim, effort);
}

bool NodeAuthorizer::is_secret_of_volume(const std::string& node, std::string_view ns, std::string_view name, Effort& effort) const {
  const WatchFilter filter{.prefix = make_prefix("", "persistentvolumes", "")};
  if (effort.gave_up || takes_long(filter, effort)) return false;
  for (const auto& object : cache_.list(filter, {}, 0).items) {
    if (object->text()->find(name) == std::string::npos) continue;
    const auto volume = json::parse(object->text().here());
    if (volume && persistent_volume_refers(*volume, ns, name) && is_claimed(node, *volume, effort)) return true;
    if (effort.gave_up) return false;
  }
  return false;
}

bool NodeAuthorizer::takes_long(const WatchFilter& filter, Effort& effort) const {
  constexpr std::size_t kFew = 1000;  // What a moment is enough for.
  if (effort.may_take_long) return false;
  const auto page = cache_.list(filter, {}, 1);
  effort.gave_up = page.items.size() + page.remaining > kFew;
  return effort.gave_up;
}

bool NodeAuthorizer::is_referred_to(const std::string& node, std::string_view ns, std::string_view resource, std::string_view name,
                                    Effort& effort) const {
  constexpr std::size_t kFewBytes = 256 * 1024;  // What a moment is enough for.
  WatchFilter filter{.prefix = make_prefix("", "pods", ns)};
  if (takes_long(filter, effort)) return false;
  filter.fields.terms.push_back({"spec.nodeName", true, node});
  std::size_t bytes = 0;
  for (const auto& object : cache_.list(filter, {}, 0).items) {
    // Most pods do not even contain the name: no need to parse them.
    if (resource != "persistentvolumeclaims" && object->text()->find(name) == std::string::npos) continue;
    bytes += object->text_bytes();
    effort.gave_up = !effort.may_take_long && bytes > kFewBytes;
    if (effort.gave_up) return false;
    auto pod = json::parse(object->text().here());
    if (pod && pod_refers(*pod, resource, name)) return true;
  }
  return false;
}

}  // namespace berth::apiserver::auth
