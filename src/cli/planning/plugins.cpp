#include "cli/planning/plugins.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "base/config_reader.h"
#include "berth/plugin.h"

namespace berth::cli {
namespace {

constexpr std::string_view kThisBerth = BERTH_PLUGIN_STAMP;
constexpr std::string_view kMark = kThisBerth.substr(0, kThisBerth.find(' ') + 1);

/// What the library was built for; empty when it is no library of plugins.
std::string_view stamp_in(std::string_view bytes) {
  const auto at = bytes.find(kMark);
  if (at == std::string_view::npos) return {};
  return bytes.substr(at, bytes.find('\0', at) - at);
}

std::string what_it_names(std::string_view stamp) { return std::string(stamp.substr(kMark.size(), 200)); }

/// Why what the path leads to is not even looked into; empty: it is a file, and nobody else's to change.
std::string unfit(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "is no file";
  if ((info.st_mode & S_IWOTH) != 0)
    return fmt::format("may be written by everybody (mode {:04o}), and would run with this berth's rights: `chmod o-w` it",
                       info.st_mode & 07777);
  return {};
}

}  // namespace

Result<std::vector<std::string>> take_plugin_flags(std::vector<std::string>& args) {
  constexpr std::string_view kFlag = "--plugin";
  std::vector<std::string> out;
  while (!args.empty()) {
    const std::string_view first = args.front();
    if (first == kFlag) {
      if (args.size() < 2 || args[1].starts_with('-'))
        return invalid("--plugin: needs the file of a plugin library: --plugin FILE.so COMMAND");
      out.push_back(args[1]);
      args.erase(args.begin(), args.begin() + 2);
    } else if (first.starts_with(kFlag) && first.size() > kFlag.size() && first[kFlag.size()] == '=') {
      out.emplace_back(first.substr(kFlag.size() + 1));
      if (out.back().empty()) return invalid("--plugin: needs the file of a plugin library: --plugin=FILE.so COMMAND");
      args.erase(args.begin());
    } else {
      break;
    }
  }
  return out;
}

Result<void> load_plugins(const std::string& file) {
  static std::set<std::filesystem::path> loaded;
  std::error_code error;
  const auto path = std::filesystem::canonical(file, error);
  if (error) return invalid(fmt::format("--plugin {}: {}", file, error.message()));
  if (!loaded.insert(path).second) return {};
  if (const auto why = unfit(path); !why.empty()) return invalid(fmt::format("--plugin {}: {}", file, why));
  const auto bytes = config::read_whole_file(path.string());
  if (!bytes) return std::unexpected(bytes.error());
  const std::string_view stamp = stamp_in(*bytes);
  if (stamp.empty())
    return invalid(fmt::format("--plugin {}: is not a library of berth plugins: there is no BERTH_PLUGIN in it (docs/plugins.md)", file));
  if (stamp != kThisBerth)
    return invalid(fmt::format(
        "--plugin {}: was built for another berth, and cannot run in this one\n  it is for: {}\n  this is:   {}\nBuild it again with "
        "this berth's find_package(berth): cmake --install BUILD --prefix PREFIX, then CMAKE_PREFIX_PATH=PREFIX",
        file, what_it_names(stamp), what_it_names(kThisBerth)));
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return invalid(fmt::format("--plugin {}: cannot be loaded: {}", file, dlerror()));
  const auto exports = reinterpret_cast<decltype(&berth_plugin_exports)>(dlsym(library, "berth_plugin_exports"));
  if (exports == nullptr) return invalid(fmt::format("--plugin {}: is not a library of berth plugins: {}", file, dlerror()));
  const plugin::Exports* made = exports();
  if (made == nullptr) return invalid(fmt::format("--plugin {}: its berth_plugin_exports says nothing", file));
  for (const auto& one : std::span(made->plugins, made->count))
    if (!placement::register_plugin(one))
      return invalid(fmt::format("--plugin {}: there is a plugin \"{}\" already; give yours a name of its own", file, one.name));
  return {};
}

}  // namespace berth::cli
