#include "cli/command/master_config.h"

#include <filesystem>

#include "base/config_reader.h"

namespace berth::cli {

Result<apiserver::MasterConfig> read_master_config(const std::string& path) {
  if (path.empty()) return apiserver::MasterConfig{};
  const auto text = config::read_whole_file(path);
  if (!text) return std::unexpected(text.error());
  return apiserver::parse_master_config(*text, std::filesystem::absolute(path).parent_path().string(), path);
}

}  // namespace berth::cli
