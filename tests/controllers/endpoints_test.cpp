// Endpoints, EndpointSlices and their mirroring under a virtual clock.
#include "controllers/endpoint_model.h"
#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

class EndpointsTest : public ::testing::Test {
 protected:
  EndpointsTest() {
    api.engine.add(make_endpoints_controller());
    api.engine.add(make_endpoint_slice_controller());
    api.engine.add(make_endpoint_slice_mirroring_controller());
    api.engine.start();
    api.put(kinds().node, yaml("{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: east}}}"));
  }
  void settle() { loop.run_for(seconds(3)); }
  void pod(const std::string& name, bool ready, const std::string& extra = "", const std::string& ips = "[{ip: 10.0.0.1}]") {
    api.put(kinds().pod,
            yaml(fmt::format(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}, labels: {{app: a}}}}\nspec: {{nodeName: n1, {2} containers: [{{name: c, "
                "ports: [{{name: http, "
                "containerPort: 8080}}]}}]}}\nstatus: {{phase: Running, podIPs: {3}, conditions: [{{type: Ready, status: '{1}'}}]}}\n",
                name, ready ? "True" : "False", extra, ips)));
  }
  void terminate(const std::string& name) {
    json::Value document = api.get(kinds().pod, name);
    json::set(document, {"metadata", "deletionTimestamp"}, "2026-01-05T10:00:00Z");
    api.put(kinds().pod, document);
  }
  json::Value service(const std::string& spec, const std::string& meta = "") {
    return api.put(kinds().service,
                   yaml(fmt::format("apiVersion: v1\nkind: Service\nmetadata: {{name: s, {}}}\nspec: {{{}}}\n", meta, spec)));
  }
  json::Value slice() const {
    const auto all = api.all(kinds().endpoint_slice);
    return all.size() == 1 ? all[0] : json::Value();
  }
  json::Value endpoint(const std::string& pod) const {
    for (const json::Value& one : api.all(kinds().endpoint_slice))
      for (const json::Value& found : json::get_array(one, {"endpoints"}))
        if (json::get_string(found, {"targetRef", "name"}) == pod) return found;
    return {};
  }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

constexpr const char* kPlain = "clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {app: a}, ports: [{port: 80, targetPort: http}]";

TEST_F(EndpointsTest, ReadyAndUnreadyPodsStandApart) {
  pod("up", true);
  pod("down", false, "", "[{ip: 10.0.0.2}]");
  pod("no-address", true, "", "[]");
  service(kPlain, "labels: {team: blue}");
  settle();
  const json::Value endpoints = api.get(kinds().endpoints, "s");
  ASSERT_EQ(json::get_array(endpoints, {"subsets"}).size(), 1u);
  const json::Value& subset = endpoints.at("subsets").at(0);
  ASSERT_EQ(json::get_array(subset, {"addresses"}).size(), 1u);
  EXPECT_EQ(json::get_string(subset.at("addresses").at(0), {"ip"}), "10.0.0.1");
  EXPECT_EQ(json::get_string(subset.at("addresses").at(0), {"targetRef", "name"}), "up");
  EXPECT_EQ(json::get_string(subset.at("notReadyAddresses").at(0), {"ip"}), "10.0.0.2");
  EXPECT_EQ(json::get_int(subset.at("ports").at(0), {"port"}), 8080) << "a named port is the container's";
  EXPECT_EQ(json::get_string(endpoints, {"metadata", "labels", "team"}), "blue");
  const json::Value made = slice();
  EXPECT_EQ(json::get_string(made, {"metadata", "labels", "team"}), "blue");
  EXPECT_EQ(json::get_string(made, {"metadata", "labels", endpoints::kManagedBy}), "endpointslice-controller.k8s.io");
  EXPECT_EQ(json::get_string(made, {"addressType"}), "IPv4");
  EXPECT_TRUE(json::get_bool(endpoint("up"), {"conditions", "ready"}));
  EXPECT_FALSE(json::get_bool(endpoint("down"), {"conditions", "serving"}, true));
  EXPECT_EQ(json::get_string(endpoint("up"), {"zone"}), "east");
  EXPECT_EQ(json::get_string(endpoint("up"), {"nodeName"}), "n1");
}

TEST_F(EndpointsTest, PortsThatDifferFromPodToPodAreNoProduct) {
  for (int i = 0; i < 100; ++i)
    api.put(kinds().pod,
            yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: p{0}, labels: {{app: a}}}}\nspec: {{nodeName: n1, containers: "
                             "[{{name: c, ports: [{{name: http, containerPort: {1}}}]}}]}}\nstatus: {{phase: Running, podIPs: [{{ip: "
                             "10.0.0.{0}}}], conditions: [{{type: Ready, status: 'True'}}]}}\n",
                             i, 1000 + i)));
  // As long as thousands of ports would be.
  service(fmt::format("clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {{app: a}}, ports: [{{name: {}, port: 80, targetPort: http}}]",
                      std::string(100'000, 'n')));
  settle();
  const auto slices = api.all(kinds().endpoint_slice).size();
  EXPECT_GE(slices, 60U);
  EXPECT_LE(slices, 84U);
  EXPECT_TRUE(std::ranges::any_of(api.events, [](const std::string& event) { return event.contains("pods are left out"); }));
}

TEST_F(EndpointsTest, ATerminatingPodServesButIsNotReady) {
  pod("p", true);
  service(kPlain);
  settle();
  terminate("p");
  settle();
  EXPECT_TRUE(json::get_array(api.get(kinds().endpoints, "s"), {"subsets"}).empty());
  const json::Value found = endpoint("p");
  EXPECT_FALSE(json::get_bool(found, {"conditions", "ready"}, true));
  EXPECT_TRUE(json::get_bool(found, {"conditions", "serving"}));
  EXPECT_TRUE(json::get_bool(found, {"conditions", "terminating"}));
}

TEST_F(EndpointsTest, PublishNotReadyAddressesPublishesAll) {
  pod("unready", false);
  pod("leaving", true, "", "[{ip: 10.0.0.2}]");
  terminate("leaving");
  service(std::string(kPlain) + ", publishNotReadyAddresses: true");
  settle();
  const json::Value endpoints = api.get(kinds().endpoints, "s");
  EXPECT_EQ(json::get_array(endpoints.at("subsets").at(0), {"addresses"}).size(), 2u);
  EXPECT_TRUE(json::get_bool(endpoint("unready"), {"conditions", "ready"}));
  EXPECT_FALSE(json::get_bool(endpoint("unready"), {"conditions", "serving"}, true)) << "serving is what the pod itself says";
  EXPECT_TRUE(json::get_bool(endpoint("leaving"), {"conditions", "ready"}));
}

TEST_F(EndpointsTest, AHeadlessServiceGivesHostnamesAndNeedsNoPorts) {
  pod("db-0", true, "hostname: db-0, subdomain: s,");
  service("clusterIP: None, ipFamilies: [IPv4], selector: {app: a}");
  settle();
  const json::Value endpoints = api.get(kinds().endpoints, "s");
  EXPECT_NE(json::find(endpoints, {"metadata", "labels", endpoints::kHeadless}), nullptr);
  EXPECT_EQ(json::get_string(endpoints.at("subsets").at(0).at("addresses").at(0), {"hostname"}), "db-0");
  EXPECT_EQ(json::find(endpoints.at("subsets").at(0), "ports"), nullptr);
  EXPECT_EQ(json::get_string(endpoint("db-0"), {"hostname"}), "db-0");
  EXPECT_NE(json::find(slice(), {"metadata", "labels", endpoints::kHeadless}), nullptr);
}

TEST_F(EndpointsTest, APodWithoutTheNamedPortIsNoEndpoint) {
  pod("p", true);
  service("clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {app: a}, ports: [{port: 80, targetPort: metrics}]");
  settle();
  EXPECT_TRUE(json::get_array(api.get(kinds().endpoints, "s"), {"subsets"}).empty());
}

TEST_F(EndpointsTest, WithoutPodsOneEmptySliceStays) {
  service(kPlain);
  settle();
  ASSERT_EQ(api.all(kinds().endpoint_slice).size(), 1u);
  EXPECT_TRUE(json::get_array(slice(), {"endpoints"}).empty());
  pod("p", true);
  settle();
  ASSERT_EQ(api.all(kinds().endpoint_slice).size(), 1u);
  EXPECT_FALSE(endpoint("p").is_null());
  api.erase(kinds().pod, "default", "p");
  settle();
  ASSERT_EQ(api.all(kinds().endpoint_slice).size(), 1u);
}

TEST_F(EndpointsTest, AServiceWhosePortsChangeKeepsItsSlices) {
  constexpr const char* kSame = "uid: one";
  pod("p", true);
  service(kPlain, kSame);
  settle();
  const std::string name(json::get_string(slice(), {"metadata", "name"}));
  for (const int port : {9090, 9091}) {
    service(fmt::format("clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {{app: a}}, ports: [{{port: 80, targetPort: {}}}]", port),
            kSame);
    settle();
    EXPECT_EQ(json::get_string(slice(), {"metadata", "name"}), name) << "whoever watches has endpoints throughout";
    EXPECT_EQ(json::get_int(json::get_array(slice(), {"ports"})[0], {"port"}), port);
    EXPECT_EQ(json::get_string(endpoint("p"), {"targetRef", "name"}), "p");
  }
  service("clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {app: nobody}, ports: [{port: 80}]", kSame);
  settle();
  EXPECT_EQ(json::get_array(slice(), {"ports"}).size(), 0u);
  service(kPlain, kSame);
  settle();
  EXPECT_EQ(json::get_string(slice(), {"metadata", "name"}), name);
  EXPECT_FALSE(endpoint("p").is_null());
}

TEST_F(EndpointsTest, SlicesOfAFormerServiceGoWhateverTheyHold) {
  pod("p", true);
  const std::string first(json::get_string(service(kPlain), {"metadata", "uid"}));
  settle();
  json::Value orphan = slice();
  const std::string name(json::get_string(orphan, {"metadata", "name"}));
  ASSERT_EQ(json::get_string(orphan.at("metadata").at("ownerReferences").at(0), {"uid"}), first);
  api.erase(kinds().service, "default", "s");
  json::set(orphan, {"metadata", "ownerReferences"}, json::Array{});  // What --cascade=orphan leaves.
  api.put(kinds().endpoint_slice, orphan);
  settle();
  EXPECT_EQ(json::get_string(slice(), {"metadata", "name"}), name) << "without a Service nobody looks at it";
  const std::string second(json::get_string(service(kPlain), {"metadata", "uid"}));
  settle();
  ASSERT_FALSE(slice().is_null());
  EXPECT_EQ(json::get_string(slice().at("metadata").at("ownerReferences").at(0), {"uid"}), second) << "it goes with its own Service";
  EXPECT_FALSE(endpoint("p").is_null());
}

TEST_F(EndpointsTest, SlicesHoldAHundredAndChangeLittle) {
  for (int i = 0; i < 250; ++i) pod(fmt::format("p{:03}", i), true, "", fmt::format("[{{ip: 10.0.1.{}}}]", i));
  service(kPlain);
  settle();
  const auto sizes = [&] {
    std::multiset<std::size_t> all;
    for (const json::Value& one : api.all(kinds().endpoint_slice)) all.insert(json::get_array(one, {"endpoints"}).size());
    return all;
  };
  EXPECT_EQ(sizes(), (std::multiset<std::size_t>{50, 100, 100}));
  settle();
  const int before = api.writes;
  api.erase(kinds().pod, "default", "p000");
  settle();
  EXPECT_EQ(api.writes - before, 2) << "the Endpoints and the one slice that had it";
  pod("new", true, "", "[{ip: 10.0.2.1}]");
  settle();
  EXPECT_EQ(api.all(kinds().endpoint_slice).size(), 3u);
  EXPECT_EQ(api.writes - before, 4) << "it goes where there is room";
}

TEST_F(EndpointsTest, EndpointsHoldAThousandAndSayThatMoreWereCut) {
  for (int i = 0; i < 1005; ++i) pod(fmt::format("p{}", i), i >= 10, "", fmt::format("[{{ip: 10.1.{}.{}}}]", i / 250, i % 250));
  service(kPlain);
  settle();
  const json::Value endpoints = api.get(kinds().endpoints, "s");
  const json::Value& subset = endpoints.at("subsets").at(0);
  EXPECT_EQ(json::get_array(subset, {"addresses"}).size(), 995u) << "ready ones first";
  EXPECT_EQ(json::get_array(subset, {"notReadyAddresses"}).size(), 5u);
  EXPECT_EQ(json::get_string(endpoints, {"metadata", "annotations", "endpoints.kubernetes.io/over-capacity"}), "truncated");
}

TEST_F(EndpointsTest, ADualStackServiceHasSlicesOfBothFamilies) {
  pod("p", true, "", "[{ip: 10.0.0.1}, {ip: 'fd00::1'}]");
  service("clusterIP: 10.96.0.7, ipFamilies: [IPv4, IPv6], selector: {app: a}, ports: [{port: 80}]");
  settle();
  std::map<std::string, std::string> addresses;
  for (const json::Value& one : api.all(kinds().endpoint_slice))
    addresses[std::string(json::get_string(one, {"addressType"}))] = json::serialize(one.at("endpoints").at(0).at("addresses"));
  EXPECT_EQ(addresses, (std::map<std::string, std::string>{{"IPv4", R"(["10.0.0.1"])"}, {"IPv6", R"(["fd00::1"])"}}));
}

TEST_F(EndpointsTest, TrafficDistributionHintsAtTheZone) {
  pod("p", true);
  service(std::string(kPlain) + ", trafficDistribution: PreferClose");
  settle();
  EXPECT_EQ(json::get_string(endpoint("p").at("hints").at("forZones").at(0), {"name"}), "east");
}

TEST_F(EndpointsTest, EndpointsKeptByHandGoWithTheirServiceToo) {
  service("clusterIP: 10.96.0.7, ports: [{port: 80}]");
  api.put(kinds().endpoints, yaml("{apiVersion: v1, kind: Endpoints, metadata: {name: s}}"));
  settle();
  api.erase(kinds().service, "default", "s");
  settle();
  EXPECT_TRUE(api.get(kinds().endpoints, "s").is_null());
}

TEST_F(EndpointsTest, EndpointsGoWithTheirServiceAndStayWithoutOne) {
  service(kPlain);
  api.put(kinds().endpoints, yaml("{apiVersion: v1, kind: Endpoints, metadata: {name: byhand}}"));
  settle();
  api.erase(kinds().service, "default", "s");
  settle();
  EXPECT_TRUE(api.get(kinds().endpoints, "s").is_null());
  EXPECT_FALSE(api.get(kinds().endpoints, "byhand").is_null());
}

constexpr const char* kByHand =
    "apiVersion: v1\nkind: Endpoints\nmetadata: {name: s, labels: {mine: x}, annotations: {note: kept, "
    "kubectl.kubernetes.io/last-applied-configuration: '{}'}}\n"
    "subsets: [{addresses: [{ip: 192.0.2.1}, {ip: '2001:db8::1'}], notReadyAddresses: [{ip: 192.0.2.2}], ports: [{port: 9376, protocol: "
    "TCP}]}]\n";

TEST_F(EndpointsTest, EndpointsKeptByHandAreMirrored) {
  service("clusterIP: 10.96.0.7, ports: [{port: 80}]");
  const json::Value source = api.put(kinds().endpoints, yaml(kByHand));
  settle();
  const auto all = api.all(kinds().endpoint_slice);
  ASSERT_EQ(all.size(), 2u) << "one a family";
  for (const json::Value& one : all) {
    EXPECT_EQ(json::get_string(one, {"metadata", "labels", endpoints::kManagedBy}), "endpointslicemirroring-controller.k8s.io");
    EXPECT_EQ(json::get_string(one, {"metadata", "labels", "mine"}), "x");
    EXPECT_EQ(json::get_string(one, {"metadata", "annotations", "note"}), "kept");
    EXPECT_EQ(json::get_object(one, {"metadata", "annotations"}).size(), 1u) << "kubectl's own record is not copied";
    EXPECT_EQ(owner_references(one)[0].uid, json::get_string(source, {"metadata", "uid"}));
    if (json::get_string(one, {"addressType"}) != "IPv4") continue;
    const json::Array& made = json::get_array(one, {"endpoints"});
    ASSERT_EQ(made.size(), 2u);
    EXPECT_EQ(std::count_if(made.begin(), made.end(), [](const json::Value& e) { return json::get_bool(e, {"conditions", "ready"}); }), 1);
  }
}

TEST_F(EndpointsTest, MirroringEndsWithASelectorALabelOrTheEndpoints) {
  service("clusterIP: 10.96.0.7, ports: [{port: 80}]");
  json::Value source = api.put(kinds().endpoints, yaml(kByHand));
  settle();
  ASSERT_EQ(api.all(kinds().endpoint_slice).size(), 2u);
  json::set(source, {"metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"}, "true");
  api.put(kinds().endpoints, source);
  settle();
  EXPECT_TRUE(api.all(kinds().endpoint_slice).empty());
  api.put(kinds().endpoints, yaml(kByHand));
  settle();
  ASSERT_EQ(api.all(kinds().endpoint_slice).size(), 2u);
  service(kPlain);
  settle();
  for (const json::Value& one : api.all(kinds().endpoint_slice))
    EXPECT_EQ(json::get_string(one, {"metadata", "labels", endpoints::kManagedBy}), "endpointslice-controller.k8s.io");
}

TEST_F(EndpointsTest, AMirrorHoldsAThousandOfASubsetAndSaysSo) {
  service("clusterIP: 10.96.0.7, ports: [{port: 80}]");
  json::Value source = yaml("{apiVersion: v1, kind: Endpoints, metadata: {name: s}}");
  json::Array addresses;
  for (int i = 0; i < 1003; ++i) addresses.push_back(json::Object{{"ip", fmt::format("10.1.{}.{}", i / 250, i % 250)}});
  json::set(source, {"subsets"}, json::Array{json::Object{{"addresses", std::move(addresses)}}});
  api.put(kinds().endpoints, source);
  settle();
  EXPECT_EQ(json::get_array(slice(), {"endpoints"}).size(), 1000u);
  EXPECT_TRUE(
      api.saw("TooManyAddressesToMirror: A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. 3 addresses were "
              "skipped"));
}

TEST_F(EndpointsTest, PortsWithTheSameAddressesShareASubset) {
  const auto put = [&](const char* name, int port, const char* ip) {
    api.put(kinds().pod,
            yaml(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}, labels: {{app: a}}}}\nspec: {{nodeName: n1, containers: "
                             "[{{name: c, ports: [{{name: http, containerPort: {}}}]}}]}}\nstatus: {{phase: Running, podIPs: [{{ip: "
                             "{}}}], conditions: [{{type: Ready, status: 'True'}}]}}\n",
                             name, port, ip)));
  };
  put("p", 8080, "10.0.0.1");
  put("q", 9090, "10.0.0.2");
  service(
      "clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {app: a}, ports: [{name: web, port: 80, targetPort: http}, {name: plain, port: "
      "81}]");
  settle();
  std::map<std::int64_t, std::size_t> addresses;
  const json::Value endpoints = api.get(kinds().endpoints, "s");
  for (const json::Value& subset : json::get_array(endpoints, {"subsets"})) {
    ASSERT_EQ(json::get_array(subset, {"ports"}).size(), 1u);
    addresses[json::get_int(subset.at("ports").at(0), {"port"})] = json::get_array(subset, {"addresses"}).size();
  }
  EXPECT_EQ(addresses, (std::map<std::int64_t, std::size_t>{{81, 2}, {8080, 1}, {9090, 1}}));
}

TEST_F(EndpointsTest, TheLastChangeIsNotedOnWhatIsWritten) {
  constexpr const char* kNote = "endpoints.kubernetes.io/last-change-trigger-time";
  const auto notes = [&] {
    return std::pair(std::string(json::get_string(api.get(kinds().endpoints, "s"), {"metadata", "annotations", kNote})),
                     std::string(json::get_string(slice(), {"metadata", "annotations", kNote})));
  };
  service(kPlain);
  settle();
  EXPECT_EQ(notes(), std::pair(std::string("2026-01-05T10:00:00Z"), std::string("2026-01-05T10:00:00Z"))) << "a new Service: its creation";
  pod("up", true);
  json::Value moved = api.get(kinds().pod, "up");
  json::set(moved, {"status", "conditions"},
            json::Array{json::Object{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", "2026-01-05T10:00:02Z"}}});
  api.put(kinds().pod, moved);
  settle();
  EXPECT_EQ(notes(), std::pair(std::string("2026-01-05T10:00:02Z"), std::string("2026-01-05T10:00:02Z")));
  api.erase(kinds().pod, "default", "up");
  settle();
  EXPECT_EQ(notes(), std::pair(std::string(), std::string())) << "a pod that goes moves no readiness";
}

/// Services from before ipFamilies have the family of their address.
TEST_F(EndpointsTest, AServiceHasTheFamiliesThatItNamesElseThatOfItsAddress) {
  pod("p", true, "", "[{ip: 10.0.0.1}, {ip: 'fd00::1'}]");
  const auto families = [&] {
    settle();
    std::set<std::string> out;
    for (const json::Value& one : api.all(kinds().endpoint_slice)) out.emplace(json::get_string(one, {"addressType"}));
    return out;
  };
  using Families = std::set<std::string>;
  service("clusterIP: 10.96.0.7, selector: {app: a}, ports: [{port: 80}]");
  EXPECT_EQ(families(), (Families{"IPv4"}));
  service("clusterIP: 'fd00::7', selector: {app: a}, ports: [{port: 80}]");
  EXPECT_EQ(families(), (Families{"IPv6"})) << "and those of the other go";
  service("clusterIP: None, ipFamilies: [IPv6], selector: {app: a}, ports: [{port: 80}]");
  EXPECT_EQ(families(), (Families{"IPv6"}));
  service("clusterIP: None, selector: {app: a}, ports: [{port: 80}]");
  EXPECT_EQ(families(), (Families{"IPv4"}));
}

}  // namespace
}  // namespace berth::controllers
