#include "placement/preemption.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "placement/disruption_ledger.h"
#include "placement/preemption_words.h"
#include "placement/trial.h"

namespace berth::placement {
namespace {

using words::kNever;
using words::kNotHelpful;
using words::kNoVictims;
using words::kTerminating;

/// The verdict on each node of the failed attempt.
class Verdicts {
 public:
  Verdicts(const Evaluation& failed, Era era) {
    absent_ = failed.pre_filter.is_success() ? Code::kUnschedulableAndUnresolvable : failed.pre_filter.code;
    for (const auto& rejected : failed.rejected) by_node_.emplace(rejected.node, rejected.status.code);
    // Before 1.36 a node without a verdict counts as one that evicting may help; there, every node has one.
    if (era == Era::k120 && failed.pre_filter.is_success()) absent_ = Code::kUnschedulable;
  }
  [[nodiscard]] Code operator[](NodeIndex node) const {
    const auto at = by_node_.find(node);
    return at == by_node_.end() ? absent_ : at->second;
  }

 private:
  Code absent_;
  std::map<NodeIndex, Code> by_node_;
};

/// Empty when the pod may preempt; else why not (PodEligibleToPreemptOthers).
std::optional<std::string_view> not_eligible(const Cluster& cluster, const PodInfo& pod, const Verdicts& verdicts, Era era) {
  if (pod.view().preemption_never) return kNever;
  const auto& nominated = pod.view().nominated_node_name;
  if (nominated.empty()) return std::nullopt;
  const NodeInfo* node = cluster.find_node(nominated);
  if (node == nullptr || verdicts[node->index] == Code::kUnschedulableAndUnresolvable) return std::nullopt;
  for (const auto& other : node->pods) {
    if (other->view().priority >= pod.view().priority || !other->view().meta.is_deleting) continue;
    if (era == Era::k120 || other->view().terminating_by_preemption) return kTerminating;
  }
  return std::nullopt;
}

void pick(const Cluster& cluster, PostFilterResult& out) {
  std::optional<CandidateRank> best;
  for (const auto& candidate : out.candidates) {
    const CandidateRank rank = rank_of(candidate);
    if (best && rank > *best) continue;
    if (!best || rank < *best) out.tied.clear();
    best = rank;
    out.tied.push_back(candidate.node);
  }
  std::ranges::sort(out.tied, {}, [&](NodeIndex node) -> const std::string& { return cluster.node(node)->name; });
  for (std::size_t i = 0; i < out.candidates.size(); ++i)
    if (!out.tied.empty() && out.candidates[i].node == out.tied[0]) out.best = i;
}

/// Tries on one node which pods must go. The state is the caller's before and after it; in between it knows of the pods that are tried
/// away. Copying it for every node would cost nodes times topology domains.
class DryRun {
 public:
  DryRun(const Framework& framework, CycleState& state, const PodInfo& pod, const NodeInfo& node)
      : framework_(framework), state_(state), pod_(pod), node_(node), left_(node) {}

  std::optional<Candidate> select(Status& why) {
    auto out = try_victims(why);
    for (const auto& other : std::exchange(away_, {})) {
      left_.add_pod(other);
      is_spoilt_ = !framework_.run_add_pod(state_, pod_, *other, left_).is_success() || is_spoilt_;
    }
    return out;
  }
  /// The state could not be brought back: a plugin failed on the way.
  [[nodiscard]] bool is_spoilt() const { return is_spoilt_; }

 private:
  Status take(const PodInfoPtr& other) {
    left_.remove_pod(other->key);
    Status status = framework_.run_remove_pod(state_, pod_, *other, left_);
    if (status.is_success())
      away_.push_back(other);
    else
      is_spoilt_ = true;
    return status;
  }
  Status give_back(const PodInfoPtr& other) {
    left_.add_pod(other);
    Status status = framework_.run_add_pod(state_, pod_, *other, left_);
    if (status.is_success())
      std::erase(away_, other);
    else
      is_spoilt_ = true;
    return status;
  }

