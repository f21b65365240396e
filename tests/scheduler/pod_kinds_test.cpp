// Which waiting pods are one kind.
#include "scheduler/pod_kinds.h"

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
  PodKinds kinds;
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

TEST_F(PodKindsTest, WhatNobodyHoldsIsForgotten) {
  for (int i = 0; i < 30'000; ++i) (void)kind(pod(i, fmt::format("app-{}", i)));
  EXPECT_LT(kinds.size(), 2000u);
}

}  // namespace
}  // namespace berth::scheduler
