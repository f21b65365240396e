// Differences from Kubernetes that were found once (issue 20, 5), each held by a test where no other holds it.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

/// A server that remembers the last few changes alone.
class ShortMemory : public ServerTest {
 protected:
  void SetUp() override {
    cache_options_.history_events = 3;
    start({});
  }
};

TEST_F(ShortMemory, AContinueTokenThatOutlivedTheHistoryComesWithAnother) {
  for (const char* name : {"a", "b", "c", "d", "e"}) create(kMaps, config_map(name));
  const auto first = read(std::string(kMaps) + "?limit=2");
  const auto token = text(first, {"metadata", "continue"});
  ASSERT_FALSE(token.empty());
  for (int i = 0; i < 8; ++i) create(kMaps, config_map(fmt::format("z{}", i)));
  const auto expired = get(fmt::format("{}?limit=2&continue={}", kMaps, token));
  EXPECT_STATUS(expired, 410, "Expired");
  const auto document = expired->document();
  const auto fresh = text(document, {"metadata", "continue"});
  ASSERT_FALSE(fresh.empty()) << expired->body;
  EXPECT_NE(fresh, token);
  // The rest as it is now, from where the first page ended.
  const auto rest = read(fmt::format("{}?limit=3&continue={}", kMaps, fresh));
  std::vector<std::string> names;
  for (const auto& item : json::get_array(rest, {"items"})) names.push_back(text(item, {"metadata", "name"}));
  EXPECT_EQ(names, (std::vector<std::string>{"c", "d", "e"}));
  EXPECT_FALSE(text(rest, {"metadata", "continue"}).empty());
}

class FoundDifferences : public ServerTest {};

/// Load-balancer controllers write the address alone.
TEST_F(FoundDifferences, ABalancersAddressIsReachedByItsAddress) {
  create("/api/v1/namespaces/default/services", R"({"metadata":{"name":"s"},"spec":{"type":"LoadBalancer","ports":[{"port":80}]}})");
  const auto written =
      patch("/api/v1/namespaces/default/services/s/status", R"({"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}})");
  ASSERT_EQ(written->status, 200) << written->body;
  const auto document = written->document();
  const auto& ingress = json::get_array(document, {"status", "loadBalancer", "ingress"});
  ASSERT_EQ(ingress.size(), 1U);
  EXPECT_EQ(text(ingress[0], {"ipMode"}), "VIP");
}

TEST_F(FoundDifferences, AStatusIsKeptOfNoKindThatHasNone) {
  const auto made = create(kMaps, R"({"metadata":{"name":"a"},"data":{"k":"v"},"status":{"phase":"x"}})");
  EXPECT_EQ(json::find(made, {"status"}), nullptr) << json::serialize(made);
  EXPECT_EQ(text(made, {"data", "k"}), "v");
}

TEST_F(FoundDifferences, ADeletionThatIsOnlyTriedShowsTheObject) {
  create("/api/v1/namespaces/default/serviceaccounts", R"({"metadata":{"name":"a","labels":{"l":"1"}}})");
  const auto tried = remove("/api/v1/namespaces/default/serviceaccounts/a?dryRun=All");
  ASSERT_EQ(tried->status, 200) << tried->body;
  EXPECT_EQ(text(tried->document(), {"kind"}), "ServiceAccount");
  EXPECT_EQ(text(tried->document(), {"metadata", "labels", "l"}), "1");
  create(kMaps, R"({"metadata":{"name":"held","finalizers":["example.com/f"]},"data":{"k":"v"}})");
  const auto held = remove(std::string(kMaps) + "/held?dryRun=All");
  EXPECT_EQ(text(held->document(), {"data", "k"}), "v") << held->body;
  EXPECT_FALSE(text(held->document(), {"metadata", "deletionTimestamp"}).empty()) << held->body;
  EXPECT_EQ(json::find(read(std::string(kMaps) + "/held"), {"metadata", "deletionTimestamp"}), nullptr);
}

TEST_F(FoundDifferences, TablesAndMetadataComeInTheVersionAskedFor) {
  create(kMaps, config_map("a"));
  const auto in = [&](const std::string& path, const char* as) {
    return send("GET", path, "", "", {{"Accept", fmt::format("application/json;as={};v=v1beta1;g=meta.k8s.io", as)}})->document();
  };
  const auto table = in(kMaps, "Table");
  EXPECT_EQ(text(table, {"apiVersion"}), "meta.k8s.io/v1beta1");
  EXPECT_EQ(text(json::get_array(table, {"rows"})[0], {"object", "apiVersion"}), "meta.k8s.io/v1beta1");
  EXPECT_EQ(text(in(std::string(kMaps) + "/a", "PartialObjectMetadata"), {"apiVersion"}), "meta.k8s.io/v1beta1");
  const auto list = in(kMaps, "PartialObjectMetadataList");
  EXPECT_EQ(text(list, {"apiVersion"}), "meta.k8s.io/v1beta1");
  EXPECT_EQ(text(json::get_array(list, {"items"})[0], {"apiVersion"}), "meta.k8s.io/v1beta1");
}

TEST_F(FoundDifferences, WhatIsWrongWithMetadataIsToldWithTheRest) {
  create(kMaps, R"({"metadata":{"name":"a"},"immutable":true,"data":{"k":"v"}})");
  const auto refused = patch(std::string(kMaps) + "/a", R"({"metadata":{"uid":"other"},"data":{"k":"w"}})");
  EXPECT_EQ(refused->status, 422) << refused->body;
  EXPECT_NE(refused->body.find("metadata.uid"), std::string::npos) << refused->body;
  EXPECT_NE(refused->body.find("data: Forbidden"), std::string::npos) << refused->body;
}

}  // namespace
}  // namespace berth::apiserver::testing
