// How many nodes of a group the pods need: first-fit decreasing on forks of the cluster (estimator/binpacking_estimator).
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "autoscaler/scale_up.h"

namespace berth::autoscaler {
namespace {

using placement::NodeIndex;

/// Volumes that a plugin looks at.
std::vector<model::VolumeView> checked_volumes(const Pod& pod) {
  std::vector<model::VolumeView> out;
  for (const model::VolumeView& volume : pod.view().volumes)
    if (volume.kind != model::VolumeView::Kind::kOther) out.push_back(volume);
  return out;
}

bool spreads(const Pod& pod) {
  return std::ranges::any_of(pod.view().spread_constraints, [](const auto& constraint) { return constraint.is_hard; });
}
/// Whether it may go to a node depends on that node alone, and on what is there already: not on other pods that are placed with it.
bool is_local(const Pod& pod) {
  return pod.info->required_affinity.empty() && pod.info->required_anti_affinity.empty() && !spreads(pod) &&
         pod.view().resource_claims.empty() && checked_volumes(pod).empty();
}
/// Others that come may make room for it where there was none.
bool needs_others(const Pod& pod) { return !pod.info->required_affinity.empty() || spreads(pod); }

bool sees_others(const Pod& pod) { return pod.info->has_affinity() || spreads(pod); }

/// How much of the template one pod takes: the larger ones are packed first.
double size_of(const Pod& pod, const model::NodeView& node) {
  double out = 0;
  if (const auto* cpu = model::find_resource(node.allocatable, "cpu"); cpu != nullptr && cpu->milli_value() > 0)
    out += static_cast<double>(pod.info->wanted().cpu_milli) / static_cast<double>(cpu->milli_value());
  if (const auto* memory = model::find_resource(node.allocatable, "memory"); memory != nullptr && memory->value() > 0)
    out += static_cast<double>(pod.info->wanted().memory_bytes) / static_cast<double>(memory->value());
  return out;
}

/// The new nodes of one estimation. Nodes that hold the same are one bin, of which one node is in the trial and stands for all: packing
/// thousands of like pods costs as much as packing one node of them.
class Packing {
 public:
  Packing(placement::Trial& base, const NodeTemplate& node_template, std::int64_t most)
      : trial_(base.fork()), template_(node_template), most_(most) {}

  void pack(const PodGroup& group) {
    group_ = &group;
    next_ = 0;
    if (is_local(*group.pods.front()))
      pack_alike();
    else
      pack_one_by_one();
    placed_.insert(placed_.end(), group.pods.begin(), group.pods.begin() + static_cast<std::ptrdiff_t>(next_));
  }
  [[nodiscard]] std::int64_t used_nodes() const {
    std::int64_t out = 0;
    for (const Bin& bin : bins_)
      if (!bin.content.empty()) out += bin.nodes;
    return out;
  }
  std::vector<PodPtr> take_pods() { return std::move(placed_); }

 private:
  struct Bin {
    NodeIndex node;
    std::int64_t nodes = 1;
    std::vector<PodPtr> content;  ///< Of each.
  };
  [[nodiscard]] std::int64_t left() const { return std::ssize(group_->pods) - next_; }
  [[nodiscard]] const PodPtr& pod() const { return group_->pods[static_cast<std::size_t>(next_)]; }

