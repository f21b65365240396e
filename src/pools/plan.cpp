#include "pools/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "placement/attempt.h"
#include "placement/groups/group_placement.h"
#include "placement/node_match.h"
#include "pools/gang_domains.h"
#include "pools/kinds.h"
#include "pools/shape_table.h"

namespace berth::pools {

using placement::NodeIndex;
using placement::PodInfoPtr;

std::vector<PodKind> kinds_of(placement::Trial& trial, const std::vector<PodInfoPtr>& pods) {
  std::vector<PodKind> out;
  std::unordered_multimap<std::uint64_t, std::pair<placement::Signature, std::size_t>> known;
  for (const PodInfoPtr& pod : pods) {
    placement::Signature signature = trial.sign(*pod);
    const std::uint64_t hash = signature.hash();
    const auto [begin, end] = known.equal_range(hash);
    const auto at = std::find_if(begin, end, [&](const auto& one) {
      const placement::PodInfo& first = out[one.second.second].first();
      return one.second.first == signature && first.view().priority == pod->view().priority && same_traits(first, *pod);
    });
    if (at != end) {
      out[at->second.second].pods.push_back(pod);
      continue;
    }
    known.emplace(hash, std::pair(std::move(signature), out.size()));
    out.push_back({{pod}});
  }
  return out;
}

bool is_local(const placement::PodInfo& pod) {
  const model::PodView& view = pod.view();
  return pod.required_affinity.empty() && pod.required_anti_affinity.empty() && pod.host_ports.empty() && view.resource_claims.empty() &&
         std::ranges::none_of(view.spread_constraints, [](const auto& one) { return one.is_hard; }) &&
         std::ranges::all_of(view.volumes, [](const auto& one) { return one.kind == model::VolumeView::Kind::kOther; });
}

std::string ProvisionPlan::bound_words() const {
  if (bound <= 0 || cost <= 0) return "";
  const double above = (cost / bound - 1) * 100;
  return above < 0.05 ? "nothing cheaper is possible" : fmt::format("at most {:.1f}% above what is possible", above);
}

namespace {

/// A node that is being put together in the trial.
struct OpenClaim {
  std::uint32_t shape = 0;
  std::string name;
  NodeIndex node;
  std::vector<PodInfoPtr> pods;
  Amounts used;
};

class Planning {
 public:
  explicit Planning(const ProvisionInput& input)
      : input_(input), trial_(input.trial->fork()), table_(input, input.waiting), left_(table_.limits_left()) {}

  ProvisionPlan run() {
    place_on_existing();
    std::vector<PodInfoPtr> local, others;
    for (const PodInfoPtr& pod : waiting_) (is_local(*pod) ? local : others).push_back(pod);
    open_domains(others);
    for (const PodKind& kind : kinds_of(trial_, sorted(others))) place_each(kind);
    const double others_cost = cost();
    const bool only_local = others.empty();
    pack_local(into_open_claims(local), only_local);
    out_.greedy_cost += others_cost;
    finish();
    return std::move(out_);
  }

 private:
  /// The larger first among equals of priority.
  static std::vector<PodInfoPtr> sorted(std::vector<PodInfoPtr> pods) {
    std::ranges::stable_sort(pods, [](const PodInfoPtr& a, const PodInfoPtr& b) {
      const auto key = [](const PodInfoPtr& pod) {
        return std::tuple(-pod->view().priority, -pod->wanted().cpu_milli, -pod->wanted().memory_bytes);
      };
      return key(a) < key(b);
    });
    return pods;
  }

