// PodSecurity: namespaces say by label which of the Pod Security Standards their pods must keep (enforce) or are warned about (warn). A
// label's version is checked, and every version means the rules of pod_security.h. Nobody audits, as there is no audit log.
#include "model/pod_security.h"

#include <map>

#include "apiserver/admission/plugins.h"
#include "apiserver/admission/pod_helpers.h"
#include "apiserver/object_codec.h"

namespace berth::apiserver {
namespace {

using model::PodSecurityLevel;
constexpr std::string_view kPrefix = "pod-security.kubernetes.io/";
constexpr std::size_t kPodsLookedAt = 3000;

struct Rule {
  PodSecurityLevel level = PodSecurityLevel::kPrivileged;
  std::string version = "latest";
  [[nodiscard]] std::string name() const { return fmt::format("{}:{}", model::to_string(level), version); }
};
struct Policy {
  Rule enforce, warn;
  model::FieldErrors errors;
};

bool is_version(std::string_view text) {
  if (text == "latest") return true;
  if (!text.starts_with("v1.") || text.size() == 3 || text.size() > 6) return false;
  return std::all_of(text.begin() + 3, text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// As PolicyToEvaluate does: a wrong level to enforce is read as the strictest, one to warn of as none; who enforces is warned of the same
/// when nothing else is said.
Policy read_policy(const json::Value& ns) {
  Policy policy;
  bool enforces = false, says_warn = false, says_warn_version = false;
  for (const auto& [key, value] : json::get_object(ns, {"metadata", "labels"})) {
    std::string_view name(key.data(), key.size());
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view text = value.is_string() ? json::as_view(value) : "";
    const auto wrong = [&](std::string detail) {
      policy.errors.push_back(
          {model::FieldError::Type::kInvalid, fmt::format("metadata.labels[{}]", name), fmt::format("\"{}\"", text), std::move(detail)});
    };
    Rule ignored;
    const bool is_version_label = name.ends_with("-version");
    std::string_view mode = name.substr(kPrefix.size());
    if (is_version_label) mode.remove_suffix(std::string_view("-version").size());
    if (mode != "enforce" && mode != "warn" && mode != "audit") continue;
    Rule& rule = mode == "enforce" ? policy.enforce : mode == "warn" ? policy.warn : ignored;
    if (mode == "warn") (is_version_label ? says_warn_version : says_warn) = true;
    if (is_version_label) {
      if (is_version(text))
        rule.version = text;
      else
        wrong("must be \"latest\" or \"v1.x\"");
    } else if (const auto level = model::parse_pod_security_level(text)) {
      rule.level = *level;
      enforces = enforces || mode == "enforce";
    } else {
      rule.level = mode == "warn" ? PodSecurityLevel::kPrivileged : PodSecurityLevel::kRestricted;
      wrong("must be one of privileged, baseline, restricted");
    }
  }
  if (enforces && !says_warn && policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!says_warn_version) policy.warn.version = policy.enforce.version;
  }
  return policy;
}

class PodSecurity final : public AdmissionPlugin {
 public:
  explicit PodSecurity(const AdmissionContext& context) : cache_(context.cache), namespaces_(context.mirror("", "namespaces")) {}
  [[nodiscard]] std::string_view name() const override { return "PodSecurity"; }

  Admitted validate(const AdmissionRequest& request) override {
    const bool is_create = request.operation == Operation::kCreate;
    if (!is_create && request.operation != Operation::kUpdate) return {};
    if (request.is("", "namespaces")) return validate_namespace(request);
    if (request.is("", "pods") || request.is("", "pods", "ephemeralcontainers")) {
      // An update may change nothing that the rules look at, but for ephemeral containers.
      return is_create || !request.subresource.empty() ? validate_pod(request) : Admitted();
    }
    if (request.subresource.empty()) warn_of_template(request);
    return {};
  }

 private:
  [[nodiscard]] std::optional<Policy> policy_of(std::string_view ns) const {
    const auto document = namespaces_.get("", ns);
    if (document == nullptr) return std::nullopt;
    return read_policy(*document);
  }

  Admitted validate_pod(const AdmissionRequest& request) const {
    const auto policy = policy_of(request.ns);
    const json::Value* spec = json::find(request.object, {"spec"});
    if (!policy || spec == nullptr) return {};
    const json::Value& metadata = request.object.at("metadata");
    if (const std::string broken = model::pod_security_violations(policy->enforce.level, metadata, *spec); !broken.empty())
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
    if (!policy || policy->warn.level == PodSecurityLevel::kPrivileged) return;
    const json::Value* spec = pod_spec_of(kind, request.object);
    if (spec != nullptr) warn(request, *policy, template_metadata(kind, request.object), *spec);
  }
  static const json::Value& template_metadata(std::string_view kind, const json::Value& object) {
    static const json::Value kNone = json::Object();
    const json::Value* found = kind == "PodTemplate" ? json::find(object, {"template", "metadata"})
                               : kind == "CronJob"   ? json::find(object, {"spec", "jobTemplate", "spec", "template", "metadata"})
                                                     : json::find(object, {"spec", "template", "metadata"});
    return found == nullptr ? kNone : *found;
  }

  static void warn(const AdmissionRequest& request, const Policy& policy, const json::Value& metadata, const json::Value& spec) {
    if (request.warnings == nullptr) return;
    if (const std::string broken = model::pod_security_violations(policy.warn.level, metadata, spec); !broken.empty())
      request.warnings->push_back(fmt::format("would violate PodSecurity \"{}\": {}", policy.warn.name(), broken));
  }

  Admitted validate_namespace(const AdmissionRequest& request) const {
    if (!request.subresource.empty()) return {};
    Policy policy = read_policy(request.object);
    const bool is_update = request.operation == Operation::kUpdate;
    const Policy before = is_update ? read_policy(request.old_object) : Policy();
    // What was wrong before may stay so.
    if (!policy.errors.empty() && (!is_update || before.errors.empty()))
      return std::unexpected(model::invalid_object("", "Namespace", request.name, std::move(policy.errors)));
    if (is_update && policy.enforce.level > before.enforce.level) warn_of_pods(request, policy.enforce);
    return {};
  }

  /// A stricter level takes nothing away from pods that run; it names those that it would refuse, grouped by what they break.
  void warn_of_pods(const AdmissionRequest& request, const Rule& rule) const {
    if (request.warnings == nullptr) return;
    std::map<std::string, std::pair<std::string, int>> by_finding;  // finding → first pod, further ones
    WatchFilter filter;
    filter.prefix = make_prefix("", "pods", request.name);
    for (const auto& object : cache_.list(filter, {}, kPodsLookedAt).items) {
      const json::Value pod = decode_object(*object);
      const json::Value* spec = json::find(pod, {"spec"});
      if (spec == nullptr) continue;
      const std::string broken = model::pod_security_broken_rules(rule.level, pod.at("metadata"), *spec);
      if (broken.empty()) continue;
      const auto [found, is_new] = by_finding.try_emplace(broken, std::string(json::get_string(pod, {"metadata", "name"})), 0);
      if (!is_new) ++found->second.second;
    }
    if (by_finding.empty()) return;
    request.warnings->push_back(
        fmt::format("existing pods in namespace \"{}\" violate the new PodSecurity enforce level \"{}\"", request.name, rule.name()));
    for (const auto& [finding, pods] : by_finding) {
      const auto& [first, others] = pods;
      const std::string more = others == 0 ? "" : fmt::format(" (and {} other {})", others, others == 1 ? "pod" : "pods");
      request.warnings->push_back(fmt::format("{}{}: {}", first, more, finding));
    }
  }

  ObjectCache& cache_;
  Mirror& namespaces_;
};

}  // namespace

PluginResult make_pod_security(const AdmissionContext& context) { return std::make_unique<PodSecurity>(context); }

}  // namespace berth::apiserver
