// Volumes: what binds where, what is reserved, what a node can attach (SPEC B6).
#include "placement/plugins/volumes.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "placement/engine.h"

namespace berth::placement {
namespace {

json::Value node_document(const std::string& name, const std::string& zone) {
  return {{"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", {{"topology.kubernetes.io/zone", zone}, {"kubernetes.io/hostname", name}}}}},
          {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "10"}}}}}};
}

json::Value pod_document(const std::string& name, const std::string& claim, const std::string& node = "") {
  json::Value out = {{"kind", "Pod"},
                     {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
                     {"spec",
                      {{"containers", json::Array{{{"name", "c"}}}},
                       {"volumes", json::Array{{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", claim}}}}}}}}};
  if (!node.empty()) json::set(out, {"spec", "nodeName"}, json::Value(node));
  return out;
}

json::Value claim_document(const std::string& name, const std::string& mode = "ReadWriteOnce", const std::string& volume = "") {
  json::Value out = {{"kind", "PersistentVolumeClaim"},
                     {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "u-" + name}}},
                     {"spec",
                      {{"storageClassName", "local"},
                       {"accessModes", json::Array{json::Value(mode)}},
                       {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}};
  if (!volume.empty()) {
    json::set(out, {"spec", "volumeName"}, json::Value(volume));
    json::set(out, {"metadata", "annotations", "pv.kubernetes.io/bind-completed"}, "yes");
  }
  return out;
}

json::Value class_document(const std::string& provisioner) {
  return {{"kind", "StorageClass"},
          {"metadata", {{"name", "local"}}},
          {"provisioner", provisioner},
          {"volumeBindingMode", "WaitForFirstConsumer"}};
}

json::Value volume_document(const std::string& name, const std::string& node, const std::string& size) {
  return {{"kind", "PersistentVolume"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"storageClassName", "local"},
            {"accessModes", json::Array{"ReadWriteOnce"}},
            {"capacity", {{"storage", size}}},
            {"nodeAffinity",
             {{"required",
               {{"nodeSelectorTerms", json::Array{{{"matchExpressions", json::Array{{{"key", "kubernetes.io/hostname"},
                                                                                     {"operator", "In"},
                                                                                     {"values", json::Array{json::Value(node)}}}}}}}}}}}}}},
          {"status", {{"phase", "Available"}}}};
}

PodInfoPtr pod_of(const json::Value& document) {
  return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), Era::k136);
}

std::vector<std::string> feasible(const Cluster& cluster, const PodInfoPtr& pod) {
  const auto framework = *Framework::create(default_profile(Era::k136));
  std::vector<std::string> out;
  for (const auto& one : evaluate(*framework, cluster, *pod).feasible) out.push_back(cluster.node(one.node)->name);
  return out;
}

class Volumes : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_.upsert(node_document("a", "z1"));
    cluster_.upsert(node_document("b", "z2"));
    cluster_.upsert(class_document("kubernetes.io/no-provisioner"));
    cluster_.upsert(volume_document("big", "a", "5Gi"));
    cluster_.upsert(volume_document("small", "a", "2Gi"));
    cluster_.upsert(claim_document("c1"));
    cluster_.upsert(claim_document("c2"));
    cluster_.upsert(claim_document("c3"));
  }
  Cluster cluster_;
};

TEST_F(Volumes, ReserveTakesTheSmallestVolumeAndUnreserveGivesItBack) {
  const auto framework = *Framework::create(default_profile(Era::k136));
  const auto pod = pod_of(pod_document("p", "c1"));
  EXPECT_EQ(feasible(cluster_, pod), std::vector<std::string>{"a"});
  auto state = framework->new_cycle(cluster_);
  ASSERT_TRUE(framework->run_pre_filter(state, *pod).status.is_success());
  const NodeInfo& node = *cluster_.find_node("a");
  ASSERT_TRUE(framework->run_reserve(state, *pod, node, cluster_).is_success());
  EXPECT_EQ(cluster_.persistent_volumes().find("small")->second->claim_name, "c1");
  EXPECT_FALSE(cluster_.persistent_volumes().find("big")->second->has_claim_ref);
  const auto writes = *framework->run_pre_bind(state, *pod, node);
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].resource, "persistentvolumes");
  EXPECT_EQ(json::get_string(writes[0].merge_patch, {"spec", "claimRef", "name"}), "c1");
  EXPECT_TRUE(writes[1].wait_bound);
  framework->run_unreserve(state, *pod, node, cluster_);
  EXPECT_FALSE(cluster_.persistent_volumes().find("small")->second->has_claim_ref);
}

