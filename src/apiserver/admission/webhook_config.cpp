#include "apiserver/admission/webhook_config.h"

#include "apiserver/kinds/kind_table.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

std::vector<std::string> strings(const json::Value& parent, std::string_view key) {
  std::vector<std::string> out;
  for (const auto& item : json::get_array(parent, {key}))
    if (item.is_string()) out.emplace_back(json::as_view(item));
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view wanted) {
  return std::any_of(list.begin(), list.end(), [&](const auto& item) { return item == "*" || item == wanted; });
}

bool wants_resource(const WebhookRule& rule, std::string_view plural, std::string_view subresource) {
  for (const std::string_view pattern : rule.resources) {
    const auto slash = pattern.find('/');
    const auto resource = pattern.substr(0, slash);
    const auto sub = slash == std::string_view::npos ? std::string_view{} : pattern.substr(slash + 1);
    if (resource != "*" && resource != plural) continue;
    if (sub == subresource || (slash != std::string_view::npos && sub == "*")) return true;
  }
  return false;
}

bool rule_matches(const WebhookRule& rule, const AdmissionRequest& request, const model::KindInfo& kind) {
  if (!has(rule.operations, to_string(request.operation)) || !has(rule.groups, kind.group) || !has(rule.versions, kind.version))
    return false;
  if (!wants_resource(rule, kind.plural, request.subresource)) return false;
  if (!rule.names.empty() && std::find(rule.names.begin(), rule.names.end(), request.name) == rule.names.end()) return false;
  if (rule.scope == "Cluster") return !kind.namespaced;
  if (rule.scope == "Namespaced") return kind.namespaced;
  return true;
}

std::vector<WebhookRule> read_rules(const json::Value& document, std::string_view key) {
  std::vector<WebhookRule> out;
  for (const auto& rule : json::get_array(document, {key}))
    out.push_back({strings(rule, "operations"), strings(rule, "apiGroups"), strings(rule, "apiVersions"), strings(rule, "resources"),
                   std::string(json::get_string(rule, {"scope"}, "*")), strings(rule, "resourceNames")});
  return out;
}

/// The kind under which a rule wants the request: its own, or another version's of the same object.
const model::KindInfo* match_rules(const std::vector<WebhookRule>& rules, bool exact, const AdmissionRequest& request) {
  for (const auto& rule : rules)
    if (rule_matches(rule, request, *request.kind)) return request.kind;
  if (exact) return nullptr;
  const auto wants = [&](const model::KindInfo& kind) {
    if (&kind == request.kind || kind.plural != request.kind->plural || kind.storage_group != request.kind->storage_group ||
        kind.is_virtual)
      return false;
    return std::ranges::any_of(rules, [&](const auto& rule) { return rule_matches(rule, request, kind); });
  };
  for (const auto& kind : model::all_kinds())
    if (wants(kind)) return &kind;
  if (request.kinds == nullptr) return nullptr;
  for (const auto& served : request.kinds->all_custom()) {
    if (!served.kind->version->is_served) continue;
    if (wants(served.kind->info)) return &served.kind->info;
  }
  return nullptr;
}

std::shared_ptr<const Webhook> compile_one(const json::Value& document) {
  auto webhook = std::make_shared<Webhook>();
  webhook->name = json::get_string(document, {"name"});
  read_matcher(*webhook, document, "rules");
  webhook->conditions = MatchConditions::compile(json::get_array(document, {"matchConditions"}), false);
  webhook->ignores_failure = json::get_string(document, {"failurePolicy"}) == "Ignore";
  webhook->reinvoke = json::get_string(document, {"reinvocationPolicy"}) == "IfNeeded";
  const auto effects = json::get_string(document, {"sideEffects"});
  webhook->allows_dry_run = effects == "None" || effects == "NoneOnDryRun";
  webhook->timeout_ms = static_cast<int>(std::clamp<std::int64_t>(json::get_int(document, {"timeoutSeconds"}, 10), 1, 30)) * 1000;
  if (const auto* config = json::find(document, "clientConfig")) webhook->read(*config);
  const auto versions = strings(document, "admissionReviewVersions");
  webhook->is_v1 = versions.empty() || std::find(versions.begin(), versions.end(), "v1") != versions.end();
  return webhook;
}

}  // namespace

