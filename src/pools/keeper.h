// The life of claims: what a pass writes so that nodes come for pods that wait, go when they are not worth their price, and are nobody's
// burden when they fail. Pure: told of objects and of time, it says what to write.
//
//   interrupted, unhealthy: what comes instead first, as far as there is time, then as deleted
//   made -> Launched (an offering was had) -> Registered (the node is there) -> Initialized (ready, startup taints gone, resources there)
//     |          |                                |
//     |          +-- no node in time: given up    +-- node gone: given up
//     +-- nothing to be had: given up; what could not be had is not asked for again for three minutes
//   deleted: no new pods -> pods evicted (budgets, do-not-disrupt; after terminationGracePeriod regardless) -> node gone -> claim gone
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "model/kinds.h"
#include "pools/state.h"

namespace berth::pools {

inline const model::Gvr kNodePools{"karpenter.sh", "v1", "nodepools"};
inline const model::Gvr kNodeClaims{"karpenter.sh", "v1", "nodeclaims"};
inline const model::Gvr kNodeClasses{"sim.berth.dev", "v1alpha1", "simulatednodeclasses"};
inline const model::Gvr kNodes{"", "v1", "nodes"};
inline const model::Gvr kPods{"", "v1", "pods"};

/// One request. A pass's writes do not depend on one another; the next pass sees what came of them.
struct Write {
  enum class Kind { kCreate, kPatch, kPatchStatus, kDelete, kEvict };
  Kind kind = Kind::kPatch;
  model::Gvr gvr;
  std::string ns, name;
  json::Value body;  ///< Of patches: merge patches.
  std::string uid;   ///< Deletions and evictions: only this one.
  std::optional<std::int64_t> grace_seconds;
};

/// About an object of a kind without namespace, or a pod.
struct Told {
  std::string kind, ns, name, uid;
  bool is_warning = false;
  std::string reason, message;
};

/// What is asked of whoever makes machines. A pass asks each group for one thing at most, but for removals.
struct MachineWrite {
  enum class Kind { kGrow, kGiveUp, kRemove };
  Kind kind = Kind::kGrow;
  bool is_external = false;
  std::string group;
  std::int64_t from = 0, to = 0, max = 0;  ///< Its size; not of removals.
  std::string instance, node;              ///< Of removals. No node: the machine never became one.
};

struct PassResult {
  std::vector<Write> writes;
  std::vector<MachineWrite> machines;
  std::vector<Told> events;
  std::vector<std::pair<std::string, Reason>> disrupted;  ///< Claims that are to go from now on.
};

struct KeeperOptions {
  placement::Profiles profiles;
  std::uint64_t seed = 1;
  Duration batch_idle = std::chrono::seconds(1), batch_most = std::chrono::seconds(10);  ///< As Karpenter's batches.
  Duration disruption_pause = std::chrono::seconds(10);                                  ///< Between two looks at what could go.
  Duration unavailable_for = std::chrono::minutes(3);
  Duration replacement_timeout = std::chrono::minutes(10);
};

/// The condition among `conditions`, set; the time of its last change stays where its status does. False when it was so already.
bool set_condition(json::Array& conditions, std::string_view type, std::string_view status, std::string_view reason,
                   const std::string& message, TimePoint now);

/// Single-threaded. Restarted, it knows from the objects where it was; replacements under way are begun anew.
class Keeper {
 public:
  Keeper(Catalogue catalogue, KeeperOptions options);
  [[nodiscard]] PoolsCache& cache() { return cache_; }

  /// `is_over` as PackingOptions, for this pass. Times must not go backwards.
  PassResult step(TimePoint now, std::function<bool()> is_over = {});
  /// It was not done: claims that wait for a group that does not grow become something else.
  void machine_write_failed(const MachineWrite& write, const std::string& error);
  /// With the types of groups, as of the last pass.
  [[nodiscard]] const Catalogue& catalogue() const { return catalogue_; }
  /// Whether some claim waits for a machine, or a machine for its end.
  [[nodiscard]] bool waits_for_machines() const;
  /// What could not be had lately.
  [[nodiscard]] const Unavailable& unavailable() const { return unavailable_; }

