// What a signature leaves out changes nothing: pods of one signature get the same verdicts, scores and preemption.
#include "placement/signature.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "placement/columns/cluster_index.h"
#include "placement/preemption.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

using model::PodView;

struct Change {
  const char* what;
  void (*make)(PodView& pod, RandomWorld& world);
};

void relabel(PodView& pod, const std::string& key, const std::string& value) {
  auto pairs = pod.meta.labels.pairs();
  std::erase_if(pairs, [&](const auto& pair) { return pair.first == key; });
  pairs.emplace_back(key, value);
  pod.meta.labels = model::Labels(std::move(pairs));
}

/// Of every field of a pod that a plugin could read; what its own nomination says is the one thing that stands beside the signature.
constexpr Change kChanges[] = {
    {"name", [](PodView& pod, RandomWorld&) { pod.meta.name += "-other"; }},
    {"uid", [](PodView& pod, RandomWorld&) { pod.meta.uid += "-other"; }},
    {"namespace", [](PodView& pod, RandomWorld& world) { pod.meta.ns = world.chance(50) ? "team-a" : "elsewhere"; }},
    {"a label of its own", [](PodView& pod, RandomWorld& world) { relabel(pod, "controller-uid", std::to_string(world.below(1000))); }},
    {"the app label", [](PodView& pod, RandomWorld& world) { relabel(pod, "app", world.chance(50) ? "web" : "batch"); }},
    {"the tier label", [](PodView& pod, RandomWorld& world) { relabel(pod, "tier", world.chance(50) ? "gold" : "tin"); }},
    {"no labels", [](PodView& pod, RandomWorld&) { pod.meta.labels = {}; }},
    {"an annotation",
     [](PodView& pod, RandomWorld& world) {
       pod.meta.annotations = {{"team", std::to_string(world.below(9))}};
     }},
    {"the owner",
     [](PodView& pod, RandomWorld& world) {
       constexpr const char* kKinds[] = {"ReplicaSet", "Job", "StatefulSet"};
       pod.meta.owner_references = {{"apps/v1", kKinds[world.below(3)], "owner", std::to_string(world.below(5)), true}};
     }},
    {"its age", [](PodView& pod, RandomWorld&) { pod.meta.creation_timestamp = "2026-01-01T00:00:00Z"; }},
    {"deletion", [](PodView& pod, RandomWorld&) { pod.meta.is_deleting = !pod.meta.is_deleting; }},
    {"the priority class", [](PodView& pod, RandomWorld&) { pod.priority_class_name = "other"; }},
    {"the priority", [](PodView& pod, RandomWorld& world) { pod.priority = world.below(3) * 10; }},
    {"the preemption policy", [](PodView& pod, RandomWorld&) { pod.preemption_never = !pod.preemption_never; }},
    {"the phase", [](PodView& pod, RandomWorld&) { pod.phase = "Pending"; }},
    {"the start", [](PodView& pod, RandomWorld&) { pod.start_time = "2026-01-01T00:00:00Z"; }},
    {"the host's network", [](PodView& pod, RandomWorld&) { pod.host_network = !pod.host_network; }},
    {"the grace period", [](PodView& pod, RandomWorld&) { pod.termination_grace_period_seconds = 7; }},
    {"a container's name", [](PodView& pod, RandomWorld&) { pod.containers[0].name = "other"; }},
    {"an image that nobody has",
     [](PodView& pod, RandomWorld& world) { pod.containers[0].image = "job:" + std::to_string(world.below(99)); }},
    {"an image", [](PodView& pod, RandomWorld& world) { pod.containers[0].image = world.chance(50) ? "app:v1" : "big:latest"; }},
    {"limits",
     [](PodView& pod, RandomWorld&) {
       pod.containers[0].limits = {{"cpu", model::Quantity::from_value(9)}};
     }},
    {"a request",
     [](PodView& pod, RandomWorld& world) {
       pod.containers[0].requests = {{"cpu", model::Quantity::from_milli(50 + world.below(3))}};
     }},
    {"a host port",
     [](PodView& pod, RandomWorld& world) {
       pod.containers[0].host_ports = {{8000 + world.below(2), "TCP", ""}};
     }},
    {"a projected volume",
     [](PodView& pod, RandomWorld& world) {
       model::VolumeView volume;
       volume.name = "kube-api-access-" + std::to_string(world.below(1000));
       pod.volumes.push_back(std::move(volume));
     }},
    {"the volumes' names",
     [](PodView& pod, RandomWorld& world) {
       for (auto& volume : pod.volumes) volume.name = "v" + std::to_string(world.below(1000));
     }},
    {"no volumes", [](PodView& pod, RandomWorld&) { pod.volumes.clear(); }},
    {"the patience of tolerations",
     [](PodView& pod, RandomWorld& world) {
       for (auto& toleration : pod.tolerations) toleration.toleration_seconds = world.below(600);
     }},
    {"a toleration",
     [](PodView& pod, RandomWorld&) {
       pod.tolerations.push_back({"dedicated", "Exists", "", "", {}});
     }},
    {"the node selector",
     [](PodView& pod, RandomWorld&) {
       pod.node_selector = {{"disk", "ssd"}};
     }},
    {"preferred nodes", [](PodView& pod, RandomWorld&) { pod.node_affinity.preferred.clear(); }},
    {"required nodes", [](PodView& pod, RandomWorld&) { pod.node_affinity.required.reset(); }},
    {"its anti-affinity", [](PodView& pod, RandomWorld&) { pod.required_anti_affinity.clear(); }},
    {"its affinity", [](PodView& pod, RandomWorld&) { pod.required_affinity.clear(); }},
    {"its preferences",
     [](PodView& pod, RandomWorld&) {
       for (auto& term : pod.preferred_affinity) ++term.weight;
     }},
    {"its spreading",
     [](PodView& pod, RandomWorld&) {
       for (auto& constraint : pod.spread_constraints) constraint.is_hard = !constraint.is_hard;
     }},
    {"the node's name", [](PodView& pod, RandomWorld&) { pod.node_name = "n1"; }},
    {"a gate", [](PodView& pod, RandomWorld&) { pod.scheduling_gates = {"wait"}; }},
    {"features", [](PodView& pod, RandomWorld&) { pod.required_features = {"Something"}; }},
    {"an infeasible resize", [](PodView& pod, RandomWorld&) { pod.resize_infeasible = !pod.resize_infeasible; }},
};

