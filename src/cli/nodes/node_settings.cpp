#include "cli/nodes/node_settings.h"

#include "base/config_reader.h"
#include "node/eviction/statement_faults.h"
#include "node/sysctls.h"

namespace berth::cli {

Result<node::eviction::KubeletSettings> read_kubelet_settings(const std::string& config_file, const std::vector<std::string>& arguments) {
  node::eviction::KubeletSettings settings;
  settings.eviction_hard = node::eviction::default_eviction_hard();
  if (!config_file.empty()) {
    const auto text = config::read_whole_file(config_file);
    if (!text) return std::unexpected(text.error());
    auto read = node::eviction::read_kubelet_file(*text, config_file);
    if (!read) return read;
    settings = std::move(*read);
  }
  std::map<std::string, std::vector<std::string>> values;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) return invalid(fmt::format("--kubelet-arg \"{}\": must be NAME=VALUE", argument));
    values[argument.substr(0, equals)].push_back(argument.substr(equals + 1));
  }
  for (const auto& [name, list] : values)
    if (const auto wrong = node::eviction::apply_kubelet_argument(settings, name, list)) return invalid("--kubelet-arg: " + *wrong);
  for (const node::eviction::StatementFault& fault : node::eviction::statement_faults(settings)) {
    if (!values.contains(std::string(fault.flag))) continue;  // The file's are told with their lines.
    std::string told = fmt::format("--kubelet-arg {}: {}: {}", fault.flag, fault.name, fault.what);
    if (fault.is_refused) return invalid(std::move(told));
    settings.warnings.push_back(std::move(told));
  }
  if (const auto wrong = node::eviction::start_errors(settings); !wrong.empty()) return invalid(fmt::format("{}", fmt::join(wrong, "\n")));
  for (const std::string& pattern : settings.allowed_unsafe_sysctls)
    if (const std::string wrong = node::check_allowed_sysctl(pattern); !wrong.empty()) return invalid("allowedUnsafeSysctls: " + wrong);
  return settings;
}

}  // namespace berth::cli
