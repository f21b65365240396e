// Pods and pod templates (pkg/apis/core/validation/validation.go, ValidatePodSpec and below).
#include <fmt/format.h>

#include <map>
#include <set>

#include "model/quantity.h"
#include "model/schema.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

bool contains(const Strings& list, std::string_view value) { return std::find(list.begin(), list.end(), value) != list.end(); }

void one_of(const Value& object, std::string_view key, const Path& at, const Strings& supported, Errors& errors, bool required = false) {
  const std::string_view value = get_string(object, {key});
  if (value.empty()) {
    if (required) errors.required(at / key);
  } else if (!contains(supported, value)) {
    errors.not_supported(at / key, value, supported);
  }
}

// ---- probes, handlers, env, ports

void port_reference(const Value& object, std::string_view key, const Path& at, Errors& errors) {
  const Value* port = json::find(object, key);
  if (port == nullptr) return errors.invalid(at / key, Value(0), check_port_number(0));
  if (port->is_int64()) {
    if (const std::string why = check_port_number(port->get_int64()); !why.empty()) errors.invalid(at / key, *port, why);
  } else if (port->is_string()) {
    if (const std::string why = check_port_name(json::as_view(*port)); !why.empty()) errors.invalid(at / key, *port, why);
  }
}

void handler(const Value& action, const Path& at, Errors& errors) {
  int count = 0;
  if (const Value* exec = json::find(action, "exec")) {
    ++count;
    if (get_array(*exec, {"command"}).empty()) errors.required(at / "exec" / "command");
  }
  if (const Value* get = json::find(action, "httpGet")) {
    const Path here = at / "httpGet";
    if (++count > 1) errors.forbidden(here, "may not specify more than 1 handler type");
    if (get_string(*get, {"path"}).empty()) errors.required(here / "path");
    port_reference(*get, "port", here, errors);
    one_of(*get, "scheme", here, {"HTTP", "HTTPS"}, errors);
    for (const Value& header : get_array(*get, {"httpHeaders"}))
      if (const std::string_view name = get_string(header, {"name"});
          name.empty() || !std::ranges::all_of(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; }))
        errors.invalid(here / "httpHeaders", name,
                       "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
                       "validation is '[-A-Za-z0-9]+')");
  }
  if (const Value* tcp = json::find(action, "tcpSocket")) {
    const Path here = at / "tcpSocket";
    if (++count > 1) errors.forbidden(here, "may not specify more than 1 handler type");
    port_reference(*tcp, "port", here, errors);
  }
  if (const Value* grpc = json::find(action, "grpc")) {
    const Path here = at / "grpc";
    if (++count > 1) errors.forbidden(here, "may not specify more than 1 handler type");
    port_reference(*grpc, "port", here, errors);
  }
  if (json::find(action, "sleep") != nullptr) ++count;
  if (count == 0) errors.required(at, "must specify a handler type");
}

