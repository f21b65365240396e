// PodGroups (scheduling.k8s.io/v1alpha2) as placement reads them, and who belongs to each.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace berth::placement {

/// Of one PodGroup what decisions go by.
struct PodGroup {
  std::string ns, name, uid;
  bool is_gang = false;          ///< schedulingPolicy.gang; else basic.
  std::int64_t min_count = 1;    ///< Of a gang; below it none of them is placed. Basic groups have 1.
  std::string topology_key;      ///< schedulingConstraints.topology[0].key: all in one domain; empty: anywhere.
  bool has_constraints = false;  ///< schedulingConstraints is there at all.
  bool goes_as_one = false;      ///< disruptionMode PodGroup: a group that preempts evicts all of it or none.
  std::int64_t priority = 0;     ///< As admission resolved it.

  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  static PodGroup parse(const json::Value& object);
};
using PodGroupPtr = std::shared_ptr<const PodGroup>;

/// Groups and their members, both by key and in any order of coming. Owner: the asker; single-threaded.
class PodGroups {
 public:
  void upsert(PodGroupPtr group);
  void remove(std::string_view key);
  /// Null when there is none.
  [[nodiscard]] PodGroupPtr find(std::string_view key) const;

  struct Member {
    std::string uid, pod_key;
  };
  /// A pod that is there and has not ended. True: it was not known.
  bool add_member(const std::string& group_key, const Member& member);
  /// True: it was known.
  bool remove_member(const std::string& group_key, const std::string& uid);
  /// In order of coming.
  [[nodiscard]] std::vector<Member> members(const std::string& group_key) const;
  /// The key of the group that the pod is a member of; empty for none.
  [[nodiscard]] const std::string& group_of(const std::string& uid) const;
  [[nodiscard]] std::size_t count(const std::string& group_key) const;
  [[nodiscard]] bool empty() const { return groups_.empty() && members_.empty(); }

 private:
  struct Members {
    std::map<std::uint64_t, Member> by_arrival;
    std::map<std::string, std::uint64_t, std::less<>> arrivals;  ///< By uid.
  };
  std::map<std::string, PodGroupPtr, std::less<>> groups_;
  std::map<std::string, Members, std::less<>> members_;
  std::unordered_map<std::string, std::string> group_of_;  ///< By uid.
  std::uint64_t next_arrival_ = 0;
};

}  // namespace berth::placement
