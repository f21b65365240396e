// Room made by moves, and nodes that could be empty.
#include "descheduler/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "placement/attempt.h"
#include "placement/disruption_ledger.h"
#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

using placement::PodInfoPtr;

/// Nodes of 4 CPUs, 8 GiB, 20 pods; asked as the scheduler would be, the first by name among equals.
struct Ground {
  World world;
  std::optional<placement::Trial> trial;

  static std::string asks(const std::string& cpu, std::string_view more = "") {
    return "{spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: '" + cpu + "', memory: 64Mi}}}]}" + std::string(more) +
           "}";
  }
  placement::Trial& ask() {
    if (!trial) {
      placement::Profiles profiles;
      profiles.add(*placement::Framework::create(placement::default_profile(placement::Era::k136)));
      trial.emplace(world.snapshot().cluster, profiles,
                    placement::TrialOptions{.engine = {.tie_break = placement::EngineOptions::TieBreak::kFirstByName}, .preemption = {}});
    }
    return *trial;
  }
  PodInfoPtr waiting(const std::string& name, const std::string& extra) {
    world.pod(name, "", extra);
    return world.snapshot().pods.at("default/" + name)->info;
  }
};

Names texts(const std::vector<Move>& moves) {
  Names out;
  for (const Move& move : moves) out.push_back(fmt::format("{} {}->{}", move.pod->view().name(), move.from, move.to));
  return out;
}

TEST(MakeRoom, OneSmallPodMovesSoThatALargeOneFits) {
  Ground ground;
  ground.world.node("n1").node("n2").pod("big", "n1", Ground::asks("2")).pod("small", "n1", Ground::asks("500m"));
  ground.world.pod("other", "n2", Ground::asks("3"));
  const PodInfoPtr wanting = ground.waiting("wanting", Ground::asks("2"));
  ASSERT_FALSE(ground.ask().decide(wanting).node.is_valid());
  const RoomPlan plan = make_room(ground.ask(), std::span(&wanting, 1));
  EXPECT_EQ(plan.why_not, "");
  EXPECT_EQ(texts(plan.moves), Names{"small n1->n2"});
  ASSERT_EQ(plan.placed.size(), 1U);
  EXPECT_EQ(plan.placed[0].node, "n1");
}

TEST(MakeRoom, TheFewestGoAndAmongThemTheSmallest) {
  Ground ground;
  ground.world.node("n1").node("n2").node("n3");
  // On n1 two would have to go, on n2 one of either size.
  ground.world.pods("a", 8, "n1", Ground::asks("500m"));
  ground.world.pod("b-large", "n2", Ground::asks("1500m"))
      .pod("b-small", "n2", Ground::asks("1"))
      .pod("b-rest", "n2", Ground::asks("1500m"));
  ground.world.pod("c", "n3", Ground::asks("2500m"));
  ground.world.pod("c2", "n3", Ground::asks("300m", ", metadata: {ownerReferences: []}"));
  const PodInfoPtr large = ground.waiting("large", Ground::asks("1", ", spec: {nodeSelector: {kubernetes.io/hostname: n2}}"));
  const RoomPlan plan = make_room(ground.ask(), std::span(&large, 1));
  EXPECT_EQ(plan.why_not, "");
  EXPECT_EQ(texts(plan.moves), Names{"b-small n2->n3"});
}

TEST(MakeRoom, NothingUnlessTheWholeGangFits) {
  Ground ground;
  ground.world.node("n1").node("n2").pods("a", 4, "n1", Ground::asks("500m")).pods("b", 4, "n2", Ground::asks("500m"));
  std::vector<PodInfoPtr> gang = {ground.waiting("g1", Ground::asks("3")), ground.waiting("g2", Ground::asks("3"))};
  const RoomPlan none = make_room(ground.ask(), gang);
  EXPECT_NE(none.why_not, "");
  EXPECT_TRUE(none.moves.empty());
  EXPECT_EQ(ground.ask().cluster().pod_count(), 8U);
  EXPECT_EQ(ground.ask().cluster().find_node("n1")->pods.size(), 4U);
  // One of them alone does.
  const RoomPlan one = make_room(ground.ask(), std::span(gang).first(1));
  EXPECT_EQ(one.why_not, "");
  EXPECT_EQ(one.moves.size(), 2U);
}

TEST(MakeRoom, BudgetsAndHigherPrioritiesHold) {
  Ground ground;
  ground.world.node("n1").node("n2").pods("a", 4, "n1", Ground::asks("1")).pod("b", "n2", Ground::asks("2"));
  ground.world.add(
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: default, name: held}, spec: {selector: "
      "{matchLabels: {app: web}}}, status: {disruptionsAllowed: 0}}");
  const PodInfoPtr wanting = ground.waiting("wanting", Ground::asks("3"));
  const RoomPlan plan = make_room(ground.ask(), std::span(&wanting, 1));
  EXPECT_NE(plan.why_not.find("PodDisruptionBudget held allows no disruption"), plan.why_not.npos) << plan.why_not;

  Ground high;
  high.world.node("n1").node("n2").pod("a", "n1",
                                       "{spec: {priority: 5, containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}}");
  high.world.pod("b", "n2", Ground::asks("1"));
  const PodInfoPtr lower = high.waiting("wanting", Ground::asks("3500m"));
  const RoomPlan other = make_room(high.ask(), std::span(&lower, 1));
  EXPECT_EQ(other.why_not, "");
  EXPECT_EQ(texts(other.moves), Names{"b n2->n1"});
}

