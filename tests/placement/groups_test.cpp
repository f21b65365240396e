// Groups of pods beyond the greedy order: what is found, in which domain, and who goes for it (docs/gangs.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "placement/attempt.h"
#include "placement/groups/group_levels.h"
#include "placement/groups/group_reservation.h"
#include "tests/placement/groups_world.h"

namespace berth::placement {
namespace {

using testing::gang_of;
using testing::GroupWorld;
using testing::places;
using testing::PodSpec;
using Places = std::vector<std::string>;

struct Dice {
  std::mt19937 random;
  std::int64_t roll(std::int64_t from, std::int64_t to) { return std::uniform_int_distribution<std::int64_t>(from, to)(random); }
};

/// The most members that have a place at once, by trying everything.
std::int64_t most_by_brute_force(Trial& trial, const std::vector<PodInfoPtr>& members, std::size_t at = 0) {
  if (at == members.size()) return 0;
  std::int64_t best = most_by_brute_force(trial, members, at + 1);
  for (const NodeInfo* node : trial.cluster().nodes()) {
    const NodeIndex index = node->index;
    if (best == std::ssize(members) - static_cast<std::int64_t>(at)) break;
    if (!trial.fits(members[at], index).is_success()) continue;
    Attempt attempt(trial);
    if (!trial.reserve(members[at], index)) continue;
    best = std::max(best, 1 + most_by_brute_force(trial, members, at + 1));
  }
  return best;
}

/// What is wrong with the places once all of them are taken.
std::string judge(Trial& trial, const std::vector<PodInfoPtr>& members, const GroupDecision& decision, const PodGroup& group) {
  Attempt attempt(trial);
  std::set<std::string> domains;
  for (std::size_t i = 0; i < decision.members.size(); ++i) {
    if (!decision.members[i].has_place()) continue;
    const NodeIndex node = decision.members[i].decision.node;
    if (!trial.reserve(members[i], node)) return "cannot be reserved";
    const NodeInfo& info = *trial.cluster().node(node);
    if (info.requested.cpu_milli > info.allocatable.cpu_milli) return "more on " + info.name + " than it has";
    if (!group.topology_key.empty()) domains.insert(*info.label(group.topology_key));
  }
  if (decision.outcome == GroupDecision::Outcome::kScheduled && decision.placed_count() < group.min_count) return "half a gang";
  return domains.size() > 1 ? "in two domains" : "";
}

TEST(GroupSearch, FindsWhatBruteForceFindsAndIsNeverWorseThanGreedy) {
  std::size_t searched = 0;
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    Dice dice{std::mt19937(seed)};
    GroupWorld world;
    const std::int64_t nodes = dice.roll(1, 4);
    for (std::int64_t i = 0; i < nodes; ++i)
      world.node(fmt::format("n{}", i), dice.roll(1, 6), {{"kind", dice.roll(0, 1) == 0 ? "a" : "b"}, {"zone", fmt::format("z{}", i / 2)}});
    std::vector<PodInfoPtr> members;
    const std::int64_t count = dice.roll(2, 5);
    const bool is_apart = dice.roll(0, 3) == 0;
    for (std::int64_t i = 0; i < count; ++i)
      members.push_back(
          GroupWorld::make(fmt::format("m{}", i), {.cpu = dice.roll(1, 4),
                                                   .selects = dice.roll(0, 2) == 0 ? "a" : "",
                                                   .apart_by = is_apart && dice.roll(0, 1) == 0 ? "kubernetes.io/hostname" : ""}));
    const bool by_zone = dice.roll(0, 2) == 0;
    const PodGroup group =
        gang_of(dice.roll(1, count), by_zone ? std::vector<TopologyLevel>{{"zone", true}} : std::vector<TopologyLevel>());
    Trial trial = world.trial();
    const GroupDecision exact = decide_group(trial, {.group = &group, .members = members, .standing = {}});
    const GroupDecision greedy = decide_group(trial, {.group = &group, .members = members, .standing = {}, .as_kubernetes = true});
    ASSERT_EQ(judge(trial, members, exact, group), "") << "seed " << seed;
    if (greedy.outcome == GroupDecision::Outcome::kScheduled) {
      ASSERT_EQ(exact.outcome, GroupDecision::Outcome::kScheduled) << "seed " << seed;
      ASSERT_GE(exact.placed_count(), greedy.placed_count()) << "seed " << seed;
    }
    searched += exact.was_searched ? 1 : 0;
    std::int64_t most = 0;
    if (by_zone) {
      auto domains = group_domains(world.cluster, {.group = &group, .members = members, .standing = {}}, group.levels);
      for (const GroupDomain& domain : *domains) {
        Trial there = trial.within(domain.nodes);
        most = std::max(most, most_by_brute_force(there, members));
      }
    } else {
      most = most_by_brute_force(trial, members);
    }
    ASSERT_EQ(exact.outcome == GroupDecision::Outcome::kScheduled, most >= group.min_count) << "seed " << seed;
  }
  EXPECT_GE(searched, 15U);
}

TEST(GroupSearch, AKindThatFewNodesTakeIsNotLeftOut) {
  GroupWorld world;
  world.node("n1", 4, {{"kind", "a"}});
  world.node("n2", 4);
  // Greedily the two that may go anywhere take n1 and n2, or one each, and no four processors are left on n1.
  std::vector<PodInfoPtr> members = {GroupWorld::make("m0", {.cpu = 2}), GroupWorld::make("m1", {.cpu = 2}),
                                     GroupWorld::make("m2", {.cpu = 4, .selects = "a"})};
  const PodGroup group = gang_of(3);
  Trial trial = world.trial();
  EXPECT_EQ(decide_group(trial, {.group = &group, .members = members, .standing = {}, .as_kubernetes = true}).outcome,
            GroupDecision::Outcome::kUnschedulable);
  const GroupDecision exact = decide_group(trial, {.group = &group, .members = members, .standing = {}});
  EXPECT_TRUE(exact.was_searched);
  EXPECT_EQ(places(trial, exact), (Places{"n2", "n2", "n1"}));
}

/// Room is looked for with as much search as the question has, and no more.
TEST(GroupReservations, WithoutStepsRoomIsLookedForGreedily) {
  GroupWorld world;
  world.node("n1", 4, {{"kind", "a"}});
  world.node("n2", 4);
  world.running("there", {.cpu = 4, .priority = 9, .node = "n2", .started_s = 5});
  std::vector<PodInfoPtr> members = {GroupWorld::make("m0", {.cpu = 2}), GroupWorld::make("m1", {.cpu = 2}),
                                     GroupWorld::make("m2", {.cpu = 4, .selects = "a"})};
  const PodGroup group = gang_of(3);
  Trial trial = world.trial();
  const auto plan = [&](std::size_t steps) {
    return plan_reservation(trial, {.group = &group, .members = members, .standing = {}, .search_steps = steps},
                            [](const PodInfo&) { return std::optional(*parse_rfc3339("2026-01-02T00:00:00Z")); });
  };
  EXPECT_FALSE(plan(0));
  const auto found = plan(kGroupSearchSteps);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->in_the_way, 1U);
  EXPECT_EQ(found->starts_at, parse_rfc3339("2026-01-02T00:00:00Z"));
}

