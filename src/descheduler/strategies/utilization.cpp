// LowNodeUtilization and HighNodeUtilization (pkg/framework/plugins/nodeutilization): pods move from nodes that have too much, or too
// little to be worth keeping, to those that have room.
#include <fmt/format.h>

#include <algorithm>

#include "descheduler/context.h"

namespace berth::descheduler {
namespace {

using Percents = std::map<std::string, double, std::less<>>;

/// By place among the resources that count, which are in order of name: asked of thousands of nodes for every pod.
using Shares = std::vector<std::int64_t>;

struct NodeUsage {
  Node* node = nullptr;
  struct Level {
    std::int64_t used = 0;   ///< Changes as pods leave and arrive.
    std::int64_t limit = 0;  ///< Capacity, cut to the upper threshold where there is one.
    [[nodiscard]] std::int64_t left() const { return limit - used; }
  };
  std::vector<Level> levels;  ///< By the resource's place.
  Percents percent;           ///< At the start.
  enum class Group : std::uint8_t { kBetween, kUnder, kOver } group = Group::kBetween;
};

/// What the two strategies share: usage and limits of all nodes.
class Utilization {
 public:
  Utilization(Context& ctx, const Plugin& plugin) : ctx_(ctx), args_(plugin.utilization) {
    std::set<std::string> all = {"cpu", "memory", "pods"};
    if (is_queried()) all = {std::string(kMetricResource)};
    for (const auto& [name, percent] : args_.thresholds) all.insert(name);
    resources_.assign(all.begin(), all.end());
  }

  /// Usage is what Prometheus says of whole nodes: nobody knows what one pod takes.
  [[nodiscard]] bool is_queried() const { return !args_.prometheus_query.empty(); }

  /// The error: metrics of a node are missing.
  Result<void> measure() {
    for (Node& node : ctx_.nodes()) {
      auto usage = is_queried() ? queried(node) : counted(node);
      if (!usage) return std::unexpected(usage.error());
      NodeUsage one{.node = &node};
      for (const auto& [name, amount] : *usage)
        if (const auto capacity = capacity_of(node, name))
          one.percent[name] = *capacity > 0 ? static_cast<double>(amount) / static_cast<double>(*capacity) * 100 : 0;
      for (const std::string& name : resources_) {
        const auto amount = usage->find(name);
        one.levels.push_back({.used = amount == usage->end() ? 0 : amount->second, .limit = 0});
      }
      nodes_.push_back(std::move(one));
    }
    const placement::Cluster& cluster = ctx_.snapshot().cluster;
    by_slot_.assign(cluster.slot_count(), nullptr);
    for (NodeUsage& one : nodes_)
      if (const placement::NodeInfo* info = cluster.find_node(one.node->name())) by_slot_[info->index.value] = &one;
    return {};
  }

  /// The average of all nodes, with the thresholds as distances from it, kept between 0 and 100.
  [[nodiscard]] Percents around_average(const Thresholds& distances, double sign) const {
    Percents out;
    for (const auto& [name, distance] : distances) {
      double sum = 0, count = 0;
      for (const NodeUsage& one : nodes_)
        if (const auto found = one.percent.find(name); found != one.percent.end()) sum += found->second, ++count;
      if (count > 0) out[name] = std::clamp(sum / count + sign * distance, 0.0, 100.0);
    }
    return out;
  }

  void set_limits(const Percents& upper) {
    for (NodeUsage& one : nodes_) {
      for (std::size_t i = 0; i < resources_.size(); ++i) {
        const std::string& name = resources_[i];
        const auto capacity = capacity_of(*one.node, name);
        const auto percent = upper.find(name);
        one.levels[i].limit = !capacity                ? 0
                              : percent == upper.end() ? *capacity
                                                       : static_cast<std::int64_t>(percent->second * 0.01 * static_cast<double>(*capacity));
      }
    }
  }

