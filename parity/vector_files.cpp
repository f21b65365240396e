#include "parity/vector_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace berth::scheduler::parity {
namespace {

namespace fs = std::filesystem;

Result<std::size_t> read_pack(const std::string& path, const std::function<void(const std::string&, const std::string&)>& visit) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return fail(ErrorCode::kNotFound, path + ": cannot be read");
  gzbuffer(file, 1 << 18);
  std::string rest;
  std::vector<char> block(1 << 18);
  std::size_t count = 0;
  int got = 0;
  while ((got = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0) {
    rest.append(block.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      const std::string line = rest.substr(begin, end - begin);
      begin = end + 1;
      const auto tab = line.find('\t');
      if (tab == std::string::npos) continue;
      visit(line.substr(0, tab), line.substr(tab + 1));
      ++count;
    }
    rest.erase(0, begin);
  }
  gzclose(file);
  if (got < 0 || !rest.empty()) return fail(ErrorCode::kCorrupt, path + ": the pack is damaged");
  return count;
}

}  // namespace

Result<std::size_t> for_each_vector(const std::string& path, const std::function<void(const std::string&, const std::string&)>& visit) {
  if (path.ends_with(".gz")) return read_pack(path, visit);
  std::error_code error;
  std::vector<std::string> files;
  if (fs::is_directory(path, error)) {
    for (fs::recursive_directory_iterator at(path, fs::directory_options::follow_directory_symlink, error), end; !error && at != end;
         at.increment(error))
      if (at->is_regular_file(error) && at->path().extension() == ".json") files.push_back(at->path().string());
  } else if (fs::is_regular_file(path, error)) {
    files.push_back(path);
  } else {
    return fail(ErrorCode::kNotFound, path + ": there is no such file or folder");
  }
  std::ranges::sort(files);
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    if (!in || !(text << in.rdbuf())) return fail(ErrorCode::kNotFound, file + ": cannot be read");
    visit(file, text.str());
  }
  return files.size();
}

}  // namespace berth::scheduler::parity
