#include "placement/groups/group_search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

#include "placement/attempt.h"
#include "placement/groups/group_room.h"
#include "placement/groups/in_order.h"

namespace berth::placement {
namespace {

/// How many still need a place.
std::int64_t needed(const GroupQuestion& question) {
  return std::max<std::int64_t>(question.group->min_count - std::ssize(question.standing), 1);
}

/// A node, or what is left of it, as plain members see it.
struct Box {
  NodeIndex node;
  std::vector<std::int64_t> left;
  std::vector<std::int64_t> most;  ///< By kind: alone, so many have room.
};

/// Plain members onto nodes: a branch for each pattern of kinds that a node can take and that no more fit beside; the tightest nodes first.
class Patterns {
 public:
  Patterns(const Cluster& cluster, const GroupRoom& room, std::int64_t need, std::size_t& steps) : room_(room), steps_(steps) {
    for (const MemberKind& kind : room.kinds()) wanting_.push_back(std::ssize(kind.members));
    all_ = std::accumulate(wanting_.begin(), wanting_.end(), std::int64_t{0});
    best_count_ = need - 1;
    collect(cluster);
    order_kinds();
  }
  /// Deeper than this nobody goes down: a stack has an end.
  static constexpr std::size_t kDeepest = 8192;

  /// Whether sums leave it open at all.
  [[nodiscard]] bool is_possible() const { return potential(0) > best_count_; }

  /// By kind and node, how many; empty: none was found.
  std::vector<std::map<NodeIndex, std::int64_t>> find() {
    taken_.assign(boxes_.size(), std::vector<std::int64_t>(wanting_.size(), 0));
    descend(0, 0);
    return std::move(best_);
  }

  /// The kinds that the fewest have room for first.
  [[nodiscard]] const std::vector<std::size_t>& hardest_first() const { return kinds_; }

 private:
  void collect(const Cluster& cluster) {
    for (const NodeInfo* node : cluster.nodes()) {
      Box box{node->index, std::vector<std::int64_t>(room_.width()), {}};
      room_.left_on(*node, box.left.data());
      bool takes_any = false;
      for (std::size_t kind = 0; kind < wanting_.size(); ++kind) {
        const std::int64_t most = room_.may_go(kind, *node) ? std::min(room_.room(kind, box.left.data()), wanting_[kind]) : 0;
        box.most.push_back(most);
        takes_any = takes_any || most > 0;
      }
      if (takes_any) boxes_.push_back(std::move(box));
    }
    // Those that take the fewest first; equals beside each other, so that what was tried with one is known of the next.
    std::ranges::stable_sort(boxes_, [](const Box& a, const Box& b) {
      const auto sum = [](const Box& box) { return std::accumulate(box.most.begin(), box.most.end(), std::int64_t{0}); };
      return std::tuple(sum(a), a.most, a.left) < std::tuple(sum(b), b.most, b.left);
    });
    // Of very many the roomiest are enough, or the orders before would have done.
    if (const std::size_t most = kDeepest / (wanting_.size() + 1); boxes_.size() > most)
      boxes_.erase(boxes_.begin(), boxes_.end() - static_cast<std::ptrdiff_t>(most));
    beyond_.assign(boxes_.size() + 1, std::vector<std::int64_t>(wanting_.size(), 0));
    for (std::size_t at = boxes_.size(); at-- > 0;)
      for (std::size_t kind = 0; kind < wanting_.size(); ++kind)
        beyond_[at][kind] = std::min(beyond_[at + 1][kind] + boxes_[at].most[kind], all_);
  }

  void order_kinds() {
    kinds_.resize(wanting_.size());
    std::iota(kinds_.begin(), kinds_.end(), 0);
    std::ranges::stable_sort(kinds_, [&](std::size_t a, std::size_t b) { return beyond_[0][a] < beyond_[0][b]; });
  }

  /// At most so many have a place, those of the nodes from `at` on included.
  [[nodiscard]] std::int64_t potential(std::size_t at) const {
    std::int64_t out = placed_;
    for (std::size_t kind = 0; kind < wanting_.size(); ++kind) out += std::min(wanting_[kind], beyond_[at][kind]);
    return out;
  }

