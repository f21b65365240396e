// Pods and pod templates (pkg/apis/core/validation/validation.go, ValidatePodSpec and below).
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/json_canonical.h"
#include "model/internal_form.h"
#include "model/quantity.h"
#include "model/schema.h"
#include "model/validation/pod_annotations.h"
#include "model/validation/pod_parts.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;

void gates(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "schedulingGates";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& gate : get_array(spec, {"schedulingGates"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(gate, {"name"});
    if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(one, name, why);
    if (!names.insert(name).second) errors.duplicate(one, Value(name));
  }
}

/// The node's users and the pod's are apart: nothing may cross.
void host_users(const PodContext& context, const Path& at, Errors& errors) {
  if (context.host_users) return;
  static constexpr std::string_view kText = "when `hostUsers` is false";
  if (get_bool(context.spec, {"hostNetwork"})) errors.forbidden(at / "hostNetwork", kText);
  if (get_bool(context.spec, {"hostPID"})) errors.forbidden(at / "HostPID", kText);
  if (get_bool(context.spec, {"hostIPC"})) errors.forbidden(at / "HostIPC", kText);
  each_container(context.spec, at, [&](const Value& container, const Path& one) {
    if (!get_array(container, {"volumeDevices"}).empty()) errors.forbidden(one / "volumeDevices", kText);
  });
}

/// Files with variables lie in a volume that the pod makes for itself.
void file_key_volumes(const Value& spec, const Path& at, Errors& errors) {
  std::map<std::string_view, const Value*> volumes;
  for (const Value& volume : get_array(spec, {"volumes"})) volumes[get_string(volume, {"name"})] = &volume;
  each_container(spec, at, [&](const Value& container, const Path& one) {
    const Path env = one / "env";
    std::size_t i = 0;
    for (const Value& variable : get_array(container, {"env"})) {
      const Path variable_at = env[i++];
      if (json::find(variable, {"valueFrom", "fileKeyRef"}) == nullptr) continue;
      const std::string_view name = get_string(variable, {"valueFrom", "fileKeyRef", "volumeName"});
      const Path from = variable_at / "valueFrom";
      const Path reference = from / "fileKeyRef";
      const auto volume = volumes.find(name);
      if (volume == volumes.end())
        errors.not_found(reference / "volumeName", Value(name));
      else if (json::find(*volume->second, "emptyDir") == nullptr)
        errors.invalid(reference / "volumeName", name, "referenced volume must be of type emptyDir");
    }
  });
}

/// Names of other objects, and the pod's own on the network.
void names_in_spec(const Value& spec, const Path& at, Errors& errors) {
  for (const char* key : {"serviceAccountName", "nodeName", "priorityClassName"})
    if (const std::string_view name = get_string(spec, {key}); !name.empty())
      if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / key, name, why);
  if (json::find(spec, "runtimeClassName") != nullptr)
    if (const std::string why = check_dns1123_subdomain(get_string(spec, {"runtimeClassName"})); !why.empty())
      errors.invalid(at / "runtimeClassName", get_string(spec, {"runtimeClassName"}), why);
  for (const char* key : {"hostname", "subdomain"})
    if (const std::string_view name = get_string(spec, {key}); !name.empty())
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(at / key, name, why);
  const Value* name = json::find(spec, "hostnameOverride");
  if (name == nullptr || !name->is_string()) return;
  const Path here = at / "hostnameOverride";
  if (get_bool(spec, {"setHostnameAsFQDN"})) errors.forbidden(here, "may not be specified when setHostnameAsFQDN is true");
  if (get_bool(spec, {"hostNetwork"})) errors.forbidden(here, "may not be specified when hostNetwork is true");
  if (name->get_string().size() > 64) errors.too_long(here, 64);
  if (const std::string why = check_dns1123_subdomain(json::as_view(*name)); !why.empty()) errors.invalid(here, *name, why);
}

/// Annotations that mean something to the pod.
void pod_annotations(const Value& metadata, const Value& spec, const Path& at, Errors& errors) {
  const json::Object& map = get_object(metadata, {"annotations"});
  if (const auto* mirror = map.if_contains("kubernetes.io/config.mirror"); mirror != nullptr && get_string(spec, {"nodeName"}).empty())
    errors.invalid(Path::map_key(at, "kubernetes.io/config.mirror"), *mirror, "must set spec.nodeName if mirror pod annotation is set");
  constexpr std::string_view kCost = "controller.kubernetes.io/pod-deletion-cost";
  if (const auto* cost = map.if_contains(kCost); cost != nullptr && cost->is_string()) {
    const std::string_view text = json::as_view(*cost);
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_plain = text == "0" || (!text.starts_with('0') && !text.starts_with("-0"));
    if (error != std::errc() || end != text.data() + text.size() || !is_plain)
      errors.invalid(Path::map_key(at, kCost), *cost, "must be a 32bit integer");
  }
}

}  // namespace

