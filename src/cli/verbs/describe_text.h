// What `berth describe` prints, in kubectl's layout: pods and nodes field by field, other kinds as their fields stand.
#pragma once
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/kinds.h"

namespace berth::cli {

/// What belongs to an object but is not in it.
struct DescribeContext {
  std::vector<json::Value> events;  ///< Whose involvedObject it is.
  std::vector<json::Value> pods;    ///< Of a Node: what is bound to it.
  TimePoint now{};
};

/// The whole text of one object, its events last.
std::string describe(const model::KindInfo& kind, const json::Value& object, const DescribeContext& context);

}  // namespace berth::cli
