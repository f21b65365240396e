// The object cache's reads, writes and watches, one thread at a time (SPEC A4).
#include <gtest/gtest.h>

#include "apiserver/cache/object_codec.h"
#include "tests/apiserver/object_cache_fixture.h"

namespace berth::apiserver {
namespace {

using Texts = std::vector<std::string>;

class ObjectCacheTest : public CacheFixture {
 protected:
  void SetUp() override { open(); }
};

TEST_F(ObjectCacheTest, KeysHaveTheirDocumentedShape) {
  EXPECT_EQ(make_key("apps", "deployments", "default", "web"), "/apps/deployments/default/web");
  EXPECT_EQ(make_key("", "nodes", "", "n1"), "//nodes//n1");
  EXPECT_EQ(make_prefix("", "pods"), "//pods/");
  EXPECT_EQ(make_prefix("", "pods", "a"), "//pods/a/");
}

TEST_F(ObjectCacheTest, WriteCarriesItsRevisionAndMetadata) {
  auto result = propose(pod_proposal({.name = "p", .node = "n1", .labels = {{"app", "web"}}}, 0));
  ASSERT_TRUE(result.has_value());
  auto object = cache_->get("//pods/default/p");
  ASSERT_EQ(object, *result);
  EXPECT_EQ(object->revision, 1);
  EXPECT_EQ(object->create_revision, 1);
  EXPECT_EQ(revision_in_bytes(object), 1);
  EXPECT_EQ(object->key, "//pods/default/p");
  EXPECT_EQ(object->meta.ns, "default");
  EXPECT_EQ(object->meta.name, "p");
  EXPECT_EQ(object->meta.uid, "uid-p");
  EXPECT_EQ(*object->meta.labels().get("app"), "web");
  EXPECT_EQ(object->meta.field("spec.nodeName"), "n1");
  EXPECT_EQ(object->meta.field("metadata.name"), "p");
  EXPECT_EQ(object->meta.field("spec.unknown"), "");
  EXPECT_EQ(cache_->revision(), 1);
}

TEST_F(ObjectCacheTest, MetadataNotInTheBytesIsKeptToo) {
  auto proposal = pod_proposal({.name = "p"});
  proposal.meta.uid = "a uid that the text does not have";
  proposal.meta.fields = {{"spec.x", "neither this"}, {"spec.y", "nor that"}};
  auto object = *propose(std::move(proposal));
  EXPECT_EQ(object->meta.uid, "a uid that the text does not have");
  EXPECT_EQ(object->meta.field("spec.x"), "neither this");
  EXPECT_EQ(object->meta.field("spec.y"), "nor that");
  EXPECT_EQ(object->meta.name, "p");
}

TEST_F(ObjectCacheTest, ExpectationsDecide) {
  EXPECT_EQ(propose(pod_proposal({.name = "p"}, 7)).error(), ProposeError::kNotFound);
  EXPECT_EQ(propose(delete_proposal("default", "p")).error(), ProposeError::kNotFound);
  EXPECT_TRUE(propose(pod_proposal({.name = "p"}, 0)).has_value());
  EXPECT_EQ(propose(pod_proposal({.name = "p"}, 0)).error(), ProposeError::kExists);
  EXPECT_EQ(propose(pod_proposal({.name = "p"}, 2)).error(), ProposeError::kRevisionMismatch);
  EXPECT_EQ(propose(delete_proposal("default", "p", 2)).error(), ProposeError::kRevisionMismatch);
  auto updated = propose(pod_proposal({.name = "p", .node = "n2"}, 1));
  ASSERT_TRUE(updated.has_value());
  EXPECT_EQ((*updated)->revision, 2);
  EXPECT_EQ((*updated)->create_revision, 1);
  EXPECT_TRUE(propose(pod_proposal({.name = "p"})).has_value());
  auto deleted = propose(delete_proposal("default", "p", 3));
  ASSERT_TRUE(deleted.has_value());
  EXPECT_EQ((*deleted)->revision, 4);
  EXPECT_EQ(revision_in_bytes(*deleted), 4);
  EXPECT_EQ(cache_->get("//pods/default/p"), nullptr);
  EXPECT_EQ(cache_->revision(), 4);
}

TEST_F(ObjectCacheTest, ProposalsFromWithinACallbackComeNext) {
  std::vector<Revision> order;
  cache_->propose(pod_proposal({.name = "a"}), [&](ProposeResult first) {
    order.push_back((*first)->revision);
    cache_->propose(pod_proposal({.name = "b"}), [&](ProposeResult second) { order.push_back((*second)->revision); });
  });
  EXPECT_EQ(order, (std::vector<Revision>{1, 2}));
}

TEST_F(ObjectCacheTest, ListsAreSortedByKeyAndPaged) {
  for (const char* name : {"c", "a", "d", "b"}) put({.name = name});
  put({.ns = "other", .name = "a"});
  put({.ns = "de", .name = "z"});
  EXPECT_EQ(names(cache_->list(pods(), {}, 0)), (Texts{"de/z", "default/a", "default/b", "default/c", "default/d", "other/a"}));
  EXPECT_EQ(names(cache_->list(pods("default"), {}, 0)), (Texts{"default/a", "default/b", "default/c", "default/d"}));
  EXPECT_TRUE(cache_->list(pods("defaul"), {}, 0).items.empty());
  auto page = cache_->list(pods("default"), {}, 3);
  EXPECT_EQ(names(page), (Texts{"default/a", "default/b", "default/c"}));
  EXPECT_TRUE(page.more);
  EXPECT_EQ(page.remaining, 1);
  EXPECT_EQ(page.revision, 6);
  page = cache_->list(pods("default"), page.items.back()->key, 3);
  EXPECT_EQ(names(page), (Texts{"default/d"}));
  EXPECT_FALSE(page.more);
  EXPECT_EQ(page.remaining, 0);
}

TEST_F(ObjectCacheTest, ListsAnswerSelectors) {
  put({.name = "a", .node = "n1", .labels = {{"app", "web"}}});
  put({.name = "b", .node = "n2", .labels = {{"app", "web"}}});
  put({.name = "c", .node = "n1"});
  EXPECT_EQ(names(cache_->list(pods_on("n1"), {}, 0)), (Texts{"default/a", "default/c"}));
  auto filter = pods();
  filter.labels = *model::Selector::parse("app=web");
  EXPECT_EQ(names(cache_->list(filter, {}, 0)), (Texts{"default/a", "default/b"}));
  auto page = cache_->list(filter, {}, 1);
  EXPECT_TRUE(page.more);
  EXPECT_EQ(names(cache_->list(filter, page.items.back()->key, 1)), (Texts{"default/b"}));
  filter.fields.terms = {{"spec.nodeName", false, "n2"}};
  EXPECT_EQ(names(cache_->list(filter, {}, 0)), (Texts{"default/a"}));
  auto by_name = pods();
  by_name.name = "c";
  EXPECT_EQ(names(cache_->list(by_name, {}, 0)), (Texts{"default/c"}));
}

/// Against a plain map, over enough objects to split and merge leaves.
TEST_F(ObjectCacheTest, IndexAgreesWithAPlainMap) {
  std::mt19937 random(3);
  std::map<std::string, Revision> expected;
  for (int step = 0; step < 6000; ++step) {
    // First mostly creations, later mostly deletions.
    std::string name = fmt::format("p{:04}", random() % 1500);
    std::string ns = fmt::format("ns{}", random() % 3);
    bool creates = random() % 6000 >= static_cast<unsigned>(step);
    std::string key = make_key("", "pods", ns, name);
    if (creates) {
      expected[key] = put({.ns = ns, .name = name});
    } else if (propose(delete_proposal(ns, name)).has_value()) {
      ASSERT_EQ(expected.erase(key), 1U);
    } else {
      ASSERT_EQ(expected.count(key), 0U);
    }
    if (step % 500 != 0) continue;
    auto list = cache_->list(pods(), {}, 0);
    ASSERT_EQ(list.items.size(), expected.size());
    auto at = expected.begin();
    for (const auto& object : list.items) {
      ASSERT_EQ(object->key, at->first);
      ASSERT_EQ(object->revision, at->second);
      ++at;
    }
    std::string after;
    std::size_t seen = 0;
    for (;;) {
      auto page = cache_->list(pods("ns1"), after, 37);
      seen += page.items.size();
      if (!page.more) break;
      after = page.items.back()->key;
    }
    auto in_ns1 = std::count_if(expected.begin(), expected.end(), [](const auto& e) { return e.first.starts_with("//pods/ns1/"); });
    ASSERT_EQ(seen, static_cast<std::size_t>(in_ns1));
    ASSERT_EQ(cache_->counts(), (std::vector<std::pair<std::string, std::size_t>>{{"//pods", expected.size()}}));
  }
}

TEST_F(ObjectCacheTest, ListAtShowsTheOldState) {
  for (const char* name : {"a", "b", "c"}) put({.name = name});
  remove("b");
  put({.name = "d"});
  put({.name = "a", .node = "n1"});
  auto old = cache_->list_at(3, pods(), {}, 0);
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(names(*old), (Texts{"default/a", "default/b", "default/c"}));
  EXPECT_EQ(old->items[0]->revision, 1);
  EXPECT_EQ(old->revision, 3);
  auto page = cache_->list_at(3, pods(), "//pods/default/a", 1);
  EXPECT_EQ(names(*page), (Texts{"default/b"}));
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->remaining, 1);
  EXPECT_TRUE(cache_->list_at(1, pods_on("n1"), {}, 0)->items.empty());
  EXPECT_EQ(names(*cache_->list_at(6, pods_on("n1"), {}, 0)), (Texts{"default/a"}));
}

TEST_F(ObjectCacheTest, HowManyRemainIsNotSaidWhereSomeAreLeftOut) {
  for (const char* name : {"a", "b", "c", "d"}) put({.name = name, .node = "n1"});
  put({.name = "b", .node = "n2"});
  for (const Revision at : {Revision{4}, Revision{5}}) {
    const auto all = cache_->list_at(at, pods(), {}, 1);
    EXPECT_TRUE(all->more);
    EXPECT_EQ(all->remaining, 3) << at;
    const auto some = cache_->list_at(at, pods_on("n1"), {}, 1);
    EXPECT_EQ(names(*some), (Texts{"default/a"}));
    EXPECT_TRUE(some->more);
    EXPECT_EQ(some->remaining, 0) << at;
    EXPECT_EQ(names(*cache_->list_at(at, pods_on("n1"), {}, 0)),
              at == 4 ? (Texts{"default/a", "default/b", "default/c", "default/d"}) : (Texts{"default/a", "default/c", "default/d"}));
  }
}

TEST_F(ObjectCacheTest, PagesOfAnOldListAreTheOldListWhateverHappenedSince) {
  std::uint64_t state = 7;
  const auto below = [&](std::uint64_t most) { return ((state = state * 6364136223846793005U + 1442695040888963407U) >> 33) % most; };
  const auto name = [&] { return fmt::format("pod-{:03}", below(120)); };
  const auto change = [&] {
    const std::string one = name();
    if (below(3) == 0)
      cache_->propose(delete_proposal("default", one), [](const ProposeResult&) {});
    else
      cache_->propose(pod_proposal({.name = one, .node = below(2) == 0 ? "n1" : "n2"}), [](const ProposeResult&) {});
  };
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 40; ++i) change();
    const Revision then = cache_->revision();
    const auto all = cache_->list(pods(), {}, 0), selected = cache_->list(pods_on("n1"), {}, 0);
    for (int i = 0; i < 60; ++i) change();
    for (const std::size_t limit : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
      for (const bool is_selective : {false, true}) {
        const auto& whole = is_selective ? selected : all;
        std::string after;
        std::size_t seen = 0;
        for (bool more = true; more;) {
          const auto page = cache_->list_at(then, is_selective ? pods_on("n1") : pods(), after, limit);
          ASSERT_TRUE(page);
          ASSERT_LE(seen + page->items.size(), whole.items.size());
          for (std::size_t k = 0; k < page->items.size(); ++k) ASSERT_EQ(page->items[k], whole.items[seen + k]);
          seen += page->items.size();
          more = page->more;
          ASSERT_EQ(more, seen < whole.items.size());
          ASSERT_EQ(page->remaining, is_selective ? 0 : static_cast<std::int64_t>(whole.items.size() - seen));
          if (more) after = page->items.back()->key;
        }
        EXPECT_EQ(seen, whole.items.size());
      }
    }
  }
}

