// What strategies work with: the nodes as the cycle has left them so far, and the evictor. Internal to this folder.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "descheduler/cycle.h"
#include "placement/disruption_ledger.h"

namespace berth::descheduler {

class Judge;
struct Move;
struct RoomPlan;

/// A node that the policy operates on, and what is on it after the evictions so far.
struct Node {
  const model::NodeView* view = nullptr;
  Amounts capacity;          ///< Allocatable, or capacity.
  Amounts used;              ///< Requests of the pods that are not finished; "pods" is their number.
  std::vector<PodPtr> pods;  ///< Finished ones too. In order of namespace and name.
  [[nodiscard]] const std::string& name() const { return view->name(); }
  [[nodiscard]] const model::Labels& labels() const { return view->labels(); }
};

/// Why a pod stays that took the place of an evicted one.
inline constexpr std::string_view kMovedAlready = "it was moved already, and nothing has changed from outside since";

/// How a try ended, as far as a strategy goes on by it.
enum class Verdict : std::uint8_t { kEvicted, kNodeLimit, kTotalLimit, kRefused };

/// One profile's view of a cycle. Node references hold while the context lives; a node's `pods` change with each eviction.
class Context {
 public:
  Context(const Policy& policy, const Snapshot& snapshot, const placement::Profiles& profiles, const CycleOptions& options,
          const Known& known, Plan& plan);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  /// From now on evictions are by this profile's evictor. The error: a priority class is not there.
  Result<void> enter(const Profile& profile);
  void enter(Strategy strategy);

  /// Ready and selected by the policy, in order of name.
  [[nodiscard]] std::vector<Node>& nodes() { return nodes_; }
  /// Null for a node that the policy does not operate on.
  [[nodiscard]] Node* find(std::string_view name);
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }
  [[nodiscard]] TimePoint now() const { return options_.now; }
  /// The engine's word is not asked: then the strategies choose as kubernetes-sigs/descheduler does, even where others would be better.
  [[nodiscard]] bool chooses_as_kubernetes() const { return options_.check == PlacementCheck::kOff; }
  /// On the node, not finished.
  [[nodiscard]] static std::vector<PodPtr> running(const Node& node);

  /// DefaultEvictor's Filter: empty when the pod may be evicted, otherwise what protects it.
  [[nodiscard]] std::string why_protected(const Pod& pod) const;
  [[nodiscard]] bool filter(const Pod& pod) const { return why_protected(pod).empty(); }
  /// DefaultEvictor's PreEvictionFilter: nodeFit and the namespace's labels.
  [[nodiscard]] bool pre_eviction_filter(const Pod& pod);
  /// Both, and the plugin's namespaces and labels.
  [[nodiscard]] bool may_evict(const Plugin& plugin, const Pod& pod);
  /// The plugin's namespaces and labels alone.
  [[nodiscard]] static bool selects(const Plugin& plugin, const Pod& pod);

  /// The subset of the scheduler's filters that nodeFit is (pkg/descheduler/node NodeFit).
  [[nodiscard]] bool fits(const Pod& pod, const Node& node) const;
  [[nodiscard]] bool fits_any(const Pod& pod, std::span<const Node* const> nodes, bool other_than_its_own) const;

  /// What is known of it; otherwise limits, then the placement engine with `rule`, then the budget, then it is a step of the plan.
  Verdict evict(const PodPtr& pod, std::string why, const DestinationRule& rule = {});
  /// Moves pods so that all of the gang, which waits, finds room; nothing unless the whole plan works. What came of it is a removal for
  /// each pod moved and a note.
  void make_room(const std::vector<PodPtr>& gang, const Plugin& plugin);
  /// Those that went although no strategy comes to them any more, by what is known now, end the list.
  void list_unmet();
  /// Of the last removal: where the replacement goes; empty when it is not known.
  [[nodiscard]] const std::string& last_destination() const { return plan_.result.removals.back().destination; }

