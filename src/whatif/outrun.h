// An answer is about a moment. What it speaks of, as it was then, goes into the answer; held against the cluster of a later moment it says
// what has changed since. Pure; the same for `berth what-if --check`, `pack --check` and tests.
#pragma once
#include <string>
#include <vector>

#include "whatif/world.h"

namespace berth::whatif {

/// When the objects were read, as far as they tell: the newest revision and the newest time stamp among them.
struct Moment {
  std::uint64_t revision = 0;
  std::string newest;  ///< RFC 3339; empty: no object has one.
  void see(const json::Value& object);
  [[nodiscard]] json::Object to_json() const;
};

/// `seen` of an answer: every pod, node, budget and workload that it speaks of, as it is in the present.
json::Array seen_by(const json::Value& answer, const json::Value& question, const placement::Cluster& cluster, const Tables& present);

/// What of `seen` is not so any more: a sentence each.
std::vector<std::string> changed_since(const json::Array& seen, const placement::Cluster& cluster, const Tables& present);

/// How two answers to one question differ in what they tell to do or to expect; reasons in words are not compared. Empty: they do not.
std::vector<std::string> differences(const json::Value& then, const json::Value& now);

}  // namespace berth::whatif