TEST(MakeRoom, AnUnreadyPodGoesWhereItsBudgetsPolicyLetsIt) {
  const auto why_not = [](const std::string& ready, const std::string& policy, int healthy) {
    Ground ground;
    ground.world.node("n1").node("n2");
    ground.world.pod(
        "a", "n1",
        fmt::format("{{spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: '3'}}}}}}]}}, status: {{phase: Running, "
                    "conditions: [{{type: Ready, status: '{}'}}]}}}}",
                    ready));
    ground.world.pod("b", "n2", Ground::asks("1"));
    ground.world.add(
        fmt::format("{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{namespace: default, name: held}}, spec: {{selector: "
                    "{{matchLabels: {{app: web}}}}, unhealthyPodEvictionPolicy: {}}}, status: {{disruptionsAllowed: 0, currentHealthy: "
                    "{}, desiredHealthy: 1}}}}",
                    policy, healthy));
    return why_budgets_hold(placement::DisruptionLedger(ground.ask().cluster(), placement::BudgetRule::kEviction),
                            *ground.ask().cluster().find_pod("default/a"));
  };
  EXPECT_EQ(why_not("True", "AlwaysAllow", 1), "PodDisruptionBudget held allows no disruption");
  EXPECT_EQ(why_not("False", "AlwaysAllow", 0), "");
  EXPECT_EQ(why_not("False", "IfHealthyBudget", 0), "PodDisruptionBudget held allows no disruption");
  EXPECT_EQ(why_not("False", "IfHealthyBudget", 1), "") << "those that are healthy suffice";
}

TEST(MakeRoom, WhatAmountsDoNotKnowOfIsAskedOfTheEngine) {
  Ground ground;
  const std::string ports = "{spec: {containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 80}]}]}}";
  ground.world.node("n1", "{metadata: {labels: {disk: ssd}}}").node("n2");
  ground.world.pod("holder", "n1", ports).pod("bystander", "n1", Ground::asks("100m"));
  const PodInfoPtr wanting = ground.waiting(
      "wanting", "{spec: {nodeSelector: {disk: ssd}, containers: [{name: c, image: i, ports: [{containerPort: 80, hostPort: 80}]}]}}");
  const RoomPlan plan = make_room(ground.ask(), std::span(&wanting, 1));
  EXPECT_EQ(plan.why_not, "");
  EXPECT_EQ(texts(plan.moves), Names{"holder n1->n2"});
}

/// Every set of at most two pods of one node, tried by hand.
std::size_t fewest_by_search(placement::Trial& trial, const PodInfoPtr& wanting) {
  if (trial.decide(wanting).node.is_valid()) return 0;
  std::size_t fewest = SIZE_MAX;
  for (const placement::NodeInfo* node : trial.cluster().nodes()) {
    const auto pods = node->pods;
    for (std::size_t a = 0; a < pods.size(); ++a)
      for (std::size_t b = a; b < pods.size(); ++b) {
        const placement::Attempt attempt(trial);
        std::vector<placement::EvictedPod> gone = {trial.evict(pods[a])};
        if (b != a) gone.push_back(trial.evict(pods[b]));
        const auto index =
            trial.cluster().find_node(node->name) == nullptr ? placement::NodeIndex{} : trial.cluster().find_node(node->name)->index;
        bool works = index.is_valid() && trial.place_on(wanting, index).is_success();
        for (const auto& one : gone) {
          if (!works) break;
          const auto placed = trial.place(trial.renew(one));
          works = placed.is_placed() && placed.node != index;
        }
        if (works) fewest = std::min(fewest, gone.size());
      }
  }
  return fewest;
}

TEST(MakeRoom, NoFewerWouldDo) {
  int made = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    Ground ground;
    for (int i = 0; i < 4; ++i) ground.world.node("n" + std::to_string(i));
    for (int i = 0; i < 14; ++i)
      ground.world.pod("p" + std::to_string(i), "n" + std::to_string(below(4)), Ground::asks(std::to_string(200 + 100 * below(8)) + "m"));
    const PodInfoPtr wanting = ground.waiting("wanting", Ground::asks(std::to_string(2000 + 100 * below(15)) + "m"));
    placement::Trial& trial = ground.ask();
    const std::size_t fewest = fewest_by_search(trial, wanting);
    if (fewest > 2) continue;
    const placement::Attempt attempt(trial);
    const RoomPlan plan = make_room(trial, std::span(&wanting, 1));
    EXPECT_EQ(plan.why_not, "") << seed;
    // Few sets of a node are tried, but those that exist are found in clusters as small as this.
    EXPECT_EQ(plan.moves.size(), fewest) << seed;
    made += fewest > 0;
  }
  EXPECT_GT(made, 10);
}

