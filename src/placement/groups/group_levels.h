// Domains of nodes for a group, on one level or several (a rack within a zone), and which of them it gets beyond kube-scheduler's rules.
//
//   narrowest level that is preferred --> a domain that takes everybody? --> that one
//            | none
//            v      (and so on, wider and wider)
//   the required levels --> of the domains that take everybody, the one where the least room is left; else the one that takes most
//            within it: ranks in order along the preferred domains, as few of those as can be
//            too few in the greedy order: a search (group_search.h)
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/expected.h"
#include "placement/groups/group_decision.h"

namespace berth::placement {

/// Amounts by which domains are compared: what pods ask for, with defaults, and what nodes have.
struct GroupAmounts {
  std::int64_t cpu_milli = 0, memory_bytes = 0;
  void add(const PodInfo& pod) {
    cpu_milli += pod.scoring_request.cpu_milli;
    memory_bytes += pod.scoring_request.memory_bytes;
  }
};

/// The nodes that have the same values of some labels.
struct GroupDomain {
  std::string name;  ///< The values, with "/" between.
  std::vector<NodeIndex> nodes;
  GroupAmounts used, all;    ///< Of its nodes.
  std::int64_t room = 0;     ///< For at most so many members, were there more of them.
  std::int64_t most = 0;     ///< Of those asked about: at most so many have room there.
  std::int64_t promise = 0;  ///< At most so good is it (kube-scheduler's scores).
  std::int64_t held = 0;     ///< So many members stand there or are promised a node there.
};

/// By name; without those that members who stand rule out, as far as the first `required` keys go. The error: they stand in several, or
/// where there is none.
[[nodiscard]] Expected<std::vector<GroupDomain>, std::string> group_domains(const Cluster& cluster, const GroupQuestion& question,
                                                                            std::span<const TopologyLevel> levels);
/// Sets `room`, `most` and the amounts: by the smallest request of any member, no filter is asked.
void count_room(const Cluster& cluster, std::span<const PodInfoPtr> members, GroupDomain& domain);

/// How full the domain will be, of 100 (NodeResourcesFit of a placement: MostAllocated over cpu and memory).
[[nodiscard]] std::int64_t fullness(const GroupDomain& domain, const GroupAmounts& added);

/// Levels count, also those of annotations.
[[nodiscard]] GroupDecision decide_by_levels(Trial& trial, const GroupQuestion& question);
/// In a trial that has the nodes of one domain of the required levels, and no others: preferred levels within, then the search.
[[nodiscard]] GroupDecision decide_in_domain(Trial& there, const GroupQuestion& question, std::size_t& search_steps);
/// Nodes of a trial over some nodes as those of the whole.
void tell_as_nodes_of(const Cluster& whole, const Cluster& part, GroupDecision& decision);

/// Those at the front that are required.
[[nodiscard]] std::span<const TopologyLevel> required_of(std::span<const TopologyLevel> levels);

/// The member's rank in its Job (batch.kubernetes.io/job-completion-index); INT64_MAX without one.
[[nodiscard]] std::int64_t rank_of(const PodInfo& pod);

}  // namespace berth::placement
