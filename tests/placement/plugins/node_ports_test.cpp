// NodePorts: host ports must be free on the node.
#include <gtest/gtest.h>

#include "tests/placement/plugins/plugin_world.h"

namespace berth::placement::testing {
namespace {

std::string port(const std::string& fields) { return "{containers: [{name: c, ports: [{" + fields + "}]}]}"; }

TEST(NodePorts, ProtocolPortAndAddressTellThemApart) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}}").run("other", "node", port("hostPort: 80, hostIP: 10.0.0.1, protocol: TCP"));
    const std::string refused = "NodePorts Unschedulable: node(s) didn't have free ports for the requested pod ports";
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 80, hostIP: 10.0.0.1"))), refused) << "TCP is the default";
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 80"))), refused) << "every address";
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 80, hostIP: 0.0.0.0"))), refused);
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 80, hostIP: '::'"))), "fits") << "not an address the scheduler takes for all";
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 80, hostIP: 10.0.0.2"))), "fits");
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 80, protocol: UDP"))), "fits");
    EXPECT_EQ(world.verdict("node", world.pod(port("hostPort: 81"))), "fits");
    EXPECT_EQ(world.verdict("node", world.pod(port("containerPort: 80"))), "fits");
  }
}

TEST(NodePorts, SidecarsCountIn136) {
  for (const Era era : {Era::k120, Era::k136}) {
    PluginWorld world(era);
    world.add("{kind: Node, metadata: {name: node}}").run("other", "node", port("hostPort: 80"));
    const auto pod = [&](const char* policy) {
      return world.pod(fmt::format("{{containers: [{{name: c}}], initContainers: [{{name: i, {}ports: [{{hostPort: 80}}]}}]}}", policy));
    };
    EXPECT_EQ(world.verdict("node", pod("")), "fits") << "an init step is gone when the pod runs";
    EXPECT_EQ(world.verdict("node", pod("restartPolicy: Always, ")) == "fits", era == Era::k120);
  }
}

}  // namespace
}  // namespace berth::placement::testing