TEST(Consolidate, TheEmptiestGoFirstAndNoPodMovesTwice) {
  Ground ground;
  for (int i = 0; i < 6; ++i) ground.world.node("n" + std::to_string(i));
  for (int i = 0; i < 6; ++i) ground.world.pods("p" + std::to_string(i), i + 1, "n" + std::to_string(i), Ground::asks("500m"));
  const ConsolidationPlan plan = consolidate(ground.ask());
  // 21 pods of half a CPU: three nodes of eight are needed.
  ASSERT_EQ(plan.emptied.size(), 3U);
  EXPECT_EQ(plan.emptied[0].node, "n0");
  EXPECT_EQ(plan.stays.size(), 3U);
  std::set<std::string> moved, emptied;
  for (const auto& step : plan.emptied) emptied.insert(step.node);
  for (const auto& step : plan.emptied)
    for (const Move& move : step.moves) {
      EXPECT_TRUE(moved.insert(move.pod->key).second) << move.pod->key;
      EXPECT_FALSE(emptied.contains(move.to)) << move.to;
    }
  for (const auto& name : emptied) EXPECT_TRUE(ground.ask().cluster().find_node(name)->pods.empty());
}

TEST(Consolidate, SaysWhatHoldsANode) {
  Ground ground;
  ground.world.node("n1").node("n2").pod("bare", "n1", "{metadata: {ownerReferences: []}}").pod("web", "n2");
  ground.world.pod("daemon", "n2",
                   "{metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]}}");
  const ConsolidationPlan plan = consolidate(ground.ask());
  ASSERT_EQ(plan.emptied.size(), 1U);
  EXPECT_EQ(plan.emptied[0].node, "n2");
  EXPECT_EQ(texts(plan.emptied[0].moves), Names{"web n2->n1"});
  ASSERT_EQ(plan.stays.size(), 1U);
  EXPECT_EQ(plan.stays[0].why, "default/bare: nothing would make it again: it has no controller");
}

TEST(Defragmentation, MovesForPodsThatWaitUnderTheEvictorsRules) {
  const std::string policy = one_plugin("Defragmentation", "{}");
  const std::string waits =
      "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}, status: {phase: Pending, conditions: "
      "[{type: PodScheduled, status: 'False', reason: Unschedulable}]}}";
  World world;
  world.node("n1").node("n2").pods("a", 2, "n1", Ground::asks("1")).pod("b", "n2", Ground::asks("2")).pod("wanting", "", waits);
  std::vector<std::string> nominated;
  world.answer = [&](const Step& step) -> Answer {
    if (step.kind == Step::Kind::kKeepRoom) nominated.push_back(step.removal.pod->view().name() + "@" + step.node);
    return {};
  };
  const CycleResult result = world.run(policy);
  EXPECT_EQ(moves(result), Names{"a-0 n1->n2"});
  EXPECT_EQ(nominated, Names{"wanting@n1"});
  EXPECT_EQ(result.removals.at(0).why, "room for default/wanting");

  World held;
  held.node("n1").node("n2").pods("a", 2, "n1",
                                  "{spec: {priority: 2000000000, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}");
  held.pod("b", "n2", Ground::asks("2", ", metadata: {ownerReferences: []}")).pod("wanting", "", waits);
  const CycleResult none = held.run(policy);
  EXPECT_TRUE(none.removals.empty());
  ASSERT_FALSE(none.notes.empty());
  EXPECT_NE(none.notes[0].find("no room is made for default/wanting"), std::string::npos) << none.notes[0];

  World growing;
  growing.node("n1").node("n2").pods("a", 2, "n1", Ground::asks("1")).pod("b", "n2", Ground::asks("2")).pod("wanting", "", waits);
  growing.options.nodes_are_coming = true;
  const CycleResult later = growing.run(policy);
  EXPECT_TRUE(later.removals.empty());
  ASSERT_FALSE(later.notes.empty());
  EXPECT_EQ(later.notes[0], "no room is made for default/wanting: the autoscaler is adding nodes, which come first");

  World limited;
  limited.node("n1").node("n2").pods("a", 4, "n1", Ground::asks("500m")).pods("b", 4, "n2", Ground::asks("500m")).pod("wanting", "", waits);
  const CycleResult beyond = limited.run(one_plugin("Defragmentation", "{}", "{}", "maxNoOfPodsToEvictPerNode: 1\n"));
  EXPECT_TRUE(beyond.removals.empty());
  ASSERT_FALSE(beyond.notes.empty());
  EXPECT_NE(beyond.notes[0].find("2 pods would have to go, and the limit of a node is 1"), std::string::npos) << beyond.notes[0];
}

}  // namespace
}  // namespace berth::descheduler::test
