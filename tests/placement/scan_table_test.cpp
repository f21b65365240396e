// Scoring all nodes at once gives what scoring one after the other gives.
#include "placement/columns/scan_table.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

class Amounts {
 public:
  explicit Amounts(std::uint64_t seed) : random_(seed) {}
  std::int64_t below(std::int64_t limit) { return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random_); }

  model::NodeViewPtr node(std::size_t number) {
    auto out = std::make_shared<model::NodeView>();
    out->meta.name = "node-" + std::to_string(number);
    // Some nodes say nothing of a resource, some more than fits a double, some are full by their own account.
    const auto put = [&](const char* name, std::int64_t value) {
      if (below(12) != 0) out->allocatable.emplace_back(name, model::Quantity::from_value(value));
    };
    put("cpu", 1 + below(64));
    put("memory", below(20) == 0 ? (1LL << 50) + below(1000) : below(3) == 0 ? 1 + below(1LL << 38) : (1 + below(256)) << 30);
    put("ephemeral-storage", below(8) == 0 ? INT64_MAX - below(9) : below(1LL << 40));
    put("pods", below(6));
    return out;
  }
  PodInfoPtr pod(const std::string& name) {
    auto out = std::make_shared<model::PodView>();
    out->meta.ns = "default";
    out->meta.name = name;
    model::ContainerView container;
    const auto ask = [&](const char* resource, std::int64_t milli) {
      if (below(4) != 0) container.requests.emplace_back(resource, model::Quantity::from_milli(milli));
    };
    ask("cpu", below(5000));
    ask("memory", below(3) == 0 ? below(1LL << 36) * 1000 : (below(16) << 30) * 1000);
    if (below(4) == 0) ask("ephemeral-storage", below(1LL << 38) * 1000);
    out->containers.push_back(std::move(container));
    return PodInfo::make(std::move(out), Era::k136);
  }
  ResourceColumns columns(const PodInfo& pod) {
    ResourceColumns out;
    out.filters = true;
    out.cpu = pod.wanted().cpu_milli;
    out.memory = pod.wanted().memory_bytes;
    out.storage = pod.wanted().ephemeral_storage_bytes;
    out.asks_nothing = out.cpu == 0 && out.memory == 0 && out.storage == 0;
    out.least_weight = below(4) == 0 ? 0 : 1 + below(1000);
    out.cpu_share = 1 + below(5);
    out.memory_share = 1 + below(100);
    out.scored_cpu = pod.request.nonzero_cpu_milli;
    out.scored_memory = pod.request.nonzero_memory_bytes;
    out.balanced_weight = below(4) == 0 ? 0 : 1 + below(100);
    return out;
  }

 private:
  std::mt19937_64 random_;
};

void expect_same(const ClusterIndex& index, const ScanTable& table, const ResourceColumns& wanted) {
  std::vector<std::int32_t> scores;
  table.score(wanted, index, scores);
  for (std::uint32_t node = 0; node < index.cluster().slot_count(); ++node) {
    const NodeAmounts& amounts = index.amounts(node);
    const std::int32_t expected = wanted.shortage(amounts) != 0 ? ScanTable::kUnfit
                                  : !amounts.is_plain           ? ScanTable::kNotPlain
                                                                : static_cast<std::int32_t>(wanted.score(amounts));
    ASSERT_EQ(scores[node], expected) << "node " << node;
  }
}

TEST(ScanTable, ScoresAsResourceColumnsDoNodeByNode) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Amounts amounts(seed);
    Cluster cluster;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < 41; ++i) cluster.upsert_node(amounts.node(i));
    ClusterIndex index(cluster);
    ScanTable table;
    for (std::size_t step = 0; step < 60; ++step) {
      const auto number = static_cast<std::size_t>(amounts.below(50));
      if (step % 10 == 9) cluster.remove_node("node-" + std::to_string(number));
      if (step % 7 == 6) cluster.upsert_node(amounts.node(number));
      for (int i = 0; i < 3; ++i) {
        const NodeIndex node{static_cast<std::uint32_t>(amounts.below(cluster.slot_count()))};
        if (cluster.node(node) != nullptr) cluster.assume(amounts.pod("pod-" + std::to_string(step * 3) + std::to_string(i)), node);
      }
      index.sync();
      table.sync(index);
      ASSERT_NO_FATAL_FAILURE(expect_same(index, table, amounts.columns(*amounts.pod("asking")))) << "seed " << seed << " step " << step;
    }
  }
}

/// Amounts at which quotients are whole numbers: where rounding would show.
TEST(ScanTable, RoundsAsDivisionOfWholeNumbersDoes) {
  Cluster cluster;
  for (std::int64_t i = 0; i < 100; ++i) {
    auto node = std::make_shared<model::NodeView>();
    node->meta.name = "node-" + std::to_string(i);
    node->allocatable = {{"cpu", model::Quantity::from_milli(100 * (i + 1))},
                         {"memory", model::Quantity::from_value(100 * (i + 3))},
                         {"pods", model::Quantity::from_value(10)}};
    cluster.upsert_node(std::move(node));
  }
  ClusterIndex index(cluster);
  ScanTable table;
  table.sync(index);
  for (std::int64_t step = 0; step < 300; ++step) {
    ResourceColumns wanted;
    wanted.filters = true;
    wanted.cpu = wanted.scored_cpu = step;
    wanted.memory = wanted.scored_memory = step * 100 % 299;
    wanted.least_weight = wanted.balanced_weight = wanted.cpu_share = wanted.memory_share = 1;
    ASSERT_NO_FATAL_FAILURE(expect_same(index, table, wanted)) << "step " << step;
  }
}

}  // namespace
}  // namespace berth::placement::testing
