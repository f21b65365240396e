// ImageLocality: prefers nodes that have the pod's images, weighed by how widely they are spread.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(ImageLocality, WeighsSizeBySpread) {
  PluginWorld world(Era::k136);
  const std::string image =
      "status: {allocatable: {cpu: '4', memory: 4Gi, pods: '9'}, images: [{names: ['app:v1'], sizeBytes: 524288000}]}";
  world.add("{kind: Node, metadata: {name: has}, " + image + "}").add("{kind: Node, metadata: {name: lacks}}");
  const auto pod = world.pod("{containers: [{name: c, image: 'app:v1'}]}");
  // 500 MiB on half of the nodes count as 250; the scale runs from 23 to 1000 MiB.
  EXPECT_EQ(world.scores("ImageLocality", pod), (Scores{{"has", (250 - 23) * 100 / (1000 - 23)}, {"lacks", 0}}));
  world.add("{kind: Node, metadata: {name: lacks}, " + image + "}");
  EXPECT_EQ(world.scores("ImageLocality", pod),
            (Scores{{"has", (500 - 23) * 100 / (1000 - 23)}, {"lacks", (500 - 23) * 100 / (1000 - 23)}}));
  EXPECT_EQ(world.scores("ImageLocality", world.pod("{containers: [{name: c, image: app}]}"))["has"], 0) << "latest, not v1";
}

TEST(ImageLocality, InitContainersCountIn136) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add(
        "{kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '4', memory: 4Gi, pods: '9'}, images: [{names: ['tool:latest'], "
        "sizeBytes: 1048576000}]}}");
    const auto scores =
        world.scores("ImageLocality", world.pod("{containers: [{name: c, image: app}], initContainers: [{name: i, image: tool}]}"));
    EXPECT_EQ(scores.at("node") > 0, era == Era::k136);
  }
}

TEST(ImageLocality, ANodeThatListsAnImageTwiceCountsOnce) {
  PluginWorld world(Era::k136);
  world.add(
      "{kind: Node, metadata: {name: has}, status: {allocatable: {cpu: '4', memory: 4Gi, pods: '9'}, images: [{names: ['app:v1', "
      "'app:v1'], "
      "sizeBytes: 524288000}, {names: ['app:v1'], sizeBytes: 9}]}}");
  world.add("{kind: Node, metadata: {name: lacks}}");
  EXPECT_EQ(world.scores("ImageLocality", world.pod("{containers: [{name: c, image: 'app:v1'}]}")).at("has"),
            (250 - 23) * 100 / (1000 - 23));
}

TEST(ImageLocality, ImageVolumesAddSizeButNoContainer) {
  PluginWorld world(Era::k136);
  world.add(
      "{kind: Node, metadata: {name: node}, status: {allocatable: {cpu: '4', memory: 4Gi, pods: '9'}, images: [{names: ['model:latest'], "
      "sizeBytes: 524288000}]}}");
  const auto pod = world.pod("{containers: [{name: c, image: app}], volumes: [{name: v, image: {reference: model}}]}");
  EXPECT_EQ(world.scores("ImageLocality", pod).at("node"), (500 - 23) * 100 / (1000 - 23));
}

}  // namespace
}  // namespace berth::placement::testing
