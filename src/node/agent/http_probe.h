// One HTTP probe on its way: redirects are followed as long as they stay with the pod (pkg/probe/http).
#pragma once
#include <string>

#include "net/http.h"

namespace berth::node::agent {

/// "10.0.0.1:80", "[fd00::1]:80".
[[nodiscard]] std::string host_and_port(const std::string& host, int port);

struct HttpPlace {
  bool is_tls = false;
  std::string host;  ///< A name or address, without brackets.
  int port = 0;
  std::string path = "/";  ///< With the query.

  [[nodiscard]] std::string origin() const;
  [[nodiscard]] std::string url() const { return origin() + path; }
  /// Where a Location header seen here leads; nullopt when it is no http or https address.
  [[nodiscard]] std::optional<HttpPlace> resolve(std::string_view location) const;
};

struct HttpAnswer {
  int status = 0;  ///< 0: `error` says why there is none. A redirect to somebody else is the answer itself.
  std::string error;
  std::string body;  ///< Its first 10 KiB.
};

/// GET without looking at certificates: what answers is the pod, whoever it says it is. Follows up to ten redirects on the same host; all
/// of them together have `timeout_ms`. Blocks.
[[nodiscard]] HttpAnswer follow_http(HttpPlace place, const net::Headers& headers, int timeout_ms);

}  // namespace berth::node::agent
