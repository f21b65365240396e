// The audit log's file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "apiserver/audit/log.h"

namespace berth::apiserver::audit {
namespace {

namespace fs = std::filesystem;

/// "audit.log" moved away at a time: "audit-2026-01-02T03-04-05.678.log".
fs::path backup_name(const fs::path& path, TimePoint now) {
  std::string stamp = format_rfc3339_micro(now).substr(0, 23);
  std::ranges::replace(stamp, ':', '-');
  return path.parent_path() / (path.stem().string() + "-" + stamp + path.extension().string());
}

}  // namespace

Result<std::unique_ptr<RotatedFile>> RotatedFile::open(FileOptions options) {
  std::unique_ptr<RotatedFile> out(new RotatedFile(std::move(options)));
  if (auto opened = out->reopen(); !opened) return std::unexpected(opened.error());
  return out;
}

RotatedFile::~RotatedFile() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

Result<void> RotatedFile::reopen() {
  if (options_.path == "-") {
    fd_ = STDOUT_FILENO;
    return {};
  }
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  std::error_code none;
  if (const auto parent = fs::path(options_.path).parent_path(); !parent.empty()) {
    fs::create_directories(parent, none);
  }
  fd_ = ::open(options_.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd_ < 0) return invalid(fmt::format("the audit log {} cannot be opened: {}", options_.path, std::strerror(errno)));
  struct stat info {};
  size_ = ::fstat(fd_, &info) == 0 ? static_cast<std::size_t>(info.st_size) : 0;
  return {};
}

Result<void> RotatedFile::append(std::string_view lines, TimePoint now) {
  constexpr std::size_t kMegabyte = 1 << 20;
  const bool is_stdout = options_.path == "-";
  if (!is_stdout && options_.max_megabytes > 0 && size_ > 0 && size_ + lines.size() > options_.max_megabytes * kMegabyte) rotate(now);
  // Somebody else's rotation moved it: what is written goes to where the path leads.
  struct stat own {
  }, there{};
  if (!is_stdout && (fd_ < 0 || ::fstat(fd_, &own) != 0 || ::stat(options_.path.c_str(), &there) != 0 || own.st_ino != there.st_ino))
    if (auto opened = reopen(); !opened) return opened;
  while (!lines.empty()) {
    const ssize_t written = ::write(fd_, lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return invalid(fmt::format("the audit log {} cannot be written: {}", options_.path, std::strerror(errno)));
    lines.remove_prefix(static_cast<std::size_t>(written));
    size_ += static_cast<std::size_t>(written);
  }
  return {};
}

void RotatedFile::rotate(TimePoint now) {
  std::error_code none;
  fs::rename(options_.path, backup_name(options_.path, now), none);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  size_ = 0;
  drop_old(now);
}

void RotatedFile::drop_old(TimePoint now) const {
  if (options_.max_backups <= 0 && options_.max_age_days <= 0) return;
  const fs::path path(options_.path);
  const std::string prefix = path.stem().string() + "-", suffix = path.extension().string();
  constexpr std::size_t kStamp = 23;
  std::vector<std::string> backups;
  std::error_code none;
  const fs::path parent = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(suffix) && name.size() == prefix.size() + kStamp + suffix.size())
      backups.push_back(name);
  }
  std::ranges::sort(backups, std::greater());  // The stamp sorts as time does; newest first.
  const std::string oldest = options_.max_age_days > 0
                                 ? backup_name(path, now - std::chrono::hours(24) * options_.max_age_days).filename().string()
                                 : std::string();
  for (std::size_t i = 0; i < backups.size(); ++i) {
    const bool is_too_many = options_.max_backups > 0 && i >= static_cast<std::size_t>(options_.max_backups);
    if (is_too_many || (!oldest.empty() && backups[i] < oldest)) fs::remove(parent / backups[i], none);
  }
}

}  // namespace berth::apiserver::audit
