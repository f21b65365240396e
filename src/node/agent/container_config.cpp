#include "node/agent/container_config.h"

#include <cmath>

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

/// A resourceFieldRef: the amount divided by the divisor, rounded up; limits that are not set count as the node's.
std::string resource_field(const PodContext& context, const eviction::ContainerFacts& own, const json::Value& reference) {
  const std::string_view resource = json::get_string(reference, {"resource"}), named = json::get_string(reference, {"containerName"});
  const eviction::ContainerFacts* container = &own;
  for (const auto& candidate : context.facts.containers)
    if (!named.empty() && candidate.name == named) container = &candidate;
  const bool is_limit = resource.starts_with("limits.");
  const std::string_view name = resource.substr(resource.find('.') + 1);
  const eviction::ResourceList& list = is_limit ? container->limits : container->requests;
  const auto divisor = model::Quantity::parse(json::get_string(reference, {"divisor"}));
  const double by = divisor && divisor->sign() > 0 ? divisor->as_double() : 1;
  double amount = 0;
  if (const auto found = list.find(name); found != list.end()) amount = found->second.as_double();
  else if (is_limit && name == "memory") amount = static_cast<double>(context.node_memory_bytes);
  return std::to_string(static_cast<std::int64_t>(std::ceil(amount / by)));
}

Result<std::optional<std::string>> referenced_key(const PodContext& context, const json::Value& reference, bool secret, const ObjectSource& objects) {
  const std::string name(json::get_string(reference, {"name"})), key(json::get_string(reference, {"key"}));
  const bool optional = json::get_bool(reference, {"optional"});
  const char* kind = secret ? "secret" : "configmap";
  const auto object = (secret ? objects.secret : objects.config_map)(context.spec.ns, name);
  if (!object) {
    if (optional && object.error().code == ErrorCode::kNotFound) return std::nullopt;
    return std::unexpected(object.error());
  }
  const json::Object& data = json::get_object(*object, {"data"});
  const json::Value* value = data.if_contains(key);
  if (!value || !value->is_string()) {
    if (optional) return std::nullopt;
    return fail(ErrorCode::kNotFound, fmt::format("couldn't find key {} in {} {}/{}", key, kind == std::string_view("secret") ? "Secret" : "ConfigMap", context.spec.ns, name));
  }
  return std::string(json::as_view(*value));
}

Result<std::vector<std::pair<std::string, std::string>>> environment(const PodContext& context, const json::Value& container, const eviction::ContainerFacts& facts,
                                                                     const ObjectSource& objects) {
  std::vector<std::pair<std::string, std::string>> out;
  std::map<std::string, std::string> known;
  const auto add = [&](std::string name, std::string value) {
    known[name] = value;
    std::erase_if(out, [&](const auto& entry) { return entry.first == name; });
    out.emplace_back(std::move(name), std::move(value));
  };
  for (const json::Value& source : json::get_array(container, {"envFrom"})) {
    const bool secret = json::find(source, "secretRef") != nullptr;
    const json::Value* reference = json::find(source, secret ? "secretRef" : "configMapRef");
    if (!reference) continue;
    const auto object = (secret ? objects.secret : objects.config_map)(context.spec.ns, std::string(json::get_string(*reference, {"name"})));
    if (!object) {
      if (json::get_bool(*reference, {"optional"}) && object.error().code == ErrorCode::kNotFound) continue;
      return std::unexpected(object.error());
    }
    for (const auto& [key, value] : json::get_object(*object, {"data"}))
      if (value.is_string()) add(std::string(json::get_string(source, {"prefix"})) + std::string(key), std::string(json::as_view(value)));
  }
  for (const json::Value& variable : json::get_array(container, {"env"})) {
    const std::string name(json::get_string(variable, {"name"}));
    const json::Value* from = json::find(variable, "valueFrom");
    if (!from) {
      add(name, expand_variables(json::get_string(variable, {"value"}), known));
    } else if (json::find(*from, "fieldRef")) {
      const auto value = downward_field(context, json::get_string(*from, {"fieldRef", "fieldPath"}));
      if (!value) return fail(ErrorCode::kInvalid, fmt::format("unsupported fieldPath: {}", json::get_string(*from, {"fieldRef", "fieldPath"})));
      add(name, *value);
    } else if (const json::Value* resource = json::find(*from, "resourceFieldRef")) {
      add(name, resource_field(context, facts, *resource));
    } else {
      const bool secret = json::find(*from, "secretKeyRef") != nullptr;
      const json::Value* reference = json::find(*from, secret ? "secretKeyRef" : "configMapKeyRef");
      if (!reference) continue;
      const auto value = referenced_key(context, *reference, secret, objects);
      if (!value) return std::unexpected(value.error());
      if (*value) add(name, **value);
    }
  }
  return out;
}

