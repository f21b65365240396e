// Memory of NUMA nodes: from which, for whom, over time; machines by fixtures.
#include "placement/numa/memory_ledger.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "model/views/pod_view.h"
#include "node/numa/memory_manager.h"

namespace berth::node::numa {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;
using List = std::vector<Hint>;

/// So many NUMA nodes of ten Gi.
NumaMachine machine(int nodes) {
  NumaMachine out;
  out.layout.nodes = (NodeSet{1} << nodes) - 1;
  for (int i = 0; i < nodes; ++i) out.memory[i] = {{"memory", 10 * kGi}, {"hugepages-1Gi", 2 * kGi}};
  return out;
}
MemoryLedger ledger_of(int nodes, std::int64_t reserved_gi = 1) {
  MemoryByNode reserved;
  reserved[0]["memory"] = reserved_gi * kGi;
  return {machine(nodes).memory, reserved};
}

json::Value container(const std::string& name, const std::string& memory, const std::string& more = "") {
  return *json::parse(
      fmt::format(R"({{"name":"{}","resources":{{"requests":{{"cpu":"1","memory":"{}"}},"limits":{{"cpu":"1","memory":"{}"}}}}{}}})", name,
                  memory, memory, more));
}
PodWishes pod(const std::string& uid, json::Array containers, json::Array init = {}) {
  return wishes_of(model::PodView::parse(
      json::Object{{"metadata", json::Object{{"uid", uid}}},
                   {"spec", json::Object{{"containers", std::move(containers)}, {"initContainers", std::move(init)}}}}));
}
std::string admit(MemoryLedger& ledger, const PodWishes& pod, const Hint& near = {}) {
  for (const Wish& container : pod.containers)
    if (const auto refusal = ledger.give(pod, container, near)) return refusal->message;
  return "";
}
List hints(const MemoryLedger& ledger, const PodWishes& pod) {
  const auto found = ledger.hints(pod, pod.containers.back());
  return found.contains("memory") ? *found.at("memory") : List{};
}

TEST(MemoryLedger, GuaranteedContainersGetTheirsFromTheFewestNumaNodes) {
  MemoryLedger ledger = ledger_of(2);
  EXPECT_EQ(hints(ledger, pod("p", {container("c", "9Gi")})), (List{{3, false}, {2, true}, {1, true}}));
  EXPECT_EQ(hints(ledger, pod("p", {container("c", "10Gi")})), (List{{3, false}, {2, true}})) << "one Gi of the first is the system's";
  EXPECT_EQ(admit(ledger, pod("p", {container("c", "9Gi")})), "");
  EXPECT_EQ(ledger.nodes_of("p", "c"), 1U) << "the lowest";
  EXPECT_EQ(admit(ledger, pod("q", {container("c", "1Gi")})), "");
  EXPECT_EQ(ledger.nodes_of("q", "c"), 2U) << "the first is full";
  const PodWishes burstable = wishes_of(model::PodView::parse(
      *json::parse(R"({"metadata":{"uid":"b"},"spec":{"containers":[{"name":"c","resources":{"requests":{"memory":"1Gi"}}}]}})")));
  EXPECT_EQ(admit(ledger, burstable), "");
  EXPECT_EQ(ledger.nodes_of("b", "c"), 0U) << "from anywhere";
  EXPECT_TRUE(ledger.hints(burstable, burstable.containers.back()).empty());
}

TEST(MemoryLedger, WhatIsNotThereIsRefusedAndComesBackWhenAPodIsOver) {
  MemoryLedger ledger = ledger_of(1);
  EXPECT_EQ(admit(ledger, pod("p", {container("c", "8Gi")})), "");
  EXPECT_EQ(
      admit(ledger, pod("q", {container("c", "2Gi")})),
      "Allocate failed due to [memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available, "
      "which is unexpected");
  EXPECT_EQ(admit(ledger, pod("p", {container("c", "8Gi")})), "") << "it has its own already";
  ledger.keep_only({"q"});
  EXPECT_EQ(admit(ledger, pod("q", {container("c", "9Gi")})), "");
  ledger.release("q");
  EXPECT_EQ(hints(ledger, pod("r", {container("c", "9Gi")})), (List{{1, true}}));
}

TEST(MemoryLedger, ANumaNodeThatServesAGroupServesNobodyElse) {
  MemoryLedger ledger = ledger_of(3, 0);
  EXPECT_EQ(admit(ledger, pod("wide", {container("c", "15Gi")}), {0b011, true}), "");
  EXPECT_EQ(hints(ledger, pod("p", {container("c", "1Gi")})), (List{{4, true}, {3, false}})) << "of the group only together";
  EXPECT_EQ(hints(ledger, pod("p", {container("c", "12Gi")})), (List{}))
      << "two would be needed: those of the group have not as much, others serve it";
  EXPECT_EQ(admit(ledger, pod("small", {container("c", "1Gi")})), "");
  EXPECT_EQ(ledger.nodes_of("small", "c"), 4U);
  EXPECT_EQ(admit(ledger, pod("more", {container("c", "11Gi")}), {0b110, false}),
            "Allocate failed due to [memorymanager] preferred hint violates NUMA node allocation, which is unexpected");
  ledger.release("wide");
  EXPECT_EQ(hints(ledger, pod("p", {container("c", "1Gi")})).size(), 4U) << "when the last of the group is gone each is alone again: "
                                                                         << "three alone, and the two together that serve nobody";
}

TEST(MemoryLedger, WhatAPolicyChoseIsWidenedWhereItHasNotEnough) {
  MemoryLedger ledger = ledger_of(2, 0);
  EXPECT_EQ(admit(ledger, pod("p", {container("c", "15Gi")}), {0b01, false}), "");
  EXPECT_EQ(ledger.nodes_of("p", "c"), 0b11U);
}

TEST(MemoryLedger, WhatAnInitContainerHadIsHadByThoseAfterItButNotASidecars) {
  MemoryLedger ledger = ledger_of(1, 0);
  EXPECT_EQ(
      admit(ledger, pod("p", {container("c", "6Gi")}, {container("i", "8Gi"), container("s", "2Gi", R"(,"restartPolicy":"Always")")})), "");
  EXPECT_EQ(ledger.blocks("p", "i"), (std::vector<MemoryBlock>{{1, "memory", 0}})) << "all of it is theirs now";
  EXPECT_EQ(ledger.blocks("p", "c"), (std::vector<MemoryBlock>{{1, "memory", 6 * kGi}}));
  EXPECT_EQ(admit(ledger, pod("q", {container("c", "2Gi")})), "") << "eight of ten are used, not sixteen";
  EXPECT_NE(admit(ledger, pod("r", {container("c", "1Gi")})), "");
  EXPECT_TRUE(ledger.pod_hints(pod("x", {container("c", "1Gi")})).empty());
  ledger.keep_only({});
  EXPECT_EQ(
      ledger.pod_hints(pod("x", {container("c", "6Gi")}, {container("i", "8Gi"), container("s", "2Gi", R"(,"restartPolicy":"Always")")}))
          .at("memory"),
      Hints(List{{1, true}}));
  EXPECT_TRUE(ledger.pod_hints(pod("x", {container("c", "6Gi")}, {container("s", "5Gi", R"(,"restartPolicy":"Always")")})).empty())
      << "eleven at a time";
}

TEST(MemoryLedger, WhatWasLentIsHadOnce) {
  MemoryLedger ledger = ledger_of(1, 0);
  EXPECT_EQ(admit(ledger, pod("q", {container("c", "3Gi")})), "");
  EXPECT_NE(admit(ledger, pod("p", {container("c", "4Gi"), container("d", "4Gi")}, {container("i", "4Gi")})), "") << "eleven of ten";
  ledger.release("p");
  EXPECT_EQ(admit(ledger, pod("p", {container("c", "4Gi"), container("d", "3Gi")}, {container("i", "4Gi")})), "");
}

TEST(MemoryLedger, HugePagesAndMemoryComeFromTheSameNodes) {
  MemoryLedger ledger = ledger_of(2, 0);
  const auto huge = [](const std::string& uid) {
    return pod(uid, {*json::parse(R"({"name":"c","resources":{"limits":{"cpu":"1","memory":"1Gi","hugepages-1Gi":"2Gi"}}})")});
  };
  EXPECT_EQ(admit(ledger, huge("p")), "");
  EXPECT_EQ(ledger.nodes_of("p", "c"), 1U);
  EXPECT_EQ(hints(ledger, huge("q")), (List{{2, true}})) << "the first has no huge pages left";
  EXPECT_EQ(admit(ledger, huge("q")), "");
  EXPECT_TRUE(hints(ledger, huge("r")).empty());
}

TEST(MemoryLedger, TheNextProcessKnowsWhoHasWhat) {
  MemoryLedger before = ledger_of(2);
  EXPECT_EQ(admit(before, pod("p", {container("c", "12Gi")})), "");
  const json::Value checkpoint = *json::parse(json::serialize(before.checkpoint()));
  EXPECT_EQ(json::serialize(*json::find(checkpoint, "entries")),
            R"({"p":{"c":[{"numaAffinity":[0,1],"type":"memory","size":12884901888}]}})");
  MemoryLedger after = ledger_of(2);
  ASSERT_TRUE(after.restore(checkpoint));
  EXPECT_EQ(after.nodes_of("p", "c"), 3U);
  EXPECT_EQ(hints(after, pod("q", {container("c", "1Gi")})), (List{{3, false}})) << "both serve the group alone";
  EXPECT_EQ(json::serialize(after.checkpoint()), json::serialize(before.checkpoint()));
  MemoryLedger other = ledger_of(2, 2);
  EXPECT_EQ(other.restore(checkpoint).error().message, "[memorymanager] the expected machine state is different from the real one");
  EXPECT_TRUE(hints(other, pod("q", {container("c", "1Gi")})).size() == 3) << "nothing was taken over";
  EXPECT_FALSE(ledger_of(3).restore(checkpoint));
  EXPECT_FALSE(after.restore(*json::parse(R"({"policyName":"None"})")));
  json::Value wrong = checkpoint;
  json::set(wrong, {"entries", "p"}, *json::parse(R"({"c":[{"numaAffinity":[7],"type":"memory","size":1}]})"));
  EXPECT_NE(after.restore(wrong).error().message.find("uses the NUMA that does not exist"), std::string::npos);
}

class MemoryManagerTest : public ::testing::Test {
 protected:
  MemoryManagerTest() {
    char pattern[] = "/tmp/berth-memory-manager.XXXXXX";
    root_ = ::mkdtemp(pattern);
  }
  ~MemoryManagerTest() override { std::filesystem::remove_all(root_); }
  MemoryManagerOptions options(std::int64_t reserved = kGi) {
    MemoryManagerOptions out{.policy = "Static", .checkpoint = root_ + "/state"};
    out.reserved[0]["memory"] = reserved;
    out.node_total["memory"] = kGi;
    return out;
  }
  static std::string error(MemoryManagerOptions options) {
    const auto started = MemoryManager::start(machine(2), std::move(options));
    return started ? "" : started.error().message;
  }
  std::string root_;
};

TEST_F(MemoryManagerTest, MistakesInTheConfigurationSayWhatIsWanted) {
  auto wrong = options();
  wrong.policy = "static";
  EXPECT_EQ(error(wrong), "memoryManagerPolicy: unknown policy: \"static\" (None, Static)");
  EXPECT_NE(error(options(2 * kGi)).find("the total amount \"2147483648\" of type \"memory\" is not equal to the value \"1073741824\""),
            std::string::npos);
  wrong = options();
  wrong.reserved[5]["memory"] = 0;
  EXPECT_NE(error(wrong).find("references a NUMA node 5 that does not exist"), std::string::npos);
  wrong = options();
  wrong.reserved.clear();
  wrong.node_total.clear();
  EXPECT_EQ(error(wrong), "reservedMemory: [memorymanager] you should specify the system reserved memory");
  wrong = options();
  wrong.policy = "None";
  EXPECT_EQ(error(wrong), "") << "a kubelet takes it; the log says that it has no effect";
}

TEST_F(MemoryManagerTest, WhatItGaveIsKeptAndAnotherConfigurationDoesNotTakeItOver) {
  {
    const auto manager = std::move(*MemoryManager::start(machine(2), options()));
    EXPECT_FALSE(numa::admit({}, machine(2).layout, pod("p", {container("c", "5Gi")}), {manager.get()}));
    EXPECT_EQ(manager->nodes_of("p", "c"), "0");
  }
  EXPECT_EQ((*MemoryManager::start(machine(2), options()))->nodes_of("p", "c"), "0");
  const auto other = MemoryManager::start(machine(3), options());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("drain this node and delete the memory manager checkpoint file"), std::string::npos);
  auto none = options();
  none.policy = "None";
  none.reserved.clear();
  EXPECT_NE(error(none).find("configured policy \"None\" differs from state checkpoint policy \"Static\""), std::string::npos);
}

