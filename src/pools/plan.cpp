#include "pools/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <unordered_map>

#include "placement/attempt.h"
#include "placement/groups/group_placement.h"
#include "placement/node_match.h"
#include "pools/domains.h"
#include "pools/gang_domains.h"
#include "pools/kinds.h"
#include "pools/preferences.h"
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

std::string ProvisionPlan::bound_words() const {
  if (bound <= 0 || cost <= 0) return "";
  const double above = (cost / bound - 1) * 100;
  return above < 0.05 ? "nothing cheaper is possible" : fmt::format("at most {:.1f}% above what is possible", above);
}

namespace {

/// Whether where the pod may go depends on that node alone.
bool is_local(const placement::PodInfo& pod) {
  const model::PodView& view = pod.view();
  return pod.required_affinity.empty() && pod.required_anti_affinity.empty() && pod.host_ports.empty() && view.resource_claims.empty() &&
         std::ranges::none_of(view.spread_constraints, [](const auto& one) { return one.is_hard; }) &&
         std::ranges::all_of(view.volumes, [](const auto& one) { return one.kind == model::VolumeView::Kind::kOther; });
}

/// A node that is being put together in the trial.
struct OpenClaim {
  std::uint32_t shape = 0;
  std::string name;
  NodeIndex node;
  std::vector<PodInfoPtr> pods;
  Amounts used;
};

/// The larger first among equals of priority.
std::vector<PodInfoPtr> sorted(std::vector<PodInfoPtr> pods) {
  std::ranges::stable_sort(pods, {}, [](const PodInfoPtr& pod) {
    return std::tuple(-pod->view().priority, -pod->wanted().cpu_milli, -pod->wanted().memory_bytes);
  });
  return pods;
}

/// One plan for the pods that no node takes. What `table` and `left` are of must outlive it.
class Planning {
 public:
  Planning(const ProvisionInput& input, placement::Trial trial, ShapeTable& table, std::vector<Amounts> left)
      : input_(input), trial_(std::move(trial)), table_(table), left_(std::move(left)) {}

  /// `zone`: as lots_of.
  ProvisionPlan run(const std::vector<PodInfoPtr>& waiting, const std::string& zone) {
    open_domains(waiting);
    PodLots lots = lots_of(trial_, table_, sorted(waiting), left_, zone);
    const Packed packed = pack_lots(lots);
    place(packed, lots);
    settle(std::move(lots.rest));
    out_.greedy_cost = packed.greedy_cost + std::max(0.0, cost() - packed.cost);
    out_.bound = packed.bound;
    finish();
    return std::move(out_);
  }

