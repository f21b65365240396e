#include "apiserver/admission/config.h"

#include <fstream>
#include <sstream>

namespace berth::apiserver {
namespace {

Result<std::string> read_file(const std::string& path, const std::string& base_dir) {
  const std::string full = path.starts_with('/') || base_dir.empty() ? path : base_dir + "/" + path;
  std::ifstream file(full, std::ios::binary);
  if (!file) return fail(ErrorCode::kNotFound, fmt::format("cannot read {}", full));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<json::Value> parse_file(const std::string& path, const std::string& base_dir) {
  const auto text = read_file(path, base_dir);
  if (!text) return std::unexpected(text.error());
  auto document = json::parse_yaml(*text);
  if (!document) return invalid(fmt::format("{}: {}", path, document.error().message));
  return document;
}

/// A section of the expected type, null when absent; an error with its path otherwise.
Result<const json::Value*> section(const json::Value& root, std::string_view path, std::string_view key, bool object) {
  const auto* value = json::find(root, key);
  if (value == nullptr) return static_cast<const json::Value*>(nullptr);
  if (object ? value->is_object() : value->is_array()) return value;
  return invalid(fmt::format("{}{}{}: must be {}", path, path.empty() ? "" : ".", key, object ? "a map" : "a list"));
}

Result<void> set_plugin(AdmissionConfig& config, const std::string& name, json::Value document, const std::string& path) {
  if (document.is_null()) document = json::Object();
  if (!document.is_object()) return invalid(fmt::format("{}: must be a map", path));
  if (name == "DefaultTolerationSeconds") {
    for (auto [field, into] : {std::pair{"defaultNotReadyTolerationSeconds", &config.default_not_ready_toleration_seconds},
                               std::pair{"defaultUnreachableTolerationSeconds", &config.default_unreachable_toleration_seconds}}) {
      const auto* value = json::find(document, field);
      if (value == nullptr) continue;
      if (!value->is_int64() || value->get_int64() < 0) return invalid(fmt::format("{}.{}: must be a number of seconds", path, field));
      *into = static_cast<int>(value->get_int64());
    }
  }
  config.plugin_config.insert_or_assign(name, std::move(document));
  return {};
}

/// Arguments as the documents write them: a list of strings, or one value.
Result<std::map<std::string, std::vector<std::string>>> read_arguments(const json::Value& parent, std::string_view path,
                                                                       std::string_view key) {
  std::map<std::string, std::vector<std::string>> out;
  const auto found = section(parent, path, key, true);
  if (!found) return std::unexpected(found.error());
  if (*found == nullptr) return out;
  for (const auto& [name, value] : (*found)->get_object()) {
    auto& list = out[std::string(name)];
    const auto add = [&](const json::Value& item) {
      list.emplace_back(item.is_string() ? std::string(json::as_view(item)) : json::serialize(item));
      return !item.is_object() && !item.is_array();
    };
    bool ok = true;
    if (const auto* items = value.if_array()) {
      for (const auto& item : *items) ok = ok && add(item);
    } else {
      ok = add(value);
    }
    if (!ok) return invalid(fmt::format("{}.{}.{}: must be a list of strings", path, key, std::string_view(name)));
  }
  return out;
}

Result<void> add_feature_gates(const std::map<std::string, std::vector<std::string>>& arguments, std::string_view path,
                               std::map<std::string, bool>& gates) {
  const auto found = arguments.find("feature-gates");
  if (found == arguments.end()) return {};
  for (const auto& entry : found->second) {
    std::stringstream parts(entry);
    for (std::string part; std::getline(parts, part, ',');) {
      const auto eq = part.find('=');
      const auto value = eq == std::string::npos ? std::string() : part.substr(eq + 1);
      if (value != "true" && value != "false")
        return invalid(fmt::format("{}.feature-gates: \"{}\" is not of the form Name=true or Name=false", path, part));
      gates[part.substr(0, eq)] = value == "true";
    }
  }
  return {};
}

Result<void> read_plugin_config(const json::Value& admission, const std::string& base_dir, AdmissionConfig& config) {
  const auto plugins = section(admission, "admissionConfig", "pluginConfig", true);
  if (!plugins) return std::unexpected(plugins.error());
  if (*plugins == nullptr) return {};
  for (const auto& [raw_name, plugin] : (*plugins)->get_object()) {
    const std::string name(raw_name);
    const auto path = fmt::format("admissionConfig.pluginConfig.{}", name);
    if (!plugin.is_object()) return invalid(fmt::format("{}: must be a map", path));
    json::Value document;
    if (const auto* configuration = json::find(plugin, "configuration")) {
      document = *configuration;
    } else if (const auto location = json::get_string(plugin, {"location"}); !location.empty()) {
      auto file = parse_file(std::string(location), base_dir);
      if (!file) return invalid(fmt::format("{}.location: {}", path, file.error().message));
      document = std::move(*file);
    }
    if (auto set = set_plugin(config, name, std::move(document), path + ".configuration"); !set) return set;
  }
  return {};
}

Result<void> read_order(const json::Value& admission, AdmissionConfig& config) {
  const auto order = section(admission, "admissionConfig", "pluginOrderOverride", false);
  if (!order) return std::unexpected(order.error());
  if (*order == nullptr) return {};
  for (const auto& name : (*order)->get_array()) {
    if (!name.is_string()) return invalid("admissionConfig.pluginOrderOverride: must be a list of names");
    config.enable.emplace_back(json::as_view(name));
  }
  return {};
}

}  // namespace

Result<void> parse_admission_configuration(std::string_view text, const std::string& base_dir, AdmissionConfig& config) {
  auto document = json::parse_yaml(text);
  if (!document) return std::unexpected(document.error());
  if (!document->is_object() || json::get_string(*document, {"kind"}) != "AdmissionConfiguration")
    return invalid(fmt::format("kind: must be AdmissionConfiguration, is \"{}\"", json::get_string(*document, {"kind"})));
  const auto api_version = json::get_string(*document, {"apiVersion"});
  if (api_version != "apiserver.config.k8s.io/v1" && api_version != "apiserver.config.k8s.io/v1alpha1" &&
      api_version != "apiserver.k8s.io/v1alpha1")
    return invalid(fmt::format("apiVersion: must be apiserver.config.k8s.io/v1, is \"{}\"", api_version));
  const auto plugins = section(*document, "", "plugins", false);
  if (!plugins) return std::unexpected(plugins.error());
  if (*plugins == nullptr) return {};
  for (std::size_t i = 0; i < (*plugins)->get_array().size(); ++i) {
    const auto& plugin = (*plugins)->get_array()[i];
    const auto path = fmt::format("plugins[{}]", i);
    const std::string name(json::get_string(plugin, {"name"}));
    if (name.empty()) return invalid(fmt::format("{}.name: required", path));
    json::Value settings;
    if (const auto* configuration = json::find(plugin, "configuration")) {
      settings = *configuration;
    } else if (const auto file_path = json::get_string(plugin, {"path"}); !file_path.empty()) {
      auto file = parse_file(std::string(file_path), base_dir);
      if (!file) return invalid(fmt::format("{}.path: {}", path, file.error().message));
      settings = std::move(*file);
    }
    if (auto set = set_plugin(config, name, std::move(settings), path + ".configuration"); !set) return set;
  }
  return {};
}

Result<MasterConfig> parse_master_config(std::string_view text, const std::string& base_dir) {
  auto document = json::parse_yaml(text);
  if (!document) return std::unexpected(document.error());
  if (!document->is_object()) return invalid("a master configuration must be a map");
  if (const auto kind = json::get_string(*document, {"kind"}); !kind.empty() && kind != "MasterConfig")
    return invalid(fmt::format("kind: must be MasterConfig, is \"{}\"", kind));
  MasterConfig out;
  const auto kubernetes = section(*document, "", "kubernetesMasterConfig", true);
  if (!kubernetes) return std::unexpected(kubernetes.error());
  // OpenShift reads admission from the top level, Origin before it from the Kubernetes section: both are in use.
  for (const json::Value* parent : {static_cast<const json::Value*>(&*document), *kubernetes}) {
    if (parent == nullptr) continue;
    const auto admission = section(*parent, parent == &*document ? "" : "kubernetesMasterConfig", "admissionConfig", true);
    if (!admission) return std::unexpected(admission.error());
    if (*admission == nullptr) continue;
    if (auto read = read_plugin_config(**admission, base_dir, out.admission); !read) return std::unexpected(read.error());
    if (auto read = read_order(**admission, out.admission); !read) return std::unexpected(read.error());
  }
  out.admission.default_node_selector = json::get_string(*document, {"projectConfig", "defaultNodeSelector"});
  if (*kubernetes == nullptr) return out;
  const auto& section_value = **kubernetes;
  out.scheduler_config_file = json::get_string(section_value, {"schedulerConfigFile"});
  for (auto [key, into] :
       {std::pair{"schedulerArgs", &out.scheduler_arguments}, std::pair{"schedulerArguments", &out.scheduler_arguments},
        std::pair{"controllerArguments", &out.controller_arguments}, std::pair{"apiServerArguments", &out.api_server_arguments}}) {
    auto arguments = read_arguments(section_value, "kubernetesMasterConfig", key);
    if (!arguments) return std::unexpected(arguments.error());
    if (auto added = add_feature_gates(*arguments, fmt::format("kubernetesMasterConfig.{}", key), out.feature_gates); !added)
      return std::unexpected(added.error());
    for (auto& [name, values] : *arguments) (*into)[name] = std::move(values);
  }
  for (auto [argument, into] :
       {std::pair{"enable-admission-plugins", &out.admission.enable}, std::pair{"admission-control", &out.admission.enable},
        std::pair{"disable-admission-plugins", &out.admission.disable}}) {
    const auto found = out.api_server_arguments.find(argument);
    if (found == out.api_server_arguments.end()) continue;
    for (const auto& entry : found->second) {
      std::stringstream parts(entry);
      for (std::string part; std::getline(parts, part, ',');) into->push_back(part);
    }
  }
  return out;
}

}  // namespace berth::apiserver
