#include "apiserver/admission/webhook_config.h"

#include "base/base64.h"

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
  if (rule.scope == "Cluster") return !kind.namespaced;
  if (rule.scope == "Namespaced") return kind.namespaced;
  return true;
}

std::shared_ptr<const Webhook> compile_one(const json::Value& document) {
  auto webhook = std::make_shared<Webhook>();
  webhook->name = json::get_string(document, {"name"});
  for (const auto& rule : json::get_array(document, {"rules"}))
    webhook->rules.push_back({strings(rule, "operations"), strings(rule, "apiGroups"), strings(rule, "apiVersions"),
                              strings(rule, "resources"), std::string(json::get_string(rule, {"scope"}, "*"))});
  const auto selector = [&](std::string_view field) {
    const auto* value = json::find(document, field);
    if (value == nullptr) return model::Selector::everything();
    auto parsed = model::Selector::from_label_selector(value);
    return parsed ? std::move(*parsed) : model::Selector::nothing();
  };
  webhook->namespaces = selector("namespaceSelector");
  webhook->objects = selector("objectSelector");
  webhook->ignores_failure = json::get_string(document, {"failurePolicy"}) == "Ignore";
  webhook->exact_match = json::get_string(document, {"matchPolicy"}) == "Exact";
  webhook->reinvoke = json::get_string(document, {"reinvocationPolicy"}) == "IfNeeded";
  const auto effects = json::get_string(document, {"sideEffects"});
  webhook->allows_dry_run = effects == "None" || effects == "NoneOnDryRun";
  webhook->timeout_ms = static_cast<int>(std::clamp<std::int64_t>(json::get_int(document, {"timeoutSeconds"}, 10), 1, 30)) * 1000;
  webhook->url = json::get_string(document, {"clientConfig", "url"});
  webhook->service_ns = json::get_string(document, {"clientConfig", "service", "namespace"});
  webhook->service_name = json::get_string(document, {"clientConfig", "service", "name"});
  webhook->service_path = json::get_string(document, {"clientConfig", "service", "path"}, "/");
  webhook->service_port = static_cast<int>(json::get_int(document, {"clientConfig", "service", "port"}, 443));
  webhook->ca_pem = base64_decode(json::get_string(document, {"clientConfig", "caBundle"})).value_or("");
  const auto versions = strings(document, "admissionReviewVersions");
  webhook->is_v1 = versions.empty() || std::find(versions.begin(), versions.end(), "v1") != versions.end();
  return webhook;
}

}  // namespace

std::vector<std::shared_ptr<const Webhook>> compile_webhooks(const std::vector<Mirror::Document>& configurations) {
  std::vector<std::shared_ptr<const Webhook>> out;
  for (const auto& configuration : configurations)
    for (const auto& webhook : json::get_array(*configuration, {"webhooks"})) out.push_back(compile_one(webhook));
  return out;
}

const model::KindInfo* match_webhook(const Webhook& webhook, const AdmissionRequest& request, const Mirror& namespaces) {
  const model::KindInfo* matched = nullptr;
  for (const auto& rule : webhook.rules)
    if (rule_matches(rule, request, *request.kind)) matched = request.kind;
  if (matched == nullptr && !webhook.exact_match) {
    // The same object under another version that the webhook knows.
    for (const auto& kind : model::all_kinds()) {
      if (matched != nullptr || &kind == request.kind || kind.plural != request.kind->plural ||
          kind.storage_group != request.kind->storage_group || kind.is_virtual)
        continue;
      for (const auto& rule : webhook.rules)
        if (rule_matches(rule, request, kind)) matched = &kind;
    }
  }
  if (matched == nullptr) return nullptr;
  if (!webhook.namespaces.is_everything()) {
    const bool is_namespace = request.kind->plural == "namespaces" && request.kind->group.empty();
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

}  // namespace berth::apiserver
