// The object cache with its writer thread, many writers and watchers, and stores that fail (SPEC A4, A5).
#include <gtest/gtest.h>

#include "tests/apiserver/object_cache_fixture.h"

namespace berth::apiserver {
namespace {

/// A memory store whose commits can be held up and made to fail, and that counts.
class ScriptedStore final : public store::Store {
 public:
  [[nodiscard]] store::StoreState state() const override { return memory_->state(); }
  Result<void> commit(std::span<const store::Record> records, bool sync) override {
    std::unique_lock lock(mutex_);
    ++commits_;
    (sync ? synced_ : relaxed_) += 1;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !held_; });
    if (error_) return std::unexpected(*error_);
    return memory_->commit(records, sync);
  }
  Result<void> read(Revision after, const std::function<Result<void>(store::Record)>& each) override { return memory_->read(after, each); }
  Result<void> compact(Revision revision) override {
    compacted_ = revision;
    return memory_->compact(revision);
  }
  Result<void> probe() override {
    std::lock_guard lock(mutex_);
    ++probes_;
    if (error_) return std::unexpected(*error_);
    return {};
  }
  void hold(bool held) {
    std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void fail_with(std::optional<Error> error) {
    std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  void wait_for_commit(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return commits_ >= count; });
  }
  int commits() const { return commits_; }
  int probes() const { return probes_; }
  int synced() const { return synced_; }
  int relaxed() const { return relaxed_; }
  Revision compacted() const { return compacted_; }

 private:
  std::unique_ptr<store::Store> memory_ = store::make_memory_store();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> commits_{0}, synced_{0}, relaxed_{0}, probes_{0};
  std::atomic<Revision> compacted_{0};
  bool held_ = false;
  std::optional<Error> error_;
};

class ObjectCacheThreads : public CacheFixture {
 protected:
  ScriptedStore* open_scripted(bool synchronous = false, CacheOptions options = {}) {
    auto store = std::make_unique<ScriptedStore>();
    auto* raw = store.get();
    open(std::move(store), synchronous, options);
    return raw;
  }
};

/// Collects answers by order of proposal.
struct Answers {
  explicit Answers(std::size_t count) : results(count, std::unexpected(ProposeError::kStorage)), left(static_cast<std::ptrdiff_t>(count)) {}
  std::function<void(ProposeResult)> at(std::size_t i) {
    return [this, i](ProposeResult result) {
      std::lock_guard lock(mutex);
      results[i] = std::move(result);
      if (--left == 0) done.notify_all();
    };
  }
  void wait() {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return left == 0; });
  }
  std::vector<ProposeResult> results;
  std::ptrdiff_t left;
  std::mutex mutex;
  std::condition_variable done;
};

TEST_F(ObjectCacheThreads, ProposalsOfOneGroupSeeEachOther) {
  auto* store = open_scripted();
  store->hold(true);
  Answers first(1), group(7);
  cache_->propose(pod_proposal({.name = "first"}), first.at(0));
  store->wait_for_commit(1);
  cache_->propose(pod_proposal({.name = "a"}, 0), group.at(0));                // 2
  cache_->propose(pod_proposal({.name = "a", .node = "n1"}, 2), group.at(1));  // 3
  cache_->propose(pod_proposal({.name = "a", .node = "n2"}, 2), group.at(2));  // stale
  cache_->propose(pod_proposal({.name = "a"}, 0), group.at(3));                // exists
  cache_->propose(delete_proposal("default", "a", 3), group.at(4));            // 4
  cache_->propose(delete_proposal("default", "a"), group.at(5));               // gone
  cache_->propose(pod_proposal({.name = "a"}, 0), group.at(6));                // 5
  store->hold(false);
  group.wait();
  EXPECT_EQ(store->commits(), 2);
  EXPECT_EQ((*group.results[0])->revision, 2);
  EXPECT_EQ((*group.results[1])->revision, 3);
  EXPECT_EQ((*group.results[1])->create_revision, 2);
  EXPECT_EQ(group.results[2].error(), ProposeError::kRevisionMismatch);
  EXPECT_EQ(group.results[3].error(), ProposeError::kExists);
  EXPECT_EQ((*group.results[4])->revision, 4);
  EXPECT_EQ(group.results[5].error(), ProposeError::kNotFound);
  EXPECT_EQ((*group.results[6])->revision, 5);
  EXPECT_EQ((*group.results[6])->create_revision, 5);
  EXPECT_EQ(cache_->get("//pods/default/a")->revision, 5);
}