  /// What has room by now needs no node: the scheduler's own choice, in its order.
  void place_on_existing() {
    std::vector<PodInfoPtr> pods = input_.waiting;
    std::ranges::stable_sort(pods, std::greater{}, [](const PodInfoPtr& pod) { return pod->view().priority; });
    for (const PodKind& kind : kinds_of(trial_, pods)) {
      bool is_hopeless = trial_.cluster().node_count() == 0;
      for (const PodInfoPtr& pod : kind.pods) {
        if (const placement::Status admitted = trial_.admits(*pod); !admitted.is_success()) {
          out_.refused.push_back({pod, admitted.message()});
          continue;
        }
        placement::Placement placed;
        if (!is_hopeless) placed = trial_.place(pod);
        if (placed.is_placed()) {
          out_.on_existing.emplace_back(pod, trial_.cluster().node(placed.node)->name);
          continue;
        }
        is_hopeless = true;
        waiting_.push_back(pod);
      }
    }
  }

  // Pods that see others: one by one.

  /// A zone in which there is no node yet is one to spread over all the same: an empty node of each place that pods can tell apart, which
  /// takes nobody. Names of nodes are no such domains.
  void open_domains(const std::vector<PodInfoPtr>& pods) {
    const bool some_spread = std::ranges::any_of(pods, [](const PodInfoPtr& pod) {
      return std::ranges::any_of(pod->view().spread_constraints,
                                 [](const auto& one) { return one.is_hard && one.topology_key != kHostnameLabel; });
    });
    if (!some_spread) return;
    std::size_t number = 0;
    for (const std::uint32_t speaker : table_.speakers()) {
      auto view = std::make_shared<model::NodeView>(*table_.node(speaker, fmt::format("domain-{}", ++number)));
      auto labels = view->meta.labels.pairs();
      std::erase_if(labels, [](const auto& one) { return one.first == kHostnameLabel; });
      view->meta.labels = model::Labels(std::move(labels));
      view->taints.push_back({"karpenter.sh/not-there", "", "NoSchedule"});
      view->allocatable = view->capacity = {};
      (void)trial_.cluster().upsert_node(std::move(view));
    }
  }

  void place_each(const PodKind& kind) {
    for (const PodInfoPtr& pod : kind.pods)
      if (!put_on_open(pod) && !put_where_least(pod)) refuse(pod);
  }
  bool put_on_open(const PodInfoPtr& pod) {
    for (OpenClaim& claim : claims_) {
      if (!fits_in(claim, claim.shape, *pod) || !trial_.place_on(pod, claim.node).is_success()) continue;
      note(claim, pod);
      return true;
    }
    return false;
  }
  void note(OpenClaim& claim, const PodInfoPtr& pod) {
    claim.pods.push_back(pod);
    const Amounts wanted = table_.amounts(*pod);
    for (std::size_t r = 0; r < wanted.size(); ++r) claim.used[r] += wanted[r];
  }
  [[nodiscard]] bool fits_in(const OpenClaim& claim, std::uint32_t shape, const placement::PodInfo& pod) const {
    const Amounts wanted = table_.amounts(pod);
    const Amounts& room = table_.shape(shape).room;
    for (std::size_t r = 0; r < wanted.size(); ++r)
      if (claim.used[r] + wanted[r] > room[r]) return false;
    return true;
  }
  [[nodiscard]] bool may_buy(std::uint32_t shape, const BinShape* instead_of = nullptr) const {
    const BinShape& bought = table_.shape(shape);
    for (std::size_t r = 0; r < bought.capacity.size(); ++r) {
      const std::int64_t left = left_[bought.pool][r];
      const std::int64_t given = instead_of != nullptr && instead_of->pool == bought.pool ? instead_of->capacity[r] : 0;
      if (left != INT64_MAX && bought.capacity[r] - given > left) return false;
    }
    return true;
  }
  void pay(std::uint32_t shape, std::int64_t sign = 1) {
    const BinShape& bought = table_.shape(shape);
    for (std::size_t r = 0; r < bought.capacity.size(); ++r)
      if (left_[bought.pool][r] != INT64_MAX) left_[bought.pool][r] -= sign * bought.capacity[r];
  }

