// Security contexts of pods and containers (ValidatePodSecurityContext, ValidateSecurityContext).
#include <fmt/format.h>

#include <set>

#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_string;

constexpr std::string_view kIdText = "must be between 0 and 2147483647, inclusive";

void id(const Value& context, std::string_view key, const Path& at, Errors& errors) {
  const Value* value = json::find(context, key);
  if (value != nullptr && value->is_int64() && (value->get_int64() < 0 || value->get_int64() > INT32_MAX))
    errors.invalid(at / key, *value, kIdText);
}

/// seccompProfile and appArmorProfile have one shape.
void profile(const Value& context, std::string_view key, std::string_view word, const Path& context_at, Errors& errors) {
  const Value* object = json::find(context, key);
  if (object == nullptr) return;
  const Path at = context_at / key;
  const std::string_view type = get_string(*object, {"type"});
  const Value* local = json::find(*object, "localhostProfile");
  if (type == "Localhost") {
    if (local == nullptr) errors.required(at / "localhostProfile", fmt::format("must be set when {} type is Localhost", word));
  } else if (local != nullptr) {
    errors.invalid(at / "localhostProfile", *local, fmt::format("can only be set when {} type is Localhost", word));
  }
  if (type.empty())
    errors.required(at / "type", fmt::format("type is required when {} is set", key));
  else if (type != "Localhost" && type != "RuntimeDefault" && type != "Unconfined")
    errors.not_supported(at / "type", type, {"Localhost", "RuntimeDefault", "Unconfined"});
}

bool is_sysctl(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find_first_of("./", start), name.size());
    const std::string_view part = name.substr(start, end - start);
    if (part.empty() || !edge(part.front()) || !edge(part.back())) return false;
    if (!std::all_of(part.begin(), part.end(), [&](char c) { return edge(c) || c == '-' || c == '_'; })) return false;
    start = end + 1;
  }
  return true;
}

void sysctls(const Value& context, const Path& context_at, Errors& errors) {
  const Path at = context_at / "sysctls";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& sysctl : get_array(context, {"sysctls"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(sysctl, {"name"});
    if (name.empty())
      errors.required(one / "name");
    else if (!is_sysctl(name))
      errors.invalid(
          one / "name", name,
          "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    else if (!names.insert(name).second)
      errors.duplicate(one / "name", Value(name));
  }
}

}  // namespace

void pod_security_context(const Value& spec, const Path& spec_at, Errors& errors) {
  const Value* context = json::find(spec, "securityContext");
  if (context == nullptr) return;
  const Path at = spec_at / "securityContext";
  for (const char* key : {"fsGroup", "runAsUser", "runAsGroup"}) id(*context, key, at, errors);
  const Path groups = at / "supplementalGroups";
  std::size_t i = 0;
  for (const Value& group : get_array(*context, {"supplementalGroups"})) {
    if (group.is_int64() && (group.get_int64() < 0 || group.get_int64() > INT32_MAX)) errors.invalid(groups[i], group, kIdText);
    ++i;
  }
  sysctls(*context, at, errors);
  if (const std::string_view policy = get_string(*context, {"fsGroupChangePolicy"});
      !policy.empty() && policy != "Always" && policy != "OnRootMismatch")
    errors.not_supported(at / "fsGroupChangePolicy", policy, {"Always", "OnRootMismatch"});
  profile(*context, "seccompProfile", "seccomp", at, errors);
  profile(*context, "appArmorProfile", "AppArmor", at, errors);
}

void container_security_context(const Value& container, const Path& container_at, Errors& errors) {
  const Value* context = json::find(container, "securityContext");
  if (context == nullptr) return;
  const Path at = container_at / "securityContext";
  for (const char* key : {"runAsUser", "runAsGroup"}) id(*context, key, at, errors);
  if (const std::string_view mount = get_string(*context, {"procMount"}); !mount.empty() && mount != "Default" && mount != "Unmasked")
    errors.not_supported(at / "procMount", mount, {"Default", "Unmasked"});
  profile(*context, "seccompProfile", "seccomp", at, errors);
  profile(*context, "appArmorProfile", "AppArmor", at, errors);
  const Value* escalation = json::find(*context, "allowPrivilegeEscalation");
  if (escalation == nullptr || get_bool(*context, {"allowPrivilegeEscalation"}, true)) return;
  if (get_bool(*context, {"privileged"}))
    errors.invalid(at, *context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  for (const Value& capability : get_array(*context, {"capabilities", "add"}))
    if (capability == "CAP_SYS_ADMIN")
      errors.invalid(at, *context, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
}

}  // namespace berth::model::validation
