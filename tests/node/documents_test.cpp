// What the documents say of nodes where today's Kubernetes differs (SPEC I13, F7, F9; docs/differences.md), and what berth's simulated
// nodes share with real ones.
#include <gtest/gtest.h>

#include "node/eviction/policies.h"
#include "node/simulated/addresses.h"
#include "node/simulated/fleet.h"

namespace berth::node {
namespace {

using namespace eviction;

constexpr std::uint64_t kMi = 1 << 20;

/// Pods of the three classes with what they use.
struct Pods {
  std::vector<PodFacts> facts;
  std::vector<PodUsage> usages;

  void add(const std::string& name, const std::string& resources, std::uint64_t memory_mib, std::int32_t priority = 0,
           std::uint64_t disk_mib = 0) {
    facts.push_back(read_pod_facts(*json::parse(fmt::format(
        R"({{"metadata":{{"namespace":"d","name":"{0}","uid":"{0}"}},"spec":{{"priority":{1},"containers":[{{"name":"c","resources":{2}}}]}}}})",
        name, priority, resources))));
    PodUsage usage;
    usage.uid = name;
    usage.memory = MemoryUsage{{}, memory_mib * kMi, memory_mib * kMi, {}};
    ContainerUsage container;
    container.name = "c";
    container.rootfs = FsUsage{};
    container.rootfs->used_bytes = disk_mib * kMi;
    usage.containers.push_back(container);
    usages.push_back(usage);
  }
  [[nodiscard]] std::string order(EvictionRules rules, Signal signal = Signal::kMemoryAvailable) const {
    std::vector<RankedPod> ranked;
    for (std::size_t i = 0; i < facts.size(); ++i) ranked.push_back({&facts[i], &usages[i]});
    rank_pods(ranked, rules, signal, {});
    std::string out;
    for (const RankedPod& pod : ranked) out += (out.empty() ? "" : " ") + pod.facts->name;
    return out;
  }
};

constexpr const char* kNone = "{}";
constexpr const char* kBurstable = R"({"requests":{"memory":"100Mi"}})";
constexpr const char* kGuaranteed = R"({"requests":{"cpu":"1","memory":"100Mi"},"limits":{"cpu":"1","memory":"100Mi"}})";

TEST(DocumentedRanking, QualityOfServiceComesBeforeEverything) {
  Pods pods;
  pods.add("guaranteed", kGuaranteed, 100, 0);
  pods.add("burstable", kBurstable, 900, 0);
  pods.add("best-effort", kNone, 1, 1000);
  EXPECT_EQ(pods.order(EvictionRules::kDocument), "best-effort burstable guaranteed") << "000 §21.2.7, whatever the priorities";
  EXPECT_EQ(pods.order(EvictionRules::kKubernetes), "burstable best-effort guaranteed") << "over request, then lower priority";
}

TEST(DocumentedRanking, WithinAClassByUseOverRequest) {
  Pods pods;
  pods.add("little-over", kBurstable, 120);
  pods.add("below", kBurstable, 99);
  pods.add("far-over", kBurstable, 300, 5);
  EXPECT_EQ(pods.order(EvictionRules::kDocument), "far-over little-over below");
}

TEST(DocumentedRanking, WhenNobodyIsOverItsRequestTheLargestConsumerGoes) {
  Pods pods;
  pods.add("small", R"({"requests":{"memory":"20Mi"}})", 19);
  pods.add("large", R"({"requests":{"memory":"900Mi"}})", 500);
  EXPECT_EQ(pods.order(EvictionRules::kDocument), "large small");
  EXPECT_EQ(pods.order(EvictionRules::kKubernetes), "small large") << "nearest to its request";
}

TEST(DocumentedRanking, DiskHasNoRequests) {
  Pods pods;
  pods.add("asked", R"({"requests":{"ephemeral-storage":"9Gi","memory":"1Mi"}})", 0, 0, 800);
  pods.add("not-asked", R"({"requests":{"memory":"1Mi"}})", 0, 0, 700);
  EXPECT_EQ(pods.order(EvictionRules::kDocument, Signal::kNodeFsAvailable), "asked not-asked") << "local disk is a BestEffort resource";
  EXPECT_EQ(pods.order(EvictionRules::kKubernetes, Signal::kNodeFsAvailable), "not-asked asked");
}

TEST(DocumentedRanking, OfEqualsTheLowerPriority) {
  Pods pods;
  pods.add("high", kNone, 10, 7);
  pods.add("low", kNone, 10, -7);
  EXPECT_EQ(pods.order(EvictionRules::kDocument), "low high");
}

/// Nobody knows what they use: they go first, of their class in the document's order.
TEST(DocumentedRanking, PodsWithoutFiguresComeFirst) {
  Pods pods;
  pods.add("far-over", kBurstable, 900);
  pods.add("low", kBurstable, 0, -5);
  pods.add("high", kBurstable, 0, 5);
  pods.add("best-effort", kNone, 1);
  std::vector<RankedPod> ranked;
  for (std::size_t i = 0; i < pods.facts.size(); ++i) ranked.push_back({&pods.facts[i], i == 1 || i == 2 ? nullptr : &pods.usages[i]});
  const auto order = [&](EvictionRules rules) {
    auto out = ranked;
    rank_pods(out, rules, Signal::kMemoryAvailable, {});
    std::string names;
    for (const RankedPod& pod : out) names += (names.empty() ? "" : " ") + pod.facts->name;
    return names;
  };
  EXPECT_EQ(order(EvictionRules::kDocument), "best-effort low high far-over");
  EXPECT_EQ(order(EvictionRules::kKubernetes), "low high far-over best-effort");
}

TEST(DocumentedReclaim, WithImagefsEachFilesystemItsOwn) {
  const DiskLayout shared, split{.dedicated_image_fs = true};
  const auto rules = EvictionRules::kDocument;
  using List = std::vector<Reclaim>;
  EXPECT_EQ(reclaim_for(rules, Signal::kNodeFsAvailable, split), List{Reclaim::kContainers});
  EXPECT_EQ(reclaim_for(rules, Signal::kImageFsInodesFree, split), List{Reclaim::kImages});
  EXPECT_EQ(reclaim_for(rules, Signal::kNodeFsInodesFree, shared), (List{Reclaim::kContainers, Reclaim::kImages}));
  EXPECT_EQ(reclaim_for(EvictionRules::kKubernetes, Signal::kNodeFsAvailable, split), List{});
}

TEST(FollowingTheDocuments, TheWordReachesTheManagerAndAllocatable) {
  auto settings =
      load_config_text("kubeletArguments:\n  eviction-hard: [memory.available<500Mi]\n  system-reserved: [memory=1.5Gi]\n", "f");
  ASSERT_TRUE(settings);
  const ResourceList capacity = {{"memory", *model::Quantity::parse("10Gi")}, {"cpu", *model::Quantity::parse("4")}};
  const auto memory = [&] { return offer_resources(capacity, reservation_settings(*settings))->allocatable.at("memory").to_string(); };
  EXPECT_EQ(memory(), "8204Mi") << "today thresholds are taken away besides the reservation";
  EXPECT_EQ(manager_config(*settings)->rules, EvictionRules::kKubernetes);
  follow_documents(*settings);
  EXPECT_EQ(memory(), "8704Mi") << "the document: the reservation covers the threshold";
  EXPECT_EQ(manager_config(*settings)->rules, EvictionRules::kDocument);
}

std::string message_of(const char* threshold, std::uint64_t capacity, std::uint64_t available, AmountText amounts) {
  KubeletSettings settings;
  settings.eviction_hard = StatementMap{{"memory.available", threshold}};
  ManagerConfig config = *manager_config(settings);
  config.amounts = amounts;
  EvictionManager manager(config);
  (void)manager.set_layout({});
  Pods pods;
  pods.add("p", kBurstable, 101);
  pods.usages[0].containers[0].memory = pods.usages[0].memory;
  Summary summary;
  summary.node.memory = MemoryUsage{available, capacity - available, capacity - available, TimePoint{} + std::chrono::hours(1)};
  summary.pods.emplace("p", pods.usages[0]);
  const Outcome& outcome = manager.begin(pods.facts, summary, TimePoint{} + std::chrono::hours(1));
  return outcome.evictions.empty() ? "" : outcome.evictions[0].message;
}

TEST(EvictionMessage, AmountsReadAsPeopleWriteThem) {
  EXPECT_EQ(
      message_of("10%", 200ULL << 30, (5ULL << 30) + 1234, AmountText::kReadable),
      "The node was low on resource: memory. Threshold quantity: 20Gi, available: 5Gi. Container c was using 101Mi, request is 100Mi, "
      "has larger consumption of memory. ");
  EXPECT_EQ(
      message_of("10%", 200ULL << 30, 5ULL << 30, AmountText::kKubelet),
      "The node was low on resource: memory. Threshold quantity: 21474836800, available: 5Gi. Container c was using 101Mi, request is "
      "100Mi, has larger consumption of memory. ")
      << "as the recorded kubelet's";
  EXPECT_NE(message_of("1Gi", 200ULL << 30, (1ULL << 30) - 1, AmountText::kReadable).find("available: 1023.99Mi"), std::string::npos)
      << "never the same figure on both sides";
  EXPECT_NE(message_of("1500M", 2ULL << 30, 700, AmountText::kReadable).find("Threshold quantity: 1500M, available: 700."),
            std::string::npos)
      << "what was written stays as it was written";
  EXPECT_NE(message_of("1Gi", 2ULL << 30, 1023, AmountText::kReadable).find("Threshold quantity: 1Gi, available: 1023."), std::string::npos)
      << "less than the smallest unit is a count of bytes";
  EXPECT_NE(message_of("1Gi", 2ULL << 30, 1024, AmountText::kReadable).find("available: 1Ki."), std::string::npos);
}

using simulated::Fleet;
using simulated::FleetOptions;
using simulated::NodeTemplate;
using simulated::Write;

const TimePoint kNow = *parse_rfc3339("2026-01-01T00:00:00Z");

/// Lines of a KubeletConfiguration.
KubeletSettings settings_of(const std::string& lines) {
  const auto document = json::parse_yaml(lines);
  EXPECT_TRUE(document) << (document ? "" : document.error().message);
  auto settings = read_kubelet_configuration(document ? *document : json::Value(json::Object{}));
  EXPECT_TRUE(settings) << (settings ? "" : settings.error());
  return settings ? *settings : KubeletSettings{};
}

/// The objects that a fleet creates.
std::vector<json::Value> created(Fleet& fleet) {
  std::vector<json::Value> out;
  while (const auto write = fleet.next_write(kNow)) {
    if (write->kind == Write::Kind::kCreateNode) out.push_back(*json::parse(write->body));
    fleet.finish_write(*write, {201, "uid-" + write->name, "1"}, kNow);
  }
  return out;
}

NodeTemplate ten_gibibytes() {
  NodeTemplate out;
  out.capacity = {{"cpu", "4"}, {"memory", "10Gi"}, {"pods", "110"}, {"ephemeral-storage", "100Gi"}, {"example.com/gpu", "2"}};
  return out;
}

std::string allocatable(const FleetOptions& options, const char* resource) {
  Fleet fleet(options);
  fleet.add_node({"node-1", "zone-a", "region-1", 0, ten_gibibytes()}, kNow);
  return std::string(json::get_string(created(fleet).at(0), {"status", "allocatable", resource}));
}

TEST(SimulatedNodes, OfferWhatTheirSettingsLeave) {
  FleetOptions options;
  options.reserves_resources = true;
  options.kubelet = settings_of(
      "systemReserved: {memory: 1.5Gi, cpu: 500m}\n"
      "kubeReserved: {cpu: 250m}\n"
      "evictionHard: {memory.available: 500Mi, nodefs.available: 10%}\n"
      "maxPods: 30\n");
  EXPECT_EQ(allocatable(options, "memory"), "8204Mi");
  EXPECT_EQ(allocatable(options, "cpu"), "3250m");
  EXPECT_EQ(allocatable(options, "ephemeral-storage"), "96636764000") << "as the kubelet computes a tenth, in single precision";
  EXPECT_EQ(allocatable(options, "pods"), "30");
  EXPECT_EQ(allocatable(options, "example.com/gpu"), "2");
  follow_documents(options.kubelet);
  EXPECT_EQ(allocatable(options, "memory"), "8704Mi");
  options.kubelet.system_reserved["memory"] = "2Gi";
  EXPECT_EQ(allocatable(options, "memory"), "8Gi") << "000 §21.2.9";
}

TEST(SimulatedNodes, MoreReservedThanThereIsIsFoundOut) {
  FleetOptions options;
  options.reserves_resources = true;
  options.kubelet = settings_of("systemReserved: {memory: 11Gi}\n");
  EXPECT_EQ(overreserved(options, ten_gibibytes()), std::vector<std::string>{"memory"});
  EXPECT_EQ(allocatable(options, "memory"), "0") << "and a node that others describe offers nothing of it";
}

TEST(SimulatedNodes, WithoutSettingsOfferEverything) { EXPECT_EQ(allocatable({}, "memory"), "10Gi"); }

TEST(SimulatedNodes, ATakenOverNodeFollowsNewSettings) {
  FleetOptions options;
  options.reserves_resources = true;
  options.kubelet = settings_of("systemReserved: {memory: 2Gi}\nevictionHard: {memory.available: 0%}\n");
  Fleet fleet(options);
  const json::Value node = *json::parse(
      R"({"metadata":{"name":"old","uid":"u","annotations":{"sim.berth.dev/fleet":"default"}},"status":{"capacity":{"cpu":"4","memory":"10Gi"},
          "allocatable":{"cpu":"4","memory":"10Gi"}}})");
  ASSERT_TRUE(fleet.adopt_node(node, {}, kNow));
  std::string status;
  while (const auto write = fleet.next_write(kNow)) {
    if (write->kind == Write::Kind::kNodeStatus) status = write->body;
    fleet.finish_write(*write, {}, kNow);
  }
  EXPECT_EQ(json::get_string(*json::parse(status), {"status", "allocatable", "memory"}), "8Gi");
}

