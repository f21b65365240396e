// A pod that somebody else changes between the moment at which an eviction looked at it and the one at which it is deleted.
#include "tests/apiserver/wrapped_cache.h"

namespace berth::apiserver::testing {

/// Lets somebody in before a write to a pod, once.
class Interrupted final : public WrappedCache {
 public:
  using WrappedCache::WrappedCache;
  std::function<void()> first;
  void propose(Proposal proposal, std::function<void(ProposeResult)> result) override {
    if (proposal.key.starts_with("//pods/"))
      if (const auto before = std::exchange(first, nullptr)) before();
    below_->propose(std::move(proposal), std::move(result));
  }
};

class EvictionRace : public ServerTest {
 protected:
  void SetUp() override {
    wrap_cache_ = [&](std::unique_ptr<ObjectCache> cache) {
      auto interrupted = std::make_unique<Interrupted>(std::move(cache));
      cache_ = interrupted.get();
      return interrupted;
    };
    start({});
    create("/apis/policy/v1/namespaces/default/poddisruptionbudgets",
           R"({"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{}}})");
    create(kPods, pod("p"));
    post(kPod + "/binding", R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n1"}})");
  }
  void report(const std::string& phase, bool is_ready) {
    const auto response = patch(
        kPod + "/status",
        fmt::format(R"({{"status":{{"phase":"{}","conditions":[{{"type":"Ready","status":"{}"}}]}}}})", phase, is_ready ? "True" : "False"),
        "strategic");
    EXPECT_EQ(response->status, 200) << response->body;
  }
  /// By the budget's own controller.
  void count(int healthy, int allowed) {
    const auto response = patch("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b/status",
                                fmt::format(R"({{"status":{{"observedGeneration":1,"disruptionsAllowed":{},"currentHealthy":{},)"
                                            R"("desiredHealthy":1,"expectedPods":2}}}})",
                                            allowed, healthy));
    EXPECT_EQ(response->status, 200) << response->body;
  }
  Response evict_and(std::function<void()> meanwhile, const std::string& options = "{}") {
    cache_->first = std::move(meanwhile);
    auto response =
        post(kPod + "/eviction", R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":)" + options + "}");
    EXPECT_EQ(cache_->first, nullptr) << "nobody wrote to the pod";
    return response;
  }
  void expect_unharmed() {
    const auto document = read(kPod);
    EXPECT_TRUE(text(document, {"metadata", "deletionTimestamp"}).empty());
    EXPECT_EQ(json::serialize(document).find("DisruptionTarget"), std::string::npos);
  }
  const std::string kPod = std::string(kPods) + "/p";
  Interrupted* cache_ = nullptr;
};

TEST_F(EvictionRace, WhoIsPendingNoLongerHasABudgetThatHasASay) {
  count(1, 0);
  const auto refused = evict_and([&] { report("Running", true); });
  EXPECT_STATUS(refused, 429, "TooManyRequests");
  EXPECT_NE(refused->body.find("needs 1 healthy pods and has 1 currently"), std::string::npos) << refused->body;
  expect_unharmed();
}

TEST_F(EvictionRace, WhoIsPendingNoLongerGoesWhereTheBudgetAllowsIt) {
  count(2, 1);
  EXPECT_EQ(evict_and([&] { report("Running", true); })->status, 201);
  EXPECT_FALSE(text(read(kPod), {"metadata", "deletionTimestamp"}).empty());
  EXPECT_EQ(json::get_int(read("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b"), {"status", "disruptionsAllowed"}), 0)
      << "it is one that was ready";
}

TEST_F(EvictionRace, WhoIsPendingStillGoesUnasked) {
  count(1, 0);
  EXPECT_EQ(evict_and([&] { patch(kPod, R"({"metadata":{"labels":{"new":"one"}}})"); })->status, 201);
}

TEST_F(EvictionRace, WhoHasBecomeReadyIsLeftToTheBudgetsNextLook) {
  report("Running", false);
  count(1, 0);
  const auto refused = evict_and([&] { report("Running", true); });
  EXPECT_STATUS(refused, 429, "TooManyRequests");
  EXPECT_NE(refused->body.find("The disruption budget b is still being processed by the server."), std::string::npos) << refused->body;
  expect_unharmed();
}

TEST_F(EvictionRace, WhoeverAskedForOneStateIsToldThatItIsAnother) {
  const auto revision = text(read(kPod), {"metadata", "resourceVersion"});
  EXPECT_STATUS(evict_and([&] { patch(kPod, R"({"metadata":{"labels":{"new":"one"}}})"); },
                          fmt::format(R"({{"preconditions":{{"resourceVersion":"{}"}}}})", revision)),
                409, "Conflict");
  expect_unharmed();
}

}  // namespace berth::apiserver::testing