  Bin add_bin(const std::vector<PodPtr>& content = {}) {
    Bin out{add_node(trial_, template_, fmt::format("e-{}", made_++)), 1, {}};
    // What fitted on a node like this is put there without asking again, under a name of its own.
    for (const PodPtr& one : content) {
      auto view = std::make_shared<model::PodView>(one->view());
      view->meta.name += fmt::format("-{}", made_);
      view->meta.uid += fmt::format("-{}", made_);
      trial_.hold(placement::PodInfo::make(std::move(view), trial_.cluster().era()), out.node);
      out.content.push_back(one);
    }
    return out;
  }
  bool put(Bin& bin) {
    if (is_too_large_for(bin)) return false;
    const placement::Status status = trial_.place_on(pod()->info, bin.node);
    if (!status.is_success()) {
      if (status.plugin == "NodeResourcesFit") counts_resources_.insert(pod()->view().scheduler_name);
      return false;
    }
    bin.content.push_back(pod());
    ++next_;
    return true;
  }
  /// Known without asking, once the pod's profile was seen to count resources.
  [[nodiscard]] bool is_too_large_for(const Bin& bin) const {
    if (!counts_resources_.contains(pod()->view().scheduler_name)) return false;
    const placement::NodeInfo* node = trial_.cluster().node(bin.node);
    const placement::Resource& wanted = pod()->info->wanted();
    const auto lacks = [](std::int64_t wants, std::int64_t all, std::int64_t used) { return wants > 0 && wants > all - used; };
    return lacks(wanted.cpu_milli, node->allocatable.cpu_milli, node->requested.cpu_milli) ||
           lacks(wanted.memory_bytes, node->allocatable.memory_bytes, node->requested.memory_bytes);
  }
  std::int64_t fill(Bin& bin) {
    const std::int64_t before = next_;
    while (left() > 0 && put(bin)) continue;
    return next_ - before;
  }
  [[nodiscard]] std::int64_t node_count() const {
    std::int64_t out = 0;
    for (const Bin& bin : bins_) out += bin.nodes;
    return out;
  }

  /// The same pods on each node of the bin, as far as there are pods: the rest of its nodes become bins of their own.
  void fill_all(std::size_t at) {
    const std::int64_t nodes = bins_[at].nodes, all = left();
    const std::vector<PodPtr> before = bins_[at].content;
    const std::int64_t each = fill(bins_[at]);
    if (each == 0 || nodes == 1) return;
    const std::int64_t full = std::min(nodes, all / each);
    next_ += (full - 1) * each;
    bins_[at].nodes = full;
    std::vector<Bin> rest;
    if (full < nodes && left() > 0) {
      rest.push_back(add_bin(before));
      fill(rest.back());
    }
    if (const std::int64_t untouched = nodes - full - std::ssize(rest); untouched > 0) {
      rest.push_back(add_bin(before));
      rest.back().nodes = untouched;
    }
    bins_.insert(bins_.begin() + static_cast<std::ptrdiff_t>(at) + 1, rest.begin(), rest.end());
  }

  void pack_alike() {
    for (std::size_t i = 0; i < bins_.size() && left() > 0; ++i) fill_all(i);
    while (left() > 0) {
      // A pod that does not fit on an empty node does not fit on another one either.
      if (!bins_.empty() && bins_.back().content.empty()) return;
      const std::int64_t room = most_ - node_count();
      if (room <= 0) return;
      bins_.push_back(add_bin());
      const std::int64_t each = fill(bins_.back());
      if (each == 0) return;
      const std::int64_t more = std::min(room - 1, left() / each);
      bins_.back().nodes += more;
      next_ += more * each;
    }
  }

  /// Pods that see each other: every node counts for itself.
  void pack_one_by_one() {
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const std::int64_t others = bins_[i].nodes - 1;
      bins_[i].nodes = 1;
      std::vector<Bin> same;
      for (std::int64_t n = 0; n < others; ++n) same.push_back(add_bin(bins_[i].content));
      bins_.insert(bins_.begin() + static_cast<std::ptrdiff_t>(i) + 1, same.begin(), same.end());
      i += same.size();
    }
    const auto put_on_any = [&] { return std::ranges::any_of(bins_, [&](Bin& bin) { return put(bin); }); };
    while (left() > 0 && put_on_any()) continue;
    while (left() > 0) {
      if (!bins_.empty() && (put(bins_.back()) || (spreads(*pod()) && put_on_any()))) continue;
      if (!bins_.empty() && bins_.back().content.empty()) return;
      if (node_count() >= most_) return;
      bins_.push_back(add_bin());
      if (!put(bins_.back())) return;
    }
  }

