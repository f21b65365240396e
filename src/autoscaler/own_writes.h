// What this autoscaler wrote and the watches have not shown yet: a pass before that would decide on the past, and ask for the same twice.
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "model/kinds.h"

namespace berth::autoscaler {

/// "machinesets.machine.openshift.io"
inline std::string resource_name(const model::Gvr& gvr) { return gvr.resource + "." + gvr.group; }

/// The resourceVersion of what a write answered; 0 when there is none.
inline std::int64_t revision_in(const json::Value& object) {
  std::int64_t out = 0;
  const std::string_view text = json::get_string(object, {"metadata", "resourceVersion"});
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// Single-threaded.
class OwnWrites {
 public:
  void started(const std::string& resource) { ++in_flight_[resource]; }
  /// `revision`: the resourceVersion that the write made; 0 when it failed.
  void ended(const std::string& resource, std::int64_t revision) {
    const auto open = in_flight_.find(resource);
    BERTH_CHECK(open != in_flight_.end(), "a write of {} is answered, and none is under way", resource);
    if (--open->second == 0) in_flight_.erase(open);
    if (revision > 0) awaited_[resource] = std::max(awaited_[resource], revision);
  }
  /// The resources of which writes are not answered or not seen; `seen` says how far the watch of a resource has come. What is seen is
  /// forgotten.
  [[nodiscard]] std::vector<std::string> outstanding(const std::function<std::int64_t(const std::string&)>& seen) {
    std::erase_if(awaited_, [&](const auto& entry) { return seen(entry.first) >= entry.second; });
    std::vector<std::string> out;
    for (const auto& [resource, count] : in_flight_) out.push_back(resource);
    for (const auto& [resource, revision] : awaited_)
      if (!in_flight_.contains(resource)) out.push_back(resource);
    return out;
  }

 private:
  std::map<std::string, int> in_flight_;
  std::map<std::string, std::int64_t> awaited_;
};

}  // namespace berth::autoscaler