TEST(SimulatedNodes, CarryBothGenerationsOfZoneAndRegion) {
  Fleet fleet{FleetOptions{}};
  fleet.add_node({"node-1", "zone-a", "region-1", 0, {}}, kNow);
  const json::Value node = created(fleet).at(0);
  for (const char* key : {"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"})
    EXPECT_EQ(json::get_string(node, {"metadata", "labels", key}), "zone-a") << key;
  for (const char* key : {"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"})
    EXPECT_EQ(json::get_string(node, {"metadata", "labels", key}), "region-1") << key;
}

TEST(SimulatedNodes, ANodeThatOthersMadeGetsTheGenerationItLacks) {
  Fleet fleet{FleetOptions{}};
  const json::Value node = *json::parse(
      R"({"metadata":{"name":"theirs","uid":"u","labels":{"topology.kubernetes.io/zone":"z","other":"x"},
          "annotations":{"sim.berth.dev/fleet":"default"}}})");
  ASSERT_TRUE(fleet.adopt_node(node, {}, kNow));
  std::vector<std::string> labels;
  while (const auto write = fleet.next_write(kNow)) {
    if (write->kind == Write::Kind::kNodeLabels) labels.push_back(write->body);
    fleet.finish_write(*write, {}, kNow);
  }
  EXPECT_EQ(labels, std::vector<std::string>{R"({"metadata":{"labels":{"failure-domain.beta.kubernetes.io/zone":"z"}}})"});
}

