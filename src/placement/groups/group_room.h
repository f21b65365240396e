// For how many members of a group a set of nodes has room, by sums: what a question to the engine need not be asked for.
//
// A kind of members is plain where nothing decides about a node but its object and the amounts on it: no claims, ports, affinity,
// spreading, nobody who minds them. Then a node takes one if and only if the amounts suffice, whoever else was placed where.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "placement/trial.h"

namespace berth::placement {

/// Members of one signature: interchangeable.
struct MemberKind {
  PodInfoPtr example;
  std::vector<std::size_t> members;  ///< Positions among those asked about.
  bool is_plain = false;
};

/// Of one trial as it is now; nodes' objects and other objects may not change while it is used, pods may go and come back.
class GroupRoom {
 public:
  GroupRoom(Trial& trial, std::span<const PodInfoPtr> members);

  [[nodiscard]] const std::vector<MemberKind>& kinds() const { return kinds_; }
  /// All kinds are, and nominated pods count for all of them alike.
  [[nodiscard]] bool is_plain() const { return is_plain_; }

  // Amounts in a row: cpu, memory, ephemeral storage, pods, then the other resources that some kind asks for.
  [[nodiscard]] std::size_t width() const { return 4 + scalars_.size(); }
  /// What the pod takes, or would take (`is_placed` false: by its spec alone).
  void amounts_of(const PodInfo& pod, bool is_placed, std::int64_t* out) const;
  /// What is left on the node, nominated pods counted.
  void left_on(const NodeInfo& node, std::int64_t* out) const;
  /// The same without them: no kind can ever have more.
  void left_beside_nominations(const NodeInfo& node, std::int64_t* out) const;

  /// The node's object does not reject it; of kinds that are not plain always.
  [[nodiscard]] bool may_go(std::size_t kind, const NodeInfo& node) const;
  /// So many of the kind go with what is left, as far as amounts count; no more than kMost.
  [[nodiscard]] std::int64_t room(std::size_t kind, const std::int64_t* left) const { return room_for(wanted_[kind], left); }
  /// The same for a pod that asks for the most that any kind asks for of each amount: where there is room for so many of those, the group
  /// fits in whatever order.
  [[nodiscard]] std::int64_t room_for_any(const std::int64_t* left) const { return room_for(largest_, left); }
  [[nodiscard]] const std::vector<std::int64_t>& wanted(std::size_t kind) const { return wanted_[kind]; }
  static constexpr std::int64_t kMost = 1 << 30;

 private:
  struct Rules {
    CycleState state;
    std::vector<const Plugin*> filters;               ///< Those that look at a node's object alone.
    std::optional<std::set<std::string>> only_nodes;  ///< PreFilter named them.
  };
  void sort_into_kinds(Trial& trial, std::span<const PodInfoPtr> members);
  [[nodiscard]] std::optional<Rules> rules_of(const Trial& trial, const MemberKind& kind, bool has_checks) const;
  [[nodiscard]] bool counts_nominations_alike(std::span<const PodInfoPtr> members) const;
  static std::int64_t room_for(const std::vector<std::int64_t>& wanted, const std::int64_t* left) {
    std::int64_t out = kMost;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i] > 0) out = left[i] <= 0 ? 0 : std::min(out, left[i] / wanted[i]);
    return out;
  }

  const Cluster& cluster_;
  std::vector<MemberKind> kinds_;
  std::vector<std::string> scalars_;               ///< Sorted.
  std::vector<std::vector<std::int64_t>> wanted_;  ///< By kind.
  std::vector<std::int64_t> largest_;
  std::vector<std::optional<Rules>> rules_;  ///< By kind; nullopt: not plain.
  std::int64_t priority_ = 0;
  bool is_plain_ = false;
};

}  // namespace berth::placement
