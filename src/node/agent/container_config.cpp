#include "node/agent/container_config.h"

#include "node/agent/container_devices.h"
#include "node/agent/environment.h"

namespace berth::node::agent {
namespace {

json::Object pod_labels(const PodContext& context) {
  json::Object labels;
  for (const auto& [key, value] : json::get_object(context.pod, {"metadata", "labels"}))
    if (value.is_string()) labels[key] = value;
  labels["io.kubernetes.pod.name"] = context.spec.name;
  labels["io.kubernetes.pod.namespace"] = context.spec.ns;
  labels["io.kubernetes.pod.uid"] = context.spec.uid;
  return labels;
}

std::int64_t milli_of(const eviction::ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? 0 : found->second.milli_value();
}
std::int64_t value_of(const eviction::ResourceList& list, std::string_view name) {
  const auto found = list.find(name);
  return found == list.end() ? 0 : found->second.value();
}

/// What a container sets no limit of its own for, the limit of its pod is set for.
void limit_by_pod(const eviction::PodFacts& pod, eviction::ContainerFacts& container) {
  for (const std::string_view name : {"cpu", "memory"})
    if (const auto whole = pod.pod_limits.find(name); whole != pod.pod_limits.end() && milli_of(container.limits, name) == 0)
      container.limits.insert_or_assign(std::string(name), whole->second);
}

json::Object namespace_options(const PodContext& context, const json::Value* container) {
  json::Object out;
  if (context.spec.host_network) out["network"] = "NODE";
  if (json::get_bool(context.pod, {"spec", "hostIPC"})) out["ipc"] = "NODE";
  if (json::get_bool(context.pod, {"spec", "hostPID"}))
    out["pid"] = "NODE";
  else if (json::get_bool(context.pod, {"spec", "shareProcessNamespace"}))
    out["pid"] = "POD";
  else
    out["pid"] = "CONTAINER";
  // An ephemeral container may look at another's processes (kubectl debug --target); who calls fills target_id in.
  if (container && !json::get_string(*container, {"targetContainerName"}).empty() && out["pid"] == "CONTAINER") out["pid"] = "TARGET";
  return out;
}

/// A security setting of the container, or of its pod.
const json::Value* security_setting(const PodContext& context, const json::Value* container, std::string_view name) {
  if (container)
    if (const json::Value* own = json::find(*container, {"securityContext", name})) return own;
  return json::find(context.pod, {"spec", "securityContext", name});
}

std::optional<std::int64_t> security_number(const PodContext& context, const json::Value* container, std::string_view name) {
  const json::Value* value = security_setting(context, container, name);
  return value && value->is_int64() ? std::optional(value->get_int64()) : std::nullopt;
}

/// A seccomp or AppArmor profile as the CRI names it; nullopt: not set.
std::optional<json::Object> security_profile(const json::Value* profile) {
  if (!profile) return std::nullopt;
  const std::string_view type = json::get_string(*profile, {"type"});
  if (type == "RuntimeDefault") return json::Object{{"profile_type", "RuntimeDefault"}};
  if (type == "Unconfined") return json::Object{{"profile_type", "Unconfined"}};
  // The kubelet's place for profiles.
  if (type == "Localhost")
    return json::Object{{"profile_type", "Localhost"},
                        {"localhost_ref", fmt::format("/var/lib/kubelet/seccomp/{}", json::get_string(*profile, {"localhostProfile"}))}};
  return std::nullopt;
}

/// What containers and sandboxes have in common.
json::Object common_security(const PodContext& context, const json::Value* container) {
  json::Object out;
  out["namespace_options"] = namespace_options(context, container);
  const auto user = security_number(context, container, "runAsUser"), group = security_number(context, container, "runAsGroup");
  if (user) out["run_as_user"] = json::Object{{"value", std::to_string(*user)}};
  // Containerd refuses a group without a user.
  if (group && user) out["run_as_group"] = json::Object{{"value", std::to_string(*group)}};
  json::Array groups;
  for (const json::Value& extra : json::get_array(context.pod, {"spec", "securityContext", "supplementalGroups"}))
    if (extra.is_int64()) groups.push_back(json::Value(std::to_string(extra.get_int64())));
  if (const auto fs_group = security_number(context, nullptr, "fsGroup")) groups.push_back(json::Value(std::to_string(*fs_group)));
  if (!groups.empty()) out["supplemental_groups"] = std::move(groups);
  if (auto seccomp = security_profile(security_setting(context, container, "seccompProfile")))
    out["seccomp"] = std::move(*seccomp);
  else
    out["seccomp"] = json::Object{{"profile_type", "Unconfined"}};
  if (auto apparmor = security_profile(security_setting(context, container, "appArmorProfile"))) out["apparmor"] = std::move(*apparmor);
  if (const json::Value* selinux = security_setting(context, container, "seLinuxOptions"))
    out["selinux_options"] = json::Object{{"user", json::get_string(*selinux, {"user"})},
                                          {"role", json::get_string(*selinux, {"role"})},
                                          {"type", json::get_string(*selinux, {"type"})},
                                          {"level", json::get_string(*selinux, {"level"})}};
  return out;
}

json::Object container_security(const PodContext& context, const json::Value& container) {
  json::Object out = common_security(context, &container);
  const bool privileged = json::get_bool(container, {"securityContext", "privileged"});
  out["privileged"] = privileged;
  out["readonly_rootfs"] = json::get_bool(container, {"securityContext", "readOnlyRootFilesystem"});
  if (const json::Value* escalation = json::find(container, {"securityContext", "allowPrivilegeEscalation"});
      escalation && escalation->is_bool() && !privileged)
    out["no_new_privs"] = !escalation->get_bool();
  json::Object capabilities;
  for (const auto& [ours, theirs] : {std::pair("add", "add_capabilities"), std::pair("drop", "drop_capabilities")})
    if (const json::Array& list = json::get_array(container, {"securityContext", "capabilities", ours}); !list.empty())
      capabilities[theirs] = list;
  if (!capabilities.empty()) out["capabilities"] = std::move(capabilities);
  return out;
}

json::Array expanded_words(const json::Value& container, std::string_view list, const std::map<std::string, std::string>& variables) {
  json::Array out;
  for (const json::Value& word : json::get_array(container, {list}))
    if (word.is_string()) out.push_back(json::Value(expand_variables(json::as_view(word), variables)));
  return out;
}

json::Array string_array(const std::vector<std::string>& list) {
  json::Array out;
  for (const std::string& text : list) out.push_back(json::Value(text));
  return out;
}

json::Array port_mappings(const PodContext& context) {
  json::Array ports;
  if (context.spec.host_network) return ports;
  for (const json::Value& container : json::get_array(context.pod, {"spec", "containers"}))
    for (const json::Value& port : json::get_array(container, {"ports"}))
      if (json::get_int(port, {"hostPort"}) > 0)
        ports.push_back(json::Object{{"container_port", json::get_int(port, {"containerPort"})},
                                     {"host_port", json::get_int(port, {"hostPort"})},
                                     {"protocol", json::get_string(port, {"protocol"}, "TCP")},
                                     {"host_ip", json::get_string(port, {"hostIP"})}});
  return ports;
}

}  // namespace

std::int64_t cpu_shares(std::int64_t milli) { return std::clamp<std::int64_t>(milli * 1024 / 1000, 2, 262144); }
std::int64_t cpu_quota_us(std::int64_t milli) { return std::max<std::int64_t>(milli * 100, 1000); }

const json::Value& container_spec(const json::Value& pod, std::size_t index) {
  const json::Array& init = json::get_array(pod, {"spec", "initContainers"});
  const json::Array& main = json::get_array(pod, {"spec", "containers"});
  if (index < init.size()) return init[index];
  if (index < init.size() + main.size()) return main[index - init.size()];
  return json::get_array(pod, {"spec", "ephemeralContainers"})[index - init.size() - main.size()];
}

std::string container_field_path(const PodSpec& spec, std::size_t index) {
  const ContainerSpec& container = spec.containers[index];
  const char* list = container.role == ContainerRole::kMain        ? "containers"
                     : container.role == ContainerRole::kEphemeral ? "ephemeralContainers"
                                                                   : "initContainers";
  return fmt::format("spec.{}{{{}}}", list, container.name);
}

std::string container_hash(const json::Value& container) {
  const std::string text = fmt::format("{}\n{}", json::get_string(container, {"name"}), json::get_string(container, {"image"}));
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("{:x}", hash);
}

std::int64_t swap_limit_bytes(const PodContext& context, const json::Value& container) {
  const std::string_view name = json::get_string(container, {"name"});
  const auto facts = std::ranges::find(context.facts.containers, name, &eviction::ContainerFacts::name);
  if (!context.cgroup_v2 || context.swap.capacity_bytes <= 0 || facts == context.facts.containers.end()) return 0;
  if (context.facts.is_critical || context.facts.qos != eviction::QosClass::kBurstable) return 0;
  const std::int64_t request = value_of(facts->requests, "memory"), limit = value_of(facts->limits, "memory");
  if (request == limit || request > context.node_memory_bytes || context.node_memory_bytes <= 0) return 0;
  return static_cast<std::int64_t>(static_cast<double>(request) / static_cast<double>(context.node_memory_bytes) *
                                   static_cast<double>(context.swap.capacity_bytes));
}

json::Object container_resources(const PodContext& context, const json::Value& container) {
  const std::string_view name = json::get_string(container, {"name"});
  const auto found = std::ranges::find(context.facts.containers, name, &eviction::ContainerFacts::name);
  eviction::ContainerFacts facts;
  if (found != context.facts.containers.end()) facts = *found;
  limit_by_pod(context.facts, facts);
  json::Object out;
  const std::int64_t limit_milli = milli_of(facts.limits, "cpu");
  const std::int64_t request_milli = facts.requests.contains("cpu") ? milli_of(facts.requests, "cpu") : limit_milli;
  out["cpu_period"] = "100000";
  out["cpu_shares"] = std::to_string(cpu_shares(request_milli));
  // -1 takes an earlier quota away.
  const bool has_quota = limit_milli > 0 && !context.with_own_cpus.contains(std::string(name));
  out["cpu_quota"] = std::to_string(has_quota ? cpu_quota_us(limit_milli) : -1);
  const std::int64_t memory = value_of(facts.limits, "memory");
  if (memory > 0) out["memory_limit_in_bytes"] = std::to_string(memory);
  out["oom_score_adj"] =
      std::to_string(eviction::oom_score_adjust(context.facts, facts, std::max<std::int64_t>(context.node_memory_bytes, 1)));
  json::Object unified;
  if (context.cgroup_v2) unified["memory.oom.group"] = "1";  // A container dies as a whole.
  if (context.swap.is_counted && context.cgroup_v2)
    unified["memory.swap.max"] = std::to_string(swap_limit_bytes(context, container));
  else if (context.swap.is_counted && memory > 0)
    out["memory_swap_limit_in_bytes"] = std::to_string(memory);  // Memory and swap together: no swap.
  if (!unified.empty()) out["unified"] = std::move(unified);
  return out;
}

json::Value resources_in_force(json::Value own, const json::Value& of_pod) {
  for (const std::string_view name : {"cpu", "memory"})
    if (const std::string whole(json::get_string(of_pod, {"limits", name}));
        !whole.empty() && json::get_string(own, {"limits", name}).empty())
      json::set(own, {"limits", name}, json::Value(whole));
  return own;
}

json::Value sandbox_config(const PodContext& context, int attempt) {
  json::Object out;
  out["metadata"] =
      json::Object{{"name", context.spec.name}, {"uid", context.spec.uid}, {"namespace", context.spec.ns}, {"attempt", attempt}};
  // A sandbox in the machine's network keeps the machine's name.
  if (!context.spec.host_network) out["hostname"] = context.names.hostname;
  out["log_directory"] = context.log_directory;
  out["dns_config"] = json::Object{{"servers", string_array(context.dns.servers)},
                                   {"searches", string_array(context.dns.searches)},
                                   {"options", string_array(context.dns.options)}};
  out["labels"] = pod_labels(context);
  json::Object annotations;
  for (const auto& [key, value] : json::get_object(context.pod, {"metadata", "annotations"}))
    if (value.is_string() && key != "kubectl.kubernetes.io/last-applied-configuration") annotations[key] = value;
  out["annotations"] = std::move(annotations);
  json::Object linux_config;
  linux_config["cgroup_parent"] = context.cgroup_parent;
  json::Object security = common_security(context, nullptr);
  bool privileged = false;
  for (const std::string_view list : {"initContainers", "containers"})
    for (const json::Value& container : json::get_array(context.pod, {"spec", list}))
      privileged = privileged || json::get_bool(container, {"securityContext", "privileged"});
  security["privileged"] = privileged;
  // The pause process runs unprivileged under the runtime's own profile whatever its pod may do.
  security["seccomp"] = json::Object{{"profile_type", "RuntimeDefault"}};
  security.erase("apparmor");
  linux_config["security_context"] = std::move(security);
  json::Object sysctls;
  for (const json::Value& sysctl : json::get_array(context.pod, {"spec", "securityContext", "sysctls"}))
    sysctls[json::get_string(sysctl, {"name"})] = json::get_string(sysctl, {"value"});
  if (!sysctls.empty()) linux_config["sysctls"] = std::move(sysctls);
  out["linux"] = std::move(linux_config);
  if (json::Array ports = port_mappings(context); !ports.empty()) out["port_mappings"] = std::move(ports);
  return out;
}

Result<ContainerPlan> container_config(const PodContext& context, std::size_t index, int attempt, const ObjectSource& objects) {
  const json::Value& container = container_spec(context.pod, index);
  const std::string name(json::get_string(container, {"name"}));
  auto variables = container_environment(context, container, objects);
  if (!variables) return std::unexpected(variables.error());
  ContainerPlan plan;
  plan.variables.insert(variables->begin(), variables->end());
  json::Object out;
  out["metadata"] = json::Object{{"name", name}, {"attempt", attempt}};
  out["image"] = json::Object{{"image", json::get_string(container, {"image"})}};
  out["command"] = expanded_words(container, "command", plan.variables);
  out["args"] = expanded_words(container, "args", plan.variables);
  out["working_dir"] = json::get_string(container, {"workingDir"});
  json::Array envs;
  for (const auto& [key, value] : *variables) envs.push_back(json::Object{{"key", key}, {"value", value}});
  out["envs"] = std::move(envs);
  out["labels"] = json::Object{{"io.kubernetes.pod.name", context.spec.name},
                               {"io.kubernetes.pod.namespace", context.spec.ns},
                               {"io.kubernetes.pod.uid", context.spec.uid},
                               {"io.kubernetes.container.name", name}};
  out["annotations"] =
      json::Object{{"io.kubernetes.container.restartCount", std::to_string(attempt)},
                   {"io.kubernetes.container.hash", container_hash(container)},
                   {"io.kubernetes.container.terminationMessagePath", json::get_string(container, {"terminationMessagePath"})},
                   {"io.kubernetes.container.terminationMessagePolicy", json::get_string(container, {"terminationMessagePolicy"}, "File")},
                   {"io.kubernetes.pod.terminationGracePeriod", std::to_string(context.facts.grace_period_seconds.value_or(30))}};
  out["log_path"] = fmt::format("{}/{}.log", name, attempt);
  out["stdin"] = json::get_bool(container, {"stdin"});
  out["stdin_once"] = json::get_bool(container, {"stdinOnce"});
  out["tty"] = json::get_bool(container, {"tty"});
  out["linux"] =
      json::Object{{"resources", container_resources(context, container)}, {"security_context", container_security(context, container)}};
  if (const auto devices = add_block_volumes(context.volumes, container_spec(context.pod, index), out); !devices)
    return std::unexpected(devices.error());
  plan.config = std::move(out);
  return plan;
}

std::optional<std::string> check_run_as_non_root(const PodContext& context, const json::Value& container, const json::Value& image_status) {
  const json::Value* wanted = security_setting(context, &container, "runAsNonRoot");
  if (!wanted || !wanted->is_bool() || !wanted->get_bool()) return std::nullopt;
  const std::string who = fmt::format("(pod: \"{}_{}({})\", container: {})", context.spec.name, context.spec.ns, context.spec.uid,
                                      json::get_string(container, {"name"}));
  if (const auto user = security_number(context, &container, "runAsUser")) {
    if (*user != 0) return std::nullopt;
    return "container's runAsUser breaks non-root policy " + who;
  }
  const std::string_view name = json::get_string(image_status, {"image", "username"});
  if (!name.empty())
    return fmt::format("container has runAsNonRoot and image has non-numeric user ({}), cannot verify user is non-root {}", name, who);
  const std::string_view uid = json::get_string(image_status, {"image", "uid", "value"});
  if (uid.empty() || uid == "0") return "container has runAsNonRoot and image will run as root " + who;
  return std::nullopt;
}

}  // namespace berth::node::agent