 private:
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
      auto labels = *view->meta.labels.pairs();
      std::erase_if(labels, [](const auto& one) { return one.first == kHostnameLabel; });
      view->meta.labels = model::Labels(std::move(labels));
      view->taints.push_back({"karpenter.sh/not-there", "", "NoSchedule"});
      view->allocatable = view->capacity = {};
      (void)trial_.cluster().upsert_node(std::move(view));
    }
  }

  // By numbers.

  Packed pack_lots(const PodLots& lots) {
    PackingProblem problem = table_.problem(left_);
    problem.slots = lots.slots.size();
    for (BinShape& shape : problem.shapes) shape.room.insert(shape.room.end(), lots.slots.begin(), lots.slots.end());
    bool some_prefer = false;
    for (const PodLot& lot : lots.lots) {
      problem.items.push_back(item_of(lot));
      some_prefer |= !lot.first().view().node_affinity.preferred.empty();
    }
    const PackingOptions options{input_.is_over, input_.rounds, input_.seed};
    Packed packed = pack_by_priority(problem, options);
    if (!some_prefer) return packed;
    // What is preferred is kept where it costs nothing.
    PackingProblem preferring = problem;
    for (std::size_t k = 0; k < lots.lots.size(); ++k) {
      std::vector<std::uint32_t> liked;
      std::ranges::set_intersection(table_.preferred(lots.lots[k].first()), problem.items[k].shapes, std::back_inserter(liked));
      if (!liked.empty()) preferring.items[k].shapes = std::move(liked);
    }
    Packed other = pack_by_priority(preferring, options);
    out_.keeps_node_wishes = other.left_count() <= packed.left_count() && other.cost <= packed.cost + 1e-9;
    if (!out_.keeps_node_wishes) return packed;
    other.bound = packed.bound;
    other.greedy_cost = packed.greedy_cost;
    return other;
  }
  Item item_of(const PodLot& lot) {
    Item out{Amounts(table_.width(), 0), std::ssize(lot.units), lot.first().view().priority, table_.allowed(lot.first())};
    for (const PodInfoPtr& pod : lot.units.front()) {
      const Amounts wanted = table_.amounts(*pod);
      for (std::size_t r = 0; r < wanted.size(); ++r) out.request[r] += wanted[r];
    }
    out.request.insert(out.request.end(), lot.slots.begin(), lot.slots.end());
    std::erase_if(out.shapes, [&](std::uint32_t s) {
      const auto allows = [&](const PodInfoPtr& pod) { return table_.is_allowed(*pod, s); };
      return (!lot.places.empty() && !std::ranges::binary_search(lot.places, table_.place_of(s))) ||
             (lot.units.front().size() > 1 && !std::ranges::all_of(lot.units.front(), allows));
    });
    return out;
  }
  /// Where limits leave somebody out, those of higher priority come first.
  static Packed pack_by_priority(const PackingProblem& problem, const PackingOptions& options) {
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

  /// The packed nodes with their pods into the trial, these in the order in which the plugins took them before.
  void place(const Packed& packed, PodLots& lots) {
    struct Wish {
      std::size_t order = 0, claim = 0;
      PodInfoPtr pod;
    };
    std::vector<Wish> wishes;
    std::vector<std::size_t> next(lots.lots.size(), 0);
    for (const Bin& bin : packed.bins) {
      OpenClaim claim{bin.shape, next_name(), {}, {}, Amounts(table_.width(), 0)};
      claim.node = add_node(bin.shape, claim.name);
      pay(bin.shape);
      for (const auto& [k, n] : bin.content)
        for (std::int64_t i = 0; i < n; ++i)
          for (const PodInfoPtr& pod : lots.lots[k].units[next[k]++]) {
            const auto at = lots.order.find(pod.get());
            wishes.push_back({at == lots.order.end() ? SIZE_MAX : at->second, claims_.size(), pod});
          }
      claims_.push_back(std::move(claim));
    }
    for (std::size_t k = 0; k < next.size(); ++k)
      for (std::size_t i = next[k]; i < lots.lots[k].units.size(); ++i)
        lots.rest.insert(lots.rest.end(), lots.lots[k].units[i].begin(), lots.lots[k].units[i].end());
    std::ranges::stable_sort(wishes, {}, &Wish::order);
    for (std::size_t before = wishes.size() + 1; wishes.size() < before;) {
      before = wishes.size();
      std::erase_if(wishes, [&](const Wish& wish) {
        if (!trial_.place_on(wish.pod, claims_[wish.claim].node).is_success()) return false;
        note(claims_[wish.claim], wish.pod);
        return true;
      });
    }
    for (Wish& wish : wishes) lots.rest.push_back(std::move(wish.pod));
  }

  // One by one: what numbers alone do not tell.

  /// Rounds for as long as one gets somebody a place: some wait for others.
  void settle(std::vector<PodInfoPtr> pods) {
    if (pods.empty()) return;
    const std::vector<PodKind> kinds = kinds_of(trial_, sorted(std::move(pods)));
    std::vector<std::size_t> next(kinds.size(), 0);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t k = 0; k < kinds.size(); ++k)
        for (; next[k] < kinds[k].pods.size(); ++next[k]) {
          if (!put_on_open(kinds[k].pods[next[k]]) && !put_where_least(kinds[k].pods[next[k]])) break;
          goes_on = true;
        }
    }
    for (std::size_t k = 0; k < kinds.size(); ++k)
      for (std::size_t i = next[k]; i < kinds[k].pods.size(); ++i)
        out_.refused.push_back({kinds[k].pods[i], table_.why_not(*kinds[k].pods[i], left_)});
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

  // What comes of it.

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
  }

  const ProvisionInput& input_;
  placement::Trial trial_;
  ShapeTable& table_;
  std::vector<Amounts> left_;
  std::vector<OpenClaim> claims_;
  std::size_t made_ = 0;
  ProvisionPlan out_;
};

/// What has room by now needs no node: the scheduler's own choice, in its order. The others come back.
std::vector<PodInfoPtr> place_on_existing(const ProvisionInput& input, placement::Trial& trial, ProvisionPlan& out) {
  std::vector<PodInfoPtr> pods = input.waiting, waiting;
  std::ranges::stable_sort(pods, std::greater{}, [](const PodInfoPtr& pod) { return pod->view().priority; });
  for (const PodKind& kind : kinds_of(trial, pods)) {
    bool is_hopeless = trial.cluster().node_count() == 0;
    for (const PodInfoPtr& pod : kind.pods) {
      if (const placement::Status admitted = trial.admits(*pod); !admitted.is_success()) {
        out.refused.push_back({pod, admitted.message()});
        continue;
      }
      placement::Placement placed;
      if (!is_hopeless) placed = trial.place(pod);
      if (placed.is_placed()) {
        out.on_existing.emplace_back(pod, trial.cluster().node(placed.node)->name);
        continue;
      }
      is_hopeless = true;
      waiting.push_back(pod);
    }
  }
  return waiting;
}

