// The helper that makes pods as an API server stores them has learned what makes them so.
#include "tests/support/stored_pods.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::testing {
namespace {

model::PodView written() {
  model::PodView out;
  out.meta.ns = "default";
  out.meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"app", "web"}});
  out.containers.emplace_back();
  return out;
}

TEST(StoredPods, HaveATokenVolumeAndTheDefaultTolerations) {
  StoredPods stored;
  ASSERT_EQ(stored.error(), "");
  const auto one = stored.bare(written(), "one"), two = stored.bare(written(), "two");
  ASSERT_EQ(one.volumes.size(), 1U);
  EXPECT_EQ(one.volumes[0].kind, model::VolumeView::Kind::kOther);
  EXPECT_EQ(one.volumes, two.volumes) << "each pod's token has another name, which views leave out";
  EXPECT_NE(one.meta.uid, two.meta.uid);
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
    EXPECT_EQ(std::ranges::count(one.tolerations, key, &model::Toleration::key), 1) << key;
  EXPECT_EQ(one.meta.controller(), nullptr);
  EXPECT_EQ(one.scheduler_name, "default-scheduler");
  EXPECT_EQ(one.termination_grace_period_seconds, 30);
}

TEST(StoredPods, OfADeploymentAreOneReplicaSets) {
  StoredPods stored;
  ASSERT_EQ(stored.error(), "");
  const auto one = stored.of_deployment(written(), "web"), two = stored.of_deployment(written(), "web"),
             other = stored.of_deployment(written(), "db");
  ASSERT_NE(one.meta.controller(), nullptr);
  EXPECT_EQ(one.meta.controller()->kind, "ReplicaSet");
  EXPECT_EQ(*one.meta.controller(), *two.meta.controller());
  EXPECT_NE(*one.meta.controller(), *other.meta.controller());
  EXPECT_EQ(one.meta.labels, two.meta.labels);
  ASSERT_NE(one.meta.labels.get("pod-template-hash"), nullptr);
  EXPECT_NE(*one.meta.labels.get("pod-template-hash"), *other.meta.labels.get("pod-template-hash"));
  EXPECT_EQ(one.meta.controller()->name, "web-" + *one.meta.labels.get("pod-template-hash"));
  const auto set = stored.replica_set(written(), "web");
  EXPECT_EQ(json::get_string(set, {"metadata", "name"}), one.meta.controller()->name);
  EXPECT_EQ(json::get_string(set, {"spec", "selector", "matchLabels", "pod-template-hash"}), *one.meta.labels.get("pod-template-hash"));
}

TEST(StoredPods, OfAJobHaveItsUidAmongTheirLabels) {
  StoredPods stored;
  ASSERT_EQ(stored.error(), "");
  const auto one = stored.of_job(written(), "first"), other = stored.of_job(written(), "second");
  ASSERT_NE(one.meta.controller(), nullptr);
  EXPECT_EQ(one.meta.controller()->kind, "Job");
  for (const char* key : {"controller-uid", "batch.kubernetes.io/controller-uid"}) {
    ASSERT_NE(one.meta.labels.get(key), nullptr) << key;
    EXPECT_EQ(*one.meta.labels.get(key), one.meta.controller()->uid);
    EXPECT_NE(*one.meta.labels.get(key), *other.meta.labels.get(key));
  }
  ASSERT_NE(one.meta.labels.get("job-name"), nullptr);
  EXPECT_EQ(*one.meta.labels.get("job-name"), "first");
}

}  // namespace
}  // namespace berth::testing
