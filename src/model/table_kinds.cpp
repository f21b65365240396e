// Columns and cells of every kind but the logic of pods.
#include <fmt/format.h>

#include <map>

#include "base/clock.h"
#include "model/quantity.h"
#include "model/selector.h"
#include "model/table_cells.h"
#include "model/tables.h"

namespace berth::model {
namespace {

using json::Array;
using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Object;
using json::Value;

Value name_of(const Value& o) { return Value(get_string(o, {"metadata", "name"})); }
Value age_of(const Value& o, TimePoint now) { return Value(human_age(get_string(o, {"metadata", "creationTimestamp"}), now)); }
Value or_none(std::string_view text) { return Value(text.empty() ? std::string_view("<none>") : text); }
Value or_unset(std::string_view text) { return Value(text.empty() ? std::string_view("<unset>") : text); }

std::string join(const std::vector<std::string>& parts, std::string_view separator = ",") {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string map_text(const Object& map) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : map)
    parts.push_back(fmt::format("{}={}", std::string_view(key.data(), key.size()), value.is_string() ? json::as_view(value) : ""));
  std::sort(parts.begin(), parts.end());
  return parts.empty() ? "<none>" : join(parts);
}

std::string selector_text(const Value& object, json::Path path) {
  const Value* selector = json::find(object, path);
  if (selector == nullptr) return "<none>";
  const auto compiled = Selector::from_label_selector(selector);
  if (!compiled) return "<error>";
  const std::string text = compiled->to_string();
  return text.empty() ? "<none>" : text;
}

std::pair<std::string, std::string> containers_and_images(const Array& containers) {
  std::vector<std::string> names, images;
  for (const Value& container : containers) {
    names.emplace_back(get_string(container, {"name"}));
    images.emplace_back(get_string(container, {"image"}));
  }
  return {join(names), join(images)};
}

std::string array_text(const Array& array) {
  std::vector<std::string> parts;
  for (const Value& item : array) parts.emplace_back(item.is_string() ? json::as_view(item) : "");
  return join(parts);
}

// ---- core

Array pod_cells(const Value& o, TimePoint now) {
  const PodSummary summary = summarise_pod(o);
  std::string restarts = fmt::format("{}", summary.restarts);
  if (summary.restarts != 0 && !summary.last_restart.empty()) restarts += fmt::format(" ({} ago)", human_age(summary.last_restart, now));
  std::size_t gates = 0, open = 0;
  for (const Value& gate : get_array(o, {"spec", "readinessGates"})) {
    ++gates;
    for (const Value& condition : get_array(o, {"status", "conditions"}))
      open += get_string(condition, {"type"}) == get_string(gate, {"conditionType"}) && get_string(condition, {"status"}) == "True";
  }
  return {name_of(o),
          fmt::format("{}/{}", summary.ready, summary.total),
          summary.status,
          restarts,
          age_of(o, now),
          or_none(get_string(o, {"status", "podIP"})),
          or_none(get_string(o, {"spec", "nodeName"})),
          or_none(get_string(o, {"status", "nominatedNodeName"})),
          gates == 0 ? "<none>" : fmt::format("{}/{}", open, gates)};
}

Array node_cells(const Value& o, TimePoint now) {
  std::vector<std::string> status, roles;
  for (const Value& condition : get_array(o, {"status", "conditions"}))
    if (get_string(condition, {"type"}) == "Ready") status.emplace_back(get_string(condition, {"status"}) == "True" ? "Ready" : "NotReady");
  if (status.empty()) status.emplace_back("Unknown");
  if (get_bool(o, {"spec", "unschedulable"})) status.emplace_back("SchedulingDisabled");
  for (const auto& [key, value] : get_object(o, {"metadata", "labels"})) {
    const std::string_view label(key.data(), key.size());
    constexpr std::string_view kPrefix = "node-role.kubernetes.io/";
    if (label.starts_with(kPrefix) && label.size() > kPrefix.size())
      roles.emplace_back(label.substr(kPrefix.size()));
    else if (label == "kubernetes.io/role" && value.is_string() && !value.get_string().empty())
      roles.emplace_back(json::as_view(value));
  }
  std::sort(roles.begin(), roles.end());
  const auto address = [&](std::string_view type) -> std::string_view {
    for (const Value& one : get_array(o, {"status", "addresses"}))
      if (get_string(one, {"type"}) == type) return get_string(one, {"address"});
    return {};
  };
  const auto or_unknown = [](std::string_view text) { return Value(text.empty() ? std::string_view("<unknown>") : text); };
  return {name_of(o),
          join(status),
          roles.empty() ? "<none>" : join(roles),
          age_of(o, now),
          Value(get_string(o, {"status", "nodeInfo", "kubeletVersion"})),
          or_none(address("InternalIP")),
          or_none(address("ExternalIP")),
          or_unknown(get_string(o, {"status", "nodeInfo", "osImage"})),
          or_unknown(get_string(o, {"status", "nodeInfo", "kernelVersion"})),
          or_unknown(get_string(o, {"status", "nodeInfo", "containerRuntimeVersion"}))};
}

Array namespace_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"status", "phase"})), age_of(o, now)}; }
Array config_map_cells(const Value& o, TimePoint now) {
  return {name_of(o), get_object(o, {"data"}).size() + get_object(o, {"binaryData"}).size(), age_of(o, now)};
}
Array secret_cells(const Value& o, TimePoint now) {
  return {name_of(o), Value(get_string(o, {"type"})), get_object(o, {"data"}).size(), age_of(o, now)};
}
Array service_account_cells(const Value& o, TimePoint now) { return {name_of(o), get_array(o, {"secrets"}).size(), age_of(o, now)}; }

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
          map_text(get_object(o, {"spec", "selector"}))};
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

