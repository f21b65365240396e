// What a scheduler says beforehand of a node's NUMA nodes, against the node's own managers: whom it keeps away they refuse, and whom it
// lets through they take.
#include <gtest/gtest.h>

#include <random>

#include "node/cpus/cpu_ledger.h"
#include "node/devices/device_ledger.h"
#include "node/numa/topology_report.h"
#include "placement/numa/memory_ledger.h"
#include "placement/numa/node_alignment.h"

namespace berth::node::numa {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;
constexpr const char* kGpu = "example.com/gpu";

struct Cpus final : Giver {
  explicit Cpus(cpus::CpuTopology topology, cpus::CpuPolicy policy) : ledger(std::move(topology), std::move(policy)) {}
  void keep_only(const std::set<std::string>& uids) override { ledger.keep_only(uids); }
  void release(const std::string& uid) override { ledger.release(uid); }
  HintsByResource hints(const PodWishes& pod, const Wish& container) const override { return ledger.hints(pod, container); }
  HintsByResource pod_hints(const PodWishes& pod) const override { return ledger.pod_hints(pod); }
  std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near) override {
    return ledger.give(pod, container, near);
  }
  cpus::CpuLedger ledger;
};

struct Memory final : Giver {
  Memory(const MemoryByNode& total, const MemoryByNode& reserved) : ledger(total, reserved) {}
  void keep_only(const std::set<std::string>& uids) override { ledger.keep_only(uids); }
  void release(const std::string& uid) override { ledger.release(uid); }
  HintsByResource hints(const PodWishes& pod, const Wish& container) const override { return ledger.hints(pod, container); }
  HintsByResource pod_hints(const PodWishes& pod) const override { return ledger.pod_hints(pod); }
  std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near) override {
    return ledger.give(pod, container, near);
  }
  MemoryLedger ledger;
};

struct Devices final : Giver {
  void keep_only(const std::set<std::string>& uids) override { ledger.keep_only(uids); }
  void release(const std::string& uid) override { ledger.release(uid); }
  HintsByResource hints(const PodWishes& pod, const Wish& container) const override { return ledger.hints(pod, container, machine); }
  HintsByResource pod_hints(const PodWishes& pod) const override { return ledger.pod_hints(pod, machine); }
  std::optional<Refusal> give(const PodWishes& pod, const Wish& container, const Hint& near) override {
    return ledger.give(pod, container, near);
  }
  devices::DeviceLedger ledger;
  NodeSet machine = 1;
};

/// A machine of a seed, with the node's managers.
class Node {
 public:
  Node(std::mt19937& random, Align align) {
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
    const int nodes = draw(1, 4), cores = draw(2, 6);
    for (int thread = 0; thread < 2; ++thread)
      for (int core = 0; core < nodes * cores; ++core)
        topology_.cpus.push_back({thread * nodes * cores + core, core, core / cores, core / cores});
    cpus::CpuPolicy policy{.reserved = {0, nodes * cores}, .full_cores_only = draw(0, 3) == 0};
    report_.machine.nodes = devices_.machine = (NodeSet{1} << nodes) - 1;
    MemoryByNode total, reserved;
    devices::DeviceLedger::Devices gpus;
    for (int i = 0; i < nodes; ++i) {
      total[i]["memory"] = draw(8, 16) * kGi;
      for (int to = 0; to < nodes; ++to) report_.machine.distances[i].push_back(i == to ? 10 : 20);
      // What a node has none of its allocatable says: no affair of NUMA nodes.
      for (int gpu = draw(i == 0 ? 1 : 0, 3); gpu > 0; --gpu) gpus[fmt::format("{}-{}", i, gpu)].numa_nodes = {i};
    }
    reserved[0]["memory"] = kGi;
    devices_.ledger.report(kGpu, gpus);
    report_.policy = {.align = align, .is_by_pod = draw(0, 1) == 0};
    report_.node_name = "n";
    report_.gives_cpus = report_.gives_memory = true;
    cpus_.emplace(topology_, policy);
    memory_.emplace(total, reserved);
    report_.threads_of_whole_cores = cpus_->ledger.threads_of_whole_cores();
  }

  std::optional<Refusal> admit(const PodWishes& pod) {
    return numa::admit(report_.policy, report_.machine, pod, {&devices_, &*cpus_, &*memory_});
  }
  void keep_only(const std::set<std::string>& uids) {
    for (Giver* one : std::vector<Giver*>{&devices_, &*cpus_, &*memory_}) one->keep_only(uids);
  }
  [[nodiscard]] json::Value document() const {
    TopologyReport report = report_;
    devices_.ledger.tell(report.offer);
    cpus_->ledger.tell(report.offer);
    memory_->ledger.tell(report.offer);
    return topology_document(report);
  }

 private:
  cpus::CpuTopology topology_;
  TopologyReport report_;
  Devices devices_;
  std::optional<Cpus> cpus_;
  std::optional<Memory> memory_;
};

