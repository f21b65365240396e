// The QoS class follows from cpu and memory alone, of all containers together.
#include <gtest/gtest.h>

#include "base/json.h"
#include "model/schema.h"

namespace berth::model {
namespace {

std::string_view qos_of(std::string_view spec) {
  auto pod = json::parse(std::string(R"({"kind":"Pod","spec":)") + std::string(spec) + "}");
  return pod ? pod_qos_class(*pod) : "not JSON";
}

constexpr std::string_view kFull = R"({"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1000m","memory":"1024Mi"}})";

std::string containers(std::string_view resources, std::string_view more = "") {
  return std::string(R"({"containers":[{"name":"a","resources":)") + std::string(resources) + "}]" + std::string(more) + "}";
}

TEST(PodQosClass, WithoutAmountsIsBestEffort) {
  EXPECT_EQ(qos_of(R"({"containers":[{"name":"a"}]})"), "BestEffort");
  EXPECT_EQ(qos_of(containers(R"({"requests":{"cpu":"0","example.com/gpu":"1"},"limits":{"memory":"0"}})")), "BestEffort");
  EXPECT_EQ(qos_of("{}"), "BestEffort");
}

TEST(PodQosClass, IsGuaranteedWhereEveryContainerIsLimitedToWhatItRequests) {
  EXPECT_EQ(qos_of(containers(kFull)), "Guaranteed");
  EXPECT_EQ(qos_of(containers(R"({"limits":{"cpu":"1","memory":"1Gi"}})")), "Guaranteed") << "limits are requests where there are none";
  EXPECT_EQ(qos_of(containers(kFull, R"(,"initContainers":[{"name":"i","resources":)" + std::string(kFull) + "}]")), "Guaranteed");
}

TEST(PodQosClass, IsBurstableOtherwise) {
  EXPECT_EQ(qos_of(containers(R"({"requests":{"cpu":"1"}})")), "Burstable");
  EXPECT_EQ(qos_of(containers(R"({"requests":{"cpu":1}})")), "Burstable") << "a number is an amount, too";
  EXPECT_EQ(qos_of(containers(R"({"requests":{"cpu":"1"},"limits":{"cpu":"1"}})")), "Burstable");
  EXPECT_EQ(qos_of(containers(R"({"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"2","memory":"1Gi"}})")), "Burstable");
  EXPECT_EQ(qos_of(containers(kFull, R"(,"initContainers":[{"name":"i"}])")), "Burstable");
}

TEST(PodQosClass, OfAPodWithResourcesOfItsOwnFollowsFromThoseAlone) {
  EXPECT_EQ(qos_of(containers("{}", R"(,"resources":)" + std::string(kFull))), "Guaranteed");
  EXPECT_EQ(qos_of(containers(kFull, R"(,"resources":{"requests":{"cpu":"1"}})")), "Burstable");
  EXPECT_EQ(qos_of(containers(kFull, R"(,"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"1"}})")), "Burstable");
}

}  // namespace
}  // namespace berth::model
