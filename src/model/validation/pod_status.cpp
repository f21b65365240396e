// What a pod's status may say (ValidatePodStatusUpdate and what it calls).
#include <optional>
#include <set>
#include <tuple>

#include "model/validation/ip_range.h"
#include "model/validation/pod_annotations.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

constexpr std::int64_t kHighestId = 2147483647;
constexpr std::size_t kLongestHealthMessage = 256;
constexpr std::string_view kNotAnIp = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

void conditions(const Value& doc, const Path& status, Errors& errors) {
  const Path at = status / "conditions";
  std::size_t i = 0;
  for (const Value& condition : get_array(doc, {"status", "conditions"})) {
    const Path one = at[i++];
    if (const Value* seen = json::find(condition, "observedGeneration"); seen != nullptr && get_int(condition, {"observedGeneration"}) < 0)
      errors.invalid(one / "observedGeneration", *seen, "must be a non-negative integer");
    const std::string_view type = get_string(condition, {"type"});
    if (type == "PodScheduled" || type == "Ready" || type == "Initialized") continue;
    if (const std::string why = check_qualified_name(type); !why.empty()) errors.invalid(one / "Type", type, why);
  }
}

/// Whether the container's exit with `code` is followed by a new start (podutil.ContainerShouldRestart).
bool restarts(const Value& pod, const Value& container, std::int64_t code) {
  const auto decides = [&](std::string_view policy) -> std::optional<bool> {
    if (policy == "Always") return true;
    if (policy == "OnFailure") return code != 0;
    if (policy == "Never") return false;
    return std::nullopt;
  };
  if (json::find(container, "restartPolicy") != nullptr) {
    for (const Value& rule : get_array(container, {"restartPolicyRules"})) {
      const json::Array& codes = get_array(rule, {"exitCodes", "values"});
      const bool is_named = std::ranges::find(codes, Value(code)) != codes.end();
      if (is_named != (get_string(rule, {"exitCodes", "operator"}) == "In")) continue;
      const std::string_view action = get_string(rule, {"action"});
      if (action == "Restart" || action == "RestartAllContainers") return true;
      break;
    }
    if (const auto own = decides(get_string(container, {"restartPolicy"}))) return *own;
  }
  return decides(get_string(pod, {"spec", "restartPolicy"})).value_or(true);
}

bool all_may_restart(const Value& pod) {
  for (const char* list : {"initContainers", "containers"})
    for (const Value& container : get_array(pod, {"spec", list}))
      for (const Value& rule : get_array(container, {"restartPolicyRules"}))
        if (get_string(rule, {"action"}) == "RestartAllContainers") return true;
  return false;
}

/// A container that is not to restart leaves its terminated state for no other.
void container_states(const Value& old, const Value& doc, std::string_view list, std::string_view containers, const Path& status,
                      Errors& errors) {
  const Path at = status / list;
  std::size_t i = 0;
  for (const Value& before : get_array(old, {"status", list})) {
    const Path one = at[i++];
    if (json::find(before, {"state", "terminated"}) == nullptr) continue;
    const std::string_view name = get_string(before, {"name"});
    const json::Array& now = get_array(doc, {"status", list});
    const auto found = std::ranges::find_if(now, [&](const Value& state) {
      return get_string(state, {"name"}) == name && json::find(state, {"state", "terminated"}) == nullptr;
    });
    if (found == now.end()) continue;
    const json::Array& known = get_array(old, {"spec", containers});
    const auto container = std::ranges::find_if(known, [&](const Value& c) { return get_string(c, {"name"}) == name; });
    const bool may = containers != "ephemeralContainers" && container != known.end() &&
                     restarts(old, *container, get_int(before, {"state", "terminated", "exitCode"}));
    if (!may) errors.forbidden(one / "state", "may not be transitioned to non-terminated state");
  }
}

bool has_claim(const Value& pod, std::string_view name) {
  return std::ranges::any_of(get_array(pod, {"spec", "resourceClaims"}), [&](const Value& c) { return get_string(c, {"name"}) == name; });
}

