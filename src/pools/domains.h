// Pods that see one another, made ready for packing by numbers: in which places each of them gets its node, and what else numbers can keep.
//
//   zones and the like   decided one pod after the other, by the scheduler's plugins, on one node without end in each place
//   keeping apart        a slot of the node: an amount of which each node has one, or as many as the skew allows
//   staying together     one unit, that takes one node
//
// What this does not say (a pod beside another's on its host) is left to whoever puts the nodes into the trial.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "pools/shape_table.h"

namespace berth::pools {

/// Pods that are packed alike.
struct PodLot {
  std::vector<std::vector<placement::PodInfoPtr>> units;  ///< What goes to one node together; never empty.
  std::vector<std::size_t> places;                        ///< Of ShapeTable, ascending; empty: wherever it is allowed.
  Amounts slots;                                          ///< What a unit takes of `PodLots::slots`.
  [[nodiscard]] const placement::PodInfo& first() const { return *units.front().front(); }
};
struct PodLots {
  std::vector<PodLot> lots;
  Amounts slots;                                           ///< What each node has of them.
  std::vector<placement::PodInfoPtr> rest;                 ///< For whom no place is known.
  std::map<const placement::PodInfo*, std::size_t> order;  ///< In which the plugins took them; who is not in it comes last.
};

/// `zone`: tried first where there is a choice; empty: the cheapest. `trial` is left as it was; `left`: of the pools' limits.
PodLots lots_of(placement::Trial& trial, ShapeTable& table, const std::vector<placement::PodInfoPtr>& pods,
                const std::vector<Amounts>& left, const std::string& zone);

}  // namespace berth::pools