json::Object namespace_options(const PodContext& context) {
  json::Object out;
  if (context.spec.host_network) out["network"] = "NODE";
  if (json::get_bool(context.pod, {"spec", "hostPID"})) out["pid"] = "NODE";
  else if (json::get_bool(context.pod, {"spec", "shareProcessNamespace"})) out["pid"] = "POD";
  else out["pid"] = "CONTAINER";
  if (json::get_bool(context.pod, {"spec", "hostIPC"})) out["ipc"] = "NODE";
  return out;
}

/// A security setting of the container, or of its pod.
const json::Value* security_setting(const PodContext& context, const json::Value& container, std::string_view name) {
  if (const json::Value* own = json::find(container, {"securityContext", name})) return own;
  return json::find(context.pod, {"spec", "securityContext", name});
}

json::Object security_context(const PodContext& context, const json::Value& container) {
  json::Object out;
  out["namespace_options"] = namespace_options(context);
  out["privileged"] = json::get_bool(container, {"securityContext", "privileged"});
  out["readonly_rootfs"] = json::get_bool(container, {"securityContext", "readOnlyRootFilesystem"});
  if (const json::Value* user = security_setting(context, container, "runAsUser"); user && user->is_int64())
    out["run_as_user"] = json::Object{{"value", std::to_string(user->get_int64())}};
  if (const json::Value* group = security_setting(context, container, "runAsGroup"); group && group->is_int64() && out.contains("run_as_user"))
    out["run_as_group"] = json::Object{{"value", std::to_string(group->get_int64())}};
  if (const json::Value* escalation = json::find(container, {"securityContext", "allowPrivilegeEscalation"}); escalation && escalation->is_bool())
    out["no_new_privs"] = !escalation->get_bool();
  json::Array groups;
  for (const json::Value& group : json::get_array(context.pod, {"spec", "securityContext", "supplementalGroups"}))
    if (group.is_int64()) groups.push_back(json::Value(std::to_string(group.get_int64())));
  if (const json::Value* fs_group = json::find(context.pod, {"spec", "securityContext", "fsGroup"}); fs_group && fs_group->is_int64())
    groups.push_back(json::Value(std::to_string(fs_group->get_int64())));
  if (!groups.empty()) out["supplemental_groups"] = std::move(groups);
  json::Object capabilities;
  for (const auto& [ours, theirs] : {std::pair("add", "add_capabilities"), std::pair("drop", "drop_capabilities")})
    if (const json::Array& list = json::get_array(container, {"securityContext", "capabilities", ours}); !list.empty()) capabilities[theirs] = list;
  if (!capabilities.empty()) out["capabilities"] = std::move(capabilities);
  return out;
}

