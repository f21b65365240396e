// Why a group of pods waits: which member stops it, which domain comes nearest and what is missing there, and the smallest changes that
// would place it. Pure: every answer is a trial.
#pragma once
#include <string>
#include <vector>

#include "placement/groups/group_decision.h"

namespace berth::placement {

/// A set of nodes in which a group may be: one value of its topology key, or the whole cluster (no name).
struct DomainReport {
  std::string name;
  std::size_t nodes = 0;
  std::size_t placeable = 0;  ///< So many of those that wait find a place there, each wherever it can.
  std::string stopped;        ///< The first of them that finds none; empty: all do.
  std::string why;            ///< What the scheduler says of that one there.
};

/// What would end, and the group has room then.
struct GroupEnding {
  std::string what;  ///< "gang ns/name", "ReplicaSet ns/name"
  std::size_t pods = 0;
  std::int64_t priority = 0;  ///< The highest of theirs.
};

struct GroupExplanation {
  enum class Verdict { kPlaced, kFits, kPending, kTooFew, kError };
  std::string group;
  Verdict verdict = Verdict::kPending;
  std::string summary;  ///< One sentence.
  std::int64_t min_count = 1;
  std::size_t standing = 0, waiting = 0;
  std::string topology_key;
  std::vector<std::pair<std::string, std::string>> places;  ///< kFits: members and the nodes that they would get.
  std::string message;                                      ///< As the PodGroup's condition would say it; else empty.
  std::vector<DomainReport> domains;                        ///< kPending: nearest first.
  std::vector<std::string> changes;                         ///< Each is enough, the smallest of its sort: sentences, with commands.
  std::vector<GroupEnding> endings;                         ///< Each is enough; the least important and the fewest pods first.
  std::vector<std::string> victims;                         ///< Whom the scheduler itself would evict for it.
};

struct GroupToExplain {
  PodGroupPtr group;
  std::vector<PodInfoPtr> waiting;  ///< Its pods without a place, in the order in which they choose.
  std::size_t most_endings = 3, most_trials = 200;
  std::size_t most_domains = 100;
};

/// The trial is as it was afterwards.
[[nodiscard]] GroupExplanation explain_group(Trial& trial, const PodGroups& groups, const GroupToExplain& asked);

json::Value to_json(const GroupExplanation& explanation);
std::string to_text(const GroupExplanation& explanation);

}  // namespace berth::placement
