// NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes where the node declares it.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

TEST(NodeDeclaredFeatures, APodGoesWhereWhatItNeedsIsDeclared) {
  PluginWorld world(Era::k136);
  world.add("{kind: Node, metadata: {name: plain}}");
  world.add(
      "{kind: Node, metadata: {name: able}, status: {allocatable: {cpu: '4', memory: 4Gi, pods: '9'}, declaredFeatures: "
      "[RestartAllContainersOnContainerExits, UserNamespacesHostNetworkSupport]}}");
  const std::string refused = "NodeDeclaredFeatures UnschedulableAndUnresolvable: node(s) didn't match Pod's required features";
  for (const char* spec :
       {"{containers: [{name: c, restartPolicyRules: [{action: RestartAllContainers}]}]}", "{hostNetwork: true, hostUsers: false}"}) {
    EXPECT_EQ(world.verdict("plain", world.pod(spec)), refused) << spec;
    EXPECT_EQ(world.verdict("able", world.pod(spec)), "fits") << spec;
  }
  EXPECT_EQ(world.verdict("plain", world.pod("{hostNetwork: true}")), "fits");
  EXPECT_EQ(world.verdict("plain", world.pod("{hostUsers: false}")), "fits");
}

}  // namespace
}  // namespace berth::placement::testing
