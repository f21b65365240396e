// PodTopologySpread's columnar form (columns/topology_part.h). Slots: one a constraint, hard ones first: the node's domain, or what is on
// the node where domains are single nodes.
#include <algorithm>
#include <cmath>
#include <optional>

#include "placement/columns/domain_sum.h"
#include "placement/columns/topology_part.h"
#include "placement/plugins/pod_topology_spread.h"
#include "placement/removable_load.h"

namespace berth::placement {
namespace {

constexpr TopologyPart::Verdict kSpreadLabel = 1, kSpreadSkew = 2;
constexpr std::size_t kMostConstraints = 16;

bool has_repeated_key(const std::vector<SpreadConstraint>& constraints) {
  for (std::size_t i = 0; i < constraints.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (constraints[i].topology_key == constraints[j].topology_key) return true;
  return false;
}

class SpreadPart final : public TopologyPart {
 public:
  SpreadPart(const model::PodView& pod, Era era, std::int64_t weight, bool requires_all_keys)
      : era_(era),
        weight_(weight),
        requires_all_keys_(requires_all_keys),
        chooses_nodes_(!pod.node_selector.empty() || pod.node_affinity.required.has_value()) {}
  [[nodiscard]] std::unique_ptr<TopologyPart> clone() const override { return std::make_unique<SpreadPart>(*this); }

  void add_hard(ClusterIndex& index, const model::PodView& pod, SpreadConstraint constraint) {
    DomainSum sum(index, index.topology(constraint.topology_key));
    sum.add_source({index.matcher({own_namespace_term(pod, constraint.selector)}, true), 1});
    const bool self = constraint.selector.matches(pod.meta.labels);
    asks_nodes_ |= spread_asks_nodes(constraint, chooses_nodes_, era_);
    hard_.push_back({std::move(constraint), std::move(sum), self, 0});
  }
  void add_soft(ClusterIndex& index, const model::PodView& pod, SpreadConstraint constraint) {
    const CountId matcher = index.matcher({own_namespace_term(pod, constraint.selector)}, true);
    DomainSum sum(index, index.topology(constraint.topology_key));
    sum.add_source({matcher, 1});
    const bool on_node = constraint.topology_key == kHostnameLabel;
    asks_nodes_ |= spread_asks_nodes(constraint, chooses_nodes_, era_);
    soft_.push_back({std::move(constraint), std::move(sum), matcher, on_node, {}, 0});
  }
  [[nodiscard]] std::size_t constraint_count() const { return hard_.size() + soft_.size(); }

  void bind(ClusterIndex& index) override {
    index_ = &index;
    for (auto& one : hard_) one.sum.bind(index);
    for (auto& one : soft_) one.sum.bind(index);
  }
  [[nodiscard]] std::vector<Rejection> rejections() const override {
    return {{Status::unresolvable(std::string(kReasonSpreadLabel))}, {Status::unschedulable(std::string(kReasonSpread))}};
  }
  /// A label with an empty value and a missing label are told apart in one place and not in another: the plain form knows where.
  [[nodiscard]] bool is_outdated(const PodInfo&) override {
    const auto has_empty_value = [](const auto& one) { return one.sum.column().empty_value >= 0; };
    return std::ranges::any_of(hard_, has_empty_value) || std::ranges::any_of(soft_, has_empty_value);
  }
  [[nodiscard]] bool is_stale() const override {
    return std::ranges::any_of(hard_, [](const auto& one) { return one.sum.is_stale(); });
  }

  void reset() override {
    for (auto& one : hard_) one.sum.reset();
    for (auto& one : soft_) one.sum.reset();
    if (asks_nodes_) inclusion_.renew(index_->cluster().slot_count());
  }
  [[nodiscard]] std::size_t slot_count() const override { return constraint_count(); }

  void place(const PodInfo& pod, const NodeInfo& node, bool is_new, std::vector<std::int64_t>& key) override {
    const std::uint32_t at = node.index.value;
    if (asks_nodes_ && is_new) include(pod, node);
    update(at);
    for (const auto& one : hard_) {
      const std::int32_t value = one.sum.value_of(at);
      key.push_back(one.sum.is_local() && value >= 0 ? one.sum.amount_of(at) : value);
    }
    for (const auto& one : soft_) {
      const std::int32_t value = one.sum.value_of(at);
      key.push_back(one.on_node && value >= 0 ? static_cast<std::int64_t>(index_->counts(one.node_count)[at]) : value);
    }
  }
  /// Of hard constraints a node counts by being there.
  [[nodiscard]] bool describe_alike(Alike& nodes) const override {
    if (asks_nodes_ || !hard_.empty()) return false;
    for (const auto& one : soft_) {
      one.sum.mark_counted(nodes.is_counted);
      (one.on_node ? nodes.by_presence : nodes.by_value).insert(one.sum.topology());
    }
    return true;
  }
  void remove(std::uint32_t node) override {
    if (asks_nodes_) inclusion_of(node) = {};
    update(node);
  }

  void begin_choice(const PodInfo&) override {
    for (auto& one : hard_) {
      const bool too_few = era_ != Era::k120 && one.sum.domains() < one.constraint.min_domains;
      one.minimum = too_few ? 0 : one.sum.minimum();
    }
  }
  [[nodiscard]] Verdict gate(const std::int64_t* slots) const override {
    for (const auto& one : hard_) {
      const std::int64_t part = *slots++;
      if (part < 0) return kSpreadLabel;
      const std::int64_t there = one.sum.is_local() ? part : one.sum.sum(part, era_ == Era::k120);
      if (there + (one.self_match ? 1 : 0) - one.minimum > one.constraint.max_skew) return kSpreadSkew;
    }
    return kNone;
  }

  void score(std::span<TopologyCandidate> candidates, std::size_t first) override {
    if (soft_.empty()) return;
    weigh(candidates, first + hard_.size());
    std::int64_t min = INT64_MAX;
    std::int64_t max = 0;
    for (const std::int64_t raw : raw_) {
      if (raw == kIgnored) continue;
      min = std::min(min, raw);
      max = std::max(max, raw);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (raw_[i] != kIgnored) candidates[i].bonus += weight_ * spread_normalized(raw_[i], min, max);
  }
  [[nodiscard]] bool counts_nodes() const override {
    return std::ranges::any_of(soft_, [](const auto& one) { return one.on_node; });
  }
  [[nodiscard]] bool is_swayed_by(const PodInfo& nominated, const PodInfo& pod) const override {
    return std::ranges::any_of(hard_, [&](const auto& one) {
      return nominated.view().ns() == pod.view().ns() && one.constraint.selector.matches(nominated.view().meta.labels);
    });
  }
  [[nodiscard]] std::size_t memory_bytes() const override {
    std::size_t out = sizeof(SpreadPart) + inclusion_.memory_bytes();
    for (const auto& one : hard_) out += sizeof(Hard) + heap_bytes(one.constraint.selector) + one.sum.memory_bytes();
    for (const auto& one : soft_) out += sizeof(Soft) + heap_bytes(one.constraint.selector) + one.sum.memory_bytes();
    return out;
  }

 private:
  friend class SpreadLoad;
  static constexpr std::int64_t kIgnored = INT64_MIN;
  struct Hard {
    SpreadConstraint constraint;
    DomainSum sum;
    bool self_match = false;
    std::int64_t minimum = 0;  ///< Of the current choice.
  };
  struct Soft {
    SpreadConstraint constraint;
    DomainSum sum;
    CountId node_count;
    bool on_node = false;              ///< By hostname: counted on the node itself.
    std::vector<std::uint64_t> stamp;  ///< Which values the current choice has met.
    double weight = 0;
  };
  using Inclusion = std::uint16_t;  ///< Bit i: the node counts for constraint i, hard ones first.
  static_assert(kMostConstraints <= 16);

  Inclusion& inclusion_of(std::uint32_t node) {
    if (node >= inclusion_.size()) inclusion_.resize(std::max<std::size_t>(node + 1, index_->cluster().slot_count()));
    return inclusion_.edit(node);
  }
  void include(const PodInfo& pod, const NodeInfo& node) {
    Inclusion& out = inclusion_of(node.index.value);
    out = {};
    unsigned bit = 0;
    const auto add = [&](const SpreadConstraint& constraint) {
      out |= static_cast<Inclusion>(spread_includes_node(constraint, pod.view(), node, era_) << bit++);
    };
    for (const auto& one : hard_) add(one.constraint);
    for (const auto& one : soft_) add(one.constraint);
  }

  /// Labels are asked by the index's columns of their keys: asking the nodes would be most of what building a class costs.
  void update(std::uint32_t node) {
    const auto has_key = [&](const auto& one) { return one.sum.value_of(node) >= 0; };
    unsigned in = ~0U;
    if (asks_nodes_) in = node < inclusion_.size() ? inclusion_[node] : 0;
    const bool has_hard_keys = std::ranges::all_of(hard_, has_key);
    for (auto& one : hard_) {
      const bool member = (in & 1) != 0 && has_hard_keys;
      in >>= 1;
      // 1.20 counts all pods of a domain that exists, whatever node of it they are on.
      one.sum.update(node, member || (era_ == Era::k120 && !one.sum.is_local()), member);
    }
    const bool counts = !requires_all_keys_ || std::ranges::all_of(soft_, has_key);
    for (auto& one : soft_) {
      const bool counted = (in & 1) != 0 && counts;
      in >>= 1;
      if (!one.on_node) one.sum.update(node, counted, false);
    }
  }

  /// Each soft constraint's weight by the number of domains among the nodes that fit, and the candidates' raw scores with it.
  void weigh(std::span<const TopologyCandidate> candidates, std::size_t first) {
    ++stamp_;
    raw_.assign(candidates.size(), 0);
    domains_.assign(soft_.size(), 0);
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const std::int64_t* const slots = candidates[c].key + first;
      if (requires_all_keys_ && std::any_of(slots, slots + soft_.size(), [](std::int64_t part) { return part < 0; })) {
        raw_[c] = kIgnored;
        continue;
      }
      for (std::size_t i = 0; i < soft_.size(); ++i) {
        Soft& soft = soft_[i];
        if (soft.on_node) {
          domains_[i] += candidates[c].nodes;
          continue;
        }
        // Nodes without the label (system defaults) are one domain together.
        const auto place = static_cast<std::size_t>(slots[i] + 1);
        if (place >= soft.stamp.size()) soft.stamp.resize(place + 1);
        if (soft.stamp[place] == stamp_) continue;
        soft.stamp[place] = stamp_;
        ++domains_[i];
      }
    }
    for (std::size_t i = 0; i < soft_.size(); ++i) soft_[i].weight = spread_weight(domains_[i]);
    for (std::size_t c = 0; c < candidates.size(); ++c)
      if (raw_[c] != kIgnored) raw_[c] = raw_score(candidates[c].key + first);
  }

  [[nodiscard]] std::int64_t raw_score(const std::int64_t* slots) const {
    double sum = 0;
    for (const auto& soft : soft_) {
      const std::int64_t part = *slots++;
      if (part < 0) continue;
      const std::int64_t count = soft.on_node ? part : soft.sum.sum(part);
      sum += static_cast<double>(count) * soft.weight + static_cast<double>(soft.constraint.max_skew - 1);
    }
    return static_cast<std::int64_t>(era_ == Era::k120 ? sum : std::round(sum));
  }

  Era era_;
  std::int64_t weight_;
  bool requires_all_keys_;
  ClusterIndex* index_ = nullptr;  ///< As of the last bind().
  std::vector<Hard> hard_;
  std::vector<Soft> soft_;
  bool chooses_nodes_;          ///< The pod has a selector or an affinity of nodes.
  bool asks_nodes_ = false;     ///< Whether a node counts is the node's own matter; otherwise all do that have the keys.
  Pages<Inclusion> inclusion_;  ///< By node slot, where nodes are asked.
  std::uint64_t stamp_ = 0;
  std::vector<std::int64_t> raw_;     ///< Working space.
  std::vector<std::size_t> domains_;  ///< Working space.
};

/// The hard constraints as conditions: one each.
class SpreadLoad final : public RemovableLoad {
 public:
  SpreadLoad(SpreadPart part, PodInfoPtr pod) : part_(std::move(part)), pod_(std::move(pod)), lowest_(part_.hard_.size()) {}
  [[nodiscard]] std::unique_ptr<RemovableLoad> clone() const override { return std::make_unique<SpreadLoad>(*this); }
  void bind(ClusterIndex& index) override { part_.bind(index); }
  [[nodiscard]] std::vector<Condition> conditions() const override {
    return std::vector<Condition>(part_.hard_.size(), Condition{.is_of_domain = true});
  }
  [[nodiscard]] std::vector<Status> words() const override {
    std::vector<Status> out;
    for (auto& [status, step] : part_.rejections()) out.push_back(std::move(status));
    return out;
  }
  /// One that is being deleted is not counted at first, and yet taken off.
  void load_of(const PodInfo& other, std::span<std::int64_t> out) const override {
    if (other.view().ns() != pod_->view().ns()) return;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = part_.hard_[i].constraint.selector.matches(other.view().meta.labels) ? 1 : 0;
  }
  void limits(const NodeInfo& node, std::span<LoadLimit> out) const override {
    const auto has_key = [&](const auto& one) { return one.sum.value_of(node.index.value) >= 0; };
    const bool has_keys = std::ranges::all_of(part_.hard_, has_key);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = limit(i, node.index.value, has_keys);
  }
  void reset() override { part_.reset(); }
  void update(std::uint32_t node, const NodeInfo* info) override {
    if (part_.asks_nodes_ && info != nullptr && info->node != nullptr)
      part_.include(*pod_, *info);
    else if (part_.asks_nodes_)
      part_.inclusion_of(node) = {};
    part_.update(node);
  }
  void begin_decision() override {
    for (std::size_t i = 0; i < lowest_.size(); ++i) lowest_[i] = part_.hard_[i].sum.lowest_two();
  }
  [[nodiscard]] bool is_outdated() const override {
    return part_.is_stale() || std::ranges::any_of(part_.hard_, [](const auto& one) { return one.sum.column().empty_value >= 0; });
  }
  [[nodiscard]] bool miscounts(const PodInfo& victim) const override {
    return victim.view().meta.is_deleting && victim.view().ns() == pod_->view().ns() && !part_.hard_.empty();
  }
  [[nodiscard]] std::size_t memory_bytes() const override { return part_.memory_bytes(); }

 private:
  /// The domain may have `max_skew` pods, this one among them, more than the smallest, which may be itself.
  [[nodiscard]] LoadLimit limit(std::size_t i, std::uint32_t node, bool has_keys) const {
    const auto& [constraint, sum, self_match, unused] = part_.hard_[i];
    const bool is_old = part_.era_ == Era::k120;
    const std::int32_t value = sum.value_of(node);
    if (value < 0) return LoadLimit::never(kSpreadLabel - 1, true);
    const auto never = LoadLimit::never(kSpreadSkew - 1, false);
    const std::int64_t there = sum.sum(value, is_old), self = self_match ? 1 : 0;
    const bool too_few = !is_old && sum.domains() < constraint.min_domains;
    const bool counts = has_keys && (is_old ? sum.exists(value) : !part_.asks_nodes_ || (part_.inclusion_[node] >> i & 1) != 0);
    const std::int64_t minimum = too_few ? 0 : lowest_[i].first;
    if (!counts) return there + self - minimum <= constraint.max_skew ? LoadLimit::always() : never;
    const std::int64_t others = too_few || there != lowest_[i].first ? minimum : lowest_[i].second;
    if (!too_few && self > constraint.max_skew) return never;
    return {.there = there, .most = constraint.max_skew - self + others, .said = kSpreadSkew - 1};
  }

  SpreadPart part_;
  PodInfoPtr pod_;
  std::vector<DomainSum::Lowest> lowest_;  ///< Of the current decision.
};

}  // namespace

std::unique_ptr<RemovableLoad> make_spread_load(const TopologySetup& setup, const PodTopologySpreadArgs& args, Era era) {
  TopologyOutcome made = make_spread_part(setup, args, era);
  if (made.plain_only) return nullptr;
  SpreadPart none(setup.pod.view(), era, 0, true);
  none.bind(setup.index);
  const auto* part = static_cast<const SpreadPart*>(made.part.get());
  return std::make_unique<SpreadLoad>(part == nullptr ? std::move(none) : *part, setup.pod.shared_from_this());
}

TopologyOutcome make_spread_part(const TopologySetup& setup, const PodTopologySpreadArgs& args, Era era) {
  const auto& view = setup.pod.view();
  const Cluster& cluster = setup.index.cluster();
  const auto is_good = [](const auto& one) { return one.selector_error.empty() && !one.selector.is_everything(); };
  if (!std::ranges::all_of(view.spread_constraints, is_good)) return {.plain_only = true};
  const bool requires_all_keys = era == Era::k120 || !view.spread_constraints.empty() || !args.system_defaulting;
  auto part = std::make_unique<SpreadPart>(view, era, setup.weight, requires_all_keys);
  TopologyOutcome out;
  for (const bool hard : {true, false}) {
    if (hard ? !setup.filters : setup.weight == 0) continue;
    auto [constraints, error] = spread_constraints(view, cluster, args, era, hard, &setup.default_selector);
    if (!error.empty() || (era == Era::k120 && has_repeated_key(constraints))) return {.plain_only = true};
    if (!hard && constraints.empty() && era == Era::k120) out.constant_score = setup.weight * kMaxNodeScore;
    for (auto& constraint : constraints)
      hard ? part->add_hard(setup.index, view, std::move(constraint)) : part->add_soft(setup.index, view, std::move(constraint));
  }
  if (part->constraint_count() > kMostConstraints) return {.plain_only = true};
  if (part->constraint_count() == 0) return out;
  part->bind(setup.index);
  if (part->is_outdated(setup.pod)) return {.plain_only = true};
  out.part = std::move(part);
  return out;
}

}  // namespace berth::placement
