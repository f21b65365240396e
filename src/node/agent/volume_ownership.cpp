#include "node/agent/volume_ownership.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <climits>
#include <vector>

#include "base/owned_fd.h"

namespace berth::node::agent {
namespace {

/// Every name is opened once, without following links, and changed through what was opened: containers may exchange names while this runs.
void own_recursively(int parent, const std::string& name, std::int64_t group, int levels) {
  const OwnedFd file(::openat(parent, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || fstat(file.get(), &info) != 0 || S_ISLNK(info.st_mode)) return;
  if (::fchownat(file.get(), "", static_cast<uid_t>(-1), static_cast<gid_t>(group), AT_EMPTY_PATH) == 0)
    ::chmod(fmt::format("/proc/self/fd/{}", file.get()).c_str(), (info.st_mode & 07777) | (S_ISDIR(info.st_mode) ? 02770 : 0660));
  if (!S_ISDIR(info.st_mode) || levels == 0) return;
  const OwnedFd directory(::openat(file.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = directory.get() < 0 ? nullptr : ::fdopendir(::dup(directory.get()));
  if (entries == nullptr) return;
  std::vector<std::string> names;
  while (const auto* entry = ::readdir(entries))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..") names.emplace_back(entry->d_name);
  ::closedir(entries);
  for (const auto& below : names) own_recursively(directory.get(), below, group, levels - 1);
}

bool is_owned_already(const std::string& directory, std::int64_t group) {
  struct stat info {};
  constexpr mode_t kWanted = S_ISGID | 0770;
  return ::lstat(directory.c_str(), &info) == 0 && info.st_gid == static_cast<gid_t>(group) && (info.st_mode & kWanted) == kWanted;
}

}  // namespace

void give_to_group(const std::string& directory, std::int64_t group, bool keeps_where_root_has_it) {
  if (!keeps_where_root_has_it || !is_owned_already(directory, group)) own_recursively(AT_FDCWD, directory, group, PATH_MAX / 2);
}

bool keeps_owner_where_root_has_it(const json::Value& pod) {
  return json::get_string(pod, {"spec", "securityContext", "fsGroupChangePolicy"}) == "OnRootMismatch";
}

}  // namespace berth::node::agent
