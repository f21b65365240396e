#include "apiserver/admission/plugins.h"

namespace berth::apiserver {
namespace {

struct Entry {
  std::string_view name;
  PluginResult (*make)(const AdmissionContext&);
  enum class When { kDefault, kConfigured, kEnabled } when;
  /// Whether it does nothing about any write of a status, and looks at nothing that is deleted; else it is asked what it wants to see
  /// (wants_whole).
  enum class Status { kAsked, kPassedOver } status = Status::kPassedOver;
  /// Whether what it does about a write follows from the request and its configuration; else it is asked (add_circumstances).
  enum class Knows { kMore, kRequestAlone } knows = Knows::kMore;
};
using When = Entry::When;
constexpr auto kAsked = Entry::Status::kAsked, kPassedOver = Entry::Status::kPassedOver;
constexpr auto kRequestAlone = Entry::Knows::kRequestAlone;

// Kubernetes' order (pkg/kubeapiserver/options/plugins.go), OpenShift's two where OpenShift has them. Of each, why it stands there.
constexpr std::array<Entry, 34> kOrder = {{
    // Nothing else is worth computing for a namespace that is missing or going away.
    {"NamespaceLifecycle", make_namespace_lifecycle, When::kDefault},
    // Before PodNodeSelector: the project's selector is the pod's own by the time the cluster's is merged. On by default: it acts on the
    // annotation that `adm new-project --node-selector=` sets, and on nothing else unless configured.
    {"NodeEnv", make_node_env, When::kDefault},
    // Its defaults are what quota counts and QoS derives from.
    {"LimitRanger", make_limit_ranger, When::kDefault},
    // Adds the token volume that every later look at volumes has to see.
    {"ServiceAccount", make_service_account, When::kDefault},
    // Refuses a node's foreign writes before anything is derived from them.
    {"NodeRestriction", make_node_restriction, When::kDefault, kAsked},
    // A new node is not-ready before anybody can place on it.
    {"TaintNodesByCondition", make_taint_nodes_by_condition, When::kDefault, kPassedOver, kRequestAlone},
    {"AlwaysPullImages", make_always_pull_images, When::kConfigured, kPassedOver, kRequestAlone},
    {"PodNodeSelector", make_pod_node_selector, When::kConfigured},
    // Judges the pod as it came, before anything below works for it.
    {"PodSecurity", make_pod_security, When::kDefault},
    {"PodTopologyLabels", make_pod_topology_labels, When::kDefault},
    // Before tolerations and quota: both may look at the priority.
    {"Priority", make_priority, When::kDefault},
    {"DefaultTolerationSeconds", make_default_toleration_seconds, When::kDefault, kPassedOver, kRequestAlone},
    // After the default tolerations: a namespace's whitelist judges them all.
    {"PodTolerationRestriction", make_pod_toleration_restriction, When::kDefault},
    {"ExtendedResourceToleration", make_extended_resource_toleration, When::kEnabled, kPassedOver, kRequestAlone},
    // The class decides what the following two may do with a claim.
    {"DefaultStorageClass", make_default_storage_class, When::kDefault},
    {"StorageObjectInUseProtection", make_storage_object_in_use_protection, When::kDefault, kPassedOver, kRequestAlone},
    // With the other finalizers that keep what is in use.
    {"PodGroupProtection", make_pod_group_protection, When::kDefault},
    {"PersistentVolumeClaimResize", make_persistent_volume_claim_resize, When::kDefault, kPassedOver, kRequestAlone},
    // The overhead it adds counts against quota.
    {"RuntimeClass", make_runtime_class, When::kDefault},
    // Who approves and who signs needs the right to it by the signer's name; nobody asks a signer for system:masters.
    {"CertificateApproval", make_certificate_approval, When::kDefault, kPassedOver, kRequestAlone},
    {"CertificateSigning", make_certificate_signing, When::kDefault, kAsked, kRequestAlone},
    {"CertificateSubjectRestriction", make_certificate_subject_restriction, When::kDefault, kPassedOver, kRequestAlone},
    {"DefaultIngressClass", make_default_ingress_class, When::kDefault},
    {"DenyServiceExternalIPs", make_deny_service_external_ips, When::kEnabled, kPassedOver, kRequestAlone},
    {"NodeDeclaredFeatureValidator", make_node_declared_features, When::kDefault, kPassedOver, kRequestAlone},
    // Judges a group's reference before anybody else's code sees the group.
    {"PodGroupWorkloadExists", make_pod_group_workload_exists, When::kDefault},
    // With the other judge of what belongs to a group.
    {"JobValidation", make_job_validation, When::kDefault},
    // After the defaults of limits: it judges what the pod would ask for in the end.
    {"PodResizeValidator", make_pod_resize, When::kDefault, kPassedOver, kRequestAlone},
    // Judges the selector as merged from everywhere above.
    {"PodNodeConstraints", make_pod_node_constraints, When::kConfigured},
    // The cluster's own policies change what the built-in plugins made …
    {"MutatingAdmissionPolicy", make_mutating_policy, When::kDefault, kAsked},
    // … and users' code, which is slower to ask, what they made of it …
    {"MutatingAdmissionWebhook", make_mutating_webhook, When::kDefault, kAsked},
    // … the policies judge what everybody made …
    {"ValidatingAdmissionPolicy", make_validating_policy, When::kDefault, kAsked},
    // … and so does users' code, which is slower to ask.
    {"ValidatingAdmissionWebhook", make_validating_webhook, When::kDefault, kAsked},
    // Last: it reserves, so nothing after it may refuse.
    {"ResourceQuota", make_resource_quota, When::kDefault},
}};

// Plugins of real clusters that are known here by name alone: naming them in an enable or disable list is no error.
constexpr std::array<std::string_view, 8> kAcceptedNames = {"NamespaceExists",
                                                            "NamespaceAutoProvision",
                                                            "AlwaysAdmit",
                                                            "ClusterTrustBundleAttest",
                                                            "OwnerReferencesPermissionEnforcement",
                                                            "EventRateLimit",
                                                            "LimitPodHardAntiAffinityTopology",
                                                            "ImagePolicyWebhook"};

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_on(const Entry& entry, const AdmissionConfig& config) {
  if (contains(config.disable, entry.name)) return false;
  if (contains(config.enable, entry.name)) return true;
  const auto configured = config.plugin_config.find(std::string(entry.name));
  if (configured != config.plugin_config.end()) return !json::get_bool(configured->second, {"disable"});  // DefaultAdmissionConfig
  return entry.when == When::kDefault;
}

}  // namespace

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::kCreate:
      return "CREATE";
    case Operation::kUpdate:
      return "UPDATE";
    case Operation::kDelete:
      return "DELETE";
    case Operation::kConnect:
      return "CONNECT";
  }
  return "";
}