  std::optional<Candidate> try_victims(Status& why) {
    std::vector<PodInfoPtr> potential;
    for (const auto& other : node_.pods)
      if (other->view().priority < pod_.view().priority) potential.push_back(other);
    if (potential.empty()) {
      why = Status::unresolvable(std::string(kNoVictims));
      return std::nullopt;
    }
    for (const auto& other : potential)
      if (why = take(other); !why.is_success()) return std::nullopt;
    // Not even an otherwise empty node would do: affinity to a victim never counts.
    why = framework_.run_filter_with_nominated(state_, pod_, left_);
    if (!why.is_success()) return std::nullopt;

    std::ranges::stable_sort(potential, [](const auto& a, const auto& b) { return is_more_important(*a, *b); });
    const auto violates = budget_violations(state_.cluster(), potential);
    Candidate out{node_.index, {}, 0};
    // Those whose eviction breaks a budget are the first to stay.
    for (const bool violating : {true, false}) {
      for (std::size_t i = 0; i < potential.size(); ++i) {
        if (violates[i] != violating) continue;
        if (why = give_back(potential[i]); !why.is_success()) return std::nullopt;
        if (framework_.run_filter_with_nominated(state_, pod_, left_).is_success()) continue;
        if (why = take(potential[i]); !why.is_success()) return std::nullopt;
        out.victims.push_back(potential[i]);
        out.budget_violations += violating;
      }
    }
    why = Status::success();
    if (out.victims.empty()) {
      why = Status::error(fmt::format("expected at least one victim pod on node \"{}\"", node_.name));
      return std::nullopt;
    }
    if (framework_.profile().era != Era::k120)
      std::ranges::stable_sort(out.victims, [](const auto& a, const auto& b) { return is_more_important(*a, *b); });
    return out;
  }

  const Framework& framework_;
  CycleState& state_;
  const PodInfo& pod_;
  const NodeInfo& node_;
  NodeInfo left_;
  std::vector<PodInfoPtr> away_;
  bool is_spoilt_ = false;
};

}  // namespace

Status preempt(const PostFilterCall& call, PostFilterResult& out) {
  const Framework& framework = *call.framework;
  const Cluster& cluster = call.cluster;
  const PodInfoPtr& pod = call.pod;
  const PreemptionOptions& options = call.options;
  const Era era = framework.profile().era;
  const Verdicts verdicts(call.failed(), era);
  if (const auto why = not_eligible(cluster, *pod, verdicts, era)) {
    out.waits_for_victims = !pod->view().preemption_never;
    return Status::unschedulable(std::string(*why));
  }

  std::map<std::string, std::size_t> reasons;
  std::vector<std::string> errors;
  std::size_t not_helpful = 0;
  std::optional<CycleState> state;
  for (const NodeInfo* node : cluster.nodes()) {
    if (verdicts[node->index] != Code::kUnschedulable) {
      ++not_helpful;
      continue;
    }
    if (!state) {
      state.emplace(framework.new_cycle(cluster));
      (void)framework.run_pre_filter(*state, *pod);
    }
    Status why;
    DryRun run(framework, *state, *pod, *node);
    auto candidate = run.select(why);
    if (run.is_spoilt()) state.reset();
    if (candidate && options.budgets_are_hard && candidate->budget_violations > 0) {
      candidate.reset();
      why = Status::unschedulable(std::string(words::kHardBudget));
    }
    if (candidate) {
      out.candidates.push_back(std::move(*candidate));
    } else {
      if (why.is_error() && era != Era::k120) errors.push_back(why.message());
      for (const auto& reason : why.reasons) ++reasons[reason];
    }
  }
  if (out.candidates.empty() && !errors.empty()) return Status::error("preemption: " + words::aggregate(errors));
  if (not_helpful != 0) reasons[std::string(kNotHelpful)] += not_helpful;
  pick(cluster, out);
  while (options.confirm && out.choice() != nullptr && !helps(call.framework, cluster, *pod, *out.choice())) {
    out.candidates.erase(out.candidates.begin() + static_cast<std::ptrdiff_t>(*out.best));
    out.best.reset();
    out.tied.clear();
    ++reasons[std::string(kNotHelpful)];
    pick(cluster, out);
  }
  return out.choice() != nullptr ? Status::success() : Status::unschedulable(words::fit_error(cluster.node_count(), reasons));
}

CandidateRank rank_of(const Candidate& candidate) {
  const auto& victims = candidate.victims;
  __int128 sum = 0;
  std::int64_t top = victims[0]->view().priority;
  std::int64_t earliest = victims[0]->start_time_ns;
  for (const auto& victim : victims) {
    // Shifted above zero, so that a few pods of negative priority never outweigh many.
    sum += static_cast<__int128>(victim->view().priority) + (std::int64_t{1} << 31);
    if (victim->view().priority > top || (victim->view().priority == top && victim->start_time_ns < earliest)) {
      top = victim->view().priority;
      earliest = victim->start_time_ns;
    }
  }
  return {candidate.budget_violations, victims[0]->view().priority, sum, victims.size(), -earliest};
}

bool helps(const FrameworkPtr& framework, const Cluster& cluster, const PodInfo& pod, const Candidate& candidate) {
  Trial without = Trial::on_fork(cluster, framework);
  for (const auto& victim : candidate.victims) without.cluster().remove_pod(victim->key);
  // The cycle alone is asked: a gate that is closed yet says nothing of the room.
  return Engine(without.cluster()).fits(framework, pod.shared_from_this(), candidate.node).is_success();
}

void choose_candidate(const FrameworkPtr& framework, const Cluster& cluster, const PodInfo& pod, const PreemptionOptions& options,
                      PostFilterResult& result) {
  const auto pick_again = [&] {
    result.best.reset();
    result.tied.clear();
    pick(cluster, result);
  };
  pick_again();
  while (options.confirm && result.choice() != nullptr && !helps(framework, cluster, pod, *result.choice())) {
    result.candidates.erase(result.candidates.begin() + static_cast<std::ptrdiff_t>(*result.best));
    pick_again();
  }
  if (result.choice() != nullptr) result.status = Status::success();
}

std::string words::fit_error(std::size_t node_count, const std::map<std::string, std::size_t>& reasons) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(fmt::format("{} {}", count, reason));
  std::ranges::sort(parts);
  std::string out = fmt::format("0/{} nodes are available:", node_count);
  if (!parts.empty()) out += fmt::format(" {}.", fmt::join(parts, ", "));
  return out;
}

