#include "model/pods/pod_security.h"

#include <fmt/format.h>

#include <map>
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
  Judgement(int minor_version, const Value& metadata, const Value& spec) : version_(minor_version), metadata_(metadata), spec_(spec) {
    for (const char* list : {"initContainers", "containers", "ephemeralContainers"})
      for (const Value& container : get_array(spec, {list})) containers_.push_back(&container);
    is_windows_ = get_string(spec, {"os", "name"}) == "windows";
    const Value* host_users = json::find(spec, {"hostUsers"});
    is_in_user_namespace_ = host_users != nullptr && host_users->is_bool() && !host_users->get_bool();
  }

  PodSecurityFindings run(PodSecurityLevel level) {
    const bool restricted = level == PodSecurityLevel::kRestricted;
    // The order of the rules' ids; the restricted form of a rule stands in for the baseline's.
    app_armor();
    if (!restricted || version_ < 22) baseline_capabilities();
    host_namespaces();
    if (!restricted) host_path_volumes();
    host_ports();
    if (version_ >= 34) probe_hosts();
    each_with("privileged", "must not set securityContext.privileged=true", [](const Value& c) {
      return get_bool(c, {"securityContext", "privileged"});
    });
    if (version_ < 35 || (!restricted && !is_in_user_namespace_)) proc_mount();
    selinux_options();
    if (version_ < 19) {
      annotated_seccomp();
    } else if (!restricted) {
      baseline_seccomp();
    }
    sysctls();
    set_by("hostProcess", "must not set securityContext.windowsOptions.hostProcess=true", [](const Value& c) {
      return get_bool(c, {"securityContext", "windowsOptions", "hostProcess"});
    });
    if (restricted) restricted_rules();
    return {fmt::format("{}", fmt::join(reasons_, ", ")), fmt::format("{}", fmt::join(findings_, ", "))};
  }

 private:
  void restricted_rules() {
    // Since 1.25 pods of Windows are spared what only Linux knows, since 1.35 pods in a user namespace may be root there.
    const bool spared = is_windows_ && version_ >= 25;
    const bool may_be_root = is_in_user_namespace_ && version_ >= 35;
    if (!spared && version_ >= 8)
      each_with("allowPrivilegeEscalation != false", "must set securityContext.allowPrivilegeEscalation=false", [](const Value& c) {
        return get_bool(c, {"securityContext", "allowPrivilegeEscalation"}, true);
      });
    if (!spared && version_ >= 22) restricted_capabilities();
    if (version_ >= 35) proc_mount();
    restricted_volumes();
    if (!may_be_root) run_as_non_root();
    if (version_ >= 23 && !may_be_root)
      set_by("runAsUser=0", "must not set runAsUser=0", [](const Value& c) {
        const Value* user = json::find(c, {"securityContext", "runAsUser"});
        return user != nullptr && user->is_int64() && user->get_int64() == 0;
      });
    if (!spared && version_ >= 19) restricted_seccomp();
  }
  static std::string name_of(const Value& container) { return std::string(get_string(container, {"name"})); }
  void found(std::string_view reason, std::string_view detail) {
    reasons_.emplace_back(reason);
    findings_.push_back(fmt::format("{} ({})", reason, detail));
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
    std::set<std::string> types;
    std::string who = setters([&](const Value& c) {
      const std::string_view type = get_string(c, {"securityContext", "appArmorProfile", "type"});
      if (type.empty() || is_one_of(type, {"RuntimeDefault", "Localhost"})) return false;
      types.emplace(type);
      return true;
    });
    std::set<std::string> annotations;
    for (const auto& [key, value] : get_object(metadata_, {"annotations"})) {
      const std::string_view name(key.data(), key.size()), profile = value.is_string() ? json::as_view(value) : "";
      if (name.starts_with("container.apparmor.security.beta.kubernetes.io/") && !profile.empty() && profile != "runtime/default" &&
          !profile.starts_with("localhost/"))
        annotations.insert(fmt::format("{}=\"{}\"", name, profile));
    }
    if (types.empty() && annotations.empty()) return;
    Names values(types.begin(), types.end());
    values.insert(values.end(), annotations.begin(), annotations.end());
    if (!annotations.empty()) who += fmt::format("{}annotation{}", who.empty() ? "" : " and ", annotations.size() == 1 ? "" : "s");
    found(values.size() == 1 ? "forbidden AppArmor profile" : "forbidden AppArmor profiles",
          fmt::format("{} must not set AppArmor profile type to {}", who, quoted(values)));
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

  void probe_hosts() {
    std::set<std::string> bad, hosts;
    for (const Value* container : containers_) {
      const auto look = [&](const Value* handler) {
        for (const char* action : {"httpGet", "tcpSocket"}) {
          const std::string_view host = handler == nullptr ? "" : get_string(*handler, {action, "host"});
          if (host.empty()) continue;
          bad.insert(name_of(*container));
          hosts.emplace(host);
        }
      };
      for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) look(json::find(*container, {probe}));
      for (const char* hook : {"postStart", "preStop"}) look(json::find(*container, {"lifecycle", hook}));
    }
    if (bad.empty()) return;
    found("probe or lifecycle host",
          fmt::format("{} {} {} {}", containers_of(Names(bad.begin(), bad.end())), bad.size() == 1 ? "uses" : "use",
                      hosts.size() == 1 ? "probe or lifecycle host" : "probe or lifecycle hosts", quoted(hosts)));
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
      const bool is_bad_type =
          !is_one_of(type, {"", "container_t", "container_init_t", "container_kvm_t"}) && !(type == "container_engine_t" && version_ >= 31);
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
  /// Before 1.19 annotations said it.
  void annotated_seccomp() {
    std::set<std::string> bad;
    const auto look = [&](const std::string& key) {
      const Value* value = json::find(metadata_, {"annotations", key});
      if (value == nullptr || !value->is_string()) return;
      const std::string_view text = json::as_view(*value);
      if (is_one_of(text, {"runtime/default", "docker/default"}) || text.starts_with("localhost/")) return;
      bad.insert(fmt::format("{}=\"{}\"", key, text));
    };
    look("seccomp.security.alpha.kubernetes.io/pod");
    for (const Value* container : containers_) look("container.seccomp.security.alpha.kubernetes.io/" + name_of(*container));
    if (!bad.empty())
      found("seccompProfile", fmt::format("forbidden {} {}", bad.size() == 1 ? "annotation" : "annotations", fmt::join(bad, ", ")));
  }
  void restricted_seccomp() {
    if (explicit_seccomp() || is_good_seccomp(seccomp_type(spec_))) return;
    const Names bad = names_where([](const Value& c) { return seccomp_type(c).empty(); });
    if (!bad.empty())
      found("seccompProfile", fmt::format("pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
                                          containers_of(bad)));
  }

  void sysctls() {
    static const std::map<std::string_view, int> kAllowedSince = {{"kernel.shm_rmid_forced", 0},
                                                                  {"net.ipv4.ip_local_port_range", 0},
                                                                  {"net.ipv4.tcp_syncookies", 0},
                                                                  {"net.ipv4.ping_group_range", 0},
                                                                  {"net.ipv4.ip_unprivileged_port_start", 0},
                                                                  {"net.ipv4.ip_local_reserved_ports", 27},
                                                                  {"net.ipv4.tcp_keepalive_time", 29},
                                                                  {"net.ipv4.tcp_fin_timeout", 29},
                                                                  {"net.ipv4.tcp_keepalive_intvl", 29},
                                                                  {"net.ipv4.tcp_keepalive_probes", 29},
                                                                  {"net.ipv4.tcp_rmem", 32},
                                                                  {"net.ipv4.tcp_wmem", 32}};
    Names bad;
    for (const Value& one : get_array(spec_, {"securityContext", "sysctls"})) {
      const std::string_view name = get_string(one, {"name"});
      const auto allowed = kAllowedSince.find(name);
      if (allowed == kAllowedSince.end() || allowed->second > version_) bad.emplace_back(name);
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

  int version_;
  const Value& metadata_;
  const Value& spec_;
  std::vector<const Value*> containers_;
  bool is_windows_ = false, is_in_user_namespace_ = false;
  Names reasons_, findings_;
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

PodSecurityFindings pod_security_findings(PodSecurityLevel level, int minor_version, const json::Value& metadata, const json::Value& spec) {
  if (level == PodSecurityLevel::kPrivileged) return {};
  return Judgement(minor_version, metadata, spec).run(level);
}

}  // namespace berth::model
