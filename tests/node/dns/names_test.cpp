// The cluster's names, by the specification of Kubernetes' DNS-based service discovery.
#include "node/dns/names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "node/dns/recursor.h"

namespace berth::node::dns {
namespace {

json::Value json_of(const std::string& text) { return *json::parse(text); }

/// A shop: a Service, a headless one with named pods, and names elsewhere.
Names shop() {
  Names names("cluster.local");
  names.add_namespace("shop");
  names.add_namespace("empty");
  const auto service = [&](const std::string& name, const std::string& spec, const std::vector<json::Value>& slices) {
    std::vector<const json::Value*> pointers;
    for (const json::Value& one : slices) pointers.push_back(&one);
    names.set_service(json_of(fmt::format(R"({{"metadata":{{"namespace":"shop","name":"{}"}},"spec":{}}})", name, spec)), pointers);
  };
  service(
      "web",
      R"({"clusterIP":"10.96.0.7","clusterIPs":["10.96.0.7","fd01::7"],"ports":[{"name":"http","port":80},{"name":"meta","port":53,"protocol":"UDP"}]})",
      {});
  service(
      "db", R"({"clusterIP":"None","ports":[{"name":"sql","port":5432}]})",
      {json_of(
          R"({"addressType":"IPv4","ports":[{"name":"sql","port":5432,"protocol":"TCP"}],"endpoints":[{"addresses":["10.0.0.5"],"hostname":"db-0"},{"addresses":["10.0.0.6"],"conditions":{"ready":false},"hostname":"db-1"},{"addresses":["10.0.0.7"]}]})")});
  service("away", R"({"type":"ExternalName","externalName":"db.example.com"})", {});
  service("alias", R"({"type":"ExternalName","externalName":"web.shop.svc.cluster.local"})", {});
  service("nobody", R"({"clusterIP":"None","ports":[]})", {});
  return names;
}

/// "name content" of each record of the answer proper, in order.
std::vector<std::string> answers(const std::string& name, std::uint16_t type) {
  std::vector<std::string> out;
  const Names names = shop();
  for (const Record& one : names.ask(name, type).records)
    if (one.section == Section::kAnswer) out.push_back(one.content);
  return out;
}
using Answers = std::vector<std::string>;

bool is_missing(const std::string& name) { return shop().ask(name, kA).code == ResponseCode::kNxDomain; }
bool is_empty(const std::string& name, std::uint16_t type = kA) {
  const Names names = shop();
  const Reply reply = names.ask(name, type);
  return reply.is_ours && reply.code == ResponseCode::kNoError && reply.records.size() == 1 && reply.records[0].type == kSoa &&
         reply.records[0].section == Section::kAuthority;
}

TEST(ClusterNames, AServiceHasItsClusterAddressesByFamily) {
  EXPECT_EQ(answers("web.shop.svc.cluster.local.", kA), Answers{"10.96.0.7"});
  EXPECT_EQ(answers("WEB.shop.svc.Cluster.Local", kAaaa), Answers{"fd01::7"});
  EXPECT_TRUE(is_empty("web.shop.svc.cluster.local", kTxt));
}

TEST(ClusterNames, AHeadlessServiceHasItsReadyEndpoints) {
  EXPECT_EQ(answers("db.shop.svc.cluster.local", kA), (Answers{"10.0.0.5", "10.0.0.7"}));
  EXPECT_TRUE(is_empty("db.shop.svc.cluster.local", kAaaa));
  EXPECT_TRUE(is_missing("nobody.shop.svc.cluster.local"));
}

TEST(ClusterNames, EndpointsHaveNamesOfTheirHostnameOrAddress) {
  EXPECT_EQ(answers("db-0.db.shop.svc.cluster.local", kA), Answers{"10.0.0.5"});
  EXPECT_EQ(answers("10-0-0-7.db.shop.svc.cluster.local", kA), Answers{"10.0.0.7"});
  EXPECT_TRUE(is_missing("db-1.db.shop.svc.cluster.local"));
}

TEST(ClusterNames, PortsHaveServiceRecords) {
  EXPECT_EQ(answers("_http._tcp.web.shop.svc.cluster.local", kSrv), Answers{"0 100 80 web.shop.svc.cluster.local."});
  EXPECT_EQ(answers("_meta._udp.web.shop.svc.cluster.local", kSrv), Answers{"0 100 53 web.shop.svc.cluster.local."});
  EXPECT_EQ(answers("_sql._tcp.db.shop.svc.cluster.local", kSrv),
            (Answers{"0 100 5432 db-0.db.shop.svc.cluster.local.", "0 100 5432 10-0-0-7.db.shop.svc.cluster.local."}));
  EXPECT_TRUE(is_missing("_http._udp.web.shop.svc.cluster.local"));
  const Names names = shop();
  const Reply reply = names.ask("_sql._tcp.db.shop.svc.cluster.local", kSrv);
  EXPECT_NE(std::ranges::find(reply.records, Record{kA, Section::kAdditional, "db-0.db.shop.svc.cluster.local.", "10.0.0.5"}),
            reply.records.end())
      << "the addresses of the targets come with them";
}

TEST(ClusterNames, ExternalNamesAreAliases) {
  const Names names = shop();
  const Reply away = names.ask("away.shop.svc.cluster.local", kA);
  ASSERT_EQ(away.records.size(), 1U);
  EXPECT_EQ(away.records[0].content, "db.example.com.");
  EXPECT_TRUE(away.leads_outside);
  const Reply alias = names.ask("alias.shop.svc.cluster.local", kA);
  ASSERT_EQ(alias.records.size(), 2U);
  EXPECT_EQ(alias.records[1].content, "10.96.0.7");
  EXPECT_FALSE(alias.leads_outside);
}

TEST(ClusterNames, AddressesLeadBackToNames) {
  EXPECT_EQ(answers("7.0.96.10.in-addr.arpa.", kPtr), Answers{"web.shop.svc.cluster.local."});
  EXPECT_EQ(answers("5.0.0.10.in-addr.arpa", kPtr), Answers{"db-0.db.shop.svc.cluster.local."});
  EXPECT_EQ(answers("7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.d.f.ip6.arpa", kPtr),
            Answers{"web.shop.svc.cluster.local."});
  const Names names = shop();
  EXPECT_FALSE(names.ask("9.9.9.9.in-addr.arpa", kPtr).is_ours) << "the world is asked";
}

TEST(ClusterNames, PodsAreNamedByTheirAddress) {
  EXPECT_EQ(answers("10-0-0-9.shop.pod.cluster.local", kA), Answers{"10.0.0.9"});
  EXPECT_EQ(answers("fd00--9.shop.pod.cluster.local", kAaaa), Answers{"fd00::9"});
  EXPECT_TRUE(is_missing("10-0-0-9.none.pod.cluster.local"));
  EXPECT_TRUE(is_missing("web.shop.pod.cluster.local"));
}

TEST(ClusterNames, NamesOnTheWayExistWithoutRecords) {
  for (const char* name : {"cluster.local", "svc.cluster.local", "shop.svc.cluster.local", "empty.svc.cluster.local", "pod.cluster.local"})
    EXPECT_TRUE(is_empty(name)) << name;
  for (const char* name : {"none.svc.cluster.local", "none.shop.svc.cluster.local", "x.cluster.local"})
    EXPECT_TRUE(is_missing(name)) << name;
}

TEST(ClusterNames, TheWorldIsNotOurs) {
  const Names names = shop();
  EXPECT_FALSE(names.ask("example.com", kA).is_ours);
  EXPECT_FALSE(names.ask("notcluster.local", kA).is_ours);
}

TEST(ClusterNames, WhatGoesIsForgotten) {
  Names names = shop();
  names.erase_service("shop", "db");
  EXPECT_EQ(names.ask("db.shop.svc.cluster.local", kA).code, ResponseCode::kNxDomain);
  EXPECT_FALSE(names.ask("5.0.0.10.in-addr.arpa", kPtr).is_ours);
}

TEST(ClusterNames, ALongAnswerComesInSeveralDatagrams) {
  Reply reply;
  for (int i = 0; i < 100; ++i) reply.records.push_back({kA, Section::kAnswer, "db.shop.svc.cluster.local.", fmt::format("10.0.0.{}", i)});
  std::size_t from = 0, count = 0, datagrams = 0;
  do {
    const std::string one = datagram_of(reply, from, 512);
    ASSERT_LE(one.size(), 512U);
    count += static_cast<std::size_t>(std::ranges::count(one, '\n')) - 1;
    from = std::stoul(one.substr(one.find(' ') + 1));
    ASSERT_LT(++datagrams, 100U);
  } while (from != 0);
  EXPECT_EQ(count, 100U);
  EXPECT_GT(datagrams, 2U);
  EXPECT_EQ(datagram_of({.is_ours = false, .code = {}, .records = {}}, 0, 512), "pass\n");
}

TEST(Recursor, ItsConfigurationNamesAddressScriptAndWhomItAsks) {
  RecursorOptions options{.directory = "/run/x",
                          .address = "198.19.0.1",
                          .backend_port = 4711,
                          .domain = "cluster.local",
                          .upstream = {"10.0.0.53", "10.0.0.54"}};
  const std::string config = recursor_config(options);
  for (const char* line : {"local-address=198.19.0.1\n", "local-port=53\n", "lua-dns-script=/run/x/cluster.lua\n",
                           "forward-zones-recurse=.=10.0.0.53;10.0.0.54\n"})
    EXPECT_NE(config.find(line), std::string::npos) << line;
  EXPECT_NE(recursor_script(options).find("127.0.0.1:4711"), std::string::npos);
  options.upstream.clear();
  EXPECT_EQ(recursor_config(options).find("forward-zones"), std::string::npos);
}

}  // namespace
}  // namespace berth::node::dns