model::FieldErrors check_webhook_expressions(const json::Value& configuration) {
  model::FieldErrors errors;
  const auto& webhooks = json::get_array(configuration, {"webhooks"});
  for (std::size_t i = 0; i < webhooks.size(); ++i)
    check_match_conditions(json::get_array(webhooks[i], {"matchConditions"}), fmt::format("webhooks[{}].matchConditions", i), false,
                           errors);
  return errors;
}

std::vector<std::shared_ptr<const Webhook>> compile_webhooks(const std::vector<Mirror::Document>& configurations) {
  std::vector<std::shared_ptr<const Webhook>> out;
  for (const auto& configuration : configurations)
    for (const auto& webhook : json::get_array(*configuration, {"webhooks"})) out.push_back(compile_one(webhook));
  return out;
}

void read_matcher(ResourceMatcher& out, const json::Value& document, std::string_view rules) {
  out.rules = read_rules(document, rules);
  out.excluded = read_rules(document, "excludeResourceRules");
  out.exact_match = json::get_string(document, {"matchPolicy"}) == "Exact";
  const auto selector = [&](std::string_view field) {
    const auto* value = json::find(document, field);
    if (value == nullptr) return model::Selector::everything();
    auto parsed = model::Selector::from_label_selector(value);
    return parsed ? std::move(*parsed) : model::Selector::nothing();
  };
  out.namespaces = selector("namespaceSelector");
  out.objects = selector("objectSelector");
}

const model::KindInfo* match_resources(const ResourceMatcher& webhook, const AdmissionRequest& request, const Mirror& namespaces) {
  const model::KindInfo* matched =
      webhook.rules.empty() && webhook.without_rules_matches_all ? request.kind : match_rules(webhook.rules, webhook.exact_match, request);
  if (matched == nullptr || match_rules(webhook.excluded, webhook.exact_match, request) != nullptr) return nullptr;
  if (!webhook.namespaces.is_everything()) {
    const bool is_namespace = model::hooks_of(*request.kind).life->is_namespace;
    if (is_namespace) {
      const auto& document = request.object.is_null() ? request.old_object : request.object;
      if (!webhook.namespaces.matches(model::Labels::from_json(json::find(document, {"metadata", "labels"})))) return nullptr;
    } else if (!request.ns.empty()) {
      const auto ns = namespaces.get("", request.ns);
      if (ns == nullptr || !webhook.namespaces.matches(model::Labels::from_json(json::find(*ns, {"metadata", "labels"})))) return nullptr;
    }
  }
  if (!webhook.objects.is_everything()) {
    const auto selects = [&](const json::Value& document) {
      return document.is_object() && webhook.objects.matches(model::Labels::from_json(json::find(document, {"metadata", "labels"})));
    };
    if (!selects(request.object) && !selects(request.old_object)) return nullptr;
  }
  return matched;
}

bool may_want_alike(const ResourceMatcher& matcher, const AdmissionRequest& request, const Mirror& namespaces) {
  const auto names_some = [](const WebhookRule& rule) { return !rule.names.empty(); };
  if (std::ranges::any_of(matcher.rules, names_some) || std::ranges::any_of(matcher.excluded, names_some)) return true;
  if (request.operation != Operation::kUpdate) return match_resources(matcher, request, namespaces) != nullptr;
  auto of_all = matcher;
  of_all.objects = model::Selector::everything();
  return match_resources(of_all, request, namespaces) != nullptr;
}

}  // namespace berth::apiserver
