// From which NUMA nodes: merged hints, what the policies make of them, all or nothing.
#include "placement/numa/alignment.h"

#include <gtest/gtest.h>

namespace berth::placement::numa {
namespace {

const Machine kFour{.nodes = 0b1111,
                    .distances = {{0, {10, 20, 12, 20}}, {1, {20, 10, 20, 20}}, {2, {12, 20, 10, 20}}, {3, {20, 20, 20, 10}}}};
using List = std::vector<Hint>;

Hint merged(Align align, std::vector<HintsByResource> hints, bool prefers_closest = false) {
  return merge({.align = align, .prefers_closest = prefers_closest}, kFour, hints);
}

TEST(Alignment, AllAgreeOnTheNarrowestSetThatEverybodyPrefers) {
  const HintsByResource cpu{{"cpu", List{{0b0001, true}, {0b0010, true}, {0b0011, false}}}};
  const HintsByResource gpu{{"gpu", List{{0b0010, true}, {0b0011, false}}}};
  EXPECT_EQ(merged(Align::kRestricted, {cpu, gpu}), (Hint{0b0010, true}));
  EXPECT_EQ(merged(Align::kRestricted, {cpu}), (Hint{0b0001, true})) << "the lowest of two that are as good";
  EXPECT_EQ(merged(Align::kRestricted, {}), (Hint{0b1111, true})) << "nobody chose";
  EXPECT_EQ(merged(Align::kRestricted, {{{"gpu", std::nullopt}}, cpu}), (Hint{0b0001, true})) << "one who does not care";
}

TEST(Alignment, WhereNobodyAgreesItIsNotPreferred) {
  const HintsByResource low{{"cpu", List{{0b0001, true}}}}, high{{"gpu", List{{0b0010, true}}}};
  EXPECT_EQ(merged(Align::kBestEffort, {low, high}), (Hint{0b1111, false})) << "nothing in common";
  const HintsByResource wide{{"gpu", List{{0b0011, true}}}};
  EXPECT_EQ(merged(Align::kBestEffort, {low, wide}), (Hint{0b0001, false})) << "in common, but not the same";
  EXPECT_EQ(merged(Align::kBestEffort, {low, {{"gpu", List{}}}}), (Hint{0b0001, false})) << "of this there is nothing";
  EXPECT_FALSE(is_admitted({.align = Align::kRestricted}, {0b1111, false}));
  EXPECT_FALSE(is_admitted({.align = Align::kSingleNumaNode}, {0b1111, false}));
  EXPECT_TRUE(is_admitted({.align = Align::kBestEffort}, {0b1111, false}));
}

TEST(Alignment, OfChoicesThatNobodyPrefersTheOneAsWideAsTheWidestNeed) {
  // The processors need two nodes at least: a choice of two is better than one of one, and than one of three.
  const HintsByResource cpu{{"cpu", List{{0b0011, false}, {0b0111, false}}}};
  const HintsByResource any{{"memory", List{{0b0001, false}, {0b1111, false}}}};
  EXPECT_EQ(merged(Align::kBestEffort, {cpu, any}), (Hint{0b0011, false}));
  EXPECT_EQ(merged(Align::kBestEffort, {{{"cpu", List{{0b0111, false}}}}, {{"memory", List{{0b0001, false}, {0b0011, false}}}}}),
            (Hint{0b0011, false}))
      << "as near to three as can be had";
  EXPECT_EQ(merged(Align::kBestEffort, {{{"cpu", List{{0b0001, false}}}}, {{"memory", List{{0b0111, false}, {0b1111, false}}}}}),
            (Hint{0b0001, false}));
}

TEST(Alignment, ASingleNumaNodeOrNone) {
  const HintsByResource wide{{"cpu", List{{0b0011, true}}}};
  EXPECT_FALSE(merged(Align::kSingleNumaNode, {wide}).is_preferred);
  EXPECT_TRUE(merged(Align::kRestricted, {wide}).is_preferred);
  EXPECT_EQ(merged(Align::kSingleNumaNode, {{{"cpu", List{{0b0100, true}, {0b0110, false}}}}}), (Hint{0b0100, true}));
  EXPECT_EQ(merged(Align::kSingleNumaNode, {{{"cpu", std::nullopt}}}), (Hint{std::nullopt, true})) << "who does not care may be anywhere";
}

TEST(Alignment, TheNearerOfSetsOfAsManyWhereThatIsWanted) {
  const HintsByResource two{{"cpu", List{{0b0011, true}, {0b0101, true}, {0b1001, true}}}};
  EXPECT_EQ(merged(Align::kBestEffort, {two}), (Hint{0b0011, true}));
  EXPECT_EQ(merged(Align::kBestEffort, {two}, true), (Hint{0b0101, true})) << "12 instead of 20";
}

TEST(Alignment, ManyHintsAreMergedAtOnce) {
  HintsByResource many;
  for (int resource = 0; resource < 12; ++resource) {
    List hints;
    for_each_subset(0b1111, [&](NodeSet nodes) { hints.push_back({nodes, nodes == 0b0100}); });
    many["resource-" + std::to_string(resource)] = hints;
  }
  EXPECT_EQ(merged(Align::kRestricted, {many}), (Hint{0b0100, true})) << "15 to the 12th choices";
}

/// Gives what it is asked, from where it says, until `limit` containers have theirs.
class Fake final : public Giver {
 public:
  Fake(HintsByResource hints, std::size_t limit) : hints_(std::move(hints)), limit_(limit) {}
  void keep_only(const std::set<std::string>&) override {}
  void release(const std::string& uid) override { released_ = uid; }
  HintsByResource hints(const PodWishes&, const Wish&) const override { return hints_; }
  HintsByResource pod_hints(const PodWishes&) const override { return {{"cpu", List{{0b1000, true}}}}; }
  std::optional<Refusal> give(const PodWishes&, const Wish& container, const Hint& near) override {
    if (given_.size() == limit_) return unexpected("nothing is left");
    given_.emplace_back(container.name, near.nodes.value_or(0));
    return std::nullopt;
  }
  std::vector<std::pair<std::string, NodeSet>> given_;
  std::string released_;