std::string words::aggregate(std::vector<std::string> errors) {
  std::set<std::string> seen;
  std::erase_if(errors, [&](const std::string& one) { return !seen.insert(one).second; });
  return errors.size() == 1 ? errors.front() : fmt::format("[{}]", fmt::join(errors, ", "));
}

Status words::refused(std::string_view why, const Framework& framework) {
  Status out{Code::kUnschedulable, {}, {}};
  for (const Plugin* plugin : framework.post_filters())
    if (std::string said = plugin->post_filter_refusal(why); !said.empty()) out.reasons.push_back(std::move(said));
  return out;
}

bool is_more_important(const PodInfo& a, const PodInfo& b) {
  if (a.view().priority != b.view().priority) return a.view().priority > b.view().priority;
  return a.start_time_ns < b.start_time_ns;
}

std::vector<bool> budget_violations(const Cluster& cluster, const std::vector<PodInfoPtr>& pods) {
  std::vector<bool> out(pods.size(), false);
  DisruptionLedger ledger(cluster, BudgetRule::kPreemption);
  for (std::size_t i = 0; i < pods.size(); ++i) out[i] = !ledger.take(pods[i]->view());
  return out;
}

std::optional<Candidate> select_victims(const Framework& framework, const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                        Status& why) {
  CycleState dry = state.clone();
  return DryRun(framework, dry, pod, node).select(why);
}

const Evaluation& PostFilterCall::failed() const {
  if (failed_ == nullptr) failed_ = &own_.emplace(evaluate(*framework, cluster, *pod, false));
  return *failed_;
}

PostFilterResult run_post_filter(const PostFilterCall& call) {
  PostFilterResult out;
  std::vector<std::string> reasons;
  for (const Plugin* plugin : call.framework->post_filters()) {
    Status status = plugin->post_filter(call, out);
    if (status.is_success() || status.is_error() || status.code == Code::kUnschedulableAndUnresolvable) {
      out.status = std::move(status);
      return out;
    }
    for (auto& reason : status.reasons)
      if (!reason.empty()) reasons.push_back(std::move(reason));
  }
  out.status = Status{Code::kUnschedulable, {}, std::move(reasons)};
  return out;
}

PostFilterResult run_post_filter(const FrameworkPtr& framework, const Cluster& cluster, const PodInfoPtr& pod, const Evaluation& failed,
                                 const PreemptionOptions& options) {
  return run_post_filter(PostFilterCall(framework, cluster, pod, options, &failed));
}

}  // namespace berth::placement