TEST(GroupSearch, WithoutStepsItIsGreedy) {
  GroupWorld world;
  world.node("n1", 4, {{"kind", "a"}});
  world.node("n2", 4);
  std::vector<PodInfoPtr> members = {GroupWorld::make("m0", {.cpu = 2}), GroupWorld::make("m1", {.cpu = 2}),
                                     GroupWorld::make("m2", {.cpu = 4, .selects = "a"})};
  const PodGroup group = gang_of(3);
  Trial trial = world.trial();
  EXPECT_EQ(decide_group(trial, {.group = &group, .members = members, .standing = {}, .search_steps = 0}).outcome,
            GroupDecision::Outcome::kUnschedulable);
}

TEST(GroupLevels, TheSmallestHoleThatTakesAllIsTaken) {
  GroupWorld world;
  for (const auto& [rack, cpu] : std::map<std::string, std::int64_t>{{"r1", 8}, {"r2", 3}, {"r3", 5}, {"r4", 5}})
    world.node("n-" + rack, cpu, {{"rack", rack}});
  std::vector<PodInfoPtr> members;
  for (int i = 0; i < 4; ++i) members.push_back(GroupWorld::make(fmt::format("m{}", i), {}));
  const PodGroup group = gang_of(4, {{"rack", true}});
  Trial trial = world.trial();
  const GroupDecision decision = decide_group(trial, {.group = &group, .members = members, .standing = {}});
  EXPECT_EQ(decision.domain, "r3");  // Not r4, which is as good: by name.
}

