#include "apiserver/auth/revoked.h"

#include <sys/stat.h>

#include <chrono>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "base/mutex.h"

namespace berth::apiserver::auth {
namespace {

/// Changes with the file; empty when it is not there.
std::string stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return fmt::format("{} {} {}.{}", info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string normal_serial(std::string_view text) {
  std::string out;
  if (text.starts_with("serial=")) text.remove_prefix(7);
  if (text.starts_with("0x")) text.remove_prefix(2);
  for (const char c : text) {
    if (c == ':') continue;
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) return {};
    if (c != '0' || !out.empty()) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

Result<std::set<std::string, std::less<>>> read_revoked(const std::string& path) {
  std::set<std::string, std::less<>> out;
  if (stamp_of(path).empty()) return out;
  std::ifstream in(path);
  if (!in) return invalid(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos || line[start] == '#') continue;
    const auto end = line.find_first_of(" \t\r#", start);
    std::string serial = normal_serial(std::string_view(line).substr(start, end - start));
    if (serial.empty())
      return invalid(fmt::format("{}:{}: \"{}\" is not a serial of hexadecimal digits (openssl x509 -noout -serial -in CERTIFICATE)", path,
                                 number, line.substr(start, end - start)));
    out.insert(std::move(serial));
  }
  return out;
}

RevokedCertificates::RevokedCertificates(std::string path) : path_(std::move(path)) { refresh(); }

void RevokedCertificates::refresh() {
  const MutexLock lock(mutex_);
  read();
}

void RevokedCertificates::read() {
  const std::string stamp = stamp_of(path_);
  if (serials_ != nullptr && stamp == stamp_) return;
  auto serials = read_revoked(path_);
  if (!serials) {
    log::error("auth", "{}; what was revoked before stays revoked", serials.error().message);
    if (serials_ == nullptr) serials_ = std::make_shared<const std::set<std::string, std::less<>>>();
    stamp_ = stamp;
    return;
  }
  stamp_ = stamp;
  serials_ = std::make_shared<const std::set<std::string, std::less<>>>(std::move(*serials));
}

bool RevokedCertificates::contains(std::string_view serial) {
  if (serial.empty()) return false;
  const MutexLock lock(mutex_);
  if (const std::int64_t now = steady_ms(); now >= next_look_ms_) {
    next_look_ms_ = now + 1000;
    read();
  }
  return serials_->contains(serial);
}

}  // namespace berth::apiserver::auth
