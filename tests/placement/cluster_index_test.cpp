// What an engine keeps of a cluster equals a recount, whatever came and went.
#include "placement/columns/cluster_index.h"

#include <gtest/gtest.h>

#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

std::uint32_t recount(const Cluster& cluster, std::uint32_t node, const std::function<std::uint32_t(const PodInfo&)>& of_pod) {
  std::uint32_t out = 0;
  if (const NodeInfo* info = cluster.node(NodeIndex{node}))
    for (const auto& pod : info->pods) out += of_pod(*pod);
  return out;
}

std::uint32_t holds(const PodInfo& pod, const HeldTerm& held) {
  const auto count = [&](std::vector<AffinityTerm> terms, int sign) {
    for (auto& term : terms) term.weight *= sign;
    return static_cast<std::uint32_t>(std::ranges::count(terms, held.term));
  };
  switch (held.kind) {
    case HeldTerm::Kind::kRequiredAffinity:
      return count(pod.required_affinity, 1);
    case HeldTerm::Kind::kRequiredAntiAffinity:
      return count(pod.required_anti_affinity, 1);
    case HeldTerm::Kind::kPreferred:
      return count(pod.preferred_affinity, 1) + count(pod.preferred_anti_affinity, -1);
  }
  return 0;
}

void expect_recount(const Cluster& cluster, const ClusterIndex& index, const std::vector<CountId>& matchers) {
  for (std::uint32_t node = 0; node < cluster.slot_count(); ++node) {
    for (std::size_t i = 0; i < index.held_term_count(); ++i) {
      const HeldTerm& held = index.held_term(i);
      ASSERT_EQ(index.counts(ClusterIndex::held_counts(i))[node],
                recount(cluster, node, [&](const PodInfo& pod) { return holds(pod, held); }))
          << "node " << node;
    }
    for (const CountId id : matchers) {
      const PodMatcher& matcher = index.matcher_of(id);
      const auto matches = [&](const PodInfo& pod) -> std::uint32_t {
        if (matcher.skip_terminating && pod.view().meta.is_deleting) return 0;
        return std::ranges::all_of(matcher.terms,
                                   [&](const auto& term) { return term.matches(pod.view(), cluster.namespace_labels(pod.view().ns())); })
                   ? 1
                   : 0;
      };
      ASSERT_EQ(index.counts(id)[node], recount(cluster, node, matches)) << "node " << node;
    }
    const NodeInfo* info = cluster.node(NodeIndex{node});
    if (info == nullptr || info->node == nullptr) continue;
    ASSERT_EQ(index.amounts(node).requested_cpu, info->requested.cpu_milli);
    ASSERT_EQ(static_cast<std::size_t>(index.amounts(node).pods), info->pods.size());
    ASSERT_EQ(index.amounts(node).balance, NodeAmounts::of(*info).balance);
  }
}

TEST(ClusterIndex, CountsEqualARecount) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    RandomWorld world(seed);
    Cluster cluster;
    const int nodes = seed % 3 == 0 ? 40 : 6;  // Few pods a node are kept otherwise than many.
    for (int i = 0; i < nodes; ++i) cluster.upsert_node(world.node("n" + std::to_string(i)));
    ClusterIndex index(cluster);
    std::uint64_t epoch = 0;
    std::vector<CountId> matchers;
    for (int step = 0; step < 200; ++step) {
      const int what = world.below(20);
      if (what == 0) {
        cluster.upsert_node(world.node("n" + std::to_string(world.below(nodes + 2))));
      } else if (what == 1) {
        cluster.remove_node("n" + std::to_string(world.below(nodes)));
      } else if (what == 2) {
        world.change_objects(cluster);
      } else if (what < 7) {
        const auto pod = world.pod("p" + std::to_string(world.below(60)));
        cluster.remove_pod(pod->key());
      } else {
        auto pod = std::make_shared<model::PodView>(*world.pod("p" + std::to_string(world.below(60))));
        pod->node_name = "n" + std::to_string(world.below(nodes));
        cluster.upsert_pod(std::move(pod));
      }
      index.sync();
      if (epoch != index.epoch()) matchers.clear();
      epoch = index.epoch();
      if (matchers.size() < 6 && world.chance(20)) {
        const auto pod = PodInfo::make(world.pod("of"), Era::k136);
        index.note_namespace_selectors(*pod);
        if (!pod->preferred_affinity.empty()) matchers.push_back(index.matcher({pod->preferred_affinity.front()}, world.chance(50)));
      }
      if (step % 10 == 0) expect_recount(cluster, index, matchers);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace berth::placement::testing