  placement::Trial trial_;
  const NodeTemplate& template_;
  std::int64_t most_;
  std::vector<Bin> bins_;
  std::size_t made_ = 0;
  const PodGroup* group_ = nullptr;
  std::int64_t next_ = 0;  ///< Of the group's pods.
  std::vector<PodPtr> placed_;
  std::set<std::string, std::less<>> counts_resources_;  ///< Names of schedulers.
};

}  // namespace

Kinds::Kinds(placement::Trial& trial, const std::vector<PodPtr>& pods)
    : trial_(trial), some_see_others_(std::ranges::any_of(pods, [](const PodPtr& pod) { return sees_others(*pod); })) {}

std::size_t Kinds::of(const PodPtr& pod) {
  const auto [place, is_new] = numbers_.try_emplace(pod.get(), count_);
  if (!is_new) return place->second;
  placement::Signature signature = trial_.sign(*pod->info);
  const std::uint64_t hash = signature.hash();
  const auto [begin, end] = known_.equal_range(hash);
  for (auto at = begin; at != end; ++at)
    if (at->second.signature == signature && (!some_see_others_ || same_traits(*at->second.first->info, *pod->info)))
      return place->second = at->second.number;
  known_.emplace(hash, Kind{std::move(signature), pod, count_});
  return count_++;
}

std::vector<PodGroup> group_alike(const std::vector<PodPtr>& pods, Kinds& kinds) {
  std::vector<PodGroup> out;
  std::unordered_map<std::size_t, std::size_t> places;
  for (const PodPtr& pod : pods) {
    const std::size_t place = places.try_emplace(kinds.of(pod), out.size()).first->second;
    if (place == out.size()) out.push_back({{}, {}, {}});
    out[place].pods.push_back(pod);
  }
  return out;
}

void place_waiting(placement::Trial& trial, std::vector<PodPtr>& pods, Kinds& kinds,
                   const std::function<void(const PodPtr&, NodeIndex)>& placed) {
  std::vector<std::size_t> kind_of;
  for (const PodPtr& pod : pods) kind_of.push_back(kinds.of(pod));
  std::vector<bool> is_hopeless(kinds.count()), is_gone(pods.size());
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    bool some_need_others = false;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (is_gone[i] || is_hopeless[kind_of[i]]) continue;
      const NodeIndex node = trial.place(pods[i]->info).node;
      if (node.is_valid()) {
        placed(pods[i], node);
        is_gone[i] = goes_on = true;
      } else {
        is_hopeless[kind_of[i]] = true;
        some_need_others |= needs_others(*pods[i]);
      }
    }
    goes_on &= some_need_others;
    for (std::size_t i = 0; goes_on && i < pods.size(); ++i)
      if (!is_gone[i] && needs_others(*pods[i])) is_hopeless[kind_of[i]] = false;
  }
  std::size_t i = 0;
  std::erase_if(pods, [&](const PodPtr&) { return is_gone[i++]; });
}

ExpansionOption estimate(placement::Trial& base, const std::string& group, const NodeTemplate& node_template,
                         std::vector<const PodGroup*> pods, std::int64_t most) {
  std::ranges::stable_sort(pods, std::greater{}, [&](const PodGroup* one) { return size_of(*one->pods.front(), *node_template.node); });
  Packing packing(base, node_template, most);
  for (const PodGroup* one : pods) packing.pack(*one);
  ExpansionOption out{group, &node_template, packing.used_nodes(), {}};
  out.pods = packing.take_pods();
  return out;
}

std::vector<Resize> balance(std::vector<Resize> groups, std::int64_t new_nodes) {
  std::ranges::stable_sort(groups, {}, &Resize::from);
  while (new_nodes > 0) {
    Resize* smallest = nullptr;
    for (Resize& group : groups)
      if (group.to < group.max && (smallest == nullptr || group.to < smallest->to)) smallest = &group;
    if (smallest == nullptr) break;
    ++smallest->to;
    --new_nodes;
  }
  std::erase_if(groups, [](const Resize& group) { return group.to == group.from; });
  return groups;
}

}  // namespace berth::autoscaler
