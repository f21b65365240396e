// PodSecurity: namespaces say by label which of the Pod Security Standards their pods must keep (enforce), are warned about (warn) or
// noted for in the audit log (audit): by label, and cluster-wide by PodSecurityConfiguration (defaults, exemptions).
#include "model/pods/pod_security.h"

#include <map>

#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"
#include "apiserver/cache/object_codec.h"

namespace berth::apiserver {
namespace {

using model::PodSecurityLevel;
constexpr std::string_view kPrefix = "pod-security.kubernetes.io/";
constexpr std::size_t kPodsLookedAt = 3000;

struct Rule {
  PodSecurityLevel level = PodSecurityLevel::kPrivileged;
  std::string version = "latest";
  [[nodiscard]] std::string name() const { return fmt::format("{}:{}", model::to_string(level), version); }
  [[nodiscard]] model::PodSecurityFindings judge(const json::Value& metadata, const json::Value& spec) const {
    const int minor = version == "latest" ? model::kLatestPodSecurityVersion : std::atoi(version.c_str() + 3);
    return model::pod_security_findings(level, minor, metadata, spec);
  }
};
struct NamespacePolicy {
  Rule enforce, warn, audit;
  model::FieldErrors errors;
};

bool is_version(std::string_view text) {
  if (text == "latest") return true;
  if (!text.starts_with("v1.") || text.size() == 3 || text.size() > 6) return false;
  return std::all_of(text.begin() + 3, text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Labels in the order in which PolicyToEvaluate reads them, which is that of its findings. A wrong enforce level is read as the strictest,
/// a wrong warn level as none, a wrong version as the newest. Without a warn level, what enforce asks for is warned about, too.
NamespacePolicy read_policy(const json::Value& ns, const NamespacePolicy& defaults) {
  NamespacePolicy policy = defaults;
  bool has_enforce = false, has_warn = false, has_warn_version = false;
  const auto label = [&](std::string_view name) { return json::find(ns, {"metadata", "labels", name}); };
  const auto wrong = [&](std::string_view name, std::string_view text, std::string detail) {
    policy.errors.push_back(
        {model::FieldError::Type::kInvalid, fmt::format("metadata.labels[{}]", name), fmt::format("\"{}\"", text), std::move(detail)});
  };
  for (auto [mode, rule] : {std::pair{"enforce", &policy.enforce}, std::pair{"audit", &policy.audit}, std::pair{"warn", &policy.warn}}) {
    const bool is_enforce = rule == &policy.enforce, is_warn = rule == &policy.warn;
    const std::string level_label = std::string(kPrefix) + mode, version_label = level_label + "-version";
    if (const auto* value = label(level_label); value != nullptr && value->is_string()) {
      const auto level = model::parse_pod_security_level(json::as_view(*value));
      has_enforce |= is_enforce && level.has_value();
      has_warn |= is_warn;
      rule->level = level.value_or(is_enforce ? PodSecurityLevel::kRestricted : PodSecurityLevel::kPrivileged);
      if (!level) wrong(level_label, json::as_view(*value), "must be one of privileged, baseline, restricted");
    }
    if (const auto* value = label(version_label); value != nullptr && value->is_string()) {
      has_warn_version |= is_warn;
      const bool good = is_version(json::as_view(*value));
      rule->version = good ? json::as_view(*value) : "latest";
      if (!good) wrong(version_label, json::as_view(*value), "must be \"latest\" or \"v1.x\"");
    }
  }
  if (!has_warn && has_enforce && policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!has_warn_version) policy.warn.version = policy.enforce.version;
  }
  return policy;
}

bool contains(const json::Array& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](const auto& one) { return one.is_string() && json::as_view(one) == name; });
}

/// An update matters where it adds a container or changes an image: nothing else that the rules look at can change.
bool is_significant_update(const json::Value& pod, const json::Value& before) {
  for (std::string_view list : {"containers", "initContainers"}) {
    const auto& now = json::get_array(pod, {"spec", list});
    const auto& then = json::get_array(before, {"spec", list});
    if (now.size() != then.size()) return true;
    for (std::size_t i = 0; i < now.size(); ++i)
      if (json::get_string(now[i], {"image"}) != json::get_string(then[i], {"image"})) return true;
  }
  for (const auto& container : json::get_array(pod, {"spec", "ephemeralContainers"})) {
    const auto& then = json::get_array(before, {"spec", "ephemeralContainers"});
    const auto same = std::find_if(then.begin(), then.end(), [&](const auto& one) {
      return json::get_string(one, {"name"}) == json::get_string(container, {"name"});
    });
    if (same == then.end() || json::get_string(*same, {"image"}) != json::get_string(container, {"image"})) return true;
  }
  return false;
}

class PodSecurity final : public AdmissionPlugin {
 public:
  explicit PodSecurity(const AdmissionContext& context) : cache_(context.cache), namespaces_(context.mirror("", "namespaces")) {}
  [[nodiscard]] std::string_view name() const override { return "PodSecurity"; }

