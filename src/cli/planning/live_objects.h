// A live cluster's objects, read once, for whoever answers questions about it.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"

namespace berth::cli {

/// What of a live cluster could be read.
struct LiveKinds {
  std::vector<std::string> listed;  ///< Plural names: of these every object was handed over.
  /// What the server would not give, and answers do without: a sentence for all kinds that the user may not list, one for each other
  /// failure, with the server's own words.
  std::vector<std::string> unread;
};

/// Lists (group, plural) after (group, plural) in that order, blocking. What a server does not serve is passed over. Without nodes or pods
/// there is no answer at all: the error is the server's own.
client::ApiResult<LiveKinds> read_live_objects(client::Client& client, std::span<const std::pair<std::string, std::string>> resources,
                                               const std::function<void(json::Value)>& each);

/// Why a live cluster was not read: `refused` gets what the server said, where it was the server; the error is for a command's user.
Error live_error(const model::ApiStatus& said, std::optional<model::ApiStatus>* refused);

}  // namespace berth::cli