Mirror::Document default_class(const Mirror& classes, std::initializer_list<std::string_view> annotations) {
  const auto made = [](const json::Value& of) { return json::get_string(of, {"metadata", "creationTimestamp"}); };
  Mirror::Document best;
  for (auto& candidate : classes.list())
    for (const auto annotation : annotations)
      if (json::get_string(*candidate, {"metadata", "annotations", annotation}) == "true" &&
          (best == nullptr || made(*candidate) > made(*best)))
        best = candidate;
  return best;
}

void add_finalizer(json::Value& object, std::string_view finalizer) {
  auto& finalizers = json::ensure_object(object, {"metadata"})["finalizers"];
  if (!finalizers.is_array()) finalizers = json::Array();
  for (const auto& existing : finalizers.get_array())
    if (existing.is_string() && json::as_view(existing) == finalizer) return;
  finalizers.get_array().push_back(json::Value(finalizer));
}

const std::vector<std::string_view>& known_plugin_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Entry& entry : kOrder) names.push_back(entry.name);
    names.insert(names.end(), kAcceptedNames.begin(), kAcceptedNames.end());
    return names;
  }();
  return kNames;
}

Result<void> check_plugin_names(const AdmissionConfig& config) {
  const auto& known = known_plugin_names();
  for (const auto* names : {&config.enable, &config.disable})
    for (const std::string& name : *names)
      if (std::ranges::find(known, std::string_view(name)) == known.end())
        return invalid(fmt::format("admission plugin \"{}\" is unknown{}", name, config::suggestion(name, known)));
  return {};
}

Result<std::unique_ptr<AdmissionChain>> AdmissionChain::create(AdmissionContext context) {
  auto chain = std::unique_ptr<AdmissionChain>(new AdmissionChain(std::move(context)));
  const auto& config = chain->context_.config;
  if (auto known = check_plugin_names(config); !known) return std::unexpected(known.error());
  for (const auto& entry : kOrder) {
    if (!is_on(entry, config)) continue;
    auto plugin = entry.make(chain->context_);
    if (!plugin) return fail(plugin.error().code, fmt::format("admission plugin {}: {}", entry.name, plugin.error().message));
    chain->plugins_.push_back({std::move(*plugin), entry.status == kPassedOver, entry.knows == kRequestAlone});
  }
  return chain;
}

std::vector<std::string_view> AdmissionChain::names() const {
  std::vector<std::string_view> names;
  for (const auto& link : plugins_) names.push_back(link.plugin->name());
  return names;
}

std::optional<Circumstances> AdmissionChain::circumstances(const AdmissionRequest& write) const {
  Circumstances out;
  const bool is_of_status = write.operation == Operation::kUpdate && write.subresource == "status";
  for (const auto& link : plugins_) {
    if (link.knows_request_alone || (is_of_status && link.passes_status_over)) continue;
    if (!link.plugin->add_circumstances(write, out)) return std::nullopt;
  }
  return out;
}

void AdmissionChain::step(std::size_t index, bool mutating, AdmissionRequest& request, AdmitDone done) const {
  for (; index < plugins_.size(); ++index) {
    const auto& [plugin, passes_status_over, _] = plugins_[index];
    if (!plugin->handles(request.operation)) continue;
    if (request.present && request.present->fill_in && !passes_status_over && plugin->wants_whole(request))
      std::exchange(request.present->fill_in, nullptr)();
    if (plugin->may_wait()) break;
    auto admitted = mutating ? plugin->mutate(request) : plugin->validate(request);
    if (!admitted) return done(std::move(admitted));
  }
  if (index == plugins_.size()) {
    if (mutating)
      for (const auto& link : plugins_)
        if (link.plugin->handles(request.operation) && link.plugin->wants_second_look(request))
          return link.plugin->mutate_async(request, std::move(done));
    return done({});
  }
  auto next = [this, index, mutating, &request, done = std::move(done)](Admitted admitted) mutable {
    if (!admitted) return done(std::move(admitted));
    step(index + 1, mutating, request, std::move(done));
  };
  if (mutating) {
    plugins_[index].plugin->mutate_async(request, std::move(next));
  } else {
    plugins_[index].plugin->validate_async(request, std::move(next));
  }
}

}  // namespace berth::apiserver