Array endpoint_slice_cells(const Value& o, TimePoint now) {
  std::vector<std::string> ports, addresses;
  for (const Value& port : get_array(o, {"ports"})) ports.push_back(fmt::format("{}", get_int(port, {"port"})));
  for (const Value& endpoint : get_array(o, {"endpoints"}))
    for (const Value& address : get_array(endpoint, {"addresses"}))
      if (addresses.size() < 3) addresses.emplace_back(address.is_string() ? json::as_view(address) : "");
  return {name_of(o), Value(get_string(o, {"addressType"})), ports.empty() ? "<unset>" : join(ports),
          addresses.empty() ? "<unset>" : join(addresses), age_of(o, now)};
}

Array replication_controller_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          age_of(o, now),
          names,
          images,
          map_text(get_object(o, {"spec", "selector"}))};
}

Array event_cells(const Value& o, TimePoint now) {
  const auto first_of = [&](std::initializer_list<json::Path> paths) -> std::string_view {
    for (const json::Path& path : paths)
      if (const std::string_view text = get_string(o, path); !text.empty()) return text;
    return {};
  };
  const std::string_view first_time = first_of({{"firstTimestamp"}, {"deprecatedFirstTimestamp"}, {"eventTime"}});
  std::string_view last_time = first_of({{"series", "lastObservedTime"}, {"lastTimestamp"}, {"deprecatedLastTimestamp"}, {"eventTime"}});
  std::int64_t count = get_int(o, {"series", "count"}, get_int(o, {"count"}, get_int(o, {"deprecatedCount"}, 1)));
  const Value* involved = json::find(o, "involvedObject") != nullptr ? json::find(o, "involvedObject") : json::find(o, "regarding");
  std::string object;
  if (involved != nullptr) {
    std::string kind(get_string(*involved, {"kind"}));
    for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    object = kind + "/" + std::string(get_string(*involved, {"name"}));
  }
  std::string source(get_string(o, {"source", "component"}));
  if (source.empty()) source = first_of({{"reportingComponent"}, {"reportingController"}, {"deprecatedSource", "component"}});
  if (const std::string_view host = get_string(o, {"source", "host"}); !host.empty()) source += fmt::format(", {}", host);
  std::string message(first_of({{"message"}, {"note"}}));
  while (!message.empty() && message.back() == '\n') message.pop_back();
  return {Value(human_age(last_time, now)),
          Value(get_string(o, {"type"})),
          Value(get_string(o, {"reason"})),
          object,
          involved == nullptr ? Value("") : Value(get_string(*involved, {"fieldPath"})),
          source,
          message,
          Value(human_age(first_time, now)),
          count,
          name_of(o)};
}

