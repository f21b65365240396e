// Services on a real node: which endpoints count (kube-proxy's topology rules), and that the kernel takes every step from table to table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "node/services/rules.h"
#include "tests/node/services/own_network.h"

namespace berth::node::services {
namespace {

json::Value parse(const std::string& text) { return *json::parse(text); }

json::Value service(const std::string& spec) {
  return parse(R"({"metadata":{"namespace":"shop","name":"web"},"spec":{"clusterIP":"10.96.0.10","clusterIPs":["10.96.0.10"],)"
               R"("ports":[{"name":"http","port":80,"protocol":"TCP"}])" +
               spec + "}}");
}
json::Value slice(const std::string& endpoints) {
  return parse(R"({"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],"endpoints":[)" + endpoints + "]}");
}
std::string endpoint(const std::string& address, const std::string& node, const std::string& conditions, const std::string& more = "") {
  return R"({"addresses":[")" + address + R"("],"nodeName":")" + node + R"(","conditions":{)" + conditions + "}" + more + "}";
}

ServicePort port_of(const json::Value& service, const json::Value& slice, const std::string& zone = "") {
  ServiceTable table;
  add_service(service, {&slice}, "here", zone, table);
  return table.contains("shop/web:http") ? table.at("shop/web:http") : ServicePort{};
}
std::vector<std::string> addresses(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> out;
  for (const Endpoint& e : endpoints) out.push_back(e.address);
  return out;
}
using Addresses = std::vector<std::string>;

TEST(ServiceTable, ReadyEndpointsCountAndThoseOfThisNodeAreKnown) {
  const auto port = port_of(service(""), slice(endpoint("10.0.0.1", "here", R"("ready":true)") + "," + endpoint("10.0.0.2", "there", "") +
                                               "," + endpoint("10.0.0.3", "here", R"("ready":false)")));
  EXPECT_EQ(addresses(port.endpoints), (Addresses{"10.0.0.1", "10.0.0.2"}));
  EXPECT_EQ(addresses(port.local_endpoints), Addresses{"10.0.0.1"});
  EXPECT_EQ(port.endpoints[0].port, 8080);
}

TEST(ServiceTable, WhatServesWhileItEndsCountsWhenNothingIsReady) {
  const std::string ending = R"("ready":false,"serving":true,"terminating":true)";
  EXPECT_EQ(addresses(port_of(service(""), slice(endpoint("10.0.0.1", "here", ending))).endpoints), Addresses{"10.0.0.1"});
  EXPECT_EQ(
      addresses(
          port_of(service(""), slice(endpoint("10.0.0.1", "here", ending) + "," + endpoint("10.0.0.2", "x", R"("ready":true)"))).endpoints),
      Addresses{"10.0.0.2"});
}

TEST(ServiceTable, HintsKeepTrafficInTheZoneWhenAllHaveThem) {
  const auto hint = [](const char* zone) { return fmt::format(R"(,"hints":{{"forZones":[{{"name":"{}"}}]}})", zone); };
  const std::string a = endpoint("10.0.0.1", "x", "", hint("a")), b = endpoint("10.0.0.2", "y", "", hint("b")),
                    none = endpoint("10.0.0.3", "z", "");
  EXPECT_EQ(addresses(port_of(service(""), slice(a + "," + b), "a").endpoints), Addresses{"10.0.0.1"});
  EXPECT_EQ(port_of(service(""), slice(a + "," + b + "," + none), "a").endpoints.size(), 3U);
  EXPECT_EQ(port_of(service(""), slice(a + "," + b), "c").endpoints.size(), 2U);
}

TEST(ServiceTable, HintsForNodesKeepTrafficOnTheNode) {
  const auto hint = [](const char* node) { return fmt::format(R"(,"hints":{{"forNodes":[{{"name":"{}"}}]}})", node); };
  const std::string here = endpoint("10.0.0.1", "here", "", hint("here")), there = endpoint("10.0.0.2", "there", "", hint("there")),
                    none = endpoint("10.0.0.3", "there", "");
  EXPECT_EQ(addresses(port_of(service(""), slice(here + "," + there)).endpoints), Addresses{"10.0.0.1"});
  EXPECT_EQ(port_of(service(""), slice(there)).endpoints.size(), 1U) << "none is for this node";
  EXPECT_EQ(port_of(service(""), slice(here + "," + there + "," + none)).endpoints.size(), 3U) << "one has no hint";
}

TEST(ServiceTable, ABalancerIsToldOfReadyEndpointsHereAlone) {
  const json::Value all = slice(endpoint("10.0.0.1", "here", "") + "," + endpoint("10.0.0.2", "here", R"("ready":false,"serving":true)") +
                                "," + endpoint("10.0.0.3", "there", "") + "," + endpoint("10.0.0.1", "here", ""));
  EXPECT_EQ(ready_endpoints_on({&all}, "here"), 1);
}