  /// A new node, or a larger one instead of one that is about to be bought: whichever costs less more.
  bool put_where_least(const PodInfoPtr& pod) {
    std::int64_t tried_weight = INT64_MIN;
    for (const std::int64_t weight : table_.weights()) {  // Descending.
      if (weight == tried_weight) continue;
      tried_weight = weight;
      struct Option {
        double price = 0;
        std::size_t claim = SIZE_MAX;
        std::uint32_t shape = 0;
      };
      std::vector<Option> options;
      for (const std::uint32_t s : table_.allowed(*pod)) {
        const BinShape& shape = table_.shape(s);
        if (table_.weight_of(s) != weight) continue;
        if (fits(table_.amounts(*pod), shape.room) && may_buy(s)) options.push_back({shape.price, SIZE_MAX, s});
        for (std::size_t i = 0; i < claims_.size(); ++i) {
          const BinShape& now = table_.shape(claims_[i].shape);
          if (now.pool != shape.pool || table_.place_of(claims_[i].shape) != table_.place_of(s) || s == claims_[i].shape) continue;
          if (!fits_in(claims_[i], s, *pod) || !may_buy(s, &now) || !takes_all(claims_[i], s)) continue;
          options.push_back({std::max(0.0, shape.price - now.price), i, s});
        }
      }
      std::ranges::stable_sort(options, {}, [](const Option& one) { return std::pair(one.price, one.claim); });
      std::set<std::pair<std::size_t, std::size_t>> refused;  // A claim or a place that does not take it, whatever the size.
      for (const Option& option : options) {
        const std::pair at(option.claim, table_.place_of(option.shape));
        if (refused.contains(at)) continue;
        if (option.claim == SIZE_MAX ? open(pod, option.shape) : enlarge(claims_[option.claim], pod, option.shape)) return true;
        refused.insert(at);
      }
    }
    return false;
  }
  [[nodiscard]] bool takes_all(const OpenClaim& claim, std::uint32_t shape) const {
    return std::ranges::all_of(claim.pods, [&](const PodInfoPtr& one) { return table_.is_allowed(*one, shape); });
  }
  bool open(const PodInfoPtr& pod, std::uint32_t shape) {
    OpenClaim claim{shape, next_name(), {}, {}, Amounts(table_.width(), 0)};
    bool is_taken = false;
    {
      placement::Attempt attempt(trial_);
      claim.node = add_node(shape, claim.name);
      is_taken = trial_.place_on(pod, claim.node).is_success();
      if (is_taken) attempt.keep();
    }
    if (!is_taken) return false;
    pay(shape);
    note(claim, pod);
    claims_.push_back(std::move(claim));
    return true;
  }
  bool enlarge(OpenClaim& claim, const PodInfoPtr& pod, std::uint32_t shape) {
    {
      placement::Attempt attempt(trial_);
      (void)trial_.cluster().upsert_node(table_.node(shape, claim.name));
      if (!trial_.place_on(pod, claim.node).is_success()) return false;
      attempt.keep();
    }
    pay(claim.shape, -1);
    pay(shape);
    claim.shape = shape;
    note(claim, pod);
    return true;
  }
  NodeIndex add_node(std::uint32_t shape, const std::string& name) {
    const NodeIndex out = trial_.cluster().upsert_node(table_.node(shape, name));
    for (const PodInfoPtr& daemon : table_.daemons_on(shape, name)) (void)trial_.reserve(daemon, out);
    return out;
  }
  std::string next_name() { return fmt::format("new-node-{}", ++made_); }

  // Pods that see their own node alone: by numbers.

  std::vector<PodInfoPtr> into_open_claims(const std::vector<PodInfoPtr>& pods) {
    if (claims_.empty()) return pods;
    std::vector<PodInfoPtr> out;
    for (const PodKind& kind : kinds_of(trial_, sorted(pods))) {
      bool is_hopeless = false;
      for (const PodInfoPtr& pod : kind.pods) {
        is_hopeless = is_hopeless || !put_on_open(pod);
        if (is_hopeless) out.push_back(pod);
      }
    }
    return out;
  }