Array limit_range_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"metadata", "creationTimestamp"}))}; }

Array resource_quota_cells(const Value& o, TimePoint now) {
  std::vector<std::string> requests, limits;
  std::vector<std::string> names;
  for (const auto& [key, value] : get_object(o, {"status", "hard"})) names.emplace_back(key);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string text =
        fmt::format("{}: {}/{}", name, get_string(o, {"status", "used", name}, "0"), get_string(o, {"status", "hard", name}));
    (name.starts_with("limits.") ? limits : requests).push_back(text);
  }
  return {name_of(o), join(requests, ", "), join(limits, ", "), age_of(o, now)};
}

std::string access_modes(const Array& modes) {
  std::vector<std::string> parts;
  for (const Value& mode : modes) {
    const std::string_view text = mode.is_string() ? json::as_view(mode) : "";
    parts.emplace_back(text == "ReadWriteOnce"      ? "RWO"
                       : text == "ReadOnlyMany"     ? "ROX"
                       : text == "ReadWriteMany"    ? "RWX"
                       : text == "ReadWriteOncePod" ? "RWOP"
                                                    : text);
  }
  return join(parts);
}

Array volume_cells(const Value& o, TimePoint now) {
  const std::string_view claim = get_string(o, {"spec", "claimRef", "name"});
  const std::string_view phase =
      json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : get_string(o, {"status", "phase"});
  return {name_of(o),
          Value(get_string(o, {"spec", "capacity", "storage"})),
          access_modes(get_array(o, {"spec", "accessModes"})),
          Value(get_string(o, {"spec", "persistentVolumeReclaimPolicy"})),
          Value(phase),
          claim.empty() ? "" : fmt::format("{}/{}", get_string(o, {"spec", "claimRef", "namespace"}), claim),
          Value(get_string(o, {"spec", "storageClassName"})),
          or_unset(get_string(o, {"spec", "volumeAttributesClassName"})),
          Value(get_string(o, {"status", "reason"})),
          age_of(o, now),
          or_unset(get_string(o, {"spec", "volumeMode"}))};
}

Array claim_cells(const Value& o, TimePoint now) {
  const bool bound = !get_string(o, {"spec", "volumeName"}).empty();
  const std::string_view phase =
      json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : get_string(o, {"status", "phase"});
  return {name_of(o),
          Value(phase),
          Value(get_string(o, {"spec", "volumeName"})),
          bound ? Value(get_string(o, {"status", "capacity", "storage"})) : Value(""),
          bound ? access_modes(get_array(o, {"status", "accessModes"})) : "",
          Value(get_string(o, {"spec", "storageClassName"})),
          or_unset(get_string(o, {"spec", "volumeAttributesClassName"})),
          age_of(o, now),
          or_unset(get_string(o, {"spec", "volumeMode"}))};
}

// ---- workloads

Array deployment_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          fmt::format("{}/{}", get_int(o, {"status", "readyReplicas"}), get_int(o, {"spec", "replicas"})),
          get_int(o, {"status", "updatedReplicas"}),
          get_int(o, {"status", "availableReplicas"}),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "selector"})};
}

Array replica_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"spec", "replicas"}),
          get_int(o, {"status", "replicas"}),
          get_int(o, {"status", "readyReplicas"}),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "selector"})};
}

Array stateful_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o), fmt::format("{}/{}", get_int(o, {"status", "readyReplicas"}), get_int(o, {"spec", "replicas"})), age_of(o, now),
          names, images};
}

Array daemon_set_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  return {name_of(o),
          get_int(o, {"status", "desiredNumberScheduled"}),
          get_int(o, {"status", "currentNumberScheduled"}),
          get_int(o, {"status", "numberReady"}),
          get_int(o, {"status", "updatedNumberScheduled"}),
          get_int(o, {"status", "numberAvailable"}),
          map_text(get_object(o, {"spec", "template", "spec", "nodeSelector"})),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "selector"})};
}

