// Webhook configurations, compiled: which requests each webhook wants, and how it is reached (admissionregistration.k8s.io/v1).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apiserver/admission/match_conditions.h"
#include "apiserver/admission/plugin.h"
#include "apiserver/webhook/webhook_client.h"
#include "model/selector.h"

namespace berth::apiserver {

struct WebhookRule {
  std::vector<std::string> operations, groups, versions, resources;
  std::string scope;
  std::vector<std::string> names;  ///< Of objects; empty: all.
};

/// Which requests are wanted (webhooks' own fields; MatchResources of policies and bindings).
struct ResourceMatcher {
  std::vector<WebhookRule> rules;
  std::vector<WebhookRule> excluded;
  model::Selector namespaces = model::Selector::everything(), objects = model::Selector::everything();
  bool exact_match = false;
  bool without_rules_matches_all = false;  ///< Bindings narrow down: without rules they want everything.
};

struct Webhook : ResourceMatcher, WebhookTarget {
  std::string name;
  bool ignores_failure = false, reinvoke = false;
  MatchConditions conditions;
  bool allows_dry_run = false;
  bool is_v1 = true;  ///< AdmissionReview admission.k8s.io/v1 is among those it takes.
};

/// In the order in which they are called: configurations by name, webhooks as listed.
std::vector<std::shared_ptr<const Webhook>> compile_webhooks(const std::vector<Mirror::Document>& configurations);

/// What is wrong with the match conditions of a configuration that is being written.
model::FieldErrors check_webhook_expressions(const json::Value& configuration);

/// The rules, selectors and match policy below `document`: a webhook, or a MatchResources of a policy.
void read_matcher(ResourceMatcher& out, const json::Value& document, std::string_view rules);

/// The kind in whose form the request's object is wanted, or null when the request is not. `namespaces`: the mirror of Namespaces. The
/// object in that form may have to be made first (equivalent_forms.h).
const model::KindInfo* match_resources(const ResourceMatcher& matcher, const AdmissionRequest& request, const Mirror& namespaces);
/// Whether it, or of an update one that differs from it in names and labels alone, may be wanted.
bool may_want_alike(const ResourceMatcher& matcher, const AdmissionRequest& request, const Mirror& namespaces);

}  // namespace berth::apiserver
