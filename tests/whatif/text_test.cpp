// An answer for people: what matters first, pods that fare alike in one row, in the order in which people count.
#include "tests/whatif/dump.h"
#include "whatif/text_table.h"

namespace berth::whatif::testing {
namespace {

std::string asked(Dump& dump, const std::string& question) { return to_text(dump.ask(question)); }
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Two zones of one node each; web needs both of them, and giant has waited before.
Dump two_zones() {
  Dump dump;
  dump.node("n-a", "zone-a").node("n-b", "us-east-1b").deployment("web", "3", {{.node = "n-a"}, {.node = "n-b"}});
  dump.pod("giant", "{app: giant}", "", "64", {.node = ""});
  return dump;
}

TEST(Text, NumbersAreCountedAndNotSpelled) {
  EXPECT_TRUE(comes_before("node-2", "node-10"));
  EXPECT_FALSE(comes_before("node-10", "node-2"));
  EXPECT_TRUE(comes_before("a1b2", "a1b10"));
  EXPECT_TRUE(comes_before("a", "a1"));
  EXPECT_FALSE(comes_before("a", "a"));
  EXPECT_FALSE(comes_before("a01", "a1")) << "equal numbers are equal";
}

TEST(Text, PodsThatFareAlikeAreOneRow) {
  const auto rows = together(
      {{"shop/web-new-10", "n2"}, {"shop/web-new-2", "n2"}, {"shop/web-new-1", "n2"}, {"shop/web-new-3", "n1"}, {"shop/db-0", "n2"}});
  EXPECT_EQ(rows, (std::vector<Row>{{"shop/db-0", "n2"}, {"shop/web-new-* (3 pods)", "n2"}, {"shop/web-new-3", "n1"}}));
}

TEST(Text, AMessageIsCutWherePreemptionBegins) {
  EXPECT_EQ(in_short("0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found"),
            "0/3 nodes are available: 3 Insufficient cpu.");
  const std::string cut = in_short(std::string(139, 'x') + "äöü");
  EXPECT_EQ(cut, std::string(139, 'x') + "…") << "no half of a letter is left";
}

TEST(Text, ASingleLossIsAskedAboutAndNothingElseChanges) {
  Dump dump = two_zones();
  const std::string text = asked(dump, "{each: zone}");
  EXPECT_EQ(first_line(text), "2 of 2 single losses leave something pending.");
  EXPECT_FALSE(has(text, "Nothing changes")) << text;
}

TEST(Text, WhatGoesWrongComesFirst) {
  Dump dump = two_zones();
  const std::string text = asked(dump, "{changes: [{fail: n-a}]}");
  EXPECT_EQ(first_line(text), "1 pod stays pending.");
  EXPECT_LT(text.find("shop/web-"), text.find("shop/giant")) << "who waited before waits on below: " << text;
  EXPECT_TRUE(has(text, "Pending before, and still:\n  POD         MESSAGE\n  shop/giant  0/2 nodes are available")) << text;
}

TEST(Text, AMoveThatHarmsNobodySaysSo) {
  Dump dump;
  dump.node("n1", "a").node("n2", "a").deployment("web", "1", {{.node = "n1"}});
  EXPECT_EQ(first_line(asked(dump, "{changes: [{drain: n1}]}")), "1 pod moves; everybody has a place, and no budget is broken.");
}

TEST(Text, APartStandsForTheZoneThatEndsSo) {
  Dump dump = two_zones();
  for (const char* zone : {"zone=zone-a", "zone=a", "zone=b", "zone=1b", "topology.kubernetes.io/zone=us-east-1b"})
    EXPECT_EQ(json::get_int(dump.ask(fmt::format("{{changes: [{{cordon: '{}'}}]}}", zone)), {"summary", "moves"}), 0) << zone;
  const auto refusal = [&](const std::string& nodes) {
    const auto answer = dump.try_ask("{changes: [{fail: '" + nodes + "'}]}");
    return answer ? std::string("none") : answer.error().message;
  };
  EXPECT_TRUE(has(refusal("zone=c"), "no node has topology.kubernetes.io/zone=c; there are: us-east-1b, zone-a")) << refusal("zone=c");
  EXPECT_TRUE(has(refusal("zone="), "there are: us-east-1b, zone-a"));
  EXPECT_TRUE(has(refusal("topology.kubernetes.io/zone=b"), "there are: us-east-1b, zone-a")) << "a label's own key wants its own value";
  EXPECT_TRUE(has(refusal("nowhere"), "there are: n-a, n-b"));
  EXPECT_TRUE(has(refusal("rack=1"), "no node has a label \"rack\""));
  dump.node("n-c", "eu-west-2b");
  EXPECT_TRUE(has(refusal("zone=b"), "zone=b may be any of eu-west-2b, us-east-1b: say which"));
}

TEST(Text, APlanCountsWhatStays) {
  Dump dump;
  dump.node("n1", "a").node("n2", "a").node("n3", "a").deployment("web", "2", {{.node = "n1"}, {.node = "n2"}});
  dump.pod("bare", "{app: bare}", "", "1", {.node = "n3"});
  const json::Value answer = dump.ask("{pack: {shapes: ['cpu=8,memory=64Gi']}}");
  const std::string text = to_text(answer);
  EXPECT_EQ(first_line(text), "3 nodes are there; after this plan there are 2: 1 new of 8cpu, and 1 of those that are there.");
  EXPECT_TRUE(has(text, "These stay:\n  NODE  BECAUSE\n  n3    nobody would make shop/bare anew\n")) << text;
  EXPECT_EQ(json::get_int(answer, {"pack", "nodesAfter"}), json::get_int(answer, {"summary", "nodes", "after"}));
  EXPECT_EQ(json::find(answer, {"pack", "lowerBound"}), nullptr) << "the node that stays takes its part";
}

TEST(Text, APlanWithoutAnybodyWhoMayGoAddsNothing) {
  Dump dump;
  dump.node("n1", "a").pod("bare", "{app: bare}", "", "1", {.node = "n1"});
  const json::Value answer = dump.ask("{pack: {shapes: ['cpu=8,memory=64Gi']}}");
  EXPECT_EQ(first_line(to_text(answer)), "1 nodes are there, and none of them can go.");
  EXPECT_TRUE(json::get_array(answer, {"pack", "steps"}).empty());
}

TEST(Text, TheConfigurationIsToldAtTheEnd) {
  Dump dump = two_zones();
  dump.options.configuration = "default-scheduler: somewhere";
  EXPECT_TRUE(asked(dump, "{each: node}").ends_with("By the configuration of default-scheduler: somewhere.\n"));
}

}  // namespace
}  // namespace berth::whatif::testing
