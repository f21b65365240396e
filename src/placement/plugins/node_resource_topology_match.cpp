// NodeResourceTopologyMatch: a pod does not go where the node would refuse it, because what it asks for does not come from the same NUMA
// nodes (kubernetes-sigs/scheduler-plugins, pkg/noderesourcetopology; the node's steps are those of numa/alignment.h). Beyond the original:
// nodes with the policies restricted, best-effort and none are asked too, as far as they refuse pods.
#include <array>

#include "base/config_reader.h"
#include "placement/numa/zone_scores.h"
#include "placement/plugins/factories.h"

namespace berth::placement {
namespace {

struct MatchArgs {
  numa::ScoringOptions scoring;
  numa::Untold untold = numa::Untold::kAsTheNode;
};

/// What the pod wants of NUMA nodes.
struct Wanted : Cloneable<Wanted> {
  numa::PodWishes wishes;
};

class NodeResourceTopologyMatch final : public PluginOf<NodeResourceTopologyMatch> {
 public:
  explicit NodeResourceTopologyMatch(MatchArgs args) : args_(std::move(args)) {}
  std::string_view name() const override { return "NodeResourceTopologyMatch"; }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }

  void sign(Signer& signer, const PodInfo& pod) const override {
    const numa::PodWishes wishes = numa::wishes_of(pod.view());
    if (!wishes.empty())
      for (const numa::Wish& one : wishes.containers) {
        signer.add(one.is_sidecar ? 2 : std::int64_t{one.is_init});
        signer.add(one.cpus);
        add(signer, one.memory);
        add(signer, one.devices);
      }
    signer.add(std::int64_t{-1});
    if (!signer.counts_scores() || !pod.view().is_guaranteed) return;
    for (const auto* list : {&pod.view().init_containers, &pod.view().containers})
      for (const model::ContainerView& container : *list) add(signer, numa::requests_of(container));
  }

  PreFilterOutcome pre_filter(CycleState& state, const PodInfo& pod) const override {
    auto wanted = std::make_unique<Wanted>();
    wanted->wishes = numa::wishes_of(pod.view());
    if (wanted->wishes.empty()) return {Status::skip(), {}};
    state.set(slot(), std::move(wanted));
    return {};
  }

  Status filter(const CycleState& state, const PodInfo& pod, const NodeInfo& node) const override {
    if (node.topology == nullptr) return Status::success();
    const auto* wanted = state.get<Wanted>(slot());
    const numa::PodWishes wishes = wanted != nullptr ? wanted->wishes : numa::wishes_of(pod.view());
    const numa::NodeAlignment& alignment = of(node);
    if (alignment.is_no_matter(wishes)) return Status::success();
    if (alignment.is_closed()) return Status::unschedulable("invalid node topology data");
    const auto refusal = alignment.refuse(wishes);
    if (!refusal) return Status::success();
    if (refusal->reason != "TopologyAffinityError")
      return Status::unschedulable(refusal->reason == "SMTAlignmentError"
                                       ? "node(s) give whole cores only"
                                       : "node(s) had no CPUs, memory or devices left for the pod alone");
    if (refusal->container.empty()) return Status::unschedulable("cannot align pod");
    const auto container = std::ranges::find(wishes.containers, refusal->container, &numa::Wish::name);
    return Status::unschedulable(container->is_init ? "cannot align init container" : "cannot align container");
  }

  std::expected<std::int64_t, Status> score(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    if (!pod.view().is_guaranteed) return kMaxNodeScore;
    return node.topology == nullptr ? 0 : numa::zone_score(of(node), pod.view(), args_.scoring);
  }

  [[nodiscard]] EventSet events_to_register() const override {
    using enum ClusterEvent;
    return kNewNode | EventSet{kNodeAllocatable, kAssignedPodDeleted, kNodeTopology};
  }

 private:
  [[nodiscard]] const numa::NodeAlignment& of(const NodeInfo& node) const {
    return node.notes.get<numa::NodeAlignment>(note_, [&] { return numa::NodeAlignment(*node.topology, node.pods, args_.untold); });
  }

  static void add(Signer& signer, const numa::Amounts& amounts) {
    signer.add(static_cast<std::int64_t>(amounts.size()));
    for (const auto& [resource, amount] : amounts) {
      signer.add(std::string_view(resource));
      signer.add(amount);
    }
  }

  const MatchArgs args_;
  const NoteId note_;
};

numa::ScoringOptions read_scoring(const config::Reader& args) {
  constexpr std::array<std::string_view, 4> kTypes = {"LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"};
  constexpr std::array kStrategies = {numa::ScoringStrategy::kLeastAllocated, numa::ScoringStrategy::kMostAllocated,
                                      numa::ScoringStrategy::kBalancedAllocation, numa::ScoringStrategy::kLeastNumaNodes};
  numa::ScoringOptions out;
  if (!args.expect_object()) return out;
  args.only({"type", "resources"});
  const std::string type = args.one_of("type", kTypes, kTypes[0]);
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (type == kTypes[i]) out.strategy = kStrategies[i];
  if (const auto resources = args.field("resources").items(); !resources.empty()) {
    out.weights.clear();
    for (const config::Reader& one : resources) {
      if (!one.expect_object()) continue;
      one.only({"name", "weight"});
      const std::int64_t weight = one.integer("weight", 1);
      if (weight < 0 || weight > 100) one.problem("weight", "Invalid value: a weight of 1 to 100 is wanted");
      out.weights[one.string("name")] = std::clamp<std::int64_t>(weight, 1, 100);
    }
  }
  return out;
}

}  // namespace

PluginPtr build_node_resource_topology_match(const config::Reader& args, const Profile&) {
  args.only({"kind", "apiVersion", "cacheResyncPeriodSeconds", "discardReservedNodes", "scoringStrategy", "cache"});
  MatchArgs out;
  out.scoring = read_scoring(args.field("scoringStrategy"));
  const std::int64_t resync = args.integer("cacheResyncPeriodSeconds", 0);
  if (resync < 0) args.problem("cacheResyncPeriodSeconds", "Invalid value: must not be negative");
  // As in the original the first of the two that is set decides.
  if (args.boolean("discardReservedNodes", false))
    out.untold = numa::Untold::kNobodyElse;
  else if (resync > 0)
    out.untold = numa::Untold::kEverywhere;
  if (args.has("cache")) args.without_effect({"cache"}, "what pods have is read from NodeResourceTopologies and the pods themselves");
  return std::make_unique<NodeResourceTopologyMatch>(std::move(out));
}

}  // namespace berth::placement