  static bool is_below(const NodeUsage& one, const Percents& thresholds) {
    return std::ranges::all_of(thresholds, [&](const auto& entry) { return percent(one, entry.first) <= entry.second; });
  }
  static bool is_above(const NodeUsage& one, const Percents& thresholds) {
    return std::ranges::any_of(thresholds, [&](const auto& entry) { return percent(one, entry.first) > entry.second; });
  }

  [[nodiscard]] std::vector<NodeUsage>& nodes() { return nodes_; }
  [[nodiscard]] NodeUsage* find(std::string_view name) {
    const auto name_of = [](const NodeUsage& one) { return std::string_view(one.node->name()); };
    const auto found = std::ranges::lower_bound(nodes_, name, {}, name_of);
    return found == nodes_.end() || found->node->name() != name ? nullptr : &*found;
  }
  /// Of the engine's node; null for one that is not selected.
  [[nodiscard]] const NodeUsage* of(const placement::NodeInfo& node) const {
    return node.index.value < by_slot_.size() ? by_slot_[node.index.value] : nullptr;
  }
  /// In order of name.
  [[nodiscard]] const std::vector<std::string>& resources() const { return resources_; }

  /// What the pod takes, "pods" with it; nullopt when nobody measured it. Nothing where only whole nodes are measured.
  [[nodiscard]] std::optional<Shares> usage_of(const Pod& pod) const {
    if (is_queried()) return Shares(resources_.size(), 0);
    Amounts all;
    if (args_.use_metrics) {
      const auto found = ctx_.snapshot().pod_usage.find(pod.key());
      if (found == ctx_.snapshot().pod_usage.end()) return std::nullopt;
      all = found->second;
    } else {
      all = requests_of(*pod.info);
    }
    Shares out;
    for (const std::string& name : resources_) {
      const auto found = all.find(name);
      out.push_back(name == "pods" ? 1 : found == all.end() ? 0 : found->second);
    }
    return out;
  }

  static std::int64_t total(const NodeUsage& one) {
    std::int64_t out = 0;
    for (const NodeUsage::Level& level : one.levels) out += level.used;
    return out;
  }

 private:
  /// By requests, or by metrics.k8s.io.
  Result<Amounts> counted(Node& node) const {
    const auto& measured = ctx_.snapshot().node_usage;
    const auto found = measured.find(node.name());
    if (args_.use_metrics && found == measured.end())
      return invalid(fmt::format("unable to find node \"{}\" in the collected metrics", node.name()));
    const Amounts& from = args_.use_metrics ? found->second : node.used;
    Amounts out;
    for (const std::string& name : resources_) {
      const auto amount = from.find(name);
      if (args_.use_metrics && amount == from.end() && name != "pods")
        return invalid(fmt::format("unable to find \"{}\" resource for collected \"{}\" node metric", name, node.name()));
      out[name] = name == "pods" ? node.used["pods"] : amount == from.end() ? 0 : amount->second;
    }
    return out;
  }
  Result<Amounts> queried(const Node& node) const {
    const auto& all = ctx_.snapshot().queried_usage;
    const auto answer = all.find(args_.prometheus_query);
    if (answer == all.end()) return invalid("error initializing usage client: prometheus client not initialized");
    if (!answer->second) return std::unexpected(answer->second.error());
    const auto found = answer->second->find(node.name());
    if (found != answer->second->end()) return Amounts{{std::string(kMetricResource), found->second}};
    // Scrape targets are called after their ports unless somebody relabels them.
    const auto like = std::ranges::find_if(*answer->second, [&](const auto& entry) { return entry.first.starts_with(node.name() + ":"); });
    const std::string hint =
        like == answer->second->end()
            ? ""
            : fmt::format(": there is one for {}; the label instance must be the node's name (label_replace)", like->first);
    return invalid(fmt::format("unable to find metric entry for {}{}", node.name(), hint));
  }
  [[nodiscard]] std::optional<std::int64_t> capacity_of(const Node& node, const std::string& name) const {
    if (is_queried()) return 100;
    const auto found = node.capacity.find(name);
    return found == node.capacity.end() ? std::nullopt : std::optional(found->second);
  }
  static double percent(const NodeUsage& one, const std::string& name) {
    const auto found = one.percent.find(name);
    return found == one.percent.end() ? 0 : found->second;
  }

