// What the registry strategies do around a write (Kubernetes: pkg/registry/*/strategy.go).
#include <fmt/format.h>

#include <charconv>

#include "model/devices.h"
#include "model/kind_hooks.h"
#include "model/quantity.h"
#include "model/schema.h"
#include "model/service_strategy.h"

namespace berth::model {
namespace {

using json::Object;
using json::Value;

/// Kinds with a status that only the status subresource writes.
bool has_status(const KindInfo& kind) { return kind.has_subresource("status"); }

void copy_member(const Value& from, Value& to, std::string_view key) {
  const Value* value = json::find(from, key);
  if (value != nullptr)
    to.get_object()[key] = *value;
  else
    to.get_object().erase(key);
}

/// A zero-valued status, as Go prints it for fields without omitempty.
Value initial_status(const KindInfo& kind) {
  if (kind.kind == "Pod") return {{"phase", "Pending"}};
  if (kind.kind == "Namespace") return {{"phase", "Active"}};
  if (kind.kind == "PersistentVolumeClaim" || kind.kind == "PersistentVolume") return {{"phase", "Pending"}};
  if (kind.kind == "Service") return {{"loadBalancer", Object()}};
  if (kind.kind == "Ingress") return {{"loadBalancer", Object()}};
  if (kind.kind == "ReplicaSet" || kind.kind == "ReplicationController") return {{"replicas", 0}};
  if (kind.kind == "StatefulSet") return {{"replicas", 0}, {"availableReplicas", 0}};
  if (kind.kind == "DaemonSet")
    return {{"currentNumberScheduled", 0}, {"numberMisscheduled", 0}, {"desiredNumberScheduled", 0}, {"numberReady", 0}};
  if (kind.kind == "HorizontalPodAutoscaler" && kind.version != "v1") return {{"desiredReplicas", 0}, {"currentMetrics", nullptr}};
  if (kind.kind == "VolumeAttachment") return {{"attached", false}};
  if (kind.kind == "HorizontalPodAutoscaler") return {{"currentReplicas", 0}, {"desiredReplicas", 0}};
  if (kind.kind == "PodDisruptionBudget")
    return {{"disruptionsAllowed", 0}, {"currentHealthy", 0}, {"desiredHealthy", 0}, {"expectedPods", 0}};
  return Object();
}

void prepare_job(Value& doc) {
  // A Job owns its pods through a selector on its uid, unless the user manages the selector.
  if (json::get_bool(doc, {"spec", "manualSelector"})) return;
  const std::string uid(json::get_string(doc, {"metadata", "uid"}));
  const std::string name(json::get_string(doc, {"metadata", "name"}));
  if (uid.empty()) return;
  // A Job without labels of its own has its template's, those that are added here included.
  const Object own = json::get_object(doc, {"metadata", "labels"});
  const bool shares = own.empty() || own == json::get_object(doc, {"spec", "template", "metadata", "labels"});
  Object& labels = json::ensure_object(doc, {"spec", "template", "metadata", "labels"});
  labels["batch.kubernetes.io/controller-uid"] = uid;
  labels["batch.kubernetes.io/job-name"] = name;
  labels["controller-uid"] = uid;
  labels["job-name"] = name;
  if (shares) json::set(doc, {"metadata", "labels"}, Value(labels));
  json::ensure_object(doc, {"spec", "selector", "matchLabels"})["batch.kubernetes.io/controller-uid"] = uid;
  // A Job without labels of its own shows its pods' (batch/v1 defaults).
  if (json::get_object(doc, {"metadata", "labels"}).empty())
    json::set(doc, {"metadata", "labels"}, Value(json::get_object(doc, {"spec", "template", "metadata", "labels"})));
}

/// Fields whose change is a new generation: everything but metadata and status.
bool same_but_metadata_and_status(const Value& a, const Value& b) {
  const auto rest = [](const Value& v) {
    std::vector<std::pair<std::string_view, const Value*>> out;
    for (const auto& member : v.get_object()) {
      const std::string_view key(member.key().data(), member.key().size());
      if (key != "metadata" && key != "status" && key != "apiVersion" && key != "kind") out.emplace_back(key, &member.value());
    }
    std::sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    return out;
  };
  const auto left = rest(a), right = rest(b);
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && json::equal(*x.second, *y.second);
         });
}

