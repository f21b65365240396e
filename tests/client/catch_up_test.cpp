// Who comes to lead is to know what whoever led before has written (Informer::catch_up).
#include "tests/client/informer_fixture.h"

namespace berth::client::test {
namespace {

class CatchUp : public InformerTest {};

TEST_F(CatchUp, WhoCatchesUpKnowsWhatWasWrittenWhileTheWatchWasAway) {
  for (const bool is_near : {false, true}) {
    recorder = {};
    const auto informer = start({}, is_near);
    api.fail_next(1000, 503, "ServiceUnavailable");
    api.end_watches();
    loop.run_for(9s);
    api.fail_next(0, 0, "");
    EXPECT_EQ(api.open_watches(), 0U) << "it pauses for seconds now";
    api.put("default", is_near ? "near" : "far");
    int told = 0;
    informer->catch_up([&] {
      ++told;
      expect_same_state(*informer);
    });
    loop.run_ready();
    EXPECT_EQ(told, 1) << "at once, whatever pause there was";
    api.put("default", "later");
    api.remove("default", "later");
    loop.run_for(1min);
    EXPECT_EQ(told, 1);
    EXPECT_EQ(api.open_watches(), 1U);
    expect_same_state(*informer);
  }
}

TEST_F(CatchUp, WhoCatchesUpDoesNotBelieveAWatchThatIsSilent) {
  const auto informer = start();
  int told = 0;
  api.is_silent = true;
  informer->catch_up([&] { ++told; });
  loop.run_for(1min);
  EXPECT_EQ(told, 0) << "nobody has answered";
  api.is_silent = false;
  informer->catch_up([&] { ++told; });
  loop.run_ready();
  EXPECT_EQ(told, 2) << "who asked before knows no less";
}

TEST_F(CatchUp, AListThatBeganBeforeProvesNothingToWhoCatchesUp) {
  for (const bool is_near : {false, true}) {
    recorder = {};
    api.lists = api.watches_started = 0;
    auto informer = std::make_unique<Informer>(is_near ? near : client, kPods);
    informer->add_handler(recorder.handler());
    int told = 0;
    informer->on_synced([&, raw = informer.get()] {
      raw->catch_up([&, raw] {
        ++told;
        expect_same_state(*raw);
      });
      EXPECT_EQ(told, 0);
    });
    informer->start();
    loop.run_ready();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(api.lists, is_near ? 0 : 1) << "the watch after it does";
  }
}

TEST_F(CatchUp, AListAfterwardsIsEnoughForWhoCatchesUp) {
  api.put("default", "a");
  const auto informer = start();
  api.end_watches();
  api.put("default", "b");
  api.compact(true);
  int told = 0;
  informer->catch_up([&] {
    ++told;
    expect_same_state(*informer);
  });
  loop.run_ready();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(api.lists, 2);
}

TEST_F(CatchUp, AKindThatIsNotServedIsCaughtUpWith) {
  api.fail_next(1000, 404, "NotFound");
  Informer informer(client, {"apps", "v1", "deployments"});
  informer.start();
  loop.run_for(5s);
  int told = 0;
  informer.catch_up([&] { ++told; });
  loop.run_ready();
  EXPECT_EQ(told, 1);
}

TEST_F(CatchUp, WhoAsksWhileAKindIsFoundMissingOrForbiddenIsToldSoon) {
  for (const bool is_near : {false, true})
    for (const int status : {404, 403}) {
      api.fail_next(1000, status, status == 404 ? "NotFound" : "Forbidden");
      Informer informer(is_near ? near : client, {"apps", "v1", "deployments"}, {.is_optional = true});
      int told = 0;
      informer.start();
      loop.post([&] { informer.catch_up([&] { ++told; }); });
      loop.run_for(1s);
      EXPECT_EQ(told, 1) << is_near << ", " << status;
      const auto asked = api.queries.size();
      loop.run_for(20s);
      EXPECT_EQ(api.queries.size(), asked) << "and nobody is asked again for it";
    }
}

TEST_F(CatchUp, OfAServerThatDoesNotSayItASecondWithoutNewsIsTakenForCurrent) {
  api.knows_current = false;
  const auto informer = start();
  int told = 0;
  informer->catch_up([&] { ++told; });
  for (int i = 0; i < 6; ++i) {
    loop.run_for(900ms);
    EXPECT_EQ(told, 0);
    api.put("default", "p" + std::to_string(i));
  }
  loop.run_for(2100ms);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(api.lists, 1) << "nothing is read again for it";
}

TEST_F(CatchUp, ALostWatchIsBehindUntilWhatCameMeanwhileIsKnown) {
  for (const bool is_near : {false, true}) {
    recorder = {};
    const auto informer = start({}, is_near);
    std::vector<bool> told;
    informer->on_behind([&](bool is_behind) {
      told.push_back(is_behind);
      if (!is_behind) expect_same_state(*informer);
    });
    api.put("default", is_near ? "first-near" : "first-far");
    loop.run_for(10s);
    api.end_watches();
    loop.run_ready();
    EXPECT_EQ(told, std::vector<bool>{}) << "an end in order";
    api.end_watches();
    loop.run_ready();
    EXPECT_EQ(told, std::vector{true}) << "too soon to be one";
    loop.run_for(10s);
    EXPECT_EQ(told, (std::vector{true, false}));
    told.clear();
    api.fail_next(1, 500, "InternalError");
    api.end_watches();
    api.put("default", is_near ? "near" : "far");
    loop.run_ready();
    EXPECT_EQ(told, std::vector{true});
    loop.run_for(10s);
    EXPECT_EQ(told, (std::vector{true, false}));
    api.expire_running_watches();
    api.put("default", is_near ? "later-near" : "later-far");
    loop.run_for(10s);
    EXPECT_EQ(told, (std::vector{true, false, true, false})) << "by a list as well";
  }
}

const Gvr kMaps{"", "v1", "configmaps"};

TEST_F(CatchUp, OneThatIsBackBringsTheOthersBack) {
  InformerFactory factory(client);
  std::vector<bool> told;
  factory.on_behind([&](bool is_behind) { told.push_back(is_behind); });
  for (const Gvr& kind : {kPods, kMaps, Gvr{"apps", "v1", "deployments"}}) factory.get(kind);
  factory.start();
  loop.run_for(1s);
  EXPECT_EQ(api.open_watches(), 3U);
  EXPECT_TRUE(told.empty());
  api.fail_next(1000, 503, "ServiceUnavailable");
  api.end_watches();
  loop.run_for(1min);
  EXPECT_EQ(told, std::vector{true}) << "for as long as nobody is back";
  api.fail_next(0, 0, "");
  while (api.open_watches() == 0) loop.run_for(10ms);
  EXPECT_EQ(api.open_watches(), 3U);
  EXPECT_EQ(told, (std::vector{true, false}));
}

TEST_F(CatchUp, AKindThatIsNotServedDoesNotEndTheWaitForTheOthers) {
  InformerFactory factory(client);
  std::vector<bool> told;
  factory.on_behind([&](bool is_behind) { told.push_back(is_behind); });
  api.missing_resource = "widgets";
  for (const Gvr& kind : {kPods, kMaps, Gvr{"example.com", "v1", "widgets"}}) factory.get(kind);
  factory.start();
  loop.run_for(2s);
  EXPECT_TRUE(factory.has_synced());
  api.fail_next(1000, 503, "ServiceUnavailable");
  api.end_watches();
  loop.run_for(10min);
  EXPECT_EQ(told, std::vector{true}) << "nobody knows anything new";
  api.fail_next(0, 0, "");
  loop.run_for(1min);
  EXPECT_EQ(told, (std::vector{true, false}));
}

TEST_F(CatchUp, WhoMustListAnewAndCannotIsBehind) {
  InformerFactory factory(client);
  std::vector<bool> told;
  factory.on_behind([&](bool is_behind) { told.push_back(is_behind); });
  factory.get(kPods);
  factory.start();
  loop.run_for(2s);
  api.expire_running_watches();
  loop.run_for(1s);
  EXPECT_EQ(told, (std::vector{true, false}));
  api.fail_next(3, 503, "ServiceUnavailable");
  api.expire_running_watches();
  loop.run_for(100ms);
  EXPECT_EQ(told, (std::vector{true, false, true}));
  loop.run_for(1min);
  EXPECT_EQ(told, (std::vector{true, false, true, false}));
}

TEST_F(CatchUp, WhoDoesNotComeBackIsWaitedForHalfAMinute) {
  InformerFactory factory(client);
  std::vector<bool> told;
  factory.on_behind([&](bool is_behind) { told.push_back(is_behind); });
  for (const Gvr& kind : {kPods, kMaps}) factory.get(kind);
  factory.start();
  loop.run_for(2s);
  api.refused_resource = "configmaps";
  api.end_watches();
  loop.run_for(29s);
  EXPECT_EQ(told, std::vector{true});
  loop.run_for(2s);
  EXPECT_EQ(told, (std::vector{true, false}));
  api.fail_next(1, 503, "ServiceUnavailable");
  api.end_watches();
  loop.run_for(2s);
  EXPECT_EQ(told, (std::vector{true, false, true, false})) << "who is given up is waited for no more";
  api.refused_resource.clear();
  loop.run_for(1min);
  api.refused_resource = "configmaps";
  told.clear();
  api.end_watches();
  loop.run_for(2s);
  EXPECT_EQ(told, std::vector{true}) << "it had been back";
}

}  // namespace
}  // namespace berth::client::test