 private:
  /// How many go.
  struct Counts {
    std::uint64_t total = 0;
    std::map<std::string, std::uint64_t, std::less<>> by_node, by_namespace, by_owner;
    void count(const Pod& pod, std::int64_t sign);
  };
  struct Limit {
    Outcome outcome;
    Verdict verdict;
    std::string message;
  };
  [[nodiscard]] bool was_moved(const Pod& pod) const;
  /// The limit that these, beside those that went before, would exceed.
  [[nodiscard]] std::optional<Limit> limit_before(std::span<const PodPtr> more, bool with_unmet) const;
  /// Its gang would have fewer pods than it is of use with; as the real descheduler, which knows no gangs, nobody is asked.
  [[nodiscard]] std::string why_gang_needs(const Pod& pod) const;
  [[nodiscard]] std::string why_too_few(const Pod& pod, bool with_unmet) const;
  Verdict refuse(Removal removal, Outcome outcome, std::string message, Verdict verdict);
  Verdict evict_as_known(const Removal& known, Removal removal);
  [[nodiscard]] static std::optional<Answer> ask_budgets(const placement::DisruptionLedger& budgets, const Pod& pod);
  /// From here on it is gone.
  void record(Removal removal);
  /// One more step, if the plan may still have one.
  bool may_go_on();
  void add_step(Step step);
  [[nodiscard]] Removal removal_of(const PodPtr& pod, std::string why) const;
  std::string why_not_moved(const placement::PodInfo& info, const Plugin& plugin);
  std::string why_not_carried_out(const RoomPlan& plan, const std::string& why);
  std::size_t carry_out_earlier_moves(const std::string& why);

  const Policy& policy_;
  const Snapshot& snapshot_;
  const CycleOptions& options_;
  const Known& known_;
  Plan& plan_;
  std::unique_ptr<Judge> judge_;
  std::vector<Node> nodes_;
  std::vector<Node> other_nodes_;  ///< Ready, but not selected by the policy: places for pods to go to.
  placement::DisruptionLedger budgets_;
  std::set<std::string, std::less<>> gone_;  ///< Those that the plan has come to.
  Counts counts_;                            ///< Of these.
  Counts unmet_;                             ///< Known to go, and not come to yet.
  bool is_first_step_ = true;                ///< Of the strategy.
  const Profile* profile_ = nullptr;
  std::optional<std::int64_t> priority_threshold_;
  Strategy strategy_ = Strategy::kRemoveDuplicates;
};

/// By priority, then BestEffort before Burstable before Guaranteed, then those that ask not to be evicted last; equals stay in order
/// (pkg/descheduler/pod SortPodsBasedOnPriorityLowToHigh).
void sort_by_priority(std::vector<PodPtr>& pods);
/// Every taint for which `counts` holds is tolerated.
bool tolerates(const std::vector<model::Toleration>& tolerations, const std::vector<model::Taint>& taints,
               const std::function<bool(const model::Taint&)>& counts);
/// The effects that keep a pod off a node.
bool is_hard_taint(const model::Taint& taint);

// The strategies. Each runs over the whole of ctx.nodes().
void remove_duplicates(Context& ctx, const Plugin& plugin);
void remove_interpod_anti_affinity(Context& ctx, const Plugin& plugin);
void remove_node_affinity(Context& ctx, const Plugin& plugin);
void remove_node_taints(Context& ctx, const Plugin& plugin);
void remove_topology_spread(Context& ctx, const Plugin& plugin);
void remove_too_many_restarts(Context& ctx, const Plugin& plugin);
void remove_failed(Context& ctx, const Plugin& plugin);
void remove_by_life_time(Context& ctx, const Plugin& plugin);
void make_room_for_waiting(Context& ctx, const Plugin& plugin);
/// The errors: metrics of a node are missing.
Result<void> low_node_utilization(Context& ctx, const Plugin& plugin);
Result<void> high_node_utilization(Context& ctx, const Plugin& plugin);

}  // namespace berth::descheduler
