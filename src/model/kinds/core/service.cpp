// Services and Endpoints.
#include "model/kinds/record.h"
#include "model/service_strategy.h"

namespace berth::model::kinds {
namespace {

void default_service(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put_string(spec, "sessionAffinity", "None");
  if (string_at(spec, "sessionAffinity") == "ClientIP")
    put(make_child(make_child(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
  else if (string_at(spec, "sessionAffinity") == "None")
    spec.erase("sessionAffinityConfig");
  put_string(spec, "type", "ClusterIP");
  const std::string type(string_at(spec, "type"));
  each(spec, "ports", [](Object& port) {
    put_string(port, "protocol", "TCP");
    const auto target = port.find("targetPort");
    const bool unset = target == port.end() || (target->value().is_int64() && target->value().get_int64() == 0) ||
                       (target->value().is_string() && target->value().get_string().empty());
    if (unset && port.contains("port")) port["targetPort"] = Value(port.at("port"));
  });
  const Value* external = spec.if_contains("externalIPs");
  const bool has_external = external != nullptr && external->is_array() && !external->get_array().empty();
  if (type == "NodePort" || type == "LoadBalancer" || (type == "ClusterIP" && has_external))
    put_string(spec, "externalTrafficPolicy", "Cluster");
  if (type != "ExternalName") put(spec, "internalTrafficPolicy", "Cluster");
  if (type != "LoadBalancer") return;
  put(spec, "allocateLoadBalancerNodePorts", true);
  if (Object* status = child(doc, "status"))
    if (Object* balancer = child(*status, "loadBalancer"))
      each(*balancer, "ingress", [](Object& ingress) {
        if (!string_at(ingress, "ip").empty()) put_string(ingress, "ipMode", "VIP");
      });
}

void default_endpoints(Object& doc) {
  each(doc, "subsets", [](Object& subset) { each(subset, "ports", [](Object& port) { put_string(port, "protocol", "TCP"); }); });
}

Array service_cells(const Value& o, TimePoint now) {
  std::vector<std::string> ports, external;
  for (const Value& port : get_array(o, {"spec", "ports"})) {
    std::string text = fmt::format("{}", get_int(port, {"port"}));
    if (const std::int64_t node_port = get_int(port, {"nodePort"}); node_port > 0) text += fmt::format(":{}", node_port);
    ports.push_back(text + "/" + std::string(get_string(port, {"protocol"}, "TCP")));
  }
  const std::string_view type = get_string(o, {"spec", "type"});
  for (const Value& ip : get_array(o, {"spec", "externalIPs"})) external.emplace_back(ip.is_string() ? json::as_view(ip) : "");
  for (const Value& ingress : get_array(o, {"status", "loadBalancer", "ingress"}))
    external.emplace_back(get_string(ingress, {"ip"}, get_string(ingress, {"hostname"})));
  std::string external_text = external.empty() ? (type == "LoadBalancer" ? "<pending>" : "<none>") : join(external);
  if (type == "ExternalName") external_text = get_string(o, {"spec", "externalName"});
  return {name_of(o),
          Value(type),
          or_none(get_string(o, {"spec", "clusterIP"})),
          external_text,
          ports.empty() ? "<none>" : join(ports),
          age_of(o, now),
          tables::map_text(get_object(o, {"spec", "selector"}))};
}

std::string endpoints_text(const Value& o) {
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const Value& subset : get_array(o, {"subsets"}))
    for (std::size_t i = 0; i < std::max<std::size_t>(get_array(subset, {"ports"}).size(), 1); ++i) {
      const Array& ports = get_array(subset, {"ports"});
      for (const Value& address : get_array(subset, {"addresses"})) {
        if (parts.size() == 3) {
          ++more;
          continue;
        }
        parts.push_back(ports.empty() ? std::string(get_string(address, {"ip"}))
                                      : fmt::format("{}:{}", get_string(address, {"ip"}), get_int(ports[i], {"port"})));
      }
    }
  if (parts.empty()) return "<none>";
  return join(parts) + (more > 0 ? fmt::format(" + {} more...", more) : "");
}

Array endpoints_cells(const Value& o, TimePoint now) { return {name_of(o), endpoints_text(o), age_of(o, now)}; }

void warn_of_service(const Value& doc, Sentences& out) {
  constexpr std::string_view kHints = "service.kubernetes.io/topology-aware-hints";
  if (json::find(doc, {"metadata", "annotations", kHints}) != nullptr)
    out.push_back(fmt::format("annotation {} is deprecated, please use service.kubernetes.io/topology-mode instead", kHints));
  const std::string_view type = get_string(doc, {"spec", "type"});
  const bool is_headless = type == "ClusterIP" && get_string(doc, {"spec", "clusterIP"}) == "None";
  const bool has_external_ips = !get_array(doc, {"spec", "externalIPs"}).empty();
  if (is_headless) {
    if (!get_string(doc, {"spec", "loadBalancerIP"}).empty()) out.emplace_back("spec.loadBalancerIP is ignored for headless services");
    if (has_external_ips) out.emplace_back("spec.externalIPs is ignored for headless services");
    if (get_string(doc, {"spec", "sessionAffinity"}) != "None") out.emplace_back("spec.SessionAffinity is ignored for headless services");
  } else if (has_external_ips && type != "ExternalName") {
    out.emplace_back("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  if (type == "ExternalName" && has_external_ips) out.emplace_back("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  if (type != "ExternalName" && !get_string(doc, {"spec", "externalName"}).empty())
    out.emplace_back("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  if (get_string(doc, {"spec", "trafficDistribution"}) == "PreferClose")
    out.emplace_back("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
}

void add_service(const json::Value& service, ResourceAmounts& usage) {
  usage["services"] = Quantity::from_value(1);
  const auto type = json::get_string(service, {"spec", "type"}, "ClusterIP");
  const auto& all = json::get_array(service, {"spec", "ports"});
  const auto ports = std::ssize(all);
  if (type == "NodePort") usage["services.nodeports"] = Quantity::from_value(ports);
  if (type == "LoadBalancer") {
    usage["services.loadbalancers"] = Quantity::from_value(1);
    // Where none are given, those that are named count.
    const auto named = std::ranges::count_if(all, [](const json::Value& port) { return json::get_int(port, {"nodePort"}) != 0; });
    usage["services.nodeports"] =
        Quantity::from_value(json::get_bool(service, {"spec", "allocateLoadBalancerNodePorts"}, true) ? ports : named);
  }
}

}  // namespace

KindInfo endpoints() {
  return Record("", "v1", "Endpoints", "endpoints")
      .shorts({"ep"})
      .singular("endpoints")
      .does({.form = Form{.defaults = default_endpoints},
             .strategy = kDefault,
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::endpoints,
                            .update = in_turn(validation::endpoints),
                            .deprecation = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
             .printer = Printer{{{"Name"}, {"Endpoints"}, {"Age"}}, endpoints_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_created_by_update = true, .etcd_prefix = "services/endpoints"},
             .counted = kDefault});
}

KindInfo service() {
  return Record("", "v1", "Service", "services")
      .shorts({"svc"})
      .categories({"all"})
      .subs({"proxy", "status"})
      .fields({"spec.clusterIP", "spec.type"})
      .does(
          {.form = Form{.defaults = default_service},
           .strategy = Strategy{.initial_status =
                                    [] {
                                      return Value{{"loadBalancer", Object()}};
                                    },
                                .prepare_create = prepare_service,
                                .prepare_update =
                                    [](const Value& old, Value& doc, std::string_view subresource) {
                                      if (subresource.empty()) prepare_service_update(old, doc);
                                    }},
           .rules = Rules{.name = validation::check_dns1123_label,
                          .create = validation::service,
                          .update = in_turn(validation::service_update),
                          .status = [](const Value& old, const Value& doc,
                                       Errors& errors) { validation::load_balancer_status(old, doc, true, errors); },
                          .warnings = [](const Value*, const Value& doc, Sentences& out) { warn_of_service(doc, out); }},
           .printer = Printer{{{"Name"}, {"Type"}, {"Cluster-IP"}, {"External-IP"}, {"Port(s)"}, {"Age"}, {"Selector", 1}}, service_cells},
           .selected = kDefault,
           .scale = kDefault,
           .life = Life{.is_created_by_update = true, .is_answered_when_deleted = true, .etcd_prefix = "services/specs"},
           .counted = Counted{.usage = add_service}});
}

}  // namespace berth::model::kinds