/// Those of higher priority first, then what it costs, then how many nodes there are.
bool is_better(const ProvisionPlan& a, const ProvisionPlan& b) {
  if (const std::int64_t more = more_refused(a, b); more != 0) return more < 0;
  return std::abs(a.cost - b.cost) > 1e-9 ? a.cost < b.cost : a.claims.size() < b.claims.size();
}

/// Zones that may be tried first: every one where pods want to be in the zone of others, otherwise none.
std::vector<std::string> zones_to_try(const ShapeTable& table, const std::vector<PodInfoPtr>& waiting) {
  constexpr std::size_t kMostPods = 2000;
  std::vector<std::string> out = {""};
  if (waiting.size() > kMostPods || std::ranges::none_of(waiting, [](const PodInfoPtr& pod) { return !pod->required_affinity.empty(); }))
    return out;
  std::set<std::string> zones;
  for (std::size_t place = 0; place < table.speakers().size(); ++place)
    if (const std::string* zone = table.labels_of(place).get(kZoneLabel)) zones.insert(*zone);
  out.insert(out.end(), zones.begin(), zones.end());
  return out;
}

/// Of what the plan places, as if no pod saw another.
double bound_of(const ProvisionInput& input, placement::Trial& trial, ShapeTable& table, const std::vector<Amounts>& left,
                const std::vector<PodInfoPtr>& waiting, const ProvisionPlan& plan) {
  std::set<const placement::PodInfo*> refused;
  for (const auto& one : plan.refused) refused.insert(one.pod.get());
  PackingProblem problem = table.problem(left, false);
  for (const PodKind& kind : kinds_of(trial, waiting)) {
    const auto count = std::ranges::count_if(kind.pods, [&](const PodInfoPtr& pod) { return !refused.contains(pod.get()); });
    problem.items.push_back({table.amounts(kind.first()), count, 0, table.allowed(kind.first()), is_local(kind.first())});
  }
  return lower_bound(problem, input.is_over);
}

/// The best of those that begin with one zone or another.
ProvisionPlan best_plan(const ProvisionInput& input, placement::Trial& trial, ShapeTable& table, const std::vector<Amounts>& left,
                        const std::vector<PodInfoPtr>& waiting) {
  std::optional<ProvisionPlan> best;
  double dearest = 0;
  for (const std::string& zone : zones_to_try(table, waiting)) {
    if (best && input.is_over && input.is_over()) break;
    ProvisionPlan plan = Planning(input, trial.fork(), table, left).run(waiting, zone);
    dearest = best ? std::min(dearest, plan.greedy_cost) : plan.greedy_cost;
    if (!best || is_better(plan, *best)) best = std::move(plan);
  }
  best->greedy_cost = std::max(dearest, best->cost);
  return std::move(*best);
}

/// Every pod on its own.
ProvisionPlan plan_for(const ProvisionInput& input) {
  placement::Trial trial = input.trial->fork();
  ShapeTable table(input, input.waiting);
  const std::vector<Amounts> left = table.limits_left();
  ProvisionPlan before;
  const std::vector<PodInfoPtr> waiting = place_on_existing(input, trial, before);
  const auto ask = [&](const std::vector<PodInfoPtr>& pods) { return best_plan(input, trial, table, left, pods); };
  std::optional<ProvisionPlan> best = ask(waiting);
  if (table.keeps_choices() || !std::ranges::all_of(waiting, [](const PodInfoPtr& pod) { return is_local(*pod); }))
    best->bound = bound_of(input, trial, table, left, waiting, *best);
  best->bound = std::min(best->bound, best->cost);
  if (input.keeps_wishes) best = keep_wishes(std::move(*best), kinds_of(trial, waiting), trial.cluster().era(), input.is_over, ask);
  best->on_existing = std::move(before.on_existing);
  best->refused.insert(best->refused.end(), before.refused.begin(), before.refused.end());
  return std::move(*best);
}

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
  if (given.groups == nullptr) return plan_for(given);
  const ProvisionInput input = in_domains(given, [](const ProvisionInput& asked) { return plan_for(asked); });
  ProvisionPlan out = plan_for(input);
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
    out = plan_for(rest);
  }
  // Who went first may fit after all, now that others went.
  for (auto one = left_out.rbegin(); one != left_out.rend(); ++one) {
    ProvisionInput more = rest;
    more.waiting.insert(more.waiting.end(), one->pods.begin(), one->pods.end());
    ProvisionPlan plan = plan_for(more);
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