TEST_F(ObjectCacheTest, WatchSeesWritesInOrder) {
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 0, false, sink);
  ASSERT_NE(watch, nullptr);
  put({.name = "a"});
  put({.name = "a", .node = "n1"});
  remove("a");
  EXPECT_EQ(sink->events(), (Texts{"ADDED default/a@1", "MODIFIED default/a@2", "DELETED default/a@3"}));
  watch->request_bookmark();
  EXPECT_EQ(sink->events().back(), "BOOKMARK@3");
  watch.reset();
  put({.name = "b"});
  EXPECT_EQ(sink->events().size(), 4U);
}

TEST_F(ObjectCacheTest, SelectorTransitionsAreAddsAndDeletes) {
  auto on_n1 = std::make_shared<RecordingSink>();
  auto on_n2 = std::make_shared<RecordingSink>();
  auto web = std::make_shared<RecordingSink>();
  auto unscheduled = std::make_shared<RecordingSink>();
  auto filter = pods();
  filter.labels = *model::Selector::parse("app=web");
  auto w1 = cache_->watch(pods_on("n1"), 0, false, on_n1);
  auto w2 = cache_->watch(pods_on("n2"), 0, false, on_n2);
  auto w3 = cache_->watch(filter, 0, false, web);
  auto w4 = cache_->watch(pods_on(""), 0, false, unscheduled);
  put({.name = "a", .labels = {{"app", "web"}}});
  put({.name = "a", .node = "n1", .labels = {{"app", "web"}}});
  put({.name = "a", .node = "n2"});
  put({.name = "a", .node = "n2"});
  remove("a");
  EXPECT_EQ(unscheduled->events(), (Texts{"ADDED default/a@1", "DELETED default/a@2"}));
  EXPECT_EQ(on_n1->events(), (Texts{"ADDED default/a@2", "DELETED default/a@3"}));
  EXPECT_EQ(on_n2->events(), (Texts{"ADDED default/a@3", "MODIFIED default/a@4", "DELETED default/a@5"}));
  EXPECT_EQ(web->events(), (Texts{"ADDED default/a@1", "MODIFIED default/a@2", "DELETED default/a@3"}));
}

