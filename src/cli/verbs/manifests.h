// Verbs that work through the objects of files.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command/session.h"

namespace berth::cli {

/// The field managers of `berth apply` and `berth create`.
inline constexpr std::string_view kApplier = "berth", kCreator = "berth-create";

/// The namespace a manifest goes to: its own, or the session's; empty for cluster-scoped kinds.
std::string namespace_of(const Session& session, const model::KindInfo& kind, const json::Value& document);

/// Runs `each` for every object of the files; keeps going after a failure, as kubectl does. Returns the exit code.
int for_each_manifest(const ConnectionFlags& flags, const std::vector<std::string>& files,
                      const std::function<int(Session&, Manifest&)>& each);

/// Posts one object. `query`: more of the call's query, such as dryRun=All.
model::ApiResult<json::Value> create_object(Session& session, const model::KindInfo& kind, const json::Value& document,
                                            const std::string& query = {});

}  // namespace berth::cli
