// One class of preemptors: pods that fit, and make room, alike; with each node's answer to them. What their filters say is asked of the
// plugins in numbers (removable_load.h); a filter that has none, and goes by the node and what is on it, is asked about the node without
// the pods.
#pragma once
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "placement/columns/topology_part.h"
#include "placement/preemption.h"
#include "placement/preemption_index.h"
#include "placement/removable_load.h"

namespace berth::placement {

/// A node's answer to a class.
struct PreemptionAnswer {
  /// kNoNode: nobody asks there.
  enum class Kind : std::uint8_t { kNoNode, kNotHelpful, kNoVictims, kTooSmall, kBudget, kCandidate };
  Kind kind = Kind::kNoNode;
  std::uint16_t missing = 0;  ///< kTooSmall: see PreemptorClass::reasons.
  std::uint32_t violations = 0, count = 0;
  std::int64_t top = 0, neg_start = 0;
  __int128 sum = 0;
  [[nodiscard]] auto rank() const { return std::tie(violations, top, sum, count, neg_start); }
};

/// How many nodes give which answer.
struct PreemptionTally {
  std::array<std::int64_t, 6> kinds{};  ///< By PreemptionAnswer::Kind.
  std::vector<std::int64_t> missing;    ///< Of kTooSmall, by PreemptionAnswer::missing.
  void add(const PreemptionAnswer& answer, std::int64_t count);
};

/// Owner: Preemptor. The index must be synced before use.
class PreemptorClass {
 public:
  /// Null when only every node in full will do. `signature` is without checks: what volumes and claims decide is the asker's.
  static std::shared_ptr<PreemptorClass> make(const FrameworkPtr& framework, const PodInfoPtr& pod, Signature signature,
                                              const Cluster& cluster, PreemptionIndex& index, const PreemptionOptions& options);

  /// For use with this index: the one it was made for, or a copy. Before every use.
  void bind(const Cluster& cluster, PreemptionIndex& index);
  /// The class is, or can become, that of pods whose filters sign so.
  [[nodiscard]] bool serves(const FrameworkPtr& framework, const Signature& signature) const;
  /// From here on this pod, which the class serves, stands for it. False: the class must be made anew.
  [[nodiscard]] bool adopt(const PodInfoPtr& pod, const Signature& signature);
  /// Whether it knows all that counts for the pod that stands for it now.
  [[nodiscard]] bool is_covered() const;
  /// Brings the answers of all nodes up to date, as far as they are the nodes' alone. Not for classes that name their nodes.
  void catch_up();
  /// What domains say is settled until the cluster changes. Before the questions below.
  void begin_decision();
  /// A node whose answer to this one pod is another than to its class.
  using Exceptions = std::vector<std::pair<NodeIndex, PreemptionAnswer>>;  ///< By slot.
  /// The best candidate's answer, and in `nodes` who gives it, by slot, `most` at most; nullopt when nobody does. Costs a few hundred
  /// blocks of nodes, and the nodes of those blocks in which something changed; where domains count, a look at each node.
  std::optional<PreemptionAnswer> best(const Exceptions& own, std::size_t most, std::vector<NodeIndex>& nodes);
  [[nodiscard]] PreemptionTally tally(const Exceptions& own);
  /// One node's answer now, the nomination of `except` left aside; `victims` (may be null) gets who would go.
  PreemptionAnswer answer(NodeIndex index, std::vector<PodInfoPtr>* victims, std::string_view except = {}) const;
  /// The node may be a candidate, domains aside. After catch_up.
  [[nodiscard]] bool may_help(std::uint32_t node) const { return answers_[node].kind == PreemptionAnswer::Kind::kCandidate; }
  /// Whether evicting could help at all on the node that just refused the pod.
  [[nodiscard]] bool is_resolvable(NodeIndex index, std::string_view except) const;
  /// Only the whole cycle without these tells whether the pod fits.
  [[nodiscard]] bool miscounts(const std::vector<PodInfoPtr>& victims) const;
  /// Some filter could not tell: the answers are no good.
  [[nodiscard]] bool has_failed() const { return has_failed_; }

  /// Where PreFilter named the only nodes worth trying, those that are there.
  [[nodiscard]] const std::optional<std::vector<NodeIndex>>& only_nodes() const { return only_; }
  /// What a PreemptionAnswer::missing stands for: all that is wrong with the node even when everybody is gone who may go.
  [[nodiscard]] const std::vector<std::string>& reasons(std::size_t missing) const { return reasons_[missing]; }
  [[nodiscard]] const Framework& framework() const { return *framework_; }
  [[nodiscard]] const FrameworkPtr& shared_framework() const { return framework_; }
  std::uint64_t last_use = 0;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kBlock = 256, kMostConditions = 16, kMostOfDomains = 8, kAmounts = 4, kMostSteps = 64;
  /// A filter, in Filter's order.
  struct Step {
    enum class Kind : std::uint8_t { kObject, kConditions, kAsked };
    Kind kind;
    const Plugin* plugin;
    std::unique_ptr<RemovableLoad> load{};
    std::vector<Status> words{};
    std::size_t first = 0, count = 0, first_own = 0, own = 0;  ///< Its conditions and own numbers.
    bool says_all = false;
    Step(Kind what, const Plugin* of) : kind(what), plugin(of) {}
    Step(Step&&) = default;
    Step& operator=(Step&&) = default;
    Step(const Step& other);
    Step& operator=(const Step&) = delete;
  };
  using Numbers = std::array<std::int64_t, kMostConditions>;
  /// A node that is being tried.
  struct Sheet;
  /// What the first filter that objects says.
  struct Failure {
    enum class Kind : std::uint8_t { kNone, kResolvable, kHopeless };
    Kind kind = Kind::kNone;
    std::uint16_t step = 0;
    std::uint32_t conditions = 0;  ///< Of those, who failed, by bit.
    Status said{};                 ///< Of filters that were asked.
  };
  /// The best candidate's answer among the nodes of a block of whom domains need not be gone over; of no other kind when there is none.
  struct Block {
    PreemptionAnswer best;
    bool is_known = false, has_loaded = false;
  };
  /// What a node's conditions of domains allow, as far as it can matter there; three numbers each.
  using Allowance = std::array<std::int16_t, 3 * kMostOfDomains>;
  /// A node's answer where domains reject it, or its pods count for what they allow.
  struct Special {
    Allowance of{};
    bool is_known = false;
    PreemptionAnswer answer;
  };
  enum class Domains : std::uint8_t { kOpen, kNeedVictims, kClosed };

