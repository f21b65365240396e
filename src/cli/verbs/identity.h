// Who the server says a client is.
#pragma once
#include <string>

#include "client/client.h"

namespace berth::cli {

/// The user's name, by a SelfSubjectReview. Blocks.
model::ApiResult<std::string> who_am_i(client::Client& client);

}  // namespace berth::cli
