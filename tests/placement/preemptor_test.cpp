// The indexed form of preemption against the plain one, and the plain one against what people rely on (SPEC C3).
#include "placement/preemptor.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "base/json.h"
#include "placement/columns/topology_part.h"
#include "placement/plugin_of.h"
#include "placement/removable_load.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement {
namespace {

FrameworkPtr framework_of(Era era) {
  auto made = Framework::create(default_profile(era));
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return *made;
}

json::Value node_document(const std::string& name, int cpu, int pods, const std::string& disk) {
  return {{"kind", "Node"},
          {"metadata", {{"name", name}, {"labels", {{"disk", disk}}}}},
          {"status", {{"allocatable", {{"cpu", std::to_string(cpu)}, {"memory", "16Gi"}, {"pods", std::to_string(pods)}}}}}};
}

json::Value pod_document(const std::string& name, int cpu_milli, int priority, const std::string& node = "", int start = 0,
                         const std::string& app = "") {
  json::Value out = {
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", name}}},
      {"spec",
       {{"priority", priority},
        {"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", fmt::format("{}m", cpu_milli)}}}}}}}}}},
      {"status", {{"startTime", fmt::format("2026-01-01T{:02}:{:02}:00Z", start / 60, start % 60)}}}};
  if (!node.empty()) json::set(out, {"spec", "nodeName"}, json::Value(node));
  if (!app.empty()) json::set(out, {"metadata", "labels", "app"}, json::Value(app));
  return out;
}

PodInfoPtr pod_of(const json::Value& document, Era era) {
  return PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), era);
}

json::Value budget_document(const std::string& app, int allowed) {
  return {{"kind", "PodDisruptionBudget"},
          {"metadata", {{"name", "budget-" + app}, {"namespace", "default"}}},
          {"spec", {{"selector", {{"matchLabels", {{"app", app}}}}}}},
          {"status", {{"disruptionsAllowed", allowed}}}};
}

std::vector<std::string> keys(const Candidate* candidate) {
  std::vector<std::string> out;
  if (candidate == nullptr) return out;
  for (const auto& victim : candidate->victims) out.push_back(victim->key);
  return out;
}

/// BERTH_SEEDS=1000: for longer.
const std::uint64_t kSeeds = std::getenv("BERTH_SEEDS") == nullptr ? 100 : std::stoull(std::getenv("BERTH_SEEDS"));

class PreemptorAgainstPlain : public ::testing::TestWithParam<Era> {};

TEST_P(PreemptorAgainstPlain, SameAnswerThroughRandomChanges) {
  const Era era = GetParam();
  const auto framework = framework_of(era);
  std::size_t compared = 0, found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
    Cluster cluster(era);
    const int node_count = 3 + below(12);
    for (int i = 0; i < node_count; ++i)
      cluster.upsert(node_document(fmt::format("n{:02}", i), 2 + below(4), 3 + below(8), below(3) == 0 ? "hdd" : "ssd"));
    if (seed % 3 == 0) cluster.upsert(budget_document("a", below(2)));
    if (seed % 4 == 0) cluster.upsert(budget_document("b", 0));
    Preemptor preemptor(cluster);
    int next = 0;
    for (int step = 0; step < 120; ++step) {
      const int what = below(10);
      if (what < 6) {
        const std::string app = below(2) == 0 ? "" : below(2) == 0 ? "a" : "b";
        cluster.upsert(pod_document(fmt::format("p{:03}", next), 100 * (1 + below(12)), below(4) - 1,
                                    fmt::format("n{:02}", below(node_count)), below(1000), app));
        ++next;
      } else if (what == 6 && next > 0) {
        cluster.remove_pod(fmt::format("default/p{:03}", below(next)));
      } else if (what == 7) {
        cluster.upsert(node_document(fmt::format("n{:02}", below(node_count)), 2 + below(4), 3 + below(8), "ssd"));
      } else if (what == 8) {
        cluster.nominate(pod_of(pod_document(fmt::format("w{}", below(5)), 500, below(6)), era), fmt::format("n{:02}", below(node_count)));
      } else if (what == 9 && seed % 3 == 0) {
        json::Value edited = budget_document(below(2) == 0 ? "a" : "b", below(2));  // Another selector, perhaps.
        json::set(edited, {"metadata", "name"}, "budget-a");
        cluster.upsert(edited);
      }
      json::Value wanted = pod_document(fmt::format("high{}", step), 500 * (1 + below(6)), 1 + below(4));
      if (below(3) == 0) json::set(wanted, {"spec", "nodeSelector", "disk"}, "ssd");
      const auto pod = pod_of(wanted, era);
      const auto failed = evaluate(*framework, cluster, *pod);
      if (!failed.feasible.empty()) continue;
      const auto plain = run_post_filter(framework, cluster, pod, failed);
      const auto quick = preemptor.find(framework, pod);
      ASSERT_TRUE(preemptor.was_fast());
      ++compared;
      found += plain.choice() != nullptr;
      ASSERT_EQ(plain.status.code, quick.status.code) << "seed " << seed << " step " << step;
      ASSERT_EQ(plain.status.message(), quick.status.message()) << "seed " << seed << " step " << step;
      ASSERT_EQ(plain.tied, quick.tied) << "seed " << seed << " step " << step;
      ASSERT_EQ(keys(plain.choice()), keys(quick.choice())) << "seed " << seed << " step " << step;
      if (plain.choice() != nullptr) {
        ASSERT_EQ(plain.choice()->budget_violations, quick.choice()->budget_violations);
      }
    }
  }
  EXPECT_GT(compared, 100u);
  EXPECT_GT(found, 30u);
}

