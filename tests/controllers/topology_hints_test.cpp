// Hints by zones: whom they ask for, when there are none and why, that they stay where they can.
#include "controllers/topology_hints.h"

#include "controllers/services.h"
#include "tests/controllers/fake_api.h"
#include "tests/support/life.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

/// Endpoints with the zones of a text, one letter each, as "aab"; a capital letter's is not ready.
std::vector<json::Object> endpoints_in(std::string_view zones) {
  std::vector<json::Object> out;
  for (const char letter : zones) {
    const bool is_ready = std::islower(static_cast<unsigned char>(letter)) != 0;
    out.push_back({{"addresses", json::Array{json::Value(fmt::format("10.0.0.{}", 10 + out.size()))}},
                   {"conditions", json::Object{{"ready", is_ready}}},
                   {"zone", std::string(1, static_cast<char>(std::tolower(static_cast<unsigned char>(letter))))}});
  }
  return out;
}
std::string hints_of(const std::vector<json::Object>& endpoints) {
  std::string out;
  for (const json::Object& endpoint : endpoints) {
    const auto found = endpoint.find("hints");
    out += found == endpoint.end() ? "-" : std::string(json::get_string(found->value().at("forZones").at(0), {"name"}));
  }
  return out;
}
std::string add(std::vector<json::Object>& endpoints, const ZoneShares& shares, const std::map<std::string, std::string>& had = {}) {
  std::vector<json::Object*> pointers;
  for (json::Object& endpoint : endpoints) pointers.push_back(&endpoint);
  return add_topology_hints(std::move(pointers), had, shares);
}

TEST(TopologyHints, EachZoneHasItsOwnWhereThatIsItsShare) {
  auto endpoints = endpoints_in("aabbB");
  EXPECT_EQ(add(endpoints, {{"a", 0.5}, {"b", 0.5}}), "");
  EXPECT_EQ(hints_of(endpoints), "aabb-");
}

TEST(TopologyHints, AZoneWithTooManyGivesSomeAway) {
  auto endpoints = endpoints_in("aaaaab");
  EXPECT_EQ(add(endpoints, {{"a", 0.5}, {"b", 0.5}}), "");
  EXPECT_EQ(hints_of(endpoints), "bbaaab");
}

TEST(TopologyHints, AZoneWithoutEndpointsGetsSome) {
  auto endpoints = endpoints_in("aaa");
  EXPECT_EQ(add(endpoints, {{"a", 0.34}, {"b", 0.33}, {"c", 0.33}}), "");
  std::string hints = hints_of(endpoints);
  std::ranges::sort(hints);
  EXPECT_EQ(hints, "abc");
}

