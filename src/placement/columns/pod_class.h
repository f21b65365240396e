// The columns of one class of pods under one framework: every node's verdict, score and group, kept up to date node by node.
//
// What a node's standing depends on falls into two parts. Its own: static labels and taints, what runs on it; that is evaluated when the
// node changes, by the plugins' own Filter and Score. The rest of the cluster: counts over topology domains, and the extremes by which
// raw scores are normalized. Nodes that are alike in what the second part looks at form a group, so that the second part is computed per
// group when a pod is placed, and never per node. What it looks at are a plugin's matter (topology_part.h):
//
//   total(node) = own score (bucketed per group) + normalized(raw scores of the group)
//   feasible(node) = own verdict && gate(group)
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <unordered_map>
#include <vector>

#include "placement/columns/cluster_index.h"
#include "placement/columns/index_follower.h"
#include "placement/columns/node_checks.h"
#include "placement/columns/ranking.h"
#include "placement/columns/scan_table.h"
#include "placement/columns/static_column.h"
#include "placement/columns/topology_part.h"
#include "placement/engine.h"

namespace berth::placement {

class PodClass {
 public:
  /// A choice among the nodes with the highest total. `checks`, unless null, have the last word on a node (volumes).
  struct Options {
    bool first_by_name = false;
    std::mt19937_64* random = nullptr;
    NodeChecks* checks = nullptr;
    std::vector<NodeIndex>* tied = nullptr;  ///< Gets every node with that total, unless null.
  };
  struct Choice {
    NodeIndex node;  ///< Invalid when nothing fits.
    std::int64_t score = 0;
    std::size_t feasible_nodes = 0, tied_nodes = 0;
  };

  /// Null when the plain form must decide: a plugin without columns, or input that only it handles (unparsable terms).
  /// From `lazy_ranking_nodes` nodes on, only the best nodes are kept in order. The columns themselves are for `build`.
  static std::shared_ptr<PodClass> make(FrameworkPtr framework, PodInfoPtr pod, Signature signature, ClusterIndex& index,
                                        StaticColumns& shared, std::size_t lazy_ranking_nodes);
  /// The index is another one from now on: the same, or a copy in which nothing has changed. To be called before each use.
  void bind(ClusterIndex& index, StaticColumns& shared);

  /// Columns of this class are not worth keeping until a second pod of it comes: one walk over the amounts decides.
  [[nodiscard]] bool can_scan() const;
  /// Decides without columns; requires can_scan and a synced index, which `table` follows. Nullopt: only columns can tell, or nothing fits.
  /// `totals` is working space.
  std::optional<Choice> scan(const Options& options, ScanTable& table, std::vector<std::int32_t>& totals) const;
  /// Builds the columns, of a class that was made.
  void build();

  /// The class is, or can become, that of pods with this signature: terms that came since it last caught up may be what is new.
  [[nodiscard]] bool serves(const Framework& framework, const Signature& signature) const;
  /// Brings all columns up to the index, which must be synced, for this pod, whose signature the class serves. Builds them anew where that
  /// is cheaper or needed. False: what the class was prepared from has changed, and it must be made again.
  [[nodiscard]] bool catch_up(const PodInfoPtr& pod, const Signature& signature);
  [[nodiscard]] const Signature& signature() const { return signature_; }

  Choice choose(const Options& options);
  /// What the class says of one node: success or the first filter's rejection; nominated pods count. Volumes and claims apart.
  Status verdict(NodeIndex node);
  /// Some plugin ends in an error on some node, or did when it was asked for a score: the plain form must decide.
  [[nodiscard]] bool has_failed() const;
  /// Why nothing fits; requires that choose() found nothing and nothing changed since. `own` is the pod's own nomination, if any, which
  /// counts for all others but not for itself.
  struct OwnNomination {
    NodeIndex node;
    std::string_view key;
  };
  Diagnosis diagnose(const OwnNomination& own);
  /// The pod's nominated node would take it, its own nomination left aside: the columns, where that nomination counts, cannot tell.
  [[nodiscard]] bool hides_own_node(const OwnNomination& own);
  /// Some nominated pod counts for more than the room it takes on its node: for topology, for affinity. The plain form must decide.
  [[nodiscard]] bool is_swayed_by_nominations() const;

  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kNoGroup = UINT32_MAX;
  static constexpr std::uint16_t kFits = 0;

  struct NodeRecord {
    std::int32_t score = 0;
    std::uint32_t group = kNoGroup;
    std::uint32_t position = 0;
    std::uint16_t verdict = kFits;
    std::uint32_t version = 0;  ///< Of the node that was looked at.
  };
  struct Verdict {
    Status status;
    std::uint32_t order = 0;  ///< Filter's place times four, plus the step inside the plugin.
  };
  struct Group {
    std::vector<std::int64_t> key;                                  ///< Raw scores, then the slots of each part.
    std::vector<std::pair<std::uint16_t, std::uint32_t>> verdicts;  ///< Verdict to number of nodes.
    std::uint32_t members = 0;
    std::uint32_t live_at = UINT32_MAX;  ///< Position in live_ while some node fits by itself.
  };
  struct PositionOf {
    Pages<NodeRecord>* records;
    std::uint32_t& operator()(std::uint32_t node) const { return records->edit(node).position; }
  };

