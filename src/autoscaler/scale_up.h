// Which groups grow, by how much, for which pods (SPEC H2, H4, H7; core/scaleup).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "autoscaler/expander.h"
#include "autoscaler/limits.h"
#include "autoscaler/time_limit.h"
#include "placement/trial.h"

namespace berth::autoscaler {

/// One group's new size.
struct Resize {
  std::string group;
  std::int64_t from = 0, to = 0, max = 0;
};
/// "[{MachineSet/ns/name 1->3 (max: 5)}]", as events show it.
std::string to_string(const std::vector<Resize>& plan);

/// Numbers the kinds of waiting pods: pods of one number are interchangeable to placement. Asked once a pod; holds for one pass.
class Kinds {
 public:
  /// `trial` signs, and must outlive this. `pods` are all that will be asked about: where some of them see others by their labels
  /// (affinity, spreading), labels tell kinds apart.
  Kinds(placement::Trial& trial, const std::vector<PodPtr>& pods);
  std::size_t of(const PodPtr& pod);
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  struct Kind {
    placement::Signature signature;
    PodPtr first;
    std::size_t number = 0;
  };
  placement::Trial& trial_;
  bool some_see_others_ = false;
  std::unordered_multimap<std::uint64_t, Kind> known_;
  std::unordered_map<const Pod*, std::size_t> numbers_;
  std::size_t count_ = 0;
};

struct ScaleUpInput {
  /// The cluster with the nodes that are on their way; every pod of `pending` was found not to fit anywhere in it.
  placement::Trial* trial = nullptr;
  std::vector<PodPtr> pending;
  Kinds* kinds = nullptr;  ///< Of the pending pods.
  const std::vector<NodeGroup>* groups = nullptr;
  const NodeTemplates* templates = nullptr;
  /// Groups that may not grow now, and why ("in backoff after failed scale-up").
  std::map<std::string, std::string, std::less<>> not_ready;
  const ClusterLimits* limits = nullptr;
  std::int64_t node_count = 0;  ///< Of the cluster, with those on their way.
  bool all_or_nothing = false;  ///< One option helps every pod, whole, or nothing grows.
  ExpanderInput expander;
  std::uint64_t seed = 0;
  TimeLimit limit;
};

inline constexpr std::string_view kMaxNodesTotalReached = "max total nodes in cluster reached";

/// Why a group does not help.
struct GroupRefusal {
  std::vector<std::string> reasons;           ///< In words.
  std::vector<std::string> over_limits = {};  ///< Resources of which the cluster would have more than it may.
};
GroupRefusal over_cluster_limits(std::vector<std::string> resources);
/// By group id.
using Refusals = std::map<std::string, GroupRefusal, std::less<>>;

/// Groups that may grow now, and why the others may not.
struct Growable {
  std::vector<const NodeGroup*> valid;
  Refusals skipped;
};
Growable sort_out_groups(const ScaleUpInput& input, const Options& options);

/// How often each reason came over all groups, in order of the reasons: {"2 Insufficient cpu", "1 max node group size reached"}.
std::vector<std::string> count_reasons(const Refusals& refusals);

struct ScaleUpPlan {
  struct Option {
    std::string group;
    std::int64_t nodes = 0;
    std::size_t pods = 0;
  };
  struct Refused {
    PodPtr pod;
    std::shared_ptr<const Refusals> why;
  };
  enum class Result { kNotNeeded, kNoOptions, kLimitedByMaxNodesTotal, kSuccessful };
  Result result = Result::kNotNeeded;
  std::vector<Option> options;    ///< Every group that would help, in order of id.
  std::vector<std::string> best;  ///< Of these, the groups that the expanders left: one is drawn.
  std::vector<Resize> resizes;
  std::vector<PodPtr> estimated;         ///< The pods of the chosen option.
  std::vector<PodPtr> helped;            ///< Those that the scheduler would put on the nodes that are added.
  std::vector<PodPtr> awaiting;          ///< Pods that another group than the chosen one would help.
  std::vector<Refused> not_helped;       ///< Pods that no group can help.
  std::vector<std::string> left_groups;  ///< The time was over before they were estimated.
  std::vector<Warning> warnings;
};
/// Every node of the plan takes at least one of the pods when the scheduler places them in its own order.
ScaleUpPlan plan_scale_up(const ScaleUpInput& input, const Options& options);

/// Pods of one kind.
struct PodGroup {
  std::vector<PodPtr> pods;
  Refusals refusals;              ///< Of groups whose template does not fit.
  std::vector<std::string> fits;  ///< Group ids.
};
std::vector<PodGroup> group_alike(const std::vector<PodPtr>& pods, Kinds& kinds);

/// Lets the scheduler place the pods, each in its turn; those that got a node leave `pods`, and `placed` is told where they went. A pod
/// that fits nowhere speaks for those like it, and is tried again when others whom it may need have come: the scheduler does so too.
void place_waiting(placement::Trial& trial, std::vector<PodPtr>& pods, Kinds& kinds,
                   const std::function<void(const PodPtr&, placement::NodeIndex)>& placed);

/// First-fit decreasing on copies of the template added to a fork, at most `most` of them.
ExpansionOption estimate(placement::Trial& base, const std::string& group, const NodeTemplate& node_template,
                         std::vector<const PodGroup*> pods, std::int64_t most);

/// Spreads new nodes over groups, the smallest first, each up to its maximum (processors/nodegroupset).
std::vector<Resize> balance(std::vector<Resize> groups, std::int64_t new_nodes);

}  // namespace berth::autoscaler
