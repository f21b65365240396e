// What a signature leaves out changes nothing: pods of one signature get the same verdicts, scores and preemption.
#include "placement/signature.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "berth/plugin_testing.h"
#include "placement/columns/cluster_index.h"
#include "placement/plugin_of.h"
#include "placement/preemption.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

using model::PodView;

struct Search {
  std::string difference;  ///< Of two pods of one signature; empty when there is none.
  std::size_t alike = 0;   ///< Changes that the signature leaves out.
  std::size_t different = 0;
};

/// Changes fields of random pods in random clusters, and compares what the profile says wherever the signature stays the same.
Search search(const Profile& profile, std::uint64_t seed, bool with_cluster, std::span<const PluginRegistration> more = {}) {
  RandomWorld world(seed);
  world.volumes = seed % 2 == 0;
  const FrameworkPtr framework = *Framework::create(profile, more);
  Cluster cluster(profile.era);
  for (int i = 0; i < 6; ++i) cluster.upsert_node(world.node("n" + std::to_string(i)));
  for (int i = 0; i < 40; ++i) world.change_objects(cluster);
  for (int i = 0; i < 25; ++i) {
    auto view = std::make_shared<PodView>(*world.pod("there" + std::to_string(i)));
    view->node_name = "n" + std::to_string(world.below(6));
    cluster.upsert_pod(std::move(view));
  }
  ClusterIndex index(cluster);
  Onlookers* onlookers = with_cluster ? &index : nullptr;
  Search out;
  plugin_testing::Dice dice(world.random());
  for (int i = 0; i < 12 && out.difference.empty(); ++i) {
    const auto view = world.pod("asking");
    index.note_namespace_selectors(*PodInfo::make(view, profile.era));
    const auto found = plugin_testing::compare_alike(framework, cluster, onlookers, view, plugin_testing::common_changes(), dice);
    out.difference = found.difference;
    out.alike += found.alike;
    out.different += found.different;
  }
  return out;
}

Profile policy_profile() {
  Profile out = default_profile(Era::k120);
  out.pre_score.push_back({"SelectorSpread", 0});
  out.score.push_back({"SelectorSpread", 1});
  out.pre_filter.push_back({"ServiceAffinity", 0});
  out.filter.push_back({"ServiceAffinity", 0});
  out.args.service_affinity.affinity_labels = {"rack"};
  return out;
}

TEST(Signature, WhatItLeavesOutChangesNothing) {
  std::size_t alike = 0, different = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Profile profile = seed % 3 == 0 ? default_profile(Era::k120) : seed % 10 == 1 ? policy_profile() : default_profile(Era::k136);
    const Search found = search(profile, seed, seed % 4 != 0);
    ASSERT_EQ(found.difference, "") << "seed " << seed;
    alike += found.alike;
    different += found.different;
  }
  EXPECT_GT(alike, 10'000U);
  EXPECT_GT(different, 5'000U);
}

/// Reads an annotation and does not say so.
class Liar final : public PluginOf<Liar> {
 public:
  std::string_view name() const override { return "Liar"; }
  void sign(Signer&, const PodInfo&) const override {}
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo&) const override {
    const auto* team = pod.view().meta.annotation("team");
    return team != nullptr && *team == "3" ? Status::unschedulable("not for team 3") : Status::success();
  }
};

TEST(Signature, FindsOutAPluginThatDoesNotSayWhatItReads) {
  const PluginRegistration liar = {"Liar", [](const Profile&) -> Result<PluginPtr> { return std::make_unique<Liar>(); }};
  Profile profile = default_profile(Era::k136);
  profile.filter.insert(profile.filter.begin(), {"Liar", 0});
  std::string difference;
  for (std::uint64_t seed = 1; seed <= 20 && difference.empty(); ++seed)
    difference = search(profile, seed, true, std::span(&liar, 1)).difference;
  EXPECT_TRUE(difference.starts_with("an annotation") || difference.starts_with("preemption by an annotation")) << difference;
}

/// Says nothing of what it reads, and so that every pod is a case of its own.
class Silent final : public PluginOf<Silent> {
 public:
  std::string_view name() const override { return "Silent"; }
  Status filter(const CycleState&, const PodInfo&, const NodeInfo&) const override { return Status::success(); }
};

TEST(Signature, OfAPluginThatSaysNothingIsThePod) {
  const PluginRegistration silent = {"Silent", [](const Profile&) -> Result<PluginPtr> { return std::make_unique<Silent>(); }};
  Profile profile = default_profile(Era::k136);
  profile.filter.push_back({"Silent", 0});
  const FrameworkPtr framework = *Framework::create(profile, std::span(&silent, 1));
  RandomWorld world(1);
  auto view = std::make_shared<PodView>(*world.pod("a"));
  const auto one = PodInfo::make(view, Era::k136);
  auto other = std::make_shared<PodView>(*view);
  other->meta.name = "b";
  EXPECT_NE(framework->sign(*one), framework->sign(*PodInfo::make(other, Era::k136)));
  EXPECT_EQ(framework->sign(*one), framework->sign(*PodInfo::make(view, Era::k136)));
}

