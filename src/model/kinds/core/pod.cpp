// Pods.
#include "model/kinds/record.h"
#include "model/pods/pod_resources.h"
#include "model/pods/pod_warnings.h"

namespace berth::model::kinds {
namespace {

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

/// podIP is the first of podIPs; who sets one of them has set both (core/v1 conversion).
void agree_on_addresses(Value& pod) {
  const std::string one(json::get_string(pod, {"status", "podIP"}));
  const json::Array& all = json::get_array(pod, {"status", "podIPs"});
  const std::string_view first = all.empty() ? std::string_view() : json::get_string(all.front(), {"ip"});
  if (!one.empty() && one != first)
    json::set(pod, {"status", "podIPs"}, json::Array{Object{{"ip", one}}});
  else if (one.empty() && !first.empty())
    json::set(pod, {"status", "podIP"}, Value(first));
}

/// pods/resize moves the resources of the pod and of its containers and nothing else; containers are known by name.
void keep_resources_only(const Value& old, Value& doc) {
  Value kept = old;
  for (const char* list : {"containers", "initContainers"}) {
    Value* containers = json::find(kept, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (Value& container : containers->get_array())
      for (const Value& wanted : json::get_array(doc, {"spec", list}))
        if (container.is_object() && json::get_string(wanted, {"name"}) == json::get_string(container, {"name"}))
          for (const char* key : {"resources", "resizePolicy"}) strategy::copy_member(wanted, container, key);
    // Who adds or drops one is told so by validation.
    if (const json::Array& all = json::get_array(doc, {"spec", list}); all.size() != containers->get_array().size())
      *containers = Value(all);
  }
  if (Value* spec = json::find(kept, "spec"); spec != nullptr && spec->is_object())
    if (const Value* wanted = json::find(doc, "spec"); wanted != nullptr) strategy::copy_member(*wanted, *spec, "resources");
  strategy::carry_request_metadata(doc, kept);
  doc = std::move(kept);
}

/// pods/ephemeralcontainers moves that list and nothing else.
void keep_ephemeral_containers_only(const Value& old, Value& doc) {
  Value kept = old;
  const json::Array& wanted = json::get_array(doc, {"spec", "ephemeralContainers"});
  if (wanted.empty())
    json::erase(kept, {"spec", "ephemeralContainers"});
  else
    json::set(kept, {"spec", "ephemeralContainers"}, Value(wanted));
  strategy::carry_request_metadata(doc, kept);
  doc = std::move(kept);
}

/// The pod's own values of `keys` become part of the selector beside them, so that whoever selects need not know of the keys (podStrategy,
/// mutatePodAffinity and mutateTopologySpreadConstraints).
void merge_label_keys(const json::Object& labels, std::string_view keys, std::string_view op, Value& term) {
  Value* selector = json::find(term, "labelSelector");
  if (selector == nullptr || !selector->is_object()) return;
  for (const Value& key : json::get_array(term, {keys})) {
    const Value* value = key.is_string() ? labels.if_contains(json::as_view(key)) : nullptr;
    if (value == nullptr) continue;
    Value& expressions = selector->get_object()["matchExpressions"];
    if (!expressions.is_array()) expressions.emplace_array();
    expressions.get_array().emplace_back(Object{{"key", key}, {"operator", op}, {"values", json::Array{*value}}});
  }
}

void merge_label_keys(Value& pod) {
  const Object labels = json::get_object(pod, {"metadata", "labels"});
  const auto each = [](Value* list, const auto& merge) {
    if (list == nullptr || !list->is_array()) return;
    for (Value& one : list->get_array()) merge(one);
  };
  const auto of_affinity = [&](Value& term) {
    merge_label_keys(labels, "matchLabelKeys", "In", term);
    merge_label_keys(labels, "mismatchLabelKeys", "NotIn", term);
  };
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    each(json::find(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"}), of_affinity);
    each(json::find(pod, {"spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"}), [&](Value& weighted) {
      if (Value* term = json::find(weighted, "podAffinityTerm")) of_affinity(*term);
    });
  }
  each(json::find(pod, {"spec", "topologySpreadConstraints"}),
       [&](Value& constraint) { merge_label_keys(labels, "matchLabelKeys", "In", constraint); });
}

bool merge(const Value& old, Value& doc, std::string_view subresource, std::string_view) {
  if (subresource == "ephemeralcontainers")
    keep_ephemeral_containers_only(old, doc);
  else if (subresource == "resize")
    keep_resources_only(old, doc);
  else
    return false;
  return true;
}

void prepare_pod(Value& doc) {
  merge_label_keys(doc);
  json::set(doc, {"status", "qosClass"}, Value(pod_qos_class(doc)));
  if (get_array(doc, {"spec", "schedulingGates"}).empty()) return;
  json::set(doc, {"status", "conditions"},
            Array{Object{{"type", "PodScheduled"},
                         {"status", "False"},
                         {"lastProbeTime", nullptr},
                         {"lastTransitionTime", strategy::created_at(doc)},
                         {"reason", "SchedulingGated"},
                         {"message", "Scheduling is blocked due to non-empty scheduling gates"}}});
}

void prepare_pod_status(const Value& old, Value& doc, std::string_view) {
  agree_on_addresses(doc);
  if (get_string(doc, {"status", "qosClass"}).empty()) json::set(doc, {"status", "qosClass"}, Value(pod_qos_class(old)));
}

std::int64_t grace_seconds(const Value& options, const Value& pod) {
  std::int64_t grace = get_int(pod, {"spec", "terminationGracePeriodSeconds"}, 30);
  if (json::find(options, "gracePeriodSeconds") != nullptr) grace = get_int(options, {"gracePeriodSeconds"});
  // Nobody runs it, or it has ended: there is nothing to wait for.
  const auto phase = get_string(pod, {"status", "phase"});
  if (get_string(pod, {"spec", "nodeName"}).empty() || phase == "Failed" || phase == "Succeeded") grace = 0;
  return grace < 0 ? 1 : grace;
}

bool is_terminal(const json::Value& pod) {
  const auto phase = json::get_string(pod, {"status", "phase"});
  return phase == "Failed" || phase == "Succeeded";
}

bool is_standard(std::string_view resource) { return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage"; }

void add_pod(const json::Value& pod, ResourceAmounts& usage) {
  if (is_terminal(pod)) return;
  usage["pods"] = Quantity::from_value(1);
  for (const auto& [resource, amount] : pod_total(pod, "requests", PodAmounts::kHeld)) {
    if (is_standard(resource) || resource.starts_with("hugepages-")) {
      usage[resource] = amount;
      usage["requests." + resource] = amount;
    } else if (resource.find('/') != std::string::npos) {
      usage["requests." + resource] = amount;
    }
  }
  for (const auto& [resource, amount] : pod_total(pod, "limits", PodAmounts::kHeld))
    if (is_standard(resource)) usage["limits." + resource] = amount;
}

/// A pod that is there when its grace has passed twice is on a node that is lost: others may have its place (QuotaV1Pod).
std::optional<TimePoint> stops_counting(const json::Value& pod) {
  const auto deleted = parse_rfc3339(json::get_string(pod, {"metadata", "deletionTimestamp"}));
  if (!deleted || json::find(pod, {"metadata", "deletionGracePeriodSeconds"}) == nullptr) return std::nullopt;
  return *deleted + std::chrono::seconds(json::get_int(pod, {"metadata", "deletionGracePeriodSeconds"}));
}

bool matches_priority(const json::Value& pod, std::string_view op, const json::Array& values) {
  const auto name = json::get_string(pod, {"spec", "priorityClassName"});
  const auto listed = std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.is_string() && json::as_view(v) == name; });
  if (op == "Exists") return !name.empty();
  if (op == "DoesNotExist") return name.empty();
  if (op == "In") return !name.empty() && listed;
  return op == "NotIn" && !listed;
}

bool uses_cross_namespace_affinity(const json::Value& pod) {
  const auto crosses = [](const json::Value& term) {
    return !json::get_array(term, {"namespaces"}).empty() || json::find(term, "namespaceSelector") != nullptr;
  };
  for (std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    for (const auto& term : json::get_array(pod, {"spec", "affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"}))
      if (crosses(term)) return true;
    for (const auto& weighted : json::get_array(pod, {"spec", "affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"}))
      if (const auto* term = json::find(weighted, "podAffinityTerm"); term != nullptr && crosses(*term)) return true;
  }
  return false;
}

bool scope_matches(std::string_view scope, std::string_view op, const json::Array& values, const json::Value& pod) {
  const bool negated = op == "DoesNotExist";
  bool matches = false;
  if (scope == "Terminating" || scope == "NotTerminating") {
    const auto* deadline = json::find(pod, {"spec", "activeDeadlineSeconds"});
    matches = (deadline != nullptr) == (scope == "Terminating");
  } else if (scope == "BestEffort" || scope == "NotBestEffort") {
    matches = (pod_qos_class(pod) == "BestEffort") == (scope == "BestEffort");
  } else if (scope == "PriorityClass") {
    return matches_priority(pod, op, values);
  } else if (scope == "CrossNamespacePodAffinity") {
    matches = uses_cross_namespace_affinity(pod);
  } else {
    return false;
  }
  return matches != negated;
}

/// Nobody is warned of such a name.
bool is_good_hostname(std::string_view name) { return validation::check_dns1123_label(name).empty(); }

}  // namespace

KindInfo pod() {
  return Record("", "v1", "Pod", "pods")
      .shorts({"po"})
      .categories({"all"})
      .subs({"attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize", "status"})
      .generation()
      .fields({"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
               "status.podIP", "status.podIPs", "status.nominatedNodeName"})
      .does({.form = Form{.defaults = defaults::pod, .free_texts = {{.path = "metadata.name", .fits = is_good_hostname}}},
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"phase", "Pending"}};
                                      },
                                  .prepare_create = prepare_pod,
                                  .merge_update = merge,
                                  .prepare_status = prepare_pod_status,
                                  .kept_in_status_update = {"ownerReferences"}},
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = validation::pod,
                            .update = validation::pod_update,
                            .status = validation::pod_status,
                            .status_reads_rest = validation::pod_status_reads_spec,
                            .warnings =
                                [](const Value* old, const Value& doc, Sentences& out) {
                                  // Nobody reads what is said about the update of a pod: programs make them.
                                  if (old != nullptr) return;
                                  surprising_hostname_warning(doc, out);
                                  pod_warnings(doc, nullptr, out);
                                }},
             .printer = Printer{{{"Name"},
                                 {"Ready"},
                                 {"Status"},
                                 {"Restarts"},
                                 {"Age"},
                                 {"IP", 1},
                                 {"Node", 1},
                                 {"Nominated Node", 1},
                                 {"Readiness Gates", 1}},
                                pod_cells},
             .selected = std::vector<SelectedField>{{.name = "spec.hostNetwork", .absent = "false"}},
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true, .grace_seconds = grace_seconds},
             .counted = Counted{.usage = add_pod, .is_in_scope = scope_matches, .stops_counting = stops_counting}});
}

}  // namespace berth::model::kinds
