// The object cache over SQLite: restarts, kills (SPEC A5; issue 2 "Kill test").
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/apiserver/object_cache_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver {
namespace {

class ObjectCacheRestart : public CacheFixture {
 protected:
  void reopen(CacheOptions options = {}, bool synchronous = true) {
    cache_.reset();
    open(store::open_or_fail(directory_.file("s.db")), synchronous, options);
  }
  store::TemporaryDirectory directory_;
};

TEST_F(ObjectCacheRestart, StateHistoryAndRevisionsComeBack) {
  reopen();
  put({.name = "a", .labels = {{"app", "web"}}});
  put({.name = "b"});
  put({.name = "a", .node = "n1"});
  remove("b");
  reopen();
  EXPECT_EQ(cache_->revision(), 4);
  EXPECT_EQ(names(cache_->list(pods(), {}, 0)), (std::vector<std::string>{"default/a"}));
  EXPECT_EQ(cache_->get("//pods/default/a")->create_revision, 1);
  EXPECT_EQ(cache_->get("//pods/default/a")->meta.field("spec.nodeName"), "n1");
  auto sink = std::make_shared<RecordingSink>();
  auto watch = cache_->watch(pods(), 1, false, sink);
  ASSERT_NE(watch, nullptr);
  put({.name = "c"});
  EXPECT_EQ(sink->events(),
            (std::vector<std::string>{"ADDED default/b@2", "MODIFIED default/a@3", "DELETED default/b@4", "ADDED default/c@5"}));
}

/// A store that does not hand over one write, as one that was encrypted by a key which is gone.
class Illegible final : public store::Store {
 public:
  Illegible(std::unique_ptr<store::Store> inner, Revision illegible) : inner_(std::move(inner)), illegible_(illegible) {}
  [[nodiscard]] store::StoreState state() const override { return inner_->state(); }
  Result<void> commit(std::span<const store::Record> records, bool sync) override { return inner_->commit(records, sync); }
  Result<void> read(store::Revision after, const std::function<Result<void>(store::Record)>& each) override {
    return inner_->read(after, legible(each));
  }
  Result<void> read_back(const std::function<bool(const store::RecordHead&)>& wants,
                         const std::function<Result<void>(store::Record)>& each) override {
    return inner_->read_back(wants, legible(each));
  }
  Result<void> compact(store::Revision revision) override { return inner_->compact(revision); }

 private:
  std::function<Result<void>(store::Record)> legible(std::function<Result<void>(store::Record)> each) const {
    return [this, each = std::move(each)](store::Record record) {
      return record.revision == illegible_ ? Result<void>() : each(std::move(record));
    };
  }
  std::unique_ptr<store::Store> inner_;
  Revision illegible_;
};

TEST_F(ObjectCacheRestart, AnOldWriteThatCannotBeReadDoesNotBringBackTheOneBefore) {
  for (const int writes : {3, 5}) {
    store::TemporaryDirectory directory;
    cache_.reset();
    open(store::open_or_fail(directory.file("s.db")), true, {});
    for (int i = 1; i <= writes; ++i) put({.name = "a", .node = fmt::format("n{}", i)});
    cache_.reset();
    open(std::make_unique<Illegible>(store::open_or_fail(directory.file("s.db")), writes - 1), true, {});
    ASSERT_NE(cache_->get("//pods/default/a"), nullptr);
    EXPECT_EQ(cache_->get("//pods/default/a")->meta.field("spec.nodeName"), fmt::format("n{}", writes));
    EXPECT_EQ(names(cache_->list(pods(), {}, 0)), (std::vector<std::string>{"default/a"}));
  }
}

/// One kind is written fifty times as often as the other, whose history must not suffer by it.
TEST_F(ObjectCacheRestart, ALogThatIsMostlySupersededComesBackAsItWas) {
  const CacheOptions options{.history_events = 40};
  for (unsigned seed = 1; seed <= 25; ++seed) {
    store::TemporaryDirectory directory;
    cache_.reset();
    open(store::open_or_fail(directory.file("s.db")), true, options);
    std::mt19937 random(seed);
    const auto write = [&](const char* plural, unsigned objects) {
      auto proposal = random() % 5 == 0 ? delete_proposal("default", fmt::format("o{}", random() % objects))
                                        : pod_proposal({.name = fmt::format("o{}", random() % objects)});
      const std::string name = proposal.key.substr(proposal.key.rfind('/') + 1);
      proposal.key = make_key("", plural, "default", name);
      (void)propose(std::move(proposal));
    };
    for (int i = 0; i < 500; ++i) {
      write(random() % 50 == 0 ? "configmaps" : "pods", 30);
    }
    using Seen = std::vector<std::string>;
    const auto everything = [&] {
      Seen all;
      for (const char* plural : {"pods", "configmaps"}) {
        const WatchFilter filter{.prefix = make_prefix("", plural)};
        for (const auto& object : cache_->list(filter, {}, 0).items)
          all.push_back(fmt::format("{} {} {} {}", object->key, object->revision, object->create_revision, object->text().here()));
        for (Revision after = 0; after <= cache_->revision(); ++after) {
          auto sink = std::make_shared<RecordingSink>();
          const auto watch = cache_->watch(filter, after, false, sink);
          if (watch == nullptr) continue;
          all.push_back(fmt::format("{} after {}", plural, after));
          for (const auto& event : sink->events()) all.push_back(event);
        }
      }
      return all;
    };
    const Seen before = everything();
    cache_.reset();
    open(store::open_or_fail(directory.file("s.db")), true, options);
    EXPECT_EQ(everything(), before) << "seed " << seed;
  }
}

TEST_F(ObjectCacheRestart, WatchFromBeforeTheCompactionIsRefused) {
  CacheOptions options{.history_events = 100};
  reopen(options);
  for (int i = 0; i < 1000; ++i) put({.name = fmt::format("p{}", i % 7)});
  clock_.advance(std::chrono::minutes(6));
  put({.name = "x"});
  clock_.advance(std::chrono::minutes(6));
  put({.name = "x"});
  reopen({.history_events = 10'000});
  EXPECT_EQ(cache_->revision(), 1002);
  EXPECT_EQ(cache_->list(pods(), {}, 0).items.size(), 8U);
  auto sink = std::make_shared<RecordingSink>();
  EXPECT_EQ(cache_->watch(pods(), 901, false, sink), nullptr);
  EXPECT_NE(cache_->watch(pods(), 902, false, sink), nullptr);
  EXPECT_EQ(sink->events().size(), 100U);
}

TEST_F(ObjectCacheRestart, ReadingEndsWhereThereIsNoRoom) {
  reopen();
  for (int i = 0; i < 10; ++i) put({.name = fmt::format("p{}", i)});
  cache_.reset();
  int asked = 0;
  const auto open_with = [&](bool has_room) {
    CacheOptions options;
    options.has_room = [&asked, has_room]() -> Result<void> {
      ++asked;
      return has_room ? Result<void>() : invalid("too few");
    };
    return ObjectCache::open(store::open_or_fail(directory_.file("s.db")), clock_, options, meta_of_json, true);
  };
  const auto refused = open_with(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "too few");
  const auto opened = open_with(true);
  ASSERT_TRUE(opened);
  EXPECT_EQ((*opened)->list(pods(), {}, 0).items.size(), 10U);
  EXPECT_GE(asked, 2);
}

/// Several threads make objects of it, whoever is first done.
TEST_F(ObjectCacheRestart, WhatIsReadInManyPartsComesBackAsItWas) {
  reopen();
  for (int i = 0; i < 3000; ++i) {
    put({.name = fmt::format("p{}", i % 700), .node = fmt::format("n{}", i), .padding = i % 3 == 0 ? 500U : 0U});
    if (i % 9 == 0) remove(fmt::format("p{}", i % 700));
  }
  const auto told = [&] {
    std::vector<std::string> out;
    for (const ObjectPtr& object : cache_->list(pods(), {}, 0).items)
      out.push_back(fmt::format("{} {} {}", object->revision, object->create_revision, object->text().here()));
    auto sink = std::make_shared<RecordingSink>();
    const auto watch = cache_->watch(pods(), 400, false, sink);
    for (const std::string& event : sink->events()) out.push_back(event);
    return out;
  };
  const std::vector<std::string> before = told();
  EXPECT_GT(before.size(), 2900U);
  reopen();
  EXPECT_EQ(told(), before);
  cache_.reset();
  CacheOptions options;
  int asked = 0;
  options.has_room = [&]() -> Result<void> { return ++asked == 3 ? invalid("too few") : Result<void>(); };
  const auto refused = ObjectCache::open(store::open_or_fail(directory_.file("s.db")), clock_, options, meta_of_json, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "too few");
  EXPECT_EQ(asked, 3) << "nothing is applied behind it";
}

TEST_F(ObjectCacheRestart, ExpiryGoesOnAfterARestart) {
  reopen();
  auto proposal = pod_proposal({.name = "event"});
  auto when = clock_.now() + std::chrono::seconds(10);
  proposal.expires_at = when;
  proposal.value.insert(1, fmt::format(R"("expiresAtUs":{},)", when.time_since_epoch().count()));
  proposal.revision_offset = proposal.value.find(R"("resourceVersion":")") + 19;
  ASSERT_TRUE(propose(std::move(proposal)).has_value());
  reopen();
  ASSERT_NE(cache_->get("//pods/default/event"), nullptr);
  clock_.advance(std::chrono::seconds(11));
  put({.name = "other"});
  EXPECT_EQ(cache_->get("//pods/default/event"), nullptr);
}

/// What a killed process told its parent: the pod's number and the revision acknowledged for it.
struct Acknowledgement {
  std::int32_t pod;
  std::int32_t is_delete;
  Revision revision;
};

/// Writes pods with 16 in flight until killed; each acknowledgement goes through the pipe (writes this small are atomic).
[[noreturn]] void write_until_killed(const std::string& path, int pipe, unsigned seed) {
  auto store = store::open_sqlite_store({.path = path});
  if (!store) ::_exit(3);
  SystemClock clock;
  CacheOptions options{.history_events = 500, .compaction_interval = std::chrono::milliseconds(20)};
  auto cache = ObjectCache::open(std::move(*store), clock, options, meta_of_json, false);
  if (!cache) ::_exit(4);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(seed * 16 + t);
      for (;;) {
        // Each thread has pods of its own, so the order of its acknowledgements is the order of their writes.
        auto pod = static_cast<std::int32_t>(t * 20 + random() % 20);
        std::string name = fmt::format("p{}", pod);
        bool is_delete = random() % 5 == 0;
        std::promise<void> answered;
        auto proposal = is_delete ? delete_proposal("default", name) : pod_proposal({.name = name, .padding = random() % 3000});
        (*cache)->propose(std::move(proposal), [&](const ProposeResult& result) {
          if (result) {
            Acknowledgement ack{pod, is_delete ? 1 : 0, (*result)->revision};
            if (::write(pipe, &ack, sizeof ack) != sizeof ack) ::_exit(5);
          }
          answered.set_value();
        });
        answered.get_future().wait();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ::_exit(6);
}

/// One round: let a child write for a while, kill it, open the store and compare. `known` maps pods to their last acknowledged write.
void kill_round(const std::string& path, const Clock& clock, unsigned seed, std::map<std::int32_t, Acknowledgement>& known,
                Revision& last_revision) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) write_until_killed(path, ends[1], seed);
  ::close(ends[1]);
  std::mt19937 random(seed);
  std::size_t wanted = 20 + random() % 1500;
  Acknowledgement ack{};
  const auto take = [&] {
    if (::read(ends[0], &ack, sizeof ack) != sizeof ack) return false;
    EXPECT_GT(ack.revision, last_revision) << "a revision was given twice";
    known[ack.pod] = ack;
    return true;
  };
  for (std::size_t seen = 0; seen < wanted && take(); ++seen) {
  }
  ::kill(child, SIGKILL);
  while (take()) {
  }
  ::close(ends[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);

  auto store = store::open_sqlite_store({.path = path});
  ASSERT_TRUE(store.has_value()) << store.error().message;
  auto cache = ObjectCache::open(std::move(*store), clock, {}, meta_of_json, true);
  ASSERT_TRUE(cache.has_value()) << cache.error().message;
  for (auto& [pod, acknowledged] : known) {
    auto object = (*cache)->get(make_key("", "pods", "default", fmt::format("p{}", pod)));
    EXPECT_LE(acknowledged.revision, (*cache)->revision());
    // A later write of the same pod may have become durable without its answer getting out; nothing older may be seen.
    if (object != nullptr) {
      EXPECT_GE(object->revision, acknowledged.revision);
      EXPECT_TRUE(acknowledged.is_delete == 0 || object->create_revision > acknowledged.revision);
      EXPECT_EQ(revision_in_bytes(object), object->revision);
    } else if (acknowledged.is_delete == 0) {
      // Then a deletion followed that was not acknowledged any more: it is among the last writes, which the history knows.
      auto sink = std::make_shared<RecordingSink>();
      WatchFilter filter{.prefix = make_prefix("", "pods"), .name = fmt::format("p{}", pod)};
      auto watch = (*cache)->watch(filter, std::max(acknowledged.revision, (*cache)->revision() - 100), false, sink);
      ASSERT_NE(watch, nullptr);
      ASSERT_FALSE(sink->events().empty()) << "an acknowledged write is lost";
      EXPECT_TRUE(sink->events().back().starts_with("DELETED"));
    }
    // The next round goes on from what is there now.
    acknowledged = object != nullptr ? Acknowledgement{pod, 0, object->revision} : Acknowledgement{pod, 1, (*cache)->revision()};
  }
  EXPECT_GE((*cache)->revision(), last_revision);
  last_revision = (*cache)->revision();
}

/// BERTH_KILL_ROUNDS sets the number of rounds (`make kill-test`: 200).
TEST_F(ObjectCacheRestart, KilledServerLosesNothingAcknowledged) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a process of several threads does not live on in a fork under the thread sanitizer";
#endif
  const char* rounds_text = std::getenv("BERTH_KILL_ROUNDS");
  int rounds = rounds_text != nullptr ? std::atoi(rounds_text) : 5;
  std::map<std::int32_t, Acknowledgement> known;
  Revision last_revision = 0;
  for (int round = 0; round < rounds && !HasFatalFailure(); ++round) {
    kill_round(directory_.file("kill.db"), clock_, static_cast<unsigned>(round), known, last_revision);
  }
  EXPECT_GT(last_revision, rounds * 20);
}

}  // namespace
}  // namespace berth::apiserver
