#include "model/pod_security.h"

#include <fmt/format.h>

#include <set>
#include <span>
#include <vector>

namespace berth::model {
namespace {

using json::get_array;
using json::get_bool;
using json::get_object;
using json::get_string;
using json::Value;
using Names = std::vector<std::string>;

// What container runtimes give by themselves.
constexpr std::string_view kDefaultCapabilities[] = {"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
                                                     "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                                     "SETPCAP",     "SETUID", "SYS_CHROOT"};
constexpr std::string_view kRestrictedCapabilities[] = {"NET_BIND_SERVICE"};

std::string quoted(const Names& names) { return fmt::format("\"{}\"", fmt::join(names, "\", \"")); }
std::string quoted(const std::set<std::string>& names) { return quoted(Names(names.begin(), names.end())); }
std::string containers_of(const Names& names) { return (names.size() == 1 ? "container " : "containers ") + quoted(names); }
bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A pod under judgement. Every rule appends what it finds to `findings`.
class Judgement {
 public:
  Judgement(const Value& metadata, const Value& spec) : metadata_(metadata), spec_(spec) {
    for (const char* list : {"initContainers", "containers", "ephemeralContainers"})
      for (const Value& container : get_array(spec, {list})) containers_.push_back(&container);
    is_windows_ = get_string(spec, {"os", "name"}) == "windows";
  }

  std::string run(PodSecurityLevel level, bool with_details) {
    with_details_ = with_details;
    const bool restricted = level == PodSecurityLevel::kRestricted;
    // The order of the rules' ids; the restricted form of a rule stands in for the baseline's.
    app_armor();
    if (!restricted) baseline_capabilities();
    host_namespaces();
    if (!restricted) host_path_volumes();
    host_ports();
    each_with("privileged", "must not set securityContext.privileged=true", [](const Value& c) {
      return get_bool(c, {"securityContext", "privileged"});
    });
    proc_mount();
    selinux_options();
    if (!restricted) baseline_seccomp();
    sysctls();
    set_by("hostProcess", "must not set securityContext.windowsOptions.hostProcess=true", [](const Value& c) {
      return get_bool(c, {"securityContext", "windowsOptions", "hostProcess"});
    });
    if (restricted) {
      if (!is_windows_)
        each_with("allowPrivilegeEscalation != false", "must set securityContext.allowPrivilegeEscalation=false", [](const Value& c) {
          return get_bool(c, {"securityContext", "allowPrivilegeEscalation"}, true);
        });
      if (!is_windows_) restricted_capabilities();
      restricted_volumes();
      run_as_non_root();
      set_by("runAsUser=0", "must not set runAsUser=0", [](const Value& c) {
        const Value* user = json::find(c, {"securityContext", "runAsUser"});
        return user != nullptr && user->is_int64() && user->get_int64() == 0;
      });
      if (!is_windows_) restricted_seccomp();
    }
    return fmt::format("{}", fmt::join(findings_, ", "));
  }

 private:
  static std::string name_of(const Value& container) { return std::string(get_string(container, {"name"})); }
  void found(std::string_view reason, std::string_view detail) {
    findings_.push_back(with_details_ ? fmt::format("{} ({})", reason, detail) : std::string(reason));
  }
  template <typename Test>
  Names names_where(Test&& is_bad) const {
    Names names;
    for (const Value* container : containers_)
      if (is_bad(*container)) names.push_back(name_of(*container));
    return names;
  }
  /// Containers alone can break the rule.
  template <typename Test>
  void each_with(std::string_view reason, std::string_view words, Test&& is_bad) {
    const Names bad = names_where(is_bad);
    if (!bad.empty()) found(reason, fmt::format("{} {}", containers_of(bad), words));
  }
  /// "pod and containers "a", "b"": who of the pod and its containers does it. The pod's own fields are where a container has them.
  template <typename Test>
  std::string setters(Test&& is_bad) const {
    Names who;
    if (is_bad(spec_)) who.push_back("pod");
    if (const Names bad = names_where(is_bad); !bad.empty()) who.push_back(containers_of(bad));
    return fmt::format("{}", fmt::join(who, " and "));
  }
  template <typename Test>
  void set_by(std::string_view reason, std::string_view words, Test&& is_bad) {
    if (const std::string who = setters(is_bad); !who.empty()) found(reason, fmt::format("{} {}", who, words));
  }

  void app_armor() {
    std::set<std::string> values;
    const std::string who = setters([&](const Value& c) {
      const std::string_view type = get_string(c, {"securityContext", "appArmorProfile", "type"});
      if (type.empty() || is_one_of(type, {"RuntimeDefault", "Localhost"})) return false;
      values.emplace(type);
      return true;
    });
    Names annotations;
    for (const auto& [key, value] : get_object(metadata_, {"annotations"})) {
      const std::string_view name(key.data(), key.size()), profile = value.is_string() ? json::as_view(value) : "";
      if (name.starts_with("container.apparmor.security.beta.kubernetes.io/") && !profile.empty() && profile != "runtime/default" &&
          !profile.starts_with("localhost/"))
        annotations.push_back(fmt::format("{}=\"{}\"", name, profile));
    }
    Names details;
    if (!values.empty()) details.push_back(fmt::format("{} must not set AppArmor profile type to {}", who, quoted(values)));
    if (!annotations.empty())
      details.push_back(fmt::format("annotation{} {}", annotations.size() == 1 ? "" : "s", fmt::join(annotations, ", ")));
    if (!details.empty())
      found(values.size() + annotations.size() == 1 ? "forbidden AppArmor profile" : "forbidden AppArmor profiles",
            fmt::format("{}", fmt::join(details, ", ")));
  }

  void baseline_capabilities() {
    std::set<std::string> added;
    const Names bad = names_where([&](const Value& c) { return adds_other_than(c, kDefaultCapabilities, added); });
    if (!bad.empty())
      found("non-default capabilities",
            fmt::format("{} must not include {} in securityContext.capabilities.add", containers_of(bad), quoted(added)));
  }
  static bool adds_other_than(const Value& container, std::span<const std::string_view> allowed, std::set<std::string>& added) {
    bool is_bad = false;
    for (const Value& one : get_array(container, {"securityContext", "capabilities", "add"})) {
      const std::string_view name = one.is_string() ? json::as_view(one) : "";
      if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
      added.emplace(name);
      is_bad = true;
    }
    return is_bad;
  }

  void host_namespaces() {
    Names set;
    for (const char* field : {"hostNetwork", "hostPID", "hostIPC"})
      if (get_bool(spec_, {field})) set.push_back(std::string(field) + "=true");
    if (!set.empty()) found("host namespaces", fmt::format("{}", fmt::join(set, ", ")));
  }

  void host_path_volumes() {
    Names names;
    for (const Value& volume : get_array(spec_, {"volumes"}))
      if (json::find(volume, {"hostPath"}) != nullptr) names.push_back(name_of(volume));
    if (!names.empty()) found("hostPath volumes", fmt::format("{} {}", names.size() == 1 ? "volume" : "volumes", quoted(names)));
  }

  void host_ports() {
    std::set<std::string> ports;
    const Names bad = names_where([&](const Value& c) {
      bool is_bad = false;
      for (const Value& port : get_array(c, {"ports"})) {
        const auto number = json::get_int(port, {"hostPort"});
        if (number == 0) continue;
        ports.insert(std::to_string(number));
        is_bad = true;
      }
      return is_bad;
    });
    if (!bad.empty())
      found("hostPort", fmt::format("{} {} {} {}", containers_of(bad), bad.size() == 1 ? "uses" : "use",
                                    ports.size() == 1 ? "hostPort" : "hostPorts", fmt::join(ports, ", ")));
  }

  void proc_mount() {
    std::set<std::string> values;
    const Names bad = names_where([&](const Value& c) {
      const std::string_view mount = get_string(c, {"securityContext", "procMount"});
      if (mount.empty() || mount == "Default") return false;
      values.emplace(mount);
      return true;
    });
    if (!bad.empty())
      found("procMount", fmt::format("{} must not set securityContext.procMount to {}", containers_of(bad), quoted(values)));
  }

  void selinux_options() {
    std::set<std::string> types;
    bool sets_user = false, sets_role = false;
    const std::string who = setters([&](const Value& c) {
      const std::string_view type = get_string(c, {"securityContext", "seLinuxOptions", "type"});
      const bool user = !get_string(c, {"securityContext", "seLinuxOptions", "user"}).empty();
      const bool role = !get_string(c, {"securityContext", "seLinuxOptions", "role"}).empty();
      const bool is_bad_type = !is_one_of(type, {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"});
      if (is_bad_type) types.emplace(type);
      sets_user |= user;
      sets_role |= role;
      return is_bad_type || user || role;
    });
    if (who.empty()) return;
    Names what;
    if (!types.empty()) what.push_back(fmt::format("{} {}", types.size() == 1 ? "type" : "types", quoted(types)));
    if (sets_user) what.push_back("user may not be set");
    if (sets_role) what.push_back("role may not be set");
    found("seLinuxOptions", fmt::format("{} set forbidden securityContext.seLinuxOptions: {}", who, fmt::join(what, "; ")));
  }

  static std::string_view seccomp_type(const Value& c) { return get_string(c, {"securityContext", "seccompProfile", "type"}); }
  static bool is_good_seccomp(std::string_view type) { return is_one_of(type, {"RuntimeDefault", "Localhost"}); }
  /// Those that set a forbidden profile; true when there are any.
  bool explicit_seccomp() {
    std::set<std::string> values;
    const std::string who = setters([&](const Value& c) {
      const std::string_view type = seccomp_type(c);
      if (type.empty() || is_good_seccomp(type)) return false;
      values.emplace(type);
      return true;
    });
    if (!who.empty())
      found("seccompProfile", fmt::format("{} must not set securityContext.seccompProfile.type to {}", who, quoted(values)));
    return !who.empty();
  }
  void baseline_seccomp() { explicit_seccomp(); }
  void restricted_seccomp() {
    if (explicit_seccomp() || is_good_seccomp(seccomp_type(spec_))) return;
    const Names bad = names_where([](const Value& c) { return seccomp_type(c).empty(); });
    if (!bad.empty())
      found("seccompProfile", fmt::format("pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
                                          containers_of(bad)));
  }

  void sysctls() {
    Names bad;
    for (const Value& one : get_array(spec_, {"securityContext", "sysctls"})) {
      const std::string_view name = get_string(one, {"name"});
      if (!is_one_of(name, {"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
                            "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports",
                            "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
                            "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}))
        bad.emplace_back(name);
    }
    if (!bad.empty()) found("forbidden sysctls", fmt::format("{}", fmt::join(bad, ", ")));
  }

  void restricted_capabilities() {
    const Names undropped = names_where([](const Value& c) {
      for (const Value& one : get_array(c, {"securityContext", "capabilities", "drop"}))
        if (one.is_string() && json::as_view(one) == "ALL") return false;
      return true;
    });
    std::set<std::string> added;
    const Names adding = names_where([&](const Value& c) { return adds_other_than(c, kRestrictedCapabilities, added); });
    Names details;
    if (!undropped.empty()) details.push_back(containers_of(undropped) + " must set securityContext.capabilities.drop=[\"ALL\"]");
    if (!adding.empty())
      details.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add", containers_of(adding), quoted(added)));
    if (!details.empty()) found("unrestricted capabilities", fmt::format("{}", fmt::join(details, "; ")));
  }

  void restricted_volumes() {
    Names bad;
    std::set<std::string> types;
    for (const Value& volume : get_array(spec_, {"volumes"})) {
      if (!volume.is_object()) continue;
      for (const auto& member : volume.get_object()) {
        const std::string_view type(member.key().data(), member.key().size());
        if (is_one_of(type,
                      {"name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}))
          continue;
        bad.push_back(name_of(volume));
        types.emplace(type);
        break;
      }
    }
    if (!bad.empty())
      found("restricted volume types",
            fmt::format("{} {} {} {} {}", bad.size() == 1 ? "volume" : "volumes", quoted(bad), bad.size() == 1 ? "uses" : "use",
                        types.size() == 1 ? "restricted volume type" : "restricted volume types", quoted(types)));
  }

  void run_as_non_root() {
    const auto says = [](const Value& c) { return json::find(c, {"securityContext", "runAsNonRoot"}); };
    const std::string who = setters([&](const Value& c) { return says(c) != nullptr && says(c)->is_bool() && !says(c)->get_bool(); });
    if (!who.empty()) return found("runAsNonRoot != true", who + " must not set securityContext.runAsNonRoot=false");
    if (says(spec_) != nullptr) return;
    const Names silent = names_where([&](const Value& c) { return says(c) == nullptr; });
    if (!silent.empty())
      found("runAsNonRoot != true", fmt::format("pod or {} must set securityContext.runAsNonRoot=true", containers_of(silent)));
  }

  const Value& metadata_;
  const Value& spec_;
  std::vector<const Value*> containers_;
  bool is_windows_ = false, with_details_ = true;
  Names findings_;
};

}  // namespace

std::optional<PodSecurityLevel> parse_pod_security_level(std::string_view text) {
  for (const auto level : {PodSecurityLevel::kPrivileged, PodSecurityLevel::kBaseline, PodSecurityLevel::kRestricted})
    if (to_string(level) == text) return level;
  return std::nullopt;
}

std::string_view to_string(PodSecurityLevel level) {
  switch (level) {
    case PodSecurityLevel::kPrivileged:
      return "privileged";
    case PodSecurityLevel::kBaseline:
      return "baseline";
    case PodSecurityLevel::kRestricted:
      break;
  }
  return "restricted";
}

std::string pod_security_violations(PodSecurityLevel level, const json::Value& metadata, const json::Value& spec) {
  if (level == PodSecurityLevel::kPrivileged) return {};
  return Judgement(metadata, spec).run(level, true);
}

std::string pod_security_broken_rules(PodSecurityLevel level, const json::Value& metadata, const json::Value& spec) {
  return level == PodSecurityLevel::kPrivileged ? std::string() : Judgement(metadata, spec).run(level, false);
}

}  // namespace berth::model