TEST_F(ObjectCacheTest, LeavingTheSelectorShowsThePreviousState) {
  struct Last final : WatchSink {
    WatchEvent event;
    bool deliver(const WatchEvent& e) override {
      event = e;
      return true;
    }
  };
  auto sink = std::make_shared<Last>();
  auto watch = cache_->watch(pods_on("n1"), 0, false, sink);
  put({.name = "a", .node = "n1"});
  put({.name = "a", .node = "n2"});
  EXPECT_EQ(sink->event.type, WatchEventType::kDeleted);
  EXPECT_EQ(sink->event.object->meta.field("spec.nodeName"), "n1");
  EXPECT_EQ(revision_in_bytes(sink->event.object), 2);
  EXPECT_EQ(sink->event.previous->revision, 1);
}

TEST_F(ObjectCacheTest, WatchesByNamespaceAndName) {
  auto in_a = std::make_shared<RecordingSink>();
  auto named = std::make_shared<RecordingSink>();
  auto by_field = std::make_shared<RecordingSink>();
  auto filter = pods();
  filter.name = "x";
  auto field_filter = pods("b");
  field_filter.fields.terms = {{"metadata.name", true, "x"}};
  auto w1 = cache_->watch(pods("a"), 0, false, in_a);
  auto w2 = cache_->watch(filter, 0, false, named);
  auto w3 = cache_->watch(field_filter, 0, false, by_field);
  put({.ns = "a", .name = "x"});
  put({.ns = "b", .name = "x"});
  put({.ns = "a", .name = "y"});
  EXPECT_EQ(in_a->events(), (Texts{"ADDED a/x@1", "ADDED a/y@3"}));
  EXPECT_EQ(named->events(), (Texts{"ADDED a/x@1", "ADDED b/x@2"}));
  EXPECT_EQ(by_field->events(), (Texts{"ADDED b/x@2"}));
}