  /// True: it is over, all have a place or the steps are used up.
  bool descend(std::size_t at, std::size_t turn) {
    if (steps_ == 0) return true;
    --steps_;
    if (turn == 0) {
      if (placed_ > best_count_) keep();
      if (placed_ == all_) return true;
      if (at == boxes_.size() || potential(at) <= best_count_ || !is_new(at)) return false;
    }
    if (turn == kinds_.size()) return descend(at + 1, 0);
    const std::size_t kind = kinds_[turn];
    Box& box = boxes_[at];
    const std::int64_t most = box.most[kind] == 0 ? 0 : std::min(wanting_[kind], room_.room(kind, box.left.data()));
    // The last kind takes all it can: to leave room for nobody helps nobody.
    for (std::int64_t count = most; count >= (turn + 1 == kinds_.size() ? most : 0); --count) {
      take(box, at, kind, count);
      const bool is_over = descend(at, turn + 1);
      take(box, at, kind, -count);
      if (is_over) return true;
    }
    return false;
  }

  void take(Box& box, std::size_t at, std::size_t kind, std::int64_t count) {
    const auto& wanted = room_.wanted(kind);
    for (std::size_t i = 0; i < wanted.size(); ++i) box.left[i] -= count * wanted[i];
    wanting_[kind] -= count;
    taken_[at][kind] += count;
    placed_ += count;
  }

  /// Nobody came here with the same left to place.
  bool is_new(std::size_t at) {
    std::string key(reinterpret_cast<const char*>(&at), sizeof at);
    key.append(reinterpret_cast<const char*>(wanting_.data()), wanting_.size() * sizeof wanting_[0]);
    return seen_.insert(std::move(key)).second;
  }

  void keep() {
    best_count_ = placed_;
    best_.assign(wanting_.size(), {});
    for (std::size_t at = 0; at < boxes_.size(); ++at)
      for (std::size_t kind = 0; kind < wanting_.size(); ++kind)
        if (taken_[at][kind] > 0) best_[kind][boxes_[at].node] = taken_[at][kind];
  }

  const GroupRoom& room_;
  std::size_t& steps_;
  std::vector<Box> boxes_;
  std::vector<std::vector<std::int64_t>> beyond_;  ///< By box: what it and those after it take of each kind at most.
  std::vector<std::size_t> kinds_;
  std::vector<std::int64_t> wanting_;  ///< By kind, without a place.
  std::vector<std::vector<std::int64_t>> taken_;
  std::int64_t all_ = 0, placed_ = 0, best_count_ = 0;
  std::vector<std::map<NodeIndex, std::int64_t>> best_;
  std::unordered_set<std::string> seen_;
};

/// The assignment carried out, with the engine's word on each; who is left over is asked about as always.
GroupDecision carry_out(Trial& trial, const GroupQuestion& question, const GroupRoom& room,
                        const std::vector<std::map<NodeIndex, std::int64_t>>& found) {
  GroupDecision out;
  out.members.resize(question.members.size());
  Attempt attempt(trial);
  std::vector<std::size_t> left;
  for (std::size_t kind = 0; kind < found.size(); ++kind) {
    auto next = room.kinds()[kind].members.begin();
    const auto end = room.kinds()[kind].members.end();
    for (const auto& [node, count] : found[kind])
      for (std::int64_t i = 0; i < count && next != end; ++i, ++next) {
        MemberDecision& mine = out.members[*next];
        if (!trial.fits(question.members[*next], node).is_success() || !trial.reserve(question.members[*next], node)) {
          left.push_back(*next);
          continue;
        }
        mine.decision.outcome = Decision::Outcome::kScheduled;
        mine.decision.node = node;
      }
    left.insert(left.end(), next, end);
  }
  std::ranges::sort(left);
  for (const std::size_t at : left) {
    if (place_member(trial, question.members[at], out.members[at])) continue;
    fail_by(out.members[at], out);
    return out;
  }
  settle_outcome(question, out);
  return out;
}

/// Member by member, on every node that takes it then; for few members on few nodes.
class Deep {
 public:
  Deep(Trial& trial, const GroupQuestion& question, std::vector<std::size_t> order, std::size_t& steps)
      : trial_(trial), question_(question), order_(std::move(order)), steps_(steps) {
    for (const NodeInfo* node : trial.cluster().nodes()) nodes_.push_back(node->index);
    out_.members.resize(question.members.size());
  }

