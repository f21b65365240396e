#include "model/flow_control.h"

#include "model/defaults.h"
#include "model/schema.h"

namespace berth::model::flow_control {
namespace {

using json::Array;
using json::Object;
using json::Value;

Array texts(std::initializer_list<const char*> list) {
  Array out;
  for (const char* text : list) out.emplace_back(text);
  return out;
}

Value whole(const char* kind, Object document) {
  const auto& info = *find_kind(kGroup, "v1", kind);
  document["apiVersion"] = info.api_version();
  document["kind"] = info.kind;
  Value out(std::move(document));
  DecodeReport report;
  (void)decode(info, out, report, false);
  apply_defaults(info, out);
  return out;
}

BootstrapObject level(const char* name, Object spec, bool is_mandatory = false) {
  return {whole("PriorityLevelConfiguration", Object{{"metadata", Object{{"name", name}}}, {"spec", std::move(spec)}}), is_mandatory};
}

BootstrapObject queued(const char* name, int shares, int lendable_percent, int queues, int hand_size) {
  Object limited{{"nominalConcurrencyShares", shares},
                 {"lendablePercent", lendable_percent},
                 {"limitResponse",
                  Object{{"type", "Queue"}, {"queuing", Object{{"queues", queues}, {"handSize", hand_size}, {"queueLengthLimit", 50}}}}}};
  return level(name, Object{{"type", "Limited"}, {"limited", std::move(limited)}});
}

Object user(const char* name) { return {{"kind", "User"}, {"user", Object{{"name", name}}}}; }
Object group(const char* name) { return {{"kind", "Group"}, {"group", Object{{"name", name}}}}; }
Object system_accounts() { return {{"kind", "ServiceAccount"}, {"serviceAccount", Object{{"namespace", "kube-system"}, {"name", "*"}}}}; }

Object objects(Array verbs, const char* api_group, Array resources, bool is_cluster_scoped) {
  Object rule{
      {"verbs", std::move(verbs)}, {"apiGroups", texts({api_group})}, {"resources", std::move(resources)}, {"namespaces", texts({"*"})}};
  if (is_cluster_scoped) rule["clusterScope"] = true;
  return rule;
}

/// A rule of some requests, or of all.
Object rule(Array subjects, Array resource_rules = {}, Array paths = {}) {
  Object out{{"subjects", std::move(subjects)}};
  if (resource_rules.empty() && paths.empty()) {
    out["resourceRules"] = Array{objects(texts({"*"}), "*", texts({"*"}), true)};
    out["nonResourceRules"] = Array{Object{{"verbs", texts({"*"})}, {"nonResourceURLs", texts({"*"})}}};
  }
  if (!resource_rules.empty()) out["resourceRules"] = std::move(resource_rules);
  if (!paths.empty()) out["nonResourceRules"] = Array{Object{{"verbs", texts({"get"})}, {"nonResourceURLs", std::move(paths)}}};
  return out;
}

BootstrapObject schema(const char* name, const char* level_name, int precedence, const char* distinguisher, Object one_rule,
                       bool is_mandatory = false) {
  Object spec{{"priorityLevelConfiguration", Object{{"name", level_name}}},
              {"matchingPrecedence", precedence},
              {"rules", Array{std::move(one_rule)}}};
  if (*distinguisher != '\0') spec["distinguisherMethod"] = Object{{"type", distinguisher}};
  return {whole("FlowSchema", Object{{"metadata", Object{{"name", name}}}, {"spec", std::move(spec)}}), is_mandatory};
}

}  // namespace

const std::vector<BootstrapObject>& bootstrap_levels() {
  static const std::vector<BootstrapObject> kLevels = {
      level("exempt", Object{{"type", "Exempt"}, {"exempt", Object{{"nominalConcurrencyShares", 0}, {"lendablePercent", 0}}}}, true),
      level("catch-all",
            Object{{"type", "Limited"},
                   {"limited",
                    Object{{"nominalConcurrencyShares", 5}, {"lendablePercent", 0}, {"limitResponse", Object{{"type", "Reject"}}}}}},
            true),
      queued("system", 30, 33, 64, 6),
      queued("node-high", 40, 25, 64, 6),
      queued("leader-election", 10, 0, 16, 4),
      queued("workload-high", 40, 50, 128, 6),
      queued("workload-low", 100, 90, 128, 6),
      queued("global-default", 20, 50, 128, 6)};
  return kLevels;
}

const std::vector<BootstrapObject>& bootstrap_schemas() {
  static const auto kSchemas = [] {
    const auto everybody = [] { return Array{group("system:unauthenticated"), group("system:authenticated")}; };
    const auto leases = [](Array verbs) { return objects(std::move(verbs), "coordination.k8s.io", texts({"leases"}), false); };
    std::vector<BootstrapObject> out;
    out.push_back(schema("exempt", "exempt", 1, "", rule(Array{group("system:masters")}), true));
    out.push_back(schema("catch-all", "catch-all", 10000, "ByUser", rule(everybody()), true));
    out.push_back(schema("berth-cluster-admins", "exempt", 2, "", rule(Array{group("berth:cluster-admins")})));
    out.push_back(schema("probes", "exempt", 2, "", rule(everybody(), {}, texts({"/healthz", "/readyz", "/livez"}))));
    out.push_back(schema("system-leader-election", "leader-election", 100, "ByUser",
                         rule(Array{user("system:kube-controller-manager"), user("system:kube-scheduler"), system_accounts()},
                              Array{leases(texts({"get", "create", "update"}))})));
    out.push_back(schema("system-node-high", "node-high", 400, "ByUser",
                         rule(Array{group("system:nodes")},
                              Array{objects(texts({"*"}), "", texts({"nodes", "nodes/status"}), true), leases(texts({"*"}))})));
    out.push_back(schema("system-nodes", "system", 500, "ByUser", rule(Array{group("system:nodes")})));
    out.push_back(
        schema("kube-controller-manager", "workload-high", 800, "ByNamespace", rule(Array{user("system:kube-controller-manager")})));
    out.push_back(schema("kube-scheduler", "workload-high", 800, "ByNamespace", rule(Array{user("system:kube-scheduler")})));
    out.push_back(schema("kube-system-service-accounts", "workload-high", 900, "ByNamespace", rule(Array{system_accounts()})));
    out.push_back(schema("service-accounts", "workload-low", 9000, "ByUser", rule(Array{group("system:serviceaccounts")})));
    out.push_back(schema("global-default", "global-default", 9900, "ByUser", rule(everybody())));
    return out;
  }();
  return kSchemas;
}

const BootstrapObject* bootstrap_object(std::string_view kind, std::string_view name) {
  const auto& all = kind == "FlowSchema" ? bootstrap_schemas() : bootstrap_levels();
  for (const BootstrapObject& one : all)
    if (json::get_string(one.document, {"metadata", "name"}) == name) return &one;
  return nullptr;
}

void default_level(Object& document) {
  Object* spec = defaults::child(document, "spec");
  if (spec == nullptr) return;
  if (Object* exempt = defaults::child(*spec, "exempt")) {
    defaults::put(*exempt, "nominalConcurrencyShares", 0);
    defaults::put(*exempt, "lendablePercent", 0);
  }
  Object* limited = defaults::child(*spec, "limited");
  if (limited == nullptr) return;
  defaults::put(*limited, "nominalConcurrencyShares", 30);
  defaults::put(*limited, "lendablePercent", 0);
  Object* response = defaults::child(*limited, "limitResponse");
  Object* queuing = response == nullptr ? nullptr : defaults::child(*response, "queuing");
  if (queuing == nullptr) return;
  const auto unless_zero = [&](std::string_view key, int value) {
    if (const Value* given = queuing->if_contains(key); given == nullptr || *given == 0) (*queuing)[key] = value;
  };
  unless_zero("queues", 64);
  unless_zero("handSize", 8);
  unless_zero("queueLengthLimit", 50);
}

void default_schema(Object& document) {
  Object& spec = defaults::make_child(document, "spec");
  if (const Value* given = spec.if_contains("matchingPrecedence"); given == nullptr || *given == 0) spec["matchingPrecedence"] = 1000;
}

}  // namespace berth::model::flow_control