TEST_F(ObjectCacheTest, WatchFromThePastReplaysTheHistory) {
  put({.name = "a"});
  put({.name = "b", .node = "n1"});
  put({.name = "a", .node = "n1"});
  remove("b");
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods_on("n1"), 1, false, sink);
  EXPECT_EQ(sink->events(), (Texts{"ADDED default/b@2", "ADDED default/a@3", "DELETED default/b@4"}));
  put({.name = "a", .node = "n3"});
  EXPECT_EQ(sink->events().back(), "DELETED default/a@5");
}

TEST_F(ObjectCacheTest, WatchFromTheFutureWaitsForIt) {
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 2, false, sink);
  ASSERT_NE(watch, nullptr);
  watch->request_bookmark();
  EXPECT_EQ(sink->events(), (Texts{"BOOKMARK@0"}));
  for (const char* name : {"a", "b", "c"}) put({.name = name});
  EXPECT_EQ(sink->events(), (Texts{"BOOKMARK@0", "ADDED default/c@3"}));
}

TEST_F(ObjectCacheTest, InitialStateThenABookmarkThenTheStream) {
  put({.name = "b", .node = "n1"});
  put({.name = "a", .node = "n1"});
  put({.name = "c"});
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods_on("n1"), 0, true, sink);
  remove("a");
  EXPECT_EQ(sink->events(), (Texts{"ADDED default/a@2", "ADDED default/b@1", "BOOKMARK@3", "DELETED default/a@4"}));
}

