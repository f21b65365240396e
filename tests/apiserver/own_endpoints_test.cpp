// Where pods find the server: the Endpoints and the EndpointSlice of the Service `kubernetes`, over time.
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

class OwnEndpointsTest : public ServerTest {
 protected:
  void SetUp() override { start_at("127.0.0.1"); }
  void start_at(const std::string& address) {
    ServerOptions options;
    options.advertise_address = address;
    options.advertise_port = 6443;
    start(std::move(options));
  }
  std::string version(const std::string& path) { return text(read(path), {"metadata", "resourceVersion"}); }

  static constexpr const char* kEndpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
  static constexpr const char* kSlice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
};

TEST_F(OwnEndpointsTest, TheSliceIsTheServersOwnAndNobodyMirrorsTheEndpoints) {
  const json::Value endpoints = read(kEndpoints), slice = read(kSlice);
  EXPECT_EQ(text(endpoints, {"metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"}), "true");
  EXPECT_EQ(json::serialize(endpoints.at("subsets").at(0).at("addresses")), R"([{"ip":"127.0.0.1"}])");
  EXPECT_EQ(text(slice, {"metadata", "labels", "kubernetes.io/service-name"}), "kubernetes");
  EXPECT_EQ(text(slice, {"addressType"}), "IPv4");
  EXPECT_EQ(json::serialize(slice.at("endpoints")), R"([{"addresses":["127.0.0.1"],"conditions":{"ready":true}}])");
  EXPECT_EQ(json::serialize(slice.at("ports")), R"([{"name":"https","port":6443,"protocol":"TCP"}])");
}

TEST_F(OwnEndpointsTest, WhatOthersChangeOrTakeIsPutBackAndWhatIsRightIsLeft) {
  const std::string endpoints = version(kEndpoints), slice = version(kSlice);
  loop_.run_for(std::chrono::seconds(60));
  EXPECT_EQ(version(kEndpoints), endpoints) << "nothing to say";
  EXPECT_EQ(version(kSlice), slice);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(patch(kEndpoints, R"({"metadata":{"labels":{"endpointslice.kubernetes.io/skip-mirror":null,"mine":"1"}}})")->status, 200);
    EXPECT_EQ(patch(kSlice, R"({"ports":[{"name":"https","port":1}]})")->status, 200);
    loop_.run_for(std::chrono::seconds(11));
    EXPECT_EQ(text(read(kEndpoints), {"metadata", "labels", "endpointslice.kubernetes.io/skip-mirror"}), "true");
    EXPECT_EQ(text(read(kEndpoints), {"metadata", "labels", "mine"}), "1") << "what is not the server's stays";
    EXPECT_EQ(json::get_int(read(kSlice).at("ports").at(0), {"port"}), 6443);
    EXPECT_EQ(remove(kSlice)->status, 200);
    loop_.run_for(std::chrono::seconds(11));
    EXPECT_EQ(get(kSlice)->status, 200) << "round " << round;
  }
}

TEST_F(OwnEndpointsTest, AnAddressOfTheOtherFamilyHasASliceOfItsFamily) {
  start_at("fd00::7");
  EXPECT_EQ(text(read(kSlice), {"addressType"}), "IPv6");
}

}  // namespace
}  // namespace berth::apiserver::testing
