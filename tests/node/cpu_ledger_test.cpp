// Processors of their own: which ones, for whom, over time; machines by fixtures.
#include "node/cpus/cpu_ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::node::cpus {
namespace {

/// So many sockets (each a NUMA node) of so many cores of two threads; the second threads have the higher numbers, as Intel counts.
CpuTopology machine(int sockets, int cores) {
  CpuTopology out;
  const int all = sockets * cores;
  for (int thread = 0; thread < 2; ++thread)
    for (int core = 0; core < all; ++core) out.cpus.push_back({thread * all + core, core, core / cores, core / cores});
  return out;
}

json::Value container(const std::string& name, const std::string& cpu, const std::string& more = "") {
  return *json::parse(
      fmt::format(R"({{"name":"{}","resources":{{"requests":{{"cpu":"{}","memory":"1Gi"}},"limits":{{"cpu":"{}","memory":"1Gi"}}}}{}}})",
                  name, cpu, cpu, more));
}
json::Value pod(const std::string& uid, json::Array containers, json::Array init = {}) {
  return json::Object{{"metadata", json::Object{{"uid", uid}}},
                      {"spec", json::Object{{"containers", std::move(containers)}, {"initContainers", std::move(init)}}}};
}

std::string own(const CpuLedger& ledger, const std::string& uid, const std::string& name = "c") {
  return ledger.has_own(uid, name) ? cpu_list(ledger.cpus_of(uid, name)) : "";
}

TEST(CpuList, IsReadAndWrittenAsTheKernelDoes) {
  EXPECT_EQ(*parse_cpu_list("0-2,8\n"), (CpuSet{0, 1, 2, 8}));
  EXPECT_EQ(cpu_list({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_TRUE(parse_cpu_list("")->empty());
  for (const char* wrong : {"a", "1-", "3-1", "-1", "1,", "1,,2", "0-99999999", "1 2"}) EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

TEST(TakeClose, WholeSocketsThenCoresThenThreadsOfCoresInUse) {
  const CpuTopology two = machine(2, 2);  // 0,4 | 1,5 in the first socket; 2,6 | 3,7 in the second.
  EXPECT_EQ(cpu_list(take_close(two, two.all(), 4)), "0-1,4-5") << "a socket";
  EXPECT_EQ(cpu_list(take_close(two, two.all(), 2)), "0,4") << "a core";
  EXPECT_EQ(cpu_list(take_close(two, two.all(), 3)), "0-1,4") << "a core, and a thread beside it";
  EXPECT_EQ(cpu_list(take_close(two, {1, 2, 3, 4, 5, 6, 7}, 1)), "4") << "a core that is in use already, of the fuller socket";
  EXPECT_EQ(cpu_list(take_close(two, {1, 2, 3, 4, 5, 6, 7}, 4)), "2-3,6-7");
  EXPECT_TRUE(take_close(two, {0, 1}, 3).empty());
}

TEST(CpuLedger, GuaranteedPodsHaveWholeProcessorsToThemselves) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}});
  EXPECT_FALSE(ledger.admit(pod("p", {container("c", "2"), container("d", "1500m")})));
  EXPECT_EQ(own(ledger, "p"), "1,5");
  EXPECT_EQ(own(ledger, "p", "d"), "") << "half a processor is none of its own";
  EXPECT_EQ(cpu_list(ledger.shared()), "0,2-4,6-7");
  EXPECT_EQ(cpu_list(ledger.cpus_of("p", "d")), "0,2-4,6-7");
  const json::Value burstable =
      *json::parse(R"({"metadata":{"uid":"b"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})");
  EXPECT_FALSE(ledger.admit(burstable));
  EXPECT_EQ(own(ledger, "b"), "");
}

TEST(CpuLedger, WhatIsNotThereIsRefusedAndComesBackWhenAPodIsOver) {
  CpuLedger ledger(machine(1, 2), {.reserved = {0}});
  EXPECT_FALSE(ledger.admit(pod("p", {container("c", "2")})));
  const auto refusal = ledger.admit(pod("q", {container("c", "1"), container("d", "1")}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(refusal->message,
            "Allocate failed due to not enough cpus available to satisfy request: requested=1, available=0, which is unexpected");
  EXPECT_EQ(own(ledger, "q"), "") << "all or none";
  EXPECT_FALSE(ledger.admit(pod("p", {container("c", "2")}))) << "it has its own already";
  EXPECT_TRUE(ledger.keep_only({"q"}));
  EXPECT_FALSE(ledger.keep_only({"q"}));
  EXPECT_FALSE(ledger.admit(pod("q", {container("c", "1"), container("d", "1")})));
}

TEST(CpuLedger, WhatInitContainersHadIsHadByThoseAfterThemButNotASidecars) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}});
  EXPECT_FALSE(ledger.admit(pod("p", {container("c", "2")}, {container("i", "2"), container("s", "2", R"(,"restartPolicy":"Always")")})));
  EXPECT_EQ(own(ledger, "p", "i"), "1,5");
  EXPECT_EQ(own(ledger, "p", "s"), "1,5") << "a sidecar that starts after it";
  EXPECT_EQ(own(ledger, "p", "c"), "2,6");
}