placement::PodInfoPtr random_pod(std::mt19937& random, int number, int most_containers) {
  const auto draw = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };
  const auto container = [&](int i) {
    json::Object amounts{{"cpu", std::to_string(draw(1, 9))}, {"memory", fmt::format("{}Gi", draw(1, 9))}};
    if (draw(0, 2) == 0) amounts[kGpu] = std::to_string(draw(1, 3));
    return json::Object{{"name", fmt::format("c{}", i)}, {"resources", json::Object{{"limits", amounts}, {"requests", amounts}}}};
  };
  json::Array containers, init;
  for (int i = draw(1, most_containers); i > 0; --i) containers.push_back(container(i));
  if (most_containers > 1 && draw(0, 2) == 0) init.push_back(container(10));
  if (most_containers > 1 && draw(0, 4) == 0) {
    init.push_back(container(11));
    init.back().get_object()["restartPolicy"] = "Always";
  }
  const std::string name = fmt::format("pod-{}", number);
  const json::Value document = json::Object{{"metadata", json::Object{{"name", name}, {"namespace", "d"}, {"uid", name}}},
                                            {"spec", json::Object{{"containers", containers}, {"initContainers", init}}}};
  return placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document)), placement::Era::k136);
}

struct Tally {
  int taken = 0, refused = 0, otherwise = 0;
  std::string first;  ///< That came out otherwise than was said.
};

/// Pods come and go; each is asked about before it comes. `told_late`: the node tells of every third pod only, before which they go.
Tally live(std::uint32_t seed, Align align, int most_containers, bool told_late) {
  std::mt19937 random(seed);
  Tally out;
  Node node(random, align);
  std::vector<placement::PodInfoPtr> pods;
  json::Value told = node.document();
  for (int step = 0; step < 40; ++step) {
    const bool tells = !told_late || step % 3 == 0;
    if (tells && !pods.empty() && std::uniform_int_distribution(0, 3)(random) == 0) {
      pods.erase(pods.begin() + std::uniform_int_distribution<long>(0, static_cast<long>(pods.size()) - 1)(random));
      std::set<std::string> left;
      for (const auto& pod : pods) left.insert(pod->view().meta.uid);
      node.keep_only(left);
    }
    if (tells) told = node.document();
    const auto pod = random_pod(random, step, most_containers);
    const PodWishes wishes = wishes_of(pod->view());
    const placement::numa::NodeAlignment alignment(model::NodeTopologyView::parse(told), pods, placement::numa::Untold::kAsTheNode);
    const auto said = alignment.refuse(wishes);
    const auto happened = node.admit(wishes);
    const std::string words = said ? alignment.words_of(*said, wishes) : "";
    if (said.has_value() != happened.has_value() || (said && said->reason != happened->reason)) {
      ++out.otherwise;
      if (out.first.empty())
        out.first =
            fmt::format("step {}: said {} ({}), happened {}", step, said ? said->reason : "-", words, happened ? happened->message : "-");
    }
    EXPECT_EQ(said.has_value(), !words.empty());
    ++(happened ? out.refused : out.taken);
    if (!happened) pods.push_back(pod);
  }
  return out;
}

/// Which of the processors that an init container lends are taken again is the node's choice of cores, which amounts do not tell: once in
/// thousands of pods that is a difference.
TEST(AlignmentBeforehand, OfASingleNumaNodeTheNodeDoesWhatWasSaid) {
  int taken = 0, refused = 0, otherwise = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Tally one = live(seed, Align::kSingleNumaNode, 1, false);
    EXPECT_EQ(one.otherwise, 0) << "seed " << seed << ", " << one.first;
    const Tally several = live(seed, Align::kSingleNumaNode, 3, false);
    otherwise += several.otherwise;
    taken += several.taken;
    refused += several.refused;
  }
  EXPECT_GT(taken, 1000) << "the test is about something";
  EXPECT_GT(refused, 1000);
  EXPECT_LE(otherwise * 1000, taken + refused) << otherwise << " of " << taken + refused;
}

TEST(AlignmentBeforehand, AlsoWhileTheNodeHasNotToldOfThoseThatCameLast) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Tally one = live(seed, Align::kSingleNumaNode, 1, true);
    EXPECT_EQ(one.otherwise, 0) << "seed " << seed << ", " << one.first;
  }
}

TEST(AlignmentBeforehand, OfOtherPoliciesForPodsOfOneContainer) {
  for (const Align align : {Align::kRestricted, Align::kBestEffort, Align::kNone})
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
      const Tally one = live(seed, align, 1, false);
      EXPECT_EQ(one.otherwise, 0) << "policy " << static_cast<int>(align) << ", seed " << seed << ", " << one.first;
    }
}

/// Where a container takes several NUMA nodes, how much comes from each is the node's choice of cores, which amounts do not tell.
TEST(AlignmentBeforehand, OfSeveralContainersOnSeveralNumaNodesNearlyAlways) {
  int asked = 0, otherwise = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Tally one = live(seed, Align::kRestricted, 3, false);
    asked += one.taken + one.refused;
    otherwise += one.otherwise;
  }
  EXPECT_LT(otherwise * 100, asked) << otherwise << " of " << asked;
}

}  // namespace
}  // namespace berth::node::numa
