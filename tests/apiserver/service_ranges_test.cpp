#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {

/// Services take addresses of the ranges that ServiceCIDRs name, and none that an IPAddress gives to somebody else.
class ServiceRanges : public ServerTest {
 protected:
  static constexpr const char* kServices = "/api/v1/namespaces/default/services";
  static constexpr const char* kRanges = "/apis/networking.k8s.io/v1/servicecidrs";
  static constexpr const char* kAddresses = "/apis/networking.k8s.io/v1/ipaddresses";
  Response service(const std::string& name, const std::string& address) {
    return post(kServices,
                fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"clusterIP":"{}","ports":[{{"port":80}}]}}}})", name, address));
  }
  static std::string range(const std::string& name, const std::string& cidrs) {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"cidrs":[{}]}}}})", name, cidrs);
  }
  static std::string address(const std::string& name) {
    return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{"parentRef":{{"group":"g","resource":"things","name":"t"}}}}}})", name);
  }
};

TEST_F(ServiceRanges, TheConfiguredOneIsAnObject) {
  const auto own = read(std::string(kRanges) + "/kubernetes");
  EXPECT_EQ(json::serialize(*json::find(own, {"spec", "cidrs"})), R"(["10.96.0.0/12"])");
  EXPECT_EQ(text(json::get_array(own, {"status", "conditions"})[0], {"type"}), "Ready");
}

TEST_F(ServiceRanges, AFurtherOneIsUsedOnceItIsReady) {
  EXPECT_STATUS(service("early", "203.0.113.10"), 422, "Invalid");
  create(kRanges, range("more", R"("203.0.113.0/24")"));
  EXPECT_STATUS(service("still", "203.0.113.10"), 422, "Invalid");
  patch(
      std::string(kRanges) + "/more/status",
      R"({"status":{"conditions":[{"type":"Ready","status":"True","reason":"","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})");
  EXPECT_EQ(service("now", "203.0.113.10")->status, 201);
  EXPECT_STATUS(service("again", "203.0.113.10"), 422, "Invalid");
  EXPECT_STATUS(service("broadcast", "203.0.113.255"), 422, "Invalid");
}

TEST_F(ServiceRanges, AnAddressOfSomebodyElseIsNotGiven) {
  create(kAddresses, address("10.96.0.77"));
  EXPECT_STATUS(service("late", "10.96.0.77"), 422, "Invalid");
  EXPECT_EQ(remove(std::string(kAddresses) + "/10.96.0.77")->status, 200);
  EXPECT_EQ(service("late", "10.96.0.77")->status, 201);
}

TEST_F(ServiceRanges, NamesAndRangesAreWrittenAsGoWritesThem) {
  EXPECT_STATUS(post(kAddresses, address("010.0.0.1")), 422, "Invalid");
  EXPECT_STATUS(post(kAddresses, address("fe80::0001")), 422, "Invalid");
  EXPECT_EQ(post(kAddresses, address("fe80::42:1dff:fe84:f9e2"))->status, 201);
  EXPECT_STATUS(post(kAddresses, R"({"metadata":{"name":"10.0.0.1"},"spec":{}})"), 422, "Invalid");
  EXPECT_STATUS(post(kRanges, range("bits", R"("10.0.0.1/24")")), 422, "Invalid");
  EXPECT_STATUS(post(kRanges, range("twice", R"("10.0.0.0/24","10.1.0.0/24")")), 422, "Invalid");
  EXPECT_STATUS(post(kRanges, range("none", "")), 422, "Invalid");
  create(kRanges, range("grows", R"("10.0.0.0/24")"));
  EXPECT_STATUS(patch(std::string(kRanges) + "/grows", R"({"spec":{"cidrs":["10.2.0.0/24"]}})"), 422, "Invalid");
  EXPECT_EQ(patch(std::string(kRanges) + "/grows", R"({"spec":{"cidrs":["10.0.0.0/24","fd00::/112"]}})")->status, 200);
}

TEST_F(ServiceRanges, AProxiedRootGetsItsSlash) {
  create("/api/v1/nodes", R"({"metadata":{"name":"n"}})");
  const auto moved = get("/api/v1/nodes/n:80/proxy?x=1");
  EXPECT_EQ(moved->status, 301);
  EXPECT_EQ(moved->headers.get("Location"), "/api/v1/nodes/n:80/proxy/?x=1");
  for (const char* nobody :
       {"/api/v1/nodes/other:80/proxy", "/api/v1/namespaces/default/pods/p:80/proxy", "/api/v1/namespaces/default/services/s/proxy"})
    EXPECT_STATUS(get(nobody), 404, "NotFound");
}

TEST_F(ServiceRanges, ATimeoutThatIsNoneIsRefused) {
  EXPECT_STATUS(get("/api/v1/namespaces/default?timeout=abc"), 400, "BadRequest");
  EXPECT_EQ(get("/api/v1/namespaces/default?timeout=5s")->status, 200);
  EXPECT_STATUS(get("/apis?timeout=3"), 400, "BadRequest");
}

TEST_F(ServiceRanges, StartsAreHealthChecksAndIndicators) {
  const auto checks = get("/readyz?verbose")->body;
  EXPECT_NE(checks.find("[+]poststarthook/rbac/bootstrap-roles ok"), std::string::npos) << checks;
  EXPECT_NE(checks.find("[+]etcd ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n"), std::string::npos) << checks;
  EXPECT_EQ(get("/livez/poststarthook/rbac/bootstrap-roles")->status, 200);
  EXPECT_EQ(get("/livez/poststarthook/none")->status, 404);
  EXPECT_NE(get("/metrics/slis")->body.find(R"(kubernetes_healthcheck{name="etcd",type="readyz"} 1)"), std::string::npos);
}

TEST_F(ServiceRanges, AReviewHasNoTable) {
  const std::string path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                    body = R"({"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}})";
  EXPECT_EQ(send("POST", path, body, "application/json", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}})->status, 406);
  EXPECT_EQ(
      send("POST", path, body, "application/json", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}})->status,
      201);
}

}  // namespace berth::apiserver::testing
