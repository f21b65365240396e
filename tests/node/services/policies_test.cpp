// NetworkPolicies: whom they guard, what they let through, and that the kernel takes every step from one state to the next.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "node/services/policy_table.h"
#include "tests/node/services/own_network.h"

namespace berth::node::services {
namespace {

model::Labels labels(std::vector<std::pair<std::string, std::string>> pairs) { return model::Labels(std::move(pairs)); }

PolicyPod pod(const std::string& ns, const std::string& name, const std::string& app, const std::string& address, bool is_local = true) {
  PolicyPod out{.ns = ns, .name = name, .labels = labels({{"app", app}}), .addresses = {address}, .ports = {}, .is_local = is_local};
  return out;
}

/// The rules of a world of pods "web" and "db" in "shop" and "probe" in "ops".
struct World {
  std::vector<PolicyPod> pods{pod("shop", "web", "web", "10.0.0.1"), pod("shop", "db", "db", "10.0.0.2"),
                              pod("ops", "probe", "probe", "10.0.0.3", false)};
  std::vector<std::string> policies;

  [[nodiscard]] PolicyRules rules() const {
    PolicyInput input;
    for (const PolicyPod& one : pods) input.pods.push_back(&one);
    input.namespaces = {{"shop", labels({{"team", "shop"}})}, {"ops", labels({{"team", "ops"}})}};
    for (std::size_t i = 0; i < policies.size(); ++i)
      input.policies.push_back(std::make_shared<json::Value>(
          *json::parse(fmt::format(R"({{"metadata":{{"namespace":"shop","name":"p{}"}},"spec":{}}})", i, policies[i]))));
    return compile_policies(input);
  }
  /// The rules of the only policy that has any, in one text.
  [[nodiscard]] std::string said() const {
    std::string out;
    for (const auto& [chain, rules] : rules().chains)
      if (!chain.starts_with("pod-"))
        for (const std::string& rule : rules) out += rule + "\n";
    return out;
  }
};

bool guards(const PolicyRules& rules, const std::string& map, const std::string& address) { return rules.guards.contains({map, address}); }

TEST(NetworkPolicies, ASelectedPodIsClosedInThePolicysDirectionsOnly) {
  World world{.policies = {R"({"podSelector":{"matchLabels":{"app":"db"}},"policyTypes":["Ingress"]})"}};
  const auto rules = world.rules();
  EXPECT_TRUE(guards(rules, "ingress4", "10.0.0.2"));
  EXPECT_FALSE(guards(rules, "egress4", "10.0.0.2"));
  EXPECT_FALSE(guards(rules, "ingress4", "10.0.0.1"));
  EXPECT_EQ(world.said(), "") << "nothing is let through";
}

TEST(NetworkPolicies, WithoutTypesEgressCountsWhereItHasRules) {
  World world{.policies = {R"({"podSelector":{},"egress":[{}]})"}};
  EXPECT_TRUE(guards(world.rules(), "egress4", "10.0.0.1"));
  EXPECT_TRUE(guards(world.rules(), "ingress4", "10.0.0.1"));
  EXPECT_EQ(world.said(), "accept\n");
}

TEST(NetworkPolicies, PodsOfOtherNodesAreNotGuardedHere) {
  World world{.policies = {R"({"podSelector":{},"policyTypes":["Ingress"]})"}};
  world.pods[1].is_local = false;
  EXPECT_FALSE(guards(world.rules(), "ingress4", "10.0.0.2"));
}

TEST(NetworkPolicies, PeersAreOfThePolicysNamespaceUnlessOthersAreNamed) {
  World world{.policies = {R"({"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{"from":[{"podSelector":{}}]}]})"}};
  EXPECT_EQ(world.said(), "ip saddr { 10.0.0.1, 10.0.0.2 } accept\n");
  world.policies = {
      R"({"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"ops"}}}]}]})"};
  EXPECT_EQ(world.said(), "ip saddr { 10.0.0.3 } accept\n");
  world.policies = {
      R"({"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{"from":[{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"web"}}}]}]})"};
  EXPECT_EQ(world.said(), "ip saddr { 10.0.0.1 } accept\n");
}

TEST(NetworkPolicies, ASelectorThatNobodyMeetsLetsNobodyIn) {
  World world{.policies = {R"({"podSelector":{},"ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"none"}}}]}]})"}};
  EXPECT_EQ(world.said(), "");
}

TEST(NetworkPolicies, BlocksWithWhatTheyLeaveOut) {
  World world{
      .policies = {
          R"({"podSelector":{"matchLabels":{"app":"db"}},"egress":[{"to":[{"ipBlock":{"cidr":"10.1.2.3/8","except":["10.2.0.0/16","10.3.0.0/16"]}}]}],"policyTypes":["Egress"]})"}};
  EXPECT_EQ(world.said(), "ip daddr 10.0.0.0/8 ip daddr != 10.2.0.0/16 ip daddr != 10.3.0.0/16 accept\n");
  world.policies = {R"({"podSelector":{},"egress":[{"to":[{"ipBlock":{"cidr":"::/0"}}]}],"policyTypes":["Egress"]})"};
  EXPECT_EQ(world.said(), "meta nfproto ipv6 accept\n");
}

