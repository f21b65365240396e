// A transport that shows its exchanges to somebody on their way: whoever adds headers, or reads those of answers.
#pragma once
#include "client/transport.h"

namespace berth::client {

/// What sees every exchange of a transport; either may be empty. Called from any thread.
struct TransportHooks {
  std::function<void(net::HttpRequest&)> before;                          ///< May change the request.
  std::function<void(int status, const net::Headers& headers)> answered;  ///< The answer's head, before the caller sees it.
};
std::shared_ptr<Transport> with_hooks(std::shared_ptr<Transport> inner, TransportHooks hooks);

}  // namespace berth::client