Array job_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "template", "spec", "containers"}));
  const std::int64_t succeeded = get_int(o, {"status", "succeeded"});
  const Value* completions = json::find(o, {"spec", "completions"});
  const std::int64_t parallelism = get_int(o, {"spec", "parallelism"});
  const std::string done = completions != nullptr ? fmt::format("{}/{}", succeeded, get_int(o, {"spec", "completions"}))
                           : parallelism > 1      ? fmt::format("{}/1 of {}", succeeded, parallelism)
                                                  : fmt::format("{}/1", succeeded);
  std::string duration;
  if (const auto start = parse_rfc3339(get_string(o, {"status", "startTime"}))) {
    const auto end = parse_rfc3339(get_string(o, {"status", "completionTime"}));
    duration = human_duration((end ? *end : now) - *start);
  }
  std::string status = json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : "Running";
  for (const Value& condition : get_array(o, {"status", "conditions"})) {
    if (get_string(condition, {"status"}) != "True") continue;
    const std::string_view type = get_string(condition, {"type"});
    if (type == "Complete" || type == "Failed" || type == "Suspended")
      status = type;
    else if ((type == "FailureTarget" || type == "SuccessCriteriaMet") && status == "Running")
      status = type;
  }
  return {name_of(o), status, done, duration, age_of(o, now), names, images, selector_text(o, {"spec", "selector"})};
}

Array cron_job_cells(const Value& o, TimePoint now) {
  const auto [names, images] = containers_and_images(get_array(o, {"spec", "jobTemplate", "spec", "template", "spec", "containers"}));
  const std::string_view last = get_string(o, {"status", "lastScheduleTime"});
  return {name_of(o),
          Value(get_string(o, {"spec", "schedule"})),
          or_none(get_string(o, {"spec", "timeZone"})),
          get_bool(o, {"spec", "suspend"}) ? "True" : "False",
          get_array(o, {"status", "active"}).size(),
          last.empty() ? "<none>" : human_age(last, now),
          age_of(o, now),
          names,
          images,
          selector_text(o, {"spec", "jobTemplate", "spec", "selector"})};
}

std::string int_or_string(const Value* value) {
  if (value == nullptr) return "N/A";
  return value->is_string() ? std::string(json::as_view(*value)) : json::serialize(*value);
}

Array budget_cells(const Value& o, TimePoint now) {
  return {name_of(o), int_or_string(json::find(o, {"spec", "minAvailable"})), int_or_string(json::find(o, {"spec", "maxUnavailable"})),
          get_int(o, {"status", "disruptionsAllowed"}), age_of(o, now)};
}

std::string hpa_targets(const Value& o) {
  std::vector<std::string> parts;
  const Array& current = get_array(o, {"status", "currentMetrics"});
  const Array& metrics = get_array(o, {"spec", "metrics"});
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    std::string source(get_string(metrics[i], {"type"}));
    if (!source.empty()) source[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(source[0])));
    const std::string name(get_string(metrics[i], {source, "name"}));
    std::string now_text = "<unknown>", wanted;
    if (const Value* utilization = json::find(metrics[i], {source, "target", "averageUtilization"})) {
      wanted = json::serialize(*utilization) + "%";
      if (i < current.size())
        if (const Value* value = json::find(current[i], {source, "current", "averageUtilization"}))
          now_text = json::serialize(*value) + "%";
    } else {
      wanted = get_string(metrics[i], {source, "target", "averageValue"}, get_string(metrics[i], {source, "target", "value"}));
      if (i < current.size()) now_text = get_string(current[i], {source, "current", "averageValue"}, "<unknown>");
    }
    parts.push_back(name.empty() ? fmt::format("{}/{}", now_text, wanted) : fmt::format("{}: {}/{}", name, now_text, wanted));
  }
  return parts.empty() ? "<none>" : join(parts, ", ");
}

Array hpa_cells(const Value& o, TimePoint now) {
  const Value* minimum = json::find(o, {"spec", "minReplicas"});
  return {name_of(o),
          fmt::format("{}/{}", get_string(o, {"spec", "scaleTargetRef", "kind"}), get_string(o, {"spec", "scaleTargetRef", "name"})),
          hpa_targets(o),
          minimum == nullptr ? "<unset>" : json::serialize(*minimum),
          get_int(o, {"spec", "maxReplicas"}),
          get_int(o, {"status", "currentReplicas"}),
          age_of(o, now)};
}

