// The configuration documents of the admission plugins, field by field, while their places in the file are known.
#include "apiserver/admission/config.h"
#include "apiserver/admission/pod_helpers.h"
#include "model/pods/pod_security.h"

namespace berth::apiserver {
namespace {

using config::Reader;

/// Every plugin's document may say what it is, and `disable: true` (OpenShift's DefaultAdmissionConfig). The documents print `apiversion`.
void declare(const Reader& at, std::initializer_list<std::string_view> kinds, std::vector<std::string_view> fields) {
  fields.insert(fields.end(), {"kind", "apiVersion", "apiversion", "disable"});
  at.only(fields);
  const std::string kind = at.string("kind");
  static_cast<void>(at.string("apiVersion"));
  static_cast<void>(at.string("apiversion"));
  static_cast<void>(at.boolean("disable", false));
  std::vector<std::string_view> allowed(kinds);
  allowed.push_back("DefaultAdmissionConfig");
  if (!kind.empty() && std::ranges::find(allowed, std::string_view(kind)) == allowed.end())
    at.problem("kind", fmt::format("must be {}, is \"{}\"{}", fmt::join(allowed, " or "), kind, config::suggestion(kind, allowed)));
}

/// A whitelist without the cluster's default refuses every pod of its namespace, unless the namespace has an annotation of its own. The
/// documents' example is such a one.
void tell_of_default(const Reader& config) {
  constexpr std::string_view kDefault = "clusterDefaultNodeSelector";
  const auto labels_of = [](const Reader& value) {
    const bool is_text = value.is_present() && value.value()->is_string();
    return is_text ? parse_label_map(json::as_view(*value.value())) : std::nullopt;
  };
  const auto wanted = labels_of(config.field(kDefault));
  if (!wanted || !config.is_object()) return;
  for (const auto& [ns, value] : config.members()) {
    const auto allowed = labels_of(value);
    if (ns == kDefault || !allowed || allowed->empty()) continue;
    for (const auto& [key, label] : *wanted)
      if (const auto found = allowed->find(key); found == allowed->end() || found->second != label)
        value.note(
            fmt::format("does not allow {}={} of {}: pods of {} are refused unless its annotation "
                        "scheduler.alpha.kubernetes.io/node-selector says otherwise",
                        key, label, kDefault, ns));
  }
}

void pod_node_selector(const Reader& at) {
  declare(at, {"PodNodeSelectorConfig", "Configuration"}, {"podNodeSelectorPluginConfig"});
  for (const auto& [ns, value] : at.field("podNodeSelectorPluginConfig").members()) {
    const auto texts = value.texts();
    if (texts.size() != 1 || !parse_label_map(texts[0])) value.problem("must be a string of the form key=value,key=value");
  }
  tell_of_default(at.field("podNodeSelectorPluginConfig"));
}

void pod_node_constraints(const Reader& at) {
  declare(at, {"PodNodeConstraintsConfig"}, {"nodeSelectorLabelBlacklist"});
  static_cast<void>(at.strings("nodeSelectorLabelBlacklist"));
}

void default_toleration_seconds(const Reader& at) {
  constexpr std::string_view kFields[] = {"defaultNotReadyTolerationSeconds", "defaultUnreachableTolerationSeconds"};
  declare(at, {}, {kFields[0], kFields[1]});
  for (const auto field : kFields)
    if (at.integer(field, 0) < 0) at.problem(field, "must be a number of seconds, not negative");
}

void pod_security(const Reader& at) {
  declare(at, {"PodSecurityConfiguration"}, {"defaults", "exemptions"});
  const Reader defaults = at.field("defaults"), exemptions = at.field("exemptions");
  if (defaults.is_present()) defaults.expect_object();
  if (exemptions.is_present()) exemptions.expect_object();
  defaults.only({"enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version"});
  exemptions.only({"usernames", "runtimeClasses", "namespaces"});
  constexpr std::string_view kLevels[] = {"privileged", "baseline", "restricted"};
  for (const std::string_view mode : {"enforce", "warn"}) {
    static_cast<void>(defaults.one_of(mode, kLevels));
    static_cast<void>(defaults.string(fmt::format("{}-version", mode)));
  }
  for (const std::string_view list : {"usernames", "runtimeClasses", "namespaces"}) static_cast<void>(exemptions.strings(list));
}

void pod_toleration_restriction(const Reader& at) {
  declare(at, {"Configuration"}, {"default", "whitelist"});
  for (const std::string_view list : {"default", "whitelist"})
    for (const Reader& item : at.field(list).items()) {
      if (!item.expect_object()) continue;
      item.only({"key", "operator", "value", "effect", "tolerationSeconds"});
      constexpr std::string_view kOperators[] = {"Exists", "Equal"}, kEffects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
      for (const std::string_view field : {"key", "value"}) static_cast<void>(item.string(field));
      static_cast<void>(item.one_of("operator", kOperators));
      static_cast<void>(item.one_of("effect", kEffects));
      static_cast<void>(item.integer("tolerationSeconds", 0));
    }
}

}  // namespace

void check_plugin_document(const std::string& plugin, const Reader& at) {
  if (!at.is_present() || !at.expect_object()) return;
  if (plugin == "PodNodeSelector") return pod_node_selector(at);
  if (plugin == "PodNodeConstraints") return pod_node_constraints(at);
  if (plugin == "DefaultTolerationSeconds") return default_toleration_seconds(at);
  if (plugin == "PodSecurity") return pod_security(at);
  if (plugin == "PodTolerationRestriction") return pod_toleration_restriction(at);
  if (plugin == "ResourceQuota") return declare(at, {"Configuration", "ResourceQuotaConfiguration"}, {"limitedResources"});
  if (plugin == "MutatingAdmissionWebhook" || plugin == "ValidatingAdmissionWebhook")
    return declare(at, {"WebhookAdmission", "WebhookAdmissionConfiguration"}, {"kubeConfigFile"});
  const auto& known = known_plugin_names();
  if (std::ranges::find(known, std::string_view(plugin)) != known.end()) declare(at, {}, {});
}

}  // namespace berth::apiserver