 private:
  struct Replacement {
    std::set<std::string> claims;   ///< That go.
    std::set<std::string> instead;  ///< That must have started before.
    TimePoint since{};
    std::string told;
    std::optional<TimePoint> no_later;  ///< Then they go, whether what comes instead has started or not; nullopt: they stay.
  };
  /// Why a claim goes whatever budgets say.
  struct Forced {
    Reason reason = Reason::kInterrupted;
    TimePoint no_later{}, deadline{};
  };
  /// What a pass makes of a claim's status.
  struct ClaimStatus {
    json::Array conditions;
    json::Object fields;  ///< Of the patch.
    bool changed = false, is_started = false;
    void set(std::string_view type, std::string_view value, std::string_view reason, const std::string& message, TimePoint now) {
      changed |= set_condition(conditions, type, value, reason, message, now);
    }
  };
  // Claims (keeper_claims.cpp).
  void keep_claim(const NodeClaim& claim);
  void launch(const NodeClaim& claim);
  void follow_node(const NodeClaim& claim, const json::Value& node);
  void await_node(const NodeClaim& claim);
  /// What an hour of its node costs; empty: not known.
  [[nodiscard]] std::string price_words(const NodeClaim& claim) const;
  void follow_start(const NodeClaim& claim, const json::Value& node, ClaimStatus& status);
  void follow_pods(const NodeClaim& claim, const std::string& node, ClaimStatus& status);
  void end_claim(const NodeClaim& claim);
  void drain(const NodeClaim& claim, const std::string& node);
  void collect_orphans();
  void give_up(const NodeClaim& claim, std::string_view reason, const std::string& message);
  // Machines of groups (keeper_machines.cpp).
  void refresh_catalogue();
  void keep_machines();
  /// True: its machine goes, is gone, or will never be a node; the claim is given up.
  bool lost_machine(const NodeClaim& claim);
  /// Of a claim that goes, when its node is drained. True: there is no machine any more.
  bool end_machine(const NodeClaim& claim, const std::string& node);
  [[nodiscard]] std::string why_no_types(const NodePool& pool) const;
  // What befalls machines (keeper_faults.cpp).
  void follow_interruption(const NodeClaim& claim, const json::Value& node, ClaimStatus& status);
  void follow_health(const NodeClaim& claim, const json::Value& node, ClaimStatus& status);
  void follow_size(const NodeClaim& claim, const json::Value& node);
  /// The machine of an interrupted claim is taken away by now. True: it is, and all that had to be written is.
  bool take_machine(const NodeClaim& claim, const std::string& name, const json::Value& node);
  [[nodiscard]] std::optional<Duration> notice_of(const NodeClaim& claim, const json::Value& node) const;
  [[nodiscard]] std::optional<TimePoint> deadline_of(const NodeClaim& claim) const;
  [[nodiscard]] std::optional<Forced> forced(const NodeClaim& claim) const;
  [[nodiscard]] bool is_repair_allowed(const NodeClaim& claim);
  [[nodiscard]] std::string wrong_with(const NodeClaim& claim, const json::Value& node, std::optional<TimePoint>* repaired_at) const;
  void replace_forced(PoolsView& view);
  [[nodiscard]] bool some_are_forced() const;
  [[nodiscard]] bool is_being_replaced(const std::string& claim) const;
  void remember_unavailable(const NodeClaim& claim);
  [[nodiscard]] std::vector<autoscaler::PodPtr> pods_on(const std::string& node);
  void set_finalizers(const model::Gvr& gvr, const std::string& name, json::Array finalizers);
  void release_node(const std::string& name, const json::Value& node);
  // Pools (keeper.cpp).
  void keep_pool(const NodePool& pool);
  [[nodiscard]] bool is_satisfiable(const NodePool& pool);
  [[nodiscard]] bool some_wait();
  [[nodiscard]] std::string moment() const;
  void provision(PoolsView& view);
  void disrupt(PoolsView& view);
  void follow_replacements();
  void begin(const Disruption& step, const PoolsView& view, std::optional<TimePoint> no_later = std::nullopt);
  std::string make_claim(const NewClaim& claim, const NodePool& pool);
  void taint(const std::string& node, bool is_wanted);

  void patch_status(const model::Gvr& gvr, const std::string& name, json::Object status);
  void tell(std::string_view kind, const std::string& name, const std::string& uid, bool is_warning, std::string_view reason,
            const std::string& message, const std::string& ns = "");
  [[nodiscard]] const json::Value* class_of(const NodeClassRef& ref) const;

  Catalogue listed_;     ///< As it was given.
  Catalogue catalogue_;  ///< With the types of groups, and with what nodes were found to offer, where that is less.
  std::map<std::string, model::ResourceList> offered_;  ///< By type: that.
  std::uint64_t catalogue_version_ = UINT64_MAX;
  std::vector<std::string> group_notes_;
  std::map<std::string, GroupBalance> balances_;  ///< Of this pass.
  std::map<std::string, std::string> not_grown_;  ///< Groups that did not grow, and why.
  std::map<std::string, TimePoint> paused_;       ///< Groups of which nothing is wanted until then.
  KeeperOptions options_;
  PoolsCache cache_;
  Unavailable unavailable_;
  std::mt19937_64 random_;
  TimePoint now_{};
  PassResult out_;
  // Waiting pods, pools and claims as they were when they last changed, since when some wait, and when nodes were last planned for them.
  std::set<std::string> waiting_;
  TimePoint waiting_changed_{}, waiting_since_{}, planned_{};
  bool is_busy_ = false;      ///< Some of them will get a node.
  std::uint64_t viewed_ = 0;  ///< The cache's version when it was last looked at whole.
  TimePoint disrupted_{};
  std::string settled_;                                              ///< The moment in which nothing was to go.
  std::map<std::string, std::pair<std::string, bool>> satisfiable_;  ///< By pool: its requirements, and whether some type meets them.
  std::vector<Replacement> replacements_;
  std::map<std::string, bool> registration_;                  ///< By pool: whether the last node that was waited for came.
  std::map<std::string, std::string> told_;                   ///< By object and reason: the last message.
  std::map<std::string, std::set<std::string>> pods_before_;  ///< By node: uids.
};

}  // namespace berth::pools
