// All clusters of up to three nodes with up to two running pods over a small alphabet of kinds that collide with one another: the engine's
// decision equals the plain form's, and a preemption plan is sound and evicts nobody in vain.
#include <gtest/gtest.h>

#include "placement/preemptor.h"
#include "placement/trial.h"
#include "tests/placement/decision_check.h"
#include "tests/placement/plugins/plugin_world.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

constexpr std::size_t kNodeKinds = 4, kPodKinds = 6;

model::NodeViewPtr node_of(std::size_t kind, std::size_t number) {
  auto out = std::make_shared<model::NodeView>();
  out->meta.name = "node" + std::to_string(number);
  out->meta.labels = model::Labels(
      std::vector<std::pair<std::string, std::string>>{{"kubernetes.io/hostname", out->meta.name}, {"zone", kind == 1 ? "b" : "a"}});
  if (kind == 2)
    out->meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"kubernetes.io/hostname", out->meta.name}});
  if (kind == 3) out->taints.push_back({"t", "", "NoSchedule"});
  const auto cpu = model::Quantity::from_value(kind == 2 ? 1 : 2);
  out->allocatable = {{"cpu", cpu}, {"memory", model::Quantity::from_value(1LL << 30)}, {"pods", model::Quantity::from_value(2)}};
  return out;
}

/// Priorities fall with the order, so that some evict others.
PodInfoPtr pod_of(std::size_t kind, const std::string& name, Era era, const std::string& node = "") {
  static const char* const kSpecs[kPodKinds] = {
      "{priority: 5, containers: [{name: c, resources: {requests: {cpu: '2'}}}]}",
      "{priority: 4, containers: [{name: c, ports: [{hostPort: 80}]}], tolerations: [{operator: Exists}]}",
      "{priority: 3, containers: [{name: c, resources: {requests: {cpu: '1'}}}], affinity: {podAntiAffinity: "
      "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {}}]}}}",
      "{priority: 2, containers: [{name: c, resources: {requests: {cpu: 500m}}}], topologySpreadConstraints: [{topologyKey: zone, maxSkew: "
      "1, "
      "whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}",
      "{priority: 1, containers: [{name: c}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
      "zone, "
      "labelSelector: {matchLabels: {kind: k3}}}]}}}",
      "{priority: 0, containers: [{name: c, resources: {requests: {cpu: '1'}}, ports: [{hostPort: 80}]}]}"};
  static const PluginWorld kWorlds[2] = {PluginWorld(Era::k120), PluginWorld(Era::k136)};
  const auto made = kWorlds[era == Era::k120 ? 0 : 1].pod(kSpecs[kind], "{kind: k" + std::to_string(kind) + "}", name);
  if (node.empty()) return made;
  auto view = std::make_shared<model::PodView>(made->view());
  view->node_name = node;
  return PodInfo::make(std::move(view), era);
}

/// The room that a plan makes suffices, and no victim could have stayed.
void check_plan(const Framework& framework, const Cluster& cluster, const PodInfoPtr& pod, const Candidate& plan,
                const std::string& where) {
  const auto fits_without = [&](const std::vector<PodInfoPtr>& gone) {
    Trial trial = Trial::on_fork(cluster, {});
    Cluster& without = trial.cluster();
    for (const auto& victim : gone) without.remove_pod(victim->key);
    const auto evaluation = evaluate(framework, without, *pod);
    return std::ranges::any_of(evaluation.feasible, [&](const auto& one) { return one.node == plan.node; });
  };
  EXPECT_TRUE(fits_without(plan.victims)) << where;
  for (std::size_t spared = 0; spared < plan.victims.size(); ++spared) {
    auto fewer = plan.victims;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(spared));
    EXPECT_FALSE(fits_without(fewer)) << where << " spares " << plan.victims[spared]->key;
    EXPECT_LT(plan.victims[spared]->view().priority, pod->view().priority) << where;
  }
}

struct Tally {
  std::size_t decisions = 0, placed = 0, plans = 0;
};

/// One cluster: nodes by kind, running pods by (kind, node).
void check(Era era, const std::vector<std::size_t>& nodes, const std::vector<std::pair<std::size_t, std::size_t>>& running, Tally& tally) {
  static const FrameworkPtr kFrameworks[2] = {default_framework(Era::k120), default_framework(Era::k136)};
  const auto& framework = kFrameworks[era == Era::k120 ? 0 : 1];
  Cluster cluster(era);
  std::string where = era == Era::k120 ? "1.20 nodes" : "1.36 nodes";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    cluster.upsert_node(node_of(nodes[i], i));
    where += fmt::format(" {}", nodes[i]);
  }
  for (const auto& [kind, node] : running) {
    cluster.upsert_pod(pod_of(kind, fmt::format("run{}", cluster.pod_count()), era, fmt::format("node{}", node)));
    where += fmt::format(" pod {} on {}", kind, node);
  }
  Engine engine(cluster, {.tie_break = EngineOptions::TieBreak::kFirstByName});
  Preemptor preemptor(cluster);
  for (std::size_t kind = 0; kind < kPodKinds; ++kind) {
    const auto pod = pod_of(kind, "new", era);
    const auto decision = engine.schedule(framework, pod);
    const auto place = fmt::format("{} new {}", where, kind);
    ASSERT_EQ(difference(cluster, *framework, *pod, decision, true), "") << place;
    ++tally.decisions;
    tally.placed += decision.outcome == Decision::Outcome::kScheduled;
    if (decision.outcome != Decision::Outcome::kUnschedulable) continue;
    const auto found = preemptor.find(framework, pod);
    const auto plain = run_post_filter(framework, cluster, pod, evaluate(*framework, cluster, *pod));
    ASSERT_EQ(found.status.message(), plain.status.message()) << place;
    ASSERT_EQ(found.tied, plain.tied) << place;
    if (found.choice() == nullptr) continue;
    ++tally.plans;
    check_plan(*framework, cluster, pod, *found.choice(), place);
  }
}

/// All choices of `count` things of `kinds`.
template <typename Visit>
void for_all(std::size_t kinds, std::size_t count, Visit&& visit) {
  std::vector<std::size_t> at(count, 0);
  while (true) {
    visit(at);
    std::size_t place = 0;
    while (place < count && ++at[place] == kinds) at[place++] = 0;
    if (place == count) return;
  }
}

TEST(Exhaustive, TinyClusters) {
  Tally tally;
  for (const Era era : {Era::k120, Era::k136}) {
    for (std::size_t node_count = 1; node_count <= 3; ++node_count) {
      for_all(kNodeKinds, node_count, [&](const std::vector<std::size_t>& nodes) {
        if (!std::ranges::is_sorted(nodes)) return;  // Their order is their names alone.
        for (std::size_t pod_count = 0; pod_count <= (node_count < 3 ? 2U : 1U); ++pod_count) {
          for_all(kPodKinds * node_count, pod_count, [&](const std::vector<std::size_t>& places) {
            if (!std::ranges::is_sorted(places)) return;
            // The many clusters with two pods are shared out between the eras.
            if (pod_count == 2 && ((places[0] + places[1] + nodes[0]) % 2 == 0) != (era == Era::k136)) return;
            std::vector<std::pair<std::size_t, std::size_t>> running;
            for (const auto place : places) running.emplace_back(place % kPodKinds, place / kPodKinds);
            check(era, nodes, running, tally);
          });
        }
      });
    }
  }
  EXPECT_GT(tally.decisions, 5'000u);
  EXPECT_GT(tally.placed, 1'500u);
  EXPECT_GT(tally.plans, 200u);
}

}  // namespace
}  // namespace berth::placement::testing
