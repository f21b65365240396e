// What a balancer in front of nodes is told of one, and what the kernel's memory of connections is raised to.
#include "node/services/proxy_health.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "node/services/conntrack_settings.h"

namespace berth::node::services {
namespace {

struct HandClock final : Clock {
  [[nodiscard]] TimePoint now() const override { return at; }
  TimePoint at{std::chrono::seconds(1'800'000'000)};
};

TEST(ProxyHealth, ANodeIsFitOnceTheKernelHasTheRulesAndWhileChangesDoNotWaitLong) {
  HandClock clock;
  ProxyHealth health(clock);
  EXPECT_EQ(health.answer("/healthz").status, 503) << "nothing is led yet";
  health.changes_done();
  EXPECT_EQ(health.answer("/healthz").status, 200);
  EXPECT_EQ(
      health.answer("/healthz").body,
      R"({"lastUpdated": "2027-01-15 08:00:00.000000 +0000 UTC","currentTime": "2027-01-15 08:00:00.000000 +0000 UTC", "nodeEligible": true})");
  health.changes_wait();
  clock.at += std::chrono::seconds(50);
  health.changes_wait();
  EXPECT_EQ(health.answer("/healthz").status, 200);
  clock.at += std::chrono::seconds(10);
  EXPECT_EQ(health.answer("/healthz").status, 503) << "the first of them has waited a minute";
  EXPECT_EQ(health.answer("/livez").status, 503);
  EXPECT_NE(health.answer("/healthz").body.find(R"("lastUpdated": "2027-01-15 08:00:00)"), std::string::npos);
  health.changes_done();
  EXPECT_EQ(health.answer("/healthz").status, 200);
  EXPECT_EQ(health.answer("/metrics").status, 404);
}

TEST(ProxyHealth, ANodeThatGoesIsAliveButGetsNothingNew) {
  HandClock clock;
  ProxyHealth health(clock);
  health.changes_done();
  for (const char* going : {R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}})",
                            R"({"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}})"}) {
    health.set_node(*json::parse(going));
    EXPECT_EQ(health.answer("/healthz").status, 503) << going;
    EXPECT_EQ(health.answer("/livez").status, 200) << going;
    health.set_node(*json::parse(R"({"spec":{"taints":[{"key":"other","effect":"NoSchedule"}]}})"));
    EXPECT_EQ(health.answer("/healthz").status, 200);
  }
}

TEST(ConntrackSettings, AreRaisedAndNeverLowered) {
  char pattern[] = "/tmp/berth-conntrack.XXXXXX";
  const std::string root = ::mkdtemp(pattern), folder = root + "/net/netfilter/";
  std::filesystem::create_directories(folder);
  const auto is = [&](const char* name) {
    std::int64_t value = -1;
    std::ifstream(folder + name) >> value;
    return value;
  };
  std::ofstream(folder + "nf_conntrack_tcp_timeout_close_wait") << "60\n";
  std::ofstream(folder + "nf_conntrack_tcp_timeout_established") << "432000\n";
  std::ofstream(folder + "nf_conntrack_max") << "65536\n";
  raise_conntrack_settings(root, 2);
  EXPECT_EQ(is("nf_conntrack_tcp_timeout_close_wait"), 3600);
  EXPECT_EQ(is("nf_conntrack_tcp_timeout_established"), 432000);
  EXPECT_EQ(is("nf_conntrack_max"), 131072);
  raise_conntrack_settings(root, 8);
  EXPECT_EQ(is("nf_conntrack_max"), 8 * 32768);
  std::filesystem::remove(folder + "nf_conntrack_max");
  raise_conntrack_settings(root, 8);
  EXPECT_EQ(is("nf_conntrack_max"), -1) << "what the kernel does not have is not made";
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace berth::node::services