INSTANTIATE_TEST_SUITE_P(Eras, PreemptorAgainstPlain, ::testing::Values(Era::k120, Era::k136));

/// A stranger's filter that goes by the node and what is on it: pods of one label want few of their kind there. It is asked about nodes
/// without some of their pods, or says it in numbers.
bool are_alike(const PodInfo& a, const PodInfo& b) {
  const auto *one = a.view().meta.labels.get("app"), *other = b.view().meta.labels.get("app");
  return one != nullptr && other != nullptr && *one == *other;
}
constexpr const char* kEnough = "node(s) had enough of the kind";

class FewLoad final : public RemovableLoad {
 public:
  explicit FewLoad(PodInfoPtr pod) : pod_(std::move(pod)) {}
  [[nodiscard]] std::unique_ptr<RemovableLoad> clone() const override { return std::make_unique<FewLoad>(*this); }
  [[nodiscard]] std::vector<Condition> conditions() const override { return {{.is_summed = true}}; }
  [[nodiscard]] std::vector<Status> words() const override { return {Status::unschedulable(kEnough)}; }
  void load_of(const PodInfo& other, std::span<std::int64_t> out) const override { out[0] = are_alike(*pod_, other) ? 1 : 0; }
  void limits(const NodeInfo&, std::span<LoadLimit> out) const override { out[0] = {.most = 1}; }

 private:
  PodInfoPtr pod_;
};

template <bool in_numbers>
class FewOfAKind final : public PluginOf<FewOfAKind<in_numbers>> {
 public:
  std::string_view name() const override { return "FewOfAKind"; }
  void sign(Signer& signer, const PodInfo&) const override { signer.labels(); }
  ColumnKind column_kind() const override { return ColumnKind::kNodeLocal; }
  Status filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) const override {
    const auto alike = std::ranges::count_if(node.pods, [&](const auto& other) { return are_alike(pod, *other); });
    return alike < 2 ? Status::success() : Status::unschedulable(kEnough);
  }
  [[nodiscard]] std::unique_ptr<RemovableLoad> removable_load(const TopologySetup& setup) const override {
    return in_numbers ? std::make_unique<FewLoad>(setup.pod.shared_from_this()) : nullptr;
  }
};

template <bool in_numbers>
FrameworkPtr with_a_stranger(Era era) {
  static const PluginRegistration few{"FewOfAKind",
                                      [](const Profile&) -> Result<PluginPtr> { return std::make_unique<FewOfAKind<in_numbers>>(); }};
  Profile profile = default_profile(era);
  profile.filter.insert(profile.filter.begin() + 5, {"FewOfAKind", 0});
  return *Framework::create(profile, std::span(&few, 1));
}

/// Nodes, pods and preemptors of every kind the random world knows, with budgets whose allowance comes and goes.
class PreemptorInARandomWorld : public ::testing::TestWithParam<Era> {};