  PreemptorClass(FrameworkPtr framework, PodInfoPtr pod, Signature signature, const Cluster& cluster, PreemptionIndex& index,
                 const PreemptionOptions& options);
  bool prepare();
  bool prepare_pre_filters();
  bool prepare_steps();
  bool lay_out();
  void renew();
  void count_node(std::uint32_t node);
  void set_answer(std::uint32_t node);
  const Block& block(std::size_t at);
  template <typename Visit>
  void for_candidates(std::size_t block, const Exceptions& own, Visit&& visit);
  /// Not `says_why`: of a node that no eviction opens, nothing but that.
  const PreemptionAnswer& answer_with_domains(std::uint32_t node, bool says_why);
  Domains allowed_by_domains(const NodeInfo& node, Allowance& out) const;

  [[nodiscard]] Sheet sheet_of(NodeIndex index, bool with_domains, std::string_view except) const;
  template <typename Change>
  void change(Sheet& sheet, const PreemptionRow& row, Change&& change) const;
  void put(Sheet& sheet, const PreemptionRow& row) const;
  void take(Sheet& sheet, const PreemptionRow& row) const;
  void add_load(Numbers& numbers, const PodInfo& pod) const;
  void forget_loads();
  [[nodiscard]] const std::int64_t* own_load(const PreemptionRow& row) const;
  [[nodiscard]] Failure failure(Sheet& sheet) const;
  [[nodiscard]] Failure failure(Sheet& sheet, const Numbers& left, bool with_nominated) const;
  [[nodiscard]] Status asked(const Step& step, const Sheet& sheet, bool with_nominated) const;
  [[nodiscard]] bool fits(Sheet& sheet) const;
  void count_anew(Sheet& sheet, std::span<const PreemptionRow> staying) const;
  void reprieve(Sheet& sheet, std::span<const PreemptionRow> potential, PreemptionAnswer& out, std::vector<PodInfoPtr>* victims) const;
  [[nodiscard]] PreemptionAnswer answer_in_open(NodeIndex index) const;
  [[nodiscard]] PreemptionAnswer answer_on(Sheet& sheet, std::vector<PodInfoPtr>* victims) const;
  [[nodiscard]] std::uint16_t intern(const Failure& failure) const;

  FrameworkPtr framework_;
  PodInfoPtr pod_;  ///< The one asked for last; stands for all.
  Signature signature_;
  const Cluster* cluster_;  ///< As of the last bind().
  PreemptionIndex* index_;
  PreemptionOptions options_;
  CycleState state_;
  Era era_;
  std::vector<Step> steps_;
  std::optional<std::vector<NodeIndex>> only_;
  std::vector<std::size_t> number_of_;   ///< By condition.
  std::vector<std::size_t> of_domains_;  ///< Which conditions are.
  std::vector<std::size_t> summed_;      ///< Which numbers are the sums of what the node's pods have of them.
  std::size_t numbers_ = kAmounts;       ///< Amounts, then the steps' own.
  bool asks_nodes_ = false;              ///< Some step is kAsked.
  bool counts_nodes_ = false;            ///< Some load has conditions of its own that follow the nodes.
  std::uint32_t phase_ = 0;
  std::size_t held_seen_ = 0;
  mutable bool has_failed_ = false;
  std::uint8_t reads_ = 0;  ///< RemovableLoad::Reads of all loads.
  enum class Loaded : std::uint8_t { kUnknown, kNot, kSo };
  mutable std::vector<Loaded> loaded_;                              ///< By kind of pod, as far as they were asked about.
  mutable std::unordered_map<std::uint32_t, std::size_t> load_at_;  ///< Where in loads_ the numbers of a kind begin.
  mutable std::vector<std::int64_t> loads_;
  mutable std::vector<std::vector<std::string>> reasons_;
  mutable std::vector<std::pair<std::uint64_t, std::uint16_t>> reason_ids_;  ///< By step and conditions.
  std::uint64_t seen_ = 0;
  Pages<PreemptionAnswer> answers_;  ///< By node slot: as if domains never objected.
  Pages<std::uint16_t> reach_;       ///< By node slot: how much of a domain's number goes or comes with its pods, at most.
  Pages<Special> specials_;
  mutable std::array<LoadLimit, kMostConditions> limits_;  ///< Of the node that is looked at.
  std::vector<Block> blocks_;
  PreemptionTally tally_;
};

}  // namespace berth::placement
