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

/// A label of nodes in whose domains a group stays together. Levels go from the widest domains to the narrowest, the required ones first.
struct TopologyLevel {
  std::string key;
  bool is_required = true;  ///< Else: where it can be had, and neighbouring ranks share a domain where it cannot.
  friend bool operator==(const TopologyLevel&, const TopologyLevel&) = default;
};

/// Levels beside the one that the API's field has room for: keys in a list with commas, the widest domains first.
inline constexpr std::string_view kRequiredTopology = "scheduling.berth.dev/required-topology";
inline constexpr std::string_view kPreferredTopology = "scheduling.berth.dev/preferred-topology";

/// An entry of a group's spec.resourceClaims. A pod of the group that has the very same entry shares the claim (KEP-5729).
struct GroupClaim {
  std::string name;
  std::string claim_name, template_name;  ///< One of them is not empty.
  friend bool operator==(const GroupClaim&, const GroupClaim&) = default;
};

/// Of one PodGroup what decisions go by.
struct PodGroup {
  std::string ns, name, uid;
  bool is_gang = false;               ///< schedulingPolicy.gang; else basic.
  std::int64_t min_count = 1;         ///< Of a gang; below it none of them is placed. Basic groups have 1.
  std::string topology_key;           ///< schedulingConstraints.topology[0].key: all in one domain; empty: anywhere.
  bool has_constraints = false;       ///< schedulingConstraints is there at all.
  std::vector<TopologyLevel> levels;  ///< Of annotations, with the field's key among them; empty: the field's key is all there is.
  std::string mistake;                ///< What is wrong with an annotation, for people; empty: nothing.
  std::string created;                ///< creationTimestamp: RFC 3339, empty when absent.
  bool goes_as_one = false;           ///< disruptionMode PodGroup: a group that preempts evicts all of it or none.
  std::int64_t priority = 0;          ///< As admission resolved it.
  std::vector<GroupClaim> claims = {};

  [[nodiscard]] std::string key() const { return ns + "/" + name; }
  /// Of field and annotations, the required ones first.
  [[nodiscard]] std::vector<TopologyLevel> all_levels() const {
    return levels.empty() && !topology_key.empty() ? std::vector<TopologyLevel>{{topology_key, true}} : levels;
  }
  /// Nothing differs that a decision goes by.
  [[nodiscard]] bool asks_the_same(const PodGroup& other) const;
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
