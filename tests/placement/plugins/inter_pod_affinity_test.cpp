// InterPodAffinity: affinity and anti-affinity between pods over topology domains.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

PluginWorld zones(Era era) {
  PluginWorld world(era);
  for (const char* node : {"a1", "a2", "b1"})
    world.add(fmt::format("{{kind: Node, metadata: {{name: {}, labels: {{zone: {}}}}}}}", node, node[0]));
  return world;
}

std::string term(const std::string& key, const std::string& app, const std::string& rest = "") {
  return "{topologyKey: " + key + ", labelSelector: {matchLabels: {app: " + app + "}}" + rest + "}";
}
std::string required(const char* kind, const std::string& term) {
  return fmt::format("{{affinity: {{{}: {{requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}}}}", kind, term);
}
std::string preferred(const char* kind, int weight, const std::string& term) {
  return fmt::format("{{affinity: {{{}: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: {}, podAffinityTerm: {}}}]}}}}}}",
                     kind, weight, term);
}
/// 1.20 puts one more reason in front.
std::string refused(Era era, const char* code, const std::string& reason) {
  return fmt::format("InterPodAffinity {}: {}node(s) didn't {}", code,
                     era == Era::k120 ? "node(s) didn't match pod affinity/anti-affinity, " : "", reason);
}

TEST(InterPodAffinity, RequiredAffinityNeedsAFriendInTheDomain) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    const auto pod = world.pod(required("podAffinity", term("zone", "db")), "{app: web}");
    const auto nobody = refused(era, "UnschedulableAndUnresolvable", "match pod affinity rules");
    EXPECT_EQ(world.verdict("a1", pod), nobody);
    world.run("db", "a2", "{}", "{app: db}");
    EXPECT_EQ(world.verdict("a1", pod), "fits");
    EXPECT_EQ(world.verdict("b1", pod), nobody);
    EXPECT_EQ(world.verdict("a1", world.pod(required("podAffinity", term("kubernetes.io/hostname", "db")), "{app: web}")), nobody);
    EXPECT_EQ(world.verdict("a1", world.pod(required("podAffinity", term("rack", "db")), "{app: web}")), nobody) << "no node has the key";
  }
}

TEST(InterPodAffinity, TheFirstOfAGroupNeedsNobody) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    const auto pod = world.pod(required("podAffinity", term("zone", "web")), "{app: web}");
    EXPECT_EQ(world.verdict("b1", pod), "fits");
    world.run("first", "a1", "{}", "{app: web}");
    EXPECT_EQ(world.verdict("b1", pod), refused(era, "UnschedulableAndUnresolvable", "match pod affinity rules"));
  }
}

TEST(InterPodAffinity, AntiAffinityIsHeldBothWays) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.run("web", "a1", required("podAntiAffinity", term("zone", "db")), "{app: web}");
    EXPECT_EQ(world.verdict("a2", world.pod("{}", "{app: db}")),
              refused(era, "Unschedulable", "satisfy existing pods anti-affinity rules"));
    EXPECT_EQ(world.verdict("b1", world.pod("{}", "{app: db}")), "fits");
    EXPECT_EQ(world.verdict("a2", world.pod(required("podAntiAffinity", term("zone", "web")), "{app: x}")),
              refused(era, "Unschedulable", "match pod anti-affinity rules"));
    EXPECT_EQ(world.verdict("a2", world.pod(required("podAntiAffinity", term("kubernetes.io/hostname", "web")), "{app: x}")), "fits");
  }
}

TEST(InterPodAffinity, NamespacesAreNamedOrSelected) {
  for (const Era era : {Era::k120, Era::k136}) {
    auto world = zones(era);
    world.add("{kind: Namespace, metadata: {name: prod-db, labels: {env: prod}}}");
    world.add("{kind: Pod, metadata: {name: db, namespace: prod-db, labels: {app: db}}, spec: {nodeName: a1, containers: []}}");
    const auto away_from = [&](const std::string& rest) {
      return world.verdict("a1", world.pod(required("podAntiAffinity", term("zone", "db", rest))));
    };
    const auto no = refused(era, "Unschedulable", "match pod anti-affinity rules");
    EXPECT_EQ(away_from(""), "fits") << "its own namespace";
    EXPECT_EQ(away_from(", namespaces: [prod-db]"), no);
    // 1.20 does not know the field.
    EXPECT_EQ(away_from(", namespaceSelector: {matchLabels: {env: prod}}"), era == Era::k120 ? "fits" : no);
    EXPECT_EQ(away_from(", namespaceSelector: {}"), era == Era::k120 ? "fits" : no) << "an empty selector means all";
    EXPECT_EQ(away_from(", namespaceSelector: {matchLabels: {env: test}}"), "fits");
  }
}

TEST(InterPodAffinity, PreferencesOfBothSidesAreScored) {
  for (const Era era : {Era::k120, Era::k136}) {
    const std::int64_t weight = era == Era::k120 ? 1 : 2;
    auto world = zones(era);
    world.run("db", "a1", "{}", "{app: db}");
    const auto near = world.pod(preferred("podAffinity", 10, term("zone", "db")));
    EXPECT_EQ(world.scores("InterPodAffinity", near), (Scores{{"a1", 100 * weight}, {"a2", 100 * weight}, {"b1", 0}}));
    const auto far = world.pod(preferred("podAntiAffinity", 10, term("zone", "db")));
    EXPECT_EQ(world.scores("InterPodAffinity", far), (Scores{{"a1", 0}, {"a2", 0}, {"b1", 100 * weight}}));
    // Those that are there have wishes too; a required affinity of theirs counts with hardPodAffinityWeight.
    world.run("fan", "b1", required("podAffinity", term("zone", "web")), "{app: web}");
    const auto web = world.pod("{}", "{app: web}");
    EXPECT_EQ(world.scores("InterPodAffinity", web), (Scores{{"a1", 0}, {"a2", 0}, {"b1", 100 * weight}}));
    world.profile.args.inter_pod_affinity.hard_pod_affinity_weight = 0;
    const auto none = world.scores("InterPodAffinity", web);
    EXPECT_TRUE(none.empty() || none.at("b1") == 0);
  }
}

TEST(InterPodAffinity, WishesOfOthersCanBeIgnored) {
  auto world = zones(Era::k136);
  world.run("fan", "b1", preferred("podAffinity", 5, term("zone", "web")), "{app: x}");
  EXPECT_EQ(world.scores("InterPodAffinity", world.pod("{}", "{app: web}")).at("b1"), 200);
  world.profile.args.inter_pod_affinity.ignore_preferred_terms_of_existing_pods = true;
  EXPECT_EQ(world.scores("InterPodAffinity", world.pod("{}", "{app: web}")), Scores());
}

TEST(InterPodAffinity, ATermThatCannotBeParsedRejectsThePodWhereverItStands) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: node}}");
  const std::string bad = "labelSelector: {matchExpressions: [{key: app, operator: Near}]}, topologyKey: zone";
  const auto pod =
      world.pod("{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + bad +
                "}]}, podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {" + bad + "}}]}}}");
  EXPECT_EQ(
      world.verdict("node", pod),
      "prefilter InterPodAffinity UnschedulableAndUnresolvable: parsing pod: [requiredAntiAffinityTerms: \"Near\" is not a valid label "
      "selector operator, preferredAffinityTerms: \"Near\" is not a valid label selector operator]");
}

}  // namespace
}  // namespace berth::placement::testing
