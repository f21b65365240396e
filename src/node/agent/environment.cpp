#include "node/agent/environment.h"

#include <cmath>

#include "node/agent/env_file.h"
#include "node/agent/mounts.h"
#include "node/agent/object_data.h"

namespace berth::node::agent {
namespace {

/// The value of one key of a ConfigMap or Secret; nullopt when it is optional and not there.
Result<std::optional<std::string>> referenced_key(const PodContext& context, const json::Value& reference, ObjectKind kind,
                                                  const ObjectSource& objects) {
  const std::string name(json::get_string(reference, {"name"})), key(json::get_string(reference, {"key"}));
  const bool optional = json::get_bool(reference, {"optional"});
  auto data = object_data(context.spec.ns, name, kind, objects);
  if (!data) {
    if (optional && data.error().code == ErrorCode::kNotFound) return std::nullopt;
    return std::unexpected(data.error());
  }
  const auto found = data->find(key);
  if (found != data->end()) return std::move(found->second);
  if (optional) return std::nullopt;
  return fail(ErrorCode::kInvalid, fmt::format("couldn't find key {} in {} {}/{}", key,
                                               kind == ObjectKind::kSecret ? "Secret" : "ConfigMap", context.spec.ns, name));
}

/// The value of a key in a file of one of the pod's volumes; nullopt when it is optional and not there.
Result<std::optional<std::string>> file_key(const PodContext& context, const json::Value& reference) {
  const std::string volume(json::get_string(reference, {"volumeName"})), path(json::get_string(reference, {"path"})),
      key(json::get_string(reference, {"key"}));
  const auto placed = context.volumes.find(volume);
  if (placed == context.volumes.end())
    return fail(ErrorCode::kInvalid, fmt::format("cannot find the volume \"{}\" referenced by FileKeyRef", volume));
  const std::string place = placed->second.host_path + "/" + path;
  // Containers of the pod write there: no link may lead out of the volume.
  const auto text = read_file_beneath(placed->second.host_path, path);
  const auto value = text ? env_file_value(*text, key) : Result<std::string>(fail(ErrorCode::kNotFound, "no such file"));
  if (!value) return fail(ErrorCode::kInvalid, "couldn't parse env file");
  if (!value->empty()) return *value;
  if (json::get_bool(reference, {"optional"})) return std::nullopt;
  return fail(ErrorCode::kInvalid, fmt::format("environment variable key \"{}\" not found in file \"{}\"", key, place));
}

/// Variables in order; a later definition of a name replaces the earlier one.
class Builder {
 public:
  void add(std::string name, std::string value) {
    known_[name] = value;
    std::erase_if(list_, [&](const auto& entry) { return entry.first == name; });
    list_.emplace_back(std::move(name), std::move(value));
  }
  /// For $(NAME) only, unless nothing else defines the name.
  void offer(const Variables& variables) {
    for (const auto& [name, value] : variables) offered_[name] = value;
  }
  [[nodiscard]] std::map<std::string, std::string> known() const {
    std::map<std::string, std::string> all = known_;
    all.insert(offered_.begin(), offered_.end());
    return all;
  }
  Variables finish() {
    for (auto& [name, value] : offered_)
      if (!known_.contains(name)) list_.emplace_back(name, std::move(value));
    return std::move(list_);
  }

