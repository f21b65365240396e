#include "apiserver/admission/config.h"

#include "apiserver/admission/pod_helpers.h"
#include "base/clock.h"

namespace berth::apiserver {
namespace {

using config::Reader;

/// A plugin's document where the file itself has it, or in a file of its own that `file_field` names.
void read_plugin(const std::string& name, const Reader& at, std::string_view file_field, const std::string& base_dir,
                 AdmissionConfig& config) {
  const auto& known = known_plugin_names();
  refuse_near(at, name, known, "admission plugin");
  const bool is_known = std::ranges::find(known, std::string_view(name)) != known.end();
  const Reader inlined = at.field("configuration");
  const std::string path = at.string(file_field);
  json::Value document = json::Object();
  if (inlined.is_present()) {
    if (!path.empty()) at.note(file_field, "has no effect: the configuration stands beside it");
    if (is_known) check_plugin_document(name, inlined);
    if (inlined.expect_object()) document = *inlined.value();
  } else if (!path.empty()) {
    const std::string full = path.starts_with('/') || base_dir.empty() ? path : base_dir + "/" + path;
    const auto text = config::read_whole_file(full);
    const auto read = text ? config::read_text(*text, {.file = full, .notes = &config.notes},
                                               [&](const Reader& root) {
                                                 if (root.value()->is_object()) document = *root.value();
                                                 root.expect_object();
                                                 if (is_known) check_plugin_document(name, root);
                                               })
                           : std::unexpected(text.error());
    if (!read) at.problem(file_field, read.error().message);
  }
  if (name == "DefaultTolerationSeconds") {
    config.default_not_ready_toleration_seconds = static_cast<int>(json::get_int(document, {"defaultNotReadyTolerationSeconds"}, 300));
    config.default_unreachable_toleration_seconds = static_cast<int>(json::get_int(document, {"defaultUnreachableTolerationSeconds"}, 300));
  }
  config.plugin_config.insert_or_assign(name, std::move(document));
}

void read_admission_config(const Reader& at, const std::string& base_dir, AdmissionConfig& config) {
  if (!at.is_present() || !at.expect_object()) return;
  at.only({"pluginConfig", "pluginOrderOverride"});
  const Reader plugins = at.field("pluginConfig");
  if (plugins.is_present())
    for (const auto& [name, plugin] : plugins.members()) {
      if (!plugin.is_present() || !plugin.expect_object()) continue;
      plugin.only({"configuration", "location"});
      read_plugin(name, plugin, "location", base_dir, config);
    }
  for (const Reader& item : at.field("pluginOrderOverride").items())
    for (std::string& name : item.texts()) {
      refuse_near(item, name, known_plugin_names(), "admission plugin");
      config.enable.push_back(std::move(name));
    }
  if (at.has("pluginOrderOverride")) at.note("pluginOrderOverride", "enables these plugins; their order is fixed here");
}

constexpr std::string_view kMasterSections[] = {"kind",
                                                "apiVersion",
                                                "admissionConfig",
                                                "kubernetesMasterConfig",
                                                "projectConfig",
                                                "servingInfo",
                                                "authConfig",
                                                "aggregatorConfig",
                                                "corsAllowedOrigins",
                                                "apiLevels",
                                                "masterPublicURL",
                                                "controllers",
                                                "etcdStorageConfig",
                                                "controllerConfig",
                                                "etcdClientInfo",
                                                "kubeletClientInfo",
                                                "etcdConfig",
                                                "oauthConfig",
                                                "dnsConfig",
                                                "serviceAccountConfig",
                                                "masterClients",
                                                "imageConfig",
                                                "imagePolicyConfig",
                                                "policyConfig",
                                                "routingConfig",
                                                "networkConfig",
                                                "volumeConfig",
                                                "jenkinsPipelineConfig",
                                                "auditConfig",
                                                "assetConfig",
                                                "pauseControllers",
                                                "controllerLeaseTTL",
                                                "disabledFeatures",
                                                "templateServiceBrokerConfig",
                                                "metadata"};
constexpr std::string_view kKubernetesFields[] = {"apiLevels",
                                                  "disabledAPIGroupVersions",
                                                  "masterIP",
                                                  "masterCount",
                                                  "masterEndpointReconcileTTL",
                                                  "servicesSubnet",
                                                  "servicesNodePortRange",
                                                  "staticNodeNames",
                                                  "schedulerConfigFile",
                                                  "podEvictionTimeout",
                                                  "proxyClientInfo",
                                                  "apiServerArguments",
                                                  "controllerArguments",
                                                  "controllerArgs",
                                                  "schedulerArguments",
                                                  "schedulerArgs",
                                                  "admissionConfig"};
/// Of kube-apiserver's flags those that people set in apiServerArguments; the first four act.
constexpr std::string_view kApiServerFlags[] = {"enable-admission-plugins",
                                                "disable-admission-plugins",
                                                "admission-control",
                                                "admission-control-config-file",
                                                "default-not-ready-toleration-seconds",
                                                "default-unreachable-toleration-seconds",
                                                "feature-gates",
                                                "runtime-config",
                                                "event-ttl",
                                                "storage-backend",
                                                "storage-media-type",
                                                "service-cluster-ip-range",
                                                "service-node-port-range",
                                                "token-auth-file",
                                                "authorization-mode",
                                                "anonymous-auth",
                                                "audit-log-path",
                                                "audit-policy-file",
                                                "cloud-provider",
                                                "cloud-config",
                                                "etcd-servers",
                                                "max-requests-inflight",
                                                "max-mutating-requests-inflight",
                                                "min-request-timeout",
                                                "request-timeout",
                                                "watch-cache",
                                                "default-watch-cache-size",
                                                "enable-aggregator-routing",
                                                "endpoint-reconciler-type",
                                                "encryption-provider-config",
                                                "experimental-encryption-provider-config",
                                                "kubelet-preferred-address-types",
                                                "oidc-issuer-url",
                                                "tls-min-version",
                                                "tls-cipher-suites",
                                                "v"};

void read_api_server_arguments(const Reader& at, const std::string& base_dir, AdmissionConfig& config) {
  for (const auto& [name, argument] : read_arguments(at)) {
    const auto append = [values = config::split_at_commas(argument.values)](std::vector<std::string>& into) {
      into.insert(into.end(), values.begin(), values.end());
    };
    const Reader here = at.is_object() ? at.field(name) : at;
    const std::string last = argument.values.empty() ? "" : argument.values.back();
    if (name == "enable-admission-plugins" || name == "admission-control") {
      append(config.enable);
    } else if (name == "disable-admission-plugins") {
      append(config.disable);
    } else if (name == "admission-control-config-file") {
      const std::string full = last.starts_with('/') || base_dir.empty() ? last : base_dir + "/" + last;
      const auto text = config::read_whole_file(full);
      const auto read = text ? parse_admission_configuration(*text, base_dir, config, full) : std::unexpected(text.error());
      if (!read) here.problem(read.error().message);
    } else if (name == "default-not-ready-toleration-seconds" || name == "default-unreachable-toleration-seconds") {
      int seconds = -1;
      const auto [end, wrong] = std::from_chars(last.data(), last.data() + last.size(), seconds);
      if (last.empty() || wrong != std::errc() || end != last.data() + last.size() || seconds < 0)
        here.problem(fmt::format("\"{}\" is not a number of seconds", last));
      else
        (name.starts_with("default-not-ready") ? config.default_not_ready_toleration_seconds
                                               : config.default_unreachable_toleration_seconds) = seconds;
    } else if (std::ranges::find(kApiServerFlags, std::string_view(name)) != std::end(kApiServerFlags)) {
      here.note("has no effect here");
    } else {
      refuse_near(here, name, kApiServerFlags, "flag of the API server");
    }
  }
}

void merge(config::Arguments from, config::Arguments& into) {
  for (auto& [name, argument] : from) into[name] = std::move(argument);
}

void read_kubernetes(const Reader& at, const std::string& base_dir, MasterConfig& out) {
  if (!at.is_present() || !at.expect_object()) return;
  at.only(kKubernetesFields);
  // OpenShift reads admission from the top level, Origin before it from the Kubernetes section: both are in use.
  read_admission_config(at.field("admissionConfig"), base_dir, out.admission);
  out.scheduler_config_file = at.string("schedulerConfigFile");
  for (const std::string_view name : {"schedulerArguments", "schedulerArgs"})
    merge(read_arguments(at.field(name)), out.scheduler_arguments);
  for (const std::string_view name : {"controllerArguments", "controllerArgs"})
    merge(read_arguments(at.field(name)), out.controller_arguments);
  read_api_server_arguments(at.field("apiServerArguments"), base_dir, out.admission);
}

}  // namespace

Result<void> parse_admission_configuration(std::string_view text, const std::string& base_dir, AdmissionConfig& config,
                                           const std::string& file) {
  AdmissionConfig out;
  std::vector<std::string> notes;
  const auto read = config::read_text(text, {.file = file, .notes = &notes}, [&](const Reader& root) {
    out = config;
    if (!root.expect_object()) return root.problem("must be a map of kind AdmissionConfiguration");
    root.only({"kind", "apiVersion", "plugins"});
    constexpr std::string_view kKinds[] = {"AdmissionConfiguration"};
    constexpr std::string_view kVersions[] = {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1",
                                              "apiserver.k8s.io/v1alpha1"};
    root.expect_kind(kKinds, kVersions);
    for (const std::string_view field : {"kind", "apiVersion"})
      if (!root.has(field)) root.problem(field, fmt::format("required: {}", field == "kind" ? kKinds[0] : kVersions[0]));
    std::set<std::string> seen;
    for (const Reader& plugin : root.field("plugins").items()) {
      if (!plugin.expect_object()) continue;
      plugin.only({"name", "path", "configuration"});
      const std::string name = plugin.string("name");
      if (name.empty()) {
        plugin.problem("name", "required");
        continue;
      }
      if (!seen.insert(name).second) plugin.problem("name", fmt::format("\"{}\" is there already", name));
      read_plugin(name, plugin, "path", base_dir, out);
    }
  });
  if (!read) return read;
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  config = std::move(out);
  return {};
}

Result<MasterConfig> parse_master_config(std::string_view text, const std::string& base_dir, const std::string& file) {
  MasterConfig out;
  std::vector<std::string> notes;
  const auto read = config::read_text(text, {.file = file, .notes = &notes}, [&](const Reader& root) {
    out = {};
    if (!root.expect_object()) return root.problem("a master configuration must be a map");
    root.only(kMasterSections, "kubernetesMasterConfig", kKubernetesFields);
    constexpr std::string_view kKinds[] = {"MasterConfig"}, kVersions[] = {"v1"};
    root.expect_kind(kKinds, kVersions);
    read_admission_config(root.field("admissionConfig"), base_dir, out.admission);
    read_kubernetes(root.field("kubernetesMasterConfig"), base_dir, out);
    const Reader project = root.field("projectConfig");
    if (project.is_present()) project.expect_object();
    project.only({"defaultNodeSelector", "projectRequestMessage", "projectRequestTemplate", "securityAllocator"});
    out.admission.default_node_selector = project.string("defaultNodeSelector");
    if (!parse_label_map(out.admission.default_node_selector))
      project.problem("defaultNodeSelector",
                      fmt::format("\"{}\" is not of the form key=value,key=value", out.admission.default_node_selector));
  });
  if (!read) return std::unexpected(read.error());
  out.admission.notes.insert(out.admission.notes.end(), notes.begin(), notes.end());
  return out;
}

}  // namespace berth::apiserver
