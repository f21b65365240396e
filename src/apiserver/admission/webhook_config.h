// Webhook configurations, compiled: which requests each webhook wants, and how it is reached (admissionregistration.k8s.io/v1).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apiserver/admission/plugin.h"
#include "model/selector.h"

namespace berth::apiserver {

struct WebhookRule {
  std::vector<std::string> operations, groups, versions, resources;
  std::string scope;
};

struct Webhook {
  std::string name;
  std::vector<WebhookRule> rules;
  model::Selector namespaces, objects;
  bool ignores_failure = false, exact_match = false, reinvoke = false;
  bool allows_dry_run = false;
  int timeout_ms = 10'000;
  std::string url;  ///< Or:
  std::string service_ns, service_name, service_path;
  int service_port = 443;
  std::string ca_pem;
  bool is_v1 = true;  ///< AdmissionReview admission.k8s.io/v1 is among those it takes.
};

/// In the order in which they are called: configurations by name, webhooks as listed.
std::vector<std::shared_ptr<const Webhook>> compile_webhooks(const std::vector<Mirror::Document>& configurations);

/// The kind in whose form the webhook wants to see the request's object, or null when it does not want the request. `namespaces`: the
/// mirror of Namespaces.
const model::KindInfo* match_webhook(const Webhook& webhook, const AdmissionRequest& request, const Mirror& namespaces);

}  // namespace berth::apiserver