TEST(TopologyHints, WhyThereAreNone) {
  auto two = endpoints_in("ab"), three = endpoints_in("aab");
  EXPECT_EQ(add(two, {}), "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes");
  EXPECT_EQ(add(two, {{"a", 0.4}, {"b", 0.3}, {"c", 0.3}}), "Insufficient number of endpoints (2 endpoints, 3 zones)");
  EXPECT_EQ(add(three, {{"a", 0.5}, {"b", 0.5}}),
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold (3 endpoints, 2 zones)");
  EXPECT_EQ(hints_of(three), "---");
  auto nowhere = endpoints_in("aabb");
  nowhere[0].erase("zone");
  EXPECT_EQ(add(nowhere, {{"a", 0.5}, {"b", 0.5}}), "One or more endpoints do not have a zone specified");
}

TEST(TopologyHints, HintsStayWhileTheEndpointsDoAndNoZoneHasTooMany) {
  const std::map<std::string, std::string> had{{"10.0.0.10", "b"}, {"10.0.0.11", "a"}, {"10.0.0.12", "b"}, {"10.0.0.13", "a"}};
  auto endpoints = endpoints_in("aabb");
  EXPECT_EQ(add(endpoints, {{"a", 0.5}, {"b", 0.5}}, had), "");
  EXPECT_EQ(hints_of(endpoints), "baba");
  auto more = endpoints_in("aabbab");
  EXPECT_EQ(add(more, {{"a", 0.5}, {"b", 0.5}}, had), "");
  EXPECT_EQ(hints_of(more), "aabbab");
}

/// Whatever the zones: whoever is ready has a hint, a zone gives and gets no more than its share is off by, and none that could be evened
/// out by another whole endpoint is left.
TEST(TopologyHints, EndpointsAreSharedOutAsFarAsWholeOnesGo) {
  berth::testing::Dice dice(31);
  int hinted = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string zones = std::string("abcd").substr(0, 2 + static_cast<std::size_t>(dice.below(3)));
    std::vector<ZonePart> nodes;
    for (const char zone : zones) nodes.push_back({std::string(1, zone), 1000 * (1 + dice.below(4))});
    std::string said;
    for (int i = 2 + dice.below(14); i > 0; --i) said += static_cast<char>(dice.of(zones) - (dice.chance(10) ? 'a' - 'A' : 0));
    auto endpoints = endpoints_in(said);
    const ZoneShares shares = zone_shares(nodes);
    if (!add(endpoints, shares).empty()) continue;
    ++hinted;
    const std::string hints = hints_of(endpoints);
    const auto count = [](const std::string& text, char one) { return static_cast<double>(std::ranges::count(text, one)); };
    const double ready = static_cast<double>(said.size()) - count(hints, '-');
    double most_over = 0, most_under = 0;
    for (const char zone : zones) {
      const double share = shares.at(std::string(1, zone)) * ready, wanted = std::max(share, std::ceil(share / 1.2));
      const double had = count(said, zone), has = count(hints, zone);
      EXPECT_GE(has, std::min(had, wanted - 0.5)) << said << " " << hints << " " << zone;
      EXPECT_LE(has, std::max(had, wanted + 0.5)) << said << " " << hints << " " << zone;
      most_over = std::max(most_over, has - wanted);
      most_under = std::max(most_under, wanted - has);
    }
    EXPECT_TRUE(most_over < 0.5 || most_under < 0.5 || (most_over < 1 && most_under < 1)) << said << " " << hints;
    for (std::size_t i = 0; i < said.size(); ++i)
      EXPECT_EQ(hints[i] == '-', std::isupper(static_cast<unsigned char>(said[i])) != 0) << said;
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GE(hinted, 1000);
}

TEST(TopologyHints, NodesOfControlPlanesAndThoseThatAreNotReadyDoNotCount) {
  const auto node = [](const std::string& meta, const char* ready) {
    return yaml(fmt::format("{{metadata: {{{}}}, status: {{allocatable: {{cpu: '4'}}, conditions: [{{type: Ready, status: '{}'}}]}}}}",
                            meta, ready));
  };
  EXPECT_EQ(zone_part(node("labels: {topology.kubernetes.io/zone: a}", "True")), (ZonePart{"a", 4000}));
  EXPECT_FALSE(zone_part(node("labels: {topology.kubernetes.io/zone: a}", "False")));
  EXPECT_FALSE(zone_part(node("labels: {node-role.kubernetes.io/control-plane: ''}", "True")));
  EXPECT_TRUE(zone_shares({{"a", 4000}, {"", 4000}}).empty()) << "one has no zone";
  EXPECT_TRUE(zone_shares({{"a", 4000}}).empty()) << "one zone alone";
  EXPECT_EQ(zone_shares({{"a", 3000}, {"b", 1000}}), (ZoneShares{{"a", 0.75}, {"b", 0.25}}));
}

class TopologyHintsTest : public ::testing::Test {
 protected:
  TopologyHintsTest() {
    api.engine.add(make_endpoint_slice_controller());
    api.engine.start();
    for (const char* zone : {"east", "west"}) {
      node(zone, "4");
      pod(zone);
    }
  }
  void node(const std::string& zone, const std::string& cpu) {
    api.put(kinds().node,
            yaml(fmt::format("{{apiVersion: v1, kind: Node, metadata: {{name: {0}, labels: {{topology.kubernetes.io/zone: {0}}}}}, "
                             "status: {{allocatable: {{cpu: '{1}'}}, conditions: [{{type: Ready, status: 'True'}}]}}}}",
                             zone, cpu)));
  }
  void pod(const std::string& zone) {
    api.put(kinds().pod,
            yaml(fmt::format("{{apiVersion: v1, kind: Pod, metadata: {{name: {0}, labels: {{app: a}}}}, spec: {{nodeName: {0}, "
                             "containers: [{{name: c}}]}}, status: {{phase: Running, podIPs: [{{ip: 10.0.0.{1}}}], conditions: "
                             "[{{type: Ready, status: 'True'}}]}}}}",
                             zone, zone.size() + static_cast<std::size_t>(zone[0]))));
  }
  void service(const std::string& mode) {
    api.put(kinds().service,
            yaml(fmt::format("{{apiVersion: v1, kind: Service, metadata: {{name: s, annotations: {{service.kubernetes.io/topology-mode: "
                             "{}}}}}, spec: {{clusterIP: 10.96.0.7, ipFamilies: [IPv4], selector: {{app: a}}, ports: [{{port: 80}}]}}}}",
                             mode)));
  }
  void settle() { loop.run_for(seconds(3)); }
  [[nodiscard]] std::map<std::string, std::string> hints() const {
    std::map<std::string, std::string> out;
    for (const json::Value& slice : api.all(kinds().endpoint_slice))
      for (const json::Value& endpoint : json::get_array(slice, {"endpoints"}))
        for (const json::Value& zone : json::get_array(endpoint, {"hints", "forZones"}))
          out[std::string(json::get_string(endpoint, {"targetRef", "name"}))] = json::get_string(zone, {"name"});
    return out;
  }

  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
};

TEST_F(TopologyHintsTest, AServiceThatAsksForThemHasThemUntilItAsksNoMore) {
  service("Auto");
  settle();
  EXPECT_EQ(hints(), (std::map<std::string, std::string>{{"east", "east"}, {"west", "west"}}));
  service("Disabled");
  settle();
  EXPECT_TRUE(hints().empty());
}

TEST_F(TopologyHintsTest, ANodeWithoutAZoneTakesThemAwayAndItsGoingBringsThemBack) {
  service("auto");
  settle();
  ASSERT_EQ(hints().size(), 2U);
  api.put(kinds().node,
          yaml("{apiVersion: v1, kind: Node, metadata: {name: nowhere}, status: {allocatable: {cpu: '4'}, conditions: [{type: Ready, "
               "status: 'True'}]}}"));
  settle();
  EXPECT_TRUE(hints().empty());
  api.erase(kinds().node, "", "nowhere");
  settle();
  EXPECT_EQ(hints().size(), 2U);
}

}  // namespace
}  // namespace berth::controllers
