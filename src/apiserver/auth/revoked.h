// Client certificates that are refused before they end: a file of serials, a line each, read anew when it changes.
#pragma once
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/mutex.h"

namespace berth::apiserver::auth {

/// A serial of hexadecimal digits, colons between them allowed, as `openssl x509 -serial` and browsers show it: lower case, no leading
/// zeros. Empty: it is none.
std::string normal_serial(std::string_view text);

/// The file's lines: SERIAL, then whatever helps people (`# why`). What is no serial is an error that names the line.
Result<std::set<std::string, std::less<>>> read_revoked(const std::string& path);

/// Thread-safe. Looks at the file's time and size at most once a second. A file that is gone revokes nothing; one that cannot be read as
/// what it should be is told in the log, and what was revoked stays so.
class RevokedCertificates {
 public:
  explicit RevokedCertificates(std::string path);
  [[nodiscard]] bool contains(std::string_view serial);
  /// Looks at the file now.
  void refresh();

 private:
  void read() BERTH_REQUIRES(mutex_);
  const std::string path_;
  std::atomic<std::int64_t> next_look_ms_{0};
  Mutex mutex_;
  std::string stamp_ BERTH_GUARDED_BY(mutex_);  ///< Of the file as it was read.
  std::shared_ptr<const std::set<std::string, std::less<>>> serials_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::apiserver::auth
