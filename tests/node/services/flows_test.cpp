// UDP flows of Services: which are led to endpoints that went, and that the kernel forgets those alone.
#include "node/services/flows.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "node/services/kernel_flows.h"
#include "tests/node/services/own_network.h"

namespace berth::node::services {
namespace {

ServicePort dns() {
  ServicePort port;
  port.name = "a/dns:";
  port.protocol = "udp";
  port.cluster_ip = "10.96.0.10";
  port.port = 53;
  port.node_port = 30053;
  port.external_ips = {"192.0.2.7"};
  port.serving = {{"10.0.0.1", 5353, true}, {"10.0.0.2", 5353, false}};
  return port;
}

FlowTargets targets(const ServicePort& port) {
  FlowTargets out;
  out.add(port);
  return out;
}

TEST(UdpFlows, AFlowToAnEndpointThatWentIsStale) {
  const FlowTargets all = targets(dns());
  for (const auto& [address, port] : {std::pair("10.96.0.10", 53), {"192.0.2.7", 53}, {"192.0.2.99", 30053}}) {
    const auto asked = static_cast<std::uint16_t>(port);
    EXPECT_FALSE(all.is_stale({address, "10.0.0.1", asked, 5353})) << address;
    EXPECT_TRUE(all.is_stale({address, "10.0.0.3", asked, 5353})) << address;
    EXPECT_TRUE(all.is_stale({address, "10.0.0.1", asked, 5354})) << "another port of the same pod";
    EXPECT_TRUE(all.is_stale({address, address, asked, asked})) << "from before there was an endpoint";
  }
}

TEST(UdpFlows, WhatIsNoServicesIsLeftAlone) {
  const FlowTargets all = targets(dns());
  EXPECT_FALSE(all.is_stale({"10.96.0.10", "10.0.0.3", 54, 5353}));
  EXPECT_FALSE(all.is_stale({"198.51.100.1", "198.51.100.1", 53, 53}));
}

TEST(UdpFlows, WithoutAServingEndpointThereIsNobodyElseToLeadTo) {
  ServicePort port = dns();
  port.serving.clear();
  EXPECT_TRUE(targets(port).empty());
  port = dns();
  port.protocol = "tcp";
  EXPECT_TRUE(targets(port).empty()) << "its ends are seen";
}

TEST(UdpFlows, TwoServicesOfOneAddressKeepEachOthersFlows) {
  FlowTargets all = targets(dns());
  ServicePort other = dns();
  other.serving = {{"10.0.0.9", 5353, true}};
  all.add(other);
  EXPECT_FALSE(all.is_stale({"10.96.0.10", "10.0.0.1", 53, 5353}));
  EXPECT_FALSE(all.is_stale({"10.96.0.10", "10.0.0.9", 53, 5353}));
  EXPECT_TRUE(all.is_stale({"10.96.0.10", "10.0.0.5", 53, 5353}));
}

/// Sends one datagram to an address of the loopback's own.
void send_datagram(const char* address, int port) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, address, &to.sin_addr);
  ::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  ::close(fd);
}

TEST(UdpFlows, TheKernelForgetsThoseThatAreNamedAlone) {
  in_own_network([](Kernel& kernel) {
    if (std::system("ip link set lo up") != 0) GTEST_SKIP() << "no ip program";
    // Connections are followed where a rule asks for their state.
    ASSERT_TRUE(
        kernel.run("add table ip t\nadd chain ip t c { type filter hook output priority 0; }\nadd rule ip t c ct state new accept\n"));
    send_datagram("127.0.0.1", 4001);
    send_datagram("127.0.0.1", 4002);
    std::set<int> seen;
    const auto look = [&](const Flow& flow) {
      seen.insert(flow.asked_port);
      return flow.asked_port == 4001;
    };
    const auto forgotten = forget_udp_flows(look);
    if (!forgotten) GTEST_SKIP() << forgotten.error().message;
    EXPECT_EQ(*forgotten, 1);
    EXPECT_TRUE(seen.contains(4001) && seen.contains(4002));
    seen.clear();
    EXPECT_EQ(*forget_udp_flows(look), 0);
    EXPECT_TRUE(seen.contains(4002) && !seen.contains(4001));
  });
}

}  // namespace
}  // namespace berth::node::services