TEST_F(ObjectCacheThreads, ReadersDoNotWaitForTheStoreNorSeeWhatIsNotDurable) {
  auto* store = open_scripted();
  put({.name = "a"});
  store->hold(true);
  Answers answers(1);
  cache_->propose(pod_proposal({.name = "b"}), answers.at(0));
  store->wait_for_commit(2);
  EXPECT_NE(cache_->get("//pods/default/a"), nullptr);
  EXPECT_EQ(cache_->get("//pods/default/b"), nullptr);
  EXPECT_EQ(cache_->list(pods(), {}, 0).items.size(), 1U);
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 0, true, sink);
  EXPECT_EQ(sink->events().size(), 2U);
  store->hold(false);
  answers.wait();
  EXPECT_EQ(sink->events().back(), "ADDED default/b@2");
}

TEST_F(ObjectCacheThreads, WatchersAreFlushedOnceAGroup) {
  struct Flushes final : WatchSink {
    std::vector<std::size_t> events_per_flush;
    std::size_t events = 0;
    bool deliver(const WatchEvent&) override {
      ++events;
      return true;
    }
    void flush() override { events_per_flush.push_back(std::exchange(events, 0)); }
  };
  auto* store = open_scripted();
  auto all = std::make_shared<Flushes>(), other = std::make_shared<Flushes>();
  auto w1 = cache_->watch(pods(), 0, false, all);
  auto w2 = cache_->watch(pods_on("n9"), 0, false, other);
  store->hold(true);
  Answers answers(4);
  cache_->propose(pod_proposal({.name = "a"}), answers.at(0));
  store->wait_for_commit(1);
  for (std::size_t i = 1; i < 4; ++i) cache_->propose(pod_proposal({.name = fmt::format("b{}", i)}), answers.at(i));
  store->hold(false);
  answers.wait();
  EXPECT_EQ(all->events_per_flush, (std::vector<std::size_t>{1, 3}));
  EXPECT_TRUE(other->events_per_flush.empty());
  w1->request_bookmark();
  EXPECT_EQ(all->events_per_flush.back(), 1U);
}

TEST_F(ObjectCacheThreads, OnlyAllRelaxedGroupsSkipTheSync) {
  auto* store = open_scripted();
  auto relaxed = [](const char* name) {
    auto proposal = pod_proposal({.name = name});
    proposal.relaxed_durability = true;
    return proposal;
  };
  ASSERT_TRUE(propose(relaxed("a")).has_value());
  EXPECT_EQ(store->relaxed(), 1);
  store->hold(true);
  Answers first(1), mixed(2);
  cache_->propose(relaxed("b"), first.at(0));
  store->wait_for_commit(2);
  cache_->propose(relaxed("c"), mixed.at(0));
  cache_->propose(pod_proposal({.name = "d"}), mixed.at(1));
  store->hold(false);
  mixed.wait();
  EXPECT_EQ(store->relaxed(), 2);
  EXPECT_EQ(store->synced(), 1);
}