  PodClass(FrameworkPtr framework, PodInfoPtr pod, Signature signature, ClusterIndex& index);
  bool prepare(StaticColumns& shared);
  bool prepare_filters();
  bool prepare_scorers();
  bool prepare_topology();
  void prepare_amounts();
  bool adopt_held_terms();
  void look_for_domains();
  bool is_outdated();
  [[nodiscard]] bool is_far_behind() const;
  /// What the class says of the node is said of the node as it is.
  [[nodiscard]] bool has_seen(std::uint32_t node) const {
    return node < records_.size() && records_[node].version == index_->version(node);
  }

  void build_by_amounts();
  void refill();
  void evaluate(std::uint32_t node, bool is_static);
  void evaluate_alike(std::uint32_t node, std::uint32_t& group);
  [[nodiscard]] bool has_raw_scores(std::uint32_t group, const StaticColumn::Entry& fixed) const;
  void evaluate_amounts(std::uint32_t node, NodeRecord& record, std::uint32_t group);
  /// Nominated pods count, but for the one of key `except`.
  std::uint16_t local_verdict(const NodeInfo& info, std::uint32_t node, std::string_view except = {});
  std::uint16_t filter_on(const NodeInfo& info, std::uint16_t static_verdict);
  std::uint16_t static_verdict(std::uint32_t node);
  std::uint16_t shortage_verdict(unsigned shortage, std::uint32_t node);
  std::int32_t local_score(const NodeInfo& info, std::uint32_t node);
  void make_static_key(std::uint32_t node);
  void settle(std::uint32_t node, NodeRecord& record, std::uint16_t verdict, std::uint32_t group, std::int32_t score);
  std::uint32_t group_of_key(std::uint32_t current);
  void leave(std::uint32_t node, NodeRecord& record);
  std::uint16_t intern(Status status, std::uint32_t order);
  void make_live(std::uint32_t group);
  void drop_live(std::uint32_t group);

  std::uint16_t gate(const Group& group) const;
  void collect_candidates();
  void score_groups();
  Diagnosis diagnose_counted() const;
  Choice pick(const Options& options);
  Choice pick_accepted(const Options& options);
  bool depends_on_every_node(NodeChecks& checks) const;
  void keep_accepted(NodeChecks& checks);

  FrameworkPtr framework_;
  PodInfoPtr pod_;  ///< The one asked for last; stands for all.
  Signature signature_;
  ClusterIndex* index_;  ///< As of the last bind().
  CycleState state_;
  Era era_;

  Status pre_filter_;        ///< A rejection of the whole class.
  StaticColumn::Plan plan_;  ///< Until the shared column is found or made.
  StaticColumnIdPtr static_id_;
  StaticColumn* static_ = nullptr;  ///< As of the last bind().
  std::uint64_t static_generation_ = 0;
  std::vector<std::uint16_t> static_verdicts_;  ///< The shared column's verdicts as this class's; 0: not seen yet.
  std::vector<StaticColumn::Filter> local_filters_;
  std::vector<StaticColumn::Scorer> local_scorers_;
  ResourceColumns resources_;
  /// All of a node's own part is in the static column and in resources_.
  bool by_amounts_ = false;
  std::uint16_t shortage_verdicts_[32] = {};
  std::uint32_t last_group_ = kNoGroup;
  /// Only the best nodes of a group are ranked (see Ranking's floor): where nodes are many and their scores come cheap.
  bool ranks_lazily_ = false;
  std::size_t lazy_ranking_nodes_ = 0;
  struct RawScorer {
    const Plugin* plugin;
    std::int64_t weight;
    bool reversed;
  };
  std::vector<RawScorer> raw_scorers_;  ///< At most two.
  std::int64_t constant_score_ = 0;
  /// A topology plugin's roles, until its part is made.
  struct TopologyRole {
    const Plugin* plugin;
    std::uint32_t order = 0;  ///< Among the filters; 0: not asked there.
    std::int64_t weight = 0;
  };
  TopologyRole& topology_role(const Plugin* plugin);
  std::vector<TopologyRole> topology_roles_;
  std::vector<TopologySlot> topology_;
  bool has_domains_ = false;  ///< Some part has something to say.

  IndexFollower follower_;
  std::uint64_t epoch_ = 0;
  std::size_t held_seen_ = 0;

  Pages<NodeRecord> records_;
  Ranking<PositionOf> ranking_{PositionOf{&records_}};
  std::vector<Group> groups_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> group_index_;
  std::array<std::uint32_t, 16> recent_groups_{};  ///< By hash of the key; of no matter beyond speed.
  std::vector<std::uint32_t> live_;
  std::vector<Verdict> verdicts_;
  bool knows_errors_ = false;   ///< One of verdicts_ is an error.
  bool scores_failed_ = false;  ///< Of some node, since the class was made.
  std::vector<std::int64_t> key_;
  std::vector<TopologyCandidate> candidates_;
};

}  // namespace berth::placement
