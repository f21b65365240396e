// Defragmentation: the fewest pods that must go so that another one fits.
//
// By amounts alone it is known how many pods of a node must go at least, and which sets of so few would do. Those sets are tried with the
// engine, the fewest pods first and among them the smallest, until one works as a whole. What amounts do not know of (ports, affinity,
// devices) is found out by the engine: all pods that may go are taken away and given back as far as the wanting pod lets them.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "descheduler/packing.h"
#include "model/views/pod_facts.h"
#include "placement/attempt.h"
#include "placement/disruption_ledger.h"

namespace berth::descheduler {
namespace {

using placement::DisruptionLedger;
using placement::NodeIndex;
using placement::NodeInfo;
using placement::PodInfoPtr;
using placement::Resource;

/// The resources of which a node may have too little, as numbers in a fixed order: CPU, memory, ephemeral storage, pods, and the scalars
/// that the wanting pod asks for.
using Sizes = std::vector<std::int64_t>;

struct Dimensions {
  std::vector<std::string> scalars;

  [[nodiscard]] Sizes of(const Resource& amounts, std::int64_t pods) const {
    Sizes out = {amounts.cpu_milli, amounts.memory_bytes, amounts.ephemeral_storage_bytes, pods};
    for (const std::string& name : scalars) out.push_back(amounts.scalar(name));
    return out;
  }
};

struct Movable {
  PodInfoPtr pod;
  Sizes sizes;
  double share = 0;  ///< Of the node: its largest.
};

/// Pods of one node that would make enough room by amounts.
struct Candidate {
  NodeIndex node;
  std::vector<PodInfoPtr> pods;
  double share = 0;
};

bool covers(const Sizes& freed, const Sizes& lack) {
  for (std::size_t i = 0; i < lack.size(); ++i)
    if (freed[i] < lack[i]) return false;
  return true;
}

class RoomFinder {
 public:
  RoomFinder(placement::Trial& trial, const PackingRules& rules, DisruptionLedger& budgets, std::set<std::string, std::less<>>& moved)
      : trial_(trial), rules_(rules), budgets_(budgets), moved_(moved) {}

  /// Places the pod, after moves if need be; on failure nothing has changed, and the text says why.
  std::string find(const PodInfoPtr& pod, RoomPlan& plan) {
    if (const auto gate = trial_.admits(*pod); !gate.is_success()) return gate.message();
    if (const auto placement = trial_.place(pod); placement.is_placed()) {
      plan.placed.push_back({pod, trial_.cluster().node(placement.node)->name});
      return "";
    } else if (placement.decision.outcome == placement::Decision::Outcome::kError) {
      return placement.status.message();
    }
    pod_ = pod;
    for (const auto& [name, amount] : pod->wanted().scalars) dimensions_.scalars.push_back(name);
    list_nodes();
    for (std::size_t count = 1; count <= rules_.most_moves && tries_ < rules_.most_tries; ++count)
      for (const Candidate& candidate : candidates_of(count))
        if (tries_ < rules_.most_tries && try_out(candidate, plan)) return "";
    if (held_.empty()) return "no moves of other pods make room for it";
    return fmt::format("no moves of other pods make room for it; on the nearest node {}", held_);
  }

 private:
  struct Source {
    NodeIndex node;
    Sizes lack;
    std::vector<Movable> movable;  ///< The smallest first.
    std::size_t least = 1;         ///< So many must go at least.
    /// The one set that is found otherwise than by combining; looked for once.
    bool is_asked = false;
    std::optional<Candidate> found{};
  };

  void list_nodes() {
    for (const NodeInfo* node : trial_.cluster().nodes()) {
      const auto verdict = trial_.fits(pod_, node->index);
      // Unresolvable: no eviction helps there.
      if (verdict.is_success() || verdict.code != placement::Code::kUnschedulable) continue;
      Source source{.node = node->index};
      const Sizes wanted = dimensions_.of(pod_->wanted(), 1), used = dimensions_.of(node->requested, std::ssize(node->pods));
      const Sizes all = dimensions_.of(node->allocatable, node->allocatable.allowed_pods);
      for (std::size_t i = 0; i < wanted.size(); ++i) source.lack.push_back(wanted[i] == 0 ? INT64_MIN / 2 : wanted[i] + used[i] - all[i]);
      for (const PodInfoPtr& other : node->pods) consider(other, all, source);
      std::ranges::stable_sort(source.movable, {}, &Movable::share);
      if (count_least(source)) sources_.push_back(std::move(source));
    }
  }