TEST_F(ObjectCacheTest, FullSinkEndsItsWatchOnly) {
  auto small = std::make_shared<RecordingSink>(1);
  auto large = std::make_shared<RecordingSink>();
  auto w1 = cache_->watch(pods(), 0, false, small);
  auto w2 = cache_->watch(pods(), 0, false, large);
  for (const char* name : {"a", "b", "c"}) put({.name = name});
  EXPECT_EQ(small->events().size(), 1U);
  EXPECT_EQ(large->events().size(), 3U);
}

TEST_F(ObjectCacheTest, SinkMayDestroyItsOwnWatch) {
  struct Quitter final : WatchSink {
    std::unique_ptr<Watch> watch;
    int calls = 0;
    bool deliver(const WatchEvent&) override {
      ++calls;
      watch.reset();
      return true;
    }
  };
  auto sink = std::make_shared<Quitter>();
  sink->watch = cache_->watch(pods(), 0, false, sink);
  put({.name = "a"});
  put({.name = "b"});
  EXPECT_EQ(sink->calls, 1);
}

TEST_F(ObjectCacheTest, HistoryIsBoundedByEventsPerResource) {
  open(store::make_memory_store(), true, {.history_events = 10});
  for (int i = 0; i < 20; ++i) put({.name = fmt::format("p{}", i)});
  auto sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(cache_->watch(pods(), 9, false, sink), nullptr);
  EXPECT_EQ(cache_->list_at(9, pods(), {}, 0), std::nullopt);
  EXPECT_NE(cache_->watch(pods(), 10, false, sink), nullptr);
  EXPECT_EQ(sink->events().size(), 10U);
  EXPECT_TRUE(cache_->list_at(10, pods(), {}, 0).has_value());
  // Another resource's flood does not push these out.
  for (int i = 0; i < 20; ++i) {
    auto proposal = pod_proposal({.name = "lease"});
    proposal.key = make_key("coordination.k8s.io", "leases", "default", "lease");
    ASSERT_TRUE(propose(std::move(proposal)).has_value());
  }
  EXPECT_NE(cache_->watch(pods(), 10, false, sink), nullptr);
}