TEST(GroupLevels, AZoneIsRequiredAndARackPreferred) {
  GroupWorld world;
  for (const char* rack : {"r1", "r2", "r3"})
    for (int i = 0; i < 2; ++i)
      world.node(fmt::format("{}-n{}", rack, i), 2, {{"zone", std::string_view(rack) == "r3" ? "z2" : "z1"}, {"rack", rack}});
  const PodGroup group = gang_of(2, {{"zone", true}, {"rack", false}});
  Trial trial = world.trial();
  const auto ask = [&](int count) {
    std::vector<PodInfoPtr> members;
    // Ranks come in any order.
    for (int i = 0; i < count; ++i) members.push_back(GroupWorld::make(fmt::format("m{}", i), {.rank = (i * 5) % count}));
    return std::pair(members, decide_group(trial, {.group = &group, .members = members, .standing = {}}));
  };
  EXPECT_EQ(ask(4).second.domain, "z1/r1");
  const auto [members, wide] = ask(7);
  EXPECT_EQ(wide.domain, "z1");
  EXPECT_EQ(wide.placed_count(), 7);
  std::map<std::int64_t, std::string> rack_of_rank;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const NodeIndex node = wide.members[i].decision.node;
    rack_of_rank[rank_of(*members[i])] = *world.cluster.node(node)->label("rack");
  }
  Places racks;
  for (const auto& [rank, rack] : rack_of_rank) racks.push_back(rack);
  EXPECT_EQ(racks, (Places{"r1", "r1", "r1", "r1", "r2", "r2", "r2"}));
}

TEST(GroupLevels, ARankIsWhatTheJobsControllerSays) {
  constexpr const char* kIndex = "batch.kubernetes.io/job-completion-index";
  const auto rank = [&](const char* annotation, const char* label) {
    auto view = std::make_shared<model::PodView>();
    if (annotation != nullptr) view->meta.annotations = {{kIndex, annotation}};
    if (label != nullptr) view->meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{kIndex, label}});
    return rank_of(*PodInfo::make(std::move(view), Era::k136));
  };
  EXPECT_EQ(rank("3", nullptr), 3);
  EXPECT_EQ(rank(nullptr, "4"), 4);
  EXPECT_EQ(rank("3", "4"), 3);
  EXPECT_EQ(rank("0", nullptr), 0);
  for (const char* none : {static_cast<const char*>(nullptr), "", "x", "99999999999999999999"}) EXPECT_EQ(rank(none, nullptr), INT64_MAX);
}