/// Five seconds of heartbeats and events are all that a power failure takes, whether others follow or not.
TEST_F(ObjectCacheThreads, WhatMayWaitForASyncDoesNotWaitForEver) {
  auto* store = open_scripted();
  const auto proposal = [](bool relaxed) {
    auto out = pod_proposal({.name = "a"});
    out.relaxed_durability = relaxed;
    return out;
  };
  // Its answer is given at the end of a turn in which nobody writes; the next one's that all of that turn was done.
  const auto wake = [&] {
    for (int i = 0; i < 2; ++i) {
      Answers answers(1);
      cache_->wait_for(1000, Duration(-1), [&](bool) { answers.at(0)(std::unexpected(ProposeError::kStorage)); });
      answers.wait();
    }
  };
  const auto syncs = [&] { return std::pair(store->synced(), store->probes()); };
  ASSERT_TRUE(propose(proposal(false)).has_value());  // What the process before left is synced, too.
  ASSERT_TRUE(propose(proposal(true)).has_value());
  clock_.advance(std::chrono::seconds(3));
  ASSERT_TRUE(propose(proposal(true)).has_value());
  wake();
  EXPECT_EQ(syncs(), std::pair(1, 0));
  clock_.advance(std::chrono::seconds(3));
  wake();
  EXPECT_EQ(syncs(), std::pair(1, 1)) << "nobody writes";
  clock_.advance(std::chrono::seconds(6));
  wake();
  EXPECT_EQ(syncs(), std::pair(1, 1)) << "nothing waits";
  // Where there is always one more, it takes those before it along.
  ASSERT_TRUE(propose(proposal(true)).has_value());
  store->hold(true);
  Answers first(1), second(1);
  cache_->propose(proposal(true), first.at(0));
  store->wait_for_commit(5);
  clock_.advance(std::chrono::seconds(6));
  cache_->propose(proposal(true), second.at(0));
  store->hold(false);
  second.wait();
  EXPECT_EQ(syncs(), std::pair(2, 1));
  clock_.advance(std::chrono::seconds(60));
  wake();
  EXPECT_EQ(syncs(), std::pair(2, 1));
}

TEST_F(ObjectCacheThreads, FailedStoreFailsItsGroupAndAllLaterWrites) {
  auto* store = open_scripted();
  put({.name = "a"});
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 1, false, sink);
  store->fail_with(Error{ErrorCode::kInternal, "the disk said no"});
  EXPECT_EQ(propose(pod_proposal({.name = "b"})).error(), ProposeError::kStorage);
  EXPECT_TRUE(cache_->is_read_only());
  store->fail_with(std::nullopt);
  EXPECT_EQ(propose(pod_proposal({.name = "c"})).error(), ProposeError::kStorage);
  EXPECT_EQ(cache_->revision(), 1);
  EXPECT_NE(cache_->get("//pods/default/a"), nullptr);
  EXPECT_EQ(cache_->get("//pods/default/b"), nullptr);
  EXPECT_TRUE(sink->events().empty());
}

TEST_F(ObjectCacheThreads, FullDiskIsNotForEver) {
  auto* store = open_scripted();
  store->fail_with(Error{ErrorCode::kUnavailable, "full"});
  EXPECT_EQ(propose(pod_proposal({.name = "b"})).error(), ProposeError::kStorage);
  EXPECT_FALSE(cache_->is_read_only());
  store->fail_with(std::nullopt);
  EXPECT_TRUE(propose(pod_proposal({.name = "b"})).has_value());
  EXPECT_EQ(cache_->revision(), 1);
}

TEST_F(ObjectCacheThreads, AFullDiskIsToldAndItsEndIsFoundWithoutAWrite) {
  auto* store = open_scripted();
  put({.name = "a"});
  EXPECT_TRUE(cache_->is_writable());
  const Error full{ErrorCode::kUnavailable, "full"};
  store->fail_with(full);
  EXPECT_EQ(propose(pod_proposal({.name = "b"})).error(), ProposeError::kStorage);
  EXPECT_FALSE(cache_->is_writable());
  // What is refused before the store is asked wakes the writer and says nothing of the disk.
  const auto wake = [&] { EXPECT_EQ(propose(delete_proposal("default", "none")).error(), ProposeError::kNotFound); };
  wake();
  EXPECT_EQ(store->probes(), 0);
  clock_.advance(std::chrono::seconds(2));
  wake();
  wake();
  EXPECT_EQ(store->probes(), 1);
  EXPECT_FALSE(cache_->is_writable());
  store->fail_with(std::nullopt);
  clock_.advance(std::chrono::seconds(2));
  wake();
  wake();
  EXPECT_TRUE(cache_->is_writable());
  EXPECT_EQ(store->commits(), 2);
}

