// A cycle as it is carried out: tables of what is asked for, what is answered, and what is asked for then.
#include "descheduler/execution.h"

#include <deque>

#include "tests/descheduler/world.h"

namespace berth::descheduler::test {
namespace {

constexpr std::string_view kTainted = "{spec: {taints: [{key: gone, effect: NoSchedule}]}}";
const Answer kYes{}, kNo{Outcome::kProtected, "no"}, kGone{Outcome::kFailed, "pods \"x\" not found"};

std::set<std::string> set_of(const Names& names) { return {names.begin(), names.end()}; }

/// "a-0", or "w@n1" for a room.
std::string name_of(const Step& step) {
  return step.removal.pod->view().name() + (step.kind == Step::Kind::kKeepRoom ? "@" + step.node : "");
}

struct Table {
  World world;
  std::size_t most_in_flight = 16;
  std::string policy_text;

  void begin() {
    world.snapshot().finish();
    profiles.add(*placement::Framework::create(world.profile));
    auto read = parse_policy(policy_text, "p");
    ASSERT_TRUE(read) << read.error().message;
    policy = std::move(*read);
    CycleOptions options = world.options;
    options.now = *parse_rfc3339("2026-01-02T12:00:00Z");
    auto begun = Execution::begin(*policy, world.snapshot(), profiles, options, most_in_flight);
    ASSERT_TRUE(begun) << begun.error().message;
    cycle.emplace(std::move(*begun));
  }
  /// What is asked for now.
  Names due() {
    if (!cycle) begin();
    Names out;
    for (Step& step : cycle->due()) {
      out.push_back(name_of(step));
      on_their_way.emplace(name_of(step), step);
    }
    return out;
  }
  Table& answer(const std::string& name, const Answer& with = kYes) {
    cycle->answered(on_their_way.at(name), with);
    on_their_way.erase(name);
    return *this;
  }
  CycleResult result() {
    EXPECT_TRUE(cycle->is_over());
    return std::move(*cycle).result();
  }