std::string describe(const Cluster& cluster, const Framework& framework, const PodInfo& pod) {
  const Status gate = framework.run_pre_enqueue(pod.view(), &cluster);
  std::string out = "gate " + gate.message();
  const Evaluation found = evaluate(framework, cluster, pod);
  out += "\npre " + found.pre_filter.message();
  if (!found.errors.empty()) return out + "\nan error";  // Its words may name the pod.
  for (const auto& one : found.feasible) {
    out += fmt::format("\n{} fits", one.node.value);
    for (const auto score : one.scores) out += fmt::format(" {}", score);
  }
  for (const auto& one : found.rejected)
    out += fmt::format("\n{} {} {}", one.node.value, static_cast<int>(one.status.code), one.status.message());
  return out;
}

std::string describe(const PostFilterResult& result) {
  std::string out = result.status.message();
  for (const auto& candidate : result.candidates) {
    out += fmt::format("\n{} breaks {}:", candidate.node.value, candidate.budget_violations);
    for (const auto& victim : candidate.victims) out += " " + victim->key;
  }
  return out;
}

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
  for (int i = 0; i < 12 && out.difference.empty(); ++i) {
    const auto view = world.pod("asking");
    const auto pod = PodInfo::make(view, profile.era);
    index.note_namespace_selectors(*pod);
    const Signature signature = framework->sign(*pod, onlookers);
    const Signature filters = framework->sign_filters(*pod, onlookers);
    const std::string said = describe(cluster, *framework, *pod);
    for (const Change& change : kChanges) {
      auto changed_view = std::make_shared<PodView>(*view);
      change.make(*changed_view, world);
      const auto changed = PodInfo::make(std::move(changed_view), profile.era);
      if (framework->sign(*changed, onlookers) == signature) {
        ++out.alike;
        const std::string says = describe(cluster, *framework, *changed);
        if (says != said) out.difference = fmt::format("{}:\n{}\nnot\n{}", change.what, says, said);
      } else {
        ++out.different;
      }
      if (framework->sign_filters(*changed, onlookers) != filters) continue;
      const auto victims = [&](const PodInfoPtr& one) {
        return describe(run_post_filter(framework, cluster, one, evaluate(*framework, cluster, *one, false), {.confirm = false}));
      };
      if (const auto a = victims(pod), b = victims(changed); a != b)
        out.difference = fmt::format("preemption by {}:\n{}\nnot\n{}", change.what, b, a);
    }
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
class Liar final : public Plugin {
 public:
  std::string_view name() const override { return "Liar"; }
  Points points() const override { return {.filter = true}; }
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
class Silent final : public Plugin {
 public:
  std::string_view name() const override { return "Silent"; }
  Points points() const override { return {.filter = true}; }
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
  other->volumes[0].name = "kube-api-access-b4bbb";
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

}  // namespace
}  // namespace berth::placement::testing