TEST_F(ObjectCacheThreads, WhatWasToExpireOnAFullDiskExpiresLater) {
  auto* store = open_scripted(true);
  auto event = pod_proposal({.name = "e"});
  event.expires_at = clock_.now() + std::chrono::minutes(1);
  EXPECT_TRUE(propose(std::move(event)).has_value());
  store->fail_with(Error{ErrorCode::kUnavailable, "full"});
  clock_.advance(std::chrono::minutes(2));
  EXPECT_FALSE(propose(pod_proposal({.name = "a"})).has_value());
  EXPECT_NE(cache_->get("//pods/default/e"), nullptr);
  store->fail_with(std::nullopt);
  clock_.advance(std::chrono::minutes(2));
  put({.name = "a"});
  EXPECT_EQ(cache_->get("//pods/default/e"), nullptr);
}

TEST_F(ObjectCacheThreads, WaitForAnswersWhenPublished) {
  open(store::make_memory_store(), false);
  std::promise<bool> reached, late;
  cache_->wait_for(2, std::chrono::hours(1), [&](bool ok) { reached.set_value(ok); });
  put({.name = "a"});
  put({.name = "b"});
  EXPECT_TRUE(reached.get_future().get());
  cache_->wait_for(99, std::chrono::milliseconds(1), [&](bool ok) { late.set_value(ok); });
  clock_.advance(std::chrono::seconds(1));
  put({.name = "c"});
  EXPECT_FALSE(late.get_future().get());
}

TEST_F(ObjectCacheThreads, CompactionKeepsTheHistory) {
  auto* store = open_scripted(true, {.history_events = 100, .compaction_interval = std::chrono::minutes(5)});
  for (int i = 0; i < 500; ++i) put({.name = "a"});
  clock_.advance(std::chrono::minutes(6));
  put({.name = "a"});
  // What was written since the last tick stays, however much it is.
  EXPECT_EQ(store->compacted(), 0);
  clock_.advance(std::chrono::minutes(6));
  put({.name = "a"});
  EXPECT_EQ(store->compacted(), 402);
}

