// The engine's columns against the plugins' plain form, through random histories of a cluster.
#include <gtest/gtest.h>

#include <algorithm>

#include "placement/engine.h"
#include "tests/placement/decision_check.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

struct History {
  std::uint64_t seed;
  Era era;
  int nodes;
  int steps;
  int kinds_of_pods;
  bool unique_hostnames;
  bool nominations;
  bool lazy = false;
  bool volumes = false;
  bool policy = false;  ///< As an old Policy has it: all filters asked, SelectorSpread among the scorers.
};

/// Binds, removes, updates, and compares every decision on the way.
void run(const History& history) {
  RandomWorld world(history.seed);
  world.unique_hostnames = history.unique_hostnames;
  world.volumes = history.volumes;
  Cluster cluster(history.era);
  Profile profile = default_profile(history.era);
  if (history.policy) {
    profile.always_check_all_filters = history.seed % 2 == 0;
    profile.pre_score.push_back({"SelectorSpread", 0});
    profile.score.push_back({"SelectorSpread", 1 + static_cast<std::int64_t>(history.seed % 3)});
    if (history.seed % 2 == 1) {
      profile.pre_filter.push_back({"ServiceAffinity", 0});
      profile.filter.insert(profile.filter.begin() + static_cast<std::ptrdiff_t>(history.seed % profile.filter.size()),
                            {"ServiceAffinity", 0});
      profile.args.service_affinity.affinity_labels = {"rack"};
      if (history.seed % 4 == 1) profile.args.service_affinity.affinity_labels.emplace_back("disk");
    }
    if (history.seed % 3 == 0) std::erase_if(profile.score, [](const auto& use) { return use.name == "PodTopologySpread"; });
  }
  const FrameworkPtr framework = framework_of(profile);
  const bool first_by_name = world.chance(50);
  EngineOptions options{first_by_name ? EngineOptions::TieBreak::kFirstByName : EngineOptions::TieBreak::kRandom, history.seed};
  if (history.lazy) options.lazy_ranking_nodes = 1;
  Engine engine(cluster, options);
  for (int i = 0; i < history.nodes; ++i) cluster.upsert_node(world.node("n" + std::to_string(i)));
  std::vector<model::PodViewPtr> kinds;
  for (int i = 0; i < history.kinds_of_pods; ++i) kinds.push_back(world.pod("kind"));
  std::vector<std::string> placed;
  for (int step = 0; step < history.steps; ++step) {
    const int action = world.below(100);
    if (action < 5) {
      const std::string name = "n" + std::to_string(world.below(history.nodes + 3));
      if (world.chance(40)) {
        cluster.remove_node(name);
      } else {
        cluster.upsert_node(world.node(name));
      }
    } else if (action < (history.volumes || history.policy ? 14 : 8)) {
      world.change_objects(cluster);
    } else if (action < 22 && !placed.empty()) {
      const auto at = static_cast<std::size_t>(world.below(static_cast<int>(placed.size())));
      cluster.remove_pod(placed[at]);
      placed.erase(placed.begin() + static_cast<std::ptrdiff_t>(at));
    }
    auto view = std::make_shared<model::PodView>(*kinds[static_cast<std::size_t>(world.below(history.kinds_of_pods))]);
    view->meta.name = "p" + std::to_string(step);
    if (history.nominations && world.chance(10)) view->nominated_node_name = "n" + std::to_string(world.below(history.nodes));
    if (world.chance(2)) view->node_name = "nowhere";
    const PodInfoPtr pod = PodInfo::make(view, history.era);
    if (!view->node_name.empty()) {
      cluster.upsert_pod(pod);  // A pod of a node that nobody knows.
      continue;
    }
    if (!view->nominated_node_name.empty() && world.chance(60)) cluster.upsert_pod(pod);
    const Decision decision = engine.schedule(framework, pod);
    const std::string wrong = difference(cluster, *framework, *pod, decision, first_by_name);
    ASSERT_EQ(wrong, "") << "seed " << history.seed << " step " << step;
    if (decision.outcome == Decision::Outcome::kScheduled && world.chance(90)) {
      cluster.assume(pod, decision.node);
      placed.push_back(pod->key);
    }
  }
}

TEST(EngineColumns, AgreeWithPlainFormIn136) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) run({seed, Era::k136, 8, 120, 12, true, false});
}

TEST(EngineColumns, AgreeWithPlainFormIn120) {
  for (std::uint64_t seed = 101; seed <= 140; ++seed) run({seed, Era::k120, 8, 120, 12, true, false});
}

TEST(EngineColumns, AgreeWhereHostnamesAreShared) {
  for (std::uint64_t seed = 201; seed <= 215; ++seed) run({seed, Era::k136, 9, 120, 8, false, false});
  for (std::uint64_t seed = 216; seed <= 230; ++seed) run({seed, Era::k120, 9, 120, 8, false, false});
}

TEST(EngineColumns, AgreeWithNominatedPods) {
  for (std::uint64_t seed = 301; seed <= 320; ++seed) run({seed, Era::k136, 6, 120, 6, true, true});
  for (std::uint64_t seed = 321; seed <= 340; ++seed) run({seed, Era::k120, 6, 120, 6, true, true});
}

TEST(EngineColumns, AgreeWhereOnlyTheBestNodesAreRanked) {
  for (std::uint64_t seed = 701; seed <= 730; ++seed) run({seed, Era::k136, 25, 200, 5, true, seed % 3 == 0, true});
}

TEST(EngineColumns, AgreeWithVolumes) {
  for (std::uint64_t seed = 801; seed <= 825; ++seed) run({seed, Era::k136, 7, 150, 8, true, seed % 2 == 0, false, true});
  for (std::uint64_t seed = 826; seed <= 840; ++seed) run({seed, Era::k120, 7, 150, 8, true, seed % 2 == 0, false, true});
}

TEST(EngineColumns, AgreeUnderAnOldPolicy) {
  for (std::uint64_t seed = 901; seed <= 940; ++seed) run({seed, Era::k120, 8, 120, 8, true, seed % 5 == 0, false, seed % 4 == 0, true});
}

TEST(EngineColumns, AgreeOnTinyClusters) {
  for (std::uint64_t seed = 401; seed <= 520; ++seed) run({seed, seed % 2 == 0 ? Era::k136 : Era::k120, 2, 25, 4, true, false});
}

TEST(EngineColumns, AgreeWhenManyPodsFillTheNodes) {
  for (std::uint64_t seed = 601; seed <= 604; ++seed) run({seed, Era::k136, 20, 500, 3, true, false});
}

}  // namespace
}  // namespace berth::placement::testing