 private:
  Variables list_;
  std::map<std::string, std::string> known_, offered_;
};

Result<void> add_env_from(const PodContext& context, const json::Value& source, const ObjectSource& objects, Builder& builder) {
  const bool secret = json::find(source, "secretRef") != nullptr;
  const json::Value* reference = json::find(source, secret ? "secretRef" : "configMapRef");
  if (!reference) return {};
  const auto data = object_data(context.spec.ns, std::string(json::get_string(*reference, {"name"})),
                                secret ? ObjectKind::kSecret : ObjectKind::kConfigMap, objects);
  if (!data) {
    if (json::get_bool(*reference, {"optional"}) && data.error().code == ErrorCode::kNotFound) return {};
    return std::unexpected(data.error());
  }
  for (const auto& [key, value] : *data) builder.add(std::string(json::get_string(source, {"prefix"})) + key, value);
  return {};
}

Result<void> add_variable(const PodContext& context, const json::Value& container, const json::Value& variable, const ObjectSource& objects,
                          Builder& builder) {
  const std::string name(json::get_string(variable, {"name"}));
  const json::Value* from = json::find(variable, "valueFrom");
  if (!from) {
    builder.add(name, expand_variables(json::get_string(variable, {"value"}), builder.known()));
    return {};
  }
  if (const json::Value* field = json::find(*from, "fieldRef")) {
    const auto value = downward_field(context, json::get_string(*field, {"fieldPath"}));
    if (!value) return invalid(fmt::format("unsupported fieldPath: {}", json::get_string(*field, {"fieldPath"})));
    builder.add(name, *value);
  } else if (const json::Value* resource = json::find(*from, "resourceFieldRef")) {
    const auto value = resource_field(context, json::get_string(container, {"name"}), *resource);
    if (!value) return invalid(fmt::format("unsupported container resource : {}", json::get_string(*resource, {"resource"})));
    builder.add(name, *value);
  } else if (const json::Value* map = json::find(*from, "configMapKeyRef")) {
    const auto value = referenced_key(context, *map, ObjectKind::kConfigMap, objects);
    if (!value) return std::unexpected(value.error());
    if (*value) builder.add(name, **value);
  } else if (const json::Value* secret = json::find(*from, "secretKeyRef")) {
    const auto value = referenced_key(context, *secret, ObjectKind::kSecret, objects);
    if (!value) return std::unexpected(value.error());
    if (*value) builder.add(name, **value);
  } else if (const json::Value* file = json::find(*from, "fileKeyRef")) {
    const auto value = file_key(context, *file);
    if (!value) return std::unexpected(value.error());
    if (*value) builder.add(name, **value);
  }
  return {};
}

}  // namespace

Result<Variables> container_environment(const PodContext& context, const json::Value& container, const ObjectSource& objects) {
  Builder builder;
  // The API server's own service is always there; the namespace's others unless enableServiceLinks is false.
  if (objects.services)
    builder.offer(service_variables(objects.services(context.spec.ns, json::get_bool(context.pod, {"spec", "enableServiceLinks"}, true))));
  for (const json::Value& source : json::get_array(container, {"envFrom"}))
    if (const auto added = add_env_from(context, source, objects, builder); !added) return std::unexpected(added.error());
  for (const json::Value& variable : json::get_array(container, {"env"}))
    if (const auto added = add_variable(context, container, variable, objects, builder); !added) return std::unexpected(added.error());
  return builder.finish();
}

Variables service_variables(const std::vector<json::Value>& services) {
  Variables out;
  for (const json::Value& service : services) {
    const std::string ip(json::get_string(service, {"spec", "clusterIP"}));
    const json::Array& ports = json::get_array(service, {"spec", "ports"});
    if (ip.empty() || ip == "None" || ports.empty()) continue;
    std::string prefix(json::get_string(service, {"metadata", "name"}));
    const auto as_variable = [](std::string text) {
      for (char& c : text) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      return text;
    };
    prefix = as_variable(prefix);
    out.emplace_back(prefix + "_SERVICE_HOST", ip);
    out.emplace_back(prefix + "_SERVICE_PORT", std::to_string(json::get_int(ports[0], {"port"})));
    for (const json::Value& port : ports)
      if (const std::string name(json::get_string(port, {"name"})); !name.empty())
        out.emplace_back(prefix + "_SERVICE_PORT_" + as_variable(name), std::to_string(json::get_int(port, {"port"})));
    const std::string host = ip.find(':') == std::string::npos ? ip : "[" + ip + "]";
    for (std::size_t i = 0; i < ports.size(); ++i) {
      std::string protocol(json::get_string(ports[i], {"protocol"}, "TCP"));
      std::ranges::transform(protocol, protocol.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      const std::int64_t number = json::get_int(ports[i], {"port"});
      const std::string url = fmt::format("{}://{}:{}", protocol, host, number);
      if (i == 0) out.emplace_back(prefix + "_PORT", url);
      const std::string port_prefix = fmt::format("{}_PORT_{}_{}", prefix, number, as_variable(protocol));
      out.emplace_back(port_prefix, url);
      out.emplace_back(port_prefix + "_PROTO", protocol);
      out.emplace_back(port_prefix + "_PORT", std::to_string(number));
      out.emplace_back(port_prefix + "_ADDR", ip);
    }
  }
  return out;
}

std::string expand_variables(std::string_view text, const std::map<std::string, std::string>& variables,
                             std::vector<std::string>* missing) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 >= text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += '$';
      ++i;
    } else if (const std::size_t end = text[i + 1] == '(' ? text.find(')', i) : std::string_view::npos; end != std::string_view::npos) {
      const auto found = variables.find(std::string(text.substr(i + 2, end - i - 2)));
      if (found == variables.end() && missing) missing->emplace_back(text.substr(i + 2, end - i - 2));
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
  if (path == "status.podIP") return context.pod_ips.empty() ? std::string() : context.pod_ips[0];
  if (path == "status.podIPs") return fmt::format("{}", fmt::join(context.pod_ips, ","));
  if (path == "status.hostIP" || path == "status.hostIPs") return context.host_ip;
  for (const std::string_view map : {"labels", "annotations"}) {
    const std::string prefix = fmt::format("metadata.{}", map);
    if (!path.starts_with(prefix)) continue;
    const json::Object& values = json::get_object(context.pod, {"metadata", map});
    if (path == prefix) {
      std::map<std::string, std::string> sorted;
      for (const auto& [key, value] : values) sorted[std::string(key)] = json::serialize(value);
      std::vector<std::string> lines;
      for (const auto& [key, value] : sorted) lines.push_back(fmt::format("{}={}", key, value));
      return fmt::format("{}", fmt::join(lines, "\n"));
    }
    if (path.size() < prefix.size() + 4 || path[prefix.size()] != '[') return std::nullopt;
    const json::Value* value = values.if_contains(path.substr(prefix.size() + 2, path.size() - prefix.size() - 4));
    return value && value->is_string() ? std::string(json::as_view(*value)) : std::string();
  }
  return std::nullopt;
}

std::optional<std::string> resource_field(const PodContext& context, std::string_view own, const json::Value& reference) {
  const std::string_view resource = json::get_string(reference, {"resource"});
  const std::string_view named = json::get_string(reference, {"containerName"}, own);
  const auto container = std::ranges::find(context.facts.containers, named, &eviction::ContainerFacts::name);
  const std::size_t dot = resource.find('.');
  if (container == context.facts.containers.end() || dot == std::string_view::npos) return std::nullopt;
  const std::string_view list_name = resource.substr(0, dot), name = resource.substr(dot + 1);
  if (list_name != "limits" && list_name != "requests") return std::nullopt;
  const auto divisor = model::Quantity::parse(json::get_string(reference, {"divisor"}));
  const double by = divisor && divisor->sign() > 0 ? divisor->as_double() : 1;
  double amount = 0;
  const eviction::ResourceList& list = list_name == "limits" ? container->limits : container->requests;
  if (const auto found = list.find(name); found != list.end())
    amount = found->second.as_double();
  else if (const auto whole = context.allocatable.find(name); list_name == "limits" && whole != context.allocatable.end())
    amount = whole->second.as_double();
  return std::to_string(static_cast<std::int64_t>(std::ceil(amount / by - 1e-9)));
}

}  // namespace berth::node::agent