TEST_F(ObjectCacheTest, HistoryIsBoundedByBytes) {
  open(store::make_memory_store(), true, {.history_bytes = 100'000});
  for (int i = 0; i < 50; ++i) put({.name = "p", .padding = 10'000});
  auto sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(cache_->watch(pods(), 30, false, sink), nullptr);
  EXPECT_NE(cache_->watch(pods(), 45, false, sink), nullptr);
}

TEST_F(ObjectCacheTest, ExpiredObjectsGoByThemselvesUnlessRenewed) {
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 0, false, sink);
  auto expiring = [&](const char* name, int seconds) {
    auto proposal = pod_proposal({.name = name});
    proposal.expires_at = clock_.now() + std::chrono::seconds(seconds);
    ASSERT_TRUE(propose(std::move(proposal)).has_value());
  };
  expiring("a", 10);
  expiring("b", 10);
  clock_.advance(std::chrono::seconds(5));
  expiring("a", 10);
  clock_.advance(std::chrono::seconds(6));
  put({.name = "other"});
  EXPECT_NE(cache_->get("//pods/default/a"), nullptr);
  EXPECT_EQ(cache_->get("//pods/default/b"), nullptr);
  clock_.advance(std::chrono::seconds(6));
  put({.name = "other"});
  EXPECT_EQ(cache_->get("//pods/default/a"), nullptr);
  EXPECT_EQ(sink->events(), (Texts{"ADDED default/a@1", "ADDED default/b@2", "MODIFIED default/a@3", "ADDED default/other@4",
                                   "DELETED default/b@5", "MODIFIED default/other@6", "DELETED default/a@7"}));
}

class ExpiringBytes : public ObjectCacheTest {
 protected:
  /// A pod of some 1,000 bytes that goes by itself after an hour.
  void put_expiring(const std::string& name) {
    auto proposal = pod_proposal({.name = name, .padding = 1000});
    proposal.expires_at = clock_.now() + std::chrono::hours(1);
    ASSERT_TRUE(propose(std::move(proposal)).has_value());
    clock_.advance(std::chrono::seconds(1));
  }
  [[nodiscard]] bool is_there(const std::string& name) const { return cache_->get("//pods/default/" + name) != nullptr; }
};

TEST_F(ExpiringBytes, WhatWasWrittenLongestAgoGoesFirst) {
  open(store::make_memory_store(), true, {.expiring_bytes = 5000});
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 0, false, sink);
  put({.name = "stays", .padding = 20'000});  // What does not go by itself counts for nothing.
  for (const char* name : {"a", "b", "c", "d"}) put_expiring(name);
  EXPECT_EQ(cache_->expired_early(), 0U);
  put_expiring("a");  // Renewed: the youngest.
  put_expiring("e");
  EXPECT_FALSE(is_there("b"));
  for (const char* name : {"stays", "a", "c", "d", "e"}) EXPECT_TRUE(is_there(name)) << name;
  EXPECT_EQ(cache_->expired_early(), 1U);
  EXPECT_EQ(sink->events().back(), "DELETED default/b@8");
  // Whoever lists after a page that was there goes on behind what has gone.
  const ListResult listed = cache_->list(pods(), "//pods/default/a", 0);
  EXPECT_EQ(listed.items.size(), 4U);
}

TEST_F(ExpiringBytes, ADeletedOneMakesRoom) {
  open(store::make_memory_store(), true, {.expiring_bytes = 5000});
  for (const char* name : {"a", "b", "c", "d"}) put_expiring(name);
  ASSERT_TRUE(propose(delete_proposal("default", "c")).has_value());
  put_expiring("e");
  for (const char* name : {"a", "b", "d", "e"}) EXPECT_TRUE(is_there(name)) << name;
  clock_.advance(std::chrono::hours(2));
  put({.name = "other"});
  for (const char* name : {"a", "b", "d", "e"}) EXPECT_FALSE(is_there(name)) << name;
  EXPECT_EQ(cache_->expired_early(), 0U);
  for (const char* name : {"a", "b", "c", "d"}) put_expiring(name);
  EXPECT_EQ(cache_->expired_early(), 0U);
}

TEST_F(ObjectCacheTest, EqualLabelsAreShared) {
  auto a = *propose(pod_proposal({.name = "a", .labels = {{"app", "web"}, {"tier", "front"}}}));
  auto b = *propose(pod_proposal({.name = "b", .labels = {{"app", "web"}, {"tier", "front"}}}));
  auto c = *propose(pod_proposal({.name = "c", .labels = {{"app", "web"}}}));
  EXPECT_EQ(&*a->meta.labels().pairs(), &*b->meta.labels().pairs());
  EXPECT_NE(&*a->meta.labels().pairs(), &*c->meta.labels().pairs());
}

TEST_F(ObjectCacheTest, WaitForAnswersAtOnceWhenSynchronous) {
  put({.name = "a"});
  std::vector<bool> answers;
  cache_->wait_for(1, std::chrono::seconds(1), [&](bool reached) { answers.push_back(reached); });
  cache_->wait_for(2, std::chrono::seconds(1), [&](bool reached) { answers.push_back(reached); });
  EXPECT_EQ(answers, (std::vector<bool>{true, false}));
}

/// Watches of one resource stand in one table by what they name: who leaves takes nobody else's place with him.
TEST_F(ObjectCacheTest, AWatchThatEndsLeavesTheOthers) {
  const auto filter_of = [&](int kind) {
    WatchFilter filter = kind == 1 ? pods_on("n1") : pods();
    if (kind == 2) filter.name = "a";
    if (kind == 3) filter.fields.terms.push_back({"status.phase", true, "Pending"});
    if (kind == 4) filter.fields.terms.push_back({"metadata.name", true, "a"});
    return filter;
  };
  for (int ending = 0; ending < 5; ++ending) {
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    std::vector<std::unique_ptr<Watch>> watches;
    for (int kind = 0; kind < 5; ++kind) {
      sinks.push_back(std::make_shared<RecordingSink>());
      watches.push_back(cache_->watch(filter_of(kind), cache_->revision(), false, sinks.back()));
    }
    auto twin_sink = std::make_shared<RecordingSink>();
    auto twin = cache_->watch(filter_of(ending), cache_->revision(), false, twin_sink);
    watches[static_cast<std::size_t>(ending)].reset();
    put({.name = "a", .node = "n1"});
    for (int kind = 0; kind < 5; ++kind)
      EXPECT_EQ(sinks[static_cast<std::size_t>(kind)]->events().size(), kind == ending ? 0U : 1U) << ending << " ended, of " << kind;
    EXPECT_EQ(twin_sink->events().size(), 1U) << "the same filter's other watch, " << ending;
    // The last of a kind goes, too, and comes back.
    twin.reset();
    put({.name = "a", .node = "n1"});
    for (int kind = 0; kind < 5; ++kind)
      EXPECT_EQ(sinks[static_cast<std::size_t>(kind)]->events().size(), kind == ending ? 0U : 2U) << ending << " ended, of " << kind;
    auto again_sink = std::make_shared<RecordingSink>();
    auto again = cache_->watch(filter_of(ending), cache_->revision(), false, again_sink);
    remove("a");
    EXPECT_EQ(again_sink->events().size(), 1U) << ending;
    for (int kind = 0; kind < 5; ++kind)
      EXPECT_EQ(sinks[static_cast<std::size_t>(kind)]->events().size(), kind == ending ? 0U : 3U) << ending << " ended, of " << kind;
  }
}

TEST_F(ObjectCacheTest, AWatchMayNameWhatItDoesNotWant) {
  auto others = std::make_shared<RecordingSink>();
  auto filter = pods();
  filter.fields.terms = {{"metadata.name", false, "a"}, {"spec.nodeName", false, "n1"}};
  auto watch = cache_->watch(filter, 0, false, others);
  put({.name = "a"});
  put({.name = "b"});
  put({.name = "b", .node = "n1"});
  put({.name = "c", .node = "n2"});
  EXPECT_EQ(others->events(), (Texts{"ADDED default/b@2", "DELETED default/b@3", "ADDED default/c@4"}));
}

/// What is read of a document is read of its text, whatever stands in it.
TEST(ObjectMetadata, OfATextIsThatOfTheDocument) {
  const auto fields = [](const ObjectMeta& meta) {
    std::map<std::string, std::string> out;
    for (const auto& [name, value] : meta.fields) out.emplace(std::string(name), std::string(value));
    return out;
  };
  for (const char* text :
       {R"({"metadata":{"name":"p","namespace":"d","uid":"u","labels":{"a":"b"}},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}})",
        R"({"metadata":{"name":"p","namespace":"d"},"spec":{},"status":{}})",
        R"({"metadata":{"name":"p","namespace":"d"},"spec":{"nodeName":null,"restartPolicy":"Never"},"status":{"phase":null}})",
        R"({"metadata":{"name":"p","namespace":"d"},"spec":{"nodeName":{"x":"y"},"hostNetwork":true},"status":{"phase":["Running"]}})",
        R"({"metadata":{"name":"p","namespace":"d"},"spec":{"nodeName":"quo\"te","hostNetwork":false},"status":{"podIP":"10.0.0.1"}})"}) {
    const auto document = json::parse(text);
    ASSERT_TRUE(document);
    const ObjectMeta whole = extract_meta(*model::find_kind("", "v1", "Pod"), *document);
    const ObjectMeta scanned = extract_meta("//pods/d/p", std::string(text), std::chrono::hours(1));
    EXPECT_EQ(fields(scanned), fields(whole)) << text;
    EXPECT_EQ(scanned.name, whole.name);
    EXPECT_EQ(scanned.ns, whole.ns);
    EXPECT_EQ(scanned.uid, whole.uid);
    EXPECT_EQ(scanned.labels.pairs(), whole.labels.pairs()) << text;
  }
}

}  // namespace
}  // namespace berth::apiserver