  std::optional<Policy> policy;
  placement::Profiles profiles;
  std::optional<Execution> cycle;
  std::map<std::string, Step> on_their_way;
};

std::string taints(const std::string& top = "") { return one_plugin("RemovePodsViolatingNodeTaints", "{}", "{}", top); }

/// Five pods that have to go, and room for all.
Table five(const std::string& top = "", std::size_t most_in_flight = 2) {
  Table out;
  out.world.node("old", kTainted).node("new").pods("a", 5, "old");
  out.policy_text = taints(top);
  out.most_in_flight = most_in_flight;
  return out;
}

TEST(Execution, AsksForAsManyAsMayBeOnTheirWay) {
  Table table = five();
  EXPECT_EQ(table.due(), (Names{"a-0", "a-1"}));
  EXPECT_EQ(table.due(), Names{});
  table.answer("a-1");
  EXPECT_EQ(table.due(), Names{"a-2"});
  table.answer("a-0").answer("a-2");
  EXPECT_EQ(table.due(), (Names{"a-3", "a-4"}));
  EXPECT_FALSE(table.cycle->is_over());
  table.answer("a-3").answer("a-4");
  EXPECT_EQ(evicted(table.result()), (Names{"a-0", "a-1", "a-2", "a-3", "a-4"}));
}

TEST(Execution, AfterARefusalNoMoreIsAskedForUntilAllIsAnswered) {
  Table table = five();
  EXPECT_EQ(table.due(), (Names{"a-0", "a-1"}));
  table.answer("a-0", kNo);
  EXPECT_EQ(table.due(), Names{}) << "what follows counted on it";
  table.answer("a-1");
  EXPECT_EQ(table.due(), (Names{"a-2", "a-3"})) << "who was refused is not asked for again";
  table.answer("a-2").answer("a-3");
  EXPECT_EQ(table.due(), Names{"a-4"});
  table.answer("a-4");
  const CycleResult result = table.result();
  EXPECT_EQ(evicted(result), (Names{"a-1", "a-2", "a-3", "a-4"}));
  EXPECT_EQ(kept_because(result, "a-0"), "no");
}

TEST(Execution, WhatIsRefusedCountsForNoLimit) {
  for (const char* limit : {"maxNoOfPodsToEvictPerNamespace", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictTotal"}) {
    Table table = five(std::string(limit) + ": 2\n");
    EXPECT_EQ(table.due(), (Names{"a-0", "a-1"})) << limit;
    table.answer("a-0", kNo).answer("a-1", kNo);
    EXPECT_EQ(table.due(), (Names{"a-2", "a-3"})) << limit << ": both are given back";
    table.answer("a-2", kNo).answer("a-3");
    EXPECT_EQ(table.due(), Names{"a-4"}) << limit << ": one is";
    table.answer("a-4");
    const CycleResult result = table.result();
    EXPECT_EQ(evicted(result), (Names{"a-3", "a-4"})) << limit;
    EXPECT_EQ(result.removals.size(), 5U);
  }
}

TEST(Execution, WhatIsOnItsWayCountsForTheLimits) {
  Table table = five("maxNoOfPodsToEvictTotal: 3\n", 3);
  EXPECT_EQ(table.due(), (Names{"a-0", "a-1", "a-2"}));
  table.answer("a-1", kNo).answer("a-2").answer("a-0");
  EXPECT_EQ(table.due(), Names{"a-3"});
  table.answer("a-3");
  EXPECT_EQ(evicted(table.result()).size(), 3U);
}

TEST(Execution, TheNextCycleKnowsNothingOfRefusalsAndLimits) {
  Table table = five("maxNoOfPodsToEvictPerNode: 1\n");
  for (const bool is_refused : {true, false}) {
    table.cycle.reset();
    EXPECT_EQ(table.due(), Names{"a-0"});
    table.answer("a-0", is_refused ? kNo : kYes);
    EXPECT_EQ(table.due(), is_refused ? Names{"a-1"} : Names{});
    if (is_refused) table.answer("a-1");
  }
}

TEST(Execution, APlaceThatARefusalLeavesFreeIsOthers) {
  Table table;
  table.world.node("old", kTainted).node("new", "{status: {allocatable: {pods: '1'}}}").pods("a", 3, "old");
  table.policy_text = taints();
  EXPECT_EQ(table.due(), Names{"a-0"}) << "there is one place";
  table.answer("a-0", kGone);
  EXPECT_EQ(table.due(), Names{"a-1"});
  table.answer("a-1");
  const CycleResult result = table.result();
  EXPECT_EQ(moves(result), Names{"a-1 old->new"});
  EXPECT_EQ(kept_because(result, "a-0"), kGone.message);
  EXPECT_NE(kept_because(result, "a-2").find("fit nowhere"), std::string::npos);
}

TEST(Execution, ABudgetThatTheServerSaysIsUsedUpIsAskedOfNobodyElse) {
  for (const Answer& refusal : {kNo, kGone}) {
    Table table = five();
    table.world.add(
        "{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: b, namespace: default}, spec: {selector: {matchLabels: {app: "
        "web}}}, status: {disruptionsAllowed: 1, currentHealthy: 5, desiredHealthy: 4}}");
    EXPECT_EQ(table.due(), Names{"a-0"});
    table.answer("a-0", refusal);
    EXPECT_EQ(table.due(), refusal.outcome == Outcome::kProtected ? Names{} : Names{"a-1"}) << "a pod that is gone used no leave";
  }
}

TEST(Execution, OnceStoppedNothingIsAskedForAndWhatIsOnItsWayIsAnswered) {
  Table table = five();
  EXPECT_EQ(table.due(), (Names{"a-0", "a-1"}));
  table.cycle->stop();
  EXPECT_FALSE(table.cycle->is_over());
  table.answer("a-0", kNo);
  EXPECT_EQ(table.due(), Names{});
  table.answer("a-1");
  EXPECT_EQ(table.due(), Names{});
  const CycleResult result = table.result();
  EXPECT_EQ(evicted(result), Names{"a-1"});
  EXPECT_EQ(kept_because(result, "a-0"), "no");
  EXPECT_EQ(result.removals.size(), 2U) << "of those that were never asked for nothing came";
}

TEST(Execution, AStrategyWaitsForTheOneBeforeIt) {
  Table table;
  table.world.node("old", kTainted).node("new").pods("a", 1, "old");
  table.world.pod("f", "new", "{status: {phase: Failed}}");
  table.policy_text =
      "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: p\n  pluginConfig: [{name: RemoveFailedPods}, {name: "
      "RemovePodsViolatingNodeTaints}]\n  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints, RemoveFailedPods]}}\n";
  EXPECT_EQ(table.due(), Names{"a-0"});
  table.answer("a-0");
  EXPECT_EQ(table.due(), Names{"f"});
}

/// However many are refused, each is asked for once, and a plan looks no further ahead than it must.
TEST(Execution, ManyRefusalsEndAndEachIsAskedForOnce) {
  Table table;
  table.world.node("old", "{spec: {taints: [{key: gone, effect: NoSchedule}]}, status: {allocatable: {cpu: '100', pods: '300'}}}");
  table.world.node("new", "{status: {allocatable: {cpu: '100', memory: 100Gi, pods: '300'}}}").pods("a", 200, "old");
  table.policy_text = taints();
  std::set<std::string> asked;
  for (Names due = table.due(); !due.empty(); due = table.due())
    for (const std::string& name : due) {
      EXPECT_TRUE(asked.insert(name).second) << name;
      table.answer(name, asked.size() % 3 == 0 ? kYes : kNo);
    }
  EXPECT_EQ(asked.size(), 200U);
  EXPECT_EQ(table.result().evicted(), 66U);
}

TEST(Execution, TheRestOfACutPlanFollows) {
  Table table = five("", 16);
  table.world.options.most_new = 2;
  EXPECT_EQ(table.due(), (Names{"a-0", "a-1"}));
  table.answer("a-0").answer("a-1");
  EXPECT_EQ(table.due(), (Names{"a-2", "a-3", "a-4"})) << "twice as far";
  for (const char* name : {"a-2", "a-3", "a-4"}) table.answer(name);
  EXPECT_EQ(table.result().evicted(), 5U);
}

// Rooms: without all that make it none is of use.

constexpr std::string_view kWaits =
    "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}, status: {phase: Pending, conditions: "
    "[{type: PodScheduled, status: 'False', reason: Unschedulable}]}}";

std::string asks(const std::string& cpu) {
  return "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: " + cpu + "}}}]}}";
}

/// Three cores are wanted; n1 and n2 have two free each, of pods of half a core.
Table room() {
  Table out;
  out.world.node("n1").node("n2").pods("a", 4, "n1", asks("500m")).pods("b", 4, "n2", asks("500m")).pod("w", "", kWaits);
  out.policy_text = one_plugin("Defragmentation", "{}");
  return out;
}

TEST(Execution, ARoomIsKeptBeforeAnybodyGoesForItOneByOne) {
  Table table = room();
  EXPECT_EQ(table.due(), Names{"w@n1"});
  table.answer("w@n1");
  EXPECT_EQ(table.due(), Names{"a-0"});
  table.answer("a-0");
  EXPECT_EQ(table.due(), Names{"a-1"});
  table.answer("a-1");
  EXPECT_EQ(table.due(), Names{});
  EXPECT_EQ(moves(table.result()), (Names{"a-0 n1->n2", "a-1 n1->n2"}));
}

TEST(Execution, ARoomThatCannotBeKeptIsNotMade) {
  Table table = room();
  EXPECT_EQ(table.due(), Names{"w@n1"});
  table.answer("w@n1", kGone);
  EXPECT_EQ(table.due(), Names{});
  const CycleResult result = table.result();
  EXPECT_EQ(result.evicted(), 0U);
  EXPECT_EQ(result.notes, Names{"no room is made for default/w: the room on n1 cannot be kept for default/w: pods \"x\" not found"});
}

TEST(Execution, WhereOneCannotGoAnotherGoesForTheRoom) {
  Table table = room();
  EXPECT_EQ(table.due(), Names{"w@n1"});
  table.answer("w@n1");
  EXPECT_EQ(table.due(), Names{"a-0"});
  table.answer("a-0");
  EXPECT_EQ(table.due(), Names{"a-1"});
  table.answer("a-1", kNo);
  EXPECT_EQ(table.due(), Names{"a-2"}) << "the room is kept already, and one has gone for it";
  table.answer("a-2", kNo);
  EXPECT_EQ(table.due(), Names{"a-3"});
  table.answer("a-3");
  EXPECT_EQ(table.due(), Names{});
  const CycleResult result = table.result();
  EXPECT_EQ(set_of(evicted(result)), (std::set<std::string>{"a-0", "a-3"}));
  EXPECT_EQ(kept_because(result, "a-1"), "no");
}

}  // namespace
}  // namespace berth::descheduler::test
