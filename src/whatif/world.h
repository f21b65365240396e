// The cluster that changes in thought: a trial of the engine, and beside it what placement does not know of pods, their controllers and
// budgets. What leaves its node comes back by its controller; what has no node is scheduled, by priority, then age.
//
//   there -- leave --> waiting -- settle --> there        a controller made it anew, the scheduler placed it
//     |                   |
//     |                   +--> pending                    nothing took it, and preempting did not help
//     +--------------------> gone                         nothing makes it anew
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/attempt.h"
#include "placement/groups/pod_groups.h"
#include "placement/read_pod.h"
#include "placement/trial.h"
#include "whatif/budgets.h"
#include "whatif/whatif.h"

namespace berth::pools {
struct Catalogue;
}

namespace berth::whatif {

struct Fullness;

/// One pod that is not finished.
struct Record {
  placement::PodInfoPtr info;
  placement::ReadPodPtr read;  ///< As it was, or came with the question.
  bool is_ready = false;
  std::int64_t restarts = 0;
  TimePoint created{}, ready_since{};
  std::string node;                   ///< Empty: it waits for one.
  std::string from;                   ///< Of one that waits: where it was before.
  std::string reason, when, message;  ///< Why it waits; what must happen first; the scheduler's words.
  int change = -1;                    ///< By which it waits or came.
  bool was_waiting = false;           ///< It had no node at the beginning.
  bool is_new = false;                ///< It came with the question.
  bool is_parked = false;             ///< Its controller does not make it yet.
  std::uint64_t budget_generation = UINT64_MAX;
  std::vector<Budgets::Id> budgets;

  [[nodiscard]] const model::PodView& view() const { return info->view(); }
  /// Null: nobody controls it.
  [[nodiscard]] const model::OwnerReference* owner() const { return view().meta.controller(); }
  [[nodiscard]] bool is_daemon() const { return model::is_of_daemon_set(view().meta); }
  [[nodiscard]] bool is_mirror() const { return model::is_mirror(view().meta); }
  [[nodiscard]] bool is_healthy() const { return !node.empty() && is_ready && !view().meta.is_deleting; }
  /// "namespace/name" of the PodGroup that it names; empty: none.
  [[nodiscard]] const std::string& group() const { return read->facts.group; }
};

/// All but the trial. A value.
struct Tables {
  std::unordered_map<std::string, Record> pods;                                    ///< By "namespace/name".
  std::map<std::string, std::shared_ptr<const json::Value>, std::less<>> objects;  ///< By "Kind/namespace/name"; not nodes and pods.
  std::unordered_map<std::string, std::vector<std::string>> pods_of_owner;         ///< By the owner's uid: pods that are or were there.
  std::set<std::string, std::less<>> kinds;                                        ///< Of which there is one at least.
  std::set<std::string, std::less<>> known_whole;                                  ///< Plural names of kinds that the objects have all of.
  Budgets budgets;

  /// Null when absent; `kind` as Kubernetes writes it.
  [[nodiscard]] const json::Value* find(std::string_view kind, std::string_view ns, std::string_view name) const;
  /// "Kind/namespace/name"
  static std::string key(std::string_view kind, std::string_view ns, std::string_view name);
};

/// The budgets that select the pod; looked up once.
const std::vector<Budgets::Id>& budgets_of(const Tables& tables, Record& pod);
/// What the disruption controller would count for one budget.
struct Tally {
  std::int64_t pods = 0, healthy = 0, scale = 0, desired = 0;
};
/// Of every budget, by its number.
std::vector<Tally> tally(Tables& tables);

/// The pods of a gang: of the PodGroup's minCount so many run, and so many wait.
struct GangCount {
  std::int64_t needed = 0, running = 0, waiting = 0;
  [[nodiscard]] bool is_whole() const { return running >= needed; }
};
/// Of every PodGroup that is a gang and has pods, by "namespace/name".
std::map<std::string, GangCount> count_gangs(const Tables& tables);

struct Move {
  std::string pod, from, to, reason, when;
  int change = -1;
};
/// A pod that went from its node, or was to go.
struct Departure {
  std::string pod, node, outcome, reason, budget, by;
  int change = -1;
};

/// How a pod leaves.
struct Leaving {
  std::string_view outcome = "evicted";  ///< "evicted", "preempted", "deleted"; empty: nothing is told of it.
  std::string reason, by;
  bool comes_back = true;  ///< If its controller makes it anew.
  bool is_parked = false;  ///< It will, but not yet: `when` says what must happen first.
  std::string when;
};

/// Why the eviction API keeps a pod where it is.
struct Refusal {
  std::string why, budget;  ///< budget: "namespace/name"; empty where several select the pod.
};

/// How the engine of a present or a world is run.
placement::TrialOptions trial_options(const Options& options);

/// Single-threaded; deterministic.
class World {
 public:
  World(placement::Trial trial, Tables tables, const Options& options);

  /// Independent from now on; nothing that was told comes along.
  [[nodiscard]] World fork();

  [[nodiscard]] placement::Trial& trial() { return trial_; }
  [[nodiscard]] placement::Cluster& cluster() { return trial_.cluster(); }
  [[nodiscard]] const placement::Cluster& cluster() const { return trial_.cluster(); }
  [[nodiscard]] Tables& tables() { return tables_; }
  [[nodiscard]] const Tables& tables() const { return tables_; }
  [[nodiscard]] const Options& options() const { return *options_; }
  [[nodiscard]] Record* find(const std::string& pod);

