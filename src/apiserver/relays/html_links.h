// Pages behind a proxy: what they link to by an absolute path lies below the proxy's own.
#pragma once
#include <string>
#include <string_view>

namespace berth::apiserver {

/// `url` as it has to be for one who sees the page below `prefix` ("/api/v1/namespaces/a/pods/b/proxy"): an absolute path on the same host
/// gets the prefix, everything else stays. `hosts`: the far end's "address:port" and the Host that the client asked (apimachinery
/// pkg/util/proxy/transport.go).
std::string link_below(std::string_view url, std::string_view prefix, std::string_view far_host, std::string_view asked_host);

/// Rewrites the links of a page that comes in pieces; a tag that is not complete yet is held back, up to 64 KiB.
class HtmlLinks {
 public:
  HtmlLinks(std::string prefix, std::string far_host, std::string asked_host)
      : prefix_(std::move(prefix)), far_host_(std::move(far_host)), asked_host_(std::move(asked_host)) {}
  /// What can be passed on now.
  std::string feed(std::string_view data);
  /// What is left when the page ends.
  std::string finish() { return std::move(held_); }

 private:
  /// `tag` from "<" to ">".
  [[nodiscard]] std::string rewritten(std::string_view tag);
  std::string prefix_, far_host_, asked_host_;
  std::string held_;
  std::string until_;  ///< Text is passed on as it is up to this: the end of a comment, of a script, of a style sheet.
};

}  // namespace berth::apiserver