  void consider(const PodInfoPtr& other, const Sizes& all, Source& source) {
    if (model::goes_with_its_node(other->view().meta) || moved_.contains(other->key)) return;
    std::string why = other->view().priority > pod_->view().priority ? "its priority is higher" : rules_.why_it_stays(*other);
    if (why.empty()) why = why_budgets_hold(budgets_, *other);
    if (!why.empty()) {
      if (held_.empty()) held_ = fmt::format("{} stays: {}", other->key, why);
      return;
    }
    Movable out{other, dimensions_.of(other->request.total, 1)};
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] > 0) out.share = std::max(out.share, static_cast<double>(out.sizes[i]) / static_cast<double>(all[i]));
    source.movable.push_back(std::move(out));
  }

  /// False: not even all of them would do.
  static bool count_least(Source& source) {
    for (std::size_t i = 0; i < source.lack.size(); ++i) {
      if (source.lack[i] <= 0) continue;
      std::vector<std::int64_t> sizes;
      for (const Movable& one : source.movable) sizes.push_back(one.sizes[i]);
      std::ranges::sort(sizes, std::greater{});
      std::int64_t freed = 0;
      std::size_t count = 0;
      while (count < sizes.size() && freed < source.lack[i]) freed += sizes[count++];
      if (freed < source.lack[i]) return false;
      source.least = std::max(source.least, count);
    }
    return !source.movable.empty();
  }

  /// Sets of so many pods over all nodes, those that move least first.
  std::vector<Candidate> candidates_of(std::size_t count) {
    std::vector<Candidate> out;
    for (Source& source : sources_) {
      if (source.movable.size() < count || source.least > count) continue;
      // Where amounts are enough something else keeps the pod away, and the engine must say who.
      const bool is_by_engine = std::ranges::all_of(source.lack, [](std::int64_t lack) { return lack <= 0; });
      if (!is_by_engine && count <= kMostCombined) {
        combine(source, count, out);
        continue;
      }
      if (!std::exchange(source.is_asked, true)) source.found = is_by_engine ? by_engine(source) : by_size(source);
      if (source.found && source.found->pods.size() == count) out.push_back(*source.found);
    }
    std::ranges::stable_sort(out, {}, &Candidate::share);
    return out;
  }

  /// The few smallest sets of exactly `count` pods that free enough; none of them can be left out.
  static void combine(const Source& source, std::size_t count, std::vector<Candidate>& out) {
    // Of many pods the largest alone are combined: the small ones are of no help where few must go.
    const std::size_t first = count <= 2 ? 0 : source.movable.size() - std::min(source.movable.size(), kMostInCombination);
    std::vector<std::size_t> chosen(count);
    std::iota(chosen.begin(), chosen.end(), first);
    std::vector<Candidate> found;
    for (;;) {
      Sizes freed(source.lack.size(), 0);
      double share = 0;
      for (const std::size_t at : chosen) {
        share += source.movable[at].share;
        for (std::size_t i = 0; i < freed.size(); ++i) freed[i] += source.movable[at].sizes[i];
      }
      if (covers(freed, source.lack)) {
        Candidate one{.node = source.node, .pods = {}, .share = share};
        for (const std::size_t at : chosen) one.pods.push_back(source.movable[at].pod);
        found.insert(std::ranges::upper_bound(found, share, {}, &Candidate::share), std::move(one));
        if (found.size() > kMostOfNode) found.pop_back();
      }
      std::size_t at = count;
      while (at > 0 && chosen[at - 1] == source.movable.size() - (count - at) - 1) --at;
      if (at == 0) break;
      ++chosen[at - 1];
      for (std::size_t next = at; next < count; ++next) chosen[next] = chosen[next - 1] + 1;
    }
    std::ranges::move(found, std::back_inserter(out));
  }

