// Services on a real node: which endpoints count (kube-proxy's topology rules), and that the kernel takes every step from table to table.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>

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

TEST(ServiceTable, HeadlessSlicesAndSlicesOfOthersAreNotLedTo) {
  const json::Value all = slice(endpoint("10.0.0.1", "here", ""));
  for (const char* label : {"service.kubernetes.io/headless", "service.kubernetes.io/service-proxy-name"}) {
    json::Value labelled = all;
    json::set(labelled, {"metadata", "labels", label}, json::Value(""));
    EXPECT_TRUE(port_of(service(""), labelled).endpoints.empty()) << label;
    EXPECT_EQ(ready_endpoints_on({&labelled}, "here"), 0) << label;
    ServiceTable table;
    add_service(service(""), {&labelled, &all}, "here", "", table);
    EXPECT_EQ(table.at("shop/web:http").endpoints.size(), 1U) << "the others are";
    json::Value foreign = service("");
    json::set(foreign, {"metadata", "labels", label}, json::Value(""));
    EXPECT_EQ(port_of(foreign, all).cluster_ip, "") << label;
  }
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

TEST(ServiceTable, WhatIsNoAddressIsLeftOutAndAnAddressHasOneText) {
  const json::Value strange = slice(R"({"addresses":["10.0.0.1 }; flush ruleset"]},{"addresses":["10.0.0.2"]})");
  const auto port = port_of(service(R"(,"externalIPs":["192.0.2.1","nonsense"],"loadBalancerSourceRanges":["10.1.2.3/8"])"), strange);
  EXPECT_EQ(addresses(port.endpoints), Addresses{"10.0.0.2"});
  EXPECT_EQ(port.external_ips, Addresses{"192.0.2.1"});
  EXPECT_EQ(port.source_ranges, Addresses{"10.0.0.0/8"});
}

/// What a kernel would hold after scripts of ours: the chains' rules, and the elements by map and key.
struct Told {
  std::map<std::string, std::vector<std::string>> chains;
  std::map<std::string, std::map<std::string, std::string>> elements;

  void take(const std::string& script) {
    std::istringstream lines(script);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string verb, kind, family, table, name;
      words >> verb >> kind >> family >> table >> name;
      const std::string of = family + " " + name;
      const std::string rest = line.substr(std::min(line.size(), line.find(name, line.find(table)) + name.size()));
      if (kind == "table" && verb == "delete") *this = {};
      if (kind == "chain" && verb == "delete") {
        EXPECT_TRUE(chains.contains(of) && chains[of].empty()) << line;
        chains.erase(of);
      }
      if (kind == "chain" && verb == "add") chains[of];
      if (kind == "chain" && verb == "flush") chains[of].clear();
      if (kind == "rule") chains[of].push_back(rest);
      if (kind == "element") take_elements(verb == "add", elements[of], rest);
    }
  }
  void take_elements(bool adds, std::map<std::string, std::string>& into, const std::string& rest) {
    const auto from = rest.find('{') + 2, to = rest.rfind('}') - 1;
    for (std::size_t at = from; at < to;) {
      const auto end = std::min(rest.find(", ", at), to);
      const std::string one = rest.substr(at, end - at);
      at = end + 2;
      const auto colon = one.find(" : ");
      const std::string key = one.substr(0, colon);
      if (adds) {
        EXPECT_TRUE(into.emplace(key, colon == std::string::npos ? "" : one.substr(colon + 3)).second) << one << " is there already";
      } else {
        EXPECT_EQ(into.erase(key), 1U) << one << " is not there";
      }
    }
  }
  /// Where a port leads, whichever number its endpoints have.
  [[nodiscard]] std::map<std::string, std::multiset<std::string>> meaning() const {
    std::map<std::string, std::multiset<std::string>> out;
    for (const auto& [map, held] : elements)
      for (const auto& [key, value] : held) {
        const bool is_numbered = map.contains("pick-");
        out[(is_numbered ? map.substr(0, map.rfind('-')) : map) + " " + key].insert(value);
        if (is_numbered) out[map + " " + key].insert("taken");
      }
    return out;
  }
};

