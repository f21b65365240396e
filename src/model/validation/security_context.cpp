// Security contexts of pods and containers (ValidatePodSecurityContext, ValidateSecurityContext).
#include <fmt/format.h>

#include <set>

#include "model/internal_form.h"
#include "model/validation/volume_sources.h"

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

void seccomp_profile(const Value& context, const Path& context_at, Errors& errors) {
  const Value* object = json::find(context, "seccompProfile");
  if (object == nullptr) return;
  const Path at = context_at / "seccompProfile";
  const std::string_view type = get_string(*object, {"type"});
  const Value* local = json::find(*object, "localhostProfile");
  if (type.empty())
    errors.required(at / "type", "type is required when seccompProfile is set");
  else
    supported_value(*object, "type", at, {"Localhost", "RuntimeDefault", "Unconfined"}, errors);
  if (type == "Localhost") {
    if (local == nullptr)
      errors.required(at / "localhostProfile", "must be set when seccomp type is Localhost");
    else
      descending_path(get_string(*object, {"localhostProfile"}), at / "localhostProfile", errors);
  } else if (local != nullptr) {
    // Kubernetes shows the whole profile, with its fields' Go names.
    errors.invalid(at / "localhostProfile", Value(json::Object{{"Type", type}, {"LocalhostProfile", *local}}),
                   "can only be set when seccomp type is Localhost");
  }
}

void app_armor_profile(const Value& context, const Path& context_at, Errors& errors) {
  static constexpr std::size_t kMaxLength = 4095;
  static constexpr std::string_view kMissing = "must be set when AppArmor type is Localhost";
  const Value* object = json::find(context, "appArmorProfile");
  if (object == nullptr) return;
  const Path at = context_at / "appArmorProfile";
  const Path local_at = at / "localhostProfile";
  const std::string_view type = get_string(*object, {"type"}), name = get_string(*object, {"localhostProfile"});
  const Value* local = json::find(*object, "localhostProfile");
  if (type.empty()) return errors.required(at / "type", "type is required when appArmorProfile is set");
  supported_value(*object, "type", at, {"Localhost", "RuntimeDefault", "Unconfined"}, errors);
  if (type == "RuntimeDefault" || type == "Unconfined") {
    if (local != nullptr) errors.invalid(local_at, *local, "can only be set when AppArmor type is Localhost");
  } else if (type == "Localhost") {
    if (local == nullptr || name.empty()) return errors.required(local_at, kMissing);
    const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    if (is_space(name.front()) || is_space(name.back())) errors.invalid(local_at, name, "must not be padded with whitespace");
    if (name.size() > kMaxLength) errors.too_long(local_at, kMaxLength);
  }
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

/// Settings of a namespace that the pod shares with the host.
void host_sysctl(const Value& spec, std::string_view name, const Path& at, Errors& errors) {
  std::string dotted(name);
  // A slash as the first separator means that the two are swapped.
  if (const std::size_t first = dotted.find_first_of("./"); first != std::string::npos && dotted[first] == '/')
    for (char& c : dotted) c = c == '/' ? '.' : c == '.' ? '/' : c;
  const auto below = [&](std::string_view prefix) { return std::string_view(dotted).starts_with(prefix); };
  static const std::set<std::string_view> kIpc = {"kernel.sem",    "kernel.shmall",          "kernel.shmmax",
                                                  "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.msgmax",
                                                  "kernel.msgmnb", "kernel.msgmni"};
  const bool is_ipc = kIpc.contains(dotted) || below("kernel.shm.") || below("kernel.msg.") || below("fs.mqueue.");
  if (get_bool(spec, {"hostNetwork"}) && below("net."))
    errors.invalid(at, name, "may not be specified when 'hostNetwork' is true");
  else if (get_bool(spec, {"hostIPC"}) && is_ipc)
    errors.invalid(at, name, "may not be specified when 'hostIPC' is true");
}

void sysctls(const Value& spec, const Value& context, const Path& context_at, Errors& errors) {
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
    host_sysctl(spec, name, one / "name", errors);
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
  if (get_bool(spec, {"shareProcessNamespace"}) && get_bool(spec, {"hostPID"}))
    errors.invalid(at / "shareProcessNamespace", Value(true), "ShareProcessNamespace and HostPID cannot both be enabled");
  sysctls(spec, *context, at, errors);
  supported_value(*context, "fsGroupChangePolicy", at, {"Always", "OnRootMismatch"}, errors, true);
  seccomp_profile(*context, at, errors);
  windows_options(*context, at, errors);
  app_armor_profile(*context, at, errors);
  supported_value(*context, "supplementalGroupsPolicy", at, {"Merge", "Strict"}, errors, true);
  supported_value(*context, "seLinuxChangePolicy", at, {"Recursive"}, errors, true);
}

namespace {

/// Who may not gain rights has none that give them.
void escalation_of(const Value& context_value, const Path& at, Errors& errors) {
  const Value* context = &context_value;
  const Value* escalation = json::find(*context, "allowPrivilegeEscalation");
  if (escalation == nullptr || get_bool(*context, {"allowPrivilegeEscalation"}, true)) return;
  if (get_bool(*context, {"privileged"}))
    errors.invalid(at, internal_form("core.v1.SecurityContext", context),
                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  for (const Value& capability : get_array(*context, {"capabilities", "add"}))
    if (capability == "CAP_SYS_ADMIN")
      errors.invalid(at, internal_form("core.v1.SecurityContext", context),
                     "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
}

}  // namespace

void container_security_context(const Value& container, bool host_users, const Path& container_at, Errors& errors) {
  const Value* context = json::find(container, "securityContext");
  if (context == nullptr) return;
  const Path at = container_at / "securityContext";
  for (const char* key : {"runAsUser", "runAsGroup"}) id(*context, key, at, errors);
  supported_value(*context, "procMount", at, {"Default", "Unmasked"}, errors, true);
  if (host_users && get_string(*context, {"procMount"}) == "Unmasked")
    errors.invalid(at / "procMount", "Unmasked", "`hostUsers` must be false to use `Unmasked`");
  seccomp_profile(*context, at, errors);
  escalation_of(*context, at, errors);
  windows_options(*context, at, errors);
  app_armor_profile(*context, at, errors);
}

}  // namespace berth::model::validation