void pod_spec(const Value& spec, const PodOwner& owner, const Path& at, Errors& errors) {
  PodContext context{spec, owner, volumes(spec, owner.name, owner.is_pod, at, errors), {}, {}, {}, true};
  for (const Value& claim : get_array(spec, {"resourceClaims"}))
    if (const std::string_view name = get_string(claim, {"name"}); !name.empty()) context.claims.insert(name);
  if (json::find(spec, "terminationGracePeriodSeconds") != nullptr) context.grace = get_int(spec, {"terminationGracePeriodSeconds"});
  context.restart_policy = get_string(spec, {"restartPolicy"});
  context.host_users = get_bool(spec, {"hostUsers"}, true);
  resource_claims(spec, owner.is_mirror, at, errors);
  pod_containers(context, at, errors);
  pod_level_resources(context, at, errors);
  for (const char* key : {"restartPolicy", "dnsPolicy"})
    if (get_string(spec, {key}).empty()) errors.required(at / key);
  supported_value(spec, "restartPolicy", at, {"Always", "OnFailure", "Never"}, errors);
  supported_value(spec, "dnsPolicy", at, {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, errors);
  if (const Value* selector = json::find(spec, "nodeSelector")) labels(*selector, at / "nodeSelector", errors);
  pod_security_context(spec, at, errors);
  if (const Value* object = json::find(spec, "affinity")) affinity(*object, at / "affinity", errors);
  pod_network(spec, at, errors);
  gates(spec, at, errors);
  spread_constraints(spec, at, errors);
  scheduling_group(spec, at, errors);
  host_users(context, at, errors);
  names_in_spec(spec, at, errors);
  if (const Value* deadline = json::find(spec, "activeDeadlineSeconds"))
    if (const std::int64_t seconds = get_int(spec, {"activeDeadlineSeconds"}); seconds < 1 || seconds > INT32_MAX)
      errors.invalid(at / "activeDeadlineSeconds", *deadline, "must be between 1 and 2147483647, inclusive");
  tolerations(spec, at, errors);
  supported_value(spec, "preemptionPolicy", at, {"PreemptLowerPriority", "Never"}, errors);
  if (const Value* preemption = json::find(spec, "preemptionPolicy"); preemption != nullptr && *preemption == "")
    errors.required(at / "preemptionPolicy");
  if (const Value* overhead = json::find(spec, "overhead")) {
    const Path here = at / "overhead";
    resource_requirements(json::Object{{"limits", *overhead}}, {}, false, here, errors);
  }
  operating_system(spec, at, errors);
  file_key_volumes(spec, at, errors);
}

void pod_template(const Value& owner_spec, const Path& at, Errors& errors) {
  const Value* pod_template = json::find(owner_spec, "template");
  const Path here = at / "template";
  const Path spec_at = here / "spec";
  // A template without spec gets all defaults, and lacks containers alone.
  const Value* spec = pod_template == nullptr ? nullptr : json::find(*pod_template, "spec");
  if (pod_template != nullptr) {
    if (const Value* map = json::find(*pod_template, {"metadata", "labels"})) labels(*map, here / "labels", errors);
    if (const Value* map = json::find(*pod_template, {"metadata", "annotations"})) annotations(*map, here / "annotations", errors);
    if (const Value* metadata = json::find(*pod_template, "metadata"))
      pod_annotations(*metadata, json::get_object(*pod_template, {"spec"}), here / "annotations", errors);
  }
  if (spec == nullptr || get_array(*spec, {"containers"}).empty()) return errors.required(spec_at / "containers");
  pod_spec(*spec, {false}, spec_at, errors);
  if (const json::Array& ephemeral = get_array(*pod_template, {"spec", "ephemeralContainers"}); !ephemeral.empty())
    errors.forbidden(here / "spec" / "ephemeralContainers", "ephemeral containers not allowed in pod template");
}

void whole_pod(const Value& doc, Errors& errors) {
  const Path at("spec"), metadata_at("metadata");
  static const Value kEmpty = json::Object();
  const Value *found = json::find(doc, "spec"), *metadata = json::find(doc, "metadata");
  const Value& spec = found == nullptr ? kEmpty : *found;
  if (metadata != nullptr) pod_annotations(*metadata, spec, metadata_at / "annotations", errors);
  const bool is_mirror = get_object(doc, {"metadata", "annotations"}).contains("kubernetes.io/config.mirror");
  pod_spec(spec, {true, get_string(doc, {"metadata", "name"}), is_mirror}, at, errors);
  if (!get_string(spec, {"serviceAccountName"}).empty()) return;
  const Path volumes_at = at / "volumes";
  std::size_t i = 0;
  for (const Value& volume : get_array(spec, {"volumes"})) {
    const Path one = volumes_at[i++];
    const Path projected = one / "projected";
    const Path sources = projected / "sources";
    std::size_t k = 0;
    for (const Value& source : get_array(volume, {"projected", "sources"})) {
      const Path here = sources[k++];
      if (json::find(source, "serviceAccountToken") != nullptr)
        errors.forbidden(here / "serviceAccountToken", "must not be specified when serviceAccountName is not set");
    }
  }
}

void pod(const Value& doc, Errors& errors) {
  const Path at("spec");
  whole_pod(doc, errors);
  if (!get_array(doc, {"spec", "ephemeralContainers"}).empty()) errors.forbidden(at / "ephemeralContainers", "cannot be set on create");
  if (!get_array(doc, {"spec", "schedulingGates"}).empty() && !get_string(doc, {"spec", "nodeName"}).empty())
    errors.forbidden(at / "nodeName", "cannot be set until all schedulingGates have been cleared");
}

namespace {

void gates_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const json::Array& before = get_array(old, {"spec", "schedulingGates"});
  std::set<std::string_view> known;
  for (const Value& gate : before) known.insert(get_string(gate, {"name"}));
  const Path gates_at = at / "schedulingGates";
  std::size_t i = 0;
  for (const Value& gate : get_array(doc, {"spec", "schedulingGates"})) {
    const Path one = gates_at[i++];
    if (!known.contains(get_string(gate, {"name"}))) {
      errors.forbidden(one / "name",
                       "only deletion is allowed, but found new scheduling gate '" + std::string(get_string(gate, {"name"})) + "'");
    }
  }
}

/// Every requirement of the old term is still there.
bool term_only_grew(const Value& before, const Value& after) {
  for (const char* list : {"matchExpressions", "matchFields"}) {
    const json::Array& now = get_array(after, {list});
    for (const Value& wanted : get_array(before, {list}))
      if (std::none_of(now.begin(), now.end(), [&](const Value& have) { return json::equal(wanted, have); })) return false;
  }
  return true;
}

/// While a pod is gated its placement may be narrowed, never widened (validateNodeSelectorMutation, validateNodeAffinityMutation).
void placement_only_narrowed(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const json::Object& now = get_object(doc, {"spec", "nodeSelector"});
  for (const auto& [key, value] : get_object(old, {"spec", "nodeSelector"})) {
    const auto found = now.find(key);
    if (found != now.end() && json::equal(found->value(), value)) continue;
    errors.invalid(at / "nodeSelector", Value(now), "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    break;
  }
  const Value* required = json::find(old, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr) return;
  const Path affinity_at = at / "affinity";
  const Path node_at = affinity_at / "nodeAffinity";
  const Path required_at = node_at / "requiredDuringSchedulingIgnoredDuringExecution";
  const Path terms_at = required_at / "nodeSelectorTerms";
  const json::Array& before = get_array(*required, {"nodeSelectorTerms"});
  const json::Array& after =
      get_array(doc, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (before.size() != after.size())
    return errors.invalid(terms_at, Value(after), "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!term_only_grew(before[i], after[i]))
      errors.invalid(terms_at[i], internal_form("core.v1.NodeSelectorTerm", &after[i]),
                     "only additions are allowed (no mutations or deletions)");
}

bool tolerations_only_added(const Value& old, const Value& doc) {
  // Equal but for a longer or added tolerationSeconds counts as the same (ValidatePodUpdate lets it be extended).
  const auto without_seconds = [](Value toleration) {
    json::erase(toleration, {"tolerationSeconds"});
    return json::canonical_text(toleration);
  };
  std::unordered_set<std::string> now;
  for (const Value& toleration : get_array(doc, {"spec", "tolerations"})) now.insert(without_seconds(toleration));
  for (const Value& toleration : get_array(old, {"spec", "tolerations"}))
    if (!now.contains(without_seconds(toleration))) return false;
  return true;
}

/// The containers' images of `then`, for a list of as many.
void take_images(const Value& then, Value& pod, const char* list) {
  if (!pod.is_object()) return;
  Value* now = json::find(pod, {"spec", list});
  const json::Array& old = get_array(then, {"spec", list});
  if (now == nullptr || !now->is_array() || now->get_array().size() != old.size()) return;
  for (std::size_t i = 0; i < old.size(); ++i) {
    Value& one = now->get_array()[i];
    if (!one.is_object()) continue;
    if (const Value* image = json::find(old[i], "image")) one.get_object()["image"] = *image;
  }
}

}  // namespace

void pod_update(const Value& old, const Value& doc, std::string_view subresource, Errors& errors) {
  const Path at("spec");
  if (subresource == "ephemeralcontainers") return ephemeral_containers_update(old, doc, errors);
  if (subresource == "resize") return pod_resize(old, doc, errors);
  if (subresource == "binding") return;
  whole_pod(doc, errors);
  pod_annotations_update(old, doc, errors);
  gates_update(old, doc, errors);
  Value before = old, after = doc;
  const bool gated = !get_array(old, {"spec", "schedulingGates"}).empty();
  for (const char* list : {"containers", "initContainers"})
    if (get_array(old, {"spec", list}).size() != get_array(doc, {"spec", list}).size()) {
      errors.forbidden(at / list, "pod updates may not add or remove containers");
      return;
    }
  // What may change is made equal; whatever still differs is refused in one sentence.
  take_images(before, after, "containers");
  take_images(before, after, "initContainers");
  const auto same = [&](std::string_view key) {
    if (const Value* value = json::find(before, {"spec", key}))
      json::set(after, {"spec", key}, Value(*value));
    else
      json::erase(after, {"spec", key});
  };
  if (const Value* deadline = json::find(doc, {"spec", "activeDeadlineSeconds"})) {
    const std::int64_t now = get_int(doc, {"spec", "activeDeadlineSeconds"});
    if (json::find(old, {"spec", "activeDeadlineSeconds"}) != nullptr && get_int(old, {"spec", "activeDeadlineSeconds"}) < now)
      errors.invalid(at / "activeDeadlineSeconds", *deadline, "must be less than or equal to previous value");
    same("activeDeadlineSeconds");
  } else if (json::find(old, {"spec", "activeDeadlineSeconds"}) != nullptr) {
    errors.invalid(at / "activeDeadlineSeconds", Value(nullptr), "must not update from a positive integer to nil value");
    same("activeDeadlineSeconds");
  }
  if (get_int(doc, {"spec", "terminationGracePeriodSeconds"}) == 1 && get_int(old, {"spec", "terminationGracePeriodSeconds"}) < 0)
    same("terminationGracePeriodSeconds");
  if (tolerations_only_added(old, doc))
    tolerations(*json::find(doc, "spec"), at, errors);  // Told twice, as Kubernetes does.
  else
    errors.forbidden(at / "tolerations", "existing toleration can not be modified except its tolerationSeconds");
  same("tolerations");
  same("schedulingGates");
  if (gated) {
    placement_only_narrowed(old, doc, errors);
    same("nodeSelector");
    if (const Value* value = json::find(old, {"spec", "affinity", "nodeAffinity"}))
      json::set(after, {"spec", "affinity", "nodeAffinity"}, Value(*value));
    else if (json::erase(after, {"spec", "affinity", "nodeAffinity"}) && get_object(after, {"spec", "affinity"}).empty() &&
             json::find(old, {"spec", "affinity"}) == nullptr)
      json::erase(after, {"spec", "affinity"});
  }
  const Value *old_spec = json::find(before, "spec"), *new_spec = json::find(after, "spec");
  if (old_spec == nullptr || new_spec == nullptr || json::equal(*old_spec, *new_spec)) return;
  errors.forbidden(at, std::string("pod updates may not change fields other than "
                                   "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                                   "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
                                   "(allow it to be set to 1 if it was "
                                   "previously negative)\n") +
                           difference(internal_form("core.v1.PodSpec", old_spec), internal_form("core.v1.PodSpec", new_spec)));
}

}  // namespace berth::model::validation