TEST(ServiceRules, NothingChangedNothingIsSaid) {
  Rules rules{RuleOptions{}};
  const auto port = port_of(service(""), slice(endpoint("10.0.0.1", "here", "")));
  rules.set("shop/web:http", port);
  EXPECT_NE(rules.whole(), "");
  EXPECT_EQ(rules.step(), "");
  rules.set("shop/web:http", port);
  EXPECT_EQ(rules.step(), "");
}

TEST(ServiceRules, APortThatChangesLeavesTheOthersAlone) {
  Rules rules{RuleOptions{}};
  auto port = port_of(service(""), slice(endpoint("10.0.0.1", "here", "")));
  auto other = port;
  other.name = "a/b:x";
  other.cluster_ip = "10.96.0.77";
  rules.set(port.name, port);
  rules.set(other.name, other);
  rules.whole();
  port.endpoints.push_back({"10.0.0.2", 8080, false});
  rules.set(port.name, port);
  const std::string script = rules.step();
  EXPECT_NE(script.find("10.0.0.2 . 8080"), std::string::npos);
  EXPECT_EQ(script.find("10.96.0.77"), std::string::npos) << script;
  EXPECT_EQ(script.find("10.0.0.1 . 8080"), std::string::npos) << "an endpoint that stays is not written again: " << script;
}

TEST(ServiceRules, EndpointsThatStayKeepTheirPlaces) {
  Rules rules{RuleOptions{}};
  auto port = port_of(service(""), slice(endpoint("10.0.0.1", "x", "")));
  for (int i = 2; i <= 9; ++i) port.endpoints.push_back({fmt::format("10.0.0.{}", i), 8080, false});
  rules.set(port.name, port);
  rules.whole();
  port.endpoints.erase(port.endpoints.begin());
  rules.set(port.name, port);
  const std::string script = rules.step();
  EXPECT_NE(script.find("add element ip berth pick-0 { 10.96.0.10 . tcp . 80 : 10.0.0.9 . 8080 }"), std::string::npos) << script;
  EXPECT_NE(script.find("delete element ip berth pick-8 { 10.96.0.10 . tcp . 80 }"), std::string::npos) << script;
  EXPECT_EQ(script.find("berth pick-4 {"), std::string::npos) << script;
}

TEST(ServiceRules, OfTwoThatClaimOneAddressTheFirstByNameHasItWhileItIsThere) {
  Rules rules{RuleOptions{}};
  auto first = port_of(service(R"(,"externalIPs":["192.0.2.1"])"), slice(endpoint("10.0.0.1", "x", "")));
  auto second = first;
  second.name = "shop/zoo:http", second.cluster_ip = "10.96.0.11", second.endpoints = {{"10.0.0.2", 8080, false}};
  Told told;
  rules.set(second.name, second);
  told.take(rules.whole());
  const auto leads = [&] { return told.elements["ip pick-0"]["192.0.2.1 . tcp . 80"]; };
  EXPECT_EQ(leads(), "10.0.0.2 . 8080");
  rules.set(first.name, first);
  told.take(rules.step());
  EXPECT_EQ(leads(), "10.0.0.1 . 8080");
  rules.erase(first.name);
  told.take(rules.step());
  EXPECT_EQ(leads(), "10.0.0.2 . 8080");
}

