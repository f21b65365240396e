// Extenders that take their time: what goes on meanwhile, and what their answers are worth when they come.
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::seconds;

/// One extender that has a say about pods which ask for example.com/gpu, and says it when the test lets it.
class SlowExtender : public ::testing::Test {
 protected:
  SlowExtender() : world_(options()) {}

  WorldOptions options() {
    WorldOptions out{.nodes = 2, .node_cpu = "4", .node_capacity = {{"example.com/gpu", "8"}}};
    scheduler::config::Extender extender;
    extender.url_prefix = "http://extender";
    extender.filter_verb = "filter";
    extender.node_cache_capable = true;
    extender.managed_resources = {{"example.com/gpu", false}};
    out.scheduler.extenders = {extender};
    out.scheduler.extender_post = [this](std::size_t, const std::string& verb, const std::string& body) -> Result<std::string> {
      asked_.push_back(verb + " " + std::string(json::get_string(*json::parse(body), {"Pod", "metadata", "name"})));
      return answer_(*json::parse(body));
    };
    out.scheduler.aside = [this](std::function<void()> job) { jobs_.push_back(std::move(job)); };
    return out;
  }
  /// The extender answers what it was asked first.
  void answer() {
    ASSERT_FALSE(jobs_.empty());
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
    world_.run(seconds(2));
  }
  void pod(const std::string& name, const std::string& cpu, bool is_managed) {
    world_.create(fmt::format(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: c, image: nginx, resources: {{requests: {{cpu: "
        "\"{}\"{}}}, limits: {{cpu: \"{}\"{}}}}}}}]}}\n",
        name, cpu, is_managed ? ", example.com/gpu: \"1\"" : "", cpu, is_managed ? ", example.com/gpu: \"1\"" : ""));
    world_.run(seconds(2));
  }
  std::string node_of(const std::string& name) { return std::string(json::get_string(world_.get("", "pods", name), {"spec", "nodeName"})); }

  std::vector<std::string> asked_;
  std::function<Result<std::string>(const json::Value&)> answer_ = [](const json::Value& arguments) -> Result<std::string> {
    return fmt::format(R"({{"NodeNames":{}}})", json::serialize(*json::find(arguments, {"NodeNames"})));
  };
  std::deque<std::function<void()>> jobs_;
  World world_;
};

TEST_F(SlowExtender, HoldsUpNeitherEventsNorPodsItHasNoSayAbout) {
  pod("asked", "1", true);
  ASSERT_EQ(jobs_.size(), 1u);
  for (int i = 0; i < 3; ++i) pod(fmt::format("plain-{}", i), "100m", false);
  for (int i = 0; i < 3; ++i) EXPECT_NE(node_of(fmt::format("plain-{}", i)), "");
  EXPECT_EQ(node_of("asked"), "");
  answer();
  EXPECT_NE(node_of("asked"), "");
}

TEST_F(SlowExtender, IsAskedAboutOnePodAtATimeInTheirOrder) {
  for (const char* name : {"a", "b", "c"}) pod(name, "1", true);
  EXPECT_EQ(jobs_.size(), 1u);
  for (int i = 0; i < 3; ++i) answer();
  EXPECT_EQ(asked_, (std::vector<std::string>{"filter a", "filter b", "filter c"}));
  for (const char* name : {"a", "b", "c"}) EXPECT_NE(node_of(name), "") << name;
}

TEST_F(SlowExtender, AnAnswerThatIsTrueNoLongerIsNotCarriedOut) {
  pod("asked", "3", true);
  ASSERT_EQ(jobs_.size(), 1u);
  // Others take the room on every node meanwhile.
  for (int i = 0; i < 2; ++i) pod(fmt::format("quick-{}", i), "2", false);
  answer();
  EXPECT_EQ(node_of("asked"), "");
  EXPECT_TRUE(jobs_.empty()) << "the engine alone says no by now";
  client::Call call{.verb = "delete", .gvr = {"", "v1", "pods"}, .ns = "default", .name = "quick-0", .query = "gracePeriodSeconds=0"};
  ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
  world_.run(seconds(15));
  answer();
  EXPECT_NE(node_of("asked"), "");
}

TEST_F(SlowExtender, APodThatIsGoneWhenTheAnswerComesIsForgotten) {
  pod("asked", "1", true);
  client::Call call{.verb = "delete", .gvr = {"", "v1", "pods"}, .ns = "default", .name = "asked", .query = "gracePeriodSeconds=0"};
  ASSERT_TRUE(world_.client().call_and_wait(std::move(call)));
  world_.run(seconds(1));
  pod("next", "1", true);
  answer();
  answer();
  EXPECT_NE(node_of("next"), "");
}

TEST_F(SlowExtender, WhatHappenedWhileItRefusedIsNotMissed) {
  answer_ = [](const json::Value&) -> Result<std::string> { return R"({"NodeNames":[],"FailedNodes":{}})"; };
  pod("asked", "1", true);
  pod("other", "1", false);
  answer();
  EXPECT_EQ(node_of("asked"), "");
  // An extender's refusal may be cured by anything: what happened while it was asked is reason enough to ask again.
  world_.run(seconds(15));
  EXPECT_FALSE(jobs_.empty());
}

}  // namespace
}  // namespace berth::integration