TEST_F(MemoryManagerTest, MachinesAreReadFromTheKernelsFiles) {
  const auto alone = read_numa_machine(root_, 7);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->layout.nodes, 1U) << "a kernel without NUMA";
  EXPECT_EQ(alone->memory.at(0).at("memory"), 7);
  for (const int node : {0, 2}) {
    const std::string folder = fmt::format("{}/node/node{}", root_, node);
    std::filesystem::create_directories(folder + "/hugepages/hugepages-2048kB");
    std::ofstream(folder + "/hugepages/hugepages-2048kB/nr_hugepages") << node << "\n";
    std::ofstream(folder + "/meminfo") << fmt::format("Node {} MemTotal:       8388608 kB\nNode {} MemFree: 1 kB\n", node, node);
    std::ofstream(folder + "/distance") << (node == 0 ? "10 21\n" : "21 10\n");
  }
  std::ofstream(root_ + "/node/online") << "0,2\n";
  const auto read = read_numa_machine(root_, 0);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->layout.nodes, 0b101U);
  EXPECT_EQ(read->layout.distances.at(2), (std::vector<std::int64_t>{21, 10}));
  EXPECT_EQ(read->memory.at(0).at("memory"), 8 * kGi);
  EXPECT_EQ(read->memory.at(2).at("memory"), 8 * kGi - (4 << 20)) << "huge pages are no memory of others";
  EXPECT_EQ(read->memory.at(2).at("hugepages-2Mi"), 4 << 20);
  std::filesystem::remove(root_ + "/node/node2/meminfo");
  EXPECT_FALSE(read_numa_machine(root_, 0));
}

}  // namespace
}  // namespace berth::node::numa