TEST(GroupLevels, BothLevelsAreRequired) {
  GroupWorld world;
  world.node("n1", 2, {{"zone", "z1"}, {"rack", "r1"}});
  world.node("n2", 2, {{"zone", "z2"}, {"rack", "r1"}});  // The same name of a rack, in another zone.
  std::vector<PodInfoPtr> members;
  for (int i = 0; i < 3; ++i) members.push_back(GroupWorld::make(fmt::format("m{}", i), {}));
  Trial trial = world.trial();
  const PodGroup by_rack = gang_of(3, {{"rack", true}}), by_both = gang_of(3, {{"zone", true}, {"rack", true}});
  EXPECT_EQ(decide_group(trial, {.group = &by_rack, .members = members, .standing = {}}).outcome, GroupDecision::Outcome::kScheduled);
  EXPECT_EQ(decide_group(trial, {.group = &by_both, .members = members, .standing = {}}).outcome, GroupDecision::Outcome::kUnschedulable);
}

TEST(GroupLevels, AnnotationsAddLevelsAndMistakesAreTold) {
  const auto parse = [](const std::string& required, const std::string& preferred) {
    json::Value object{{"metadata", {{"name", "g"}, {"namespace", "default"}, {"annotations", json::Object()}}},
                       {"spec", {{"schedulingConstraints", {{"topology", json::Array{json::Object{{"key", "zone"}}}}}}}}};
    auto& annotations = json::find(object, {"metadata", "annotations"})->get_object();
    if (!required.empty()) annotations[kRequiredTopology] = required;
    if (!preferred.empty()) annotations[kPreferredTopology] = preferred;
    return PodGroup::parse(object);
  };
  EXPECT_EQ(parse("", "").levels, (std::vector<TopologyLevel>{{"zone", true}}));
  EXPECT_EQ(parse("zone, block", "rack").levels, (std::vector<TopologyLevel>{{"zone", true}, {"block", true}, {"rack", false}}));
  EXPECT_EQ(parse("block", "").levels, (std::vector<TopologyLevel>{{"block", true}, {"zone", true}}));
  EXPECT_EQ(parse("zone", "").mistake, "");
  EXPECT_NE(parse("zone,,rack", "").mistake.find("required-topology]: \"zone,,rack\": a key is empty"), std::string::npos);
  EXPECT_NE(parse("", "not a key").mistake.find("preferred-topology]: \"not a key\": name part must consist of"), std::string::npos);
  EXPECT_NE(parse("", "zone").mistake.find("the key zone is named twice"), std::string::npos);
}

TEST(PodGroups, WhatAGroupAsksForIsReadFieldByField) {
  const auto parse = [](const std::string& yaml) { return PodGroup::parse(*json::parse_yaml("--- " + yaml)); };
  const PodGroup all = parse(
      "{metadata: {name: g, namespace: ns, uid: u, creationTimestamp: t}, spec: {priority: 7, disruptionMode: PodGroup, schedulingPolicy: "
      "{gang: {minCount: 3}}, schedulingConstraints: {topology: [{key: rack}, {key: zone}]}, resourceClaims: [{name: a, resourceClaimName: "
      "b, resourceClaimTemplateName: c}]}}");
  EXPECT_EQ(all.key(), "ns/g");
  EXPECT_EQ(all.uid, "u");
  EXPECT_EQ(all.created, "t");
  EXPECT_EQ(all.priority, 7);
  EXPECT_TRUE(all.goes_as_one && all.is_gang && all.has_constraints);
  EXPECT_EQ(all.min_count, 3);
  EXPECT_EQ(all.topology_key, "rack") << "the first";
  ASSERT_EQ(all.claims.size(), 1U);
  const PodGroup none = parse("{metadata: {name: g}, spec: {disruptionMode: Pod, schedulingPolicy: {gang: {}}}}");
  EXPECT_FALSE(none.goes_as_one || none.has_constraints);
  EXPECT_EQ(none.min_count, 1);
  EXPECT_FALSE(parse("{spec: {schedulingPolicy: {basic: {}}}}").is_gang);
}

