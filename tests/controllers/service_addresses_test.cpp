#include "controllers/common.h"
#include "controllers/services.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

struct ServiceAddressesTest : ::testing::Test {
  VirtualLoop loop{*parse_rfc3339("2026-01-05T10:00:00Z")};
  FakeApi api{loop};
  void SetUp() override {
    api.engine.add(make_service_cidr_controller());
    api.engine.add(make_ip_address_controller());
    api.engine.start();
  }
  json::Value get(Kind kind, const std::string& name) {
    for (const json::Value& one : api.all(kind))
      if (json::get_string(one, {"metadata", "name"}) == name) return one;
    return {};
  }
  std::string ready(const std::string& name) {
    const json::Value range = get(kinds().service_cidr, name);
    for (const json::Value& condition : json::get_array(range, {"status", "conditions"}))
      if (json::get_string(condition, {"type"}) == "Ready") return std::string(json::get_string(condition, {"status"}));
    return "";
  }
};

TEST_F(ServiceAddressesTest, ARangeBecomesReadyAndIsProtected) {
  api.put(kinds().service_cidr, yaml("metadata: {name: more}\nspec: {cidrs: [203.0.113.0/24]}\n"));
  loop.run_for(seconds(2));
  EXPECT_EQ(ready("more"), "True");
  EXPECT_TRUE(has_finalizer(get(kinds().service_cidr, "more"), "networking.k8s.io/service-cidr-finalizer"));
}

TEST_F(ServiceAddressesTest, EachAddressOfAServiceIsAnObject) {
  api.put(kinds().service, yaml("metadata: {name: web}\nspec: {clusterIP: 10.96.0.7, clusterIPs: [10.96.0.7]}\n"));
  api.put(kinds().service, yaml("metadata: {name: headless}\nspec: {clusterIP: None, clusterIPs: [None]}\n"));
  loop.run_for(seconds(2));
  const json::Value address = get(kinds().ip_address, "10.96.0.7");
  ASSERT_FALSE(address.is_null());
  EXPECT_EQ(json::get_string(address, {"spec", "parentRef", "name"}), "web");
  EXPECT_EQ(json::get_string(address, {"metadata", "labels", "ipaddress.kubernetes.io/ip-family"}), "IPv4");
  EXPECT_EQ(api.all(kinds().ip_address).size(), 1U);
  api.erase(kinds().service, "default", "web");
  loop.run_for(seconds(2));
  EXPECT_TRUE(api.all(kinds().ip_address).empty());
}

}  // namespace
}  // namespace berth::controllers