 private:
  const HintsByResource hints_;
  const std::size_t limit_;
};
const PodWishes kPod{.uid = "p", .containers = {{.name = "i", .is_init = true}, {.name = "c"}, {.name = "d"}}};
using Given = std::vector<std::pair<std::string, NodeSet>>;

TEST(Alignment, ContainersAreGivenTheirsInTheOrderOfTheirStart) {
  Fake one({{"cpu", List{{0b0010, true}}}}, 9), other({}, 9);
  EXPECT_FALSE(admit({.align = Align::kRestricted}, kFour, kPod, {&one, &other}));
  EXPECT_EQ(one.given_, (Given{{"i", 0b0010}, {"c", 0b0010}, {"d", 0b0010}}));
  EXPECT_EQ(other.given_, one.given_);
  Fake free({{"cpu", List{}}}, 9);
  EXPECT_FALSE(admit({}, kFour, kPod, {&free})) << "without a policy nobody is asked for hints";
  EXPECT_EQ(free.given_, (Given{{"i", 0}, {"c", 0}, {"d", 0}}));
}

TEST(Alignment, APodAsOneGetsAllFromTheSameNodes) {
  Fake one({{"cpu", List{{0b0010, true}}}}, 9);
  EXPECT_FALSE(admit({.align = Align::kRestricted, .is_by_pod = true}, kFour, kPod, {&one}));
  EXPECT_EQ(one.given_, (Given{{"i", 0b1000}, {"c", 0b1000}, {"d", 0b1000}}));
}

TEST(Alignment, WhoIsRefusedGivesBackWhatItGot) {
  Fake plenty({}, 9), little({}, 2);
  const auto refusal = admit({}, kFour, kPod, {&plenty, &little});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(refusal->message, "Allocate failed due to nothing is left, which is unexpected");
  EXPECT_EQ(refusal->container, "d") << "two containers had theirs";
  EXPECT_EQ(plenty.released_, "p");
  EXPECT_EQ(little.released_, "p");
  Fake nowhere({{"cpu", List{{0b0010, false}}}}, 9);
  const auto unaligned = admit({.align = Align::kRestricted}, kFour, kPod, {&nowhere});
  ASSERT_TRUE(unaligned);
  EXPECT_EQ(unaligned->reason, "TopologyAffinityError");
  EXPECT_EQ(unaligned->message, "Resources cannot be allocated with Topology locality");
  EXPECT_TRUE(nowhere.given_.empty());
  EXPECT_FALSE(admit({.align = Align::kBestEffort}, kFour, kPod, {&nowhere}));
}

TEST(Alignment, MistakesInTheConfigurationSayWhatIsWanted) {
  const auto error = [](const std::string& policy, const std::string& scope, const std::map<std::string, std::string>& options,
                        NodeSet nodes = 0b11) {
    const auto read = alignment_policy(policy, scope, options, {.nodes = nodes});
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error("none", "container", {}), "");
  EXPECT_EQ(error("strict", "pod", {}),
            "topologyManagerPolicy: unknown policy: \"strict\" (none, best-effort, restricted, single-numa-node)");
  EXPECT_EQ(error("restricted", "node", {}), "topologyManagerScope: unknown scope: \"node\" (container, pod)");
  EXPECT_EQ(error("restricted", "pod", {{"prefer-closest-numa-nodes", "yes"}}),
            "topologyManagerPolicyOptions.prefer-closest-numa-nodes: true or false is wanted");
  EXPECT_EQ(error("restricted", "pod", {{"closest", "true"}}),
            "topologyManagerPolicyOptions.closest: this node knows prefer-closest-numa-nodes and max-allowable-numa-nodes");
  EXPECT_NE(error("restricted", "pod", {}, 0x1ff).find("this machine has 9 NUMA nodes, and at most 8"), std::string::npos);
  EXPECT_EQ(error("none", "pod", {}, 0x1ff), "");
  EXPECT_EQ(error("restricted", "pod", {{"max-allowable-numa-nodes", "9"}}, 0x1ff), "");
  EXPECT_NE(error("restricted", "pod", {{"max-allowable-numa-nodes", "7"}}).find("a number of 8 to 16 is wanted"), std::string::npos);
}

}  // namespace
}  // namespace berth::placement::numa