TEST(NetworkPolicies, PortsByNumberRangeProtocolAndName) {
  World world{
      .policies = {
          R"({"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{"ports":[{"port":80},{"protocol":"UDP","port":1000,"endPort":1010},{"protocol":"SCTP"},{"port":"sql"}]}]})"}};
  world.pods[1].ports = {{"sql", "tcp", 5432}, {"sql", "udp", 9}};
  EXPECT_EQ(world.said(),
            "tcp dport 80 accept\nudp dport 1000-1010 accept\nmeta l4proto sctp accept\nip daddr { 10.0.0.2 } tcp dport 5432 accept\n");
}

TEST(NetworkPolicies, ANamedPortOfEgressIsThePeersOwn) {
  World world{
      .policies = {
          R"({"podSelector":{"matchLabels":{"app":"web"}},"egress":[{"to":[{"podSelector":{}}],"ports":[{"port":"sql"}]}],"policyTypes":["Egress"]})"}};
  world.pods[1].ports = {{"sql", "tcp", 5432}};
  EXPECT_EQ(world.said(), "ip daddr { 10.0.0.2 } tcp dport 5432 accept\n");
}

TEST(NetworkPolicies, APodIsReachedFromItselfAndDroppedLast) {
  World world{
      .policies = {R"({"podSelector":{"matchLabels":{"app":"db"}}})", R"({"podSelector":{"matchLabels":{"app":"db"}},"ingress":[{}]})"}};
  const auto rules = world.rules();
  const std::string guard = rules.guards.at({"ingress4", "10.0.0.2"});
  const auto& chain = rules.chains.at(guard.substr(5));
  ASSERT_EQ(chain.size(), 4U) << "itself, two policies, the end";
  EXPECT_EQ(chain.front(), "ip saddr 10.0.0.2 accept");
  EXPECT_EQ(chain.back(), "drop");
}

TEST(NetworkPolicies, PodsThatAreOverOrInTheNodesNetworkHaveNoAddress) {
  const auto read = [](const char* text) { return policy_pod(*json::parse(text), "here"); };
  EXPECT_EQ(read(R"({"spec":{"nodeName":"here"},"status":{"podIPs":[{"ip":"10.0.0.1"}]}})").addresses,
            std::vector<std::string>{"10.0.0.1"});
  EXPECT_TRUE(read(R"({"spec":{"hostNetwork":true},"status":{"podIPs":[{"ip":"10.0.0.1"}]}})").addresses.empty());
  EXPECT_TRUE(read(R"({"spec":{},"status":{"phase":"Failed","podIPs":[{"ip":"10.0.0.1"}]}})").addresses.empty());
}

std::string random_policy(std::mt19937& random) {
  const auto pick = [&](std::vector<std::string> of) { return of[random() % of.size()]; };
  const std::string selector = pick({"{}", R"({"matchLabels":{"app":"web"}})", R"({"matchLabels":{"app":"db"}})"});
  const std::string peer =
      pick({R"("PEER":[{"podSelector":{}}])", R"("PEER":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.9.0.0/16","10.9.1.0/24"]}}])",
            R"("PEER":[{"namespaceSelector":{}},{"ipBlock":{"cidr":"fd00::/8"}},{"ipBlock":{"cidr":"0.0.0.0/0"}}])", R"("PEER":[])"});
  const std::string ports = pick({R"("ports":[{"port":80},{"port":"sql"}])", R"("ports":[{"protocol":"SCTP","port":7,"endPort":9}])",
                                  R"("ports":[{"protocol":"UDP"}])", R"("ports":[])"});
  const auto rule = [&](const std::string& side) { return "{" + side + peer.substr(5) + "," + ports + "}"; };
  return fmt::format(R"({{"podSelector":{},"ingress":[{}],"egress":[{}],"policyTypes":{}}})", selector, rule("\"from"), rule("\"to"),
                     pick({R"(["Ingress"])", R"(["Egress"])", R"(["Ingress","Egress"])"}));
}

TEST(NetworkPolicies, TheKernelTakesEveryStepOfThem) {
  in_own_network([](Kernel& kernel) {
    std::mt19937 random(11);
    World world;
    world.pods[1].ports = {{"sql", "tcp", 5432}};
    world.pods[0].addresses.emplace_back("fd00::1");
    PolicyRules before;
    const auto first = kernel.run(whole_policies(before, "berth-test-policies"));
    ASSERT_TRUE(first.has_value()) << first.error().message;
    for (int step = 0; step < 150; ++step) {
      if (random() % 3 == 0 && !world.policies.empty())
        world.policies.erase(world.policies.begin() + static_cast<long>(random() % world.policies.size()));
      else
        world.policies.push_back(random_policy(random));
      if (random() % 4 == 0) world.pods[random() % 3].addresses.front() = fmt::format("10.0.0.{}", 1 + random() % 200);
      const PolicyRules after = world.rules();
      const std::string script = policies_between(before, after, "berth-test-policies");
      EXPECT_EQ(script.empty(), before == after);
      const auto taken = kernel.run(script);
      ASSERT_TRUE(taken.has_value()) << "step " << step << ": " << taken.error().message << "\n" << script;
      before = after;
    }
    EXPECT_TRUE(kernel.run(policies_between(before, {}, "berth-test-policies")).has_value());
    EXPECT_TRUE(kernel.run(no_policies("berth-test-policies")).has_value());
  });
}

}  // namespace
}  // namespace berth::node::services
