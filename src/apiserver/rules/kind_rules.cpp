#include "apiserver/rules/kind_rules.h"

#include <map>
#include <string_view>
#include <utility>

#include "apiserver/admission/policy_config.h"
#include "apiserver/rules/certificate_rules.h"
#include "apiserver/rules/device_rules.h"
#include "model/devices.h"

namespace berth::apiserver {
namespace {

using json::Value;

/// The right with which somebody may write a role beyond his own rights ("escalate"), or bind one ("bind").
Attributes right_to_grant(const model::KindInfo& kind, const Value& object, const Value* old) {
  Attributes right;
  right.group = "rbac.authorization.k8s.io";
  right.version = "*";
  right.ns = json::get_string(object, {"metadata", "namespace"});
  if (kind.kind.ends_with("Binding")) {
    right.verb = "bind";
    right.resource = json::get_string(object, {"roleRef", "kind"}) == "Role" ? "roles" : "clusterroles";
    right.name = json::get_string(object, {"roleRef", "name"});
    return right;
  }
  right.verb = "escalate";
  right.resource = kind.plural;
  if (old != nullptr) right.name = json::get_string(object, {"metadata", "name"});  // A creation's path has none.
  return right;
}

/// RBAC's own rule, which no configuration switches off: nobody grants more than he has (pkg/registry/rbac/clusterrole/policybased and its
/// siblings). Judged on what mutation has left.
std::optional<model::ApiStatus> refuse_escalation(const RuledWrite& write, const Value* old, const Value& object) {
  const auto& kind = write.kind;
  auto why = write.authorizer.check_escalation(write.user, kind.kind, object, old);
  if (!why) return std::nullopt;
  // The right to it is anybody's to give whom the configuration asks about rights, and asked for only where it matters.
  if (write.authorizer.authorize(write.user, right_to_grant(kind, object, old)).allowed) return std::nullopt;
  return model::forbidden(kind.group, kind.plural, write.name, *why);
}

KindRules device_class_rules() {
  return {.check_last = [](const RuledWrite&, const Value* old, const Value& object) { return check_class_selectors(old, object); }};
}

KindRules resource_claim_rules() {
  return {.check_first =
              [](const RuledWrite& write, const Value* old, Value& object) {
                if (old == nullptr) return check_admin_access(write, json::find(object, "spec"));
                if (write.subresource != "status") return model::FieldErrors();
                return check_claim_status(write, *old, object);
              },
          .check_last =
              [](const RuledWrite&, const Value* old, const Value& object) {
                return old == nullptr ? check_claim_selectors(json::find(object, "spec"), "spec") : model::FieldErrors();
              }};
}

KindRules claim_template_rules() {
  return {.check_first =
              [](const RuledWrite& write, const Value* old, Value& object) {
                if (old != nullptr) return model::FieldErrors();
                return check_admin_access(write, json::find(object, {"spec", "spec"}));
              },
          .check_last =
              [](const RuledWrite&, const Value*, const Value& object) {
                return check_claim_selectors(json::find(object, {"spec", "spec"}), "spec.spec");
              }};
}

/// A taint without a time of its own was added now.
KindRules resource_slice_rules() {
  return {.check_first = [](const RuledWrite& write, const Value*, Value& object) {
    model::devices::stamp_taints(object, format_rfc3339(write.clock.now()));
    return model::FieldErrors();
  }};
}

KindRules device_taint_rule_rules() {
  return {.check_first = [](const RuledWrite& write, const Value* old, Value& object) {
    if (write.subresource.empty()) model::devices::stamp_rule(old, object, format_rfc3339(write.clock.now()));
    return model::FieldErrors();
  }};
}

KindRules certificate_request_rules() {
  return {.sign = [](const RuledWrite& write, Value& object) { set_requestor(write.user, object); },
          .check_first = [](const RuledWrite&, const Value* old, Value& object) { return check_certificate_request(old, object); }};
}

/// Of policies and webhooks: expressions must be programs.
KindRules expression_rules(model::FieldErrors (*check)(const Value& object)) {
  return {.check_last = [check](const RuledWrite&, const Value*, const Value& object) { return check(object); }};
}

using Name = std::pair<std::string_view, std::string_view>;  ///< Group and kind: all versions do the same.

const std::map<Name, KindRules>& all_rules() {
  static const std::map<Name, KindRules> rules = [] {
    std::map<Name, KindRules> out;
    for (const auto kind : {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"})
      out[{"rbac.authorization.k8s.io", kind}] = {.guard = refuse_escalation};
    out[{"certificates.k8s.io", "CertificateSigningRequest"}] = certificate_request_rules();
    for (const auto kind : {"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"})
      out[{"admissionregistration.k8s.io", kind}] = expression_rules(check_policy_expressions);
    for (const auto kind : {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"})
      out[{"admissionregistration.k8s.io", kind}] = expression_rules(check_webhook_expressions);
    out[{"resource.k8s.io", "DeviceClass"}] = device_class_rules();
    out[{"resource.k8s.io", "ResourceClaim"}] = resource_claim_rules();
    out[{"resource.k8s.io", "ResourceClaimTemplate"}] = claim_template_rules();
    out[{"resource.k8s.io", "ResourceSlice"}] = resource_slice_rules();
    out[{"resource.k8s.io", "DeviceTaintRule"}] = device_taint_rule_rules();
    out[{"", "Service"}] = {.takes_addresses = true};
    return out;
  }();
  return rules;
}

}  // namespace

const KindRules& rules_of(const model::KindInfo& kind) {
  static const KindRules none;
  const auto found = all_rules().find({kind.group, kind.kind});
  return found == all_rules().end() ? none : found->second;
}

}  // namespace berth::apiserver
