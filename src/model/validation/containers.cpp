// Containers of pods and pod templates (validateContainerCommon and what stands around it).
#include <fmt/format.h>

#include "model/validation/pod_parts.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_string;
using Strings = std::vector<std::string_view>;

constexpr std::size_t kMaxRestartRules = 20, kMaxRestartExitCodes = 255;

/// An enum that must be given.
void required_value(const Value& object, std::string_view key, const Path& at, const Strings& supported, Errors& errors) {
  if (get_string(object, {key}).empty())
    errors.required(at / key);
  else
    supported_value(object, key, at, supported, errors);
}

// ---- probes and hooks

void port_reference(const Value& object, std::string_view key, const Path& at, Errors& errors) {
  const Value* port = json::find(object, key);
  if (port == nullptr) return errors.invalid(at / key, Value(0), check_port_number(0));
  if (port->is_int64()) {
    if (const std::string why = check_port_number(port->get_int64()); !why.empty()) errors.invalid(at / key, *port, why);
  } else if (port->is_string()) {
    if (const std::string why = check_port_name(json::as_view(*port)); !why.empty()) errors.invalid(at / key, *port, why);
  }
}

void exec_action(const Value& action, const Path& at, Errors& errors) {
  if (get_array(action, {"command"}).empty()) errors.required(at / "command");
}

void http_action(const Value& action, const Path& at, Errors& errors) {
  if (get_string(action, {"path"}).empty()) errors.required(at / "path");
  port_reference(action, "port", at, errors);
  supported_value(action, "scheme", at, {"HTTP", "HTTPS"}, errors, true);
  for (const Value& header : get_array(action, {"httpHeaders"}))
    if (const std::string_view name = get_string(header, {"name"});
        name.empty() || !std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; }))
      errors.invalid(at / "httpHeaders", name,
                     "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
                     "validation is '[-A-Za-z0-9]+')");
}

void handler(const Value& action, const PodContext& context, const Path& at, Errors& errors) {
  bool found = false;
  for (const char* key : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const Value* one = json::find(action, key);
    if (one == nullptr) continue;
    const std::string_view name = key;
    const Path here = at / name;
    if (std::exchange(found, true)) {
      errors.forbidden(here, "may not specify more than 1 handler type");
    } else if (name == "exec") {
      exec_action(*one, here, errors);
    } else if (name == "httpGet") {
      http_action(*one, here, errors);
    } else if (name == "sleep") {
      const std::int64_t seconds = get_int(*one, {"seconds"});
      if (context.grace && (seconds < 0 || seconds > *context.grace))
        errors.invalid(here, Value(seconds),
                       fmt::format("must be non-negative and less than terminationGracePeriodSeconds ({})", *context.grace));
    } else {
      port_reference(*one, "port", here, errors);
    }
  }
  if (!found) errors.required(at, "must specify a handler type");
}

