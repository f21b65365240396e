// What configures the admission chain: Kubernetes' AdmissionConfiguration, its flags, and OpenShift's master-config.yaml (SPEC E1–E5).
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_arguments.h"
#include "base/error.h"
#include "base/json.h"

namespace berth::apiserver {

struct AdmissionConfig {
  std::vector<std::string> enable, disable;          ///< --enable-admission-plugins, --disable-admission-plugins
  std::map<std::string, json::Value> plugin_config;  ///< Plugin name → its configuration document.
  int default_not_ready_toleration_seconds = 300;
  int default_unreachable_toleration_seconds = 300;
  std::string default_node_selector;  ///< OpenShift projectConfig.defaultNodeSelector (NodeEnv).
  std::vector<std::string> notes;     ///< What is read, well, and without effect here: for whoever starts the server to say.
};

/// What the sections of a master-config.yaml say that other components act on.
struct MasterConfig {
  AdmissionConfig admission;
  std::string scheduler_config_file;       ///< kubernetesMasterConfig.schedulerConfigFile
  config::Arguments scheduler_arguments;   ///< schedulerArguments, schedulerArgs
  config::Arguments controller_arguments;  ///< controllerArguments, controllerArgs
};

/// `kind: AdmissionConfiguration` (apiserver.config.k8s.io/v1, or the alpha versions): merges into `config`. `base_dir`: where a plugin's
/// `path` is relative to. The error lists every problem: file, line, field path, what is allowed.
Result<void> parse_admission_configuration(std::string_view text, const std::string& base_dir, AdmissionConfig& config,
                                           const std::string& file = "AdmissionConfiguration");
/// `kind: MasterConfig` or a fragment of one, as the documents print them (admissionConfig.pluginConfig.NAME.configuration,
/// kubernetesMasterConfig.…, projectConfig.defaultNodeSelector). OpenShift's sections that nothing here acts on are told in the notes;
/// unknown ones and wrong types are errors, as above.
Result<MasterConfig> parse_master_config(std::string_view text, const std::string& base_dir,
                                         const std::string& file = "master-config.yaml");

/// The error names a plugin of the enable and disable lists that does not exist.
Result<void> check_plugin_names(const AdmissionConfig& config);
/// Every plugin that these lists may name: the chain's, then those that are known by name alone.
const std::vector<std::string_view>& known_plugin_names();
/// Reads a plugin's document: its fields, kinds and values.
void check_plugin_document(const std::string& plugin, const config::Reader& document);

}  // namespace berth::apiserver