const Quantity* parse_resource(const Value& resources, std::string_view list, std::string_view name, Quantity& storage) {
  // A dump written by hand may have a plain number, which an API server has as text.
  const Value* value = json::find(resources, {list, name});
  const std::string number = value != nullptr && value->is_number() ? json::serialize(*value) : std::string();
  const std::string_view text = number.empty() ? json::get_string(resources, {list, name}) : std::string_view(number);
  if (text.empty()) return nullptr;
  const auto quantity = Quantity::parse(text);
  if (!quantity || quantity->is_zero()) return nullptr;
  storage = *quantity;
  return &storage;
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

/// When the object was made, as its metadata says.
std::string created_at(const Value& doc) { return std::string(json::get_string(doc, {"metadata", "creationTimestamp"})); }

/// A volume's status says since when it has its phase.
void note_phase(const Value& old, std::string_view now, Value& volume) {
  const bool is_same = json::get_string(old, {"status", "phase"}) == json::get_string(volume, {"status", "phase"});
  const Value* before = json::find(old, {"status", "lastPhaseTransitionTime"});
  if (is_same && json::find(volume, {"status", "lastPhaseTransitionTime"}) == nullptr && before != nullptr)
    json::set(volume, {"status", "lastPhaseTransitionTime"}, *before);
  const Value* given = json::find(volume, {"status", "lastPhaseTransitionTime"});
  const bool was_given = given != nullptr && (before == nullptr || !json::equal(*given, *before));
  if (!is_same && !was_given && !now.empty()) json::set(volume, {"status", "lastPhaseTransitionTime"}, Value(now));
}

/// What must travel with every partial update: the precondition and the record of who wrote what.
void carry_request_metadata(const Value& doc, Value& kept) {
  for (const char* key : {"resourceVersion", "managedFields"})
    if (const Value* value = json::find(doc, {"metadata", key})) json::set(kept, {"metadata", key}, *value);
}

/// pods/resize moves the containers' resources and nothing else; containers are known by name.
void keep_resources_only(const Value& old, Value& doc) {
  Value kept = old;
  for (const char* list : {"containers", "initContainers"}) {
    Value* containers = json::find(kept, {"spec", list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (Value& container : containers->get_array())
      for (const Value& wanted : json::get_array(doc, {"spec", list}))
        if (container.is_object() && json::get_string(wanted, {"name"}) == json::get_string(container, {"name"}))
          for (const char* key : {"resources", "resizePolicy"}) copy_member(wanted, container, key);
    // Who adds or drops one is told so by validation.
    if (const json::Array& all = json::get_array(doc, {"spec", list}); all.size() != containers->get_array().size())
      *containers = Value(all);
  }
  carry_request_metadata(doc, kept);
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
  carry_request_metadata(doc, kept);
  doc = std::move(kept);
}

/// extensions/v1beta1's templateGeneration, which apps/v1 shows as an annotation.
constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

void count_template_generation(const Value& old, Value& doc) {
  std::int64_t generation = 1;
  const std::string_view before = json::get_string(old, {"metadata", "annotations", kTemplateGeneration});
  std::from_chars(before.data(), before.data() + before.size(), generation);
  const Value *was = json::find(old, {"spec", "template"}), *is = json::find(doc, {"spec", "template"});
  if (was != nullptr && is != nullptr && !json::equal(*was, *is)) ++generation;
  json::set(doc, {"metadata", "annotations", kTemplateGeneration}, Value(std::to_string(generation)));
}

}  // namespace

std::string_view pod_qos_class(const Value& pod) {
  constexpr std::string_view kResources[] = {"cpu", "memory"};
  std::optional<Quantity> requests[2], limits[2];
  bool guaranteed = true;
  const auto look = [&](const Value& holder, bool may_be_unlimited) {
    const Value none = Object();
    const Value* resources = json::find(holder, "resources");
    std::size_t limited = 0;
    for (std::size_t i = 0; i < std::size(kResources); ++i) {
      Quantity storage[2];
      const auto amount = [&](std::string_view list, Quantity& place) {
        const Quantity* there = parse_resource(resources != nullptr ? *resources : none, list, kResources[i], place);
        return there != nullptr && there->sign() > 0 ? there : nullptr;
      };
      const auto count = [](std::optional<Quantity>& sum, const Quantity* part) {
        if (part != nullptr) sum = sum ? Quantity(*sum) += *part : *part;
      };
      const Quantity *request = amount("requests", storage[0]), *limit = amount("limits", storage[1]);
      // A limit without a request counts as both (the defaults make it so).
      count(requests[i], request != nullptr ? request : limit);
      count(limits[i], limit);
      limited += limit != nullptr;
    }
    guaranteed &= limited == std::size(kResources) || may_be_unlimited;
  };
  // With resources of its own those of the containers do not count.
  if (const Value* own = json::find(pod, {"spec", "resources"}); own != nullptr && own->is_object()) {
    look(*json::find(pod, {"spec"}), json::get_object(*own, {"limits"}).empty());
  } else {
    for (const char* list : {"containers", "initContainers"})
      for (const Value& container : json::get_array(pod, {"spec", list})) look(container, false);
  }
  const auto is_any = [](const auto& amounts) { return amounts[0] || amounts[1]; };
  if (!is_any(requests) && !is_any(limits)) return "BestEffort";
  return guaranteed && requests[0] == limits[0] && requests[1] == limits[1] ? "Guaranteed" : "Burstable";
}

namespace {

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

}  // namespace

namespace {

/// Of what an account may use only the names count.
void keep_secret_names(Value& account) {
  Value* secrets = json::find(account, "secrets");
  if (secrets == nullptr || !secrets->is_array()) return;
  for (Value& secret : secrets->get_array()) {
    Object kept;
    if (const std::string name(json::get_string(secret, {"name"})); !name.empty()) kept["name"] = name;
    secret = std::move(kept);
  }
}

/// What a claim starts from, by its older name and by its newer one (pkg/api/persistentvolumeclaim). The older one never took other
/// things than claims and snapshots; of the newer one, another namespace is a feature that is off.
void agree_on_source(const Value* old, Value& claim) {
  Value* spec = json::find(claim, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  Object& fields = spec->get_object();
  const auto had = [&](std::string_view key) { return old != nullptr && json::find(*old, {"spec", key}) != nullptr; };
  if (!json::get_string(*spec, {"dataSourceRef", "namespace"}).empty() && !had("dataSourceRef")) fields.erase("dataSourceRef");
  const std::string_view kind = json::get_string(*spec, {"dataSource", "kind"}),
                         group = json::get_string(*spec, {"dataSource", "apiGroup"});
  const bool is_known =
      (kind == "PersistentVolumeClaim" && group.empty()) || (kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io");
  if (!had("dataSource") && !fields.contains("dataSourceRef") && !is_known) fields.erase("dataSource");
  const auto copy = [&](std::string_view from, std::string_view to) {
    Object source;
    for (const char* key : {"apiGroup", "kind", "name"})
      if (const Value* value = fields.at(from).get_object().if_contains(key)) source[key] = *value;
    fields[to] = std::move(source);
  };
  const bool has_source = fields.contains("dataSource"), has_reference = fields.contains("dataSourceRef");
  if (has_source && !has_reference) copy("dataSource", "dataSourceRef");
  if (has_reference && !has_source && json::get_string(*spec, {"dataSourceRef", "namespace"}).empty()) copy("dataSourceRef", "dataSource");
}

/// The form before v1 had the labels of an endpoint's node; a v1 client says them by fields.
void drop_old_topology(const Value* old, Value& slice) {
  Value* endpoints = json::find(slice, "endpoints");
  if (endpoints == nullptr || !endpoints->is_array()) return;
  const Value* before = old == nullptr ? nullptr : json::find(*old, "endpoints");
  if (before != nullptr && json::equal(*before, *endpoints)) return;
  for (Value& endpoint : endpoints->get_array())
    if (endpoint.is_object()) endpoint.get_object().erase("deprecatedTopology");
}

/// Kinds whose generation is only counted from the first change on.
bool counts_late(const KindInfo& kind) { return kind.kind == "CSIDriver"; }

/// The conditions of a type, in their order.
std::vector<Value*> conditions_of(Value& request, std::string_view type) {
  std::vector<Value*> out;
  Value* list = json::find(request, {"status", "conditions"});
  if (list == nullptr || !list->is_array()) return out;
  for (Value& condition : list->get_array())
    if (json::get_string(condition, {"type"}) == type) out.push_back(&condition);
  return out;
}

/// Times that a condition came without (populateConditionTimestamps).
void stamp_conditions(const Value& old, std::string_view now, Value& request) {
  Value* list = json::find(request, {"status", "conditions"});
  if (list == nullptr || !list->is_array() || now.empty()) return;
  for (Value& condition : list->get_array()) {
    if (!condition.is_object()) continue;
    if (json::get_string(condition, {"lastUpdateTime"}).empty()) json::set(condition, {"lastUpdateTime"}, Value(now));
    if (!json::get_string(condition, {"lastTransitionTime"}).empty()) continue;
    std::string since(now);
    for (const Value& before : json::get_array(old, {"status", "conditions"}))
      if (json::get_string(before, {"type"}) == json::get_string(condition, {"type"}) &&
          json::get_string(before, {"status"}) == json::get_string(condition, {"status"}) &&
          !json::get_string(before, {"lastTransitionTime"}).empty()) {
        since = json::get_string(before, {"lastTransitionTime"});
        break;
      }
    json::set(condition, {"lastTransitionTime"}, Value(since));
  }
}

/// Requests for certificates never change but by their subresources; who signs does not approve (pkg/registry/certificates).
void prepare_certificate_request(const Value& old, Value& doc, std::string_view subresource, std::string_view now) {
  copy_member(old, doc, "spec");
  if (subresource.empty()) return copy_member(old, doc, "status");
  if (subresource == "status") {
    Value before = old;
    for (const char* type : {"Approved", "Denied"}) {
      const auto was = conditions_of(before, type), is = conditions_of(doc, type);
      // Where some were added or removed validation says so.
      if (was.size() == is.size())
        for (std::size_t i = 0; i < was.size(); ++i) *is[i] = *was[i];
    }
  }
  stamp_conditions(old, now, doc);
  if (subresource != "approval") return;
  const Value* conditions = json::find(doc, {"status", "conditions"});
  Value kept = conditions == nullptr ? Value() : *conditions;
  copy_member(old, doc, "status");
  if (kept.is_array())
    json::set(doc, {"status", "conditions"}, std::move(kept));
  else
    json::erase(doc, {"status", "conditions"});
}

/// A status update: of the rest, the metadata that clients write moves too, as Kubernetes' own kinds let their controllers do (a
/// Deployment's revision annotation comes this way from kube-controller-manager).
void merge_status(const Strategy& own, const Value& old, Value& doc) {
  Value kept = old;
  copy_member(doc, kept, "status");
  for (const std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (std::ranges::find(own.kept_in_status_update, key) != own.kept_in_status_update.end()) continue;
    if (const Value* value = json::find(doc, {"metadata", key}))
      json::set(kept, {"metadata", key}, *value);
    else
      json::erase(kept, {"metadata", key});
  }
  carry_request_metadata(doc, kept);
  doc = std::move(kept);
}

void count_generation(const Strategy& own, const Value& old, Value& doc, std::string_view subresource) {
  const std::int64_t generation = json::get_int(old, {"metadata", "generation"}, own.generation_from == GenerationFrom::kCreation ? 1 : 0);
  const bool changed = own.is_new_generation ? own.is_new_generation(old, doc, subresource) : !same_but_metadata_and_status(old, doc);
  if (changed || generation > 0) json::set(doc, {"metadata", "generation"}, changed ? generation + 1 : generation);
}

void prepare_create(const KindInfo& kind, Value& doc) {
  const Strategy& own = *kind.hooks->strategy;
  if (kind.generation && own.generation_from == GenerationFrom::kCreation)
    json::set(doc, {"metadata", "generation"}, 1);
  else
    json::erase(doc, {"metadata", "generation"});
  if (has_status(kind) && !own.keeps_given_status) doc.get_object()["status"] = own.initial_status ? own.initial_status() : Value(Object());
  if (own.prepare_create) own.prepare_create(doc);
}

void prepare_update(const KindInfo& kind, const Value& old, Value& doc, std::string_view subresource, std::string_view now) {
  const Strategy& own = *kind.hooks->strategy;
  const bool is_merged = own.merge_update && own.merge_update(old, doc, subresource, now);
  if (!is_merged && subresource == "status") {
    merge_status(own, old, doc);
    if (own.prepare_status) own.prepare_status(old, doc, now);
    return;
  }
  if (!is_merged && has_status(kind)) copy_member(old, doc, "status");
  if (own.prepare_update) own.prepare_update(old, doc, subresource);
  if (kind.generation) count_generation(own, old, doc, subresource);
}

}  // namespace

void prepare_for_create(const KindInfo& kind, Value& doc) {
  if (kind.hooks != nullptr) return prepare_create(kind, doc);
  if (kind.kind == "ServiceAccount") keep_secret_names(doc);
  if (kind.kind == "EndpointSlice" && kind.version == "v1") drop_old_topology(nullptr, doc);
  if (kind.generation && !counts_late(kind))
    json::set(doc, {"metadata", "generation"}, 1);
  else
    json::erase(doc, {"metadata", "generation"});
  if (has_status(kind) && kind.kind != "Node") {
    doc.get_object()["status"] = initial_status(kind);
    if (kind.kind == "PersistentVolume") json::set(doc, {"status", "lastPhaseTransitionTime"}, Value(created_at(doc)));
  }
  if (kind.kind == "Pod") {
    merge_label_keys(doc);
    json::set(doc, {"status", "qosClass"}, Value(pod_qos_class(doc)));
    if (!json::get_array(doc, {"spec", "schedulingGates"}).empty())
      json::set(doc, {"status", "conditions"},
                json::Array{Object{{"type", "PodScheduled"},
                                   {"status", "False"},
                                   {"lastProbeTime", nullptr},
                                   {"lastTransitionTime", created_at(doc)},
                                   {"reason", "SchedulingGated"},
                                   {"message", "Scheduling is blocked due to non-empty scheduling gates"}}});
  }
  if (kind.group == "resource.k8s.io") devices::drop_disabled_fields(kind, doc);
  if (kind.kind == "PersistentVolumeClaim") agree_on_source(nullptr, doc);
  if (kind.kind == "Job") prepare_job(doc);
  if (kind.kind == "Service") prepare_service(doc);
  if (kind.kind == "DaemonSet") json::set(doc, {"metadata", "annotations", kTemplateGeneration}, "1");
  if (kind.kind == "Namespace") {
    json::Array& finalizers = doc.get_object()["spec"].is_object() && json::find(doc, {"spec", "finalizers"}) != nullptr &&
                                      json::find(doc, {"spec", "finalizers"})->is_array()
                                  ? doc.at("spec").at("finalizers").get_array()
                                  : json::ensure_object(doc, {"spec"})["finalizers"].emplace_array();
    if (std::none_of(finalizers.begin(), finalizers.end(), [](const Value& f) { return f == "kubernetes"; }))
      finalizers.emplace_back("kubernetes");
  }
}

void prepare_for_update(const KindInfo& kind, const Value& old, Value& doc, std::string_view subresource, std::string_view now) {
  if (kind.hooks != nullptr) return prepare_update(kind, old, doc, subresource, now);
  if (kind.group == "certificates.k8s.io") return prepare_certificate_request(old, doc, subresource, now);
  if (subresource == "status") {
    // Of the rest, the metadata that clients write moves too, as Kubernetes' own kinds let their controllers do (a Deployment's revision
    // annotation comes this way from kube-controller-manager). A Deployment's labels, a Pod's owners, and the metadata of custom kinds,
    // volume attachments and claims, stay.
    Value kept = old;
    copy_member(doc, kept, "status");
    const bool keeps_metadata = kind.kind == "VolumeAttachment" || kind.group == "resource.k8s.io" || kind.group.ends_with(".openshift.io");
    for (const std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
      if (keeps_metadata || (kind.kind == "Deployment" && key == "labels") || (kind.kind == "Pod" && key == "ownerReferences")) continue;
      if (const Value* value = json::find(doc, {"metadata", key})) {
        json::set(kept, {"metadata", key}, *value);
      } else {
        json::erase(kept, {"metadata", key});
      }
    }
    carry_request_metadata(doc, kept);
    if (kind.kind == "ResourceClaim") devices::drop_deallocated_statuses(old, kept);
    if (kind.kind == "Pod") agree_on_addresses(kept);
    if (kind.kind == "PersistentVolume") note_phase(old, now, kept);
    if (kind.kind == "Pod" && json::get_string(kept, {"status", "qosClass"}).empty())
      json::set(kept, {"status", "qosClass"}, Value(pod_qos_class(old)));
    doc = std::move(kept);
    return;
  }
  if (kind.kind == "Pod" && subresource == "ephemeralcontainers")
    keep_ephemeral_containers_only(old, doc);
  else if (kind.kind == "Pod" && subresource == "resize")
    keep_resources_only(old, doc);
  else if (has_status(kind))
    copy_member(old, doc, "status");
  if (kind.group == "resource.k8s.io") devices::drop_disabled_fields(kind, doc);
  if (kind.kind == "PersistentVolumeClaim") agree_on_source(&old, doc);
  if (kind.kind == "DaemonSet") count_template_generation(old, doc);
  if (kind.kind == "ServiceAccount") keep_secret_names(doc);
  if (kind.kind == "EndpointSlice" && kind.version == "v1") drop_old_topology(&old, doc);
  if (kind.kind == "Service" && subresource.empty()) prepare_service_update(old, doc);
  if (kind.kind == "Namespace" && subresource.empty()) {
    if (const Value* finalizers = json::find(old, {"spec", "finalizers"})) json::set(doc, {"spec", "finalizers"}, *finalizers);
  }
  if (kind.generation) {
    const std::int64_t generation = json::get_int(old, {"metadata", "generation"}, counts_late(kind) ? 0 : 1);
    // Of a class of priorities nothing that counts can change.
    bool changed = kind.kind != "PriorityClass" && !same_but_metadata_and_status(old, doc);
    // A Deployment hands its annotations on to its sets: a change of them is work as well.
    if (kind.kind == "Deployment" && kind.group == "apps" && subresource.empty())
      changed |= !json::equal(json::get_object(old, {"metadata", "annotations"}), json::get_object(doc, {"metadata", "annotations"}));
    if (changed || generation > 0) json::set(doc, {"metadata", "generation"}, changed ? generation + 1 : generation);
  }
}

}  // namespace berth::model