json::Object resources(const PodContext& context, const eviction::ContainerFacts& facts) {
  json::Object out;
  const std::int64_t limit_milli = milli_of(facts.limits, "cpu");
  const std::int64_t request_milli = facts.requests.contains("cpu") ? milli_of(facts.requests, "cpu") : limit_milli;
  out["cpu_period"] = "100000";
  out["cpu_shares"] = std::to_string(cpu_shares(request_milli));
  if (limit_milli > 0) out["cpu_quota"] = std::to_string(cpu_quota_us(limit_milli));
  if (const std::int64_t memory = value_of(facts.limits, "memory"); memory > 0) out["memory_limit_in_bytes"] = std::to_string(memory);
  out["oom_score_adj"] = std::to_string(eviction::oom_score_adjust(context.facts, facts, std::max<std::int64_t>(context.node_memory_bytes, 1)));
  return out;
}

Result<json::Array> mounts(const PodContext& context, const json::Value& container, const std::map<std::string, std::string>& variables) {
  json::Array out;
  for (const json::Value& mount : json::get_array(container, {"volumeMounts"})) {
    const std::string name(json::get_string(mount, {"name"}));
    const auto volume = context.volumes.find(name);
    if (volume == context.volumes.end()) return fail(ErrorCode::kInvalid, fmt::format("volume \"{}\" is not available on this node", name));
    std::string host = volume->second;
    std::string sub(json::get_string(mount, {"subPath"}));
    if (const std::string_view expression = json::get_string(mount, {"subPathExpr"}); !expression.empty()) sub = expand_variables(expression, variables);
    if (!sub.empty()) {
      if (sub.starts_with('/') || ("/" + sub + "/").find("/../") != std::string::npos) return fail(ErrorCode::kInvalid, fmt::format("subPath \"{}\" must stay within its volume", sub));
      host += "/" + sub;
    }
    out.push_back(json::Object{{"container_path", json::get_string(mount, {"mountPath"})}, {"host_path", host}, {"readonly", json::get_bool(mount, {"readOnly"})}});
  }
  return out;
}

json::Array expanded_words(const json::Value& container, std::string_view list, const std::map<std::string, std::string>& variables) {
  json::Array out;
  for (const json::Value& word : json::get_array(container, {list}))
    if (word.is_string()) out.push_back(json::Value(expand_variables(json::as_view(word), variables)));
  return out;
}

}  // namespace

std::int64_t cpu_shares(std::int64_t milli) { return std::clamp<std::int64_t>(milli * 1024 / 1000, 2, 262144); }
std::int64_t cpu_quota_us(std::int64_t milli) { return std::max<std::int64_t>(milli * 100, 1000); }

const json::Value& container_spec(const json::Value& pod, std::size_t index) {
  const json::Array& init = json::get_array(pod, {"spec", "initContainers"});
  return index < init.size() ? init[index] : json::get_array(pod, {"spec", "containers"})[index - init.size()];
}

