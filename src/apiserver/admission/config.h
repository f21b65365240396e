// What configures the admission chain: Kubernetes' AdmissionConfiguration, its flags, and OpenShift's master-config.yaml (SPEC E1–E5).
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace berth::apiserver {

struct AdmissionConfig {
  std::vector<std::string> enable, disable;          ///< --enable-admission-plugins, --disable-admission-plugins
  std::map<std::string, json::Value> plugin_config;  ///< Plugin name → its configuration document.
  int default_not_ready_toleration_seconds = 300;
  int default_unreachable_toleration_seconds = 300;
  std::string default_node_selector;  ///< OpenShift projectConfig.defaultNodeSelector (NodeEnv).
};

/// What the sections of a master-config.yaml say that other components act on.
struct MasterConfig {
  AdmissionConfig admission;
  std::string scheduler_config_file;                                     ///< kubernetesMasterConfig.schedulerConfigFile
  std::map<std::string, std::vector<std::string>> scheduler_arguments;   ///< schedulerArgs, schedulerArguments
  std::map<std::string, std::vector<std::string>> controller_arguments;  ///< controllerArguments
  std::map<std::string, std::vector<std::string>> api_server_arguments;  ///< apiServerArguments
  std::map<std::string, bool> feature_gates;                             ///< From any of the arguments' feature-gates.
};

/// `kind: AdmissionConfiguration` (apiserver.config.k8s.io/v1, or the alpha versions): merges into `config`. `base_dir`: where a plugin's
/// `path` is relative to. The error names the field path.
Result<void> parse_admission_configuration(std::string_view text, const std::string& base_dir, AdmissionConfig& config);
/// `kind: MasterConfig` or a fragment of one, as the documents print them (admissionConfig.pluginConfig.NAME.configuration,
/// kubernetesMasterConfig.…, projectConfig.defaultNodeSelector). Unknown sections are left alone; a wrong type is an error with its path.
Result<MasterConfig> parse_master_config(std::string_view text, const std::string& base_dir);

}  // namespace berth::apiserver
