// The framework: names, points, and the order of filters.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(Framework, UnknownNamesAndWrongPointsAreErrors) {
  Profile profile = default_profile(Era::k136);
  profile.filter.push_back({"NodeColour", 0});
  EXPECT_EQ(Framework::create(profile).error().message, "plugin \"NodeColour\" does not exist");
  profile.filter.back().name = "ImageLocality";
  EXPECT_EQ(Framework::create(profile).error().message, "plugin \"ImageLocality\" does not extend Filter plugin");
}

TEST(Framework, TheFirstRejectionCountsUnlessAllAreAskedFor) {
  PluginWorld world(Era::k120);
  world.add("{kind: Node, metadata: {name: node}, spec: {unschedulable: true, taints: [{key: t, effect: NoSchedule}]}}");
  const auto pod = world.pod("{nodeSelector: {disk: ssd}}");
  EXPECT_EQ(world.verdict("node", pod), "NodeUnschedulable UnschedulableAndUnresolvable: node(s) were unschedulable");
  world.profile.always_check_all_filters = true;
  const auto all = world.evaluate(pod).rejected.at(0).all;
  std::vector<std::string_view> plugins;
  for (const auto& status : all) plugins.push_back(status.plugin);
  EXPECT_EQ(plugins, (std::vector<std::string_view>{"NodeUnschedulable", "TaintToleration", "NodeAffinity"}));
}

TEST(Framework, WithAllFiltersAskedANominatedPodCountsInEachOfThem) {
  PluginWorld world(Era::k120);
  world.profile.always_check_all_filters = true;
  world.add("{kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '1', memory: 1Gi, pods: '5'}}}");
  const std::string spec =
      "{priority: 5, containers: [{name: c, resources: {requests: {cpu: 600m}}, ports: [{hostPort: 80, containerPort: 80}]}]}";
  world.cluster.nominate(world.pod(spec, "{}", "nominated"), "node");
  const auto evaluation = world.evaluate(world.pod(spec));
  ASSERT_EQ(evaluation.rejected.size(), 1u);
  std::vector<std::string_view> plugins;
  for (const auto& one : evaluation.rejected[0].all) plugins.push_back(one.plugin);
  std::ranges::sort(plugins);
  EXPECT_EQ(plugins, (std::vector<std::string_view>{"NodePorts", "NodeResourcesFit"}));
}

/// An error is told alone, in the words of who ran the plugin, whatever else was found, and whether all are asked or the first that
/// refuses.
TEST(Framework, AnErrorIsToldAloneAndByItsPlugin) {
  for (const bool all : {false, true}) {
    for (const Era era : {Era::k120, Era::k136}) {
      PluginWorld world(era);
      world.profile.always_check_all_filters = all;
      world.profile.pre_filter = {};
      world.profile.filter = {{"NodeUnschedulable", 0}, {"NodeVolumeLimits", 0}, {"NodeName", 0}};
      world.add("{kind: Node, metadata: {name: open}}").add("{kind: Node, metadata: {name: shut}, spec: {unschedulable: true}}");
      const auto evaluation = world.evaluate(world.pod("{volumes: [{name: v, persistentVolumeClaim: {claimName: ''}}]}"));
      const std::string words = era == Era::k120
                                    ? "running \"NodeVolumeLimits\" filter plugin for pod \"pod\": PersistentVolumeClaim had no name"
                                    : "running \"NodeVolumeLimits\" filter plugin: PersistentVolumeClaim had no name";
      EXPECT_EQ(evaluation.errors, std::vector<std::string>{words}) << all;
    }
  }
}

}  // namespace
}  // namespace berth::placement::testing
