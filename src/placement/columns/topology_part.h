// What a topology plugin gives to the columns of a class of pods: everything that depends on more than one node.
//
// A plugin whose Filter or Score counts pods over topology domains (ColumnKind::kTopology) makes a TopologyPart for each class of pods, in
// a file of its own beside its plain form. The class (pod_class.h) keeps the nodes in groups and knows nothing of what a part counts:
//
//   a node changed        place()          the part counts the node, and writes its slots: numbers by which nodes are told apart
//   a pod is to be placed begin_choice()   what holds for the whole cluster now (the smallest domain)
//     for each group      gate(slots)      may nodes with these slots take the pod?
//     the groups left     score()          normalized and weighted, added to each
//
// Nodes with equal slots, of all parts, are one group: so a part is asked once a group, not once a node.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/framework.h"

namespace berth::placement {

/// A group of nodes that a pod could go to.
struct TopologyCandidate {
  const std::int64_t* key;  ///< The slots of all parts; a part's own begin at its `first`.
  std::size_t nodes;        ///< How many of the group fit by themselves.
  std::int64_t bonus;       ///< Sum of normalized, weighted scores so far.
  std::uint32_t group;
  std::size_t rank;  ///< The class's own: how far it has gone through the group's nodes.
};

/// Owner: a PodClass. Single-threaded. Copies of a class own copies of its parts. Whatever pod is given stands for all of the class: they
/// have one signature, so that a part may keep what it derived from the plugin's share of that.
class TopologyPart {
 public:
  virtual ~TopologyPart() = default;
  [[nodiscard]] virtual std::unique_ptr<TopologyPart> clone() const = 0;
  /// The index is another one from now on: the same, or a copy in which nothing has changed. Before every use.
  virtual void bind(ClusterIndex& index) = 0;

  /// One thing that the plugin's Filter says. A rejection is named by its place in rejections(), plus one; zero is none.
  struct Rejection {
    Status status;
    std::uint32_t step = 0;  ///< Below 4: of several that one node deserves the lowest is said.
  };
  using Verdict = std::uint8_t;
  static constexpr Verdict kNone = 0;
  [[nodiscard]] virtual std::vector<Rejection> rejections() const { return {}; }

  /// What the part was made from has changed: the class must be made anew.
  [[nodiscard]] virtual bool is_outdated(const PodInfo& /*pod*/) { return false; }
  /// Affinity terms that pods brought, and that match the class's (ids of the index). True: more slots than before.
  virtual bool adopt_terms(std::span<const std::uint32_t> /*terms*/) { return false; }
  /// The domains changed their nature: all nodes must be placed again.
  [[nodiscard]] virtual bool is_stale() const { return false; }
  /// Nothing to say as things are: no slots, no gate, no score.
  [[nodiscard]] virtual bool is_empty() const { return false; }

  /// Forgets all nodes. How many slots there are is settled from here on.
  virtual void reset() = 0;
  [[nodiscard]] virtual std::size_t slot_count() const = 0;
  /// Counts the node as it is now, and appends its slots to `key`. `is_new`: its object changed, or it has not been placed since reset().
  virtual void place(const PodInfo& pod, const NodeInfo& node, bool is_new, std::vector<std::int64_t>& key) = 0;
  /// Nodes with nothing on them that the part counts.
  struct Alike {
    std::vector<std::uint8_t> is_counted;  ///< By node slot: those with something are marked.
    /// Topologies of the index: the others' slots are the same where they have the same values of these,
    std::set<std::size_t> by_value;
    std::set<std::size_t> by_presence;  ///< and have some value of these, or none.
  };
  /// After reset(), adds to `nodes`: unmarked nodes that are alike so have the same slots, reject_node says nothing of them, and only one
  /// of them need be placed. False: each must be.
  [[nodiscard]] virtual bool describe_alike(Alike& /*nodes*/) const { return false; }
  /// There is no such node any more, or none yet.
  virtual void remove(std::uint32_t node) = 0;
  /// What the node's own counts say, where a domain is a single node and slots would tell all nodes apart.
  [[nodiscard]] virtual Verdict reject_node(std::uint32_t /*node*/) const { return kNone; }

  virtual void begin_choice(const PodInfo& /*pod*/) {}
  [[nodiscard]] virtual Verdict gate(const std::int64_t* /*slots*/) const { return kNone; }
  virtual void score(std::span<TopologyCandidate> /*candidates*/, std::size_t /*first*/) {}
  /// How many nodes of a group fit counts in the score: a last word on nodes (volumes) must be had before.
  [[nodiscard]] virtual bool counts_nodes() const { return false; }
  /// A nominated pod would count for the plugin's Filter, beyond the room it takes.
  [[nodiscard]] virtual bool is_swayed_by(const PodInfo& /*nominated*/, const PodInfo& /*pod*/) const { return false; }
  [[nodiscard]] virtual std::size_t memory_bytes() const { return 0; }
};

/// What a part is made from.
struct TopologySetup {
  const PodInfo& pod;
  ClusterIndex& index;
  const model::Selector& default_selector;  ///< What services and workloads select for the pod; everything where none does.
  bool filters;                             ///< The plugin is asked at Filter,
  std::int64_t weight;                      ///< and with this weight at Score; 0: not.
};

struct TopologyOutcome {
  bool plain_only = false;               ///< Only the plain form knows how.
  std::int64_t constant_score = 0;       ///< Weighted; for every node.
  std::unique_ptr<TopologyPart> part{};  ///< Null: nothing to say, ever.
};

/// A class's part, with what the class keeps beside it. Copies own copies.
struct TopologySlot {
  std::unique_ptr<TopologyPart> part;
  const Plugin* plugin = nullptr;
  std::size_t first = 0;                  ///< Of its slots, in a group's key.
  std::vector<std::uint16_t> verdicts{};  ///< Of its rejections, as the class numbers verdicts.

  TopologySlot(std::unique_ptr<TopologyPart> with, const Plugin* of) : part(std::move(with)), plugin(of) {}
  TopologySlot(TopologySlot&&) = default;
  TopologySlot& operator=(TopologySlot&&) = default;
  TopologySlot(const TopologySlot& other) : part(other.part->clone()), plugin(other.plugin), first(other.first), verdicts(other.verdicts) {}
  TopologySlot& operator=(const TopologySlot&) = delete;
};

/// The pods of the pod's namespace that the selector picks, as a term for ClusterIndex::matcher.
inline AffinityTerm own_namespace_term(const model::PodView& pod, const model::Selector& selector) {
  AffinityTerm out;
  out.namespaces = {pod.meta.ns};
  out.selector = selector;
  return out;
}

}  // namespace berth::placement
