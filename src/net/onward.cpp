#include "net/onward.h"

#include <algorithm>
#include <span>

#include "net/websocket.h"

namespace berth::net {
namespace {

constexpr std::string_view kHopByHop[] = {
    "Connection",          "Content-Length",   "Expect", "Host",    "HTTP2-Settings",    "Keep-Alive", "Proxy-Authenticate",
    "Proxy-Authorization", "Proxy-Connection", "TE",     "Trailer", "Transfer-Encoding", "Upgrade"};
/// What a session is negotiated with.
constexpr std::string_view kOfSessions[] = {
    "Accept",     "Sec-WebSocket-Extensions", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol", "Sec-WebSocket-Version",
    "User-Agent", "X-Stream-Protocol-Version"};
constexpr std::string_view kOfDocuments[] = {"Accept-Language", "Cache-Control",       "If-Match", "If-Modified-Since", "If-None-Match",
                                             "If-Range",        "If-Unmodified-Since", "Range"};
constexpr std::string_view kOfBodies[] = {"Content-Encoding", "Content-Language", "Content-Type"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view known) { return equal_ignoring_case(known, name); });
}

bool is_of_the_user(std::string_view name) {
  constexpr std::string_view kImpersonate = "Impersonate-";
  return equal_ignoring_case(name, "Authorization") || equal_ignoring_case(name.substr(0, kImpersonate.size()), kImpersonate);
}

bool is_named_by_connection(const Headers& headers, std::string_view name) {
  return std::ranges::any_of(
      headers.fields(), [&](const auto& field) { return equal_ignoring_case(field.first, "Connection") && has_token(field.second, name); });
}

bool may_pass(std::string_view name, Onward to, bool has_body) {
  if (is_one_of(kOfBodies, name)) return has_body;
  switch (to) {
    case Onward::kSession:
      return is_one_of(kOfSessions, name);
    case Onward::kNode:
      return is_one_of(kOfSessions, name) || is_one_of(kOfDocuments, name);
    case Onward::kWorkload:
      break;
  }
  return !is_hop_by_hop(name) && !is_of_the_user(name) && !equal_ignoring_case(name, "Accept-Encoding");
}

}  // namespace

bool is_hop_by_hop(std::string_view name) { return is_one_of(kHopByHop, name); }

bool asks_for_upgrade(const Headers& headers) { return !headers.get("Upgrade").empty() && is_named_by_connection(headers, "upgrade"); }

HttpRequest onward_request(const HttpRequest& from, Onward to) {
  HttpRequest onward;
  onward.method = from.method;
  const bool upgrades = asks_for_upgrade(from.headers);
  if (to != Onward::kSession && !upgrades) onward.body = from.body;
  for (const auto& [name, value] : from.headers.fields()) {
    if (!may_pass(name, to, !onward.body.empty()) || is_named_by_connection(from.headers, name)) continue;
    if (!equal_ignoring_case(name, "Sec-WebSocket-Protocol")) {
      onward.headers.add(name, value);
    } else if (std::string others = without_websocket_token(value); !others.empty()) {
      onward.headers.add(name, std::move(others));
    }
  }
  if (upgrades) {
    onward.headers.add("Connection", "Upgrade");
    onward.headers.add("Upgrade", std::string(from.headers.get("Upgrade")));
  }
  return onward;
}

Headers headers_back(const Headers& from) {
  Headers headers;
  for (const auto& [name, value] : from.fields())
    if (!is_hop_by_hop(name) && !equal_ignoring_case(name, "Date") && !is_named_by_connection(from, name)) headers.add(name, value);
  return headers;
}

}  // namespace berth::net
