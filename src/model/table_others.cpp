// Cells of policy, storage, access and the machine kinds.
#include <fmt/format.h>

#include <set>

#include "base/clock.h"
#include "model/quantity.h"
#include "model/selector.h"
#include "model/table_cells.h"
#include "model/table_printers.h"
#include "model/tables.h"

namespace berth::model::tables {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

Array priority_class_cells(const Value& o, TimePoint now) {
  return {name_of(o), get_int(o, {"value"}), get_bool(o, {"globalDefault"}), age_of(o, now), Value(get_string(o, {"preemptionPolicy"}))};
}

Array certificate_request_cells(const Value& o, TimePoint now) {
  bool approved = false, denied = false, failed = false;
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    const std::string_view type = get_string(condition, {"type"});
    approved = approved || type == "Approved";
    denied = denied || type == "Denied";
    failed = failed || type == "Failed";
  }
  std::string state = denied ? "Denied" : approved ? "Approved" : "Pending";
  if (failed) state += ",Failed";
  if (!get_string(o, {"status", "certificate"}).empty()) state += ",Issued";
  const Value* seconds = json::find(o, {"spec", "expirationSeconds"});
  const std::string duration =
      seconds == nullptr || seconds->is_null() ? "<none>" : human_duration(std::chrono::seconds(get_int(o, {"spec", "expirationSeconds"})));
  return {name_of(o), age_of(o, now), Value(get_string(o, {"spec", "signerName"})), Value(get_string(o, {"spec", "username"})),
          duration,   state};
}

Array storage_class_cells(const Value& o, TimePoint now) {
  std::string name(get_string(o, {"metadata", "name"}));
  const bool is_default = get_string(o, {"metadata", "annotations", "storageclass.kubernetes.io/is-default-class"}) == "true" ||
                          get_string(o, {"metadata", "annotations", "storageclass.beta.kubernetes.io/is-default-class"}) == "true";
  if (is_default) name += " (default)";
  return {name,
          Value(get_string(o, {"provisioner"})),
          Value(get_string(o, {"reclaimPolicy"})),
          Value(get_string(o, {"volumeBindingMode"})),
          get_bool(o, {"allowVolumeExpansion"}),
          age_of(o, now)};
}

Array volume_attributes_class_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"driverName"})), age_of(o, now)};
}

Array csi_node_cells(const Value& o, TimePoint now) { return {name_of(o), get_array(o, {"spec", "drivers"}).size(), age_of(o, now)}; }
Array csi_driver_cells(const Value& o, TimePoint now) {
  std::vector<std::string> audiences;
  for (const Value& request : get_array(o, {"spec", "tokenRequests"})) audiences.emplace_back(get_string(request, {"audience"}));
  return {name_of(o),
          get_bool(o, {"spec", "attachRequired"}),
          get_bool(o, {"spec", "podInfoOnMount"}),
          get_bool(o, {"spec", "storageCapacity"}),
          audiences.empty() ? or_unset("") : Value(fmt::format("{}", fmt::join(audiences, ","))),
          get_bool(o, {"spec", "requiresRepublish"}),
          array_text(get_array(o, {"spec", "volumeLifecycleModes"})),
          age_of(o, now)};
}
Array lease_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"spec", "holderIdentity"})), age_of(o, now)}; }
Array role_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"metadata", "creationTimestamp"}))}; }

Array binding_cells(const Value& o, TimePoint now) {
  std::vector<std::string> users, groups, accounts;
  for (const Value& subject : get_array(o, {"subjects"})) {
    const std::string_view kind = get_string(subject, {"kind"});
    const std::string name(get_string(subject, {"name"}));
    if (kind == "User")
      users.push_back(name);
    else if (kind == "Group")
      groups.push_back(name);
    else
      accounts.push_back(std::string(get_string(subject, {"namespace"})) + "/" + name);
  }
  return {name_of(o),         fmt::format("{}/{}", get_string(o, {"roleRef", "kind"}), get_string(o, {"roleRef", "name"})),
          age_of(o, now),     join(users, ", "),
          join(groups, ", "), join(accounts, ", ")};
}

Array webhook_cells(const Value& o, TimePoint now) { return {name_of(o), get_array(o, {"webhooks"}).size(), age_of(o, now)}; }
Array policy_cells(const Value& o, TimePoint now) {
  const Value* kind = json::find(o, {"spec", "paramKind"});
  return {name_of(o), get_array(o, {"spec", "validations"}).size(),
          kind == nullptr ? "<unset>" : fmt::format("{}/{}", get_string(*kind, {"apiVersion"}), get_string(*kind, {"kind"})),
          age_of(o, now)};
}
Array policy_binding_cells(const Value& o, TimePoint now) {
  std::string param = "<unset>";
  if (const std::string_view name = get_string(o, {"spec", "paramRef", "name"}); !name.empty()) {
    const std::string_view ns = get_string(o, {"spec", "paramRef", "namespace"});
    param = fmt::format("{}/{}", ns.empty() ? "*" : ns, name);
  }
  return {name_of(o), get_string(o, {"spec", "policyName"}), param, age_of(o, now)};
}

