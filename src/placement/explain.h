// Why a pod is where it is, or why it is pending, and the smallest change that would place it (SPEC I3). Pure: asks the plain form of the
// engine on forks of the cluster.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "placement/node_changes.h"
#include "placement/preemption.h"
#include "placement/resize_room.h"

namespace berth::placement {

struct ExplainOptions {
  /// Relaxations are tried one by one, then in twos, up to this many at once.
  std::size_t max_relaxations_at_once = 2;
  /// Beyond this many nodes relaxations are tried on the nearest nodes only.
  std::size_t max_nodes_for_relaxations = 2000;
  PreemptionOptions preemption;
};

/// One node's verdict.
struct NodeReport {
  std::string name;
  bool is_feasible = false;
  std::int64_t total = 0;
  std::vector<std::pair<std::string, std::int64_t>> scores;  ///< Weighted, by plugin.
  std::string would_refuse{};  ///< Of a feasible one: the node itself would not take the pod, and why (numa/node_alignment.h).
  struct Rejection {
    std::string plugin, code;
    std::vector<std::string> reasons;
    std::vector<std::string> lacks;  ///< What it found wanting, with names; empty where the reasons say all.
    friend bool operator==(const Rejection&, const Rejection&) = default;
  };
  std::vector<Rejection> rejections;  ///< By every filter, not only the first.
  /// What is missing, with amounts: "cpu: 1500m more (asks 2, free 500m of 4)", "toleration for dedicated=gpu:NoSchedule".
  std::vector<std::string> lacks;
};

/// One of the pod's own constraints, given up.
struct Relaxation {
  std::vector<std::string> changes;  ///< "lower the cpu request from 4 to 2500m"
  std::vector<std::string> nodes;    ///< Where the pod would then fit; sorted.
};

/// Evicting these would make room.
struct EvictionPlan {
  std::string node;
  std::vector<std::string> victims;         ///< "namespace/name (priority 0)"
  std::vector<std::string> broken_budgets;  ///< Disruption budgets that it would violate.
  std::vector<std::string> orphans;         ///< Victims that no controller would make anew.
  bool is_allowed = false;                  ///< The scheduler itself would do it.
};

struct Explanation {
  std::string pod, scheduler;
  enum class Verdict { kRuns, kFits, kPending, kGated, kError, kOtherScheduler };
  Verdict verdict = Verdict::kPending;
  std::string summary;  ///< One sentence.
  std::string message;  ///< FailedScheduling's text, or the error.
  /// Of a pending pod: what no single node's verdict shows (placement/topology_keys.h). Of one that fits: that the best would refuse it.
  std::vector<std::string> notes;
  std::string current_node;  ///< Where it runs, or empty.
  std::vector<std::string> best_nodes;
  std::vector<NodeReport> nodes;  ///< Feasible first by score, then nearest first.
  std::vector<std::string> why_winner;
  std::string nearest_node;  ///< Of a pending pod: the node that lacks least.
  std::vector<Relaxation> relaxations;
  std::vector<NodeChange> node_changes;  ///< Of a pending pod.
  std::optional<EvictionPlan> eviction;
  std::optional<ResizeRoom> resize;  ///< Of a pod that runs and is granted other amounts than its spec asks for.
  std::string configuration;         ///< Where the scheduler's configuration is from, when the caller says so.
  std::string contradiction;         ///< What the scheduler itself has said against the verdict, when the caller knows.
};

/// A pod that already runs is explained as if it were not there. The cluster is not changed.
Explanation explain(const FrameworkPtr& framework, const Cluster& cluster, const PodInfoPtr& pod, const ExplainOptions& options = {});

json::Value to_json(const Explanation& explanation);
/// For people. `is_wide` adds every node's scores and rejections.
std::string to_text(const Explanation& explanation, bool is_wide);

/// "1500m", "2", "3Gi": an amount of a resource as people write it.
std::string format_amount(std::string_view resource, std::int64_t amount);

}  // namespace berth::placement
