// NetworkPolicies.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_policy(Object& doc) {
  Object& spec = make_child(doc, "spec");
  if (list(spec, "policyTypes") == nullptr || list(spec, "policyTypes")->empty()) {
    Array types{"Ingress"};
    if (list(spec, "egress") != nullptr && !list(spec, "egress")->empty()) types.push_back("Egress");
    spec["policyTypes"] = std::move(types);
  }
  for (const char* direction : {"ingress", "egress"})
    each(spec, direction, [](Object& rule) { each(rule, "ports", [](Object& port) { put(port, "protocol", "TCP"); }); });
}

Array network_policy_cells(const Value& o, TimePoint now) {
  return {name_of(o), tables::selector_text(o, {"spec", "podSelector"}), age_of(o, now)};
}

}  // namespace

KindInfo network_policy() {
  return Record("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
      .shorts({"netpol"})
      .generation()
      .does({.form = Form{.defaults = default_policy},
             .strategy = kDefault,
             .rules = Rules{.create = validation::network_policy, .update = in_turn(validation::network_policy)},
             .printer = Printer{{{"Name"}, {"Pod-Selector"}, {"Age"}}, network_policy_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
