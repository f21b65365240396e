// The pieces of replay.h: one function a kind of file, and the comparison they share.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "node/eviction/summary.h"
#include "node/eviction/thresholds.h"

namespace berth::node::eviction {

[[nodiscard]] std::vector<std::string> replay_manager(const json::Value& file);
[[nodiscard]] std::vector<std::string> replay_parsing(const json::Value& file);

/// Empty when `got` equals `expected`, or one of its elements when that is a list; otherwise the difference to the nearest.
[[nodiscard]] std::string compare_alternatives(const json::Value& got, const json::Value& expected);
[[nodiscard]] std::string describe_difference(const json::Value& got, const json::Value& expected);

[[nodiscard]] StatementMap read_statement_map(const json::Value& object, std::string_view key);
[[nodiscard]] json::Value threshold_value_json(const ThresholdValue& value);
[[nodiscard]] json::Value observations_json(const Observations& observations);

}  // namespace berth::node::eviction
