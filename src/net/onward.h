// Requests that somebody else's request causes: the only place that says what of the one goes into the other.
#pragma once
#include "net/http.h"

namespace berth::net {

/// Whom a request goes on to.
enum class Onward {
  kSession,   ///< A node's or runtime's log, exec, attach or port-forward: named headers, never a body.
  kNode,      ///< A node's own endpoints: named headers, and the body.
  kWorkload,  ///< An application, which has headers of its own: everything that is meant for the far end, and the body.
};

/// Whether `Connection` asks for a change of protocol that `Upgrade` names.
bool asks_for_upgrade(const Headers& headers);

/// Method, headers and body of `from` for the next hop; path and query are the caller's. What belongs to one connection (RFC 9110 7.6.1:
/// the fixed fields and those that Connection names), the framing of the body, the user's credentials and Accept-Encoding never pass. An
/// upgrade that is asked for is asked for anew, without a body.
HttpRequest onward_request(const HttpRequest& from, Onward to);

/// The headers of an answer for the one who asked, without those of the connection it came by and its date.
Headers headers_back(const Headers& from);

/// Whether a field belongs to one connection or to the framing of one message.
bool is_hop_by_hop(std::string_view name);

}  // namespace berth::net