TEST(Signature, CountsLabelsOnlyWhereSomebodyLooksAtThem) {
  Cluster cluster;
  RandomWorld world(1);
  cluster.upsert_node(world.node("n0"));
  const FrameworkPtr framework = default_framework(Era::k136);
  ClusterIndex index(cluster);
  const auto job = [](const std::string& uid) {
    auto view = std::make_shared<PodView>();
    view->meta.ns = "default";
    view->meta.name = "job-" + uid;
    view->meta.labels = model::Labels({{"controller-uid", uid}, {"tier", "batch"}});
    view->meta.owner_references = {{"batch/v1", "Job", "job-" + uid, uid, true}};
    view->containers.emplace_back();
    return PodInfo::make(std::move(view), Era::k136);
  };
  const auto sign = [&](const std::string& uid) {
    index.sync();
    return framework->sign(*job(uid), &index);
  };
  EXPECT_EQ(sign("1"), sign("2"));
  EXPECT_NE(framework->sign(*job("1")), framework->sign(*job("2"))) << "without a cluster nobody knows who looks";
  // Somebody who keeps away from one of them.
  auto shy = std::make_shared<PodView>();
  shy->meta.ns = "default";
  shy->meta.name = "shy";
  shy->node_name = "n0";
  model::PodAffinityTerm term;
  term.topology_key = "kubernetes.io/hostname";
  term.selector = model::Selector({{"controller-uid", model::Requirement::Op::kIn, {"2"}}});
  shy->required_anti_affinity = {term};
  cluster.upsert_pod(shy);
  EXPECT_NE(sign("1"), sign("2"));
  EXPECT_EQ(sign("1"), sign("3"));
  // A service that selects one of them: it is spread by default.
  cluster.upsert(json::Value{
      {"kind", "Service"}, {"metadata", {{"namespace", "default"}, {"name", "s"}}}, {"spec", {{"selector", {{"controller-uid", "3"}}}}}});
  EXPECT_NE(sign("1"), sign("3"));
}

TEST(Signature, TellsVolumesThatMatterFromOthers) {
  const FrameworkPtr framework = default_framework(Era::k136);
  auto view = std::make_shared<PodView>();
  view->meta.ns = "default";
  view->meta.name = "p";
  view->containers.emplace_back();
  model::VolumeView token;
  token.name = "kube-api-access-x7k2p";
  view->volumes.push_back(token);
  const Signature with_token = framework->sign(*PodInfo::make(view, Era::k136));
  EXPECT_FALSE(with_token.has_checks());
  auto other = std::make_shared<PodView>(*view);
  other->volumes.change_at(0, [](model::VolumeView& volume) { volume.name = "kube-api-access-b4bbb"; });
  EXPECT_EQ(framework->sign(*PodInfo::make(other, Era::k136)), with_token);
  other->volumes.clear();
  EXPECT_EQ(framework->sign(*PodInfo::make(other, Era::k136)), with_token);
  model::VolumeView claim;
  claim.kind = model::VolumeView::Kind::kPersistentVolumeClaim;
  claim.id = "data";
  other->volumes.push_back(claim);
  const Signature with_claim = framework->sign(*PodInfo::make(other, Era::k136));
  EXPECT_TRUE(with_claim.has_checks());
  EXPECT_EQ(with_claim.columns(), with_token.columns());
}

TEST(Signature, EachFieldOfADiskTellsPodsApart) {
  using Kind = model::VolumeView::Kind;
  const FrameworkPtr framework = default_framework(Era::k136);
  const auto sign = [&](const model::VolumeView& volume) {
    auto view = std::make_shared<PodView>();
    view->meta.ns = "default";
    view->meta.name = "p";
    view->containers.emplace_back();
    view->volumes = {volume};
    return framework->sign(*PodInfo::make(view, Era::k136));
  };
  model::VolumeView disk;
  disk.kind = Kind::kIscsi;
  disk.name = "data";
  const Signature plain = sign(disk);
  EXPECT_EQ(sign(disk), plain);
  const std::pair<const char*, void (*)(model::VolumeView&)> changes[] = {{"kind", [](auto& v) { v.kind = Kind::kRbd; }},
                                                                          {"id", [](auto& v) { v.id = "1"; }},
                                                                          {"disk uri", [](auto& v) { v.disk_uri = "u"; }},
                                                                          {"pool", [](auto& v) { v.pool = "p"; }},
                                                                          {"monitors", [](auto& v) { v.monitors = {"m"}; }},
                                                                          {"target portal", [](auto& v) { v.target_portal = "t"; }},
                                                                          {"lun", [](auto& v) { v.lun = 7; }},
                                                                          {"read only", [](auto& v) { v.read_only = true; }},
                                                                          {"name", [](auto& v) { v.name = "other"; }}};
  for (const auto& [what, change] : changes) {
    model::VolumeView other = disk;
    change(other);
    EXPECT_NE(sign(other), plain) << what;
  }
  const auto is_nothing = [&](Kind kind) {
    model::VolumeView volume;
    volume.kind = kind;
    volume.name = "data";
    const Signature one = sign(volume);
    volume.id = "another";
    volume.name = "elsewhere";
    return sign(volume) == one && !one.has_checks();
  };
  EXPECT_TRUE(is_nothing(Kind::kOther));
  EXPECT_TRUE(is_nothing(Kind::kCsi));
  EXPECT_FALSE(is_nothing(Kind::kImage)) << "a node may have its image";
  EXPECT_FALSE(is_nothing(Kind::kGcePersistentDisk));
  EXPECT_FALSE(is_nothing(Kind::kEphemeral));
}

}  // namespace
}  // namespace berth::placement::testing
