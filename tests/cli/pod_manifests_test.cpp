#include "cli/planning/pod_manifests.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "placement/cluster.h"

namespace berth::cli {
namespace {

class PodManifests : public ::testing::Test {
 protected:
  ~PodManifests() override { std::filesystem::remove(file_); }
  struct Read {
    Result<std::vector<json::Value>> documents;
    std::string told;
  };
  Read read(const std::string& text) {
    std::ofstream(file_) << text;
    ::testing::internal::CaptureStderr();
    auto documents = read_pod_manifests({file_});
    return {std::move(documents), ::testing::internal::GetCapturedStderr()};
  }
  const std::string file_ = std::filesystem::temp_directory_path() / ("berth-pods-" + std::to_string(::getpid()) + ".yaml");
};

constexpr std::string_view kPod = R"(apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: c
    image: nginx
    resources:
      requests:
        cpu: 100m
)";

std::string with(std::string_view was, std::string_view is) {
  std::string out(kPod);
  out.replace(out.find(was), was.size(), is);
  return out;
}

TEST_F(PodManifests, WhatTheServerTakesIsReadInSilence) {
  const Read all = read(std::string(kPod));
  ASSERT_TRUE(all.documents);
  EXPECT_EQ(all.told, "");
  EXPECT_EQ(read(with("metadata: {name: web}", "metadata: {generateName: web-}")).told, "") << "a question needs no name";
}

TEST_F(PodManifests, AQuantityThatIsNoneIsAnErrorInsteadOfNothingAsked) {
  const Read wrong = read(with("cpu: 100m", "cpu: lots"));
  ASSERT_FALSE(wrong.documents);
  EXPECT_EQ(
      wrong.documents.error().message,
      file_ +
          R"(:10: spec.containers[0].resources.requests.cpu: Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression )"
          R"('^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$')");
}

TEST_F(PodManifests, AValueOfAnotherTypeIsNamedWithItsLine) {
  const Read wrong = read(with("spec:", "spec:\n  priority: high"));
  ASSERT_FALSE(wrong.documents);
  EXPECT_TRUE(wrong.documents.error().message.starts_with(file_ + ":5: ")) << wrong.documents.error().message;
  EXPECT_TRUE(wrong.documents.error().message.contains("spec.priority of type int32")) << wrong.documents.error().message;
}

TEST_F(PodManifests, WhatTheServerWouldRefuseIsToldAndAskedAbout) {
  const Read wrong = read(with("cpu: 100m", "cpu: -1"));
  ASSERT_TRUE(wrong.documents);
  EXPECT_EQ(wrong.told,
            "warning: " + file_ +
                ":10: the API server would refuse it: spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be "
                "greater than or equal to 0\n");
}

TEST_F(PodManifests, AMisspeltFieldIsToldBesideTheRest) {
  const Read wrong = read(with("spec:", "spec:\n  nodeSelectr: {a: b}\n  restartPolicy: Sometimes"));
  ASSERT_TRUE(wrong.documents);
  EXPECT_TRUE(wrong.told.contains(":5: unknown field \"spec.nodeSelectr\"; did you mean \"nodeSelector\"?")) << wrong.told;
  EXPECT_TRUE(wrong.told.contains(":6: the API server would refuse it: spec.restartPolicy: Unsupported value: \"Sometimes\""))
      << wrong.told;
}

TEST_F(PodManifests, APriorityClassThatIsNotThereIsToldOnce) {
  const placement::Cluster cluster(placement::Era::k136);
  ::testing::internal::CaptureStderr();
  tell_unknown_priorities({"", "vip", "vip"}, cluster);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: no PriorityClass with name vip is known: the API server would refuse such pods; they count with priority 0\n");
}

}  // namespace
}  // namespace berth::cli
