// Each plugin's verdict in its own words, in both eras where they differ. Recorded scenarios (tests/parity) cover scores.
#include <gtest/gtest.h>

#include "placement/engine.h"
#include "placement/framework.h"
#include "tests/placement/random_cluster.h"

namespace berth::placement::testing {
namespace {

using model::Quantity;
using model::Requirement;

struct World {
  explicit World(Era of = Era::k136) : era(of), cluster(of) {
    node.meta.name = "n";
    node.meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"kubernetes.io/hostname", "n"}, {"zone", "z"}});
    node.allocatable = {{"cpu", Quantity::from_value(2)}, {"memory", Quantity::from_value(1LL << 32)}, {"pods", Quantity::from_value(10)}};
    pod.meta.name = "p";
    pod.meta.ns = "default";
    pod.meta.labels = model::Labels(std::vector<std::pair<std::string, std::string>>{{"app", "web"}});
    pod.containers.resize(1);
  }
  /// A running pod like `pod`.
  void run(const std::string& name) {
    auto other = std::make_shared<model::PodView>(pod);
    other->meta.name = name;
    other->node_name = "n";
    cluster.upsert_pod(std::move(other));
  }
  /// "Plugin Code: reasons" of the only node, or "fits".
  std::string verdict() {
    cluster.upsert_node(std::make_shared<model::NodeView>(node));
    const auto evaluation = evaluate(*default_framework(era), cluster, *PodInfo::make(std::make_shared<model::PodView>(pod), era));
    if (!evaluation.errors.empty()) return "error " + evaluation.errors.front();
    if (!evaluation.pre_filter.is_success()) return "prefilter: " + evaluation.pre_filter.message();
    if (!evaluation.feasible.empty()) return "fits";
    const auto& status = evaluation.rejected.at(0).status;
    return fmt::format("{} {}: {}", status.plugin, code_name(status.code), status.message());
  }

  Era era;
  Cluster cluster;
  model::NodeView node;
  model::PodView pod;
};

model::PodAffinityTerm web_in(const char* key) {
  model::PodAffinityTerm out;
  out.selector = model::Selector({{"app", Requirement::Op::kIn, {"web"}}});
  out.topology_key = key;
  return out;
}

TEST(NodeUnschedulable, KeepsPodsOffUnlessTolerated) {
  World world;
  world.node.unschedulable = true;
  EXPECT_EQ(world.verdict(), "NodeUnschedulable UnschedulableAndUnresolvable: node(s) were unschedulable");
  world.pod.tolerations.push_back({"node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule", {}});
  EXPECT_EQ(world.verdict(), "fits");
}

TEST(NodeName, IsMetByThatNodeAlone) {
  for (const Era era : {Era::k120, Era::k136}) {
    World world(era);
    world.pod.node_name = "other";
    EXPECT_EQ(world.verdict(), era == Era::k120 ? "NodeName UnschedulableAndUnresolvable: node(s) didn't match the requested hostname"
                                                : "NodeName UnschedulableAndUnresolvable: node(s) didn't match the requested node name");
  }
}

TEST(TaintToleration, NamesTheTaintIn120) {
  for (const Era era : {Era::k120, Era::k136}) {
    World world(era);
    world.node.taints = {{"dedicated", "a", "NoExecute"}};
    EXPECT_EQ(world.verdict(), era == Era::k120
                                   ? "TaintToleration UnschedulableAndUnresolvable: node(s) had taint {dedicated: a}, that the pod didn't tolerate"
                                   : "TaintToleration UnschedulableAndUnresolvable: node(s) had untolerated taint(s)");
    world.node.taints[0].effect = "PreferNoSchedule";
    EXPECT_EQ(world.verdict(), "fits");
  }
}

TEST(NodeAffinity, RejectsAndNarrows) {
  World world;
  world.pod.node_selector = {{"disk", "ssd"}};
  EXPECT_EQ(world.verdict(), "NodeAffinity UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector");
  world.pod.node_selector.clear();
  model::NodeSelectorTerm term;
  term.fields.push_back({"metadata.name", Requirement::Op::kIn, {"elsewhere"}});
  world.pod.node_affinity.required = model::NodeSelector{{term}};
  EXPECT_EQ(world.verdict(), " UnschedulableAndUnresolvable: node(s) didn't satisfy plugin(s) [NodeAffinity]");
  world.pod.node_affinity.required->terms[0].fields.push_back({"metadata.name", Requirement::Op::kIn, {"n"}});
  EXPECT_EQ(world.verdict(), "prefilter: pod affinity terms conflict");
}

TEST(NodePorts, AddressesOverlap) {
  World world;
  world.pod.containers[0].host_ports = {{80, "TCP", "10.0.0.1"}};
  world.run("other");
  const std::string refused = "NodePorts Unschedulable: node(s) didn't have free ports for the requested pod ports";
  EXPECT_EQ(world.verdict(), refused);
  world.pod.containers[0].host_ports = {{80, "", ""}};
  EXPECT_EQ(world.verdict(), refused);
  world.pod.containers[0].host_ports = {{80, "TCP", "10.0.0.2"}};
  EXPECT_EQ(world.verdict(), "fits");
  world.pod.containers[0].host_ports = {{80, "UDP", ""}};
  EXPECT_EQ(world.verdict(), "fits");
}