std::string expand_variables(std::string_view text, const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 >= text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += '$';
      ++i;
    } else if (const std::size_t end = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos; end != std::string_view::npos) {
      const auto found = variables.find(std::string(text.substr(i + 2, end - i - 2)));
      out += found == variables.end() ? std::string(text.substr(i, end - i + 1)) : found->second;
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<std::string> downward_field(const PodContext& context, std::string_view path) {
  if (path == "metadata.name") return context.spec.name;
  if (path == "metadata.namespace") return context.spec.ns;
  if (path == "metadata.uid") return context.spec.uid;
  if (path == "spec.nodeName") return context.node_name;
  if (path == "spec.serviceAccountName") return std::string(json::get_string(context.pod, {"spec", "serviceAccountName"}));
  if (path == "status.podIP" || path == "status.podIPs") return context.pod_ip;
  if (path == "status.hostIP" || path == "status.hostIPs") return context.host_ip;
  for (const std::string_view map : {"labels", "annotations"}) {
    const std::string prefix = fmt::format("metadata.{}", map);
    if (!path.starts_with(prefix)) continue;
    const json::Object& values = json::get_object(context.pod, {"metadata", map});
    if (path == prefix) {
      std::string out;
      for (const auto& [key, value] : values) out += fmt::format("{}={}\n", std::string_view(key), json::serialize(value));
      return out;
    }
    if (path.size() < prefix.size() + 4 || path[prefix.size()] != '[') return std::nullopt;
    const json::Value* value = values.if_contains(path.substr(prefix.size() + 2, path.size() - prefix.size() - 4));
    return value && value->is_string() ? std::string(json::as_view(*value)) : std::string();
  }
  return std::nullopt;
}

json::Value sandbox_config(const PodContext& context, int attempt) {
  json::Object out;
  out["metadata"] = json::Object{{"name", context.spec.name}, {"uid", context.spec.uid}, {"namespace", context.spec.ns}, {"attempt", attempt}};
  // A sandbox in the machine's network keeps the machine's name.
  std::string hostname(json::get_string(context.pod, {"spec", "hostname"}, context.spec.name));
  if (!context.spec.host_network) out["hostname"] = hostname.substr(0, 63);
  out["log_directory"] = context.log_directory;
  out["labels"] = pod_labels(context);
  json::Object linux_config;
  linux_config["cgroup_parent"] = context.cgroup_parent;
  json::Object security;
  security["namespace_options"] = namespace_options(context);
  linux_config["security_context"] = std::move(security);
  out["linux"] = std::move(linux_config);
  json::Array ports;
  for (const json::Value& container : json::get_array(context.pod, {"spec", "containers"}))
    for (const json::Value& port : json::get_array(container, {"ports"}))
      if (json::get_int(port, {"hostPort"}) > 0 && !context.spec.host_network)
        ports.push_back(json::Object{{"container_port", json::get_int(port, {"containerPort"})}, {"host_port", json::get_int(port, {"hostPort"})},
                                     {"protocol", json::get_string(port, {"protocol"}, "TCP")}});
  if (!ports.empty()) out["port_mappings"] = std::move(ports);
  return out;
}

Result<json::Value> container_config(const PodContext& context, std::size_t index, int attempt, const ObjectSource& objects) {
  const json::Value& container = container_spec(context.pod, index);
  const std::string name(json::get_string(container, {"name"}));
  const auto facts = std::ranges::find(context.facts.containers, name, &eviction::ContainerFacts::name);
  if (facts == context.facts.containers.end()) return fail(ErrorCode::kInternal, "container " + name + " is not in the pod");
  auto variables = environment(context, container, *facts, objects);
  if (!variables) return std::unexpected(variables.error());
  const std::map<std::string, std::string> known(variables->begin(), variables->end());
  auto mounted = mounts(context, container, known);
  if (!mounted) return std::unexpected(mounted.error());
  json::Object out;
  out["metadata"] = json::Object{{"name", name}, {"attempt", attempt}};
  out["image"] = json::Object{{"image", json::get_string(container, {"image"})}};
  out["command"] = expanded_words(container, "command", known);
  out["args"] = expanded_words(container, "args", known);
  out["working_dir"] = json::get_string(container, {"workingDir"});
  json::Array envs;
  for (const auto& [key, value] : *variables) envs.push_back(json::Object{{"key", key}, {"value", value}});
  out["envs"] = std::move(envs);
  out["mounts"] = std::move(*mounted);
  json::Object labels = pod_labels(context);
  labels["io.kubernetes.container.name"] = name;
  out["labels"] = std::move(labels);
  out["annotations"] = json::Object{{"io.kubernetes.container.restartCount", std::to_string(attempt)}};
  out["log_path"] = fmt::format("{}/{}.log", name, attempt);
  out["stdin"] = json::get_bool(container, {"stdin"});
  out["stdin_once"] = json::get_bool(container, {"stdinOnce"});
  out["tty"] = json::get_bool(container, {"tty"});
  out["linux"] = json::Object{{"resources", resources(context, *facts)}, {"security_context", security_context(context, container)}};
  return out;
}

}  // namespace berth::node::agent