  void pack_local(const std::vector<PodInfoPtr>& pods, bool is_all) {
    const std::vector<PodKind> kinds = kinds_of(trial_, pods);
    PackingProblem problem = table_.problem(left_);
    bool some_prefer = false;
    for (const PodKind& kind : kinds) {
      problem.items.push_back({table_.amounts(kind.first()), static_cast<std::int64_t>(kind.pods.size()), kind.first().view().priority,
                               table_.allowed(kind.first())});
      some_prefer |= !kind.first().view().node_affinity.preferred.empty();
    }
    const PackingOptions options{input_.is_over, input_.rounds, input_.seed};
    Packed packed = pack_by_priority(problem, options);
    if (some_prefer) {
      // What is preferred is kept where it costs nothing.
      PackingProblem preferring = problem;
      for (std::size_t k = 0; k < kinds.size(); ++k) preferring.items[k].shapes = table_.preferred(kinds[k].first());
      Packed other = pack_by_priority(preferring, options);
      if (other.left_count() <= packed.left_count() && other.cost <= packed.cost + 1e-9) {
        other.bound = packed.bound;
        other.greedy_cost = packed.greedy_cost;
        packed = std::move(other);
      }
    }
    out_.greedy_cost = packed.greedy_cost;
    if (is_all) out_.bound = packed.bound;
    std::vector<std::size_t> next(kinds.size(), 0);
    for (const Bin& bin : packed.bins) buy(bin, kinds, next);
    for (std::size_t k = 0; k < kinds.size(); ++k)
      for (std::size_t i = next[k]; i < kinds[k].pods.size(); ++i)
        if (const PodInfoPtr& pod = kinds[k].pods[i]; !put_on_open(pod) && !put_where_least(pod)) refuse(pod);
  }
  /// Where limits leave somebody out, those of higher priority come first.
  Packed pack_by_priority(const PackingProblem& problem, const PackingOptions& options) {
    Packed out = pack(problem, options);
    std::set<std::int64_t, std::greater<>> priorities;
    for (const Item& item : problem.items) priorities.insert(item.priority);
    if (out.left_count() == 0 || priorities.size() < 2) return out;
    Packed all{{}, std::vector<std::int64_t>(problem.items.size(), 0), 0, 0, 0};
    PackingProblem rest = problem;
    for (const std::int64_t priority : priorities) {
      for (std::size_t k = 0; k < rest.items.size(); ++k)
        rest.items[k].count = problem.items[k].priority == priority ? problem.items[k].count : 0;
      Packed part = pack(rest, options);
      for (Bin& bin : part.bins) {
        const BinShape& shape = rest.shapes[bin.shape];
        for (std::size_t r = 0; r < shape.capacity.size(); ++r)
          if (std::int64_t& left = rest.pools[shape.pool].left[r]; left != INT64_MAX) left -= shape.capacity[r];
        all.bins.push_back(std::move(bin));
      }
      for (std::size_t k = 0; k < all.left.size(); ++k) all.left[k] += part.left[k];
      all.cost += part.cost;
      all.greedy_cost += part.greedy_cost;
    }
    return all;
  }
  void buy(const Bin& bin, const std::vector<PodKind>& kinds, std::vector<std::size_t>& next) {
    OpenClaim claim{bin.shape, next_name(), {}, {}, Amounts(table_.width(), 0)};
    claim.node = add_node(bin.shape, claim.name);
    pay(bin.shape);
    std::vector<PodInfoPtr> again;
    for (const auto& [k, n] : bin.content)
      for (std::int64_t i = 0; i < n; ++i) {
        const PodInfoPtr& pod = kinds[k].pods[next[k]++];
        if (trial_.place_on(pod, claim.node).is_success())
          note(claim, pod);
        else
          again.push_back(pod);
      }
    claims_.push_back(std::move(claim));
    for (const PodInfoPtr& pod : again)
      if (!put_on_open(pod) && !put_where_least(pod)) refuse(pod);
  }

  // What comes of it.

