// Every recorded pass of the real cluster autoscaler is decided so here, or otherwise by a rule that is written down (SPEC H2 to H4).
#include "parity/autoscaling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/json.h"
#include "parity/vector_files.h"
#include "tests/support/source_dir.h"

namespace berth::autoscaler {
namespace {

std::string kept_passes() { return berth::testing::source_dir() + "/tests/parity/autoscaler_vectors.jsonl.gz"; }

std::size_t replay_all(const std::string& path) {
  std::size_t replayed = 0;
  const auto count = scheduler::parity::for_each_vector(path, [&](const std::string& name, const std::string& text) {
    const auto file = json::parse(text);
    ASSERT_TRUE(file) << name << ": " << file.error().message;
    ASSERT_TRUE(is_autoscaler_vector(*file)) << name;
    ++replayed;
    const auto differences = replay_autoscaler(*file);
    EXPECT_TRUE(differences.empty()) << name << ": " << differences.front().substr(0, 1500);
  });
  EXPECT_TRUE(count) << (count ? "" : count.error().message);
  return replayed;
}

json::Value kept_pass(std::string_view wanted) {
  json::Value out;
  (void)scheduler::parity::for_each_vector(kept_passes(), [&](const std::string& name, const std::string& text) {
    if (name == wanted) out = *json::parse(text);
  });
  EXPECT_TRUE(out.is_object()) << wanted;
  return out;
}

/// The recording with every outcome changed is no longer what this autoscaler decides.
template <typename Change>
bool notices(std::string_view name, Change change) {
  json::Value file = kept_pass(name);
  for (json::Value& outcome : json::find(file, "outcomes")->as_array()) change(outcome);
  return !replay_autoscaler(file).empty();
}

TEST(AutoscalingParity, RecordedPassesOfTheProject) { EXPECT_GE(replay_all(kept_passes()), 150U); }

TEST(AutoscalingParity, RecordedPassesBesideTheProject) {
  const char* shared = std::getenv("BERTH_SHARED");
  const std::string path = (shared != nullptr ? std::string(shared) : berth::testing::source_dir() + "/../shared") + "/autoscaler-vectors";
  if (!std::filesystem::is_directory(path)) GTEST_SKIP() << "no recorded passes in " << path;
  EXPECT_GT(replay_all(path), 0U);
}

TEST(AutoscalingParity, AnotherAnswerIsNoticed) {
  const auto set = [](std::string_view key, const json::Value& value) {
    return [=](json::Value& outcome) { json::set(outcome, {key}, value); };
  };
  const json::Value pool = {{"MachineSet/openshift-machine-api/g0", 7}};
  EXPECT_TRUE(notices("su-basic-0.json", set("result", "NotNeeded")));
  EXPECT_TRUE(notices("su-basic-0.json", set("grow", pool)));
  EXPECT_TRUE(notices("su-basic-0.json", set("options", json::Array{})));
  EXPECT_TRUE(notices("su-basic-0.json", set("triggered", json::Array{"default/nobody"})));
  EXPECT_TRUE(notices("case-overmax.json", set("notTriggered", json::Object{})));
  EXPECT_TRUE(notices("case-half.json", set("staying", json::Object{})));
  EXPECT_TRUE(notices("sd-drainability-1.json", set("unneeded", json::Array{})));
  EXPECT_TRUE(notices("sd-drainability-1.json", [](json::Value& outcome) {
    json::set(outcome, {"staying", "g1-00"}, json::Array{"BlockedByPod", "NotReplicated", "default/p-4"});
  }));
  EXPECT_TRUE(notices("sd-drainability-1.json", [](json::Value& outcome) {
    json::set(outcome, {"removeEmpty"}, json::Array{});
    json::set(outcome, {"removeDrain"}, json::Array{});
  }));
}

TEST(AutoscalingParity, MalformedRecordingsAreReportedNotReplayed) {
  EXPECT_FALSE(is_autoscaler_vector(json::Value("text")));
  EXPECT_EQ(replay_autoscaler(json::Object{{"input", json::Object{}}}).size(), 1U);
  const json::Value nobody = {{"input", {{"items", json::Array{}}}}, {"outcomes", json::Array{json::Object{}}}};
  EXPECT_EQ(replay_autoscaler(nobody).size(), 1U);
}

}  // namespace
}  // namespace berth::autoscaler
