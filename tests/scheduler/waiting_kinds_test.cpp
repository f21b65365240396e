// Which waiting pods are one kind.
#include "scheduler/waiting_kinds.h"

#include <gtest/gtest.h>

namespace berth::scheduler {
namespace {

using placement::PodInfo;

placement::PodInfoPtr pod(int i, const std::string& app, const std::string& spec = "") {
  const auto document = json::parse_yaml(fmt::format(
      "metadata: {{name: p{0}, namespace: default, uid: p{0}, labels: {{app: {1}}}}}\nspec:\n  schedulerName: default-scheduler\n"
      "  containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]\n"
      "  volumes: [{{name: kube-api-access-{0}, projected: {{sources: []}}}}]\n{2}",
      i, app, spec));
  return PodInfo::make(std::make_shared<model::PodView>(model::PodView::parse(*document)), placement::Era::k136);
}

class PodKindsTest : public ::testing::Test {
 protected:
  PodKindPtr kind(const placement::PodInfoPtr& one, const std::string& nominated = "") { return kinds.of(*framework, *one, nominated); }
  placement::FrameworkPtr framework = *placement::Framework::create(placement::default_profile(placement::Era::k136));
  WaitingKinds kinds;
};

TEST_F(PodKindsTest, PodsOfOneTemplateAreOneKindWhateverTheirTokenVolumesAreCalled) { EXPECT_EQ(kind(pod(1, "web")), kind(pod(2, "web"))); }

TEST_F(PodKindsTest, WhatAPluginReadsTellsThemApart) {
  const auto web = kind(pod(1, "web"));
  EXPECT_NE(web, kind(pod(2, "api"))) << "others' selectors may see labels";
  EXPECT_NE(web, kind(pod(3, "web", "  nodeSelector: {disk: ssd}\n")));
  EXPECT_NE(web, kind(pod(4, "web", "  tolerations: [{operator: Exists}]\n")));
  EXPECT_NE(web, kind(pod(5, "web", "  priority: 7\n")));
  EXPECT_NE(web, kind(pod(6, "web", "  preemptionPolicy: Never\n")));
  EXPECT_NE(web, kind(pod(7, "web"), "node-1")) << "room is made for it";
}

TEST_F(PodKindsTest, WhatNobodyHoldsIsForgottenAtOnce) {
  const auto kept = kind(pod(0, "kept"));
  {
    const auto first = kind(pod(1, "web")), again = kind(pod(2, "web"));
    EXPECT_EQ(kinds.size(), 2U);
  }
  EXPECT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kind(pod(3, "kept")), kept);
  EXPECT_NE(kind(pod(4, "web"))->id, kept->id);
  EXPECT_EQ(kinds.size(), 1U);
}

TEST_F(PodKindsTest, AKindMayOutliveTheTable) {
  auto own = std::make_unique<WaitingKinds>();
  const auto kept = own->of(*framework, *pod(1, "web"), "");
  own.reset();
  EXPECT_GT(kept->id, 0U);
}

}  // namespace
}  // namespace berth::scheduler