TEST(ServiceRules, ABalancersAddressIsForItsRangesAlone) {
  Rules rules{RuleOptions{}};
  auto port = port_of(service(R"(,"loadBalancerSourceRanges":["203.0.113.0/24"])"), slice(endpoint("10.0.0.1", "x", "")));
  port.external_ips = port.balancer_ips = {"192.0.2.7"};
  rules.set(port.name, port);
  Told told;
  told.take(rules.whole());
  ASSERT_EQ(told.elements["ip firewall-ips"].count("192.0.2.7 . tcp . 80"), 1U);
  const std::string chain = told.elements["ip firewall-ips"]["192.0.2.7 . tcp . 80"].substr(5);
  EXPECT_EQ(told.chains["ip " + chain], (std::vector<std::string>{" ip saddr 203.0.113.0/24 return", " drop"}));
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

/// Some of twelve ports come, change and go.
void change(ServiceTable& table, Rules& rules, std::mt19937& random) {
  for (int changes = 1 + static_cast<int>(random() % 3); changes > 0; --changes) {
    const ServicePort port = random_port(static_cast<int>(random() % 12), random);
    if (random() % 4 == 0) {
      rules.erase(port.name);
      table.erase(port.name);
    } else {
      rules.set(port.name, port);
      table[port.name] = port;
    }
  }
}

/// Also a pod of another node, which asks this one and is led back to itself.
TEST(ServiceRules, AnyEndpointThatReachesItselfSeesAnotherSource) {
  for (const bool masquerades : {false, true}) {
    Rules rules({.table = "berth-test", .masquerades_local = masquerades});
    rules.set("shop/web:http", port_of(service(""), slice(endpoint("10.0.0.1", "here", "") + "," + endpoint("10.0.0.2", "there", ""))));
    const std::string script = rules.whole();
    EXPECT_NE(script.find("ip saddr . ip daddr @hairpins jump mark-for-masquerade"), std::string::npos);
    for (const char* address : {"10.0.0.1 . 10.0.0.1", "10.0.0.2 . 10.0.0.2"})
      EXPECT_NE(script.find(address), std::string::npos) << address;
    EXPECT_EQ(script.find("local-endpoints") != std::string::npos, masquerades);
  }
}

TEST(ServiceRules, EveryStepLeadsWhereTheWholeDoes) {
  for (const bool masquerades : {false, true}) {
    const RuleOptions options{.table = "berth-test", .masquerades_local = masquerades};
    std::mt19937 random(11);
    ServiceTable table;
    Rules rules(options);
    Told told;
    told.take(rules.whole());
    for (int step = 0; step < 200; ++step) {
      change(table, rules, random);
      told.take(rules.step());
      Rules fresh(options);
      for (const auto& [name, port] : table) fresh.set(name, port);
      Told whole;
      whole.take(fresh.whole());
      ASSERT_EQ(told.meaning(), whole.meaning()) << "step " << step;
      for (const auto& [chain, held] : whole.chains) {
        if (chain.contains("service-") || chain.contains("local-")) continue;  // The order of endpoints is free.
        ASSERT_EQ(told.chains[chain], held) << chain << ", step " << step;
      }
    }
  }
}

TEST(ServiceRules, TheKernelTakesEveryStep) {
  in_own_network([](Kernel& kernel) {
    for (const bool masquerades : {false, true}) {
      std::mt19937 random(7);
      const RuleOptions options{.table = "berth-test", .masquerades_local = masquerades, .pod_block = "10.88.0.0/16"};
      Rules rules(options);
      ServiceTable table;
      const auto first = kernel.run(rules.whole());
      ASSERT_TRUE(first.has_value()) << first.error().message;
      for (int step = 0; step < 150; ++step) {
        change(table, rules, random);
        const std::string script = rules.step();
        if (script.empty()) continue;
        const auto taken = kernel.run(script);
        ASSERT_TRUE(taken.has_value()) << "step " << step << ": " << taken.error().message << "\n" << script;
      }
      for (const auto& [name, port] : table) rules.erase(name);
      const auto emptied = kernel.run(rules.step());
      ASSERT_TRUE(emptied.has_value()) << emptied.error().message;
      EXPECT_TRUE(kernel.run(no_rules(options.table)).has_value());
    }
  });
}

}  // namespace
}  // namespace berth::node::services
