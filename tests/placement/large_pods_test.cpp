// What users write has any size: what is kept of pods is bounded in bytes, and goes with the pods. Counted by the pods themselves: who is
// held by nobody is gone.
#include <gtest/gtest.h>

#include "placement/trial.h"
#include "tests/placement/decision_check.h"

namespace berth::placement::testing {
namespace {

constexpr std::size_t kMiB = 1 << 20;

class LargePods : public ::testing::Test {
 protected:
  LargePods() {
    for (int i = 0; i < 4; ++i) cluster.upsert_node(node(fmt::format("n{}", i)));
  }
  static model::NodeViewPtr node(const std::string& name) {
    const auto document =
        json::parse_yaml(fmt::format("metadata: {{name: {0}, labels: {{kubernetes.io/hostname: {0}}}}}\nstatus: "
                                     "{{allocatable: {{cpu: 64, memory: 64Gi, pods: 1000}}}}\n",
                                     name));
    return std::make_shared<model::NodeView>(model::NodeView::parse(*document));
  }
  /// `text` goes where kinds of pods are told apart by it.
  PodInfoPtr pod(int number, std::size_t bytes, const std::string& more = "", const std::string& on = "") {
    json::Value document = *json::parse_yaml(
        fmt::format("metadata: {{name: p{0}, namespace: default, uid: u{0}, labels: {{app: a{0}}}}}\nspec:\n  schedulerName: "
                    "default-scheduler\n  containers: [{{name: c}}]\n{1}{2}",
                    number, more, on.empty() ? "" : "  nodeName: " + on + "\n"));
    json::set(document, {"metadata", "annotations", "big"}, json::Value(std::string(bytes, 'x')));
    auto out = PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(document)), Era::k136);
    made.push_back(out);
    return out;
  }
  static std::string hates(int number, int terms = 1) {
    std::string out = "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [";
    for (int i = 0; i < terms; ++i)
      out += fmt::format("{}{{topologyKey: k{}-{}, labelSelector: {{matchLabels: {{app: b{}-{}}}}}}}", i > 0 ? ", " : "", number, i, number,
                         i);
    return out + "]}}\n";
  }
  [[nodiscard]] std::size_t held() const {
    std::size_t out = 0;
    for (const auto& one : made)
      if (const auto pod = one.lock()) out += pod->bytes;
    return out;
  }
  void come_and_go(Trial& trial, int number, std::size_t bytes) {
    (void)trial.decide(pod(number, bytes, hates(number)));
    cluster.upsert_pod(pod(number, bytes, hates(number), "n0"));
    cluster.remove_pod(fmt::format("default/p{}", number));
  }
  static TrialOptions small_columns() {
    TrialOptions out;
    out.engine.columns_bytes = 8 * kMiB;
    return out;
  }
  Cluster cluster{Era::k136};
  Profiles profiles = *Profiles::create({default_profile(Era::k136)});
  std::vector<std::weak_ptr<const PodInfo>> made;
};

TEST_F(LargePods, APodCountsAllThatItHolds) {
  const auto small = pod(1, 10), annotated = pod(2, kMiB), hating = pod(3, 10, hates(3, 3000));
  EXPECT_LT(small->bytes, 8192U);
  EXPECT_GT(annotated->bytes, kMiB);
  EXPECT_GT(hating->bytes, 3000 * sizeof(AffinityTerm));
}

TEST_F(LargePods, WhatIsKeptOfThoseThatWentIsBoundedInBytes) {
  Trial trial(cluster, profiles, small_columns());
  for (int i = 0; i < 400; ++i) {
    come_and_go(trial, i, kMiB);
    // The change log, kinds of pods, classes with their columns.
    ASSERT_LE(held(), 160 * kMiB) << i;
  }
  (void)trial.decide(pod(1000, 10));
  EXPECT_LE(held(), 160 * kMiB);
  trial.forget();
  EXPECT_EQ(held(), 0U);
}

TEST_F(LargePods, ColumnsHoldTheirBoundWhetherClassesAreManyOrLarge) {
  Trial trial(cluster, profiles, small_columns());
  for (int i = 0; i < 60; ++i) {
    // Two that are alike: the second gets columns.
    for (int twice = 0; twice < 2; ++twice) (void)trial.decide(pod(i, 10, hates(i, 1000)));
    // The index has terms and matchers beside the classes' own.
    ASSERT_LE(trial.memory_bytes(), 96 * kMiB) << i;
  }
}

TEST_F(LargePods, ForgettingChangesNoDecision) {
  TrialOptions by_name;
  by_name.engine.tie_break = EngineOptions::TieBreak::kFirstByName;
  Trial forgetful(cluster, profiles, by_name), swept(cluster, profiles, by_name), other(cluster, profiles, by_name);
  for (int i = 0; i < 30; ++i) {
    const auto one = pod(i % 3, 10, hates(i % 3));
    const Decision theirs = other.decide(one);
    for (Trial* trial : {&forgetful, &swept}) {
      const Decision mine = trial->decide(one);
      EXPECT_EQ(mine.node_name, theirs.node_name) << i;
      EXPECT_EQ(mine.score, theirs.score) << i;
    }
    cluster.upsert_pod(pod(100 + i, 10, hates(i % 3), fmt::format("n{}", i % 4)));
    if (i % 5 == 4) cluster.remove_pod(fmt::format("default/p{}", 100 + i - 3));
    if (i % 4 == 3) forgetful.forget();
    swept.forget_unused();
  }
}

TEST_F(LargePods, WhatNobodyAskedForBetweenTwoSweepsGoes) {
  Trial trial(cluster, profiles);
  const auto ask = [&](int number) {
    // Two that are alike: the second gets columns.
    for (int twice = 0; twice < 2; ++twice) (void)trial.decide(pod(number, kMiB, hates(number)));
  };
  constexpr int kJobs = 20;
  for (int i = 0; i < kJobs; ++i) ask(i);
  trial.forget_unused();
  EXPECT_GE(held(), kJobs * kMiB) << "all were asked for";
  ask(3);
  trial.forget_unused();
  EXPECT_GE(held(), kMiB) << "who was asked for again is known still";
  EXPECT_LE(held(), 4 * kMiB);
  trial.forget_unused();
  EXPECT_LE(held(), 2 * kMiB);
}

TEST_F(LargePods, PreemptionKeepsNoMoreThanItsBound) {
  Trial trial(cluster, profiles, small_columns());
  for (int i = 0; i < 200; ++i) {
    const auto wants_all = pod(i, kMiB, "  priority: 100\n  nodeSelector: {kubernetes.io/hostname: none}\n");
    (void)trial.decide(wants_all);
    (void)trial.victims_for(wants_all);
    ASSERT_LE(held(), 160 * kMiB) << i;
  }
  trial.forget();
  EXPECT_EQ(held(), 0U);
}

}  // namespace
}  // namespace berth::placement::testing