TEST(ServiceTable, HeadlessAndForeignServicesHaveNoRules) {
  ServiceTable table;
  add_service(parse(R"({"metadata":{"namespace":"a","name":"b"},"spec":{"clusterIP":"None","ports":[{"port":80}]}})"), {}, "here", "",
              table);
  add_service(parse(R"({"metadata":{"namespace":"a","name":"c"},"spec":{"type":"ExternalName","externalName":"x"}})"), {}, "here", "",
              table);
  add_service(
      parse(
          R"({"metadata":{"namespace":"a","name":"d","labels":{"service.kubernetes.io/service-proxy-name":"other"}},"spec":{"clusterIP":"10.0.0.9","ports":[{"port":80}]}})"),
      {}, "here", "", table);
  EXPECT_TRUE(table.empty());
}

TEST(ServiceTable, BothFamiliesOfADualStackService) {
  ServiceTable table;
  const auto v4 = slice(endpoint("10.0.0.1", "here", ""));
  auto v6 = parse(R"({"addressType":"IPv6","ports":[{"name":"http","port":8080}],"endpoints":[{"addresses":["fd00::1"]}]})");
  add_service(
      parse(
          R"({"metadata":{"namespace":"shop","name":"web"},"spec":{"clusterIPs":["10.96.0.10","fd01::a"],"ports":[{"name":"http","port":80}]}})"),
      {&v4, &v6}, "here", "", table);
  ASSERT_EQ(table.size(), 2U);
  EXPECT_EQ(table.at("shop/web:http/6").cluster_ip, "fd01::a");
  EXPECT_EQ(addresses(table.at("shop/web:http/6").endpoints), Addresses{"fd00::1"});
}

TEST(ServiceRules, NothingChangedNothingIsSaid) {
  ServiceTable table{{"shop/web:http", port_of(service(""), slice(endpoint("10.0.0.1", "here", "")))}};
  EXPECT_EQ(rules_between(table, table, {}), "");
}

TEST(ServiceRules, APortThatChangesLeavesTheOthersAlone) {
  ServiceTable before{{"shop/web:http", port_of(service(""), slice(endpoint("10.0.0.1", "here", "")))}};
  before["a/b:x"] = before.begin()->second;
  before["a/b:x"].name = "a/b:x";
  before["a/b:x"].cluster_ip = "10.96.0.77";
  ServiceTable after = before;
  after["shop/web:http"].endpoints.push_back({"10.0.0.2", 8080, false});
  const std::string script = rules_between(before, after, {});
  EXPECT_NE(script.find("10.0.0.2:8080"), std::string::npos);
  EXPECT_EQ(script.find("10.96.0.77"), std::string::npos) << script;
  EXPECT_EQ(script.find("10.0.0.1:8080"), std::string::npos) << "an endpoint that stays is not written again: " << script;
}

/// Some port with everything that a port may have, by chance.
ServicePort random_port(int number, std::mt19937& random) {
  const auto chance = [&](int of) { return static_cast<int>(random() % static_cast<unsigned>(of)); };
  ServicePort port;
  port.name = fmt::format("ns/svc-{}:p", number);
  port.protocol = number % 3 == 0 ? "udp" : "tcp";
  port.is_ipv6 = number % 5 == 0;
  port.cluster_ip = fmt::format(fmt::runtime(port.is_ipv6 ? "fd01::{}" : "10.96.0.{}"), number + 1);
  port.port = 80;
  if (chance(2) == 0) port.node_port = static_cast<std::uint16_t>(30000 + number);
  if (chance(3) == 0) port.external_ips.push_back(fmt::format(fmt::runtime(port.is_ipv6 ? "fd02::{}" : "192.0.2.{}"), number + 1));
  port.external_local = chance(3) == 0;
  port.internal_local = chance(5) == 0;
  port.affinity_seconds = chance(3) == 0 ? 60 : 0;
  for (int i = chance(4); i > 0; --i) {
    const Endpoint e{fmt::format(fmt::runtime(port.is_ipv6 ? "fd00::{}" : "10.0.0.{}"), 1 + chance(6)), 8080, chance(2) == 0};
    if (std::ranges::any_of(port.endpoints, [&](const Endpoint& other) { return other.address == e.address; })) continue;
    port.endpoints.push_back(e);
    if (e.is_local) port.local_endpoints.push_back(e);
  }
  return port;
}

TEST(ServiceRules, TheKernelTakesEveryStep) {
  in_own_network([](Kernel& kernel) {
    std::mt19937 random(7);
    const RuleOptions options{.table = "berth-test", .masquerades_local = true};
    ServiceTable before;
    const auto first = kernel.run(whole_rules(before, options));
    ASSERT_TRUE(first.has_value()) << first.error().message;
    for (int step = 0; step < 150; ++step) {
      ServiceTable after = before;
      for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
        const int number = static_cast<int>(random() % 12);
        const ServicePort port = random_port(number, random);
        if (random() % 4 == 0)
          after.erase(port.name);
        else
          after[port.name] = port;
      }
      const std::string script = rules_between(before, after, options);
      if (script.empty()) continue;
      const auto taken = kernel.run(script);
      ASSERT_TRUE(taken.has_value()) << "step " << step << ": " << taken.error().message << "\n" << script;
      before = after;
    }
    const auto emptied = kernel.run(rules_between(before, {}, options));
    ASSERT_TRUE(emptied.has_value()) << emptied.error().message;
    EXPECT_TRUE(kernel.run(no_rules(options.table)).has_value());
  });
}

}  // namespace
}  // namespace berth::node::services