TEST(CpuLedger, FullCoresOnlyRefusesHalfOnes) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}, .full_cores_only = true});
  const auto refusal = ledger.admit(pod("p", {container("c", "3")}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "SMTAlignmentError");
  EXPECT_EQ(refusal->message, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  EXPECT_FALSE(ledger.admit(pod("q", {container("c", "4")})));
}

TEST(CpuLedger, TheNextProcessKnowsWhoHasWhat) {
  CpuLedger before(machine(1, 4), {.reserved = {0, 4}});
  EXPECT_FALSE(before.admit(pod("p", {container("c", "2")})));
  const json::Value checkpoint = *json::parse(json::serialize(before.checkpoint()));
  EXPECT_EQ(json::serialize(checkpoint), R"({"policyName":"static","defaultCpuSet":"0,2-4,6-7","entries":{"p":{"c":"1,5"}}})");
  CpuLedger after(machine(1, 4), {.reserved = {0, 4}});
  ASSERT_TRUE(after.restore(checkpoint));
  EXPECT_EQ(own(after, "p"), "1,5");
  CpuLedger smaller(machine(1, 4), {.reserved = {0, 1, 4, 5}});
  EXPECT_EQ(smaller.restore(checkpoint).error().message, "container c has processors 1,5 that are reserved or not there");
  EXPECT_FALSE(smaller.restore(*json::parse(R"({"policyName":"none"})")));
  EXPECT_FALSE(smaller.restore(*json::parse(R"({"policyName":"static","entries":{"p":{"c":7}}})")));
}

TEST(CpuTopology, IsReadFromTheKernelsFiles) {
  char pattern[] = "/tmp/berth-cpus.XXXXXX";
  const std::string root = ::mkdtemp(pattern);
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = fmt::format("{}/cpu/cpu{}", root, cpu);
    std::filesystem::create_directories(folder + "/topology");
    std::filesystem::create_directories(folder + fmt::format("/node{}", cpu % 2));
    std::ofstream(folder + "/topology/thread_siblings_list") << fmt::format("{},{}\n", cpu % 2, cpu % 2 + 2);
    std::ofstream(folder + "/topology/physical_package_id") << cpu % 2 << "\n";
  }
  std::ofstream(root + "/cpu/online") << "0-3\n";
  const auto topology = read_cpu_topology(root);
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->cpus.size(), 4U);
  EXPECT_EQ(topology->cpus[3].core, 1);
  EXPECT_EQ(topology->cpus[3].socket, 1);
  EXPECT_EQ(topology->cpus[3].numa_node, 1);
  EXPECT_EQ(topology->threads_per_core(), 2);
  std::filesystem::remove_all(root);
  EXPECT_FALSE(read_cpu_topology(root));
}

}  // namespace
}  // namespace berth::node::cpus