TEST_P(PreemptorInARandomWorld, SameAnswerThroughRandomChanges) {
  const Era era = GetParam();
  std::size_t compared = 0, found = 0, fast = 0, with_claims = 0, with_strangers = 0, in_domains = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    testing::RandomWorld world(seed);
    world.volumes = seed % 5 == 0;
    const auto framework = seed % 6 == 0 ? with_a_stranger<true>(era) : seed % 3 == 0 ? with_a_stranger<false>(era) : framework_of(era);
    Cluster cluster(era);
    const int nodes = 2 + world.below(8);
    for (int i = 0; i < nodes; ++i) cluster.upsert_node(world.node(fmt::format("n{}", i)));
    const PreemptionOptions options{.budgets_are_hard = seed % 7 == 0};
    Preemptor preemptor(cluster, options);
    const bool calm = seed % 4 == 0;  // Without affinity among pods.
    const auto make = [&](const std::string& name, std::int64_t priority) {
      auto out = std::make_shared<model::PodView>(*world.pod(name));
      out->priority = priority;
      if (world.chance(1))
        out->containers.change_at(0, [&](auto& one) { one.requests = {{"memory", model::Quantity::from_value(INT64_MAX)}}; });
      out->start_time = fmt::format("2026-01-01T{:02}:{:02}:00Z", world.below(24), world.below(60));
      if (calm) {
        out->required_affinity.clear();
        out->required_anti_affinity.erase_if([](const auto& term) { return term.topology_key != "kubernetes.io/hostname"; });
        out->spread_constraints.clear();
      }
      return out;
    };
    for (int step = 0; step < 90; ++step) {
      const int what = world.below(14);
      if (what < 8) {
        auto pod = make(fmt::format("p{}", step), world.below(4) - 1);
        pod->node_name = fmt::format("n{}", world.below(nodes));
        cluster.upsert_pod(pod);
      } else if (what == 8) {
        cluster.upsert_node(world.node(fmt::format("n{}", world.below(nodes))));
      } else if (what == 9) {
        json::Value budget = budget_document(world.chance(50) ? "web" : "db", world.below(3));
        json::set(budget, {"metadata", "namespace"}, json::Value(world.chance(50) ? "default" : "team-a"));
        cluster.upsert(budget);
      } else if (what == 10) {
        cluster.nominate(PodInfo::make(make(fmt::format("w{}", world.below(4)), world.below(6)), era),
                         fmt::format("n{}", world.below(nodes)));
      } else if (what == 11) {
        world.change_objects(cluster);
      } else if (what == 12) {
        cluster.remove("PodDisruptionBudget", "default", "budget-web");
      }
      auto view = make(world.chance(15) ? fmt::format("w{}", world.below(4)) : fmt::format("high{}", step), 1 + world.below(4));
      view->containers.change_at(
          0, [&](auto& one) { one.requests.emplace_back("example.com/gpu", model::Quantity::from_value(world.below(3))); });
      view->preemption_never = world.chance(3);
      if (world.chance(10)) view->nominated_node_name = fmt::format("n{}", world.below(nodes));
      const auto pod = PodInfo::make(view, era);
      const auto failed = evaluate(*framework, cluster, *pod);
      if (!failed.feasible.empty() || !failed.errors.empty()) continue;
      const auto plain = run_post_filter(framework, cluster, pod, failed, options);
      const auto quick = preemptor.find(framework, pod);
      ++compared;
      fast += preemptor.was_fast();
      const bool is_found = preemptor.was_fast() && plain.choice() != nullptr;
      found += is_found;
      with_claims += is_found && framework->sign_filters(*pod).has_checks();
      with_strangers += is_found && seed % 3 == 0;
      const auto is_wide = [](const auto& term) { return term.topology_key != "kubernetes.io/hostname"; };
      in_domains += is_found && (!pod->required_affinity.empty() || std::ranges::any_of(pod->required_anti_affinity, is_wide) ||
                                 std::ranges::any_of(view->spread_constraints, &model::TopologySpreadConstraint::is_hard));
      const auto where = fmt::format("seed {} step {} {} {}", seed, step, preemptor.was_fast() ? "fast" : "plain", pod->key);
      ASSERT_EQ(plain.status.code, quick.status.code) << where;
      ASSERT_EQ(plain.status.message(), quick.status.message()) << where;
      ASSERT_EQ(plain.tied, quick.tied) << where;
      ASSERT_EQ(keys(plain.choice()), keys(quick.choice())) << where;
      if (plain.choice() != nullptr) {
        ASSERT_EQ(plain.choice()->budget_violations, quick.choice()->budget_violations) << where;
      }
    }
  }
  EXPECT_GT(compared, 500u);
  EXPECT_GT(fast, compared * 7 / 10);
  EXPECT_GT(found, 150u);
  EXPECT_GT(with_claims, era == Era::k120 ? 0u : 3u);
  EXPECT_GT(with_strangers, 30u);
  EXPECT_GT(in_domains, 30u);
}

