// One class of preemptors: pods that fit, and make room, alike; with each node's answer to them.
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "placement/heap_bytes.h"
#include "placement/preemption.h"
#include "placement/preemption_index.h"

namespace berth::placement {

/// A node's answer to a class.
struct PreemptionAnswer {
  /// kNoNode: nobody asks there.
  enum class Kind : std::uint8_t { kNoNode, kNotHelpful, kNoVictims, kTooSmall, kBudget, kCandidate };
  Kind kind = Kind::kNoNode;
  std::uint16_t missing = 0;  ///< kTooSmall: bits of PreemptorClass::reason.
  std::uint32_t violations = 0, count = 0;
  std::int64_t top = 0, neg_start = 0;
  __int128 sum = 0;
  [[nodiscard]] auto rank() const { return std::tie(violations, top, sum, count, neg_start); }
};

/// How many nodes give which answer.
struct PreemptionTally {
  static constexpr std::size_t kReasonCount = 11;
  std::array<std::int64_t, 6> kinds{};               ///< By PreemptionAnswer::Kind.
  std::array<std::int64_t, kReasonCount> missing{};  ///< Of kTooSmall, by bit.
  void add(const PreemptionAnswer& answer, std::int64_t count) {
    kinds[static_cast<std::size_t>(answer.kind)] += count;
    for (std::size_t bit = 0; answer.kind == PreemptionAnswer::Kind::kTooSmall && bit < kReasonCount; ++bit)
      if ((answer.missing >> bit & 1) != 0) missing[bit] += count;
  }
};

/// Owner: Preemptor. The index must be synced before use.
class PreemptorClass {
 public:
  /// Null when the fast form does not cover the pod.
  static std::shared_ptr<PreemptorClass> make(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature,
                                              const Cluster& cluster, PreemptionIndex& index, const PreemptionOptions& options);

  /// For use with this index: the one it was made for, or a copy. Before every use.
  void bind(const Cluster& cluster, PreemptionIndex& index);
  /// The class is, or can become, that of pods whose filters sign so.
  [[nodiscard]] bool serves(const FrameworkPtr& framework, const Signature& signature) const;
  /// From here on this pod, which the class serves, stands for it.
  void adopt(const PodInfoPtr& pod, const Signature& signature);
  /// Whether the fast form still covers the class: topologies change their nature, pods bring new terms.
  [[nodiscard]] bool is_covered();
  /// Brings the answers of all nodes up to date. Not for classes that name their nodes.
  void catch_up();
  /// A node whose answer to this one pod is another than to its class: where it is nominated itself.
  struct Exception {
    NodeIndex node;
    PreemptionAnswer answer;
  };
  /// The best candidate's answer, and in `nodes` who gives it, by slot, `most` at most; nullopt when nobody does. Costs a few hundred
  /// blocks of nodes, and the nodes of those blocks in which something changed.
  std::optional<PreemptionAnswer> best(const Exception& own, std::size_t most, std::vector<NodeIndex>& nodes);
  [[nodiscard]] PreemptionTally tally(const Exception& own) const;
  /// One node's answer now, the nomination of `except` left aside; `victims` (may be null) gets who would go.
  PreemptionAnswer answer(NodeIndex index, std::vector<PodInfoPtr>* victims, std::string_view except = {}) const;
  /// Whether evicting could help at all on the node that just refused the pod.
  [[nodiscard]] bool is_resolvable(NodeIndex index, std::string_view except) const;

  /// Where PreFilter named the only nodes worth trying, those that are there.
  [[nodiscard]] const std::optional<std::vector<NodeIndex>>& only_nodes() const { return only_; }
  static constexpr std::size_t kReasonCount = PreemptionTally::kReasonCount;
  /// The words of a bit of PreemptionAnswer::missing.
  [[nodiscard]] std::string reason(std::size_t bit) const;
  [[nodiscard]] const Framework& framework() const { return *framework_; }
  std::uint64_t last_use = 0;
  [[nodiscard]] std::size_t memory_bytes() const {
    return pod_->bytes + signature_.memory_bytes() + heap_bytes(own_anti_) + answers_.memory_bytes() + blocks_.size() * sizeof(Block);
  }