/// Four writers on one set of keys, watchers that come and go: each must see exactly what happened after its start.
TEST_F(ObjectCacheThreads, WatchersMissNothingAndGetNothingTwice) {
  open(store::make_memory_store(), false);
  constexpr int kWriters = 4, kWrites = 800, kNodes = 5;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      std::mt19937 random(static_cast<unsigned>(w));
      for (int i = 0; i < kWrites; ++i) {
        std::string name = fmt::format("p{}", random() % 40);
        std::promise<void> answered;
        auto proposal = random() % 4 == 0 ? delete_proposal("default", name)
                                          : pod_proposal({.name = name, .node = fmt::format("n{}", random() % kNodes)});
        cache_->propose(std::move(proposal), [&](const ProposeResult&) { answered.set_value(); });
        answered.get_future().wait();
      }
    });
  }
  /// Rebuilds the state from events and refuses impossible ones.
  struct Mirror final : WatchSink {
    std::mutex mutex;
    std::map<std::string, Revision> state;
    Revision last = 0;
    std::string error;
    bool synced = false;
    bool deliver(const WatchEvent& event) override {
      std::lock_guard lock(mutex);
      if (event.type == WatchEventType::kBookmark) {
        synced = true;
        last = std::max(last, event.revision);
        return true;
      }
      std::string name(event.object->meta.name);
      bool known = state.count(name) != 0;
      if (synced && event.revision <= last) error = fmt::format("revision {} after {}", event.revision, last);
      if (event.type == WatchEventType::kAdded && known) error = "added twice: " + name;
      if (event.type != WatchEventType::kAdded && !known) error = "unknown: " + name;
      if (synced) last = event.revision;
      if (event.type == WatchEventType::kDeleted) {
        state.erase(name);
      } else {
        state[name] = event.revision;
      }
      return true;
    }
  };
  std::vector<std::pair<std::shared_ptr<Mirror>, std::unique_ptr<Watch>>> all_nodes, one_node;
  std::thread watcher([&] {
    while (!stop) {
      auto mirror = std::make_shared<Mirror>();
      all_nodes.emplace_back(mirror, cache_->watch(pods(), 0, true, mirror));
      mirror = std::make_shared<Mirror>();
      one_node.emplace_back(mirror, cache_->watch(pods_on("n1"), 0, true, mirror));
      if (all_nodes.size() > 10) all_nodes.erase(all_nodes.begin());
      while (one_node.size() > 20) one_node.erase(one_node.begin());
      // Started from a list's revision, as informers do.
      mirror = std::make_shared<Mirror>();
      auto list = cache_->list(pods_on("n1"), {}, 0);
      for (const auto& object : list.items) mirror->state[std::string(object->meta.name)] = object->revision;
      mirror->last = list.revision;
      mirror->synced = true;
      one_node.emplace_back(mirror, cache_->watch(pods_on("n1"), list.revision, false, mirror));
      ASSERT_NE(one_node.back().second, nullptr);
      std::this_thread::yield();
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  watcher.join();
  const auto check = [&](auto& mirrors, const WatchFilter& filter) {
    std::map<std::string, Revision> expected;
    for (const auto& object : cache_->list(filter, {}, 0).items) expected[std::string(object->meta.name)] = object->revision;
    for (auto& [mirror, watch] : mirrors) {
      EXPECT_EQ(mirror->error, "");
      EXPECT_EQ(mirror->state, expected);
    }
  };
  // The last delivery has happened before the last writer's answer.
  check(all_nodes, pods());
  check(one_node, pods_on("n1"));
  EXPECT_FALSE(all_nodes.empty());
}

TEST_F(ObjectCacheThreads, ListsAreConsistentUnderWrites) {
  open(store::make_memory_store(), false);
  // One pod is always there, moving between two names: delete and create are separate writes, so a list has one or none, never two.
  std::atomic<bool> stop{false};
  for (int i = 0; i < 200; ++i) put({.name = fmt::format("filler{:03}", i)});
  std::thread reader([&] {
    Revision last = 0;
    while (!stop) {
      auto list = cache_->list(pods(), {}, 0);
      ASSERT_GE(list.revision, last);
      last = list.revision;
      std::size_t moving = 0;
      for (const auto& object : list.items) moving += object->meta.name.ends_with("moving") ? 1 : 0;
      ASSERT_LE(moving, 1U);
      ASSERT_EQ(list.items.size(), 200 + moving);
      ASSERT_TRUE(std::is_sorted(list.items.begin(), list.items.end(), [](const auto& a, const auto& b) { return a->key < b->key; }));
    }
  });
  for (int i = 0; i < 1000; ++i) {
    std::string name = i % 2 == 0 ? "a-moving" : "z-moving";
    put({.name = name});
    remove(name);
  }
  stop = true;
  reader.join();
}

/// A list of the past is answered as long as the history reaches, and refused from then on.
TEST_F(ObjectCacheThreads, WhatIsCompactedIsNotListedAnyMore) {
  open_scripted(true, {.history_events = 1000, .compaction_interval = std::chrono::minutes(5)});
  for (int i = 0; i < 20; ++i) put({.name = "a"});
  EXPECT_TRUE(cache_->list_at(3, pods(), {}, 0));
  clock_.advance(std::chrono::minutes(6));
  put({.name = "a"});
  EXPECT_TRUE(cache_->list_at(3, pods(), {}, 0)) << "one interval is kept whole";
  clock_.advance(std::chrono::minutes(6));
  put({.name = "b"});
  EXPECT_FALSE(cache_->list_at(3, pods(), {}, 0));
  const auto still = cache_->list_at(21, pods(), {}, 0);
  ASSERT_TRUE(still);
  EXPECT_EQ(names(*still), (std::vector<std::string>{"default/a"}));
}

}  // namespace
}  // namespace berth::apiserver