  /// PodSecurityConfiguration: `defaults` for namespaces that do not say, and who is exempt.
  Result<void> configure(const json::Value& configuration) {
    for (auto [mode, rule] :
         {std::pair{"enforce", &defaults_.enforce}, std::pair{"audit", &defaults_.audit}, std::pair{"warn", &defaults_.warn}}) {
      const std::string version_field = std::string(mode) + "-version";
      if (const auto* value = json::find(configuration, {"defaults", mode}); value != nullptr) {
        const auto level = value->is_string() ? model::parse_pod_security_level(json::as_view(*value)) : std::nullopt;
        if (!level) return invalid(fmt::format("defaults.{}: must be one of privileged, baseline, restricted", mode));
        rule->level = *level;
      }
      if (const auto* value = json::find(configuration, {"defaults", version_field}); value != nullptr) {
        if (!value->is_string() || !is_version(json::as_view(*value)))
          return invalid(fmt::format("defaults.{}: must be \"latest\" or \"v1.x\"", version_field));
        rule->version = json::as_view(*value);
      }
    }
    exemptions_ = json::get_object(configuration, {"exemptions"});
    return {};
  }

  bool add_circumstances(const AdmissionRequest&, Circumstances& circumstances) override {
    circumstances.add([this] { return namespaces_.generation(); });
    return true;
  }
  Admitted validate(const AdmissionRequest& request) override {
    const bool is_create = request.operation == Operation::kCreate;
    if (!is_create && request.operation != Operation::kUpdate) return {};
    if (request.is("", "namespaces")) return validate_namespace(request);
    if (request.is("", "pods") || request.is("", "pods", "ephemeralcontainers") || request.is("", "pods", "resize"))
      return is_create || is_significant_update(request.object, request.old_object) ? validate_pod(request) : Admitted();
    if (request.subresource.empty()) warn_of_template(request);
    return {};
  }

 private:
  [[nodiscard]] std::optional<NamespacePolicy> policy_of(std::string_view ns) const {
    const auto document = namespaces_.get("", ns);
    if (document == nullptr) return std::nullopt;
    return read_policy(*document, defaults_);
  }

  [[nodiscard]] bool is_exempt(std::string_view list, std::string_view name) const {
    return !name.empty() && contains(json::get_array(exemptions_, {list}), name);
  }
  [[nodiscard]] bool is_exempt(const AdmissionRequest& request, const json::Value& spec) const {
    return is_exempt("namespaces", request.ns) || is_exempt("usernames", request.user->name) ||
           is_exempt("runtimeClasses", json::get_string(spec, {"runtimeClassName"}));
  }

  Admitted validate_pod(const AdmissionRequest& request) const {
    const auto policy = policy_of(request.ns);
    const json::Value* spec = json::find(request.object, {"spec"});
    if (!policy || spec == nullptr || is_exempt(request, *spec)) return {};
    const json::Value& metadata = request.object.at("metadata");
    if (request.caller.annotate) {
      request.caller.annotate(std::string(kPrefix) + "enforce-policy", policy->enforce.name());
      note(request, *policy, metadata, *spec);
    }
    if (const std::string broken = policy->enforce.judge(metadata, *spec).details; !broken.empty())
      return std::unexpected(request.forbidden(fmt::format("violates PodSecurity \"{}\": {}", policy->enforce.name(), broken)));
    warn(request, *policy, metadata, *spec);
    return {};
  }

