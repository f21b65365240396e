// Webhook configurations.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_webhooks(Object& doc, bool mutating) {
  each(doc, "webhooks", [&](Object& hook) {
    put(hook, "failurePolicy", "Fail");
    put(hook, "matchPolicy", "Equivalent");
    put(hook, "namespaceSelector", Object());
    put(hook, "objectSelector", Object());
    put(hook, "timeoutSeconds", 10);
    if (mutating) put(hook, "reinvocationPolicy", "Never");
    if (Object* config = child(hook, "clientConfig"))
      if (Object* target = child(*config, "service")) put(*target, "port", 443);
    each(hook, "rules", [](Object& rule) { put(rule, "scope", "*"); });
  });
}

Array webhook_cells(const Value& o, TimePoint now) { return {name_of(o), get_array(o, {"webhooks"}).size(), age_of(o, now)}; }

KindInfo configuration(std::string kind, std::string plural, bool is_mutating) {
  return Record("admissionregistration.k8s.io", "v1", std::move(kind), std::move(plural))
      .categories({"api-extensions"})
      .cluster()
      .generation()
      .does({.form = Form{.defaults = [is_mutating](Object& doc) { default_webhooks(doc, is_mutating); }},
             .strategy = kDefault,
             .rules = Rules{.has_foreign_finalizers = true,
                            .metadata_looks = kLooksAtAllAgain,
                            .create = validation::webhooks,
                            .update = in_turn(validation::webhooks)},
             .printer = Printer{{{"Name"}, {"Webhooks", 0, "integer"}, {"Age"}}, webhook_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.update_needs_revision = true},
             .counted = kDefault});
}

}  // namespace

KindInfo mutating_webhooks() { return configuration("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", true); }
KindInfo validating_webhooks() { return configuration("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false); }

}  // namespace berth::model::kinds
