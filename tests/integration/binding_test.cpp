// From the decision to the bound pod: what is written before, what an answer that is lost or bad leaves, and what is told of it.
#include "tests/integration/world.h"

namespace berth::integration {
namespace {

using std::chrono::seconds;

class BindingStories : public ::testing::Test {
 protected:
  /// What happens to the scheduler's next binding; the request is carried out first where the answer alone is lost.
  enum class Fate { kDone, kAnswerLost, kLost, kRefused };

  World& begin(WorldOptions options = {}) {
    options.intercept = [this](const net::HttpRequest& request, std::function<void(net::HttpResponse)>& done) {
      if (!request.path.ends_with("/binding")) return false;
      const Fate fate = std::exchange(fate_, Fate::kDone);
      if (fate == Fate::kDone) return false;
      if (fate == Fate::kAnswerLost) world_->client().transport()->send(request, [](const net::HttpResponse&) {});
      ++struck_;
      if (fate == Fate::kRefused)
        done({409, {}, R"({"kind":"Status","status":"Failure","message":"made up","reason":"Conflict","code":409})"});
      else
        world_->loop().schedule_after(seconds(1), [done] { done({.status = 0, .headers = {}, .body = "connection reset"}); });
      return true;
    };
    world_ = std::make_unique<World>(std::move(options));
    return *world_;
  }
  void pod(const std::string& name, const std::string& more = "") {
    world_->create(fmt::format("apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{{} containers: [{{name: c, image: nginx}}]}}\n",
                               name, more));
  }
  std::string node(const std::string& name) { return std::string(json::get_string(world_->get("", "pods", name), {"spec", "nodeName"})); }
  std::vector<json::Value> events(const std::string& name, std::string_view reason) {
    std::vector<json::Value> out;
    auto page = world_->client().list_and_wait({"events.k8s.io", "v1", "events"}, "default");
    EXPECT_TRUE(page);
    for (const json::Value& one : page->items)
      if (json::get_string(one, {"regarding", "name"}) == name && json::get_string(one, {"reason"}) == reason) out.push_back(one);
    return out;
  }