  void warn_of_template(const AdmissionRequest& request) const {
    const std::string_view kind = request.kind->kind;
    static constexpr std::string_view kOwners[] = {
        "PodTemplate", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"};
    if (std::find(std::begin(kOwners), std::end(kOwners), kind) == std::end(kOwners)) return;
    const auto policy = policy_of(request.ns);
    if (!policy || (policy->warn.level == PodSecurityLevel::kPrivileged && policy->audit.level == PodSecurityLevel::kPrivileged)) return;
    const json::Value* spec = pod_spec_of(kind, request.object);
    if (spec == nullptr || is_exempt(request, *spec)) return;
    warn(request, *policy, template_metadata(kind, request.object), *spec);
    if (request.caller.annotate) note(request, *policy, template_metadata(kind, request.object), *spec);
  }
  static const json::Value& template_metadata(std::string_view kind, const json::Value& object) {
    static const json::Value kNone = json::Object();
    const json::Value* found = kind == "PodTemplate" ? json::find(object, {"template", "metadata"})
                               : kind == "CronJob"   ? json::find(object, {"spec", "jobTemplate", "spec", "template", "metadata"})
                                                     : json::find(object, {"spec", "template", "metadata"});
    return found == nullptr ? kNone : *found;
  }

  static void warn(const AdmissionRequest& request, const NamespacePolicy& policy, const json::Value& metadata, const json::Value& spec) {
    if (request.caller.warnings == nullptr) return;
    if (const std::string broken = policy.warn.judge(metadata, spec).details; !broken.empty())
      request.caller.warnings->push_back(fmt::format("would violate PodSecurity \"{}\": {}", policy.warn.name(), broken));
  }

  /// Into the audit log.
  static void note(const AdmissionRequest& request, const NamespacePolicy& policy, const json::Value& metadata, const json::Value& spec) {
    if (policy.audit.level == PodSecurityLevel::kPrivileged) return;
    if (const std::string broken = policy.audit.judge(metadata, spec).details; !broken.empty())
      request.caller.annotate(std::string(kPrefix) + "audit-violations",
                              fmt::format("would violate PodSecurity \"{}\": {}", policy.audit.name(), broken));
  }

  Admitted validate_namespace(const AdmissionRequest& request) const {
    if (!request.subresource.empty()) return {};
    NamespacePolicy policy = read_policy(request.object, defaults_);
    const bool is_update = request.operation == Operation::kUpdate;
    const NamespacePolicy before = is_update ? read_policy(request.old_object, defaults_) : NamespacePolicy();
    // What was wrong before may stay so.
    const auto texts = [](const model::FieldErrors& errors) {
      std::vector<std::string> all;
      for (const auto& error : errors) all.push_back(error.field + error.value);
      return all;
    };
    if (!policy.errors.empty() && (!is_update || texts(policy.errors) != texts(before.errors)))
      return std::unexpected(model::invalid_object("", "Namespace", request.name, std::move(policy.errors)));
    const Rule &now = policy.enforce, &then = before.enforce;
    const bool relaxed = now.version == then.version && now.level <= then.level;
    if (is_update && now.level != PodSecurityLevel::kPrivileged && !relaxed && !is_exempt("namespaces", request.name))
      warn_of_pods(request, now);
    return {};
  }

  /// A stricter level takes nothing away from pods that run; it names those that it would refuse, grouped by what they break.
  void warn_of_pods(const AdmissionRequest& request, const Rule& rule) const {
    if (request.caller.warnings == nullptr) return;
    std::map<std::string, std::pair<std::string, int>> by_finding;  // finding → first pod, further ones
    for (const auto& object : cache_.list({.prefix = make_prefix("", "pods", request.name)}, {}, kPodsLookedAt).items) {
      const json::Value pod = decode_object(*object);
      const json::Value* spec = json::find(pod, {"spec"});
      if (spec == nullptr) continue;
      const std::string broken = rule.judge(pod.at("metadata"), *spec).reasons;
      if (broken.empty()) continue;
      const auto [found, is_new] = by_finding.try_emplace(broken, std::string(json::get_string(pod, {"metadata", "name"})), 0);
      if (!is_new) ++found->second.second;
    }
    if (by_finding.empty()) return;
    request.caller.warnings->push_back(
        fmt::format("existing pods in namespace \"{}\" violate the new PodSecurity enforce level \"{}\"", request.name, rule.name()));
    std::vector<std::string> lines;
    for (const auto& [finding, pods] : by_finding) {
      const auto& [first, others] = pods;
      const std::string more = others == 0 ? "" : fmt::format(" (and {} other {})", others, others == 1 ? "pod" : "pods");
      lines.push_back(fmt::format("{}{}: {}", first, more, finding));
    }
    std::sort(lines.begin(), lines.end());
    for (auto& line : lines) request.caller.warnings->push_back(std::move(line));
  }

  ObjectCache& cache_;
  Mirror& namespaces_;
  NamespacePolicy defaults_;
  json::Value exemptions_ = json::Object();
};

}  // namespace

PluginResult make_pod_security(const AdmissionContext& context) {
  auto plugin = std::make_unique<PodSecurity>(context);
  if (const auto found = context.config.plugin_config.find("PodSecurity"); found != context.config.plugin_config.end())
    if (auto configured = plugin->configure(found->second); !configured) return std::unexpected(configured.error());
  return plugin;
}

}  // namespace berth::apiserver
