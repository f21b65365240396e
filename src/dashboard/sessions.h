// Who may use the dashboard: a one-time token in the address that is printed, exchanged for a cookie. Everything else on the machine (other
// users, other pages of the same browser, names that a stranger's DNS points here) stays out.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/http.h"

namespace berth::dashboard {

/// Judges every request before anything else looks at it. Thread-safe.
///
///   GET /?token=T --the token is T, and was not used--> a session, its cookie; the token is void, the next one is told to `on_new_token`
///   anything      --Host is no name of this machine's loopback--> 403: somebody's DNS name (rebinding)
///                 --Origin or Sec-Fetch-Site is another page's--> 403
///                 --no cookie of a session--> 401
class Sessions {
 public:
  struct Options {
    const Clock* clock = nullptr;         ///< Outlives this.
    std::function<std::string()> secret;  ///< 256 bits from the machine's random source, as characters of a URL.
    std::string cookie = "berth-dashboard";
    Duration idle = std::chrono::hours(12);           ///< A session that is not used for so long has ended.
    std::function<void(std::string)> on_new_token{};  ///< After one was used; from an I/O thread. May be null.
  };
  explicit Sessions(Options options);

  /// The token that opens the next session.
  [[nodiscard]] std::string token() const;
  /// nullopt: it is a session's request, go on. Otherwise the whole answer.
  std::optional<net::HttpResponse> judge(const net::HttpRequest& request);
  /// Whether the request has a session's cookie. Does not count as use.
  [[nodiscard]] bool has_session(const net::HttpRequest& request) const;

 private:
  struct Session {
    std::string secret;
    TimePoint used{};
  };
  [[nodiscard]] Session* session_of(const net::HttpRequest& request) const BERTH_REQUIRES(mutex_);
  std::optional<net::HttpResponse> exchange(const net::HttpRequest& request);

  static constexpr std::size_t kMostSessions = 64;
  Options options_;
  mutable Mutex mutex_;
  std::string token_ BERTH_GUARDED_BY(mutex_);
  mutable std::vector<Session> sessions_ BERTH_GUARDED_BY(mutex_);  ///< Used last last.
};

/// "127.0.0.1", "localhost" or "[::1]", with any port: the browser finds these without DNS.
bool is_loopback_host(std::string_view host);

/// What every answer of the dashboard has: nothing is run, framed, sent or kept but what this server itself served.
void add_security_headers(net::Headers& headers);

/// An answer in words, as a page for people or as JSON ({"message": …}) for programs.
net::HttpResponse refusal(const net::HttpRequest& request, int status, std::string_view message);

/// For Sessions::Options::secret.
std::string random_secret();

}  // namespace berth::dashboard