TEST(NodeResourcesFit, SaysWhatIsMissingAndWhetherEvictionCouldHelp) {
  World world;
  world.pod.containers[0].requests = {{"cpu", Quantity::from_milli(1500)}};
  world.run("other");
  EXPECT_EQ(world.verdict(), "NodeResourcesFit Unschedulable: Insufficient cpu");
  world.pod.containers[0].requests = {{"cpu", Quantity::from_value(3)}, {"example.com/gpu", Quantity::from_value(1)}};
  EXPECT_EQ(world.verdict(), "NodeResourcesFit UnschedulableAndUnresolvable: Insufficient cpu, Insufficient example.com/gpu");
  world.node.allocatable.back().second = Quantity::from_value(1);
  world.pod.containers[0].requests.clear();
  EXPECT_EQ(world.verdict(), "NodeResourcesFit Unschedulable: Too many pods");
}

TEST(NodeResourcesFit, CountsSidecarsAndInitSteps) {
  World world;
  world.pod.containers[0].requests = {{"cpu", Quantity::from_milli(500)}};
  world.pod.init_containers.resize(2);
  world.pod.init_containers[0].requests = {{"cpu", Quantity::from_milli(600)}};
  world.pod.init_containers[0].restarts_always = true;
  world.pod.init_containers[1].requests = {{"cpu", Quantity::from_milli(1400)}};
  EXPECT_EQ(pod_request(world.pod, Era::k136, false).total.cpu_milli, 2000);
  EXPECT_EQ(pod_request(world.pod, Era::k120, false).total.cpu_milli, 1400);
  world.pod.pod_requests = {{"cpu", Quantity::from_milli(700)}};
  world.pod.overhead = {{"cpu", Quantity::from_milli(50)}};
  EXPECT_EQ(pod_request(world.pod, Era::k136, false).total.cpu_milli, 750);
}

TEST(PodTopologySpread, MissingLabelAndSkew) {
  World world;
  model::TopologySpreadConstraint constraint;
  constraint.topology_key = "rack";
  constraint.max_skew = 1;
  constraint.is_hard = true;
  constraint.selector = model::Selector({{"app", Requirement::Op::kIn, {"web"}}});
  world.pod.spread_constraints = {constraint};
  EXPECT_EQ(world.verdict(),
            "PodTopologySpread UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)");
  world.pod.spread_constraints[0].topology_key = "zone";
  EXPECT_EQ(world.verdict(), "fits");
  world.pod.spread_constraints[0].min_domains = 2;
  world.run("other");
  EXPECT_EQ(world.verdict(), "PodTopologySpread Unschedulable: node(s) didn't match pod topology spread constraints");
}

TEST(InterPodAffinity, EachRuleInItsWords) {
  World world;
  world.pod.required_affinity = {web_in("zone")};
  EXPECT_EQ(world.verdict(), "fits") << "the first of its kind";
  world.pod.required_affinity = {web_in("rack")};
  EXPECT_EQ(world.verdict(), "InterPodAffinity UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules");
  world.pod.required_affinity.clear();
  world.pod.required_anti_affinity = {web_in("zone")};
  world.run("other");
  EXPECT_EQ(world.verdict(), "InterPodAffinity Unschedulable: node(s) didn't match pod anti-affinity rules");
  world.pod.required_anti_affinity.clear();
  EXPECT_EQ(world.verdict(), "InterPodAffinity Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules");
}

TEST(InterPodAffinity, GivesTwoReasonsIn120) {
  World world(Era::k120);
  world.pod.required_anti_affinity = {web_in("zone")};
  world.run("other");
  EXPECT_EQ(world.verdict(),
            "InterPodAffinity Unschedulable: node(s) didn't match pod affinity/anti-affinity, node(s) didn't match pod anti-affinity rules");
}

TEST(SchedulingGates, HoldThePodBack) {
  World world;
  world.pod.scheduling_gates = {"a", "b"};
  const Status status = default_framework(Era::k136)->run_pre_enqueue(world.pod);
  EXPECT_EQ(status.message(), "waiting for scheduling gates: [a b]");
  EXPECT_EQ(status.plugin, "SchedulingGates");
}

TEST(DynamicResources, ClaimsAreRefusedInWords) {
  World world;
  world.pod.resource_claims = {"gpu"};
  EXPECT_EQ(world.verdict(), "prefilter: resource claims of devices are not supported");
}

TEST(NodeLabel, PresenceAndPreference) {
  World world(Era::k120);
  Profile profile = default_profile(Era::k120);
  profile.filter.push_back({"NodeLabel", 0});
  profile.score.push_back({"NodeLabel", 3});
  profile.args.node_label = {{"zone"}, {"retiring"}, {"zone", "rack"}, {}};
  world.cluster.upsert_node(std::make_shared<model::NodeView>(world.node));
  const auto pod = PodInfo::make(std::make_shared<model::PodView>(world.pod), Era::k120);
  const auto liked = evaluate(*framework_of(profile), world.cluster, *pod);
  ASSERT_EQ(liked.feasible.size(), 1U);
  EXPECT_EQ(liked.feasible[0].scores.back(), 150);
  profile.args.node_label.absent_labels = {"zone"};
  const auto refused = evaluate(*framework_of(profile), world.cluster, *pod);
  ASSERT_EQ(refused.rejected.size(), 1U);
  EXPECT_EQ(refused.rejected[0].status.message(), "node(s) didn't have the requested labels");
}

TEST(Framework, UnknownNamesAndWrongPointsAreErrors) {
  Profile profile = default_profile(Era::k136);
  profile.filter.push_back({"NodeColour", 0});
  EXPECT_EQ(Framework::create(profile).error().message, "plugin \"NodeColour\" does not exist");
  profile.filter.back().name = "ImageLocality";
  EXPECT_EQ(Framework::create(profile).error().message, "plugin \"ImageLocality\" does not extend Filter plugin");
}

}  // namespace
}  // namespace berth::placement::testing
