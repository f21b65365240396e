#include "placement/groups/group_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <charconv>
#include <numeric>

#include "placement/attempt.h"
#include "placement/groups/group_search.h"
#include "placement/groups/in_order.h"

namespace berth::placement {
namespace {

/// The node's values of the keys; nullopt: one is missing.
std::optional<std::vector<std::string_view>> values_of(const NodeInfo& node, std::span<const TopologyLevel> levels) {
  std::vector<std::string_view> out;
  for (const TopologyLevel& level : levels) {
    const std::string* value = node.label(level.key);
    if (value == nullptr) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

/// The same as one text, which no other values make; false: one is missing.
bool put_values(const NodeInfo& node, std::span<const TopologyLevel> levels, std::string& out) {
  out.clear();
  for (const TopologyLevel& level : levels) {
    const std::string* value = node.label(level.key);
    if (value == nullptr) return false;
    out.append(*value);
    out.push_back('\0');
  }
  return true;
}

/// Of required levels, what members that stand prescribe.
Expected<std::optional<std::vector<std::string_view>>, std::string> prescribed(const Cluster& cluster, const GroupQuestion& question,
                                                                               std::span<const TopologyLevel> required) {
  std::optional<std::vector<std::string_view>> out;
  if (required.empty()) return out;
  for (const NodeIndex index : question.standing) {
    const NodeInfo* node = cluster.node(index);
    auto values = node != nullptr && node->node != nullptr ? values_of(*node, required) : std::nullopt;
    if (!values) return std::unexpected("cannot determine domain for already scheduled pods: no topology domain found for a pod");
    if (out && *out != *values)
      return std::unexpected(
          fmt::format("cannot determine domain for already scheduled pods: more than 1 domain found for pod group: {}, {}",
                      fmt::join(*out, "/"), fmt::join(*values, "/")));
    out = std::move(values);
  }
  return out;
}

/// Best fit: where everybody may have room, the least room first; then the others, most first. Where the group has begun goes before all.
void order_by_fit(std::vector<GroupDomain>& domains, std::int64_t all) {
  std::ranges::stable_sort(domains, [&](const GroupDomain& a, const GroupDomain& b) {
    const auto rank = [&](const GroupDomain& one) {
      const bool takes_all = one.room >= all;
      return std::tuple(-one.held, !takes_all, takes_all ? one.room : -one.room);
    };
    return rank(a) < rank(b);
  });
}

/// Members along the preferred levels of one trial: ranks in order, a domain after the other.
class Filling {
 public:
  Filling(const GroupQuestion& question, std::span<const TopologyLevel> levels) : question_(question), levels_(levels) {}

  GroupDecision fill(Trial& there) {
    GroupDecision out;
    out.members.resize(question_.members.size());
    std::vector<std::size_t> order(question_.members.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const PodInfo &one = *question_.members[a], &other = *question_.members[b];
      return std::tuple(-one.view().priority, rank_of(one)) < std::tuple(-other.view().priority, rank_of(other));
    });
    Attempt attempt(there);
    fill(there, order, required_of(levels_).size(), out);
    if (const auto failed = std::ranges::find(out.members, Decision::Outcome::kError, [](const auto& one) { return one.decision.outcome; });
        failed != out.members.end())
      fail_by(*failed, out);
    else
      settle_outcome(question_, out);
    return out;
  }

 private:
  /// Those of `order` that have a place go from it.
  void fill(Trial& there, std::vector<std::size_t>& order, std::size_t depth, GroupDecision& out) {
    if (depth < levels_.size()) fill_inner(there, order, depth, out);
    // Who is left goes wherever there is room, also beside all domains.
    std::erase_if(order, [&](std::size_t at) {
      (void)place_member(there, question_.members[at], out.members[at]);
      return out.members[at].has_place();
    });
  }

  void fill_inner(Trial& there, std::vector<std::size_t>& order, std::size_t depth, GroupDecision& out) {
    const GroupQuestion inner{.group = question_.group, .members = question_.members, .standing = {}};
    auto domains = group_domains(there.cluster(), inner, levels_.subspan(depth, 1));
    if (!domains) return;
    while (!order.empty() && !domains->empty()) {
      const std::size_t at = next_domain(there.cluster(), *domains, order);
      if (at == domains->size()) return;
      Trial part = there.within((*domains)[at].nodes);
      std::vector<std::size_t> left = order;
      fill(part, left, depth + 1, out);
      for (const std::size_t one : order)
        if (out.members[one].has_place() && std::ranges::find(left, one) == left.end()) take_over(there, part, one, out.members[one], left);
      std::ranges::sort(left, {}, [&](std::size_t one) { return std::ranges::find(order, one) - order.begin(); });
      order = std::move(left);
      domains->erase(domains->begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  /// The one that is the narrowest fit for all that are left, or else the roomiest; past the end: none has room.
  std::size_t next_domain(const Cluster& cluster, std::vector<GroupDomain>& domains, const std::vector<std::size_t>& order) const {
    std::vector<PodInfoPtr> left;
    for (const std::size_t at : order) left.push_back(question_.members[at]);
    std::size_t best = domains.size();
    const auto rank = [&](const GroupDomain& one) {
      const bool takes_all = one.room >= std::ssize(left);
      return std::tuple(!takes_all, takes_all ? one.room : -one.room);
    };
    for (std::size_t i = 0; i < domains.size(); ++i) {
      count_room(cluster, left, domains[i]);
      if (domains[i].most > 0 && (best == domains.size() || rank(domains[i]) < rank(domains[best]))) best = i;
    }
    return best;
  }

  /// The place in the part is one in the whole, unless other nodes have a say against it.
  void take_over(Trial& there, Trial& part, std::size_t at, MemberDecision& mine, std::vector<std::size_t>& left) const {
    const NodeInfo* node = there.cluster().find_node(part.cluster().node(mine.decision.node)->name);
    const PodInfoPtr& pod = question_.members[at];
    if (there.fits(pod, node->index).is_success() && there.reserve(pod, node->index)) {
      mine.decision.node = node->index;
      return;
    }
    mine = {};
    left.push_back(at);
  }

  const GroupQuestion& question_;
  std::span<const TopologyLevel> levels_;
};

GroupDecision no_domain(const GroupQuestion& question) {
  std::vector<std::string> keys;
  const std::vector<TopologyLevel> levels = question.group->all_levels();
  for (const TopologyLevel& level : required_of(levels)) keys.push_back(fmt::format("\"{}\"", level.key));
  return {GroupDecision::Outcome::kUnschedulable,
          {},
          fmt::format("0/0 placements are available: no node has the label{} {}", keys.size() == 1 ? "" : "s", fmt::join(keys, " and "))};
}

GroupDecision decide_within(Trial& trial, const GroupQuestion& question, const GroupDomain& domain, std::size_t& steps) {
  Trial there = trial.within(domain.nodes);
  GroupDecision out = decide_in_domain(there, question, steps);
  tell_as_nodes_of(trial.cluster(), there.cluster(), out);
  out.domain = domain.name;
  return out;
}

/// A domain of the first `depth` levels, preferred ones among them, that takes everybody.
std::optional<GroupDecision> decide_narrowly(Trial& trial, const GroupQuestion& question, std::span<const TopologyLevel> levels) {
  auto domains = group_domains(trial.cluster(), question, levels);
  if (!domains) return std::nullopt;
  const std::int64_t all = std::ssize(question.members);
  std::erase_if(*domains, [&](const GroupDomain& one) { return one.most < all; });
  order_by_fit(*domains, all);
  for (const GroupDomain& domain : *domains) {
    std::size_t no_search = 0;
    GroupDecision out = decide_within(trial, question, domain, no_search);
    if (out.outcome == GroupDecision::Outcome::kScheduled && out.placed_count() == all) return out;
  }
  return std::nullopt;
}

/// The best domain of the required levels.
GroupDecision decide_widely(Trial& trial, const GroupQuestion& question, std::vector<GroupDomain>& domains) {
  const std::int64_t all = std::ssize(question.members), standing = std::ssize(question.standing);
  order_by_fit(domains, all);
  std::optional<GroupDecision> best, nearest;
  std::set<std::string_view> rejected_by;
  std::size_t steps = question.search_steps;
  for (const GroupDomain& domain : domains) {
    const bool is_hopeless = domain.most == 0 || standing + domain.most < question.group->min_count;
    if (best && (is_hopeless || domain.most <= best->placed_count())) continue;
    if (is_hopeless) rejected_by.insert(kTooSmall);
    if (is_hopeless && nearest) continue;
    GroupDecision one = decide_within(trial, question, domain, steps);
    if (one.outcome == GroupDecision::Outcome::kError) return one;
    note_rejections(one, rejected_by);
    const bool fits = one.outcome == GroupDecision::Outcome::kScheduled;
    if (fits && one.placed_count() == all) return one;
    auto& place = fits ? best : nearest;
    if (!place || one.placed_count() > place->placed_count()) place = std::move(one);
  }
  if (best) return std::move(*best);
  nearest->rejected_by = std::move(rejected_by);
  nearest->message = fmt::format("0/{} placements are available, first placement status: {}", domains.size(), kGroupUnschedulable);
  return std::move(*nearest);
}

}  // namespace

std::span<const TopologyLevel> required_of(std::span<const TopologyLevel> levels) {
  return levels.first(static_cast<std::size_t>(std::ranges::count_if(levels, &TopologyLevel::is_required)));
}

std::int64_t rank_of(const PodInfo& pod) {
  constexpr std::string_view kIndex = "batch.kubernetes.io/job-completion-index";
  const model::ObjectMeta& meta = pod.view().meta;
  const std::string* said = meta.annotation(kIndex);
  if (said == nullptr) said = meta.labels.get(kIndex);
  std::int64_t out = INT64_MAX;
  if (said == nullptr || std::from_chars(said->data(), said->data() + said->size(), out).ec != std::errc()) return INT64_MAX;
  return out;
}

void count_room(const Cluster& cluster, std::span<const PodInfoPtr> members, GroupDomain& domain) {
  std::int64_t cpu = INT64_MAX, memory = INT64_MAX;
  for (const PodInfoPtr& pod : members) {
    cpu = std::min(cpu, pod->wanted().cpu_milli);
    memory = std::min(memory, pod->wanted().memory_bytes);
  }
  const auto count = std::ssize(members);
  domain.used = domain.all = {};
  domain.room = domain.most = 0;
  for (const NodeIndex index : domain.nodes) {
    const NodeInfo& node = *cluster.node(index);
    domain.used.cpu_milli += node.nonzero_cpu_milli;
    domain.used.memory_bytes += node.nonzero_memory_bytes;
    domain.all.cpu_milli += node.allocatable.cpu_milli;
    domain.all.memory_bytes += node.allocatable.memory_bytes;
    std::int64_t room = std::max<std::int64_t>(node.allocatable.allowed_pods - std::ssize(node.pods), 0);
    if (cpu > 0) room = std::min(room, (node.allocatable.cpu_milli - node.requested.cpu_milli) / cpu);
    if (memory > 0) room = std::min(room, (node.allocatable.memory_bytes - node.requested.memory_bytes) / memory);
    domain.room += std::max<std::int64_t>(room, 0);
  }
  domain.most = std::min(domain.room, count);
}

std::int64_t fullness(const GroupDomain& domain, const GroupAmounts& added) {
  const auto part = [](std::int64_t asked, std::int64_t there) { return there <= 0 ? 0 : std::min(asked, there) * 100 / there; };
  return (part(domain.used.cpu_milli + added.cpu_milli, domain.all.cpu_milli) +
          part((domain.used.memory_bytes + added.memory_bytes) >> 10, domain.all.memory_bytes >> 10)) /
         2;
}

Expected<std::vector<GroupDomain>, std::string> group_domains(const Cluster& cluster, const GroupQuestion& question,
                                                              std::span<const TopologyLevel> levels) {
  const auto required = required_of(levels);
  const auto only = prescribed(cluster, question, required);
  if (!only) return std::unexpected(only.error());
  // By the values with a zero between, which none of them has.
  boost::unordered_flat_map<std::string, std::size_t> known;
  std::vector<std::pair<std::string, GroupDomain>> by_values;
  std::string key;
  for (const NodeInfo* node : cluster.nodes()) {
    if (!put_values(*node, levels, key)) continue;
    const auto [at, is_new] = known.try_emplace(key, by_values.size());
    if (is_new) by_values.emplace_back(key, GroupDomain());
    by_values[at->second].second.nodes.push_back(node->index);
  }
  if (*only)
    std::erase_if(by_values, [&](const auto& one) {
      const auto values = values_of(*cluster.node(one.second.nodes.front()), required);
      return !std::ranges::equal(**only, *values);
    });
  std::ranges::sort(by_values, {}, &std::pair<std::string, GroupDomain>::first);
  std::vector<NodeIndex> begun = question.standing;
  for (const PodInfoPtr& pod : question.members)
    if (const NodeIndex promised = cluster.nominated_node(pod->key); promised.is_valid()) begun.push_back(promised);
  std::vector<GroupDomain> out;
  for (auto& [values, domain] : by_values) {
    if (!levels.empty()) domain.name = fmt::format("{}", fmt::join(*values_of(*cluster.node(domain.nodes.front()), levels), "/"));
    count_room(cluster, question.members, domain);
    for (const NodeIndex index : begun) domain.held += std::ranges::count(domain.nodes, index);
    out.push_back(std::move(domain));
  }
  return out;
}

void tell_as_nodes_of(const Cluster& whole, const Cluster& part, GroupDecision& decision) {
  for (MemberDecision& one : decision.members)
    if (one.has_place()) one.decision.node = whole.find_node(part.node(one.decision.node)->name)->index;
}

GroupDecision decide_in_domain(Trial& there, const GroupQuestion& question, std::size_t& search_steps) {
  const std::vector<TopologyLevel> all_levels = question.group->all_levels();
  const std::span<const TopologyLevel> levels = all_levels;
  std::optional<GroupDecision> along;
  if (question.by_topology && required_of(levels).size() < levels.size()) {
    along = Filling(question, levels).fill(there);
    if (along->outcome != GroupDecision::Outcome::kError && along->placed_count() == std::ssize(question.members)) return std::move(*along);
  }
  GroupDecision out = decide_in_order(there, question);
  if (along && along->outcome == GroupDecision::Outcome::kScheduled && along->placed_count() >= out.placed_count())
    return std::move(*along);
  if (out.outcome != GroupDecision::Outcome::kUnschedulable) return out;
  if (auto found = search_places(there, question, search_steps)) {
    found->was_searched = true;
    return std::move(*found);
  }
  return out;
}

GroupDecision decide_by_levels(Trial& trial, const GroupQuestion& question) {
  const std::vector<TopologyLevel> all_levels = question.group->all_levels();
  const std::span<const TopologyLevel> levels = all_levels;
  const std::size_t required = required_of(levels).size();
  auto domains = group_domains(trial.cluster(), question, levels.first(required));
  if (!domains) return {GroupDecision::Outcome::kError, {}, domains.error()};
  for (std::size_t depth = levels.size(); depth > required; --depth)
    if (auto narrow = decide_narrowly(trial, question, levels.first(depth))) return std::move(*narrow);
  if (required == 0) {
    std::size_t steps = question.search_steps;
    GroupDecision out = decide_in_domain(trial, question, steps);
    if (out.outcome == GroupDecision::Outcome::kUnschedulable)
      out.message = fmt::format("0/1 placements are available, first placement status: {}", kGroupUnschedulable);
    return out;
  }
  return domains->empty() ? no_domain(question) : decide_widely(trial, question, *domains);
}

}  // namespace berth::placement