Array hpa_v1_cells(const Value& o, TimePoint now) {
  const Value* target = json::find(o, {"spec", "targetCPUUtilizationPercentage"});
  const Value* current = json::find(o, {"status", "currentCPUUtilizationPercentage"});
  const std::string targets =
      target == nullptr
          ? "<none>"
          : fmt::format("cpu: {}/{}%", current == nullptr ? "<unknown>" : json::serialize(*current) + "%", json::serialize(*target));
  const Value* minimum = json::find(o, {"spec", "minReplicas"});
  return {name_of(o),
          fmt::format("{}/{}", get_string(o, {"spec", "scaleTargetRef", "kind"}), get_string(o, {"spec", "scaleTargetRef", "name"})),
          targets,
          minimum == nullptr ? "<unset>" : json::serialize(*minimum),
          get_int(o, {"spec", "maxReplicas"}),
          get_int(o, {"status", "currentReplicas"}),
          age_of(o, now)};
}

// ---- policy, storage, access

Array priority_class_cells(const Value& o, TimePoint now) {
  return {name_of(o), get_int(o, {"value"}), get_bool(o, {"globalDefault"}), age_of(o, now), Value(get_string(o, {"preemptionPolicy"}))};
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

Array csi_node_cells(const Value& o, TimePoint now) { return {name_of(o), get_array(o, {"spec", "drivers"}).size(), age_of(o, now)}; }
Array csi_driver_cells(const Value& o, TimePoint now) {
  return {name_of(o),
          get_bool(o, {"spec", "attachRequired"}),
          get_bool(o, {"spec", "podInfoOnMount"}),
          get_bool(o, {"spec", "storageCapacity"}),
          or_unset(""),
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
  std::vector<std::string> hosts;
  for (const Value& rule : get_array(o, {"spec", "rules"})) hosts.emplace_back(get_string(rule, {"host"}));
  return {name_of(o), or_none(get_string(o, {"spec", "ingressClassName"})),     hosts.empty() ? "*" : join(hosts),
          "",         get_array(o, {"spec", "tls"}).empty() ? "80" : "80, 443", age_of(o, now)};
}
Array network_policy_cells(const Value& o, TimePoint now) {
  return {name_of(o), selector_text(o, {"spec", "podSelector"}), age_of(o, now)};
}
Array runtime_class_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"handler"})), age_of(o, now)}; }
Array api_service_cells(const Value& o, TimePoint now) { return {name_of(o), "Local", "True", age_of(o, now)}; }

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
Array plain_cells(const Value& o, TimePoint now) { return {name_of(o), age_of(o, now)}; }

using Table = std::map<std::string_view, Printer>;

