#include "security/file_owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/owned_fd.h"

namespace berth::security {

void give_to_owner(int fd, const std::string& path) {
  struct stat directory {};
  const std::string parent = std::filesystem::absolute(path).parent_path();
  if (::geteuid() != 0 || ::stat(parent.c_str(), &directory) != 0) return;
  if (::fchown(fd, directory.st_uid, directory.st_gid) != 0) errno = 0;
}

Result<void> write_file(const std::string& path, std::string_view text, mode_t mode) {
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  const OwnedFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.is_open()) give_to_owner(file.get(), path);
  bool is_well = file.is_open();
  while (is_well && !text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    is_well = written > 0;
    if (is_well) text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (is_well && ::fsync(file.get()) == 0 && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const std::string why = std::strerror(errno);
  if (file.is_open()) ::unlink(temporary.c_str());
  return fail(ErrorCode::kInvalid, fmt::format("{}: cannot be written: {}", path, why));
}

}  // namespace berth::security
