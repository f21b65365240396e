#include "security/file_owner.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace berth::security {

void give_to_owner(int fd, const std::string& path) {
  struct stat directory {};
  const std::string parent = std::filesystem::absolute(path).parent_path();
  if (::geteuid() != 0 || ::stat(parent.c_str(), &directory) != 0) return;
  if (::fchown(fd, directory.st_uid, directory.st_gid) != 0) errno = 0;
}

}  // namespace berth::security
