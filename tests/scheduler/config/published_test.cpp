// What a scheduler publishes of its configuration decides, read back, as the scheduler does (SPEC I3, B2, B5).
#include "scheduler/config/published.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "scheduler/config/shown.h"
#include "tests/support/source_dir.h"

namespace berth::scheduler::config {
namespace {

SchedulerConfig parsed(const std::string& text) {
  auto out = parse(text, {});
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::move(*out) : SchedulerConfig{};
}

std::string example(const std::string& name) {
  std::ifstream in(testing::source_dir() + "/examples/scheduler/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

/// Both decide alike: the same lists and arguments, as /configz shows them, and the same release.
void expect_same(const SchedulerConfig& config, const std::string& what) {
  for (const auto& profile : config.profiles) {
    const auto back = read_published(publish({profile.scheduler_name, config, true}));
    ASSERT_TRUE(back) << what << ": " << back.error().message;
    EXPECT_EQ(back->scheduler_name, profile.scheduler_name) << what;
    EXPECT_TRUE(back->budgets_are_hard) << what;
    EXPECT_EQ(back->config.era, config.era) << what;
    auto there = shown(back->config), here = shown(config);
    for (auto* one : {&there, &here}) {
      json::erase(*one, {"clientConnection"});
      json::erase(*one, {"extenders"});
    }
    EXPECT_TRUE(there == here) << what << "\n" << json::serialize(there) << "\n" << json::serialize(here);
  }
}

TEST(Published, EveryExampleComesBackAsItWas) {
  for (const char* name : {"policy-default.json", "policy-modified.yaml", "policy-region-zone-rack-annotated.yaml", "policy-combined.yaml",
                           "kubescheduler-v1.yaml", "kubescheduler-v1beta1.yaml", "kubescheduler-v1-all-args.yaml"})
    expect_same(parsed(example(name)), name);
}

TEST(Published, DefaultsOfAReleaseComeBack) {
  expect_same(default_config(placement::Era::k136), "1.36");
  expect_same(default_config(placement::Era::k120), "1.20");
}

TEST(Published, ASchedulerOfAnotherNameWithoutAFileComesBackUnderIt) {
  auto config = default_config(placement::Era::k136);
  config.profiles.front().scheduler_name = "custom-scheduler";
  const auto map = publish({"custom-scheduler", config, false});
  EXPECT_EQ(json::get_string(map, {"metadata", "name"}), "berth-scheduler-custom-scheduler");
  const auto back = read_published(map);
  ASSERT_TRUE(back);
  EXPECT_NE(back->config.profile("custom-scheduler"), nullptr);
}

TEST(Published, CredentialsStayWithTheScheduler) {
  const auto config = parsed(R"(
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /secret/kubeconfig}
extenders:
- urlPrefix: https://extender
  filterVerb: filter
  weight: 1
  enableHTTPS: true
  tlsConfig: {insecure: true}
)");
  const std::string text = json::serialize(publish({"default-scheduler", config, false}));
  EXPECT_EQ(text.find("/secret/kubeconfig"), std::string::npos);
  EXPECT_EQ(text.find("tlsConfig"), std::string::npos);
  EXPECT_TRUE(read_published(publish({"default-scheduler", config, false})));
}

TEST(Published, AnotherConfigMapIsRefusedByItsName) {
  const json::Value other = {{"metadata", {{"name", "other"}, {"namespace", "kube-system"}}}, {"data", {{"a", "b"}}}};
  const auto refused = read_published(other);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("ConfigMap kube-system/other"), std::string::npos);
}

}  // namespace
}  // namespace berth::scheduler::config