  Context& ctx_;
  const UtilizationArgs& args_;
  std::vector<std::string> resources_;  ///< Those that count, in order of name.
  std::vector<NodeUsage> nodes_;        ///< In order of name.
  std::vector<NodeUsage*> by_slot_;     ///< By the engine's number of the node.
};

struct Moves {
  std::vector<NodeUsage*> from, to;
  std::function<bool(const NodeUsage&)> wants_more;  ///< The source node still has something to give.
  std::function<bool(const Pod&)> chooses;           ///< Beyond the evictor's filter.
  std::function<std::string(const NodeUsage&, const Shares&)> why_no_place;
  std::string why;
};

bool has_room(const Shares& available) {
  return std::ranges::all_of(available, [](std::int64_t left) { return left > 0; });
}

/// Evicts from one node. False: the cycle's limit is reached.
bool empty_node(Context& ctx, const Plugin& plugin, Utilization& all, const Moves& moves, NodeUsage& source, Shares& available) {
  std::vector<PodPtr> pods;
  for (const PodPtr& pod : Context::running(*source.node))
    if (ctx.filter(*pod) && (!moves.chooses || moves.chooses(*pod))) pods.push_back(pod);
  sort_by_priority(pods);
  std::uint64_t evicted = 0;
  for (const PodPtr& pod : pods) {
    if (!moves.wants_more(source) || !has_room(available)) return true;
    if (plugin.utilization.max_evictions_per_node && evicted >= *plugin.utilization.max_evictions_per_node) return true;
    const bool is_tolerant =
        std::ranges::any_of(moves.to, [&](const NodeUsage* to) { return tolerates(pod->view().tolerations, to->node->view->taints, {}); });
    if (!is_tolerant || !plugin.namespaces.admits(pod->view().ns()) || !ctx.pre_eviction_filter(*pod)) continue;
    const auto usage = all.usage_of(*pod);
    if (!usage) continue;
    const DestinationRule rule = [&](const placement::NodeInfo& to) -> std::string {
      const NodeUsage* known = all.of(to);
      return known == nullptr ? "" : moves.why_no_place(*known, *usage);
    };
    const Verdict verdict = ctx.evict(pod, moves.why, rule);
    if (verdict == Verdict::kTotalLimit) return false;
    if (verdict == Verdict::kNodeLimit) return true;
    if (verdict != Verdict::kEvicted) continue;
    ++evicted;
    // What the eviction changes cannot be known before the next measurement.
    if (all.is_queried() && !plugin.utilization.max_evictions_per_node) return true;
    NodeUsage* to = all.find(ctx.last_destination());
    for (std::size_t i = 0; i < usage->size(); ++i) {
      source.levels[i].used -= (*usage)[i];
      available[i] -= (*usage)[i];
      if (to != nullptr) to->levels[i].used += (*usage)[i];
    }
  }
  return true;
}

void move_pods(Context& ctx, const Plugin& plugin, Utilization& all, const Moves& moves) {
  Shares available(all.resources().size(), 0);
  for (const NodeUsage* to : moves.to)
    for (std::size_t i = 0; i < available.size(); ++i) available[i] += to->levels[i].left();
  for (NodeUsage* source : moves.from)
    if (!empty_node(ctx, plugin, all, moves, *source, available)) return;
}

Percents percents(const Thresholds& thresholds) { return {thresholds.begin(), thresholds.end()}; }

}  // namespace

Result<void> low_node_utilization(Context& ctx, const Plugin& plugin) {
  const UtilizationArgs& args = plugin.utilization;
  Utilization all(ctx, plugin);
  if (auto measured = all.measure(); !measured) return measured;
  const Percents lower = args.use_deviation_thresholds ? all.around_average(args.thresholds, -1) : percents(args.thresholds);
  const Percents upper = args.use_deviation_thresholds ? all.around_average(args.target_thresholds, 1) : percents(args.target_thresholds);
  all.set_limits(upper);
  Moves moves;
  for (NodeUsage& one : all.nodes()) {
    // An unschedulable node is never underutilized: nothing could go there.
    if (!one.node->view->unschedulable && Utilization::is_below(one, lower)) {
      one.group = NodeUsage::Group::kUnder;
      moves.to.push_back(&one);
    } else if (Utilization::is_above(one, upper)) {
      one.group = NodeUsage::Group::kOver;
      moves.from.push_back(&one);
    }
  }
  if (static_cast<std::int64_t>(moves.to.size()) <= args.number_of_nodes || moves.to.size() == all.nodes().size() || moves.from.empty())
    return {};
  std::ranges::stable_sort(moves.from, std::greater{}, [](const NodeUsage* one) { return Utilization::total(*one); });
  moves.wants_more = [](const NodeUsage& source) {
    return std::ranges::any_of(source.levels, [](const NodeUsage::Level& level) { return level.left() < 0; });
  };
  moves.why = "the node is above the target thresholds";
  std::vector<std::size_t> targeted;  // Places of resources.
  for (std::size_t i = 0; i < all.resources().size(); ++i)
    if (upper.contains(all.resources()[i])) targeted.push_back(i);
  moves.why_no_place = [&](const NodeUsage& to, const Shares& usage) -> std::string {
    if (to.group == NodeUsage::Group::kOver) return "which is above the target thresholds as well";
    for (const std::size_t i : targeted)
      if (usage[i] > to.levels[i].left()) return fmt::format("which would then be above the target for {}", all.resources()[i]);
    return "";
  };
  move_pods(ctx, plugin, all, moves);
  return {};
}

Result<void> high_node_utilization(Context& ctx, const Plugin& plugin) {
  const UtilizationArgs& args = plugin.utilization;
  Utilization all(ctx, plugin);
  if (auto measured = all.measure(); !measured) return measured;
  const Percents lower = percents(args.thresholds);
  all.set_limits({});
  Moves moves;
  for (NodeUsage& one : all.nodes()) {
    if (Utilization::is_below(one, lower)) {
      one.group = NodeUsage::Group::kUnder;
      moves.from.push_back(&one);
    } else if (!one.node->view->unschedulable) {
      moves.to.push_back(&one);
    }
  }
  if (moves.from.empty() || static_cast<std::int64_t>(moves.from.size()) <= args.number_of_nodes ||
      moves.from.size() == all.nodes().size() || moves.to.empty())
    return {};
  std::ranges::stable_sort(moves.from, {}, [](const NodeUsage* one) { return Utilization::total(*one); });
  moves.wants_more = [](const NodeUsage&) { return true; };
  if (args.only_thresholding_resources) {
    moves.chooses = [&args](const Pod& pod) {
      const auto asks = [&](const model::ContainerView& container) {
        return std::ranges::any_of(args.thresholds,
                                   [&](const auto& entry) { return model::find_resource(container.requests, entry.first) != nullptr; });
      };
      return std::ranges::any_of(pod.view().containers, asks) || std::ranges::any_of(pod.view().init_containers, asks);
    };
  }
  moves.why = "the node is below the thresholds and could be emptied";
  moves.why_no_place = [](const NodeUsage& to, const Shares&) -> std::string {
    return to.group == NodeUsage::Group::kUnder
               ? "which is below the thresholds too: HighNodeUtilization wants a scheduler profile that fills nodes (MostAllocated)"
               : "";
  };
  move_pods(ctx, plugin, all, moves);
  return {};
}

}  // namespace berth::descheduler