  Fate fate_ = Fate::kDone;
  int struck_ = 0;
  std::unique_ptr<World> world_;
};

TEST_F(BindingStories, ABindingWhoseAnswerIsLostIsNoFailure) {
  World& world = begin();
  fate_ = Fate::kAnswerLost;
  pod("p");
  world.run(seconds(10));
  ASSERT_EQ(struck_, 1);
  EXPECT_NE(node("p"), "");
  EXPECT_TRUE(events("p", "FailedScheduling").empty());
}

TEST_F(BindingStories, ABindingThatIsLostIsMadeAgain) {
  World& world = begin();
  fate_ = Fate::kLost;
  pod("p");
  world.run(seconds(30));
  ASSERT_EQ(struck_, 1);
  EXPECT_NE(node("p"), "");
  EXPECT_EQ(events("p", "Scheduled").size(), 1U);
}

TEST_F(BindingStories, WhatIsSaidOfARefusedBindingIsItsReleases) {
  for (const bool is_old : {false, true}) {
    WorldOptions options;
    if (is_old) options.scheduler.profiles = {placement::default_profile(placement::Era::k120)};
    World& world = begin(std::move(options));
    fate_ = Fate::kRefused;
    pod("p");
    world.run(seconds(30));
    EXPECT_NE(node("p"), "") << "it is tried again";
    const auto told = events("p", "FailedScheduling");
    ASSERT_EQ(told.size(), 1U);
    const auto note = json::get_string(told[0], {"note"});
    EXPECT_EQ(note.starts_with("binding rejected: "), is_old) << note;
    EXPECT_NE(note.find("made up"), std::string::npos) << note;
    world_.reset();
  }
}

TEST_F(BindingStories, EventsNameTheMachineThatDecided) {
  WorldOptions options;
  options.scheduler.host = "machine-7";
  World& world = begin(std::move(options));
  pod("p");
  world.run(seconds(5));
  const auto told = events("p", "Scheduled");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(json::get_string(told[0], {"reportingController"}), "default-scheduler");
  EXPECT_EQ(json::get_string(told[0], {"reportingInstance"}), "default-scheduler-machine-7");
}

/// A device of node-2, and claims for one.
class ClaimStories : public BindingStories {
 protected:
  void SetUp() override {
    World& world = begin();
    world.create("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n");
    world.create(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d.example.com, nodeName: node-2, pool: "
        "{name: node-2, generation: 1, resourceSliceCount: 1}, devices: [{name: g0}]}\n");
    world.run(seconds(2));
  }
  void claim(const std::string& name) {
    world_->create(
        fmt::format("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {}}}\nspec: {{devices: {{requests: "
                    "[{{name: r, exactly: {{deviceClassName: gpu}}}}]}}}}\n",
                    name));
  }
  void user(const std::string& name, const std::string& of) {
    pod(name, fmt::format("resourceClaims: [{{name: c, resourceClaimName: {}}}],", of));
  }
  json::Value claim_now(const std::string& name) { return world_->get("resource.k8s.io", "resourceclaims", name); }
  std::string users_of(const std::string& name) {
    std::string out;
    const json::Value now = claim_now(name);
    for (const json::Value& one : json::get_array(now, {"status", "reservedFor"}))
      out += fmt::format("{} ", json::get_string(one, {"name"}));
    return out;
  }
};

TEST_F(ClaimStories, AClaimIsAllocatedKeptAndReservedBeforeItsPodIsBound) {
  claim("one");
  user("p", "one");
  world_->run(seconds(10));
  EXPECT_EQ(node("p"), "node-2");
  const json::Value now = claim_now("one");
  const json::Value& given = json::get_array(now, {"status", "allocation", "devices", "results"})[0];
  EXPECT_EQ(json::get_string(given, {"device"}), "g0");
  EXPECT_FALSE(json::get_string(now, {"status", "allocation", "allocationTimestamp"}).empty());
  ASSERT_EQ(json::get_array(now, {"metadata", "finalizers"}).size(), 1U) << json::serialize(now);
  const json::Value& user = json::get_array(now, {"status", "reservedFor"})[0];
  EXPECT_EQ(json::get_string(user, {"uid"}), json::get_string(world_->get("", "pods", "p"), {"metadata", "uid"}));
  EXPECT_EQ(users_of("one"), "p ");
}

TEST_F(ClaimStories, ASecondUserOfAClaimIsAddedAndFollowsItsDevice) {
  claim("one");
  user("p", "one");
  world_->run(seconds(10));
  user("q", "one");
  world_->run(seconds(10));
  EXPECT_EQ(node("q"), "node-2");
  EXPECT_EQ(users_of("one"), "p q ");
  EXPECT_EQ(json::get_array(claim_now("one"), {"metadata", "finalizers"}).size(), 1U);
}

TEST_F(ClaimStories, ADeviceIsGivenOnceAndAgainWhenItsClaimIsGone) {
  claim("one");
  claim("two");
  user("p", "one");
  world_->run(seconds(10));
  user("q", "two");
  world_->run(seconds(10));
  EXPECT_EQ(node("q"), "");
  EXPECT_EQ(json::find(claim_now("two"), {"status", "allocation"}), nullptr);
  client::Call call;
  call.verb = "delete";
  call.ns = "default";
  call.gvr = {"", "v1", "pods"};
  call.name = "p";
  call.query = "gracePeriodSeconds=0";
  ASSERT_TRUE(world_->client().call_and_wait(call));
  world_->run(seconds(30));
  EXPECT_EQ(node("q"), "node-2");
  EXPECT_EQ(users_of("two"), "q ");
}

/// The reservation is written, the binding fails: the claim is given back, and the next attempt has it again.
TEST_F(ClaimStories, ARefusedBindingKeepsNoReservation) {
  claim("one");
  fate_ = Fate::kRefused;
  user("p", "one");
  world_->run(seconds(40));
  ASSERT_EQ(struck_, 1);
  EXPECT_EQ(node("p"), "node-2");
  EXPECT_EQ(users_of("one"), "p ") << "once, not twice";
}

}  // namespace
}  // namespace berth::integration