  /// The largest pods until there is room, without those that turn out not to be needed.
  static std::optional<Candidate> by_size(const Source& source) {
    std::vector<const Movable*> chosen;
    Sizes freed(source.lack.size(), 0);
    const auto count = [&](const Movable& one, std::int64_t sign) {
      for (std::size_t i = 0; i < freed.size(); ++i) freed[i] += sign * one.sizes[i];
    };
    for (auto at = source.movable.rbegin(); at != source.movable.rend() && !covers(freed, source.lack); ++at) {
      chosen.push_back(&*at);
      count(*at, 1);
    }
    if (!covers(freed, source.lack)) return std::nullopt;
    for (std::size_t at = chosen.size(); at-- > 0;) {
      count(*chosen[at], -1);
      if (covers(freed, source.lack))
        chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(at));
      else
        count(*chosen[at], 1);
    }
    Candidate out{.node = source.node};
    for (const Movable* one : chosen) {
      out.pods.push_back(one->pod);
      out.share += one->share;
    }
    return out;
  }

  /// All pods that may go are gone, and come back one by one, the largest first, as long as the wanting pod still fits. Nullopt: it does
  /// not fit even so.
  std::optional<Candidate> by_engine(const Source& source) {
    if (++tries_ > rules_.most_tries) return std::nullopt;
    const placement::Attempt attempt(trial_);
    std::vector<placement::EvictedPod> gone;
    for (const Movable& one : source.movable) gone.push_back(trial_.evict(one.pod));
    if (!trial_.fits(pod_, source.node).is_success()) return std::nullopt;
    Candidate out{.node = source.node};
    for (std::size_t at = gone.size(); at-- > 0;) {
      trial_.undo(gone[at]);
      if (trial_.fits(pod_, source.node).is_success()) continue;
      (void)trial_.evict(gone[at].pod);
      out.pods.push_back(gone[at].pod);
      out.share += source.movable[at].share;
    }
    return out;
  }

  bool try_out(const Candidate& candidate, RoomPlan& plan) {
    ++tries_;
    DisruptionLedger left = budgets_;
    for (const PodInfoPtr& pod : candidate.pods) {
      if (!why_budgets_hold(left, *pod).empty()) return false;
      left.take(pod->view());
    }
    placement::Attempt attempt(trial_);
    const std::string from = trial_.cluster().node(candidate.node)->name;
    std::vector<placement::EvictedPod> evicted;
    for (const PodInfoPtr& pod : candidate.pods) evicted.push_back(trial_.evict(pod));
    // The room is the wanting pod's: the scheduler keeps it by the nomination.
    if (!trial_.place_on(pod_, candidate.node).is_success()) return false;
    std::vector<Move> moves;
    for (const placement::EvictedPod& eviction : evicted) {
      const auto placement = trial_.place(trial_.renew(eviction));
      if (!placement.is_placed() || placement.node == candidate.node) return false;
      moves.push_back({eviction.pod, from, trial_.cluster().node(placement.node)->name});
    }
    attempt.keep();
    budgets_ = std::move(left);
    for (Move& move : moves) {
      moved_.insert(move.pod->key);
      plan.moves.push_back(std::move(move));
    }
    plan.placed.push_back({pod_, from});
    return true;
  }

  static constexpr std::size_t kMostCombined = 3, kMostInCombination = 24, kMostOfNode = 4;

  placement::Trial& trial_;
  const PackingRules& rules_;
  DisruptionLedger& budgets_;
  std::set<std::string, std::less<>>& moved_;
  PodInfoPtr pod_;
  Dimensions dimensions_;
  std::vector<Source> sources_;
  std::string held_;  ///< A pod that may not be moved, and why.
  std::size_t tries_ = 0;
};

/// The largest first: what is easy to place comes last.
std::vector<PodInfoPtr> by_size(std::span<const PodInfoPtr> gang) {
  std::vector<PodInfoPtr> out(gang.begin(), gang.end());
  std::ranges::stable_sort(out, [](const PodInfoPtr& a, const PodInfoPtr& b) {
    const Resource &left = a->wanted(), &right = b->wanted();
    return left.cpu_milli != right.cpu_milli ? left.cpu_milli > right.cpu_milli : left.memory_bytes > right.memory_bytes;
  });
  return out;
}

}  // namespace

RoomPlan make_room(placement::Trial& trial, std::span<const PodInfoPtr> gang, const PackingRules& rules) {
  RoomPlan plan;
  DisruptionLedger budgets(trial.cluster(), placement::BudgetRule::kEviction);
  std::set<std::string, std::less<>> moved;
  placement::Attempt attempt(trial);
  for (const PodInfoPtr& pod : by_size(gang)) {
    const std::string why_not = RoomFinder(trial, rules, budgets, moved).find(pod, plan);
    if (!why_not.empty()) return RoomPlan{.why_not = fmt::format("{}: {}", pod->key, why_not)};
  }
  attempt.keep();
  return plan;
}

}  // namespace berth::descheduler
