// Updates of a part of a running pod: its ephemeral containers, its containers' resources.
#include <fmt/format.h>

#include <set>

#include "model/schema.h"
#include "model/validation/pod_parts.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;

const Value* named(const json::Array& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Value& one) { return get_string(one, {"name"}) == name; });
  return found == list.end() ? nullptr : &*found;
}

/// Both lists without what a resize may change.
bool same_but_cpu_and_memory(const Value& old, const Value& doc) {
  for (const char* list : {"requests", "limits"}) {
    json::Object before = get_object(old, {"resources", list}), after = get_object(doc, {"resources", list});
    for (const char* name : {"cpu", "memory"}) {
      before.erase(name);
      after.erase(name);
    }
    if (!json::equal(Value(before), Value(after))) return false;
  }
  return json::equal(Value(get_array(old, {"resources", "claims"})), Value(get_array(doc, {"resources", "claims"})));
}

}  // namespace

void ephemeral_containers_update(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / "ephemeralContainers";
  const json::Array& before = get_array(old, {"spec", "ephemeralContainers"});
  const json::Array& after = get_array(doc, {"spec", "ephemeralContainers"});
  whole_pod(doc, errors);
  for (const Value& existing : before) {
    const std::string_view name = get_string(existing, {"name"});
    const Value* now = named(after, name);
    if (now == nullptr)
      errors.forbidden(at, fmt::format("existing ephemeral containers \"{}\" may not be removed\n", name));
    else if (!json::equal(existing, *now))
      errors.forbidden(at, fmt::format("existing ephemeral containers \"{}\" may not be changed\n", name));
  }
}

namespace {

/// The same containers in the same order.
bool same_containers(const Value& old, const Value& doc, const Path& spec, Errors& errors) {
  const std::size_t before = errors.size();
  for (const char* list : {"containers", "initContainers"}) {
    const Path at = spec / list;
    const json::Array &was = get_array(old, {"spec", list}), &is = get_array(doc, {"spec", list});
    if (was.size() != is.size()) {
      errors.forbidden(at, fmt::format("{} may not be added or removed on resize", list));
      continue;
    }
    for (std::size_t i = 0; i < is.size(); ++i) {
      const Path one = at[i];
      if (get_string(was[i], {"name"}) != get_string(is[i], {"name"}))
        errors.forbidden(one / "name", fmt::format("{} may not be renamed or reordered on resize", list));
    }
  }
  return errors.size() == before;
}

/// A node that cannot resize does not tell what its containers have.
bool node_can_resize(const Value& pod) {
  for (const Value& status : get_array(pod, {"status", "containerStatuses"}))
    if (json::find(status, {"state", "running"}) != nullptr) return json::find(status, "resources") != nullptr;
  return true;
}

/// What a resize may do to the resources of a pod's spec or of one of its containers. `immutable` is said at `holder`.
void resources_resize(const Value& old, const Value& doc, const Path& resources_at, const Path& holder, std::string_view immutable,
                      Errors& errors) {
  for (const char* kind : {"requests", "limits"}) {
    const json::Object& now = get_object(doc, {"resources", kind});
    const auto is_gone = [&](const auto& entry) { return !now.contains(entry.key()); };
    if (std::ranges::any_of(get_object(old, {"resources", kind}), is_gone))
      errors.forbidden(resources_at / kind, fmt::format("resource {} cannot be removed", kind));
  }
  if (!same_but_cpu_and_memory(old, doc)) errors.forbidden(holder, immutable);
}

}  // namespace

void pod_resize(const Value& old, const Value& doc, Errors& errors) {
  const Path root("[]"), at("spec");  // So Kubernetes writes the place of the whole object.
  whole_pod(doc, errors);
  if (get_object(old, {"metadata", "annotations"}).contains("kubernetes.io/config.mirror"))
    return errors.forbidden(root, "static pods cannot be resized");
  if (get_string(old, {"spec", "os", "name"}) == "windows") return errors.forbidden(root, "windows pods cannot be resized");
  if (pod_qos_class(old) != pod_qos_class(doc))
    errors.invalid(at, get_string(old, {"status", "qosClass"}), "Pod QOS Class may not change as a result of resizing");
  if (!node_can_resize(old)) errors.forbidden(at, "Pod running on node without support for resize");
  if (!same_containers(old, doc, at, errors)) return;
  static const Value kNothing = json::Object{};
  const Value *was = json::find(old, "spec"), *is = json::find(doc, "spec");
  resources_resize(was ? *was : kNothing, is ? *is : kNothing, at / "resources", at, "only cpu and memory resources are mutable", errors);
  for (const char* list : {"initContainers", "containers"}) {
    const Path list_at = at / list;
    const bool is_init = std::string_view(list) == "initContainers";
    const json::Array &before = get_array(old, {"spec", list}), &after = get_array(doc, {"spec", list});
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Path one = list_at[i];
      const bool is_sidecar = is_init && get_string(before[i], {"restartPolicy"}) == "Always";
      resources_resize(
          before[i], after[i], one / "resources", is_sidecar ? one : at,
          is_sidecar ? "only cpu and memory resources for sidecar containers are mutable" : "only cpu and memory resources are mutable",
          errors);
    }
  }
}

}  // namespace berth::model::validation
