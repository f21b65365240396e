// Who may go by which budget, rule by rule, and what is left for the next.
#include "placement/disruption_ledger.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace berth::placement {
namespace {

using Answer = DisruptionLedger::Answer;

model::PodView pod(const std::string& more = "phase: Running", const std::string& name = "p") {
  const auto document = json::parse_yaml("metadata: {name: " + name + ", namespace: shop, labels: {app: web}}\nstatus: {" + more + "}\n");
  EXPECT_TRUE(document);
  return model::PodView::parse(*document);
}

class Budgets : public ::testing::Test {
 protected:
  void budget(const std::string& name, int allowed, const std::string& status = "", const std::string& spec = "",
              const std::string& selector = "matchLabels: {app: web}", const std::string& ns = "shop") {
    const auto document =
        json::parse_yaml("kind: PodDisruptionBudget\nmetadata: {name: " + name + ", namespace: " + ns + "}\nspec: {selector: {" + selector +
                         "}" + spec + "}\nstatus: {disruptionsAllowed: " + std::to_string(allowed) + status + "}\n");
    ASSERT_TRUE(document) << document.error().message;
    cluster_.upsert(*document);
  }
  [[nodiscard]] DisruptionLedger ledger(BudgetRule rule) const { return {cluster_, rule}; }
  Cluster cluster_;
  static constexpr auto kUnready = "phase: Running, conditions: [{type: Ready, status: 'False'}]";
};

TEST_F(Budgets, NothingLeftNamesTheBudget) {
  budget("keep", 0);
  for (const BudgetRule rule : {BudgetRule::kEviction, BudgetRule::kPreemption, BudgetRule::kAutoscaler}) {
    const auto leave = ledger(rule).ask(pod());
    EXPECT_EQ(leave.answer, Answer::kNothingLeft);
    ASSERT_NE(leave.budget, nullptr);
    EXPECT_EQ(leave.budget->meta.name, "keep");
    EXPECT_FALSE(ledger(rule).take(pod()));
  }
}

TEST_F(Budgets, WhatIsTakenIsGoneForTheNext) {
  budget("keep", 2);
  auto book = ledger(BudgetRule::kPreemption);
  EXPECT_TRUE(book.take(pod()));
  EXPECT_EQ(book.ask(pod()).answer, Answer::kAllowed);
  EXPECT_TRUE(book.take(pod()));
  EXPECT_EQ(book.ask(pod()).answer, Answer::kNothingLeft) << "asking takes nothing, and two were allowed";
  EXPECT_FALSE(book.take(pod()));
  EXPECT_EQ(ledger(BudgetRule::kPreemption).ask(pod()).answer, Answer::kAllowed) << "each ledger is its own";
}

TEST_F(Budgets, ByTheEvictionsRuleWhoDoesNotServeNeedsNoLeave) {
  budget("keep", 0);
  const auto book = ledger(BudgetRule::kEviction);
  EXPECT_EQ(book.ask(pod("phase: Pending")).answer, Answer::kAllowed);
  EXPECT_EQ(book.ask(pod("phase: Succeeded")).answer, Answer::kAllowed);
  EXPECT_EQ(book.ask(pod("phase: Failed")).answer, Answer::kAllowed);
  model::PodView going = pod();
  going.meta.is_deleting = true;
  EXPECT_EQ(book.ask(going).answer, Answer::kAllowed);
  EXPECT_EQ(ledger(BudgetRule::kAutoscaler).ask(going).answer, Answer::kNothingLeft) << "by the autoscaler's it does";
  EXPECT_EQ(ledger(BudgetRule::kPreemption).ask(pod("phase: Pending")).answer, Answer::kNothingLeft);
}

TEST_F(Budgets, AnUnreadyPodGoesWhereEnoughAreHealthy) {
  budget("keep", 0, ", currentHealthy: 2, desiredHealthy: 2");
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod(kUnready)).answer, Answer::kAllowed);
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod()).answer, Answer::kNothingLeft);
  budget("keep", 0, ", currentHealthy: 1, desiredHealthy: 2");
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod(kUnready)).answer, Answer::kNothingLeft);
  budget("keep", 0, ", currentHealthy: 0, desiredHealthy: 0");
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod(kUnready)).answer, Answer::kNothingLeft);
  budget("keep", 0, ", currentHealthy: 1, desiredHealthy: 2", ", unhealthyPodEvictionPolicy: AlwaysAllow");
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod(kUnready)).answer, Answer::kAllowed);
  EXPECT_EQ(ledger(BudgetRule::kAutoscaler).ask(pod(kUnready)).answer, Answer::kNothingLeft);
}

TEST_F(Budgets, ByPreemptionsRuleOneThatIsCountedAlreadyNeedsNoLeave) {
  budget("keep", 0, ", disruptedPods: {p: '2026-01-01T00:00:00Z'}");
  EXPECT_EQ(ledger(BudgetRule::kPreemption).ask(pod()).answer, Answer::kAllowed);
  EXPECT_EQ(ledger(BudgetRule::kPreemption).ask(pod("phase: Running", "q")).answer, Answer::kNothingLeft);
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod()).answer, Answer::kNothingLeft);
  auto book = ledger(BudgetRule::kPreemption);
  EXPECT_TRUE(book.take(pod()));
  EXPECT_FALSE(book.take(pod("phase: Running", "q")));
}

TEST_F(Budgets, SeveralAreTooManyForAnEvictionAndAllCountElsewhere) {
  budget("a", 1);
  budget("b", 0);
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod()).answer, Answer::kSeveral);
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod("phase: Pending")).answer, Answer::kAllowed) << "who needs no leave asks none of them";
  EXPECT_EQ(ledger(BudgetRule::kAutoscaler).ask(pod()).budget->meta.name, "b");
  budget("a", 0);
  EXPECT_EQ(ledger(BudgetRule::kAutoscaler).ask(pod()).budget->meta.name, "a") << "the first";
  auto book = ledger(BudgetRule::kAutoscaler);
  EXPECT_FALSE(book.take(pod()));
}

TEST_F(Budgets, OfOtherNamespacesAndOtherPodsNoneCounts) {
  budget("other", 0, "", "", "matchLabels: {app: db}");
  budget("there", 0, "", "", "matchLabels: {app: web}", "shop-2");
  budget("before", 0, "", "", "matchLabels: {app: web}", "sho");
  EXPECT_FALSE(ledger(BudgetRule::kEviction).covers(pod()));
  EXPECT_EQ(ledger(BudgetRule::kEviction).ask(pod()).answer, Answer::kAllowed);
  budget("keep", 0);
  EXPECT_TRUE(ledger(BudgetRule::kEviction).covers(pod()));
}

TEST_F(Budgets, AnEmptySelectorSelectsAllButForPreemption) {
  budget("all", 0, "", "", "");
  EXPECT_TRUE(ledger(BudgetRule::kEviction).covers(pod()));
  EXPECT_FALSE(ledger(BudgetRule::kPreemption).covers(pod()));
  budget("all", 0, "", "", "matchExpressions: [{key: missing, operator: DoesNotExist}]");
  EXPECT_TRUE(ledger(BudgetRule::kPreemption).covers(pod()));
  model::PodView bare = pod();
  bare.meta.labels = {};
  EXPECT_FALSE(ledger(BudgetRule::kPreemption).covers(bare));
  EXPECT_TRUE(ledger(BudgetRule::kEviction).covers(bare));
}

}  // namespace
}  // namespace berth::placement