TEST_F(Volumes, EveryReservedVolumeIsGone) {
  const auto framework = *Framework::create(default_profile(Era::k136));
  for (const char* claim : {"c1", "c2"}) {
    const auto pod = pod_of(pod_document(std::string("p-") + claim, claim));
    auto state = framework->new_cycle(cluster_);
    ASSERT_TRUE(framework->run_pre_filter(state, *pod).status.is_success());
    ASSERT_TRUE(framework->run_reserve(state, *pod, *cluster_.find_node("a"), cluster_).is_success());
  }
  EXPECT_TRUE(feasible(cluster_, pod_of(pod_document("p", "c3"))).empty());
}

TEST_F(Volumes, ProvisioningRemembersItsNode) {
  cluster_.upsert(class_document("csi.example.com"));
  const auto framework = *Framework::create(default_profile(Era::k136));
  const auto pod = pod_of(pod_document("p", "c1"));
  EXPECT_EQ(feasible(cluster_, pod), (std::vector<std::string>{"a", "b"}));
  auto state = framework->new_cycle(cluster_);
  ASSERT_TRUE(framework->run_pre_filter(state, *pod).status.is_success());
  ASSERT_TRUE(framework->run_reserve(state, *pod, *cluster_.find_node("b"), cluster_).is_success());
  EXPECT_EQ(feasible(cluster_, pod_of(pod_document("q", "c1"))), std::vector<std::string>{"b"});
}

TEST_F(Volumes, AClaimThatTwoVolumesOfAPodUseIsBoundOnce) {
  const auto framework = *Framework::create(default_profile(Era::k136));
  json::Value document = pod_document("p", "c1");
  document.at_pointer("/spec/volumes").as_array().push_back({{"name", "again"}, {"persistentVolumeClaim", {{"claimName", "c1"}}}});
  const auto pod = pod_of(document);
  for (const bool is_made : {false, true}) {
    if (is_made) cluster_.upsert(class_document("csi.example.com"));
    const std::string name = is_made ? "b" : "a";
    auto state = framework->new_cycle(cluster_);
    ASSERT_TRUE(framework->run_pre_filter(state, *pod).status.is_success());
    ASSERT_TRUE(framework->run_reserve(state, *pod, *cluster_.find_node(name), cluster_).is_success());
    const auto writes = *framework->run_pre_bind(state, *pod, *cluster_.find_node(name));
    EXPECT_EQ(std::ranges::count(writes, "c1", &PreBindWrite::name), 1) << name;
    EXPECT_EQ(std::ranges::count(writes, "persistentvolumes", &PreBindWrite::resource), is_made ? 0 : 1);
    EXPECT_FALSE(cluster_.persistent_volumes().find("big")->second->has_claim_ref);
    framework->run_unreserve(state, *pod, *cluster_.find_node(name), cluster_);
  }
  EXPECT_EQ(feasible(cluster_, pod), (std::vector<std::string>{"a", "b"})) << "nothing is left of it";
}

