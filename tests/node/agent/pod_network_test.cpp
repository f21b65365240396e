// Names, hosts files and name servers of pods.
#include "node/agent/pod_network.h"

#include <gtest/gtest.h>

namespace berth::node::agent {
namespace {

json::Value pod(std::string_view spec) {
  return json::Object{{"metadata", json::Object{{"name", "web-0"}, {"namespace", "shop"}}}, {"spec", json::parse_yaml(spec).value()}};
}

TEST(PodNetwork, ThePodsNameIsItsHostname) {
  const auto names = pod_names(pod("a: 1"), "cluster.local");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->hostname, "web-0");
  EXPECT_EQ(names->domain, "");
}

TEST(PodNetwork, ALongNameIsCutWithoutATrailingDash) {
  json::Value p = pod("a: 1");
  json::set(p, {"metadata", "name"}, json::Value(fmt::format("{:a<62}-bcd", "")));
  EXPECT_EQ(pod_names(p, "cluster.local")->hostname, std::string(62, 'a'));
}

TEST(PodNetwork, ASubdomainMakesAFullName) {
  const auto names = pod_names(pod("hostname: own\nsubdomain: sub"), "cluster.local");
  ASSERT_TRUE(names);
  EXPECT_EQ(names->full(), "own.sub.shop.svc.cluster.local");
  const auto whole = pod_names(pod("hostname: own\nsubdomain: sub\nsetHostnameAsFQDN: true"), "cluster.local");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->hostname, "own.sub.shop.svc.cluster.local");
}

TEST(PodNetwork, AnOverriddenNameStandsAlone) {
  const auto names =
      pod_names(pod("hostname: own\nsubdomain: sub\nhostnameOverride: db.example.com\nsetHostnameAsFQDN: false"), "cluster.local");
  EXPECT_EQ(names->hostname, "db.example.com");
  EXPECT_EQ(names->domain, "");
}

TEST(PodNetwork, AFullNameThatIsTooLongIsRefused) {
  const auto names = pod_names(pod("hostname: own\nsubdomain: " + std::string(60, 's') + "\nsetHostnameAsFQDN: true"), "cluster.local");
  ASSERT_FALSE(names);
  EXPECT_NE(names.error().message.find("is too long (64 characters is the max"), std::string::npos);
}

TEST(PodNetwork, HostsFile) {
  const json::Value p = pod("hostAliases:\n- {ip: 10.1.1.1, hostnames: [a.example, b.example]}");
  const std::string file = hosts_file(p, *pod_names(p, "cluster.local"), {"10.0.0.5"}, "ignored\n");
  EXPECT_TRUE(file.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"));
  EXPECT_NE(file.find("\n10.0.0.5\tweb-0\n"), std::string::npos);
  EXPECT_TRUE(file.ends_with("\n# Entries added by HostAliases.\n10.1.1.1\ta.example\tb.example\n"));
  EXPECT_EQ(hosts_file(pod("hostNetwork: true"), {}, {}, "1.2.3.4 machine"),
            "# Kubernetes-managed hosts file (host network).\n1.2.3.4 machine\n");
}

TEST(PodNetwork, NameServersByPolicy) {
  const DnsConfig host = parse_resolv_conf("# comment\nnameserver 9.9.9.9\nsearch old\nsearch home.example lan\noptions timeout:1\n");
  EXPECT_EQ(host.searches, (std::vector<std::string>{"home.example", "lan"})) << "the last search line counts";
  bool fell_back = false;
  const DnsConfig cluster =
      pod_dns(pod("dnsConfig: {options: [{name: ndots, value: '2'}, {name: rotate}]}"), host, {"10.96.0.10"}, "cluster.local", fell_back);
  EXPECT_FALSE(fell_back);
  EXPECT_EQ(cluster.servers, std::vector<std::string>{"10.96.0.10"});
  EXPECT_EQ(cluster.searches,
            (std::vector<std::string>{"shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "home.example", "lan"}));
  EXPECT_EQ(cluster.options, (std::vector<std::string>{"ndots:2", "rotate"}));
  const DnsConfig on_host = pod_dns(pod("hostNetwork: true"), host, {"10.96.0.10"}, "cluster.local", fell_back);
  EXPECT_EQ(on_host.servers, std::vector<std::string>{"9.9.9.9"});
  const DnsConfig none =
      pod_dns(pod("dnsPolicy: None\ndnsConfig: {nameservers: [1.1.1.1]}"), host, {"10.96.0.10"}, "cluster.local", fell_back);
  EXPECT_EQ(none.servers, std::vector<std::string>{"1.1.1.1"});
  EXPECT_TRUE(none.searches.empty());
  EXPECT_EQ(pod_dns(pod("a: 1"), host, {}, "cluster.local", fell_back).servers, std::vector<std::string>{"9.9.9.9"});
  EXPECT_TRUE(fell_back) << "a cluster without name servers";
}

}  // namespace
}  // namespace berth::node::agent
