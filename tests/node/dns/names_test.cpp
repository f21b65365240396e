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

/// A headless Service of so many pods with hostnames, each with so many ports.
Names set_of(std::size_t pods, int port_count) {
  Names names("cluster.local");
  names.add_namespace("shop");
  std::vector<json::Value> slices;
  json::Array ports;
  for (int i = 0; i < port_count; ++i) ports.push_back(json::Object{{"name", fmt::format("p{}", i)}, {"port", 1 + i}, {"protocol", "TCP"}});
  for (std::size_t i = 0; i < pods; ++i) {
    if (i % 1000 == 0) slices.push_back(json::Object{{"addressType", "IPv4"}, {"ports", ports}, {"endpoints", json::Array()}});
    json::find(slices.back(), "endpoints")
        ->get_array()
        .push_back(json::Object{{"addresses", json::Array{fmt::format("10.{}.{}.{}", i / 65536, i / 256 % 256, i % 256)}},
                                {"hostname", fmt::format("set-{}", i)}});
  }
  std::vector<const json::Value*> pointers;
  for (const json::Value& one : slices) pointers.push_back(&one);
  names.set_service(json_of(R"({"metadata":{"namespace":"shop","name":"set"},"spec":{"clusterIP":"None"}})"), pointers);
  return names;
}

/// All pages of an answer, as the recursor's script fetches them; what was looked at for them.
struct Fetched {
  std::size_t records = 0;
  std::uint64_t looked_at = 0;
};
Fetched fetch(const Names& names, const std::string& name, std::uint16_t type) {
  Pages pages;
  Fetched out;
  std::size_t from = 0;
  do {
    const std::string page = pages.answer(names, name, type, from, 512);
    out.records += static_cast<std::size_t>(std::ranges::count(page, '\n')) - 1;
    from = std::stoul(page.substr(page.find(' ') + 1));
  } while (from != 0);
  out.looked_at = names.looked_at();
  return out;
}

TEST(ClusterNames, ALargeSetCostsItsLengthHoweverManyPagesItTakes) {
  const std::string set = "set.shop.svc.cluster.local";
  for (const auto& [name, type] : {std::pair(set, kA), std::pair("_p0._tcp." + set, kSrv)}) {
    const Names few = set_of(500, 1), many = set_of(2000, 1);
    const Fetched of_few = fetch(few, name, type), of_many = fetch(many, name, type);
    EXPECT_EQ(of_few.records, type == kA ? 500U : 1000U) << name;
    EXPECT_EQ(of_many.records, type == kA ? 2000U : 4000U) << name;
    EXPECT_LE(of_few.looked_at, 1000U) << name;
    EXPECT_LE(of_many.looked_at, 4 * of_few.looked_at) << name;
  }
  const Names many = set_of(2000, 1);
  EXPECT_EQ(fetch(many, "set-1234." + set, kA).looked_at, 1U);
  EXPECT_EQ(fetch(many, "set-4321." + set, kA).looked_at, 1U) << "nobody's name is found by looking at nobody";
}

TEST(ClusterNames, AnAnswerIsNeverLongerThanAMessageOfTheProtocol) {
  const Names names = set_of(3000, 40);
  const std::string set = "set.shop.svc.cluster.local";
  EXPECT_EQ(fetch(names, set, kSrv).records, kMostRecords) << "120,000 are there";
  EXPECT_LE(names.looked_at(), 3000U + 200U);
  EXPECT_EQ(fetch(names, set, kAny).records, kMostRecords);
}

TEST(ClusterNames, WhoeverFetchesTheRestGetsTheSameReply) {
  Names names = set_of(100, 1);
  Pages pages;
  const std::string set = "set.shop.svc.cluster.local";
  const std::string first = pages.answer(names, set, kA, 0, 512);
  const std::size_t next = std::stoul(first.substr(first.find(' ') + 1));
  ASSERT_NE(next, 0U);
  names.erase_service("shop", "set");
  EXPECT_NE(pages.answer(names, set, kA, next, 512).find("10.0.0."), std::string::npos);
  EXPECT_EQ(pages.answer(names, set, kA, 0, 512).substr(0, 2), "3 ");
  for (int i = 0; i < 20; ++i) static_cast<void>(pages.answer(names, fmt::format("x{}.shop.svc.cluster.local", i), kA, 0, 512));
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