INSTANTIATE_TEST_SUITE_P(Eras, PreemptorInARandomWorld, ::testing::Values(Era::k120, Era::k136));

TEST(Preemptor, KnowsRequiredAffinityByItsDomains) {
  Cluster cluster;
  cluster.upsert(node_document("n", 2, 10, "ssd"));
  cluster.upsert(pod_document("low", 2000, 0, "n"));
  json::Value wanted = pod_document("high", 2000, 10);
  const json::Value near_all = json::Array{{{"topologyKey", "disk"}, {"labelSelector", json::Object()}}};
  json::set(wanted, {"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}, near_all);
  Preemptor preemptor(cluster);
  EXPECT_EQ(keys(preemptor.find(framework_of(Era::k136), pod_of(wanted, Era::k136)).choice()), std::vector<std::string>{"default/low"});
  EXPECT_TRUE(preemptor.was_fast()) << "a disk of its own for each node";
  json::Value near_nobody = near_all;
  near_nobody.as_array()[0].as_object()["labelSelector"] = {{"matchLabels", {{"app", "nobody"}}}};
  json::set(wanted, {"spec", "affinity"}, {{"podAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", near_nobody}}}});
  EXPECT_EQ(preemptor.find(framework_of(Era::k136), pod_of(wanted, Era::k136)).choice(), nullptr);
  EXPECT_TRUE(preemptor.was_fast());
  // Company comes: then the node is a candidate, and the class is told by its domains alone.
  cluster.upsert(node_document("other", 2, 10, "ssd"));
  cluster.upsert(pod_document("somebody", 2000, 20, "other", 0, "nobody"));
  EXPECT_EQ(keys(preemptor.find(framework_of(Era::k136), pod_of(wanted, Era::k136)).choice()), std::vector<std::string>{"default/low"});
  EXPECT_TRUE(preemptor.was_fast());
  cluster.remove_pod("default/somebody");
  EXPECT_EQ(preemptor.find(framework_of(Era::k136), pod_of(wanted, Era::k136)).choice(), nullptr);
  EXPECT_TRUE(preemptor.was_fast());
}

