// Environment of containers (validateEnv, validateEnvVarValueFrom, ValidateEnvFrom).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/volume_sources.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_string;
using Strings = std::vector<std::string_view>;

bool contains(const Strings& list, std::string_view value) { return std::find(list.begin(), list.end(), value) != list.end(); }

/// `metadata.labels['key']`: its map and key; nullopt when the path has no subscript.
std::optional<std::pair<std::string_view, std::string_view>> split_subscript(std::string_view path) {
  const std::size_t open = path.find("['");
  if (open == std::string_view::npos || !path.ends_with("']") || open + 4 > path.size()) return std::nullopt;
  return std::pair(path.substr(0, open), path.substr(open + 2, path.size() - open - 4));
}

void key_reference(const Value& reference, const Path& at, Errors& errors) {
  const std::string_view name = get_string(reference, {"name"}), key = get_string(reference, {"key"});
  if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "name", name, why);
  if (key.empty())
    errors.required(at / "key");
  else if (const std::string why = check_config_map_key(key); !why.empty())
    errors.invalid(at / "key", key, why);
}

void file_reference(const Value& reference, const Path& at, Errors& errors) {
  const std::string_view key = get_string(reference, {"key"}), volume = get_string(reference, {"volumeName"}),
                         path = get_string(reference, {"path"});
  if (key.empty())
    errors.required(at / "key");
  else if (const std::string why = check_env_name(key); !why.empty())
    errors.invalid(at / "key", key, why);
  if (volume.empty())
    errors.required(at / "volumeName");
  else if (const std::string why = check_dns1123_label(volume); !why.empty())
    errors.invalid(at / "volumeName", volume, why);
  if (path.empty())
    errors.required(at / "path");
  else if (path_goes_up(path))
    errors.invalid(at / "path", path, "must not contain '..'");
}

void value_source(const Value& variable, const Path& at, Errors& errors) {
  static constexpr std::string_view kSources[] = {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"};
  static const Strings kFields = {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
                                  "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs"};
  const Value* from = json::find(variable, "valueFrom");
  if (from == nullptr) return;
  int sources = 0;
  for (const std::string_view source : kSources) sources += json::find(*from, source) != nullptr;
  if (const Value* ref = json::find(*from, "fieldRef")) field_reference(*ref, kFields, at / "fieldRef", errors);
  if (const Value* ref = json::find(*from, "resourceFieldRef")) resource_field_reference(*ref, at / "resourceFieldRef", errors);
  if (const Value* ref = json::find(*from, "configMapKeyRef")) key_reference(*ref, at / "configMapKeyRef", errors);
  if (const Value* ref = json::find(*from, "secretKeyRef")) key_reference(*ref, at / "secretKeyRef", errors);
  if (const Value* ref = json::find(*from, "fileKeyRef")) file_reference(*ref, at / "fileKeyRef", errors);
  if (sources == 0)
    errors.invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
  else if (!get_string(variable, {"value"}).empty())
    errors.invalid(at, "", "may not be specified when `value` is not empty");
  else if (sources > 1)
    errors.invalid(at, "", "may not have more than one field specified at a time");
}

void env_from(const Value& source, const Path& list_at, const Path& at, Errors& errors) {
  if (const std::string_view prefix = get_string(source, {"prefix"}); !prefix.empty())
    if (const std::string why = check_env_name(prefix); !why.empty()) errors.invalid(at / "prefix", prefix, why);
  int sources = 0;
  for (const std::string_view kind : {std::string_view("configMapRef"), std::string_view("secretRef")}) {
    const Value* ref = json::find(source, kind);
    if (ref == nullptr) continue;
    ++sources;
    const std::string_view name = get_string(*ref, {"name"});
    const Path here = at / kind;
    if (name.empty())
      errors.required(here / "name");
    else if (const std::string why = check_dns1123_subdomain(name); !why.empty())
      errors.invalid(here / "name", name, why);
  }
  if (sources == 0) errors.invalid(list_at, "", "must specify one of: `configMapRef` or `secretRef`");
  if (sources > 1) errors.invalid(list_at, "", "may not have more than one field specified at a time");
}

}  // namespace

