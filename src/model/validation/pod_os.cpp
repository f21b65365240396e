// What a pod's operating system forbids, and Windows' own settings (validateOS, validateLinux, validateWindows,
// validateWindowsSecurityContextOptions, validateWindowsHostProcessPod).
#include <fmt/format.h>
#include <re2/re2.h>

#include "model/validation/pod_parts.h"

namespace berth::model::validation {
namespace {

using json::get_bool;
using json::get_string;

constexpr std::string_view kOptionsOnLinux = "windows options cannot be set for a linux pod";
constexpr std::string_view kOnWindows = "cannot be set for a windows pod";

void linux_only(const Value& spec, const Path& at, Errors& errors) {
  const Path context_at = at / "securityContext";
  if (json::find(spec, {"securityContext", "windowsOptions"}) != nullptr) errors.forbidden(context_at / "windowsOptions", kOptionsOnLinux);
  each_container(spec, at, [&](const Value& container, const Path& one) {
    const Path here = one / "securityContext";
    if (json::find(container, {"securityContext", "windowsOptions"}) != nullptr) errors.forbidden(here / "windowsOptions", kOptionsOnLinux);
  });
}

void windows_only(const Value& spec, const Path& at, Errors& errors) {
  const Path context_at = at / "securityContext";
  for (const char* key : {"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
                          "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"}) {
    const Value* value = json::find(spec, {"securityContext", key});
    if (value != nullptr && !(value->is_array() && value->get_array().empty())) errors.forbidden(context_at / key, kOnWindows);
  }
  for (const char* key : {"hostUsers", "shareProcessNamespace"})
    if (json::find(spec, key) != nullptr) errors.forbidden(at / key, kOnWindows);
  for (const char* key : {"hostPID", "hostIPC"})
    if (get_bool(spec, {key})) errors.forbidden(at / key, kOnWindows);
  each_container(spec, at, [&](const Value& container, const Path& one) {
    const Path here = one / "securityContext";
    for (const char* key : {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
                            "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"})
      if (json::find(container, {"securityContext", key}) != nullptr) errors.forbidden(here / key, kOnWindows);
  });
}

/// Either every container runs in the host's own processes, or none.
void host_process(const Value& spec, const Path& at, Errors& errors) {
  const Value* of_pod = json::find(spec, {"securityContext", "windowsOptions", "hostProcess"});
  std::size_t all = 0, in_host = 0;
  each_container(spec, at, [&](const Value& container, const Path& one) {
    ++all;
    const Value* own = json::find(container, {"securityContext", "windowsOptions", "hostProcess"});
    const Path context_at = one / "securityContext";
    const Path options = context_at / "windowsOptions";
    if (of_pod != nullptr && own != nullptr && *of_pod != *own)
      errors.invalid(options / "hostProcess", *own,
                     fmt::format("pod hostProcess value must be identical if both are specified, was {}", json::serialize(*of_pod)));
    const Value* effective = own != nullptr ? own : of_pod;
    if (effective != nullptr && *effective == true) ++in_host;
  });
  if (in_host == 0) return;
  if (in_host != all)
    errors.invalid(at, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers");
  if (!get_bool(spec, {"hostNetwork"}))
    errors.invalid(at / "hostNetwork", Value(false), "hostNetwork must be true if pod contains any hostProcess containers");
}

void user_name(std::string_view name, const Path& at, Errors& errors) {
  static const re2::RE2 kNetBios(R"(^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$)"),
      kDomain(R"(^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?))*$)");
  if (name.empty()) return errors.invalid(at, name, "runAsUserName cannot be an empty string");
  if (std::ranges::any_of(name, [](unsigned char c) { return std::iscntrl(c) != 0; }))
    return errors.invalid(at, name, "runAsUserName cannot contain control characters");
  if (std::ranges::count(name, '\\') > 1) return errors.invalid(at, name, "runAsUserName cannot contain more than one backslash");
  const std::size_t slash = name.find('\\');
  const bool has_domain = slash != std::string_view::npos;
  const std::string_view user = has_domain ? name.substr(slash + 1) : name;
  const std::string domain(has_domain ? name.substr(0, slash) : "");
  if (domain.size() >= 256) errors.invalid(at, name, "runAsUserName's Domain length must be under 256 characters");
  if (has_domain && !re2::RE2::FullMatch(domain, kNetBios) && !re2::RE2::FullMatch(domain, kDomain))
    errors.invalid(at, name, "runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  if (user.empty())
    errors.invalid(at, name, "runAsUserName's User cannot be empty");
  else if (user.size() > 104)
    errors.invalid(at, name, "runAsUserName's User length must not be longer than 104 characters");
  if (!user.empty() && user.find_first_not_of(". ") == std::string_view::npos)
    errors.invalid(at, name, "runAsUserName's User cannot contain only periods or spaces");
  if (user.find_first_of("\"/\\:;|=,+*?<>@[]") != std::string_view::npos)
    errors.invalid(at, name, "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
}

}  // namespace

void windows_options(const Value& context, const Path& context_at, Errors& errors) {
  const Value* options = json::find(context, "windowsOptions");
  if (options == nullptr) return;
  const Path at = context_at / "windowsOptions";
  if (const Value* name = json::find(*options, "gmsaCredentialSpecName"); name != nullptr && name->is_string())
    if (const std::string why = check_dns1123_subdomain(json::as_view(*name)); !why.empty())
      errors.invalid(at / "gmsaCredentialSpecName", *name, why);
  if (const Value* text = json::find(*options, "gmsaCredentialSpec"); text != nullptr && text->is_string()) {
    if (text->get_string().empty())
      errors.invalid(at / "gmsaCredentialSpec", *text, "gmsaCredentialSpec cannot be an empty string");
    else if (text->get_string().size() > 64 * 1024)
      errors.invalid(at / "gmsaCredentialSpec", *text, "gmsaCredentialSpec size must be under 64 KiB");
  }
  if (const Value* name = json::find(*options, "runAsUserName"); name != nullptr && name->is_string())
    user_name(json::as_view(*name), at / "runAsUserName", errors);
}

void operating_system(const Value& spec, const Path& at, Errors& errors) {
  host_process(spec, at, errors);
  if (json::find(spec, "os") == nullptr) return;
  const std::string_view name = get_string(spec, {"os", "name"});
  const Path here = at / "os";
  if (name.empty())
    errors.required(here / "name");
  else if (name == "linux")
    linux_only(spec, at, errors);
  else if (name == "windows")
    windows_only(spec, at, errors);
  else
    errors.not_supported(here, name, {"linux", "windows"});
}

}  // namespace berth::model::validation
