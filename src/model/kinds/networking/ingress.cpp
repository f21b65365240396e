// Ingresses and their classes.
#include <set>

#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_ingress_class(Object& doc) {
  if (Object* spec = child(doc, "spec"))
    if (Object* parameters = child(*spec, "parameters")) put(*parameters, "scope", "Cluster");
}

/// Of new ones only.
void warn_of_ingress(const Value* old, const Value& doc, Sentences& out) {
  constexpr std::string_view kOldClass = "kubernetes.io/ingress.class";
  if (old == nullptr && json::find(doc, {"metadata", "annotations", kOldClass}) != nullptr)
    out.push_back(fmt::format("annotation \"{}\" is deprecated, please use 'spec.ingressClassName' instead", kOldClass));
}

Array ingress_cells(const Value& o, TimePoint now) {
  constexpr std::size_t kShownHosts = 3;
  std::vector<std::string> hosts;
  bool more = false;
  const Array& rules = get_array(o, {"spec", "rules"});
  for (const Value& rule : rules) {
    more |= hosts.size() == kShownHosts;
    if (const std::string_view host = get_string(rule, {"host"}); !more && !host.empty()) hosts.emplace_back(host);
  }
  std::string shown = hosts.empty() ? "*" : join(hosts);
  if (more) shown += fmt::format(" + {} more...", rules.size() - kShownHosts);
  std::set<std::string> addresses;
  for (const Value& point : get_array(o, {"status", "loadBalancer", "ingress"})) {
    const std::string_view ip = get_string(point, {"ip"}), host = get_string(point, {"hostname"});
    if (!ip.empty() || !host.empty()) addresses.emplace(ip.empty() ? host : ip);
  }
  return {name_of(o),
          or_none(get_string(o, {"spec", "ingressClassName"})),
          shown,
          fmt::format("{}", fmt::join(addresses, ",")),
          get_array(o, {"spec", "tls"}).empty() ? "80" : "80, 443",
          age_of(o, now)};
}

/// "Kind.group/name" of what holds a class's parameters.
Array ingress_class_cells(const Value& o, TimePoint now) {
  std::string parameters = "<none>";
  if (json::find(o, {"spec", "parameters"}) != nullptr) {
    const std::string_view group = get_string(o, {"spec", "parameters", "apiGroup"});
    parameters = fmt::format("{}{}{}/{}", get_string(o, {"spec", "parameters", "kind"}), group.empty() ? "" : ".", group,
                             get_string(o, {"spec", "parameters", "name"}));
  }
  return {name_of(o), Value(get_string(o, {"spec", "controller"})), parameters, age_of(o, now)};
}

}  // namespace

KindInfo ingress_class() {
  return Record("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
      .cluster()
      .generation()
      .does({.form = Form{.defaults = default_ingress_class},
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::ingress_class,
                            .update = in_turn(validation::ingress_class_update, validation::ingress_class)},
             .printer = Printer{{{"Name"}, {"Controller"}, {"Parameters"}, {"Age"}}, ingress_class_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

KindInfo ingress() {
  return Record("networking.k8s.io", "v1", "Ingress", "ingresses")
      .shorts({"ing"})
      .subs({"status"})
      .generation()
      .does({.form = kDefault,
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"loadBalancer", Object()}};
                                      }},
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create =
                                [](const Value& doc, Errors& errors) {
                                  validation::ingress(doc, errors);
                                  validation::ingress_create(doc, errors);
                                },
                            .update = in_turn(validation::ingress),
                            .status = [](const Value& old, const Value& doc,
                                         Errors& errors) { validation::load_balancer_status(old, doc, false, errors); },
                            .warnings = warn_of_ingress},
             .printer = Printer{{{"Name"}, {"Class"}, {"Hosts"}, {"Address"}, {"Ports"}, {"Age"}}, ingress_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.etcd_prefix = "ingress"},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