void probe(const Value& container, std::string_view key, const PodContext& context, const Path& container_at, Errors& errors) {
  const Value* object = json::find(container, key);
  if (object == nullptr) return;
  const Path at = container_at / key;
  handler(*object, context, at, errors);
  for (const char* name : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"})
    non_negative(*object, name, at, errors);
  if (const Value* grace = json::find(*object, "terminationGracePeriodSeconds")) {
    if (get_int(*object, {"terminationGracePeriodSeconds"}) <= 0)
      errors.invalid(at / "terminationGracePeriodSeconds", *grace, "must be greater than 0");
    if (key == "readinessProbe") errors.invalid(at / "terminationGracePeriodSeconds", *grace, "must not be set for readinessProbes");
  }
  if (key != "readinessProbe" && get_int(*object, {"successThreshold"}) != 1)
    errors.invalid(at / "successThreshold", Value(get_int(*object, {"successThreshold"})), "must be 1");
}

void probes_and_hooks(const Value& container, const PodContext& context, const Path& at, Errors& errors) {
  if (const Value* lifecycle = json::find(container, "lifecycle")) {
    const Path here = at / "lifecycle";
    for (const char* hook : {"postStart", "preStop"})
      if (const Value* action = json::find(*lifecycle, hook)) handler(*action, context, here / hook, errors);
  }
  for (const char* key : {"livenessProbe", "readinessProbe", "startupProbe"}) probe(container, key, context, at, errors);
}

// ---- ports

void ports(const Value& container, const Path& container_at, Errors& errors) {
  const Path at = container_at / "ports";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& port : get_array(container, {"ports"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(port, {"name"});
    if (!name.empty()) {
      if (const std::string why = check_port_name(name); !why.empty())
        errors.invalid(one / "name", name, why);
      else if (!names.insert(name).second)
        errors.duplicate(one / "name", Value(name));
    }
    const std::int64_t number = get_int(port, {"containerPort"}), host = get_int(port, {"hostPort"});
    if (number == 0)
      errors.required(one / "containerPort");
    else if (const std::string why = check_port_number(number); !why.empty())
      errors.invalid(one / "containerPort", Value(number), why);
    if (host != 0)
      if (const std::string why = check_port_number(host); !why.empty()) errors.invalid(one / "hostPort", Value(host), why);
    required_value(port, "protocol", one, {"SCTP", "TCP", "UDP"}, errors);
  }
}

using HostPorts = std::set<std::string>;

void host_ports(const Value& container, const Path& container_at, HostPorts& taken, Errors& errors) {
  const Path at = container_at / "ports";
  std::size_t i = 0;
  for (const Value& port : get_array(container, {"ports"})) {
    const Path one = at[i++];
    const std::int64_t host = get_int(port, {"hostPort"});
    if (host == 0) continue;
    const std::string text = fmt::format("{}/{}/{}", get_string(port, {"protocol"}), get_string(port, {"hostIP"}), host);
    if (!taken.insert(text).second) errors.duplicate(one / "hostPort", Value(text));
  }
}

// ---- containers

void resize_policy(const Value& container, const PodContext& context, const Path& container_at, Errors& errors) {
  const Path at = container_at / "resizePolicy";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& policy : get_array(container, {"resizePolicy"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(policy, {"resourceName"}), restart = get_string(policy, {"restartPolicy"});
    if (!names.insert(name).second) errors.duplicate(one, Value(name));
    if (name.empty())
      errors.required(at);
    else if (name != "cpu" && name != "memory")
      errors.not_supported(at, name, {"cpu", "memory"});
    if (restart.empty())
      errors.required(at);
    else if (restart != "NotRequired" && restart != "RestartContainer")
      errors.not_supported(at, restart, {"NotRequired", "RestartContainer"});
    if (context.restart_policy == "Never" && restart != "NotRequired")
      errors.invalid(at, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
  }
}

void common(const Value& container, const PodContext& context, const Path& at, Errors& errors) {
  const std::string_view name = get_string(container, {"name"}), image = get_string(container, {"image"});
  if (name.empty())
    errors.required(at / "name");
  else if (const std::string why = check_dns1123_label(name); !why.empty())
    errors.invalid(at / "name", name, why);
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  if (image.empty())
    errors.required(at / "image");
  else if (context.owner.is_pod && (is_space(image.front()) || is_space(image.back())))
    errors.invalid(at / "image", image, "must not have leading or trailing whitespace");
  required_value(container, "terminationMessagePolicy", at, {"File", "FallbackToLogsOnError"}, errors);
  ports(container, at, errors);
  environment(container, at, errors);
  mounts(context.volumes, container, at, errors);
  required_value(container, "imagePullPolicy", at, {"Always", "IfNotPresent", "Never"}, errors);
  if (const Value* resources = json::find(container, "resources"))
    resource_requirements(*resources, context.claims, false, at / "resources", errors);
  resize_policy(container, context, at, errors);
  container_security_context(container, context.host_users, at, errors);
}

/// A container's own restart policy, and its rules by exit code.
void restart_policy(const Value& container, const Path& at, Errors& errors) {
  const json::Array& rules = get_array(container, {"restartPolicyRules"});
  if (json::find(container, "restartPolicy") == nullptr) {
    if (rules.empty()) return;
    errors.required(at / "restartPolicy", "must specify restartPolicy when restart rules are used");
  }
  supported_value(container, "restartPolicy", at, {"Always", "Never", "OnFailure"}, errors, true);
  const Path rules_at = at / "restartPolicyRules";
  if (rules.size() > kMaxRestartRules) errors.too_many(rules_at, rules.size(), kMaxRestartRules);
  std::size_t i = 0;
  for (const Value& rule : rules) {
    const Path one = rules_at[i++];
    const std::string_view action = get_string(rule, {"action"});
    if (action != "Restart" && action != "RestartAllContainers")
      errors.not_supported(one / "action", action, {"Restart", "RestartAllContainers"});
    const Path codes_at = one / "exitCodes";
    const Value* codes = json::find(rule, "exitCodes");
    if (codes == nullptr) {
      errors.required(codes_at, "must be specified");
      continue;
    }
    if (const std::string_view op = get_string(*codes, {"operator"}); op != "In" && op != "NotIn")
      errors.not_supported(codes_at / "operator", op, {"In", "NotIn"});
    if (const std::size_t count = get_array(*codes, {"values"}).size(); count > kMaxRestartExitCodes)
      errors.too_many(codes_at / "values", count, kMaxRestartExitCodes);
  }
}

void init_container(const Value& container, const PodContext& context, const Path& at, Errors& errors) {
  common(container, context, at, errors);
  const Value* policy = json::find(container, "restartPolicy");
  const bool is_sidecar = policy != nullptr && *policy == "Always";
  if (policy == nullptr && !get_array(container, {"restartPolicyRules"}).empty())
    errors.required(at / "restartPolicy", "must specify restartPolicy when restart rules are used");
  if (policy != nullptr) restart_policy(container, at, errors);
  HostPorts taken;
  host_ports(container, at, taken, errors);
  if (is_sidecar) {
    probes_and_hooks(container, context, at, errors);
  } else {
    for (const char* key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"})
      if (json::find(container, key) != nullptr)
        errors.forbidden(at / key, "may not be set for init containers without restartPolicy=Always");
    const Path list = at / "resizePolicy";
    std::size_t i = 0;
    for (const Value& one : get_array(container, {"resizePolicy"})) {
      const Path here = list[i++];
      if (get_string(one, {"restartPolicy"}) == "RestartContainer")
        errors.invalid(here / "restartPolicy", "RestartContainer", "must not be set to 'RestartContainer' for non-sidecar initContainers");
    }
  }
}

void ephemeral_container(const Value& container, const std::set<std::string_view>& targets, const Path& at, Errors& errors) {
  static constexpr std::string_view kForbidden[] = {"ports",          "resources",          "resizePolicy",
                                                    "restartPolicy",  "restartPolicyRules", "livenessProbe",
                                                    "readinessProbe", "startupProbe",       "lifecycle"};
  const std::string_view target = get_string(container, {"targetContainerName"});
  if (!target.empty() && !targets.contains(target)) errors.not_found(at / "targetContainerName", Value(target));
  for (const std::string_view key : kForbidden) {
    const Value* value = json::find(container, key);
    const bool is_set = value != nullptr && !(value->is_object() && key == "resources" && value->get_object().empty()) &&
                        !(value->is_array() && value->get_array().empty());
    if (is_set) errors.forbidden(at / key, "cannot be set for an Ephemeral Container");
  }
  const Path mounts_at = at / "volumeMounts";
  std::size_t i = 0;
  for (const Value& mount : get_array(container, {"volumeMounts"})) {
    const Path one = mounts_at[i++];
    for (const char* key : {"subPath", "subPathExpr"})
      if (!get_string(mount, {key}).empty()) errors.forbidden(one / key, "cannot be set for an Ephemeral Container");
  }
}

/// With the host's network the host's ports are the container's.
void host_network_ports(const PodContext& context, const Path& at, Errors& errors) {
  if (!get_bool(context.spec, {"hostNetwork"})) return;
  std::size_t i = 0;
  for (const Value& container : get_array(context.spec, {"containers"})) {
    const Path one = at[i++];
    const Path list = one / "ports";
    std::size_t k = 0;
    for (const Value& port : get_array(container, {"ports"})) {
      const Path port_at = list[k++];
      const std::int64_t host = get_int(port, {"hostPort"}), number = get_int(port, {"containerPort"});
      if ((context.owner.is_pod || host != 0) && host != number)
        errors.invalid(port_at / "hostPort", Value(host), "must match `containerPort` when `hostNetwork` is true");
    }
  }
}

}  // namespace

void pod_containers(const PodContext& context, const Path& spec_at, Errors& errors) {
  std::set<std::string_view> names;
  const Path at = spec_at / "containers", init_at = spec_at / "initContainers", ephemeral_at = spec_at / "ephemeralContainers";
  const auto distinct = [&](const Value& container, const Path& here) {
    const std::string_view name = get_string(container, {"name"});
    if (!names.insert(name).second) errors.duplicate(here / "name", Value(name));
  };
  if (get_array(context.spec, {"containers"}).empty()) errors.required(at);
  HostPorts taken;
  std::size_t i = 0;
  for (const Value& one : get_array(context.spec, {"containers"})) {
    const Path here = at[i++];
    common(one, context, here, errors);
    distinct(one, here);
    probes_and_hooks(one, context, here, errors);
    restart_policy(one, here, errors);
    host_ports(one, here, taken, errors);
  }
  i = 0;
  for (const Value& one : get_array(context.spec, {"initContainers"})) {
    const Path here = init_at[i++];
    init_container(one, context, here, errors);
    if (get_array(context.spec, {"containers"}).empty() || !get_string(one, {"name"}).empty()) distinct(one, here);
  }
  const std::set<std::string_view> targets = names;
  i = 0;
  for (const Value& one : get_array(context.spec, {"ephemeralContainers"})) {
    const Path here = ephemeral_at[i++];
    common(one, context, here, errors);
    distinct(one, here);
    ephemeral_container(one, targets, here, errors);
  }
  host_network_ports(context, at, errors);
}

}  // namespace berth::model::validation