 private:
  static constexpr std::size_t kBlock = 256;
  /// The best candidate's answer among the nodes of a block; of no other kind when there is none.
  struct Block {
    PreemptionAnswer best;
    bool is_known = false;
  };
  const Block& block(std::size_t at);
  void set_answer(std::uint32_t node);
  [[nodiscard]] const PreemptionAnswer& answer_of(std::uint32_t node, const Exception& own) const {
    return node == own.node.value ? own.answer : answers_[node];
  }
  static constexpr std::size_t kMaxScalars = 4;
  enum class Check : std::uint8_t { kPorts, kResources, kAffinity };
  /// What pods take away on a node: amounts, and how many stand in the pod's way.
  struct Load {
    PreemptionAmounts base{};
    std::array<std::int64_t, kMaxScalars> scalars{};
    std::int32_t ports = 0, anti = 0, existing = 0;
    void add(const Load& other);
    void subtract(const Load& other);
  };
  struct Failure {
    std::uint16_t reasons = 0;  ///< Of the first filter that rejects; 0: fits.
    bool is_unresolvable = false;
  };

  PreemptorClass(FrameworkPtr framework, PodInfoPtr pod, Signature signature, const Cluster& cluster, PreemptionIndex& index,
                 const PreemptionOptions& options);
  bool prepare();
  bool prepare_checks();
  bool adopt_held_terms();
  [[nodiscard]] Load load_of(const NodeInfo& node, const PodInfo& pod, const PreemptionAmounts& amounts) const;
  [[nodiscard]] Load load_of(const NodeInfo& node, const PreemptionRow& row) const;
  /// One of the two minds the other, on whatever node.
  [[nodiscard]] bool is_foe(const PreemptionRow& row) const;
  void put(Load& load, const NodeInfo& node, const PreemptionRow& row) const;
  void take(Load& load, const NodeInfo& node, const PreemptionRow& row) const;
  [[nodiscard]] Load load_of(const NodeInfo& node, const PreemptionNode& rows, std::string_view except) const;
  [[nodiscard]] Failure failure(const NodeInfo& node, const PreemptionNode& rows, const Load& load) const;
  [[nodiscard]] Failure lacks_resources(const NodeInfo& node, const PreemptionNode& rows, const Load& load) const;
  [[nodiscard]] bool static_filters_pass(const NodeInfo& node) const;

  FrameworkPtr framework_;
  PodInfoPtr pod_;  ///< The one asked for last; stands for all.
  Signature signature_;
  const Cluster* cluster_;  ///< As of the last bind().
  PreemptionIndex* index_;
  PreemptionOptions options_;
  CycleState state_;
  Era era_;
  std::vector<const Plugin*> static_filters_;
  std::vector<Check> checks_;  ///< In the order of the filters.
  std::optional<std::vector<NodeIndex>> only_;
  PreemptionAmounts wanted_;
  std::vector<AffinityTerm> own_anti_;
  const model::Labels* own_namespace_labels_;  ///< Looked up again by is_covered().
  std::vector<std::size_t> topologies_;        ///< Of all terms that concern the class: each must be local.
  bool checks_affinity_ = false, labels_matter_ = false;
  bool has_extras_ = false;  ///< More than base amounts counts.
  std::size_t held_seen_ = 0;
  enum Foe : std::uint8_t { kUnknown, kFriend, kFoe };
  mutable std::vector<Foe> foes_;  ///< By kind of pod; as far as they were asked about.
  std::uint64_t seen_ = 0;
  Pages<PreemptionAnswer> answers_;  ///< By node slot.
  std::vector<Block> blocks_;
  PreemptionTally tally_;
};

}  // namespace berth::placement
