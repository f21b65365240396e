#include "node/agent/atomic_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;
constexpr const char* kData = "..data";

/// A file name inside a volume: relative, and without a way out.
bool is_safe_name(std::string_view name) {
  return !name.empty() && name.size() < 4096 && !name.starts_with('/') && !name.starts_with("..") &&
         ("/" + std::string(name) + "/").find("/../") == std::string::npos;
}

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_current(const fs::path& data, const VolumeFiles& files) {
  std::error_code error;
  if (!fs::is_directory(data, error)) return false;
  std::size_t seen = 0;
  for (fs::recursive_directory_iterator it(data, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) continue;
    const auto wanted = files.find(it->path().lexically_relative(data).string());
    if (wanted == files.end() || read_all(it->path()) != wanted->second.content) return false;
    ++seen;
  }
  return seen == files.size();
}

Result<void> write_file(const fs::path& path, const VolumeFile& file, std::optional<std::int64_t> group) {
  {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << file.content;
    out.flush();
    if (!out.good()) return fail(ErrorCode::kInternal, fmt::format("{}: cannot be written", path.string()));
  }
  int mode = file.mode;
  if (group || file.owner) {
    if (::chown(path.c_str(), file.owner ? static_cast<uid_t>(*file.owner) : static_cast<uid_t>(-1),
                group ? static_cast<gid_t>(*group) : static_cast<gid_t>(-1)) != 0)
      return fail(ErrorCode::kInternal, fmt::format("{}: {}", path.string(), std::strerror(errno)));
    if (group) mode |= 0440;
  }
  ::chmod(path.c_str(), static_cast<mode_t>(mode));
  return {};
}

/// The folders of a path below `root`, for everybody to look into, whatever the process's umask.
void make_open_directories(const fs::path& root, const std::string& path) {
  fs::path at = root;
  std::error_code error;
  for (const auto& part : fs::path(path).parent_path()) {
    at /= part;
    if (fs::create_directory(at, error)) ::chmod(at.c_str(), 0755);
  }
}

}  // namespace

Result<void> write_volume_files(const std::string& directory, const VolumeFiles& files, std::optional<std::int64_t> group) {
  for (const auto& [path, file] : files)
    if (!is_safe_name(path)) return invalid(fmt::format("path \"{}\" must be relative and stay within its volume", path));
  const fs::path root(directory), data = root / kData;
  std::error_code error;
  fs::create_directories(root, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", directory, error.message()));
  if (is_current(data, files)) return {};
  ::chmod(root.c_str(), 0755);
  std::string fresh = directory + "/..berth_XXXXXX";
  if (!::mkdtemp(fresh.data())) return fail(ErrorCode::kInternal, fmt::format("{}: {}", directory, std::strerror(errno)));
  ::chmod(fresh.c_str(), 0755);
  for (const auto& [path, file] : files) {
    const fs::path full = fs::path(fresh) / path;
    make_open_directories(fresh, path);
    if (const auto written = write_file(full, file, group); !written) {
      fs::remove_all(fresh, error);
      return written;
    }
  }
  // Only what was made here is taken away again, wherever the link may lead by now.
  const std::string before = fs::read_symlink(data, error).string();
  const bool is_own = before.starts_with("..berth_") && before.find('/') == std::string::npos;
  const fs::path old = is_own ? root / before : fs::path();
  const fs::path link = root / "..data_tmp";
  fs::remove(link, error);
  fs::create_symlink(fs::path(fresh).filename(), link, error);
  fs::rename(link, data, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", data.string(), error.message()));
  // What users see: the first part of each path, through the link.
  std::set<std::string> tops;
  for (const auto& [path, file] : files) tops.insert(path.substr(0, path.find('/')));
  for (const std::string& top : tops)
    if (!fs::is_symlink(root / top, error)) {
      fs::remove_all(root / top, error);
      fs::create_symlink(fs::path(kData) / top, root / top, error);
    }
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("..") && !tops.contains(name)) fs::remove_all(entry.path(), error);
  }
  if (!old.empty()) fs::remove_all(old, error);
  return {};
}

}  // namespace berth::node::agent
