// The placement engine: one pod in, one decision out, over a Cluster and a Framework.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/cluster.h"
#include "placement/framework.h"

namespace berth::placement {

/// Why no node took the pod (framework.Diagnosis). Reasons are counted; the nodes themselves come from Engine::evaluate.
struct Diagnosis {
  std::size_t node_count = 0;
  /// The PreFilter rejection; code Success when there was none.
  Status pre_filter;
  /// Reason to number of nodes, sorted by reason.
  std::vector<std::pair<std::string, std::size_t>> reasons;
  /// Plugins that rejected (UnschedulablePlugins): what the queue's wake-ups go by. Sorted.
  std::vector<std::string_view> plugins;
  /// Nodes on which evicting pods could help: rejected with plain Unschedulable.
  std::size_t resolvable_nodes = 0;
};
/// The FailedScheduling message in the release's words; `post_filter_message` is appended in 1.36 (FitError.Error).
std::string fit_error_message(const Diagnosis& diagnosis, Era era, std::string_view post_filter_message);

struct Decision {
  enum class Outcome : std::uint8_t { kScheduled, kUnschedulable, kError };
  Outcome outcome = Outcome::kUnschedulable;
  NodeIndex node;
  std::string_view node_name;  ///< Of the cluster; holds until its next change.
  std::int64_t score = 0;
  /// Exact, but for pods with volumes: there the best nodes are asked first and the others not at all, so these are upper bounds.
  std::size_t feasible_nodes = 0;
  std::size_t tied_nodes = 0;
  bool nominated_first = false;
  std::string error;  ///< Of kError.
  /// Of kUnschedulable.
  std::shared_ptr<const Diagnosis> diagnosis;
};

/// Where a pod would go, with every node that is as good.
struct BestNodes {
  Decision decision;
  std::vector<NodeIndex> nodes;  ///< Of the highest total, sorted by name; empty unless the decision is kScheduled.
};

/// Everything about one pod on every node: for parity, explain and tests. The plain form: costs nodes × plugins.
struct Evaluation {
  struct Rejected {
    NodeIndex node;
    Status status;            ///< plugin is empty for nodes that PreFilter left out.
    std::vector<Status> all;  ///< always_check_all_filters: each plugin's verdict.
  };
  struct Feasible {
    NodeIndex node;
    std::int64_t total = 0;
    std::vector<std::int64_t> scores;  ///< Parallel to scorers.
  };
  Status pre_filter;                                      ///< A rejection, or success.
  std::optional<std::set<std::string>> pre_filter_nodes;  ///< Names, when PreFilter narrowed the nodes.
  std::vector<Rejected> rejected;
  std::vector<Feasible> feasible;
  std::vector<std::string_view> scorers;  ///< Those that were not skipped.
  std::vector<NodeIndex> tied;            ///< Of the highest total, or the nominated node alone; sorted by name.
  bool nominated_first = false;
  std::vector<std::string> errors;  ///< Distinct, sorted; not empty means the cycle ends in an error.
  Diagnosis diagnosis;              ///< When nothing is feasible.
};

/// Evaluates the plain form: no caches, no state. `framework` decides the era. Nodes that PreFilter left out are never filtered; with
/// `list_left_out` each is listed as rejected when nothing fits, otherwise the diagnosis alone counts them.
Evaluation evaluate(const Framework& framework, const Cluster& cluster, const PodInfo& pod, bool list_left_out = true);

struct EngineOptions {
  enum class TieBreak : std::uint8_t { kRandom, kFirstByName };
  TieBreak tie_break = TieBreak::kRandom;
  std::uint64_t seed = 0;
  /// Decide by the plain form alone (tests, comparisons).
  bool plain = false;
  /// Columns of at least this many nodes keep only their best nodes in order. Decisions do not depend on it.
  std::size_t lazy_ranking_nodes = 4096;
  /// Columns of classes beyond this go, the longest unused first, whether they are many or large.
  std::size_t columns_bytes = 512ULL << 20;
};

/// Decides over one cluster, keeping columns per class of pods that catch up with the cluster's change log. Deterministic in the cluster's
/// history, the calls and the seed. Owner: one thread. The cluster must outlive it; change the cluster freely between calls.
class Engine {
 public:
  explicit Engine(const Cluster& cluster, EngineOptions options = {});
  /// The same engine over a fork of its cluster that has not changed since: what it knows is shared, and copied as either one changes.
  Engine(Engine& from, const Cluster& fork);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Makes the columns for such pods, where they can be had.
  void prepare(const FrameworkPtr& framework, const PodInfoPtr& pod);
  /// Where the pod goes now. Changes nothing in the cluster: the caller assumes the pod on the node (Reserve) or not.
  [[nodiscard]] Decision schedule(const FrameworkPtr& framework, const PodInfoPtr& pod);
  /// The same, with every node that it could be instead.
  [[nodiscard]] BestNodes best(const FrameworkPtr& framework, const PodInfoPtr& pod);
  /// Whether the node could take the pod now (PreFilter and Filter), or why not. Where a pod of its class was asked for before, as little
  /// as a decision costs; else PreFilter, which may walk over all nodes.
  [[nodiscard]] Status fits(const FrameworkPtr& framework, const PodInfoPtr& pod, NodeIndex node);
  [[nodiscard]] Evaluation evaluate(const Framework& framework, const PodInfo& pod) const;
  /// The pod's signature in this cluster as it is now: labels count as far as selectors in play see them.
  [[nodiscard]] Signature sign(const Framework& framework, const PodInfo& pod);

  /// Gives back what makes decisions faster: all columns, which are made anew as they are asked for. Not within an attempt.
  void forget();
  /// Gives back the columns that nobody has asked for since the last call, and what is known of pods like none that are there. Decisions do
  /// not depend on it. Not within an attempt.
  void forget_unused();

  /// What is drawn among equals from here on is drawn again after `end_attempt(true)`. In pairs, which nest.
  void begin_attempt();
  void end_attempt(bool draws_again);

  /// Bytes held by the columns, for the benchmarks' count.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::placement
