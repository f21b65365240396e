#include "node/state_files.h"

#include <filesystem>
#include <fstream>
#include <sstream>

namespace berth::node {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream out;
  out << in.rdbuf();  // Of a folder this fails, where reading by hand throws.
  if (out.bad()) return std::nullopt;
  return out.str();
}

bool replace_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  if (!(std::ofstream(fresh, std::ios::binary | std::ios::trunc) << text << std::flush)) return false;
  std::error_code error;
  std::filesystem::rename(fresh, path, error);
  return !error;
}

}  // namespace berth::node