  /// What follows belongs to this change.
  void begin_change(int number, std::string reason);
  [[nodiscard]] int change() const { return change_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void set_reason(std::string reason) { reason_ = std::move(reason); }
  /// Told once.
  void note(std::string text);

  // Nodes.
  void put_node(model::NodeViewPtr node);
  /// Its pods must have left.
  void drop_node(const std::string& name);
  [[nodiscard]] model::NodeViewPtr node(std::string_view name) const;
  /// In order of name.
  [[nodiscard]] std::vector<std::string> node_names() const;
  /// Pods on the node, in order of key.
  [[nodiscard]] std::vector<std::string> pods_on(std::string_view node) const;
  /// In order of key; waiting ones too.
  [[nodiscard]] std::vector<std::string> pods_of(const std::string& owner_uid) const;

  // Pods.
  /// A new pod, which waits. False: there is one of this name.
  bool add(placement::PodInfoPtr pod, model::PodFacts facts, std::string reason);
  /// The pod runs on the node, whatever the scheduler would say.
  void hold(const std::string& pod, const std::string& node);
  /// The pod is another in the same place: it asks for other amounts.
  void replace(const std::string& pod, placement::PodInfoPtr now);
  /// It leaves its node, or stops waiting. True when it waits for another now.
  bool leave(const std::string& pod, const Leaving& how);
  /// Through the eviction API; the answer is why not.
  std::optional<Refusal> evict(const std::string& pod, const std::string& reason);
  /// It stays where it is for that: told.
  void block(const std::string& pod, const Refusal& refusal);
  /// What was parked may be placed from here on.
  void unpark();
  /// This one before all others that wait.
  void try_now(const std::string& pod) { (void)attempt(pod); }
  /// Schedules what waits until nothing more finds a place.
  void settle();
  /// In order of arrival, which is that of the scheduler's queue unless told otherwise; parked ones left out.
  [[nodiscard]] std::vector<std::string> waiting() const;
  /// From here on who waits is tried in this order (orders.h).
  void set_order(int order) { order_ = order; }
  [[nodiscard]] const std::set<std::string>& all_waiting() const { return waiting_; }

  /// The pod waits again, as it is: nobody evicted it.
  void requeue(const std::string& pod);
  /// Other profiles decide from here on, perhaps by another release's rules.
  void decide_by(placement::Profiles profiles, placement::Era era);

  // Budgets.
  /// A budget's document is new, or another one: counted from its pods.
  void put_budget(const json::Value& document);
  void recount_budget(Budgets::Id id);
  /// How much pods' controllers want was changed.
  void recount_scales();

  // Thoughts within thoughts: everything after `begin_thought` is taken back by `end_thought`. Only pods that come to wait meanwhile are
  // scheduled, and nothing may be added.
  void begin_thought();
  void end_thought();
  /// In order of key.
  [[nodiscard]] std::vector<std::string> waiting_since_thought() const;

  std::vector<Move> moves;
  std::vector<Departure> departures;
  std::vector<std::string> notes;
  /// Plans of what NodePools buy, in order, and what the last of them bought from: prices of nodes are its. Null: nothing was bought.
  json::Array bought;
  std::shared_ptr<const pools::Catalogue> catalogue;
  std::map<std::string, std::string> node_states;  ///< "lost", "drained", "removed", "added", "changed", by name.
  std::shared_ptr<const Fullness> baseline;        ///< What the answer compares with, where it is not how all began.
  std::map<std::string, GangCount> gangs_before;   ///< Where all began.
  std::set<Budgets::Id> dipped;                    ///< Budgets that had fewer healthy pods than they want; of this thought.

 private:
  struct Remaking {
    bool comes_back = true;
    std::string why;  ///< Why not.
  };
  Remaking remaking_of(const Record& record);
  Remaking remaking_by_job(const Record& record, const json::Value& job);
  placement::PodInfoPtr take_off(const Record& record, bool renews);
  bool attempt(const std::string& pod);
  /// The PodGroup that the pod is scheduled with: a gang, or one that has to stay together. Null: it is by itself.
  [[nodiscard]] placement::PodGroupPtr group_of(const Record& record) const;
  /// All of the group that wait, as one.
  bool attempt_group(const placement::PodGroup& group);
  bool preempt(const std::string& pod, std::string& words);
  /// The answer says that the node will not take the pod.
  void note_refusal(const std::string& pod, const placement::Placement& placement);
  void arrive(const std::string& pod, placement::NodeIndex node);
  void count_health(Record& record, int by);
  /// A pod was taken by force: which of its budgets have fewer healthy pods than they want.
  void watch_budgets(Record& record);
  void sync_budgets();
  /// Before the pod's record changes.
  void save(const std::string& pod);

  placement::Trial trial_;
  Tables tables_;
  const Options* options_;
  int change_ = -1;
  int order_ = 0;
  std::string reason_;
  std::set<std::string> waiting_, told_;
  std::map<std::string, std::int64_t> job_failures_;  ///< Of this question, by the Job's uid, and by uid and index.
  std::set<Budgets::Id> unsynced_;
  std::uint64_t epoch_ = 0;  ///< Counts everything that may change a verdict.
  std::uint64_t failed_epoch_ = 0;
  std::map<std::string, std::uint64_t> failed_groups_;  ///< By name: the epoch in which nothing of it found a place.
  std::map<const placement::Framework*, std::unordered_map<placement::Signature, std::string, placement::SignatureHash>> failed_;
  /// What is to be as before once the thought ends: what it touches, as it was then.
  struct Thought {
    placement::Attempt attempt;                    ///< Of the trial.
    std::unordered_map<std::string, Record> pods;  ///< Those that changed.
    std::map<Budgets::Id, BudgetCounts> budgets;
    std::map<std::string, std::int64_t> job_failures;
    std::map<std::string, std::string> node_states;
    std::set<std::string> resting;  ///< Waiting since before.
    std::size_t moves = 0, departures = 0, notes = 0;
  };
  std::unique_ptr<Thought> thought_;
};

}  // namespace berth::whatif