void field_reference(const Value& reference, const Strings& allowed, const Path& at, Errors& errors) {
  static const Strings kKnown = {"metadata.annotations", "metadata.labels", "metadata.name",      "metadata.namespace",
                                 "metadata.uid",         "spec.nodeName",   "spec.restartPolicy", "spec.serviceAccountName",
                                 "spec.schedulerName",   "status.phase",    "status.hostIP",      "status.hostIPs",
                                 "status.podIP",         "status.podIPs",   "spec.host"};
  const std::string_view path = get_string(reference, {"fieldPath"});
  if (get_string(reference, {"apiVersion"}).empty()) return errors.required(at / "apiVersion");
  if (path.empty()) return errors.required(at / "fieldPath");
  if (const std::string_view version = get_string(reference, {"apiVersion"}); version != "v1")
    return errors.invalid(at / "fieldPath", path, fmt::format("error converting fieldPath: unsupported pod version: {}", version));
  if (const auto subscript = split_subscript(path)) {
    const auto& [map, key] = *subscript;
    if (map != "metadata.annotations" && map != "metadata.labels")
      return errors.invalid(at / "fieldPath", path,
                            fmt::format("error converting fieldPath: field label does not support subscript: {}", path));
    std::string name(key);
    if (map == "metadata.annotations")
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(at, name, why);
    return;
  }
  if (!contains(kKnown, path))
    return errors.invalid(at / "fieldPath", path, fmt::format("error converting fieldPath: field label not supported: {}", path));
  if (!contains(allowed, path)) errors.not_supported(at / "fieldPath", path, allowed);
}

void resource_field_reference(const Value& reference, const Path& at, Errors& errors, bool in_volume) {
  static const Strings kResources = {"limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
                                     "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  const std::string_view resource = get_string(reference, {"resource"});
  const bool is_huge_page = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
  if (in_volume && get_string(reference, {"containerName"}).empty())
    errors.required(at / "containerName");
  else if (resource.empty())
    errors.required(at / "resource");
  else if (!contains(kResources, resource) && !is_huge_page)
    errors.not_supported(at / "resource", resource, kResources);
  if (!contains(kResources, resource) && !is_huge_page) return;
  const std::string_view text = get_string(reference, {"divisor"});
  const auto divisor = Quantity::parse(text);
  if (text.empty() || !divisor || divisor->is_zero()) return;
  const bool is_cpu = resource.ends_with(".cpu");
  static const Strings kCpu = {"1m", "1"}, kBytes = {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  const Strings& known = is_cpu ? kCpu : kBytes;
  if (std::ranges::any_of(known, [&](std::string_view one) { return *divisor == *Quantity::parse(one); })) return;
  const std::string_view kind = is_cpu                                                 ? "cpu"
                                : resource.find("memory") != std::string_view::npos    ? "memory"
                                : resource.find("ephemeral") != std::string_view::npos ? "local ephemeral storage"
                                                                                       : "hugepages";
  errors.invalid(
      at / "divisor", resource,
      is_cpu
          ? "only divisor's values 1m and 1 are supported with the cpu resource"
          : fmt::format("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {} resource",
                        kind));
}

void environment(const Value& container, const Path& container_at, Errors& errors) {
  const Path at = container_at / "env";
  std::size_t i = 0;
  for (const Value& variable : get_array(container, {"env"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(variable, {"name"});
    if (name.empty())
      errors.required(one / "name");
    else if (const std::string why = check_env_name(name); !why.empty())
      errors.invalid(one / "name", name, why);
    value_source(variable, one / "valueFrom", errors);
  }
  const Path from_at = container_at / "envFrom";
  i = 0;
  for (const Value& source : get_array(container, {"envFrom"})) env_from(source, from_at, from_at[i++], errors);
}

}  // namespace berth::model::validation
