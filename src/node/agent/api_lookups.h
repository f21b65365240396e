// What pods need of the API besides its objects by name.
#pragma once
#include "base/clock.h"
#include "client/client.h"
#include "node/agent/volumes.h"

namespace berth::node::agent {

/// Asks for a token that ends with its pod; blocks. kNotFound: there is no such account.
Result<Token> request_token(client::Client& client, const Clock& clock, const TokenRequest& request);

/// The services whose variables a pod of this namespace gets (ObjectSource::services); blocks.
std::vector<json::Value> services_for_variables(client::Client& client, const std::string& ns, bool with_namespace);

}  // namespace berth::node::agent
