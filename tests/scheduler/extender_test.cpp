// HTTP extenders: what they are asked, and what their answers change.
#include <gtest/gtest.h>

#include "scheduler/extender.h"

namespace berth::scheduler {
namespace {

using placement::Decision;

class Extended : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b", "c"})
      cluster_.upsert(json::Value{{"kind", "Node"}, {"metadata", {{"name", name}}}, {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "10"}}}}}});
    framework_ = *placement::Framework::create(placement::default_profile(placement::Era::k136));
    pod_ = placement::PodInfo::make(std::make_shared<const model::PodView>(model::PodView::parse(document_)), placement::Era::k136);
  }
  Decision choose(const Extenders& extenders) {
    evaluation_ = placement::evaluate(*framework_, cluster_, *pod_);
    return extenders.choose(cluster_, *pod_, document_, evaluation_,
                            [](const std::string& name) { return json::Value{{"metadata", {{"name", name}}}}; });
  }
  static config::Extender extender() {
    config::Extender out;
    out.url_prefix = "http://x";
    out.filter_verb = "filter";
    out.node_cache_capable = true;
    return out;
  }

  json::Value document_ = {{"kind", "Pod"}, {"metadata", {{"name", "p"}, {"namespace", "default"}, {"uid", "u"}}},
                           {"spec", {{"containers", json::Array{{{"name", "c"}, {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}}};
  placement::Cluster cluster_;
  placement::FrameworkPtr framework_;
  placement::PodInfoPtr pod_;
  placement::Evaluation evaluation_;
};

TEST_F(Extended, FilterNarrowsAndPrioritizeDecides) {
  auto config = extender();
  config.prioritize_verb = "rank";
  config.weight = 2;
  std::vector<std::string> bodies;
  const Extenders extenders({config}, [&](std::size_t, const std::string& verb, const std::string& body) -> Result<std::string> {
    bodies.push_back(body);
    if (verb == "filter") return std::string(R"({"NodeNames":["b","c"],"FailedNodes":{"a":"too old"}})");
    return std::string(R"([{"Host":"b","Score":1},{"Host":"c","Score":10}])");
  });
  const auto decision = choose(extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kScheduled);
  EXPECT_EQ(decision.node_name, "c");
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_NE(bodies[0].find(R"("NodeNames":["a","b","c"])"), std::string::npos) << bodies[0];
  EXPECT_NE(bodies[1].find(R"("NodeNames":["b","c"])"), std::string::npos) << bodies[1];
}

TEST_F(Extended, RefusedEverywhereCountsItsReasons) {
  const Extenders extenders({extender()}, [](std::size_t, const std::string&, const std::string&) -> Result<std::string> {
    return std::string(R"({"NodeNames":[],"FailedNodes":{"a":"too old","b":"too old","c":"too new"}})");
  });
  const auto decision = choose(extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kUnschedulable);
  EXPECT_EQ(placement::fit_error_message(*decision.diagnosis, placement::Era::k136, ""), "0/3 nodes are available: 1 too new, 2 too old.");
}

TEST_F(Extended, AFailureIsAnErrorUnlessIgnorable) {
  const auto broken = [](std::size_t, const std::string&, const std::string&) -> Result<std::string> { return fail(ErrorCode::kUnavailable, "down"); };
  auto config = extender();
  EXPECT_EQ(choose(Extenders({config}, broken)).outcome, Decision::Outcome::kError);
  config.ignorable = true;
  EXPECT_EQ(choose(Extenders({config}, broken)).outcome, Decision::Outcome::kScheduled);
  const auto garbage = [](std::size_t, const std::string&, const std::string&) -> Result<std::string> { return std::string(R"({"NodeNames":["elsewhere"]})"); };
  EXPECT_EQ(choose(Extenders({extender()}, garbage)).outcome, Decision::Outcome::kError);
}

TEST_F(Extended, ManagedResourcesLimitItsInterest) {
  auto config = extender();
  config.managed_resources = {{"example.com/gpu", false}};
  config.bind_verb = "bind";
  const Extenders extenders({config}, [](std::size_t, const std::string&, const std::string&) -> Result<std::string> { return std::string("{}"); });
  EXPECT_FALSE(extenders.are_interested(pod_->view()));
  EXPECT_FALSE(extenders.bind_for(pod_->view()));
  model::PodView gpu = pod_->view();
  gpu.containers[0].limits = {{"example.com/gpu", model::Quantity::from_value(1)}};
  EXPECT_TRUE(extenders.are_interested(gpu));
  EXPECT_TRUE(extenders.bind_for(gpu));
}

TEST_F(Extended, AnUnreachableExtenderIsNamed) {
  auto config = extender();
  config.url_prefix = "http://127.0.0.1:1/prefix";
  config.http_timeout_ms = 2000;
  const auto extenders = Extenders::create({config});
  ASSERT_TRUE(extenders) << extenders.error().message;
  const auto decision = choose(**extenders);
  EXPECT_EQ(decision.outcome, Decision::Outcome::kError);
  EXPECT_NE(decision.error.find("http://127.0.0.1:1/prefix"), std::string::npos) << decision.error;
}

}  // namespace
}  // namespace berth::scheduler