TEST_F(Volumes, UnreserveLeavesWhatWasSeenSince) {
  const auto framework = *Framework::create(default_profile(Era::k136));
  const auto pod = pod_of(pod_document("p", "c1"));
  const NodeInfo& node = *cluster_.find_node("a");
  auto state = framework->new_cycle(cluster_);
  ASSERT_TRUE(framework->run_pre_filter(state, *pod).status.is_success());
  ASSERT_TRUE(framework->run_reserve(state, *pod, node, cluster_).is_success());
  // Its write arrived, and came back by the watch.
  json::Value volume = volume_document("small", "a", "2Gi");
  json::set(volume, {"spec", "claimRef"}, json::Object{{"namespace", "default"}, {"name", "c1"}, {"uid", "u-c1"}});
  cluster_.upsert(volume);
  framework->run_unreserve(state, *pod, node, cluster_);
  EXPECT_EQ(cluster_.persistent_volumes().find("small")->second->claim_name, "c1");

  cluster_.upsert(class_document("csi.example.com"));
  cluster_.remove("PersistentVolume", "", "small");
  cluster_.remove("PersistentVolume", "", "big");
  auto again = framework->new_cycle(cluster_);
  ASSERT_TRUE(framework->run_pre_filter(again, *pod).status.is_success());
  ASSERT_TRUE(framework->run_reserve(again, *pod, node, cluster_).is_success());
  // The claim was deleted, and another one has its name.
  json::Value another = claim_document("c1");
  json::set(another, {"metadata", "uid"}, "another");
  cluster_.remove("PersistentVolumeClaim", "default", "c1");
  cluster_.upsert(another);
  framework->run_unreserve(again, *pod, node, cluster_);
  EXPECT_EQ(volumes::find_claim(cluster_, "default", "c1")->meta.uid, "another");
}

TEST_F(Volumes, AttachLimitsCountAVolumeOnce) {
  json::Value volume = volume_document("v1", "a", "1Gi");
  volume.as_object()["spec"].as_object()["csi"] = json::Object{{"driver", "csi.example.com"}, {"volumeHandle", "h1"}};
  cluster_.upsert(volume);
  cluster_.upsert(claim_document("bound", "ReadWriteOnce", "v1"));
  json::Value second = volume;
  json::set(second, {"metadata", "name"}, "v2");
  json::set(second, {"spec", "csi", "volumeHandle"}, "h2");
  cluster_.upsert(second);
  cluster_.upsert(claim_document("other", "ReadWriteOnce", "v2"));
  cluster_.upsert(json::Value{{"kind", "CSINode"},
                              {"metadata", {{"name", "a"}}},
                              {"spec", {{"drivers", json::Array{{{"name", "csi.example.com"}, {"allocatable", {{"count", 1}}}}}}}}});
  cluster_.upsert(pod_document("there", "bound", "a"));
  EXPECT_EQ(feasible(cluster_, pod_of(pod_document("same", "bound"))), std::vector<std::string>{"a"});
  EXPECT_TRUE(feasible(cluster_, pod_of(pod_document("more", "other"))).empty());
}

TEST_F(Volumes, ReadWriteOncePodIsForOnePodInTheCluster) {
  json::Value volume = volume_document("v1", "a", "1Gi");
  volume.as_object()["spec"].as_object().erase("nodeAffinity");
  cluster_.upsert(volume);
  cluster_.upsert(claim_document("once", "ReadWriteOncePod", "v1"));
  EXPECT_EQ(feasible(cluster_, pod_of(pod_document("first", "once"))).size(), 2u);
  cluster_.upsert(pod_document("first", "once", "a"));
  EXPECT_TRUE(feasible(cluster_, pod_of(pod_document("second", "once"))).empty());
}

TEST_F(Volumes, ZoneLabelsOfAVolumeKeepThePodInItsZone) {
  json::Value volume = volume_document("v1", "a", "1Gi");
  volume.as_object()["spec"].as_object().erase("nodeAffinity");
  json::set(volume, {"metadata", "labels", "topology.kubernetes.io/zone"}, "z2");
  cluster_.upsert(volume);
  cluster_.upsert(claim_document("zoned", "ReadWriteOnce", "v1"));
  EXPECT_EQ(feasible(cluster_, pod_of(pod_document("p", "zoned"))), std::vector<std::string>{"b"});
}

TEST_F(Volumes, AMissingClaimIsSaidInTheApisWords) {
  const auto framework = *Framework::create(default_profile(Era::k136));
  const auto got = evaluate(*framework, cluster_, *pod_of(pod_document("p", "nowhere")));
  EXPECT_EQ(got.pre_filter.message(), "persistentvolumeclaim \"nowhere\" not found");
}

}  // namespace
}  // namespace berth::placement