std::set<std::string> ranges_of(const std::vector<json::Value>& nodes) {
  std::set<std::string> out;
  for (const json::Value& node : nodes) out.emplace(json::get_string(node, {"spec", "podCIDR"}));
  return out;
}

TEST(SimulatedNodes, NoTwoFleetsGiveTheSameAddresses) {
  Fleet first{FleetOptions{}}, second{FleetOptions{.name = "second"}};
  for (int i = 0; i < 300; ++i) first.add_node({fmt::format("a-{}", i), "z", "r", i, {}}, kNow);
  const auto of_first = created(first);
  for (const json::Value& node : of_first) second.observe_stranger(node);
  second.observe_stranger(*json::parse(R"({"metadata":{"name":"kubeadm"},"spec":{"podCIDR":"10.244.0.0/24"}})"));
  for (int i = 0; i < 59'500; ++i) second.add_node({fmt::format("b-{}", i), "z", "r", i, {}}, kNow);
  auto all = of_first;
  for (json::Value& node : created(second)) all.push_back(std::move(node));
  const auto ranges = ranges_of(all);
  EXPECT_EQ(ranges.size(), 59'800U);
  EXPECT_FALSE(ranges.contains("10.244.0.0/24")) << "a node of no fleet has these";
  EXPECT_EQ(ranges.contains("10.10.0.0/24"), true);
}

TEST(SimulatedNodes, TwoFleetsThatStartAtOnceBeginElsewhere) {
  Fleet first{FleetOptions{}}, second{FleetOptions{.name = "second"}};
  for (int i = 0; i < 50; ++i) {
    first.add_node({fmt::format("a-{}", i), "z", "r", i, {}}, kNow);
    second.add_node({fmt::format("b-{}", i), "z", "r", i, {}}, kNow);
  }
  auto all = created(first);
  for (json::Value& node : created(second)) all.push_back(std::move(node));
  EXPECT_EQ(ranges_of(all).size(), 100U);
}

TEST(SimulatedNodes, AMillionHaveAddressesOfTheirOwn) {
  std::set<std::string> nodes, ranges;
  for (int i = 0; i < simulated::kMostNodes; ++i) {
    nodes.insert(simulated::node_address(i));
    const std::string range = simulated::pod_prefix(i) + "0/24";
    ASSERT_EQ(simulated::index_of_pod_range(range), i);
    ranges.insert(range);
  }
  EXPECT_EQ(nodes.size(), 1'000'000U);
  EXPECT_EQ(ranges.size(), 1'000'000U);
  EXPECT_EQ(*nodes.rbegin(), "172.31.99.99");
  EXPECT_EQ(simulated::pod_prefix(59'999), "10.249.249.");
  EXPECT_EQ(simulated::pod_prefix(60'000), "240.0.0.");
  for (const char* strange :
       {"10.244.1.0/16", "10.9.0.0/24", "10.250.0.0/24", "10.10.250.0/24", "239.0.0.0/24", "254.255.255.0/24", "", "x"})
    EXPECT_EQ(simulated::index_of_pod_range(strange), std::nullopt) << strange;
}

TEST(SimulatedNodes, AddressesOfANodeThatWentAreFreeAgain) {
  Fleet fleet{FleetOptions{}};
  const json::Value stranger = *json::parse(R"({"metadata":{"name":"s","annotations":{"sim.berth.dev/index":"0"}}})");
  fleet.observe_stranger(stranger);
  fleet.observe_stranger(stranger);
  fleet.forget_stranger("s");
  fleet.add_node({"node-1", "z", "r", 0, {}}, kNow);
  EXPECT_EQ(ranges_of(created(fleet)), std::set<std::string>{"10.10.0.0/24"});
}

}  // namespace
}  // namespace berth::node
