// URLs as Go's net/url reads them, with its words for what is wrong.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"

namespace berth::go {

/// A URL in its parts. `host` is as Go's: "example.com:80", "[::1]:443", escapes resolved.
struct Url {
  std::string scheme, opaque, host, path, query, fragment;
  std::optional<std::string> user;  ///< As it stood there; empty text is not the same as none.

  [[nodiscard]] std::string hostname() const;
  [[nodiscard]] std::string port() const;
  /// url.EscapedPath: as it stood there when that is a valid encoding, else our own.
  [[nodiscard]] std::string escaped_path() const;
  std::string raw_path;
};

/// url.Parse. The error is Go's: `parse "https://[::1": missing ']' in host`.
Expected<Url, std::string> parse_url(std::string_view text);
/// url.ParseRequestURI: absolute, or a path; a '#' is no fragment.
Expected<Url, std::string> parse_request_uri(std::string_view text);

/// url.Values: keys in the order in which each came first. What cannot be decoded is left out.
std::vector<std::pair<std::string, std::vector<std::string>>> parse_query(std::string_view query);

}  // namespace berth::go