void claim_statuses(const Value& doc, const Path& status, Errors& errors) {
  const Path at = status / "resourceClaimStatuses";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& claim : get_array(doc, {"status", "resourceClaimStatuses"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(claim, {"name"});
    if (!has_claim(doc, name)) errors.invalid(one / "name", name, "must match the name of an entry in `spec.resourceClaims`");
    if (!names.insert(name).second) errors.duplicate(one / "name", Value(name));
    if (const Value* generated = json::find(claim, "resourceClaimName"))
      if (const std::string why = check_dns1123_subdomain(get_string(claim, {"resourceClaimName"})); !why.empty())
        errors.invalid(one / "resourceClaimName", *generated, why);
  }
}

void extended_claim_status(const Value& doc, const Path& status_at, Errors& errors) {
  const Value* status = json::find(doc, {"status", "extendedResourceClaimStatus"});
  if (status == nullptr) return;
  const Path at = status_at / "extendedResourceClaimStatus";
  const Path mappings_at = at / "requestMappings";
  const json::Array& mappings = get_array(*status, {"requestMappings"});
  if (mappings.empty()) errors.required(mappings_at, "at least one request mapping is required");
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> seen;
  std::size_t i = 0;
  for (const Value& mapping : mappings) {
    const Path one = mappings_at[i++];
    const std::string_view container = get_string(mapping, {"containerName"}), resource = get_string(mapping, {"resourceName"}),
                           request = get_string(mapping, {"requestName"});
    const Value* named = nullptr;
    for (const char* list : {"initContainers", "containers"})
      for (const Value& candidate : get_array(doc, {"spec", list}))
        if (get_string(candidate, {"name"}) == container) named = &candidate;
    if (named == nullptr)
      errors.invalid(one / "containerName", container,
                     "must match the name of an entry in spec.initContainers.name or spec.containers.name");
    else if (json::find(*named, {"resources", "requests", resource}) == nullptr)
      errors.invalid(one / "resourceName", resource,
                     "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                     "spec.containers.resources.requests");
    if (const std::string why = check_dns1123_label(request); !why.empty()) errors.invalid(at / "requestName", request, why);
    if (seen.emplace(container, resource, request).second) continue;
    errors.duplicate(one / "containerName", Value(container));
    errors.duplicate(one / "resourceName", Value(resource));
    errors.duplicate(one / "requestName", Value(request));
  }
  const std::string_view claim = get_string(*status, {"resourceClaimName"});
  if (claim.empty())
    errors.required(at / "resourceClaimName");
  else if (const std::string why = check_dns1123_subdomain(claim); !why.empty())
    errors.invalid(at / "resourceClaimName", claim, why);
}

/// status.podIPs or status.hostIPs.
void addresses(const Value& old, const Value& doc, std::string_view list, const Path& status, Errors& errors) {
  const Path at = status / list;
  const json::Array &before = get_array(old, {"status", list}), &now = get_array(doc, {"status", list});
  if (list == "hostIPs" && !now.empty() && get_string(doc, {"status", "hostIP"}) != get_string(now.front(), {"ip"})) {
    const Path first = at[0];
    errors.invalid(first / "ip", get_string(now.front(), {"ip"}), "must be equal to `hostIP`");
  }
  std::vector<std::string_view> texts;
  json::Array shown;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string_view ip = get_string(now[i], {"ip"});
    texts.push_back(ip);
    shown.emplace_back(json::Object{{"IP", ip}});
    const bool was_there = std::ranges::any_of(before, [&](const Value& one) { return get_string(one, {"ip"}) == ip; });
    if (!is_ip(ip) && !was_there) errors.invalid(at[i], ip, kNotAnIp);
  }
  if (now.size() < 2) return;
  const DualStack pair = check_dual_stack(texts, false);
  if (!pair.problem.empty()) errors.internal(at, "failed to check for dual stack with error:" + pair.problem);
  if (!pair.has_both || now.size() > 2) errors.invalid(at, Value(std::move(shown)), "may specify no more than one IP for each IP family");
}

void id_of_user(const Value& holder, const Path& at, Errors& errors) {
  const auto check = [&](const Value& id, const Path& here) {
    if (id.is_int64() && (id.get_int64() < 0 || id.get_int64() > kHighestId))
      errors.invalid(here, id, "must be between 0 and 2147483647, inclusive");
  };
  if (const Value* uid = json::find(holder, "uid")) check(*uid, at / "uid");
  if (const Value* gid = json::find(holder, "gid")) check(*gid, at / "gid");
  const Path groups = at / "supplementalGroups";
  std::size_t i = 0;
  for (const Value& gid : get_array(holder, {"supplementalGroups"})) check(gid, groups[i++]);
}

void users(const Value& doc, std::string_view list, const Path& status, Errors& errors) {
  const bool is_windows = get_string(doc, {"spec", "os", "name"}) == "windows";
  const Path at = status / list;
  std::size_t i = 0;
  for (const Value& container : get_array(doc, {"status", list})) {
    const Path one = at[i++];
    const Value* user = json::find(container, {"user", "linux"});
    if (user == nullptr) continue;
    const Path user_at = one / "user";
    const Path here = user_at / "linux";
    if (is_windows)
      errors.forbidden(here, "cannot be set for a windows pod");
    else
      id_of_user(*user, here, errors);
  }
}

/// Whether the container asks for what its status tells the health of.
bool asks_for(const Value& container, std::string_view resource) {
  if (!resource.starts_with("claim:")) return json::find(container, {"resources", "requests", resource}) != nullptr;
  return std::ranges::any_of(get_array(container, {"resources", "claims"}), [&](const Value& claim) {
    std::string name = "claim:" + std::string(get_string(claim, {"name"}));
    if (const std::string_view request = get_string(claim, {"request"}); !request.empty()) name += "/" + std::string(request);
    return name == resource;
  });
}

void health(const Value& resource, const Path& resource_at, Errors& errors) {
  const Path at = resource_at / "resources";
  std::set<std::string_view> ids;
  std::size_t i = 0;
  for (const Value& one : get_array(resource, {"resources"})) {
    const Path here = at[i++];
    const std::string_view state = get_string(one, {"health"}), id = get_string(one, {"resourceID"});
    if (state != "Healthy" && state != "Unhealthy" && state != "Unknown")
      errors.not_supported(here / "health", state, {"Healthy", "Unhealthy", "Unknown"});
    if (json::find(one, "message") != nullptr) {
      const std::string_view message = get_string(one, {"message"});
      if (message.empty())
        errors.required(here / "message", "must be non-empty if specified");
      else if (message.size() > kLongestHealthMessage)
        errors.too_long(here / "message", kLongestHealthMessage);
    }
    if (!ids.insert(id).second) errors.duplicate(here / "resourceID", Value(id));
  }
}

void allocated(const Value& doc, std::string_view list, std::string_view containers, const Path& status, Errors& errors) {
  const Path at = status / list;
  std::size_t i = 0;
  for (const Value& state : get_array(doc, {"status", list})) {
    const Path one = at[i++];
    const Path resources_at = one / "allocatedResourcesStatus";
    const json::Array& known = get_array(doc, {"spec", containers});
    const auto container =
        std::ranges::find_if(known, [&](const Value& c) { return get_string(c, {"name"}) == get_string(state, {"name"}); });
    std::size_t k = 0;
    for (const Value& resource : get_array(state, {"allocatedResourcesStatus"})) {
      const Path here = resources_at[k++];
      const std::string_view name = get_string(resource, {"name"});
      if (container != known.end() && !asks_for(*container, name))
        errors.invalid(here / "name", name,
                       name.starts_with("claim:")
                           ? "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
                             "'claim:<claimName>' if request is empty"
                           : "must match one of the container's resource requests");
      health(resource, here, errors);
    }
  }
}

}  // namespace