/// PreFilter skips affinity where nobody who is there minds the pod; then a nominated pod that does is not asked either.
TEST(Preemptor, NominatedPodsMindOnlyWhereSomebodyWhoIsThereDoes) {
  Cluster cluster;
  const auto framework = framework_of(Era::k136);
  for (const char* node : {"a", "b"}) cluster.upsert(node_document(node, 2, 10, node));
  const auto minding = [](const char* name, int priority, const char* node) {
    json::Value out = pod_document(name, 100, priority, node);
    json::set(out, {"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
              json::Array{{{"topologyKey", "disk"}, {"labelSelector", {{"matchLabels", {{"app", "web"}}}}}}});
    return out;
  };
  cluster.upsert(pod_document("low", 2000, 0, "a"));
  cluster.upsert(pod_document("fixed", 1900, 100, "b"));
  cluster.upsert(minding("there", 100, "b"));
  cluster.nominate(pod_of(minding("promised", 50, ""), Era::k136), "a");
  Preemptor preemptor(cluster);
  const auto found = [&] {
    const auto pod = pod_of(pod_document("high", 1000, 10, "", 0, "web"), Era::k136);
    const auto quick = preemptor.find(framework, pod);
    EXPECT_TRUE(preemptor.was_fast());
    EXPECT_EQ(run_post_filter(framework, cluster, pod, evaluate(*framework, cluster, *pod)).status.message(), quick.status.message());
    return keys(quick.choice());
  };
  EXPECT_EQ(found(), std::vector<std::string>{});
  cluster.remove_pod("default/there");
  EXPECT_EQ(found(), std::vector<std::string>{"default/low"});
  cluster.upsert(minding("there", 100, "b"));
  EXPECT_EQ(found(), std::vector<std::string>{});
}

/// By the old release's rules they mind whoever is there.
TEST(Preemptor, NominatedPodsMindByThemselvesIn120) {
  Cluster cluster(Era::k120);
  const auto framework = framework_of(Era::k120);
  cluster.upsert(node_document("a", 2, 10, "a"));
  cluster.upsert(pod_document("low", 2000, 0, "a"));
  json::Value minding = pod_document("promised", 100, 50);
  json::set(minding, {"spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
            json::Array{{{"topologyKey", "disk"}, {"labelSelector", {{"matchLabels", {{"app", "web"}}}}}}});
  Preemptor preemptor(cluster);
  const auto found = [&](const char* app) {
    const auto pod = pod_of(pod_document("high", 1000, 10, "", 0, app), Era::k120);
    const auto quick = preemptor.find(framework, pod);
    EXPECT_EQ(keys(run_post_filter(framework, cluster, pod, evaluate(*framework, cluster, *pod)).choice()), keys(quick.choice()));
    return keys(quick.choice());
  };
  EXPECT_EQ(found("web"), std::vector<std::string>{"default/low"});
  cluster.nominate(pod_of(minding, Era::k120), "a");
  EXPECT_EQ(found("web"), std::vector<std::string>{});
  EXPECT_EQ(found("other"), std::vector<std::string>{"default/low"});
  cluster.nominate(pod_of(minding, Era::k120), "");
  EXPECT_EQ(found("web"), std::vector<std::string>{"default/low"});
}

/// Whoever would have to go from the fuller domain is counted one by one: two of three there are one too many.
TEST(Preemptor, EvictsAsManyOfADomainAsItsSkewAsksFor) {
  Cluster cluster;
  for (const char* node : {"a1", "a2", "b"}) cluster.upsert(node_document(node, 4, 10, node[0] == 'a' ? "hdd" : "ssd"));
  for (const char* pod : {"w1", "w2"}) cluster.upsert(pod_document(pod, 1000, 0, "a1", pod[1] == '1' ? 1 : 2, "web"));
  cluster.upsert(pod_document("w3", 1000, 0, "a2", 3, "web"));
  cluster.upsert(pod_document("fixed", 4000, 50, "b", 0, "other"));
  json::Value wanted = pod_document("high", 1000, 10, "", 0, "web");
  json::set(wanted, {"spec", "topologySpreadConstraints"},
            json::Array{{{"topologyKey", "disk"},
                         {"maxSkew", 2},
                         {"whenUnsatisfiable", "DoNotSchedule"},
                         {"labelSelector", {{"matchLabels", {{"app", "web"}}}}}}});
  Preemptor preemptor(cluster);
  const auto framework = framework_of(Era::k136);
  // hdd has three, ssd none: one may be left beside the new one. On a2 there is only one to evict, which is not enough.
  const auto found = preemptor.find(framework, pod_of(wanted, Era::k136));
  EXPECT_EQ(keys(found.choice()), (std::vector<std::string>{"default/w1", "default/w2"}));
  EXPECT_TRUE(preemptor.was_fast());
  EXPECT_EQ(found.tied.size(), 1u);
  // One more of them on the other side of the scale: one is enough, on either node.
  cluster.upsert(pod_document("w4", 1000, 50, "b", 0, "web"));
  EXPECT_EQ(preemptor.find(framework, pod_of(wanted, Era::k136)).choice()->victims.size(), 1u);
  EXPECT_TRUE(preemptor.was_fast());
}

TEST(Preemptor, AsksOnlyTheNodeThatADaemonPodNames) {
  Cluster cluster;
  const auto framework = framework_of(Era::k136);
  for (const char* node : {"a", "b", "c"}) {
    cluster.upsert(node_document(node, 2, 10, "ssd"));
    cluster.upsert(pod_document(std::string("low-") + node, 2000, node[0] == 'c' ? 20 : 0, node));
  }
  const auto daemon_pod = [&](const char* node) {
    json::Value out = pod_document("daemon", 2000, 10);
    json::set(out, {"spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"},
              json::Array{{{"matchFields",
                            json::Array{{{"key", "metadata.name"}, {"operator", "In"}, {"values", json::Array{json::Value(node)}}}}}}});
    return pod_of(out, Era::k136);
  };
  Preemptor preemptor(cluster);
  EXPECT_EQ(keys(preemptor.find(framework, daemon_pod("b")).choice()), std::vector<std::string>{"default/low-b"});
  EXPECT_TRUE(preemptor.was_fast());
  const auto pod = daemon_pod("c");
  const auto none = preemptor.find(framework, pod);
  EXPECT_EQ(none.status.message(), run_post_filter(framework, cluster, pod, evaluate(*framework, cluster, *pod)).status.message());
  EXPECT_NE(none.status.message().find("1 No preemption victims found for incoming pod, 2 Preemption is not helpful"), std::string::npos);
}

/// Nodes enough for several blocks of answers: the best of all is the best of the blocks, whatever changes in them.
TEST(Preemptor, FindsTheBestAmongManyNodes) {
  const auto framework = framework_of(Era::k136);
  std::mt19937_64 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  constexpr int kNodes = 600;
  const auto name_of = [](int node) { return fmt::format("n{:03}", node); };
  Cluster cluster;
  for (int i = 0; i < kNodes; ++i) {
    cluster.upsert(node_document(name_of(i), 2, 10, i % 7 == 0 ? "hdd" : "ssd"));
    cluster.upsert(pod_document(fmt::format("p{}", i), 2000, i % 5, name_of(i), i % 3));
  }
  Preemptor preemptor(cluster);
  for (int step = 0; step < 40; ++step) {
    const int node = below(kNodes);
    if (step % 4 == 0) cluster.remove_node(name_of(node));
    if (step % 4 == 1) cluster.upsert(pod_document(fmt::format("p{}", node), 1500 + below(2) * 500, below(8), name_of(node), below(3)));
    if (step % 4 == 2) cluster.nominate(pod_of(pod_document(fmt::format("high{}", step % 3), 1000, 9), Era::k136), name_of(node));
    if (step % 4 == 3) cluster.upsert(node_document(fmt::format("m{:03}", step), 2, 10, "ssd"));
    if (step % 4 == 3) cluster.upsert(pod_document(fmt::format("q{}", step), 2000, below(3), fmt::format("m{:03}", step), below(3)));
    // Every fifth finds nobody whom it may evict: then the reasons of all nodes are counted.
    json::Value wanted = pod_document(fmt::format("high{}", step % 3), 2000, step % 5 == 4 ? 0 : 1 + below(9));
    json::set(wanted, {"spec", "nodeSelector", "disk"}, "ssd");
    const auto pod = pod_of(wanted, Era::k136);
    const auto failed = evaluate(*framework, cluster, *pod);
    if (!failed.feasible.empty()) continue;
    const auto plain = run_post_filter(framework, cluster, pod, failed);
    const auto quick = preemptor.find(framework, pod);
    ASSERT_TRUE(preemptor.was_fast());
    ASSERT_EQ(plain.status.message(), quick.status.message()) << "step " << step;
    ASSERT_EQ(std::min<std::size_t>(plain.tied.size(), 256), quick.tied.size()) << "step " << step;
    for (const NodeIndex one : quick.tied) ASSERT_NE(std::ranges::find(plain.tied, one), plain.tied.end()) << "step " << step;
    if (plain.tied.size() <= 256) {
      ASSERT_EQ(keys(plain.choice()), keys(quick.choice())) << "step " << step;
    }
  }
}

TEST(Preemptor, AWaitingPodsOwnNominationDoesNotCountAgainstIt) {
  Cluster cluster;
  const auto framework = framework_of(Era::k136);
  cluster.upsert(node_document("n", 2, 10, "ssd"));
  cluster.upsert(pod_document("low", 2000, 0, "n"));
  const auto pod = pod_of(pod_document("high", 2000, 10), Era::k136);
  Preemptor preemptor(cluster);
  EXPECT_EQ(keys(preemptor.find(framework, pod).choice()), std::vector<std::string>{"default/low"});
  cluster.nominate(pod, "n");
  EXPECT_EQ(keys(preemptor.find(framework, pod).choice()), std::vector<std::string>{"default/low"});
  // Another one of its kind does find the room taken.
  EXPECT_EQ(preemptor.find(framework, pod_of(pod_document("other", 2000, 10), Era::k136)).choice(), nullptr);
}

TEST(Preemption, NeverReliesOnAVictimForAffinity) {
  Cluster cluster;
  json::Value node = node_document("n", 2, 10, "ssd");
  json::set(node, {"metadata", "labels", "kubernetes.io/hostname"}, "n");
  cluster.upsert(node);
  cluster.upsert(pod_document("friend", 2000, 0, "n", 0, "friend"));
  json::Value wanted = pod_document("high", 2000, 10);
  json::set(wanted, {"spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
            json::Array{{{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", {{"matchLabels", {{"app", "friend"}}}}}}});
  const auto framework = framework_of(Era::k136);
  const auto pod = pod_of(wanted, Era::k136);
  EXPECT_EQ(run_post_filter(framework, cluster, pod, evaluate(*framework, cluster, *pod)).choice(), nullptr);
}

TEST(Preemption, HardBudgetsAreNotBroken) {
  Cluster cluster;
  cluster.upsert(node_document("n", 2, 10, "ssd"));
  cluster.upsert(pod_document("low", 2000, 0, "n", 0, "a"));
  cluster.upsert(budget_document("a", 0));
  const auto framework = framework_of(Era::k136);
  const auto pod = pod_of(pod_document("high", 2000, 10), Era::k136);
  const auto failed = evaluate(*framework, cluster, *pod);
  const auto soft = run_post_filter(framework, cluster, pod, failed);
  ASSERT_NE(soft.choice(), nullptr);
  EXPECT_EQ(soft.choice()->budget_violations, 1u);
  const auto hard = run_post_filter(framework, cluster, pod, failed, {.budgets_are_hard = true});
  EXPECT_EQ(hard.choice(), nullptr);
  EXPECT_NE(hard.status.message().find("PodDisruptionBudget"), std::string::npos);
  Preemptor preemptor(cluster, {.budgets_are_hard = true});
  EXPECT_EQ(preemptor.find(framework, pod).status.message(), hard.status.message());
}

TEST(Preemptor, AnEditedBudgetCoversThePodsThatItSelectsNow) {
  Cluster cluster;
  const auto framework = framework_of(Era::k136);
  for (const char* node : {"n1", "n2"}) cluster.upsert(node_document(node, 2, 10, "ssd"));
  cluster.upsert(pod_document("of-a", 2000, 0, "n1", 0, "a"));
  cluster.upsert(pod_document("of-b", 2000, 0, "n2", 0, "b"));
  const auto pod = pod_of(pod_document("high", 2000, 10), Era::k136);
  Preemptor preemptor(cluster);
  json::Value budget = budget_document("a", 0);
  cluster.upsert(budget);
  EXPECT_EQ(keys(preemptor.find(framework, pod).choice()), std::vector<std::string>{"default/of-b"});
  json::set(budget, {"spec", "selector", "matchLabels", "app"}, "b");
  cluster.upsert(budget);
  EXPECT_EQ(keys(preemptor.find(framework, pod).choice()), std::vector<std::string>{"default/of-a"});
  json::set(budget, {"spec", "selector"},
            json::Object{{"matchExpressions", json::Array{{{"key", "app"}, {"operator", "In"}, {"values", json::Array{"a"}}}}}});
  cluster.upsert(budget);
  EXPECT_EQ(keys(preemptor.find(framework, pod).choice()), std::vector<std::string>{"default/of-b"});
  ASSERT_TRUE(preemptor.was_fast());
}

TEST(Engine, PodsOfEqualPriorityThatCountOnANodeHaveItsRoom) {
  Cluster cluster;
  const auto framework = framework_of(Era::k136);
  cluster.upsert(node_document("n", 4, 10, "ssd"));
  cluster.nominate(pod_of(pod_document("first", 3000, 5), Era::k136), "n");
  for (const bool is_plain : {false, true}) {
    EngineOptions options;
    options.plain = is_plain;
    Engine engine(cluster, options);
    for (int round = 0; round < 2; ++round) {  // Without columns, then with.
      const auto outcome = [&](std::int64_t priority, const char* name) {
        return engine.schedule(framework, pod_of(pod_document(name, 2000, priority), Era::k136)).outcome;
      };
      EXPECT_EQ(outcome(4, "lower"), Decision::Outcome::kUnschedulable) << is_plain;
      EXPECT_EQ(outcome(5, "equal"), Decision::Outcome::kUnschedulable) << is_plain;
      EXPECT_EQ(outcome(6, "higher"), Decision::Outcome::kScheduled) << is_plain;
      EXPECT_EQ(outcome(5, "first"), Decision::Outcome::kScheduled) << "its own room does not stand in its way";
    }
  }
}

/// By the old release's rules too, which has no words for it.
TEST(Preemption, WhoWaitsForItsVictimsIsToldApart) {
  for (const Era era : {Era::k120, Era::k136}) {
    Cluster cluster(era);
    cluster.upsert(node_document("n", 2, 10, "ssd"));
    json::Value leaving = pod_document("low", 2000, 0, "n");
    json::set(leaving, {"metadata", "deletionTimestamp"}, "2026-01-01T00:00:00Z");
    json::set(leaving, {"status", "conditions"},
              json::Array{json::Object{{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}}});
    cluster.upsert(leaving);
    json::Value wanted = pod_document("high", 2000, 10);
    const auto framework = framework_of(era);
    const auto both_say = [&](bool waits) {
      const PodInfoPtr pod = pod_of(wanted, era);
      EXPECT_EQ(Preemptor(cluster).find(framework, pod).waits_for_victims, waits);
      EXPECT_EQ(run_post_filter(framework, cluster, pod, evaluate(*framework, cluster, *pod, false)).waits_for_victims, waits);
    };
    both_say(false);
    json::set(wanted, {"status", "nominatedNodeName"}, "n");
    both_say(true);
  }
}

/// Which nodes are chosen among equals depends on what was drawn before, and on nothing else.
TEST(Engine, WhereThereIsNoChoiceNothingIsDrawn) {
  const auto framework = framework_of(Era::k136);
  const auto choices = [&](bool asks_before, bool is_plain) {
    Cluster cluster;
    for (int i = 0; i < 8; ++i) cluster.upsert(node_document(fmt::format("n{}", i), 4, 10, i == 0 ? "hdd" : "ssd"));
    EngineOptions options;
    options.plain = is_plain;
    options.seed = 7;
    Engine engine(cluster, options);
    json::Value pinned = pod_document("pinned", 100, 0);
    json::set(pinned, {"spec", "nodeSelector", "disk"}, "hdd");
    for (int i = 0; i < 5 && asks_before; ++i) EXPECT_EQ(engine.schedule(framework, pod_of(pinned, Era::k136)).node_name, "n0");
    std::string out;
    for (int i = 0; i < 12; ++i)
      out += std::string(engine.schedule(framework, pod_of(pod_document("p", 100, 0), Era::k136)).node_name) + " ";
    return out;
  };
  for (const bool is_plain : {false, true}) EXPECT_EQ(choices(true, is_plain), choices(false, is_plain)) << is_plain;
}

TEST(Engine, AnAttemptWithoutAQuestionCostsNothing) {
  Cluster cluster;
  cluster.upsert(node_document("n", 4, 10, "ssd"));
  Engine engine(cluster);
  engine.begin_attempt();
  engine.begin_attempt();
  engine.end_attempt(true);
  engine.end_attempt(true);
  EXPECT_EQ(engine.memory_bytes(), 0U);
}

TEST(Preemptor, SaysOfEachQuestionWhetherItWasFast) {
  Cluster cluster;
  cluster.upsert(node_document("n", 2, 10, "ssd"));
  cluster.upsert(pod_document("low", 2000, 0, "n"));
  const auto framework = framework_of(Era::k136);
  Profile profile = default_profile(Era::k136);
  profile.post_filter.clear();
  const FrameworkPtr without = *Framework::create(profile);
  const PodInfoPtr pod = pod_of(pod_document("high", 2000, 10), Era::k136);
  Preemptor preemptor(cluster);
  for (int i = 0; i < 3 && !preemptor.was_fast(); ++i) (void)preemptor.find(framework, pod);
  EXPECT_TRUE(preemptor.was_fast());
  (void)preemptor.find(without, pod);
  EXPECT_FALSE(preemptor.was_fast());
}

/// Nobody is there whom it wants to be near, and it would be company for itself.
TEST(Preemptor, TheFirstOfAFamilyMakesItsOwnRoom) {
  Cluster cluster;
  cluster.upsert(node_document("n", 2, 10, "ssd"));
  cluster.upsert(pod_document("low", 2000, 0, "n"));
  const auto framework = framework_of(Era::k136);
  const auto wanted = [](const std::string& app) {
    json::Value out = pod_document("high", 2000, 10, "", 0, app);
    json::set(
        out, {"spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"},
        json::Array{json::Object{{"topologyKey", "disk"}, {"labelSelector", json::Object{{"matchLabels", json::Object{{"app", "web"}}}}}}});
    return pod_of(out, Era::k136);
  };
  Preemptor preemptor(cluster);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(keys(preemptor.find(framework, wanted("web")).choice()), std::vector<std::string>{"default/low"}) << i;
    EXPECT_EQ(preemptor.find(framework, wanted("other")).choice(), nullptr) << "of another family";
  }
}

TEST(Preemption, PolicyNeverPreemptsNobody) {
  Cluster cluster;
  cluster.upsert(node_document("n", 2, 10, "ssd"));
  cluster.upsert(pod_document("low", 2000, 0, "n"));
  json::Value wanted = pod_document("high", 2000, 10);
  json::set(wanted, {"spec", "preemptionPolicy"}, "Never");
  const auto framework = framework_of(Era::k136);
  Preemptor preemptor(cluster);
  const auto result = preemptor.find(framework, pod_of(wanted, Era::k136));
  EXPECT_EQ(result.choice(), nullptr);
  EXPECT_EQ(result.status.message(), "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.");
}

}  // namespace
}  // namespace berth::placement
