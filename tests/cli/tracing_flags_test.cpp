// The TracingConfiguration file: kube-apiserver's words, and what is wrong with one.
#include "cli/command/tracing_flags.h"

#include <gtest/gtest.h>

#include "net/tracing/tracer.h"

namespace berth::cli::testing {
namespace {

constexpr const char* kHead = "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\n";

TEST(TracingConfiguration, SaysWhereAndHowMany) {
  const auto read = parse_tracing_configuration(std::string(kHead) + "endpoint: collector:4317\nsamplingRatePerMillion: 100\n", "t.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->endpoint, "collector:4317");
  EXPECT_EQ(read->sampling_rate_per_million, 100);
}

TEST(TracingConfiguration, WithoutFieldsFollowsItsCallersAtTheUsualPlace) {
  const auto read = parse_tracing_configuration(kHead, "t.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->endpoint, "localhost:4317");
  EXPECT_EQ(read->sampling_rate_per_million, 0);
}

TEST(TracingConfiguration, ThatIsWrongIsToldWithItsPlace) {
  const auto error_of = [](const std::string& rest) {
    const auto read = parse_tracing_configuration(kHead + rest, "t.yaml");
    return read ? std::string() : read.error().message;
  };
  EXPECT_NE(error_of("samplingRatePerMillion: 1000001\n").find("t.yaml:3: samplingRatePerMillion: must not be above one million"),
            std::string::npos)
      << error_of("samplingRatePerMillion: 1000001\n");
  EXPECT_NE(error_of("samplingRatePerMillion: -1\n").find("must not be negative"), std::string::npos);
  for (const char* endpoint : {"http://collector:4317", "collector", "collector:0", ":4317", "collector:x"})
    EXPECT_NE(error_of(std::string("endpoint: ") + endpoint + "\n").find("HOST:PORT"), std::string::npos) << endpoint;
  EXPECT_NE(error_of("samplingRate: 1\n").find("samplingRate"), std::string::npos);
  EXPECT_FALSE(parse_tracing_configuration("kind: TracingConfiguration\n", "t.yaml"));
  EXPECT_FALSE(parse_tracing_configuration("apiVersion: v1\nkind: Pod\n", "t.yaml"));
  EXPECT_FALSE(parse_tracing_configuration("", "t.yaml"));
}

}  // namespace
}  // namespace berth::cli::testing
