// Session affinity: the set of all clients as the kernel keeps it, with real connections in a network of the test's own.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>

#include "node/services/rules.h"
#include "tests/node/services/own_network.h"

namespace berth::node::services {
namespace {

constexpr const char* kService = "127.9.0.1";
constexpr std::uint16_t kPort = 80, kEndpointPort = 8080;

void bring_loopback_up() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  request.ifr_name[0] = 'l', request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
  ASSERT_EQ(::ioctl(fd, SIOCSIFFLAGS, &request), 0);
  ::close(fd);
}

int bound_socket(const std::string& address, std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET, at.sin_port = htons(port);
  ::inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0) << address;
  return fd;
}

/// Listeners by address; a client's connection is at one of them as soon as it stands.
class Endpoints {
 public:
  explicit Endpoints(const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      const int fd = bound_socket(address, kEndpointPort);
      EXPECT_EQ(::listen(fd, 64), 0);
      EXPECT_EQ(::fcntl(fd, F_SETFL, O_NONBLOCK), 0);
      fds_[address] = fd;
    }
  }
  ~Endpoints() {
    for (const auto& [address, fd] : fds_) ::close(fd);
  }
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;
  /// Who answers a client of this address; empty: nobody.
  std::string who_answers(const std::string& client) {
    const int fd = bound_socket(client, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET, to.sin_port = htons(kPort);
    ::inet_pton(AF_INET, kService, &to.sin_addr);
    std::string out;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0)
      for (const auto& [address, listener] : fds_)
        if (const int taken = ::accept(listener, nullptr, nullptr); taken >= 0) {
          ::close(taken);
          out = address;
        }
    ::close(fd);
    return out;
  }

 private:
  std::map<std::string, int> fds_;
};

ServicePort affine(const std::vector<std::string>& endpoints) {
  ServicePort port;
  port.name = "a/b:";
  port.protocol = "tcp";
  port.cluster_ip = kService;
  port.port = kPort;
  port.affinity_seconds = 10800;
  for (const std::string& address : endpoints) port.endpoints.push_back({address, kEndpointPort, false});
  return port;
}

TEST(SessionAffinity, AClientStaysWithItsEndpointAndOnlyTheClientsOfOneThatWentMove) {
  in_own_network([](Kernel& kernel) {
    bring_loopback_up();
    Endpoints endpoints({"127.0.1.1", "127.0.1.2", "127.0.1.3"});
    Rules rules({.table = "berth-test"});
    rules.set("a/b:", affine({"127.0.1.1", "127.0.1.2", "127.0.1.3"}));
    const auto made = kernel.run(rules.whole());
    ASSERT_TRUE(made.has_value()) << made.error().message;
    std::map<std::string, std::string> had;
    for (int i = 1; i <= 12; ++i) {
      const std::string client = fmt::format("127.0.2.{}", i);
      had[client] = endpoints.who_answers(client);
      ASSERT_NE(had[client], "");
    }
    for (int again = 0; again < 3; ++again)
      for (const auto& [client, endpoint] : had) ASSERT_EQ(endpoints.who_answers(client), endpoint) << client;
    const std::string gone = had.begin()->second;
    std::vector<std::string> left;
    for (const char* address : {"127.0.1.1", "127.0.1.2", "127.0.1.3"})
      if (address != gone) left.emplace_back(address);
    rules.set("a/b:", affine(left));
    const auto changed = kernel.run(rules.step());
    ASSERT_TRUE(changed.has_value()) << changed.error().message;
    for (auto& [client, endpoint] : had) {
      const std::string now = endpoints.who_answers(client);
      if (endpoint == gone)
        EXPECT_TRUE(now != gone && !now.empty()) << client;
      else
        EXPECT_EQ(now, endpoint) << client;
      endpoint = now;
    }
    for (int again = 0; again < 3; ++again)
      for (const auto& [client, endpoint] : had) ASSERT_EQ(endpoints.who_answers(client), endpoint) << client << " has a new place";
  });
}

TEST(SessionAffinity, AServiceThatHasItNoMoreDrawsForEachConnection) {
  in_own_network([](Kernel& kernel) {
    bring_loopback_up();
    Endpoints endpoints({"127.0.1.1", "127.0.1.2"});
    Rules rules({.table = "berth-test", .masquerades_local = true});
    rules.set("a/b:", affine({"127.0.1.1", "127.0.1.2"}));
    ASSERT_TRUE(kernel.run(rules.whole()).has_value());
    const std::string first = endpoints.who_answers("127.0.2.1");
    ServicePort any = affine({"127.0.1.1", "127.0.1.2"});
    any.affinity_seconds = 0;
    rules.set("a/b:", any);
    ASSERT_TRUE(kernel.run(rules.step()).has_value());
    bool moved = false;
    for (int tries = 0; tries < 200 && !moved; ++tries) moved = endpoints.who_answers("127.0.2.1") != first;
    EXPECT_TRUE(moved);
  });
}

TEST(SessionAffinity, AServiceIsElementsAndNoChainsOfItsOwn) {
  Rules rules{RuleOptions{}};
  ServicePort port = affine({"10.0.0.1", "10.0.0.2"});
  port.node_port = 30080;
  rules.set(port.name, port);
  rules.whole();
  ServicePort other = port;
  other.name = "a/c:", other.cluster_ip = "10.96.0.77", other.node_port = 30081;
  rules.set(other.name, other);
  const std::string script = rules.step();
  EXPECT_EQ(script.find("add chain"), std::string::npos) << script;
  EXPECT_EQ(script.find("add rule"), std::string::npos) << script;
  EXPECT_NE(script.find("10.96.0.77 . tcp . 80 : goto affine-10800-2"), std::string::npos) << script;
}

}  // namespace
}  // namespace berth::node::services
