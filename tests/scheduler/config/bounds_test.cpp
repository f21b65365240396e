// A bound itself is taken, what is one beyond it is refused; what a file says arrives where it is read.
#include <gtest/gtest.h>

#include "scheduler/config/config.h"
#include "scheduler/config/shown.h"

namespace berth::scheduler::config {
namespace {

const std::string kHead = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

std::string error_of(const std::string& text) {
  const auto result = parse(text, {.file = "f.yaml"});
  return result ? std::string() : result.error().message;
}

SchedulerConfig config_of(const std::string& text) {
  auto result = parse(text, {});
  EXPECT_TRUE(result) << result.error().message;
  return result ? std::move(*result) : default_config(placement::Era::k136);
}

TEST(SchedulerBounds, ASecondIsTheShortestTimeForBindingClaims) {
  const auto with = [](const std::string& timeout) {
    return kHead + "profiles: [{pluginConfig: [{name: DynamicResources, args: {bindingTimeout: " + timeout + "}}]}]\n";
  };
  EXPECT_EQ(error_of(with("1s")), "");
  EXPECT_NE(error_of(with("999ms")).find("must be at least 1 second"), std::string::npos);
}

TEST(SchedulerBounds, PercentagesAndBackoffsEndWhereKubernetesEndsThem) {
  for (const char* fine : {"percentageOfNodesToScore: 0", "percentageOfNodesToScore: 100", "podInitialBackoffSeconds: 1",
                           "podInitialBackoffSeconds: 10", "parallelism: 1"})
    EXPECT_EQ(error_of(kHead + fine + "\n"), "") << fine;
  for (const char* wrong : {"percentageOfNodesToScore: -1", "percentageOfNodesToScore: 101", "podInitialBackoffSeconds: 0",
                            "podInitialBackoffSeconds: 11", "parallelism: 0"})
    EXPECT_NE(error_of(kHead + wrong + "\n"), "") << wrong;
}

TEST(SchedulerBounds, NodeLabelsArgumentsHaveNoOtherNames) {
  const auto with = [](const std::string& args) {
    return "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n"
           "profiles: [{pluginConfig: [{name: NodeLabel, args: {" +
           args + "}}]}]\n";
  };
  EXPECT_EQ(error_of(with("presentLabels: [a], absentLabels: [b]")), "");
  EXPECT_NE(error_of(with("presentLabel: [a]")).find("presentLabel"), std::string::npos);
  EXPECT_NE(error_of(with("presentLabels: [a], absentLabels: [a]")), "");
  EXPECT_NE(error_of(with("presentLabelsPreference: [a], absentLabelsPreference: [a]")), "");
}

TEST(SchedulerBounds, ProfilingIsWhatTheFileSays) {
  EXPECT_TRUE(config_of(kHead).enable_profiling);
  EXPECT_TRUE(config_of(kHead).enable_contention_profiling);
  const auto off = config_of(kHead + "enableProfiling: false\n");
  EXPECT_FALSE(off.enable_profiling);
  EXPECT_TRUE(off.enable_contention_profiling);
  EXPECT_FALSE(config_of(kHead + "enableContentionProfiling: false\n").enable_contention_profiling);
}

TEST(SchedulerBounds, AnExtenderIsShownWithWhatItHas) {
  const auto shown_with = [](const std::string& more) {
    const json::Value all = shown(config_of(kHead + "extenders: [{urlPrefix: \"https://x/y\", filterVerb: f" + more + "}]\n"));
    return json::Value(json::get_array(all, {"extenders"})[0]);
  };
  const json::Value bare = shown_with("");
  for (const char* field : {"tlsConfig", "managedResources", "weight", "enableHTTPS", "nodeCacheCapable", "ignorable", "bindVerb"})
    EXPECT_EQ(json::find(bare, {field}), nullptr) << field;
  const json::Value full = shown_with(
      ", prioritizeVerb: p, weight: 3, enableHTTPS: true, nodeCacheCapable: true, ignorable: true, tlsConfig: {insecure: true}, "
      "managedResources: [{name: example.com/a}]");
  EXPECT_EQ(json::get_int(full, {"weight"}), 3);
  for (const char* field : {"enableHTTPS", "nodeCacheCapable", "ignorable"}) EXPECT_TRUE(json::get_bool(full, {field})) << field;
  EXPECT_TRUE(json::get_bool(full, {"tlsConfig", "insecure"}));
  EXPECT_EQ(json::find(json::get_array(full, {"managedResources"})[0], {"ignoredByScheduler"}), nullptr);
}

}  // namespace
}  // namespace berth::scheduler::config
