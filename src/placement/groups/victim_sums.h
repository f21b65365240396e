// Who could go for a group, in rows, and for how many of its members there would be room then.
#pragma once
#include <span>
#include <vector>

#include "placement/groups/group_room.h"
#include "placement/groups/pod_groups.h"

namespace berth::placement {

/// A pod of lower priority, or a whole group that is disrupted as one.
struct Victim {
  std::int64_t priority = 0, start_time_ns = INT64_MAX;  ///< The earliest start.
  std::uint32_t first = 0, count = 0;                    ///< Rows: those of one victim stand together.
  bool is_grouped = false;                               ///< Its pods are of a PodGroup, whatever its disruption mode.
};

/// More important ones are given back first: higher priority, groups before single pods, larger groups, earlier start.
[[nodiscard]] bool comes_before(const Victim& a, const Victim& b);

/// All that could go for the group. Pods of the cluster as it was; they must live.
struct Victims {
  struct Row {
    const PodInfo* pod = nullptr;
    NodeIndex node;
  };
  std::vector<Victim> all;  ///< The most important first; equals in the order of nodes and of the pods there.
  std::vector<Row> rows;

  Victims(const Cluster& cluster, const PodGroup& preemptor, const PodGroups& groups);
  [[nodiscard]] std::span<const Row> rows_of(const Victim& victim) const { return std::span(rows).subspan(victim.first, victim.count); }
};

/// What is left on nodes while victims are away, and so for how many members there is room. All victims are away at first.
class VictimSums {
 public:
  /// `domain_of`: by node slot, which domain of `domains` it is of; -1 for none.
  VictimSums(const Cluster& cluster, const GroupRoom& room, const Victims& victims, std::vector<std::int32_t> domain_of,
             std::size_t domains, std::int64_t need);

  /// Of plain members in one domain, what sums say of the greedy order: it places enough, it cannot, or only the engine knows.
  enum class Answer : std::uint8_t { kFits, kDoesNot, kOpen };
  [[nodiscard]] Answer answer(std::size_t domain) const;
  void give_back(const Victim& victim) { change(victim, -1); }
  void take_away(const Victim& victim) { change(victim, 1); }
  /// Some pod of the victim is on a node that could take members, in the domain.
  [[nodiscard]] bool concerns(const Victim& victim, std::size_t domain) const;
  [[nodiscard]] const std::vector<std::int32_t>& domain_of() const { return domain_of_; }

 private:
  void change(const Victim& victim, std::int64_t sign);
  void recount(std::uint32_t slot);

  const GroupRoom& rules_;
  const Victims& victims_;
  std::vector<std::int32_t> domain_of_;
  std::int64_t need_;
  std::size_t width_, kinds_;
  std::vector<std::int64_t> left_;          ///< By slot, in rows of width_.
  std::vector<std::int64_t> amounts_;       ///< By row of victims, likewise.
  std::vector<std::uint8_t> may_go_;        ///< By slot, a kind each.
  std::vector<std::int64_t> room_;          ///< By slot, a kind each; the last of each slot: for the largest of all kinds.
  std::vector<std::int64_t> room_of_kind_;  ///< The sums of those, by domain.
};

}  // namespace berth::placement