TEST(PodGroups, AskTheSameUnlessOneThingIsAnother) {
  const PodGroup group = gang_of(3, {{"rack", true}}, 10);
  EXPECT_TRUE(group.asks_the_same(group));
  const std::pair<const char*, void (*)(PodGroup&)> changes[] = {
      {"uid", [](auto& g) { g.uid = "other"; }},     {"gang", [](auto& g) { g.is_gang = !g.is_gang; }},
      {"count", [](auto& g) { ++g.min_count; }},     {"key", [](auto& g) { g.topology_key = "zone"; }},
      {"levels", [](auto& g) { g.levels.clear(); }}, {"mistake", [](auto& g) { g.mistake = "m"; }},
      {"priority", [](auto& g) { ++g.priority; }}};
  for (const auto& [what, change] : changes) {
    PodGroup other = group;
    change(other);
    EXPECT_FALSE(group.asks_the_same(other)) << what;
    EXPECT_FALSE(other.asks_the_same(group)) << what;
  }
  PodGroup renamed = group;
  renamed.claims.push_back({"a", "b", "c"});
  EXPECT_TRUE(group.asks_the_same(renamed)) << "what is not asked for";
}

TEST(PodGroups, MembersComeAndGo) {
  PodGroups groups;
  EXPECT_TRUE(groups.add_member("ns/g", {"u1", "ns/a"}));
  EXPECT_FALSE(groups.add_member("ns/g", {"u1", "ns/a"}));
  EXPECT_TRUE(groups.add_member("ns/g", {"u2", "ns/b"}));
  EXPECT_EQ(groups.count("ns/g"), 2U);
  EXPECT_EQ(groups.group_of("u2"), "ns/g");
  EXPECT_FALSE(groups.remove_member("ns/other", "u1"));
  EXPECT_FALSE(groups.remove_member("ns/g", "u3"));
  EXPECT_TRUE(groups.remove_member("ns/g", "u1"));
  EXPECT_EQ(groups.group_of("u1"), "");
  EXPECT_FALSE(groups.remove_member("ns/g", "u1"));
  EXPECT_TRUE(groups.add_member("ns/g", {"u1", "ns/a"}));
  std::string order;
  for (const auto& one : groups.members("ns/g")) order += one.uid + " ";
  EXPECT_EQ(order, "u2 u1 ") << "by arrival";
  groups.remove_member("ns/g", "u1");
  groups.remove_member("ns/g", "u2");
  EXPECT_EQ(groups.count("ns/g"), 0U);
  EXPECT_TRUE(groups.members("ns/g").empty());
}

/// Names, and what else of the answer must agree.
std::string told(const GroupVictims& found) {
  std::string out = found.status.is_success() ? fmt::format("{} broken:", found.budget_violations) : found.status.message();
  for (const PodInfoPtr& pod : found.victims) out += " " + pod->view().meta.name;
  return out + " in " + found.decision.domain;
}

