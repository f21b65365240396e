// What Karpenter's own scheduler (tests/peers/karpenter) made of scenarios, beside what is planned here: never fewer pods, never dearer.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/pools/builder.h"
#include "tests/pools/scenarios.h"
#include "tests/support/source_dir.h"

namespace berth::pools {
namespace {

using namespace tests;

constexpr unsigned kSeeds = 12;

/// The plan for a scenario, and how long it took.
struct Played {
  TestWorld world;
  Catalogue catalogue;
  ProvisionPlan plan;
  double seconds = 0;
  explicit Played(const Scenario& scenario) {
    auto read = Catalogue::parse(scenario.catalogue, scenario.name);
    EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
    if (!read) return;
    catalogue = std::move(*read);
    world.add_yaml(scenario.cluster);
    const ProvisionInput& input = world.input(catalogue);
    const auto start = std::chrono::steady_clock::now();
    plan = plan_provisioning(input);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> out;
  for (const std::string& kind : scenario_kinds())
    for (unsigned seed = 1; seed <= kSeeds; ++seed) out.push_back(make_scenario(kind, seed));
  return out;
}

/// No test: tests/peers/karpenter/run has it write what Karpenter reads into BERTH_SCENARIOS, and print what is planned here.
TEST(Karpenter, DISABLED_WritesScenarios) {
  const char* folder = std::getenv("BERTH_SCENARIOS");
  ASSERT_NE(folder, nullptr) << "BERTH_SCENARIOS names no folder";
  std::vector<Scenario> all = all_scenarios();
  all.push_back(make_large_scenario());
  std::ofstream ours(std::filesystem::path(folder) / "berth.jsonl");
  for (const Scenario& scenario : all) {
    const std::filesystem::path at = std::filesystem::path(folder) / scenario.name;
    std::filesystem::create_directories(at);
    write(at / "catalogue.yaml", scenario.catalogue);
    write(at / "cluster.yaml", scenario.cluster);
    const Played played(scenario);
    json::Array left, types;
    std::size_t placed = 0;
    for (const auto& one : played.plan.refused) left.emplace_back(one.pod->view().meta.name + ": " + one.why);
    for (const NewClaim& claim : played.plan.claims) {
      placed += claim.pods.size();
      types.emplace_back(fmt::format("{} {} {} {}", claim.type, claim.zone, claim.capacity_type, claim.pods.size()));
    }
    ours << json::serialize(json::Value(json::Object{{"name", scenario.name},
                                                     {"onExisting", played.plan.on_existing.size()},
                                                     {"onNew", placed},
                                                     {"nodes", played.plan.claims.size()},
                                                     {"cost", played.plan.cost},
                                                     {"bound", played.plan.bound},
                                                     {"left", left},
                                                     {"types", types},
                                                     {"seconds", played.seconds}}))
         << "\n";
  }
}

/// One look at what could go, and how long it took.
struct Consolidated {
  TestWorld world;
  Catalogue catalogue;
  ConsolidationPlan plan;
  std::size_t nodes = 0, nodes_after = 0, moved = 0;
  double seconds = 0;
  explicit Consolidated(const Scenario& scenario) {
    catalogue = Catalogue::parse(scenario.catalogue, scenario.name).value();
    world.add_yaml(scenario.cluster);
    const ProvisionInput& input = world.input(catalogue);
    const auto start = std::chrono::steady_clock::now();
    plan = plan_consolidation({input, world.view.owned});
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    nodes = nodes_after = world.view.owned.size();
    for (const Disruption& step : plan.steps) {
      nodes_after = nodes_after + step.replacements.size() - step.nodes.size();
      moved += step.evicted.size();
    }
  }
};

/// The same of half-empty clusters.
TEST(Karpenter, DISABLED_WritesConsolidations) {
  const char* folder = std::getenv("BERTH_SCENARIOS");
  ASSERT_NE(folder, nullptr) << "BERTH_SCENARIOS names no folder";
  std::ofstream ours(std::filesystem::path(folder) / "consolidated.jsonl");
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const Scenario scenario = make_half_empty(seed);
    const std::filesystem::path at = std::filesystem::path(folder) / scenario.name;
    std::filesystem::create_directories(at);
    write(at / "catalogue.yaml", scenario.catalogue);
    write(at / "cluster.yaml", scenario.cluster);
    const Consolidated done(scenario);
    ours << json::serialize(json::Value(json::Object{{"name", scenario.name},
                                                     {"nodes", done.nodes},
                                                     {"before", done.plan.cost},
                                                     {"cost", done.plan.cost - done.plan.savings},
                                                     {"after", done.nodes_after},
                                                     {"moved", done.moved},
                                                     {"seconds", done.seconds}}))
         << "\n";
  }
}

/// A line of karpenter_facts.txt.
struct Fact {
  std::string kind;
  unsigned seed = 0;
  std::size_t pods = 0, placed = 0, nodes = 0;
  double cost = 0;
};
std::vector<Fact> facts() {
  std::ifstream in(berth::testing::source_dir() + "/tests/pools/karpenter_facts.txt");
  std::vector<Fact> out;
  for (std::string line; std::getline(in, line);) {
    char kind[32] = {};
    Fact fact;
    if (std::sscanf(line.c_str(), "%31[a-z]-%u pods=%zu placed=%zu nodes=%zu cost=%lf", kind, &fact.seed, &fact.pods, &fact.placed,
                    &fact.nodes, &fact.cost) != 6)
      continue;  // A comment.
    fact.kind = kind;
    out.push_back(std::move(fact));
  }
  return out;
}

TEST(Karpenter, PlacesNoMorePodsAndPaysNoLess) {
  const std::vector<Fact> all = facts();
  ASSERT_EQ(all.size(), scenario_kinds().size() * kSeeds);
  for (const Fact& fact : all) {
    const Scenario scenario = make_scenario(fact.kind, fact.seed);
    const Played played(scenario);
    const std::size_t pods = played.world.view.provision.waiting.size(), placed = pods - played.plan.refused.size();
    EXPECT_EQ(pods, fact.pods) << scenario.name << ": not the scenario that was recorded";
    EXPECT_GE(placed, fact.placed) << scenario.name;
    // Who places more may pay more.
    if (placed == fact.placed) {
      EXPECT_LE(played.plan.cost, fact.cost + 5e-5) << scenario.name << ": " << words(played.plan.claims);
    }
    EXPECT_LE(played.plan.bound, played.plan.cost + 1e-9) << scenario.name;
    EXPECT_GT(played.plan.bound, played.plan.claims.empty() ? -1 : 0) << scenario.name;
  }
}

}  // namespace
}  // namespace berth::pools
