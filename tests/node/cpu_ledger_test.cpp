// Processors of their own: which ones, for whom, over time; machines by fixtures.
#include "node/cpus/cpu_ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "model/views/pod_view.h"
#include "node/numa/shared.h"

namespace berth::node::cpus {
namespace {

/// As the node asks, without a policy of alignment.
std::optional<Refusal> admit(CpuLedger& ledger, const numa::PodWishes& pod, const numa::Hint& near = {}) {
  for (const numa::Wish& container : pod.containers)
    if (auto refusal = ledger.give(pod, container, near)) {
      ledger.release(pod.uid);
      return refusal;
    }
  return std::nullopt;
}

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
numa::PodWishes pod(const std::string& uid, json::Array containers, json::Array init = {}) {
  return numa::wishes_of(model::PodView::parse(
      json::Object{{"metadata", json::Object{{"uid", uid}}},
                   {"spec", json::Object{{"containers", std::move(containers)}, {"initContainers", std::move(init)}}}}));
}

std::string own(const CpuLedger& ledger, const std::string& uid, const std::string& name = "c") {
  return ledger.has_own(uid, name) ? numa::number_list(ledger.cpus_of(uid, name)) : "";
}

TEST(NumberList, IsReadAndWrittenAsTheKernelDoes) {
  EXPECT_EQ(*numa::parse_number_list("0-2,8\n", "processors"), (CpuSet{0, 1, 2, 8}));
  EXPECT_EQ(numa::number_list({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_EQ(numa::number_list({}), "");
  EXPECT_TRUE(numa::parse_number_list("", "processors")->empty());
  for (const char* wrong : {"a", "1-", "3-1", "-1", "1,", "1,,2", "0-99999999", "1 2"})
    EXPECT_FALSE(numa::parse_number_list(wrong, "processors")) << wrong;
}

TEST(TakeClose, WholeSocketsThenCoresThenThreadsOfCoresInUse) {
  const CpuTopology two = machine(2, 2);  // 0,4 | 1,5 in the first socket; 2,6 | 3,7 in the second.
  EXPECT_EQ(numa::number_list(take_close(two, two.all(), 4)), "0-1,4-5") << "a socket";
  EXPECT_EQ(numa::number_list(take_close(two, two.all(), 2)), "0,4") << "a core";
  EXPECT_EQ(numa::number_list(take_close(two, two.all(), 3)), "0-1,4") << "a core, and a thread beside it";
  EXPECT_EQ(numa::number_list(take_close(two, {1, 2, 3, 4, 5, 6, 7}, 1)), "4") << "a core that is in use already, of the fuller socket";
  EXPECT_EQ(numa::number_list(take_close(two, {1, 2, 3, 4, 5, 6, 7}, 4)), "2-3,6-7");
  EXPECT_TRUE(take_close(two, {0, 1}, 3).empty());
}

TEST(TakeClose, OfOneCacheWhereThatIsWanted) {
  CpuTopology one;  // One socket with two caches of three single cores.
  for (int i = 0; i < 6; ++i) one.cpus.push_back({i, i, 0, 0, i / 3 * 3});
  EXPECT_EQ(numa::number_list(take_close(one, {1, 2, 3, 4, 5}, 2)), "1-2");
  EXPECT_EQ(numa::number_list(take_close(one, {1, 3, 4}, 2)), "1,3") << "the lowest";
  EXPECT_EQ(numa::number_list(take_close(one, {1, 3, 4}, 2, {.by_cache = true})), "3-4") << "the first cache has not as many";
  EXPECT_EQ(numa::number_list(take_close(one, {1, 2, 3, 4, 5}, 4, {.by_cache = true})), "1,3-5")
      << "a whole one, and the rest from another";
  EXPECT_EQ(numa::number_list(take_close(one, {1, 4}, 2, {.by_cache = true})), "1,4") << "none has as many";
}

TEST(TakeClose, AThreadOfEachCoreWhereThatIsWanted) {
  const CpuTopology two = machine(2, 2);  // 0,4 | 1,5 in the first socket; 2,6 | 3,7 in the second.
  const CpuPolicy policy{.by_core = true};
  EXPECT_EQ(numa::number_list(take_close(two, two.all(), 2, policy)), "0-1") << "two cores of a socket, not one of them";
  EXPECT_EQ(numa::number_list(take_close(two, two.all(), 3, policy)), "0-1,4") << "there is no third";
  EXPECT_EQ(numa::number_list(take_close(two, two.all(), 4, policy)), "0-1,4-5") << "a socket";
}

TEST(TakeSpread, AsManyOfEachOfTheFewestNumaNodes) {
  const CpuTopology three = machine(3, 2);  // 0,6 1,7 | 2,8 3,9 | 4,10 5,11
  EXPECT_EQ(numa::number_list(take_spread(three, three.all(), 4, 1)), "0-1,6-7") << "one NUMA node has as many";
  EXPECT_EQ(take_spread(three, three.all(), 6, 1).size(), 6U);
  EXPECT_EQ(numa::number_list(take_spread(three, three.all(), 6, 1)), "0-3,6,8") << "three of each of two";
  EXPECT_EQ(numa::number_list(take_spread(three, three.all(), 6, 2)), "0-2,6-8") << "by whole cores: two and one";
  EXPECT_EQ(numa::number_list(take_spread(three, {0, 1, 6, 7, 2, 4, 5, 10, 11}, 6, 1)), "0-1,4-6,10") << "the second has not three";
  EXPECT_EQ(take_spread(three, {0, 1, 6, 7, 2, 4}, 6, 1).size(), 6U) << "nowhere alike: what there is";
  EXPECT_TRUE(take_spread(three, {0, 1}, 3, 1).empty());
}

TEST(CpuLedger, GuaranteedPodsHaveWholeProcessorsToThemselves) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}});
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", "2"), container("d", "1500m")})));
  EXPECT_EQ(own(ledger, "p"), "1,5");
  EXPECT_EQ(own(ledger, "p", "d"), "") << "half a processor is none of its own";
  EXPECT_EQ(numa::number_list(ledger.shared()), "0,2-4,6-7");
  EXPECT_EQ(numa::number_list(ledger.cpus_of("p", "d")), "0,2-4,6-7");
  const numa::PodWishes burstable = numa::wishes_of(model::PodView::parse(
      *json::parse(R"({"metadata":{"uid":"b"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}})")));
  EXPECT_FALSE(admit(ledger, burstable));
  EXPECT_EQ(own(ledger, "b"), "");
}

TEST(CpuLedger, WhatIsNotThereIsRefusedAndComesBackWhenAPodIsOver) {
  CpuLedger ledger(machine(1, 2), {.reserved = {0}});
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", "2")})));
  const auto refusal = admit(ledger, pod("q", {container("c", "1"), container("d", "1")}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(refusal->message,
            "Allocate failed due to not enough cpus available to satisfy request: requested=1, available=0, which is unexpected");
  EXPECT_EQ(own(ledger, "q"), "") << "all or none";
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", "2")}))) << "it has its own already";
  EXPECT_TRUE(ledger.keep_only({"q"}));
  EXPECT_FALSE(ledger.keep_only({"q"}));
  EXPECT_FALSE(admit(ledger, pod("q", {container("c", "1"), container("d", "1")})));
}

TEST(CpuLedger, WhatInitContainersHadIsHadByThoseAfterThemButNotASidecars) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}});
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", "2")}, {container("i", "2"), container("s", "2", R"(,"restartPolicy":"Always")")})));
  EXPECT_EQ(own(ledger, "p", "i"), "1,5");
  EXPECT_EQ(own(ledger, "p", "s"), "1,5") << "a sidecar that starts after it";
  EXPECT_EQ(own(ledger, "p", "c"), "2,6");
}

