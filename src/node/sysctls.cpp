#include "node/sysctls.h"

#include <algorithm>
#include <array>

namespace berth::node {
namespace {

constexpr std::array<std::string_view, 12> kSafe = {"kernel.shm_rmid_forced",
                                                    "net.ipv4.ip_local_port_range",
                                                    "net.ipv4.tcp_syncookies",
                                                    "net.ipv4.ping_group_range",
                                                    "net.ipv4.ip_unprivileged_port_start",
                                                    "net.ipv4.ip_local_reserved_ports",
                                                    "net.ipv4.tcp_keepalive_time",
                                                    "net.ipv4.tcp_fin_timeout",
                                                    "net.ipv4.tcp_keepalive_intvl",
                                                    "net.ipv4.tcp_keepalive_probes",
                                                    "net.ipv4.tcp_rmem",
                                                    "net.ipv4.tcp_wmem"};

/// The kernel's own name: a pod may write the parts apart by slashes.
std::string with_dots(std::string_view name) {
  std::string out(name);
  // The first mark tells which of the two forms it is: in the other, dots and slashes have changed their parts.
  const std::size_t first = out.find_first_of("./");
  if (first == std::string::npos || out[first] == '.') return out;
  for (char& c : out) c = c == '/' ? '.' : c == '.' ? '/' : c;
  return out;
}

/// "IPC", "Net", or nothing for a parameter of the whole machine.
std::string_view namespace_of(std::string_view name) {
  if (name == "kernel.sem" || name.starts_with("kernel.shm") || name.starts_with("kernel.msg") || name.starts_with("fs.mqueue."))
    return "IPC";
  return name.starts_with("net.") ? "Net" : "";
}

bool matches(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : pattern == name;
}

}  // namespace

bool is_safe_sysctl(std::string_view name) { return std::ranges::find(kSafe, name) != kSafe.end(); }

std::optional<Refusal> refuse_sysctls(const json::Value& pod, const std::vector<std::string>& allowed_unsafe) {
  for (const json::Value& sysctl : json::get_array(pod, {"spec", "securityContext", "sysctls"})) {
    const std::string name = with_dots(json::get_string(sysctl, {"name"}));
    const auto forbidden = [](const std::string& why) { return Refusal{"SysctlForbidden", "forbidden sysctl: " + why}; };
    const bool allowed = std::ranges::any_of(allowed_unsafe, [&](const std::string& pattern) { return matches(with_dots(pattern), name); });
    if (!is_safe_sysctl(name) && !allowed) return forbidden(fmt::format("\"{}\" not allowlisted", name));
    const std::string_view ns = namespace_of(name);
    const bool shared =
        (ns == "IPC" && json::get_bool(pod, {"spec", "hostIPC"})) || (ns == "Net" && json::get_bool(pod, {"spec", "hostNetwork"}));
    if (shared) return forbidden(fmt::format("\"{}\" not allowed with host {} enabled", name, ns));
  }
  return std::nullopt;
}

std::string check_allowed_sysctl(std::string_view pattern) {
  const std::string name = with_dots(pattern);
  const std::string_view stem = name.ends_with('*') ? std::string_view(name).substr(0, name.size() - 1) : std::string_view(name);
  if (!namespace_of(stem).empty()) return {};
  return fmt::format("the sysctls {} are not known to be namespaced", pattern);
}

}  // namespace berth::node
