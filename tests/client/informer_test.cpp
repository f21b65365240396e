#include "client/informer.h"

#include <gtest/gtest.h>

#include "tests/client/informer_fixture.h"

namespace berth::client::test {
namespace {

using namespace std::chrono_literals;

TEST_F(InformerTest, ListsInPagesThenFollowsTheWatch) {
  for (int i = 0; i < 25; ++i) api.put("default", fmt::format("p{:02}", i));
  const auto informer = start({.page = 10});
  EXPECT_TRUE(informer->has_synced());
  EXPECT_EQ(api.lists, 3);
  EXPECT_EQ(informer->size(), 25U);
  api.put("default", "p05", R"({"nodeName":"n1"})");
  api.put("default", "new");
  api.remove("default", "p00");
  loop.run_ready();
  expect_same_state(*informer);
  const std::vector<std::string> last(recorder.log.end() - 3, recorder.log.end());
  EXPECT_EQ(last, (std::vector<std::string>{"~default/p05", "+default/new", "-default/p00"}));
  EXPECT_EQ(informer->revision(), api.revision());
}

TEST_F(InformerTest, ListedObjectsCarryTheirKind) {
  api.put("default", "a");
  const auto informer = start();
  const auto document = informer->get("default", "a")->document();
  EXPECT_EQ(json::get_string(document, {"kind"}), "Pod");
  EXPECT_EQ(json::get_string(document, {"apiVersion"}), "v1");
}

TEST_F(InformerTest, SyncedOnlyAfterTheHandlersHaveRun) {
  api.put("default", "a");
  Informer informer(client, kPods);
  std::size_t seen_at_sync = 99;
  informer.add_handler(recorder.handler());
  informer.on_synced([&] { seen_at_sync = recorder.log.size(); });
  EXPECT_FALSE(informer.has_synced());
  informer.start();
  EXPECT_FALSE(informer.has_synced());
  loop.run_ready();
  EXPECT_EQ(seen_at_sync, 1U);
}

TEST_F(InformerTest, AHandlerAddedLaterSeesWhatIsCached) {
  api.put("default", "a");
  const auto informer = start();
  Recorder late;
  informer->add_handler(late.handler());
  EXPECT_EQ(late.log, std::vector<std::string>{"+default/a"});
  api.put("default", "b");
  loop.run_ready();
  EXPECT_EQ(late.log.size(), 2U);
}

TEST_F(InformerTest, AnEndedWatchGoesOnWithoutAList) {
  api.put("default", "a");
  const auto informer = start();
  loop.run_for(5min);
  api.end_watches();
  api.put("default", "b");  // while nobody watches
  loop.run_ready();
  EXPECT_EQ(api.lists, 1);
  EXPECT_EQ(api.watches_started, 2);
  expect_same_state(*informer);
}

TEST_F(InformerTest, ALostConnectionGoesOnAfterAPauseFromTheLastRevision) {
  api.put("default", "a");
  const auto informer = start();
  api.put("default", "b");
  loop.run_ready();
  api.cut_watches(R"({"type":"ADDED","object":{"metadata":{"name":"half)");
  api.put("default", "c");
  loop.run_ready();
  EXPECT_EQ(api.watches_started, 1);
  loop.run_for(300ms);
  EXPECT_EQ(api.watches_started, 2);
  EXPECT_EQ(api.lists, 1);
  expect_same_state(*informer);
}

TEST_F(InformerTest, WhoWaitsOnTheLoopComesBetweenTheEventsOfALongWatch) {
  const auto informer = start();
  std::size_t seen_between = 0;
  informer->add_handler({.on_add = [&](const ObjectRef& object) {
    // As the answer to what a handler writes.
    if (object->name() == "p0000") loop.post([&] { seen_between = recorder.log.size(); });
  }});
  for (int i = 0; i < 2000; ++i) api.put("default", fmt::format("p{:04}", i));
  api.end_watches();
  loop.run_ready();
  EXPECT_GT(seen_between, 0U);
  EXPECT_LT(seen_between, 1000U);
  ASSERT_EQ(recorder.log.size(), 2000U) << "the watch's end comes after its events";
  EXPECT_TRUE(std::is_sorted(recorder.log.begin(), recorder.log.end()));
  EXPECT_EQ(informer->revision(), api.revision());
  expect_same_state(*informer);
}

TEST_F(InformerTest, WhoWaitsOnTheLoopComesBetweenTheObjectsOfALongList) {
  for (const bool is_near : {false, true}) {
    recorder = {};
    for (int i = 0; i < 1000; ++i) api.put("default", fmt::format("{}-{}", is_near, i));
    Informer informer(is_near ? near : client, kPods);
    informer.add_handler(recorder.handler());
    std::set<std::size_t> seen;
    std::function<void()> look = [&] {
      const auto known = recorder.state.size();
      if (!seen.insert(known).second && informer.has_synced()) return;
      EXPECT_EQ(informer.revision() > 0, informer.has_synced()) << "half of a list is of no revision";
      if (known > 0 && known < 1000) api.put("default", "late-" + std::to_string(known));  // Comes by the watch, after the list.
      loop.post(look);
    };
    informer.start();
    loop.post(look);
    loop.run_ready();
    EXPECT_GT(seen.size(), 4U) << is_near;
    expect_same_state(informer);
  }
}

TEST_F(InformerTest, WhatWaitsOfAWatchThatExpiredIsNotTold) {
  const auto informer = start();
  for (int i = 0; i < 600; ++i) api.put("default", fmt::format("p{:03}", i));
  api.expire_running_watches();
  api.put("default", "later");
  loop.run_for(2s);
  EXPECT_EQ(recorder.log.size(), 601U) << "each once: by the watch, or by the list after it";
  EXPECT_EQ(api.open_watches(), 1U);
  expect_same_state(*informer);
}

TEST_F(InformerTest, BookmarksMoveTheRevisionOn) {
  api.put("default", "a");
  const auto informer = start();
  api.bookmark();
  loop.run_ready();
  EXPECT_EQ(informer->revision(), api.revision());
  api.compact(false);
  api.end_watches();
  loop.run_for(1s);
  EXPECT_EQ(api.lists, 1) << "the bookmark's revision is new enough to resume from";
}

class Expiry : public InformerTest, public ::testing::WithParamInterface<int> {};

TEST_P(Expiry, RelistsAndTellsOnlyTheDifference) {
  for (const auto* name : {"kept", "changed", "gone", "remade"}) api.put("default", name);
  const auto informer = start();
  recorder.log.clear();
  const auto uid_before = informer->get("default", "remade")->uid();
  api.cut_watches("");
  api.put("default", "changed", R"({"nodeName":"n"})");
  api.remove("default", "gone");
  api.remove("default", "remade");
  api.put("default", "remade");
  api.put("default", "added");
  if (GetParam() == 2) {
    // The watch is expired while it runs.
    loop.run_for(300ms);
    api.expire_running_watches();
  } else {
    api.compact(GetParam() == 1);
  }
  loop.run_for(2s);
  expect_same_state(*informer);
  EXPECT_NE(informer->get("default", "remade")->uid(), uid_before);
  std::sort(recorder.log.begin(), recorder.log.end());
  EXPECT_EQ(recorder.log,
            (std::vector<std::string>{"+default/added", "+default/remade", "-default/gone", "-default/remade", "~default/changed"}));
  EXPECT_EQ(api.open_watches(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Forms, Expiry, ::testing::Values(0, 1, 2), [](const auto& info) {
  return std::string(info.param == 0 ? "HttpStatus" : info.param == 1 ? "ErrorEventAtStart" : "ErrorEventWhileRunning");
});

TEST_F(InformerTest, AnExpiredContinueTokenStartsTheListAnew) {
  for (int i = 0; i < 25; ++i) api.put("default", fmt::format("p{:02}", i));
  api.expire_continue_tokens();
  const auto informer = start({.page = 10});
  loop.run_for(1s);
  expect_same_state(*informer);
}

TEST_F(InformerTest, FailedListsAreRepeatedWithGrowingPauses) {
  api.put("default", "a");
  api.fail_next(6, 500, "InternalError");
  const auto informer = start();
  EXPECT_FALSE(informer->has_synced());
  EXPECT_EQ(api.queries.size(), 1U);
  loop.run_for(250ms);
  EXPECT_EQ(api.queries.size(), 2U);
  loop.run_for(20s);
  EXPECT_TRUE(informer->has_synced());
  expect_same_state(*informer);
}

TEST_F(InformerTest, AKindThatTheServerDoesNotServeHoldsNobodyUp) {
  api.put("default", "a");
  api.fail_next(3, 404, "NotFound");
  Informer informer(client, Gvr{"machine.example.com", "v1", "machines"});
  informer.start();
  loop.run_ready();
  EXPECT_TRUE(informer.has_synced());
  EXPECT_EQ(informer.size(), 0U);
  loop.run_for(62s);
  EXPECT_EQ(api.queries.size(), 3U) << "it is looked for every half a minute, however often it was not there";
  EXPECT_EQ(informer.size(), 0U);
  loop.run_for(31s);
  EXPECT_EQ(informer.size(), 1U) << "it is served by now";
}

TEST_F(InformerTest, TheCoreGroupIsNeverMissing) {
  api.put("default", "a");
  api.fail_next(1, 404, "NotFound");
  const auto informer = start();
  EXPECT_FALSE(informer->has_synced());
  loop.run_for(1s);
  expect_same_state(*informer);
}

TEST_F(InformerTest, HonoursRetryAfter) {
  api.fail_next(1, 429, "TooManyRequests", 7);
  const auto informer = start();
  loop.run_for(6s);
  EXPECT_FALSE(informer->has_synced());
  loop.run_for(2s);
  EXPECT_TRUE(informer->has_synced());
}

TEST_F(InformerTest, AServerThatAlwaysExpiresIsNotHammered) {
  api.put("default", "a");
  const auto informer = start();
  for (int i = 0; i < 600; ++i) {
    api.expire_running_watches();
    loop.run_for(100ms);
  }
  EXPECT_LT(api.lists, 20);
}

TEST_F(InformerTest, ListIsTheTruthEvenWhenRevisionsWentBack) {
  api.put("default", "a");
  const auto informer = start();
  for (int i = 0; i < 5; ++i) api.put("default", "a");
  loop.run_ready();
  api.cut_watches("");
  FakeApi restored;
  restored.put("default", "a", R"({"restored":true})");
  std::swap(api, restored);
  restored = FakeApi{};
  api.fail_next(1, 410, "Expired");
  loop.run_for(2s);
  EXPECT_EQ(informer->get("default", "a")->revision(), 11);
}

TEST_F(InformerTest, IndexesFollowTheObjects) {
  const auto node_of = [](const Object& object) {
    const auto document = object.document();
    const auto node = json::get_string(document, {"spec", "nodeName"});
    return node.empty() ? std::vector<std::string>{} : std::vector<std::string>{std::string(node)};
  };
  api.put("default", "b", R"({"nodeName":"n1"})");
  api.put("default", "a", R"({"nodeName":"n1"})");
  Informer informer(client, kPods);
  informer.add_index("node", node_of);
  informer.start();
  loop.run_ready();
  const auto names = [&](std::string_view node) {
    std::string out;
    for (const auto& object : informer.by_index("node", node)) out += object->name();
    return out;
  };
  EXPECT_EQ(names("n1"), "ab");
  api.put("default", "a", R"({"nodeName":"n2"})");
  api.remove("default", "b");
  loop.run_ready();
  EXPECT_EQ(names("n1"), "");
  EXPECT_EQ(names("n2"), "a");
  api.put("default", "a", R"({"nodeName":"n2","priority":1})");
  loop.run_ready();
  ASSERT_EQ(names("n2"), "a");
  EXPECT_EQ(informer.by_index("node", "n2").front()->revision(), api.revision())
      << "an object that stays in its place is still the new one";
}

TEST_F(InformerTest, EachNamespaceInOrder) {
  for (const auto& [ns, name] : {std::pair{"b", "x"}, {"a", "y"}, {"a", "x"}, {"ab", "z"}}) api.put(ns, name);
  const auto informer = start();
  std::string all, in_a;
  informer->for_each([&](const ObjectRef& object) { all += object->key() + " "; });
  informer->for_each_in("a", [&](const ObjectRef& object) { in_a += object->name(); });
  EXPECT_EQ(all, "a/x a/y ab/z b/x ");
  EXPECT_EQ(in_a, "xy");
}

TEST_F(InformerTest, DestructionEndsTheWatchAndTheCallbacks) {
  auto informer = start();
  EXPECT_EQ(api.open_watches(), 1U);
  informer.reset();
  EXPECT_EQ(api.open_watches(), 0U);
  api.put("default", "a");
  loop.run_for(1h);
  EXPECT_TRUE(recorder.log.empty());
}

TEST_F(InformerTest, ASilentWatchIsGivenUpAfterItsTime) {
  const auto informer = start();
  loop.run_for(11min);
  EXPECT_GE(api.watches_started, 2);
  EXPECT_EQ(api.open_watches(), 1U);
}

TEST_F(InformerTest, WithinAProcessTheWatchBeginsWithWhatIsThere) {
  api.put("default", "a");
  api.put("default", "b");
  const auto informer = start({}, true);
  EXPECT_TRUE(informer->has_synced());
  EXPECT_EQ(api.lists, 0);
  EXPECT_EQ(recorder.log, (std::vector<std::string>{"+default/a", "+default/b"}));
  EXPECT_EQ(informer->revision(), api.revision());
  api.put("default", "a");
  api.remove("default", "b");
  loop.run_ready();
  EXPECT_EQ(recorder.log, (std::vector<std::string>{"+default/a", "+default/b", "~default/a", "-default/b"}));
  EXPECT_EQ(api.watches_started, 1);
}

TEST_F(InformerTest, WithinAProcessWhatWentWhileTheWatchWasAwayIsDeleted) {
  api.put("default", "a");
  api.put("default", "b");
  const auto informer = start({}, true);
  api.end_watches();
  api.remove("default", "a");
  api.compact(false);
  loop.run_for(1min);
  EXPECT_EQ(recorder.log.back(), "-default/a");
  expect_same_state(*informer);
}

TEST_F(InformerTest, WithinAProcessAWatchThatMayNotBeIsHandledAsAList) {
  api.fail_next(1, 403, "Forbidden");
  const auto optional = start({.is_optional = true}, true);
  EXPECT_TRUE(optional->has_synced());
  api.put("default", "a");
  loop.run_for(1min);
  expect_same_state(*optional);
}

TEST_F(InformerTest, WithinAProcessHalfOfWhatIsThereIsNotTakenForAllOfIt) {
  for (const char* line :
       {"", R"({"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12"}}})",
        R"({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","code":500}})"}) {
    recorder = {};
    api.put("default", "a");
    api.put("default", "b");
    api.break_next_listing(1, line);
    const auto informer = start({}, true);
    EXPECT_FALSE(informer->has_synced()) << line;
    EXPECT_TRUE(recorder.log.empty()) << line;
    loop.run_for(1min);
    EXPECT_TRUE(informer->has_synced()) << line;
    EXPECT_EQ(recorder.log, (std::vector<std::string>{"+default/a", "+default/b"})) << line;
    expect_same_state(*informer);
  }
}

TEST_F(InformerTest, WithinAProcessAWatchLastsHalfADay) {
  const auto informer = start({}, true);
  loop.run_for(11h);
  EXPECT_EQ(api.watches_started, 1);
  loop.run_for(14h);
  EXPECT_EQ(api.watches_started, 2);
  EXPECT_EQ(api.open_watches(), 1U);
}

class RandomFaults : public InformerTest, public ::testing::WithParamInterface<unsigned> {};

/// Whatever is lost on the way: no gap, no repeat, and in the end the server's state.
TEST_P(RandomFaults, ConvergeWithoutGapOrRepeat) {
  std::mt19937 random(GetParam());
  const auto roll = [&](unsigned n) { return random() % n; };
  const auto informer = start({.page = roll(2) * 3, .seed = GetParam()}, GetParam() % 2 == 0);
  for (int step = 0; step < 600; ++step) {
    const auto ns = std::string(1, static_cast<char>('a' + roll(3)));
    const auto name = std::string(1, static_cast<char>('p' + roll(6)));
    switch (roll(14)) {
      case 0:
        api.end_watches();
        break;
      case 1:
        api.cut_watches(roll(2) ? R"({"type":"ADD)" : "");
        break;
      case 2:
        api.compact(roll(2));
        break;
      case 3:
        api.expire_running_watches();
        break;
      case 4:
        api.bookmark();
        break;
      case 5: {
        static constexpr int kStatuses[] = {0, 429, 500, 503, 410, 403};
        api.fail_next(static_cast<int>(roll(4)), kStatuses[roll(6)], "Made");
        break;
      }
      case 6:
        loop.run_for(std::chrono::milliseconds(roll(3000)));
        break;
      case 7:
      case 8:
        api.remove(ns, name);
        break;
      case 9:
        api.expire_continue_tokens();
        break;
      default:
        api.put(ns, name, fmt::format(R"({{"step":{}}})", step));
    }
    if (roll(3) == 0) loop.run_ready();
  }
  api.fail_next(0, 0, "");
  loop.run_for(2min);
  expect_same_state(*informer);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFaults, ::testing::Range(1U, 60U));

}  // namespace
}  // namespace berth::client::test