TEST(CpuLedger, FullCoresOnlyRefusesHalfOnes) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}, .full_cores_only = true});
  const auto refusal = admit(ledger, pod("p", {container("c", "3")}));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, "SMTAlignmentError");
  EXPECT_EQ(refusal->message, "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2");
  EXPECT_FALSE(admit(ledger, pod("q", {container("c", "4")})));
}

TEST(CpuLedger, TheNextProcessKnowsWhoHasWhat) {
  CpuLedger before(machine(1, 4), {.reserved = {0, 4}});
  EXPECT_FALSE(admit(before, pod("p", {container("c", "2")})));
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

TEST(CpuLedger, StrictReservationKeepsWhatIsSharedAwayFromTheSystem) {
  CpuLedger ledger(machine(1, 4), {.reserved = {0, 4}, .is_strict = true});
  EXPECT_EQ(numa::number_list(ledger.shared()), "1-3,5-7");
  EXPECT_FALSE(admit(ledger, pod("p", {container("c", "2")})));
  EXPECT_EQ(numa::number_list(ledger.shared()), "2-3,6-7");
}

std::vector<numa::Hint> cpu_hints(const CpuLedger& ledger, const numa::PodWishes& pod, const numa::Wish& container) {
  const auto hints = ledger.hints(pod, container);
  return hints.contains("cpu") && hints.at("cpu") ? *hints.at("cpu") : std::vector<numa::Hint>{};
}

TEST(CpuLedger, HintsAreTheNumaNodesThatHaveAsManyAndTheFewestArePreferred) {
  CpuLedger ledger(machine(2, 2), {.reserved = {0}});  // The first NUMA node has three left, the second four.
  const numa::PodWishes three = pod("p", {container("c", "3")}), four = pod("q", {container("c", "4")}),
                        half = pod("h", {container("c", "500m")});
  const auto of = [&](const numa::PodWishes& pod) { return cpu_hints(ledger, pod, pod.containers.back()); };
  EXPECT_EQ(of(three), (std::vector<numa::Hint>{{3, false}, {2, true}, {1, true}}));
  EXPECT_EQ(of(four), (std::vector<numa::Hint>{{3, false}, {2, true}})) << "one would be enough, were nothing reserved of it";
  EXPECT_TRUE(ledger.hints(half, half.containers.back()).empty()) << "no preference";
  EXPECT_FALSE(admit(ledger, four, {2, true}));
  EXPECT_EQ(own(ledger, "q"), "2-3,6-7");
  EXPECT_EQ(of(three), (std::vector<numa::Hint>{{3, false}, {1, true}}));
  EXPECT_EQ(of(four), (std::vector<numa::Hint>{{3, false}, {2, true}})) << "what it has already";
  ledger.release("q");
  EXPECT_FALSE(admit(ledger, three, {2, true}));
  EXPECT_EQ(own(ledger, "p"), "2-3,6") << "where it was told to, not where it is lowest";
  EXPECT_TRUE(of(pod("x", {container("c", "9")})).empty()) << "nothing can be had";
}

TEST(CpuLedger, AnyNumaNodeOfASocketIsAsGoodWhereThatIsWanted) {
  CpuTopology four = machine(4, 2);  // Four NUMA nodes of two cores, two in each socket.
  for (Cpu& one : four.cpus) one.socket = one.numa_node / 2;
  CpuLedger ledger(four, {.reserved = {}, .by_socket = true});
  const auto six = pod("p", {container("c", "6")});
  for (const numa::Hint& hint : cpu_hints(ledger, six, six.containers[0])) {
    const bool is_of_one_socket = *hint.nodes == 0b0011 || *hint.nodes == 0b1100;
    EXPECT_TRUE(hint.is_preferred == (is_of_one_socket || std::popcount(*hint.nodes) == 2)) << *hint.nodes;
  }
  const auto three = pod("q", {container("c", "3")});
  const auto hints = cpu_hints(ledger, three, three.containers[0]);
  EXPECT_TRUE(std::ranges::find(hints, numa::Hint{0b0011, true}) != hints.end()) << "a NUMA node would do, and the socket is as good";
  EXPECT_TRUE(std::ranges::find(hints, numa::Hint{0b0101, false}) != hints.end());
  EXPECT_FALSE(admit(ledger, pod("r", {container("c", "4")}), {0b0001, true}));
  EXPECT_FALSE(admit(ledger, pod("s", {container("c", "3")}), {0b0001, true}));
  EXPECT_EQ(own(ledger, "s"), "2-3,10") << "the first NUMA node is full: of the same socket";
}

TEST(CpuLedger, WhatAnInitContainerHadCountsForThoseAfterIt) {
  CpuLedger ledger(machine(2, 2), {.reserved = {}});
  const numa::PodWishes both = pod("p", {container("c", "2")}, {container("i", "4")});
  const auto& init = both.containers.front();
  const auto& main = both.containers.back();
  EXPECT_EQ(ledger.pod_hints(both).at("cpu"), numa::Hints(std::vector<numa::Hint>{{3, false}, {2, true}, {1, true}}))
      << "four at a time, not six";
  EXPECT_FALSE(ledger.give(both, init, {1, true}));
  EXPECT_EQ(cpu_hints(ledger, both, main), (std::vector<numa::Hint>{{3, false}, {1, true}})) << "only with what it would take over";
  EXPECT_FALSE(ledger.give(both, main, {1, true}));
  EXPECT_EQ(own(ledger, "p"), "0,4");
  EXPECT_EQ(ledger.shared().size(), 4U) << "the init container's are the pod's until it is over";
  const numa::PodWishes other = pod("q", {container("c", "4")});
  EXPECT_EQ(cpu_hints(ledger, other, other.containers.back()), (std::vector<numa::Hint>{{3, false}, {2, true}}))
      << "what one pod leaves is not another's";
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
    std::filesystem::create_directories(folder + "/cache/index3");
    std::ofstream(folder + "/cache/index3/shared_cpu_list") << (cpu < 2 ? "0-1\n" : "2-3\n");
  }
  std::ofstream(root + "/cpu/online") << "0-3\n";
  const auto topology = read_cpu_topology(root);
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->cpus.size(), 4U);
  EXPECT_EQ(topology->cpus[3].core, 1);
  EXPECT_EQ(topology->cpus[3].socket, 1);
  EXPECT_EQ(topology->cpus[3].numa_node, 1);
  EXPECT_EQ(topology->cpus[3].cache, 2);
  EXPECT_EQ(topology->threads_per_core(), 2);
  std::filesystem::remove_all(root);
  EXPECT_FALSE(read_cpu_topology(root));
}

}  // namespace
}  // namespace berth::node::cpus