TEST(GroupPreemption, SumsSayWhatTheEngineSaysStepByStep) {
  std::size_t helped = 0, whole = 0;
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    Dice dice{std::mt19937(seed)};
    GroupWorld world;
    const std::int64_t nodes = dice.roll(1, 8);
    for (std::int64_t i = 0; i < nodes; ++i)
      world.node(fmt::format("n{}", i), dice.roll(2, 8), {{"kind", dice.roll(0, 2) == 0 ? "a" : "b"}, {"rack", fmt::format("r{}", i / 2)}});
    for (std::int64_t i = 0; i < 4; ++i) {
      auto group = std::make_shared<PodGroup>(gang_of(1));
      group->name = fmt::format("g{}", i);
      group->goes_as_one = i % 2 == 0;
      group->priority = dice.roll(0, 3);
      world.groups.upsert(group);
    }
    for (std::int64_t i = 0; i < nodes * 4; ++i) {
      const std::string node = fmt::format("n{}", dice.roll(0, nodes - 1));
      const NodeInfo& info = *world.cluster.find_node(node);
      const std::int64_t cpu = dice.roll(1, 3);
      if (info.requested.cpu_milli + cpu * 1000 > info.allocatable.cpu_milli) continue;
      world.running(
          fmt::format("p{}", i),
          {.cpu = cpu, .priority = dice.roll(0, 3), .node = node, .started_s = dice.roll(0, 4), .label = dice.roll(0, 1) == 0 ? "x" : "y"},
          dice.roll(0, 2) == 0 ? fmt::format("g{}", dice.roll(0, 3)) : "");
    }
    if (dice.roll(0, 1) == 0) {
      auto budget = std::make_shared<model::PodDisruptionBudgetView>();
      budget->meta.ns = "default";
      budget->meta.name = "budget";
      const json::Value labels{{"app", "x"}};
      budget->selector = model::Selector::from_map(&labels);
      budget->disruptions_allowed = dice.roll(0, 2);
      world.cluster.upsert(std::shared_ptr<const model::PodDisruptionBudgetView>(budget));
    }
    const std::int64_t kinds = dice.roll(1, 2), count = dice.roll(2, 6);
    std::vector<PodInfoPtr> members;
    for (std::int64_t i = 0; i < count; ++i)
      members.push_back(GroupWorld::make(
          fmt::format("m{}", i), {.cpu = 1 + i % kinds, .priority = 2, .selects = kinds == 2 && i % 2 == 1 && seed % 3 == 0 ? "a" : ""}));
    const bool by_rack = dice.roll(0, 1) == 0;
    const PodGroup group =
        gang_of(dice.roll(1, count), by_rack ? std::vector<TopologyLevel>{{"rack", true}} : std::vector<TopologyLevel>(), 2);
    const GroupQuestion question{.group = &group,
                                 .members = members,
                                 .standing = {},
                                 .as_kubernetes = !by_rack && dice.roll(0, 1) == 0,
                                 .budgets_are_hard = dice.roll(0, 3) == 0};
    Trial trial = world.trial();
    const std::size_t pods = world.cluster.pod_count();
    const GroupVictims fast = find_group_victims(trial, question, world.groups);
    const GroupVictims plain = find_group_victims_plainly(trial, question, world.groups);
    ASSERT_EQ(told(fast), told(plain)) << "seed " << seed;
    ASSERT_EQ(world.cluster.pod_count(), pods) << "seed " << seed;
    if (!fast.status.is_success()) continue;
    ++helped;
    Attempt attempt(trial);
    for (const PodInfoPtr& pod : fast.victims) {
      ASSERT_LT(pod->view().priority, 4);
      whole += world.groups.group_of(pod->view().meta.uid).empty() ? 0 : 1;
      (void)trial.evict(pod);
    }
    ASSERT_TRUE(!question.budgets_are_hard || fast.budget_violations == 0U) << "seed " << seed;
    ASSERT_EQ(judge(trial, members, fast.decision, group), "") << "seed " << seed;
    ASSERT_EQ(decide_group(trial, question).outcome, GroupDecision::Outcome::kScheduled) << "seed " << seed;
  }
  EXPECT_GE(helped, 100U);
  EXPECT_GE(whole, 30U);
}

TEST(GroupPreemption, TheRackThatLosesLeastIsTaken) {
  GroupWorld world;
  for (const char* rack : {"r1", "r2", "r3"}) world.node(fmt::format("n-{}", rack), 4, {{"rack", rack}});
  world.running("a", {.cpu = 4, .priority = 5, .node = "n-r1"});
  world.running("b1", {.cpu = 2, .priority = 1, .node = "n-r2"});
  world.running("b2", {.cpu = 2, .priority = 1, .node = "n-r2"});
  world.running("c", {.cpu = 4, .priority = 1, .node = "n-r3"});
  std::vector<PodInfoPtr> members;
  for (int i = 0; i < 4; ++i) members.push_back(GroupWorld::make(fmt::format("m{}", i), {.priority = 10}));
  const PodGroup group = gang_of(4, {{"rack", true}}, 10);
  Trial trial = world.trial();
  const GroupQuestion question{.group = &group, .members = members, .standing = {}};
  EXPECT_EQ(told(find_group_victims(trial, question, world.groups)), "0 broken: c in r3");
  GroupQuestion real = question;
  real.as_kubernetes = true;
  EXPECT_EQ(find_group_victims(trial, real, world.groups).status.message(),
            "workload aware preemption is not supported for pod groups with scheduling constraints");
}