  void refuse(const PodInfoPtr& pod) { out_.refused.push_back({pod, table_.why_not(*pod, left_)}); }
  [[nodiscard]] double cost() const {
    double out = 0;
    for (const OpenClaim& claim : claims_) out += table_.shape(claim.shape).price;
    return out;
  }
  void finish() {
    for (OpenClaim& claim : claims_) {
      if (claim.pods.empty()) continue;
      NewClaim made = table_.claim(claim.shape, claim.used, claim.pods, left_);
      if (const std::string lacking = table_.lacking_values(made); !lacking.empty()) {
        for (const PodInfoPtr& pod : claim.pods) out_.refused.push_back({pod, lacking});
        continue;
      }
      out_.cost += made.price;
      out_.claims.push_back(std::move(made));
    }
    out_.greedy_cost = std::max(out_.greedy_cost, out_.cost);
    if (!out_.refused.empty() && out_.bound > out_.cost) out_.bound = out_.cost;
  }

  const ProvisionInput& input_;
  placement::Trial trial_;
  ShapeTable table_;
  std::vector<Amounts> left_;
  std::vector<PodInfoPtr> waiting_;
  std::vector<OpenClaim> claims_;
  std::size_t made_ = 0;
  ProvisionPlan out_;
};

/// A gang that the plan leaves in pieces.
struct BrokenGang {
  std::string key, why;
  std::int64_t priority = 0;
};

/// The least important gang of which fewer have a place by the plan, or stand, than are of any use.
std::optional<BrokenGang> broken_gang(const ProvisionInput& input, const ProvisionPlan& plan) {
  std::map<std::string, std::int64_t> placed;
  std::map<std::string, std::string> reasons;
  for (const PodInfoPtr& pod : input.waiting) ++placed[input.groups->group_of(pod->view().meta.uid)];
  for (const auto& [pod, why] : plan.refused) {
    const std::string& key = input.groups->group_of(pod->view().meta.uid);
    --placed[key];
    reasons.emplace(key, why);
  }
  std::optional<BrokenGang> out;
  for (auto& [key, count] : placed) {
    const auto group = key.empty() ? nullptr : input.groups->find(key);
    if (group == nullptr || !group->is_gang || (out && out->priority < group->priority)) continue;
    count += std::ssize(placement::standing_of(*input.groups, input.trial->cluster(), key));
    if (count >= group->min_count) continue;
    const auto reason = reasons.find(key);
    out = BrokenGang{key,
                     fmt::format("of gang {} {} of the {} pods that it needs would have a place{}", key, count, group->min_count,
                                 reason == reasons.end() ? "" : ": " + reason->second),
                     group->priority};
  }
  return out;
}

}  // namespace

ProvisionPlan plan_provisioning(const ProvisionInput& given) {
  if (given.groups == nullptr) return Planning(given).run();
  const ProvisionInput input = in_domains(given, [](const ProvisionInput& asked) { return Planning(asked).run(); });
  ProvisionPlan out = Planning(input).run();
  struct LeftOut {
    BrokenGang gang;
    std::vector<PodInfoPtr> pods;
  };
  ProvisionInput rest = input;
  std::vector<LeftOut> left_out;
  while (const auto broken = broken_gang(rest, out)) {
    LeftOut& one = left_out.emplace_back(*broken);
    std::erase_if(rest.waiting, [&](const PodInfoPtr& pod) {
      const bool is_member = input.groups->group_of(pod->view().meta.uid) == broken->key;
      if (is_member) one.pods.push_back(pod);
      return is_member;
    });
    out = Planning(rest).run();
  }
  // Who went first may fit after all, now that others went.
  for (auto one = left_out.rbegin(); one != left_out.rend(); ++one) {
    ProvisionInput more = rest;
    more.waiting.insert(more.waiting.end(), one->pods.begin(), one->pods.end());
    ProvisionPlan plan = Planning(more).run();
    if (!broken_gang(more, plan)) {
      rest = std::move(more);
      out = std::move(plan);
      one->pods.clear();
    }
  }
  for (const auto& [gang, pods] : left_out)
    for (const PodInfoPtr& pod : pods) out.refused.push_back({pod, gang.why});
  return out;
}

}  // namespace berth::pools