  std::optional<GroupDecision> find() {
    Attempt attempt(trial_);
    if (!descend(0, 0)) return std::nullopt;
    for (const std::size_t at : order_)
      if (!out_.members[at].has_place() && !place_member(trial_, question_.members[at], out_.members[at])) return std::nullopt;
    settle_outcome(question_, out_);
    return out_.outcome == GroupDecision::Outcome::kScheduled ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  bool descend(std::size_t at, std::int64_t placed) {
    if (placed >= needed(question_)) return true;
    if (placed + std::ssize(order_) - static_cast<std::int64_t>(at) < needed(question_)) return false;
    if (steps_ < nodes_.size()) {
      steps_ = 0;
      return false;
    }
    steps_ -= nodes_.size();
    const PodInfoPtr& pod = question_.members[order_[at]];
    for (const NodeIndex node : trial_.fitting(*pod, nodes_)) {
      Attempt attempt(trial_);
      if (!trial_.reserve(pod, node)) continue;
      Decision& mine = out_.members[order_[at]].decision;
      mine.outcome = Decision::Outcome::kScheduled;
      mine.node = node;
      if (descend(at + 1, placed + 1)) {
        attempt.keep();
        return true;
      }
      mine = {};
    }
    return descend(at + 1, placed);
  }

  Trial& trial_;
  const GroupQuestion& question_;
  std::vector<std::size_t> order_;
  std::size_t& steps_;
  std::vector<NodeIndex> nodes_;
  GroupDecision out_;
};

/// By amounts alone, enough could have a place.
bool leave_amounts_it_open(const Cluster& cluster, const GroupQuestion& question, const GroupRoom& room) {
  std::vector<std::int64_t> most(room.kinds().size(), 0), left(room.width());
  for (const NodeInfo* node : cluster.nodes()) {
    room.left_beside_nominations(*node, left.data());
    for (std::size_t kind = 0; kind < most.size(); ++kind)
      most[kind] = std::min(most[kind] + room.room(kind, left.data()), std::ssize(room.kinds()[kind].members));
  }
  return std::accumulate(most.begin(), most.end(), std::int64_t{0}) >= needed(question);
}

/// Where not every kind is plain: those that the fewest nodes take as they are.
std::vector<std::size_t> fewest_nodes_first(Trial& trial, const GroupRoom& room) {
  std::vector<NodeIndex> nodes;
  for (const NodeInfo* node : trial.cluster().nodes()) nodes.push_back(node->index);
  std::vector<std::size_t> kinds(room.kinds().size()), takers;
  std::iota(kinds.begin(), kinds.end(), 0);
  for (const MemberKind& kind : room.kinds()) takers.push_back(trial.fitting(*kind.example, nodes).size());
  std::ranges::stable_sort(kinds, {}, [&](std::size_t kind) { return takers[kind]; });
  return kinds;
}

std::vector<std::size_t> members_of(const GroupRoom& room, const std::vector<std::size_t>& kinds) {
  std::vector<std::size_t> out;
  for (const std::size_t kind : kinds) out.insert(out.end(), room.kinds()[kind].members.begin(), room.kinds()[kind].members.end());
  return out;
}

/// By the largest of what it asks for.
std::vector<std::size_t> largest_first(const GroupRoom& room) {
  std::vector<std::size_t> kinds(room.kinds().size());
  std::iota(kinds.begin(), kinds.end(), 0);
  std::ranges::stable_sort(kinds, [&](std::size_t a, std::size_t b) { return room.wanted(a) > room.wanted(b); });
  return kinds;
}

}  // namespace

std::optional<GroupDecision> search_places(Trial& trial, const GroupQuestion& question, std::size_t& steps) {
  if (std::ssize(question.members) < needed(question) || steps == 0 || trial.cluster().node_count() == 0) return std::nullopt;
  const GroupRoom room(trial, question.members);
  // Of one plain kind each place is as good as any other: nothing is left to find.
  if (room.is_plain() && room.kinds().size() == 1) return std::nullopt;
  std::optional<Patterns> patterns;
  if (room.is_plain()) {
    patterns.emplace(trial.cluster(), room, needed(question), steps);
    if (!patterns->is_possible()) return std::nullopt;
  } else if (!leave_amounts_it_open(trial.cluster(), question, room)) {
    return std::nullopt;
  }
  const std::vector<std::size_t> hardest = patterns ? patterns->hardest_first() : fewest_nodes_first(trial, room);
  for (const std::vector<std::size_t>& kinds : {hardest, largest_first(room)}) {
    const std::size_t cost = 4 * question.members.size();
    if (steps < cost) return std::nullopt;
    steps -= cost;
    GroupDecision decision = decide_in_order(trial, question, members_of(room, kinds));
    if (decision.outcome == GroupDecision::Outcome::kScheduled) return decision;
  }
  if (!patterns) return Deep(trial, question, members_of(room, hardest), steps).find();
  const auto found = patterns->find();
  if (found.empty()) return std::nullopt;
  GroupDecision decision = carry_out(trial, question, room, found);
  return decision.outcome == GroupDecision::Outcome::kScheduled ? std::optional(std::move(decision)) : std::nullopt;
}

}  // namespace berth::placement