void probe(const Value& container, std::string_view key, const Path& container_at, Errors& errors) {
  const Value* object = json::find(container, key);
  if (object == nullptr) return;
  const Path at = container_at / key;
  handler(*object, at, errors);
  for (const char* name : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"})
    non_negative(*object, name, at, errors);
  if (const Value* grace = json::find(*object, "terminationGracePeriodSeconds")) {
    if (key == "readinessProbe")
      errors.invalid(at / "terminationGracePeriodSeconds", *grace, "must not be set for readinessProbes");
    else if (get_int(*object, {"terminationGracePeriodSeconds"}) <= 0)
      errors.invalid(at / "terminationGracePeriodSeconds", *grace, "must be greater than 0");
  }
  if (key != "readinessProbe" && get_int(*object, {"successThreshold"}, 1) != 1)
    errors.invalid(at / "successThreshold", *json::find(*object, "successThreshold"), "must be 1");
}

void ports(const Value& container, const Path& container_at, bool host_network, Errors& errors) {
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
    if (host_network && host != 0 && host != number)
      errors.invalid(one / "hostPort", Value(host), "must match `containerPort` when `hostNetwork` is true");
    one_of(port, "protocol", one, {"SCTP", "TCP", "UDP"}, errors, true);
    if (const std::string_view ip = get_string(port, {"hostIP"}); !ip.empty() && !is_ip(ip))
      errors.invalid(one / "hostIP", ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  }
}

struct ContainerRules {
  const VolumeNames& volumes;
  bool is_init = false, host_network = false;
};

void container(const Value& object, const Path& at, const ContainerRules& rules, Errors& errors) {
  const std::string_view name = get_string(object, {"name"}), image = get_string(object, {"image"});
  if (name.empty())
    errors.required(at / "name");
  else if (const std::string why = check_dns1123_label(name); !why.empty())
    errors.invalid(at / "name", name, why);
  if (image.empty()) {
    errors.required(at / "image");
  } else if (image.front() == ' ' || image.back() == ' ') {
    errors.invalid(at / "image", image, "must not have leading or trailing whitespace");
  }
  const bool sidecar = rules.is_init && get_string(object, {"restartPolicy"}) == "Always";
  if (const std::string_view policy = get_string(object, {"restartPolicy"}); rules.is_init && !policy.empty() && policy != "Always")
    errors.not_supported(at / "restartPolicy", policy, {"Always"});
  if (!rules.is_init && json::find(object, "restartPolicy") != nullptr)
    errors.forbidden(at / "restartPolicy", "may not be set for non-init containers");
  if (rules.is_init && !sidecar) {
    for (const char* key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"})
      if (json::find(object, key) != nullptr) errors.forbidden(at / key, "may not be set for init containers without restartPolicy=Always");
  } else {
    for (const char* key : {"livenessProbe", "readinessProbe", "startupProbe"}) probe(object, key, at, errors);
    if (const Value* lifecycle = json::find(object, "lifecycle"))
      for (const char* hook : {"postStart", "preStop"})
        if (const Value* action = json::find(*lifecycle, hook)) handler(*action, at / "lifecycle" / hook, errors);
  }
  one_of(object, "imagePullPolicy", at, {"Always", "IfNotPresent", "Never"}, errors);
  one_of(object, "terminationMessagePolicy", at, {"FallbackToLogsOnError", "File"}, errors);
  ports(object, at, rules.host_network, errors);
  environment(object, at, errors);
  mounts(rules.volumes, object, at, errors);
  container_security_context(object, at, errors);
  if (const Value* r = json::find(object, "resources")) resources(*r, at / "resources", errors);
}

void containers(const Value& spec, const VolumeNames& volume_names, const Path& spec_at, bool is_template, Errors& errors) {
  std::set<std::string_view> names;
  ContainerRules rules{volume_names, false, get_bool(spec, {"hostNetwork"})};
  const Path at = spec_at / "containers", init_at = spec_at / "initContainers", ephemeral_at = spec_at / "ephemeralContainers";
  if (get_array(spec, {"containers"}).empty()) errors.required(at);
  std::size_t i = 0;
  std::set<std::tuple<std::string_view, std::string_view, std::int64_t>> host_ports;
  for (const Value& one : get_array(spec, {"containers"})) {
    const Path here = at[i++];
    container(one, here, rules, errors);
    const std::string_view name = get_string(one, {"name"});
    if (!name.empty() && !names.insert(name).second) errors.duplicate(here / "name", Value(name));
    const Path ports_at = here / "ports";
    std::size_t k = 0;
    for (const Value& port : get_array(one, {"ports"})) {
      const Path port_at = ports_at[k++];
      const std::int64_t host = get_int(port, {"hostPort"});
      if (host != 0 && !host_ports.emplace(get_string(port, {"protocol"}), get_string(port, {"hostIP"}), host).second)
        errors.duplicate(port_at / "hostPort",
                         Value(fmt::format("{}/{}/{}", get_string(port, {"protocol"}), get_string(port, {"hostIP"}), host)));
    }
  }
  rules.is_init = true;
  i = 0;
  for (const Value& one : get_array(spec, {"initContainers"})) {
    const Path here = init_at[i++];
    container(one, here, rules, errors);
    const std::string_view name = get_string(one, {"name"});
    if (!name.empty() && !names.insert(name).second) errors.duplicate(here / "name", Value(name));
  }
  if (is_template || !get_array(spec, {"ephemeralContainers"}).empty()) {
    i = 0;
    for (const Value& one : get_array(spec, {"ephemeralContainers"})) {
      const Path here = ephemeral_at[i++];
      const std::string_view name = get_string(one, {"name"});
      if (name.empty())
        errors.required(here / "name");
      else if (!names.insert(name).second)
        errors.duplicate(here / "name", Value(name));
    }
  }
}

void spread_constraints(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "topologySpreadConstraints";
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> seen;
  std::size_t i = 0;
  for (const Value& constraint : get_array(spec, {"topologySpreadConstraints"})) {
    const Path one = at[i++];
    const std::int64_t skew = get_int(constraint, {"maxSkew"});
    if (skew <= 0) errors.invalid(one / "maxSkew", Value(skew), "must be greater than zero");
    const std::string_view key = get_string(constraint, {"topologyKey"}), action = get_string(constraint, {"whenUnsatisfiable"});
    if (key.empty()) errors.required(one / "topologyKey", "can not be empty");
    if (action != "DoNotSchedule" && action != "ScheduleAnyway")
      errors.not_supported(one / "whenUnsatisfiable", action, {"DoNotSchedule", "ScheduleAnyway"});
    // The earlier of two equal ones is named.
    if (const auto [before, fresh] = seen.emplace(std::pair(key, action), i - 1); !fresh)
      errors.duplicate(at[before->second] / "{topologyKey, whenUnsatisfiable}", Value(fmt::format("{{{}, {}}}", key, action)));
    if (const Value* domains = json::find(constraint, "minDomains")) {
      if (get_int(constraint, {"minDomains"}) <= 0) errors.invalid(one / "minDomains", *domains, "must be greater than zero");
      if (action != "DoNotSchedule")
        errors.invalid(one / "minDomains", *domains,
                       fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", action));
    }
    one_of(constraint, "nodeAffinityPolicy", one, {"Honor", "Ignore"}, errors);
    one_of(constraint, "nodeTaintsPolicy", one, {"Honor", "Ignore"}, errors);
    if (const Value* selector = json::find(constraint, "labelSelector"))
      label_selector(*selector, one / "labelSelector", errors);
    else if (!get_array(constraint, {"matchLabelKeys"}).empty())
      errors.forbidden(one / "matchLabelKeys", "must not be specified when labelSelector is not set");
  }
}

void gates(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "schedulingGates";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& gate : get_array(spec, {"schedulingGates"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(gate, {"name"});
    if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(one, name, why);
    if (!names.insert(name).second) errors.duplicate(one, Value(name));
  }
}

}  // namespace

void resources(const Value& holder, const Path& at, Errors& errors) {
  const Value* limits = json::find(holder, "limits");
  const Value* requests = json::find(holder, "requests");
  const Path limits_at = at / "limits", requests_at = at / "requests";
  const auto container_names = [&](const Value* list, const Path& list_at) {
    if (list == nullptr || !list->is_object()) return;
    for (const auto& [key, value] : list->get_object()) {
      const std::string_view name(key.data(), key.size());
      const bool standard = name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
      if (!standard && name.find('/') == std::string_view::npos)
        errors.invalid(Path::map_key(list_at, name), name, "must be a standard resource for containers");
      else if (name.starts_with("requests."))
        errors.invalid(Path::map_key(list_at, name), name, "doesn't follow extended resource name standard");
    }
  };
  if (limits != nullptr) resource_list(*limits, limits_at, errors);
  container_names(limits, limits_at);
  container_names(requests, requests_at);
  if (requests == nullptr || !requests->is_object()) return;
  resource_list(*requests, requests_at, errors);
  for (const auto& [key, value] : requests->get_object()) {
    const std::string_view name(key.data(), key.size());
    const auto request = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    const std::string_view limit_text = limits == nullptr ? std::string_view() : get_string(*limits, {name});
    const auto limit = limit_text.empty() ? std::nullopt : Quantity::parse(limit_text);
    if (!request) continue;
    const bool extended = name.find('/') != std::string_view::npos || name.starts_with("hugepages-");
    if (limit && extended && *request != *limit)
      errors.invalid(requests_at, value, fmt::format("must be equal to {} limit of {}", name, limit_text));
    else if (limit && *request > *limit)
      errors.invalid(requests_at, value, fmt::format("must be less than or equal to {} limit of {}", name, limit_text));
    else if (!limit && extended)
      errors.required(limits_at, "Limit must be set for non overcommitable resources");
  }
}

void tolerations(const Value& spec, const Path& spec_at, Errors& errors) {
  const Path at = spec_at / "tolerations";
  std::size_t i = 0;
  for (const Value& toleration : get_array(spec, {"tolerations"})) {
    const Path one = at[i++];
    const std::string_view key = get_string(toleration, {"key"}), op = get_string(toleration, {"operator"}),
                           value = get_string(toleration, {"value"}), effect = get_string(toleration, {"effect"});
    if (!key.empty())
      if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one / "key", key, why);
    if (key.empty() && op != "Exists")
      errors.invalid(one / "operator", op, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    if (json::find(toleration, "tolerationSeconds") != nullptr && effect != "NoExecute")
      errors.invalid(one / "effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (op.empty() || op == "Equal") {
      if (const std::string why = check_label_value(value); !why.empty()) errors.invalid(one / "operator", value, why);
    } else if (op == "Exists") {
      if (!value.empty()) errors.invalid(one / "operator", toleration, "value must be empty when `operator` is 'Exists'");
    } else {
      errors.not_supported(one / "operator", op, {"Equal", "Exists"});
    }
    if (!effect.empty()) one_of(toleration, "effect", one, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, errors);
  }
}

namespace {

void node_requirements(const json::Array& list, const Path& at, bool fields, Errors& errors) {
  std::size_t i = 0;
  for (const Value& expression : list) {
    const Path one = at[i++];
    const std::string_view op = get_string(expression, {"operator"}), key = get_string(expression, {"key"});
    const json::Array& values = get_array(expression, {"values"});
    if (fields) {
      if (op != "In" && op != "NotIn")
        errors.invalid(one / "operator", op, "not a valid selector operator");
      else if (values.size() != 1)
        errors.required(one / "values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
      if (key != "metadata.name") errors.invalid(one / "key", key, "not a valid field selector key");
      const Path values_at = one / "values";
      for (std::size_t k = 0; key == "metadata.name" && k < values.size(); ++k)
        if (const std::string why = check_dns1123_subdomain(values[k].is_string() ? json::as_view(values[k]) : ""); !why.empty())
          errors.invalid(values_at[k], values[k], why);
      continue;
    }
    if (op == "In" || op == "NotIn") {
      if (values.empty()) errors.required(one / "values", "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) errors.forbidden(one / "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (op == "Gt" || op == "Lt") {
      if (values.size() != 1) errors.required(one / "values", "must be specified single value when `operator` is 'Lt' or 'Gt'");
    } else {
      errors.invalid(one / "operator", op, "not a valid selector operator");
    }
    if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one / "key", key, why);
    std::size_t k = 0;
    const Path values_at = one / "values";
    for (const Value& value : values) {
      const Path value_at = values_at[k++];
      if (value.is_string())
        if (const std::string why = check_label_value(json::as_view(value)); !why.empty()) errors.invalid(value_at, value, why);
    }
  }
}

void node_selector_term(const Value& term, const Path& at, Errors& errors) {
  node_requirements(get_array(term, {"matchExpressions"}), at / "matchExpressions", false, errors);
  node_requirements(get_array(term, {"matchFields"}), at / "matchFields", true, errors);
}

void pod_affinity_term(const Value& term, const Path& at, Errors& errors) {
  if (const Value* selector = json::find(term, "labelSelector")) label_selector(*selector, at / "labelSelector", errors);
  if (const Value* selector = json::find(term, "namespaceSelector")) label_selector(*selector, at / "namespaceSelector", errors);
  for (const Value& ns : get_array(term, {"namespaces"})) {
    const std::string_view text = ns.is_string() ? json::as_view(ns) : "";
    if (const std::string why = check_dns1123_label(text); !why.empty()) errors.invalid(at / "namespace", text, why);
  }
  const std::string_view key = get_string(term, {"topologyKey"});
  if (key.empty()) errors.required(at / "topologyKey", "can not be empty");
  if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(at / "topologyKey", key, why);
}

void pod_affinity(const Value& object, const Path& at, Errors& errors) {
  std::size_t i = 0;
  const Path required = at / "requiredDuringSchedulingIgnoredDuringExecution",
             preferred = at / "preferredDuringSchedulingIgnoredDuringExecution";
  for (const Value& term : get_array(object, {"requiredDuringSchedulingIgnoredDuringExecution"}))
    pod_affinity_term(term, required[i++], errors);
  i = 0;
  for (const Value& weighted : get_array(object, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
    const Path one = preferred[i++];
    const std::int64_t weight = get_int(weighted, {"weight"});
    if (weight <= 0 || weight > 100) errors.invalid(one / "weight", Value(weight), "must be in the range 1-100");
    static const Value kEmpty = json::Object();
    const Value* term = json::find(weighted, "podAffinityTerm");
    pod_affinity_term(term == nullptr ? kEmpty : *term, one / "podAffinityTerm", errors);
  }
}

}  // namespace

void node_selector(const Value& selector, const Path& at, Errors& errors) {
  const Path terms = at / "nodeSelectorTerms";
  const json::Array& list = get_array(selector, {"nodeSelectorTerms"});
  if (list.empty()) errors.required(terms, "must have at least one node selector term");
  std::size_t i = 0;
  for (const Value& term : list) node_selector_term(term, terms[i++], errors);
}

void affinity(const Value& object, const Path& at, Errors& errors) {
  if (const Value* node_affinity = json::find(object, "nodeAffinity")) {
    const Path here = at / "nodeAffinity";
    if (const Value* required = json::find(*node_affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
      node_selector(*required, here / "requiredDuringSchedulingIgnoredDuringExecution", errors);
    const Path preferred = here / "preferredDuringSchedulingIgnoredDuringExecution";
    std::size_t i = 0;
    for (const Value& term : get_array(*node_affinity, {"preferredDuringSchedulingIgnoredDuringExecution"})) {
      const Path one = preferred[i++];
      const std::int64_t weight = get_int(term, {"weight"});
      if (weight <= 0 || weight > 100) errors.invalid(one / "weight", Value(weight), "must be in the range 1-100");
      if (const Value* preference = json::find(term, "preference")) node_selector_term(*preference, one / "preference", errors);
    }
  }
  if (const Value* one = json::find(object, "podAffinity")) pod_affinity(*one, at / "podAffinity", errors);
  if (const Value* one = json::find(object, "podAntiAffinity")) pod_affinity(*one, at / "podAntiAffinity", errors);
}

void pod_spec(const Value& spec, const Path& at, Errors& errors, bool is_template) {
  containers(spec, volumes(spec, at, errors), at, is_template, errors);
  one_of(spec, "restartPolicy", at, {"Always", "OnFailure", "Never"}, errors, true);
  one_of(spec, "dnsPolicy", at, {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, errors);
  if (const Value* selector = json::find(spec, "nodeSelector")) labels(*selector, at / "nodeSelector", errors);
  if (const Value* deadline = json::find(spec, "activeDeadlineSeconds"))
    if (const std::int64_t seconds = get_int(spec, {"activeDeadlineSeconds"}); seconds < 1 || seconds > INT32_MAX)
      errors.invalid(at / "activeDeadlineSeconds", *deadline, "must be between 1 and 2147483647, inclusive");
  for (const char* key : {"nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"})
    if (const std::string_view name = get_string(spec, {key}); !name.empty())
      if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / key, name, why);
  for (const char* key : {"hostname", "subdomain"})
    if (const std::string_view name = get_string(spec, {key}); !name.empty())
      if (const std::string why = check_dns1123_label(name); !why.empty()) errors.invalid(at / key, name, why);
  if (const Value* object = json::find(spec, "affinity")) affinity(*object, at / "affinity", errors);
  tolerations(spec, at, errors);
  pod_security_context(spec, at, errors);
  pod_network(spec, at, errors);
  spread_constraints(spec, at, errors);
  gates(spec, at, errors);
  one_of(spec, "preemptionPolicy", at, {"PreemptLowerPriority", "Never"}, errors);
  if (const Value* overhead = json::find(spec, "overhead")) resource_list(*overhead, at / "overhead", errors);
  if (const Value* r = json::find(spec, "resources")) resources(*r, at / "resources", errors);
  if (const std::string_view os = get_string(spec, {"os", "name"}); !os.empty() && os != "linux" && os != "windows")
    errors.not_supported(at / "os" / "name", os, {"linux", "windows"});
  if (get_bool(spec, {"shareProcessNamespace"}) && get_bool(spec, {"hostPID"}))
    errors.invalid(at / "shareProcessNamespace", Value(true), "ShareProcessNamespace and HostPID cannot both be enabled");
}

void pod_template(const Value& owner_spec, const Path& at, Errors& errors) {
  const Value* pod_template = json::find(owner_spec, "template");
  const Path here = at / "template";
  const Path spec_at = here / "spec";
  // A template without spec gets all defaults, and lacks containers alone.
  const Value* spec = pod_template == nullptr ? nullptr : json::find(*pod_template, "spec");
  if (pod_template != nullptr)
    if (const Value* map = json::find(*pod_template, {"metadata", "labels"})) labels(*map, here / "labels", errors);
  if (spec == nullptr || get_array(*spec, {"containers"}).empty()) return errors.required(spec_at / "containers");
  pod_spec(*spec, spec_at, errors, true);
  if (const json::Array& ephemeral = get_array(*pod_template, {"spec", "ephemeralContainers"}); !ephemeral.empty())
    errors.forbidden(here / "spec" / "ephemeralContainers", "ephemeral containers not allowed in pod template");
}

void pod(const Value& doc, Errors& errors) {
  const Path at("spec");
  static const Value kEmpty = json::Object();
  const Value* spec = json::find(doc, "spec");
  pod_spec(spec == nullptr ? kEmpty : *spec, at, errors, false);
  if (!get_array(doc, {"spec", "ephemeralContainers"}).empty()) errors.forbidden(at / "ephemeralContainers", "cannot be set on create");
  if (!get_array(doc, {"spec", "schedulingGates"}).empty() && !get_string(doc, {"spec", "nodeName"}).empty())
    errors.forbidden(at / "nodeName", "cannot be set until all schedulingGates have been cleared");
}

namespace {

void gates_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const json::Array& before = get_array(old, {"spec", "schedulingGates"});
  std::set<std::string_view> known;
  for (const Value& gate : before) known.insert(get_string(gate, {"name"}));
  const Path gates_at = at / "schedulingGates";
  std::size_t i = 0;
  for (const Value& gate : get_array(doc, {"spec", "schedulingGates"})) {
    const Path one = gates_at[i++];
    if (!known.contains(get_string(gate, {"name"}))) {
      errors.forbidden(one, "only deletion is allowed, but found new scheduling gate '" + std::string(get_string(gate, {"name"})) + "'");
    }
  }
}

/// Every requirement of the old term is still there.
bool term_only_grew(const Value& before, const Value& after) {
  for (const char* list : {"matchExpressions", "matchFields"}) {
    const json::Array& now = get_array(after, {list});
    for (const Value& wanted : get_array(before, {list}))
      if (std::none_of(now.begin(), now.end(), [&](const Value& have) { return json::equal(wanted, have); })) return false;
  }
  return true;
}

/// While a pod is gated its placement may be narrowed, never widened (validateNodeSelectorMutation, validateNodeAffinityMutation).
void placement_only_narrowed(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const json::Object& now = get_object(doc, {"spec", "nodeSelector"});
  for (const auto& [key, value] : get_object(old, {"spec", "nodeSelector"})) {
    const auto found = now.find(key);
    if (found != now.end() && json::equal(found->value(), value)) continue;
    errors.invalid(at / "nodeSelector", Value(now), "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    break;
  }
  const Value* required = json::find(old, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr) return;
  const Path affinity_at = at / "affinity";
  const Path node_at = affinity_at / "nodeAffinity";
  const Path required_at = node_at / "requiredDuringSchedulingIgnoredDuringExecution";
  const Path terms_at = required_at / "nodeSelectorTerms";
  const json::Array& before = get_array(*required, {"nodeSelectorTerms"});
  const json::Array& after =
      get_array(doc, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (before.size() != after.size())
    return errors.invalid(terms_at, Value(after), "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!term_only_grew(before[i], after[i]))
      errors.invalid(terms_at[i], after[i], "only additions are allowed (no mutations or deletions)");
}

bool tolerations_only_added(const Value& old, const Value& doc) {
  // Equal but for a longer or added tolerationSeconds counts as the same (ValidatePodUpdate lets it be extended).
  const json::Array& now = get_array(doc, {"spec", "tolerations"});
  return std::all_of(get_array(old, {"spec", "tolerations"}).begin(), get_array(old, {"spec", "tolerations"}).end(),
                     [&](const Value& wanted) {
                       return std::any_of(now.begin(), now.end(), [&](const Value& have) {
                         Value a = wanted, b = have;
                         json::erase(a, {"tolerationSeconds"});
                         json::erase(b, {"tolerationSeconds"});
                         return json::equal(a, b);
                       });
                     });
}

}  // namespace

void pod_update(const Value& old, const Value& doc, std::string_view subresource, Errors& errors) {
  const Path at("spec");
  if (subresource == "ephemeralcontainers") return ephemeral_containers_update(old, doc, errors);
  if (subresource == "resize") return pod_resize(old, doc, errors);
  if (subresource == "binding") return;
  static const Value kEmpty = json::Object();
  const Value* spec = json::find(doc, "spec");
  pod_spec(spec == nullptr ? kEmpty : *spec, at, errors, false);
  gates_update(old, doc, errors);
  Value before = old, after = doc;
  const bool gated = !get_array(old, {"spec", "schedulingGates"}).empty();
  for (const char* list : {"containers", "initContainers"})
    if (get_array(old, {"spec", list}).size() != get_array(doc, {"spec", list}).size()) {
      errors.forbidden(at / list, std::string_view(list) == "containers" ? "pod updates may not add or remove containers"
                                                                         : "pod updates may not add or remove init containers");
      return;
    }
  // What may change is made equal; whatever still differs is refused in one sentence.
  const auto images = [&](const char* list) {
    if (!after.is_object() || json::find(after, {"spec", list}) == nullptr) return;
    Value* now = json::find(after, {"spec", list});
    const json::Array& then = get_array(before, {"spec", list});
    if (!now->is_array() || now->get_array().size() != then.size()) return;
    for (std::size_t i = 0; i < then.size(); ++i) {
      Value& one = now->get_array()[i];
      if (!one.is_object()) continue;
      if (const Value* old_image = json::find(then[i], "image")) one.get_object()["image"] = *old_image;
    }
  };
  images("containers");
  images("initContainers");
  const auto same = [&](std::string_view key) {
    if (const Value* value = json::find(before, {"spec", key}))
      json::set(after, {"spec", key}, Value(*value));
    else
      json::erase(after, {"spec", key});
  };
  if (const Value* deadline = json::find(doc, {"spec", "activeDeadlineSeconds"})) {
    const std::int64_t now = get_int(doc, {"spec", "activeDeadlineSeconds"});
    if (json::find(old, {"spec", "activeDeadlineSeconds"}) != nullptr && get_int(old, {"spec", "activeDeadlineSeconds"}) < now)
      errors.invalid(at / "activeDeadlineSeconds", *deadline, "must be less than or equal to previous value");
    same("activeDeadlineSeconds");
  } else if (json::find(old, {"spec", "activeDeadlineSeconds"}) != nullptr) {
    errors.invalid(at / "activeDeadlineSeconds", "null", "must not update from a positive integer to nil value");
    same("activeDeadlineSeconds");
  }
  if (get_int(doc, {"spec", "terminationGracePeriodSeconds"}) == 1 && get_int(old, {"spec", "terminationGracePeriodSeconds"}) < 0)
    same("terminationGracePeriodSeconds");
  if (tolerations_only_added(old, doc))
    same("tolerations");
  else
    errors.forbidden(at / "tolerations", "existing toleration can not be modified except its tolerationSeconds");
  same("tolerations");
  same("schedulingGates");
  if (gated) {
    placement_only_narrowed(old, doc, errors);
    same("nodeSelector");
    if (const Value* value = json::find(old, {"spec", "affinity", "nodeAffinity"}))
      json::set(after, {"spec", "affinity", "nodeAffinity"}, Value(*value));
    else if (json::erase(after, {"spec", "affinity", "nodeAffinity"}) && get_object(after, {"spec", "affinity"}).empty() &&
             json::find(old, {"spec", "affinity"}) == nullptr)
      json::erase(after, {"spec", "affinity"});
  }
  const Value* old_spec = json::find(before, "spec");
  const Value* new_spec = json::find(after, "spec");
  if (old_spec == nullptr || new_spec == nullptr || json::equal(*old_spec, *new_spec)) return;
  errors.forbidden(at, std::string("pod updates may not change fields other than "
                                   "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                                   "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
                                   "(allow it to be set to 1 if it was "
                                   "previously negative)\n") +
                           spec_difference(*new_spec, *old_spec));
}

}  // namespace berth::model::validation