bool pod_status_reads_spec(const Value& old, const Value& doc) {
  if (get_string(doc, {"status", "qosClass"}).empty()) return true;
  const std::string_view nominated = get_string(doc, {"status", "nominatedNodeName"});
  if (!nominated.empty() && nominated != get_string(old, {"status", "nominatedNodeName"})) return true;
  for (const char* field : {"resourceClaimStatuses", "extendedResourceClaimStatus"})
    if (json::find(doc, {"status", field}) != nullptr) return true;
  for (const char* list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
    for (const Value& before : get_array(old, {"status", list}))
      if (json::find(before, {"state", "terminated"}) != nullptr) return true;
    for (const Value& now : get_array(doc, {"status", list}))
      if (json::find(now, {"user", "linux"}) != nullptr || json::find(now, "allocatedResourcesStatus") != nullptr) return true;
  }
  return false;
}

void pod_status(const Value& old, const Value& doc, Errors& errors) {
  pod_annotations_update(old, doc, errors);
  const Path at("status");
  conditions(doc, at, errors);
  const std::string_view nominated = get_string(doc, {"status", "nominatedNodeName"});
  if (!nominated.empty() && nominated != get_string(old, {"status", "nominatedNodeName"})) {
    if (const std::string why = check_dns1123_subdomain(nominated); !why.empty()) errors.invalid(at / "nominatedNodeName", nominated, why);
    if (!get_string(old, {"spec", "nodeName"}).empty())
      errors.forbidden(at / "nominatedNodeName", "may not be set on pods that are already bound to a node");
  }
  if (const std::int64_t seen = get_int(doc, {"status", "observedGeneration"}); seen < 0)
    errors.invalid(at / "observedGeneration", Value(seen), "must be a non-negative integer");
  immutable(old, doc, {"status", "qosClass"}, at / "qosClass", errors);
  if (!all_may_restart(old)) {
    container_states(old, doc, "containerStatuses", "containers", at, errors);
    container_states(old, doc, "initContainerStatuses", "initContainers", at, errors);
  }
  container_states(old, doc, "ephemeralContainerStatuses", "ephemeralContainers", at, errors);
  claim_statuses(doc, at, errors);
  extended_claim_status(doc, at, errors);
  addresses(old, doc, "podIPs", at, errors);
  addresses(old, doc, "hostIPs", at, errors);
  for (const char* list : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) users(doc, list, at, errors);
  allocated(doc, "containerStatuses", "containers", at, errors);
  allocated(doc, "initContainerStatuses", "initContainers", at, errors);
  const Path ephemeral = at / "ephemeralContainerStatuses";
  std::size_t i = 0;
  for (const Value& state : get_array(doc, {"status", "ephemeralContainerStatuses"})) {
    const Path one = ephemeral[i++];
    if (!get_array(state, {"allocatedResourcesStatus"}).empty())
      errors.forbidden(one / "allocatedResourcesStatus", "must not be specified in container status");
  }
}

}  // namespace berth::model::validation