Array flow_schema_cells(const Value& o, TimePoint now) {
  std::string_view dangling = "?";
  for (const Value& condition : get_array(o, {"status", "conditions"}))
    if (get_string(condition, {"type"}) == "Dangling") dangling = get_string(condition, {"status"});
  const std::string_view method = get_string(o, {"spec", "distinguisherMethod", "type"});
  return {name_of(o),
          Value(get_string(o, {"spec", "priorityLevelConfiguration", "name"})),
          get_int(o, {"spec", "matchingPrecedence"}),
          Value(method.empty() ? "<none>" : method),
          age_of(o, now),
          Value(dangling)};
}

Array priority_level_cells(const Value& o, TimePoint now) {
  const auto number = [&](json::Path path) {
    const Value* value = json::find(o, path);
    return value == nullptr || value->is_null() ? Value("<none>") : *value;
  };
  return {name_of(o),
          Value(get_string(o, {"spec", "type"})),
          number({"spec", "limited", "nominalConcurrencyShares"}),
          number({"spec", "limited", "limitResponse", "queuing", "queues"}),
          number({"spec", "limited", "limitResponse", "queuing", "handSize"}),
          number({"spec", "limited", "limitResponse", "queuing", "queueLengthLimit"}),
          age_of(o, now)};
}

Array revision_cells(const Value& o, TimePoint now) {
  std::string controller = "<none>";
  for (const Value& owner : get_array(o, {"metadata", "ownerReferences"})) {
    if (!get_bool(owner, {"controller"})) continue;
    const std::string_view version = get_string(owner, {"apiVersion"});
    const auto slash = version.find('/');
    const std::string group = slash == std::string_view::npos ? "" : fmt::format(".{}", version.substr(0, slash));
    controller = fmt::format("{}{}/{}", get_string(owner, {"kind"}), group, get_string(owner, {"name"}));
  }
  for (char& c : controller) {
    if (c == '/') break;
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return {name_of(o), controller, get_int(o, {"revision"}), age_of(o, now)};
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
Array network_policy_cells(const Value& o, TimePoint now) {
  return {name_of(o), selector_text(o, {"spec", "podSelector"}), age_of(o, now)};
}
Array runtime_class_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"handler"})), age_of(o, now)}; }
Array api_service_cells(const Value& o, TimePoint now) {
  // What this server answers itself needs nobody else to be there.
  if (json::find(o, {"spec", "service"}) == nullptr) return {name_of(o), "Local", "True", age_of(o, now)};
  std::string available = "Unknown";
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    if (get_string(condition, {"type"}) != "Available") continue;
    available = get_string(condition, {"status"});
    if (available != "True") available += fmt::format(" ({})", get_string(condition, {"reason"}));
  }
  const std::string service =
      fmt::format("{}/{}", get_string(o, {"spec", "service", "namespace"}), get_string(o, {"spec", "service", "name"}));
  return {name_of(o), service, available, age_of(o, now)};
}

Array machine_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          Value(get_string(o, {"status", "phase"})),
          Value(get_string(o, {"spec", "providerSpec", "value", "instanceType"})),
          Value(get_string(o, {"metadata", "labels", "machine.openshift.io/region"})),
          Value(get_string(o, {"metadata", "labels", "machine.openshift.io/zone"})),
          age_of(o, now),
          Value(get_string(o, {"status", "nodeRef", "name"}))};
}
Array machine_set_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          get_int(o, {"status", "availableReplicas"}),
          age_of(o, now)};
}
Array machine_autoscaler_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          Value(get_string(o, {"spec", "scaleTargetRef", "kind"})),
          Value(get_string(o, {"spec", "scaleTargetRef", "name"})),
          get_int(o, {"spec", "minReplicas"}),
          get_int(o, {"spec", "maxReplicas"}),
          age_of(o, now)};
}
Array pod_template_cells(const Value& o, TimePoint) {
  const auto [names, images] = containers_and_images(get_array(o, {"template", "spec", "containers"}));
  return {name_of(o), names, images, map_text(get_object(o, {"template", "metadata", "labels"}))};
}
Array attachment_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          Value(get_string(o, {"spec", "attacher"})),
          Value(get_string(o, {"spec", "source", "persistentVolumeName"})),
          Value(get_string(o, {"spec", "nodeName"})),
          get_bool(o, {"status", "attached"}),
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
/// "allocated,reserved", as far as it has come.
Array resource_claim_cells(const Value& o, TimePoint now) {
  const bool is_going = json::find(o, {"metadata", "deletionTimestamp"}) != nullptr;
  std::vector<std::string> states;
  if (is_going) states.emplace_back("deleted");
  if (json::find(o, {"status", "allocation"}) == nullptr) {
    if (!is_going) states.emplace_back("pending");
  } else {
    states.emplace_back("allocated");
    if (!get_array(o, {"status", "reservedFor"}).empty()) states.emplace_back("reserved");
  }
  return {name_of(o), join(states), age_of(o, now)};
}
Array resource_slice_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"spec", "nodeName"})), Value(get_string(o, {"spec", "driver"})),
          Value(get_string(o, {"spec", "pool", "name"})), age_of(o, now)};
}
Array plain_cells(const Value& o, TimePoint now) { return {name_of(o), age_of(o, now)}; }

}  // namespace berth::model::tables
