// Why a gang waits, and what would place it: each answer is held against the cluster changed so.
#include "placement/groups/group_explain.h"

#include <gtest/gtest.h>

#include "tests/placement/groups_world.h"

namespace berth::placement::testing {
namespace {

struct Explained : GroupWorld {
  GroupExplanation explain(const PodGroup& group, std::vector<PodInfoPtr> waiting) {
    groups.upsert(std::make_shared<const PodGroup>(group));
    Trial over = trial();
    return explain_group(over, groups, {.group = groups.find(group.key()), .waiting = std::move(waiting)});
  }
  static std::vector<PodInfoPtr> pods(std::size_t count, std::int64_t cpu) {
    std::vector<PodInfoPtr> out;
    for (std::size_t i = 0; i < count; ++i) out.push_back(make(fmt::format("w{}", i), {.cpu = cpu}));
    return out;
  }
  static const TopologyLevel kRack;
};
const TopologyLevel Explained::kRack{"rack", true};

using Verdict = GroupExplanation::Verdict;

TEST(GroupExplain, WhichMemberStopsItAndWhichDomainIsNearest) {
  Explained world;
  for (const char* name : {"a1", "a2"}) world.node(name, 4, {{"rack", "a"}});
  for (const char* name : {"b1", "b2", "b3"}) world.node(name, 4, {{"rack", "b"}});
  world.running("there", {.cpu = 2, .node = "b1"});
  const auto found = world.explain(gang_of(4, {Explained::kRack}), Explained::pods(4, 3));
  EXPECT_EQ(found.verdict, Verdict::kPending);
  EXPECT_EQ(found.summary, "default/gang fits nowhere: of the 4 pods that it needs 2 find a place in the nearest domain, rack=a");
  ASSERT_EQ(found.domains.size(), 2U);
  EXPECT_EQ(found.domains[1].name, "b");
  EXPECT_EQ(found.domains[0].stopped, "default/w2");
  EXPECT_EQ(found.domains[0].why, "0/2 nodes are available: 2 Insufficient cpu.");
}

TEST(GroupExplain, TheDomainWhereMostFindAPlaceIsTheNearestAndOfThoseTheSmallest) {
  Explained world;
  world.node("few", 4, {{"rack", "few"}});
  for (const char* name : {"most1", "most2", "most3"}) world.node(name, 4, {{"rack", "most"}});
  for (const char* name : {"wide1", "wide2", "wide3", "wide4"}) world.node(name, 4, {{"rack", "wide"}});
  world.running("there", {.cpu = 2, .node = "wide1"});
  for (const char* name : {"some1", "some2"}) world.node(name, 4, {{"rack", "some"}});
  const auto found = world.explain(gang_of(5, {Explained::kRack}), Explained::pods(5, 3));
  std::vector<std::string> order;
  for (const auto& one : found.domains) order.push_back(fmt::format("{} {} of {}", one.name, one.placeable, one.nodes));
  EXPECT_EQ(order, (std::vector<std::string>{"most 3 of 3", "wide 3 of 4", "some 2 of 2", "few 1 of 1"}));
  EXPECT_EQ(found.summary, "default/gang fits nowhere: of the 5 pods that it needs 3 find a place in the nearest domain, rack=most");
}

TEST(GroupExplain, TheFewestNodesThatAreEnough) {
  Explained world;
  world.node("n", 4);
  const auto found = world.explain(gang_of(5), Explained::pods(5, 2));
  EXPECT_EQ(found.changes, (std::vector<std::string>{"2 more nodes like n, without pods"}));
  world.node("m", 4);
  world.node("o", 4);
  EXPECT_EQ(world.explain(gang_of(5), Explained::pods(5, 2)).verdict, Verdict::kFits);
}

TEST(GroupExplain, ACordonedNodeAndOneWithoutTheLabel) {
  Explained world;
  world.node("a1", 4, {{"rack", "a"}});
  world.node("a2", 4, {{"rack", "a"}});
  world.node("stray", 4);
  auto shut = std::make_shared<model::NodeView>(*world.cluster.find_node("a2")->node);
  shut->unschedulable = true;
  world.cluster.upsert_node(shut);
  const auto found = world.explain(gang_of(2, {Explained::kRack}), Explained::pods(2, 3));
  EXPECT_EQ(found.changes, (std::vector<std::string>{"kubectl label node stray rack=a, if that is where it is", "kubectl uncordon a2",
                                                     "1 more node like a1, without pods, in rack=a"}))
      << fmt::format("{}", fmt::join(found.changes, "\n"));
}

TEST(GroupExplain, AKeyThatNoNodeHas) {
  Explained world;
  world.node("n", 4);
  const auto found = world.explain(gang_of(2, {Explained::kRack}), Explained::pods(2, 1));
  EXPECT_EQ(found.summary, "default/gang fits nowhere: no node has the label rack");
  EXPECT_EQ(found.changes, (std::vector<std::string>{"kubectl label node n rack=VALUE, if that is where it is"}));
}

TEST(GroupExplain, WhoseEndWouldBeEnough) {
  Explained world;
  for (const char* name : {"n", "m"}) world.node(name, 4);
  PodGroup other = gang_of(2);
  other.name = "other";
  world.groups.upsert(std::make_shared<const PodGroup>(other));
  for (const char* node : {"n", "m"}) world.running(fmt::format("o-{}", node), {.cpu = 3, .priority = 5, .node = node}, "other");
  PodGroup small = gang_of(1);
  small.name = "small";
  world.groups.upsert(std::make_shared<const PodGroup>(small));
  world.running("s", {.cpu = 1, .node = "n"}, "small");
  const auto found = world.explain(gang_of(2), Explained::pods(2, 3));
  ASSERT_EQ(found.endings.size(), 1U) << "the small one's is not";
  EXPECT_EQ(found.endings[0].what, "gang default/other");
  EXPECT_EQ(found.endings[0].pods, 2U);
  EXPECT_EQ(found.endings[0].priority, 5);
}

TEST(GroupExplain, WhomTheSchedulerWouldEvict) {
  Explained world;
  world.node("n", 4);
  world.running("low", {.cpu = 3, .priority = -1, .node = "n"});
  const auto found = world.explain(gang_of(2), Explained::pods(2, 2));
  EXPECT_EQ(found.victims, (std::vector<std::string>{"default/low (priority -1)"}));
}

TEST(GroupExplain, TooFewPodsAndAllPlaced) {
  Explained world;
  world.node("n", 4);
  EXPECT_EQ(world.explain(gang_of(3), Explained::pods(2, 1)).summary,
            "default/gang waits for pods, not for room: it has 2 of the 3 that it needs (minCount), and none is tried before");
  world.running("m0", {.cpu = 1, .node = "n"}, "gang");
  world.running("m1", {.cpu = 1, .node = "n"}, "gang");
  EXPECT_EQ(world.explain(gang_of(2), {}).verdict, Verdict::kPlaced);
  const auto late = world.explain(gang_of(2), Explained::pods(1, 1));
  EXPECT_EQ(late.verdict, Verdict::kFits);
  EXPECT_EQ(late.places, (std::vector<std::pair<std::string, std::string>>{{"default/w0", "n"}}));
}

TEST(GroupExplain, NothingIsLeftOfWhatWasTried) {
  Explained world;
  for (const char* name : {"a", "b"}) world.node(name, 4, {{"rack", name}});
  world.running("there", {.cpu = 3, .node = "a"});
  (void)world.explain(gang_of(3, {Explained::kRack}), Explained::pods(3, 3));
  EXPECT_EQ(world.cluster.node_count(), 2U);
  EXPECT_EQ(world.cluster.pod_count(), 1U);
  EXPECT_TRUE(world.cluster.pod_node("default/there").is_valid());
}

TEST(GroupExplain, TheTextShowsTheNearestAndCountsTheRest) {
  GroupExplanation told;
  told.summary = "default/gang waits";
  told.topology_key = "rack";
  told.waiting = 3;
  told.domains = {{"r1", 1, 2, "default/w2", "Insufficient cpu"}, {"", 4, 1, "", ""}};
  const std::string start =
      "PodGroup default/gang waits\n"
      "  rack=r1: 2 of the 3 that wait find a place on 1 node\n"
      "    default/w2 stops it: Insufficient cpu\n"
      "  the cluster: 1 of the 3 that wait find a place on 4 nodes\n";
  EXPECT_EQ(to_text(told), start + "No node added, opened or labelled, and no single group's end, would place it.\n");
  told.changes = {"one node more"};
  told.endings = {{"gang default/other", 1, 5}, {"ReplicaSet default/web", 4, 0}};
  told.victims = {"a", "b"};
  EXPECT_EQ(to_text(told), start +
                               "It would be placed with any one of these:\n"
                               "  one node more\n"
                               "  the end of gang default/other (1 pod, priority 5)\n"
                               "  the end of ReplicaSet default/web (4 pods, priority 0)\n"
                               "The scheduler would evict for it: a, b\n");
  for (int i = 0; i < 6; ++i) told.domains.push_back({fmt::format("x{}", i), 2, 0, "", ""});
  const std::string many = to_text(told);
  EXPECT_NE(many.find("rack=x2: "), std::string::npos);
  EXPECT_EQ(many.find("rack=x3: "), std::string::npos) << "five are shown";
  EXPECT_NE(many.find("  ... and 3 more domains\n"), std::string::npos) << many;
  told.domains.resize(5);
  EXPECT_EQ(to_text(told).find("more domains"), std::string::npos);
  told.victims = {"1", "2", "3", "4", "5", "6", "7", "8"};
  EXPECT_NE(to_text(told).find("evict for it: 1, 2, 3, 4, 5, 6, 7, 8\n"), std::string::npos);
  told.victims.push_back("9");
  EXPECT_NE(to_text(told).find("7, 8, …\n"), std::string::npos);
  told.verdict = GroupExplanation::Verdict::kFits;
  told.domains.clear();
  told.places = {{"default/w0", "n1"}};
  EXPECT_EQ(to_text(told), "PodGroup default/gang waits\n  default/w0 on n1\n") << "what would help is told of those that wait alone";
}

}  // namespace
}  // namespace berth::placement::testing
