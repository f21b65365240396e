// Updates of a part of a running pod: its ephemeral containers, its containers' resources.
#include <fmt/format.h>

#include <set>

#include "model/schema.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_object;
using json::get_string;

const Value* named(const json::Array& list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(), [&](const Value& one) { return get_string(one, {"name"}) == name; });
  return found == list.end() ? nullptr : &*found;
}

void ephemeral_container(const Value& container, const Value& doc, const Path& at, Errors& errors) {
  const std::string_view name = get_string(container, {"name"}), target = get_string(container, {"targetContainerName"});
  if (name.empty())
    errors.required(at / "name");
  else if (const std::string why = check_dns1123_label(name); !why.empty())
    errors.invalid(at / "name", name, why);
  if (get_string(container, {"image"}).empty()) errors.required(at / "image");
  for (const char* key : {"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resources"}) {
    const Value* value = json::find(container, key);
    const bool is_set = value != nullptr && !(value->is_object() && std::string_view(key) == "resources" && value->get_object().empty()) &&
                        !(value->is_array() && value->get_array().empty());
    if (is_set) errors.forbidden(at / key, "cannot be set for an Ephemeral Container");
  }
  if (!target.empty() && named(get_array(doc, {"spec", "containers"}), target) == nullptr &&
      named(get_array(doc, {"spec", "initContainers"}), target) == nullptr)
    errors.not_found(at / "targetContainerName", Value(target));
  const Value* spec = json::find(doc, "spec");
  if (spec != nullptr) {
    Errors of_the_pod;  // Its volumes were looked at when it was made.
    mounts(volumes(*spec, at, of_the_pod), container, at, errors);
  }
  environment(container, at, errors);
  container_security_context(container, at, errors);
}

bool is_resizable(std::string_view resource) { return resource == "cpu" || resource == "memory"; }

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
  std::set<std::string_view> names;
  for (const char* list : {"containers", "initContainers"})
    for (const Value& container : get_array(doc, {"spec", list})) names.insert(get_string(container, {"name"}));
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Path one = at[i];
    ephemeral_container(after[i], doc, one, errors);
    const std::string_view name = get_string(after[i], {"name"});
    if (!name.empty() && !names.insert(name).second) errors.duplicate(one / "name", Value(name));
  }
  for (const Value& existing : before) {
    const std::string_view name = get_string(existing, {"name"});
    const Value* now = named(after, name);
    if (now == nullptr)
      errors.forbidden(at, fmt::format("existing ephemeral containers \"{}\" may not be removed\n", name));
    else if (!json::equal(existing, *now))
      errors.forbidden(at, fmt::format("existing ephemeral containers \"{}\" may not be changed\n", name));
  }
}

void pod_resize(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  if (pod_qos_class(old) != pod_qos_class(doc))
    errors.invalid(at, pod_qos_class(doc), "Pod QOS Class may not change as a result of resizing");
  for (const char* list : {"containers", "initContainers"}) {
    const Path list_at = at / list;
    const json::Array& before = get_array(old, {"spec", list});
    const json::Array& after = get_array(doc, {"spec", list});
    for (std::size_t i = 0; i < after.size() && i < before.size(); ++i) {
      const Path one = list_at[i];
      const Path resources_at = one / "resources";
      if (const Value* wanted = json::find(after[i], "resources")) resources(*wanted, resources_at, errors);
      if (!same_but_cpu_and_memory(before[i], after[i])) errors.forbidden(at, "only cpu and memory resources are mutable");
      for (const char* kind : {"requests", "limits"})
        for (const auto& [key, value] : get_object(before[i], {"resources", kind})) {
          const std::string_view name(key.data(), key.size());
          if (is_resizable(name) && json::find(after[i], {"resources", kind, name}) == nullptr)
            errors.forbidden(resources_at / kind, fmt::format("resource {} cannot be removed", kind));
        }
    }
  }
}

}  // namespace berth::model::validation