/// The small member first takes the large node; who looks further leaves it to the large one.
TEST(GroupPreemption, AsKubernetesEachChoosesInItsTurn) {
  GroupWorld world;
  world.node("large", 4);
  world.node("small", 2);
  world.running("a", {.cpu = 4, .priority = 1, .node = "large"});
  world.running("b", {.cpu = 2, .priority = 1, .node = "small"});
  const std::vector<PodInfoPtr> members = {GroupWorld::make("m0", {.cpu = 2, .priority = 10}),
                                           GroupWorld::make("m1", {.cpu = 4, .priority = 10})};
  const PodGroup group = gang_of(2, {}, 10);
  Trial trial = world.trial();
  GroupQuestion question{.group = &group, .members = members, .standing = {}};
  EXPECT_TRUE(find_group_victims(trial, question, world.groups).status.is_success());
  question.as_kubernetes = true;
  EXPECT_FALSE(find_group_victims(trial, question, world.groups).status.is_success());
}

TEST(GroupPreemption, ARackWithoutBrokenBudgetsGoesBeforeOneWithLowerPods) {
  GroupWorld world;
  for (const char* rack : {"r1", "r2"}) world.node(fmt::format("n-{}", rack), 4, {{"rack", rack}});
  world.running("kept", {.cpu = 4, .priority = 0, .node = "n-r1", .label = "x"});
  world.running("free", {.cpu = 4, .priority = 7, .node = "n-r2"});
  auto budget = std::make_shared<model::PodDisruptionBudgetView>();
  budget->meta.ns = "default";
  budget->meta.name = "budget";
  const json::Value labels{{"app", "x"}};
  budget->selector = model::Selector::from_map(&labels);
  world.cluster.upsert(std::shared_ptr<const model::PodDisruptionBudgetView>(budget));
  std::vector<PodInfoPtr> members;
  for (int i = 0; i < 4; ++i) members.push_back(GroupWorld::make(fmt::format("m{}", i), {.priority = 10}));
  const PodGroup group = gang_of(4, {{"rack", true}}, 10);
  Trial trial = world.trial();
  EXPECT_EQ(told(find_group_victims(trial, {.group = &group, .members = members, .standing = {}}, world.groups)), "0 broken: free in r2");
}

TEST(GroupPreemption, AGroupThatGoesAsOneGoesWhereverItsPodsAre) {
  GroupWorld world;
  for (const char* rack : {"r1", "r2"}) world.node(fmt::format("n-{}", rack), 4, {{"rack", rack}});
  auto one = std::make_shared<PodGroup>(gang_of(2));
  one->name = "whole";
  one->goes_as_one = true;
  world.groups.upsert(one);
  world.running("w1", {.cpu = 4, .node = "n-r1"}, "whole");
  world.running("w2", {.cpu = 1, .node = "n-r2"}, "whole");
  world.running("rest", {.cpu = 3, .priority = 20, .node = "n-r2"});
  std::vector<PodInfoPtr> members;
  for (int i = 0; i < 4; ++i) members.push_back(GroupWorld::make(fmt::format("m{}", i), {.priority = 10}));
  const PodGroup group = gang_of(4, {{"rack", true}}, 10);
  Trial trial = world.trial();
  EXPECT_EQ(told(find_group_victims(trial, {.group = &group, .members = members, .standing = {}}, world.groups)), "0 broken: w1 w2 in r1");
}

}  // namespace
}  // namespace berth::placement