const Table& printers() {
  static const Table table = {
      {"Pod",
       {{{"Name"}, {"Ready"}, {"Status"}, {"Restarts"}, {"Age"}, {"IP", 1}, {"Node", 1}, {"Nominated Node", 1}, {"Readiness Gates", 1}},
        pod_cells}},
      {"Node",
       {{{"Name"},
         {"Status"},
         {"Roles"},
         {"Age"},
         {"Version"},
         {"Internal-IP", 1},
         {"External-IP", 1},
         {"OS-Image", 1},
         {"Kernel-Version", 1},
         {"Container-Runtime", 1}},
        node_cells}},
      {"Namespace", {{{"Name"}, {"Status"}, {"Age"}}, namespace_cells}},
      {"ConfigMap", {{{"Name"}, {"Data"}, {"Age"}}, config_map_cells}},
      {"Secret", {{{"Name"}, {"Type"}, {"Data"}, {"Age"}}, secret_cells}},
      {"ServiceAccount", {{{"Name"}, {"Secrets"}, {"Age"}}, service_account_cells}},
      {"Service", {{{"Name"}, {"Type"}, {"Cluster-IP"}, {"External-IP"}, {"Port(s)"}, {"Age"}, {"Selector", 1}}, service_cells}},
      {"Endpoints", {{{"Name"}, {"Endpoints"}, {"Age"}}, endpoints_cells}},
      {"EndpointSlice", {{{"Name"}, {"AddressType"}, {"Ports"}, {"Endpoints"}, {"Age"}}, endpoint_slice_cells}},
      {"ReplicationController",
       {{{"Name"},
         {"Desired", 0, "integer"},
         {"Current", 0, "integer"},
         {"Ready", 0, "integer"},
         {"Age"},
         {"Containers", 1},
         {"Images", 1},
         {"Selector", 1}},
        replication_controller_cells}},
      {"Event",
       {{{"Last Seen"},
         {"Type"},
         {"Reason"},
         {"Object"},
         {"Subobject", 1},
         {"Source", 1},
         {"Message"},
         {"First Seen", 1},
         {"Count", 1},
         {"Name", 1}},
        event_cells}},
      {"PodTemplate", {{{"Name"}, {"Containers"}, {"Images"}, {"Pod Labels"}}, pod_template_cells}},
      {"VolumeAttachment", {{{"Name"}, {"Attacher"}, {"PV"}, {"Node"}, {"Attached", 0, "boolean"}, {"Age"}}, attachment_cells}},
      {"IngressClass", {{{"Name"}, {"Controller"}, {"Parameters"}, {"Age"}}, ingress_class_cells}},
      {"LimitRange", {{{"Name"}, {"Created At", 0, "date"}}, limit_range_cells}},
      {"ResourceQuota", {{{"Name"}, {"Request"}, {"Limit"}, {"Age"}}, resource_quota_cells}},
      {"PersistentVolume",
       {{{"Name"},
         {"Capacity"},
         {"Access Modes"},
         {"Reclaim Policy"},
         {"Status"},
         {"Claim"},
         {"StorageClass"},
         {"VolumeAttributesClass"},
         {"Reason"},
         {"Age"},
         {"VolumeMode", 1}},
        volume_cells}},
      {"PersistentVolumeClaim",
       {{{"Name"},
         {"Status"},
         {"Volume"},
         {"Capacity"},
         {"Access Modes"},
         {"StorageClass"},
         {"VolumeAttributesClass"},
         {"Age"},
         {"VolumeMode", 1}},
        claim_cells}},
      {"Deployment",
       {{{"Name"}, {"Ready"}, {"Up-to-date"}, {"Available"}, {"Age"}, {"Containers", 1}, {"Images", 1}, {"Selector", 1}},
        deployment_cells}},
      {"ReplicaSet",
       {{{"Name"},
         {"Desired", 0, "integer"},
         {"Current", 0, "integer"},
         {"Ready", 0, "integer"},
         {"Age"},
         {"Containers", 1},
         {"Images", 1},
         {"Selector", 1}},
        replica_set_cells}},
      {"StatefulSet", {{{"Name"}, {"Ready"}, {"Age"}, {"Containers", 1}, {"Images", 1}}, stateful_set_cells}},
      {"DaemonSet",
       {{{"Name"},
         {"Desired", 0, "integer"},
         {"Current", 0, "integer"},
         {"Ready", 0, "integer"},
         {"Up-to-date", 0, "integer"},
         {"Available", 0, "integer"},
         {"Node Selector"},
         {"Age"},
         {"Containers", 1},
         {"Images", 1},
         {"Selector", 1}},
        daemon_set_cells}},
      {"Job",
       {{{"Name"}, {"Status"}, {"Completions"}, {"Duration"}, {"Age"}, {"Containers", 1}, {"Images", 1}, {"Selector", 1}}, job_cells}},
      {"CronJob",
       {{{"Name"},
         {"Schedule"},
         {"Timezone"},
         {"Suspend"},
         {"Active", 0, "integer"},
         {"Last Schedule"},
         {"Age"},
         {"Containers", 1},
         {"Images", 1},
         {"Selector", 1}},
        cron_job_cells}},
      {"PodDisruptionBudget",
       {{{"Name"}, {"Min Available"}, {"Max Unavailable"}, {"Allowed Disruptions", 0, "integer"}, {"Age"}}, budget_cells}},
      {"PriorityClass",
       {{{"Name"}, {"Value", 0, "integer"}, {"Global-Default", 0, "boolean"}, {"Age"}, {"PreemptionPolicy"}}, priority_class_cells}},
      {"StorageClass",
       {{{"Name"}, {"Provisioner"}, {"ReclaimPolicy"}, {"VolumeBindingMode"}, {"AllowVolumeExpansion", 0, "boolean"}, {"Age"}},
        storage_class_cells}},
      {"CSINode", {{{"Name"}, {"Drivers", 0, "integer"}, {"Age"}}, csi_node_cells}},
      {"CSIDriver",
       {{{"Name"},
         {"AttachRequired", 0, "boolean"},
         {"PodInfoOnMount", 0, "boolean"},
         {"StorageCapacity", 0, "boolean"},
         {"TokenRequests"},
         {"RequiresRepublish", 0, "boolean"},
         {"Modes"},
         {"Age"}},
        csi_driver_cells}},
      {"Lease", {{{"Name"}, {"Holder"}, {"Age"}}, lease_cells}},
      {"Role", {{{"Name"}, {"Created At", 0, "date"}}, role_cells}},
      {"ClusterRole", {{{"Name"}, {"Created At", 0, "date"}}, role_cells}},
      {"RoleBinding", {{{"Name"}, {"Role"}, {"Age"}, {"Users", 1}, {"Groups", 1}, {"ServiceAccounts", 1}}, binding_cells}},
      {"ClusterRoleBinding", {{{"Name"}, {"Role"}, {"Age"}, {"Users", 1}, {"Groups", 1}, {"ServiceAccounts", 1}}, binding_cells}},
      {"MutatingWebhookConfiguration", {{{"Name"}, {"Webhooks", 0, "integer"}, {"Age"}}, webhook_cells}},
      {"ValidatingWebhookConfiguration", {{{"Name"}, {"Webhooks", 0, "integer"}, {"Age"}}, webhook_cells}},
      {"ControllerRevision", {{{"Name"}, {"Controller"}, {"Revision", 0, "integer"}, {"Age"}}, revision_cells}},
      {"Ingress", {{{"Name"}, {"Class"}, {"Hosts"}, {"Address"}, {"Ports"}, {"Age"}}, ingress_cells}},
      {"NetworkPolicy", {{{"Name"}, {"Pod-Selector"}, {"Age"}}, network_policy_cells}},
      {"RuntimeClass", {{{"Name"}, {"Handler"}, {"Age"}}, runtime_class_cells}},
      {"APIService", {{{"Name"}, {"Service"}, {"Available"}, {"Age"}}, api_service_cells}},
      {"Machine", {{{"Name"}, {"Phase"}, {"Type"}, {"Region"}, {"Zone"}, {"Age"}, {"Node", 1}}, machine_cells}},
      {"MachineSet",
       {{{"Name"}, {"Desired", 0, "integer"}, {"Current", 0, "integer"}, {"Ready", 0, "integer"}, {"Available", 0, "integer"}, {"Age"}},
        machine_set_cells}},
      {"MachineAutoscaler",
       {{{"Name"}, {"Ref Kind"}, {"Ref Name"}, {"Min", 0, "integer"}, {"Max", 0, "integer"}, {"Age"}}, machine_autoscaler_cells}},
  };
  return table;
}

}  // namespace

const Printer& printer_of(const KindInfo& kind) {
  static const Printer plain = {{{"Name"}, {"Age"}}, plain_cells};
  static const Printer hpa = {
      {{"Name"}, {"Reference"}, {"Targets"}, {"MinPods"}, {"MaxPods", 0, "integer"}, {"Replicas", 0, "integer"}, {"Age"}}, hpa_cells};
  static const Printer hpa_v1 = {hpa.columns, hpa_v1_cells};
  if (kind.kind == "HorizontalPodAutoscaler") return kind.version == "v1" ? hpa_v1 : hpa;
  const auto found = printers().find(kind.kind);
  return found == printers().end() ? plain : found->second;
}

}  // namespace berth::model
